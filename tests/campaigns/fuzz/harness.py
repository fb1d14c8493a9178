"""The process that fuzzes: `harness.py TARGET [libFuzzer's arguments]`, in the workshop's environment.

What libFuzzer sees of the target's code is what is instrumented: the native modules by their compiler, the functions of
some Python modules here, and the codecs of messages when they are generated.
"""

from __future__ import annotations

import importlib
import os
import sys
import sysconfig
import zlib
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from types import FunctionType, ModuleType
from typing import Any

import atheris

_NATIVE = {"native": ("headrace.records._batch", "headrace.records._joined_rows", "headrace.buffers._buffer"),
           "codecs": ("headrace.wire._topic_rows",)}
_INSTRUMENTED = {
    "native": ["headrace.records.legacy.message_set", "headrace.records.header"],
    "codecs": ["headrace.wire.frame", "headrace.wire.codec", "headrace.wire.primitives"],
    "compression": ["headrace.records.compression", "headrace.records.legacy.message_set"],
}


class _Sanitized:
    """Finds the native modules that were built with sanitizers in the place of the installed ones."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        built = os.environ.get("HEADRACE_FUZZ_NATIVE")
        known = any(name in names for names in _NATIVE.values())
        return spec_from_file_location(name, _file_of(name, built)) if built and known else None


def _file_of(name: str, folder: str) -> str:
    return os.path.join(folder, f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}")


def main() -> None:
    """Fuzz until libFuzzer has enough."""
    target = sys.argv.pop(1)
    sys.argv[0] = os.environ["HEADRACE_FUZZ_AGAIN"]  # what libFuzzer starts when it merges
    sys.meta_path.insert(0, _Sanitized)  # type: ignore[arg-type]
    module = importlib.import_module(f"tests.campaigns.fuzz.{target}")
    for name in _INSTRUMENTED[target]:
        _instrument(sys.modules[name])
    if target == "codecs":
        _instrument_generated()
    for name in _NATIVE.get(target, ()):
        used = sys.modules[name].__file__
        assert used == _file_of(name, os.environ["HEADRACE_FUZZ_NATIVE"]), used
    atheris.Setup(sys.argv, module.run)
    atheris.Fuzz()


def _instrument(module: ModuleType) -> None:
    """The functions of a module; those under a decorator and in classes are few and left alone."""
    for value in vars(module).values():
        if isinstance(value, FunctionType) and value.__module__ == module.__name__:
            atheris.instrument_func(value)


def _instrument_generated() -> None:
    """Codecs are compiled on first use: all now, so that their branches are known from the start.

    When a corpus is merged, only the decoders of some messages count, in their highest version: all are made by the
    same generator of the same kinds of fields, and the corpus that is kept would have some ten thousand files.
    """
    from headrace.wire import codec
    from headrace.wire.api import API
    from tests.campaigns.conformance.wire_values import all_versions

    assert len(API)
    compiled = codec._compile

    def instrumented(*arguments: Any) -> Any:
        return atheris.instrument_func(compiled(*arguments))

    merges = any(argument.startswith("-merge") for argument in sys.argv)
    for cls, version in all_versions():
        counts = version == cls.max_version and zlib.crc32(cls.__name__.encode()) % 4 == 0
        codec._compile = instrumented if counts or not merges else compiled
        codec._compile_reader(cls, version)
    codec._compile = compiled if merges else instrumented


if __name__ == "__main__":
    main()
