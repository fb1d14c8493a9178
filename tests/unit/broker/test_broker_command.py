"""`headrace broker` and the ways to embed one."""

import errno
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from headrace.cli import broker as command
from headrace.testing import Action, EmbeddedBroker, Fault
from headrace.wire.messages.cluster.metadata import MetadataRequest
from headrace.wire.messages.producer.produce import ProduceRequest
from tests.support.raw_client import RawClient, batch_of

pytest_plugins = ["pytester"]


def test_it_says_where_it_listens_and_stops_cleanly_on_ctrl_c(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace.cli", "broker", "--listen", "127.0.0.1:0", "--nodes", "2", "--data",
         str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    servers = process.stdout.readline().strip().removeprefix("bootstrap.servers=")
    with RawClient(servers, 2) as client:
        assert [each.node_id for each in client.call(MetadataRequest(topics=None)).brokers] == [1, 2]
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
    assert process.communicate()[1] == ""


def test_it_says_where_its_registry_listens() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace.cli", "broker", "--listen", "127.0.0.1:0", "--registry", "127.0.0.1:0"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("bootstrap.servers=127.0.0.1:")
    address = process.stdout.readline().strip().removeprefix("schema.registry.url=")
    with urllib.request.urlopen(f"{address}/subjects", timeout=10) as answer:
        assert answer.read() == b"[]"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=10)[1] == ""
    assert process.returncode == 0


def test_a_taken_port_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert command.main(["--listen", f"127.0.0.1:{port}"]) == 1
    text = capsys.readouterr().err
    assert text == f"headrace broker: cannot listen on 127.0.0.1:{port}: {os.strerror(errno.EADDRINUSE)}\n"


@pytest.mark.parametrize(("arguments", "text"), [
    (["--listen", "9092"], "not HOST:PORT"),
    (["--listen", "localhost:99999"], "not HOST:PORT"),
    (["--listen", "127.0.0.1:65534", "--nodes", "3"], "there is no port 65536"),
    (["--nodes", "0"], "not a number of at least 1"),
    (["--listen", "0.0.0.0:9092"], "--advertise"),
])
def test_wrong_arguments_say_what_is_wrong(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        command.main(arguments)
    assert caught.value.code == 2
    assert text in capsys.readouterr().err


def test_the_pytest_fixture_is_a_broker_of_its_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        def test_fixture(headrace_broker):
            headrace_broker.create_topic("t", 2)
            assert headrace_broker.end_offsets("t") == [0, 0]
    """)
    pytester.runpytest("-p", "no:randomly").assert_outcomes(passed=1)


def test_the_pytest_fixture_of_a_registry_has_one(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import urllib.request

        def test_fixture(headrace_registry):
            with urllib.request.urlopen(f"{headrace_registry.registry_url}/schemas/types", timeout=10) as answer:
                assert answer.read() == b'["JSON","PROTOBUF","AVRO"]'
            assert headrace_registry.bootstrap_servers
    """)
    pytester.runpytest("-p", "no:randomly").assert_outcomes(passed=1)


def test_stopping_twice_and_stopping_with_clients_connected_is_fine() -> None:
    broker = EmbeddedBroker(topics={"t": 1})
    broker.start()
    with RawClient(broker) as client:
        client.call(MetadataRequest(topics=None))
        broker.stop()
        assert client.is_closed()
    broker.stop()


def test_a_leader_moves_at_a_chosen_request(three_nodes: EmbeddedBroker) -> None:
    three_nodes.create_topic("t")
    three_nodes.add_fault(Fault(action=Action.PASS, request=ProduceRequest, after=2,
                                effect=lambda cluster: cluster.move_leader("t", 0, 2)))
    with RawClient(three_nodes, 1) as client:
        codes = [client.produce("t", 0, batch_of([b"x"])).error_code for _ in range(4)]
    assert codes == [0, 0, 6, 6]
