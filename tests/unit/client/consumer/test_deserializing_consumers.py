"""`DeserializingConsumer` and `AsyncDeserializingConsumer`: the same as confluent_kafka's."""

import asyncio
import time
from collections.abc import Iterator

import confluent_kafka
import pytest

import headrace
from headrace.testing import EmbeddedBroker
from tests.support.same_as_confluent import QUIET, by_name, error_of, outcome, same

VALUES = [b"\0\0\0\x07", b"bad", b"\0\0\0\x08", None]


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"numbers": 1}) as made:
        with headrace.Producer({"bootstrap.servers": made.bootstrap_servers}) as producer:
            for value in VALUES:
                producer.produce("numbers", value, "k", headers=[("h", b"x")])
        yield made


@pytest.fixture
def conf(broker):
    return {"bootstrap.servers": broker.bootstrap_servers, "group.id": f"g{time.monotonic_ns()}", "logger": QUIET,
            "auto.offset.reset": "earliest", "enable.auto.commit": False, "fetch.wait.max.ms": 50}


def integers(kafka):
    return {"value.deserializer": kafka.serialization.IntegerDeserializer()}


def reader_of(kafka, conf, offset=0, **more):
    consumer = kafka.DeserializingConsumer({**conf, **more})
    consumer.assign([kafka.TopicPartition("numbers", 0, offset)])
    return consumer


def fields(message):
    return (message.key(), message.value(), message.deserialized_key(), message.deserialized_value(), message.offset(),
            message.topic(), message.error(), message.headers())


def test_keys_and_values_are_deserialized_and_deserializers_told_what_they_get(conf):
    def read(kafka):
        seen = []

        def upper(data, context):
            seen.append((data, context.topic, str(context.field), context.headers))
            return None if data is None else data.decode().upper()

        with reader_of(kafka, conf, **integers(kafka), **{"key.deserializer": upper}) as consumer:
            return fields(consumer.poll(10)), seen

    assert same(read) == (("K", 7, "K", 7, 0, "numbers", None, [("h", b"x")]),
                          [(b"k", "numbers", "key", [("h", b"x")])])


def test_without_deserializers_bytes_come_as_they_are_and_a_tombstone_is_none(conf):
    def read(kafka):
        with reader_of(kafka, conf, 2) as consumer:
            return [fields(consumer.poll(10)) for _ in range(2)], consumer.poll(0)

    assert [value for _, value, *_ in same(read)[0]] == VALUES[2:]


@pytest.mark.parametrize("field", ["key", "value"])
def test_what_a_deserializer_raises_is_wrapped_with_the_message_and_the_next_one_is_read(field, conf):
    def read(kafka):
        def picky(data, context):
            if data in (b"bad", b"k"):
                raise ValueError(f"cannot read {data!r}")
            return data

        with reader_of(kafka, conf, 1, **{f"{field}.deserializer": picky}) as consumer:
            told = error_of(kafka, lambda: consumer.poll(10))
            try:
                consumer.poll(10)
            except kafka.error.KeyDeserializationError as error:
                return told, error.kafka_message.offset(), error.kafka_message.value(), str(error.exception)
            return told, [tp.offset for tp in consumer.position([kafka.TopicPartition("numbers", 0)])]

    assert same(read)[0][0] == f"{field.title()}DeserializationError"


def test_a_key_that_cannot_be_read_leaves_the_value_alone(conf):
    def read(kafka):
        called = []
        with reader_of(kafka, conf, **{"key.deserializer": lambda data, context: 1 / 0,
                                       "value.deserializer": lambda data, context: called.append(data)}) as consumer:
            return error_of(kafka, lambda: consumer.poll(10)), called

    assert same(read)[1] == []


def test_a_message_whose_deserializer_was_interrupted_comes_again(conf):
    def interrupted(data, context):
        raise KeyboardInterrupt

    with reader_of(headrace, conf, 2, **{"value.deserializer": interrupted}) as consumer:
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                consumer.poll(10)
        assert [tp.offset for tp in consumer.position([headrace.TopicPartition("numbers", 0)])] == [2]


def test_an_event_is_a_consume_error_with_the_event(conf):
    def read(kafka):
        with reader_of(kafka, conf, 4, **{"enable.partition.eof": True}) as consumer:
            try:
                consumer.poll(10)
            except kafka.error.ConsumeError as error:
                event = error.kafka_message
                return (type(error).__name__, error.code, error.name, error.exception, event.topic(), event.offset(),
                        isinstance(error, kafka.KafkaException))

    assert same(read)[1] == headrace.KafkaError._PARTITION_EOF


@by_name({
    "consume": lambda c: c.consume(1, 0), "consume by name": lambda c: c.consume(num_messages=1, timeout=0),
    "poll by name": lambda c: c.poll(timeout=0), "poll of what": lambda c: c.poll(bogus=1),
    "consume after the end": lambda c: (c.close(), c.consume(1)), "poll after the end": lambda c: (c.close(), c.poll()),
    "close twice": lambda c: (c.close(), c.close()), "close(1)": lambda c: c.close(1),
    "with": lambda c: (c.__enter__() is c, c.__exit__(None, None, None), c.__exit__(None, None, None)),
    "committed": lambda c: c.committed([], 5), "cluster": lambda c: bool(c.cluster_id(5)),
})
def test_calls(case, conf):
    def called(kafka):
        consumer = kafka.DeserializingConsumer(conf)
        try:
            return case(consumer)
        finally:
            consumer.close()

    same(called)


def test_one_can_be_parameterized_with_types_and_subclassed(conf):
    def made(kafka):
        class Mine(kafka.DeserializingConsumer[str, int]):
            def poll(self, timeout=0):
                return super().poll(timeout), "mine"

        with kafka.DeserializingConsumer[str, int](conf) as plain, Mine(conf) as mine:
            return plain.poll(0), mine.poll(), isinstance(mine, kafka.Consumer)

    assert same(made)[:2] == (None, (None, "mine"))


def test_it_can_be_iterated_over(conf):
    with reader_of(headrace, conf, **integers(headrace)) as consumer:
        assert next(iter(consumer)).value() == 7


def builder_of(kafka, log, fails=False):
    class Made(kafka.serialization.Deserializer):
        def __call__(self, value, ctx=None):
            return f"{value}!"

        def set_cluster_id_resolver(self, resolver):
            log.append("resolver")

        def close(self):
            log.append("close")

    class Builder(kafka.serialization.DeserializerBuilder):
        def build(self, conf, is_key):
            if fails and not is_key:
                raise ZeroDivisionError
            log.append((is_key, conf.pop("mine", None), "key.deserializer.builder" in conf))
            return Made(), conf

    return Builder()


def test_builders_take_their_properties_and_what_they_made_is_closed_with_the_consumer(conf):
    def read(kafka):
        log = []
        with reader_of(kafka, conf, mine=5, **{"key.deserializer.builder": builder_of(kafka, log)}) as consumer:
            key = consumer.poll(10).key()
        consumer.close()
        return key, log

    assert same(read) == ("b'k'!", [(True, 5, False), "resolver", "close"])


@by_name({
    "both": lambda k, log: {"key.deserializer": print, "key.deserializer.builder": builder_of(k, log)},
    "a bad builder": lambda k, log: {"key.deserializer.builder": type("B", (), {"build": lambda s, conf, is_key: 5})()},
    "a builder that raises": lambda k, log: {"key.deserializer.builder": builder_of(k, log),
                                             "value.deserializer.builder": builder_of(k, log, fails=True)},
    "an unknown property": lambda k, log: {"key.deserializer.builder": builder_of(k, log), "no.such": 1},
    "no deserializer": lambda k, log: {"key.serializer": 5},
})
@pytest.mark.parametrize("asyncio_twin", [False, True])
def test_what_cannot_be_made_is_refused_and_what_was_built_is_closed(asyncio_twin, case, conf):
    async def awaited(kafka, given):
        await kafka.aio.AsyncDeserializingConsumer(given)

    def refused(kafka):
        log = []
        given = {**conf, **case(kafka, log)}

        def make(_):
            return asyncio.run(awaited(kafka, given)) if asyncio_twin else kafka.DeserializingConsumer(given)

        return outcome(make, kafka), log

    same(refused)


def test_the_asyncio_twin_has_the_methods_of_the_peer_and_is_awaited(conf):
    theirs = {name for name in dir(confluent_kafka.aio.AsyncDeserializingConsumer) if not name.startswith("_")}
    assert theirs <= {*dir(headrace.aio.AsyncDeserializingConsumer), "executor"}

    async def made(kafka):
        consumer = await kafka.aio.AsyncDeserializingConsumer[str, int](conf, max_workers=2)
        async with consumer as same_one:
            return same_one is consumer

    assert same(lambda kafka: asyncio.run(made(kafka))) is True


async def aio_reader_of(kafka, conf, offset=0, **more):
    consumer = await kafka.aio.AsyncDeserializingConsumer({**conf, **more})
    await consumer.assign([kafka.TopicPartition("numbers", 0, offset)])
    return consumer


def test_under_asyncio_messages_are_deserialized_also_by_coroutine_functions(conf):
    async def read(kafka):
        async def slowly(data, context):
            await asyncio.sleep(0)
            return f"{data} {context.field}"

        consumer = await aio_reader_of(kafka, conf, 2, **integers(kafka), **{"key.deserializer": slowly})
        try:
            return (fields(await consumer.poll(10)), [fields(m) for m in await consumer.consume(5, 0.5)],
                    await consumer.poll(timeout=0))
        finally:
            await consumer.close()

    assert same(lambda kafka: asyncio.run(read(kafka)))[0][:2] == ("b'k' key", 8)


def test_under_asyncio_errors_are_wrapped_and_events_come_with_a_batch(conf):
    async def read(kafka):
        consumer = await aio_reader_of(kafka, conf, 1, **integers(kafka), **{"enable.partition.eof": True})
        got = []
        try:
            for _ in range(2):
                try:
                    got.append((await consumer.poll(10)).value())
                except kafka.error.ValueDeserializationError as error:
                    got.append((error.code, error.kafka_message.value(), type(error.exception).__name__))
            got += [m.value() if m.error() is None else m.error().code() for m in await consumer.consume(2, 2)]
            await consumer.seek(kafka.TopicPartition("numbers", 0, 4))
            try:
                await consumer.poll(10)
            except kafka.error.ConsumeError as error:
                got.append((type(error).__name__, error.code))
            return got
        finally:
            await consumer.close()

    assert same(lambda kafka: asyncio.run(read(kafka)))[1:3] == [8, None]


def test_under_asyncio_a_message_that_cannot_be_read_takes_no_other_with_it(conf):
    async def read(kafka, batches):
        consumer = await aio_reader_of(kafka, conf, **integers(kafka))
        got = []
        try:
            for size in batches:
                try:
                    got += [message.value() for message in await consumer.consume(size, 5)]
                except kafka.error.ConsumeError as error:
                    got.append(error.kafka_message.value())
            return got
        finally:
            await consumer.close()

    assert asyncio.run(read(headrace, (4, 3, 2))) == [7, b"bad", 8, None]
    assert asyncio.run(read(confluent_kafka, (4,))) == [b"bad"]  # it drops the batch


@by_name({"poll": lambda c: c.poll(10), "consume": lambda c: c.consume(4, 10)})
def test_under_asyncio_nothing_is_lost_when_a_call_is_cancelled_while_it_deserializes(case, conf):
    async def main():
        entered = asyncio.Event()

        async def never(data, context):
            entered.set()
            await asyncio.Event().wait()

        async with await aio_reader_of(headrace, conf, **{"value.deserializer": never}) as consumer:
            reading = asyncio.create_task(case(consumer))
            await entered.wait()
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            [position] = await consumer.position([headrace.TopicPartition("numbers", 0)])
            assert position.offset == 0

    asyncio.run(main())


def test_under_asyncio_what_a_builder_made_is_closed_in_the_way_it_has(conf):
    async def main(kafka):
        log = []

        class Made(kafka.serialization.Deserializer):
            async def __call__(self, value, ctx=None):
                return value

            def set_async_cluster_id_resolver(self, resolver):
                log.append(resolver)

            def close(self):
                log.append("close")

            async def aclose(self):
                log.append("aclose")

        class Builder(kafka.serialization.DeserializerBuilder):
            async def build(self, given, is_key):
                return Made(), given

        consumer = await kafka.aio.AsyncDeserializingConsumer({**conf, "key.deserializer.builder": Builder()})
        cluster = await log.pop()()
        await consumer.close()
        await consumer.close()
        return cluster == await consumer_id(kafka, conf), log

    async def consumer_id(kafka, given):
        async with kafka.aio.AIOConsumer(dict(given)) as other:
            return await other.cluster_id(5)

    assert same(lambda kafka: asyncio.run(main(kafka))) == (True, ["aclose"])


def test_one_that_was_not_awaited_says_so(conf):
    async def main():
        consumer = headrace.aio.AsyncDeserializingConsumer(conf)
        with pytest.raises(RuntimeError, match="await AsyncDeserializingConsumer"):
            await consumer.poll(0)
        with pytest.raises(RuntimeError, match="await AsyncDeserializingConsumer"):
            await consumer.subscribe(["numbers"])
        await consumer.close()

    asyncio.run(main())
