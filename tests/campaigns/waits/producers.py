"""Programs that produce now and then: each record is reported by itself, soon, and once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from random import Random
from typing import Any

from headrace import Producer
from tests.campaigns.waits.outcome import Outcome
from tests.campaigns.waits.topics import made

LASTS_S = 1.5
_GIVEN_UP_S = 4.0
_CODECS = ("none", "none", "lz4", "gzip")
_WAYS = ("poll(0)", "poll()", "a thread polls", "flush(0)", "flush() at times")


class Program:
    """Threads that produce one to three records every few milliseconds; nobody flushes behind the last.

    Args:
        bootstrap: the brokers.
        random: draws the program.
    """

    def __init__(self, bootstrap: str, random: Random) -> None:
        self._random = random
        self._properties: dict[str, Any] = {
            "linger.ms": random.choice([0, 0.5, 1, 2, 5, 20]), "compression.type": random.choice(_CODECS),
            "acks": random.choice(["all", "all", 1]), "batch.num.messages": random.choice([10_000, 3, 2])}
        self._transactional = random.random() < 0.15
        if self._transactional:
            self._properties |= {"transactional.id": "waits", "acks": "all"}
        elif self._properties["acks"] == 1:
            self._properties["enable.idempotence"] = False
        self._threads, self._way = random.choice([1, 1, 2, 3]), random.choice(_WAYS)
        self._gap_s = random.choice([0.0005, 0.003, 0.01])
        self._topics = made(bootstrap, random, random.choice([(3, 1, 7), (3,), (1,)]))
        self._producer = Producer({"bootstrap.servers": bootstrap, **self._properties})
        self._handed_in: list[None] = []
        self._reported: list[tuple[float, str]] = []

    def run(self) -> Outcome:
        """Produce for a while, and wait for what does not come by itself."""
        if self._transactional:
            self._producer.init_transactions()
            self._producer.begin_transaction()
        over = threading.Event()
        polling = threading.Thread(target=self._poll, args=(over,))
        if self._way == "a thread polls":
            polling.start()
        threads = [threading.Thread(target=self._produce, args=(Random(self._random.random()),))
                   for _ in range(self._threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        until = time.monotonic() + _GIVEN_UP_S
        while len(self._reported) < len(self._handed_in) and time.monotonic() < until:
            time.sleep(0.01) if polling.is_alive() else self._producer.poll(0.05)
        records, reported = len(self._handed_in), list(self._reported)
        over.set()
        if polling.is_alive():
            polling.join()
        if self._transactional:
            self._producer.commit_transaction()
        self._producer.close()
        return Outcome(f"{self._way}, {self._threads} threads, a gap of {self._gap_s} s, {self._topics}, "
                       f"{self._properties}", records, len(reported), max(took for took, _ in reported),
                       next((error for _, error in reported if error), ""))

    def _poll(self, over: threading.Event) -> None:
        while not over.is_set():
            self._producer.poll(0.05)

    def _produce(self, random: Random) -> None:
        end = time.monotonic() + LASTS_S
        while time.monotonic() < end:
            for _ in range(random.choice((1, 1, 2, 3))):
                self._handed_in.append(None)
                self._producer.produce(
                    random.choice(self._topics), b"x" * random.choice((10, 100, 3_000)),
                    key=random.choice((None, b"%d" % random.randrange(20))), on_delivery=self._reporter())
                _spin(random.random() * 30e-6)
            if self._way == "poll(0)":
                self._producer.poll(0)
            elif self._way == "poll()":
                self._producer.poll(random.random() * 0.004)
            elif self._way.startswith("flush") and random.random() < 0.3:
                self._producer.flush(0 if self._way == "flush(0)" else random.choice((0.001, 1)))
            time.sleep(random.random() * self._gap_s)

    def _reporter(self) -> Callable[[object, object], None]:
        begun = time.monotonic()
        return lambda error, message: self._reported.append((time.monotonic() - begun, str(error or "")))


def _spin(seconds: float) -> None:
    """What an application does between two records: less than a sleep can be."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
