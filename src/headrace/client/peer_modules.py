"""The modules of confluent_kafka that programs import from, and that are elsewhere here (decision 0049).

`from confluent_kafka.cimpl import NewTopic` is what an editor writes that was asked for `NewTopic`. Such a module is
made when it is imported; each name in it is that of a public module. It must not know what the names stand for.
"""

from __future__ import annotations

from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["HOMES", "PeerModules"]

_REGISTRY = "headrace.schema_registry"
_OF_ALL_FORMATS = (_REGISTRY, f"{_REGISTRY}.schema_registry_client", f"{_REGISTRY}.serde", "headrace.serialization")
"""What confluent_kafka's modules of a registry import from one another, and so offer as well."""


def _registry_modules() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for folder in ("_async", "_sync", "common"):
        found[f"{_REGISTRY}.{folder}"] = ()
        for name in ("avro", "json_schema", "protobuf", "schema_registry_client", "serde"):
            found[f"{_REGISTRY}.{folder}.{name}"] = (f"{_REGISTRY}.{name}", *_OF_ALL_FORMATS)
        if folder != "common":
            mock = f"{_REGISTRY}.mock_schema_registry_client"
            found[mock.replace(_REGISTRY, f"{_REGISTRY}.{folder}")] = (mock, *_OF_ALL_FORMATS)
    return found


HOMES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("headrace._model", "headrace.cimpl"), ("headrace", "headrace.admin")),
    **dict.fromkeys((f"headrace.admin.{name}" for name in (
        "_acl", "_cluster", "_config", "_group", "_listoffsets", "_metadata", "_records", "_resource", "_scram",
        "_topic")), ("headrace.admin", "headrace")),
    **dict.fromkeys((f"headrace.aio.{name}" for name in (
        "_AIOConsumer", "_AsyncDeserializingConsumer", "_AsyncSerializingProducer", "producer",
        "producer._AIOProducer")), ("headrace.aio",)),
    **_registry_modules(),
    f"{_REGISTRY}.confluent.types": (),
    f"{_REGISTRY}.confluent.types.decimal_pb2": (f"{_REGISTRY}.confluent.type.decimal_pb2",),
}
"""Where the names of each are, in the order in which they are looked for."""


class PeerModules:
    """Makes the modules of `HOMES`: an `importlib.abc.Loader`."""

    @classmethod
    def spec_of(cls, name: str) -> ModuleSpec | None:
        """What the import system wants to know of a module.

        Args:
            name: its full name.

        Returns:
            None for one that is not in the table.
        """
        if name not in HOMES:
            return None
        return ModuleSpec(name, cls(), is_package=any(other.startswith(f"{name}.") for other in HOMES))  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        """An ordinary module will do."""

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Have its names looked up where they are, when they are asked for."""
        name = module.__name__

        def find(attribute: str) -> Any:
            homes = [import_module(home) for home in HOMES[name]]
            if attribute == "__all__":  # for `from ... import *`
                return sorted({each for home in homes for each in home.__all__})
            for home in homes:
                if hasattr(home, attribute):
                    return getattr(home, attribute)
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}; it has those of {HOMES[name]}")

        module.__doc__ = f"Names of {', '.join(HOMES[name]) or 'modules within'}, where confluent_kafka has them too."
        module.__dict__["__getattr__"] = find
