"""In a task: batches of raw columns become batches of the columns that Spark has planned.

What becomes of a row whose bytes cannot be read is an option: the task fails and says which, the value is null, or the
row goes to the dead-letter topic and is left out. Read next: `headrace.values.value_decoder`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Final, Protocol

import headrace.values.arrow_required  # noqa: F401 - the check is what it is for

import pyarrow

from headrace.errors import SerializationError
from headrace.values.value_decoder import decoder_of
from headrace.values.value_format import malformed_remedy

if TYPE_CHECKING:
    from headrace.values.value_planning import DecodedRead

__all__ = ["DeadLetters", "OpenLetters", "decoded_batches", "raw_columns"]

_MOST_BYTES: Final = 64 << 20
"""Payloads that are decoded at once; Arrow's columns end at 2 GiB, and values may be wider than their bytes."""


def raw_columns(of: DecodedRead, columns: Sequence[str]) -> list[str]:
    """The columns that must be read so that some can be decoded, and malformed records be named."""
    chosen = [each for name, each in of.sides.items() if name in columns]
    wanted = [*columns]
    if any(each.format.malformed != "null" for each in chosen):
        wanted += ["topic", "partition", "offset"]
    if any(each.format.malformed == "dead-letter" for each in chosen):
        wanted += ["key", "value", "headers"]
    return list(dict.fromkeys(wanted))


class DeadLetters(Protocol):
    """Takes the malformed records of one task."""

    def write(self, batch: pyarrow.RecordBatch, dead: Mapping[int, tuple[str, str]]) -> None:
        """Write the records of some rows of a batch of raw columns: by row, which side is malformed, and why."""
        ...

    def finish(self) -> None:
        """Wait until all are stored."""
        ...


OpenLetters = Callable[["DecodedRead"], AbstractContextManager[DeadLetters]]
"""Opens the place for the malformed records of a read, once the first one is met."""


def decoded_batches(
    of: DecodedRead, columns: Sequence[str], batches: Iterable[pyarrow.RecordBatch],
    open_letters: OpenLetters | None = None,
) -> Iterator[pyarrow.RecordBatch]:
    """Decode batches.

    Args:
        of: what to decode.
        columns: which to give, in their order.
        batches: with the columns that `raw_columns` names.
        open_letters: for reads whose `malformed` is `dead-letter`.

    Raises:
        SerializationError: a payload cannot be read and `malformed` is `fail`; the text names topic, partition and
            offset.
        SchemaRegistryError: the registry did not answer, or refused.
        KafkaException: a dead letter could not be written.
    """
    with ExitStack() as stack:
        letters: list[DeadLetters] = []

        def dead_letters() -> DeadLetters:
            assert open_letters is not None
            if not letters:
                letters.append(stack.enter_context(open_letters(of)))
            return letters[0]

        for whole in batches:
            for batch in _cut(whole, of, columns):
                yield _decoded(of, columns, batch, dead_letters)
        for writer in letters:
            writer.finish()


def _cut(batch: pyarrow.RecordBatch, of: DecodedRead, columns: Sequence[str]) -> Iterator[pyarrow.RecordBatch]:
    """The batch in pieces of bounded payloads; a row is never cut."""
    size = sum(batch.column(name).nbytes for name in of.sides if name in columns)
    rows = max(1, batch.num_rows * _MOST_BYTES // max(size, _MOST_BYTES))
    for row in range(0, batch.num_rows, rows):
        yield batch.slice(row, rows)


def _decoded(
    of: DecodedRead, columns: Sequence[str], batch: pyarrow.RecordBatch, dead_letters: Callable[[], DeadLetters],
) -> pyarrow.RecordBatch:
    made: dict[str, pyarrow.Array] = {}
    dead: dict[int, tuple[str, str]] = {}
    for name, planned in of.sides.items():
        if name not in columns:
            continue
        found = decoder_of(planned).decode(batch.column(name))
        made[name] = found.values
        if planned.format.malformed == "fail" and found.malformed:
            raise _malformed(batch, name, found.malformed)
        if planned.format.malformed == "dead-letter":
            dead = {row: (name, why) for row, why in found.malformed.items()} | dead
    made |= {name: _text(batch.column(name)) for name in of.texts if name in columns}
    arrays = [made[name] if name in made else batch.column(name) for name in columns]
    decoded = pyarrow.RecordBatch.from_arrays(arrays, names=list(columns))
    if not dead:
        return decoded
    dead_letters().write(batch, dead)
    kept = [row for row in range(batch.num_rows) if row not in dead]
    return decoded.take(pyarrow.array(kept, pyarrow.int32()))


def _malformed(batch: pyarrow.RecordBatch, side: str, malformed: Mapping[int, str]) -> SerializationError:
    row = min(malformed)
    topic, partition, offset = (batch.column(name)[row].as_py() for name in ("topic", "partition", "offset"))
    more = f" (and {len(malformed) - 1} more in the batch)" if len(malformed) > 1 else ""
    return SerializationError(
        f"the {side} of {topic}[{partition}]@{offset} cannot be read: {malformed[row]}{more}. {malformed_remedy(side)}")


def _text(column: pyarrow.Array) -> pyarrow.Array:
    """Bytes as text; what is not UTF-8 gets replacement characters, as Spark's cast shows it."""
    try:
        return column.cast(pyarrow.string())
    except pyarrow.ArrowInvalid:
        return pyarrow.array([each if each is None else each.decode("utf-8", "replace")
                              for each in column.to_pylist()], pyarrow.string())
