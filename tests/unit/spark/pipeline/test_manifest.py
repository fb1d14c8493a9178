"""Which files of a streaming Parquet sink count."""

import json

import pytest

from headrace.spark.pipeline.manifest import committed_files


def write_batch(directory, name, *paths):
    log = directory / "_spark_metadata"
    log.mkdir(exist_ok=True)
    lines = ["v1", *(json.dumps({"path": f"file://{path}", "action": "add"}) for path in paths)]
    (log / name).write_text("\n".join(lines))


def test_only_committed_files_count(tmp_path):
    write_batch(tmp_path, "0", "/d/a.parquet")
    write_batch(tmp_path, "1", "/d/b%20c.parquet", "/d/d.parquet")
    (tmp_path / "stray.parquet").touch()
    (tmp_path / "_spark_metadata" / ".1.crc").touch()
    assert committed_files(tmp_path) == ["/d/a.parquet", "/d/b c.parquet", "/d/d.parquet"]


def test_a_compacted_log_stands_for_the_batches_before_it(tmp_path):
    write_batch(tmp_path, "8", "/d/old")
    write_batch(tmp_path, "9.compact", "/d/a", "/d/b")
    write_batch(tmp_path, "10", "/d/c")
    assert committed_files(tmp_path) == ["/d/a", "/d/b", "/d/c"]


def test_a_directory_that_no_stream_wrote_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        committed_files(tmp_path)
