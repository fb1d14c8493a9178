"""The long run: `python -m tests.campaigns.fuzz native codecs compression --seconds 600`; two at a time with `--jobs
2`.

Begins with the corpus that is kept and with valid inputs, and keeps what reaches new code afterwards: the smallest set
of inputs that reaches all of it (`-merge=1`). A finding is left in `.cache/fuzz/<target>/findings` and makes the exit
status 1; `python -m tests.campaigns.fuzz native --input FILE` runs it again in the sanitized process.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tools.fuzz.workshop import ROOT, Workshop, prepare

from . import seeds

TARGETS = ("native", "codecs", "compression")
CORPUS = Path(__file__).parent / "corpus"
MAX_BYTES = 2048
"""Of an input: what is larger reaches nothing that a small one does not, and the corpus is kept in the repository."""
_SANITIZED = ("native", "compression")
_LIMITS = ("-timeout=10", "-rss_limit_mb=2560", "-malloc_limit_mb=1024")


class Outcome(NamedTuple):
    """What came of a target's run."""

    target: str
    executions: int
    edges: int
    features: int
    kept: int
    kept_bytes: int
    peak_mb: int
    failed: bool
    findings: list[Path]


def main(argv: list[str] | None = None) -> int:
    """Fuzz; the exit status says whether there was a finding."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", choices=TARGETS, default=TARGETS)
    parser.add_argument("--seconds", type=int, default=600, help="for each target")
    parser.add_argument("--jobs", type=int, default=2, help="targets at a time")
    parser.add_argument("--input", type=Path, help="only run this input again")
    options = parser.parse_args(argv)
    workshop = prepare()
    if options.input:
        return _harness(workshop, options.targets[0], str(options.input.resolve()), log=None)
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = list(pool.map(lambda target: fuzz(workshop, target, options.seconds), options.targets))
    for each in outcomes:
        print(f"{each.target}: {each.executions} executions, {each.edges} edges, {each.features} features, "
              f"{each.kept} inputs of {each.kept_bytes >> 10} KiB kept, peak {each.peak_mb} MiB, "
              f"{len(each.findings)} findings{', FAILED' * each.failed}")
        for finding in each.findings:
            print(f"  FINDING {finding}")
    return 1 if any(each.failed or each.findings for each in outcomes) else 0


def fuzz(workshop: Workshop, target: str, seconds: int) -> Outcome:
    """Fuzz one target and keep the smallest corpus that reaches what was reached."""
    place = ROOT / ".cache/fuzz" / target
    shutil.rmtree(place, ignore_errors=True)
    for name in ("work", "findings", "merged"):
        (place / name).mkdir(parents=True)
    seeds.write(target, place / "seeds")
    kept = CORPUS / target
    kept.mkdir(parents=True, exist_ok=True)
    log = place / "log"
    # A finding ends libFuzzer's process; `-fork=1` would go on, but cannot with a runtime loaded in front of Python.
    status = _harness(
        workshop, target, f"-max_total_time={seconds}", f"-max_len={MAX_BYTES}", "-print_final_stats=1",
        f"-artifact_prefix={place}/findings/", str(place / "work"), str(kept), str(place / "seeds"), log=log)
    # By the code that is reached, and not by how often: the smallest corpus that is worth keeping.
    status |= _harness(
        workshop, target, "-merge=1", "-use_counters=0", f"-max_len={MAX_BYTES}",
        f"-artifact_prefix={place}/findings/merge-", str(place / "merged"), str(kept), str(place / "work"),
        log=place / "merge-log")
    findings = sorted((place / "findings").iterdir())
    merged = list((place / "merged").iterdir())
    if merged and not findings:
        shutil.rmtree(kept)
        (place / "merged").rename(kept)
    text = log.read_text(errors="replace")
    done = re.findall(r"cov: (\d+) ft: (\d+)", text)
    edges, features = map(int, done[-1]) if done else (0, 0)
    kept_bytes = sum(each.stat().st_size for each in kept.iterdir())
    return Outcome(target, _stat(text, "number_of_executed_units"), edges, features, len(merged), kept_bytes,
                   _stat(text, "peak_rss_mb"), status != 0, findings)


def _stat(text: str, name: str) -> int:
    found = re.search(rf"stat::{name}:\s+(\d+)", text)
    return int(found.group(1)) if found else 0


def _harness(workshop: Workshop, target: str, *arguments: str, log: Path | None) -> int:
    """Run the process that fuzzes; its exit status. What it says goes to `log`, or to this process's output."""
    again = ROOT / ".cache/fuzz" / f"{target}.sh"
    command = [str(workshop.python), str(Path(__file__).parent / "harness.py"), target]
    again.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    again.chmod(0o755)
    settings = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT))), "HEADRACE_PURE": "",
                "HEADRACE_FUZZ_AGAIN": str(again)}
    if target in _SANITIZED:
        settings |= {
            "LD_PRELOAD": str(workshop.runtime),
            "HEADRACE_FUZZ_NATIVE": str(workshop.native),
            "PYTHONMALLOC": "malloc",  # Python's own pools would hide what goes over the end of an object
            "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",  # CPython frees little when it ends
            "UBSAN_OPTIONS": "print_stacktrace=1",
        }
    command += (*_LIMITS, *arguments)
    if log is None:
        return subprocess.run(command, env=settings, cwd=ROOT).returncode
    with log.open("wb") as out:
        status = subprocess.run(command, env=settings, cwd=ROOT, stdout=out, stderr=out).returncode
    if status:
        print(f"{target}: libFuzzer ended with status {status}; the end of {log}:", file=sys.stderr)
        print(*log.read_text(errors="replace").splitlines()[-25:], sep="\n", file=sys.stderr)
    return status
