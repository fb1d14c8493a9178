"""Where librdkafka, Java and we put the same keys.

librdkafka (as `confluent_kafka`) and our producer produce the same records to the same topics; where they went is read
from their delivery reports. The plain twin's hashes, and Java's `BuiltInPartitioner.partitionForKey`, are asked
directly.
"""

from __future__ import annotations

import math
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import confluent_kafka

import headrace
from headrace.records.hashing import PARTITIONERS
from headrace.testing import EmbeddedBroker
from tools.jvm_options import SHORT_LIVED

COUNTS = (1, 2, 3, 7, 12, 100, 1000)
"""Numbers of partitions that are tried."""
HASHING = ("consistent", "consistent_random", "murmur2", "murmur2_random", "fnv1a", "fnv1a_random")
NAMES = (*HASHING, "random")
"""All of librdkafka's partitioners."""
JAVAS = ("murmur2", "murmur2_random")
"""Those that hash as Java does."""

LONGEST_TURN_MS = 900_000
_JAVA = Path(__file__).with_name("Partitions.java")
_LOTS_OVER = 12
Key = bytes | str | None


class Disagreement(AssertionError):
    """Two of the three do not agree."""


def random_keys(count: int, seed: int) -> list[bytes | str]:
    """Keys of 0 to 100 bytes of any value, and texts of 0 to 100 characters of any plane."""
    chance = Random(seed)
    return [_text(chance) if index % 3 == 0 else chance.randbytes(chance.randrange(101)) for index in range(count)]


def _text(chance: Random) -> str:
    widest = chance.choice((0x7F, 0x7FF, 0xD7FF, 0x10FFFF))
    codes = (chance.randrange(widest + 1) for _ in range(chance.randrange(101)))
    return "".join(chr(code) for code in codes if not 0xD800 <= code <= 0xDFFF)


def encoded(key: bytes | str) -> bytes:
    """As a record has it."""
    return key.encode() if isinstance(key, str) else key


@contextmanager
def topics() -> Iterator[str]:
    """An embedded broker with a topic of each count; where it is."""
    with EmbeddedBroker(topics={topic_of(count): count for count in COUNTS}) as broker:
        yield broker.bootstrap_servers


def topic_of(count: int) -> str:
    """The topic with so many partitions."""
    return f"of-{count}"


def placed(maker: Callable[[dict[str, Any]], Any], servers: str, partitioner: str, count: int, keys: Sequence[Key],
           turn_ms: int = 0) -> list[int]:
    """Produce a record for each key; the partitions, as the delivery reports say.

    The first record goes alone: librdkafka's first turns, before it has talked to the leaders, are one record long.

    Args:
        maker: `confluent_kafka.Producer` or `headrace.Producer`.
        servers: where.
        partitioner: its name.
        count: of the topic's partitions.
        keys: of the records.
        turn_ms: `sticky.partitioning.linger.ms`.
    """
    found = [-1] * len(keys)

    def report(error: Any, message: Any) -> None:
        if error is not None:
            raise Disagreement(f"not delivered: {error}")
        found[int(message.value())] = message.partition()

    # Ours would send fewer to a broker that is slow at the moment (KIP-794), which librdkafka does not.
    evenly = {"partitioner.adaptive.partitioning.enable": False} if maker is headrace.Producer else {}
    producer = maker({"bootstrap.servers": servers, "partitioner": partitioner, "on_delivery": report, "linger.ms": 20,
                      "sticky.partitioning.linger.ms": turn_ms, "queue.buffering.max.messages": 200_000, **evenly})
    for index, key in enumerate(keys):
        while True:
            try:
                producer.produce(topic_of(count), b"%d" % index, key)
                break
            except BufferError:
                producer.poll(0.1)
        if index == 0:
            producer.flush(60)
    producer.flush(600)
    if -1 in found:
        raise Disagreement(f"no report for record {found.index(-1)}")
    return found


def javas(class_path: str, keys: Sequence[bytes], java: str = "java") -> dict[int, list[int]]:
    """Where Java puts keys, by count.

    Args:
        class_path: Kafka's jars.
        keys: keys.
        java: a `java` of a JDK.
    """
    done = subprocess.run(
        [java, *SHORT_LIVED, "-cp", class_path, str(_JAVA), *map(str, COUNTS)],
        input="".join(key.hex() + "\n" for key in keys), capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if done.returncode or len(lines) != len(keys):
        raise Disagreement(f"Java failed: {done.stderr}")
    columns = zip(*([int(word) for word in line.split()] for line in lines), strict=True)
    return dict(zip(COUNTS, map(list, columns), strict=True))


def compare_keys(servers: str, partitioner: str, keys: Sequence[bytes | str], class_path: str | None) -> Counter[str]:
    """Compare where the keys of one partitioner go, for each count.

    Args:
        servers: a broker with `topics`.
        partitioner: one of `HASHING`.
        keys: keys.
        class_path: Kafka's jars, to ask Java as well where it hashes the same; None does not.

    Returns:
        How many were compared, and how many differed, by pair.
    """
    hashed, by_lot = PARTITIONERS[partitioner]
    assert hashed is not None
    keys = [key for key in keys if key or by_lot != "empty"]
    raw = [encoded(key) for key in keys]
    hashes = [hashed(key) for key in raw]
    java = javas(class_path, raw) if class_path is not None and partitioner in JAVAS else {}
    totals: Counter[str] = Counter()
    for count in COUNTS:
        librdkafka = placed(confluent_kafka.Producer, servers, partitioner, count, keys)
        answers = {"our producer": placed(headrace.Producer, servers, partitioner, count, keys),
                   "plain twin": [number % count for number in hashes], **({"Java": java[count]} if java else {})}
        for who, answer in answers.items():
            totals[f"{who} and librdkafka: keys"] += len(keys)
            totals[f"{who} and librdkafka: differences"] += sum(map(int.__ne__, answer, librdkafka))
    return totals


def kind_of(maker: Callable[[dict[str, Any]], Any], servers: str, partitioner: str, key: Key) -> str:
    """What becomes of many records with one key: all to a fixed partition, all to one drawn by lot, or each by lot."""
    lots = set(placed(maker, servers, partitioner, 1000, [key] * 50, 0)[1:])
    turns = set(placed(maker, servers, partitioner, 1000, [key] * 50, LONGEST_TURN_MS)[1:])
    if lots == turns:
        return f"partition {lots}"
    return "turns" if len(turns) == 1 and len(lots) > 1 else "lots"


def chi_square(partitions: Sequence[int], count: int) -> float:
    """How far from uniform so many draws are."""
    drawn, mean = Counter(partitions), len(partitions) / count
    return sum((drawn[partition] - mean) ** 2 / mean for partition in range(count))


def unlikely(count: int) -> float:
    """A chi-square that a uniform draw exceeds less than once in 100,000 times."""
    return count - 1 + 8 * math.sqrt(2 * (count - 1))


def compare_lots(servers: str, partitioner: str, draws: int) -> dict[str, str]:
    """Compare what becomes of records without a key, and with an empty one: the kind, and how even the lots are.

    Returns:
        What it is, by key.

    Raises:
        Disagreement: librdkafka does otherwise, or one of the two does not draw evenly.
    """
    shown = {}
    for key in (None, b"", b"key") if partitioner == "random" else (None, b""):
        kinds = [kind_of(maker, servers, partitioner, key) for maker in (confluent_kafka.Producer, headrace.Producer)]
        if kinds[0] != kinds[1]:
            raise Disagreement(f"{partitioner}, key {key!r}: librdkafka {kinds[0]}, we {kinds[1]}")
        shown[repr(key)] = kinds[0]
        if kinds[0] in ("turns", "lots"):
            spread = [chi_square(placed(maker, servers, partitioner, _LOTS_OVER, [key] * draws), _LOTS_OVER)
                      for maker in (confluent_kafka.Producer, headrace.Producer)]
            if max(spread) > unlikely(_LOTS_OVER):
                raise Disagreement(f"{partitioner}, key {key!r}: chi-square {spread} of librdkafka and us")
            shown[repr(key)] += ", chi-square librdkafka {:.1f}, we {:.1f}".format(*spread)
    return shown
