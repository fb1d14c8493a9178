"""Write and read values of generated Avro schemas: by our codec, fastavro, Apache's avro and confluent_kafka.

    python -m tests.campaigns.schemas --cases 100000 --jobs 2

Each case is a schema, two values of it and two that seldom fit: bytes, what is read of them, and errors must be those
of fastavro. Java's Avro reads all that was written and writes it again (`--without-java` spares that); of every tenth
case, Apache's avro for Python reads the bytes; every twentieth goes through confluent_kafka's serializers and ours on
one registry. Exit status 1 on a difference.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from .agreement import DisagreementError, check
from .java_values import differences_with_java

_LOT = 1000


def run(first: int, cases: int, java: bool) -> tuple[Counter[str], list[str]]:
    """Check some cases; how many schemas of which kind there were, and what differs."""
    kinds, differences, written = Counter[str](), list[str](), list[tuple[str, bytes]]()
    for seed in range(first, first + cases):
        try:
            kinds[check(seed, apache=seed % 10 == 0, peer=seed % 20 == 0, written=written)] += 1
        except DisagreementError as found:
            differences.append(str(found))
        except Exception as found:
            differences.append(f"seed {seed}: {found!r}")
    if java:
        differences += differences_with_java(written)
        kinds["java"] += len(written)
    return kinds, differences


def main() -> int:
    """Run the command; returns its exit status."""
    options = argparse.ArgumentParser(description="Our Avro beside fastavro's, Apache's and confluent_kafka's.")
    options.add_argument("--cases", type=int, default=100_000, help="schemas")
    options.add_argument("--seed", type=int, default=0, help="of the first")
    options.add_argument("--jobs", type=int, default=1, help="processes")
    options.add_argument("--without-java", action="store_true", help="no JDK is needed then")
    given = options.parse_args()
    kinds, differences = Counter[str](), list[str]()
    with ProcessPoolExecutor(given.jobs) as pool:
        end = given.seed + given.cases
        lots = [pool.submit(run, first, min(_LOT, end - first), not given.without_java)
                for first in range(given.seed, end, _LOT)]
        for lot in lots:
            found, differing = lot.result()
            kinds += found
            differences += differing
            print("\n".join(differing), end="\n" if differing else "", flush=True)
    print(f"{given.cases:,} cases: {kinds['made']:,} of schemas that a function is made for, {kinds['fastavro']:,} of "
          f"others; {kinds['java']:,} values through Java; {len(differences)} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
