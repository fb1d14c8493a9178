"""Errors name what they are about, and the right that is missing; ids and operations are read from the wire."""

from uuid import UUID

import pytest

from headrace.errors import KafkaError, KafkaException
from headrace.machines.admin.admin_results import NodesById, by_topic, failure, operations, raise_failure, uuid_of
from headrace.types.acls import AclOperation
from headrace.types.cluster import Node
from headrace.types.records import TopicPartition


def test_what_went_well_is_no_error() -> None:
    assert failure("topic", 0, "fine") is None
    raise_failure("topic", 0)


@pytest.mark.parametrize("code", [29, 30, 31, 53, 65])
def test_a_right_is_named_where_it_is_missing(code: int) -> None:
    error = failure("it", code, "No.", "READ on it")
    assert error == code
    assert error is not None
    assert error.str() == "it: No; this needs READ on it"


def test_a_right_is_not_named_where_something_else_is_wrong() -> None:
    with pytest.raises(KafkaException) as raised:
        raise_failure("it", KafkaError.UNKNOWN_TOPIC_OR_PART, None, "READ on it")
    assert raised.value.error.str().startswith("it: ")
    assert "needs" not in raised.value.error.str()


def test_operations_are_bits_and_none_when_they_were_not_asked_for() -> None:
    assert operations(-(2**31)) is None
    assert operations(0) == []
    assert operations(1 << 4 | 1 << 12) == [AclOperation.WRITE, AclOperation.IDEMPOTENT_WRITE]


def test_an_id_keeps_all_its_bits() -> None:
    for number in (0, 1, 2**63, 2**64 - 1, 2**64, 2**127, 2**128 - 1):
        assert int(uuid_of(UUID(int=number))) == number


def test_a_broker_that_is_gone_has_an_id_and_no_address() -> None:
    assert NodesById({1: Node(1, "h", 2)})[1].host == "h"
    assert NodesById()[5] == Node(5, "", -1)


def test_partitions_are_sorted_by_topic() -> None:
    a, b = TopicPartition("a", 0), TopicPartition("b", 0)
    assert by_topic({a: 1, b: 2}) == {"a": [(a, 1)], "b": [(b, 2)]}
