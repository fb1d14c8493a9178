"""`Messages`: what one `poll()` of a share consumer returns. It must not know where they come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import overload

from headrace.records import Message

__all__ = ["Messages"]


class Messages:
    """Messages in order, as confluent_kafka names it: a sequence that cannot be changed.

    Args:
        messages: what it holds.
    """

    __slots__ = ("_held",)

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._held = tuple(messages)

    def records(self) -> list[Message]:
        """The messages as a list of their own."""
        return list(self._held)

    def count(self) -> int:
        """How many messages there are."""
        return len(self._held)

    def is_empty(self) -> bool:
        """Whether there are none."""
        return not self._held

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._held)

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> Messages: ...

    def __getitem__(self, index: int | slice) -> Message | Messages:
        return Messages(self._held[index]) if isinstance(index, slice) else self._held[index]

    def __repr__(self) -> str:
        return f"Messages({list(self._held)!r})"
