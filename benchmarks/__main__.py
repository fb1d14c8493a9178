"""All benchmarks, one after the other: small ones to see that they run, `--full` for figures worth quoting."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from benchmarks import clients, latency, spark

SUITE: dict[str, tuple[Callable[[list[str]], int], list[str], list[str]]] = {
    "clients": (clients.main, ["--records", "200000", "--rounds", "1"],
                ["--records", "2000000", "--rounds", "5", "--actions", "produce", "consume", "consume-values"]),
    "latency": (latency.main, ["--seconds", "2", "--rounds", "1"], ["--seconds", "10", "--rounds", "5"]),
    "spark": (spark.main, ["--records", "200000", "--rounds", "1"], ["--records", "5000000", "--rounds", "5"]),
}


def main(argv: list[str]) -> int:
    """Run the chosen benchmarks; 0 when all of them worked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which ones: {', '.join(SUITE)}; all when none is named")
    parser.add_argument("--full", action="store_true", help="sizes and rounds worth quoting; about half an hour")
    arguments = parser.parse_args(argv)
    unknown = set(arguments.names) - set(SUITE)
    if unknown:
        parser.error(f"unknown benchmark {', '.join(sorted(unknown))}; there are {', '.join(SUITE)}")
    worst = 0
    for name in arguments.names or SUITE:
        run, small, full = SUITE[name]
        print(f"\n== {name}", flush=True)
        worst = max(worst, run(full if arguments.full else small))
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
