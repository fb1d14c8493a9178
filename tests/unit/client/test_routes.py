"""The three routes of ARCHITECTURE.md are those that a record takes: `alone/routes.py`."""

from tests.support.by_itself import passes_by_itself


def test_a_record_takes_the_routes_of_the_page():
    passes_by_itself("tests/unit/client/alone/routes.py")
