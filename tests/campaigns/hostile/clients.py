"""A client that gets hostile bytes for an answer: the request ends, and the next one is answered."""

from __future__ import annotations

import asyncio
import struct
from random import Random
from typing import Any

from headrace.client.core import ClientCore
from headrace.config import ADMIN, Config
from headrace.errors import KafkaError, KafkaException
from headrace.wire.frame import RequestFrame
from headrace.wire.messages.cluster.metadata import MetadataRequest
from headrace.wire.messages.cluster.session import ApiVersionsRequest, ApiVersionsResponse
from tests.campaigns.conformance.wire_values import random_message
from tests.support.scripted_broker import ScriptedBroker, api_versions

from .frames import Frame

_CONFIG = Config(ADMIN, {"bootstrap.servers": "broker:1", "reconnect.backoff.ms": 1, "reconnect.backoff.max.ms": 1,
                         "error_cb": lambda error: None})
_TIME_S = 5.0
_TALK = (ApiVersionsRequest, MetadataRequest)
"""What a client asks by itself: these cannot be the request that is tried."""


def can_be_asked(source: Frame) -> bool:
    """Whether a frame can be the answer to a request of a client's user."""
    return source.kind == "response" and source.cls not in _TALK


def outlive(data: bytes, source: Frame, chance: Random) -> str:
    """Ask, answer with hostile bytes, and ask again.

    Args:
        data: a damaged response without its length.
        source: the response as it was.
        chance: how the damage is sent.

    Returns:
        What became of the first request.

    Raises:
        AssertionError: the client does not go on.
    """
    return asyncio.run(_outlive(data, source, chance))


async def _outlive(data: bytes, source: Frame, chance: Random) -> str:
    broker = ScriptedBroker(node1=("broker", 1))
    broker.on(ApiVersionsRequest, lambda frame: _only(source, frame))
    how = chance.choice(("framed", "framed", "another's", "bare"))

    def hostile(frame: RequestFrame) -> bytes:
        broker.on(source.cls, lambda again: _framed(source.data, again.correlation_id))
        if how == "bare":
            broker.open[-1].send(data)
            broker.open[-1].hang_up()
            return b""
        return _framed(data, frame.correlation_id + (how != "framed"))

    broker.on(source.cls, hostile)
    errors: list[KafkaError] = []
    core = ClientCore(_CONFIG, connector=broker.connector)
    core.on_error = errors.append
    try:
        await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, _TIME_S)
        request: Any = random_message(source.cls, source.version, chance)
        told = "answered"
        try:
            await core.driver.request(1, request, _TIME_S)
        except KafkaException as failed:
            lost, told = failed.error, failed.error.str()
            assert (lost.code(), lost.retriable(), lost.maybe_applied) == (KafkaError._TRANSPORT, True, True), told
            assert "\n" not in told, told
        await core.driver.request(1, request, _TIME_S)
        assert not [error for error in errors if error.fatal()], errors
        return told
    finally:
        await core.close()


def _only(source: Frame, frame: RequestFrame) -> ApiVersionsResponse:
    answer = api_versions(frame)
    for api in answer.api_keys:
        if api.api_key == source.cls.api_key:
            api.min_version = api.max_version = source.version
    return answer


def _framed(data: bytes, correlation_id: int) -> bytes:
    body = struct.pack(">i", correlation_id) + data[4:]
    return struct.pack(">i", len(body)) + body
