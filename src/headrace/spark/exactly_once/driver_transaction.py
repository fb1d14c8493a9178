"""The driver's part of exactly-once writes: begin before the tasks start, end when all have reported.

The two run in different processes, which may die in between; the next driver begins again and learns by the marker
whether the micro-batch is in the topics (decision 0037 has the table). This module does not import pyspark.
Read next: `headrace.spark.exactly_once.task_transaction`.
"""

from __future__ import annotations

import hashlib
import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from headrace.client.joint.transaction_owner import CommittedMark, TransactionOwner, kept_owner
from headrace.errors import ConfigError, KafkaException
from headrace.spark.exactly_once.batch_marker import BatchMarker, check_skipped
from headrace.spark.exactly_once.claims_topic import ClaimsTopic, open_claims
from headrace.spark.exactly_once.task_report import BegunBatch, TaskReport, common_work, written_partitions
from headrace.spark.options import SinkOptions

__all__ = ["abort", "begin", "begin_alone", "commit", "commit_offsets", "end", "mark", "sink_name"]

_PREFIX: Final = "headrace-sink-"
_TIMEOUT_MS: Final = "900000"
"""A micro-batch may take long; brokers allow no more than this (transaction.max.timeout.ms)."""
_HASH_BYTES: Final = 10
_log = logging.getLogger("headrace")


def sink_name(options: SinkOptions) -> str:
    """The name of a stream's transactions, which is that of its markers' group as well.

    Raises:
        ConfigError: nothing tells this stream from others.
    """
    if options.transactional_id:
        return options.transactional_id
    if options.sink_id:
        return _PREFIX + options.sink_id
    if options.checkpoint:
        digest = hashlib.blake2b(options.checkpoint.rstrip("/").encode(), digest_size=_HASH_BYTES)
        return _PREFIX + digest.hexdigest()
    raise ConfigError("delivery.guarantee=exactly_once needs a name for this stream: set option sinkId to one that no "
                      "other stream has, or checkpointLocation by .option() and not by the session's configuration")


def begin(options: SinkOptions) -> BegunBatch:
    """Begin the transaction of a micro-batch; what a driver before has left open is aborted.

    Raises:
        ConfigError: the stream has no name.
        KafkaException: the brokers refuse, or did not answer in time.
    """
    name = sink_name(options)
    transaction, last = _owner(options).begin(name, name)
    return BegunBatch(transaction, last, name, _claims(options))


def begin_alone(options: SinkOptions) -> BegunBatch:
    """Begin the transaction of a batch write, which has a name of its own unless the options give it one."""
    named = options.transactional_id or (_PREFIX + options.sink_id if options.sink_id else "")
    transaction, _ = _owner(options).begin(named or f"{_PREFIX}{uuid.uuid4().hex}")
    return BegunBatch(transaction, claims=_claims(options))


def _claims(options: SinkOptions) -> ClaimsTopic | None:
    return open_claims(options.client, options.claims_topic) if options.claims_topic else None


def commit(options: SinkOptions, reports: Sequence[TaskReport | None]) -> None:
    """Commit what the tasks have written, if it is all there and nothing else is.

    Args:
        options: of the write.
        reports: one for each task; None for one that has not reported.

    Raises:
        KafkaException: it is not committed, or nobody knows: the micro-batch is to be written again, and skipped if it
            was committed after all. Or it was skipped, and has rows that are not in the topics.
    """
    first = common_work(reports)
    if first is None:
        return
    if first.skipped:
        assert first.begun.last is not None, "what is skipped was committed"
        check_skipped(BatchMarker.read(first.begun.last.text), sum(each.passed_over for each in reports if each))
        return
    written = written_partitions(reports)
    if not written:
        return  # nothing is open that could be committed
    if first.batch is not None:
        rows = sum(sum(each.written.values()) for each in reports if each)
        first = replace(first, batch=first.batch._replace(rows=rows))
    mark(options, first, written)
    end(options, first.begun)


def mark(options: SinkOptions, work: TaskReport, written: set[tuple[str, int]]) -> None:
    """Check what is in the transaction, and put the marker of the micro-batch into it."""
    owner, begun = _owner(options), work.begun
    owner.check(begun.transaction, written)
    if begun.group is not None and work.batch is not None:
        number = 0 if begun.last is None else begun.last.number + 1
        topic, _ = min(written)
        owner.mark(begun.transaction, begun.group, CommittedMark(number, work.batch.text()), (topic, 0))


def commit_offsets(options: SinkOptions, begun: BegunBatch, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Put offsets of a consumer group, the next ones to read, into the transaction."""
    _owner(options).commit_offsets(begun.transaction, group, offsets)


def end(options: SinkOptions, begun: BegunBatch) -> None:
    """Commit the transaction: the one moment at which all of it comes to be."""
    _owner(options).end(begun.transaction)


def abort(options: SinkOptions, begun: BegunBatch | None) -> None:
    """Abort a transaction as soon as its fate is known, so that readers need not wait for it.

    It changes nothing about what is committed, so it never fails: the next `begin` aborts as well.
    """
    if begun is None:
        return
    try:
        _owner(options).abort(begun.transaction)
    except KafkaException as failed:
        _log.warning("the transaction of %s was not aborted, readers wait for its end: %s",
                     begun.transaction.transactional_id, failed.error.str())


def _owner(options: SinkOptions) -> TransactionOwner:
    return kept_owner({"transaction.timeout.ms": _TIMEOUT_MS, **options.client})
