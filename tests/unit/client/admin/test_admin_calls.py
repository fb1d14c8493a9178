"""The admin client's calls are written once: both faces check the same arguments and offer the same calls."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headrace.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec
from headrace.aio import AIOAdminClient
from headrace.client.admin.admin_area import AdminArea
from headrace.client.admin.admin_calls import AdminCalls
from headrace.client.core import ClientCore
from headrace.config import ADMIN, Config
from headrace.errors import ClientClosedError
from headrace.types.records import TopicPartition
from tests.support.scripted_broker import admin_config

NOBODY = {"bootstrap.servers": "127.0.0.1:1", "error_cb": lambda error: None}

WRONG: list[tuple[str, Callable[[Any], Any], type[Exception], str]] = [
    ("create_topics", lambda admin: admin.create_topics(NewTopic("t")), TypeError, "new_topics: expected list"),
    ("create_topics of none", lambda admin: admin.create_topics([]), ValueError, "new_topics is empty"),
    ("delete_topics", lambda admin: admin.delete_topics("t"), TypeError, "topics: expected list of str"),
    ("create_partitions", lambda admin: admin.create_partitions(["t"]), TypeError, r"new_partitions\[0\] is str"),
    ("describe_configs", lambda admin: admin.describe_configs([]), ValueError, "resources is empty"),
    ("alter_configs", lambda admin: admin.alter_configs(None), TypeError, "resources: expected list"),
    ("incremental_alter_configs", lambda admin: admin.incremental_alter_configs([ConfigResource("topic", "t")]),
     ValueError, "has no change"),
    ("list_offsets", lambda admin: admin.list_offsets([]), TypeError, "topic_partition_offsets must be a dict"),
    ("list_offsets of none", lambda admin: admin.list_offsets({TopicPartition("t", -1): OffsetSpec.latest()}),
     ValueError, r"t\[-1\] is no partition"),
    ("delete_records", lambda admin: admin.delete_records([TopicPartition("t")]), ValueError, "is no partition"),
    ("delete_consumer_groups", lambda admin: admin.delete_consumer_groups([1]), TypeError, "group_ids"),
    ("list_consumer_groups", lambda admin: admin.list_consumer_groups(states="Empty"), TypeError, "states must be"),
]


@pytest.fixture(scope="module")
def blocking() -> Iterator[AdminClient]:
    with AdminClient(NOBODY) as admin:
        yield admin


@pytest.mark.filterwarnings("ignore:.*incremental_alter_configs:DeprecationWarning")
@pytest.mark.parametrize(("call", "error", "text"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_both_faces_refuse_the_same_arguments_with_the_same_words(
    blocking: AdminClient, call: Callable[[Any], Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text) as refused:
        call(blocking)

    async def run() -> None:
        async with AIOAdminClient(NOBODY) as admin:
            with pytest.raises(error) as again:
                await call(admin)
            assert str(again.value) == str(refused.value)

    asyncio.run(run())


def test_every_call_is_signed_by_both_faces() -> None:
    plumbing = {name for name, _ in inspect.getmembers(AdminArea, inspect.isfunction)}
    calls = {name for name, _ in inspect.getmembers(AdminCalls, inspect.isfunction) if not name.startswith("_")}
    calls -= plumbing
    assert len(calls) > 50
    for face in (AdminClient, AIOAdminClient):
        assert calls <= set(dir(face))
        for name in calls:
            assert inspect.signature(getattr(face, name)).return_annotation is not inspect.Signature.empty
            assert inspect.getdoc(getattr(face, name))


def test_a_closed_client_refuses_every_call_and_leaves_no_work_behind() -> None:
    async def run() -> None:
        core = ClientCore(Config(ADMIN, admin_config()))
        calls = AdminCalls(core)
        await core.close()
        asks: list[Callable[[], object]] = [
            lambda: calls.delete_topics(["t"]), lambda: calls.describe_cluster(), lambda: calls.list_topics(),
            lambda: calls.list_groups()]
        for ask in asks:
            with pytest.raises(ClientClosedError):
                ask()

    asyncio.run(run())
