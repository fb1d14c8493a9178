"""`AIOProducer.send()`, batches and the rest of what the asyncio producer shares with the blocking one."""

import asyncio
import gc
import inspect
import time
from collections.abc import Iterator

import pytest

from headrace import KafkaError, KafkaException, Producer, ProducerRecord
from headrace.aio import AIOProducer
from headrace.broker.faults import Action, Fault
from headrace.broker.settings import BrokerSettings
from headrace.errors import BufferFullError, ClientClosedError
from headrace.testing import EmbeddedBroker
from headrace.wire.messages.producer.produce import ProduceRequest


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"one": 1, "four": 4}, settings=BrokerSettings(auto_create_topics=False)) as made:
        yield made


@pytest.fixture
def run(broker):
    """Run a coroutine function with a producer of its own."""
    def start(work, **properties):
        async def main():
            conf = {"bootstrap.servers": broker.bootstrap_servers,
                    **{name.replace("_", "."): value for name, value in properties.items()}}
            async with AIOProducer(conf) as producer:
                return await work(producer)

        return asyncio.run(main())

    return start


def test_send_gives_a_future_of_the_metadata_and_calls_back_first(run):
    async def work(producer):
        seen = []
        future = await producer.send(ProducerRecord("four", "v", "k", 1, record_id=8), lambda *a: seen.append(a))
        metadata = await future
        assert seen == [(metadata, None)]
        assert (metadata.topic, metadata.partition, metadata.record_id) == ("four", 1, 8)
        assert metadata.has_offset()

    run(work)


@pytest.mark.parametrize("how", ["produce", "callback", "send", "batch"])
def test_records_are_on_their_way_while_each_takes_the_application_long(run, how):
    async def work(producer):
        await (await producer.produce("one", b"first"))
        futures = []
        for _ in range(10):
            time.sleep(0.011)
            if how == "send":
                futures.append(await producer.send(ProducerRecord("one", b"v")))
            elif how == "batch":
                await producer.produce_batch("one", [{"value": b"v"}], on_delivery=lambda *_: reports.append(1))
            else:
                futures.append(await producer.produce("one", b"v", on_delivery=print if how == "callback" else None))
        assert any(future.done() for future in futures) or reports

    reports = []
    run(work, linger_ms=0)


def test_many_sends_are_stored_in_order_through_a_small_buffer(run):
    async def work(producer):
        futures = [await producer.send(ProducerRecord("four", str(n), partition=2)) for n in range(500)]
        offsets = [metadata.offset for metadata in await asyncio.gather(*futures)]
        assert offsets == list(range(offsets[0], offsets[0] + 500))

    run(work, queue_buffering_max_messages=7)


def test_an_unknown_topic_and_a_full_buffer_are_waited_for_up_to_max_block_ms(run, broker):
    async def work(producer):
        started = time.monotonic()
        with pytest.raises(KafkaException, match=r"not known to the brokers after 0.3 s \(max.block.ms\)"):
            await producer.send(ProducerRecord("nope", b"v"))
        broker.add_fault(Fault(action=Action.SILENCE, request=ProduceRequest))
        await producer.send(ProducerRecord("one", b"v"))
        with pytest.raises(BufferFullError, match=r"no room in 0.3 s \(max.block.ms\)"):
            await producer.send(ProducerRecord("one", b"v"))
        assert 0.5 < time.monotonic() - started < 5
        await producer.purge()

    run(work, max_block_ms=300, queue_buffering_max_messages=1)


def test_a_topic_that_turns_up_while_send_waits_is_used(run, broker):
    async def work(producer):
        asyncio.get_running_loop().call_later(0.2, broker.create_topic, "late-aio", 1)
        return await (await producer.send(ProducerRecord("late-aio", b"v")))

    assert run(work, retry_backoff_max_ms=200).offset == 0


def test_a_send_that_is_cancelled_while_it_waits_sends_nothing(run, broker):
    async def work(producer):
        waiting = asyncio.create_task(producer.send(ProducerRecord("soon", b"v")))
        await asyncio.sleep(0.1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        broker.create_topic("soon", 1)
        assert (await (await producer.send(ProducerRecord("soon", b"w")))).offset == 0

    run(work, retry_backoff_max_ms=200)


def test_a_future_that_is_cancelled_hurts_nobody(run):
    async def work(producer):
        first = await producer.send(ProducerRecord("one", b"v"))
        second = await producer.send(ProducerRecord("one", b"v"))
        first.cancel()
        assert (await second).has_offset()

    run(work)


def test_what_a_callback_raises_is_told_to_the_loop_and_the_future_is_resolved(run):
    async def work(producer):
        told = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context["exception"]))

        def callback(metadata, error):
            raise ZeroDivisionError

        futures = [await producer.send(ProducerRecord("one", b"v"), callback) for _ in range(2)]
        assert all(metadata.has_offset() for metadata in await asyncio.gather(*futures))
        assert [type(error) for error in told] == [ZeroDivisionError] * 2

    run(work)


def test_a_failure_that_the_callback_was_told_need_not_be_asked_for(run):
    async def work(producer):
        told = []
        await producer.send(ProducerRecord("one", b"v"), lambda metadata, error: told.append(error))
        await producer.purge()
        await asyncio.sleep(0)
        assert told == [KafkaError._PURGE_QUEUE]

    run(work, linger_ms=60_000)  # a forgotten exception would be an error of this test


@pytest.mark.parametrize("gives_up", ["purge", "abort_transaction"])
def test_what_the_application_gave_up_is_no_error_that_nobody_retrieved(run, gives_up):
    async def work(producer):
        told = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context))
        if gives_up == "abort_transaction":
            await producer.init_transactions()
            await producer.begin_transaction()
        await producer.produce("one", b"v")
        await producer.produce("one", b"v", on_delivery=lambda error, message: None)
        await producer.produce("nowhere", b"v")
        await producer.send(ProducerRecord("one", b"v"))
        held = await producer.produce("one", b"v")
        await getattr(producer, gives_up)()
        with pytest.raises(KafkaException) as caught:
            await held
        assert caught.value.error == KafkaError._PURGE_QUEUE
        await asyncio.sleep(0)
        del held, caught
        gc.collect()
        assert not told

    run(work, linger_ms=60_000, message_timeout_ms=120_000, transaction_timeout_ms=120_000,
        **({"transactional_id": gives_up} if gives_up == "abort_transaction" else {}))


@pytest.mark.parametrize("topic", ["one", "not known yet"])
@pytest.mark.parametrize("on_delivery", [None, lambda error, message: None])
def test_a_timestamp_in_seconds_is_refused_on_each_way(run, topic, on_delivery):
    async def work(producer):
        await (await producer.produce("one", b"v"))
        with pytest.raises(TypeError, match="timestamp must be int, in milliseconds since the epoch, not float"):
            await producer.produce(topic, b"v", timestamp=time.time(), on_delivery=on_delivery)
        assert len(producer) == 0

    run(work)


@pytest.mark.parametrize(("record", "code"), [
    (ProducerRecord("a b", b"v"), KafkaError._INVALID_ARG), (ProducerRecord(None), KafkaError._INVALID_ARG),
    (ProducerRecord("one", b"v", partition=7), KafkaError._UNKNOWN_PARTITION),
    (ProducerRecord("one", b"x" * 1_000_001), KafkaError.MSG_SIZE_TOO_LARGE),
])
def test_what_cannot_be_stored_is_refused_at_once(run, record, code):
    async def work(producer):
        with pytest.raises(KafkaException) as caught:
            await producer.send(record)
        assert caught.value.error == code
        for wrong in (None, ProducerRecord("one", 5)):
            with pytest.raises(TypeError):
                await producer.send(wrong)

    run(work)


def test_one_table_goes_the_way_of_many_with_all_its_roles(run, monkeypatch):
    asked = []
    roles = {"value": "v", "key": "k", "headers": "h", "timestamp": "t", "partition": "p"}

    async def produce_batches(self, topic, tables, **how):
        asked.append((topic, tables, how))

    monkeypatch.setattr(AIOProducer, "produce_batches", produce_batches)
    run(lambda producer: producer.produce_arrow("one", "table", **roles))
    assert asked == [("one", ["table"], roles)]


def test_a_callback_of_the_properties_is_called_for_each_record_that_has_none_of_its_own(broker):
    told = []

    async def main():
        conf = {"bootstrap.servers": broker.bootstrap_servers,
                "on_delivery": lambda error, message: told.append(message.value())}
        async with AIOProducer(conf) as producer:
            for value in (b"1", b"2"):  # the first call finds out how those behind it are made
                await (await producer.produce("one", value))
            await (await producer.produce("one", b"3", on_delivery=lambda error, message: told.append("own")))

    asyncio.run(main())
    assert told == [b"1", b"2", "own"]


def test_futures_end_although_only_errors_are_reported_to_callbacks(run):
    async def work(producer):
        told = []
        message = await (await producer.produce("one", b"v", on_delivery=lambda e, m: told.append(e)))
        assert message.offset() >= 0
        assert (await (await producer.send(ProducerRecord("one", b"v")))).has_offset()
        await producer.produce_batch("one", [{"value": b"v"}], on_delivery=lambda e, m: told.append(e))
        await producer.flush()
        assert told == []

    run(work, delivery_report_only_error=True)


def test_a_batch_waits_for_room_and_counts_what_was_accepted(run):
    async def work(producer):
        told = []
        batch = [{"value": str(n), "headers": {"n": str(n)}, "timestamp": 1_700_000_000_000 + n} for n in range(50)]
        batch[7]["partition"] = 9
        batch[8]["callback"] = lambda error, message: told.append("own")
        await (await producer.produce("one", b"-"))
        assert await producer.produce_batch("one", batch, on_delivery=lambda e, m: told.append(m)) == 49
        await producer.flush()
        assert batch[7]["_error"] == KafkaError._UNKNOWN_PARTITION
        assert "_error" not in batch[8]
        assert told.pop(7) == "own"
        assert [m.value() for m in told] == [str(n).encode() for n in range(50) if n not in (7, 8)]
        assert told[3].headers() == [("n", b"3")]
        assert told[3].timestamp() == (1, 1_700_000_000_003)
        with pytest.raises(TypeError, match="messages must be a list"):
            await producer.produce_batch("one", ())
        assert await producer.cluster_id(10)

    run(work, queue_buffering_max_messages=10)


def test_a_closed_producer_takes_nothing(run):
    async def work(producer):
        await producer.send(ProducerRecord("one", b"v"))
        await producer.close()
        for call in (producer.send(ProducerRecord("one", b"v")),
                     producer.produce_batch("one", [{"value": b"v"}])):
            with pytest.raises(ClientClosedError):
                await call

    run(work)


def calls_of(face):
    return {name for name in dir(face) if not name.startswith("_") and callable(getattr(face, name))}


@pytest.mark.parametrize("method", sorted(calls_of(AIOProducer) - {"close", "poll", "produce"}))
def test_both_faces_have_the_same_arguments(method):
    sync, aio = (inspect.signature(getattr(face, method)) for face in (Producer, AIOProducer))
    assert [(p.name, p.default) for p in sync.parameters.values()] == [
        (p.name, p.default) for p in aio.parameters.values()]


def test_both_faces_have_the_same_calls():
    assert calls_of(Producer) == calls_of(AIOProducer)


def test_produce_gives_a_future_of_the_message_and_calls_back_as_well(run):
    async def work(producer):
        seen = []
        future = await producer.produce("four", "v", "k", 1, lambda error, message: seen.append((error, message)), 5)
        message = await future
        assert seen == [(None, message)]
        assert (message.topic(), message.partition(), message.value(), message.key()) == ("four", 1, b"v", b"k")
        assert message.timestamp() == (1, 5)
        assert len(producer) == 0

    run(work)


def test_a_record_that_cannot_be_sent_is_a_future_that_fails_and_what_is_no_record_is_raised(run):
    async def work(producer):
        await (await producer.produce("four", b"known"))
        future = await producer.produce("four", b"v", partition=99)
        with pytest.raises(KafkaException) as failed:
            await future
        assert failed.value.error == KafkaError._UNKNOWN_PARTITION
        with pytest.raises(TypeError):
            await producer.produce("four", 5)

    run(work)


def test_records_of_a_partition_are_stored_in_their_order_also_those_that_waited_for_their_topic(run):
    async def work(producer):
        futures = [await producer.produce("one", str(number)) for number in range(200)]
        messages = await asyncio.gather(*futures)
        first = messages[0].offset()
        assert [(int(m.value()), m.offset() - first) for m in messages] == [(n, n) for n in range(200)]

    run(work)


def test_a_producer_that_was_never_used_connects_to_nobody_and_closes():
    async def main():
        producer = AIOProducer({"bootstrap.servers": "127.0.0.1:1"})
        assert (len(producer), bool(producer)) == (0, True)
        await producer.close()
        await producer.close()
        with pytest.raises(ClientClosedError):
            await producer.produce("one", b"v")

    asyncio.run(main())


def test_flush_waits_until_all_is_delivered_and_says_what_is_left(run, broker):
    async def work(producer):
        futures = [await producer.produce("one", b"v") for _ in range(10)]
        assert await producer.flush(10) == 0
        assert all(future.done() for future in futures)
        broker.add_fault(Fault(action=Action.SILENCE, request=ProduceRequest))
        await producer.produce("one", b"late")
        assert await producer.flush(0.2) == 1
        broker.clear_faults()
        await producer.purge()

    run(work, linger_ms=1000)


@pytest.mark.parametrize("call", ["flush", "close", "produce", "send"])
def test_a_call_on_another_loop_is_told_so_and_does_not_wait_for_ever(run, call):
    arguments = {"produce": ("other", "v"), "send": (ProducerRecord("one", "v"),)}

    async def work(producer):
        await (await producer.produce("one", "v"))

        async def elsewhere():
            await getattr(producer, call)(*arguments.get(call, ()))

        with pytest.raises(RuntimeError, match="another event loop"):
            await asyncio.to_thread(asyncio.run, elsewhere())
        assert (await (await producer.produce("one", "w"))).value() == b"w"  # and close() still has something to do

    run(work)


def test_a_delivery_is_not_awaited_on_another_loop(run):
    async def work(producer):
        await (await producer.produce("one", "v"))
        delivery = await producer.produce("one", "w")

        async def elsewhere():
            await delivery

        with pytest.raises(RuntimeError, match="another event loop"):
            await asyncio.to_thread(asyncio.run, elsewhere())
        assert (await delivery).value() == b"w"

    run(work, linger_ms=2000)
