"""The page about frames: its programs run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polars
import pytest

from headrace import Producer, write_topic
from headrace.frames import topic_reading
from headrace.testing import EmbeddedBroker

PAGE = (Path(__file__).parents[3] / "docs/how-to/frames.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"orders": 2, "orders-avro": 1}, registry=True) as broker:
        with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            for number in range(3_000):
                producer.produce("orders", b"%d" % number, partition=number % 2)
        frame = polars.DataFrame({"customer": ["ann"], "price": [9.5]})
        write_topic(frame, "orders-avro", broker.bootstrap_servers, key="customer", value=["customer", "price"],
                    value_format="avro", registry=broker.registry_url)
        yield broker


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_each_program_of_the_page_runs(program: str, broker: EmbeddedBroker) -> None:
    program = program.replace("localhost:9092", broker.bootstrap_servers)
    program = program.replace("http://localhost:8081", broker.registry_url)
    names: dict[str, object] = {"__name__": "__main__"}
    exec(compile(program, "frames.md", "exec"), names)
    assert "headrace" in names


def test_the_page_says_each_word_that_a_bound_may_be() -> None:
    for word in ("earliest", "latest", "datetime", "timedelta", "dict"):
        assert word in PAGE
    assert topic_reading.read_topic.__kwdefaults__["start"] == "earliest"
