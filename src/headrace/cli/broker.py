"""`headrace broker`: the embedded broker as a process of its own."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
from collections.abc import Coroutine
from typing import Any

from headrace.broker.broker import Broker
from headrace.broker.settings import BrokerSettings
from headrace.cli.shared.exits import DONE, FAILED, complain, text_of
from headrace.cli.shared.parsers import Parser

__all__ = ["main", "make_parser"]

_MAX_PORT = 65535
_WILDCARDS = ("0.0.0.0", "::", "*")


def main(argv: list[str]) -> int:
    """Run the broker until Ctrl-C or SIGTERM.

    Prints ``bootstrap.servers=HOST:PORT`` on one line when it is ready, and with a registry
    ``schema.registry.url=http://HOST:PORT`` on the next.

    Args:
        argv: arguments after the command's name.

    Returns:
        0 after a clean stop, 1 when it cannot listen or cannot use its data directory.
    """
    parser = make_parser()
    options = parser.parse_args(argv)
    if options.listen[0] in _WILDCARDS and options.advertise is None:
        parser.error(f"--listen {options.listen[0]} is every address: name the one clients use with --advertise HOST")
    last = options.listen[1] + options.nodes - 1
    if last > _MAX_PORT:
        parser.error(f"--nodes {options.nodes}: they listen on port {options.listen[1]} and those behind it, and there "
                     f"is no port {last}")
    logging.basicConfig(level=logging.DEBUG if options.verbose else logging.WARNING,
                        format="%(asctime)s %(levelname)s %(message)s")
    host, port = options.listen
    settings = BrokerSettings(auto_create_topics=not options.no_auto_create, default_partitions=options.partitions)
    try:
        broker = Broker(host=host, port=port, nodes=options.nodes, data_dir=options.data, settings=settings,
                        advertised_host=options.advertise, registry=options.registry)
        _run(_serve(broker))
    except OSError as error:
        complain(parser.prog, text_of(error))
        return FAILED
    return DONE


def _run(work: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner() as runner:
        runner.run(work)


async def _serve(broker: Broker) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, stopped.set)
        except NotImplementedError:
            pass  # Windows: Ctrl-C ends the runner
    await broker.start()
    print(f"bootstrap.servers={broker.bootstrap_servers}", flush=True)
    if broker.registry_url:
        print(f"schema.registry.url={broker.registry_url}", flush=True)
    try:
        await stopped.wait()
    finally:
        await broker.stop()


def make_parser() -> Parser:
    """The parser of `headrace broker`."""
    parser = Parser(
        "headrace broker", allow_abbrev=True, description="Run the embedded broker until Ctrl-C. There is no "
        "authentication: listen on loopback, which is the default, unless the network is trusted.",
        epilog="Exit status: 0 stopped by Ctrl-C or SIGTERM, which is how it ends, 1 it cannot listen or use its "
        "directory, 2 wrong usage.")
    parser.add_argument("--listen", type=_address, default=("127.0.0.1", 9092), metavar="HOST:PORT",
                        help="address of the first node; port 0 takes a free one (default: 127.0.0.1:9092)")
    parser.add_argument("--nodes", type=_positive, default=1, metavar="N",
                        help="node ids in this process, each with its own port (default: 1)")
    parser.add_argument("--data", metavar="DIR", help="keep data in this directory (default: in memory)")
    parser.add_argument("--partitions", type=_positive, default=1, metavar="N",
                        help="partitions of topics that do not say how many (default: 1)")
    parser.add_argument("--no-auto-create", action="store_true", help="do not make topics when they are first named")
    parser.add_argument("--advertise", metavar="HOST", help="host name that clients connect to (default: as listened)")
    parser.add_argument("--registry", type=_address, metavar="HOST:PORT",
                        help="serve a Schema Registry on this address; port 0 takes a free one (default: none)")
    parser.add_argument("--verbose", action="store_true", help="log more")
    return parser


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > _MAX_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return host.strip("[]"), int(port)


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)
