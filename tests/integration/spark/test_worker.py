"""What is done to Spark's workers is not done to other processes. In a worker: `test_spark_end_to_end.py`."""

import gc
import socket

from headrace.spark import worker as of_spark


def worker(sock, call):
    """Stands for `pyspark.daemon.worker`, by its name and by that of its argument."""
    return call()


def test_outside_of_spark_s_workers_nothing_happens():
    young = []
    assert not of_spark.acknowledge_at_once()
    assert not of_spark.spare_collections()
    assert any(each is young for each in gc.get_objects())  # what is frozen is not among them


def test_a_function_of_another_module_that_is_called_worker_is_none():
    with socket.socket() as sock:
        assert not worker(sock, of_spark.acknowledge_at_once)


def test_acknowledging_finds_the_connection_and_bears_its_end(monkeypatch):
    monkeypatch.setitem(globals(), "__name__", "pyspark.daemon")
    listening = socket.create_server(("127.0.0.1", 0))
    with listening, socket.create_connection(listening.getsockname()) as sock:
        assert worker(sock, lambda: of_spark.acknowledge_at_once()) is hasattr(socket, "TCP_QUICKACK")
    assert not worker(sock, lambda: of_spark.acknowledge_at_once())
    one, other = socket.socketpair()
    with one, other:
        assert not worker(one, lambda: of_spark.acknowledge_at_once())


def test_collections_are_spared_twice_and_no_more(monkeypatch):
    monkeypatch.setitem(globals(), "__name__", "pyspark.daemon")
    monkeypatch.setattr(of_spark, "_spared", 0)
    try:
        with socket.socket() as sock:
            for _ in range(2):
                imported = [[] for _ in range(1000)]
                assert worker(sock, lambda: of_spark.spare_collections())
                assert gc.get_count()[0] < len(imported)
                assert not any(each is imported for each in gc.get_objects())
            frozen = gc.get_freeze_count()
            kept = [[] for _ in range(1000)]
            assert worker(sock, lambda: of_spark.spare_collections())
            assert gc.get_freeze_count() <= frozen
            assert kept
    finally:
        gc.unfreeze()
