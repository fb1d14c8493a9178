"""Our wire format beside Kafka's own, in three releases of its Java client.

    python -m tests.campaigns.conformance fields                       every field of every schema, both ways
    python -m tests.campaigns.conformance bytes --cases 200 --jobs 2   every message and version, bytes from us and from
    Java python -m tests.campaigns.conformance errors                       the table of error codes

Each prints what it has counted and ends with status 1 when anything differs. `--jar` chooses one release.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

from headrace.error_codes import CODES
from headrace.errors import KafkaException
from headrace.wire.codec import decode, encode
from headrace.wire.schema import ApiMessage
from tests.campaigns.conformance.java_codecs import JavaCodecs, differences, parse
from tests.campaigns.conformance.kafka_schemas import (
    JARS,
    NOT_IN_JARS,
    OLD_NAMES,
    Comparison,
    clients_jar,
    compare_all,
    read_schemas,
    stable_versions,
    unknown_versions,
)
from tests.campaigns.conformance.wire_values import all_messages, case

_BATCH = 64
_SHOWN = 20


class Pair(NamedTuple):
    """One message in one version, and what Java calls it."""

    cls: type[ApiMessage]
    version: int
    java_name: str


Case = tuple[Pair, int]
"""What to compare, and the number of the values in their series."""


class Tally(NamedTuple):
    """How many messages were compared, and what differs."""

    cases: int
    differences: list[str]


def fields(jars: Iterable[str]) -> list[Comparison]:
    """Compare every field with the schemas inside the jars."""
    schemas = {jar: read_schemas(clients_jar(jar)) for jar in jars}
    found = [compare_all(jar, schemas[jar], all_messages()) for jar in schemas]
    if len(schemas) == len(JARS):
        found[0].differences += unknown_versions(list(schemas.values()), all_messages())
    return found


def pairs_of(jar: str) -> list[Pair]:
    """Every message and version that a release serves."""
    schemas = read_schemas(clients_jar(jar))
    found = []
    for cls in all_messages():
        name = cls.__name__ if cls.__name__ in schemas else OLD_NAMES.get(cls.__name__, cls.__name__)
        if cls.__name__ in NOT_IN_JARS:
            versions = range(cls.min_version, cls.max_version + 1)
        else:
            versions = stable_versions(name, schemas) if name in schemas else range(0)
        found += [Pair(cls, version, name) for version in versions]
    return found


def exchange(jar: str, work: Sequence[Case], seed: int) -> Tally:
    """Our bytes through Java, and Java's bytes through us."""
    found: list[str] = []
    with JavaCodecs(jar) as java:
        for start in range(0, len(work), _BATCH):
            batch = work[start:start + _BATCH]
            ours = [case(pair.cls, pair.version, number, seed) for pair, number in batch]
            data = [encode(message, pair.version) for (pair, _), message in zip(batch, ours, strict=True)]
            lines = [f"ECHO {pair.java_name} {pair.version} {sent.hex()}"
                     for (pair, _), sent in zip(batch, data, strict=True)]
            for (pair, number), message, sent, answer in zip(batch, ours, data, java.ask(lines), strict=True):
                found += _told(pair, number, _java_read_ours(jar, pair, message, sent, answer))
            lines = [f"MAKE {pair.java_name} {pair.version} {seed + number}" for pair, number in batch]
            for (pair, number), answer in zip(batch, java.ask(lines), strict=True):
                found += _told(pair, number, _we_read_java(jar, pair, answer))
    return Tally(2 * len(work), found)


def _told(pair: Pair, number: int, texts: list[str]) -> list[str]:
    return [f"{pair.cls.__name__} v{pair.version} case {number}: {text}" for text in texts]


def _java_read_ours(jar: str, pair: Pair, message: Any, sent: bytes, answer: str) -> list[str]:
    try:
        written, read = parse(answer)
        again = encode(decode(pair.cls, written, pair.version), pair.version)
    except (ValueError, KafkaException) as error:
        return [f"our bytes: {error}"]
    texts = differences(message, read, pair.version, jar)
    texts += ["Java writes other bytes than we sent"] if written != sent else []
    return texts + (["we write other bytes than we read"] if again != written else [])


def _we_read_java(jar: str, pair: Pair, answer: str) -> list[str]:
    try:
        data, values = parse(answer)
        message = decode(pair.cls, data, pair.version)
        again = encode(message, pair.version)
    except (ValueError, KafkaException) as error:
        return [f"Java's bytes: {error}"]
    texts = differences(message, values, pair.version, jar)
    return texts + (["we write other bytes than Java sent"] if again != data else [])


def compare_errors(jar: str) -> tuple[int, list[str]]:
    """Our error codes beside Java's: how many, and what differs."""
    with JavaCodecs(jar) as java:
        theirs = java.errors()
    found = []
    for code, (name, retriable, _) in theirs.items():
        row = CODES.get(code)
        if row is None:
            found.append(f"{code} {name} is missing")
        elif (row.kafka_name, row.retriable) != (name, retriable):
            found.append(f"{code}: {name}, retriable {retriable}; here {row.kafka_name}, {row.retriable}")
    if jar == JARS[0]:
        found += [f"{code} is only here" for code in CODES if code >= -1 and code not in theirs]
    return len(theirs), found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one comparison; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.conformance", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("fields", "bytes", "errors"))
    parser.add_argument("--cases", type=int, default=20, help="messages from each side, for each message and version")
    parser.add_argument("--jobs", type=int, default=1, help="processes, each with a JVM")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jar", choices=JARS, action="append", help="release of Kafka; all three when left out")
    options = parser.parse_args(arguments)
    jars = options.jar or list(JARS)
    run = {"fields": lambda: _print_fields(jars), "errors": lambda: _print_errors(jars),
           "bytes": lambda: _print_bytes(jars, options.cases, options.jobs, options.seed)}
    differing = run[options.what]()
    for text in differing[:_SHOWN]:
        print(f"  {text}")
    print(f"{len(differing)} differences")
    return 1 if differing else 0


def _print_fields(jars: list[str]) -> list[str]:
    found = fields(jars)
    for one in found:
        print(f"kafka-clients {one.jar}: {one.messages} messages, {one.structs} structs, {one.fields} fields compared, "
              f"{len(one.differences)} differences")
    print(f"{len(found)} jars, {sum(one.messages for one in found)} messages, {sum(one.structs for one in found)} "
          f"structs, {sum(one.fields for one in found)} fields")
    return [f"{one.jar}: {text}" for one in found for text in one.differences]


def _print_errors(jars: list[str]) -> list[str]:
    found = []
    for jar in jars:
        count, texts = compare_errors(jar)
        print(f"kafka-clients {jar}: {count} error codes compared, {len(texts)} differences")
        found += [f"{jar}: {text}" for text in texts]
    return found


def _print_bytes(jars: list[str], cases: int, jobs: int, seed: int) -> list[str]:
    found = []
    with ProcessPoolExecutor(jobs) as pool:
        for jar in jars:
            pairs = pairs_of(jar)
            work = [[(pair, number) for pair in pairs[job::jobs] for number in range(cases)] for job in range(jobs)]
            shares = [pool.submit(exchange, jar, share, seed) for share in work]
            tallies = [share.result() for share in shares]
            texts = [text for tally in tallies for text in tally.differences]
            apis = sum(1 for pair in pairs if hasattr(pair.cls, "api_key"))
            print(f"kafka-clients {jar}: {len(pairs)} pairs of message and version ({apis} of requests and responses), "
                  f"{sum(tally.cases for tally in tallies)} messages compared, {len(texts)} differences", flush=True)
            found += [f"{jar}: {text}" for text in texts]
    return found


if __name__ == "__main__":
    sys.exit(main())
