"""What all calls to a registry share: credentials, one request for many, and what an answer must be."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from headrace.client.registry.http_transport import RegistryRequest
from headrace.client.registry.registry_engine import RegistryEngine, id_of, part_of, registered, some_of, value_of
from headrace.client.waits import LoopWaits
from headrace.errors import ClientClosedError, ConfigError, SchemaRegistryError
from headrace.types.registry import RegisteredSchema, ServerConfig
from tests.support.scripted_registry import Said, ScriptedRegistry

LATEST = RegistryRequest("GET", ("subjects", "s", "versions", "latest"), {})


def test_many_who_ask_the_same_send_one_request(registry: ScriptedRegistry) -> None:
    go, kept = threading.Event(), list[Any]()
    registry.otherwise = lambda asked: Said({"id": 1}, until=go)

    def keep(answer: Any) -> str:
        kept.append(answer)
        return "kept"

    async def main() -> None:
        engine = RegistryEngine({"url": registry.url})

        def ask(request: RegistryRequest) -> asyncio.Task[str]:
            return asyncio.create_task(LoopWaits().run(engine.ask_once(nothing, lambda: request, keep)))

        askers, other = [ask(LATEST) for _ in range(20)], ask(LATEST._replace(query={"format": "x"}))
        for _ in range(2):
            await asyncio.to_thread(registry.came.acquire)
        go.set()
        assert await asyncio.gather(*askers, other) == ["kept"] * 21
        await engine.aclose()

    asyncio.run(main())
    assert len(registry.asked) == 2
    assert kept == [{"id": 1}] * 2


def test_what_is_remembered_is_not_asked_for_nor_what_came_meanwhile(registry: ScriptedRegistry) -> None:
    async def main() -> None:
        engine = RegistryEngine({"url": registry.url})
        found = iter([None, "meanwhile"])
        assert await LoopWaits().run(engine.ask_once(lambda: next(found), lambda: LATEST, str)) == "meanwhile"
        assert await LoopWaits().run(engine.ask_once(lambda: "known", lambda: LATEST, str)) == "known"
        await engine.aclose()

    asyncio.run(main())
    assert registry.asked == []


def nothing() -> None:
    """Nothing is remembered."""


def test_a_token_that_the_registry_refuses_is_not_used_again(registry: ScriptedRegistry) -> None:
    bearer = {"credentials.source": "OAUTHBEARER", "logical.cluster": "c", "client.id": "i", "client.secret": "s",
              "scope": "all", "issuer.endpoint.url": f"{registry.url}/token"}
    conf = {"url": registry.url, **{f"bearer.auth.{name}": value for name, value in bearer.items()}}
    registry.answers({"access_token": "t1", "expires_in": 60}, Said({"message": "revoked"}, 401),
                     {"access_token": "t2", "expires_in": 60}, {"id": 1})

    async def main() -> None:
        engine = RegistryEngine(conf)
        with pytest.raises(SchemaRegistryError, match="revoked"):
            await LoopWaits().run(engine.ask(LATEST))
        assert await LoopWaits().run(engine.ask(LATEST)) == {"id": 1}
        await engine.aclose()

    asyncio.run(main())
    assert [asked.headers["authorization"] for asked in registry.asked if asked.path != "/token"] == [
        "Bearer t1", "Bearer t2"]
    assert registry.asked[-1].headers["target-sr-cluster"] == "c"


def test_a_closed_engine_asks_nothing(registry: ScriptedRegistry) -> None:
    async def main() -> None:
        engine = RegistryEngine({"url": registry.url})
        await engine.aclose()
        with pytest.raises(ClientClosedError, match="is closed"):
            await LoopWaits().run(engine.ask(LATEST))
        await engine.aclose()

    asyncio.run(main())
    assert registry.asked == []


def test_it_is_connected_when_something_was_asked_over_http(registry: ScriptedRegistry) -> None:
    registry.answers({})

    async def main() -> None:
        engine = RegistryEngine({"url": registry.url})
        assert not engine.connected
        await LoopWaits().run(engine.ask(LATEST))
        assert engine.connected
        await engine.aclose()
        assert not engine.connected

    asyncio.run(main())
    assert not RegistryEngine({"url": "mock://"}).connected


def test_properties_are_checked_when_it_is_made() -> None:
    with pytest.raises(ConfigError, match=r"Unrecognized bearer.auth"):
        RegistryEngine({"url": "http://a", "bearer.auth.credentials.source": "X"})


@pytest.mark.parametrize("answer", [
    None, [], "text", 3, {"id": "3"}, {"version": 1.5}, {"guid": 3}, {"subject": []}, {"schema": {}},
    {"references": "x"}, {"metadata": []}, {"schemaType": 3},
])
def test_an_answer_that_describes_no_registered_schema_is_an_error(answer: Any) -> None:
    with pytest.raises(SchemaRegistryError, match="the registry's answer is no RegisteredSchema") as raised:
        registered(answer)
    assert (raised.value.http_status_code, raised.value.error_code) == (200, -1)


def test_an_answer_of_another_type_is_an_error() -> None:
    assert some_of(str, {"mode": "IMPORT"}, "mode") == "IMPORT"
    assert value_of(ServerConfig, {"compatibilityGroup": "g"}) == ServerConfig(compatibility_group="g")
    for kind, answer, name in ((str, {}, "mode"), (list, {}, ""), (str, [], "mode"), (bool, {"x": 1}, "x")):
        with pytest.raises(SchemaRegistryError, match=f"the registry's answer is no {kind.__name__}"):
            some_of(kind, answer, name)
    with pytest.raises(SchemaRegistryError, match=r"no ServerConfig .*'MAYBE' is not a valid"):
        value_of(ServerConfig, {"compatibilityLevel": "MAYBE"})


def test_a_schema_without_an_id_is_not_registered() -> None:
    assert id_of(RegisteredSchema("s", 1, 7)) == 7
    with pytest.raises(SchemaRegistryError, match="no id"):
        id_of(RegisteredSchema("s", 1, None))


def test_a_part_of_a_path_is_a_text_that_is_not_empty() -> None:
    assert part_of("subject_name", "s") == "s"
    with pytest.raises(TypeError, match="subject_name must be a str, not NoneType"):
        part_of("subject_name", None)
    with pytest.raises(ValueError, match="subject_name is empty"):
        part_of("subject_name", "")
