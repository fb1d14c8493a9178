"""Arrow columns of whatever layout, into a topic's accumulator without a Python object per record.

pyarrow is imported inside the functions only. It must not know Spark.
Came from: `headrace.client.producer.column_feed`. Read next: `headrace.buffers.column_input`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from headrace import buffers
from headrace.buffers.column_input import BinaryInput

if TYPE_CHECKING:
    import pyarrow

__all__ = ["NAMELESS_HEADER", "Rows", "append_columns"]

NAMELESS_HEADER: Final = "column headers: a header's name cannot be null"


class Rows:
    """Rows of Arrow columns, ready to be appended to a topic's accumulator.

    Args:
        key: binary or string of whatever layout (large, view, dictionary, chunked); None for no keys.
        value: as `key`; null is a tombstone.
        partition: integers; null and None leave it to the partitioner.
        timestamp: timestamps, or integers in milliseconds since the epoch; null and None stand for now.
        headers: lists of structs (name, value), or maps.

    Raises:
        TypeError: a column has another type, or the columns differ in length.
        ValueError: a header has no name.
    """

    def __init__(
        self,
        key: pyarrow.Array | None,
        value: pyarrow.Array | None,
        partition: pyarrow.Array | None = None,
        timestamp: pyarrow.Array | None = None,
        headers: pyarrow.Array | None = None,
    ) -> None:
        given = [array for array in (key, value, partition, timestamp, headers) if array is not None]
        lengths = {len(array) for array in given}
        if len(lengths) != 1:
            raise TypeError(f"columns of one length are needed, not {sorted(lengths)}")
        self._count = lengths.pop()
        self._inputs = (
            _binary_input(key, "key"),
            _binary_input(value, "value"),
            _number_input(partition, "partition", -1),
            _number_input(timestamp, "timestamp", 0),
            _header_input(headers),
        )

    def __len__(self) -> int:
        return self._count

    def append_to(self, accumulator: buffers.RecordAccumulator, start: int = 0, listener: object = None) -> int:
        """Append the rows from `start` on, as many as the producer's pool allows.

        Args:
            accumulator: where to.
            start: the first row.
            listener: what `ClosedBatch.runs` is to name for these rows.

        Returns:
            Rows appended; fewer than there are when the pool is used up.

        Raises:
            KafkaException: a row is too large or names a partition that does not exist; rows before it are appended,
                as many as the error's `appended` says.
            ValueError: a timestamp is negative; as above.
        """
        return buffers.append_columns(accumulator, start, self._count, *self._inputs, listener)


def append_columns(
    accumulator: buffers.RecordAccumulator,
    key: pyarrow.Array | None,
    value: pyarrow.Array | None,
    partition: pyarrow.Array | None = None,
    timestamp: pyarrow.Array | None = None,
    headers: pyarrow.Array | None = None,
) -> int:
    """Append rows of Arrow columns to a topic's accumulator: `Rows`, once.

    Returns:
        Rows appended, counted from the front; fewer than given when the pool is used up.
    """
    return Rows(key, value, partition, timestamp, headers).append_to(accumulator)


def _flat(array: Any) -> Any:
    """One contiguous array of a chunked or dictionary one."""
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _binary_input(array: Any, name: str) -> BinaryInput | None:
    import pyarrow as pa

    if array is None:
        return None
    array = _flat(array)
    kinds = {pa.binary(): False, pa.string(): False, pa.large_binary(): True, pa.large_string(): True}
    if array.type not in kinds:
        try:
            array = array.cast(pa.large_binary())  # views, fixed sizes, nulls
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            raise TypeError(f"column {name} must be binary or string, not {array.type}") from None
    validity, offsets, data = array.buffers()
    if offsets is None or offsets.size == 0:
        offsets = b"\0" * 16
    return BinaryInput(validity, offsets, data, array.offset, kinds.get(array.type, False))


def _number_input(array: Any, name: str, default: int) -> Any:
    import pyarrow as pa

    if array is None:
        return None
    array = _flat(array)
    kind = pa.int32() if name == "partition" else pa.int64()
    try:
        if pa.types.is_timestamp(array.type):
            array = array.cast(pa.timestamp("ms", tz=array.type.tz), safe=False).view(pa.int64())
        array = array.cast(kind)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise TypeError(f"column {name} must be integers{' or timestamps' if default == 0 else ''}: {error}") from None
    if array.null_count:
        array = array.fill_null(default)
    numbers = array.buffers()[1]
    return numbers if array.offset == 0 else memoryview(numbers)[array.offset * kind.bit_width // 8 :]


def _header_input(array: Any) -> tuple[BinaryInput, BinaryInput, BinaryInput] | None:
    import pyarrow as pa

    if array is None:
        return None
    array = _flat(array)
    if pa.types.is_null(array.type):
        return None
    if not pa.types.is_map(array.type):
        array = _as_list(array)
        if not pa.types.is_struct(array.type.value_type) or array.type.value_type.num_fields != 2:
            raise _no_headers(array.type)
    array, entries = _window(array)
    parts = entries.flatten()
    of_name = int([field.name for field in entries.type] == ["value", "key"])
    names, values = parts[of_name], parts[1 - of_name]
    # A list that is null may have entries all the same, which do not count.
    if names.null_count and array.flatten().flatten()[of_name].null_count:
        raise ValueError(NAMELESS_HEADER)
    validity, offsets = array.buffers()[:2]
    lists = BinaryInput(validity, offsets if offsets is not None and offsets.size else b"\0" * 16, None, array.offset,
                        pa.types.is_large_list(array.type))
    name_input, value_input = _binary_input(names, "headers"), _binary_input(values, "headers")
    assert name_input is not None
    assert value_input is not None
    return lists, name_input, value_input


def _window(array: Any) -> tuple[Any, Any]:
    """A list array and its entries, none beyond those of its own rows: a slice shares the entries of the whole."""
    import pyarrow as pa
    import pyarrow.compute as pc

    entries = array.values
    if not len(array):
        return array, entries
    first, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
    if end - first == len(entries):
        return array, entries
    made = pa.LargeListArray if pa.types.is_large_list(array.type) else pa.ListArray
    entries = entries.slice(first, end - first)
    mask = array.is_null() if array.null_count else None
    return made.from_arrays(pc.subtract(array.offsets, array.offsets[0]), entries, mask=mask), entries


def _as_list(array: Any) -> Any:
    """A (large) list from list views or lists of a fixed size."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        return array
    try:  # not by `cast`, which makes too few offsets of views that end with empty lists
        sizes = pc.list_value_length(array).cast(pa.int64()).fill_null(0)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        raise _no_headers(array.type) from None
    ends = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(sizes)])
    return pa.LargeListArray.from_arrays(ends, array.flatten(), mask=array.is_null())


def _no_headers(kind: pyarrow.DataType) -> TypeError:
    return TypeError(f"column headers must be a list of structs of a name and a value, not {kind}")
