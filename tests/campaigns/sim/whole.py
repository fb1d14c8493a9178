"""Simulations of the clients' machines together with the embedded broker, on one simulated clock and without asyncio.

    python -m tests.campaigns.sim.whole --schedules 400000 --jobs 2
    python -m tests.campaigns.sim.whole --of groups --first-seed 1000 --schedules 1000

`whole_produce`, `whole_transactions`, `whole_groups`, `whole_planned_groups`, `whole_share_groups`,
`read_process_write` and `joint_transactions` say what each checks. Without `--of` the seeds go round.
"""

from __future__ import annotations

import sys
from collections import Counter

from . import (
    joint_transactions,
    read_process_write,
    whole_groups,
    whole_planned_groups,
    whole_produce,
    whole_share_groups,
    whole_transactions,
)
from .campaign import Schedule, Violation, run_campaign

KINDS: dict[str, Schedule] = {
    "produce": whole_produce.run_schedule,
    "transactions": whole_transactions.run_schedule,
    "groups": whole_groups.run_schedule,
    "planned-groups": whole_planned_groups.run_schedule,
    "share-groups": whole_share_groups.run_schedule,
    "read-process-write": read_process_write.run_schedule,
    "joint-transactions": joint_transactions.run_schedule,
}


def run_schedule(seed: int) -> Counter[str]:
    """Run one schedule of each kind in turn; raises `Violation` that names the kind and its seed."""
    number, place = divmod(seed, len(KINDS))
    kind = list(KINDS)[place]
    try:
        return KINDS[kind](number)
    except Violation as violation:
        raise Violation(f"--of {kind}, {violation}") from None


def main(argv: list[str]) -> int:
    """Run a campaign; `--of` names the kind."""
    chosen = run_schedule
    if "--of" in argv:
        place = argv.index("--of")
        chosen = KINDS[argv[place + 1]]
        argv = argv[:place] + argv[place + 2:]
    return run_campaign(chosen, "Simulate machines and broker together.", argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
