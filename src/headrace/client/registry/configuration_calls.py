"""What a registry is set to: compatibility, configurations, modes, contexts, associations. Each call is a rule.

Their arguments, results and errors are documented at `client.registry.schema_registry_client`. Read next:
`client.registry.registry_engine`.
"""

from __future__ import annotations

from typing import Any

from headrace.client.registry.http_transport import RegistryRequest
from headrace.client.registry.registry_engine import RegistryEngine, page, part_of, some_of, value_of
from headrace.client.waits import Steps
from headrace.types.associations import Association, AssociationCreateOrUpdateRequest, AssociationResponse
from headrace.types.registry import Schema, ServerConfig

__all__ = ["ConfigurationCalls"]


class ConfigurationCalls:
    """The calls about what a registry, or a subject, is set to.

    Args:
        engine: what sends.
    """

    def __init__(self, engine: RegistryEngine) -> None:
        self._engine = engine

    def set_compatibility(self, subject_name: str | None, level: str | None) -> Steps[dict[str, Any]]:
        """Change the compatibility level."""
        if level is None:
            raise ValueError("level must be set")
        request = RegistryRequest("PUT", _path("config", subject_name), {}, {"compatibility": level.upper()})
        return some_of(dict, (yield from self._engine.ask(request)))

    def compatibility(self, subject_name: str | None) -> Steps[str]:
        """Find the compatibility level."""
        answer = yield from self._engine.ask(RegistryRequest("GET", _path("config", subject_name), {}))
        return some_of(str, answer, "compatibilityLevel")

    def is_compatible(
        self, subject_name: str, schema: Schema, version: int | str | None, normalize: bool, verbose: bool
    ) -> Steps[bool]:
        """Whether a schema is compatible with a version, None for those that the level says."""
        path = ("compatibility", "subjects", part_of("subject_name", subject_name), "versions",
                *(() if version is None else (str(version),)))
        query = {"normalize": normalize, "verbose": verbose}
        answer = yield from self._engine.ask(RegistryRequest("POST", path, query, schema.to_dict()))
        return some_of(bool, answer, "is_compatible")

    def set_config(self, subject_name: str | None, config: ServerConfig | None) -> Steps[dict[str, Any]]:
        """Change the configuration."""
        if config is None:
            raise ValueError("config must be set")
        request = RegistryRequest("PUT", _path("config", subject_name), {}, config.to_dict())
        return some_of(dict, (yield from self._engine.ask(request)))

    def delete_config(self, subject_name: str | None) -> Steps[ServerConfig]:
        """Go back to the configuration one level up."""
        answer = yield from self._engine.ask(RegistryRequest("DELETE", _path("config", subject_name), {}))
        return value_of(ServerConfig, answer)

    def config(self, subject_name: str | None) -> Steps[ServerConfig]:
        """Find the configuration."""
        answer = yield from self._engine.ask(RegistryRequest("GET", _path("config", subject_name), {}))
        return value_of(ServerConfig, answer)

    def mode(self, subject_name: str | None) -> Steps[str]:
        """Find the mode."""
        answer = yield from self._engine.ask(RegistryRequest("GET", _path("mode", subject_name), {}))
        return some_of(str, answer, "mode")

    def update_mode(self, subject_name: str | None, mode: str, force: bool) -> Steps[str]:
        """Change the mode."""
        request = RegistryRequest("PUT", _path("mode", subject_name), {"force": force}, {"mode": mode})
        return some_of(str, (yield from self._engine.ask(request)), "mode")

    def delete_mode(self, subject_name: str) -> Steps[str]:
        """Go back to the mode one level up."""
        path = ("mode", part_of("subject_name", subject_name))
        return some_of(str, (yield from self._engine.ask(RegistryRequest("DELETE", path, {}))), "mode")

    def contexts(self, offset: int, limit: int) -> Steps[list[str]]:
        """List the contexts."""
        return some_of(list, (yield from self._engine.ask(RegistryRequest("GET", ("contexts",), page(offset, limit)))))

    def associations(
        self, resource_name: str, resource_namespace: str, resource_type: str | None,
        association_types: list[str] | None, offset: int, limit: int,
    ) -> Steps[list[Association]]:
        """List what is associated with a resource."""
        path = ("associations", "resources", part_of("resource_namespace", resource_namespace),
                part_of("resource_name", resource_name))
        query = _of_types(resource_type, association_types)
        if offset > 0:
            query["offset"] = offset
        if limit >= 1:
            query["limit"] = limit
        answer = yield from self._engine.ask(RegistryRequest("GET", path, query))
        return [value_of(Association, one) for one in some_of(list, answer)]

    def associate(self, request: AssociationCreateOrUpdateRequest) -> Steps[AssociationResponse]:
        """Make associations, or change them."""
        answer = yield from self._engine.ask(RegistryRequest("POST", ("associations",), {}, request.to_dict()))
        return value_of(AssociationResponse, answer)

    def dissociate(
        self, resource_id: str, resource_type: str | None, association_types: list[str] | None,
        cascade_lifecycle: bool,
    ) -> Steps[None]:
        """Delete associations."""
        path = ("associations", "resources", part_of("resource_id", resource_id))
        query = {"cascadeLifecycle": cascade_lifecycle, **_of_types(resource_type, association_types)}
        yield from self._engine.ask(RegistryRequest("DELETE", path, query))


def _path(what: str, subject_name: str | None) -> tuple[str, ...]:
    return (what,) if subject_name is None else (what, part_of("subject_name", subject_name))


def _of_types(resource_type: str | None, association_types: list[str] | None) -> dict[str, Any]:
    given = {"resourceType": resource_type, "associationType": association_types}
    return {name: value for name, value in given.items() if value is not None}
