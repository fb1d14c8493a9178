"""The .proto files of Confluent's registries: the same as the peer's, and each may be loaded first."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest
from google.protobuf import descriptor_pb2

from headrace.client.schema_serdes.codecs.confluent_files import confluent_file
from headrace.errors import DependencyError
from headrace.schema_registry.confluent import meta_pb2
from headrace.schema_registry.confluent.type import decimal_pb2, variant_pb2

MODULES = ("meta_pb2", "type.decimal_pb2", "type.variant_pb2")
SHOW = f"MODULES = {MODULES}" + """
import sys
from importlib import import_module
for package in sys.argv[1:]:
    for name in MODULES:
        module = import_module(f"{package}.schema_registry.confluent.{name}")
        public = sorted(each for each in dir(module) if each[0] != "_" and each.partition("_")[0] in (
            "DESCRIPTOR", "Meta", "Rule", "Decimal", "Variant", "file", "message", "field", "enum"))
        print(package, name, public, module.DESCRIPTOR.serialized_pb.hex())
"""


def shown(*packages: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", SHOW, *packages], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_the_files_are_the_peers() -> None:
    ours, theirs = shown("headrace"), shown("confluent_kafka")
    assert [line.replace("headrace", "confluent_kafka") for line in ours] == theirs
    assert len(ours) == len(MODULES)


@pytest.mark.parametrize("packages", [("headrace", "confluent_kafka"), ("confluent_kafka", "headrace")])
def test_both_may_be_in_a_process(packages: tuple[str, str]) -> None:
    assert len(shown(*packages)) == 2 * len(MODULES)


def test_options_of_a_field_can_be_written_and_read() -> None:
    options = descriptor_pb2.FieldOptions()
    options.Extensions[meta_pb2.field_meta].tags.append("PII")
    options.Extensions[meta_pb2.field_meta].rules.add(name="r", expr="true")
    read = descriptor_pb2.FieldOptions.FromString(options.SerializeToString())
    assert read.Extensions[meta_pb2.field_meta] == meta_pb2.Meta(
        tags=["PII"], rules=[meta_pb2.Rule(name="r", expr="true")])
    assert import_module("headrace.schema_registry.confluent.types.decimal_pb2").Decimal is decimal_pb2.Decimal
    assert variant_pb2.Variant(metadata=b"m").SerializeToString() == b"\n\1m"


def test_a_file_that_imports_the_decimals_by_their_old_name_finds_them() -> None:
    import_module("headrace.schema_registry.confluent.types.decimal_pb2")
    assert [each.name for each in confluent_file("confluent/types/decimal.proto").dependencies] == [
        "confluent/type/decimal.proto"]


def test_a_file_is_the_same_each_time() -> None:
    assert confluent_file("confluent/meta.proto") is confluent_file("confluent/meta.proto")


def test_without_protobuf_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    with pytest.raises(DependencyError, match=r"pip install headrace\[protobuf\]"):
        confluent_file("confluent/meta.proto")
