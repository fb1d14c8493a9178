"""Serializers, the producers that use them, and their errors: the same as confluent_kafka's."""

import asyncio
import inspect
from collections.abc import Iterator

import confluent_kafka
import pytest

import headrace
from headrace.testing import EmbeddedBroker
from tests.support.same_as_confluent import QUIET, outcome, same


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"one": 1}) as made:
        yield made


def by_name(cases):
    return pytest.mark.parametrize("case", list(cases.values()), ids=list(cases))


def error_of(kafka, call):
    """Class, code, name, cause and bases of what is raised."""
    try:
        return call()
    except kafka.KafkaException as error:
        first = error.args[0]
        told = (first.code(), first.str(), error.code, error.name) if isinstance(first, kafka.KafkaError) else first
        return type(error).__name__, told, type(getattr(error, "exception", None)).__name__


@by_name({
    "str": lambda s: (s.StringSerializer()("värld"), s.StringSerializer("latin-1")("é", None),
                      s.StringSerializer()(None)),
    "str back": lambda s: (s.StringDeserializer()("värld".encode()), s.StringDeserializer()(None),
                           s.StringSerializer().codec),
    "int": lambda s: [s.IntegerSerializer()(n) for n in (0, 1, -1, 2**31 - 1, -(2**31), None)],
    "int back": lambda s: [s.IntegerDeserializer()(b) for b in (b"\0\0\0\x07", b"\xff\xff\xff\xff", None)],
    "double": lambda s: [s.DoubleSerializer()(n) for n in (0.0, 1.5, -1, None)],
    "double back": lambda s: [s.DoubleDeserializer()(b) for b in (b"\x3f\xf8\0\0\0\0\0\0", None)],
    "base classes": lambda s: [issubclass(getattr(s, f"{kind}{base}"), getattr(s, base))
                               for kind in ("String", "Integer", "Double") for base in ("Serializer", "Deserializer")],
    "fields": lambda s: [(str(f), f == f.value, f.name) for f in s.MessageField],
    "context": lambda s: (lambda c: (c.topic, c.field, c.headers))(s.SerializationContext("t", s.MessageField.KEY)),
    "context with headers": lambda s: s.SerializationContext("t", s.MessageField.VALUE, [("a", b"b")]).headers,
    "defaults": lambda s: (s.Serializer().close(), s.Deserializer().set_cluster_id_resolver(print)),
})
def test_serializers(case):
    same(lambda kafka: case(kafka.serialization))


@by_name({
    "too large an int": lambda s: s.IntegerSerializer()(2**31), "no int": lambda s: s.IntegerSerializer()("1"),
    "too few bytes": lambda s: s.IntegerDeserializer()(b"1"), "no float": lambda s: s.DoubleSerializer()("1"),
    "too many bytes": lambda s: s.DoubleDeserializer()(b"123456789"),
    "text out of its codec": lambda s: s.StringSerializer("ascii")("é"),
    "no UTF-8": lambda s: s.StringDeserializer()(b"\xff"),
})
def test_what_cannot_be_converted_is_a_serialization_error(case):
    def told(kafka):
        return error_of(kafka, lambda: case(kafka.serialization))

    assert same(told)[0] == "SerializationError"


@by_name({
    "base": lambda s: s.Serializer()(1), "deserializer": lambda s: s.Deserializer()(b""),
    "builder": lambda s: s.SerializerBuilder().build({}, True),
    "other": lambda s: s.DeserializerBuilder().build({}, True),
})
def test_base_classes_do_nothing_themselves(case):
    for kafka in (confluent_kafka, headrace):
        with pytest.raises(NotImplementedError):
            case(kafka.serialization)


@by_name({
    "consume": lambda k: k.error.ConsumeError(k.KafkaError(3, "y"), ValueError("x"), k.Message("t", value=b"v")),
    "produce": lambda k: k.error.ProduceError(k.KafkaError(3)),
    "key out": lambda k: k.error.KeySerializationError(ValueError("x")),
    "value out": lambda k: k.error.ValueSerializationError(ValueError("x")),
    "key in": lambda k: k.error.KeyDeserializationError(ValueError("x"), k.Message("t", value=b"v")),
    "value in": lambda k: k.error.ValueDeserializationError(exception=ValueError("x"),
                                                         kafka_message=k.Message("t", value=b"v")),
    "nothing": lambda k: k.error.KeySerializationError(),
})
def test_errors_with_a_cause(case):
    def made(kafka):
        error = case(kafka)
        return (error.code, error.name, error.args[0].str() if error.exception else "", str(error.exception),
                error.kafka_message and error.kafka_message.topic(), isinstance(error, kafka.KafkaException),
                isinstance(error, kafka.serialization.SerializationError), isinstance(error, kafka.error.ProduceError),
                isinstance(error, kafka.error.ConsumeError))

    same(made)


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


# asyncio


def test_the_asyncio_producers_take_the_same_arguments():
    for name in ("AIOProducer", "AsyncSerializingProducer"):
        theirs = {method for method in dir(getattr(confluent_kafka.aio, name)) if not method.startswith("_")}
        assert theirs <= set(dir(getattr(headrace.aio, name)))
    ours, theirs = (inspect.signature(kafka.aio.AIOProducer).parameters for kafka in (headrace, confluent_kafka))
    assert [(p.name, p.default) for p in ours.values()] == [(p.name, p.default) for p in theirs.values()]


def test_under_asyncio_a_record_is_a_future_of_its_message(broker):
    async def sent(kafka):
        async with kafka.aio.AIOProducer({"bootstrap.servers": broker.bootstrap_servers, "logger": QUIET},
                                         max_workers=2, batch_size=1, buffer_timeout=0.1) as producer:
            delivery = await producer.produce("one", value=b"v", key="k", partition=0)
            message = await delivery
            return (message.topic(), message.partition(), message.key(), message.value(), message.error(),
                    message.timestamp()[0], await producer.flush(timeout=5), len(producer),
                    type(await producer.cluster_id(5)).__name__, await producer.set_sasl_credentials("u", "p"),
                    list((await producer.list_topics("one", timeout=5)).topics), await producer.purge())

    same(lambda kafka: asyncio.run(sent(kafka)))


def test_under_asyncio_a_record_that_cannot_be_sent_is_a_future_that_fails_and_hurts_no_other(broker):
    async def sent(kafka):
        async with kafka.aio.AIOProducer({"bootstrap.servers": broker.bootstrap_servers, "logger": QUIET,
                                          "message.max.bytes": 2000}, max_workers=2, buffer_timeout=0) as producer:
            deliveries = [await producer.produce("one", value=b"v", partition=0),
                          await producer.produce("one", value=b"x" * 10_000, partition=0),
                          await producer.produce("one", value=b"v", partition=5),
                          await producer.produce("one", value=b"v", partition=0)]
            await producer.flush()
            return [told.args[0].code() if isinstance(told, BaseException) else told.value()
                    for told in await asyncio.gather(*deliveries, return_exceptions=True)]

    assert same(lambda kafka: asyncio.run(sent(kafka))) == [
        b"v", headrace.KafkaError.MSG_SIZE_TOO_LARGE, headrace.KafkaError._UNKNOWN_PARTITION, b"v"]


@pytest.mark.parametrize("properties", [{}, {"delivery.report.only.error": True}, {"interceptor.classes": []}])
def test_under_asyncio_the_callback_of_a_record_that_cannot_be_sent_is_called_as_well(broker, properties):
    async def main():
        told = []
        async with headrace.aio.AIOProducer(
                {"bootstrap.servers": broker.bootstrap_servers, "message.max.bytes": 2000, **properties}) as producer:
            await (await producer.produce("one", b"v"))
            delivery = await producer.produce(
                "one", b"x" * 2001, b"k", 0, lambda error, message: told.append((error, message.key())), 5, {"h": "1"})
            with pytest.raises(headrace.KafkaException) as refused:
                await delivery
            assert told == [(headrace.KafkaError.MSG_SIZE_TOO_LARGE, b"k")]
            assert refused.value.error == headrace.KafkaError.MSG_SIZE_TOO_LARGE
            for wrong in ({"topic": 5}, {"topic": "one", "value": 5}, {"topic": "one", "headers": 5}):
                with pytest.raises(TypeError):
                    await producer.produce(**wrong)
            assert await producer.flush(5) == 0

    asyncio.run(main())


def test_under_asyncio_poll_waits_for_callbacks_no_longer_than_it_may(broker):
    async def main():
        got = []
        async with headrace.aio.AIOProducer({"bootstrap.servers": broker.bootstrap_servers,
                                             "on_delivery": lambda e, m: got.append(e)}) as producer:
            assert await producer.poll(0) == 0
            assert await producer.poll(0.01) == 0
            await producer.produce("one", b"v")
            assert await producer.poll(10) == 1
            assert got == [None]
        with pytest.raises(RuntimeError, match="closed"):
            await producer.poll(0)

    asyncio.run(main())


def test_under_asyncio_objects_are_serialized(broker):
    async def sent(kafka):
        async def slowly(obj, context):
            await asyncio.sleep(0)
            return f"{obj} {context.field}".encode()

        producer = await kafka.aio.AsyncSerializingProducer({
            "bootstrap.servers": broker.bootstrap_servers, "logger": QUIET, "value.serializer": slowly,
            "key.serializer": kafka.serialization.StringSerializer()})
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
            "bootstrap.servers": broker.bootstrap_servers, "logger": QUIET, "value.serializer.builder": Builder()})
        message = await (await producer.produce("one", b"k", 7))
        await producer.close()
        return message.value(), log

    assert same(lambda kafka: asyncio.run(sent(kafka))) == (b"made", [False, "close"])


def test_an_asyncio_producer_of_objects_that_was_not_awaited_says_so():
    async def main():
        with pytest.raises(RuntimeError, match="must be awaited"):
            await headrace.aio.AsyncSerializingProducer({}).produce("one")

    asyncio.run(main())
