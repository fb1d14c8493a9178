"""A file segment appends at its end and reads any range, on systems without pread as well."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headrace.broker.storage import segments
from headrace.broker.storage.segments import FileSegment


@pytest.mark.parametrize("has_pread", [True, False], ids=["pread", "seek and read"])
def test_what_was_appended_is_read_in_any_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_pread: bool
) -> None:
    if not has_pread:
        monkeypatch.delattr(os, "pread", raising=False)
        monkeypatch.delattr(os, "pwrite", raising=False)
    segment = FileSegment(tmp_path / "log", 100)
    segment.append(memoryview(b"first"))
    assert segment.read(1, 3) == b"ir"
    segment.append(memoryview(b"second"))
    assert (segment.read(5, 11), segment.read(0, 5), segment.size) == (b"second", b"first", 11)
    segment.truncate(5)
    segment.append(memoryview(b"!"))
    segment.close()
    assert (tmp_path / "log").read_bytes() == b"first!"


def test_files_that_were_not_used_for_long_are_closed_and_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "_MOST_OPEN", 3)
    made = [FileSegment(tmp_path / str(number), 100) for number in range(10)]
    assert len(segments._open) <= 3
    for _ in range(2):
        for number, segment in enumerate(made):
            segment.append(memoryview(b"%d" % number))
    assert [segment.read(0, 2) for segment in made] == [b"%d%d" % (number, number) for number in range(10)]
    made[0].truncate(1)
    made[1].delete()
    assert ((tmp_path / "0").read_bytes(), (tmp_path / "1").exists()) == (b"0", False)
    with pytest.raises(OSError, match="1"):
        made[1].read(0, 1)
    for segment in made:
        segment.close()
    assert not segments._open.keys() & set(made)
    assert not (tmp_path / "1").exists()
