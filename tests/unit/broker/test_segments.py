"""A file segment appends at its end and reads any range, on systems without pread as well."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

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
