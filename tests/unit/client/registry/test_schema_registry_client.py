"""The blocking face: threads, forks, Ctrl-C and closing."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from headrace.client.registry import schema_registry_client
from headrace.errors import ClientClosedError
from headrace.schema_registry import Schema, SchemaRegistryClient
from headrace.schema_registry.mock_schema_registry_client import MockSchemaRegistryClient
from tests.support.later import later
from tests.support.let_go import is_gone, until
from tests.support.scripted_registry import Said, ScriptedRegistry

TEXT = Schema('"string"')


def test_threads_that_ask_the_same_at_once_send_one_request(registry: ScriptedRegistry) -> None:
    go = threading.Event()
    registry.otherwise = lambda asked: Said({"id": 7, "schema": '"string"'}, until=go)
    with SchemaRegistryClient({"url": registry.url}) as client, ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(client.get_schema, 7) for _ in range(8)]
        registry.came.acquire()
        go.set()
        assert [future.result() for future in futures] == [TEXT] * 8
    assert len(registry.asked) == 1, "a thread that comes after the answer finds it remembered"


def test_ctrl_c_ends_a_call_long_before_its_time_is_over(registry: ScriptedRegistry) -> None:
    never = threading.Event()
    registry.otherwise = lambda asked: Said([], until=never)
    pressed = []

    def press() -> None:
        registry.came.acquire()
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    with SchemaRegistryClient({"url": registry.url}) as client:
        try:
            with pytest.raises(KeyboardInterrupt), later(0.0, press):
                client.get_subjects()
            took_s = time.monotonic() - pressed[0]
        finally:
            never.set()
        assert took_s < 10
        registry.otherwise = lambda asked: ["a"]
        assert client.get_subjects() == ["a"]


def test_a_client_goes_on_in_a_child_and_in_the_parent(registry: ScriptedRegistry) -> None:
    registry.otherwise = lambda asked: ["a"]
    with SchemaRegistryClient({"url": registry.url}) as client:
        assert client.get_subjects() == ["a"]
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(0 if client.get_subjects() == ["a"] else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert client.get_subjects() == ["a"]
    assert registry.connections == 2


def test_a_closed_client_refuses_calls_and_may_be_closed_again(registry: ScriptedRegistry) -> None:
    registry.answers(["a"])
    for url in (registry.url, "mock://"):
        client = SchemaRegistryClient({"url": url})
        assert client.get_subjects() in ([], ["a"])
        client.close()
        client.close()
        with pytest.raises(ClientClosedError, match="is closed"):
            client.get_subjects()


def test_a_client_that_is_dropped_closes_its_connections(registry: ScriptedRegistry) -> None:
    registry.answers(["a"])
    client = SchemaRegistryClient({"url": registry.url})
    client.get_subjects()
    engine = client._engine
    del client
    gc.collect()
    end = time.monotonic() + 10
    while engine.connected and time.monotonic() < end:
        time.sleep(0.001)
    assert not engine.connected


def test_a_source_of_tokens_that_leads_back_to_a_client_does_not_keep_it(registry: ScriptedRegistry) -> None:
    registry.answers(["a"])

    class Owner:
        def __init__(self) -> None:
            self.client = SchemaRegistryClient({
                "url": registry.url, "bearer.auth.credentials.source": "CUSTOM",
                "bearer.auth.custom.provider.function": self.token, "bearer.auth.custom.provider.config": {}})

        def token(self, config: Any) -> dict[str, str]:
            return {"bearer.auth.token": "t", "bearer.auth.logical.cluster": "l", "bearer.auth.identity.pool.id": "p"}

    owner = Owner()
    assert owner.client.get_subjects() == ["a"]
    gone, sessions = weakref.ref(owner), owner.client._engine.sessions
    assert sessions
    del owner
    until(lambda: is_gone(gone))
    until(lambda: not sessions)


def test_it_gives_its_properties_back_and_shows_no_secret(registry: ScriptedRegistry) -> None:
    conf = {"url": registry.url, "basic.auth.user.info": "user:secret"}
    client = SchemaRegistryClient(conf)
    assert client.config() is conf
    assert "secret" not in repr(client)


def test_a_mock_registry_is_asked_by_its_url() -> None:
    first, second = (SchemaRegistryClient({"url": "mock://face"}) for _ in range(2))
    assert first.register_schema("s", TEXT) == 1
    assert second.get_latest_version("s").schema == TEXT
    assert SchemaRegistryClient({"url": "mock://other"}).get_subjects() == []


@pytest.mark.parametrize(("url", "kind"), [
    ("mock://", MockSchemaRegistryClient), ("mock://a", MockSchemaRegistryClient), ("http://a", SchemaRegistryClient)])
def test_a_new_client_is_a_mock_where_the_url_says_so(url: str, kind: type) -> None:
    assert type(SchemaRegistryClient.new_client({"url": url})) is kind


def test_a_mock_client_mocks_other_urls_too() -> None:
    client = MockSchemaRegistryClient({"url": "http://registry:8081"})
    assert client.register_schema("s", TEXT) == 1


def test_a_client_without_requests_needs_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise AssertionError("there is nothing to send")

    gc.collect()  # clients of other tests close their connections there
    monkeypatch.setattr(schema_registry_client, "loop_thread", refuse)
    for url in ("mock://", "http://a"):
        client = SchemaRegistryClient({"url": url})
        client.clear_caches()
        client.close()
        del client
        gc.collect()
