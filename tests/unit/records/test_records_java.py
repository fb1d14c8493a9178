"""Batch for batch as Java: a part of what `python -m tests.unit.records.java_batches` compares."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest

from .java_batches import VERSIONS, Difference, JavaBatches, compare, kinds
from .samples import simple

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module", params=VERSIONS)
def java(request: pytest.FixtureRequest) -> Iterator[tuple[JavaBatches, bool]]:
    """Kafka's batches of a version, and whether it converts down."""
    artifacts = pytest.importorskip("tools.kafka.artifacts")
    if shutil.which("javac") is None:
        _unavailable("the test compiles a small Java program and needs a JDK (javac) on the PATH")
    try:
        class_path = artifacts.class_path(request.param)
    except artifacts.RegistryError as error:
        _unavailable(str(error))
    with JavaBatches(class_path) as batches:
        yield batches, request.param.startswith("3.")


def _unavailable(reason: str) -> None:
    (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)


def test_batches_are_what_java_makes_reads_compacts_and_converts(java: tuple[JavaBatches, bool]) -> None:
    counts = compare(java[0], 16, 72, java[1])
    done = {"built", "log", "marker", "compacted", "rewritten", "upgraded"} | ({"downgraded"} if java[1] else set())
    assert {name for name in done if counts[f"{name}: batches"] > 0} == done


@pytest.mark.slow
def test_every_kind_of_batch_is_what_java_makes(java: tuple[JavaBatches, bool]) -> None:
    assert compare(java[0], len(kinds()), 0, java[1])["built: batches"] > len(kinds())


def test_what_java_cannot_read_is_told(java: tuple[JavaBatches, bool]) -> None:
    damaged = bytearray(simple([b"value"]))
    damaged[-2] ^= 1
    with pytest.raises(Difference, match="corrupt"):
        java[0].ask("READ", damaged.hex())
