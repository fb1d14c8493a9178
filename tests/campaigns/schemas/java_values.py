"""Values through Java's Avro: it reads what we have written, and we read what it has written."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from pathlib import Path

from headrace.client.schema_serdes.codecs.avro_codec import decoder_of, parsed
from tests.campaigns.avro.java_avro import answers

_SOURCE = Path(__file__).with_name("AvroRoundTrip.java")


def differences_with_java(written: Sequence[tuple[str, bytes]]) -> list[str]:
    """What Java's Avro reads or writes otherwise.

    Args:
        written: schemas, and a value of each as we write it.

    Returns:
        A line for each value that Java refuses, or that is another one when Java has read and written it: the bytes may
        differ where there are maps, which have no order in Java.
    """
    found = []
    questions = [{"schema": text, "value": b64encode(payload).decode()} for text, payload in written]
    for (text, payload), said in zip(written, answers(_SOURCE, questions), strict=True):
        again = b64decode(said["value"]) if "value" in said else b""
        if "error" in said:
            found.append(f"{text}: Java cannot read {payload!r}: {said['error']}")
        elif again != payload:
            read = decoder_of(parsed(text))
            if read(again) != read(payload):
                found.append(f"{text}: Java makes {again!r} of {payload!r}")
    return found
