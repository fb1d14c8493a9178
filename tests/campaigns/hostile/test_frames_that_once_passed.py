"""Bytes that were once taken for more than they are. Each test is a fault that reading or fuzzing found."""

import struct

import pytest

from headrace.errors import ProtocolError
from headrace.wire.frame import decode_request, decode_response
from headrace.wire.messages.admin.topics import CreatePartitionsRequest
from headrace.wire.messages.cluster.session import ApiVersionsRequest
from headrace.wire.messages.consumer.offsets import OffsetFetchRequest
from headrace.wire.schema import Request
from tests.campaigns.hostile.fattest import dense_messages, memory_multiple
from tests.campaigns.hostile.readers import MEMORY_MULTIPLE


def test_a_client_id_that_passes_the_end_is_no_request() -> None:
    with pytest.raises(ProtocolError, match="client id ends at byte 30010"):
        decode_request(struct.pack(">hhih", 18, 0, 1, 30000) + b"xy")


def test_a_header_whose_tag_passes_the_end_is_no_request() -> None:
    whole = struct.pack(">hhihB", 18, 3, 1, -1, 1) + b"\x09\x7f"
    with pytest.raises(ProtocolError, match="within its tagged fields"):
        decode_request(whole)


def test_a_response_that_is_shorter_than_its_correlation_id_is_none() -> None:
    for size in range(4):
        with pytest.raises(ProtocolError):
            decode_response(ApiVersionsRequest, 0, bytes(size))


@pytest.mark.parametrize("cls", [CreatePartitionsRequest, OffsetFetchRequest])
def test_a_decoded_message_takes_a_bounded_multiple_of_its_frame(cls: type[Request]) -> None:
    """The densest messages that there are (`python -m tests.campaigns.hostile` measures all of them)."""
    version = cls.max_version
    for message in dense_messages(cls, version):
        assert memory_multiple(cls, version, message) < MEMORY_MULTIPLE
