"""Properties of clients on a command line: `-b`, `-X NAME=VALUE`, `-F FILE`, and the environment.

What is stated more directly wins: the environment, then the file, then -X, then options of their own. Values are never
repeated in a complaint: one may be a password.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path

from headrace.errors import ConfigError

__all__ = ["BOOTSTRAP_VARIABLE", "add_property_options", "properties_of", "read_properties"]

BOOTSTRAP_VARIABLE = "HEADRACE_BOOTSTRAP_SERVERS"
_BOOTSTRAP = "bootstrap.servers"


def add_property_options(parser: argparse.ArgumentParser, without: str) -> None:
    """Add -b, -X and -F.

    Args:
        parser: takes the options.
        without: what happens when no brokers are named; for the help.
    """
    group = parser.add_argument_group("brokers and properties")
    group.add_argument("-b", "--bootstrap-servers", "--bootstrap", dest="bootstrap", metavar="HOST:PORT[,...]",
                       help=f"brokers (default: -X or -F, then ${BOOTSTRAP_VARIABLE}; {without})")
    group.add_argument("-X", "--property", dest="properties", type=_pair, action="append", default=[],
                       metavar="NAME=VALUE", help="a property of the client, under librdkafka's or Java's name; "
                       "may be given again. Passwords belong into a file: other users can see a command line")
    group.add_argument("-F", "--properties-file", dest="property_files", action="append", default=[], metavar="FILE",
                       help="properties, one NAME=VALUE a line, # begins a comment; may be given again")


def _pair(text: str) -> tuple[str, str]:
    name, equals, content = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError("expected NAME=VALUE; the text is not repeated here, it may be a secret")
    return name.strip(), content


def properties_of(given: argparse.Namespace, own: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """The properties of a command line.

    Args:
        given: the parsed options.
        own: properties that other options set, None for those that were not given.

    Returns:
        Names and values; `bootstrap.servers` is missing when nobody named brokers.

    Raises:
        ConfigError: a file cannot be read or has a line that is no property.
    """
    found: dict[str, str] = {}
    if os.environ.get(BOOTSTRAP_VARIABLE):
        found[_BOOTSTRAP] = os.environ[BOOTSTRAP_VARIABLE]
    stated: dict[str, str] = {}
    for name in given.property_files:
        stated.update(read_properties(Path(name)))
    stated.update(given.properties)
    stated.update({name: content for name, content in (own or {}).items() if content is not None})
    if given.bootstrap is not None:
        stated[_BOOTSTRAP] = given.bootstrap
    if "metadata.broker.list" in stated:
        found.pop(_BOOTSTRAP, None)  # another name of the same
    return found | stated


def read_properties(path: Path) -> dict[str, str]:
    """The properties of a file.

    Raises:
        ConfigError: it cannot be read, or a line is no NAME=VALUE. The line itself is not shown.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
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
