"""An embedded broker with its registry, and the command line at it."""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from headrace import Producer
from headrace.cli import main
from headrace.testing import EmbeddedBroker


class Ended(NamedTuple):
    """What a command said, and its exit status."""

    status: int
    out: str
    err: str

    @property
    def rows(self) -> Any:
        """What `-o json` printed."""
        return json.loads(self.out)


Run = Callable[..., Ended]


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(registry=True) as made:
        yield made


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: object, broker: EmbeddedBroker) -> None:
    for name in ("HEADRACE_PROFILE", "HEADRACE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HEADRACE_BOOTSTRAP_SERVERS", broker.bootstrap_servers)
    monkeypatch.setenv("HEADRACE_SCHEMA_REGISTRY_URL", broker.registry_url)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command."""
    def run_it(*argv: str) -> Ended:
        try:
            status = main(list(argv))
        except SystemExit as left:
            status = int(str(left.code))
        return Ended(status, *capsys.readouterr())

    return run_it


def fill(broker: EmbeddedBroker, topic: str, count: int, partition: int = 0) -> None:
    """Write records into a partition, with timestamps 1000, 1001 and so on."""
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        for number in range(count):
            producer.produce(topic, str(number), partition=partition, timestamp=1000 + number)
