"""Metadata replies, whose topics are read as far as nearly everybody needs them; the rest of each when it is asked for.

What is native here goes over the topics once and leaves everything but their names as bytes; where it is missing, or
something is out of the ordinary, the codec reads as it reads all messages. Both are the same to who uses the names of
`MetadataResponseTopic` (decision 0047). Read next: `wire.codec`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

from headrace.wire.codec import Reader, compile_reader, read_message
from headrace.wire.messages.cluster.metadata import MetadataResponse, MetadataResponseTopic
from headrace.wire.reading import ArrayReader
from headrace.wire.schema import Struct

_IS_PLAIN: Final = os.environ.get("HEADRACE_PURE", "") not in ("", "0")
TopicReader: Any = None
TopicRow: Any = None
if not _IS_PLAIN:
    try:
        from headrace.wire._topic_rows import TopicReader, TopicRow
    except ImportError:  # where nothing could be compiled; `headrace.records` says so
        pass

__all__ = ["decode_metadata", "same_row", "whole_topic"]

_OLDEST: Final = 9
_NEWEST: Final = 13
"""The versions whose layout the native reader knows."""
_readers: dict[int, Reader] = {}
_topic_readers: dict[int, Reader] = {}


def decode_metadata(data: bytes | bytearray | memoryview, version: int, start: int) -> MetadataResponse:
    """Like `wire.codec.decode_from` of a `MetadataResponse`.

    Raises:
        ProtocolError: as there.
    """
    reader = _readers.get(version)
    if reader is None:
        arrays: dict[type[Struct], ArrayReader] = {}
        if TopicReader is not None and _OLDEST <= version <= _NEWEST:
            arrays[MetadataResponseTopic] = ArrayReader(
                TopicReader(version, whole_topic(version)), _topic_reader(version))
        reader = _readers[version] = compile_reader(MetadataResponse, version, arrays=arrays)
    return read_message(MetadataResponse, version, reader, data, start)


def same_row(one: Any, other: Any) -> bool:
    """Whether two topics are rows of the same bytes; False where they are not rows."""
    return type(one) is type(other) is TopicRow and one.raw == other.raw


def whole_topic(version: int) -> Callable[[bytes], MetadataResponseTopic]:
    """What reads one topic from its bytes, all of it."""
    reader = _topic_reader(version)

    def read(raw: bytes) -> MetadataResponseTopic:
        topic: MetadataResponseTopic = reader(raw, memoryview(raw), 0)[0]
        return topic

    return read


def _topic_reader(version: int) -> Reader:
    found = _topic_readers.get(version)
    if found is None:
        found = _topic_readers[version] = compile_reader(MetadataResponse, version, part=MetadataResponseTopic)
    return found
