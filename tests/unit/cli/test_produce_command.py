"""`headrace produce` at the embedded broker: what arrives, what is told, and how it ends."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from headrace import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from headrace.broker.faults import Action, Fault
from headrace.broker.settings import BrokerSettings
from headrace.cli.produce import main
from headrace.testing import EmbeddedBroker
from headrace.wire.messages.producer.produce import ProduceRequest
from headrace.wire.messages.producer.transactions import EndTxnRequest

COMMAND = [sys.executable, "-c", "import sys; from headrace.cli import main; sys.exit(main())", "produce"]


@pytest.fixture(scope="module")
def broker():
    with EmbeddedBroker(settings=BrokerSettings(default_partitions=3)) as made:
        yield made


@pytest.fixture
def topic(broker, request):
    name = f"t{abs(hash(request.node.nodeid))}"
    broker.create_topic(name, 3)
    return name


@pytest.fixture
def produce(broker, topic, capsys, tmp_path):
    """Send the content of a file; gives status and what was said."""
    def run(content, *options, name="input"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        status = main([topic, str(path), "-b", broker.bootstrap_servers, *options])
        return status, capsys.readouterr().err.replace(str(path), "FILE")

    return run


def stored(broker, topic, **config):
    """All records of a topic, by partition and offset."""
    with Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", **config}) as consumer:
        ends = broker.end_offsets(topic)
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(len(ends))])
        found = []
        deadline = time.monotonic() + 20
        while sum(p.offset for p in consumer.position([TopicPartition(topic, n) for n in range(len(ends))])
                  if p.offset > 0) < sum(ends):
            assert time.monotonic() < deadline
            found += consumer.consume(10_000, 0.1)
        return sorted(found, key=lambda message: (message.partition(), message.offset()))


def values(broker, topic, **config):
    return sorted(message.value() for message in stored(broker, topic, **config))


@contextmanager
def running(broker, topic, *options, **pipes):
    """The command as a process, which is gone afterwards whatever happens."""
    process = subprocess.Popen([*COMMAND, topic, "-b", broker.bootstrap_servers, *options], stdin=subprocess.PIPE,
                               stderr=subprocess.PIPE, **pipes)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


def test_lines_of_a_file_arrive_in_order_and_are_counted(broker, topic, produce):
    lines = [b"line %d" % number for number in range(5_000)]
    status, said = produce(b"\n".join(lines) + b"\n", "-p", "1")
    assert status == 0
    assert [message.value() for message in stored(broker, topic)] == lines
    assert said.startswith(f"5,000 records, 43.9 kB, stored in {topic} in ")
    assert said.endswith(", 0 failed\n")


def test_keys_headers_timestamp_and_tombstones_of_lines(broker, topic, produce):
    status, _ = produce("a\t1\nb\t\n", "-K", r"\t", "-Z", "-H", "h=x=y", "-H", "n",
                        "--timestamp", "1970-01-01T00:00:17Z")
    assert status == 0
    found = {message.key(): message for message in stored(broker, topic)}
    assert (found[b"a"].value(), found[b"b"].value()) == (b"1", None)
    assert found[b"a"].headers() == [("h", b"x=y"), ("n", None)]
    assert found[b"a"].timestamp()[1] == 17_000


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec(broker, topic, produce, codec):
    assert produce("x\n" * 2_000, "-z", codec)[0] == 0
    assert values(broker, topic) == [b"x"] * 2_000


@pytest.mark.parametrize("count", [3, 3_000])
def test_keys_choose_the_same_partitions_in_large_and_small_pieces(broker, topic, produce, count):
    status, _ = produce("".join(f"key{number % 7}:{number}\n" for number in range(count)), "-K", ":")
    assert status == 0
    found = stored(broker, topic)
    assert len(found) == count
    partitions = {}
    for message in found:
        partitions.setdefault(message.key(), set()).add(message.partition())
    assert all(len(numbers) == 1 for numbers in partitions.values())


def test_envelopes_arrive_with_everything_they_say(broker, topic, produce):
    status, _ = produce('{"key": "k", "value": {"hex": "00ff"}, "headers": {"h": "x"}, "partition": 2, '
                        '"timestamp": 5}\n'
                        '{"value": null, "partition": 0}\n', name="in.jsonl")
    assert status == 0
    tombstone, record = stored(broker, topic)
    assert (record.key(), record.value(), record.partition(), record.headers(), record.timestamp()[1]) == (
        b"k", b"\0\xff", 2, [("h", b"x")], 5)
    assert (tombstone.value(), tombstone.key(), tombstone.headers()) == (None, None, None)


def test_what_the_options_say_of_all_records_wins(broker, topic, produce):
    line = json.dumps({"key": "k", "value": "v", "headers": {"h": "x"}, "partition": 2, "timestamp": 5})
    assert produce(line, "--format", "jsonl", "--key", "K", "-p", "1", "--timestamp", "9", "-H", "a=b")[0] == 0
    record, = stored(broker, topic)
    assert (record.key(), record.partition(), record.headers(), record.timestamp()[1]) == (
        b"K", 1, [("a", b"b"), ("h", b"x")], 9)


def test_csv_and_parquet_with_roles(broker, topic, produce, tmp_path, capsys):
    assert produce("id,name\n7,x\n", "--value-column", "*", "--key-column", "id", name="in.csv")[0] == 0
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pa.table({"payload": [b"p%d" % number for number in range(20_000)], "id": [None, "k"] * 10_000,
                      "partition": pa.array([0, 1] * 10_000, pa.int32())})
    parquet.write_table(table, tmp_path / "in.parquet", row_group_size=3_000)
    command = [topic, str(tmp_path / "in.parquet"), "-b", broker.bootstrap_servers]
    assert main([*command, "--value-column", "payload", "--key-column", "id", "-H", "h=x"]) == 0
    assert "20,000 records" in capsys.readouterr().err
    found = stored(broker, topic)
    assert [m.value() for m in found if m.key() == b"7"] == [b'{"name":"x"}']
    rest = [m for m in found if m.key() != b"7"]
    assert [m.value() for m in rest if m.partition() == 1] == [b"p%d" % number for number in range(1, 20_000, 2)]
    assert {(m.key(), m.partition()) for m in rest} == {(None, 0), (b"k", 1)}
    assert {tuple(m.headers()) for m in rest} == {(("h", b"x"),)}


def test_rows_of_parquet_that_are_refused_are_told_by_number_and_the_others_arrive(broker, topic, tmp_path, capsys):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    wrong = {5: 99, 9_000: 7}
    table = pa.table({"value": [str(number) for number in range(10_000)],
                      "partition": [wrong.get(number, 0) for number in range(10_000)]})
    path = tmp_path / "in.parquet"
    parquet.write_table(table, path)
    assert main([topic, str(path), "-b", broker.bootstrap_servers]) == 1
    said = capsys.readouterr().err
    assert f"{path}:6: {topic} has no partition 99" in said
    assert f"{path}:9001: {topic} has no partition 7" in said
    assert f"9,998 of 10,000 records stored in {topic}" in said
    assert len(values(broker, topic)) == 9_998


def test_a_malformed_line_ends_the_reading_and_is_named(broker, topic, produce):
    status, said = produce("a:1\nnothing\nb:2\n", "-K", ":")
    assert status == 1
    assert "FILE:2: no key: the delimiter ':' of -K is not in the line" in said
    assert "nothing behind the malformed record was read" in said
    assert "0 failed, 1 malformed" in said
    assert values(broker, topic) == [b"1"]


def test_malformed_lines_are_passed_over_if_that_is_asked_for_and_counted(broker, topic, produce):
    status, said = produce("a:1\n" + "nothing\n" * 5 + "b:2\n", "-K", ":", "--skip-malformed", "--show-errors", "2")
    assert status == 0
    assert said.count("passed over: no key") == 2
    assert "further failures are counted only" in said
    assert "5 malformed passed over" in said
    assert values(broker, topic) == [b"1", b"2"]


@pytest.mark.parametrize("count", [3, 1_500])
def test_records_that_are_too_large_are_told_by_line_and_the_others_arrive(broker, topic, produce, count):
    lines = ["x"] * count
    lines[1] = "y" * 2_000
    status, said = produce("\n".join(lines), "-X", "message.max.bytes=1000")
    assert status == 1
    assert "FILE:2: " in said
    assert "1000" in said
    assert f"{count - 1:,} of {count:,} records stored" in said
    assert "1 failed" in said
    assert values(broker, topic) == [b"x"] * (count - 1)


@pytest.mark.parametrize(("count", "where"), [(3, "FILE:1: "), (1_000, "FILE:1-1000: 1,000 records not stored: ")])
def test_what_the_broker_refuses_is_told(broker, topic, produce, count, where):
    broker.add_fault(Fault(action=Action.ERROR, request=ProduceRequest, error_code=87, times=None))  # INVALID_RECORD
    try:
        status, said = produce("x\n" * count)
    finally:
        broker.clear_faults()
    assert status == 1
    assert where in said
    assert f"{count:,} failed" in said
    assert f"0 of {count:,} records stored" in said


def test_one_transaction_is_all_or_nothing(broker, topic, produce):
    assert produce("1\n2\n", "--transactional-id", "tx")[0] == 0
    status, said = produce("a:1\nb:2\nno\n", "-K", ":", "--transactional-id", "tx")
    assert status == 1
    assert "the transaction was aborted: nobody sees its records" in said
    assert "0 of 2 records committed in 0 transactions" in said
    assert values(broker, topic, **{"isolation.level": "read_committed"}) == [b"1", b"2"]


def test_a_transaction_with_a_record_that_is_refused_is_aborted(broker, topic, produce):
    status, said = produce("ok\n" + "y" * 2_000 + "\n", "--transactional-id", "tx", "-X", "message.max.bytes=1000")
    assert status == 1
    assert "FILE:2: " in said
    assert "the transaction was aborted" in said
    assert values(broker, topic, **{"isolation.level": "read_committed"}) == []


def test_a_transaction_ends_after_every_so_many_records(broker, topic, produce):
    lines = "".join(f"{number}\n" for number in range(1_000))
    status, said = produce(lines, "--transactional-id", "tx", "--transaction-every", "300")
    assert status == 0
    assert "committed in 4 transactions" in said
    assert len(values(broker, topic, **{"isolation.level": "read_committed"})) == 1_000
    assert "3 transactions" in produce(lines, "--transactional-id", "tx", "--transaction-every", "300", "--count",
                                       "900")[1]
    status, said = produce(lines + "no\n", "-K", "9", "--transactional-id", "tx", "--transaction-every", "3")
    assert status == 1
    assert "no key" in said


def test_a_transaction_that_the_broker_refuses_a_record_of_is_aborted(broker, topic, produce):
    broker.add_fault(Fault(action=Action.ERROR, request=ProduceRequest, error_code=87, times=None))  # INVALID_RECORD
    try:
        status, said = produce("x\n" * 3, "--transactional-id", "tx")
    finally:
        broker.clear_faults()
    assert status == 1
    assert "FILE:1: " in said
    assert "the transaction was aborted" in said
    assert "0 of 3 records committed in 0 transactions" in said


def test_a_commit_that_takes_its_time_is_waited_for(broker, topic, produce):
    broker.add_fault(Fault(action=Action.DELAY, request=EndTxnRequest, delay_s=0.3, times=2))
    status, said = produce("1\n2\n3\n", "--transactional-id", "tx", "--transaction-every", "2")
    assert status == 0, said
    assert "committed in 2 transactions" in said
    assert len(values(broker, topic, **{"isolation.level": "read_committed"})) == 3


def test_ctrl_c_in_a_commit_says_that_its_end_is_not_known(broker, topic):
    asked = threading.Event()
    broker.add_fault(Fault(action=Action.SILENCE, request=EndTxnRequest, times=None, effect=lambda _: asked.set()))
    try:
        with running(broker, topic, "--transactional-id", "silent") as process:
            process.stdin.write(b"x\n")
            process.stdin.close()
            assert asked.wait(20)
            process.send_signal(signal.SIGINT)
            said = process.stderr.read()
            assert process.wait(30) == 130
    finally:
        broker.clear_faults()
    assert b"the commit was under way: whether readers see the last transaction is not known" in said


def test_a_producer_that_is_fenced_says_so(broker, topic):
    with running(broker, topic, "--transactional-id", "fenced") as process:
        process.stdin.write(b"x\n")
        process.stdin.flush()
        deadline = time.monotonic() + 20
        while not sum(broker.end_offsets(topic)):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        with Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "fenced"}) as newer:
            newer.init_transactions(20)
        _, said = process.communicate(b"y\n", timeout=30)
    assert process.returncode == 1
    assert b"fence" in said.lower()
    assert b"0 of " in said
    assert values(broker, topic, **{"isolation.level": "read_committed"}) == []


def test_count_and_rate(broker, topic, produce):
    began = time.monotonic()
    assert produce("x\n" * 5_000, "--count", "1000", "--rate", "2000")[0] == 0
    assert time.monotonic() - began > 0.45
    assert len(values(broker, topic)) == 1_000


def test_lines_of_a_pipe_are_sent_as_they_come_and_copied_by_tee(broker, topic):
    with running(broker, topic, "--tee", stdout=subprocess.PIPE) as process:
        for number in range(2):
            process.stdin.write(b"line %d\nhalf" % number)
            process.stdin.flush()
            deadline = time.monotonic() + 20
            while sum(broker.end_offsets(topic)) <= number:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            process.stdin.write(b"\n" if number else b"")
        out, said = process.communicate(timeout=30)
    assert process.returncode == 0
    assert out == b"line 0\nhalfline 1\nhalf\n"
    assert b"3 records" in said


def test_a_last_line_without_an_end_is_a_record_and_an_empty_input_is_none(broker, topic, produce):
    assert produce("a\nb")[0] == 0
    assert produce("")[0] == 0
    assert values(broker, topic) == [b"a", b"b"]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_at_once_and_says_what_was_acknowledged(broker, topic, number, status):
    with running(broker, topic, "--rate", "5000", "-X", "linger.ms=5") as process:
        process.stdin.write(b"x\n" * 200_000)
        process.stdin.flush()
        deadline = time.monotonic() + 20
        while not sum(broker.end_offsets(topic)):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(number)
        sent_at = time.monotonic()
        line = process.stderr.readline()
        assert time.monotonic() - sent_at < 20  # all lines take forty
        rest = process.stderr.read()
        assert process.wait(30) == status
    assert line.startswith(b"headrace produce: stopped by ")
    acknowledged, read = (int(part.replace(b",", b"")) for part in
                          rest.split(b"headrace produce: ")[1].split(b" records that were read")[0].split(b" of "))
    assert 0 < acknowledged <= read < 200_000
    assert acknowledged <= len(values(broker, topic)) <= read


def test_ctrl_c_while_the_broker_is_silent_names_the_first_line_that_is_not_acknowledged(topic, broker, tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(b"x\n" * 300_000)
    broker.add_fault(Fault(action=Action.SILENCE, request=ProduceRequest, after=1, times=None))
    try:
        with running(broker, topic, str(path)) as process:
            deadline = time.monotonic() + 20
            while not sum(broker.end_offsets(topic)):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=30)
    finally:
        broker.clear_faults()
    assert process.returncode == 130
    assert b"never left" in said
    assert b"were on their way and may be stored; the first is " + os.fsencode(path) + b":" in said


def test_a_reader_of_tee_that_has_seen_enough_stops_nothing(broker, topic):
    with running(broker, topic, "--tee", stdout=subprocess.PIPE) as process:
        process.stdout.close()
        process.stdout = None
        _, said = process.communicate(b"x\n" * 10_000, timeout=30)
        assert process.returncode == 0
        assert b"nobody reads standard output any more" in said
        assert len(values(broker, topic)) == 10_000


def test_a_topic_that_does_not_turn_up_is_told(capsys, tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(b"x\n")
    with EmbeddedBroker(settings=BrokerSettings(auto_create_topics=False)) as strict:
        status = main(["nowhere", str(path), "-b", strict.bootstrap_servers, "-X",
                       "topic.metadata.propagation.max.ms=300"])
    (said,) = capsys.readouterr().err.splitlines()
    assert status == 5
    assert 'topic "nowhere" is not known' in said


def test_brokers_that_do_not_answer_are_told_with_a_status_of_their_own(capsys, tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(b"x\n")
    assert main(["orders", str(path), "-b", "127.0.0.1:1", "-X", "message.timeout.ms=300"]) == 3
    assert "stored in" not in capsys.readouterr().err


@pytest.mark.parametrize(("arguments", "complaint"), [
    ([], "the following arguments are required: TOPIC (see"), (["t"], "no brokers are named"),
    (["t", "-b", "x:1", "--values"], "--values is for JSON lines"), (["t", "-b", "x:1", "-D", ""], "cannot be empty"),
    (["t", "-b", "x:1", "--key", "k", "-K", ":"], "--key is one key"), (["t", "-b", "x:1", "-p", "-2"], "-2"),
    (["t", "-b", "x:1", "a.parquet", "--tee"], "--tee is for lines"), (["t", "-b", "x:1", "--rate", "0"], "rate"),
    (["t", "-b", "x:1", "--format", "parquet"], "Parquet is read from files"),
    (["t", "-b", "x:1", "--transaction-every", "5"], "needs --transactional-id"),
    (["t", "-b", "x:1", "a.csv", "b.jsonl"], "different formats"), (["t", "-b", "x:1", "-X", "geheim"], "NAME=VALUE"),
])
def test_wrong_usage_is_told_with_status_2(capsys, monkeypatch, arguments, complaint):
    monkeypatch.delenv("HEADRACE_BOOTSTRAP_SERVERS", raising=False)
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    told = capsys.readouterr().err
    assert complaint in told
    assert "geheim" not in told


def test_files_of_properties_the_environment_and_secrets(broker, topic, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HEADRACE_BOOTSTRAP_SERVERS", broker.bootstrap_servers)
    lines, properties = tmp_path / "lines", tmp_path / "client.properties"
    lines.write_bytes(b"x\n")
    properties.write_text("# mine\n\nclient.id = me\nacks=1\n")
    assert main([topic, str(lines), "-F", str(properties)]) == 0
    properties.write_text("client.id=me\ngeheim\n")
    assert main([topic, str(lines), "-F", str(properties)]) == 2
    told = capsys.readouterr().err
    assert f"{properties}, line 2: expected NAME=VALUE" in told
    assert main([topic, str(lines), "-X", "ssl.key.password=geheim", "-X", "linger.ms=geheimnislos"]) == 2
    assert "geheim\n" not in told + capsys.readouterr().err


def test_an_input_that_cannot_be_opened_is_told_before_anything_is_sent(broker, topic, tmp_path, capsys):
    path = tmp_path / "lines"
    path.write_bytes(b"x\n")
    assert main([topic, str(path), str(tmp_path / "none"), "-b", broker.bootstrap_servers]) == 2
    assert capsys.readouterr().err == f"headrace produce: {tmp_path / 'none'}: No such file or directory\n"
    assert values(broker, topic) == []


def test_help_names_the_formats_and_gives_examples(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    for word in ("envelope", "csv", "parquet", "examples:", "Exit status", "HEADRACE_BOOTSTRAP_SERVERS"):
        assert word in text
