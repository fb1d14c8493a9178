"""The table of commands: name, module, and the line that `headrace --help` shows.

A command is a module with `main(argv) -> int`, which gives the exit status, and either `make_parser()` or, when it has
commands of its own, `make_parsers()`, which gives parsers by name: completion and the reference page are made of them.
Nothing of a command is imported before it is known which one is meant.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Final, NamedTuple

__all__ = ["COMMANDS", "SECTIONS", "Command"]


class Command(NamedTuple):
    """A command.

    Args:
        section: under which head `headrace --help` shows it.
        about: one line.
        place: its module, below `headrace.cli`.
    """

    section: str
    about: str
    place: str

    def load(self) -> ModuleType:
        """Import its module."""
        return import_module(f"headrace.cli.{self.place}")


_RECORDS, _CLUSTER, _SPARK, _HERE = "records", "a cluster", "pipelines with Spark", "without a cluster"
SECTIONS: Final = (_RECORDS, _CLUSTER, _SPARK, _HERE)
_ADMIN: Final = "administration"
COMMANDS: Final = {
    "produce": Command(_RECORDS, "send lines, JSON lines, CSV or Parquet to a topic", "produce"),
    "consume": Command(_RECORDS, "write the records of topics as lines, JSON, CSV, Parquet or Arrow", "consume"),
    "copy": Command(_RECORDS, "copy records from topic to topic, in a cluster or to another one", "copy"),
    "perf": Command(_RECORDS, "measure clients: records per second, CPU, latency", "perf"),
    "topics": Command(_CLUSTER, "list, describe, make, change, trim and delete topics", f"{_ADMIN}.topics"),
    "groups": Command(_CLUSTER, "consumer groups: members, lag, offsets, resets", f"{_ADMIN}.group_commands.groups"),
    "share-groups": Command(_CLUSTER, "share groups: members, offsets, resets",
                            f"{_ADMIN}.group_commands.share_groups"),
    "configs": Command(_CLUSTER, "properties of topics, brokers and groups", f"{_ADMIN}.configs"),
    "acls": Command(_CLUSTER, "access rules: who may do what", f"{_ADMIN}.acls"),
    "users": Command(_CLUSTER, "SCRAM credentials of users", f"{_ADMIN}.users"),
    "quotas": Command(_CLUSTER, "how much users and clients may send and fetch", f"{_ADMIN}.quotas"),
    "transactions": Command(_CLUSTER, "transactions: what is open, and what hangs", f"{_ADMIN}.transactions"),
    "cluster": Command(_CLUSTER, "brokers, directories, controllers, features, leaders, moves", f"{_ADMIN}.cluster"),
    "registry": Command(_CLUSTER, "schemas of a Schema Registry", f"{_ADMIN}.registry"),
    "api-versions": Command(_CLUSTER, "which requests a broker understands, in which versions",
                            f"{_ADMIN}.broker_versions"),
    "run": Command(_SPARK, "run a pipeline file with Spark", "run"),
    "demo": Command(_SPARK, "run the flights example from end to end and check its totals", "demo"),
    "broker": Command(_HERE, "run the embedded broker: a Kafka for one machine, in one process", "broker"),
    "decode": Command(_HERE, "show hex, log segments and network captures as requests, replies and batches", "decode"),
    "errors": Command(_HERE, "what an error code means", f"{_ADMIN}.error_names"),
    "profiles": Command(_HERE, "list and show the clusters of the configuration file", "profiles"),
    "completion": Command(_HERE, "print what makes bash, zsh or fish complete commands and options", "completion"),
}
"""Every command, by the name that is typed."""
