"""The simulation of whole consumers in a group that the coordinator plans for (KIP-848).

It is `membership` with `"group.protocol": "consumer"`: the same applications, troubles and promises.

    python -m tests.campaigns.sim.planned_membership --schedules 100000 --jobs 2
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

from . import membership
from .application import GROUP


class PlannedMembership(membership.Membership):
    """One schedule."""

    strategies = ("uniform", "range")

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.incremental = True

    def membership(self) -> Mapping[str, Any]:
        """Properties of a member of the group."""
        return {"group.protocol": "consumer", "group.remote.assignor": self.strategy}

    @property
    def group(self) -> Any:
        """The group, as its coordinator has it."""
        return self.network.cluster.planned_groups.get(GROUP)


def run_schedule(seed: int) -> Counter[str]:
    """Run one schedule; raises `Violation`."""
    return PlannedMembership(seed).run()


if __name__ == "__main__":
    sys.exit(membership.main(run_schedule, "tests.campaigns.sim.planned_membership"))
