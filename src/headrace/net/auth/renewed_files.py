"""What is made of files that may change while a client runs.

Knows no format. Read next: `net.auth.tls` and `net.auth.assertions`, which make something of them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from headrace.errors import ConfigError, DependencyError

__all__ = ["RenewedFiles"]

_T = TypeVar("_T")
_log = logging.getLogger("headrace")


class RenewedFiles(Generic[_T]):
    """A value that is made anew when it is asked for and files that it comes from have changed since.

    Certificates and keys that live for hours are renewed on disk while a client runs. The files are looked at, not
    watched: in containers they are mounts that tell of no change. Where they cannot be used, as between the two steps
    in which a certificate and its key are replaced, the value of before stays until the files change again.

    Args:
        make: makes the value from the files.
        paths: the files, or directories; empty names are left out.
        kept: said in the log, with the reason, when files that have changed cannot be used.

    Raises:
        ConfigError: it cannot be made the first time.
        DependencyError: a package that it needs is not installed.
    """

    def __init__(self, make: Callable[[], _T], paths: Iterable[str], kept: str) -> None:
        self._make, self._kept = make, kept
        self._paths = [path for path in paths if path]
        self._seen = self._stamps()  # first: what changes while it is read is read again
        self._value = make()

    def __call__(self) -> _T:
        """What is to be used now."""
        stamps = self._stamps()
        if stamps != self._seen:
            self._seen = stamps
            try:
                self._value = self._make()
            except (ConfigError, DependencyError) as error:
                _log.warning("%s: %s", self._kept, error)
        return self._value

    def _stamps(self) -> list[tuple[int, ...] | None]:
        return [_stamp(path) for path in self._paths]


def _stamp(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):  # ValueError: a NUL character, which whoever opens the file names
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev
