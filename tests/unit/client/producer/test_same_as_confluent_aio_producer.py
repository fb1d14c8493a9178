"""`AIOProducer`: the same as confluent_kafka's, and its arguments."""

import asyncio
import inspect
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import confluent_kafka
import pytest

import headrace
from headrace.testing import EmbeddedBroker
from tests.support.same_as_confluent import QUIET, same


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"one": 1}) as made:
        yield made


def test_the_asyncio_producers_take_the_same_arguments():
    for name in ("AIOProducer", "AsyncSerializingProducer"):
        theirs = {method for method in dir(getattr(confluent_kafka.aio, name)) if not method.startswith("_")}
        assert theirs <= set(dir(getattr(headrace.aio, name)))
    ours, theirs = (inspect.signature(kafka.aio.AIOProducer).parameters for kafka in (headrace, confluent_kafka))
    assert [(p.name, p.default) for p in ours.values()] == [(p.name, p.default) for p in theirs.values()]


@pytest.mark.parametrize("workers", [0, -1])
def test_fewer_than_one_worker_are_refused_without_an_executor(broker, workers):
    async def made(kafka, **given):
        producer = kafka.aio.AIOProducer({"bootstrap.servers": broker.bootstrap_servers, "logger": QUIET},
                                         max_workers=workers, **given)
        await producer.close()

    same(lambda kafka: asyncio.run(made(kafka)))
    with ThreadPoolExecutor(2) as executor:
        asyncio.run(made(headrace, executor=executor))


@pytest.mark.parametrize("given", [None, 5, "x", ["a"]])
@pytest.mark.parametrize("name", ["AIOProducer", "AIOConsumer"])
def test_what_is_no_configuration_is_a_type_error_under_asyncio_too(name, given):
    async def made(kafka):
        await getattr(kafka.aio, name)(given).close()

    assert same(lambda kafka: asyncio.run(made(kafka))) == "TypeError"


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


NUMBERS = [b"%d" % number for number in range(50)]


async def stored(broker, topic):
    consumer = headrace.aio.AIOConsumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "reads"})
    await consumer.assign([headrace.TopicPartition(topic, 0, 0)])
    values = []
    while len(values) < len(NUMBERS):
        values += [message.value() for message in await consumer.consume(len(NUMBERS), 10)]
    await consumer.close()
    return values


def test_tasks_that_produce_to_a_new_topic_one_behind_the_other_are_stored_in_that_order():
    async def sent(kafka):
        with EmbeddedBroker(topics={"new": 1}) as fresh:
            async with kafka.aio.AIOProducer(
                    {"bootstrap.servers": fresh.bootstrap_servers, "logger": QUIET}, buffer_timeout=0.1) as producer:
                await asyncio.gather(*[asyncio.create_task(producer.produce("new", number)) for number in NUMBERS])
                await producer.flush()
            return await stored(fresh, "new")

    assert same(lambda kafka: asyncio.run(sent(kafka))) == NUMBERS


@pytest.mark.parametrize("produce", [
    lambda producer, topic, value: producer.produce(topic, value, on_delivery=lambda error, message: None),
    lambda producer, topic, value: producer.send(headrace.ProducerRecord(topic, value)),
    lambda producer, topic, value: producer.produce_batch(topic, [{"value": value}]),
], ids=["produce", "send", "produce_batch"])
def test_no_turn_of_the_loop_has_a_later_task_overtake_a_call(produce):
    async def main():
        with EmbeddedBroker(topics={"one": 1}) as fresh:
            async with headrace.aio.AIOProducer({"bootstrap.servers": fresh.bootstrap_servers}) as producer:
                await producer.list_topics("one")
                await (await producer.produce("one", NUMBERS[0]))  # the topic is known
                await asyncio.sleep(0.02)  # and the loop is due
                await asyncio.gather(*[produce(producer, "one", number) for number in NUMBERS[1:]])
                await producer.flush()
            assert await stored(fresh, "one") == NUMBERS

    asyncio.run(main())


def test_calls_that_are_refused_let_other_tasks_have_their_turn(broker):
    async def main():
        turns = 0

        async def others():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with headrace.aio.AIOProducer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            await (await producer.produce("one", b"v"))
            task = asyncio.create_task(others())
            until = asyncio.get_running_loop().time() + 0.2
            while asyncio.get_running_loop().time() < until:
                with pytest.raises(TypeError):
                    await producer.produce("one", 5)
            task.cancel()
        assert turns > 5

    asyncio.run(main())
