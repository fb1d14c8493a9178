"""Compare where keys go with librdkafka and Java.

    python -m tests.campaigns.partitioners --keys 100000 --jobs 2

Each partitioner of librdkafka, each number of partitions, each key: by librdkafka's producer, ours, the plain twin, and
Java where it hashes the same. Then what becomes of records without a key. Exit status 1 on a difference.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor

from .agreement import COUNTS, HASHING, JAVAS, NAMES, Disagreement, compare_keys, compare_lots, random_keys, topics


def run(partitioner: str, keys: int, seed: int, class_path: str | None) -> tuple[list[str], int]:
    """Compare one partitioner; what to print, and the number of differences."""
    lines, differences = [partitioner], 0
    with topics() as servers:
        if partitioner in HASHING:
            totals = compare_keys(servers, partitioner, random_keys(keys, seed), class_path)
            lines += [f"  {what}: {number:,}" for what, number in totals.items()]
            differences += sum(number for what, number in totals.items() if what.endswith("differences"))
        try:
            lines += [f"  key {key}: {what}" for key, what in compare_lots(servers, partitioner, keys).items()]
        except Disagreement as found:
            lines.append(f"  {found}")
            differences += 1
    return lines, differences


def main() -> int:
    """Run the command; returns its exit status."""
    from tools.kafka import artifacts

    options = argparse.ArgumentParser(description="Our partitioners beside librdkafka's and Java's.")
    options.add_argument("--keys", type=int, default=100_000, help="keys for each partitioner and number of partitions")
    options.add_argument("--seed", type=int, default=0, help="of the keys")
    options.add_argument("--jobs", type=int, default=1, help="processes")
    given = options.parse_args()
    class_path = artifacts.class_path("4.4.0")
    print(f"{given.keys:,} keys for each of {COUNTS} partitions", flush=True)
    differences = 0
    with ProcessPoolExecutor(given.jobs) as pool:
        tasks = [pool.submit(run, name, given.keys, given.seed, class_path if name in JAVAS else None)
                 for name in NAMES]
        for task in tasks:
            lines, found = task.result()
            differences += found
            print("\n".join(lines), flush=True)
    print(f"{differences} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
