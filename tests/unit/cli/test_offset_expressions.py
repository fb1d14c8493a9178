"""`-o`: what kcat and rpk write for places in a partition, and the offsets that this means."""

from types import SimpleNamespace

import pytest

from headrace.cli.consuming.offset_expressions import OffsetPoint, OffsetSpan, parse_span, resolve

NOW = 1_800_000_000_000
BEGIN, END = OffsetPoint("beginning"), OffsetPoint("end")


def at(time_ms):
    return OffsetPoint("time", time_ms)


@pytest.mark.parametrize(("text", "start", "end"), [
    ("beginning", BEGIN, None), ("earliest", BEGIN, None), ("end", END, None), ("stored", OffsetPoint("stored"), None),
    ("47", OffsetPoint("offset", 47), None), ("+2", OffsetPoint("after", 2), None),
    ("-10", OffsetPoint("before", 10), None),
    ("10:20", OffsetPoint("offset", 10), OffsetPoint("offset", 20)), (":20", BEGIN, OffsetPoint("offset", 20)),
    ("-3:end", OffsetPoint("before", 3), END), ("5:", OffsetPoint("offset", 5), END), (":", BEGIN, END),
    ("@1700000000", at(1_700_000_000_000), None), ("@1700000000123", at(1_700_000_000_123), None),
    ("@-1h", at(NOW - 3_600_000), None), ("@1h30m", at(NOW - 5_400_000), None), ("@-1.5d", at(NOW - 129_600_000), None),
    ("@2026-01-01", at(1_767_225_600_000), None), ("@2026-01-01T00:00", at(1_767_225_600_000), None),
    ("@2026-01-01T02:00+02:00", at(1_767_225_600_000), None),
    ("@2026-01-01T00:00:@2026-01-01T00:01", at(1_767_225_600_000), at(1_767_225_660_000)),
    ("@-2h:@-1h", at(NOW - 7_200_000), at(NOW - 3_600_000)), ("s@-1h", at(NOW - 3_600_000), None),
    ("e@1700000000123", None, at(1_700_000_000_123)),
])
def test_an_expression_says_where_to_begin_and_to_end(text, start, end):
    assert parse_span(text, NOW) == OffsetSpan(start, end)


@pytest.mark.parametrize("text", ["", "x", "1.5", "--1", "@", "@tomorrow", "1:2:3", "1:x", ":stored", "@1x", "s@", "٣"])
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError):
        parse_span(text, NOW)


class View:
    """A partition with offsets 100 to 200, one record each second from 1000 on."""

    def offsets(self, wanted, timeout_s):
        def offset(timestamp):
            if timestamp == -2:
                return 100
            if timestamp == -1:
                return 200
            return -1 if timestamp >= 1_100_000 else max(timestamp // 1000 - 900, 100)

        return {key: SimpleNamespace(offset=offset(timestamp)) for key, timestamp in wanted.items()}


@pytest.mark.parametrize(("text", "found"), [
    ("beginning", (100, 200)), ("end", (200, 200)), ("150", (150, 200)), ("+2", (102, 200)), ("-10", (190, 200)),
    ("-1000", (100, 200)), ("5", (100, 200)), ("999", (200, 200)), ("120:130", (120, 130)), ("130:120", (130, 130)),
    (":-1", (100, 199)), ("+1:+3", (101, 103)), ("190:999", (190, 200)), ("stored", (170, 200)),
    ("@1050:@1060", (150, 160)), ("e@1060", (100, 160)), ("s@9999", (200, 200)), ("e@9999", (100, 200)),
])
def test_offsets_stay_within_what_the_partition_has(text, found):
    span = parse_span(text, NOW)
    assert resolve(span, [("t", 0)], View(), {("t", 0): 170}, 1.0) == {("t", 0): found}


def test_a_partition_without_a_committed_offset_begins_at_its_beginning():
    assert resolve(parse_span("stored", NOW), [("t", 0)], View(), {}, 1.0) == {("t", 0): (100, 200)}
