"""The brokers of `python -m tests.campaigns.leaks`, in a process of their own so that what they keep is not counted.

Prints one line of JSON: addresses and the certificate of the one that speaks TLS. Ends with its standard input.
"""

from __future__ import annotations

import json
import ssl
import sys

import trustme

from headrace import Producer
from headrace.testing import BrokerSettings, EmbeddedBroker
from tests.support.threaded_broker import TOPIC, ThreadedBroker

FULL = "full"
"""A topic with a record."""


def main() -> None:
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    settings = BrokerSettings(consumer_heartbeat_interval_ms=10)  # members hear soon of each other
    with EmbeddedBroker(topics={TOPIC: 1, FULL: 1}, settings=settings) as broker, ThreadedBroker(tls=tls) as secure:
        with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            producer.produce(FULL, b"value")
        print(json.dumps({"plain": broker.bootstrap_servers, "secure": secure.bootstrap_servers,
                          "pem": authority.cert_pem.bytes().decode()}), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
