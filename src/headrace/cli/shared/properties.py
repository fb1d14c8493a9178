"""Properties of clients on a command line: `-b`, `-X NAME=VALUE`, `--config FILE`, the environment, and profiles.

What is stated more directly wins: the profile, then the environment, then the file, then -X, then options of their own.
Values are never repeated in a complaint: one may be a password. Read next: `cli.shared.profile_files`.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import Any, Final

from headrace.errors import ConfigError

__all__ = ["BOOTSTRAP_VARIABLE", "REGISTRY_PREFIX", "REGISTRY_VARIABLE", "add_property_options",
           "add_registry_option", "need_brokers", "properties_of", "read_properties", "registry_properties_of"]

BOOTSTRAP_VARIABLE: Final = "HEADRACE_BOOTSTRAP_SERVERS"
REGISTRY_VARIABLE: Final = "HEADRACE_SCHEMA_REGISTRY_URL"
_BOOTSTRAP: Final = "bootstrap.servers"
_OTHER_NAME: Final = "metadata.broker.list"
REGISTRY_PREFIX: Final = "schema.registry."
"""How the names of a registry's properties begin among those of clients."""
_REGISTRY_NUMBERS: Final = ("timeout", "cache.capacity", "cache.latest.ttl.sec", "max.retries", "retries.wait.ms",
                            "retries.max.wait.ms")


def add_property_options(parser: argparse.ArgumentParser, without: str) -> None:
    """Add -b, -X, --config and --profile.

    Args:
        parser: takes the options.
        without: what happens when no brokers are named; for the help.
    """
    group = parser.add_argument_group("brokers and properties")
    group.add_argument("-b", "--bootstrap-server", "--bootstrap-servers", "--bootstrap", dest="bootstrap",
                       metavar="HOST:PORT[,...]", help=f"brokers (default: -X or --config, then ${BOOTSTRAP_VARIABLE}, "
                       f"then the profile; {without})")
    group.add_argument("-X", "--property", dest="properties", type=_pair, action="append", default=[],
                       metavar="NAME=VALUE", help="a property of the client, under librdkafka's or Java's name; "
                       "may be given again. Passwords belong into a file: other users can see a command line")
    group.add_argument("-F", "--config", "--properties-file", dest="property_files", action="append", default=[],
                       metavar="FILE", help="properties, one NAME=VALUE a line, # begins a comment; may be given again")
    group.add_argument("--profile", metavar="NAME", help="a cluster of ~/.config/headrace/config.toml (default: "
                       "$HEADRACE_PROFILE; its default where no brokers are named)")


def add_registry_option(parser: argparse.ArgumentParser) -> None:
    """Add --registry; `add_property_options` is to be called as well."""
    group = parser.add_argument_group("Schema Registry")
    group.add_argument("--registry", metavar="URL", help="the registry (default: -X schema.registry.url=URL, then "
                       f"${REGISTRY_VARIABLE}, then the profile); its properties are -X schema.registry.NAME=VALUE")


def _pair(text: str) -> tuple[str, str]:
    name, equals, content = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError("expected NAME=VALUE; the text is not repeated here, it may be a secret")
    return name.strip(), content


def properties_of(given: argparse.Namespace, own: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """The properties of a client.

    Args:
        given: the parsed options.
        own: properties that other options set, None for those that were not given.

    Returns:
        Names and values; `bootstrap.servers` is missing when nobody named brokers. Those of the registry are left out.

    Raises:
        ConfigError: a file cannot be read or has a line that is no property, or there is no such profile.
    """
    found = dict[str, str]()
    if os.environ.get(BOOTSTRAP_VARIABLE):
        found[_BOOTSTRAP] = os.environ[BOOTSTRAP_VARIABLE]
    stated = _stated(given)
    stated.update({name: content for name, content in (own or {}).items() if content is not None})
    if given.bootstrap is not None:
        stated[_BOOTSTRAP] = given.bootstrap
    if _OTHER_NAME in stated:
        found.pop(_BOOTSTRAP, None)  # another name of the same
    found |= stated
    profiled = _profiled(given, named_elsewhere=bool({_BOOTSTRAP, _OTHER_NAME} & found.keys()))[0]
    if _OTHER_NAME in found:
        profiled.pop(_BOOTSTRAP, None)
    return {name: value for name, value in (profiled | found).items() if not name.startswith(REGISTRY_PREFIX)}


def registry_properties_of(given: argparse.Namespace) -> dict[str, Any]:
    """The properties of a registry's client, by the names that it knows; `url` is missing when nobody named one.

    Args:
        given: the parsed options.

    Raises:
        ConfigError: as of `properties_of`.
    """
    found = dict[str, str]()
    if os.environ.get(REGISTRY_VARIABLE):
        found["url"] = os.environ[REGISTRY_VARIABLE]
    found |= {name.removeprefix(REGISTRY_PREFIX): value for name, value in _stated(given).items()
              if name.startswith(REGISTRY_PREFIX)}
    if getattr(given, "registry", None) is not None:
        found["url"] = given.registry
    elsewhere = "url" in found or given.bootstrap is not None or bool(os.environ.get(BOOTSTRAP_VARIABLE)) or bool(
        {_BOOTSTRAP, _OTHER_NAME} & _stated(given).keys())
    stated = _profiled(given, named_elsewhere=elsewhere)[1] | found
    return {name: _number(name, text) if name in _REGISTRY_NUMBERS else text for name, text in stated.items()}


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"{REGISTRY_PREFIX}{name} must be a number, not {text!r}") from None


def need_brokers(properties: Mapping[str, str]) -> None:
    """Check that brokers are named.

    Raises:
        ConfigError: they are not.
    """
    if not {_BOOTSTRAP, _OTHER_NAME} & properties.keys():
        raise ConfigError(f"no brokers are named: give -b HOST:PORT or --profile NAME, set {BOOTSTRAP_VARIABLE}, or "
                          f"put {_BOOTSTRAP} into a file for --config; `headrace broker` runs one here")


def _stated(given: argparse.Namespace) -> dict[str, str]:
    stated = dict[str, str]()
    for name in given.property_files:
        stated.update(read_properties(name))
    stated.update(given.properties)
    return stated


def _profiled(given: argparse.Namespace, *, named_elsewhere: bool) -> tuple[dict[str, str], dict[str, str]]:
    """What the profile says of clients, and of the registry's.

    The default profile says nothing where another cluster is named: its password must not go there.
    """
    from headrace.cli.shared.profile_files import NAME_VARIABLE, read_profiles

    name = getattr(given, "profile", None) or os.environ.get(NAME_VARIABLE)
    if not name and named_elsewhere:
        return {}, {}
    file = read_profiles()
    name = name or file.default
    if not name:
        return {}, {}
    profile = file.named(name)
    return dict(profile.properties), dict(profile.registry)


def read_properties(path: str) -> dict[str, str]:
    """The properties of a file.

    Raises:
        ConfigError: it cannot be read, or a line is no NAME=VALUE. The line itself is not shown.
    """
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 at byte {error.start}") from None
    found = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text and text[0] not in "#!":
            name, equals, content = text.partition("=")
            if not equals or not name.strip():
                raise ConfigError(f"{path}, line {number}: expected NAME=VALUE or a comment that begins with #")
            found[name.strip()] = content.strip()
    return found
