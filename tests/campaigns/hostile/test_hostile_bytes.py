"""Some thousands of the cases of `python -m tests.campaigns.hostile`, and that it notices what it must notice."""

from __future__ import annotations

import struct
from random import Random
from typing import Any

import pytest

from headrace.net import connection
from headrace.records.legacy import message_set as legacy
from tests.campaigns.hostile import bombs, captures, cases, frames, readers
from tests.campaigns.hostile.mutations import mutate


@pytest.mark.parametrize("seed", [f"smoke/{index}" for index in range(16)])
def test_damaged_bytes_are_read_or_refused_within_bounds(seed: str) -> None:
    tally = cases.run_round(seed)
    assert not tally.finding, f"{tally.finding}; again: python -m tests.campaigns.hostile --round {seed}"
    assert tally.refused
    assert tally.read


def test_every_message_is_made_in_every_version() -> None:
    kinds = {(kind, cls) for kind, cls, _ in frames.kinds()}
    assert len(kinds) > 150
    assert {kind for kind, _ in kinds} == {"request", "response", "inner"}


def test_the_places_of_a_frames_numbers_are_known() -> None:
    from headrace.wire.messages.cluster.metadata import MetadataRequest

    frame = frames.make(Random(3), "request", MetadataRequest, 12)
    count = frame.data.index(b"\x00", 10)  # the header's tags; the count of topics follows
    assert (count + 1, 0) in frame.places


def test_the_same_seed_makes_the_same_bytes() -> None:
    first, second = (cases.run_round("again", 40) for _ in range(2))
    assert (first.kinds, first.data, first.refused) == (second.kinds, second.data, second.refused)


def test_every_bomb_is_refused_or_small() -> None:
    meter = readers.Meter()
    for _, codec_number, packed in bombs.payloads():
        readers.read_compressed(meter, codec_number, packed)
    assert meter.refused > meter.read > 0


def test_another_error_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise KeyError("x")

    monkeypatch.setattr(legacy, "check_sum", broken)
    assert any("KeyError" in cases.run_round(f"broken/{index}").finding for index in range(4))


def test_a_difference_between_the_twins_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    if readers.NATIVE is None:
        pytest.skip("there is only one twin")
    monkeypatch.setattr(readers.PLAIN, "scan", lambda *_: [])
    assert "scan: native says" in cases.run_round("differs").finding


def test_a_client_that_does_not_go_on_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "request_error", lambda error, cause, written: error)
    monkeypatch.setattr(cases, "_ASKED", 1.0)
    assert "a client raised AssertionError" in cases.run_round("broken client").finding


def test_too_much_time_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "MAX_SECONDS", 0.0)
    assert "s for" in cases.run_round("slow").finding


def test_too_much_memory_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    peaks = iter((100 << 20, 200 << 20))
    monkeypatch.setattr(readers, "peak_bytes", lambda: next(peaks))
    with pytest.raises(readers.Finding, match="took 100 MiB for 3 bytes"):
        readers.Meter().run("reader", b"abc", lambda: None)


def test_a_capture_is_what_the_command_decodes(capsys: pytest.CaptureFixture[str]) -> None:
    chance = Random(5)
    frame = frames.make(chance, "request", frames.kinds()[0][1], 3)
    data, places = captures.capture(chance, [frame])
    assert captures.show("pcap", data, as_json=True) is None
    assert all(at + width <= len(data) for at, width in places)


def test_a_mutation_is_a_change_most_of_the_time() -> None:
    data = struct.pack(">5i", 1, 2, 3, 4, 5)
    changed = sum(mutate(Random(seed), data, [(0, 4)], data) != data for seed in range(300))
    assert changed > 250
