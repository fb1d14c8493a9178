"""What `python -m tests.campaigns.fuzz` found worth keeping goes through the ordinary build again, on both twins."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import CorruptRecordError
from tests.campaigns.fuzz import campaign, native, seeds
from tests.campaigns.fuzz.taker import EXTREMES, Taker
from tests.support.twins import NATIVE, PLAIN

PARTS = 4


def run_one(target: str, data: bytes) -> None:
    module: Any = import_module(f"tests.campaigns.fuzz.{target}")
    if target == "native":
        module.run(data, compare=True)
    else:
        module.run(data)


def needs_native(target: str) -> None:
    if target == "native" and NATIVE is None:
        if os.environ.get("CI") == "true":
            pytest.fail("the native module was not built")
        pytest.skip("the native module was not built")


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("target", campaign.TARGETS)
def test_the_corpus_raises_nothing_but_damage(target: str, part: int) -> None:
    needs_native(target)
    inputs = sorted((campaign.CORPUS / target).iterdir())
    assert inputs, "the corpus is empty: run python -m tests.campaigns.fuzz"
    for path in inputs[part::PARTS]:
        try:
            run_one(target, path.read_bytes())
        except Exception as error:
            raise AssertionError(f"{path.relative_to(campaign.CORPUS)}: {error}") from error


def test_the_corpus_is_small() -> None:
    assert sum(path.stat().st_size for path in campaign.CORPUS.rglob("*")) < 1_500_000


@pytest.mark.parametrize("target", campaign.TARGETS)
def test_what_a_fuzzer_begins_with_is_sound(target: str, tmp_path: Path) -> None:
    needs_native(target)
    seeds.write(target, tmp_path)
    inputs = sorted(tmp_path.iterdir())
    assert len(inputs) > 60
    for path in inputs[::8]:
        run_one(target, path.read_bytes())


def test_a_difference_between_the_twins_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    needs_native("native")
    data = bytes([native.ENTRIES.index(native.headers), native.COMPARE]) + bytes(100)
    native.run(data)
    monkeypatch.setattr(PLAIN, "scan", lambda *_: ["another"])
    with pytest.raises(AssertionError, match="headers: native"):
        native.run(data)


def test_an_error_that_is_not_damage_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace.records import compression
    from tests.campaigns.fuzz import compression as target

    monkeypatch.setattr(target, "decompress", lambda *_: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        target.run(b"\x00\x05abc")
    monkeypatch.setattr(target, "decompress", compression.decompress)
    target.run(b"\x00\x05abc")


def test_checksums_are_put_right_behind_whatever_was_changed() -> None:
    from tests.unit.records.samples import simple

    data = bytearray(simple([b"a"]) + simple([b"b"], base_offset=1))
    data[61] ^= 1
    with pytest.raises(CorruptRecordError):
        PLAIN.verify(bytes(data))
    PLAIN.verify(native.summed(bytes(data)))


def test_a_taker_gives_zeros_at_the_end() -> None:
    taker = Taker(b"\x02ab\x32")
    assert (taker.piece(), taker.number(), taker.more) == (b"ab", 0, False)
    assert (taker.byte(), taker.piece(), taker.rest(), taker.maybe_piece()) == (0, b"", b"", b"")
    assert [Taker(bytes([200 + index])).number() for index in range(len(EXTREMES))] == list(EXTREMES)
    assert Taker(b"\xff" + b"\xfe" * 8).number() == int.from_bytes(b"\xfe" * 8, "little", signed=True)
