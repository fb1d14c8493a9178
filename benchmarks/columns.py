"""CPU of a million rows: `produce_arrow()` beside confluent-kafka's `produce()` in a loop, at one real broker.

`python -m benchmarks.columns [--records N] [--rounds N]`. The rows exist before the clock starts, as bytes for the loop
and as an Arrow column for the columns; each measurement is a process of its own, and ends when all is stored.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any

from benchmarks.brokers import kafka
from benchmarks.measure import Sample, Stopwatch, answer, run_child
from benchmarks.peers import PRODUCER, WARM_UP, produce_confluent, values

SIZE = 100
PARTITIONS = 4


def produce_columns(request: dict[str, Any]) -> Sample:
    import pyarrow as pa

    from headrace import Producer

    producer = Producer({**PRODUCER, "bootstrap.servers": request["bootstrap"]})
    warm = pa.table({"value": list(values(WARM_UP, SIZE))})
    table = pa.table({"value": list(values(request["records"], SIZE))})
    producer.produce_arrow(request["warm_topic"], warm).result(60)
    with Stopwatch() as watch:
        stored = producer.produce_arrow(request["topic"], table)
        producer.flush(300)
        if stored.result(1) != request["records"]:
            raise RuntimeError("rows are missing")
    producer.close()
    return watch.sample(request["records"])


def main(argv: list[str]) -> int:
    """Measure in turn; print CPU seconds per million rows, the best round of each, and their ratio."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.columns", description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args(argv)
    best: dict[str, float] = {}
    with kafka("4.4.0") as broker:
        broker.create_topic("warm", PARTITIONS)
        for number in range(arguments.rounds):
            for who in ("columns", "confluent-kafka"):
                topic = f"{who}-{number}"
                broker.create_topic(topic, PARTITIONS)
                found = run_child("benchmarks.columns", {
                    "client": who, "bootstrap": broker.bootstrap_servers, "topic": topic, "warm_topic": "warm",
                    "records": arguments.records, "size": SIZE, "settings": {}, "profile": None})
                if broker.record_count(topic, PARTITIONS) != arguments.records:
                    raise RuntimeError(f"records are missing from {topic}")
                broker.delete_topic(topic)
                cost = Sample(**found).cpu_s_per_million
                best[who] = min(cost, best.get(who, cost))
                print(f"round {number + 1}: {who} {cost:.3f} CPU s per million rows of {SIZE} B", flush=True)
    ratio = best["confluent-kafka"] / best["columns"]
    print(f"best: columns {best['columns']:.3f}, confluent-kafka {best['confluent-kafka']:.3f}: {ratio:.1f} times less")
    return 0


if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1].startswith("{"):
        REQUEST = json.loads(sys.argv[1])
        MEASURED = produce_columns(REQUEST) if REQUEST["client"] == "columns" else produce_confluent(
            REQUEST["client"], REQUEST)
        answer(**asdict(MEASURED))
    else:
        sys.exit(main(sys.argv[1:]))
