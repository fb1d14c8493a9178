"""The same source and sink through Spark Connect: a client that speaks gRPC with a server in another process."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture
def run(java, brokers, tmp_path):
    """Runs the program; gives what it saw."""
    for package in ("grpc_status", "pandas"):
        pytest.importorskip(package)  # what the extra pyspark[connect] brings

    def run(source, target):
        program = Path(__file__).with_name("connect_program.py")
        command = [sys.executable, str(program), brokers, source, target, str(tmp_path / "checkpoint")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=380)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])

    return run


def test_batches_and_streams_go_both_ways_and_mistakes_are_told(run, make_topic, produce, values_of):
    source, target = make_topic(2), make_topic(2)
    produce(source, [{"key": f"k{number}", "value": f"v{number}"} for number in range(60)])
    seen = run(source, target)
    assert seen["kind"] == "pyspark.sql.connect.session"
    assert seen["columns"] == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert (seen["batch"], seen["batches"]) == (60, [60])
    assert "unknown option 'subscrib'. Did you mean 'subscribe'?" in seen["refusal"]
    written = values_of(target)
    assert sorted(written) == sorted(2 * [f"v{number}" for number in range(60)])  # once as a batch, once as a stream
