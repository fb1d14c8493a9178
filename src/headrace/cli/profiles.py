"""`headrace profiles`: the clusters of the configuration file; what is secret is not shown."""

from __future__ import annotations

from headrace.cli.shared.output import Column
from headrace.cli.shared.parsers import Parser
from headrace.cli.shared.subcommands import CommandGroup, Session, Subcommand

__all__ = ["main", "make_parsers"]

_HIDDEN = "[hidden]"


def _list(session: Session) -> None:
    from headrace.cli.shared.profile_files import read_profiles

    file = read_profiles()
    if not file.profiles:
        session.note(f"{file.path} has no profiles" if file.path.exists() else f"there is no {file.path}")
    session.show([{
        "profile": name, "default": name == file.default,
        "bootstrap_servers": profile.properties.get("bootstrap.servers"),
        "registry": _without_credentials(profile.registry.get("url")), "file": str(file.path),
    } for name, profile in file.profiles.items()])


def _show(session: Session) -> None:
    from headrace.cli.shared.profile_files import read_profiles
    from headrace.cli.shared.properties import REGISTRY_PREFIX
    from headrace.config import is_secret
    from headrace.errors import ConfigError

    file = read_profiles()
    name = session.given.name or file.default
    if name is None:
        raise ConfigError(f"{file.path} names no default: say which profile")
    profile = file.named(name)
    found = {**profile.properties, **{f"{REGISTRY_PREFIX}{key}": value for key, value in profile.registry.items()}}
    session.show([{"property": key, "value": _HIDDEN if is_secret(key) else _without_credentials(value)}
                  for key, value in found.items()])


def _without_credentials(text: str | None) -> str | None:
    """A URL may have a user and a password in front."""
    if text is None or "://" not in text:
        return text
    scheme, _, rest = text.partition("://")
    before, at, after = rest.rpartition("@")
    return f"{scheme}://{_HIDDEN}@{after}" if at and before else text


def _one(parser: Parser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="which one (default: the default of the file)")


_GROUP = CommandGroup(
    "profiles", "list and show the clusters of the configuration file",
    Subcommand("list", "the profiles of ~/.config/headrace/config.toml, or of HEADRACE_CONFIG's file", _list, (
        Column("profile", "its name, for --profile"), Column("default", "whether it is meant where none is named"),
        Column("bootstrap_servers", "its brokers"), Column("registry", "URL of its Schema Registry"),
        Column("file", "where it stands", wide=True)), cluster=False),
    Subcommand("show", "the properties of a profile; secrets are hidden", _show, (
        Column("property", "its name"), Column("value", "its value, or [hidden]")), _one, cluster=False),
)
make_parsers, main = _GROUP.make_parsers, _GROUP.main
