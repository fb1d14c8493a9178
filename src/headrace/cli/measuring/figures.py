"""Rates, CPU and latency of one run, and the middle of several."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["PERCENTILES", "WARM_UP", "LoadOutcome", "middle", "percentiles"]

PERCENTILES = (50.0, 95.0, 99.0, 99.9)
WARM_UP = 1_000
"""Records that a worker sends before its clock starts."""


@dataclass(slots=True)
class LoadOutcome:
    """What one client did in one run.

    Attributes:
        records: records that the client says it delivered.
        size_bytes: bytes of their values.
        wall_s: from the first record to the last acknowledgement.
        cpu_s: user and system time of the client's process in that time.
        latencies_ms: PERCENTILES, then the mean and the longest; of the sampled records, empty if there are none.
        failed: records that were not delivered.
        first_error: why, the first time.
        stopped: it was stopped early.
        seconds: (seconds since the beginning, records per second) of each second.
    """

    records: int
    size_bytes: int
    wall_s: float
    cpu_s: float
    latencies_ms: list[float]
    failed: int = 0
    first_error: str = ""
    stopped: bool = False
    seconds: list[tuple[float, float]] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Records per second."""
        return self.records / self.wall_s if self.wall_s else 0.0

    @property
    def mb_rate(self) -> float:
        """Megabytes of values per second."""
        return self.size_bytes / self.wall_s / 1e6 if self.wall_s else 0.0

    @property
    def cpu_s_per_million(self) -> float:
        """CPU seconds per million records."""
        return self.cpu_s / self.records * 1e6 if self.records else 0.0

    @classmethod
    def of(cls, answer: dict[str, Any]) -> LoadOutcome:
        """What a worker answered."""
        return cls(**{name: answer[name] for name in cls.__dataclass_fields__ if name in answer})


def percentiles(times_s: Sequence[float]) -> list[float]:
    """PERCENTILES, mean and maximum in milliseconds, by nearest rank; nothing of nothing."""
    if not times_s:
        return []
    ordered = sorted(times_s)
    last = len(ordered) - 1
    ranks = [ordered[min(last, int(len(ordered) * percent / 100))] for percent in PERCENTILES]
    return [round(time * 1000, 3) for time in (*ranks, sum(ordered) / len(ordered), ordered[-1])]


def middle(rounds: Sequence[LoadOutcome]) -> LoadOutcome:
    """The medians of several runs; failures are summed up."""
    latencies = [each.latencies_ms for each in rounds if each.latencies_ms]
    rate = statistics.median(each.rate for each in rounds)
    cpu = statistics.median(each.cpu_s_per_million for each in rounds)
    records = round(statistics.median(each.records for each in rounds))
    size = round(statistics.median(each.size_bytes for each in rounds))
    return LoadOutcome(
        records, size, records / rate if rate else 0.0, cpu * records / 1e6,
        [statistics.median(column) for column in zip(*latencies, strict=True)], sum(each.failed for each in rounds),
        next((each.first_error for each in rounds if each.first_error), ""), any(each.stopped for each in rounds),
        rounds[-1].seconds)
