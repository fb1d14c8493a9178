"""Every rule that keeps records whole, once and in order, broken on purpose: the simulations have to notice.

    python -m tests.campaigns.sim.mutations --jobs 2

prints for each rule how many schedules it took, and fails if one of them can be broken unnoticed. Rules of the brokers
are among them: one that no schedule needs would show that the schedules are too tame.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys

from .broker_mutations import BROKER_RULES
from .campaign import each_of, hash_as_always
from .group_mutations import GROUP_RULES
from .joint_mutations import JOINT_RULES
from .membership_mutations import MEMBERSHIP_RULES
from .mutation import Mutation
from .produce_mutations import PRODUCE_RULES
from .reading_mutations import READING_RULES
from .share_mutations import SHARE_RULES
from .transaction_mutations import TRANSACTION_RULES
from .whole_mutations import WHOLE_RULES

__all__ = ["MUTATIONS", "Mutation", "main"]

MUTATIONS = [*PRODUCE_RULES, *TRANSACTION_RULES, *BROKER_RULES, *MEMBERSHIP_RULES, *READING_RULES, *GROUP_RULES,
             *SHARE_RULES, *JOINT_RULES, *WHOLE_RULES]


def _try(asked: tuple[int, int | None]) -> tuple[int, int, str]:
    number, schedules = asked
    return number, *MUTATIONS[number].caught(schedules)


def main(argv: list[str] | None = None) -> int:
    """Break every rule; the result, for `sys.exit`, says whether each was noticed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--only", default="", help="rules with this text in them, or in their simulation's name")
    parser.add_argument("--schedules", type=int, help="try so many instead of those that are stated for each rule")
    options = parser.parse_args(argv)
    wanted = [(number, options.schedules) for number, each in enumerate(MUTATIONS)
              if options.only in f"{each.simulation}: {each.rule}"]
    unnoticed = 0
    print("| simulation | rule | schedules to the catch | of at most | finding |\n|---|---|---|---|---|")
    for number, tried, found in each_of(wanted, _try, options.jobs):
        each = MUTATIONS[number]
        unnoticed += not found
        print(f"| {each.simulation} | {each.rule} | {tried or '-'} | {options.schedules or each.within} | "
              f"{found or 'NONE'} |", flush=True)
    print(f"{len(wanted)} mutations, {unnoticed} unnoticed")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    hash_as_always("tests.campaigns.sim.mutations")
    sys.exit(main())
