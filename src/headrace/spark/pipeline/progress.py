"""What a run did, batch by batch: Spark's progress reports become plain samples and sums.

The display draws them while the pipeline runs, the report at the end. Nothing is estimated: a figure that Spark does
not give is left out.

This module does not import pyspark: a progress report is parsed JSON. Read next: `headrace.spark.pipeline.report`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from headrace.spark.plan import lag

__all__ = ["MALFORMED_METRIC", "PARSED_METRIC", "ROWS_METRIC", "History", "Sample", "percentile", "sample_of"]

ROWS_METRIC: Final = "rows_out"
"""Name of the observed metric that counts the rows given to a sink."""
MALFORMED_METRIC: Final = "malformed"
"""Prefix of the observed metrics that count values that did not parse, one per source."""
PARSED_METRIC: Final = "parsed"
"""Prefix of those that count values where one that does not parse fails the run."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One micro-batch of one query.

    Attributes:
        query: name of the sink.
        batch_id: number of the micro-batch, counted over restarts.
        started_s, seconds: when its trigger began (Unix time) and how long it took.
        rows_in: records read, over all sources.
        rows_out: rows handed to the sink.
        lag: records that were in the topics and not yet read when the batch ended, over all sources; None for a batch
            that runs again after a restart, of which Spark tells no ends of topics.
        late: rows that came after the watermark and were dropped.
        malformed: values that did not parse.
        topics: records read per topic; where a source reads several, they have one figure.
    """

    query: str
    batch_id: int
    started_s: float
    seconds: float
    rows_in: int
    rows_out: int
    lag: int | None
    late: int = 0
    malformed: int = 0
    topics: Mapping[str, int] = field(default_factory=dict)

    @property
    def ended_s(self) -> float:
        """When the batch ended, Unix time."""
        return self.started_s + self.seconds

    @property
    def rate(self) -> float:
        """Records read per second of the batch."""
        return self.rows_in / self.seconds if self.seconds > 0 else 0.0


def sample_of(progress: Mapping[str, Any]) -> Sample:
    """Read one progress report of Spark (its JSON, parsed)."""
    sources = progress.get("sources", [])
    observed = progress.get("observedMetrics") or {}
    topics: dict[str, int] = {}
    for source in sources:
        read = ", ".join(sorted(name for name in _offsets(source.get("endOffset")) if not name.startswith("@")))
        if read:
            topics[read] = topics.get(read, 0) + int(source.get("numInputRows", 0))
    return Sample(
        query=progress.get("name") or "",
        batch_id=int(progress["batchId"]),
        started_s=datetime.fromisoformat(progress["timestamp"]).timestamp(),
        seconds=float(progress.get("durationMs", {}).get("triggerExecution", 0)) / 1000,
        rows_in=int(progress.get("numInputRows", 0)),
        rows_out=sum(_count(metric) for name, metric in observed.items() if name == ROWS_METRIC),
        lag=_lag([(_offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))) for source in sources]),
        late=sum(int(s.get("numRowsDroppedByWatermark", 0)) for s in progress.get("stateOperators", [])),
        malformed=sum(_count(metric) for name, metric in observed.items() if name.startswith(MALFORMED_METRIC)),
        topics=topics,
    )


def _lag(sources: list[tuple[dict[str, Any], dict[str, Any]]]) -> int | None:
    return None if any(end and not latest for end, latest in sources) else sum(lag(*each) for each in sources)


def _offsets(value: Any) -> dict[str, Any]:
    parsed = json.loads(value) if isinstance(value, str) and value.startswith("{") else value
    return parsed if isinstance(parsed, dict) else {}


def _count(metric: Any) -> int:
    values = metric.values() if isinstance(metric, Mapping) else metric
    return sum(int(value or 0) for value in values)


class History:
    """All samples of a run, in the order in which batches ended."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self._seen: set[tuple[str, int, float]] = set()

    def add(self, progress: Mapping[str, Any]) -> Sample | None:
        """Take a progress report; None when it was there already or is of an idle trigger without a batch."""
        sample = sample_of(progress)
        key = (sample.query, sample.batch_id, sample.started_s)
        if key in self._seen or "addBatch" not in progress.get("durationMs", {}):
            return None
        self._seen.add(key)
        self.samples.append(sample)
        return sample

    def of(self, query: str) -> list[Sample]:
        """The samples of one query."""
        return [sample for sample in self.samples if sample.query == query]

    def read_per_topic(self) -> dict[tuple[str, str], int]:
        """Records read, by query and topic; each query reads its sources by itself."""
        totals: dict[tuple[str, str], int] = {}
        for sample in self.samples:
            for topic, rows in sample.topics.items():
                totals[sample.query, topic] = totals.get((sample.query, topic), 0) + rows
        return totals


def percentile(values: list[float], share: float) -> float:
    """The value below which `share` (0 to 1) of the values lie; the nearest one, 0 of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
