"""Ctrl-C and SIGTERM while the main thread is busy: answered at once, counted, and raised only when it is asked for."""

import os
import signal
import threading
import time

import pytest

from headrace.cli.shared.interruptions import Interruptions


@pytest.fixture
def answers():
    return []


@pytest.fixture
def interruptions(answers):
    told = threading.Condition()

    def answer(count):
        with told:
            answers.append((count, time.monotonic()))
            told.notify_all()

    with Interruptions(answer) as interruptions:
        interruptions.patient = True
        interruptions.wait = lambda count: _wait(told, answers, count)
        yield interruptions


def _wait(told, answers, count):
    with told:
        assert told.wait_for(lambda: len(answers) >= count, timeout=30)


def test_a_signal_is_answered_on_another_thread_while_the_main_one_works(interruptions, answers):
    sent_s = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)
    while not answers:  # busy: the main thread waits for nothing
        assert time.monotonic() < sent_s + 30
    assert answers[0][0] == 1
    assert (interruptions.count, interruptions.name) == (1, "Ctrl-C")


def test_each_is_counted_and_the_first_gives_the_name(interruptions, answers):
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGINT)
    interruptions.wait(2)
    assert [count for count, _ in answers] == [1, 2]
    assert interruptions.name == "SIGTERM"


def test_the_third_one_is_raised_for_then_nobody_wants_to_wait(interruptions):
    for _ in range(2):
        os.kill(os.getpid(), signal.SIGINT)
    interruptions.wait(2)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_while_nothing_runs_the_second_one_is_raised(interruptions):
    interruptions.patient = False
    signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_signals_that_another_library_took_are_taken_back(interruptions):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    interruptions.arm()
    os.kill(os.getpid(), signal.SIGINT)
    interruptions.wait(1)


def test_in_the_end_signals_go_where_they_went_before():
    before = signal.getsignal(signal.SIGINT)
    with Interruptions(lambda count: None):
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before
