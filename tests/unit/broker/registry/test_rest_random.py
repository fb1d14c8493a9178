"""Requests at random, most of them wrong: each gets an answer, and the log alone says what came of them."""

import json
from random import Random
from typing import Any

import pytest

from headrace.broker.registry.rest_api import RegistryApi
from tests.unit.broker.registry.conftest import asking, new_cluster

SUBJECTS = ("a", "b", ":.c:a", "%0a", "")
VERSIONS = ("1", "2", "latest", "-1", "0", "x", "%C2%B2", "9" * 30)
PATHS = ("/subjects", "/subjects/{s}", "/subjects/{s}/versions", "/subjects/{s}/versions/{v}",
         "/subjects/{s}/versions/{v}/schema", "/subjects/{s}/versions/{v}/referencedby",
         "/subjects/{s}/metadata?key=a&value=b", "/schemas", "/schemas/ids/{v}?subject={s}",
         "/schemas/ids/{v}/subjects",
         "/schemas/ids/{v}/versions", "/schemas/guids/{v}/ids", "/config", "/config/{s}", "/mode",
         "/mode/{s}?force=true",
         "/compatibility/subjects/{s}/versions/{v}?verbose=true", "/compatibility/subjects/{s}/versions", "/contexts",
         "/contexts/{s}", "/contexts/.c/subjects/{s}/versions", "/%", "//", "/subjects/a?a=%ff&=&&offset=x")
QUERIES = ("", "?deleted=true", "?permanent=true", "?format=resolved", "?limit=2&offset=-1", "?normalize=true")
SCHEMAS = ('"int"', '"long"', '{"type":"record","name":"R","fields":[]}', '"nope"', '{"type":"string"}', "", None, 5,
           'syntax = "proto3"; message A {}')


def _body(random: Random) -> Any:
    reference = {"name": "x", "subject": random.choice(SUBJECTS), "version": random.choice((1, -1, 99, "1"))}
    return random.choice((
        {"schema": random.choice(SCHEMAS), "schemaType": random.choice(("AVRO", "JSON", "PROTOBUF", None, 5)),
         "id": random.choice((None, None, 1, 5, "x", -1)), "version": random.choice((None, None, 1, 3, "y")),
         "references": random.choice((None, [], [reference], [5], "q")),
         "metadata": random.choice((None, {}, {"properties": {"a": "b"}}, {"properties": 5}, [1]))},
        {"compatibility": random.choice(("NONE", "full", 5, None)), "normalize": random.choice((True, "x"))},
        {"mode": random.choice(("IMPORT", "readwrite", 5))}, {}, [], 7, None))


@pytest.mark.parametrize("seed", range(3))
def test_each_request_is_answered_and_the_log_has_all_that_came_of_it(seed: int) -> None:
    random, cluster = Random(seed), new_cluster()
    api = RegistryApi(cluster)
    statuses = set()
    for _ in range(2000):
        path = random.choice(PATHS).format(s=random.choice(SUBJECTS), v=random.choice(VERSIONS))
        query = "" if "?" in path else random.choice(QUERIES)
        method = random.choice(("GET", "GET", "POST", "POST", "PUT", "DELETE"))
        reply = api.handle(method, path + query, json.dumps(_body(random)).encode(), 1)
        statuses.add(reply.status)
        assert reply.status < 500
    assert {200, 404, 422} <= statuses
    ask, other = asking(api), asking(RegistryApi(cluster))
    for target in ("/schemas?deleted=true", "/config", "/config/a", "/mode", "/mode/a", "/contexts", "/subjects"):
        assert other("GET", target) == ask("GET", target)
