"""Compare what we say of Avro schemas with what Java's library says.

    python -m tests.campaigns.avro --pairs 20000

Of each schema: whether it is valid, its text, its Parsing Canonical Form and its fingerprint. Of each pair: every
reason why the one cannot read the other, with its place. Exit status 1 on a difference.
"""

from __future__ import annotations

import argparse
import sys

from .agreement import compare
from .schema_pairs import pairs


def main() -> int:
    """Run the command; returns its exit status."""
    options = argparse.ArgumentParser(description="Our verdicts on Avro schemas beside Java's.")
    options.add_argument("--pairs", type=int, default=20_000, help="how many")
    options.add_argument("--seed", type=int, default=0, help="of the pairs")
    given = options.parse_args()
    counts, differences = compare(list(pairs(given.pairs, given.seed)))
    print("\n".join(differences[:50]))
    print(", ".join(f"{number:,} {what}" for what, number in sorted(counts.items())))
    print(f"{len(differences)} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
