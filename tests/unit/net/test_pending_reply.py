"""A request that belongs to no machine: its answer goes to a future."""

import asyncio

import pytest

from headrace.errors import ClientClosedError, KafkaError, KafkaException
from headrace.machines.machine import Send
from headrace.net.pending_reply import PendingReply
from headrace.wire.messages.groups.classic_groups import HeartbeatRequest, HeartbeatResponse

SEND = Send(1, HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 5.0)
CUT = KafkaError(KafkaError._TRANSPORT, "b:1: cut", maybe_applied=True)


def test_the_reply_is_what_is_waited_for() -> None:
    async def run() -> None:
        caller, reply = PendingReply(asyncio.get_running_loop()), HeartbeatResponse(error_code=27)
        caller.on_reply(SEND, reply, 1.0)
        assert await caller.answer is reply

    asyncio.run(run())


def test_an_error_is_raised_as_it_is() -> None:
    async def run() -> None:
        caller = PendingReply(asyncio.get_running_loop())
        caller.on_error(SEND, CUT, 1.0)
        with pytest.raises(KafkaException, match="b:1: cut") as failed:
            await caller.answer
        assert failed.value.error is CUT

    asyncio.run(run())


def test_who_waits_while_the_client_is_closed_is_told_so_by_a_runtime_error() -> None:
    """As in confluent_kafka, and as who calls it afterwards."""
    async def run() -> None:
        caller = PendingReply(asyncio.get_running_loop())
        caller.on_error(SEND, KafkaError(KafkaError._DESTROY, "Metadata failed: the client is closed"), 1.0)
        with pytest.raises(ClientClosedError, match="Metadata failed: the client is closed") as failed:
            await caller.answer
        assert isinstance(failed.value, RuntimeError)
        assert failed.value.error == KafkaError._DESTROY

    asyncio.run(run())


def test_a_caller_that_has_given_up_is_told_nothing_and_harms_nobody() -> None:
    async def run() -> None:
        for tell in (lambda caller: caller.on_reply(SEND, HeartbeatResponse(), 1.0),
                     lambda caller: caller.on_error(SEND, CUT, 1.0)):
            caller = PendingReply(asyncio.get_running_loop())
            caller.answer.cancel()
            tell(caller)
            with pytest.raises(asyncio.CancelledError):
                await caller.answer

    asyncio.run(run())


def test_the_first_end_counts() -> None:
    async def run() -> None:
        caller, reply = PendingReply(asyncio.get_running_loop()), HeartbeatResponse()
        caller.on_reply(SEND, reply, 1.0)
        caller.on_error(SEND, CUT, 2.0)
        caller.on_reply(SEND, HeartbeatResponse(error_code=1), 3.0)
        assert await caller.answer is reply

    asyncio.run(run())
