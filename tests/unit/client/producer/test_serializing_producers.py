"""`SerializingProducer` and `AsyncSerializingProducer`: the same as confluent_kafka's."""

import asyncio
import time
from collections.abc import Iterator

import pytest

import headrace
from headrace.aio import AsyncSerializingProducer
from headrace.serialization import MessageField
from headrace.testing import EmbeddedBroker
from tests.support.same_as_confluent import QUIET, by_name, error_of, outcome, same


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"one": 1, "four": 4}) as made:
        yield made


@pytest.fixture
def conf(broker):
    return {"bootstrap.servers": broker.bootstrap_servers, "logger": QUIET}


def test_objects_are_serialized_and_serializers_told_what_for(broker):
    def sent(kafka):
        seen, got = [], []

        def upper(obj, context):
            seen.append((obj, context.topic, str(context.field), context.headers))
            return obj.upper().encode() if obj else None

        producer = kafka.SerializingProducer({
            "bootstrap.servers": broker.bootstrap_servers, "logger": QUIET, "key.serializer": upper,
            "value.serializer": kafka.serialization.IntegerSerializer()})
        def report(error, message):
            got.append((error, message.key(), message.value()))

        returned = producer.produce("one", "k", 7, 0, report, 5, {"a": "b"})
        producer.produce(topic="one", key=None, value=None, on_delivery=report)
        return returned, producer.flush(10), seen, got, producer.close()

    assert same(sent)[3] == [(None, b"K", b"\0\0\0\x07"), (None, None, None)]


@pytest.mark.parametrize("face", [headrace.SerializingProducer, AsyncSerializingProducer])
def test_a_value_is_serialized_as_one_and_what_is_not_said_is_left_to_the_producer(conf, face):
    fields, messages, began_ms = [], [], time.time() * 1000 - 60_000

    def serializer(obj, context):
        fields.append(context.field)
        return obj.encode()

    properties = {**conf, "key.serializer": serializer, "value.serializer": serializer, "partitioner": "random"}

    def blocking():
        with face(properties) as producer:
            for _ in range(40):
                producer.produce("four", "k", "v", on_delivery=lambda error, message: messages.append(message))

    async def awaited():
        async with face(properties) as producer:
            messages.extend([await (await producer.produce("four", "k", "v")) for _ in range(40)])

    asyncio.run(awaited()) if face is AsyncSerializingProducer else blocking()
    assert fields == [MessageField.KEY, MessageField.VALUE] * 40
    assert len({message.partition() for message in messages}) > 1
    assert all(message.timestamp()[1] > began_ms for message in messages)


def test_without_serializers_bytes_and_text_are_sent_as_they_are(broker):
    def sent(kafka):
        got = []
        producer = kafka.SerializingProducer({"bootstrap.servers": broker.bootstrap_servers, "logger": QUIET})
        producer.produce("one", b"k", "v", on_delivery=lambda e, m: got.append((m.key(), m.value())))
        return producer.flush(10), got, producer.close()

    assert same(sent) == (0, [(b"k", b"v")], True)


@pytest.mark.parametrize("field", ["key", "value"])
def test_what_a_serializer_raises_is_wrapped_and_nothing_is_queued(field, broker):
    def refused(kafka):
        producer = kafka.SerializingProducer({
            "bootstrap.servers": broker.bootstrap_servers, "logger": QUIET,
            f"{field}.serializer": kafka.serialization.IntegerSerializer()})
        told = error_of(kafka, lambda: producer.produce("one", key="k", value="v"))
        return told, len(producer), producer.close()

    assert same(refused)[0][0] == f"{field.title()}SerializationError"


def test_a_closed_producer_and_a_wrong_topic_call_no_serializer(broker):
    def refused(kafka):
        called = []
        producer = kafka.SerializingProducer({
            "bootstrap.servers": broker.bootstrap_servers, "logger": QUIET, "value.serializer": called.append})
        said = [outcome(lambda _: producer.produce(5, value=1), kafka), producer.close(),
                outcome(lambda _: producer.produce("one", value=1), kafka)]
        return said, called

    assert same(refused) == (["TypeError", True, "RuntimeError"], [])


def test_a_delivery_callback_may_send_more_while_the_producer_is_being_closed(broker):
    told = []
    producer = headrace.SerializingProducer({"bootstrap.servers": broker.bootstrap_servers, "logger": QUIET})

    def again(error, message):
        told.append((error, message.value()))
        if len(told) == 1:
            producer.produce("t", value=b"second", on_delivery=again)

    producer.produce("t", value=b"first", on_delivery=again)
    assert producer.close()
    assert told == [(None, b"first"), (None, b"second")]


def builder_of(kafka, log):
    class Made(kafka.serialization.Serializer):
        def __call__(self, obj, ctx=None):
            return f"{obj}!".encode()

        def set_cluster_id_resolver(self, resolver):
            log.append("resolver")

        def close(self):
            log.append("close")

    class Builder(kafka.serialization.SerializerBuilder):
        def build(self, conf, is_key):
            log.append((is_key, conf.pop("mine"), "key.serializer.builder" in conf))
            return Made(), conf

    return Builder()


def test_builders_take_their_properties_and_what_they_made_is_closed_with_the_producer(broker):
    def sent(kafka):
        log, got = [], []
        with kafka.SerializingProducer({
                "bootstrap.servers": broker.bootstrap_servers, "logger": QUIET, "mine": 5,
                "key.serializer.builder": builder_of(kafka, log)}) as producer:
            producer.produce("one", "k", b"v", on_delivery=lambda e, m: got.append(m.key()))
            producer.flush(10)
        producer.close()
        return got, log

    assert same(sent) == ([b"k!"], [(True, 5, False), "resolver", "close"])


@by_name({
    "both": lambda k: k.SerializingProducer({"key.serializer": print, "key.serializer.builder": builder_of(k, [])}),
    "a bad builder": lambda k: k.SerializingProducer(
        {"key.serializer.builder": type("B", (), {"build": lambda self, conf, is_key: 5})()}),
})
def test_wrong_serializers_are_value_errors(case):
    assert same(case) == "ValueError"


def test_under_asyncio_objects_are_serialized(broker):
    async def sent(kafka):
        async def slowly(obj, context):
            await asyncio.sleep(0)
            return f"{obj} {context.field}".encode()

        producer = await kafka.aio.AsyncSerializingProducer({
            "bootstrap.servers": broker.bootstrap_servers, "logger": QUIET, "value.serializer": slowly,
            "key.serializer": kafka.serialization.StringSerializer()}, buffer_timeout=0.05)
        message = await (await producer.produce("one", "k", 7))
        refused = []
        for key, value in ((5, 1),):
            try:
                await producer.produce("one", key, value)
            except kafka.error.KeySerializationError as error:
                refused.append(error.code)
        try:
            await producer.produce(None, "k", 7)
        except TypeError:
            refused.append("TypeError")
        await producer.close()
        try:
            await producer.produce("one", "k", 7)
        except RuntimeError:
            refused.append("RuntimeError")
        return message.key(), message.value(), refused

    assert same(lambda kafka: asyncio.run(sent(kafka))) == (
        b"k", b"7 value", [headrace.KafkaError._KEY_SERIALIZATION, "TypeError", "RuntimeError"])


def test_under_asyncio_builders_may_be_coroutines_and_what_they_made_is_closed(broker):
    async def sent(kafka):
        log = []

        class Made:
            async def __call__(self, obj, ctx=None):
                return b"made"

            def set_cluster_id_resolver(self, resolver):
                pass  # confluent_kafka gives one to its own serializers only

            async def close(self):
                log.append("close")

        class Builder:
            async def build(self, conf, is_key):
                log.append(is_key)
                return Made(), conf

        producer = await kafka.aio.AsyncSerializingProducer({
            "bootstrap.servers": broker.bootstrap_servers, "logger": QUIET, "value.serializer.builder": Builder()},
            buffer_timeout=0.05)
        message = await (await producer.produce("one", b"k", 7))
        await producer.close()
        return message.value(), log

    assert same(lambda kafka: asyncio.run(sent(kafka))) == (b"made", [False, "close"])


def test_an_asyncio_producer_of_objects_that_was_not_awaited_says_so():
    async def main():
        with pytest.raises(RuntimeError, match="must be awaited"):
            await headrace.aio.AsyncSerializingProducer({}).produce("one")

    asyncio.run(main())


def test_serializers_that_builders_made_are_all_closed_even_if_one_raises(conf):
    closed = []

    class Made:
        def __init__(self, name):
            self._name = name

        def __call__(self, obj, context=None):
            return obj

        async def close(self):
            closed.append(self._name)
            raise ValueError(self._name)

    class Builder:
        def __init__(self, name):
            self._name = name

        def build(self, conf, is_key):
            return Made(self._name), conf

    async def main():
        producer = await AsyncSerializingProducer({
            **conf, "key.serializer.builder": Builder("key"), "value.serializer.builder": Builder("value")})
        with pytest.raises(ValueError, match=r"key|value"):
            await producer.close()

    asyncio.run(main())
    assert sorted(closed) == ["key", "value"]
