"""Microseconds of CPU to serialize and to deserialize a value: ours and confluent-kafka's, with their registries.

    python -m benchmarks.serdes --rounds 15

Both have the same schemas in a registry in memory, ask it before the first round, and write the same bytes. Values are
a record of four fields, and one of forty. Exit status 1 when confluent-kafka's time is less than twice ours anywhere.
"""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Callable
from functools import cache
from typing import Any

from benchmarks.loops import OURS, Case, about, arguments_of, effort_of, measure, write
from benchmarks.measure import version_of
from benchmarks.report import table

PEER = "confluent-kafka"
BAR = 2.0
SMALL = {"name": "alice", "number": 12345, "color": "red", "size": 1.5}
LARGE = {f"{name}{place}": value for place in range(10) for name, value in SMALL.items()}
VALUES = {"4 fields": SMALL, "40 fields": LARGE}
AVRO_TYPES: dict[type, Any] = {str: "string", int: "long", float: "double"}
JSON_TYPES = {str: "string", int: "integer", float: "number"}

Both = tuple[Callable[[], object], Callable[[], object]]


def main(argv: list[str]) -> int:
    """Measure all formats; 1 when ours is above a bar."""
    arguments = arguments_of("serdes", __doc__, argv)
    effort = effort_of(arguments)
    cases = [case for of, value in VALUES.items() for case in cases_of(of, value)]
    measure(cases, effort)
    about(effort)
    print(f"{PEER} {version_of(PEER)}")
    table("serializers with a registry", ["", f"{OURS}, us", f"{PEER}, us", f"{PEER} : {OURS}"],
          [[case.name, *(f"{(case.best_ns(who) or 0) / 1e3:.2f}" for who in (OURS, PEER)), f"{ratio_of(case):.1f}"]
           for case in cases])
    missed = [case.name for case in cases if ratio_of(case) < BAR]
    write("serdes", {"serializers with a registry": cases}, effort.rounds, arguments.json)
    if missed and not arguments.quick:
        print(f"below {BAR}: {', '.join(missed)}")
        return 1
    return 0


def ratio_of(case: Case) -> float:
    """How many times what ours costs the peer takes."""
    return (case.best_ns(PEER) or 0.0) / (case.best_ns(OURS) or 1.0)


def cases_of(of: str, value: dict[str, Any]) -> list[Case]:
    """Writing and reading a value in each format, by both."""
    cases = []
    for form, make in {"Avro": avro, "JSON Schema": json_schema, "Protobuf": protobuf}.items():
        ours, theirs = make("headrace", value), make("confluent_kafka", value)
        for which, what in enumerate(("serialize", "deserialize")):
            left, right = ours[which](), theirs[which]()
            assert left == right, f"{form}: {left!r} and {right!r}"
            cases.append(Case(f"{what} {form}, {of}", {OURS: ours[which], PEER: theirs[which]}))
    return cases


def avro(package: str, value: dict[str, Any]) -> Both:
    """Functions that serialize and deserialize with Avro."""
    k = _parts(package, "avro")
    schema = json.dumps({"type": "record", "name": "Value", "namespace": "benchmarks", "fields": [
        {"name": name, "type": ["null", "string"] if name.startswith("color") else AVRO_TYPES[type(each)]}
        for name, each in value.items()]})
    return _both(k, k["AvroSerializer"](k["client"], schema), k["AvroDeserializer"](k["client"]), value)


def json_schema(package: str, value: dict[str, Any]) -> Both:
    """Functions that serialize and deserialize with JSON, checked."""
    k = _parts(package, "json_schema")
    schema = json.dumps({"$schema": "http://json-schema.org/draft-07/schema#", "title": "Value", "type": "object",
                         "properties": {name: {"type": JSON_TYPES[type(each)]} for name, each in value.items()},
                         "required": list(value)})
    return _both(k, k["JSONSerializer"](schema, k["client"]),
                 k["JSONDeserializer"](schema, schema_registry_client=k["client"]), value)


def protobuf(package: str, value: dict[str, Any]) -> Both:
    """Functions that serialize and deserialize with Protobuf."""
    k = _parts(package, "protobuf")
    kind = message_class(tuple((name, type(each)) for name, each in value.items()))
    return _both(k, k["ProtobufSerializer"](kind, k["client"]),
                 k["ProtobufDeserializer"](kind, schema_registry_client=k["client"]), kind(**value))


@cache
def message_class(fields: tuple[tuple[str, type], ...]) -> Any:
    """A Protobuf message with fields of these names and types."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="benchmarks.proto", package="benchmarks", syntax="proto3")
    message = file.message_type.add(name="Value")
    types = {str: descriptor_pb2.FieldDescriptorProto.TYPE_STRING, int: descriptor_pb2.FieldDescriptorProto.TYPE_INT64,
             float: descriptor_pb2.FieldDescriptorProto.TYPE_DOUBLE}
    for number, (name, kind) in enumerate(fields, 1):
        message.field.add(name=name, number=number, type=types[kind],
                          label=descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("benchmarks.Value"))


def _parts(package: str, form: str) -> dict[str, Any]:
    from importlib import import_module

    found: dict[str, Any] = {}
    for module in ("serialization", "schema_registry", f"schema_registry.{form}"):
        found |= vars(import_module(f"{package}.{module}"))
    found["client"] = found["SchemaRegistryClient"].new_client({"url": f"mock://{uuid.uuid4()}"})
    return found


def _both(k: dict[str, Any], serializer: Any, deserializer: Any, value: Any) -> Both:
    context = k["SerializationContext"]("benchmarks", k["MessageField"].VALUE)
    payload = serializer(value, context)
    return lambda: serializer(value, context), lambda: deserializer(payload, context)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
