"""One case through all that read and write Avro."""

from __future__ import annotations

import io
import json
import random
from functools import cache
from typing import Any

import avro.errors
import avro.io
import avro.schema
import fastavro

from headrace.client.schema_serdes.avro_serdes import AvroDeserializer, AvroSerializer
from headrace.client.schema_serdes.codecs.avro_codec import decoder_of, encoder_of, parsed
from headrace.client.schema_serdes.codecs.avro_plans import plain_writer
from headrace.errors import SerializationError
from headrace.serialization import MessageField, SerializationContext
from tests.support.shared_registry import OverTheirs, emptied, their_client

from .cases import Case

VALUE = SerializationContext("t", MessageField.VALUE)
_one_client = cache(their_client)


class DisagreementError(AssertionError):
    """Two do not say the same."""


def check(
    seed: int, *, apache: bool = False, peer: bool = False, written: list[tuple[str, bytes]] | None = None
) -> str:
    """Write and read the values of a case.

    Args:
        seed: of the case.
        apache: Apache's avro for Python reads them too.
        peer: confluent_kafka's serializers write and read them too.
        written: takes the schema and the bytes of each value, for others.

    Returns:
        What kind of schema it was: "made", if a function was made for it, or "fastavro".

    Raises:
        DisagreementError: somebody does something else.
    """
    case = Case(random.Random(seed))
    text = json.dumps(case.schema)
    theirs = fastavro.parse_schema(json.loads(text))
    ours = parsed(text)
    write = encoder_of(ours)
    for value in (case.value(), case.value()):
        expected = _outcome(lambda value=value: _fastavro(theirs, value))
        _same(f"seed {seed}: {text} of {value!r}", _outcome(lambda value=value: bytes(write(value))), expected)
        if isinstance(expected, bytes):
            _read(seed, text, ours, theirs, expected)
            if written is not None:
                written.append((text, expected))
            if apache and not case.has_logical:
                _apache(seed, text, expected, theirs)
            if peer:
                _peer(seed, text, value)
        wrong = case.wrong(value)
        _same(f"seed {seed}: {text} of {wrong!r}", _outcome(lambda wrong=wrong: bytes(write(wrong))),
              _outcome(lambda wrong=wrong: _fastavro(theirs, wrong)))
    return "fastavro" if plain_writer(ours.content, ours.names) is None else "made"


def _fastavro(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return out.getvalue()


def _outcome(call: Any) -> Any:
    try:
        return call()
    except Exception as error:
        return type(error).__name__


def _same(what: str, ours: Any, theirs: Any) -> None:
    if ours != theirs:
        raise DisagreementError(f"{what}: {ours!r}, and not {theirs!r}")


def _read(seed: int, text: str, ours: Any, theirs: Any, payload: bytes) -> None:
    """What is written is read as fastavro reads it; of what is cut off, both say that it is."""
    expected = fastavro.schemaless_reader(io.BytesIO(payload), theirs, None)
    try:
        read = decoder_of(ours)
    except SerializationError as error:
        raise DisagreementError(f"seed {seed}: {text}: {error}") from error
    _same(f"seed {seed}: {text} reads", repr(read(payload)), repr(expected))
    if payload:
        cut = payload[:-1]
        _same(f"seed {seed}: {text} reads what is cut", isinstance(_outcome(lambda: read(cut)), str) or None,
              isinstance(_outcome(lambda: fastavro.schemaless_reader(io.BytesIO(cut), theirs, None)), str) or None)


def _apache(seed: int, text: str, payload: bytes, theirs: Any) -> None:
    try:
        schema = avro.schema.parse(text)
    except avro.errors.AvroException:
        return  # more particular about names
    read = avro.io.DatumReader(schema).read(avro.io.BinaryDecoder(io.BytesIO(payload)))
    _same(f"seed {seed}: {text} Apache reads", repr(read),
          repr(fastavro.schemaless_reader(io.BytesIO(payload), theirs, None)))


def _peer(seed: int, text: str, value: Any) -> None:
    import confluent_kafka.schema_registry.avro as peer
    import confluent_kafka.serialization as serialization

    client = emptied(_one_client())
    context = serialization.SerializationContext("t", serialization.MessageField.VALUE)
    theirs = _outcome(lambda: peer.AvroSerializer(client, text)(value, context))
    ours = _outcome(lambda: AvroSerializer(OverTheirs(client), text)(value, VALUE))
    if isinstance(theirs, str):  # an error, as of a decimal that is no part of a record
        _same(f"seed {seed}: {text} of {value!r} fails", isinstance(ours, str), True)
        return
    _same(f"seed {seed}: {text} of {value!r} framed", ours, theirs)
    if theirs is not None and len(theirs) > 5:  # confluent_kafka reads nothing shorter
        _same(f"seed {seed}: {text} deserialized", repr(AvroDeserializer(OverTheirs(client))(theirs, VALUE)),
              repr(peer.AvroDeserializer(client)(ours, context)))
