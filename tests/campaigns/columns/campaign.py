"""Damaged values: `python -m tests.campaigns.columns --schedules 5000 --jobs 2`. Status 1 on a finding.

Rows are valid values of Avro, Protobuf and JSON, of which some are damaged. Both twins must read the same columns of
them and refuse the same rows, Arrow must find nothing wrong with the columns, valid rows are read whatever stands
beside them, and time and memory stay within bounds. A finding prints its seed, which `--first-seed`
runs again.
"""

from __future__ import annotations

import faulthandler
import resource
import time
from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa

from tests.campaigns.columns.samples import Twins, all_twins, payloads
from tests.campaigns.hostile.mutations import mutate
from tests.campaigns.sim.campaign import Violation, run_campaign
from tests.unit.schemas.columns.codec_pairs import numbers_of

ROWS = 40
"""Of a round, in one column."""
_DAMAGED = 0.4
_MOST_S = 2.0
_MOST_BYTES = 3 << 30


def run_round(seed: str) -> tuple[str, Counter[str]]:
    """One column of each codec.

    Returns:
        The finding, empty for none, and how many rows were read and refused, by codec.
    """
    chance, counts = Random(seed), Counter[str]()
    for twins in all_twins():
        finding = _column(chance, twins, counts)
        if finding:
            return f"{twins.name}, round {seed}: {finding}", counts
    return "", counts


def _column(chance: Random, twins: Twins, counts: Counter[str]) -> str:
    rows: list[bytes | None] = list(payloads(chance, twins, ROWS))
    whole = rows[0] or b""
    damaged = {row for row in range(ROWS) if chance.random() < _DAMAGED}
    for row in damaged:
        rows[row] = mutate(chance, rows[row] or b"", other=whole)
    if chance.random() < 0.2:
        rows[chance.randrange(ROWS)] = None
    column = pa.array(rows, pa.binary())
    began = time.process_time()
    native = twins.native.decode(column)
    took_s = time.process_time() - began
    native.values.validate(full=True)
    plain = twins.plain.decode(column)
    counts[f"{twins.name}: refused"] += len(native.malformed)
    counts[f"{twins.name}: read"] += ROWS - len(native.malformed)
    return _finding(native, plain, damaged, took_s)


def _finding(native: Any, plain: Any, damaged: set[int], took_s: float) -> str:
    refused = set(native.malformed)
    if refused - damaged:
        row = min(refused - damaged)
        return f"row {row} is valid and was refused: {native.malformed[row]}"
    for row in sorted(refused ^ set(plain.malformed)):
        return f"row {row}: one twin says {native.malformed.get(row)}, the other {plain.malformed.get(row)}"
    for row, (one, other) in enumerate(zip(numbers_of(native.values), numbers_of(plain.values), strict=True)):
        if repr([one]) != repr([other]):  # as text, for not-a-number is not equal to itself
            return f"row {row} is {one} and {other}"
    return f"it took {took_s:.1f} s" if took_s > _MOST_S else ""


def run_schedule(seed: int) -> Counter[str]:
    """Run one round; raises `Violation`."""
    finding, counts = run_round(str(seed))
    if finding:
        raise Violation(finding)
    return counts


def main(argv: list[str] | None = None) -> int:
    """Run; the exit status says whether there was a finding."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    return run_campaign(run_schedule, "Give damaged values to the codecs of columns.", argv)
