"""`headrace decode` beside Kafka's own dump tool, on what a real broker wrote; and on real network traffic."""

import csv
import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.real_kafka import needed_in_ci
from tools.kafka import KafkaCluster, java_tool

DATA = Path(__file__).parent / "data"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
DUMP = "org.apache.kafka.tools.DumpLogSegments"


class Written:
    """What was written: where the broker keeps it, and the traffic while it was, when tcpdump is there."""

    def __init__(self, cluster, capture):
        self.data = cluster.nodes[1].directory / "data"
        self.port = int(cluster.bootstrap_servers.rpartition(":")[2])
        self.capture = capture


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    cluster = KafkaCluster(quick=True)
    with needed_in_ci():
        cluster.start()
    capture = tmp_path_factory.mktemp("capture") / "real.pcap"
    try:
        found = Written(cluster, capture)
        tcpdump = _tcpdump(found.port, capture)
        _write(cluster.bootstrap_servers)
        if tcpdump is not None:
            time.sleep(0.5)
            tcpdump.terminate()
            tcpdump.communicate()
        cluster.stop(1)  # a broker that stops in good order writes the snapshots of its producers
        yield found
    finally:
        cluster.close()


def _tcpdump(port, path):
    """A tcpdump that listens already; None when there is none, or it may not listen."""
    program = shutil.which("tcpdump")
    if program is None:
        return None
    user = ["-Z", "root"] if os.geteuid() == 0 else []  # or it would give up the right to write there
    process = subprocess.Popen([program, "-i", "lo", "-U", "-B", "16384", *user, "-w", str(path), "tcp", "port",
                                str(port)],
                               stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    while line := process.stderr.readline():
        if "listening on" in line:
            return process
    process.communicate()
    return None


def _write(bootstrap):
    admin = AdminClient({"bootstrap.servers": bootstrap})
    stamped = NewTopic("stamped", 1, 1, config={"message.timestamp.type": "LogAppendTime"})
    small = NewTopic("orders", 1, 1, config={"segment.bytes": str(1 << 20)})
    for future in admin.create_topics([small, stamped]).values():
        future.result(30)
    for codec in CODECS:
        producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 50,
                             "enable.idempotence": codec == "lz4"})
        for number in range(40):
            headers = [("h", b"x"), ("none", None)] if number % 3 else None
            producer.produce("orders", f"{codec} {number} " * 20, f"key-{number}", headers=headers)
        producer.produce("orders", None, "tombstone")
        producer.produce("stamped", f"stamped {codec}")
        producer.flush(30)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "atomic"})
    producer.init_transactions(30)
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        producer.produce("orders", "in a transaction", "atomic")
        producer.flush(30)
        end(30)
    producer = Producer({"bootstrap.servers": bootstrap, "batch.size": 20_000, "linger.ms": 5})
    for _ in range(130):
        producer.produce("orders", os.urandom(10_000).hex())
    producer.flush(30)
    _consume(bootstrap, 5 * 41 + 1 + 130)


def _consume(bootstrap, expected):
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    deadline, count = time.monotonic() + 60, 0
    while count < expected:
        assert time.monotonic() < deadline, f"{count} records"
        count += len(consumer.consume(expected - count, 0.5))
    consumer.commit(asynchronous=False)
    consumer.close()


def dumped(paths, *options):
    """What Kafka's own tool says of files: the lines of each."""
    done = java_tool(DUMP, "--files", ",".join(map(str, paths)), *options)
    assert done.returncode == 0, done.stderr
    found = {path: [] for path in paths}
    for line in done.stdout.decode().splitlines():
        if line.startswith("Dumping "):
            lines = found[Path(line.removeprefix("Dumping "))]
        elif line and not line.startswith("Log starting"):
            lines.append(line)
    return found


def facts(line):
    """The `name: value` pairs of a line."""
    head, _, payload = line.partition(" payload: ")
    head, _, key = head.partition(" key: ")
    found = dict(re.findall(r"(\w+): (\[.*?\]|\S+)", head))
    return found | ({"key": key} if key else {}) | ({"payload": payload} if payload or " payload: " in line else {})


def as_batch(found):
    stamp = "LogAppendTime" if found["timestamp_type"] == "log append time" else "CreateTime"
    return {
        "baseOffset": found["base_offset"], "lastOffset": found["last_offset"], "count": found["count"],
        "baseSequence": found["base_sequence"], "lastSequence": found["last_sequence"],
        "producerId": found["producer_id"], "producerEpoch": found["producer_epoch"],
        "partitionLeaderEpoch": found["leader_epoch"], "isTransactional": found["transactional"],
        "isControl": found["control"], "position": found["position"], stamp: found["max_timestamp"],
        "size": found["size"], "magic": found["magic"], "compresscodec": found["codec"], "crc": found["crc"],
        "isvalid": found["crc_ok"],
    }


def as_record(found, batch):
    stamp = "LogAppendTime" if batch["timestamp_type"] == "log append time" else "CreateTime"
    row = {"offset": found["offset"], stamp: found["timestamp"]}
    if batch["control"]:
        return row | {"endTxnMarker": found["control_type"], "coordinatorEpoch": found["coordinator_epoch"]}
    for name, theirs, size in (("key", "key", "keySize"), ("value", "payload", "valueSize")):
        row[size] = -1 if found[name] is None else len(found[name])
        row |= {} if found[name] is None else {theirs: found[name]}
    return row | {"headerKeys": "[" + ",".join(header["name"] for header in found["headers"]) + "]"}


def same(ours, theirs):
    """Ours as text, of the names that both have; theirs as they are."""
    return {name: str(content).lower() if isinstance(content, bool) else str(content) for name, content in ours.items()
            } == {name: theirs.get(name) for name in ours}


@pytest.mark.kafka
@pytest.mark.parametrize("topic", ["orders", "stamped"])
def test_every_batch_and_record_is_as_kafkas_own_tool_says(written, decode, topic):
    paths = sorted((written.data / f"{topic}-0").glob("*.log"))
    codecs, kinds = set(), set()
    for path, lines in dumped(paths, "--print-data-log").items():
        theirs = [facts(line) for line in lines]
        told = decode(path, "--json")
        ours = []
        for found in told.objects():
            ours += [as_batch(found), *(as_record(record, found) for record in found["records"])]
            codecs.add(found["codec"])
            kinds |= {record.get("control_type") for record in found["records"]}
        assert told.status == 0
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert same(one, other), f"{one} is not {other}"
    assert codecs == (set(CODECS) if topic == "orders" else codecs)
    assert {"COMMIT", "ABORT"} <= kinds or topic == "stamped"
    assert len(paths) > (topic == "orders")


@pytest.mark.kafka
@pytest.mark.parametrize(("ending", "names"), [
    ("index", {"offset": "offset", "position": "position"}),
    ("timeindex", {"timestamp": "timestamp", "offset": "offset"}),
    ("txnindex", {"producer_id": "producerId", "first_offset": "firstOffset", "last_offset": "lastOffset",
                  "last_stable_offset": "lastStableOffset"}),
    ("snapshot", {"producer_id": "producerId", "producer_epoch": "producerEpoch", "last_sequence": "lastSequence",
                  "coordinator_epoch": "coordinatorEpoch", "last_offset": "lastOffset", "timestamp": "lastTimestamp"}),
])
def test_the_files_beside_a_segment_are_as_kafkas_own_tool_says(written, decode, ending, names):
    count = 0
    for path, lines in dumped(sorted((written.data / "orders-0").glob(f"*.{ending}"))).items():
        theirs = [facts(line) for line in lines if "offset: 0 position: 0" not in line]
        told = decode(path, "--json")
        ours = [found for found in told.objects() if found["kind"] == "entry"]
        assert told.status == 0
        assert [{other: str(found[own]) for own, other in names.items()} for found in ours] == [
            {other: found.get(other) for other in names.values()} for found in theirs if len(found) > 1][:len(ours)]
        count += len(ours)
    assert count > 0


def snake(content):
    """Names of Kafka's tool as ours are."""
    if isinstance(content, dict):
        return {re.sub("[A-Z]", lambda m: "_" + m[0].lower(), name): snake(one) for name, one in content.items()}
    return [snake(one) for one in content] if isinstance(content, list) else content


def bare(content):
    """Ours without what is added for the reader."""
    if isinstance(content, dict):
        return {name: bare(one) for name, one in content.items() if not name.endswith("_utc")}
    return [bare(one) for one in content] if isinstance(content, list) else content


@pytest.mark.kafka
@pytest.mark.parametrize(("topic", "option"), [("__consumer_offsets", "--offsets-decoder"),
                                               ("__transaction_state", "--transaction-log-decoder")])
def test_internal_topics_are_as_kafkas_own_tool_says(written, decode, topic, option):
    count = 0
    for path, lines in dumped(list(written.data.glob(f"{topic}-*/*.log")), option).items():
        theirs = [facts(line) for line in lines if line.startswith("|")]
        ours = [record for found in decode(path, "--json").objects() for record in found.get("records", ())]
        for one, other in zip(ours, theirs, strict=True):
            assert bare(one["key"]) == snake(json.loads(other["key"])["data"])
            payload = json.loads(other["payload"]) if other.get("payload", "").startswith("{") else {"data": {}}
            wanted, found = snake(payload["data"]), bare(one["value"]) or {}
            assert {name: found.get(name) for name in wanted} == wanted
            assert {found[name] for name in found.keys() - wanted.keys()} <= {0, -1}  # their tool leaves these out
            count += 1
    assert count > 2


@pytest.mark.kafka
def test_every_segment_that_a_broker_keeps_is_read(written, decode):
    for path in sorted(written.data.glob("*/*.log")):
        assert decode(path).status == 0, path
    for path in sorted(written.data.glob("*-checkpoint")):
        assert decode(path).status == 0, path


@pytest.mark.kafka
def test_real_traffic_as_tcpdump_sees_it_is_read_to_the_last_frame(written, decode):
    if not written.capture.exists() or written.capture.stat().st_size < 1000:
        pytest.skip("there is no tcpdump here, or it may not listen")
    told = decode(written.capture, "--json", "--port", str(written.port))
    found = told.objects()
    assert told.status == 0
    assert not [one for one in found if "damage" in one]
    counts = {(kind, api): sum(one["kind"] == kind and one["api"] == api for one in found)
              for kind in ("request", "reply") for api in ("Produce", "EndTxn", "JoinGroup", "Fetch", "CreateTopics")}
    assert counts["reply", "Produce"] == counts["request", "Produce"] > 10
    assert counts["reply", "EndTxn"] == counts["request", "EndTxn"] == 2
    assert counts["reply", "Fetch"] >= 1
    values = [record["value"] for one in found if (one["kind"], one.get("api")) == ("request", "Produce")
              for topic in one["fields"]["topic_data"] for partition in topic["partition_data"]
              for batch in partition["records"] for record in batch["records"]]
    assert {f"{codec} {number} " * 20 for codec in CODECS for number in range(40)} <= set(values)


def test_every_frame_of_a_kept_capture_is_the_one_that_wireshark_saw(decode):
    told = decode(DATA / "confluent_kafka.pcapng", "--json")
    assert told.status == 0
    names = ("kind", "packet", "api_key", "version", "correlation_id")
    ours = [tuple(one[name] for name in names) for one in told.objects()]
    with (DATA / "confluent_kafka.tsv").open() as file:
        theirs = list(csv.DictReader(file, delimiter="\t"))
    assert len(ours) == len(theirs) == 118
    for (kind, packet, key, version, correlation_id), row in zip(ours, theirs, strict=True):
        assert (kind, str(packet), str(correlation_id)) == (row["kind"], row["packet"], row["correlation_id"])
        # Wireshark does not know every version; of those replies it tells the correlation id only.
        assert (row["api_key"], row["version"]) in ((str(key), str(version)), ("", ""))
    told = decode(DATA / "confluent_kafka.pcapng")
    assert "damaged" not in told.text
    assert "codec lz4" in told.text
    assert "control_type ABORT, coordinator_epoch 0" in told.text


def test_the_how_to_page_shows_what_the_command_says(decode):
    text = decode(DATA / "confluent_kafka.pcapng").text
    page = (DATA.parents[3] / "docs/how-to/decode.md").read_text()
    examples = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    assert len(examples) == 2
    for line in "".join(examples).splitlines():
        assert line in text
