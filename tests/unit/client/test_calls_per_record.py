"""What a record costs in Python calls where each is a request of its own: `alone/calls_per_record.py`."""

from tests.support.by_itself import passes_by_itself


def test_a_record_alone_costs_few_calls():
    passes_by_itself("tests/unit/client/alone/calls_per_record.py", tests=3)
