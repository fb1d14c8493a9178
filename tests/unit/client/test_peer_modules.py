"""Modules of confluent_kafka that are no files here: each is found, and its names are the same objects."""

from __future__ import annotations

import importlib
import subprocess
import sys
from types import ModuleType
from typing import Any

import confluent_kafka
import pytest

import headrace
import headrace.admin
import headrace.aio
from headrace.client.peer_modules import HOMES, PeerModules
from headrace.client.schema_serdes.avro_serdes import AvroSerializer

OWN_INSIDES = {"BufferTimeoutManager", "ConversionUtil", "ProducerBatchExecutor", "ProducerBatchManager",
               "ValidationUtil"}
"""How the peer does it: `test_names_of_the_peer` has the reasons of those that are public."""
OF_C = ("ACL_", "ALTER_CONFIG_", "CONFIG_", "CONSUMER_GROUP_", "ELECTION_", "ISOLATION_", "OFFSET_SPEC_", "RESOURCE_",
        "SCRAM_", "SHARE_")
"""Numbers of librdkafka, which are members of enums to a program."""
ELSEWHERE = {"headrace.aio._AsyncDeserializingConsumer", "headrace.aio._AsyncSerializingProducer"}
"""Offer a class of their own name; the errors and contexts that they import are in `headrace.error` and
`headrace.serialization`."""


def peers(name: str) -> ModuleType:
    return importlib.import_module(name.replace("headrace", "confluent_kafka", 1))


def public_of(module: ModuleType) -> set[str]:
    """What a module of the peer says for itself, with what it imports from others of the peer."""
    return {name for name, value in vars(module).items()
            if not name.startswith("_") and not isinstance(value, ModuleType) and not name.startswith(OF_C)
            and str(getattr(value, "__module__", "")).partition(".")[0] in ("confluent_kafka", "cimpl")}


@pytest.mark.parametrize("name", HOMES)
def test_each_module_is_found_and_is_one_of_the_peer(name: str) -> None:
    found = importlib.import_module(name)
    assert found.__name__ == name
    assert sys.modules[name] is found
    assert found.__doc__
    assert peers(name).__name__.startswith("confluent_kafka.")


@pytest.mark.parametrize("name", [name for name in HOMES if ".schema_registry." not in name and name not in ELSEWHERE])
def test_a_module_of_clients_has_each_public_name_of_the_peers(name: str) -> None:
    found, wanted = importlib.import_module(name), public_of(peers(name)) - OWN_INSIDES
    assert wanted
    assert {each for each in wanted if not hasattr(found, each)} == set()


@pytest.mark.parametrize("module", ["_sync.avro", "_async.json_schema", "_sync.protobuf", "common.serde",
                                    "_async.serde", "common.schema_registry_client",
                                    "_sync.mock_schema_registry_client"])
def test_a_module_of_the_registry_has_what_the_public_one_has(module: str) -> None:
    found = importlib.import_module(f"headrace.schema_registry.{module}")
    public = importlib.import_module(f"headrace.schema_registry.{module.rpartition('.')[2]}")
    assert {name: getattr(found, name) for name in public.__all__} == {
        name: getattr(public, name) for name in public.__all__}
    assert found.SerializationContext is headrace.serialization.SerializationContext


def test_the_names_are_the_same_objects() -> None:
    cimpl = importlib.import_module("headrace.cimpl")
    assert cimpl.Producer is headrace.Producer
    assert cimpl.NewTopic is headrace.admin.NewTopic
    assert importlib.import_module("headrace.aio._AIOConsumer").AIOConsumer is headrace.aio.AIOConsumer
    assert importlib.import_module("headrace.schema_registry._sync.avro").AvroSerializer is AvroSerializer


@pytest.mark.parametrize("statement", [
    "from headrace.cimpl import Consumer, KafkaError, NewTopic, TopicPartition",
    "import headrace.cimpl; headrace.cimpl.Producer",
    "from headrace.admin._metadata import ClusterMetadata",
    "from headrace.aio.producer import AIOProducer",
    "from headrace.schema_registry.common.serde import SubjectNameStrategyType",
    "from headrace.schema_registry._sync.json_schema import JSONSerializer, SerializationContext",
    "from headrace.schema_registry.protobuf import _schema_to_str, _create_index_array",
    "from headrace.schema_registry import _MAGIC_BYTE, _MAGIC_BYTE_V0, _MAGIC_BYTE_V1, SerializationError",
    "from headrace.error import KafkaError, KafkaException",
    "from headrace.schema_registry.confluent import meta_pb2 as confluent_dot_meta__pb2",
    "import headrace.schema_registry.confluent.types.decimal_pb2",
])
def test_a_line_that_works_with_the_peer_works_with_the_import_changed(statement: str) -> None:
    for given in (statement.replace("headrace", "confluent_kafka"), statement):
        subprocess.run([sys.executable, "-c", given], check=True)


def test_all_names_of_a_module_may_be_taken_at_once() -> None:
    taken: dict[str, Any] = {}
    exec("from headrace.cimpl import *", taken)
    assert taken["Producer"] is headrace.Producer
    assert taken["NewTopic"] is headrace.admin.NewTopic


def test_a_name_that_no_module_has_is_refused_as_python_does() -> None:
    with pytest.raises(ImportError, match="cannot import name 'NoSuchName'"):
        exec("from headrace.cimpl import NoSuchName")
    with pytest.raises(AttributeError, match=r"has those of \('headrace', 'headrace.admin'\)"):
        _ = importlib.import_module("headrace.cimpl").NoSuchName


def test_a_module_that_is_not_in_the_table_is_not_found() -> None:
    assert PeerModules.spec_of("headrace.cimpl2") is None
    assert PeerModules.spec_of("confluent_kafka.cimpl") is None
    for name in ("headrace.cimpl2", "headrace.admin._nothing", "headrace.schema_registry._sync.nothing"):
        with pytest.raises(ModuleNotFoundError, match=name):
            importlib.import_module(name)


def test_importing_the_package_imports_nothing_for_these_modules() -> None:
    code = "import sys, headrace, headrace.wire, json; assert 'headrace.client.peer_modules' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_finder_is_asked_after_all_others_and_leaves_other_packages_alone() -> None:
    finders = [finder for finder in sys.meta_path if getattr(finder, "__module__", "") == "headrace"]
    assert finders
    assert sys.meta_path.index(finders[0]) > 0
    assert finders[0].find_spec("confluent_kafka.nothing") is None
    assert finders[0].find_spec("headrace.cimpl") is not None


def test_the_first_bytes_of_messages_have_the_peers_names() -> None:
    import confluent_kafka.schema_registry as theirs

    import headrace.schema_registry as ours

    for name in ("_MAGIC_BYTE", "_MAGIC_BYTE_V0", "_MAGIC_BYTE_V1"):
        assert getattr(ours, name) == getattr(theirs, name)


def test_the_text_and_the_place_of_a_message_are_the_peers() -> None:
    from confluent_kafka.schema_registry import protobuf as theirs
    from google.protobuf import struct_pb2

    from headrace.schema_registry import protobuf as ours

    def described(module: ModuleType) -> list[Any]:
        named = vars(module)
        return [named["_create_index_array"](struct_pb2.ListValue.DESCRIPTOR),
                named["_schema_to_str"](struct_pb2.Struct.DESCRIPTOR.file)]

    assert described(ours) == described(theirs)


def test_the_list_of_the_peer_is_of_its_version() -> None:
    assert confluent_kafka.version().startswith("2.16")
