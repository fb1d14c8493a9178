"""Message classes: constructors, equality, how they show themselves."""

from __future__ import annotations

import copy
import pickle

import pytest

from headrace.wire import schema
from headrace.wire.api import API
from headrace.wire.layout import ZERO_UUID
from headrace.wire.messages.consumer.fetch import FetchRequest, PartitionData
from headrace.wire.messages.producer.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)


def test_fields_that_are_not_given_hold_kafkas_defaults() -> None:
    request = FetchRequest()
    assert (request.max_bytes, request.session_epoch, request.cluster_id) == (2**31 - 1, -1, None)
    assert (request.topics, request.rack_id, request.replica_state.replica_id) == ([], "", -1)
    assert TopicProduceData().topic_id == ZERO_UUID


def test_defaults_that_can_change_are_not_shared() -> None:
    first, second = ProduceRequest(), ProduceRequest()
    first.topic_data.append(TopicProduceData())
    assert second.topic_data == []
    assert PartitionData().current_leader is not PartitionData().current_leader


def test_a_field_that_does_not_exist_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="ackz"):
        ProduceRequest(ackz=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        ProduceRequest().ackz = 1  # type: ignore[attr-defined]


def test_messages_are_equal_by_value_and_not_hashable() -> None:
    assert ProduceRequest(acks=1) == ProduceRequest(acks=1)
    assert ProduceRequest(acks=1) != ProduceRequest(acks=0)
    assert ProduceRequest() != ProduceResponse()
    with pytest.raises(TypeError, match="unhashable"):
        hash(ProduceRequest())


def test_a_message_shows_its_fields_and_shortens_long_bytes() -> None:
    shown = repr(PartitionProduceResponse(index=3))
    assert shown.startswith("PartitionProduceResponse(index=3, error_code=0, ")
    assert "records=<1000 bytes 7a7a7a7a7a7a7a7a...>" in repr(PartitionData(records=b"z" * 1000))
    assert "records=b'zz'" in repr(PartitionData(records=b"zz"))


def test_messages_can_be_copied_and_pickled() -> None:
    message = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t")])
    assert copy.deepcopy(message) == message
    assert pickle.loads(pickle.dumps(message)) == message


def test_a_response_knows_the_versions_of_its_request() -> None:
    assert ProduceRequest.response_type is ProduceResponse
    for api in API.values():
        assert api.response is api.request.response_type
        assert (api.response.api_key, api.response.min_version) == (api.key, api.min_version)
        assert api.response.flexible_version == api.request.flexible_version
        assert api.request.__name__ == f"{api.name}Request"


def test_the_schema_has_no_names_but_its_own() -> None:
    assert schema.ZERO_UUID is ZERO_UUID
    with pytest.raises(AttributeError, match="no attribute 'ONE_UUID'"):
        schema.ONE_UUID  # type: ignore[attr-defined]  # noqa: B018
