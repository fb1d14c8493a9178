"""Message classes: constructors, equality, how they show themselves."""

from __future__ import annotations

import ast
import copy
import pickle
import re
from itertools import pairwise
from pathlib import Path

import pytest

from headrace.error_codes import CODES
from headrace.wire import schema
from headrace.wire.api import API
from headrace.wire.layout import ZERO_UUID, columns
from headrace.wire.messages.consumer.fetch import FetchRequest, PartitionData
from headrace.wire.messages.producer.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from headrace.wire.schema import Struct, field
from headrace.wire.versions import NEVER, Versions

MESSAGES = sorted(path for path in (Path(__file__).parents[3] / "src/headrace/wire/messages").rglob("*.py")
                  if path.name != "__init__.py")


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


def test_equal_fields_are_one_object_and_unequal_defaults_are_not() -> None:
    assert field("3+", default=-1) is field("3+", default=-1)
    kinds = [field(), field(default=0), field(default=0.0), field(default=False), field(default=""), field("1+")]
    assert len({id(kind) for kind in kinds}) == len(kinds)
    assert [type(kind.default) for kind in kinds[1:4]] == [int, float, bool]


def test_the_schema_has_no_names_but_its_own() -> None:
    assert schema.ZERO_UUID is ZERO_UUID
    with pytest.raises(AttributeError, match="no attribute 'ONE_UUID'"):
        schema.ONE_UUID  # type: ignore[attr-defined]  # noqa: B018


def test_a_range_of_versions_reads_as_kafka_writes_it() -> None:
    assert Versions.parse("3+").holds(100)
    assert not Versions.parse("3+").holds(2)
    assert Versions.parse("0-12") == (0, 12)
    assert Versions.parse("7") == (7, 7)
    assert not any(NEVER.holds(version) for version in range(20))


@pytest.mark.parametrize("path", MESSAGES, ids=lambda path: path.stem)
def test_every_field_says_what_it_means(path: Path) -> None:
    silent = []
    for cls in (node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)):
        for statement, after in pairwise([*cls.body, None]):
            if isinstance(statement, ast.AnnAssign) and not _is_sentence(after):
                silent.append(f"{cls.name}.{ast.unparse(statement.target)}")
    assert silent == []
    assert "field(" in path.read_text()


def _is_sentence(node: ast.stmt | None) -> bool:
    value = node.value if isinstance(node, ast.Expr) else None
    text = value.value if isinstance(value, ast.Constant) else None
    return isinstance(text, str) and text.rstrip().endswith(".") and len(text.split()) > 1


def test_every_error_that_a_message_names_exists() -> None:
    named = {word for path in MESSAGES for word in re.findall(r"\b[A-Z]{3,}(?:_[A-Z]+)+\b", path.read_text())}
    names = {row.kafka_name for row in CODES.values()}
    assert {"NOT_LEADER_OR_FOLLOWER", "UNKNOWN_PRODUCER_ID"} <= named <= names | {"SASL_PLAINTEXT", "SASL_SSL"}
