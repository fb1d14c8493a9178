"""What all calls to a registry share: credentials, the way there, what is remembered, and what an answer must be.

`ask` and `ask_once` are rules (`client.waits`): a blocking face runs them on the process's loop thread, an asyncio face
on its own loop. Read next: `client.registry.schema_calls`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from headrace.client.registry.credentials import Bearer, bearer_of, headers_of
from headrace.client.registry.http_transport import HttpTransport, RegistryRequest, Sessions, Transport
from headrace.client.registry.mock_registry import MockTransport, mock_registry
from headrace.client.registry.registry_settings import MOCK, RegistrySettings
from headrace.client.registry.schema_cache import SchemaCache
from headrace.client.registry.shared_calls import SharedCalls
from headrace.client.waits import Steps
from headrace.errors import ClientClosedError, SchemaRegistryError
from headrace.types.json_values import FromJson
from headrace.types.registry import RegisteredSchema

__all__ = ["RegistryEngine", "id_of", "page", "part_of", "registered", "some_of", "value_of"]

_T = TypeVar("_T", bound=FromJson)
_V = TypeVar("_V")
_UNAUTHORIZED = 401


class RegistryEngine:
    """A client of a registry without its face.

    Args:
        conf: properties by name.

    Attributes:
        settings: what they say.
        cache: what is remembered.
        closed: calls raise.

    Raises:
        ConfigError: a property is unknown or wrong.
        DependencyError: the HTTP library is not installed.
    """

    def __init__(self, conf: Mapping[str, Any]) -> None:
        self.settings = RegistrySettings(conf)
        self.cache = SchemaCache(self.settings.cache_capacity, self.settings.latest_life_s)
        self._bearer: Bearer | None = bearer_of(self.settings)
        first = self.settings.urls[0]
        self._transport: Transport = (MockTransport(mock_registry(first)) if first.startswith(MOCK)
                                      else HttpTransport(self.settings))
        self._shared = SharedCalls()
        self.closed = False

    @property
    def sessions(self) -> Sessions:
        """What is open."""
        return self._transport.sessions

    @property
    def connected(self) -> bool:
        """Whether there may be something to close."""
        return bool(self.sessions)

    def ask(self, request: RegistryRequest) -> Steps[Any]:
        """Send a request. Returns its answer's JSON.

        Raises:
            SchemaRegistryError: the registry refused, or there is no answer that can be read.
            OAuthTokenError: there is no token.
        """
        headers = yield from self._headers()
        return (yield self._sent(request, headers))

    def ask_once(
        self, known: Callable[[], _V | None], request: Callable[[], RegistryRequest], keep: Callable[[Any], _V]
    ) -> Steps[_V]:
        """What is remembered; else as `ask`, with one request for all who ask the same meanwhile.

        Args:
            known: finds the result among what is remembered, None if it is not there.
            request: makes the request.
            keep: makes the result of an answer and remembers it.
        """
        found = known()
        if found is not None:
            return found
        wanted = request()
        headers = yield from self._headers()

        async def asked() -> _V:
            found = known()  # perhaps meanwhile, on another thread
            return keep(await self._sent(wanted, headers)) if found is None else found

        # Who asks after a change is not answered what was asked for before it.
        key = (self.cache.changes, wanted.method, wanted.path, repr(wanted.query), repr(wanted.body))
        result: _V = yield self._shared.once(key, asked)
        return result

    async def aclose(self) -> None:
        """Close the connections. Calls after it raise."""
        self.closed = True
        await self.sessions.aclose()

    def _headers(self) -> Steps[Mapping[str, str]]:
        if self.closed:
            raise ClientClosedError("the registry client is closed: make another one")
        if self._bearer is None:
            return {}
        return headers_of((yield from self._bearer.fields()))

    async def _sent(self, request: RegistryRequest, headers: Mapping[str, str]) -> Any:
        try:
            return await self._transport.send(request, headers)
        except SchemaRegistryError as error:
            if error.http_status_code == _UNAUTHORIZED and self._bearer is not None:
                self._bearer.refused()
            raise


def part_of(name: str, value: Any) -> str:
    """A part of a path.

    Raises:
        TypeError: it is no text.
        ValueError: it is empty, and the path would be another one.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    if not value:
        raise ValueError(f"{name} is empty")
    return value


def id_of(found: RegisteredSchema) -> int:
    """The id of a schema that was registered.

    Raises:
        SchemaRegistryError: the registry did not tell it.
    """
    if found.schema_id is None:
        raise _unexpected("id", found.to_dict())
    return found.schema_id


def page(offset: int, limit: int) -> dict[str, Any]:
    """The query for a part of a list."""
    return {"offset": offset, "limit": limit}


def value_of(kind: type[_T], answer: Any) -> _T:
    """The value that an answer describes.

    Raises:
        SchemaRegistryError: it describes none.
    """
    return _checked(kind.__name__, answer, kind.from_dict)


def registered(answer: Any) -> RegisteredSchema:
    """The registered schema that an answer describes. Its id and version are numbers, or not there.

    Raises:
        SchemaRegistryError: it describes none.
    """
    return _checked("RegisteredSchema", answer, _registered)


def _registered(answer: Any) -> RegisteredSchema:
    found = RegisteredSchema.from_dict(answer)
    for value in (found.schema_id, found.version):
        if value is not None and not isinstance(value, int):
            raise TypeError(f"{value!r:.40} is no number")
    for text in (found.guid, found.subject, found.schema.schema_str, found.schema.schema_type):
        if text is not None and not isinstance(text, str):
            raise TypeError(f"{text!r:.40} is no text")
    hash(found.schema)  # it is remembered by itself: a TypeError where its contract has a list for a text
    return found


def some_of(kind: type[_V], answer: Any, name: str = "") -> _V:
    """An answer, or one member of it, that must be of a type.

    Raises:
        SchemaRegistryError: it is not.
    """
    found = answer.get(name) if name and isinstance(answer, dict) else answer
    if not isinstance(found, kind):
        raise _unexpected(f"{kind.__name__} {name}".strip(), answer)
    return found


def _checked(what: str, answer: Any, make: Callable[[Any], _V]) -> _V:
    try:
        return make(answer)
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise _unexpected(f"{what} ({error})", answer) from None


def _unexpected(what: str, answer: Any) -> SchemaRegistryError:
    return SchemaRegistryError(200, SchemaRegistryError.UNKNOWN,
                               f"the registry's answer is no {what}: {_shown(answer)}")


def _shown(answer: Any) -> str:
    return f"{type(answer).__name__} of {len(answer)}" if isinstance(answer, list | dict) else f"{answer!r:.80}"
