"""Captures of network traffic, pcap and pcapng: bytes in, packets out. A state machine that knows no protocol.

Both byte orders; microseconds and nanoseconds; several sections and interfaces. Every length is checked before it is
used, so damaged or hostile bytes end in a `Damage` that names the byte, and no packet takes more memory than it says.

Source: the pcap and pcapng specifications (draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng). Read next: `packets`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from headrace.decode.output.nodes import Damage

__all__ = ["CaptureReader", "Packet", "is_capture"]

_MICRO, _NANO, _SECTION = 0xA1B2C3D4, 0xA1B23C4D, 0x0A0D0D0A
_ORDER_MARK = 0x1A2B3C4D
_INTERFACE, _OLD_PACKET, _SIMPLE, _ENHANCED = 1, 2, 3, 6
_TIME_UNIT, _TIME_OFFSET = 9, 14
_LARGEST = 16 << 20
_FILE_HEAD, _RECORD_HEAD, _BLOCK_HEAD, _SECTION_HEAD = 24, 16, 8, 28
_MAGICS = {number.to_bytes(4, order) for number in (_MICRO, _NANO, _SECTION) for order in ("big", "little")}


class Packet(NamedTuple):
    """One packet.

    Attributes:
        number: counted from 1, as other tools do.
        position: byte of the capture at which it begins.
        time: nanoseconds since the epoch; None when the capture does not say.
        link: type of the link, a LINKTYPE_ number.
        data: what was captured of it.
        size: its size on the wire.
    """

    number: int
    position: int
    time: int | None
    link: int
    data: bytes
    size: int


class _Interface(NamedTuple):
    link: int
    units_per_second: int
    offset_s: int


def is_capture(head: bytes) -> bool:
    """True when bytes begin as a capture does."""
    return head[:4] in _MAGICS


class CaptureReader:
    """Cuts the bytes of a capture into packets."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._start = 0  # of the buffer, in the capture
        self._order = ""
        self._is_ng = False
        self._interfaces: list[_Interface] = []
        self._count = 0

    def feed(self, data: bytes) -> Iterator[Packet]:
        """Take bytes and give the packets that they complete.

        Raises:
            Damage: they cannot be a capture's; nothing behind this place can be read.
        """
        self._buffer += data
        at = 0
        try:
            while (size := self._size_at(at)) is not None and len(self._buffer) - at >= size:
                packet = self._read(at, size)
                at += size
                if packet is not None:
                    yield packet
        finally:
            del self._buffer[:at]
            self._start += at

    def end(self) -> None:
        """Say that there are no more bytes.

        Raises:
            Damage: the capture ends within a packet.
        """
        if self._buffer:
            raise Damage(f"the capture ends within a packet, {len(self._buffer)} bytes after its begin", self._start)

    def _unpack(self, letters: str, at: int) -> tuple[int, ...]:
        return struct.unpack_from(self._order + letters, self._buffer, at)

    def _damage(self, text: str, at: int) -> Damage:
        return Damage(text, self._start + at)

    def _size_at(self, at: int) -> int | None:
        """Size in bytes of what begins here, None when more bytes are needed to know."""
        room = len(self._buffer) - at
        if not self._order or (self._is_ng and self._is_section(at)):
            return self._opening_size(at, room)
        if not self._is_ng and not self._interfaces:
            return _FILE_HEAD
        if self._is_ng:
            if room < _BLOCK_HEAD:
                return None
            return self._checked(self._unpack("I", at + 4)[0], at, smallest=12, step=4)
        if room < _RECORD_HEAD:
            return None
        return _RECORD_HEAD + self._checked(self._unpack("I", at + 8)[0], at)

    def _checked(self, size: int, at: int, smallest: int = 0, step: int = 1) -> int:
        if not smallest <= size <= _LARGEST or size % step:
            raise self._damage(f"a packet of {size} bytes: the capture is damaged", at)
        return size

    def _is_section(self, at: int) -> bool:
        return self._buffer[at:at + 4] == b"\x0a\x0d\x0d\x0a"

    def _opening_size(self, at: int, room: int) -> int | None:
        if room < 12:
            return None
        if self._is_section(at):
            mark = bytes(self._buffer[at + 8:at + 12])
            orders = {_ORDER_MARK.to_bytes(4, "big"): ">", _ORDER_MARK.to_bytes(4, "little"): "<"}
            if mark not in orders:
                raise self._damage(f"a section of a pcapng has the byte order mark {mark.hex()}", at)
            self._order, self._is_ng = orders[mark], True
            return self._checked(self._unpack("I", at + 4)[0], at, smallest=_SECTION_HEAD, step=4)
        magic = bytes(self._buffer[at:at + 4])
        for order, name in ((">", "big"), ("<", "little")):
            if int.from_bytes(magic, name) in (_MICRO, _NANO):  # type: ignore[arg-type]
                self._order = order
                return _FILE_HEAD
        raise self._damage(f"{magic.hex()} begins neither a pcap nor a pcapng", at)

    def _read(self, at: int, size: int) -> Packet | None:
        if self._is_ng:
            return self._block(at, size)
        if not self._interfaces:
            magic, *_, link = self._unpack("IHHiIII", at)
            self._interfaces.append(_Interface(link & 0xFFFF, 10**9 if magic == _NANO else 10**6, 0))
            return None
        interface = self._interfaces[0]
        seconds, fraction, captured, original = self._unpack("IIII", at)
        time = seconds * 10**9 + fraction * (10**9 // interface.units_per_second)
        return self._packet(at, time, interface.link, at + _RECORD_HEAD, captured, original)

    def _packet(self, at: int, time: int | None, link: int, start: int, captured: int, original: int) -> Packet:
        self._count += 1
        data = bytes(memoryview(self._buffer)[start:start + captured])
        return Packet(self._count, self._start + at, time, link, data, max(original, captured))

    def _block(self, at: int, size: int) -> Packet | None:
        kind, = self._unpack("I", at)
        if self._unpack("I", at + size - 4)[0] != size:
            raise self._damage("a block of the pcapng has two different lengths", at)
        if kind == _SECTION:
            self._interfaces = []
        elif kind == _INTERFACE:
            self._interfaces.append(self._interface(at, size))
        elif kind in (_ENHANCED, _OLD_PACKET):
            return self._enhanced(at, size, kind)
        elif kind == _SIMPLE:
            self._need(16, at, size)
            original, = self._unpack("I", at + 8)
            return self._packet(at, None, self._known(0, at).link, at + 12, min(original, size - 16), original)
        return None  # names, statistics, secrets: not needed, and the last never to be shown

    def _need(self, least: int, at: int, size: int) -> None:
        if size < least:
            raise self._damage(f"a block of the pcapng has {size} bytes and should have at least {least}", at)

    def _known(self, index: int, at: int) -> _Interface:
        if index >= len(self._interfaces):
            raise self._damage(f"a packet of interface {index}, which the pcapng does not describe", at)
        return self._interfaces[index]

    def _enhanced(self, at: int, size: int, kind: int) -> Packet:
        self._need(32, at, size)
        index, high, low, captured, original = self._unpack("IIIII", at + 8)
        if kind == _OLD_PACKET:
            index, = self._unpack("H", at + 8)
        interface = self._known(index, at)
        if captured > size - 32:
            raise self._damage(f"a packet of {captured} bytes in a block of {size}", at)
        time = (high << 32 | low) * 10**9 // interface.units_per_second + interface.offset_s * 10**9
        return self._packet(at, time, interface.link, at + 28, captured, original)

    def _interface(self, at: int, size: int) -> _Interface:
        self._need(20, at, size)
        link, = self._unpack("H", at + 8)
        units, offset = 10**6, 0
        place, end = at + 16, at + size - 4
        while place + 4 <= end:
            code, length = self._unpack("HH", place)
            place += 4
            if code == 0 or place + length > end:
                break
            if code == _TIME_UNIT and length >= 1:
                power = self._buffer[place]
                units = 1 << (power & 0x7F) if power & 0x80 else 10**power
            elif code == _TIME_OFFSET and length >= 8:
                offset, = self._unpack("q", place)
            place += length + -length % 4
        return _Interface(link, units, offset)
