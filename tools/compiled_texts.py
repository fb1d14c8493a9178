"""Makes the table of `headrace.compiled`: the code of texts that a client is likely to compile when it starts.

    python -m tools.compiled_texts OUT

`setup.py` runs it when the native modules have been built. It writes what a client of a new broker needs: codecs and
constructors of the newest versions of the messages of clusters, producers, consumers and groups, and constructors of
the small classes on their way. All else is compiled when it is needed, as without the table.
"""

from __future__ import annotations

import contextlib
import pkgutil
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import headrace
from headrace import compiled, slotted
from headrace.wire import messages
from headrace.wire.codec import compile_reader, compile_writer, decode, encode
from headrace.wire.messages.cluster.metadata import MetadataResponse, MetadataResponseTopic
from headrace.wire.messages.cluster.session import ApiVersionsResponse, FinalizedFeatureKey, SupportedFeatureKey
from headrace.wire.messages.consumer.offsets import OffsetFetchRequest, OffsetFetchResponse
from headrace.wire.messages.groups.classic_groups import (
    ConsumerProtocolAssignment,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from headrace.wire.reading import ArrayReader
from headrace.wire.schema import ApiMessage, Request, Response, Struct

MESSAGES = ("admin.topics", "cluster", "consumer", "groups.classic_groups", "groups.consumer_groups",
            "groups.share_groups", "producer")
"""Below `headrace.wire.messages`."""
VERSIONS = 2
"""How many of each message, from the newest down."""
ALSO: dict[type[ApiMessage], tuple[int, ...]] = {
    ConsumerProtocolAssignment: (1,), FindCoordinatorRequest: (3,), FindCoordinatorResponse: (3,),
    OffsetFetchRequest: (7,), OffsetFetchResponse: (7,)}
"""Older versions that a client uses by itself."""
CLASSES = ("client", "config", "machines", "net", "types")
"""Below `headrace`; all of them get by without packages of others."""


def main(argv: list[str]) -> int:
    """Write the table into a file."""
    (out,) = argv
    table = compiled.table_of(texts())
    Path(out).write_bytes(table)
    print(f"{out}: {len(table) / 1024:,.0f} KB")
    return 0


def texts() -> dict[str, str]:
    """The texts by title: those that are compiled while everything is asked for once, in a process that has not yet."""
    found: dict[str, str] = {}
    code_of = compiled.code_of

    def noted(text: str, title: str, table: Any) -> CodeType:
        found[title] = text
        return code_of(text, title, compiled.NONE)

    compiled.code_of = noted
    try:
        _ask_for_codecs()
        _ask_for_constructors()
    finally:
        compiled.code_of = code_of
    return found


def _ask_for_codecs() -> None:
    for cls in (cls for module in _modules(messages, MESSAGES) for cls in _classes(module)):
        if issubclass(cls, Struct):
            cls()
        if not issubclass(cls, ApiMessage):
            continue
        for version in {*_newest(cls), *ALSO.get(cls, ())}:
            if not issubclass(cls, Response):
                compile_writer(cls, version)
            if not issubclass(cls, Request):
                compile_reader(cls, version)
    features = ApiVersionsResponse(supported_features=[SupportedFeatureKey()], finalized_features_epoch=1,
                                   finalized_features=[FinalizedFeatureKey()])
    for version in _newest(ApiVersionsResponse):  # its tagged fields are always there
        decode(ApiVersionsResponse, encode(features, version), version)
    for version in _newest(MetadataResponse):
        topic = compile_reader(MetadataResponse, version, part=MetadataResponseTopic)
        compile_reader(MetadataResponse, version, arrays={MetadataResponseTopic: ArrayReader(_begin_nothing, topic)})


def _newest(cls: type[ApiMessage]) -> range:
    return range(max(cls.min_version, cls.max_version - VERSIONS + 1), cls.max_version + 1)


def _begin_nothing(_data: Any, position: int, _count: int) -> tuple[list[Any], int]:
    return [], position


def _ask_for_constructors() -> None:
    """Make a value of each small class: those that want arguments have been compiled before they say so."""
    for module in _modules(headrace, CLASSES):
        for cls in _classes(module):
            if getattr(cls.__init__, "__module__", "") == slotted.__name__:
                with contextlib.suppress(Exception):
                    cls()


def _modules(package: ModuleType, names: tuple[str, ...]) -> Iterator[ModuleType]:
    for name in names:
        module = import_module(f"{package.__name__}.{name}")
        yield module
        for each in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{module.__name__}."):
            yield import_module(each.name)


def _classes(module: ModuleType) -> Iterator[Any]:
    """The classes that a module defines."""
    return (each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
