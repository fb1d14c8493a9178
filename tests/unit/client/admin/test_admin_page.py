"""The page about administration: each of its programs runs, and does what it says. One runs on real Kafka only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace import ConsumerGroupTopicPartitions, Producer, TopicPartition
from headrace.admin import AdminClient
from headrace.testing import EmbeddedBroker

PAGE = (Path(__file__).parents[4] / "docs/how-to/admin.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
PATIENCE_S = 10
SAYS = {
    'NewTopic("orders", 4, 1': ["orders is made"],
    "incremental_operation": ["retention.ms is 3600000 from DYNAMIC_TOPIC_CONFIG"],
    "reset_consumer_group_offsets": ["orders 0 lag 4", "orders 0 would go from 6 to 0"],
    "AIOAdminClient": ["2 topics on 1 broker"],
}
"""What the programs print, by words that occur in one alone."""
ON_REAL_KAFKA = "UserScramCredentialUpsertion("


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> Iterator[EmbeddedBroker]:
    """With a topic and a group, where the program does not make the topic."""
    makes = "NewTopic(\"orders\"" in request.getfixturevalue("words")
    with EmbeddedBroker(topics={} if makes else {"orders": 1}) as made:
        if not makes:
            fill(made)
        yield made


def fill(broker: EmbeddedBroker) -> None:
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        for number in range(10):
            producer.produce("orders", str(number))
    with AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        group = ConsumerGroupTopicPartitions("shop", [TopicPartition("orders", 0, 6)])
        admin.alter_consumer_group_offsets([group])["shop"].result(PATIENCE_S)


@pytest.mark.parametrize("words", SAYS)
def test_each_program_of_the_page_runs(words: str, broker: EmbeddedBroker) -> None:
    (program,) = (each for each in PROGRAMS if words in each)
    lines: list[str] = []
    names: dict[str, Any] = {"__name__": "__main__", "print": lambda *told: lines.append(" ".join(map(str, told)))}
    exec(compile(program.replace("localhost:9092", broker.bootstrap_servers), "admin.md", "exec"), names)
    assert lines == SAYS[words]
    if "shift_by" in program:
        with AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin:
            wanted = [ConsumerGroupTopicPartitions("shop")]
            found = admin.list_consumer_group_offsets(wanted)["shop"].result(PATIENCE_S).topic_partitions or []
            assert [tp.offset for tp in found] == [4]


def test_no_program_of_the_page_is_left_out() -> None:
    assert len([program for program in PROGRAMS if ON_REAL_KAFKA in program]) == 1
    assert len(PROGRAMS) == len(SAYS) + 1


def test_every_call_that_the_page_names_is_there() -> None:
    named = {name for name in re.findall(r"`(\w+_\w+)`", PAGE.split("## One setting")[0]) if not name.endswith("_")}
    assert {name for name in named if not hasattr(AdminClient, name)} == {"request_timeout", "operation_timeout"}
