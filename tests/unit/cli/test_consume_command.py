"""`headrace consume` at the embedded broker: what is written, what is told, and how it ends."""

import base64
import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import termios
import time
from contextlib import contextmanager

import pytest

from headrace import Consumer, Producer, TopicPartition
from headrace.broker.settings import BrokerSettings
from headrace.cli.consume import main
from headrace.testing import EmbeddedBroker
from tests.support.protobuf_samples import compiled

COMMAND = [sys.executable, "-c", "import sys; from headrace.cli import main; sys.exit(main())", "consume"]


@pytest.fixture(scope="module")
def broker():
    with EmbeddedBroker(settings=BrokerSettings(auto_create_topics=False), registry=True) as made:
        yield made


@pytest.fixture
def topic(broker, request):
    name = f"t{abs(hash(request.node.nodeid))}"
    broker.create_topic(name, 2)
    return name


def fill(broker, topic, *records, transactional_id=None, commit=True):
    """Send dictionaries of `produce()` arguments; bytes are values in partition 0."""
    config = {"bootstrap.servers": broker.bootstrap_servers}
    with Producer({**config, **({"transactional.id": transactional_id} if transactional_id else {})}) as producer:
        if transactional_id:
            producer.init_transactions(30)
            producer.begin_transaction()
        for record in records:
            producer.produce(topic, **(record if isinstance(record, dict) else {"value": record, "partition": 0}))
        producer.flush()
        if transactional_id:
            (producer.commit_transaction if commit else producer.abort_transaction)(30)


@pytest.fixture
def consume(broker, topic, capfdbinary):
    """Run the command; gives status, what was written, and what was said."""
    def run(*options, topics=None):
        status = main([*(topics or [topic]), "-b", broker.bootstrap_servers, *options])
        out, err = capfdbinary.readouterr()
        return status, out, err.decode()

    return run


@contextmanager
def running(broker, topic, *options, **pipes):
    """The command as a process, which is gone afterwards whatever happens."""
    process = subprocess.Popen([*COMMAND, topic, "-b", broker.bootstrap_servers, *options],
                               **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **pipes})
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_what_a_topic_has_is_written_partition_by_partition_and_counted(broker, topic, consume):
    fill(broker, topic, b"a", b"b", {"value": b"c", "partition": 1})
    status, out, said = consume("-e")
    assert (status, out) == (0, b"a\nb\nc\n")
    assert said.startswith(f"3 records read from {topic} in ")


@pytest.mark.parametrize(("options", "found"), [
    (["-o", "-2"], b"3\n4\n"), (["-o", "1:3"], b"1\n2\n"), (["-o", ":2"], b"0\n1\n"), (["-o", "+4"], b"4\n"),
    (["-o", "-4:-2"], b"1\n2\n"), (["--offset", "-1"], b"4\n"), (["-o", "end"], b""),
    (["-o", "@1970-01-01T00:00:02Z:@1970-01-01T00:00:04Z"], b"2\n3\n"), (["-o", "s@4000", "-o", "e@5000"], b"4\n"),
    (["-c", "2"], b"0\n1\n"), (["-p", "1"], b""), (["-p", "0,1", "-o", "@3000:"], b"3\n4\n"),
])
def test_offsets_partitions_and_counts(broker, topic, consume, options, found):
    fill(broker, topic, *({"value": b"%d" % row, "partition": 0, "timestamp": row * 1000 or 1} for row in range(5)))
    options = [each.replace("@3000", "@1970-01-01T00:00:03") if each.endswith(":") else each for each in options]
    options = [each.replace("@4000", "@1970-01-01T00:00:04").replace("@5000", "@1970-01-01T00:00:05")
               for each in options]
    assert consume(*options, "-e", "-q") == (0, found, "")


def test_json_lines_go_back_through_produce_bit_for_bit(broker, topic, consume, tmp_path):
    from headrace.cli.produce import main as produce

    records = [{"value": None, "key": b"gone", "partition": 0}, {"value": b"", "key": b"", "partition": 1},
               {"value": bytes(range(256)), "headers": [("a", b"\xff"), ("a", None), ("", b"")], "timestamp": 77},
               {"value": "ünï\u2028 \"\\\0".encode(), "key": b"\xc3"}, {"value": b'{"base64": "no"}'}]
    fill(broker, topic, *records)
    broker.create_topic(f"{topic}-copy", 2)
    for form, ending in (("json", "jsonl"), ("parquet", "parquet")):
        path = tmp_path / f"records.{ending}"
        broker.create_topic(f"{topic}-{form}", 2)
        assert consume("-e", "-O", str(path))[0] == 0
        assert produce([f"{topic}-{form}", str(path), "-b", broker.bootstrap_servers, "-q"]) == 0
        assert content(broker, f"{topic}-{form}") == content(broker, topic)


def content(broker, topic):
    with Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"}) as consumer:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(2)])
        left = sum(broker.end_offsets(topic))
        found = []
        while len(found) < left:
            found += consumer.consume(left, 5)
        return sorted((m.partition(), m.offset(), m.key(), m.value(), m.headers(), m.timestamp()) for m in found)


def test_csv_has_a_header_even_without_records(broker, topic, consume):
    assert consume("-e", "-q", "--output", "csv") == (0, b"topic,partition,offset,timestamp,key,value,headers\n", "")


def test_arrow_on_standard_output_is_a_stream(broker, topic, consume):
    import pyarrow as pa

    fill(broker, topic, {"value": b"v", "key": b"k", "headers": [("h", b"x")], "timestamp": 5, "partition": 1}, b"w")
    status, out, _ = consume("-e", "-q", "--output", "arrow")
    rows = pa.ipc.open_stream(out).read_all().to_pylist()
    assert status == 0
    assert [row["value"] for row in rows] == [b"w", b"v"]
    assert rows[1]["headers"] == [{"name": "h", "value": b"x"}]
    assert (rows[1]["key"], rows[1]["topic"], rows[1]["partition"], rows[1]["offset"]) == (b"k", topic, 1, 0)


def test_filters_choose_records_and_the_count_is_of_those(broker, topic, consume):
    fill(broker, topic, *(
        {"value": b'{"n": %d}' % row, "key": b"k%d" % (row % 2), "partition": 0,
         "headers": [("odd", b"%d" % (row % 2))]} for row in range(10)))
    assert consume("-e", "-q", "--key", "k1", "-c", "2")[1] == b'{"n": 1}\n{"n": 3}\n'
    assert consume("-e", "-q", "--header", "odd=0", "--match", "[68]")[1] == b'{"n": 6}\n{"n": 8}\n'
    assert consume("-e", "-q", "--header", "even")[1] == b""
    assert consume("-e", "-q", "--key-match", "1$", "-c", "1")[1] == b'{"n": 1}\n'
    _, _, said = consume("-e", "--key", "k0")
    assert said.startswith("5 records of 10 read from ")


def test_kcats_letter_for_json_is_known(broker, topic, consume):
    fill(broker, topic, b"v")
    assert consume("-e", "-q", "-J") == consume("-e", "-q", "--output", "json")


def test_a_jmespath_filter_sees_values_that_are_json(broker, topic, consume):
    pytest.importorskip("jmespath")
    fill(broker, topic, b'{"n": 1}', b'{"n": 5}', b"text", {"value": None, "key": b"k", "partition": 0})
    assert consume("-e", "-q", "--filter", "value.n > `2`")[1] == b'{"n": 5}\n'
    assert consume("-e", "-q", "--filter", "value == null && key == 'k'", "-Z")[1] == b"NULL\n"
    status, _, said = consume("-e", "--filter", "value[")
    assert status == 2
    assert said.startswith("headrace consume: --filter: ")


def test_a_group_commits_what_is_written_and_goes_on_there(broker, topic, consume):
    fill(broker, topic, *(b"%d" % row for row in range(6)))
    assert consume("-g", f"{topic}-g", "-c", "2", "-q")[1] == b"0\n1\n"
    assert consume("-g", f"{topic}-g", "-c", "1", "-q", "--no-commit")[1] == b"2\n"
    assert consume("-g", f"{topic}-g", "-e", "-q")[1] == b"2\n3\n4\n5\n"
    assert consume("-o", "stored", "-X", f"group.id={topic}-g", "-e", "-q")[1] == b""


def test_control_records_stand_where_transactions_end(broker, topic, consume):
    fill(broker, topic, b"a", transactional_id=topic)
    fill(broker, topic, b"b", transactional_id=topic, commit=False)
    _, out, _ = consume("--control", "-q", "--output", "json", "-p", "0")
    first, commit, abort = map(json.loads, out.splitlines())
    assert (first["value"], commit["control"], commit["offset"], abort["control"]) == ("a", "COMMIT", 1, "ABORT")
    assert consume("-e", "-q")[1] == b"a\n"
    assert consume("-e", "-q", "--isolation", "read_uncommitted")[1] == b"a\nb\n"


def test_values_are_read_by_their_schemas(broker, topic, consume):
    from headrace.schema_registry import SchemaRegistryClient
    from headrace.schema_registry.avro import AvroSerializer
    from headrace.serialization import MessageField, SerializationContext

    schema = {"type": "record", "name": "R", "fields": [
        {"name": "n", "type": "int"}, {"name": "b", "type": "bytes"},
        {"name": "t", "type": {"type": "long", "logicalType": "timestamp-millis"}}, {"name": "m", "type": {
            "type": "map", "values": "double"}}]}
    serialize = AvroSerializer(SchemaRegistryClient({"url": broker.registry_url}), json.dumps(schema))
    value = serialize({"n": 7, "b": b"\xff", "t": 0, "m": {"x": 0.5}}, SerializationContext(topic, MessageField.VALUE))
    fill(broker, topic, value, {"value": None, "partition": 0})
    options = ["-e", "-q", "--value-format", "avro", "--registry", broker.registry_url]
    found = json.loads(consume(*options, "--output", "json", "-c", "1")[1])["value"]
    assert found == {"n": 7, "b": base64.b64encode(b"\xff").decode(), "t": "1970-01-01T00:00:00Z", "m": {"x": 0.5}}
    fill(broker, topic, b"no schema")
    status, _, said = consume(*options)
    assert status == 1
    assert said.startswith(f"headrace consume: {topic} [0] offset 2: value is no avro: ")
    assert len(said.splitlines()) == 1


def test_protobuf_values_are_read_by_their_schemas_and_imports(broker, topic, consume):
    from headrace.schema_registry import SchemaRegistryClient
    from headrace.schema_registry.protobuf import ProtobufSerializer
    from headrace.serialization import MessageField, SerializationContext

    user, place, base = (compiled()[name] for name in ("user", "place", "base"))
    serialize = ProtobufSerializer(user.User, SchemaRegistryClient({"url": broker.registry_url}))
    value = serialize(
        user.User(name="x", number=1 << 40, tags=["a", "b"], place=place.Place(name="p", point=base.Point(x=0.5))),
        SerializationContext(topic, MessageField.VALUE))
    assert in_json(broker, topic, consume, "protobuf", value) == {
        "name": "x", "number": 1 << 40, "tags": ["a", "b"],
        "place": {"name": "p", "point": {"x": 0.5, "y": None}, "since": None}}  # no field of its own says 0


def test_json_schema_values_are_read_by_their_schemas(broker, topic, consume):
    from headrace.schema_registry import SchemaRegistryClient
    from headrace.schema_registry.json_schema import JSONSerializer
    from headrace.serialization import MessageField, SerializationContext

    schema = {"title": "order", "type": "object", "required": ["n"], "properties": {
        "n": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}, "note": {"type": "string"}}}
    serialize = JSONSerializer(json.dumps(schema), SchemaRegistryClient({"url": broker.registry_url}))
    value = serialize({"n": 7, "tags": ["a", "\u00fc\n"]}, SerializationContext(topic, MessageField.VALUE))
    found = in_json(broker, topic, consume, "json-schema", value)
    assert {name: each for name, each in found.items() if each is not None} == {"n": 7, "tags": ["a", "\u00fc\n"]}


def in_json(broker, topic, consume, form, value):
    """A value of a format as JSON lines have it; a line of its own says the same, and what is no such value is told."""
    fill(broker, topic, value, {"value": None, "partition": 0})
    options = ["-e", "-q", "--value-format", form, "--registry", broker.registry_url]
    status, out, _ = consume(*options, "--output", "json")
    found, tombstone = (json.loads(line)["value"] for line in out.splitlines())
    assert (status, tombstone) == (0, None)
    assert json.loads(consume(*options, "-c", "1")[1]) == found
    fill(broker, topic, b"no schema")
    status, _, said = consume(*options)
    assert (status, len(said.splitlines())) == (1, 1)
    assert said.startswith(f"headrace consume: {topic} [0] offset 2: value is no {form}: ")
    return found


def test_a_file_and_standard_output_at_once(broker, topic, consume, tmp_path):
    fill(broker, topic, b"a")
    status, out, _ = consume("-e", "-O", str(tmp_path / "out"), "--tee")
    assert (status, out, (tmp_path / "out").read_bytes()) == (0, b"a\n", b"a\n")


def test_topics_that_match_a_pattern(broker, topic, consume):
    broker.create_topic(f"{topic}-b")
    fill(broker, topic, b"a")
    fill(broker, f"{topic}-b", b"b")
    assert consume("-e", "-q", "-f", "%t=%v ", topics=[f"^{topic}"])[1].decode() == f"{topic}=a {topic}-b=b "


@pytest.mark.parametrize(("options", "why"), [
    (["-o", "nowhere"], "'nowhere' is no offset"), (["-f", "%x"], "%x is no token"),
    (["-g", "g", "-p", "0"], "give -g or -p"), (["--share"], "-g GROUP"), (["-o", "stored"], "-X group.id=ID"),
    (["--output", "json", "-K", ":"], "-K is for lines"), (["--output", "parquet"], "-O FILE"),
    (["--value-format", "avro"], "--registry URL"), (["-c", "0"], "at least 1"), (["-p", "x"], "partition numbers"),
    (["--match", "("], "no regular expression"), (["-o", "1", "-o", "2"], "twice"), (["--tee"], "--tee needs -O"),
])
def test_wrong_usage_is_explained(broker, capsys, options, why):
    with pytest.raises(SystemExit) as ended:
        main(["t", "-b", "localhost:1", *options])
    assert ended.value.code == 2
    assert why in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(("topics", "options", "why"), [
    (["nope"], [], "does not have this topic"), (["^nope"], [], "no topic matches ^nope"),
    (None, ["-p", "7"], "has no partition 7: it has 2"),
])
def test_what_is_not_there_is_one_clear_line(broker, topic, consume, topics, options, why):
    status, out, said = consume("-e", *options, topics=topics)
    assert (status, out, len(said.splitlines())) == (5, b"", 1)
    assert why in said


def test_a_wrong_host_is_one_clear_line(monkeypatch, capfd):
    monkeypatch.setattr("headrace.cli.consuming.beginnings.ANSWER_S", 0.5)
    assert main(["t", "-e", "-b", "localhost:1"]) == 3
    (said,) = capfd.readouterr().err.splitlines()
    assert said.startswith("headrace consume: no usable metadata after ")
    assert "localhost:1: connection refused" in said


def test_a_file_that_cannot_be_written_is_wrong_usage(broker, topic, consume):
    status, _, said = consume("-e", "-O", "/no/such/place")
    assert (status, said) == (2, "headrace consume: /no/such/place: No such file or directory\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
@pytest.mark.parametrize("options", [[], ["--output", "parquet"], ["--output", "json"]])
def test_a_full_disk_is_one_clear_line(broker, topic, consume, options):
    fill(broker, topic, b"a")
    status, _, said = consume("-e", "-O", "/dev/full", *options)
    assert status == 1
    assert said.splitlines()[0] == "headrace consume: /dev/full: No space left on device"


def test_somebody_who_reads_no_more_ends_it_quietly(broker, topic):
    fill(broker, topic, *(b"x" * 1000 for _ in range(2_000)))
    with running(broker, topic, "-o", "beginning", "-q") as process:
        assert process.stdout.readline() == b"x" * 1000 + b"\n"
        process.stdout.close()
        assert process.wait(30) == 0
        assert process.stderr.read() == b""
        process.stderr.close()
        process.stdout = process.stderr = None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_reader_that_waits_with_whole_lines(broker, topic, number):
    fill(broker, topic, b"a", b"b")
    with running(broker, topic, "-o", "beginning") as process:
        assert [process.stdout.readline(), process.stdout.readline()] == [b"a\n", b"b\n"]
        began = time.monotonic()
        process.send_signal(number)
        out, said = process.communicate(timeout=30)
        assert time.monotonic() - began < 5
        assert (process.returncode, out) == (128 + number, b"")
        assert b"2 records read" in said
        assert b"stopped by " in said


def test_a_second_ctrl_c_ends_at_once_where_nobody_takes_the_output(broker, topic):
    fill(broker, topic, *[b"x" * 100_000] * 5)
    with running(broker, topic, "-o", "beginning") as process:
        until_full(process.stdout)
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):  # the first one waits for whole lines
            process.wait(0.7)
        process.send_signal(signal.SIGINT)
        sent_s = time.monotonic()
        assert process.wait(30) == 130
        assert time.monotonic() - sent_s < 10
        said = process.stderr.read().decode()
    assert said == "headrace consume: stopped at once by a second Ctrl-C: the output may be incomplete\n"


def until_full(pipe):
    """Wait until a writer has filled a pipe that nobody reads."""
    before, until_s = -1, time.monotonic() + 30
    while time.monotonic() < until_s:
        there = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0]
        if there > 0 and there == before:
            return
        before = there
        time.sleep(0.2)
    raise AssertionError("nothing was written")


def test_a_follower_sees_what_comes_later(broker, topic):
    with running(broker, topic, "-q", "-c", "2", "-o", "beginning") as process:
        fill(broker, topic, b"early")
        assert process.stdout.readline() == b"early\n"
        fill(broker, topic, b"late")
        assert process.communicate(timeout=30) == (b"late\n", b"")
        assert process.returncode == 0
