"""A request of the REST API, as handlers see it: names from the path, parameters, body, time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from headrace.broker.registry.registrations import LATEST
from headrace.broker.registry.rest_errors import RestError
from headrace.broker.registry.subject_names import in_context, normalized, plain_name
from headrace.slotted import slotted

__all__ = ["RawText", "RestCall"]

_MAX_NUMBER: Final = (1 << 31) - 1


@slotted(frozen=True)
class RawText:
    """A body that is text already."""

    text: str


@slotted(frozen=True, eq=False)
class RestCall:
    """A request.

    Attributes:
        named: the variable parts of the path.
        parameters: names and values behind the path, in order.
        body: the JSON object, of requests that have one.
        now_ms: wall clock, milliseconds.
        context: the context that the path begins with, or None.
    """

    named: Mapping[str, str]
    parameters: Sequence[tuple[str, str]]
    body: Mapping[str, Any]
    now_ms: int
    context: str | None = None

    @property
    def query(self) -> Mapping[str, str]:
        """The parameters by name; of those given twice, the last."""
        return dict(self.parameters)

    @property
    def subject(self) -> str:
        """The subject in the path; empty where there is none, or for what holds for all.

        Raises:
            RestError: 42208, it cannot be one.
        """
        return self.scoped(self.named.get("subject", ""))

    def scoped(self, subject: str) -> str:
        """A subject in the context of the path.

        Raises:
            RestError: 42208, it cannot be one.
        """
        return normalized(subject if self.context is None else in_context(self.context, plain_name(subject)))

    def flag(self, name: str) -> bool:
        """Whether a parameter is `true`."""
        return self.query.get(name, "").lower() == "true"

    def each(self, name: str) -> list[str]:
        """A parameter that may be given several times."""
        return [value for given, value in self.parameters if given == name]

    def number(self, name: str, default: int) -> int:
        """A parameter that is a number.

        Raises:
            RestError: 400, it is none.
        """
        text = self.query.get(name)
        if text is None:
            return default
        if not text.removeprefix("-").isdecimal() or len(text) > 11:
            raise RestError(400, f"{name} is {text[:40]!r}, and not a number")
        return int(text)

    def page(self, rows: list[Any]) -> list[Any]:
        """The rows from `offset` on, at most `limit` of them."""
        offset, limit = max(self.number("offset", 0), 0), self.number("limit", -1)
        return rows[offset:] if limit < 0 else rows[offset : offset + limit]

    @property
    def version(self) -> int:
        """The version in the path.

        Raises:
            RestError: 42202, it is none.
        """
        text = self.named["version"]
        if text in ("latest", "-1"):
            return LATEST
        if not text.isdecimal() or not 0 < int(text[:11]) <= _MAX_NUMBER:
            raise RestError(42202, f"The specified version '{text[:60]}' is not a valid version id. Allowed values are "
                            'between [1, 2^31-1] and the string "latest"')
        return int(text)

    @property
    def schema_id(self) -> int:
        """The id in the path.

        Raises:
            RestError: 404, it is none.
        """
        text = self.named["id"]
        if not text.isdecimal() or int(text[:11]) > _MAX_NUMBER:
            raise RestError(404, "HTTP 404 Not Found")
        return int(text)
