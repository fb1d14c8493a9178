"""Events of a capture and batches of a segment to items: which side sent what, when, and how long the reply took.

Read next: `decode.output.rendering`.
"""

from __future__ import annotations

from collections.abc import Iterator

from headrace.decode.capture.tcp import Stamp
from headrace.decode.files.segment import LogBatch, LogTrouble
from headrace.decode.messages.fields import MessageView
from headrace.decode.messages.record_nodes import batch_parts
from headrace.decode.output.nodes import Item, TreeNode, Value, clock, damage
from headrace.decode.stream.exchange import Event, Frame, Trouble

__all__ = ["batch_item", "event_item", "trouble_item"]


def event_item(event: Event, view: MessageView) -> Item:
    """The item of a frame, or of a trouble of its connection."""
    where, head = _place(event.stamp, event.source, event.target)
    if isinstance(event, Trouble):
        kind = "damage" if event.is_damage else "note"
        return Item(kind, f"{where}{'damaged: ' if event.is_damage else ''}{event.text}", {**head, kind: event.text},
                    damaged=event.is_damage)
    body = event.body
    if event.kind == "token":
        text = f"{where}SASL token <hidden {event.size} bytes>"
        return Item("token", text, {**head, "size": event.size, "hidden_bytes": event.size})
    head |= {"api": event.name, "api_key": body.api_key, "version": body.version,
             "correlation_id": body.correlation_id, "client_id": body.client_id, "size": event.size}
    words = [f"{_what(event)} {event.kind}"]
    if body.correlation_id is not None:
        words.append(f"correlation {body.correlation_id}")
    if body.client_id is not None:
        words.append(f'client "{body.client_id}"')
    words.append(f"{event.size} bytes")
    if event.latency_ns is not None:
        words.append(f"after {event.latency_ns / 1e6:.3f} ms")
        head["latency_ms"] = event.latency_ns / 1e6
    for name, text in (("note", body.note), ("damage", body.damage)):
        if text:
            words.append(f"damaged: {text}" if name == "damage" else text)
            head[name] = text
    return Item(event.kind, where + ", ".join(words), head, _fields(event, view), damaged=bool(body.damage))


def _what(frame: Frame) -> str:
    key, version = frame.body.api_key, frame.body.version
    return frame.name + (f" ({key})" if key is not None else "") + (f" v{version}" if version is not None else "")


def _place(stamp: Stamp, source: str, target: str) -> tuple[str, dict[str, Value]]:
    words: list[str] = []
    head: dict[str, Value] = {}
    if stamp.time is not None:
        head["time"] = clock(stamp.time, digits=9)
        words.append(clock(stamp.time))
    if stamp.packet:
        head["packet"] = stamp.packet
        words.append(f"#{stamp.packet}")
    elif stamp.position:
        head["position"] = stamp.position
        words.append(f"at byte {stamp.position}:")
    if source:
        head |= {"source": source, "target": target}
        words.append(f"{source} -> {target}")
    return "  ".join([*words, ""]), head


def _fields(frame: Frame, view: MessageView) -> Iterator[TreeNode]:
    body = frame.body
    if body.message is not None and body.version is not None:
        yield from view.nodes(body.message, body.version)
    if body.damage:
        yield damage(body.damage)


def batch_item(batch: LogBatch, view: MessageView, topic: str) -> Item:
    """The item of a batch of a segment."""
    parts = batch_parts(batch.data, batch.head, view.records, topic, view.nodes)
    return Item("batch", f"batch at byte {batch.position}", {"position": batch.position}, parts, label="",
                damaged=not batch.head.is_sound)


def trouble_item(trouble: LogTrouble) -> Item:
    """The item of bytes that are no batch."""
    kind = "damage" if trouble.is_damage else "note"
    mark = "damaged at" if trouble.is_damage else "at"
    return Item(kind, f"{mark} byte {trouble.position}: {trouble.text}",
                {kind: trouble.text, "position": trouble.position}, damaged=trouble.is_damage)
