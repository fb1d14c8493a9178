"""What the generators learn from a class: types, ranges, defaults, constructors, least sizes."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.wire.codec import encode
from headrace.wire.field import UNSET
from headrace.wire.layout import (
    ZERO_UUID,
    FieldColumn,
    Type,
    columns,
    compile_init,
    default_source,
    is_flexible,
    min_size,
)
from headrace.wire.messages.cluster.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.messages.cluster.session import ApiVersionsRequest, ApiVersionsResponse, SaslHandshakeRequest
from headrace.wire.messages.consumer.fetch import PartitionData
from headrace.wire.messages.producer.produce import PartitionProduceData, TopicProduceData
from headrace.wire.versions import NEVER, Versions
from tests.campaigns.conformance.wire_values import all_versions, random_message


def column_of(cls: type, name: str) -> FieldColumn:
    return next(column for column in columns(cls) if column.name == name)


def test_the_columns_of_a_class_are_its_fields_in_the_order_in_which_they_travel() -> None:
    assert [column.name for column in columns(MetadataRequest)] == list(MetadataRequest.fields)
    assert columns(MetadataRequest) is columns(MetadataRequest)


def test_a_type_is_read_from_its_annotation() -> None:
    topics = column_of(MetadataRequest, "topics").type
    assert topics == Type("", MetadataRequestTopic, True)
    assert topics.item == Type("", MetadataRequestTopic, False)
    assert column_of(MetadataRequestTopic, "topic_id").type == Type("Uuid", None, False)
    assert column_of(MetadataRequestTopic, "name").type == Type("String", None, False)


def test_a_field_may_be_null_where_its_annotation_allows_none() -> None:
    assert column_of(MetadataRequest, "topics").nullable == Versions.parse("1+")
    assert column_of(MetadataRequest, "allow_auto_topic_creation").nullable == NEVER
    assert column_of(PartitionProduceData, "records").nullable == Versions.parse("0+")  # as long as there is the field


def test_a_field_is_tagged_in_the_versions_that_say_so() -> None:
    epoch = column_of(ApiVersionsResponse, "finalized_features_epoch")
    assert (epoch.tag, epoch.is_tagged(3), epoch.is_tagged(2)) == (1, True, False)
    assert not column_of(ApiVersionsResponse, "error_code").is_tagged(3)


def test_what_is_not_given_has_the_zero_of_its_type() -> None:
    assert column_of(MetadataRequestTopic, "topic_id").default == ZERO_UUID
    assert column_of(SaslHandshakeRequest, "mechanism").default == ""
    assert column_of(PartitionProduceData, "records").default is None
    assert column_of(TopicProduceData, "partition_data").default is UNSET


def test_the_source_of_a_default_is_what_a_new_message_holds() -> None:
    for cls, _ in all_versions():
        made = cls()
        for column in columns(cls):
            names: dict[str, object] = {}
            value = eval(default_source(column, names), names)
            assert (column.name, value) == (column.name, getattr(made, column.name))


def test_a_constructor_takes_keywords_and_makes_afresh_what_can_be_changed() -> None:
    init = compile_init(PartitionData)
    assert init.__qualname__ == "PartitionData.__init__"
    first, second = object.__new__(PartitionData), object.__new__(PartitionData)
    init(first, partition_index=7)
    init(second)
    assert (first.partition_index, second.partition_index) == (7, 0)
    assert first.current_leader is not second.current_leader
    with pytest.raises(TypeError, match="positional"):
        init(second, 7)


def test_a_message_is_flexible_from_the_version_on_that_it_names() -> None:
    assert [is_flexible(ApiVersionsRequest, version) for version in range(5)] == [False, False, False, True, True]
    assert not any(is_flexible(SaslHandshakeRequest, version) for version in range(2))


@given(st.sampled_from(all_versions()), st.integers(0, 2**63))
def test_no_message_is_smaller_than_its_least_size(which: tuple[type, int], seed: int) -> None:
    cls, version = which
    least = min_size(Type("", cls, False), version, is_flexible(cls, version))
    assert len(encode(random_message(cls, version, Random(seed), size=1), version)) >= least


def test_the_least_size_counts_what_each_field_takes() -> None:
    topic = Type("", MetadataRequestTopic, False)
    assert [min_size(topic, version, flexible) for version, flexible in ((0, False), (9, True), (10, True))] == [
        2, 1 + 1, 16 + 1 + 1]
    assert min_size(Type("ShortString", None, False), 9, True) == 2
    assert [min_size(Type(name, None, False), 0, False) for name in ("Bool", "Int16", "Int64", "Bytes")] == [1, 2, 8, 4]
    assert [min_size(Type("Int64", None, True), 0, flexible) for flexible in (False, True)] == [4, 1]
