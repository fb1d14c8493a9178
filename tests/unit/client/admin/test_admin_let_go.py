"""Admin clients that nobody holds any more and nobody has closed: they end, whatever still leads back to them."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from headrace.admin import AdminClient, NewTopic
from headrace.client.admin.aio_admin_client import AIOAdminClient
from headrace.errors import ClientClosedError
from headrace.testing import EmbeddedBroker
from tests.support.let_go import SOON_S, aio_until, is_gone, until

AWAY = {"bootstrap.servers": "127.0.0.1:1"}


@pytest.fixture(scope="module")
def conf() -> Iterator[dict[str, Any]]:
    with EmbeddedBroker(topics={"t": 1}) as broker:
        yield {"bootstrap.servers": broker.bootstrap_servers}


class Owner:
    """An application that owns a client and gives it its own methods to call."""

    def __init__(self, kind: Any, conf: dict[str, Any]) -> None:
        self.client = kind({**conf, "error_cb": self.told, "throttle_cb": self.told})

    def told(self, *arguments: Any) -> None:
        pass


@pytest.mark.parametrize("brokers", ["there", "away"])
def test_callbacks_that_lead_back_to_an_admin_client_do_not_keep_it(brokers: str, conf: dict[str, Any]) -> None:
    def used() -> tuple[weakref.ref[Any], weakref.ref[Any]]:
        owner = Owner(AdminClient, conf if brokers == "there" else AWAY)
        if brokers == "there":
            assert "t" in owner.client.list_topics(timeout=SOON_S).topics
        owner.client.poll(0.05)
        return weakref.ref(owner), weakref.ref(owner.client._core.driver)

    owner, driver = used()
    until(lambda: is_gone(owner))
    until(lambda: is_gone(driver))


def test_what_a_client_was_asked_for_that_is_let_go_fails_and_says_why() -> None:
    asked = AdminClient(AWAY).create_topics([NewTopic("made", 1)])["made"]
    with pytest.raises(ClientClosedError, match="nothing in the program held it any more: keep it in a variable"):
        asked.result(SOON_S)


@pytest.mark.parametrize("brokers", ["there", "away"])
def test_an_asyncio_admin_client_that_is_let_go_leaves_nothing(brokers: str, conf: dict[str, Any]) -> None:
    async def used() -> tuple[weakref.ref[Any], weakref.ref[Any]]:
        owner = Owner(AIOAdminClient, conf if brokers == "there" else AWAY)
        if brokers == "there":
            assert "t" in (await owner.client.list_topics(timeout=SOON_S)).topics
        return weakref.ref(owner), weakref.ref(owner.client._core.driver)

    async def main() -> None:
        owner, driver = await used()
        await aio_until(lambda: is_gone(owner))
        await aio_until(lambda: is_gone(driver))
        await aio_until(lambda: asyncio.all_tasks() == {asyncio.current_task()})

    asyncio.run(main())
