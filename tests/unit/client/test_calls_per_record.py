"""What a record, or a topic, costs in Python calls: `alone/calls_per_record.py`, `alone/calls_per_topic.py`."""

from tests.support.by_itself import passes_by_itself


def test_a_record_alone_costs_few_calls():
    passes_by_itself("tests/unit/client/alone/calls_per_record.py", tests=5)


def test_a_topic_of_many_costs_an_administrator_few_calls():
    passes_by_itself("tests/unit/client/alone/calls_per_topic.py", tests=3)
