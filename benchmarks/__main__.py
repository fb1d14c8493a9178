"""All benchmarks, one after the other: small ones to see that they run, `--full` for figures worth quoting."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks import (
    clients,
    imports,
    joining,
    latency,
    many_partitions,
    many_topics,
    producing,
    records,
    serdes,
    shell,
    spark,
    trickle,
    values,
    wire,
)

SUITE: dict[str, tuple[Callable[[list[str]], int], list[str], list[str]]] = {
    "imports": (imports.main, ["--rounds", "5"], ["--rounds", "30"]),
    "wire": (wire.main, ["--rounds", "2"], ["--rounds", "15"]),
    "records": (records.main, ["--rounds", "1"], ["--rounds", "9"]),
    "serdes": (serdes.main, ["--rounds", "2"], ["--rounds", "15"]),
    "clients": (clients.main, ["--records", "200000", "--rounds", "1"],
                ["--records", "2000000", "--rounds", "5", "--actions", "produce", "consume", "consume-values"]),
    "producing": (producing.main, ["--records", "100000", "--rounds", "1"], ["--records", "2000000", "--rounds", "5"]),
    "latency": (latency.main, ["--seconds", "2", "--rounds", "1"], ["--seconds", "10", "--rounds", "5"]),
    "trickle": (trickle.main, ["--seconds", "2", "--rounds", "1"], ["--seconds", "8", "--rounds", "5"]),
    "joining": (joining.main, ["--rounds", "1", "--delays", "0"], ["--rounds", "15"]),
    "many_partitions": (many_partitions.main, ["--partitions", "4", "1000", "--records", "200000", "--rounds", "1"],
                        ["--rounds", "5"]),
    "many_topics": (many_topics.main, ["--topics", "1000", "--rounds", "1"], ["--rounds", "5"]),
    "shell": (shell.main, ["--lines", "500000", "--rounds", "1"], ["--lines", "5000000", "--rounds", "5"]),
    "spark": (spark.main, ["--records", "200000", "--rounds", "1", "--actions", "read", "write", "small"],
              ["--records", "5000000", "--rounds", "5"]),
    "values": (values.main, ["--records", "50000", "--rounds", "1"], ["--records", "2000000", "--rounds", "5"]),
}
ALONE = ("imports", "wire", "records", "serdes")
"""Those that need no broker."""


def main(argv: list[str]) -> int:
    """Run the chosen benchmarks; 0 when all of them worked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which ones: {', '.join(SUITE)}; all when none is named")
    effort = parser.add_mutually_exclusive_group()
    effort.add_argument("--full", action="store_true", help="sizes and rounds worth quoting; about half an hour")
    effort.add_argument("--quick", action="store_true", help=f"see that {', '.join(ALONE)} run; only these")
    parser.add_argument("--json", type=Path, metavar="DIRECTORY", help="where to write NAME.json of each")
    arguments = parser.parse_args(argv)
    unknown = set(arguments.names) - set(SUITE)
    if unknown:
        parser.error(f"unknown benchmark {', '.join(sorted(unknown))}; there are {', '.join(SUITE)}")
    worst = 0
    for name in arguments.names or (ALONE if arguments.quick else SUITE):
        run, small, full = SUITE[name]
        given = full if arguments.full else ["--quick"] if arguments.quick and name in ALONE else small
        where = [] if arguments.json is None else ["--json", str(arguments.json / f"{name}.json")]
        print(f"\n== {name}", flush=True)
        worst = max(worst, run([*given, *where]))
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
