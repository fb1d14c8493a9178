"""What is done to the cluster: brokers killed or frozen, or their clients' connections hurt. One fault at a time."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from .garble import PHASES, kinds_in
from .proxy import Way
from .site import PARTITIONS, Site

Wait = Callable[[float], bool]
"""Sleeps for so many seconds; True when it is time to end."""


class Injector(threading.Thread):
    """Hurts a site until it is stopped, and leaves it healed.

    Args:
        site: the cluster.
        topic: whose leaders are the victims.
        kind: of `FAULTS`.
        seed: of all that is left to chance but what the machine's speed decides.
        rest_s: how long to leave it in peace behind each fault.

    Attributes:
        counts: what was done, by name.
        spans: from when to when it was done, in monotonic seconds.
        failure: why it could not go on.
    """

    def __init__(self, site: Site, topic: str, kind: str, seed: object, rest_s: float = 0.0) -> None:
        super().__init__(name=f"faults: {kind}", daemon=True)
        self.counts: Counter[str] = Counter()
        self.spans: list[tuple[float, float]] = []
        site.proxy.counts = self.counts
        site.proxy.garbling = kind == "garble"
        self.failure: BaseException | None = None
        self._site, self._topic, self._hurt = site, topic, FAULTS[kind]
        self._random, self._rest_s = random.Random(f"faults {seed}"), rest_s
        self._end = threading.Event()
        if site.proxy.garbling:  # clients are made before they are hurt, and ask some things only then
            for phase in ("handshake", "SASL", "metadata", "producer id"):
                for node in site.nodes:
                    site.proxy.garble(node, phase, *self._random.choices(kinds_in(phase), k=2))

    def run(self) -> None:
        try:
            while not self._end.is_set():
                leader = self._site.leader(self._topic, self._random.randrange(PARTITIONS))
                if leader is None:
                    self._end.wait(0.2)
                else:
                    began = time.monotonic()
                    self._hurt(self._site, leader, self._random, self._end.wait, self.counts)
                    self.spans.append((began, time.monotonic()))
                    self._end.wait(self._rest_s)
        except BaseException as failure:
            self.failure = failure

    def stop(self) -> None:
        """Let the last fault come to its end."""
        self._end.set()
        self.join()
        for phase in PHASES:
            for node in self._site.nodes:
                self._site.proxy.garble(node, phase)


def _kill(site: Site, leader: int, chance: random.Random, wait: Wait, counts: Counter[str]) -> None:
    site.cluster.kill(leader)
    counts["leaders killed"] += 1
    wait(chance.uniform(0, 2))
    site.cluster.restart(leader)
    wait(chance.uniform(0.5, 4))


def _stop(site: Site, leader: int, chance: random.Random, wait: Wait, counts: Counter[str]) -> None:
    site.cluster.pause(leader)
    counts["leaders frozen"] += 1
    wait(20)
    site.cluster.resume(leader)
    wait(chance.uniform(5, 12))


def _proxy(site: Site, leader: int, chance: random.Random, wait: Wait, counts: Counter[str]) -> None:
    proxy, ways = site.proxy, (tuple(Way), (Way.OUT,), (Way.BACK,))
    what = chance.choice(("drop", "reset", "cut", "cut", "cut", "delay", "hole"))
    if what in ("drop", "reset"):
        proxy.end_links(leader, reset=what == "reset")
    elif what == "cut":
        proxy.cut(leader, chance.choice(list(Way)))
    elif what == "delay":
        proxy.delay(leader, chance.uniform(0.01, 0.5))
        wait(chance.uniform(0.5, 4))
        proxy.delay(leader, 0)
    else:
        proxy.shut(leader, *chance.choice(ways))
        wait(chance.uniform(0.5, 8))
        proxy.reopen(leader, lose=chance.random() < 0.5)
    wait(chance.uniform(0.1, 1.5))


def _garble(site: Site, leader: int, chance: random.Random, wait: Wait, counts: Counter[str]) -> None:
    for phase in chance.sample(tuple(PHASES), len(PHASES)):
        kinds = chance.choices(kinds_in(phase), k=chance.choice((1, 1, 2, 4)))
        site.proxy.garble(chance.choice(site.nodes), phase, *kinds)
        if wait(chance.uniform(0.02, 0.4)):
            break


FAULTS: Final[Mapping[str, Callable[[Site, int, random.Random, Wait, Counter[str]], None]]] = {
    "garble": _garble, "kill": _kill, "proxy": _proxy, "stop": _stop,
}
