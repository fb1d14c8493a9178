"""Memory of large frames is used again, and by one frame at a time."""

from __future__ import annotations

import resource
import sys
from pathlib import Path
from typing import Any

import pytest

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def written(native: Any, size: int) -> Any:
    frame = native.FrameMemory(size)
    memoryview(frame)[:] = bytes(size)
    return frame


@pytest.mark.parametrize("size", [1, 131_072, 4_000_000])
def test_memory_of_a_frame_can_be_written_as_a_whole_and_goes_from_one_to_the_next(native: Any, size: int) -> None:
    for number in range(3):
        frame = native.FrameMemory(size)
        assert len(frame) == size
        memoryview(frame)[:] = bytes([number]) * size
        kept = memoryview(frame).toreadonly()
        del frame
        other = native.FrameMemory(size)
        memoryview(other)[:] = b"\xff" * size
        assert kept == bytes([number]) * size  # nobody else gets it while it is looked at


@linux
def test_frames_that_are_done_cost_no_new_pages(native: Any) -> None:
    def faults() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

    source = bytes(4_100_000)
    memoryview(native.FrameMemory(4_000_000))[:] = memoryview(source)[:4_000_000]
    before = faults()
    for more in range(20):
        memoryview(native.FrameMemory(4_000_000 + more))[:] = memoryview(source)[:4_000_000 + more]
    assert faults() - before < 5_000  # 20,000 for new memory; some may be kept by others of this process


@linux
def test_memory_of_frames_larger_than_those_that_follow_is_given_back(native: Any) -> None:
    many = [written(native, 20_000_000) for _ in range(6)]
    held = resident_bytes()
    del many
    for _ in range(10):
        written(native, 20_000_000)
    assert held - resident_bytes() < 60_000_000  # they are kept for those to come
    for _ in range(400):
        written(native, 100_000)
    assert held - resident_bytes() > 100_000_000


@linux
def test_memory_of_more_frames_than_are_ever_ahead_again_is_given_back(native: Any) -> None:
    many = [written(native, 4_000_000) for _ in range(20)]
    held = resident_bytes()
    del many
    for _ in range(300):
        written(native, 4_000_000)
    assert held - resident_bytes() > 60_000_000  # one does, and the others would be taken in turn


@linux
def test_memory_of_a_frame_is_given_back_although_what_came_behind_it_lives(native: Any) -> None:
    for _ in range(3):  # as in a process that has freed large memory: the C library has such from its heap then
        [bytearray(16_000_000) for _ in range(3)]
    kept, frames = [], []
    for _ in range(200):
        frames.append(written(native, 500_000))
        kept.append(bytes(100_000))
    held = resident_bytes()
    del frames
    assert held - resident_bytes() > 50_000_000  # of 100 MB; 64 frames are kept
    assert len(kept) == 200
