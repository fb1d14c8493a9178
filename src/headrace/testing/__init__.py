"""For tests: an embedded broker as a context manager, and (as a pytest plugin) as the fixtures
`headrace_broker` and `headrace_registry`.

with EmbeddedBroker(topics={"orders": 4}) as broker:
producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
"""

from headrace.broker.faults import Action, Fault
from headrace.broker.settings import BrokerSettings
from headrace.testing.embedded import EmbeddedBroker

__all__ = ["Action", "BrokerSettings", "EmbeddedBroker", "Fault"]
