"""One worker of a chain of groups, as a process: reads in a group, writes, and commits, for ever.

    python -m tests.campaigns.chaos.etl.worker '{"client": "headrace", "way_in": {...}, "source": ..., ...}'

It is written as an application would be, against the names that headrace and confluent_kafka share, and runs on either.
SIGTERM ends it properly. What happens to it goes to standard output as a `journal`.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from typing import Any, Final

from .journal import COMMIT, COMMITTED, DONE, READ, Journal, Run, heed_signals, runs_of

_BATCH: Final = 10_000
_WAIT_S: Final = 0.5
_CALL_S: Final = 10.0


class Worker:
    """Reads `source`, writes the same records to the same partitions of `target`.

    Args:
        client: the module with `Consumer` and `Producer`.
        job: what the command line names: the properties of the way in, source, target, group, membership (properties
            of a consumer), transactional_id, and whether it stores offsets for automatic commits.
        journal: takes what happens.
    """

    def __init__(self, client: Any, job: dict[str, Any], journal: Journal) -> None:
        self.ending = False
        self._client, self._target, self._source = client, job["target"], job["source"]
        self._journal, self._commits = journal, 0
        way_in = {**job["way_in"], "log_level": 0, "error_cb": lambda error: None}
        self._producer = client.Producer({**way_in, "linger.ms": 5, **self._producing(job)})
        self._consumer = client.Consumer({
            **way_in, "group.id": job["group"], "isolation.level": "read_committed", "auto.offset.reset": "earliest",
            **job["membership"], **self._committing(job)})

    def run(self) -> None:
        """Work until the signal comes, or until it cannot go on."""
        self._begin()
        self._consumer.subscribe(
            [self._source], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost)
        while not self.ending and os.getppid() != 1:  # who started it is there
            messages = [each for each in self._consumer.consume(_BATCH, _WAIT_S) if self._is_record(each)]
            if messages:
                runs = runs_of(messages)
                self._journal.write(READ, runs=runs, **self._identity())
                self._process(messages, runs)
        self._consumer.close()

    def end(self) -> None:
        """Come to an end soon."""
        self.ending = True

    def state(self) -> object:
        """Where it is."""
        return self._consumer.health() if hasattr(self._consumer, "health") else None

    # What guarantees differ in

    def _producing(self, job: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def _committing(self, job: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def _begin(self) -> None:
        pass

    def _process(self, messages: list[Any], runs: list[Run]) -> None:
        raise NotImplementedError

    def _before_revoke(self) -> None:
        pass

    # What they share

    def _on_assign(self, consumer: Any, partitions: list[Any]) -> None:
        self._journal.write("assign", partitions=[each.partition for each in partitions], **self._identity())

    def _on_revoke(self, consumer: Any, partitions: list[Any]) -> None:
        self._before_revoke()
        self._journal.write("revoke", partitions=[each.partition for each in partitions])

    def _on_lost(self, consumer: Any, partitions: list[Any]) -> None:
        self._journal.write("lost", partitions=[each.partition for each in partitions])

    def _identity(self) -> dict[str, Any]:
        member = self._consumer.consumer_group_metadata()
        return {"member": getattr(member, "member_id", ""), "generation": getattr(member, "generation", -1)}

    def _is_record(self, message: Any) -> bool:
        error = message.error()
        if error is not None:
            self._journal.write("told", error=error.name())
            if error.fatal():
                raise self._client.KafkaException(error)
        return error is None

    def _offsets(self, runs: list[Run]) -> list[Any]:
        """What to commit for runs, of each partition the last."""
        behind = {run.partition: run.last + 1 for run in runs}
        return [self._client.TopicPartition(self._source, *each) for each in behind.items()]

    def _note_commit(self, offsets: list[Any], runs: list[Run]) -> None:
        self._commits += 1
        self._journal.write(
            COMMIT, number=self._commits, offsets=[(each.partition, each.offset) for each in offsets], runs=runs)

    def _note_done(self, outcome: str) -> None:
        self._journal.write(DONE, number=self._commits, outcome=outcome)

    def _again(self, call: Callable[[float], Any]) -> None:
        """Make a call until it is done, as its errors ask for."""
        while True:
            try:
                call(_CALL_S)
                return
            except self._client.KafkaException as failed:
                if not failed.args[0].retriable():
                    raise


class ExactlyOnce(Worker):
    """Writes and commits in one transaction. Ends where another worker has taken its transactional id over."""

    def _producing(self, job: dict[str, Any]) -> dict[str, Any]:
        return {"transactional.id": job["transactional_id"], "transaction.timeout.ms": 10_000}

    def _committing(self, job: dict[str, Any]) -> dict[str, Any]:
        return {"enable.auto.commit": False}

    def _begin(self) -> None:
        self._again(self._producer.init_transactions)

    def _process(self, messages: list[Any], runs: list[Run]) -> None:
        """One transaction. What is aborted is read again, from where the group stands."""
        offsets, member = self._offsets(runs), self._consumer.consumer_group_metadata()
        try:
            self._producer.begin_transaction()
            for each in messages:
                self._producer.produce(self._target, each.value(), each.key(), each.partition())
            self._note_commit(offsets, runs)
            self._again(lambda timeout: self._producer.send_offsets_to_transaction(offsets, member, timeout))
            self._again(self._producer.commit_transaction)
            self._note_done(COMMITTED)
        except self._client.KafkaException as failed:
            error = failed.args[0]
            if error.fatal() or not error.txn_requires_abort():
                raise
            self._again(self._producer.abort_transaction)
            self._note_done(f"aborted: {error.name()}")
            self._rewind()

    def _rewind(self) -> None:
        held = self._consumer.assignment()
        sought = []
        for each in self._committed(held):
            if each.offset < 0:
                each.offset = self._client.OFFSET_BEGINNING
            try:
                self._consumer.seek(each)
                sought.append((each.partition, max(each.offset, 0)))
            except self._client.KafkaException:  # it is not ours any more
                self._journal.write("sought in vain")
        self._journal.write("rewind", offsets=sought)

    def _committed(self, held: list[Any]) -> list[Any]:
        while True:
            try:
                found: list[Any] = self._consumer.committed(held, _CALL_S)
            except self._client.KafkaException as failed:
                if not failed.args[0].retriable() and failed.args[0].name() not in ("_TIMED_OUT", "_TRANSPORT"):
                    raise
                continue
            if all(each.error is None for each in found):
                return found


class AtLeastOnce(Worker):
    """Commits what is written: with `commit()`, or by storing offsets for automatic commits."""

    _stores = False

    def _producing(self, job: dict[str, Any]) -> dict[str, Any]:
        return {"enable.idempotence": True}

    def _committing(self, job: dict[str, Any]) -> dict[str, Any]:
        self._stores = job["stores"]
        self._uncommitted: dict[int, Any] = {}
        return {"enable.auto.commit": self._stores, "enable.auto.offset.store": False, "auto.commit.interval.ms": 500}

    def _process(self, messages: list[Any], runs: list[Run]) -> None:
        failed: list[Any] = []
        for each in messages:
            self._producer.produce(
                self._target, each.value(), each.key(), each.partition(),
                on_delivery=lambda error, message: failed.append(error) if error is not None else None)
        self._producer.flush()
        if failed:
            raise self._client.KafkaException(failed[0])
        offsets = self._offsets(runs)
        self._note_commit(offsets, runs)
        if self._stores:
            self._consumer.store_offsets(offsets=offsets)
        else:
            self._uncommitted |= {each.partition: each for each in offsets}
            self._commit()

    def _commit(self) -> None:
        """Commit what is written; what is refused is another's, or is committed the next time."""
        if not self._uncommitted:
            return
        try:
            self._consumer.commit(offsets=list(self._uncommitted.values()), asynchronous=False)
        except self._client.KafkaException as failed:
            self._note_done(f"refused: {failed.args[0].name()}")
        else:
            self._note_done(COMMITTED)
            self._uncommitted.clear()

    def _before_revoke(self) -> None:
        self._commit()

    def _on_revoke(self, consumer: Any, partitions: list[Any]) -> None:
        super()._on_revoke(consumer, partitions)
        self._forget(partitions)

    def _on_lost(self, consumer: Any, partitions: list[Any]) -> None:
        super()._on_lost(consumer, partitions)
        self._forget(partitions)

    def _forget(self, partitions: list[Any]) -> None:
        for each in partitions:
            self._uncommitted.pop(each.partition, None)


GUARANTEES: Final[dict[str, type[Worker]]] = {"exactly-once": ExactlyOnce, "at-least-once": AtLeastOnce}


def main() -> int:
    """Run the worker that the command line describes; 1 when it could not go on."""
    job = json.loads(sys.argv[1])
    client = importlib.import_module(job["client"])
    journal = Journal()
    worker = GUARANTEES[job["guarantee"]](client, job, journal)

    heed_signals(worker.end, worker.state)
    try:
        worker.run()
    except client.KafkaException as failed:
        journal.write("failed", error=failed.args[0].name())
        print(f"{job['group']}, {job['transactional_id']}: {failed}", file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
