"""The names of confluent_kafka and of its consumers: each is here, or listed with the reason why it is not.

`test_same_as_confluent_inventory` has them one by one, with their arguments.
"""

import inspect
from types import ModuleType
from typing import Any

import confluent_kafka
import pytest

import headrace
import headrace.aio
from tests.support.same_as_confluent import by_name

SHARE_GROUPS = {"AcknowledgeType", "ConcurrentModificationException", "DeserializingShareConsumer",
                "IllegalStateException", "Messages", "ShareConsumer", "delivery_count"}
"""Names of share groups (KIP-932), which have comparisons of their own."""

LEFT_OUT = {
    "executor": "no threads are needed: what is given to AIOConsumer and AIOProducer is not used",
}
"""In `confluent_kafka` itself and in its asyncio clients. Everything else of confluent_kafka.aio that is no client
(AsyncLogger, ReentryContext, async_call, wrap_callback and the like, aio.producer) is how it brings a blocking client
to a loop by means of threads, which does not happen here."""


def public(owner: Any) -> set[str]:
    modules = {name for name in dir(owner) if isinstance(getattr(owner, name), ModuleType)}
    return {name for name in dir(owner) if not name.startswith("_")} - modules - {"os"}


def test_the_names_of_the_package_are_here_or_left_out_for_a_reason() -> None:
    missing = {name for name in public(confluent_kafka) if not hasattr(headrace, name)}
    assert missing - SHARE_GROUPS <= set(LEFT_OUT)
    assert [name for name in LEFT_OUT if hasattr(headrace, name)] == [], "what is here is not left out"


@pytest.mark.parametrize("name", confluent_kafka.aio.__all__)
def test_the_asyncio_clients_have_the_members_of_the_peers(name: str) -> None:
    ours = getattr(headrace.aio, name)
    assert public(getattr(confluent_kafka.aio, name)) - set(dir(ours)) <= set(LEFT_OUT)


def test_no_asyncio_client_of_the_peer_is_missing() -> None:
    assert set(confluent_kafka.aio.__all__) <= set(headrace.aio.__all__)


@by_name({name: name for name in (
    "Consumer", "DeserializingConsumer", "IsolationLevel", "KafkaError", "KafkaException", "Message", "Producer",
    "SerializingProducer", "ThrottleEvent", "TopicPartition", "Uuid")})
def test_classes_have_the_members_of_the_peers(case: str) -> None:
    theirs, ours = getattr(confluent_kafka, case), getattr(headrace, case)
    assert public(theirs) - SHARE_GROUPS <= set(dir(ours)) | set(getattr(ours, "__slots__", ()))


@by_name({name: name for name in ("consume", "poll", "close", "__init__")})
def test_consumers_of_objects_take_the_same_arguments(case: str) -> None:
    ours, theirs = (inspect.signature(getattr(kafka.DeserializingConsumer, case)).parameters.values()
                    for kafka in (headrace, confluent_kafka))
    assert [(p.name, p.default) for p in ours] == [(p.name, p.default) for p in theirs]
