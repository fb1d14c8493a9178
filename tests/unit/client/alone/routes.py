"""The three routes of ARCHITECTURE.md are those that a record takes: traced, and compared file by file, in order."""

import os
import re
import sys
import threading
import time
from pathlib import Path

import pytest

import headrace
from headrace import Consumer, Producer, TopicPartition
from headrace.buffers import implementation
from headrace.net.thread import loop_thread
from headrace.testing import EmbeddedBroker

PAGE = (Path(__file__).parents[4] / "ARCHITECTURE.md").read_text()
PACKAGE = f"{os.path.dirname(headrace.__file__)}/"
QUIET_S = 0.3
"""Longer than what goes on behind a record."""
LARGE = b"y" * 20_000
"""A record that the loop sends, and has to receive: smaller ones, that come alone, are left to other threads."""
ATTEMPTS = 5
"""Timers of other clients of this process run on the same loop: a trace may have caught one."""
ASIDE = {"interpreter.py", "slotted.py"}
"""Take locks; compile a class when it is used first."""

pytestmark = pytest.mark.skipif(implementation == "plain", reason="the plain twin takes another way")


def told(which):
    """The files of one table of the page."""
    text = PAGE[PAGE.index(f"**{which}**"):]
    return re.findall(r"^\| \d+ \| `([\w/]+\.py)` \|", text[:text.index("\n\n", text.index("| 1 |"))], re.M)


class Trace:
    """The functions of the package that the loop's thread and this one enter, in order."""

    def __init__(self):
        self.entered = []

    def __call__(self, frame, event, _argument):
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(PACKAGE):
            self.entered.append((name.removeprefix(PACKAGE), frame.f_code.co_qualname))

    def on_the_loop(self, begin):
        switched = threading.Event()

        def switch():
            sys.setprofile(self if begin else None)
            switched.set()

        loop_thread().call_soon(switch)
        assert switched.wait(30)

    def here(self, action):
        """Trace a call on this thread."""
        sys.setprofile(self)
        try:
            return action()
        finally:
            sys.setprofile(None)

    def at(self, name, first=0):
        """Where a function is entered next."""
        return next(index for index in range(first, len(self.entered)) if self.entered[index][1] == name)


def shown(follow, expected):
    """The first trace that is as expected, else the last one."""
    for _ in range(ATTEMPTS):
        found = follow()
        if found == expected:
            break
    return found


def files(entered):
    return [name for name in dict.fromkeys(name for name, _ in entered) if name not in ASIDE]


@pytest.fixture
def servers():
    with EmbeddedBroker() as broker:
        yield broker.bootstrap_servers


def test_the_way_out_and_the_way_of_the_report_are_those_of_the_page(servers):
    with Producer({"bootstrap.servers": servers, "linger.ms": 1}) as producer:
        for _ in range(20):
            producer.produce("t", LARGE, partition=0)
            producer.flush()

        def follow():
            trace, reports = Trace(), []
            time.sleep(QUIET_S)
            trace.on_the_loop(True)
            trace.entered.clear()
            trace.here(lambda: producer.produce(
                "t", LARGE, partition=0, callback=lambda *told: reports.append(told[0])))
            time.sleep(QUIET_S)
            trace.here(lambda: producer.poll(0))
            trace.on_the_loop(False)
            assert reports == [None]
            written = trace.at("FrameWriter.write")
            return (files(trace.entered[:written + 1]),
                    files(trace.entered[trace.at("Connection.get_buffer", written):]))

        expected = told("out"), told("report")
        assert shown(follow, expected) == expected


def test_the_way_back_is_that_of_the_page(servers):
    with (
        Producer({"bootstrap.servers": servers, "linger.ms": 0}) as producer,
        Consumer({"bootstrap.servers": servers, "group.id": "g", "enable.auto.commit": False,
                  "fetch.wait.max.ms": 10_000}) as consumer,
    ):
        for _ in range(20):
            producer.produce("t", b"x", partition=0)
        producer.flush()
        consumer.assign([TopicPartition("t", 0, 0)])
        for _ in range(20):
            assert consumer.poll(30).error() is None

        def follow():
            trace = Trace()
            time.sleep(QUIET_S)
            trace.on_the_loop(True)
            trace.entered.clear()
            producer.produce("t", LARGE, partition=0)
            producer.flush()
            time.sleep(QUIET_S)
            assert trace.here(lambda: consumer.poll(30)).value() == LARGE
            trace.on_the_loop(False)
            asked = trace.at("Fetcher.on_reply")
            begun = max(index for index in range(asked) if trace.entered[index][1] == "Connection.get_buffer")
            stepped = trace.at("Fetcher.deadline", asked)
            return files((*trace.entered[begun:stepped], *trace.entered[trace.at("Consumer._poll", stepped):]))

        expected = told("back")
        assert shown(follow, expected) == expected
