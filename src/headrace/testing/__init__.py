"""For tests: an embedded broker as a context manager, and (as a pytest plugin) as the fixtures
`headrace_broker` and `headrace_registry`; a topic, what was sent, the traffic and faults as fixtures as well.

with EmbeddedBroker(topics={"orders": 4}) as broker:
producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

Names load on first use: pytest imports the plugin in every run where the package is installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.broker.faults import Action, Fault
    from headrace.broker.settings import BrokerSettings
    from headrace.testing.embedded import EmbeddedBroker
    from headrace.testing.sent_records import sent_records
    from headrace.testing.wire_tap import FaultInjector, RecordedRequest, recorded_traffic

_HOME_OF = {
    "Action": "headrace.broker.faults",
    "BrokerSettings": "headrace.broker.settings",
    "EmbeddedBroker": "headrace.testing.embedded",
    "Fault": "headrace.broker.faults",
    "FaultInjector": "headrace.testing.wire_tap",
    "RecordedRequest": "headrace.testing.wire_tap",
    "recorded_traffic": "headrace.testing.wire_tap",
    "sent_records": "headrace.testing.sent_records",
}

__all__ = ["Action", "BrokerSettings", "EmbeddedBroker", "Fault", "FaultInjector", "RecordedRequest",
           "recorded_traffic", "sent_records"]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'headrace.testing' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value
