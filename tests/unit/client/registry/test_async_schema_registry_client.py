"""The asyncio face: the calls of the blocking one, awaited."""

from __future__ import annotations

import asyncio
import inspect
import threading

import pytest

from headrace.client.registry.async_schema_registry_client import (
    AsyncMockSchemaRegistryClient,
    AsyncSchemaRegistryClient,
)
from headrace.client.registry.schema_registry_client import SchemaRegistryClient
from headrace.errors import ClientClosedError
from headrace.types.registry import Schema
from tests.support.scripted_registry import Said, ScriptedRegistry

TEXT = Schema('"string"')
PLAIN = {"config", "new_client"}
"""What waits for nothing."""


def public(face: type) -> dict[str, object]:
    return {name: vars(face)[name] for name in vars(face) if not name.startswith("_")}


def test_both_faces_have_the_same_calls_with_the_same_parameters() -> None:
    ours, blocking = public(AsyncSchemaRegistryClient), public(SchemaRegistryClient)
    assert set(ours) - {"aclose"} == set(blocking) - {"close"}
    for name in set(ours) - {"aclose", "new_client"}:
        call = getattr(AsyncSchemaRegistryClient, name)
        assert inspect.signature(call) == inspect.signature(getattr(SchemaRegistryClient, name)), name
        assert inspect.iscoroutinefunction(call) == (name not in PLAIN), name


def test_a_client_may_be_made_before_there_is_a_loop(registry: ScriptedRegistry) -> None:
    registry.otherwise = lambda asked: {"id": 7}
    client = AsyncSchemaRegistryClient({"url": registry.url})

    async def main() -> None:
        async with client:
            assert await client.register_schema("s", TEXT) == await client.register_schema("s", TEXT) == 7
        with pytest.raises(ClientClosedError):
            await client.get_subjects()

    asyncio.run(main())
    assert len(registry.asked) == 1


def test_tasks_that_ask_the_same_at_once_send_one_request(registry: ScriptedRegistry) -> None:
    go = threading.Event()
    registry.otherwise = lambda asked: Said({"id": 7, "schema": '"string"'}, until=go)

    async def main() -> None:
        async with AsyncSchemaRegistryClient({"url": registry.url}) as client:
            tasks = [asyncio.create_task(client.get_schema(7)) for _ in range(50)]
            await asyncio.to_thread(registry.came.acquire)
            go.set()
            assert await asyncio.gather(*tasks) == [TEXT] * 50

    asyncio.run(main())
    assert len(registry.asked) == 1


def test_other_tasks_run_while_a_call_waits(registry: ScriptedRegistry) -> None:
    go = threading.Event()
    registry.otherwise = lambda asked: Said([], until=go)

    async def main() -> None:
        async with AsyncSchemaRegistryClient({"url": registry.url}) as client:
            call = asyncio.create_task(client.get_subjects())
            await asyncio.to_thread(registry.came.acquire)
            assert not call.done()
            go.set()
            assert await call == []

    asyncio.run(main())


def test_a_mock_registry_is_asked_by_its_url() -> None:
    async def main() -> None:
        client = AsyncSchemaRegistryClient({"url": "mock://both-faces"})
        assert await client.register_schema("s", TEXT) == 1
        assert SchemaRegistryClient({"url": "mock://both-faces"}).get_latest_version("s").schema == TEXT
        await client.clear_caches()
        assert await client.lookup_schema("s", TEXT) == await client.get_latest_version("s")
        await client.clear_latest_caches()

    asyncio.run(main())
    assert type(AsyncSchemaRegistryClient.new_client({"url": "mock://"})) is AsyncMockSchemaRegistryClient
    assert type(AsyncSchemaRegistryClient.new_client({"url": "http://a"})) is AsyncSchemaRegistryClient
    conf = {"url": "http://a"}
    assert AsyncSchemaRegistryClient(conf).config() is conf


def test_a_mock_client_mocks_other_urls_too() -> None:
    client = AsyncMockSchemaRegistryClient({"url": "http://registry:8081"})
    assert asyncio.run(client.register_schema("s", TEXT)) == 1
