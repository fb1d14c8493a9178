"""`headrace transactions`: what is open, what hangs, and how it is ended."""

from __future__ import annotations

import time
from typing import Any

from headrace.cli.administration.partitions import chosen, exact, expanded, order, partition_name
from headrace.cli.shared.output import Column, date
from headrace.cli.shared.parsers import Parser, number, seconds
from headrace.cli.shared.subcommands import CHANGED, CommandGroup, Session, Subcommand

__all__ = ["main", "make_parsers"]

_STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "PrepareEpochFence")
_LISTED = (Column("transactional_id", "its id"), Column("state", f"one of {', '.join(_STATES)}"),
           Column("producer_id", "of its producer"))
_DESCRIBED = (
    Column("transactional_id", "its id"), Column("state", f"one of {', '.join(_STATES)}"),
    Column("producer_id", "of its producer"), Column("epoch", "of its producer"),
    Column("coordinator", "id of the broker that looks after it"),
    Column("timeout_ms", "after which the coordinator aborts it"),
    Column("started", "milliseconds since 1970; null when none is open", shown=date),
    Column("partitions", "what it has written to, as TOPIC:PARTITION"),
)
_PRODUCERS = (
    Column("topic", "its name"), Column("partition", "number"), Column("producer_id", "of the producer"),
    Column("epoch", "of the producer"),
    Column("started_at", "offset of the first record of its open transaction; null without one"),
    Column("last_written", "when it wrote last, milliseconds since 1970", shown=date),
    Column("last_sequence", "sequence number of the last record", wide=True),
    Column("coordinator_epoch", "of the last marker", wide=True),
)


def _list(session: Session) -> None:
    given = session.given
    found = session.admin.list_transactions(states=given.state, longer_than=given.longer_than).result()
    session.show([{"transactional_id": each.transactional_id, "state": each.state, "producer_id": each.producer_id}
                  for each in sorted(found, key=lambda each: each.transactional_id)])


def _describe(session: Session) -> None:
    found = session.settled(session.admin.describe_transactions(list(dict.fromkeys(session.given.ids))))
    session.show([{
        "transactional_id": name, "state": each.state, "producer_id": each.producer_id, "epoch": each.producer_epoch,
        "coordinator": each.coordinator_id, "timeout_ms": each.transaction_timeout_ms,
        "started": each.transaction_start_time_ms,
        "partitions": [partition_name(tp) for tp in order(each.partitions)],
    } for name, each in found])


def _producers(session: Session) -> None:
    session.show(_known(session))


def _hanging(session: Session) -> None:
    """Those that are open for longer than a coordinator lets any be."""
    oldest_ms = (time.time() - session.given.longer_than) * 1000
    session.show([row for row in _known(session) if row["started_at"] is not None
                  and (row["last_written"] is None or row["last_written"] < oldest_ms)])


def _known(session: Session) -> list[dict[str, Any]]:
    partitions = expanded(session.admin, session.given.topics)
    found = session.settled(session.admin.describe_producers(partitions), partition_name)
    return [{
        "topic": tp.topic, "partition": tp.partition, "producer_id": each.producer_id, "epoch": each.producer_epoch,
        "started_at": each.transaction_start_offset, "last_written": each.last_timestamp,
        "last_sequence": each.last_sequence, "coordinator_epoch": each.coordinator_epoch,
    } for tp, producers in found for each in sorted(producers, key=lambda each: each.producer_id)]


def _abort(session: Session) -> None:
    where, start = session.given.partition, session.given.start_offset
    name = partition_name(where)
    session.confirm(f"this aborts the transaction that began at offset {start} of {name}", [name])
    session.admin.abort_transaction(where, start).result()
    session.changed("aborted", "transaction", f"{name}@{start}")


def _fence(session: Session) -> None:
    names = list(dict.fromkeys(session.given.ids))
    session.confirm(f"this aborts what {', '.join(names)} has open, and shuts its producers out", names)
    for name, _ in session.settled(session.admin.fence_producers(names)):
        session.changed("fenced", "transactional id", name)


# Options


def _list_options(parser: Parser) -> None:
    parser.add_argument("--state", choices=_STATES, action="append", default=[],
                        help="only in this state; may be given again")
    parser.add_argument("--longer-than", type=seconds, metavar="TIME", help="only those open for so long: 30s, 15m, 2h")


def _ids(parser: Parser) -> None:
    parser.add_argument("ids", nargs="+", metavar="ID", help="transactional id")


def _topics(parser: Parser) -> None:
    parser.add_argument("topics", nargs="+", type=chosen, metavar="TOPIC[:PARTITIONS]",
                        help="a topic, or some partitions of it: orders:0,3,5-7")


def _hanging_options(parser: Parser) -> None:
    _topics(parser)
    parser.add_argument("--longer-than", type=seconds, default=900.0, metavar="TIME",
                        help="written to for the last time so long ago (default: 15m, which is as long as brokers let "
                        "transactions be open)")


def _abort_options(parser: Parser) -> None:
    parser.add_argument("partition", type=exact, metavar="TOPIC:PARTITION", help="where it hangs")
    parser.add_argument("--start-offset", type=number(), required=True, metavar="OFFSET",
                        help="where it began, as `headrace transactions hanging` says")


_GROUP = CommandGroup(
    "transactions", "transactions: what is open, and what hangs",
    Subcommand("list", "transactional ids and their states", _list, _LISTED, _list_options),
    Subcommand("describe", "what transactional ids are doing", _describe, _DESCRIBED, _ids),
    Subcommand("producers", "the producers that partitions know", _producers, _PRODUCERS, _topics),
    Subcommand("hanging", "transactions that partitions wait for and no coordinator ends", _hanging, _PRODUCERS,
               _hanging_options),
    Subcommand("abort", "end a transaction that hangs", _abort, CHANGED, _abort_options, destructive=True,
               examples="  headrace transactions abort orders:0 --start-offset 4711\n"),
    Subcommand("fence", "abort what transactional ids have open, and shut their producers out", _fence, CHANGED, _ids,
               destructive=True),
)
make_parsers, main = _GROUP.make_parsers, _GROUP.main
