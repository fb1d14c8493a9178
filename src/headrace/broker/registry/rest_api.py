"""Confluent's REST API: requests to handlers, results and errors to JSON. It has no socket and no clock.

The rows of `ROUTES` are all that is served; paths below `/contexts/NAME/` are the same within a context. Read next:
`broker.registry.registrations` for what handlers do, `broker.registry.http_server` for who calls `handle`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from headrace.broker.cluster import BrokerCluster
from headrace.broker.registry import schema_routes, setting_routes, subject_routes
from headrace.broker.registry.registrations import SchemaRegistry
from headrace.broker.registry.registry_log import SchemaLog
from headrace.broker.registry.rest_call import RawText, RestCall
from headrace.broker.registry.rest_errors import RestError, no_such_path
from headrace.schemas.parsed import InvalidSchemaError, load_json

__all__ = ["ROUTES", "RegistryApi", "RestReply"]

_Handler = Callable[[SchemaRegistry, RestCall], Any]
_MAX_PARAMETERS: Final = 50
_WITH_BODY: Final = ("POST", "PUT")

ROUTES: Final[tuple[tuple[str, str, _Handler], ...]] = (
    ("GET", "", lambda registry, call: {}),
    *subject_routes.ROUTES, *schema_routes.ROUTES, *setting_routes.ROUTES,
)
"""Method, path with `{names}` of its variable parts, handler."""
_BY_LENGTH: Final[dict[int, list[tuple[str, list[str], _Handler]]]] = {}
for _method, _path, _handler in ROUTES:
    _BY_LENGTH.setdefault(len(_path.split("/")), []).append((_method, _path.split("/"), _handler))


class RestReply(NamedTuple):
    """Status and body, which is JSON."""

    status: int
    body: str


class RegistryApi:
    """The API over a cluster's log.

    Args:
        cluster: has the topic `_schemas`.
    """

    def __init__(self, cluster: BrokerCluster) -> None:
        self._registry = SchemaRegistry(SchemaLog(cluster))

    def handle(self, method: str, target: str, body: bytes, now_ms: int) -> RestReply:
        """Carry a request out.

        Args:
            method: of HTTP.
            target: path and query, as in the request's first line.
            body: of the request.
            now_ms: wall clock, milliseconds.
        """
        try:
            self._registry.catch_up()
            result = self._result(method, target, body, now_ms)
        except RestError as error:
            return RestReply(error.status, _text({"error_code": error.code, "message": error.message}))
        except RecursionError:
            return RestReply(422, _text({"error_code": 42201, "message": "Invalid schema: it is nested too deep"}))
        return RestReply(200, result.text if isinstance(result, RawText) else _text(result))

    def _result(self, method: str, target: str, body: bytes, now_ms: int) -> Any:
        split = urlsplit(target)
        try:
            parameters = parse_qsl(split.query, keep_blank_values=True, max_num_fields=_MAX_PARAMETERS)
        except ValueError:
            raise RestError(400, f"more than {_MAX_PARAMETERS} parameters") from None
        segments = [unquote(each) for each in split.path.strip("/").split("/")]
        context = None
        if len(segments) > 2 and segments[0] == "contexts":
            context, segments = segments[1].strip(":"), segments[2:]
        handler, named = _found(method, segments)
        given = _object(body) if method in _WITH_BODY else {}
        return handler(self._registry, RestCall(named, parameters, given, now_ms, context))


def _found(method: str, segments: list[str]) -> tuple[_Handler, Mapping[str, str]]:
    is_path = False
    for known_method, pattern, handler in _BY_LENGTH.get(len(segments), ()):
        if all(part.startswith("{") or part == given for part, given in zip(pattern, segments, strict=True)):
            is_path = True
            if known_method == method:
                return handler, {part.strip("{}"): given for part, given in zip(pattern, segments, strict=True)
                                 if part.startswith("{")}
    raise RestError(405, "HTTP 405 Method Not Allowed") if is_path else no_such_path()


def _object(body: bytes) -> dict[str, Any]:
    try:
        given = load_json(body.decode(), "the request")
    except (InvalidSchemaError, UnicodeDecodeError) as error:
        raise RestError(400, f"the body of the request is no JSON: {error}") from None
    if not isinstance(given, dict):
        raise RestError(422, "the body of the request is no JSON object")
    return given


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
