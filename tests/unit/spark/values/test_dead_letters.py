"""Records that cannot be read go to their topic whole, with headers as Kafka Connect has them."""

from __future__ import annotations

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from headrace.frames.topic_reading import read_topic
from headrace.spark.values.dead_letters import DeadLetterWriter
from headrace.testing import EmbeddedBroker

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def test_a_record_is_set_aside_with_where_it_was_and_what_is_wrong_behind_its_own_headers() -> None:
    batch = pa.RecordBatch.from_pydict({
        "key": pa.array([b"k0", None, b"k2"]), "value": pa.array([b"v0", b"v1", None]),
        "headers": pa.array([None, [{"key": "own", "value": b"x"}], None], HEADERS),
        "topic": ["in"] * 3, "partition": pa.array([4, 4, 5], pa.int32()), "offset": pa.array([70, 71, 9], pa.int64())})
    with EmbeddedBroker(topics={"dead": 1}) as broker:
        with DeadLetterWriter({"bootstrap.servers": broker.bootstrap_servers}, "dead") as letters:
            letters.write(batch, {2: ("key", "no such schema"), 1: ("value", "at /a: too short")})
            letters.finish()
        found = read_topic("dead", broker.bootstrap_servers, format="arrow").to_pylist()
    assert [(row["key"], row["value"]) for row in found] == [(None, b"v1"), (b"k2", None)]
    headers = [[tuple(each.values()) for each in row["headers"]] for row in found]
    first, second = ([(name.removeprefix("__connect.errors."), value) for name, value in row] for row in headers)
    assert first == [("own", b"x"), ("topic", b"in"), ("partition", b"4"), ("offset", b"71"),
                     ("stage", b"VALUE_CONVERTER"), ("exception.message", b"at /a: too short")]
    assert second == [("topic", b"in"), ("partition", b"5"), ("offset", b"9"), ("stage", b"KEY_CONVERTER"),
                      ("exception.message", b"no such schema")]
    assert all(name.startswith("__connect.errors.") for name, _ in headers[1])
