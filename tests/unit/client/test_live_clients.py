"""What holds for a client of any kind: it cannot be copied, and who waits in it while it is closed hears so."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headrace import (
    Consumer,
    DeserializingConsumer,
    KafkaAsyncProducer,
    KafkaSyncProducer,
    Producer,
    SerializingProducer,
    ShareConsumer,
    TopicPartition,
)
from headrace.admin import AdminClient
from headrace.aio import AIOAdminClient, AIOConsumer, AIOProducer, AIOShareConsumer
from headrace.testing import EmbeddedBroker

RACES = 8


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with EmbeddedBroker(topics={"t": 1}) as broker:
        yield broker.bootstrap_servers


def sentence(copied: Callable[[Any], Any], client: Any) -> str:
    with pytest.raises(TypeError) as caught:
        copied(client)
    return str(caught.value)


@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("kind", [Producer, SerializingProducer, KafkaSyncProducer, KafkaAsyncProducer, Consumer,
                                  DeserializingConsumer, ShareConsumer, AdminClient])
def test_a_client_is_not_copied(servers: str, kind: Any, copied: Callable[[Any], Any]) -> None:
    group = {"group.id": "g"} if "Consumer" in kind.__name__ else {}
    with kind({"bootstrap.servers": servers, **group}) as client:
        assert f"cannot pickle '{kind.__name__}' object" in sentence(copied, client)


@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("kind", [AIOProducer, AIOConsumer, AIOShareConsumer, AIOAdminClient])
def test_an_asyncio_client_is_not_copied(servers: str, kind: Any, copied: Callable[[Any], Any]) -> None:
    async def run() -> str:
        group = {"group.id": "g"} if "Consumer" in kind.__name__ else {}
        client = kind({"bootstrap.servers": servers, **group})
        try:
            return sentence(copied, client)
        finally:
            await client.close()

    assert f"cannot pickle '{kind.__name__}' object" in asyncio.run(run())


CALLS: dict[str, tuple[Any, Callable[[Any], Any], str]] = {
    "Consumer.list_topics": (Consumer, lambda c: c.list_topics(timeout=5), "Handle has been closed"),
    "Consumer.cluster_id": (Consumer, lambda c: c.cluster_id(timeout=5), "Handle has been closed"),
    "Consumer.watermarks": (Consumer, lambda c: c.get_watermark_offsets(TopicPartition("t", 0), timeout=5), "Consumer"),
    "Consumer.committed": (Consumer, lambda c: c.committed([TopicPartition("t", 0)], timeout=5), "Consumer closed"),
    "Consumer.commit": (
        Consumer, lambda c: c.commit(offsets=[TopicPartition("t", 0, 0)], asynchronous=False), "Consumer closed"),
    "Consumer.times": (
        Consumer, lambda c: c.offsets_for_times([TopicPartition("t", 0, 0)], timeout=5), "Consumer closed"),
    "Producer.list_topics": (Producer, lambda p: p.list_topics(timeout=5), "Handle has been closed"),
    "AdminClient.list_topics": (AdminClient, lambda a: a.list_topics(timeout=5), "Handle has been closed"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_is_under_way_when_the_client_is_closed_says_what_a_later_one_says(servers: str, name: str) -> None:
    kind, call, text = CALLS[name]
    heard: list[BaseException] = []

    def call_on(client: Any) -> None:
        try:
            while True:
                call(client)
        except BaseException as error:
            heard.append(error)

    for number in range(RACES):
        client = kind({"bootstrap.servers": servers, **({"group.id": f"g{number}"} if kind is Consumer else {})})
        thread = threading.Thread(target=call_on, args=(client,))
        thread.start()
        time.sleep(0.02 + number / 1000)
        client.close()
        thread.join(10)
        assert not thread.is_alive()
    assert [str(error) for error in heard if not (isinstance(error, RuntimeError) and text in str(error))] == []
    assert len(heard) == RACES
