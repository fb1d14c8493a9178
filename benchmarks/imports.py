"""Milliseconds of CPU over the bare interpreter of importing, and of making a first client: ours and the peers'.

    python -m benchmarks.imports --rounds 20

Each measurement is a fresh process, its whole CPU from start to end, less that of `python -c pass`. Rounds are
interleaved. Compiled files are kept in a directory of their own and are there before the first round. "Its part of the
standard library" is the same process with only those of the standard library's modules that the row above loads. Below
stands what each package takes on the disk, without compiled files, and what it needs besides.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median

from benchmarks.loops import OURS, Case, arguments_of, write
from benchmarks.measure import ROOT, version_of
from benchmarks.report import table

BARE, PROCESS = "the bare interpreter", "process"
IMPORT, MESSAGES = f"import {OURS}", f"{OURS}, all messages"
FIRST = f"{OURS}, a first Producer"
FIRST_CONSUMER = f"{OURS}, a first Consumer"

_FIRST = "import os; from {} import Producer; Producer({{'bootstrap.servers': '127.0.0.1:1'}}); os._exit(0)"
_FIRST_CONSUMER = ("import os; from {} import Consumer; Consumer({{'bootstrap.servers': '127.0.0.1:1', "
                   "'group.id': 'readers'}}); os._exit(0)")
LIBRARY = "its part of the standard library"
PACKAGES = (OURS, "confluent-kafka", "kafka-python", "aiokafka")
PACKED = {".py", ".pyi", ".so", ".typed"}
"""Endings of the files that a wheel of ours has."""
BARS_MS = {IMPORT: 5.0, MESSAGES: 15.0, FIRST: 80.0, FIRST_CONSUMER: 80.0}


def all_messages(source: Path) -> str:
    """Code that imports all messages of the package in a `src` folder."""
    files = sorted((source / "headrace/wire/messages").rglob("[!_]*.py"))
    return "import " + ", ".join(["headrace.wire.api", *(
        ".".join(path.relative_to(source).with_suffix("").parts) for path in files)])


def compiled_files_in(folder: str, source: Path) -> dict[str, str]:
    """The environment of a process that imports the package in a `src` folder and keeps compiled files in `folder`."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder, "PYTHONPATH": str(source)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


ROWS = {
    IMPORT: "import headrace",
    f"{OURS}, Producer and Consumer": "from headrace import Consumer, Producer",
    "confluent-kafka, Producer and Consumer": "from confluent_kafka import Consumer, Producer",
    "kafka-python, Producer and Consumer": "from kafka import KafkaConsumer, KafkaProducer",
    "aiokafka, Producer and Consumer": "from aiokafka import AIOKafkaConsumer, AIOKafkaProducer",
    FIRST: _FIRST.format("headrace"),
    "confluent-kafka, a first Producer": _FIRST.format("confluent_kafka"),
    FIRST_CONSUMER: _FIRST_CONSUMER.format("headrace"),
    "confluent-kafka, a first Consumer": _FIRST_CONSUMER.format("confluent_kafka"),
    MESSAGES: all_messages(ROOT / "src"),
    "kafka-python, all messages": "import " + ", ".join(f"kafka.protocol.{name}" for name in (
        "admin", "consumer", "metadata", "producer", "sasl")),
    "aiokafka, all messages": "import " + ", ".join(f"aiokafka.protocol.{name}" for name in (
        "admin", "commit", "coordination", "fetch", "group", "metadata", "offset", "produce", "transaction")),
}
"""What is imported, by the name of its row. The peers import their `Producer` and `Consumer` whatever one asks for."""


def main(argv: list[str]) -> int:
    """Measure all rows; 1 when ours is above a bar."""
    arguments = arguments_of("imports", __doc__, argv)
    arguments.rounds = 1 if arguments.quick else arguments.rounds
    installed = {name: code for name, code in ROWS.items() if version_of(name.split(",")[0].removeprefix("import "))}
    with tempfile.TemporaryDirectory() as kept:
        environment = compiled_files_in(kept, ROOT / "src")
        rows = {BARE: "pass", **dict(_with_library(installed, environment))}
        cases = {name: Case(name, {}) for name in rows}
        for turn in range(-1, arguments.rounds):
            for name, code in rows.items():
                cost_ns = cpu_ns(code, environment)
                if turn >= 0:  # the round before the first one compiles
                    cases[name].rounds_ns.setdefault(PROCESS, []).append(cost_ns)
    _show(cases, arguments.rounds)
    sizes = {name: size_mb(name) for name in PACKAGES if version_of(name)}
    table("installed", ("", "MB", "needs"), [(name, f"{size:.1f}", ", ".join(needs(name)) or "nothing")
                                             for name, size in sizes.items()])
    write("imports", {"milliseconds of whole processes": cases.values()}, arguments.rounds, arguments.json,
          bars_ms=BARS_MS, installed_mb=sizes)
    above = [name for name, bar_ms in BARS_MS.items() if _over_ms(cases, name)[0] > bar_ms]
    return 1 if above and not arguments.quick else 0


def _with_library(rows: Mapping[str, str], environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The rows, and behind those with a bar what they load of the standard library."""
    for name, code in rows.items():
        yield name, code
        if name in (IMPORT, MESSAGES):
            show = f"{code}\nimport sys; print(*sys.modules)"
            done = subprocess.run([sys.executable, "-c", show], env=environment, capture_output=True, check=True)
            modules = set(done.stdout.decode().split()) & sys.stdlib_module_names - {"__main__"}
            yield f"  {LIBRARY} ({OURS if name == IMPORT else 'messages'})", f"import {', '.join(sorted(modules))}"


def cpu_ns(code: str, environment: Mapping[str, str]) -> float:
    """User and system time of a whole process that runs `code`."""
    process = os.posix_spawn(sys.executable, [sys.executable, "-c", code], environment)
    _, status, used = os.wait4(process, 0)
    if status:
        raise RuntimeError(f"python -c {code!r} failed with status {status}")
    return (used.ru_utime + used.ru_stime) * 1e9


def size_mb(package: str) -> float:
    """What a package takes on the disk, in MB. Ours may be installed as a link to its sources."""
    if package == OURS:
        files = [path for path in (ROOT / "src/headrace").rglob("*") if path.suffix in PACKED]
    else:
        files = [Path(str(each.locate())) for each in importlib.metadata.files(package) or ()
                 if each.suffix != ".pyc"]
    return sum(path.stat().st_size for path in files if path.is_file()) / 1e6


def needs(package: str) -> list[str]:
    """The packages that are installed with it."""
    wanted = importlib.metadata.requires(package) or ()
    return [re.split(r"[^\w.-]", each)[0] for each in wanted if "extra ==" not in each]


def _over_ms(cases: Mapping[str, Case], name: str) -> tuple[float, float]:
    """Milliseconds over the bare interpreter: of the best rounds and of the median ones."""
    rounds, bare = cases[name].rounds_ns[PROCESS], cases[BARE].rounds_ns[PROCESS]
    return (min(rounds) - min(bare)) / 1e6, (median(rounds) - median(bare)) / 1e6


def _show(cases: Mapping[str, Case], rounds: int) -> None:
    print(f"{rounds} fresh processes each, compiled files warm; the bare interpreter itself takes "
          f"{min(cases[BARE].rounds_ns[PROCESS]) / 1e6:.1f} ms of CPU")
    lines = []
    for name in cases:
        if name != BARE:
            best_ms, median_ms = _over_ms(cases, name)
            bar_ms = BARS_MS.get(name)
            verdict = "" if bar_ms is None else "reached" if best_ms <= bar_ms else "MISSED"
            lines.append((name, f"{best_ms:.1f}", f"{median_ms:.1f}", "" if bar_ms is None else f"<= {bar_ms:.0f}",
                          verdict))
    table("CPU over the bare interpreter", ("", "best, ms", "median, ms", "bar, ms", ""), lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
