"""The one reader of frames: however bytes arrive, whatever their sizes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import ProtocolError
from headrace.records import FrameMemory
from headrace.wire.frame_reader import FrameReader


@given(st.lists(st.binary(max_size=50), max_size=8), st.lists(st.integers(1, 40), min_size=1))
def test_a_stream_is_cut_into_its_frames_however_it_arrives(frames: list[bytes], steps: list[int]) -> None:
    stream = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
    splitter, found, position, turn = FrameReader(1000), [], 0, 0
    while position < len(stream):
        step = steps[turn % len(steps)]
        found += splitter.feed(stream[position:position + step])
        position, turn = position + step, turn + 1
    assert found == frames
    assert not splitter.pending


def received(reader: FrameReader, data: bytes) -> tuple[bool, list[bytes]]:
    """What a connection makes of bytes that came in one piece; whether they were one frame and nothing else."""
    room = (reader.free or reader.buffer())[:len(data)]
    room[:] = data[:len(room)]
    room.release()
    whole = reader.whole(len(data))
    return whole is not None, [bytes(each) for each in (reader.advance(len(data)) if whole is None else (whole,))]


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=8), st.lists(st.integers(1, 60), min_size=1))
def test_a_frame_that_comes_alone_is_given_whole_and_all_others_are_cut(frames: list[bytes], steps: list[int]) -> None:
    stream = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
    reader, found, position, turn = FrameReader(1000), [], 0, 0
    while position < len(stream):
        data = stream[position:position + steps[turn % len(steps)]]
        begun = reader.pending
        whole, came = received(reader, data)
        assert whole == (not begun and len(data) >= 4 and int.from_bytes(data[:4], "big") == len(data) - 4)
        found += came
        position, turn = position + len(data), turn + 1
    assert found == frames
    assert reader.free is not None


def test_a_frame_that_comes_alone_and_is_too_long_is_refused() -> None:
    data = (1001).to_bytes(4, "big") + bytes(1001)
    with pytest.raises(ProtocolError, match="0 to 1000 are allowed"):
        received(FrameReader(1000), data)


def test_behind_a_large_frame_small_ones_are_given_whole_again() -> None:
    reader, large = FrameReader(1_000_000), bytes(100_000)
    reader.feed(len(large).to_bytes(4, "big") + large)
    assert received(reader, b"\0\0\0\1x") == (True, [b"x"])


@pytest.mark.parametrize("head", [b"\xff\xff\xff\xff", b"\0\0\x04\0"])
def test_a_frame_of_a_bad_length_is_refused_at_once(head: bytes) -> None:
    with pytest.raises(ProtocolError, match="0 to 1000 are allowed"):
        FrameReader(1000).feed(head)


@pytest.mark.parametrize("size", [65_531, 65_532, 65_533, 1_000_000])
@pytest.mark.parametrize("step", [3, 65_536, 10_000_000])
@pytest.mark.parametrize("how", [{}, {"memory": FrameMemory}, {"writable": True, "trusted_bytes": 100_000}])
def test_large_frames_are_whole_between_small_ones(size: int, step: int, how: dict[str, Any]) -> None:
    if step == 3 and size > 100_000:
        size = 100_000
    large = bytes(range(256)) * (size // 256 + 1)
    frames = [b"before", large[:size], b"behind"]
    stream = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
    reader = FrameReader(2_000_000, **how)
    found = [frame for at in range(0, len(stream), step) for frame in reader.feed(stream[at:at + step])]
    assert [bytes(frame) for frame in found] == frames
    assert not reader.pending
    assert reader.left == 0


def test_how_much_of_a_large_frame_is_still_to_come_is_known() -> None:
    reader = FrameReader(1_000_000)
    reader.feed((100_000).to_bytes(4, "big") + bytes(70_000))
    assert reader.left == 30_000
    reader.feed(bytes(30_000))
    assert reader.left == 0


def test_a_length_alone_takes_no_more_memory_than_is_trusted() -> None:
    reader = FrameReader(1 << 30, trusted_bytes=100_000)
    reader.feed((1 << 30).to_bytes(4, "big") + bytes(70_000))
    assert len(reader.buffer()) <= 100_000
    assert reader.pending


def test_writable_frames_can_be_written_to_and_others_cannot() -> None:
    stream = (2).to_bytes(4, "big") + b"ab" + (70_000).to_bytes(4, "big") + bytes(70_000)
    for frame in FrameReader(100_000, writable=True).feed(stream):
        memoryview(frame)[0] = 1
    for frame in FrameReader(100_000).feed(stream):
        assert memoryview(frame).readonly


def test_frames_in_front_of_a_bad_length_are_given_and_what_refuses_is_told_the_first_bytes() -> None:
    heard = []

    def refuse(size: int, first: bytes, begun: bool) -> Exception:
        heard.append((size, first, begun))
        return ValueError("no")

    reader = FrameReader(10, refuse=refuse)
    data = (1).to_bytes(4, "big") + b"x" + b"HTTP/1.1"
    reader.buffer()[:len(data)] = data
    frames = reader.advance(len(data))
    assert next(frames) == b"x"
    with pytest.raises(ValueError, match="no"):
        next(frames)
    assert heard == [(int.from_bytes(b"HTTP", "big"), b"HTTP/1.1", True)]
