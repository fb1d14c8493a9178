"""What both twins refuse: the errors and their words."""

import pytest

from headrace.buffers.refusals import count_parts, milliseconds, no_partition, sums_of, too_large
from headrace.errors import KafkaError, KafkaException


def test_a_partition_that_the_topic_does_not_have_is_told_with_what_it_has() -> None:
    error = no_partition("orders", 7, 3)
    assert isinstance(error, KafkaException)
    assert error.error == KafkaError._UNKNOWN_PARTITION
    assert error.error.str() == "orders has no partition 7: it has 3"


@pytest.mark.parametrize(("partition", "text"), [
    (7, "orders has no partition 7"),
    (-2, "orders has no partition -2; give -1 to let the partitioner choose"),
])
def test_how_many_there_are_is_left_out_while_it_is_not_known(partition: int, text: str) -> None:
    error = no_partition("orders", partition, None)
    assert isinstance(error, KafkaException)
    assert error.error.str() == text


@pytest.mark.parametrize("partition", [1 << 31, -(1 << 31) - 1])
def test_a_number_of_more_than_32_bits_is_no_partition_of_any_topic(partition: int) -> None:
    error = no_partition("orders", partition, 3)
    assert isinstance(error, OverflowError)
    assert str(partition) in str(error)


def test_a_record_that_is_too_large_is_told_with_its_size_and_the_limit() -> None:
    error = too_large("orders", 2000, 1000).error
    assert error == KafkaError.MSG_SIZE_TOO_LARGE
    assert "2000 bytes for orders" in error.str()
    assert "(1000)" in error.str()


def test_weights_are_summed_up_to_each_partition() -> None:
    assert sums_of([3, 0, 2], 3) == [3, 3, 5]
    assert sums_of([3, 0], 3) == [3, 3]


@pytest.mark.parametrize("weights", [[1, 1, 1, 1], [2, -1, 1], [0, 0, 0], [1 << 31, 1]])
def test_weights_that_cannot_be_are_refused(weights: list[int]) -> None:
    with pytest.raises(ValueError, match=f"weights of {len(weights)} partitions of 3"):
        sums_of(weights, 3)


def test_parts_are_counted_when_each_has_a_record() -> None:
    assert count_parts([1, 0, 1], 3) == 2


@pytest.mark.parametrize("parts", [[0, 0], [0, 2, 2], [1, 1, 1]])
def test_parts_without_a_record_and_records_without_a_part_are_refused(parts: list[int]) -> None:
    with pytest.raises(ValueError, match=f"{len(parts)} numbers of parts for 3 records"):
        count_parts(parts, 3)


@pytest.mark.parametrize("timestamp", [1767225600.5, "5", None, b"5"])
def test_a_timestamp_that_is_no_integer_is_refused_with_its_unit(timestamp: object) -> None:
    with pytest.raises(TypeError, match="timestamp must be int, in milliseconds since the epoch, not "
                                        + type(timestamp).__name__):
        milliseconds(timestamp)


def test_whatever_counts_as_an_integer_is_a_timestamp() -> None:
    class Stamp:
        def __index__(self) -> int:
            return 5

    assert [milliseconds(given) for given in (7, Stamp(), True)] == [7, 5, 1]
