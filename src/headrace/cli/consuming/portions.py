"""Some records of one partition, in order: columns as they came, and lists of what something asks for.

Nothing is made of a column before it is asked for, so that lines of values cost no keys and no headers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from headrace.records.columns.arrow_batch import ArrowBatch, columns_of
from headrace.records.columns.columns import cells, header_lists
from headrace.records.control import CONTROL_NAMES
from headrace.types.records import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE

if TYPE_CHECKING:
    from headrace.records import Message
    from headrace.records.columns.columns import Columns
    from headrace.records.control import ControlRecord

__all__ = ["HeaderPairs", "Portion", "control_portion", "portions_of", "portions_of_messages"]

HeaderPairs = list[tuple[str, bytes | None]]
_COLUMNS = frozenset({"timestamps", "timestamp_types", "keys", "values", "headers"})
_STORED = {"keys": "key", "values": "value"}
"""How columns of a batch are called that have other names here."""


class Portion:
    """Records of one partition.

    Args:
        topic: their topic.
        partition: its number.
        offsets: of each.
        make: gives a column by its name, once it is needed.

    Attributes:
        timestamps: milliseconds since 1970 of each; see `times`.
        timestamp_types: one of the `TIMESTAMP_` constants of each.
        keys: key of each.
        values: value of each, None for a tombstone.
        headers: headers of each, an empty list for none.
        batch: the batch that they are rows of, from `first` on; None when they came otherwise.
        first: row of the batch.
        json_keys: keys are texts of JSON now.
        json_values: values are texts of JSON now.
        is_control: the values are texts of JSON about control records.
    """

    timestamps: Sequence[int]
    timestamp_types: Sequence[int]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[HeaderPairs]

    def __init__(self, topic: str, partition: int, offsets: Sequence[int], make: Callable[[str], Any]) -> None:
        self.topic = topic
        self.partition = partition
        self.offsets = offsets
        self.batch: ArrowBatch | None = None
        self.first = 0
        self.json_keys = self.json_values = self.is_control = False
        self._make = make

    def __getattr__(self, name: str) -> Any:
        if name not in _COLUMNS:
            raise AttributeError(name)
        found = self.__dict__[name] = self._make(name)
        return found

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def next_offset(self) -> int:
        """The offset behind the last record."""
        return self.offsets[-1] + 1

    def column(self, name: str) -> tuple[Any, int]:
        """A column as it is there, and its row that is the first record's.

        Args:
            name: "offsets", or one of those that are made when they are asked for.

        Returns:
            What the batch holds, where the records are rows of one; else a sequence with a cell for each record.
        """
        if self.batch is None:
            found = getattr(self, name)
            return found if isinstance(found, list) else list(found), 0
        return getattr(columns_of(self.batch)[0], _STORED.get(name, name)), self.first

    def times(self) -> list[int | None]:
        """Milliseconds since 1970 of each record; None where it has none."""
        return [None if kind == TIMESTAMP_NOT_AVAILABLE else time
                for time, kind in zip(self.timestamps, self.timestamp_types, strict=True)]

    def picked(self, rows: Sequence[int]) -> Portion:
        """Only these rows, in this order."""
        def make(name: str) -> Any:
            column = getattr(self, name)
            return [column[row] for row in rows]

        made = Portion(self.topic, self.partition, [self.offsets[row] for row in rows], make)
        return self._marked(made)

    def head(self, count: int) -> Portion:
        """The first rows."""
        if count >= len(self):
            return self
        made = Portion(self.topic, self.partition, self.offsets[:count], lambda name: getattr(self, name)[:count])
        made.batch, made.first = self.batch, self.first
        return self._marked(made)

    def _marked(self, made: Portion) -> Portion:
        made.json_keys, made.json_values, made.is_control = self.json_keys, self.json_values, self.is_control
        return made

    def in_json(self, keys: Sequence[bytes | None] | None, values: Sequence[bytes | None] | None) -> Portion:
        """The same records with texts of JSON for keys or values; None leaves them as they are."""
        made = Portion(self.topic, self.partition, self.offsets, partial(getattr, self))
        made.json_keys, made.json_values = keys is not None, values is not None
        if keys is not None:
            made.keys = keys
        if values is not None:
            made.values = values
        return made


def portions_of(batch: ArrowBatch) -> Iterator[Portion]:
    """The records of a batch, partition by partition as they came."""
    columns, runs = columns_of(batch)
    offsets = memoryview(columns.offsets).cast("B").cast("q")
    row = 0
    for topic, partition, count in runs:
        end = row + count
        made = Portion(topic, partition, offsets[row:end], partial(_column, columns, row, end))
        made.batch, made.first = batch, row
        yield made
        row = end


def _column(columns: Columns, first: int, end: int, name: str) -> Any:
    """A column of some rows, as a sequence."""
    assert columns.key is not None
    assert columns.value is not None
    assert columns.headers is not None
    if name == "timestamps":
        return memoryview(columns.timestamps).cast("B").cast("q")[first:end]
    if name == "timestamp_types":
        return memoryview(columns.timestamp_types).cast("B")[first:end]
    if name == "headers":
        return header_lists(columns.headers, first, end)
    return cells(columns.key if name == "keys" else columns.value, first, end)


def portions_of_messages(messages: Iterable[Message]) -> Iterator[Portion]:
    """Messages without errors; those of one partition that follow each other come together."""
    held: list[Message] = []
    for message in messages:
        if held and (held[0].topic(), held[0].partition()) != (message.topic(), message.partition()):
            yield _of_messages(held)
            held = []
        held.append(message)
    if held:
        yield _of_messages(held)


def _of_messages(messages: list[Message]) -> Portion:
    stamps = [message.timestamp() for message in messages]
    columns = {
        "timestamps": [time for _, time in stamps], "timestamp_types": [kind for kind, _ in stamps],
        "keys": [message.key() for message in messages], "values": [message.value() for message in messages],
        "headers": [message.headers() or [] for message in messages],
    }
    offsets = [message.offset() or 0 for message in messages]
    return Portion(messages[0].topic() or "", messages[0].partition() or 0, offsets, columns.__getitem__)


def control_portion(topic: str, partition: int, found: ControlRecord) -> Portion:
    """A control record, told in JSON in the place of its value."""
    name = CONTROL_NAMES[found.type] if 0 <= found.type < len(CONTROL_NAMES) else str(found.type)
    told = {"control": name, "producer_id": found.producer_id, "producer_epoch": found.epoch,
            "coordinator_epoch": found.coordinator_epoch}
    columns = {"timestamps": [found.timestamp_ms], "timestamp_types": [TIMESTAMP_CREATE_TIME], "keys": [None],
               "values": [json.dumps(told).encode()], "headers": [[]]}
    made = Portion(topic, partition, [found.offset], columns.__getitem__)
    made.is_control = made.json_values = True
    return made
