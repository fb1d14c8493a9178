"""Records that try what a record can be, and how two clients' views of one are compared."""

from __future__ import annotations

from random import Random

from .client import Record

TIME_MS = 1_700_000_000_000
PARTITIONS = 3
MANY = 400
LARGE_BYTES = 1_000_000
"""With its framing just below what brokers accept by default, 1,048,588 bytes."""

_KEYS = (None, b"", b"k", b"\x00\xff", "schl\u00fcssel".encode())
_VALUES = (None, b"", b"v", bytes(range(256)), b"the same words again and again " * 20)
_HEADERS = (
    (),
    (("h", b"1"),),
    (("h", None),),
    (("h", b""),),
    (("\u00fcn\u00efcode \u2713", "w\u00e4rt".encode()), ("", b"a name without letters")),
    (("twice", b"a"), ("twice", None), ("twice", b"a"), ("last", b"\x00\x01")),
    (("a", b"1"), ("b", b"2"), ("a", b"3")),
)


def one() -> list[Record]:
    """A record that travels alone."""
    return [Record(0, TIME_MS, b"alone", b"one record in a batch", (("h", b"1"), ("h", None)))]


def many() -> list[Record]:
    """Hundreds, with all sorts of keys, values, headers and times, out of order as well."""
    return [Record(index % PARTITIONS, TIME_MS + (index * 37) % 1000, _KEYS[index % len(_KEYS)],
                   _VALUES[(index // 2) % len(_VALUES)], _HEADERS[index % len(_HEADERS)]) for index in range(MANY)]


def large() -> list[Record]:
    """One of a megabyte, half of it noise."""
    return [Record(1, TIME_MS + 1, b"large", Random(1).randbytes(LARGE_BYTES // 2) + bytes(LARGE_BYTES // 2))]


def squeezable() -> list[Record]:
    """What every codec makes much smaller."""
    return [Record(2, TIME_MS, b"%d" % index, b"the same words again and again " * 30) for index in range(MANY)]


def with_grouped_headers(record: Record) -> Record:
    """As kafkajs sees a record: values of one name stand together."""
    names = list(dict.fromkeys(name for name, _ in record.headers))
    headers = sorted(record.headers, key=lambda header: names.index(header[0]))
    return Record(record.partition, record.timestamp, record.key, record.value, tuple(headers))


def that_kafkajs_can_write(record: Record) -> Record:
    """A record with its headers grouped by name, and without those of no value, which kafkajs refuses."""
    headers = tuple(header for header in record.headers if header[1] is not None)
    return with_grouped_headers(Record(record.partition, record.timestamp, record.key, record.value, headers))
