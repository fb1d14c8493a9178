"""Profiles: clusters by name in one TOML file, `~/.config/headrace/config.toml` unless HEADRACE_CONFIG says otherwise.

    default = "local"

    [local]
    bootstrap.servers = "localhost:9092"

    [prod]
    bootstrap.servers = "kafka-1:9093,kafka-2:9093"
    security.protocol = "sasl_ssl"
    sasl.mechanism = "SCRAM-SHA-512"
    sasl.username = "me"
    sasl.password = "..."
    registry.url = "https://registry:8081"
    registry.basic.auth.user.info = "me:..."

What stands in a table is a client's property under its own name; what begins with registry is one of the registry's
client. Read next: `cli.shared.properties`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from headrace.cli.shared.exits import meant
from headrace.errors import ConfigError

__all__ = ["FILE_VARIABLE", "NAME_VARIABLE", "Profile", "ProfileFile", "read_profiles"]

FILE_VARIABLE: Final = "HEADRACE_CONFIG"
NAME_VARIABLE: Final = "HEADRACE_PROFILE"
_DEFAULT: Final = "default"
_REGISTRY: Final = "registry."


class Profile(NamedTuple):
    """A cluster's properties, and those of its registry.

    Args:
        name: what it is called.
        properties: of clients, by name.
        registry: of the registry's client, by name.
    """

    name: str
    properties: dict[str, str]
    registry: dict[str, str]


class ProfileFile(NamedTuple):
    """The profiles of a file.

    Args:
        path: where it is; it need not exist.
        profiles: by name.
        default: the one that is meant when none is named, or None.
    """

    path: Path
    profiles: dict[str, Profile]
    default: str | None

    def named(self, name: str) -> Profile:
        """A profile.

        Raises:
            ConfigError: there is none of this name.
        """
        if name in self.profiles:
            return self.profiles[name]
        known = f"it has {', '.join(self.profiles)}" if self.profiles else (
            "it has none" if self.path.exists() else "there is no such file")
        raise ConfigError(f"no profile {name!r} in {self.path}: {known}{meant(name, self.profiles)}")


def read_profiles() -> ProfileFile:
    """The profiles of this user; none without a file.

    Raises:
        ConfigError: the file cannot be read, or is wrong. Values are not repeated: one may be a password.
    """
    import tomllib

    path = _path()
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if os.environ.get(FILE_VARIABLE):
            raise ConfigError(f"{path}, which {FILE_VARIABLE} names, does not exist") from None
        return ProfileFile(path, {}, None)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 at byte {error.start}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not TOML: {error}") from None
    default = content.pop(_DEFAULT, None)
    if default is not None and not isinstance(default, str):
        raise ConfigError(f"{path}: {_DEFAULT} must be the name of a profile")
    found = ProfileFile(path, {name: _profile(path, name, table) for name, table in content.items()}, default)
    if default is not None:
        found.named(default)
    return found


def _path() -> Path:
    if given := os.environ.get(FILE_VARIABLE):
        return Path(given)
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(base, "headrace", "config.toml")


def _profile(path: Path, name: str, table: Any) -> Profile:
    if not isinstance(table, Mapping):
        raise ConfigError(f"{path}: {name} is no profile: properties stand below a line [NAME]")
    properties, registry = dict[str, str](), dict[str, str]()
    for key, value in _flat(table):
        if isinstance(value, (list, Mapping)) or not isinstance(value, (str, int, float)):
            raise ConfigError(f"{path}, profile {name}: {key} must be a text, a number, true or false")
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if key.startswith(_REGISTRY):
            registry[key.removeprefix(_REGISTRY)] = text
        else:
            properties[key] = text
    return Profile(name, properties, registry)


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted names: TOML makes tables in tables of them."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value
