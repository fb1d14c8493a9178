"""Offsets of a consumer group, set for lag tools: as far as micro-batches are finished (`groupId`).

Nothing depends on them: a query goes on from Spark's checkpoint, and a commit that fails is a warning. Spark tells
`latestOffset` where the last finished batch ended, also at the end of an AvailableNow run; it tells `commit()` one
batch later, and of the last batch never. So they are set from there. This module does not import pyspark.
Read next: `headrace.spark.source`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from headrace.errors import KafkaException
from headrace.spark.cluster import ClusterView
from headrace.spark.plan import Offsets

__all__ = ["GroupCommits"]

_LAST_S: Final = 10.0
_log = logging.getLogger("headrace")


class GroupCommits:
    """The commits of one query, one at a time.

    Args:
        group_id: the group; it must have no members.
    """

    def __init__(self, group_id: str) -> None:
        self._group_id = group_id
        self._wanted: Offsets = {}
        self._begun: Offsets = {}
        self._outcome: Callable[[float], None] | None = None
        self._told = ""

    def reached(self, view: ClusterView, offsets: Offsets) -> None:
        """A micro-batch is finished: set the offsets at its end, as soon as the commit before is answered."""
        self._wanted = offsets
        if self._wanted != self._begun and self._is_answered(0.0):
            self._begun = dict(self._wanted)
            self._outcome = view.begin_commit(self._group_id, self._begun)

    def finish(self, view: ClusterView) -> None:
        """Wait until the last offsets are set: the process is about to end."""
        self._is_answered(_LAST_S)
        self.reached(view, self._wanted)
        self._is_answered(_LAST_S)

    def _is_answered(self, timeout_s: float) -> bool:
        if self._outcome is None:
            return True
        try:
            self._outcome(timeout_s)
        except TimeoutError:
            return False
        except KafkaException as failed:
            self._warn(failed.error.str())
        self._outcome = None
        return True

    def _warn(self, why: str) -> None:
        if why != self._told:
            _log.warning('offsets of group "%s", which only lag tools look at, were not set: %s', self._group_id, why)
            self._told = why
