"""`headrace users`: SCRAM credentials. A password comes from a prompt, a file or the environment."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from headrace.cli.shared.exits import RefusedError
from headrace.cli.shared.output import Column
from headrace.cli.shared.parsers import Parser, number
from headrace.cli.shared.subcommands import CHANGED, CommandGroup, Session, Subcommand
from headrace.errors import ConfigError

__all__ = ["main", "make_parsers"]

_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_LISTED = (Column("user", "name"), Column("mechanism", "SCRAM-SHA-256 or SCRAM-SHA-512"),
           Column("iterations", "how often the password is hashed"))


def _list(session: Session) -> None:
    names: list[str] = list(dict.fromkeys(session.given.users))
    found: Any = session.admin.describe_user_scram_credentials(names or None)
    users = dict(session.settled(found)) if names else found.result()
    session.show([{"user": name, "mechanism": info.mechanism.name.replace("_", "-"), "iterations": info.iterations}
                  for name, user in sorted(users.items()) for info in user.scram_credential_infos])


def _set(session: Session) -> None:
    from headrace.admin import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

    given = session.given
    info = ScramCredentialInfo(ScramMechanism[given.mechanism.replace("-", "_")], given.iterations)
    wanted = UserScramCredentialUpsertion(given.user, info, _password(session).encode())
    for name, _ in session.settled(session.admin.alter_user_scram_credentials([wanted])):
        session.changed(f"set for {given.mechanism}", "user", name)


def _password(session: Session) -> str:
    """From where it was said to be, or typed twice."""
    given = session.given
    if given.password is not None:
        session.note("other users of this machine can see --password, and the shell remembers it: --password-file and "
                     "--password-env are better")
        password = given.password
    elif given.password_env is not None:
        if given.password_env not in os.environ:
            raise ConfigError(f"the environment has no {given.password_env}")
        password = os.environ[given.password_env]
    elif given.password_file is not None:
        password = _first_line(given.password_file)
    else:
        password = _typed(given.user)
    if not password:
        raise ConfigError("the password is empty")
    return str(password)


def _first_line(name: str) -> str:
    if name == "-":
        return sys.stdin.readline().rstrip("\r\n")
    try:
        return Path(name).read_text(encoding="utf-8").partition("\n")[0].rstrip("\r")
    except OSError as error:
        raise ConfigError(f"{name}: {error.strerror}") from None


def _typed(user: str) -> str:
    from getpass import getpass

    if not sys.stdin.isatty():
        raise RefusedError("there is no terminal to ask for the password on: give --password-file FILE, with - for "
                           "standard input, or --password-env NAME")
    password = getpass(f"Password of {user}: ")
    if getpass("Once more: ") != password:
        raise RefusedError("the two passwords differ: nothing was done")
    return password


def _delete(session: Session) -> None:
    from headrace.admin import ScramMechanism, UserScramCredentialDeletion

    given = session.given
    session.confirm(f"user {given.user} cannot log in with {given.mechanism} any more", [given.user])
    if given.dry_run:
        session.admin.describe_user_scram_credentials([given.user])[given.user].result()
        session.changed(f"deleted for {given.mechanism}", "user", given.user)
        return
    gone = UserScramCredentialDeletion(given.user, ScramMechanism[given.mechanism.replace("-", "_")])
    for name, _ in session.settled(session.admin.alter_user_scram_credentials([gone])):
        session.changed(f"deleted for {given.mechanism}", "user", name)


# Options


def _users(parser: Parser) -> None:
    parser.add_argument("users", nargs="*", metavar="USER", help="name (default: all that have credentials)")


def _user(parser: Parser) -> None:
    parser.add_argument("user", metavar="USER", help="name")
    parser.add_argument("-m", "--mechanism", choices=_MECHANISMS, default="SCRAM-SHA-512",
                        help="how the password is hashed (default: SCRAM-SHA-512)")


def _set_options(parser: Parser) -> None:
    _user(parser)
    parser.add_argument("--iterations", type=number(4096, 16384), default=8192, metavar="N",
                        help="how often (default: 8192)")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--password-file", metavar="FILE", help="the first line is the password; - for standard input "
                       "(default: it is asked for on the terminal)")
    where.add_argument("--password-env", metavar="NAME", help="the environment variable that has it")
    where.add_argument("--password", metavar="TEXT", help="the password itself, which other users of this machine can "
                       "see")


_GROUP = CommandGroup(
    "users", "SCRAM credentials of users",
    Subcommand("list", "who has which credentials", _list, _LISTED, _users),
    Subcommand("set", "make or replace a credential", _set, CHANGED, _set_options,
               examples="  headrace users set alice\n"
                        "  pass kafka/alice | headrace users set alice --password-file -\n"),
    Subcommand("delete", "delete a credential", _delete, CHANGED, _user, destructive=True, dry_run=True),
)
make_parsers, main = _GROUP.make_parsers, _GROUP.main
