"""What an installed package must do: `python smoke.py native` or `plain`. It needs nothing but the package.

It is run away from the source, by `tools.wheels` and, for each wheel, by cibuildwheel.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

COUNT = 5_000
NOTICE = "runs in plain Python"


def main(expected: str) -> int:
    """Try it; anything that is not as it should be raises."""
    import headrace
    from headrace import Consumer, Producer, buffers, compiled, records
    from headrace.testing import EmbeddedBroker

    where = Path(headrace.__file__).resolve()
    assert where.is_relative_to(Path(sysconfig.get_paths()["platlib"]).resolve()), f"not the installed package: {where}"
    kinds = records.implementation, buffers.implementation
    assert kinds == (expected, expected), f"{expected} was expected: {kinds}"
    assert expected == "plain" or compiled.read_table(Path(compiled.TABLE).read_bytes()).places
    assert gzip.decompress(records.compress(records.GZIP, b"smoke")) == b"smoke"
    with EmbeddedBroker(topics={"smoke": 3}) as broker:
        servers = {"bootstrap.servers": broker.bootstrap_servers}
        failed: list[object] = []
        with Producer({**servers, "compression.type": "lz4"}) as producer:
            for number in range(COUNT):
                producer.produce("smoke", key=b"%d" % (number % 97), value=b"value %d" % number,
                                 on_delivery=lambda error, _: failed.append(error) if error else None)
                producer.poll(0)
            assert producer.flush(60) == 0
        assert not failed, failed[0]
        assert sum(broker.end_offsets("smoke")) == COUNT
        with Consumer({**servers, "group.id": "smoke", "auto.offset.reset": "earliest"}) as consumer:
            consumer.subscribe(["smoke"])
            values = read(consumer)
    assert values == {b"value %d" % number for number in range(COUNT)}
    check_command(expected)
    print(f"{expected}: {COUNT} records out and back, Python {sys.version.split()[0]}")
    return 0


def read(consumer: object) -> set[bytes]:
    """All values, within a minute; half of them as messages, half as columns."""
    values: set[bytes] = set()
    until = time.monotonic() + 60
    while len(values) < COUNT and time.monotonic() < until:
        values |= {message.value() for message in consumer.consume(500, 1.0)}  # type: ignore[attr-defined]
    return values


def check_command(expected: str) -> None:
    """The command is there, and the plain twin says once that it runs, unless that was asked for."""
    command = Path(sysconfig.get_path("scripts")) / ("headrace.exe" if sys.platform == "win32" else "headrace")
    shown = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
    assert shown.startswith("headrace "), shown
    loaded = subprocess.run([sys.executable, "-c", "import headrace.buffers, headrace.records; headrace.Producer"],
                            capture_output=True, text=True, check=True)
    assert loaded.stderr.count(NOTICE) == (expected == "plain"), loaded.stderr


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
