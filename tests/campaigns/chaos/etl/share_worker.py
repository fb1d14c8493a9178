"""One worker of a chain of share groups, as a process: reads, writes on, and acknowledges what is written, for ever.

    python -m tests.campaigns.chaos.etl.share_worker '{"way_in": {...}, "source": ..., "target": ..., "group": ...}'

With "explicit" acknowledgement ten records of a hundred are released the first time. SIGTERM ends it properly. What
happens to it goes to standard output as a `journal`.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Final

from headrace import AcknowledgeType, KafkaError, KafkaException, Message, Producer, ShareConsumer, TopicPartition

from .journal import READ, Journal, Run, deliveries_of, heed_signals

_WAIT_S: Final = 0.5
_CALL_S: Final = 10.0


class ShareWorker:
    """Reads `source` as a member of a share group, writes the same records to `target`.

    Args:
        job: what the command line names: the properties of the way in, source, target, group, and the mode of
            acknowledgement.
        journal: takes what happens.
    """

    def __init__(self, job: dict[str, Any], journal: Journal) -> None:
        self.ending = False
        self._source, self._target, self._journal = job["source"], job["target"], journal
        self._explicit = job["mode"] == "explicit"
        way_in = {**job["way_in"], "log_level": 0, "error_cb": lambda error: None}
        self._producer = Producer({**way_in, "enable.idempotence": True, "linger.ms": 5})
        self._consumer = ShareConsumer({
            **way_in, "group.id": job["group"], "share.acknowledgement.mode": job["mode"], "max.poll.records": 4000})
        self._consumer.set_acknowledgement_commit_callback(self._on_acknowledged)

    def run(self) -> None:
        """Work until the signal comes."""
        self._consumer.subscribe([self._source])
        while not self.ending and os.getppid() != 1:
            messages = [each for each in self._consumer.poll(_WAIT_S) if self._is_record(each)]
            if messages:
                self._journal.write(READ, runs=deliveries_of(messages))
                self._process(messages)
        self._consumer.close()

    def end(self) -> None:
        """Come to an end soon."""
        self.ending = True

    def state(self) -> object:
        """Where it is."""
        return self._source

    def _is_record(self, message: Message) -> bool:
        error = message.error()
        if error is not None:
            self._journal.write("told", error=error.name())
        return error is None

    def _process(self, messages: list[Message]) -> None:
        released = [each for each in messages if self._puts_back(each)]
        taken = [each for each in messages if not self._puts_back(each)]
        failed: list[KafkaError] = []
        for each in taken:
            self._producer.produce(
                self._target, each.value(), each.key(), each.partition(),
                on_delivery=lambda error, message: failed.append(error) if error is not None else None)
        self._producer.flush()
        if failed:
            raise KafkaException(failed[0])
        if self._explicit:
            for each in released:
                self._consumer.acknowledge(each, AcknowledgeType.RELEASE)
            for each in taken:
                self._consumer.acknowledge(each)
        self._journal.write("release", runs=deliveries_of(released))
        self._journal.write("accept", runs=deliveries_of(taken))
        for where, error in self._consumer.commit_sync(_CALL_S).items():
            if error is not None:
                self._journal.write("refused", partition=where.partition, error=error.args[0].name())

    def _puts_back(self, message: Message) -> bool:
        offset = message.offset()
        return self._explicit and message.delivery_count() == 1 and offset is not None and offset % 100 < 10

    def _on_acknowledged(self, offsets: dict[TopicPartition, set[int]], failure: KafkaException | None) -> None:
        for where, those in offsets.items():
            runs: list[Run] = []
            for offset in sorted(those):
                if runs and runs[-1].last + 1 == offset:
                    runs[-1] = Run(where.partition, runs[-1].first, offset, runs[-1].count + 1)
                else:
                    runs.append(Run(where.partition, offset, offset, 1))
            self._journal.write("answer", runs=runs, error=None if failure is None else failure.args[0].name())


def main() -> int:
    """Run the worker that the command line describes; 1 when it could not go on."""
    job, journal = json.loads(sys.argv[1]), Journal()
    worker = ShareWorker(job, journal)

    heed_signals(worker.end, worker.state)
    try:
        worker.run()
    except KafkaException as failed:
        journal.write("failed", error=failed.args[0].name())
        print(f"{job['group']}: {failed}", file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
