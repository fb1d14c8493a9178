"""Message sets of the formats 0 and 1: what old producers send is stored as batches, and old readers get them back."""

import random
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from headrace.broker.apis import fetch as handlers_fetch
from headrace.errors import KafkaError
from headrace.records import GZIP, LZ4, NONE, SNAPPY, ZSTD, BatchBuilder, set_log_append_time
from headrace.records.legacy.conversion import downgrade
from headrace.testing import EmbeddedBroker
from headrace.wire.frame import encode_request
from headrace.wire.messages.consumer.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from headrace.wire.messages.consumer.offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.support.raw_client import RawClient, batch_of, produce_request
from tests.support.talk import records_of

OLD_CODECS = (NONE, GZIP, SNAPPY, LZ4)
START_MS = 1_700_000_000_000
VALUES = [b"one", b"", b"three" * 100]


def message_set(version: int, batch: bytes) -> bytes:
    """A batch as a producer of Produce 0 to 2 sends it."""
    return downgrade(batch, 0 if version < 2 else 1)


def message(magic: int, attributes: int, value: bytes | None, key: bytes | None = None, offset: int = 0) -> bytes:
    """One message, whatever it says."""
    body = struct.pack(">bb", magic, attributes) + (struct.pack(">q", START_MS) if magic else b"")
    for part in (key, value):
        body += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def read(client: RawClient, version: int, offset: int = 0, room: int = 1 << 20) -> PartitionData:
    reply = client.call(FetchRequest(max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic="t", partitions=[
        FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=room)])]), version)
    part = reply.responses[0].partitions[0]
    assert isinstance(part, PartitionData)
    return part


def values_of(records: Any) -> list[bytes]:
    return [each[2] for each in records_of(records or b"") if each[0] != "format"]


@pytest.fixture
def client(broker: EmbeddedBroker) -> RawClient:
    broker.create_topic("t")
    return RawClient(broker)


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("codec", OLD_CODECS)
def test_a_set_becomes_one_batch_of_its_codec_and_goes_back_to_messages(
    client: RawClient, version: int, codec: int
) -> None:
    with client:
        for expected in (0, len(VALUES)):
            stored = client.produce("t", 0, message_set(version, batch_of(VALUES, codec=codec)), version)
            assert (stored.error_code, stored.base_offset, stored.log_append_time_ms) == (0, expected, -1)
        time = (1, START_MS if version == 2 else -1)
        rows = [(offset, None, value, None, time) for offset, value in enumerate(VALUES * 2)]
        kept = records_of(read(client, 11).records)
        assert [each for each in kept if each[0] != "format"] == rows
        assert [each for each in kept if each[0] == "format"] == [("format", 2, "codec", codec)] * 2
        for reader in (0, 1, 2, 3):
            found = records_of(read(client, reader).records)
            assert {each[:4] for each in found if each[0] == "format"} == {
                ("format", 0 if reader < 2 else 1, "codec", codec)}
            assert [each[:3] for each in found if each[0] != "format"] == [row[:3] for row in rows]


def test_the_topics_clock_stamps_old_messages_too(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", configs={"message.timestamp.type": "LogAppendTime"})
    with RawClient(broker) as client:
        stamp = client.produce("t", 0, message_set(2, batch_of([b"a"])), 2).log_append_time_ms
        assert stamp > START_MS
        assert records_of(read(client, 11).records)[1][4] == (2, stamp)
        assert records_of(read(client, 3).records)[1][4] == (2, stamp)
        assert records_of(read(client, 1).records)[1][4] == (0, 0)


def test_a_reader_begins_in_the_middle_of_a_batch(client: RawClient) -> None:
    with client:
        client.produce("t", 0, batch_of([b"a", b"b", b"c"]))
        client.produce("t", 0, batch_of([b"d", b"e"], codec=GZIP))
        assert values_of(read(client, 1, offset=2).records) == [b"c", b"d", b"e"]
        assert values_of(read(client, 1, offset=4).records) == [b"d", b"e"]  # a compressed set comes whole


def test_before_version_3_a_reply_ends_at_its_limit_so_that_a_reader_asks_for_more(client: RawClient) -> None:
    with client:
        client.produce("t", 0, batch_of([b"x" * 1000] * 2))
        for version in (0, 1, 2):
            assert len(read(client, version, room=500).records or b"") == 500
            assert values_of(read(client, version, room=1500).records) == [b"x" * 1000]
            assert len(read(client, version, room=0).records or b"") == 0
        assert values_of(read(client, 3, room=500).records) == [b"x" * 1000] * 2


def test_zstd_is_not_for_those_who_do_not_know_it(client: RawClient) -> None:
    with client:
        packed = batch_of([b"a" * 100], codec=ZSTD)
        assert client.produce("t", 0, packed, 6).error_code == KafkaError.UNSUPPORTED_COMPRESSION_TYPE
        assert client.produce("t", 0, packed, 7).error_code == 0
        for version in (0, 3):
            assert read(client, version).error_code == KafkaError.UNSUPPORTED_COMPRESSION_TYPE
        assert values_of(read(client, 4).records) == [b"a" * 100]
        wrapper = message(1, ZSTD, message(1, 0, b"a"))
        assert client.produce("t", 0, wrapper, 2).error_code == KafkaError.INVALID_MSG


def test_headers_are_lost_on_the_way_to_old_readers_and_nothing_else(client: RawClient) -> None:
    builder = BatchBuilder(1 << 20, 1)
    builder.append(START_MS, b"key", None, [("header", b"x")])
    with client:
        assert client.produce("t", 0, bytes(builder.seal(NONE).data)).error_code == 0
        assert records_of(read(client, 2).records)[1] == (0, b"key", None, None, (1, START_MS))


def test_an_empty_set_is_no_error_and_nothing(client: RawClient) -> None:
    with client:
        reply = client.produce("t", 0, b"", 1)
        assert (reply.error_code, reply.base_offset) == (0, -1)
        assert client.produce("t", 0, b"", 3).error_code == KafkaError.INVALID_RECORD


def test_version_0_of_list_offsets_gives_where_segments_begin(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", configs={"max.message.bytes": "2000000"})
    with RawClient(broker) as client:
        for _ in range(3):
            client.produce("t", 0, batch_of([b"x" * 200_000]))

        def offsets(timestamp: int, most: int) -> list[int]:
            reply = client.call(ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[
                ListOffsetsPartition(partition_index=0, timestamp=timestamp, max_num_offsets=most)])]), 0)
            return list(reply.topics[0].partitions[0].old_style_offsets)

        assert offsets(-1, 10) == [3, 1, 0]
        assert offsets(-1, 1) == [3]
        assert offsets(-2, 10) == [0]
        assert offsets(0, 10) == []
        assert offsets(1 << 60, 2) == [3, 1]
        assert offsets(-1, 0) == offsets(-1, -5) == []


def wrong_checksum() -> bytes:
    good = bytearray(message(1, 0, b"value"))
    good[-1] ^= 1
    return bytes(good)


@pytest.mark.parametrize("data", [
    wrong_checksum(),
    message(1, 0, b"value")[:-1],
    message(1, 0, b"value") + b"\0",
    message(0, 0, b"a") + message(1, 0, b"b"),
    message(1, GZIP, b"this is not gzip"),
    message(1, GZIP, None),
    message(1, 7, b"no such codec"),
    message(1, GZIP, zlib.compress(message(1, GZIP, b""), wbits=31)),
    message(1, GZIP, zlib.compress(wrong_checksum(), wbits=31)),
    message(1, GZIP, zlib.compress(b"", wbits=31)),
    message(3, 0, b"a format that never was"),
    struct.pack(">qiIbb", 0, -5, 0, 1, 0),
    struct.pack(">qiIbb", 0, 0x7FFFFFFF, 0, 1, 0),
    b"\0" * 40,
    b"\xff" * 17,
], ids=lambda data: data[:24].hex())
@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_damaged_set_is_refused_as_corrupt(client: RawClient, version: int, data: bytes) -> None:
    with client:
        assert client.produce("t", 0, data, version).error_code == KafkaError.INVALID_MSG
        assert client.produce("t", 0, message_set(version, batch_of([b"fine"])), version).base_offset == 0


def bomb(megabytes: int) -> bytes:
    """Few bytes that become many: gzip of a message of zeros."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    size = megabytes << 20
    body = struct.pack(">bbqi", 1, 0, START_MS, -1) + struct.pack(">i", size)
    checksum = zlib.crc32(body)
    zeros = bytes(1 << 20)
    for _ in range(megabytes):
        checksum = zlib.crc32(zeros, checksum)
    data = packer.compress(struct.pack(">qiI", 0, len(body) + 4 + size, checksum) + body)
    data += b"".join(packer.compress(zeros) for _ in range(megabytes)) + packer.flush()
    return data


def peak_bytes(*, anew: bool = False) -> int:
    """The most memory that this process ever had, or, from now on, has."""
    if anew:
        Path("/proc/self/clear_refs").write_text("5")
    return int(re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[0]) << 10


def test_a_bomb_in_a_wrapper_is_refused_before_it_fills_the_memory(client: RawClient) -> None:
    small, large = message(1, GZIP, bomb(1)), message(1, GZIP, bomb(400))
    with client:
        assert client.produce("t", 0, small, 2).error_code == 0
        before = peak_bytes(anew=True)
        assert client.produce("t", 0, large, 2).error_code == KafkaError.INVALID_MSG
        assert client.produce("t", 0, message(1, GZIP, large), 2).error_code == KafkaError.INVALID_MSG
        assert peak_bytes() - before < 250 << 20


def test_a_stored_bomb_does_not_go_off_for_old_readers(client: RawClient) -> None:
    builder = BatchBuilder(1 << 30, 1)
    builder.append(START_MS, None, bytes(100 << 20), [])
    with client:
        assert client.produce("t", 0, bytes(builder.seal(GZIP).data)).error_code == 0
        assert read(client, 0).error_code == KafkaError.INVALID_MSG
        assert read(client, 11).error_code == 0


def test_records_that_are_no_records_are_an_error_for_old_readers(client: RawClient) -> None:
    batch = bytearray(batch_of([b"a" * 50]))
    batch[62:70] = b"\xff" * 8
    set_log_append_time(batch, START_MS)  # writes the checksum anew
    with client:
        assert client.produce("t", 0, bytes(batch)).error_code == 0
        assert read(client, 1).error_code == KafkaError.INVALID_MSG


def test_a_reply_to_an_old_reader_is_bounded(client: RawClient, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = batch_of([b""] * 1000)  # 7 bytes each, 34 as a message
    monkeypatch.setattr(handlers_fetch, "_LARGEST_CONVERTED_BYTES", 2 * len(batch))
    with client:
        for _ in range(5):
            client.produce("t", 0, batch)
        assert len(read(client, 3, room=1 << 30).records or b"") == 2000 * 34
        assert len(read(client, 4, room=1 << 30).records or b"") == 5 * len(batch)


def test_mutated_message_sets_never_harm_others(broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture) -> None:
    broker.create_topic("t")
    dice = random.Random(11)
    sets = [(version, message_set(version, batch_of([b"v" * 20] * 3, codec=codec)))
            for version in (0, 1, 2) for codec in OLD_CODECS]
    with RawClient(broker) as bystander:
        for _ in range(600):
            version, data = dice.choice(sets)
            damaged = bytearray(data)
            for _ in range(dice.randint(1, 3)):
                damaged[dice.randrange(len(damaged))] = dice.randrange(256)
            if dice.random() < 0.5:  # let more than the checksum be wrong
                size = struct.unpack_from(">i", damaged, 8)[0]
                if 4 < size <= len(damaged) - 12:
                    struct.pack_into(">I", damaged, 12, zlib.crc32(damaged[16:12 + size]))
            frame = b"".join(encode_request(produce_request("t", 0, bytes(damaged)), version, 1, "me"))
            bystander.socket.sendall(frame)
            bystander.read_frame()
        assert read(bystander, 0, room=1 << 30).error_code == 0
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
