"""One worker of a pipeline, as a process: reads in a group, writes, and commits both in one transaction, for ever.

    python -m tests.campaigns.chaos.etl_worker '{"client": "headrace", "way_in": {...}, "source": ..., ...}'

It is written as an application would be, against the names that headrace and confluent_kafka share, and runs on either.
SIGTERM ends it properly. Its counts go to standard output, a line of JSON whenever they have changed.
"""

from __future__ import annotations

import importlib
import json
import signal
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

_BATCH: Final = 500
_WAIT_S: Final = 0.5
_CALL_S: Final = 10.0


class Worker:
    """Reads `source`, writes the same records to `target`.

    Args:
        client: the module with `Consumer` and `Producer`.
        job: what the command line names: the properties of the way in, source, target, group, strategy and
            transactional_id.
    """

    def __init__(self, client: Any, job: dict[str, Any]) -> None:
        self._client, self._source, self._target = client, job["source"], job["target"]
        self._counts: Counter[str] = Counter()
        self.ending = False
        way_in = {**job["way_in"], "log_level": 0, "error_cb": lambda error: None}
        self._producer = client.Producer({
            **way_in, "transactional.id": job["transactional_id"], "transaction.timeout.ms": 10_000, "linger.ms": 5})
        self._consumer = client.Consumer({
            **way_in, "group.id": job["group"], "partition.assignment.strategy": job["strategy"],
            "isolation.level": "read_committed", "enable.auto.commit": False, "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000, "heartbeat.interval.ms": 500})

    def run(self) -> None:
        """Work until the signal comes, or until another worker has taken the transactional id over."""
        self._again(self._producer.init_transactions)
        self._consumer.subscribe([self._source])
        while not self.ending:
            messages = [each for each in self._consumer.consume(_BATCH, _WAIT_S) if self._is_record(each)]
            if messages:
                self._process(messages)
        self._consumer.close()

    def _is_record(self, message: Any) -> bool:
        error = message.error()
        if error is not None:
            self._count(f"told {error.name()}")
            if error.fatal():
                raise self._client.KafkaException(error)
        return error is None

    def _process(self, messages: list[Any]) -> None:
        """One transaction. What is aborted is read again, from where the group stands."""
        nexts = {(each.topic(), each.partition()): each.offset() + 1 for each in messages}
        offsets = [self._client.TopicPartition(*place, offset) for place, offset in nexts.items()]
        member = self._consumer.consumer_group_metadata()
        try:
            self._producer.begin_transaction()
            for each in messages:
                self._producer.produce(self._target, each.value(), each.key())
            self._again(lambda timeout: self._producer.send_offsets_to_transaction(offsets, member, timeout))
            self._again(self._producer.commit_transaction)
            self._count("committed")
        except self._client.KafkaException as failed:
            error = failed.args[0]
            self._count(f"aborted: {error.name()}")
            if error.fatal() or not error.txn_requires_abort():
                raise
            self._again(self._producer.abort_transaction)
            self._rewind()

    def _rewind(self) -> None:
        held = self._consumer.assignment()
        while True:
            try:
                found = self._consumer.committed(held, _CALL_S)
            except self._client.KafkaException as failed:
                if not failed.args[0].retriable() and failed.args[0].name() not in ("_TIMED_OUT", "_TRANSPORT"):
                    raise
                continue
            if all(each.error is None for each in found):
                break
        for each in found:
            if each.offset < 0:
                each.offset = self._client.OFFSET_BEGINNING
            try:
                self._consumer.seek(each)
            except self._client.KafkaException:  # it is not ours any more
                self._count("sought in vain")

    def _again(self, call: Callable[[float], Any]) -> None:
        """Make a call until it is done, as its errors ask for."""
        while True:
            try:
                call(_CALL_S)
                return
            except self._client.KafkaException as failed:
                if not failed.args[0].retriable():
                    raise

    def _count(self, what: str) -> None:
        self._counts[what] += 1
        print(json.dumps(self._counts), flush=True)


def main() -> int:
    """Run the worker that the command line describes; 1 when it could not go on."""
    job = json.loads(sys.argv[1])
    client = importlib.import_module(job["client"])
    worker = Worker(client, job)

    def end(*_: object) -> None:
        worker.ending = True

    signal.signal(signal.SIGTERM, end)
    try:
        worker.run()
    except client.KafkaException as failed:
        print(f"{job['transactional_id']}: {failed}", file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
