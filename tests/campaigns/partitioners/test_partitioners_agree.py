"""A part of what `python -m tests.campaigns.partitioners` compares: librdkafka, Java and we put keys on the same
partitions."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest

pytest.importorskip("confluent_kafka")

from .agreement import HASHING, JAVAS, NAMES, chi_square, compare_keys, compare_lots, random_keys, topics, unlikely


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with topics() as made:
        yield made


def class_path() -> str:
    artifacts = pytest.importorskip("tools.kafka.artifacts")
    if shutil.which("javac") is None:
        _unavailable("the test compiles a small Java program and needs a JDK (javac) on the PATH")
    try:
        return str(artifacts.class_path("4.4.0"))
    except artifacts.RegistryError as error:
        _unavailable(str(error))
        raise


def _unavailable(reason: str) -> None:
    (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)


@pytest.mark.parametrize("partitioner", HASHING)
def test_keys_land_where_librdkafka_puts_them(servers: str, partitioner: str) -> None:
    totals = compare_keys(servers, partitioner, random_keys(1000, 1), None)
    assert {what: number for what, number in totals.items() if number and what.endswith("differences")} == {}
    assert totals["our producer and librdkafka: keys"] > 6900


@pytest.mark.kafka
def test_keys_land_where_java_puts_them(servers: str) -> None:
    for partitioner in JAVAS:
        totals = compare_keys(servers, partitioner, random_keys(1000, 2), class_path())
        assert totals["Java and librdkafka: keys"] == 7000
        assert totals["Java and librdkafka: differences"] == totals["our producer and librdkafka: differences"] == 0


@pytest.mark.parametrize("partitioner", NAMES)
def test_records_without_a_key_go_as_with_librdkafka(servers: str, partitioner: str) -> None:
    shown = compare_lots(servers, partitioner, 1000)
    by_lot = {key for key, what in shown.items() if what.startswith(("turns", "lots"))}
    assert by_lot == {
        "consistent": set(), "murmur2": set(), "fnv1a": set(), "consistent_random": {"None", "b''"},
        "murmur2_random": {"None"}, "fnv1a_random": {"None"}, "random": {"None", "b''", "b'key'"},
    }[partitioner]


def test_uneven_draws_are_noticed() -> None:
    assert chi_square([0, 1, 2] * 400, 3) == 0
    assert chi_square([0, 1, 2] * 350 + [0] * 150, 3) > unlikely(3)
