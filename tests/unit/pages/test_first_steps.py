"""The tutorial without its last part, which needs Spark: see `tests/integration/spark/test_tutorial.py`."""

from pathlib import Path

import pytest

from tests.support.pages import DOCS, Reader, blocks_of

PAGE = DOCS / "tutorial/first-steps.md"


def test_each_program_before_spark_prints_what_the_page_says(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for library in ("fastavro", "httpx2"):
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    blocks = blocks_of(PAGE)
    of_spark = next(at for at, (kind, text) in enumerate(blocks) if kind == "python" and "headrace.spark" in text)
    assert of_spark > 15
    Reader(capsys).follow(blocks[:of_spark])
