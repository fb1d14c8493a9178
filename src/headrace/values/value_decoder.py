"""In a task: the bytes of a side become a column of the planned type.

Rows are grouped by the schema that they were written with; each schema has one codec, which stays in the process for
the tasks that follow. A schema that is new since the query was planned is fetched when it is met.
Read next: `headrace.values.decoded_batches`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import headrace.values.arrow_required  # noqa: F401 - the check is what it is for

import pyarrow

from headrace.client.registry.schema_cache import LruCache
from headrace.schemas.columns.column_codec import DecodedColumn, put_in_order
from headrace.schemas.columns.framing import FramedRows, split_message_indexes, split_off
from headrace.schemas.parsed import InvalidSchemaError
from headrace.values.schema_formats import schema_format

if TYPE_CHECKING:
    from headrace.schemas.columns.column_codec import ColumnCodec
    from headrace.values.value_planning import PlannedRead

__all__ = ["ValueDecoder", "decoder_of"]

_MOST_CODECS: Final = 1000
_Number = int | str
_Part = tuple[pyarrow.Array | None, DecodedColumn]


class ValueDecoder:
    """Reads one side of a query's records. From any thread.

    Args:
        planned: what the driver has settled.

    Attributes:
        data_type: Arrow type of the column.
    """

    def __init__(self, planned: PlannedRead) -> None:
        self._planned = planned
        self._format = schema_format(planned.format.name)
        self._codecs = LruCache(_MOST_CODECS)
        self.data_type = planned.data_type

    def decode(self, payloads: pyarrow.BinaryArray) -> DecodedColumn:
        """Read a column.

        Args:
            payloads: as they are in the topic; null stays null.

        Raises:
            SchemaRegistryError: the registry did not answer, or refused.
            ColumnTooLargeError: the values are too many for one Arrow column.
        """
        if not self._planned.format.framed:
            return self._codec(None).decode(payloads)
        split = split_off(payloads)
        malformed = dict(split.malformed)
        parts = [part for group in split.groups for part in self._parts(group, malformed)]
        return put_in_order(parts, len(payloads), self.data_type, malformed)

    def _parts(self, group: FramedRows, malformed: dict[int, str]) -> Iterator[_Part]:
        """The rows of one schema; of each of its messages, where a format has several."""
        groups = [group]
        if self._format.has_messages:
            split = split_message_indexes(group)
            malformed |= split.malformed
            groups = split.groups
        for each in groups:
            decoded = self._decoded(each)
            if each.rows is None or not isinstance(decoded, str):
                yield each.rows, _none_of(each, decoded, self.data_type) if isinstance(decoded, str) else decoded
            else:
                malformed |= dict.fromkeys(each.rows.to_pylist(), decoded)

    def _decoded(self, group: FramedRows) -> DecodedColumn | str:
        """The rows of one message, or why its schema cannot be had."""
        from headrace.values.registry_access import UnknownSchemaError

        try:
            codec = self._codec(group.schema, group.message_indexes)
        except (UnknownSchemaError, InvalidSchemaError) as error:
            return str(error)
        return codec.decode(group.bodies)

    def _codec(self, number: _Number | None, indexes: tuple[int, ...] = ()) -> ColumnCodec:
        known: ColumnCodec | None = self._codecs.get((number, indexes))
        if known is None:
            known = self._made(number, indexes)
            self._codecs.put((number, indexes), known)
        return known

    def _made(self, number: _Number | None, indexes: tuple[int, ...]) -> ColumnCodec:
        reader, of = self._planned.reader, self._planned.format
        if number is None or not of.registry:
            return self._format.codec(reader, reader, message=of.message, indexes=indexes, flags=of.flags)
        from headrace.values.registry_access import registry_of

        writer = registry_of(of).by_number(number)
        return self._format.codec(writer, reader, message=of.message, indexes=indexes, flags=of.flags)


def _none_of(group: FramedRows, why: str, data_type: pyarrow.DataType) -> DecodedColumn:
    rows = len(group.bodies)
    return DecodedColumn(pyarrow.nulls(rows, data_type), dict.fromkeys(range(rows), why))


@lru_cache(maxsize=50)
def decoder_of(planned: PlannedRead) -> ValueDecoder:
    """The decoder of what was planned. A process keeps it for the tasks that follow.

    Raises:
        InvalidSchemaError: the reader's schema is none, or one that a column cannot have.
    """
    return ValueDecoder(planned)
