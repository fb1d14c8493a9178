"""A measured process: one client sends records, and prints its figures, a line of JSON at a time.

`python -m headrace.cli.measuring.worker` reads one request in JSON from standard input, where no other user sees
passwords. It imports, connects and sends a few records first; then the clock starts. SIGINT makes it end early, with
its figures. CPU is user plus system time of the whole process. Latency is from the call that sends a record until it is
known to be stored, of every `every`-th record.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from headrace.cli.measuring.figures import WARM_UP, percentiles

__all__ = ["WorkerMeter", "answer", "main", "payloads_of", "with_tls"]

_CHECK_EVERY = 500  # records between two looks at the clock
_FLUSH_S = 120.0
_MANY = 1_000


class WorkerMeter:
    """Counts, times and prints figures.

    Args:
        request: what was asked for.
    """

    def __init__(self, request: dict[str, Any]) -> None:
        self.records: int = request["records"]
        self._rate: float = request["rate"]
        self._ends_after_s: float = request["seconds"]
        self._payloads = payloads_of(request)
        self.every: int = request["every"]
        self.times: list[float] = []
        self.sent = self.size = self.failed = 0
        self.first_error = ""
        self.stopped = False
        self._seconds: list[tuple[float, float]] = []
        self._reported_times = 0
        signal.signal(signal.SIGINT, self._stop)

    def _stop(self, _number: int, _frame: object) -> None:
        self.stopped = True

    def begin(self) -> None:
        """The clock starts."""
        self._cpu_s, self._began_s = time.process_time(), time.perf_counter()
        self._reported_at, self._reported_sent = self._began_s, 0

    def payloads(self) -> Iterator[bytes]:
        """What to send, in turn and without an end."""
        return itertools.cycle(self._payloads)

    def wait_s(self) -> float:
        """Seconds until the next record is due; not positive when it is. Prints the figures of each past second."""
        now = time.perf_counter()
        if now - self._reported_at >= 1.0:
            self.report(now)
        return self._began_s + self.sent / self._rate - now if self._rate else 0.0

    @property
    def over(self) -> bool:
        """Enough was sent."""
        late = self._ends_after_s and time.perf_counter() - self._began_s >= self._ends_after_s
        return self.stopped or bool(late) or self.sent >= self.records

    def portion(self) -> int:
        """Records until the next look at the clock."""
        return 1 if self._rate and self._rate < 1e5 else min(_CHECK_EVERY, self.records - self.sent)

    def lost(self, error: object) -> None:
        """A record was not stored."""
        self.failed += 1
        self.first_error = self.first_error or str(error)

    def report(self, now: float) -> None:
        """One line about the last second."""
        rate = (self.sent - self._reported_sent) / (now - self._reported_at)
        at = now - self._began_s
        self._seconds.append((round(at, 2), round(rate)))
        fresh = percentiles(self.times[self._reported_times :])
        self._reported_at, self._reported_sent, self._reported_times = now, self.sent, len(self.times)
        _print({"second": at, "sent": self.sent, "rate": rate, "mb_rate": rate * self.size / max(self.sent, 1) / 1e6,
              "latencies_ms": fresh, "cpu_s": time.process_time() - self._cpu_s})

    def end(self) -> None:
        """All is stored or given up: the last line."""
        wall_s = time.perf_counter() - self._began_s
        cpu_s = time.process_time() - self._cpu_s
        _print({"records": self.sent - self.failed, "size_bytes": self.size, "wall_s": wall_s, "cpu_s": cpu_s,
              "latencies_ms": percentiles(self.times), "failed": self.failed, "first_error": self.first_error,
              "stopped": self.stopped, "seconds": self._seconds})


def _print(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


def payloads_of(request: dict[str, Any]) -> list[bytes]:
    """Random values, a thousand different ones, which a codec cannot take for one; or the lines of a file."""
    if request["payload_file"]:
        lines = Path(request["payload_file"]).read_bytes().split(request["payload_delimiter"].encode("latin-1"))
        return [line for line in lines if line]
    source = random.Random(7)
    return [source.randbytes(request["size"]) for _ in range(_MANY)]


def _confluent(request: dict[str, Any], meter: WorkerMeter) -> None:
    """confluent_kafka's calls, which are ours as well. Both measure the latency of a record themselves."""
    producer: Any
    if request["client"] == "headrace":
        from headrace import Producer

        producer = Producer(request["settings"])
    else:
        import confluent_kafka

        producer = confluent_kafka.Producer({"log_level": 0, **request["settings"]})

    def timed(error: Any, message: Any) -> None:
        if error is not None:
            meter.lost(error)
        else:
            meter.times.append(message.latency())

    def warm(error: Any, _message: Any) -> None:
        if error is not None:
            raise RuntimeError(error)

    topic, payloads = request["topic"], meter.payloads()
    for payload in itertools.islice(payloads, WARM_UP):
        producer.produce(topic, payload, on_delivery=warm)
    if producer.flush(_FLUSH_S):
        raise RuntimeError("the first records were not stored in time")
    meter.begin()
    produce, poll, every = producer.produce, producer.poll, meter.every
    while not meter.over:
        while (wait_s := meter.wait_s()) > 0 and not meter.stopped:
            poll(min(wait_s, 0.1))
        poll(0)
        for payload in itertools.islice(payloads, meter.portion()):
            callback = timed if meter.sent % every == 0 else None
            while not meter.stopped:
                try:
                    if callback is None:
                        produce(topic, payload)
                    else:
                        produce(topic, payload, on_delivery=callback)
                except BufferError:
                    poll(0.05)
                    meter.wait_s()
                    continue
                meter.sent += 1
                meter.size += len(payload)
                break
    left = producer.flush(_FLUSH_S)
    for _ in range(left):
        meter.lost(f"{left} records were not stored within {_FLUSH_S:g} s")
    meter.end()


def _kafka_python(request: dict[str, Any], meter: WorkerMeter) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(**request["settings"])
    topic, payloads = request["topic"], meter.payloads()
    for payload in itertools.islice(payloads, WARM_UP):
        last = producer.send(topic, payload)
    producer.flush(_FLUSH_S)
    last.get(1)
    meter.begin()
    clock, every = time.perf_counter, meter.every
    while not meter.over:
        while (wait_s := meter.wait_s()) > 0 and not meter.stopped:
            time.sleep(min(wait_s, 0.1))
        for payload in itertools.islice(payloads, meter.portion()):
            if meter.sent % every == 0:
                began = clock()
                future = producer.send(topic, payload)
                future.add_callback(lambda _stored, began=began: meter.times.append(clock() - began))
                future.add_errback(meter.lost)
            else:
                producer.send(topic, payload)
            meter.sent += 1
            meter.size += len(payload)
    producer.flush(_FLUSH_S)
    meter.end()
    producer.close(5)


async def _aiokafka(request: dict[str, Any], meter: WorkerMeter) -> None:
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(**with_tls(request["settings"]))
    await producer.start()
    topic, payloads = request["topic"], meter.payloads()
    for payload in itertools.islice(payloads, WARM_UP):
        last = await producer.send(topic, payload)
    await producer.flush()
    await last
    meter.begin()
    clock, every = time.perf_counter, meter.every

    def timed(future: asyncio.Future[Any], began: float) -> None:
        if future.cancelled() or future.exception() is not None:
            meter.lost("cancelled" if future.cancelled() else future.exception())
        else:
            meter.times.append(clock() - began)

    while not meter.over:
        while (wait_s := meter.wait_s()) > 0 and not meter.stopped:
            await asyncio.sleep(min(wait_s, 0.1))
        for payload in itertools.islice(payloads, meter.portion()):
            began = clock()
            future = await producer.send(topic, payload)
            if meter.sent % every == 0:
                future.add_done_callback(lambda done, began=began: timed(done, began))
            meter.sent += 1
            meter.size += len(payload)
    await producer.flush()
    await asyncio.sleep(0)  # the last callbacks
    meter.end()
    await producer.stop()


def with_tls(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of aiokafka with the files of TLS read."""
    made = dict(settings)
    files = made.pop("tls_files", None)
    if files is not None:
        import ssl

        made["ssl_context"] = ssl.create_default_context(cafile=files.get("ssl.ca.location"))
        if files.get("ssl.certificate.location"):
            made["ssl_context"].load_cert_chain(files["ssl.certificate.location"], files.get("ssl.key.location"),
                                                files.get("ssl.key.password"))
    return made


def answer(clients: Mapping[str, Callable[[dict[str, Any], WorkerMeter], None]]) -> None:
    """Do what the request on standard input says.

    Args:
        clients: what measures each client.
    """
    request = json.loads(sys.stdin.readline())
    meter = WorkerMeter(request)
    try:
        clients[request["client"]](request, meter)
    except BrokenPipeError:  # the process that asked is gone
        os._exit(1)
    except Exception as error:
        _print({"trouble": f"{type(error).__name__}: {error}"})
        sys.exit(1)


def main() -> None:
    """Send, as the request on standard input says."""
    answer({"headrace": _confluent, "confluent-kafka": _confluent, "kafka-python": _kafka_python,
            "aiokafka": lambda request, meter: asyncio.run(_aiokafka(request, meter))})


if __name__ == "__main__":
    main()
