"""`set_sasl_credentials()` changes what the connections that come after it say."""

import asyncio

import pytest

from headrace import Producer
from headrace.aio import AIOProducer
from headrace.errors import ConfigError
from headrace.net.auth.mechanisms import mechanism_source
from headrace.types.records import NodeAddress

CONF = {"bootstrap.servers": "127.0.0.1:1", "security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN",
        "sasl.username": "old", "sasl.password": "secret", "error_cb": lambda error: None}


def first_words(source):
    return asyncio.run(source(NodeAddress(1, "localhost", 1))).first()


def test_new_connections_use_the_new_user_and_password():
    producer = Producer(CONF)
    source = mechanism_source(producer._engine.config, lambda: 0.0, lambda: 0.0)
    assert first_words(source) == b"\0old\0secret"
    producer.set_sasl_credentials("new", "other")
    assert first_words(source) == b"\0new\0other"
    for username, password in (("", "x"), ("x", "\0")):
        with pytest.raises(ConfigError):
            producer.set_sasl_credentials(username, password)
    assert first_words(source) == b"\0new\0other"
    producer.close()
    with pytest.raises(RuntimeError, match="closed"):
        producer.set_sasl_credentials("new", "other")


def test_under_asyncio_as_well():
    async def main():
        producer = AIOProducer(CONF)
        await producer.set_sasl_credentials("new", "other")
        source = mechanism_source(producer._engine.config, lambda: 0.0, lambda: 0.0)
        words = (await source(NodeAddress(1, "localhost", 1))).first()
        await producer.close()
        return words

    assert asyncio.run(main()) == b"\0new\0other"
