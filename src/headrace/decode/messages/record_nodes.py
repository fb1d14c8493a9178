"""Record batches to nodes: header, checksum, sizes, and the records, control records and internal topics included.

A batch is opened once: decompressed, then read by the same cursor that consumers use. Damage ends a batch's records
behind the last good one and is shown there. Read next: `fields`, which shows batches inside of messages.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from headrace.decode.messages.internal import metadata_record, read_internal
from headrace.decode.output.nodes import Form, Hidden, Pairs, TreeNode, damage, items, moment, row, struct, value
from headrace.errors import CorruptRecordError, ProtocolError
from headrace.records import CODEC_NAMES, MAX_DECOMPRESSED_BYTES, BatchInfo, Cursor, Message, crc32c, decompress, scan
from headrace.wire import schema
from headrace.wire.codec import decode
from headrace.wire.messages.controllers import control

__all__ = ["BatchHead", "batch_node", "batch_parts", "read_head", "records_node"]

HEADER_BYTES: Final = 61
_LENGTH_AT, _LENGTH_FROM, _ATTRIBUTES_AT = 8, 12, 21
_DELETE_HORIZON: Final = 0x40
_CODEC_AND_CONTROL: Final = 0x27
_TAKEN_AT_ONCE: Final = 256
_TRANSACTION_ENDS: Final = {0: "ABORT", 1: "COMMIT"}
_QUORUM_RECORDS: Final[dict[int, tuple[str, type[schema.ApiMessage]]]] = {
    2: ("LEADER_CHANGE", control.LeaderChangeMessage), 3: ("SNAPSHOT_HEADER", control.SnapshotHeaderRecord),
    4: ("SNAPSHOT_FOOTER", control.SnapshotFooterRecord), 5: ("KRAFT_VERSION", control.KRaftVersionRecord),
    6: ("KRAFT_VOTERS", control.VotersRecord),
}
MessageNodes = Callable[[schema.ApiMessage, int], Iterator[TreeNode]]


class BatchHead(NamedTuple):
    """A batch's header and what was found about its bytes.

    Attributes:
        checksum: as the header has it.
        found: as the bytes have it.
    """

    info: BatchInfo
    checksum: int
    found: int

    @property
    def is_sound(self) -> bool:
        """True when the checksum is right."""
        return self.checksum == self.found


def read_head(batch: memoryview) -> BatchHead:
    """Read the header of one whole batch and sum its bytes.

    Raises:
        CorruptRecordError: the header cannot be true.
    """
    found = scan(batch)
    if not found:
        raise CorruptRecordError("a batch is too short for its header")
    info = found[0]
    if info.magic < 2:
        return BatchHead(info, int.from_bytes(batch[12:16], "big"), zlib.crc32(batch[16:info.size]))
    return BatchHead(info, int.from_bytes(batch[17:21], "big"), crc32c(batch[_ATTRIBUTES_AT:info.size]))


def batch_node(batch: memoryview, head: BatchHead, limit: int | None, topic: str, show: MessageNodes) -> TreeNode:
    """A batch as a node.

    Args:
        batch: its bytes.
        head: as `read_head` gave it.
        limit: most records to show, None for all.
        topic: whose batch it is, if that is known.
        show: makes nodes of the messages in control batches and internal topics.
    """
    return row("batch", batch_parts(batch, head, limit, topic, show))


def batch_parts(
    batch: memoryview, head: BatchHead, limit: int | None, topic: str, show: MessageNodes
) -> Iterator[TreeNode]:
    """The parts of `batch_node`."""
    info = head.info
    plain, problem = _plain(batch, info)
    yield value("base_offset", info.base_offset)
    yield value("last_offset", info.last_offset)
    if info.magic >= 2:
        yield value("count", info.count, f"{info.count} records" if info.count != 1 else "1 record")
    yield value("size", info.size, f"{info.size} bytes")
    yield value("magic", info.magic)
    codec = CODEC_NAMES[info.codec] if info.codec < len(CODEC_NAMES) else f"unknown ({info.codec})"
    yield value("codec", codec, codec)
    if plain is not None:
        yield value("plain_size", len(plain) - HEADER_BYTES, quiet=not info.codec)
    sound = "ok" if head.is_sound else f"BAD, the bytes have {head.found:#010x}"
    yield value("crc", head.checksum, f"{head.checksum:#010x} {sound}", crc_ok=head.is_sound)
    yield from _attributes(info)
    if not head.is_sound:
        yield damage(f"the checksum is {head.checksum:#010x} and the bytes have {head.found:#010x}")
    if limit != 0 and problem:
        yield damage(problem)
    elif limit != 0:
        yield items("records", _records(batch if plain is None else plain, info, limit, topic, show), info.count)


def _attributes(info: BatchInfo) -> Iterator[TreeNode]:
    has_producer = info.producer_id >= 0
    yield value("leader_epoch", info.leader_epoch, quiet=info.leader_epoch < 0)
    yield value("producer_id", info.producer_id, quiet=not has_producer)
    yield value("producer_epoch", info.epoch, quiet=not has_producer)
    yield value("base_sequence", info.base_sequence, quiet=info.base_sequence < 0)
    last = -1 if info.base_sequence < 0 else (info.base_sequence + info.last_offset - info.base_offset) & 0x7FFFFFFF
    yield value("last_sequence", last, quiet=last < 0)
    yield value("transactional", info.is_transactional, "transactional", quiet=not info.is_transactional)
    yield value("control", info.is_control, "control", quiet=not info.is_control)
    kind = "log append time" if info.is_log_append_time else "create time"
    yield value("timestamp_type", kind, kind, quiet=info.magic == 0)
    if info.attributes & _DELETE_HORIZON and info.magic >= 2:
        yield moment("delete_horizon", info.base_timestamp)
    elif info.magic >= 2:
        yield moment("base_timestamp", info.base_timestamp)
    yield moment("max_timestamp", info.max_timestamp)


def _plain(batch: memoryview, info: BatchInfo) -> tuple[memoryview | None, str]:
    """The batch as if it had never been compressed, nor been a control batch: a cursor then gives every record."""
    if info.magic < 2:
        return None, ""
    content: bytes | memoryview = batch[HEADER_BYTES:info.size]
    if info.codec:
        try:
            content = decompress(info.codec, content, MAX_DECOMPRESSED_BYTES)
        except CorruptRecordError as error:
            return None, str(error)
    if not info.attributes & _CODEC_AND_CONTROL:
        return batch, ""
    made = bytearray(batch[:HEADER_BYTES])
    made[_LENGTH_AT:_LENGTH_AT + 4] = (HEADER_BYTES - _LENGTH_FROM + len(content)).to_bytes(4, "big")
    made[_ATTRIBUTES_AT + 1] &= ~_CODEC_AND_CONTROL & 0xFF
    made += content
    return memoryview(made), ""


def _records(
    plain: memoryview, info: BatchInfo, limit: int | None, topic: str, show: MessageNodes
) -> Iterator[TreeNode]:
    cursor = Cursor(plain, topic, 0, 0, check_crcs=False)
    shown = 0
    try:
        while not cursor.exhausted:
            wanted = _TAKEN_AT_ONCE if limit is None else min(_TAKEN_AT_ONCE, limit - shown)
            if wanted == 0:
                yield value("more_records", info.count - shown)
                return
            messages = cursor.take(wanted)
            shown += len(messages)
            for message in messages:
                yield _record(message, info, topic, show)
    except CorruptRecordError as error:
        yield damage(f"behind {shown} good records: {error}")


def _record(message: Message, info: BatchInfo, topic: str, show: MessageNodes) -> TreeNode:
    offset, key, content = message.offset(), message.key(), message.value()
    kind, time = message.timestamp()
    stamp = moment("timestamp", time if kind else -1)
    if info.is_control:
        return row("record", [value("offset", offset), stamp, *_control(key, content, show)])
    internal = read_internal(topic, key, content)
    if internal is not None:
        (key_version, read_key), read_value = internal
        parts = [value("offset", offset), stamp, struct("key", show(read_key, key_version))]
        parts += [value("value", None) if read_value is None else struct("value", show(read_value[1], read_value[0]))]
        return row("record", parts)
    secret = metadata_record(content) if key is None else None
    headers = message.headers() or []
    return row("record", [
        value("offset", offset), stamp, value("key", key),
        value("value", content) if secret is None else struct("value", show(secret, 0)),
        value("headers", Pairs(headers), quiet=not headers),
    ])


def _control(key: bytes | None, content: bytes | None, show: MessageNodes) -> Iterator[TreeNode]:
    if key is None or len(key) < 4:
        yield damage("a control record has no key")
        return
    kind = int.from_bytes(key[2:4], "big")
    if kind in _TRANSACTION_ENDS:
        yield value("control_type", _TRANSACTION_ENDS[kind], _TRANSACTION_ENDS[kind])
        if content is None or len(content) < 6:
            yield damage("a transaction's marker has no value")
        else:
            yield value("coordinator_epoch", int.from_bytes(content[2:6], "big", signed=True))
        return
    name, cls = _QUORUM_RECORDS.get(kind, (f"TYPE_{kind}", None))
    yield value("control_type", name, name)
    if cls is None or content is None:
        yield value("value", Hidden(len(content or b"")))
        return
    version = min(int.from_bytes(content[:2], "big"), cls.max_version)
    try:
        yield struct("value", show(decode(cls, content, version), version))
    except ProtocolError as error:
        yield damage(str(error))


def records_node(name: str, data: memoryview, limit: int | None, topic: str, show: MessageNodes) -> TreeNode:
    """The batches of a records field. The last one may be cut short, as brokers do that in fetch replies."""
    return TreeNode(name, len(data), f"{len(data)} bytes", parts=_batches(data, limit, topic, show), form=Form.LIST)


def _batches(data: memoryview, limit: int | None, topic: str, show: MessageNodes) -> Iterator[TreeNode]:
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at + 8:at + 12], "big", signed=True) + _LENGTH_FROM if at + 12 <= len(data) else 0
        left = len(data) - at
        if at + 12 <= len(data) and size < 26:
            yield damage(f"a batch of {size} bytes cannot be (at byte {at} of the records)")
            return
        if size > left or at + 12 > len(data):
            yield value("rest", left, f"the first {left} bytes of a batch" + (f" of {size}" if size else ""))
            return
        try:
            batch = data[at:at + size]
            yield batch_node(batch, read_head(batch), limit, topic, show)
        except CorruptRecordError as error:
            yield damage(f"{error} (at byte {at} of the records)")
            return
        at += size
