"""`headrace run --dry-run`: what brokers and a registry say about a pipeline, without Spark."""

from concurrent.futures import Future

import pytest

pytest.importorskip("pyspark")

from headrace import Producer
from headrace.admin import AclOperation
from headrace.cli.run import main
from headrace.schema_registry import Schema, SchemaRegistryClient
from headrace.schemas.protobuf import parse_protobuf
from headrace.spark.pipeline.preflight import dry_run
from headrace.testing import EmbeddedBroker

TEXT = """
[pipeline]
name = "shop"
checkpoint = "cp"
[kafka]
bootstrap.servers = "{brokers}"
[registry]
url = "{registry}"
[[source]]
name = "sales"
topic = "sales"
format = "avro"
group = "shop-lag"
malformed = "dead-letter"
dead_letters = "bad"
[[sink]]
from = "sales"
topic = "sums"
format = "avro"
guarantee = "exactly_once"
"""
SALE = '{"type": "record", "name": "Sale", "fields": [{"name": "item", "type": "long"}]}'


@pytest.fixture(scope="module")
def broker():
    with EmbeddedBroker(topics={"sales": 3, "sums": 2, "bad": 1}, registry=True) as broker:
        with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            for number in range(7):
                producer.produce("sales", b"x", partition=number % 3)
            assert producer.flush(30) == 0
        with SchemaRegistryClient({"url": broker.registry_url}) as registry:
            registry.register_schema("sales-value", Schema(SALE, "AVRO"))
        yield broker


@pytest.fixture
def check(broker, tmp_path, capsys, monkeypatch):
    """Runs the command on the file, changed; gives status and lines. Options are those of other rooms, not checked."""
    monkeypatch.setattr("headrace.spark.pipeline.endpoints.Endpoints.check", lambda endpoints: None)

    def run(old="", new=""):
        text = TEXT.format(brokers=broker.bootstrap_servers, registry=broker.registry_url)
        assert old in text
        path = tmp_path / "pipeline.toml"
        path.write_text(text.replace(old, new) if old else text)
        status = main([str(path), "--dry-run", "--directory", str(tmp_path)])
        return status, capsys.readouterr().out.splitlines()

    return run


def test_all_that_a_pipeline_needs_is_named_where_nothing_is_wrong(check, broker):
    status, lines = check()
    assert status == 0
    assert lines == [
        f"ok      brokers: 1 broker at {broker.bootstrap_servers}, transactions v2",
        "ok      source sales: topic sales: 3 partitions, about 7 records",
        "ok      source sales, dead letters: topic bad: 1 partition",
        "ok      source sales, group: group shop-lag: may be committed to",
        "ok      sink sales: topic sums: 2 partitions",
        "ok      source sales, schema: subject sales-value: version 1, id 1",
        "ok      sink sales, schema: subject sums-value has no schema yet",
    ]


@pytest.mark.parametrize(("old", "new", "said"), [
    ('topic = "sales"', 'topic = "none"', "PROBLEM source sales: "),
    ('topic = "sums"', 'topic = "none"', "PROBLEM sink sales: "),
    ('dead_letters = "bad"', 'dead_letters = "none"', "PROBLEM source sales, dead letters: "),
    ('format = "avro"\ngroup', 'format = "avro"\nsubject = "none"\ngroup', "PROBLEM source sales, schema: "),
])
def test_what_is_missing_is_a_problem_and_the_rest_is_checked_all_the_same(check, old, new, said):
    status, lines = check(old, new)
    assert status == 1
    assert [line.startswith(said) for line in lines].count(True) == 1
    assert len(lines) == 7


def test_a_sink_of_other_brokers_is_looked_for_there_and_its_schema_under_the_name_of_its_own_topic(check):
    with EmbeddedBroker(topics={"far": 5}) as other:
        options = {"kafka.bootstrap.servers": other.bootstrap_servers, "kafka.linger.ms": "5", "topic": "far"}
        lines = [f'options."{name}" = "{value}"' for name, value in options.items()]
        status, lines = check('guarantee = "exactly_once"', "\n".join(lines))
    assert status == 0
    assert lines[4] == "ok      sink sales: topic far: 5 partitions"
    assert lines[-1] == "ok      sink sales, schema: subject far-value has no schema yet"


def test_what_a_source_reads_is_looked_for_under_the_names_that_its_options_give(check):
    options = {"subscribe": "sales, more", "deadLetterTopic": "worse", "groupId": "other-lag"}
    status, lines = check('group = "shop-lag"', "\n".join(["group = \"shop-lag\""] + [
        f'options.{name} = "{value}"' for name, value in options.items()]))
    assert status == 1
    assert lines[1:5] == [
        "ok      source sales: topic sales: 3 partitions, about 7 records",
        'PROBLEM source sales: topic "more": The broker does not have this topic or partition.',
        'PROBLEM source sales, dead letters: topic "worse": The broker does not have this topic or partition.',
        "ok      source sales, group: group other-lag: may be committed to",
    ]
    assert [line.split(":")[1] for line in lines if "source sales, schema" in line] == [
        " subject sales-value", " subject more-value"]


def test_a_schema_that_the_registry_would_refuse_is_a_problem(check, broker):
    with SchemaRegistryClient({"url": broker.registry_url}) as registry:
        registry.register_schema("strict-value", Schema(SALE, "AVRO"))
    other = SALE.replace('"long"', '"string"')
    status, lines = check('format = "avro"\nguarantee', f"format = \"avro\"\nsubject = \"strict-value\"\n"
                                                        f"schema = '{other}'\nguarantee")
    assert status == 1
    assert lines[-1] == ("PROBLEM sink sales, schema: subject strict-value would refuse the schema of the file: "
                         "it is not compatible")


@pytest.mark.parametrize(("kind", "allowed"), [("int64", True), ("string", False)])
def test_what_protoc_has_compiled_is_compared_as_the_schema_that_the_sink_would_register(
    check, broker, tmp_path, kind, allowed
):
    pytest.importorskip("google.protobuf")
    from google.protobuf import descriptor_pb2

    with SchemaRegistryClient({"url": broker.registry_url}) as registry:
        earlier = 'syntax = "proto3"; message Sum { int64 amount = 1; }'
        registry.register_schema("sum-of-protoc-value", Schema(earlier, "PROTOBUF"))
    files = descriptor_pb2.FileDescriptorSet()
    text = f'syntax = "proto3"; message Sum {{ {kind} amount = 1; }}'
    files.file.append(descriptor_pb2.FileDescriptorProto.FromString(parse_protobuf(text).descriptor("sum.proto")))
    (tmp_path / "sum.desc").write_bytes(files.SerializeToString())
    status, lines = check('format = "avro"\nguarantee', "format = \"protobuf\"\nsubject = \"sum-of-protoc-value\"\n"
                                                        "schema_file = \"sum.desc\"\nguarantee")
    assert (status == 0) is allowed
    assert ("would refuse the schema of the file" in lines[-1]) is not allowed
    good = "ok     " if allowed else "PROBLEM"
    assert lines[-1].startswith(f"{good} sink sales, schema: subject sum-of-protoc-value")


def test_brokers_that_do_not_answer_are_one_problem(check, broker, monkeypatch, caplog):
    monkeypatch.setattr(dry_run, "_TIMEOUT_S", 0.5)
    status, lines = check(f'"{broker.bootstrap_servers}"', '"localhost:1"')
    # Clients that other tests left may say that their brokers, which have other addresses, are gone.
    assert [message for message in caplog.messages if "localhost" in message] == []
    assert status == 1
    assert lines[0].startswith("PROBLEM brokers: ")
    assert len(lines) == 3  # the registry is asked all the same


def test_embedded_brokers_are_not_there_to_be_asked(check, broker):
    status, lines = check(f'"{broker.bootstrap_servers}"', '"embedded"')
    assert status == 0
    assert lines[0] == "ok      brokers: embedded: they begin with the run, without topics, so nothing more is checked"


@pytest.mark.parametrize(("given", "wanted", "said"), [
    ([AclOperation.DESCRIBE], AclOperation.READ, "this client lacks the right READ: give it with an ACL"),
    ([AclOperation.READ], AclOperation.READ, ""),
    ([AclOperation.ALL], AclOperation.WRITE, ""),
    (None, AclOperation.WRITE, ""),
])
def test_a_right_that_is_missing_is_named(given, wanted, said):
    class Described:
        authorized_operations = given
        partitions = ()

    class Admin:
        def describe_topics(self, topics, **_):
            found = Future()
            found.set_result(Described())
            return {"t": found}

    if wanted == AclOperation.WRITE:
        assert dry_run._writable(Admin(), "t", False)[1] == (f"topic t: {said}" if said else "topic t: 0 partitions")
    else:
        assert dry_run._lacking(given, wanted) == said
