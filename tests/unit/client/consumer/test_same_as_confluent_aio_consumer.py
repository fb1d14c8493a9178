"""`AIOConsumer`: the same as confluent_kafka's, call by call, and its arguments.

What the calls do is compared in `test_same_as_confluent_consumer`; here is what asyncio adds. Where headrace does
otherwise, `OTHERWISE` says what and why.
"""

import asyncio
import inspect
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import confluent_kafka
import pytest

import headrace
from headrace.broker.settings import BrokerSettings
from headrace.testing import EmbeddedBroker
from tests.support.same_as_confluent import QUIET, by_name, outcome, same


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"one": 1}, settings=BrokerSettings(auto_create_topics=False)) as made:
        with headrace.Producer({"bootstrap.servers": made.bootstrap_servers}) as producer:
            for number in range(5):
                producer.produce("one", f"v{number}", "k")
        yield made


@pytest.fixture
def run(broker):
    """Runs `case(consumer, kafka)` with a consumer that is closed in the end."""

    def run(kafka, case, **more):
        async def main():
            consumer = kafka.aio.AIOConsumer(conf(kafka, broker, more))
            try:
                return await case(consumer, kafka)
            finally:
                await outcome_of(consumer.close(), kafka)

        return asyncio.run(main())

    return run


def conf(kafka, broker, more):
    properties = {name if name.endswith("_cb") or name == "on_commit" else name.replace("_", "."): value
                  for name, value in more.items()}
    return {"bootstrap.servers": broker.bootstrap_servers, "group.id": f"{kafka.__name__}{time.monotonic_ns()}",
            "auto.offset.reset": "earliest", "logger": QUIET, "session.timeout.ms": 6000, "fetch.wait.max.ms": 50,
            "topic.metadata.refresh.fast.interval.ms": 20, **properties}


async def outcome_of(call, kafka):
    """As `outcome`, of a coroutine."""
    try:
        returned = await call
    except Exception as error:
        failed = error
    else:
        return returned

    def again(_):
        raise failed

    return outcome(again, kafka)


def at(kafka, offset=-1001, partition=0, topic="one"):
    return kafka.TopicPartition(topic, partition, offset)


def plain(partitions):
    return [(tp.topic, tp.partition, tp.offset, tp.error and tp.error.code()) for tp in partitions]


def test_it_has_the_methods_of_the_peer_and_takes_its_arguments():
    theirs = {name for name in dir(confluent_kafka.aio.AIOConsumer) if not name.startswith("_")}
    assert theirs <= set(dir(headrace.aio.AIOConsumer))
    assert all(inspect.iscoroutinefunction(getattr(headrace.aio.AIOConsumer, name)) for name in theirs)
    ours, peers = (inspect.signature(kafka.aio.AIOConsumer).parameters for kafka in (headrace, confluent_kafka))
    assert [(p.name, p.default) for p in ours.values()] == [(p.name, p.default) for p in peers.values()]


@by_name({
    "workers": lambda k, c: k.aio.AIOConsumer(c, 2),
    "workers by name": lambda k, c: k.aio.AIOConsumer(c, max_workers=2),
    "by name": lambda k, c: k.aio.AIOConsumer(consumer_conf=c), "no workers": lambda k, c: k.aio.AIOConsumer(c, 0),
    "fewer": lambda k, c: k.aio.AIOConsumer(c, max_workers=-1),
    "nothing": lambda k, c: k.aio.AIOConsumer(), "a fourth": lambda k, c: k.aio.AIOConsumer(c, 1, None, 2),
    "an unknown property": lambda k, c: k.aio.AIOConsumer({**c, "no.such": 1}),
})
def test_it_is_made_of(case, broker):
    async def made(kafka):
        consumer = case(kafka, conf(kafka, broker, {}))
        await consumer.close()

    same(lambda kafka: asyncio.run(made(kafka)))


def test_it_may_be_given_an_executor_which_stays_open(broker):
    async def made(kafka):
        with ThreadPoolExecutor(2) as executor:
            async with kafka.aio.AIOConsumer(conf(kafka, broker, {}), max_workers=0, executor=executor) as consumer:
                await consumer.assign([at(kafka, 3)])
                message = await consumer.poll(timeout=10)
            return message.offset(), executor.submit(int).result()

    assert same(lambda kafka: asyncio.run(made(kafka))) == (3, 0)


def test_without_a_running_loop_there_is_none(broker):
    same(lambda kafka: kafka.aio.AIOConsumer(conf(kafka, broker, {})))


CALLS = {
    "assign": lambda c, k: c.assign([at(k)]),
    "assign()": lambda c, k: c.assign(),
    "assign text": lambda c, k: c.assign("x"),
    "assign more": lambda c, k: c.incremental_assign([at(k)]),
    "assign less": lambda c, k: c.incremental_unassign([at(k)]),
    "unassign": lambda c, k: c.unassign(), "assignment": lambda c, k: c.assignment(),
    "subscribe": lambda c, k: c.subscribe(["one"]), "subscribe to text": lambda c, k: c.subscribe("one"),
    "subscribe()": lambda c, k: c.subscribe(), "unsubscribe": lambda c, k: c.unsubscribe(),
    "poll": lambda c, k: c.poll(0),
    "poll by name": lambda c, k: c.poll(timeout=0.01),
    "poll text": lambda c, k: c.poll("x"),
    "consume": lambda c, k: c.consume(1, 0), "consume by name": lambda c, k: c.consume(num_messages=2, timeout=0.01),
    "consume less": lambda c, k: c.consume(-1), "commit": lambda c, k: c.commit(),
    "commit and wait": lambda c, k: c.commit(asynchronous=False),
    "store": lambda c, k: c.store_offsets(offsets=[at(k, 1)]), "store nothing": lambda c, k: c.store_offsets(),
    "committed()": lambda c, k: c.committed(), "position()": lambda c, k: c.position(),
    "seek": lambda c, k: c.seek(at(k, 1)), "seek()": lambda c, k: c.seek(), "pause()": lambda c, k: c.pause(),
    "resume()": lambda c, k: c.resume(), "watermarks": lambda c, k: c.get_watermark_offsets(at(k), 5),
    "cached watermarks": lambda c, k: c.get_watermark_offsets(at(k), cached=True),
    "watermarks of no partition": lambda c, k: c.get_watermark_offsets(at(k, partition=9), 5),
    "times of nothing": lambda c, k: c.offsets_for_times([], 5),
    "credentials": lambda c, k: c.set_sasl_credentials("u", "p"),
    "half of them": lambda c, k: c.set_sasl_credentials("u"), "cluster id": lambda c, k: c.cluster_id(5),
    "cluster id by name": lambda c, k: c.cluster_id(timeout=5), "close(1)": lambda c, k: c.close(1),
    "close": lambda c, k: c.close(),
}


@by_name(CALLS)
def test_calls(case, run):
    same(lambda kafka: run(kafka, case))


async def read_and_commit(c, k):
    await c.assign([at(k, 1)])
    message = await c.poll(10)
    return (message.offset(), plain(await c.commit(message, asynchronous=False)), plain(await c.committed([at(k)], 5)),
            plain(await c.position([at(k)])), [m.offset() for m in await c.consume(2, 10)])


async def pause_and_seek(c, k):
    await c.assign([at(k, 0)])
    await c.poll(10)
    paused = await c.pause([at(k)]), await c.poll(0.2), await c.resume([at(k)])
    return paused, await c.seek(at(k, 4)), (await c.poll(10)).offset(), plain(await c.offsets_for_times([at(k, 0)], 5))


async def subscribe_with_callbacks(c, k):
    told = []

    async def on_assign(consumer, partitions):
        told.append(("assign", consumer is c, plain(partitions)))
        await consumer.assign([at(k, 2)])

    async def on_revoke(consumer, partitions):
        told.append(("revoke", consumer is c, [tp.partition for tp in partitions], len(await consumer.assignment())))

    await c.subscribe(["one"], on_assign=on_assign, on_revoke=on_revoke)
    first = await c.poll(10)
    return first.offset(), await c.close(), told


async def read_beside_other_tasks(c, k):
    await c.assign([at(k, 0)])
    got = await asyncio.gather(*(c.poll(10) for _ in range(3)), c.cluster_id(5))
    return sorted(message.offset() for message in got[:3])


@by_name({"read and commit": read_and_commit, "pause and seek": pause_and_seek, "subscribe": subscribe_with_callbacks,
          "several tasks": read_beside_other_tasks})
def test_what_is_done(case, run):
    same(lambda kafka: run(kafka, case))


def test_coroutine_functions_are_told_of_commits_errors_and_statistics(run):
    def told(kafka):
        got = set()

        async def on_commit(error, partitions):
            got.add(("commit", error, str(plain(partitions))))

        async def stats_cb(text):
            got.add(("stats", type(text).__name__))

        async def error_cb(error):
            got.add(("error", type(error).__name__))

        async def commit(c, k):
            await c.assign([at(k, 5)])
            await c.commit(offsets=[at(k, 2)])
            for _ in range(100):
                await c.poll(0.05)
                if len(got) > 1:
                    return

        run(kafka, commit, on_commit=on_commit, stats_cb=stats_cb, statistics_interval_ms=50, error_cb=error_cb)
        return got

    assert {name for name, *_ in same(told)} == {"commit", "stats"}


@pytest.mark.parametrize("which", ["on_assign", "on_commit"])
def test_what_a_callback_raises_comes_out_of_poll(which, run):
    def raised(kafka):
        async def boom(*arguments):
            raise ZeroDivisionError

        async def read(c, k):
            if which == "on_commit":
                await c.assign([at(k, 5)])
                await c.commit(offsets=[at(k, 2)])
            else:
                await c.subscribe(["one"], on_assign=boom)
            for _ in range(100):
                await c.poll(0.1)

        given = {"on_commit": boom} if which == "on_commit" else {}
        return run(kafka, lambda c, k: outcome_of(read(c, k), k), **given)

    assert same(raised) == "ZeroDivisionError"


@by_name({name: CALLS[name] for name in (
    "assign", "unassign", "assignment", "subscribe", "unsubscribe", "poll", "consume", "commit", "store", "seek",
    "cluster id", "credentials", "cached watermarks", "assign more", "assign less")})
def test_calls_of_a_closed_consumer_are_refused(case, run):
    async def closed(c, k):
        await c.close()
        return await case(c, k)

    assert same(lambda kafka: run(kafka, closed)) == "RuntimeError"


async def close_twice(c, k):
    return await c.close(), await c.close()


async def cancelled(c, k):
    await c.assign([at(k, 0)])
    reading = asyncio.create_task(c.consume(100, 1))
    await asyncio.sleep(0.5)
    reading.cancel()
    await asyncio.wait([reading])
    message = await c.poll(1)
    return message and message.offset()


async def subscribe_with_a_function(c, k):
    told = []
    await c.subscribe(["one"], on_assign=lambda consumer, partitions: told.append(consumer is c))
    for _ in range(100):
        if await c.poll(0.1) is not None:
            break
    return told


OTHERWISE = {
    # As of `Consumer`, here and there: closing twice does no harm.
    "close twice": (close_twice, "RuntimeError", (None, None)),
    # A thread goes on reading there, and what it gets nobody gets.
    "a call that was cancelled": (cancelled, None, 0),
    "callbacks that are functions": (subscribe_with_a_function, "TypeError", [True]),
    "a member's id": (lambda c, k: c.memberid(), "AttributeError", None),
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_where_headrace_does_otherwise(name, run):
    call, *expected = OTHERWISE[name]
    for kafka, wanted in zip((confluent_kafka, headrace), expected, strict=True):
        for _ in range(5):  # what is read in a second may come later, where a machine stops for a moment
            found = outcome(lambda kafka: run(kafka, call), kafka)
            if found == wanted:
                break
        assert found == wanted


def test_headrace_can_be_iterated_over(run):
    async def first(c, k):
        await c.assign([at(k, 3)])
        return [message.offset() async for message in only_one(c)]

    async def only_one(messages):
        async for message in messages:
            yield message
            return

    assert run(headrace, first) == [3]
    assert outcome(lambda kafka: run(kafka, first), confluent_kafka) == "TypeError"
