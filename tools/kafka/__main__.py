"""Clusters of real Apache Kafka from the shell: `python -m tools.kafka start --version 4.4.0 --nodes 3 --tls`.

`start` leaves the brokers running in the background, under a name; `stop`, `kill`, `restart`, `pause` and `resume` act
on them later; `run` keeps them in the foreground until Ctrl-C. What is known of a cluster lies in its
directory.
"""

from __future__ import annotations

import argparse
import pickle
import shutil
import signal
import sys
import time
from pathlib import Path

from tools.kafka.artifacts import VERSIONS, RegistryError, cache_directory, jars
from tools.kafka.cluster import NEWEST, KafkaCluster
from tools.kafka.java import PROGRAMS, MissingJavaError, java_tool
from tools.kafka.node import KafkaStartError


def main(argv: list[str]) -> int:
    """Run one command; 0 when it worked, 1 with one clear line when it did not."""
    arguments = _parser().parse_args(argv)
    try:
        return _run(arguments)
    except (MissingJavaError, RegistryError, KafkaStartError, ModuleNotFoundError, ValueError) as error:
        print(f"kafka: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.kafka", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, about in (("start", "start a cluster in the background"), ("run", "run a cluster until Ctrl-C")):
        command = commands.add_parser(name, help=about)
        command.add_argument("--version", choices=VERSIONS, default=NEWEST)
        command.add_argument("--nodes", type=int, default=1)
        command.add_argument("--heap", type=int, default=512, help="heap of each broker in MiB")
        command.add_argument("--tls", action="store_true", help="add a listener with TLS")
        command.add_argument("--sasl", action="store_true", help="add a listener with SASL (with TLS, too, if --tls)")
        command.add_argument("--property", action="append", default=[], metavar="NAME=VALUE")
        command.add_argument("--name", default="default")
    for name, about in (("kill", "kill one broker (SIGKILL)"), ("pause", "freeze one broker (SIGSTOP)"),
                        ("resume", "let a frozen broker go on"), ("restart", "start one broker again")):
        command = commands.add_parser(name, help=about)
        command.add_argument("node", type=int)
        command.add_argument("--name", default="default")
    for name, about in (("stop", "stop a cluster and remove its data"), ("status", "show a cluster")):
        command = commands.add_parser(name, help=about)
        command.add_argument("--name", default="default")
    command = commands.add_parser("fetch", help="fetch the jars of a version and nothing else")
    command.add_argument("versions", nargs="*", default=list(VERSIONS))
    command = commands.add_parser("tool", help=f"run one of Kafka's programs: {', '.join(PROGRAMS)}")
    command.add_argument("program", choices=PROGRAMS)
    command.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser


def _run(arguments: argparse.Namespace) -> int:
    if arguments.command == "fetch":
        for version in arguments.versions:
            print(f"Apache Kafka {version}: {len(jars(f'kafka-{version}'))} jars")
        return 0
    if arguments.command == "tool":
        done = java_tool(arguments.program, *arguments.arguments, stdin=b"" if sys.stdin.isatty() else sys.stdin.read())
        sys.stdout.buffer.write(done.stdout)
        sys.stderr.buffer.write(done.stderr)
        return done.returncode
    if arguments.command == "run":
        return _run_until_interrupted(arguments)
    home = cache_directory() / "clusters" / arguments.name
    if arguments.command == "start":
        return _start(arguments, home)
    return _act(arguments, _load(home), home)


def _new_cluster(arguments: argparse.Namespace, directory: Path | None) -> KafkaCluster:
    listeners = [name for name, wanted in (
        ("SSL", arguments.tls), ("SASL_PLAINTEXT", arguments.sasl), ("SASL_SSL", arguments.sasl and arguments.tls),
    ) if wanted]
    properties = dict(row.split("=", 1) for row in arguments.property)
    return KafkaCluster(arguments.version, arguments.nodes, listeners=listeners, properties=properties,
                        directory=directory, heap_mb=arguments.heap)


def _run_until_interrupted(arguments: argparse.Namespace) -> int:
    with _new_cluster(arguments, None) as cluster:
        _show(cluster)
        try:
            while True:
                signal.pause()
        except KeyboardInterrupt:
            print("stopping", file=sys.stderr)
    return 0


def _start(arguments: argparse.Namespace, home: Path) -> int:
    if home.exists():
        if any(node.pid for node in _load(home).nodes.values()):
            raise ValueError(f'the cluster "{arguments.name}" is running: stop it, or give another --name')
        shutil.rmtree(home)
    cluster = _new_cluster(arguments, home)
    cluster.start(outlive=True)
    (home / "cluster.pickle").write_bytes(pickle.dumps(cluster))
    _show(cluster)
    return 0


def _load(home: Path) -> KafkaCluster:
    try:
        cluster = pickle.loads((home / "cluster.pickle").read_bytes())
    except OSError:
        raise ValueError(f'there is no cluster "{home.name}": start one first') from None
    assert isinstance(cluster, KafkaCluster)
    return cluster


def _act(arguments: argparse.Namespace, cluster: KafkaCluster, home: Path) -> int:
    if arguments.command == "stop":
        cluster.close()
        shutil.rmtree(home, ignore_errors=True)
    elif arguments.command == "status":
        _show(cluster)
    elif arguments.node not in cluster.nodes:
        raise ValueError(f"there is no node {arguments.node}; there are {', '.join(map(str, cluster.nodes))}")
    elif arguments.command == "restart":
        cluster.restart(arguments.node, outlive=True)
    else:
        getattr(cluster, arguments.command)(arguments.node)
    return 0


def _show(cluster: KafkaCluster) -> None:
    for listener in cluster.listeners:
        name = "bootstrap.servers" if listener == "PLAINTEXT" else f"bootstrap.servers.{listener.lower()}"
        print(f"{name}={cluster.bootstrap(listener)}")
    if cluster.certificates is not None:
        print(f"ssl.ca.location={cluster.certificates.ca}")
    for node in cluster.nodes.values():
        print(f"node {node.node_id}: {f'process {node.pid}' if node.pid else 'not running'}, log {node.log}")
    print(f"Apache Kafka {cluster.version}, {time.strftime('%H:%M:%S')}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
