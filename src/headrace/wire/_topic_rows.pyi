"""What `_topic_rows.pyx` has."""

from collections.abc import Callable

from headrace.wire.messages.cluster.metadata import MetadataResponseTopic

__all__ = ["TopicReader", "TopicRow"]

class TopicRow(MetadataResponseTopic):
    """To a type checker it is what it is a part of."""

    raw: bytes

    def whole(self) -> MetadataResponseTopic: ...

class TopicReader:
    def __init__(self, version: int, whole: Callable[[bytes], MetadataResponseTopic]) -> None: ...
    def __call__(
        self, data: bytes | memoryview, position: int, count: int
    ) -> tuple[list[MetadataResponseTopic], int]: ...
