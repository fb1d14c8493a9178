"""Held tables: read once, read anew when they ask for it; without Spark."""

import threading

import pytest

pytest.importorskip("pyspark")

from headrace.spark.pipeline.spec import Input
from headrace.spark.pipeline.tables import HeldTables


class Frame:
    """What a read gives."""

    def __init__(self, told):
        self.told = told

    def persist(self):
        self.told.append("held")
        return self

    def count(self):
        self.told.append("read")

    def unpersist(self):
        self.told.append("let go")


@pytest.fixture
def told():
    return []


@pytest.fixture
def now():
    return [100.0]


@pytest.fixture
def tables(told, now):
    return HeldTables(lambda table: Frame(told), lambda: now[0])


def test_a_table_is_read_when_it_is_first_asked_for_and_never_again(tables, told, now):
    table = Input("names", file="names.csv", format="csv")
    frame = tables.frame(table)
    now[0] += 1e6
    assert tables.frame(table) is frame
    assert told == ["held", "read"]
    assert not tables.due


def test_a_table_that_asks_for_it_is_let_go_and_read_anew(tables, told, now):
    table = Input("names", file="names.csv", format="csv", refresh_s=60)
    frame = tables.frame(table)
    now[0] += 59
    assert not tables.due
    assert tables.frame(table) is frame
    now[0] += 1
    assert tables.due
    assert tables.frame(table) is not frame
    assert told == ["held", "read", "let go", "held", "read"]
    assert not tables.due


def test_the_others_stay_when_one_is_read_anew(tables, now):
    slow, quick = Input("slow", topic="slow", refresh_s=600), Input("quick", topic="quick", refresh_s=60)
    slows, quicks = tables.frame(slow), tables.frame(quick)
    now[0] += 60
    assert tables.frame(slow) is slows
    assert tables.frame(quick) is not quicks


def test_the_time_counts_from_before_the_read(told, now):
    def read(_table):
        now[0] += 30
        return Frame(told)

    tables = HeldTables(read, lambda: now[0])
    tables.frame(Input("names", topic="names", refresh_s=60))
    now[0] += 30
    assert tables.due


def test_in_the_end_nothing_is_held(tables, told):
    tables.frame(Input("names", topic="names"))
    tables.close()
    assert told == ["held", "read", "let go"]


def test_tables_are_read_side_by_side_before_the_first_is_asked_for():
    together = threading.Barrier(2, timeout=30)  # neither is read before both are begun

    class Slow(Frame):
        def count(self):
            together.wait()
            super().count()

    told = []
    tables = HeldTables(lambda table: Slow(told))
    both = [Input(name, file=f"{name}.csv", format="csv") for name in ("names", "places")]
    tables.read_ahead(both)
    frames = [tables.frame(table) for table in both]
    assert sorted(told) == ["held", "held", "read", "read"]
    assert frames[0] is not frames[1]


def test_a_table_that_could_not_be_read_ahead_says_why_when_it_is_asked_for():
    def read(table):
        if table.name == "names":
            raise ValueError("no such file")
        return Frame([])

    tables = HeldTables(read)
    both = [Input(name, file=f"{name}.csv", format="csv") for name in ("names", "places")]
    tables.read_ahead(both)
    tables.frame(both[1])
    with pytest.raises(ValueError, match="no such file"):
        tables.frame(both[0])
