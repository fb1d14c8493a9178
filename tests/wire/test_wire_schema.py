"""Message classes: constructors, equality, how they show themselves."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import pytest

from headrace.wire.api import API
from headrace.wire.layout import ZERO_UUID, columns
from headrace.wire.messages.fetch import FetchRequest, PartitionData
from headrace.wire.messages.produce import PartitionProduceResponse, ProduceRequest, ProduceResponse, TopicProduceData
from headrace.wire.schema import Struct
from headrace.wire.versions import NEVER, Versions


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


def test_every_message_and_structure_says_what_it_is() -> None:
    seen: set[type[Struct]] = set()
    waiting: list[type[Struct]] = [cls for api in API.values() for cls in (api.request, api.response)]
    while waiting:
        cls = waiting.pop()
        seen.add(cls)
        assert cls.__doc__
        assert cls.__doc__.strip().endswith((".", ")"))
        waiting += [c.type.struct for c in columns(cls) if c.type.struct and c.type.struct not in seen]
    assert len(seen) > 100


def test_a_range_of_versions_reads_as_kafka_writes_it() -> None:
    assert Versions.parse("3+").holds(100)
    assert not Versions.parse("3+").holds(2)
    assert Versions.parse("0-12") == (0, 12)
    assert Versions.parse("7") == (7, 7)
    assert not any(NEVER.holds(version) for version in range(20))


def test_importing_every_message_takes_little_time() -> None:
    code = (
        "import time, uuid, dataclasses, functools, headrace.errors; t = time.process_time();"
        "from headrace.wire.api import API; len(API); print(time.process_time() - t)"
    )
    command = [sys.executable, "-c", code]
    times = [float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(5)]
    assert min(times) < 0.04  # aim: 15 ms; the rest is for busy machines
