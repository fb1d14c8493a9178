"""Calls about configurations: single entries change, whole ones are replaced, and what cannot be is refused first."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from headrace import KafkaError, KafkaException
from headrace.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from headrace.client.admin.admin_calls import AdminCalls
from headrace.client.admin.admin_engine import AdminEngine
from headrace.client.core import ClientCore
from headrace.config import ADMIN, Config
from headrace.machines.machine import ANY_NODE
from headrace.testing import EmbeddedBroker
from tests.support.scripted_broker import ScriptedBroker, admin_config

PATIENCE_S = 10
SET, DELETE, APPEND = AlterConfigOpType.SET, AlterConfigOpType.DELETE, AlterConfigOpType.APPEND
SUBTRACT = AlterConfigOpType.SUBTRACT


@pytest.fixture(scope="module")
def admin() -> Iterator[AdminClient]:
    with (EmbeddedBroker(topics={"t": 1}) as broker,
          AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as made):
        yield made


def changed(*entries: Any) -> ConfigResource:
    return ConfigResource("topic", "t", incremental_configs=list(entries))


def value(admin: AdminClient, name: str) -> str | None:
    resource = ConfigResource("topic", "t")
    return admin.describe_configs([resource])[resource].result(PATIENCE_S)[name].value


@pytest.mark.filterwarnings("ignore:.*incremental_alter_configs:DeprecationWarning")
def test_one_entry_changes_and_the_others_stay(admin: AdminClient) -> None:
    first = changed(ConfigEntry("retention.ms", "5000", incremental_operation=SET),
                    ConfigEntry("cleanup.policy", "compact", incremental_operation=APPEND))
    admin.incremental_alter_configs([first])[first].result(PATIENCE_S)
    assert (value(admin, "retention.ms"), value(admin, "cleanup.policy")) == ("5000", "delete,compact")
    second = changed(ConfigEntry("retention.ms", None, incremental_operation=DELETE))
    admin.incremental_alter_configs([second])[second].result(PATIENCE_S)
    assert (value(admin, "retention.ms"), value(admin, "cleanup.policy")) == ("604800000", "delete,compact")
    whole = ConfigResource("topic", "t", set_config={"retention.ms": "7"})
    admin.alter_configs([whole], validate_only=True)[whole].result(PATIENCE_S)
    assert value(admin, "cleanup.policy") == "delete,compact"
    admin.alter_configs([whole])[whole].result(PATIENCE_S)
    assert (value(admin, "retention.ms"), value(admin, "cleanup.policy")) == ("7", "delete")


@pytest.mark.filterwarnings("ignore:.*incremental_alter_configs:DeprecationWarning")
def test_a_list_is_added_to_once_and_taken_from(admin: AdminClient) -> None:
    for operation, given, after in ((SET, "compact", "compact"), (APPEND, "compact,delete", "compact,delete"),
                                    (SUBTRACT, "compact", "delete"), (SUBTRACT, "compact", "delete")):
        one = changed(ConfigEntry("cleanup.policy", given, incremental_operation=operation))
        admin.incremental_alter_configs([one])[one].result(PATIENCE_S)
        assert value(admin, "cleanup.policy") == after
    broker = ConfigResource("broker", "1", incremental_configs=[
        ConfigEntry("num.partitions", "5", incremental_operation=SET)])
    with pytest.raises(KafkaException) as refused:
        admin.incremental_alter_configs([broker])[broker].result(PATIENCE_S)
    assert refused.value.error == KafkaError.INVALID_REQUEST
    missing = ConfigResource("topic", "missing", set_config={"retention.ms": "7"})
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC_OR_PART"):
        admin.alter_configs([missing])[missing].result(PATIENCE_S)


@pytest.mark.parametrize(("entries", "error"), [
    ((), ValueError), ("something", TypeError), ((ConfigEntry("a", "b"),), TypeError),
    ((ConfigEntry(None, "b", incremental_operation=SET),), TypeError),  # type: ignore[arg-type]
    ((ConfigEntry("a", None, incremental_operation=SET),), TypeError),
    ((ConfigEntry("a", 5, incremental_operation=SET),), TypeError),  # type: ignore[arg-type]
])
def test_a_change_must_say_what_happens_to_what(admin: AdminClient, entries: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        admin.incremental_alter_configs([changed(*entries)])


@pytest.mark.parametrize("resource", [ConfigResource("any", "x"), ConfigResource("transactional_id", "x"),
                                      ConfigResource("topic", "")], ids=repr)
def test_what_has_no_configuration_is_refused(admin: AdminClient, resource: ConfigResource) -> None:
    with pytest.raises(ValueError, match="has no"):
        admin.describe_configs([resource])


def test_a_broker_must_be_a_number(admin: AdminClient) -> None:
    with pytest.raises(TypeError):
        admin.describe_configs([ConfigResource("topic", "t")], broker="1")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="broker is -5"):
        admin.describe_configs([ConfigResource("topic", "t")], broker=-5)


def test_a_broker_that_is_not_there_keeps_nobody_waiting(admin: AdminClient) -> None:
    known, unknown = ConfigResource("topic", "t"), ConfigResource("broker", "77")
    found = admin.describe_configs([unknown, known], request_timeout=30)
    assert found[known].result(PATIENCE_S)
    assert not found[unknown].done()


@pytest.mark.filterwarnings("ignore:.*incremental_alter_configs:DeprecationWarning")
def test_nothing_is_a_text_that_the_broker_refuses(admin: AdminClient) -> None:
    nothing = ConfigResource("topic", "t", set_config={"retention.ms": None})  # type: ignore[dict-item]
    error = admin.alter_configs([nothing])[nothing].exception(PATIENCE_S)
    assert isinstance(error, KafkaException)
    assert error.error == KafkaError.INVALID_CONFIG


def test_resources_with_a_configuration_are_listed(admin: AdminClient) -> None:
    assert ConfigResource("topic", "t") in admin.list_config_resources(
        [ConfigResource.Type.TOPIC]).result(PATIENCE_S)


def test_broker_0_is_asked_itself_and_any_for_the_defaults_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    async def at(self: AdminEngine, destination: int, *_: Any, **__: Any) -> dict[Any, Any]:
        asked.append(destination)
        return {None: {}}

    async def run() -> None:
        monkeypatch.setattr(AdminEngine, "at", at)
        core = ClientCore(Config(ADMIN, admin_config()), connector=ScriptedBroker(node0=("zero", 0)).connector)
        calls = AdminCalls(core)
        for resource, broker in (("topic", "t"), 0), (("broker", "0"), -1), (("broker", ""), -1), (("topic", "t"), -1):
            await calls.describe_configs([ConfigResource(*resource)], broker=broker).results()
        await calls.describe_api_versions(0)
        await core.close()

    asyncio.run(run())
    assert asked == [0, 0, ANY_NODE, ANY_NODE, 0]
