"""Byte for byte as Java: every message and version through the codecs inside Kafka's own client."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from java_codecs import JavaCodecs, differences
from wire_values import all_messages, random_message

from headrace.wire.codec import decode, encode
from headrace.wire.schema import Message

pytestmark = pytest.mark.kafka

_VERSIONS = ("4.4.0", "3.9.2")  # the newest; and the last that knows every version back to 0
_MESSAGES_EACH = 4


@pytest.fixture(scope="module", params=_VERSIONS)
def java(request: pytest.FixtureRequest) -> Iterator[JavaCodecs]:
    artifacts = pytest.importorskip("tools.kafka.artifacts")
    compiler = shutil.which("javac")
    if compiler is None:
        _unavailable("the test compiles a small Java program and needs a JDK (javac) on the PATH")
    try:
        class_path = artifacts.class_path(request.param)
    except artifacts.RegistryError as error:
        _unavailable(str(error))
    with JavaCodecs(str(Path(compiler or "").with_name("java")), class_path) as codecs:
        yield codecs


def _unavailable(reason: str) -> None:
    (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)


@pytest.mark.parametrize("cls", [cls for cls in all_messages() if "Sticky" not in cls.__name__], ids=lambda cls: cls.__name__)
def test_java_reads_what_we_write_and_we_read_what_java_writes(java: JavaCodecs, cls: type[Message]) -> None:
    random = Random(cls.__name__)
    for version in _shared_versions(java, cls):
        for message in [cls(), *(random_message(cls, version, random) for _ in range(_MESSAGES_EACH))]:
            data = encode(message, version)
            written, read = java.echo(cls, version, data)
            assert written == data, f"v{version}: {message}"
            assert differences(message, read, version) == []
            assert decode(cls, written, version) == message


def _shared_versions(java: JavaCodecs, cls: type[Message]) -> list[int]:
    ours = range(cls.min_version, cls.max_version + 1)
    if not hasattr(cls, "api_key"):
        return list(ours)
    name = cls.__name__.removesuffix("Request").removesuffix("Response")
    return [version for version in java.versions(cls.api_key, name) if version in ours]
