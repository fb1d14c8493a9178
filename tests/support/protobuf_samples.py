"""Protobuf messages for tests, compiled when they are first asked for."""

import subprocess
import sys
import tempfile
from functools import cache
from importlib import import_module, resources
from pathlib import Path
from types import ModuleType

import pytest

SOURCES = {
    "headrace_sample_base.proto": """
        syntax = "proto3";
        package headrace.samples;
        message Point { double x = 1; double y = 2; }
    """,
    "headrace_sample_place.proto": """
        syntax = "proto3";
        package headrace.samples;
        import "headrace_sample_base.proto";
        import "google/protobuf/timestamp.proto";
        message Place { string name = 1; Point point = 2; google.protobuf.Timestamp since = 3; }
    """,
    "headrace_sample_user.proto": """
        syntax = "proto3";
        package headrace.samples;
        import "headrace_sample_base.proto";
        import "headrace_sample_place.proto";
        message User {
            string name = 1;
            int64 number = 2;
            repeated string tags = 3;
            Place place = 4;
            message Inner { int32 a = 1; message Innermost { int32 b = 1; } }
        }
        message Other { int32 a = 1; message Inner { int32 a = 1; Point point = 2; } }
    """,
    "headrace_sample_plain.proto": """
        syntax = "proto3";
        message Plain { string name = 1; int64 number = 2; }
    """,
}


@cache
def compiled() -> dict[str, ModuleType]:
    """The modules: "base", "place", "user", "plain"."""
    pytest.importorskip("grpc_tools")
    with tempfile.TemporaryDirectory(prefix="headrace-protobuf-") as name:
        return _import_from(Path(name))


def _import_from(folder: Path) -> dict[str, ModuleType]:
    for name, source in SOURCES.items():
        (folder / name).write_text(source)
    common = str(resources.files("grpc_tools") / "_proto")
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"-I{common}", f"--python_out={folder}",
                    *SOURCES], check=True, timeout=60)
    sys.path.insert(0, str(folder))
    try:
        return {name.removeprefix("headrace_sample_").removesuffix(".proto"):
                import_module(f"{name.removesuffix('.proto')}_pb2") for name in SOURCES}
    finally:
        sys.path.remove(str(folder))
