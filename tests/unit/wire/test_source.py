"""Lines of a generated function: depth, fresh names, packers, and runs of fixed-size values."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from headrace.wire.messages.cluster.metadata import MetadataRequest
from headrace.wire.source import Source


def source(version: int = 0) -> Source:
    return Source(MetadataRequest, version, {})


def test_lines_stand_as_deep_as_the_source_has_gone() -> None:
    lines = source()
    lines.add("total = 0")
    lines.add("for each in range(n):")
    lines.indent(1)
    lines.add("if each % 2:")
    lines.indent(1)
    lines.add("total += each")
    lines.indent(-2)
    lines.add("total *= 10")
    names: dict[str, object] = {}
    exec(lines.function("def made(n):", "total"), names)
    assert names["made"](6) == 90  # type: ignore[operator]


def test_no_name_is_given_twice() -> None:
    lines = source()
    names = [lines.fresh(stem) for stem in ("n", "n", "v", "n")]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() for name in names)


def test_a_version_is_flexible_as_its_message_says() -> None:
    assert (source(8).flexible, source(9).flexible) == (False, True)


@given(st.integers(-2**15, 2**15 - 1), st.booleans(), st.integers(0, 255))
def test_what_a_packer_writes_its_unpacker_reads(number: int, truth: bool, byte: int) -> None:
    lines = source()
    pack, unpack = lines.names[lines.packer("h?B")], lines.names[lines.unpacker("h?B")]
    assert pack(number, truth, byte) == struct.pack(">h?B", number, truth, byte)
    assert unpack(b"xx" + pack(number, truth, byte), 2) == (number, truth, byte)


def test_packers_of_different_values_have_different_names() -> None:
    lines = source()
    names = [make(letters) for make in (lines.packer, lines.unpacker) for letters in ("h", "hh", "h?", "i")]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() for name in names)


@given(st.lists(st.integers(-2**31, 2**31 - 1), max_size=100))
def test_numbers_of_one_kind_are_packed_and_unpacked_by_their_count(numbers: list[int]) -> None:
    lines = source()
    packed = lines.names[lines.packers("i")][len(numbers)](*numbers)
    assert packed == b"".join(number.to_bytes(4, "big", signed=True) for number in numbers)
    assert list(lines.names[lines.unpackers("i")][len(numbers)](b"x" + packed, 1)) == numbers


def test_only_what_packs_short_arrays_is_kept() -> None:
    table = source().names
    lines = Source(MetadataRequest, 0, table)
    by_count = table[lines.packers("q")]
    assert by_count[3] is by_count[3]
    assert len(by_count[100_000](*range(100_000))) == 800_000
    assert 100_000 not in by_count


def test_a_run_is_taken_in_its_order_and_then_empty() -> None:
    lines = source()
    lines.run += [("h", "m.a", ""), ("16s", "u1", "m.b = read_uuid(u1)"), ("i", "m.c", "")]
    assert lines.take_run() == ("h16si", ["m.a", "u1", "m.c"], ["m.b = read_uuid(u1)"])
    assert lines.run == []
