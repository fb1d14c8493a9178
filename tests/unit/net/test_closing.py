"""Before connections are closed, the replies are waited for without which bytes would be lost."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from headrace.machines.cluster.in_flight import ClientRequest, InFlightRequests
from headrace.machines.machine import Send
from headrace.net.closing import last_replies
from headrace.testing.simulated_clock import SimulatedLoop
from headrace.wire.frame import encode_response
from headrace.wire.messages.groups.classic_groups import HeartbeatRequest, HeartbeatResponse

MOST_S = 1.0


class Nobody:
    def on_reply(self, send: object, reply: object, now: float) -> None: ...
    def on_error(self, send: object, error: object, now: float) -> None: ...


class Pipeline(InFlightRequests):
    """One with a request that is answered, and before it one that is not."""

    def __init__(self, silent: bool = True, awaited: bool = True, flushed: bool = True) -> None:
        super().__init__("me")
        self.awaited = self.asks(True) if awaited else None
        if silent:
            self.asks(False)
        if flushed:
            self.sent()

    def asks(self, expects_reply: bool) -> ClientRequest:
        send = Send(1, HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 5.0,
                    expects_reply=expects_reply, version=4)
        call = ClientRequest(Nobody(), send, 30.0)
        self.push(call)
        return call

    def answer(self) -> None:
        assert self.awaited is not None
        self.take(b"".join(encode_response(HeartbeatResponse(), 4, self.awaited.correlation_id))[4:])


def waited_s(pipelines: list[Pipeline], meanwhile: Callable[[], Coroutine[Any, Any, None]] | None = None) -> float:
    """Simulated seconds that it takes."""
    async def run() -> float:
        loop = asyncio.get_running_loop()
        task = None if meanwhile is None else loop.create_task(meanwhile())
        await last_replies(pipelines)
        ended = loop.time()
        if task is not None:
            await task
        return ended

    loop = SimulatedLoop()
    found = loop.run(run())
    assert loop.failures == []
    return round(found, 3)


@pytest.mark.parametrize("pipelines", [
    [], [Pipeline(silent=False)], [Pipeline(awaited=False)], [Pipeline(flushed=False)],
], ids=["no connection", "all is acknowledged", "no reply will come", "not all is sent"])
def test_nothing_is_waited_for_where_waiting_would_save_nothing(pipelines: list[Pipeline]) -> None:
    assert waited_s(pipelines) == 0


def test_all_replies_that_are_owed_are_waited_for() -> None:
    pipelines = [Pipeline(), Pipeline(silent=False), Pipeline()]

    async def answers() -> None:
        await asyncio.sleep(0.3)
        pipelines[0].answer()
        await asyncio.sleep(0.4)
        pipelines[2].answer()

    assert waited_s(pipelines, answers) == 0.7


def test_a_connection_that_is_lost_meanwhile_is_not_waited_for() -> None:
    pipeline = Pipeline()

    async def lost() -> None:
        await asyncio.sleep(0.2)
        pipeline.drain()

    assert waited_s([pipeline], lost) == 0.2


def test_a_broker_that_does_not_answer_is_waited_for_a_second_and_its_late_answer_harms_nobody() -> None:
    pipelines = [Pipeline(), Pipeline()]

    async def one_is_late() -> None:
        await asyncio.sleep(0.1)
        pipelines[0].answer()
        await asyncio.sleep(5)
        pipelines[1].answer()
        pipelines[1].drain()

    assert waited_s(pipelines, one_is_late) == MOST_S
