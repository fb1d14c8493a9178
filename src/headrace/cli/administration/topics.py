"""`headrace topics`: list, describe, make, change, trim and delete topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.cli.administration.config_changes import change_of, changes
from headrace.cli.administration.partitions import broker_ids, chosen, expanded, partition_name, watermarks
from headrace.cli.shared.output import Column, amount, date, id_text
from headrace.cli.shared.parsers import Parser, moment, number, pattern, place
from headrace.cli.shared.subcommands import CHANGED, CommandGroup, Session, Subcommand
from headrace.errors import KafkaError, KafkaException

__all__ = ["main", "make_parsers"]

_LISTED = (
    Column("topic", "its name"), Column("partitions", "how many it has"),
    Column("replicas", "how often each is kept, as its first partition is"),
    Column("under_replicated", "partitions with replicas that are not in sync"),
    Column("leaderless", "partitions that nobody leads", wide=True),
    Column("internal", "whether it is Kafka's own", wide=True), Column("id", "its id", wide=True),
)
_DESCRIBED = (
    Column("topic", "its name"), Column("partition", "number"), Column("leader", "id of the broker that leads it"),
    Column("replicas", "ids of the brokers that have it, the preferred leader first"),
    Column("isr", "ids of those that are in sync"),
    Column("earliest", "the first offset that is there"), Column("latest", "the offset that the next record gets"),
    Column("records", "offsets between them: records, and what compaction and transactions left"),
)
_OFFSETS = (
    Column("topic", "its name"), Column("partition", "number"), Column("offset", "what was found; null for none"),
    Column("timestamp", "of the record there, milliseconds since 1970; null for earliest and latest", shown=date),
    Column("leader_epoch", "under which it was written", wide=True),
)
_TRIMMED = (
    Column("topic", "its name"), Column("partition", "number"), Column("before", "the first offset before"),
    Column("after", "the first offset now; with --dry-run what it would be"),
)


def _list(session: Session) -> None:
    from headrace.types.cluster import TopicCollection

    names = sorted(session.admin.list_topics(timeout=session.timeout_s).topics)
    wanted = [name for name in names if session.given.pattern is None or session.given.pattern.search(name)]
    rows = list[dict[str, Any]]()
    for name, topic in session.settled(session.admin.describe_topics(TopicCollection(wanted)) if wanted else {}):
        if not topic.is_internal or session.given.internal:
            parts = topic.partitions
            rows.append({
                "topic": name, "partitions": len(parts), "replicas": len(parts[0].replicas) if parts else 0,
                "under_replicated": sum(len(part.isr) < len(part.replicas) for part in parts),
                "leaderless": sum(part.leader is None for part in parts), "internal": topic.is_internal,
                "id": id_text(topic.topic_id),
            })
    session.show(rows)


def _describe(session: Session) -> None:
    from headrace.types.cluster import TopicCollection
    from headrace.types.records import TopicPartition

    rows = list[dict[str, Any]]()
    names = list(dict.fromkeys(session.given.topics))
    found = dict(session.settled(session.admin.describe_topics(TopicCollection(names))))
    first, last = watermarks(session.admin, [TopicPartition(name, part.id) for name, topic in found.items()
                                             for part in topic.partitions if part.leader is not None])
    for name, topic in found.items():
        for part in topic.partitions:
            tp = TopicPartition(name, part.id)
            begin, end = first.get(tp), last.get(tp)
            rows.append({
                "topic": name, "partition": part.id, "leader": part.leader.id if part.leader else None,
                "replicas": [node.id for node in part.replicas], "isr": [node.id for node in part.isr],
                "earliest": begin, "latest": end,
                "records": None if begin is None or end is None else end - begin,
            })
    if session.for_people:
        for name, topic in found.items():
            count = amount(len(topic.partitions), "partition")
            print(f"{name}: id {id_text(topic.topic_id)}, {count}{_settings(session, name)}")
    session.show(rows)


def _settings(session: Session, topic: str) -> str:
    """What is set of a topic, for people; nothing where that may not be read."""
    from headrace.admin import ConfigResource, ConfigSource

    asked = ConfigResource(ConfigResource.Type.TOPIC, topic)
    try:
        entries = session.admin.describe_configs([asked])[asked].result()
    except KafkaException:
        return ""
    own = [f"{entry.name}={entry.value}" for entry in entries.values()
           if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG]
    return "".join(f", {each}" for each in sorted(own))


def _create(session: Session) -> None:
    from headrace.admin import NewTopic

    given = session.given
    config = dict(change_of(text, plain=True)[0::2] for text in given.settings)
    if given.assign and (given.partitions, given.replicas) != (-1, -1):
        session.refuse("--assign says how many partitions and replicas there are: give no -p and -r with it")
    topics = [NewTopic(name, given.partitions, given.replicas, given.assign or None, config) for name in given.topics]
    _each(session, "created", given.topics, session.admin.create_topics(topics, validate_only=given.dry_run),
          KafkaError.TOPIC_ALREADY_EXISTS if given.if_not_exists else None)


def _delete(session: Session) -> None:
    from headrace.types.cluster import TopicCollection

    names = session.given.topics
    session.confirm(f"this deletes {_these(names)} with all records", names)
    passable = KafkaError.UNKNOWN_TOPIC_OR_PART if session.given.if_exists else None
    if session.given.dry_run:
        found = session.admin.describe_topics(TopicCollection(list(dict.fromkeys(names))))
        _each(session, "deleted", names, found, passable)
    else:
        _each(session, "deleted", names, session.admin.delete_topics(names), passable)


def _these(names: Sequence[str]) -> str:
    return f"topic {names[0]}" if len(names) == 1 else f"{len(names)} topics ({', '.join(names)})"


def _each(session: Session, done: str, names: Sequence[str], futures: Any, passable: int | None) -> None:
    for name in dict.fromkeys(names):
        try:
            futures[name].result()
        except KafkaException as failed:
            if failed.error.code() != passable:
                session.failed(failed, name)
        else:
            session.changed(done, "topic", name)


def _alter(session: Session) -> None:
    from headrace.admin import ConfigResource, NewPartitions

    given = session.given
    if given.partitions is None and not (given.settings or given.unset):
        session.refuse("nothing is to be changed: give --partitions, --set or --unset")
    if given.partitions is not None:
        wanted = [NewPartitions(name, given.partitions) for name in given.topics]
        futures = session.admin.create_partitions(wanted, validate_only=given.dry_run)
        _each(session, f"grown to {amount(given.partitions, 'partition')}", given.topics, futures, None)
    if given.settings or given.unset:
        asked = [ConfigResource(ConfigResource.Type.TOPIC, name,
                                incremental_configs=changes(given.settings, given.unset))
                 for name in dict.fromkeys(given.topics)]
        settled = session.admin.incremental_alter_configs(asked, validate_only=given.dry_run)
        _each(session, "changed", given.topics, {resource.name: future for resource, future in settled.items()}, None)


def _trim(session: Session) -> None:
    from headrace.admin import OffsetSpec
    from headrace.types.records import TopicPartition

    given = session.given
    partitions = expanded(session.admin, given.topics)
    first, last = watermarks(session.admin, partitions)
    if given.before_time is not None:
        at = session.admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.for_timestamp(given.before_time)))
        wanted = {tp: found.offset if found.offset >= 0 else last[tp] or 0 for tp, found in session.settled(at)}
    else:
        wanted = {tp: (last[tp] or 0) if given.all else min(given.before, last[tp] or 0) for tp in partitions}
    wanted = {tp: max(offset, first[tp] or 0) for tp, offset in wanted.items()}
    gone = sum(offset - (first[tp] or 0) for tp, offset in wanted.items())
    names = list(dict.fromkeys(tp.topic for tp in partitions))
    session.confirm(f"this deletes {amount(gone, 'record')} of {', '.join(names)}", names)
    after = dict(wanted)
    if not given.dry_run:
        futures = session.admin.delete_records([TopicPartition(tp.topic, tp.partition, offset)
                                                for tp, offset in wanted.items()])
        after = {tp: found.low_watermark for tp, found in session.settled(futures, partition_name)}
    session.show([{"topic": tp.topic, "partition": tp.partition, "before": first[tp], "after": after[tp]}
                  for tp in partitions if tp in after])


def _offsets(session: Session) -> None:
    from headrace.admin import IsolationLevel, OffsetSpec

    at = session.given.at
    spec = {"earliest": OffsetSpec.earliest, "latest": OffsetSpec.latest, "max-timestamp": OffsetSpec.max_timestamp}
    wanted = spec[at]() if at in spec else OffsetSpec.for_timestamp(at)
    level = IsolationLevel.READ_COMMITTED if session.given.committed else IsolationLevel.READ_UNCOMMITTED
    asked = dict.fromkeys(expanded(session.admin, session.given.topics), wanted)
    found = session.settled(session.admin.list_offsets(asked, isolation_level=level), partition_name)
    session.show([{
        "topic": tp.topic, "partition": tp.partition, "offset": each.offset if each.offset >= 0 else None,
        "timestamp": each.timestamp if each.timestamp >= 0 else None, "leader_epoch": each.leader_epoch,
    } for tp, each in found])


# Options


def _list_options(parser: Parser) -> None:
    parser.add_argument("pattern", nargs="?", type=pattern, metavar="REGEX",
                        help="only topics in whose name it is found")
    parser.add_argument("--internal", action="store_true", help="Kafka's own as well")


def _topics(parser: Parser) -> None:
    parser.add_argument("topics", nargs="+", metavar="TOPIC", help="name")


def _create_options(parser: Parser) -> None:
    _topics(parser)
    parser.add_argument("-p", "--partitions", type=number(1, 100_000), default=-1, metavar="N",
                        help="how many (default: as the brokers say)")
    parser.add_argument("-r", "--replicas", type=number(1, 10_000), default=-1, metavar="N",
                        help="how often each is kept (default: as the brokers say)")
    parser.add_argument("--assign", type=broker_ids, action="append", default=[], metavar="BROKER[,...]",
                        help="ids of the brokers of a partition, the preferred leader first; once for each partition")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="NAME=VALUE",
                        help="a property of the topic, such as retention.ms=60000; may be given again")
    parser.add_argument("--if-not-exists", action="store_true", help="one that exists is no failure")


def _delete_options(parser: Parser) -> None:
    _topics(parser)
    parser.add_argument("--if-exists", action="store_true", help="one that does not exist is no failure")


def _alter_options(parser: Parser) -> None:
    _topics(parser)
    parser.add_argument("-p", "--partitions", type=number(1, 100_000), metavar="N",
                        help="how many it shall have; records with keys go to others from then on")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="NAME=VALUE",
                        help="set a property; NAME+=VALUE and NAME-=VALUE add to a list and take from it")
    parser.add_argument("--unset", action="append", default=[], metavar="NAME", help="back to its default")


def _chosen(parser: Parser) -> None:
    parser.add_argument("topics", nargs="+", type=chosen, metavar="TOPIC[:PARTITIONS]",
                        help="a topic, or some partitions of it: orders:0,3,5-7")


def _trim_options(parser: Parser) -> None:
    _chosen(parser)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--before", type=number(), metavar="OFFSET", help="what lies before this offset")
    where.add_argument("--before-time", type=moment, metavar="TIME",
                       help="what lies before the first record that is not older: ISO 8601, or milliseconds since 1970")
    where.add_argument("--all", action="store_true", help="all there is now")


def _offsets_options(parser: Parser) -> None:
    _chosen(parser)
    parser.add_argument("--at", type=place, default="latest", metavar="WHERE", help="earliest, latest, max-timestamp, "
                        "or a time: ISO 8601, or milliseconds since 1970 (default: latest)")
    parser.add_argument("--committed", action="store_true", help="latest lies before transactions that are open")


_GROUP = CommandGroup(
    "topics", "list, describe, make, change, trim and delete topics",
    Subcommand("list", "list topics", _list, _LISTED, _list_options),
    Subcommand("describe", "partitions, replicas and offsets of topics", _describe, _DESCRIBED, _topics),
    Subcommand("create", "make topics", _create, CHANGED, _create_options, dry_run=True,
               examples="  headrace topics create orders -p 12 -r 3 --set retention.ms=604800000\n"),
    Subcommand("alter", "add partitions, or change properties", _alter, CHANGED, _alter_options, dry_run=True),
    Subcommand("offsets", "the first, last or latest offset, or that at a time", _offsets, _OFFSETS, _offsets_options),
    Subcommand("trim", "delete the oldest records", _trim, _TRIMMED, _trim_options, destructive=True, dry_run=True),
    Subcommand("delete", "delete topics with all records", _delete, CHANGED, _delete_options, destructive=True,
               dry_run=True),
)
make_parsers, main = _GROUP.make_parsers, _GROUP.main
