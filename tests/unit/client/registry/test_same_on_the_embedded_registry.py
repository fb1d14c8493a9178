"""confluent_kafka's registry clients and ours at the embedded registry: the same calls have the same results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import confluent_kafka.schema_registry
import pytest

import headrace.schema_registry
from headrace.testing import EmbeddedBroker

PACKAGES = (confluent_kafka.schema_registry, headrace.schema_registry)
SUBJECT = "orders/2 #%?ü-value"

Call = Callable[[ModuleType, Any, str], Any]


def record(*fields: str) -> str:
    listed = ", ".join(f'{{"name": "{field}", "type": "int"}}' for field in fields)
    return f'{{"type": "record", "name": "Order", "fields": [{listed}]}}'


def known(found: Any) -> Any:
    """Where a schema is registered, without ids and GUIDs, which the registry counts for both packages."""
    return found.version, found.schema.to_dict()


def contract(kafka: ModuleType) -> Any:
    return kafka.Metadata(None, kafka.MetadataProperties({"owner of": "x/y"}), None)


CALLS: list[Call] = [
    lambda k, c, s: known(c.get_latest_version(s)),
    lambda k, c, s: c.register_schema(s, k.Schema(record("a"))) > 0,
    lambda k, c, s: c.register_schema(s, k.Schema(record("a"), metadata=contract(k))) > 0,
    lambda k, c, s: c.register_schema(s, k.Schema(record("b"))),
    lambda k, c, s: c.register_schema(s, k.Schema("nonsense")),
    lambda k, c, s: c.test_compatibility(s, k.Schema(record("b"))),
    lambda k, c, s: c.test_compatibility_all_versions(s, k.Schema(record("a"))),
    lambda k, c, s: known(c.get_latest_version(s)),
    lambda k, c, s: known(c.get_version(s, 1)),
    lambda k, c, s: known(c.get_version(s, 9)),
    lambda k, c, s: known(c.lookup_schema(s, k.Schema(record("a")))),
    lambda k, c, s: known(c.lookup_schema(s, k.Schema(record("c")))),
    lambda k, c, s: c.get_schema(99999),
    lambda k, c, s: c.get_schema_by_guid("no-guid"),
    lambda k, c, s: c.get_schema_types(),
    lambda k, c, s: c.get_versions(s),
    lambda k, c, s: c.get_versions("nobody's"),
    lambda k, c, s: c.get_referenced_by(s, 1),
    lambda k, c, s: c.get_compatibility(),
    lambda k, c, s: c.get_compatibility(s),
    lambda k, c, s: c.set_compatibility(s, "full"),
    lambda k, c, s: c.set_compatibility(s, "somewhat"),
    lambda k, c, s: c.get_config(s),
    lambda k, c, s: c.delete_config(s),
    lambda k, c, s: c.get_mode(s),
    lambda k, c, s: c.get_global_mode(),
    lambda k, c, s: c.update_mode(s, "READONLY"),
    lambda k, c, s: c.register_schema(s, k.Schema('"string"')),
    lambda k, c, s: c.delete_mode(s),
    lambda k, c, s: c.delete_version(s, 1),
    lambda k, c, s: c.get_versions(s),
    lambda k, c, s: c.get_versions(s, deleted=True),
    lambda k, c, s: c.delete_subject(s, permanent=True),
    lambda k, c, s: c.delete_subject(s),
    lambda k, c, s: c.delete_subject(s, permanent=True),
    lambda k, c, s: c.get_subjects(s),
]
LOOKED_UP: list[Call] = [
    lambda k, c, s: c.register_schema(s, k.Schema(record("a"))) > 0,
    lambda k, c, s: known(c.lookup_schema(s, k.Schema(record("a")))),
    lambda k, c, s: known(c.get_version(s, 1)),
    lambda k, c, s: c.get_schema(c.lookup_schema(s, k.Schema(record("a"))).schema_id, s),
    lambda k, c, s: c.get_schema_by_guid(c.lookup_schema(s, k.Schema(record("a"))).guid),
    lambda k, c, s: c.register_schema_full_response(s, k.Schema(record("a"))).schema,
    lambda k, c, s: known(c.lookup_schema(s, k.Schema(record("a").replace(" ", "  ")))),
    lambda k, c, s: known(c.lookup_schema(s, k.Schema(record("a")))),
    lambda k, c, s: known(c.get_version(s, 1)),
    lambda k, c, s: c.delete_version(s, 1),
    lambda k, c, s: known(c.get_version(s, 1)),
    lambda k, c, s: known(c.lookup_schema(s, k.Schema(record("a")))),
    lambda k, c, s: known(c.get_version(s, 1)),
]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with EmbeddedBroker(registry=True) as broker:
        yield broker.registry_url


def plain(result: Any) -> Any:
    return result.to_dict() if hasattr(result, "to_dict") else result


def failed(error: Exception, context: str) -> Any:
    said = (getattr(error, name) for name in ("http_status_code", "error_code", "error_message"))
    return [str(each).replace(context, "CONTEXT") for each in said]


class Talk:
    """An asyncio client as if it were a blocking one, on a loop of its own."""

    def __init__(self, client: Any) -> None:
        self._client, self._loop = client, asyncio.new_event_loop()

    def __getattr__(self, name: str) -> Any:
        def called(*args: Any, **named: Any) -> Any:
            return self._loop.run_until_complete(getattr(self._client, name)(*args, **named))

        return called

    def close(self) -> None:
        self._loop.run_until_complete(self._client.aclose())
        self._loop.close()


def results(kafka: ModuleType, kind: str, url: str, context: str, calls: list[Call]) -> list[Any]:
    client = getattr(kafka, kind)({"url": url, "max.retries": 0})
    talk = Talk(client) if kind.startswith("Async") else client
    found: list[Any] = []
    for call in calls:
        try:
            found.append(plain(call(kafka, talk, f":.{context}:{SUBJECT}")))
        except Exception as error:
            found.append(failed(error, context))
    talk.close()
    return found


def of_both(kind: str, url: str, calls: list[Call]) -> list[list[Any]]:
    return [results(kafka, kind, url, f"{kind}-{len(calls)}-{kafka.__name__.partition('.')[0]}", calls)
            for kafka in PACKAGES]


@pytest.mark.parametrize("kind", ["SchemaRegistryClient", "AsyncSchemaRegistryClient"])
def test_what_was_looked_up_has_the_callers_text_until_it_is_deleted(kind: str, url: str) -> None:
    theirs, ours = of_both(kind, url, LOOKED_UP)
    assert ours == theirs
    assert ours[2][1]["schema"] == record("a")
    assert [one[0] for one in ours[-3:]] == ["404"] * 3


@pytest.mark.parametrize("kind", ["SchemaRegistryClient", "AsyncSchemaRegistryClient"])
def test_calls_have_the_same_results(kind: str, url: str) -> None:
    theirs, ours = of_both(kind, url, CALLS)
    for number, (their, our) in enumerate(zip(theirs, ours, strict=True)):
        assert our == their, f"call {number}"
    assert sum(isinstance(one, list) and one[:1] in (["404"], ["409"], ["422"]) for one in ours) > 10
