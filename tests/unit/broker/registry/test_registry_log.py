"""The topic `_schemas`: Confluent's format, whoever writes it, and what is passed over."""

import json
from pathlib import Path
from typing import Any

import pytest

from headrace.broker.cluster import BrokerCluster
from headrace.broker.registry.registry_log import TOPIC, SchemaLog
from headrace.broker.registry.rest_api import RegistryApi
from headrace.records.batch_writer import write_batch
from headrace.testing import EmbeddedBroker
from tests.unit.broker.registry.conftest import Ask, asking

INT = {"schema": '"int"'}


def records(cluster: BrokerCluster) -> list[tuple[Any, Any]]:
    _, rows = SchemaLog(cluster).new()
    return [(json.loads(key or b""), None if value is None else json.loads(value)) for key, value in rows]


def write(cluster: BrokerCluster, key: bytes | None, value: bytes | None, codec: int = 0) -> None:
    """As while the topic was not compacted: only then may a key be missing."""
    topic = cluster.catalog.topics[TOPIC]
    topic.partitions[0].append(memoryview(write_batch([(0, 0, key, value, [])], codec=codec)),
                               topic.configs | {"cleanup.policy": "delete"}, 0)


def test_each_change_is_a_record_in_confluent_s_format(cluster: BrokerCluster, ask: Ask) -> None:
    ask("POST", "/subjects/s/versions", INT)
    ask("PUT", "/config", {"compatibility": "FULL"})
    ask("PUT", "/mode/s", {"mode": "READWRITE"})
    ask("DELETE", "/subjects/s")
    ask("DELETE", "/subjects/s?permanent=true")
    schema_key = {"keytype": "SCHEMA", "subject": "s", "version": 1, "magic": 1}
    assert records(cluster) == [
        (schema_key, {"subject": "s", "version": 1, "id": 1, "schema": '"int"', "deleted": False}),
        ({"keytype": "CONFIG", "subject": None, "magic": 0}, {"subject": None, "compatibilityLevel": "FULL"}),
        ({"keytype": "MODE", "subject": "s", "magic": 0}, {"subject": "s", "mode": "READWRITE"}),
        ({"keytype": "DELETE_SUBJECT", "subject": "s", "magic": 0}, {"subject": "s", "version": 1}),
        ({"keytype": "MODE", "subject": "s", "magic": 0}, None),
        (schema_key, None),
    ]
    assert cluster.catalog.topics[TOPIC].overrides == {"cleanup.policy": "compact"}


@pytest.mark.parametrize("codec", range(5))
def test_records_that_others_write_are_taken_in(cluster: BrokerCluster, ask: Ask, codec: int) -> None:
    ask("POST", "/subjects/s/versions", INT)
    value = {"subject": "t", "version": 3, "id": 9, "md5": "x", "schema": '"long"', "deleted": False}
    write(cluster, json.dumps({"keytype": "SCHEMA", "subject": "t", "version": 3, "magic": 1}).encode(),
          json.dumps(value).encode(), codec)
    assert ask("GET", "/subjects/t/versions/3")[1]["id"] == 9
    assert ask("POST", "/subjects/s/versions", {"schema": '"long"'})[1]["id"] == 9


@pytest.mark.parametrize(("key", "value"), [
    (None, None), (b"", b""), (b"{", b"{"), (b"[]", b"[]"), (b"\xff", b"\xff"), (b'{"keytype":"NOOP","magic":0}', None),
    (b'{"keytype":"NEW","magic":0}', b"{}"), (b'{"keytype":["SCHEMA"]}', b"{}"), (b'{"keytype":"SCHEMA"}', b"{}"),
    (b'{"keytype":"SCHEMA","subject":"s","version":"x"}', b"{}"),
    (b'{"keytype":"SCHEMA","subject":"t","version":1}', b'{"id":"x","schema":1}'),
    (b'{"keytype":"CONFIG","subject":"t"}', b"1"), (b'{"keytype":"MODE","subject":"t"}', b"{}"),
    (b'{"keytype":"DELETE_SUBJECT"}', b'{"subject":["s"]}'), (b"[" * 100_000, b""),
])
def test_records_that_are_not_understood_are_passed_over(
    cluster: BrokerCluster, ask: Ask, key: bytes | None, value: bytes | None
) -> None:
    ask("POST", "/subjects/s/versions", INT)
    before = ask("GET", "/schemas")
    write(cluster, key, value)
    assert ask("GET", "/schemas") == before
    assert ask("POST", "/subjects/u/versions", INT)[0] == 200


def test_a_topic_made_anew_begins_with_nothing(cluster: BrokerCluster, ask: Ask) -> None:
    ask("POST", "/subjects/s/versions", INT)
    cluster.catalog.delete(cluster.catalog.topics[TOPIC])
    assert ask("GET", "/subjects") == (200, [])
    assert ask("POST", "/subjects/t/versions", {"schema": '"long"'})[1]["id"] == 1
    assert ask("GET", "/subjects") == (200, ["t"])


def test_a_schema_too_large_for_the_topic_is_refused(cluster: BrokerCluster, ask: Ask) -> None:
    ask("POST", "/subjects/s/versions", INT)
    topic = cluster.catalog.topics[TOPIC]
    topic.configure({**topic.overrides, "max.message.bytes": "1000"})
    status, error = ask("POST", "/subjects/t/versions", {"schema": '{"type":"int","note":"%s"}' % ("x" * 2000)})
    assert (status, error["error_code"]) == (422, 42209)
    assert ask("GET", "/subjects") == (200, ["s"])


def test_a_restart_keeps_everything_where_the_log_is_on_disk(tmp_path: Path) -> None:
    calls = ("/schemas?deleted=true", "/config/s", "/subjects", "/schemas/ids/1")
    with EmbeddedBroker(data_dir=tmp_path) as broker:
        ask = broker.apply(lambda cluster: asking(RegistryApi(cluster)))
        for schema in (INT, {"schema": '"long"'}):
            assert broker.apply(lambda _, schema=schema: ask("POST", "/subjects/s/versions", schema))[0] == 200
        broker.apply(lambda _: ask("PUT", "/config/s", {"compatibility": "NONE"}))
        broker.apply(lambda _: ask("DELETE", "/subjects/s/versions/1"))
        before = [broker.apply(lambda _, call=call: ask("GET", call)) for call in calls]
    with EmbeddedBroker(data_dir=tmp_path) as broker:
        ask = broker.apply(lambda cluster: asking(RegistryApi(cluster)))
        assert [broker.apply(lambda _, call=call: ask("GET", call)) for call in calls] == before
