"""Our batches beside Java's: built by both, read by both, compacted, converted up and down, and compared.

    python -m tests.unit.records.java_batches --cases 2000

Uncompressed batches must have the same bytes. Compressed ones may differ in bytes, because compressors do; each side
must read in the other's bytes exactly what it reads in its own. Exit status 1 on a difference.
"""

from __future__ import annotations

import argparse
import itertools
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, NamedTuple

from headrace.errors import KafkaError, KafkaException
from headrace.records import MAX_DECOMPRESSED_BYTES, decompress, scan, set_base_offset
from headrace.records.batch_writer import write_batch, write_end_marker
from headrace.records.columns import arrow
from headrace.records.compression import ZSTD
from headrace.records.control import CONTROL_NAMES, MARKER_KEY, MARKER_VALUE, control_records
from headrace.records.header import HEADER_BYTES, BatchInfo
from headrace.records.legacy.conversion import downgrade, upgrade
from headrace.records.legacy.message_set_writer import write_message_set
from headrace.records.record import read_all, wrapped
from tests.support.twins import NATIVE, PLAIN
from tools.jvm_options import SHORT_LIVED

VERSIONS = ("4.4.0", "3.9.2")
"""The newest Kafka; and the last that converts down, and still has every format's own classes in use."""

_SOURCE = Path(__file__).with_name("Batches.java")
_TWINS = (PLAIN,) if NATIVE is None else (NATIVE, PLAIN)
Row = tuple[int, int, bytes | None, bytes | None, list[tuple[bytes, bytes | None]]]


class Difference(AssertionError):
    """Java and we do not agree."""


class JavaBatches:
    """Kafka's own batches as a child process: Batches.java on the class path of a Kafka distribution.

    Args:
        class_path: the jars of a Kafka broker.
        java: a `java` of a JDK; it compiles the program.
    """

    def __init__(self, class_path: str, java: str = "java") -> None:
        self._directory = tempfile.TemporaryDirectory()
        source = Path(self._directory.name, _SOURCE.name)
        source.write_text(_in_packages_of(class_path, _SOURCE.read_text()))
        self._process = subprocess.Popen([java, *SHORT_LIVED, "-cp", class_path, str(source)],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                         text=True)

    def __enter__(self) -> JavaBatches:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()
        self._directory.cleanup()

    def ask(self, *words: object) -> str:
        """One command's answer; raises `Difference` when it is an error."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the Java process has ended")
        if answer.startswith("ERROR"):
            raise Difference(f"{words[0]}: {answer.strip()}")
        return answer.rstrip("\n")

    def bytes_of(self, *words: object) -> bytes:
        """One command's answer, as bytes."""
        return bytes.fromhex(self.ask(*words))


def _in_packages_of(class_path: str, source: str) -> str:
    """Kafka 4.2 and later have these classes in packages of other names."""
    if "kafka-clients-3." in class_path:
        return source
    source = re.sub(r"^(import org\.apache\.kafka\.common\.record)\.(?!TimestampType)", r"\1.internal.", source,
                    flags=re.MULTILINE)
    return re.sub(r"common\.utils\.(?=BufferSupplier|ByteBufferOutputStream|PrimitiveRef)", "common.utils.internals.",
                  source)


# What we read, in Java's words

def described(twin: Any, data: bytes) -> str:
    """Every field of every batch and record, as Batches.java prints them."""
    twin.verify(data)
    words = []
    for info in twin.scan(data):
        words.append(",".join(map(str, _header_fields(info))))
        batch = data[info.position : info.position + info.size]
        words += _control_words(batch) if info.is_control else _record_words(twin.Cursor(batch, "t", 0, 0))
    return " ".join(words)


def _header_fields(info: BatchInfo) -> list[object]:
    old, horizon = info.magic < 2, info.delete_horizon_ms
    return ["B", info.magic, "-" if old else info.base_offset, info.last_offset, info.last_offset + 1, info.codec,
            "L" if info.is_log_append_time else "C", info.max_timestamp, info.leader_epoch, info.producer_id,
            info.epoch, info.base_sequence, info.last_sequence, int(info.is_transactional), int(info.is_control),
            "-" if horizon is None else horizon, "-" if old else info.count, info.size]


def _hex(data: bytes | None) -> str:
    return "-" if data is None else data.hex()


def _record_words(cursor: Any) -> Iterator[str]:
    while not cursor.exhausted:
        for message in cursor.take(100):
            kind, timestamp = message.timestamp()
            headers = ",".join(f"{name.encode().hex()}={_hex(value)}" for name, value in message.headers() or ())
            yield (f"{message.offset()}:{timestamp if kind else -1}:{_hex(message.key())}:{_hex(message.value())}:"
                   f"{headers}")


def tabled(data: bytes) -> list[str]:
    """The records as Arrow's columns hold them, in Java's words but with microseconds."""
    table, _ = arrow.to_arrow(data, "t", 0, 0, headers=True)
    times = table["timestamp"].cast("int64").to_pylist()
    return [f"{offset}:{micros}:{_hex(key)}:{_hex(value)}:"
            + ",".join(f"{pair['key'].encode().hex()}={_hex(pair['value'])}" for pair in headers or ())
            for offset, micros, key, value, headers in zip(
                table["offset"].to_pylist(), times, *(table[name].to_pylist() for name in ("key", "value", "headers")),
                strict=True)]


def _in_micros(word: str) -> str:
    offset, timestamp, rest = word.split(":", 2)
    return f"{offset}:{min(int(timestamp) * 1000, (1 << 63) - 1)}:{rest}"


def _control_words(batch: bytes) -> Iterator[str]:
    for record in control_records(batch):
        yield (f"{record.offset}:{record.timestamp_ms}:{CONTROL_NAMES[record.type]}:{record.coordinator_epoch}:"
               f"{_hex(record.value)}")


def _sizeless(description: str) -> str:
    """Without the batches' sizes, which depend on the compressor."""
    return " ".join(word.rpartition(",")[0] if word.startswith("B,") else word for word in description.split(" "))


# What is built

class Kind(NamedTuple):
    """What a batch is, apart from its records."""

    magic: int
    codec: int
    by_broker: bool  # timestamps
    idempotent: bool = False
    transactional: bool = False
    control: bool = False
    horizon: bool = False


def kinds() -> list[Kind]:
    """Every kind of batch that there can be."""
    old = [Kind(magic, codec, by_broker) for magic, codec, by_broker in itertools.product(
        (0, 1), range(4), (False, True))]
    new = [Kind(2, *fields) for fields in itertools.product(range(5), *[(False, True)] * 5)]
    return old + [kind for kind in new if kind.idempotent or not kind.transactional]


class Fields(NamedTuple):
    """The numbers of a batch's header."""

    base_offset: int
    append_time: int
    producer_id: int
    epoch: int
    sequence: int
    leader_epoch: int
    horizon: int


def random_content(chance: Random) -> bytes | None:
    """A key or value: null, empty, small, and rarely more than a compressor's block."""
    kind = chance.random()
    if kind < 0.1:
        return None
    if kind < 0.2:
        return b""
    if kind > 0.985:
        size = chance.choice((32_768, 33_000, 65_536, 65_600, 131_072, 132_000, 300_000))
        return chance.randbytes(size) if chance.random() < 0.5 else (chance.randbytes(40) * (size // 40 + 1))[:size]
    return chance.randbytes(chance.choice((1, 5, 20, 63, 64, 65, 200)))


def random_rows(chance: Random, kind: Kind, base_offset: int) -> list[Row]:
    """Records with headers where the format has them; offsets with gaps now and then."""
    rows: list[Row] = []
    offset, gaps = base_offset, chance.random() < 0.3
    for _ in range(chance.choice((1, 1, 2, 3, 7, 20, chance.randrange(1, 400)))):
        offset += chance.choice((0, 0, 0, 1, 100)) if gaps else 0
        timestamp = chance.choice((chance.randrange(1 << 41), 0, -1, (1 << 63) - 1, 1_700_000_000_000))
        if kind.control:
            number = chance.randrange(len(CONTROL_NAMES))
            value = MARKER_VALUE.pack(0, chance.randrange(1 << 31)) if number < 2 else chance.randbytes(9)
            rows.append((offset, timestamp, MARKER_KEY.pack(0, number), value, []))
        else:
            count = chance.choice((0, 0, 1, 3)) if kind.magic == 2 else 0
            headers = [(chance.choice((b"", b"a", b"a", "ü€".encode(), b"name" * 20)), random_content(chance))
                       for _ in range(count)]
            rows.append((offset, timestamp, random_content(chance), random_content(chance), headers))
        offset += 1
    return rows


def random_fields(chance: Random, kind: Kind, base_offset: int) -> Fields:
    """Numbers that such a batch may have."""
    producer = kind.idempotent
    return Fields(
        base_offset,
        chance.randrange(1 << 42) if kind.by_broker else -1,
        chance.randrange(1 << 62) if producer else -1,
        chance.randrange(1 << 15) if producer else -1,
        chance.choice((0, 5, (1 << 31) - 1, (1 << 31) - 3)) if producer and not kind.control else -1,
        chance.choice((-1, 0, 77)) if kind.magic == 2 else -1,
        chance.randrange(1 << 42) if kind.horizon else -1)


def ours(kind: Kind, fields: Fields, rows: Sequence[Row]) -> bytes:
    """A batch as we write it."""
    broker_time = fields.append_time if kind.by_broker else None
    if kind.magic < 2:
        return bytes(write_message_set(kind.magic, [row[:4] for row in rows], kind.codec,
                                       base_offset=fields.base_offset, log_append_time_ms=broker_time))
    return bytes(write_batch(
        rows, base_offset=fields.base_offset, codec=kind.codec, leader_epoch=fields.leader_epoch,
        producer_id=fields.producer_id, epoch=fields.epoch, base_sequence=fields.sequence,
        transactional=kind.transactional, control=kind.control, log_append_time_ms=broker_time,
        delete_horizon_ms=fields.horizon if kind.horizon else None))


def javas(java: JavaBatches, kind: Kind, fields: Fields, rows: Sequence[Row]) -> bytes:
    """The same batch as Java writes it."""
    words = [f"{offset}:{timestamp}:{_hex(key)}:{_hex(value)}:"
             + ",".join(f"{name.hex()}={_hex(content)}" for name, content in headers)
             for offset, timestamp, key, value, headers in rows]
    return java.bytes_of("BUILD", kind.magic, kind.codec, "L" if kind.by_broker else "C", fields.base_offset,
                         fields.append_time, fields.producer_id, fields.epoch, fields.sequence,
                         int(kind.transactional), int(kind.control), fields.leader_epoch, fields.horizon, *words)


# What is compared

class Comparison:
    """Compares with one Java; raises `Difference`.

    Attributes:
        counts: batches and records compared, by what was done with them.
    """

    def __init__(self, java: JavaBatches, chance: Random, converts_down: bool) -> None:
        self._java = java
        self._chance = chance
        self._converts_down = converts_down
        self.counts: Counter[str] = Counter()

    def case(self, kind: Kind) -> None:
        """One batch of a kind, alone; then a log that begins with it."""
        log, base = [], self._chance.choice((0, 1, 12_345, 1 << 40))
        for one in [kind, *self._chance.sample(kinds(), self._chance.randrange(3))]:
            fields = random_fields(self._chance, one, base)
            rows = random_rows(self._chance, one, base)
            log.append(self._built(one, fields, rows))
            base = rows[-1][0] + 1
            if one.magic < 2 and not one.by_broker:
                self._upgraded(one, log[-1])
        data = b"".join(log)
        self._read("log", data)
        self._compacted(data)
        self._marker(base)
        if self._converts_down:
            self._downgraded(data)

    def _equal(self, what: str, ours: object, java: object) -> None:
        if ours != java:
            raise Difference(f"{what}:\n  ours {str(ours)[:2000]}\n  Java {str(java)[:2000]}")

    def _read(self, what: str, data: bytes) -> str:
        """Both twins and Java read the same; what they read."""
        expected = self._java.ask("READ", data.hex())
        for twin in _TWINS:
            self._equal(f"{what} read by {twin}", described(twin, data), expected)
        words = expected.split(" ") if expected else []
        rows = [_in_micros(word) for word in words if word.count(":") == 4 and word.split(":")[2] not in CONTROL_NAMES]
        self._equal(f"{what} as columns", tabled(data), rows)
        batches = sum(word.startswith("B,") for word in words)
        self.counts[f"{what}: batches"] += batches
        self.counts[f"{what}: records"] += len(words) - batches
        return expected

    def _same(self, what: str, ours: bytes, java: bytes, packed: bool) -> None:
        """The same bytes, or if compressed the same contents, whoever reads."""
        if packed:
            mine = self._read(what, ours)
            self._equal(what, _sizeless(mine), _sizeless(self._read(what, java)))
            self.counts[f"{what}: compressed, contents equal"] += 1
        else:
            self._equal(what, ours.hex(), java.hex())
            self._read(what, java)
            self.counts[f"{what}: bytes equal"] += 1

    def _built(self, kind: Kind, fields: Fields, rows: Sequence[Row]) -> bytes:
        """A batch from both, compared; one of the two."""
        made = ours(kind, fields, rows), javas(self._java, kind, fields, rows)
        self._same("built", made[0], made[1], packed=kind.codec != 0)
        if kind.magic == 2 and not (kind.control or kind.horizon or kind.by_broker) and [row[0] for row in rows] == [
                fields.base_offset + index for index in range(len(rows))]:
            for twin in _TWINS:
                self._same("sealed", _sealed(twin, kind, fields, rows), made[1], packed=kind.codec != 0)
        return self._chance.choice(made)

    def _marker(self, offset: int) -> None:
        chance = self._chance
        numbers = [chance.randrange(1 << 41), chance.choice((-1, 9)), chance.randrange(1 << 50), chance.randrange(99),
                   chance.randrange(1 << 31)]
        timestamp, leader_epoch, producer, epoch, coordinator = numbers
        for name in ("ABORT", "COMMIT"):
            made = write_end_marker(name == "COMMIT", producer, epoch, coordinator, timestamp, offset=offset,
                                    leader_epoch=leader_epoch)
            self._same("marker", bytes(made), self._java.bytes_of(
                "MARKER", name, offset, timestamp, leader_epoch, producer, epoch, coordinator), packed=False)

    def _compacted(self, data: bytes) -> None:
        """Java compacts; we read it, and write its batches as they are."""
        modulus = self._chance.choice((1, 2, 3, 7))
        made = self._java.bytes_of("COMPACT", 1_800_000_000_000, 5000, modulus, data.hex())
        self._read("compacted", made)
        for info in scan(made):
            if info.magic == 2:
                batch = made[info.position : info.position + info.size]
                again = bytes(_again(batch, info._replace(position=0)))
                self._same("rewritten", again, batch, packed=info.codec != 0)

    def _downgraded(self, data: bytes) -> None:
        infos = scan(data)
        magic = self._chance.randrange(2)
        first = self._chance.choice((0, infos[0].base_offset + 1, infos[-1].base_offset))
        refused = any(info.codec == ZSTD and not info.is_control for info in infos)
        try:
            made = downgrade(data, magic, first_offset=first)
        except KafkaException as error:
            self._equal("downgrade refused", (error.error.code(), True), (
                KafkaError.UNSUPPORTED_COMPRESSION_TYPE, refused))
            try:
                self._java.ask("DOWN", magic, first, data.hex())
            except Difference as answer:
                self._equal("downgrade refused", "UnsupportedCompressionTypeException" in str(answer), True)
                self.counts["downgrade refused (zstd)"] += 1
                return
            raise Difference("Java converts what we refuse") from None
        packed = any(info.codec for info in infos)
        self._same("downgraded", made, self._java.bytes_of("DOWN", magic, first, data.hex()), packed=packed)

    def _upgraded(self, kind: Kind, data: bytes) -> None:
        for by_broker in (False, True):
            now = self._chance.randrange(1 << 42)
            made = upgrade(data, now_ms=now, log_append_time=by_broker)
            java = self._java.bytes_of("UP", "L" if by_broker else "C", now, kind.codec, data.hex())
            self._same("upgraded", made, java, packed=kind.codec != 0)


def _sealed(twin: Any, kind: Kind, fields: Fields, rows: Sequence[Row]) -> bytes:
    """The batch as a producer makes it."""
    builder = twin.BatchBuilder(1 << 30, 1 << 30)
    for _, timestamp, key, value, headers in rows:
        builder.append(timestamp, key, value, headers)
    sealed = builder.seal(kind.codec)
    sealed.stamp(fields.producer_id, fields.epoch, fields.sequence, kind.transactional)
    data = bytearray(sealed.data)
    set_base_offset(data, fields.base_offset, fields.leader_epoch)
    return bytes(data)


def _again(batch: bytes, info: BatchInfo) -> bytearray:
    """The batch, written again from what was read in it."""
    body = memoryview(decompress(info.codec, batch[HEADER_BYTES:], MAX_DECOMPRESSED_BYTES))
    rows = [(info.base_offset + record.offset_delta, wrapped(info.base_timestamp + record.timestamp_delta), record.key,
             record.value, [(name.encode(), value) for name, value in record.headers or ()])
            for record in read_all(body, info.count)]
    return write_batch(
        rows, base_offset=info.base_offset, last_offset=info.last_offset, codec=info.codec,
        leader_epoch=info.leader_epoch, producer_id=info.producer_id, epoch=info.epoch,
        base_sequence=info.base_sequence, transactional=info.is_transactional, control=info.is_control,
        max_timestamp=info.max_timestamp, log_append_time_ms=info.max_timestamp if info.is_log_append_time else None,
        delete_horizon_ms=info.delete_horizon_ms)


def compare(java: JavaBatches, cases: int, seed: int, converts_down: bool,
            found: Callable[[str], None] | None = None) -> Counter[str]:
    """Compare so many cases, every kind of batch in turn.

    Args:
        java: to compare with.
        cases: how many.
        seed: of the first case; the next ones count up.
        converts_down: this Java can.
        found: told of differences; they are raised with None.

    Returns:
        What was compared, and how much of it.
    """
    total: Counter[str] = Counter()
    order = kinds()
    Random(0).shuffle(order)
    for index in range(seed, seed + cases):
        comparison = Comparison(java, Random(index), converts_down)
        try:
            comparison.case(order[index % len(order)])
        except Difference as difference:
            if found is None:
                raise
            found(f"seed {index}: {difference}")
        total += comparison.counts
    total["cases"] = cases
    return total


def main() -> int:
    """Run the command; returns its exit status."""
    from tools.kafka import artifacts

    options = argparse.ArgumentParser(description="Our record batches beside Java's.")
    options.add_argument("--cases", type=int, default=len(kinds()), help="cases with each Java")
    options.add_argument("--seed", type=int, default=0, help="of the first case")
    given = options.parse_args()
    differences: list[str] = []
    for version in VERSIONS:
        with JavaBatches(artifacts.class_path(version), shutil.which("java") or "java") as java:
            counts = compare(java, given.cases, given.seed, version.startswith("3."), differences.append)
        print(f"Kafka {version}")
        for name, count in sorted(counts.items()):
            print(f"  {name}: {count:,}")
    print(f"{len(differences)} differences")
    for difference in differences[:20]:
        print(difference)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
