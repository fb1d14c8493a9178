"""The page about libraries that import confluent_kafka: its program runs by itself, and prints what it says."""

import subprocess
import sys

from headrace.testing import EmbeddedBroker
from tests.support.pages import DOCS, programs_of

PAGE = DOCS / "how-to/libraries-on-confluent-kafka.md"
CHECK = "\nimport headrace, sys\nassert sys.modules['confluent_kafka'] is headrace\n"


def test_faststream_runs_on_headrace() -> None:
    (program,) = programs_of(PAGE)
    with EmbeddedBroker(topics={"orders": 2, "bills": 1}) as broker:
        program = program.replace("localhost:9092", broker.bootstrap_servers) + CHECK
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[5, 10, 15]"  # behind what FastStream logs
    assert "It prints `[5, 10, 15]`" in PAGE.read_text()
