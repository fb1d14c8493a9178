"""A packet of a capture, down to its TCP segment: link, IP and TCP headers are read and nothing is kept.

Links: Ethernet with VLAN tags, Linux "any" (SLL and SLL2), loopback of the BSDs, raw IP. IPv4, IPv6 with extension
headers. A packet that is no TCP segment, or is not whole enough to be one, is a `Skipped` with the reason.

Sources: RFC 791, 8200, 9293; the LINKTYPE_ registry of tcpdump.org. Read next: `tcp`.
"""

from __future__ import annotations

import socket
import struct
from functools import lru_cache
from typing import Final, NamedTuple

__all__ = ["ACK", "ETHERNET", "FIN", "RAW", "RST", "SYN", "Address", "TcpSegment", "Skipped", "read_packet"]

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
ETHERNET, RAW = 1, 101
_NULL, _LOOP, _SLL, _SLL2, _IPV4, _IPV6 = 0, 108, 113, 276, 228, 229
_RAW_TYPES: Final = {RAW, 12, 14, _IPV4, _IPV6}
_TYPE_IPV4, _TYPE_IPV6 = 0x0800, 0x86DD
_VLANS: Final = {0x8100, 0x88A8, 0x9100}
_TCP: Final = 6
_EXTENSIONS: Final = {0, 43, 60, 135}
_FRAGMENT, _AUTHENTICATION = 44, 51


class Address(NamedTuple):
    """One end of a connection."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class TcpSegment(NamedTuple):
    """A TCP segment.

    Attributes:
        missing: bytes at the end of its data that the capture left out.
    """

    source: Address
    target: Address
    sequence: int
    acknowledged: int
    flags: int
    data: bytes
    missing: int


class Skipped(NamedTuple):
    """A packet that is not read; `reason` is empty when it is simply something else than TCP."""

    reason: str = ""


def read_packet(link: int, data: bytes) -> TcpSegment | Skipped:
    """The TCP segment in a packet.

    Args:
        link: type of the link, a LINKTYPE_ number.
        data: what was captured of the packet.
    """
    try:
        start = _link_end(link, data)
        if isinstance(start, Skipped):
            return start
        version = data[start] >> 4
        if version == 4:
            return _ipv4(data, start)
        return _ipv6(data, start) if version == 6 else Skipped()
    except (IndexError, struct.error):
        return Skipped("packets too short for their headers")


def _u16(data: bytes, at: int) -> int:
    number: int = struct.unpack_from(">H", data, at)[0]
    return number


def _link_end(link: int, data: bytes) -> int | Skipped:
    """Where IP begins."""
    if link in _RAW_TYPES:
        return 0
    if link in (_NULL, _LOOP):
        return 4  # the family's number differs from system to system; the IP header has its version
    if link == ETHERNET:
        at = 12
        while _u16(data, at) in _VLANS:
            at += 4
        kind, at = _u16(data, at), at + 2
    elif link == _SLL:
        kind, at = _u16(data, 14), 16
        while kind in _VLANS:
            kind, at = _u16(data, at + 2), at + 4
    elif link == _SLL2:
        kind, at = _u16(data, 0), 20
    else:
        return Skipped(f"packets of link type {link}, which is not known here")
    return at if kind in (_TYPE_IPV4, _TYPE_IPV6) else Skipped()


def _ipv4(data: bytes, at: int) -> TcpSegment | Skipped:
    header = (data[at] & 0x0F) * 4
    total, fragment = _u16(data, at + 2), _u16(data, at + 6)
    if data[at + 9] != _TCP:
        return Skipped()
    if fragment & 0x3FFF:
        return Skipped("fragments of IP packets, which are not put together")
    if header < 20:
        return Skipped("packets with a bad IP header")
    # Of a packet that the network card is yet to cut, the total length is 0.
    end = at + total if total else len(data)
    return _tcp(data, at + header, end, data[at + 12:at + 16], data[at + 16:at + 20])


def _ipv6(data: bytes, at: int) -> TcpSegment | Skipped:
    length, kind = _u16(data, at + 4), data[at + 6]
    end = at + 40 + length if length else len(data)
    place = at + 40
    while kind in _EXTENSIONS or kind in (_FRAGMENT, _AUTHENTICATION):
        if kind == _FRAGMENT:
            if _u16(data, place + 2) & 0xFFF9:
                return Skipped("fragments of IP packets, which are not put together")
            size = 8
        else:
            size = (data[place + 1] + 2) * 4 if kind == _AUTHENTICATION else (data[place + 1] + 1) * 8
        kind, place = data[place], place + size
    if kind != _TCP:
        return Skipped()
    return _tcp(data, place, end, data[at + 8:at + 24], data[at + 24:at + 40])


def _tcp(data: bytes, at: int, end: int, source: bytes, target: bytes) -> TcpSegment | Skipped:
    source_port, target_port, sequence, acknowledged, offset, flags = struct.unpack_from(">HHIIBB", data, at)
    start = at + (offset >> 4) * 4
    if start < at + 20 or start > end:
        return Skipped("packets with a bad TCP header")
    return TcpSegment(Address(_host(source), source_port), Address(_host(target), target_port), sequence, acknowledged,
                   flags, data[start:end], max(0, end - max(start, len(data))))


@lru_cache(maxsize=4096)
def _host(packed: bytes) -> str:
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)
