"""`headrace decode` on files of a log directory: batches, damage, and what lies beside a segment."""

import json
import os
import struct
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import Producer
from headrace.broker.settings import BrokerSettings
from headrace.decode.files.segment import LogBatch, LogTrouble, read_log
from headrace.decode.messages.internal import (
    ConfigRecord,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    TransactionLogKey,
    TransactionLogValue,
    UserScramCredentialRecord,
)
from headrace.records import GZIP, LZ4, NONE, SNAPPY, ZSTD, BatchBuilder, crc32c, set_log_append_time
from headrace.testing import EmbeddedBroker
from headrace.wire.codec import encode, encode_prefixed
from headrace.wire.messages.controllers.control import AbortedTxn, LeaderChangeMessage
from tests.support.decode_samples import batch

LOG = "00000000000000000000.log"


def signed(data):
    """A batch whose checksum is right again."""
    made = bytearray(data)
    made[17:21] = crc32c(made[21:]).to_bytes(4, "big")
    return bytes(made)


def of_records(*pairs, attributes=0, base_offset=0, producer=-1):
    """A batch of keys and values with some attributes."""
    builder = BatchBuilder(1 << 20, 1000)
    for key, value in pairs:
        builder.append(1_700_000_000_000, key, value)
    sealed = builder.seal(NONE)
    sealed.stamp(producer, 3, 7)
    made = bytearray(sealed.data)
    made[:8] = base_offset.to_bytes(8, "big")
    made[22] |= attributes
    return signed(made)


def chunked(data, size):
    parts = iter([data[at:at + size] for at in range(0, len(data), size)])
    return lambda _: next(parts, b"")


@pytest.mark.parametrize("codec", [NONE, GZIP, SNAPPY, LZ4, ZSTD])
def test_a_batch_is_told_with_its_sizes_and_all_its_records(decode, codec):
    values = [b"value %d" % number for number in range(100)]
    data = batch(values, codec=codec, base_offset=5)
    found, = decode(data, "--json", name=LOG).objects()
    assert (found["base_offset"], found["last_offset"], found["count"]) == (5, 104, 100)
    assert (found["position"], found["size"], found["crc_ok"]) == (0, len(data), True)
    assert found["plain_size"] == len(batch(values)) - 61
    assert [record["value"] for record in found["records"]] == [value.decode() for value in values]
    assert found["records"][0]["headers"] == [{"name": "h", "value": "x"}, {"name": "n", "value": None}]
    assert found["records"][1]["timestamp_utc"] == "2023-11-14 22:13:20.001Z"


def test_log_append_time_delete_horizon_and_producer_are_told(decode):
    stamped = bytearray(batch())
    set_log_append_time(stamped, 1_800_000_000_000)
    horizon = of_records((b"k", None), attributes=0x40, base_offset=2, producer=9)
    first, second = decode(bytes(stamped) + horizon, "--json", name=LOG).objects()
    assert (first["timestamp_type"], first["records"][0]["timestamp"]) == ("log append time", 1_800_000_000_000)
    assert (second["delete_horizon"], second["producer_id"], second["producer_epoch"]) == (1_700_000_000_000, 9, 3)
    assert (second["base_sequence"], second["last_sequence"]) == (7, 7)
    assert "delete_horizon 2023-11-14 22:13:20.000Z" in decode(horizon, name=LOG).text


def test_control_records_have_names(decode):
    commit = of_records((b"\0\0\0\1", b"\0\0\0\0\0\5"), attributes=0x30, producer=1)
    abort = of_records((b"\0\0\0\0", b"\0\0\0\0\0\6"), attributes=0x30, base_offset=1, producer=1)
    change = LeaderChangeMessage(version=1, leader_id=4)
    leader = of_records((b"\0\0\0\2", encode(change, 1)), attributes=0x20, base_offset=2)
    unknown = of_records((b"\0\0\0\x63", b"?"), attributes=0x20, base_offset=3)
    found = [o["records"][0] for o in decode(commit + abort + leader + unknown, "--json", name=LOG).objects()]
    assert [record["control_type"] for record in found] == ["COMMIT", "ABORT", "LEADER_CHANGE", "TYPE_99"]
    assert [record["coordinator_epoch"] for record in found[:2]] == [5, 6]
    assert found[2]["value"]["leader_id"] == 4


def message(offset, value, magic, attributes=0):
    """A message of format 0 or 1."""
    import zlib

    stamp = struct.pack(">q", 1_700_000_000_000) if magic else b""
    body = struct.pack(">bb", magic, attributes) + stamp + struct.pack(">i", -1) + struct.pack(">i", len(value)) + value
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def test_messages_of_the_old_formats_are_shown_compressed_ones_included(decode):
    import zlib

    inner = message(0, b"a", 1) + message(1, b"b", 1)
    pack = zlib.compressobj(wbits=31)
    data = message(0, b"old", 0) + message(2, pack.compress(inner) + pack.flush(), 1, attributes=1)
    first, second = decode(data, "--json", name=LOG).objects()
    assert (first["magic"], first["records"][0]["value"], first["crc_ok"]) == (0, "old", True)
    assert [(r["offset"], r["value"]) for r in second["records"]] == [(1, "a"), (2, "b")]


def test_a_wrong_checksum_is_named_the_records_are_shown_and_the_next_batch_is_read(decode):
    bad = bytearray(batch())
    bad[-3] ^= 1
    told = decode(bytes(bad) + batch(base_offset=2), "--json", name=LOG)
    first, second = told.objects()
    assert told.status == 1
    assert (first["crc_ok"], first["base_offset"], second["base_offset"]) == (False, 0, 2)
    assert first["damage"].startswith("the checksum is 0x")


def test_a_wrong_length_is_passed_over_to_the_next_good_batch(decode):
    bad = bytearray(batch())
    bad[8:12] = (len(bad) - 12 + 20).to_bytes(4, "big")
    told = decode(bytes(bad) + batch(base_offset=2) + batch(base_offset=4), "--json", name=LOG)
    assert told.status == 1
    assert [o["base_offset"] for o in told.objects() if o["kind"] == "batch" and o["crc_ok"]] == [2, 4]


def test_noise_between_batches_is_passed_over(decode):
    noise = os.urandom(3000).replace(b"\2", b"\3")
    told = decode(batch() + noise + batch(base_offset=2), "--json", name=LOG)
    found = told.objects()
    assert told.status == 1
    assert [o.get("base_offset") for o in found if o["kind"] == "batch"] == [0, 2]
    assert found[1]["position"] == len(batch())
    assert found[2]["note"] == "3000 bytes were passed over"


def test_a_file_that_ends_within_a_batch_says_where(decode):
    told = decode(batch() + batch(base_offset=2)[:-7], name=LOG)
    size = len(batch())
    assert told.status == 1
    assert f"damaged at byte {size}: the file ends within a batch: {size - 7} of {size} bytes are there" in told.text


def test_room_that_the_broker_set_aside_is_no_damage(decode):
    told = decode(batch() + bytes(3 << 20), "--no-records", name=LOG)
    assert told.status == 0
    assert f"at byte {len(batch())}: {3 << 20} zeros to the end" in told.text


def test_offsets_that_do_not_grow_are_damage(decode):
    told = decode(batch(base_offset=5) + batch(base_offset=5), name=LOG)
    assert told.status == 1
    assert "offset 5 follows on 6: offsets must grow" in told.text


def test_damaged_records_are_shown_up_to_the_damage(decode):
    data = bytearray(batch([b"first", b"second"]))
    data[data.index(b"second") - 1] = 0x7E  # length of the value
    told = decode(signed(data), "--json", name=LOG)
    found = told.objects()[0]["records"]
    assert told.status == 1
    assert found[0]["value"] == "first"
    assert found[1]["damage"].startswith("behind 1 good records: ")


def test_an_empty_segment_is_no_damage(decode):
    told = decode(b"", name=LOG)
    assert (told.status, told.text) == (0, "there is nothing in it\n")


def test_records_are_limited_and_left_out_as_asked(decode):
    data = batch([b"%d" % n for n in range(600)])
    assert decode(data, "--records", "3", name=LOG).text.count("record offset") == 3
    assert "more_records: 597" in decode(data, "--records", "3", name=LOG).text
    assert "record offset" not in decode(data, "--no-records", name=LOG).text
    assert decode(data, name=LOG).text.count("record offset") == 600


def test_values_are_cut_at_the_width_and_never_in_json(decode):
    data = batch([b"x" * 500, b"\xff" * 500, "ä".encode() * 300])
    text = decode(data, "--width", "20", name=LOG).text
    assert 'value "xxxxxxxxxxxxxxxxxxxx…" (500 bytes)' in text
    assert f"value 0x{'ff' * 10}… (500 bytes)" in text
    assert 'value "ääääääääääääääääääää…" (600 bytes)' in text
    found, = decode(data, "--json", "--width", "20", name=LOG).objects()
    assert [r["value"] for r in found["records"]] == ["x" * 500, {"hex": "ff" * 500}, "ä" * 300]


def test_nothing_that_a_terminal_obeys_is_printed(decode):
    text = decode(batch([b"\x1b[2Jgone\r\n\t", "\u202eright to left".encode()]), name=LOG).text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\r" not in text


def test_internal_topics_are_read_by_the_name_of_their_directory(decode, tmp_path):
    offsets = of_records(
        (encode_prefixed(OffsetCommitKey(group="g", topic="t", partition=3), 1),
         encode_prefixed(OffsetCommitValue(offset=42, metadata="m"), 3)),
        (encode_prefixed(GroupMetadataKey(group="g"), 2), encode_prefixed(GroupMetadataValue(generation=5), 3)),
        (encode_prefixed(OffsetCommitKey(group="g", topic="t", partition=4), 1), None), (b"\0\x63??", b"new"))
    states = of_records((encode_prefixed(TransactionLogKey(transactional_id="x"), 0),
                         encode_prefixed(TransactionLogValue(producer_id=8, transaction_status=4), 1)))
    for name, data in (("__consumer_offsets-3", offsets), ("__transaction_state-0", states)):
        (tmp_path / name).mkdir()
        (tmp_path / name / LOG).write_bytes(data)
    found = decode(tmp_path / "__consumer_offsets-3", "--json").objects()[0]["records"]
    assert found[0]["key"] == {"group": "g", "topic": "t", "partition": 3}
    assert found[0]["value"]["offset"] == 42
    assert found[1]["value"]["generation"] == 5
    assert found[2]["value"] is None
    assert found[3]["value"] == "new"
    assert "transaction_status: 4 (complete commit)" in decode(tmp_path / "__transaction_state-0").text
    assert decode(offsets, "--offsets", "--json", name=LOG).objects()[0]["records"] == found


def test_secrets_in_the_metadata_log_are_hidden(decode):
    scram = UserScramCredentialRecord(name="alice", salt=b"SALT", stored_key=b"STORED", server_key=b"SERVER")
    config = ConfigRecord(name="ssl.keystore.password", value="hunter2")
    open_config = ConfigRecord(name="retention.ms", value="1000")
    told = decode(of_records(*((None, prefix + encode(record, 0)) for prefix, record in (
        (b"\1\x0b\0", scram), (b"\1\4\0", config), (b"\1\4\0", open_config)))), name=LOG)
    assert not any(word in told.text for word in ("SALT", "STORED", "SERVER", "hunter2"))
    assert "alice" in told.text
    assert '"1000"' in told.text
    assert told.text.count("<hidden ") == 4


@settings(max_examples=150)
@given(st.binary(max_size=300), st.integers(0, 2**32 - 1), st.integers(1, 999))
def test_random_damage_of_a_segment_raises_nothing_and_loses_no_byte(noise, seed, size):
    import random

    chance = random.Random(seed)
    data = bytearray(b"".join(batch([b"v" * 30] * 3, base_offset=3 * n, codec=n % 5) for n in range(6)))
    for byte in noise[:chance.randint(0, 20)]:
        data[chance.randrange(len(data))] = byte
    position = 0
    for found in read_log(chunked(bytes(data + noise), size)):
        assert found.position >= position or isinstance(found, LogTrouble)
        position = found.position
        if isinstance(found, LogBatch):
            assert bytes(found.data) == bytes((data + noise)[position:position + len(found.data)])


def test_sidecars_are_shown_and_compared_with_their_segment(decode, tmp_path):
    log = batch(base_offset=10) + batch(base_offset=12)
    (tmp_path / "00000000000000000010.log").write_bytes(log)
    index = tmp_path / "00000000000000000010.index"
    index.write_bytes(struct.pack(">ii", 3, len(batch())) + bytes(80))
    assert decode(index).text == f"index entry: offset 13, position {len(batch())}\n"
    index.write_bytes(struct.pack(">iiii", 3, 0, 2, len(log)))
    told = decode(index)
    assert told.status == 1
    assert "offset 12 at" in told.text
    assert f"has no batch at byte {len(log)}" in told.text
    index.write_bytes(struct.pack(">ii", 1, len(batch())))
    assert "begins with offset 12, not with 11 or before" in decode(index).text
    times = tmp_path / "00000000000000000010.timeindex"
    times.write_bytes(struct.pack(">qiqi", 1_700_000_000_000, 1, 1_600_000_000_000, 2) + b"\1\2")
    told = decode(times)
    assert "time index entry: timestamp 2023-11-14 22:13:20.000Z, offset 11" in told.text
    assert "timestamp 1600000000000 follows on 1700000000000" in told.text
    assert "an entry of 12 bytes is cut after 2" in told.text
    aborted = tmp_path / "00000000000000000010.txnindex"
    entry = AbortedTxn(producer_id=7, first_offset=1, last_offset=5, last_stable_offset=6)
    aborted.write_bytes(encode_prefixed(entry, 0))
    assert decode(aborted, "--json").objects() == [
        {"kind": "entry", "producer_id": 7, "first_offset": 1, "last_offset": 5, "last_stable_offset": 6}]


def test_snapshots_and_checkpoints_are_shown(decode, tmp_path):
    entry = struct.pack(">qhiqiqiq", 5, 1, 9, 40, 2, 1_700_000_000_000, -1, 38)
    body = struct.pack(">i", 1) + entry
    snapshot = struct.pack(">hI", 1, crc32c(body)) + body
    found, = decode(snapshot, "--json", name="00000000000000000041.snapshot").objects()
    assert (found["producer_id"], found["first_sequence"], found["last_sequence"]) == (5, 7, 9)
    assert found["current_txn_first_offset"] == 38
    told = decode(snapshot[:-1] + b"\1", name="00000000000000000041.snapshot")
    assert told.status == 1
    assert "damaged at byte 2: the checksum is 0x" in told.text
    epochs = decode("0\n2\n0 0\n3 1234\n", "--json", name="leader-epoch-checkpoint").objects()
    assert [(e["epoch"], e["start_offset"]) for e in epochs] == [(0, 0), (3, 1234)]
    offsets = decode("0\n1\norders 2 17\n", "--json", name="recovery-point-offset-checkpoint").objects()
    assert offsets == [{"kind": "entry", "topic": "orders", "partition": 2, "offset": 17}]
    told = decode("0\n3\norders 2 17\nwhat\n", name="recovery-point-offset-checkpoint")
    assert told.status == 1
    assert "line 4 is no entry of a checkpoint" in told.text


def test_the_summary_of_a_segment_counts_batches_by_codec(decode):
    data = batch() + batch(base_offset=2, codec=GZIP) + batch(base_offset=4, codec=GZIP)
    lines = decode(data, "--summary", "--no-records", name=LOG).text.splitlines()
    assert lines[3].split() == ["codec", "batches", "records", "bytes"]
    assert lines[4].split()[:3] == ["gzip", "2", "4"]
    assert "offsets 0 to 5" in lines
    assert lines[-1] == "0 damaged"


def test_a_segment_of_the_embedded_broker_is_read(decode, tmp_path):
    with EmbeddedBroker(data_dir=tmp_path, topics={"orders": 1}, settings=BrokerSettings()) as broker, Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "compression.type": "zstd"}) as producer:
        for number in range(500):
            producer.produce("orders", f"value {number}", key=str(number))
        producer.flush()
    logs = [path for path in tmp_path.rglob("*.log") if "orders" in str(path)]
    told = [decode(path, "--json") for path in logs]
    records = [record for one in told for found in one.objects() for record in found.get("records", ())]
    assert [record["offset"] for record in records] == list(range(500))
    assert records[499]["value"] == "value 499"


LARGE = """
import re, sys
from headrace.cli.decode import main
status = main(sys.argv[1:])
sys.stdout.flush()
print(status, re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1], file=sys.stderr)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the peak of memory is read from /proc")
@pytest.mark.parametrize("megabytes", [96, pytest.param(700, marks=pytest.mark.slow)])
def test_memory_does_not_grow_with_the_segment(tmp_path, megabytes):
    path = tmp_path / LOG
    values = [bytes([65 + n % 26]) * 64_000 for n in range(16)]
    count = megabytes * (1 << 20) // len(batch(values)) + 1
    with path.open("wb") as file:
        for number in range(count):
            file.write(batch(values, base_offset=16 * number))
    assert path.stat().st_size >= megabytes << 20
    done = subprocess.run([sys.executable, "-c", LARGE, "--json", "--records", "1", str(path)], capture_output=True)
    status, peak_kib = map(int, done.stderr.split())
    last = json.loads(done.stdout.splitlines()[-1])
    assert (status, last["last_offset"]) == (0, 16 * count - 1)
    assert peak_kib < 60_000, "of which Python and the modules take 24,000"
