"""`import headrace` is cheap: nothing heavy is loaded before it is used."""

import subprocess
import sys

HEAVY = {"asyncio", "ssl", "pyarrow", "pyspark", "cramjam", "headrace.wire.messages.fetch", "headrace.client.producer"}


def test_import_loads_nothing_heavy() -> None:
    code = "import sys, headrace; print('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not HEAVY & set(loaded)


def test_import_takes_at_most_5_ms_of_cpu() -> None:
    code = ("import time; a = time.process_time(); import headrace; print(time.process_time() - a)")
    runs = [float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
            for _ in range(5)]
    assert min(runs) <= 0.005
