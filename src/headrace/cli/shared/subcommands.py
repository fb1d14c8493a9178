"""Commands that have commands: `headrace topics list`. Each is a small function on a `Session`.

A module makes a `CommandGroup` of its `Subcommand`s; their options, columns and texts are also the reference page and
the completion. Read next: `cli.profiles`, the smallest of them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

from headrace.cli.shared.confirmation import add_dry_run, add_yes, confirm
from headrace.cli.shared.exits import DONE, USAGE, RefusedError, complain, guarded, meant, status_of, text_of
from headrace.cli.shared.output import FORMS, Column, print_rows
from headrace.cli.shared.parsers import Parser, seconds
from headrace.cli.shared.properties import (
    REGISTRY_VARIABLE,
    add_property_options,
    add_registry_option,
    need_brokers,
    properties_of,
    registry_properties_of,
)
from headrace.errors import ConfigError, KafkaException

if TYPE_CHECKING:
    from headrace.admin import AdminClient
    from headrace.schema_registry import SchemaRegistryClient

__all__ = ["CHANGED", "Subcommand", "CommandGroup", "Session", "SingleCommand"]

_K = TypeVar("_K")
_V = TypeVar("_V")
_TIMEOUT_S = 10.0

CHANGED = (
    Column("name", "what it was done to"),
    Column("kind", "what that is, for example topic"),
    Column("done", "what was done, for example created; with --dry-run what would be done"),
)
"""What commands print that change something."""


class Subcommand(NamedTuple):
    """Something that a command does.

    Args:
        name: what is typed.
        about: one line.
        run: does it.
        columns: what it prints; None prints something else than rows.
        options: adds options of its own.
        cluster: it talks to a cluster.
        registry: it talks to a Schema Registry.
        destructive: it has --yes, and is to ask with `Session.confirm`.
        dry_run: it has --dry-run.
        examples: lines for the end of its help.
    """

    name: str
    about: str
    run: Callable[[Session], None]
    columns: Sequence[Column] | None = CHANGED
    options: Callable[[Parser], None] | None = None
    cluster: bool = True
    registry: bool = False
    destructive: bool = False
    dry_run: bool = False
    examples: str = ""

    def make_parser(self, command: str) -> Parser:
        """The parser of its options.

        Args:
            command: the words in front of its name.
        """
        parser = Parser(f"{command} {self.name}", description=f"{self.about[:1].upper()}{self.about[1:]}.",
                        epilog=f"examples:\n{self.examples}" if self.examples else None,
                        formatter_class=argparse.RawDescriptionHelpFormatter)
        if self.options is not None:
            self.options(parser)
        if self.destructive:
            add_yes(parser)
        if self.dry_run:
            add_dry_run(parser)
        if self.columns is not None:
            parser.columns = self.columns
            parser.add_argument("-o", "--output", choices=FORMS, default="table", help="what to print: a table, one "
                                "with all columns, JSON, tab-separated values, or names only (default: table)")
        if self.cluster or self.registry:
            add_property_options(parser, "some must be named" if self.cluster else "none are needed")
            parser.add_argument("--timeout", type=seconds, default=_TIMEOUT_S, metavar="TIME",
                                help=f"for each call to the cluster, such as 500ms or 1m (default: {_TIMEOUT_S:g}s)")
        if self.registry:
            add_registry_option(parser)
        return parser


class CommandGroup:
    """A command that has commands.

    Args:
        name: what is typed.
        about: one line.
        commands: its commands.
    """

    def __init__(self, name: str, about: str, *commands: Subcommand) -> None:
        self.name = name
        self.about = about
        self.commands = {command.name: command for command in commands}
        self._program = f"headrace {name}"

    def make_parsers(self) -> dict[str, Parser]:
        """The parsers of its commands, by name."""
        return {name: command.make_parser(self._program) for name, command in self.commands.items()}

    def main(self, argv: list[str]) -> int:
        """Run one of the commands.

        Args:
            argv: arguments after the command's name.

        Returns:
            The exit status, see `cli.shared.exits`.
        """
        if not argv or argv[0] in ("-h", "--help", "help"):
            print(self._usage(), file=sys.stdout if argv else sys.stderr)
            return DONE if argv else USAGE
        command = self.commands.get(argv[0])
        if command is None:
            complain(self._program, f"unknown command {argv[0]!r}{meant(argv[0], self.commands)} (see "
                                    f"`{self._program} --help`)")
            return USAGE
        given = command.make_parser(self._program).parse_args(argv[1:])
        program = f"{self._program} {command.name}"
        return guarded(program, lambda: Session(program, command, given).run())

    def _usage(self) -> str:
        width = max(map(len, self.commands))
        rows = "\n".join(f"  {name:<{width}}  {command.about}" for name, command in self.commands.items())
        return (f"usage: {self._program} COMMAND [options]\n\n{self.about[:1].upper()}{self.about[1:]}.\n\n{rows}\n\n"
                f"`{self._program} COMMAND --help` shows more.")


class SingleCommand:
    """A command without commands.

    Args:
        command: what it does.
    """

    def __init__(self, command: Subcommand) -> None:
        self._command = command

    def make_parser(self) -> Parser:
        """The parser of its options."""
        return self._command.make_parser("headrace")

    def main(self, argv: list[str]) -> int:
        """Run it.

        Args:
            argv: arguments after the command's name.

        Returns:
            The exit status, see `cli.shared.exits`.
        """
        given = self.make_parser().parse_args(argv)
        program = f"headrace {self._command.name}"
        return guarded(program, lambda: Session(program, self._command, given).run())


class Session:
    """One run of a subcommand: its options, its clients, what it prints and how it ends.

    Args:
        program: what complaints begin with.
        command: the subcommand.
        given: the parsed options.

    Attributes:
        given: the parsed options.
        program: what complaints begin with.
        timeout_s: for each call to the cluster.
    """

    def __init__(self, program: str, command: Subcommand, given: Any) -> None:
        self.given = given
        self.timeout_s: float = getattr(given, "timeout", _TIMEOUT_S)
        self.program = program
        self._command = command
        self._status = DONE
        self._changes: list[dict[str, Any]] = []
        self._printed = False
        self._stack = ExitStack()
        self._admin: AdminClient | None = None
        self._registry: SchemaRegistryClient | None = None

    def run(self) -> int:
        """Do it. Returns the exit status."""
        with self._stack:
            try:
                self._command.run(self)
            finally:
                self._print_changes()
        return self._status

    # Clients

    @property
    def properties(self) -> dict[str, str]:
        """Of clients of the cluster.

        Raises:
            ConfigError: no brokers are named, or a file is wrong.
        """
        found = properties_of(self.given)
        need_brokers(found)
        return found

    @property
    def admin(self) -> AdminClient:
        """The admin client; it is closed in the end. What it has to say of connections is in its errors."""
        if self._admin is None:
            from headrace.admin import AdminClient

            limit = {"socket.timeout.ms": str(max(int(self.timeout_s * 1000), 10))}
            self._admin = self._stack.enter_context(
                AdminClient({**limit, **self.properties, "error_cb": lambda error: None}))
        return self._admin

    @property
    def registry(self) -> SchemaRegistryClient:
        """The registry's client; it is closed in the end.

        Raises:
            ConfigError: no registry is named, or a file is wrong.
        """
        if self._registry is None:
            from headrace.schema_registry import SchemaRegistryClient

            found = registry_properties_of(self.given)
            if "url" not in found:
                raise ConfigError("no registry is named: give --registry URL or --profile NAME, or set "
                                  f"{REGISTRY_VARIABLE}")
            self._registry = self._stack.enter_context(
                SchemaRegistryClient.new_client({"timeout": self.timeout_s, "max.retries": 0, **found}))
        return self._registry

    # What is printed

    def show(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Print rows of the command's columns."""
        assert self._command.columns is not None
        self._printed = True
        if self.for_people and not rows and self._status:
            return  # what went wrong is said already
        print_rows(self.given.output, self._command.columns, rows)

    def note(self, text: str) -> None:
        """One line on standard error; the exit status stays."""
        complain(self.program, text)

    @property
    def for_people(self) -> bool:
        """The output is a table."""
        return self.given.output in ("table", "wide")

    def changed(self, done: str, kind: str, name: str) -> None:
        """Something was changed, or with --dry-run would be: `changed("created", "topic", "orders")`."""
        if getattr(self.given, "dry_run", False):
            done = f"would be {done}"
        self._changes.append({"name": name, "kind": kind, "done": done})
        if self.for_people:
            self._print_changes()

    def _print_changes(self) -> None:
        """People see each change when it is done; programs get one document in the end."""
        if self._command.columns is not CHANGED or self._printed:
            return
        if self.for_people:
            for each in self._changes:
                print(f"{each['kind']} {each['name']} {each['done']}", flush=True)
        else:
            print_rows(self.given.output, CHANGED, self._changes)
        self._changes.clear()

    def failed(self, error: BaseException, what: str = "") -> None:
        """Something failed, and the rest goes on: one line on standard error. The first failure says the status."""
        text = text_of(error)
        topic, _, partition = what.rpartition(":")
        named = not what or what in text or f"{topic}[{partition}]" in text
        complain(self.program, text if named else f"{what}: {text}")
        self._status = self._status or status_of(error)

    # What is asked

    def confirm(self, what: str, names: Sequence[str]) -> None:
        """Return when somebody wants it, or --dry-run was given; see `cli.shared.confirmation.confirm`."""
        confirm(what, names, yes=self.given.yes or getattr(self.given, "dry_run", False))

    def settled(
        self, futures: Mapping[_K, Future[_V]], name: Callable[[_K], str] = str
    ) -> Iterator[tuple[_K, _V]]:
        """The results of a call about several things, in order; those that failed are reported.

        Args:
            futures: by thing.
            name: what a thing is called.
        """
        for key, future in futures.items():
            try:
                result = future.result()
            except KafkaException as error:
                self.failed(error, name(key))
            else:
                yield key, result

    def refuse(self, text: str) -> NoReturn:
        """End with status 2 and one line.

        Raises:
            RefusedError: always.
        """
        raise RefusedError(text)
