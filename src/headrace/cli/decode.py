"""`headrace decode`: hex, log segments and captures as readable requests, replies and batches.

Read next: `headrace.decode`, which lists the parts.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from headrace.cli.shared.parsers import Parser
from headrace.decode.capture.captures import CaptureReader, Packet, is_capture
from headrace.decode.capture.packets import ETHERNET, RAW, TcpSegment, read_packet
from headrace.decode.capture.tcp import Piece, Stamp
from headrace.decode.files.hextext import HexBlock, read_hex
from headrace.decode.files.inputs import KINDS, DecodeInput, expand, open_input
from headrace.decode.files.segment import LogBatch, LogTrouble, begins_batch, read_log
from headrace.decode.files.sidecars import SIDECARS
from headrace.decode.messages.bodies import find_api
from headrace.decode.messages.fields import MessageView
from headrace.decode.messages.names import TopicNames
from headrace.decode.output.headlines import batch_item, event_item, trouble_item
from headrace.decode.output.nodes import Damage, Item
from headrace.decode.output.rendering import JsonOutput, Output, TextOutput
from headrace.decode.output.summary import Summary, errors_of
from headrace.decode.stream.connections import Connections
from headrace.decode.stream.exchange import Event, Exchange, Frame, Trouble
from headrace.decode.stream.loose import Hint, loose_frames
from headrace.wire.api import Api

__all__ = ["main", "make_parser"]

_EXAMPLES = """\
what is read:
  captures   pcap and pcapng, both byte orders: TCP is put together, replies are matched with their requests
  segments   NNN.log of a broker's data directory (a directory stands for all of its segments), and the files beside
             them: .index, .timeindex, .txnindex, .snapshot, *-checkpoint; internal topics are read too
  hex        plain, 0x, xxd, hexdump, od -tx1, tcpdump -X, Python's bytes, Wireshark's "Follow TCP stream"
  frames     bytes of requests and replies, with or without their length in front

examples:
  headrace decode /var/lib/kafka/orders-0                        every batch and record of a partition
  headrace decode --no-records --summary 00000000000000000000.log
  headrace decode --api Produce,Fetch --topic orders capture.pcapng
  headrace decode --errors-only capture.pcap                     replies with error codes, and damage
  tcpdump -i any -U -w - port 9092 | headrace decode -           live
  headrace decode --json capture.pcap | jq 'select(.latency_ms > 100)'
  headrace decode 00000012001200040000000700047465737400010100
  xxd reply.bin | headrace decode --api Fetch --version 13 -

Passwords, SASL bytes, delegation tokens and SCRAM secrets are never shown. Exit status: 0 all was read, 1 something is
damaged or cannot be read (what could be read is shown), 2 wrong usage.
"""


class _Options(NamedTuple):
    """The command line, read."""

    apis: tuple[Api, ...]
    version: int | None
    topics: frozenset[str]
    ports: frozenset[int]
    errors_only: bool
    offsets: bool
    kind: str | None

    @property
    def hint(self) -> Hint:
        """What replies without their requests are."""
        return Hint(self.apis[0] if len(self.apis) == 1 else None, self.version)


def main(argv: list[str]) -> int:
    """Decode the inputs that are named and print them.

    Args:
        argv: arguments after the command's name.

    Returns:
        0, or 1 when an input cannot be read or is damaged; argparse leaves with 2 when the usage is wrong.
    """
    parser = make_parser()
    given = parser.parse_args(argv)
    if not given.input and sys.stdin.isatty():
        parser.error("name a FILE, or - for standard input")
    if given.version is not None and len(given.api) != 1:
        parser.error("--version says in which version the reply of one --api NAME is")
    try:
        return _run(parser, given)
    except BrokenPipeError:
        # The reader has seen enough. Python must not complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    options = _Options(tuple(given.api), given.version, frozenset(given.topic), frozenset(given.port),
                       given.errors_only, given.offsets, given.kind)
    colour = given.colour == "always" or (
        given.colour == "auto" and sys.stdout.isatty() and not os.environ.get("NO_COLOR"))
    output: Output = JsonOutput(sys.stdout.write, fields=given.fields) if given.json else TextOutput(
        sys.stdout.write, width=given.width, colour=colour, fields=given.fields)
    session = _Session(options, output, given.records)
    names = [name for given_name in given.input or ["-"] for name in expand(given_name)]
    if not names:
        parser.error("there is no segment (*.log) in this directory")
    failed = False
    for name in names:
        if len(names) > 1:
            output.show(Item("file", f"== {name}", {"file": name}))
        failed |= not session.decode(name)
    if given.summary:
        for item in session.summary.items():
            output.show(item)
    sys.stdout.flush()
    return int(failed or output.damaged > 0)


class _Session:
    """One run: what is asked for, where it goes, and what has been seen.

    Args:
        options: what is asked for.
        output: takes the items.
        records: most records of a batch to show, None for all.
    """

    def __init__(self, options: _Options, output: Output, records: int | None) -> None:
        self.summary = Summary()
        self._options = options
        self._output = output
        self._topics = TopicNames()
        self._view = MessageView(self._topics, records)

    def decode(self, name: str) -> bool:
        """Show one input; False when it cannot be read."""
        try:
            source = open_input(name)
        except OSError as error:
            print(f"headrace decode: {name}: {error.strerror}", file=sys.stderr)
            return False
        try:
            kind = self._options.kind or source.kind()
            self._decode(source, kind)
            if not source.was_read:
                self._output.show(Item("note", "there is nothing in it", {"note": "there is nothing in it"}))
        except Damage as damage:
            where = "" if damage.position is None else f" at byte {damage.position}"
            sys.stdout.flush()
            self._output.show(Item("damage", f"damaged{where}: {damage}",
                                   {"damage": str(damage), "position": damage.position}, damaged=True))
        except BrokenPipeError:
            raise  # of standard output, not of what is read
        except OSError as error:
            print(f"headrace decode: {name}: {error.strerror}", file=sys.stderr)
            return False
        finally:
            source.close()
        return True

    def _decode(self, source: DecodeInput, kind: str) -> None:
        if kind == "pcap":
            self._capture(source)
        elif kind == "segment":
            self._segment(source)
        elif kind == "hex":
            self._hex(source.whole())
        elif kind == "frame":
            self._events(loose_frames(source.whole(), self._options.hint))
        else:
            for item in SIDECARS[kind](source.whole(), source.path):
                self._output.show(item)

    def _capture(self, source: DecodeInput) -> None:
        reader, connections = CaptureReader(), Connections(self._options.ports)
        try:
            for chunk in source.chunks():
                for packet in reader.feed(chunk):
                    self._events(connections.push(packet))
                sys.stdout.flush()  # a live capture is shown as it comes
            reader.end()
        finally:
            self._close(connections)

    def _close(self, connections: Connections) -> None:
        self._events(connections.flush())
        for reason, count in connections.skipped.items():
            text = f"{count} {reason}"
            self._output.show(Item("note", f"not read: {text}", {"note": text, "count": count},
                                   damaged=not reason.startswith("packets of link type")))
        for reason, count in connections.foreign.items():
            text = f"{count} connection{'s' if count != 1 else ''} {reason}"
            self._output.show(Item("note", f"passed over: {text}", {"note": text, "count": count}))

    def _segment(self, source: DecodeInput) -> None:
        self._batches(read_log(source.read), _topic_of(source.path, self._options.offsets))

    def _batches(self, found: Iterator[LogBatch | LogTrouble], topic: str) -> None:
        for batch in found:
            self.summary.count_batch(batch)
            if isinstance(batch, LogTrouble):
                self._output.show(trouble_item(batch))
            elif not self._options.errors_only or not batch.head.is_sound:
                self._output.show(batch_item(batch, self._view, topic))

    def _hex(self, content: bytes) -> None:
        try:
            text = content.decode("ascii")
        except UnicodeDecodeError as error:
            raise Damage("hex text is ASCII, and this byte is not", error.start) from None
        blocks = read_hex(text)
        if all(block.peer is not None for block in blocks):
            self._events(_conversation(blocks))
            return
        links = [_link_of(block.data) for block in blocks]
        if all(link is not None for link in links):
            connections = Connections(self._options.ports)
            for number, (block, link) in enumerate(zip(blocks, links, strict=True), 1):
                assert link is not None
                self._events(connections.push(Packet(number, 0, block.time, link, block.data, len(block.data))))
            self._close(connections)
            return
        for block in blocks:
            self._bytes(block.data)

    def _bytes(self, data: bytes) -> None:
        """Bytes that stood in a text: a capture, batches or frames."""
        if is_capture(data):
            self._capture(DecodeInput(io.BytesIO(data), None))
        elif begins_batch(data):
            parts = iter([data])
            self._batches(read_log(lambda _: next(parts, b"")), _topic_of(None, self._options.offsets))
        else:
            self._events(loose_frames(data, self._options.hint))

    def _events(self, events: Iterator[Event]) -> None:
        for event in events:
            if isinstance(event, Frame):
                self._topics.learn(event.body.message)
            if self._wants(event):
                self.summary.count_event(event)
                self._output.show(event_item(event, self._view))

    def _wants(self, event: Event) -> bool:
        options = self._options
        if isinstance(event, Trouble):
            return True
        if options.apis and event.name not in {api.name for api in options.apis}:
            return False
        if options.topics and not self._topics.speaks_of(event.topics, options.topics):
            return False
        if options.errors_only:
            message = event.body.message
            has_error = event.kind == "reply" and message is not None and any(errors_of(message))
            return has_error or bool(event.body.damage)
        return True


def _topic_of(path: Path | None, offsets: bool) -> str:
    """The topic of a segment: the name of its directory without the partition."""
    if offsets:
        return "__consumer_offsets"
    return path.resolve().parent.name.rpartition("-")[0] if path is not None else ""


def _link_of(data: bytes) -> int | None:
    """The link type of a packet that stood in a text; None when the bytes are no packet."""
    return next((link for link in (RAW, ETHERNET) if isinstance(read_packet(link, data), TcpSegment)), None)


def _conversation(blocks: list[HexBlock]) -> Iterator[Event]:
    """The frames of a followed TCP stream; the side that sent first is the client."""
    exchange = Exchange("client", "broker", in_step=True)
    for number, block in enumerate(blocks, 1):
        piece = Piece(len(block.data), block.data, Stamp(None, number, 0))
        yield from exchange.push(block.peer == blocks[0].peer, piece)
    yield from exchange.flush()


def make_parser() -> Parser:
    """The parser of `headrace decode`."""
    parser = Parser(
        "headrace decode", allow_abbrev=True, epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Show hex dumps, files of a Kafka log and network captures as what Kafka means by them. What the "
        "input is, is seen from the input.")
    parser.add_argument("input", nargs="*", metavar="FILE",
                        help="file, directory of a partition, hex, or - for standard input (default: -)")
    parser.add_argument("--as", dest="kind", choices=KINDS, help="what the input is, when it is not seen right")
    parser.add_argument("--json", action="store_true", help="one JSON object a line, nothing cut")
    parser.add_argument("--fields", action=argparse.BooleanOptionalAction, default=True,
                        help="show fields and records below the headlines (default: yes)")
    parser.add_argument("--records", type=_count, metavar="N", help="most records of a batch to show (default: all)")
    parser.add_argument("--no-records", dest="records", action="store_const", const=0,
                        help="show batches without their records")
    parser.add_argument("--width", type=_count, default=100, metavar="N",
                        help="characters after which a value is cut; 0 for never (default: 100)")
    parser.add_argument("--summary", action="store_true", help="end with totals: counts, bytes, latency")
    parser.add_argument("--color", "--colour", dest="colour", choices=("auto", "always", "never"), default="auto",
                        help="mark headlines and damage (default: auto, on a terminal)")
    choose = parser.add_argument_group("what to show")
    choose.add_argument("--api", type=_apis, action="extend", default=[], metavar="NAME[,NAME]",
                        help="only these APIs, by name or key; for hex without a request, what the reply is of")
    choose.add_argument("--version", type=_count, metavar="N",
                        help="version of such a reply (default: the newest that fits)")
    choose.add_argument("--topic", type=lambda text: text.split(","), action="extend", default=[],
                        metavar="NAME[,NAME]",
                        help="only frames about these topics; names of topic ids are learned from the capture")
    choose.add_argument("--port", type=_count, action="append", default=[], metavar="N",
                        help="only connections to this port, which is a broker's; may be given again")
    choose.add_argument("--errors-only", action="store_true", help="only replies with error codes, and damage")
    choose.add_argument("--offsets", action="store_true",
                        help="a segment is one of __consumer_offsets, whatever its directory is called")
    return parser


def _apis(text: str) -> list[Api]:
    found = []
    for name in text.split(","):
        api = find_api(name)
        if api is None:
            raise argparse.ArgumentTypeError(f"there is no API {name!r}; there are Produce, Fetch, Metadata and so on")
        found.append(api)
    return found


def _count(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return int(text)
