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
_whole: dict[int, Callable[[bytes], MetadataResponseTopic]] = {}


def decode_metadata(data: bytes | bytearray | memoryview, version: int, start: int) -> MetadataResponse:
    """Like `wire.codec.decode_from` of a `MetadataResponse`.

    Raises:
        ProtocolError: as there.
    """
    reader = _readers.get(version)
    if reader is None:
        native = TopicReader is not None and _OLDEST <= version <= _NEWEST
        arrays = {MetadataResponseTopic: TopicReader(version, whole_topic(version))} if native else {}
        reader = _readers[version] = compile_reader(MetadataResponse, version, arrays=arrays)
    return read_message(MetadataResponse, version, reader, data, start)


def same_row(one: Any, other: Any) -> bool:
    """Whether two topics are rows of the same bytes; False where they are not rows."""
    return type(one) is type(other) is TopicRow and one.raw == other.raw


def whole_topic(version: int) -> Callable[[bytes], MetadataResponseTopic]:
    """What reads one topic from its bytes, all of it."""
    found = _whole.get(version)
    if found is None:
        reader = compile_reader(MetadataResponse, version, part=MetadataResponseTopic)

        def read(raw: bytes) -> MetadataResponseTopic:
            topic: MetadataResponseTopic = reader(raw, memoryview(raw), 0)[0]
            return topic

        found = _whole[version] = read
    return found
