"""For tests: an embedded broker as a context manager, and (as a pytest plugin) as the fixtures
`headrace_broker` and `headrace_registry`; a topic, what was sent, the traffic and faults as fixtures as well.

with EmbeddedBroker(topics={"orders": 4}) as broker:
producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
"""

from headrace.broker.faults import Action, Fault
from headrace.broker.settings import BrokerSettings
from headrace.testing.embedded import EmbeddedBroker
from headrace.testing.sent_records import sent_records
from headrace.testing.wire_tap import FaultInjector, RecordedRequest, recorded_traffic

__all__ = ["Action", "BrokerSettings", "EmbeddedBroker", "Fault", "FaultInjector", "RecordedRequest",
           "recorded_traffic", "sent_records"]
