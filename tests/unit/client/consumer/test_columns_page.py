"""The page about columns: its programs run, and it names every column and library that there is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace import Consumer, Producer, TopicPartition
from headrace.records.columns.arrow_batch import ArrowBatchBuilder
from headrace.testing import EmbeddedBroker

PAGE = (Path(__file__).parents[4] / "docs/how-to/columns.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"orders": 2}) as broker:
        with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            for i in range(10):
                producer.produce("orders", b"%d" % i, partition=i % 2)
            assert producer.flush(10) == 0
        yield broker


def run(program: str, broker: EmbeddedBroker) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "__main__"}
    program = program.replace("localhost:9092", broker.bootstrap_servers)
    program = re.sub(r"num_messages=[\d_]+", "num_messages=10", program)  # as many as there are: nobody waits for more
    exec(compile(program, "columns.md", "exec"), names)
    return names


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_each_program_of_the_page_runs(
    program: str, broker: EmbeddedBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    for library in re.findall(r"^import (\w+)", program, re.MULTILINE):
        pytest.importorskip(library)
    names = run(program, broker)
    if "next_columns" in names:
        with Consumer({"bootstrap.servers": broker.bootstrap_servers}) as consumer:
            consumer.assign([TopicPartition("orders", partition, 0) for partition in range(2)])
            assert len(names["next_columns"](consumer)) == 10
    else:
        assert capsys.readouterr().out


def test_the_page_has_every_column() -> None:
    table = PAGE[PAGE.index("| column | type"):PAGE.index("Records of several partitions")]
    cells = [row.split("|")[1] for row in table.strip().splitlines()[2:]]
    named = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert named == ArrowBatchBuilder().finish().column_names
