"""`headrace demo` from end to end, as `make demo` runs it: what it prints, and that all totals are equal."""

import subprocess
import sys

import pytest

from tests.integration.kafka.command_line_tour import fits, said_by

SAID = """\
loaded nyc-flights: 336,776 records
loaded nyc-weather: 26,115 records
loaded nyc-airlines: 16 records
362,907 records by our producer in N s (127.0.0.1:PORT)
starting Spark for flights ...
...
hourly: 336,776 rows read, ... written to topic nyc-hourly in ... batches
...
checked nyc-hourly: windows (hour and airport): 19,486 equal
checked nyc-hourly: flights: 336,776 equal
checked nyc-hourly: departed: 328,521 equal
checked nyc-hourly: delay_minutes: 4,152,200 equal
checked nyc-hourly: in_rain: 23,002 equal
checked nyc-hourly: windows that differ: 0 equal
checked Parquet: flights: 336,776 equal
checked Parquet: flights with weather: 335,220 equal
checked Parquet: miles: 350,217,607 equal
checked Parquet: airlines whose miles differ: 0 equal
checked nyc-delays: records: 27,059 equal
checked nyc-delays: records that are missing: 0 equal
checked nyc-delays: records that are there twice: 0 equal
finished after N s; report: DIR"""


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_demo_prints_its_totals_and_all_are_equal(java, tmp_path):
    pytest.importorskip("pyspark")
    done = subprocess.run([sys.executable, "-m", "headrace.cli", "demo", "--output", str(tmp_path)], text=True,
                          capture_output=True, check=False)
    said = said_by(done.returncode, done.stdout, done.stderr)
    assert fits(said, SAID.splitlines()), said
