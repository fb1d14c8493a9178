"""What is to be read: a file, standard input, or hex given on the command line; and what it is.

No more is read than is needed to recognise an input, so that a live capture is shown while it grows.
Read next: `headrace.cli.decode`.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from headrace.decode.capture.captures import is_capture
from headrace.decode.files.hextext import is_text
from headrace.decode.files.segment import begins_batch
from headrace.decode.files.sidecars import sidecar_of
from headrace.decode.messages.bodies import looks_like_request
from headrace.decode.output.nodes import Damage

__all__ = ["KINDS", "DecodeInput", "expand", "open_input"]

KINDS: Final = ("hex", "segment", "pcap", "frame", "index", "timeindex", "txnindex", "snapshot", "checkpoint")
_CHUNK: Final = 1 << 18
_HEAD: Final = 4096
_ENOUGH: Final = 24
_MAX_WHOLE: Final = 1 << 29
_HEX_ARGUMENT: Final = re.compile(r"(0x)?[0-9a-fA-F\s:,]{8,}")


class DecodeInput:
    """An open input.

    Args:
        stream: its bytes.
        path: of the file; None for standard input and for hex from the command line.

    Attributes:
        was_read: it has at least one byte.
    """

    def __init__(self, stream: BinaryIO, path: Path | None) -> None:
        self.path = path
        self._stream = stream
        self._head = b""
        self.was_read = False

    def head(self) -> bytes:
        """Its first bytes; they are read again with the rest."""
        while len(self._head) < _HEAD and not is_capture(self._head):
            more = self._some(_HEAD - len(self._head))
            if not more:
                break
            self._head += more
            if len(self._head) >= _ENOUGH and is_capture(self._head):
                break
        return self._head

    def read(self, count: int) -> bytes:
        """At most so many of the next bytes, as soon as some are there; none at the end."""
        if self._head:
            found, self._head = self._head[:count], self._head[count:]
            return found
        return self._some(count)

    def chunks(self) -> Iterator[bytes]:
        """The bytes, as they come."""
        while chunk := self.read(_CHUNK):
            yield chunk

    def whole(self) -> bytes:
        """All bytes.

        Raises:
            Damage: there are more than 512 MiB.
        """
        parts, size = [], 0
        for chunk in self.chunks():
            size += len(chunk)
            if size > _MAX_WHOLE:
                raise Damage(f"more than {_MAX_WHOLE} bytes, of something that is read as one piece", _MAX_WHOLE)
            parts.append(chunk)
        return b"".join(parts)

    def close(self) -> None:
        """Close the file."""
        if self._stream is not sys.stdin.buffer:
            self._stream.close()

    def _some(self, count: int) -> bytes:
        read = getattr(self._stream, "read1", self._stream.read)
        found = bytes(read(count))
        self.was_read = self.was_read or bool(found)
        return found

    def kind(self) -> str:
        """What it is, one of `KINDS`, from its name and its first bytes.

        Raises:
            Damage: it is nothing that is known.
        """
        named = sidecar_of(self.path.name) if self.path is not None else ""
        head = self.head()
        if named:
            return named
        if is_capture(head):
            return "pcap"
        if begins_batch(head) or (self.path is not None and self.path.suffix == ".log"):
            return "segment"
        if is_text(head):
            return "hex"
        if looks_like_request(head) or _has_prefix(head):
            return "frame"
        raise Damage(self._strange(head), 0)

    def _strange(self, head: bytes) -> str:
        if not head:
            return "there is nothing in it"
        if head[:2] == b"\x1f\x8b" or head[:4] == b"\x28\xb5\x2f\xfd":
            return "it is compressed: unpack it first, for example with gunzip -c FILE | headrace decode -"
        return (f"it begins with {head[:8].hex()}: no capture, no log segment, no frame and no hex; "
                "say what it is with --as")


def _has_prefix(head: bytes) -> bool:
    """True when a length stands in front that may be that of a reply."""
    return len(head) >= 8 and 4 <= int.from_bytes(head[:4], "big", signed=True) <= 128 << 20


def open_input(name: str) -> DecodeInput:
    """Open a file, standard input ("-"), or hex that was given in place of a file.

    Raises:
        OSError: the file cannot be read.
    """
    if name == "-":
        return DecodeInput(sys.stdin.buffer, None)
    path = Path(name)
    if _HEX_ARGUMENT.fullmatch(name) and not path.exists():
        return DecodeInput(io.BytesIO(name.encode()), None)
    return DecodeInput(path.open("rb"), path)


def expand(name: str) -> list[str]:
    """The segments of a directory in their order; anything else as it is."""
    if name != "-" and Path(name).is_dir():
        return [str(path) for path in sorted(Path(name).glob("*.log"))]
    return [name]
