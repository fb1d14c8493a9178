"""What a registry is asked about subjects and their versions. Each call is a rule.

Their arguments, results and errors are documented at `client.registry.schema_registry_client`. Read next:
`client.registry.configuration_calls`.
"""

from __future__ import annotations

from typing import Any

from headrace.client.registry.http_transport import RegistryRequest
from headrace.client.registry.registry_engine import RegistryEngine, page, part_of, registered, some_of
from headrace.client.waits import Steps
from headrace.types.registry import RegisteredSchema

__all__ = ["SubjectCalls"]


class SubjectCalls:
    """The calls about subjects.

    Args:
        engine: what sends and remembers.
    """

    def __init__(self, engine: RegistryEngine) -> None:
        self._engine, self._cache = engine, engine.cache

    def names(
        self, subject_prefix: str | None, deleted: bool, deleted_only: bool, offset: int, limit: int
    ) -> Steps[list[str]]:
        """List the subjects."""
        query = {"deleted": deleted, "deleted_only": deleted_only, **page(offset, limit)}
        if subject_prefix is not None:
            query["subjectPrefix"] = subject_prefix
        return some_of(list, (yield from self._engine.ask(RegistryRequest("GET", ("subjects",), query))))

    def delete(self, subject_name: str, permanent: bool) -> Steps[list[int]]:
        """Delete a subject."""
        answer = yield from self._engine.ask(RegistryRequest("DELETE", _path(subject_name), _permanently(permanent)))
        self._cache.drop_subject(subject_name)
        return some_of(list, answer)

    def latest(self, subject_name: str, fmt: str | None) -> Steps[RegisteredSchema]:
        """Find the latest version."""
        since = self._cache.changes

        def known() -> RegisteredSchema | None:
            return self._cache.latest(subject_name, fmt)

        def request() -> RegistryRequest:
            return RegistryRequest("GET", _path(subject_name, "versions", "latest"), _format(fmt))

        def keep(answer: Any) -> RegisteredSchema:
            found = registered(answer)
            self._cache.put_latest(subject_name, fmt, found, since)
            return found

        return (yield from self._engine.ask_once(known, request, keep))

    def latest_with(
        self, subject_name: str, metadata: dict[str, str], deleted: bool, fmt: str | None
    ) -> Steps[RegisteredSchema]:
        """Find the latest version that has some metadata."""
        since = self._cache.changes

        def known() -> RegisteredSchema | None:
            return self._cache.latest_with(subject_name, metadata, deleted, fmt)

        def request() -> RegistryRequest:
            query = {"deleted": deleted, **_format(fmt)}
            if metadata:
                query.update(key=list(metadata), value=list(metadata.values()))
            return RegistryRequest("GET", _path(subject_name, "metadata"), query)

        def keep(answer: Any) -> RegisteredSchema:
            found = registered(answer)
            self._cache.put_latest_with(subject_name, metadata, deleted, fmt, found, since)
            return found

        return (yield from self._engine.ask_once(known, request, keep))

    def version(
        self, subject_name: str, version: int | str, deleted: bool, fmt: str | None
    ) -> Steps[RegisteredSchema]:
        """Find a version."""
        def known() -> RegisteredSchema | None:
            return self._cache.version(subject_name, version, fmt, deleted) if isinstance(version, int) else None

        def request() -> RegistryRequest:
            path = _path(subject_name, "versions", str(version))
            return RegistryRequest("GET", path, {"deleted": deleted, **_format(fmt)})

        def keep(answer: Any) -> RegisteredSchema:
            found = registered(answer)
            self._cache.put_version(subject_name, found, fmt, deleted)
            return found

        return (yield from self._engine.ask_once(known, request, keep))

    def referenced_by(self, subject_name: str, version: int | str, offset: int, limit: int) -> Steps[list[int]]:
        """List the ids of schemas that refer to a version."""
        path = _path(subject_name, "versions", str(version), "referencedby")
        return some_of(list, (yield from self._engine.ask(RegistryRequest("GET", path, page(offset, limit)))))

    def versions(
        self, subject_name: str, deleted: bool, deleted_only: bool, offset: int, limit: int
    ) -> Steps[list[int]]:
        """List the versions of a subject."""
        query = {"deleted": deleted, "deleted_only": deleted_only, **page(offset, limit)}
        path = _path(subject_name, "versions")
        return some_of(list, (yield from self._engine.ask(RegistryRequest("GET", path, query))))

    def delete_version(self, subject_name: str, version: int, permanent: bool) -> Steps[int]:
        """Delete a version."""
        path = _path(subject_name, "versions", str(version))
        answer = yield from self._engine.ask(RegistryRequest("DELETE", path, _permanently(permanent)))
        self._cache.drop_version(subject_name, version)
        return some_of(int, answer)


def _path(subject_name: str, *further: str) -> tuple[str, ...]:
    return ("subjects", part_of("subject_name", subject_name), *further)


def _format(fmt: str | None) -> dict[str, Any]:
    return {} if fmt is None else {"format": fmt}


def _permanently(permanent: bool) -> dict[str, Any]:
    return {"permanent": True} if permanent else {}
