"""What one `poll()` returns: a sequence that cannot be changed, as confluent_kafka's."""

from types import ModuleType

import confluent_kafka
import pytest

import headrace
from headrace import Message, Messages
from tests.support.same_as_confluent import same


def test_it_is_what_confluents_is() -> None:
    def seen(kafka: ModuleType) -> object:
        messages = [kafka.Message("t", 0, offset) for offset in range(4)]
        held = kafka.Messages(messages)
        return (len(held), held.count(), held.is_empty(), kafka.Messages().is_empty(), held[1].offset(),
                [message.offset() for message in held], [message.offset() for message in held[1:3]],
                type(held[1:3]) is kafka.Messages, held.records() == messages, type(held.records()))

    assert same(seen) == (4, 4, False, True, 1, [0, 1, 2, 3], [1, 2], True, True, list)


def test_what_it_gives_away_is_a_copy() -> None:
    held = Messages([Message("t", 0, 1)])
    held.records().clear()
    assert len(held) == 1
    assert repr(held) == f"Messages([{held[0]!r}])"
    with pytest.raises(IndexError):
        held[1]


def test_the_types_of_words_are_confluents_and_javas() -> None:
    ours = {kind.name: kind.value for kind in headrace.AcknowledgeType}
    assert ours == {**{kind.name: kind.value for kind in confluent_kafka.AcknowledgeType}, "RENEW": 4}
