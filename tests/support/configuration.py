"""On which Kafka the tests of this directory run: its version, its brokers, and how clients come in.

    python -m pytest tests/integration/kafka --kafka 3.9.2 --brokers 3 --listener tls+scram

`tests.integration.kafka.matrix` runs all of them. Without options it is one broker of the newest version without
security.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import pytest

from tools.kafka import NEWEST, KafkaCluster

GENERAL: Final = NEWEST
"""The version most tests run on."""
OLDER: Final = "3.9.2"
"""A version that has no version 2 of transactions."""
LISTENERS: Final = {"plaintext": "PLAINTEXT", "tls+scram": "SASL_SSL", "mtls": "MTLS", "oauthbearer": "OIDC"}
"""Ways in, and the listeners of `tools.kafka` for them. OIDC takes signed tokens, over TLS."""
_SESSION_MS: Final = "3000"


class Configuration(NamedTuple):
    """One row of the matrix.

    Attributes:
        version: of Apache Kafka.
        brokers: how many the shared cluster has.
        listener: a name of `LISTENERS`.
    """

    version: str = GENERAL
    brokers: int = 1
    listener: str = "plaintext"

    def cluster(
        self, version: str = "", brokers: int = 0, properties: Mapping[str, str] | None = None,
        racks: Sequence[str] = (),
    ) -> KafkaCluster:
        """A cluster of this configuration, or of another version or number of brokers; it is not started.

        With racks there is one broker for each of them.
        """
        number = len(racks) or brokers or self.brokers
        # Clients with SASL are asked every few seconds who they are, as elsewhere every few minutes.
        chosen = {"connections.max.reauth.ms": _SESSION_MS, **({"min.insync.replicas": "2"} if number > 2 else {})}
        return KafkaCluster(version or self.version, number, listeners=("SSL",), clients=LISTENERS[self.listener],
                            properties={**chosen, **(properties or {})}, quick=True, racks=racks)


def add_options(parser: pytest.Parser) -> None:
    """Let pytest take the options."""
    group = parser.getgroup("kafka", "real Apache Kafka (tests/integration/kafka)")
    group.addoption("--kafka", choices=(GENERAL, OLDER), help=f"its version; without it {GENERAL}, and some of {OLDER}")
    group.addoption("--brokers", default=1, type=int, choices=(1, 3), help="its brokers (1)")
    group.addoption("--listener", default="plaintext", choices=tuple(LISTENERS), help="how clients come (plaintext)")
    group.addoption("--no-chaos", action="store_true", help="leave out the minutes in which brokers die in turn")


def configuration(config: pytest.Config) -> Configuration:
    """What the options say."""
    version = config.getoption("--kafka", None) or GENERAL
    return Configuration(version, config.getoption("--brokers", 1), config.getoption("--listener", "plaintext"))


def meaningless(item: pytest.Item, config: pytest.Config) -> str | None:
    """Why a test has nothing to say about the chosen configuration; None when it has. All reasons are here."""
    version = config.getoption("--kafka", None)
    if config.getoption("--no-chaos", False) and item.get_closest_marker("chaos"):
        return "chaos, brokers that die in turn for minutes: run it with -m chaos"
    if version is None:
        return None
    parameters: dict[str, Any] = item.callspec.params if isinstance(item, pytest.Function) and hasattr(
        item, "callspec") else {}
    if {parameters.get(name, version) for name in ("site", "secured", "impatient", "version")} != {version}:
        return "given the other version, which has runs of its own"
    if version == OLDER and item.name == "test_a_cluster_changes_its_version_of_transactions_under_a_producer":
        return f"{OLDER} has one version of transactions, there is none to change to"
    if version == OLDER and item.path.name == "test_kafka_consumer_groups.py" and "version" not in parameters:
        return f"{OLDER} has groups that the coordinator plans for as a preview only, which is switched off"
    return None
