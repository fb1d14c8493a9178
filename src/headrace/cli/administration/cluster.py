"""`headrace cluster`: brokers, directories, controllers, features, leaders and moves."""

from __future__ import annotations

import argparse
from typing import Any

from headrace.cli.administration.partitions import broker_ids, chosen, exact, expanded, order, partition_name
from headrace.cli.shared.exits import NOT_FOUND, RefusedError
from headrace.cli.shared.output import Column, date, human_size, id_text
from headrace.cli.shared.parsers import Parser
from headrace.cli.shared.subcommands import CHANGED, CommandGroup, Session, Subcommand
from headrace.errors import KafkaError
from headrace.types.records import TopicPartition

__all__ = ["main", "make_parsers"]

_BROKERS = (
    Column("broker", "its id"), Column("host", "where clients connect to"), Column("port", "the same"),
    Column("rack", "where it stands; null when it does not say"),
    Column("controller", "whether clients shall take it for the controller"), Column("cluster", "its id", wide=True),
)
_DIRECTORIES = (
    Column("broker", "its id"), Column("path", "of the directory"), Column("replicas", "how many lie there"),
    Column("size", "bytes of them", shown=human_size),
    Column("usable", "bytes that are left on its volume; null when the broker does not say", shown=human_size),
    Column("total", "bytes of its volume; null when the broker does not say", shown=human_size),
    Column("cordoned", "whether nothing new is put there", wide=True),
)
_REPLICAS = (
    Column("topic", "its name"), Column("partition", "number"), Column("broker", "which has it"),
    Column("size", "bytes", shown=human_size), Column("behind", "records that it is behind"),
    Column("moving", "whether it moves to another directory", wide=True), Column("path", "of the directory", wide=True),
)
_QUORUM = (
    Column("node", "its id"), Column("role", "leader, voter, or observer (a broker)"),
    Column("log_end", "how far its copy of the metadata is"), Column("behind", "how far it is behind the leader"),
    Column("caught_up", "when it was last not behind, milliseconds since 1970", shown=date),
    Column("fetched", "when it last asked, milliseconds since 1970", wide=True, shown=date),
    Column("directory", "id of its directory", wide=True),
    Column("epoch", "since which the leader leads", wide=True),
)
_FEATURES = (
    Column("feature", "its name"), Column("level", "in use; null when it is not used"),
    Column("lowest", "that a broker supports"), Column("highest", "that a broker supports"),
)
_MOVES = (
    Column("topic", "its name"), Column("partition", "number"), Column("replicas", "brokers that have it, or will"),
    Column("adding", "brokers to which it goes"), Column("removing", "brokers that it leaves"),
)


def _brokers(session: Session) -> None:
    found = session.admin.describe_cluster().result()
    leader = found.controller.id if found.controller else None
    if session.for_people:
        print(f"cluster {found.cluster_id}")
    session.show([{"broker": node.id, "host": node.host, "port": node.port, "rack": node.rack,
                   "controller": node.id == leader, "cluster": found.cluster_id}
                  for node in sorted(found.nodes, key=lambda node: node.id)])


def _directories(session: Session) -> list[tuple[int, str, Any]]:
    """Broker, path and what lies there; what cannot be read is reported."""
    brokers: list[int] = session.given.broker
    brokers = brokers or sorted(node.id for node in session.admin.describe_cluster().result().nodes)
    found = list[tuple[int, str, Any]]()
    for broker, directories in session.settled(session.admin.describe_log_dirs(brokers), lambda node: f"broker {node}"):
        for path, directory in directories.items():
            if isinstance(directory, KafkaError):
                session.failed(directory, f"broker {broker}, {path}")
            else:
                found.append((broker, path, directory))
    return found


def _log_dirs(session: Session) -> None:
    session.show([{
        "broker": broker, "path": path, "replicas": len(directory.replicas),
        "size": sum(replica.size for replica in directory.replicas.values()),
        "usable": directory.usable_bytes if directory.usable_bytes >= 0 else None,
        "total": directory.total_bytes if directory.total_bytes >= 0 else None, "cordoned": directory.is_cordoned,
    } for broker, path, directory in _directories(session)])


def _replicas(session: Session) -> None:
    wanted = set(expanded(session.admin, session.given.topics)) if session.given.topics else None
    rows = [{"topic": tp.topic, "partition": tp.partition, "broker": broker, "size": replica.size,
             "behind": replica.offset_lag, "moving": replica.is_future, "path": path}
            for broker, path, directory in _directories(session) for tp, replica in directory.replicas.items()
            if wanted is None or tp in wanted]
    session.show(sorted(rows, key=lambda row: (row["topic"], row["partition"], row["broker"])))


def _quorum(session: Session) -> None:
    found = session.admin.describe_metadata_quorum().result()
    end = next((each.log_end_offset for each in found.voters if each.replica_id == found.leader_id), None)
    session.show([{
        "node": each.replica_id, "role": "leader" if each.replica_id == found.leader_id else role,
        "log_end": each.log_end_offset, "behind": None if end is None else end - each.log_end_offset,
        "caught_up": _known(each.last_caught_up_timestamp), "fetched": _known(each.last_fetch_timestamp),
        "directory": id_text(each.directory_id) if each.directory_id else None, "epoch": found.leader_epoch,
    } for role, replicas in (("voter", found.voters), ("observer", found.observers))
        for each in sorted(replicas, key=lambda each: each.replica_id)])


def _known(time_ms: int) -> int | None:
    return time_ms if time_ms >= 0 else None


def _features(session: Session) -> None:
    found = session.admin.describe_features().result()
    session.show([{"feature": name, "level": found.finalized.get(name),
                   "lowest": found.supported.get(name, (None, None))[0],
                   "highest": found.supported.get(name, (None, None))[1]}
                  for name in sorted({*found.finalized, *found.supported})])


def _elect(session: Session) -> None:
    from headrace.types.cluster import ElectionType

    given = session.given
    partitions = expanded(session.admin, given.topics) if given.topics else None
    if given.unclean:
        session.confirm("a replica that is behind may become the leader, and what it lacks is lost",
                        [partition_name(tp) for tp in partitions or ()] or ["all"])
    kind = ElectionType.UNCLEAN if given.unclean else ElectionType.PREFERRED
    found = session.admin.elect_leaders(kind, partitions).result()
    for tp in order(found):
        error = found[tp]
        if error is None:
            session.changed("elected", "leader of", partition_name(tp))
        elif error.error.code() == KafkaError.ELECTION_NOT_NEEDED:
            session.note(f"{partition_name(tp)} has that leader already")
        else:
            session.failed(error, partition_name(tp))


def _moves(session: Session) -> None:
    found = session.admin.list_partition_reassignments().result()
    session.show([{"topic": tp.topic, "partition": tp.partition, "replicas": found[tp].replicas,
                   "adding": found[tp].adding_replicas, "removing": found[tp].removing_replicas}
                  for tp in order(found)])


def _reassign(session: Session) -> None:
    wanted: dict[TopicPartition, list[int] | None] = dict(session.given.moves)
    known = {node.id for node in session.admin.describe_cluster().result().nodes}
    for brokers in wanted.values():
        if lost := set(brokers or ()) - known:
            raise RefusedError(f"there is no broker {min(lost)}: there are {', '.join(map(str, sorted(known)))}",
                               NOT_FOUND)
    names = [partition_name(tp) for tp in wanted]
    session.confirm(f"this moves {len(wanted)} partition{'' if len(wanted) == 1 else 's'} to other brokers", names)
    done = list(wanted) if session.given.dry_run else [
        tp for tp, _ in session.settled(session.admin.alter_partition_reassignments(wanted), partition_name)]
    for tp in done:
        session.changed(f"moved to {','.join(map(str, wanted[tp] or ()))}", "partition", partition_name(tp))


def _cancel(session: Session) -> None:
    stopped: dict[TopicPartition, list[int] | None] = dict.fromkeys(session.given.partitions)
    for tp, _ in session.settled(session.admin.alter_partition_reassignments(stopped), partition_name):
        session.changed("stopped", "move of", partition_name(tp))


# Options


def _broker_option(parser: Parser) -> None:
    parser.add_argument("--broker", type=int, action="append", default=[], metavar="ID",
                        help="only this one; may be given again")


def _replicas_options(parser: Parser) -> None:
    _some(parser, "all")
    _broker_option(parser)


def _some(parser: Parser, otherwise: str) -> None:
    parser.add_argument("topics", nargs="*", type=chosen, metavar="TOPIC[:PARTITIONS]",
                        help=f"a topic, or some partitions of it: orders:0,3,5-7 (default: {otherwise})")


def _elect_options(parser: Parser) -> None:
    _some(parser, "all that need a leader")
    parser.add_argument("--unclean", action="store_true", help="a replica that is behind may be elected where no other "
                        "is left: records are lost")


def _move(text: str) -> tuple[TopicPartition, list[int]]:
    where, _, brokers = text.partition("=")
    try:
        return exact(where), broker_ids(brokers)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"{text!r} is not TOPIC:PARTITION=BROKER,BROKER") from None


def _reassign_options(parser: Parser) -> None:
    parser.add_argument("moves", nargs="+", type=_move, metavar="TOPIC:PARTITION=BROKER[,...]",
                        help="where it shall be, the preferred leader first")


def _cancel_options(parser: Parser) -> None:
    parser.add_argument("partitions", nargs="+", type=exact, metavar="TOPIC:PARTITION", help="what moves")


_GROUP = CommandGroup(
    "cluster", "brokers, directories, controllers, features, leaders, moves",
    Subcommand("brokers", "the brokers", _brokers, _BROKERS),
    Subcommand("log-dirs", "directories of brokers, and how full they are", _log_dirs, _DIRECTORIES, _broker_option),
    Subcommand("replicas", "where partitions lie, and how large they are", _replicas, _REPLICAS, _replicas_options),
    Subcommand("quorum", "the controllers, and how far each is", _quorum, _QUORUM),
    Subcommand("features", "features, and the levels that are in use", _features, _FEATURES),
    Subcommand("elect", "let preferred replicas lead again", _elect, CHANGED, _elect_options, destructive=True),
    Subcommand("reassign", "move partitions to other brokers; the call ends when it begins", _reassign, CHANGED,
               _reassign_options, destructive=True, dry_run=True,
               examples="  headrace cluster reassign orders:0=1,2,3 orders:1=2,3,1\n"),
    Subcommand("reassignments", "what moves now", _moves, _MOVES),
    Subcommand("cancel", "stop moves", _cancel, CHANGED, _cancel_options),
)
make_parsers, main = _GROUP.make_parsers, _GROUP.main
