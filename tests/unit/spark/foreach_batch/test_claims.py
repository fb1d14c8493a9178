"""Which attempt may write."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from headrace.errors import KafkaException
from headrace.spark.foreach_batch.claims import Claims, ClaimsServer


def test_the_first_attempt_gets_the_work_and_no_other_does() -> None:
    with ClaimsServer("127.0.0.1") as server:
        claims = server.claims
        claims.take(0, 3, 17)
        with pytest.raises(KafkaException, match="task 3 may not write: another attempt may have written"):
            claims.take(0, 3, 18)


def test_an_attempt_may_ask_again_after_a_lost_answer() -> None:
    with ClaimsServer("127.0.0.1") as server:
        server.claims.take(0, 3, 17)
        server.claims.take(0, 3, 17)


def test_each_write_and_each_task_is_a_piece_of_work_of_its_own() -> None:
    with ClaimsServer("127.0.0.1") as server:
        server.claims.take(0, 3, 17)
        server.claims.take(0, 4, 18)
        server.claims.take(1, 3, 19)


def test_of_many_attempts_at_once_exactly_one_gets_the_work() -> None:
    with ClaimsServer("127.0.0.1") as server, ThreadPoolExecutor(16) as pool:
        together = threading.Barrier(16)

        def attempt(number: int) -> int:
            together.wait()
            with suppress(KafkaException):
                server.claims.take(0, 0, number)
                return 1
            return 0

        assert sum(pool.map(attempt, range(16))) == 1


def test_a_task_of_an_earlier_transaction_is_refused() -> None:
    with ClaimsServer("127.0.0.1") as first:
        old = first.claims
    with ClaimsServer("127.0.0.1") as server:
        with pytest.raises(KafkaException, match="its transaction is over"):
            Claims("127.0.0.1", server.claims.port, old.token).take(0, 0, 1)
        server.claims.take(0, 0, 2)


def test_a_driver_that_is_gone_is_named() -> None:
    with ClaimsServer("127.0.0.1") as server:
        claims = server.claims
    with pytest.raises(KafkaException, match=rf"the driver does not answer at 127.0.0.1:{claims.port}"):
        claims.take(0, 0, 1)


def test_reports_of_a_write_are_heard_from_those_who_have_taken_its_work() -> None:
    with ClaimsServer("127.0.0.1") as server:
        for task in (0, 1):
            server.claims.take(5, task, 10 + task)
        server.claims.take(6, 0, 99)
        server.claims.report(5, 0, 10, {("a", 0): 3, ("b", 7): 1})
        with pytest.raises(KafkaException, match=r"tasks \[1\] have not reported"):
            server.reports(5)
        with pytest.raises(KafkaException, match="task 1 may not write"):
            server.claims.report(5, 1, 10, {})
        server.claims.report(5, 1, 11, {})
        assert server.reports(5) == [{("a", 0): 3, ("b", 7): 1}, {}]


def test_a_report_of_thousands_of_partitions_is_heard() -> None:
    with ClaimsServer("127.0.0.1") as server:
        written = {("a-topic-with-a-long-name", number): number for number in range(5000)}
        server.claims.take(0, 0, 1)
        server.claims.report(0, 0, 1, written)
        assert server.reports(0) == [written]


@pytest.mark.parametrize("line", [b"", b"\n", b"{}\n", b"[]\n", b"null\n", b'{"token": 1}\n', b"x" * 5000,
    b'{"token": "x", "work": [0, 0], "attempt": 1}\n', b'{"token": "x", "work": [0], "attempt": 1, "written": 3}\n',
])
def test_what_is_no_question_gets_no_work_and_does_no_harm(line: bytes) -> None:
    with ClaimsServer("127.0.0.1") as server:
        with socket.create_connection(("127.0.0.1", server.claims.port), 10) as stranger:
            stranger.sendall(line)
            stranger.shutdown(socket.SHUT_WR)
            with suppress(ConnectionError):
                assert stranger.recv(100) == b"unknown\n"
        server.claims.take(0, 0, 1)


def test_a_silent_connection_keeps_nobody_waiting() -> None:
    with ClaimsServer("127.0.0.1") as server, socket.create_connection(("127.0.0.1", server.claims.port), 10):
        server.claims.take(0, 0, 1)


def test_the_token_does_not_show() -> None:
    with ClaimsServer("127.0.0.1") as server:
        assert server.claims.token not in repr(server.claims)


def test_nothing_is_left_when_the_server_is_closed() -> None:
    with ClaimsServer("127.0.0.1") as server:
        assert "headrace claims" in {thread.name for thread in threading.enumerate()}
    assert "headrace claims" not in {thread.name for thread in threading.enumerate()}
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), 10)
