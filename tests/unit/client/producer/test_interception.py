"""Records in and metadata out: what is checked before anything is sent, and how a report becomes a call or a future."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.buffers import BufferPool
from headrace.client.producer.interception import (
    FutureReport,
    InterceptedSend,
    LoopFutureReport,
    MetadataReport,
    TopicWatch,
    arguments_of,
    batch_arguments,
    check_record,
    check_topic,
    metadata_of,
    refused_message,
    resolve,
    still_full,
    unknown_topic,
)
from headrace.errors import BufferFullError, KafkaError, KafkaException
from headrace.records import Message
from headrace.types.records import ProducerRecord, RecordMetadata

ERROR = KafkaError(KafkaError._MSG_TIMED_OUT, "too late")
RECORD = ProducerRecord("t", b"v", b"k", 1, record_id=8)
names = st.text("abcXYZ019._-", min_size=1, max_size=249)


def message(error: KafkaError | None = None, **said: Any) -> Message:
    return Message(**{"topic": "t", "partition": 1, "offset": 7, "key": b"k", "value": b"value", "error": error,
                      "timestamp": (1, 1000), **said})


# Before anything is sent


@given(names.filter(lambda name: name not in (".", "..")))
def test_a_name_of_letters_digits_dots_dashes_and_underscores_is_a_topics(name: str) -> None:
    check_topic(name)
    check_record(ProducerRecord(name, None))


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "ä", "a\n", "x" * 250, 5, None, b"t"])
def test_what_no_broker_would_take_is_no_topics_name(name: Any) -> None:
    with pytest.raises(KafkaException, match="invalid topic") as refused:
        check_topic(name)
    assert refused.value.error == KafkaError._INVALID_ARG
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("partition", [-2, 1 << 31])
def test_a_partition_that_cannot_exist_is_unknown(partition: int) -> None:
    with pytest.raises(KafkaException, match=f"t can have no partition {partition}") as refused:
        check_record(ProducerRecord("t", b"v", partition=partition))
    assert refused.value.error == KafkaError._UNKNOWN_PARTITION


@pytest.mark.parametrize("name", ["partition", "timestamp_ms"])
def test_a_number_of_a_wrong_type_is_named(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} must be int or None, not str"):
        check_record(ProducerRecord("t", b"v", **{name: "1"}))


def test_what_a_record_leaves_open_is_left_to_the_producer() -> None:
    assert arguments_of(ProducerRecord("t", b"v")) == ("t", b"v", None, -1, 0, None)
    record = ProducerRecord("t", b"v", b"k", 0, [("h", b"x")], 5)
    assert arguments_of(record) == ("t", b"v", b"k", 0, 5, [("h", b"x")])


def test_messages_of_a_batch_become_arguments_with_their_own_or_the_common_callback() -> None:
    first, second = {"value": b"a"}, {"value": "b", "key": "k", "partition": 3, "timestamp": 5, "headers": {"h": "x"},
                                      "callback": repr}
    found = list(batch_arguments("t", [first, second], -1, print))
    assert [entry[0] for entry in found] == [first, second]
    assert [entry[1:] for entry in found] == [
        (("t", b"a", None, -1, 0, None), print), (("t", "b", "k", 3, 5, {"h": "x"}), repr)]


@pytest.mark.parametrize(("messages", "error", "text"), [
    ({"value": b"v"}, TypeError, "messages must be a list, not dict"),
    ([b"v"], TypeError, "Message at index 0 must be a dict, not bytes"),
    ([{}, {"value": 5}], TypeError, "Message value at index 1 must be bytes or str, not int"),
    ([{"key": 5}], TypeError, "Message key at index 0"),
    ([{"partition": "1"}], TypeError, "Message partition at index 0 must be int, not str"),
    ([{"partition": 1 << 31}], OverflowError, "Message partition at index 0 is out of range"),
    ([{"timestamp": "now"}], TypeError, "Message timestamp at index 0 must be int, not str"),
    ([{"timestamp": -1}], ValueError, "Message timestamp at index 0 must not be negative"),
    ([{"headers": 5}], TypeError, "Message headers at index 0"),
])
def test_all_messages_of_a_batch_are_checked_before_the_first_is_given(
    messages: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        batch_arguments("t", messages, -1, None)


@pytest.mark.parametrize(("topic", "partition", "error"), [
    (5, -1, TypeError), ("t", "1", TypeError), ("t", 1 << 31, OverflowError)])
def test_a_batch_has_one_topic_and_one_partition_that_can_be(
    topic: Any, partition: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        batch_arguments(topic, [], partition, None)


def test_what_was_waited_for_in_vain_is_named_with_a_remedy() -> None:
    assert unknown_topic("t", 0.5).error == KafkaError._UNKNOWN_TOPIC
    assert 'topic "t" is not known to the brokers after 0.5 s' in str(unknown_topic("t", 0.5))
    full = still_full(7, 0.5)
    assert isinstance(full, BufferFullError)
    assert "7 messages wait for delivery, and there was no room in 0.5 s" in str(full)


# What became of a record


def test_metadata_say_where_a_record_was_stored() -> None:
    made = metadata_of(message(), 8)
    assert (made.topic, made.partition, made.offset, made.timestamp_ms) == ("t", 1, 7, 1000)
    assert (made.key_size, made.value_size, made.record_id) == (1, 5, 8)


def test_what_is_not_there_has_the_size_minus_one_and_nothing_has_zero() -> None:
    assert [(made.key_size, made.value_size) for made in (
        metadata_of(message(key=None, value=None)), metadata_of(message(key=b"", value=b"")))] == [(-1, -1), (0, 0)]


def test_what_is_not_known_of_a_record_is_not_made_up() -> None:
    made = metadata_of(Message(topic="t"))
    assert (made.partition, made.offset, made.timestamp_ms) == (RecordMetadata.NO_PARTITION, -1, -1)
    assert not made.has_offset()


def test_the_report_of_a_record_that_was_not_accepted_has_its_bytes() -> None:
    made = refused_message(ProducerRecord("t", "v", "k", 3, {"h": "x"}), ERROR)
    assert (made.topic(), made.partition(), made.key(), made.value(), made.headers(), made.offset()) == (
        "t", 3, b"k", b"v", [("h", b"x")], None)
    assert made.error() == ERROR
    assert refused_message(ProducerRecord("t", b"v", partition=1 << 40), ERROR).partition() is None


def test_interceptors_are_told_before_the_callback_and_all_before_the_end() -> None:
    told: list[Any] = []

    class Report(MetadataReport):
        def settle(self, metadata: RecordMetadata, error: KafkaError | None) -> None:
            told.append(("settled", error))

    def failing(metadata: RecordMetadata, error: KafkaError | None) -> None:
        told.append(("callback", metadata.record_id))
        raise ValueError("mine")

    chain = SimpleNamespace(on_acknowledgement=lambda metadata, error: told.append(("chain", metadata.offset)))
    with pytest.raises(ValueError, match="mine"):
        Report(chain, RECORD, failing)(None, message())  # type: ignore[arg-type]
    assert told == [("chain", 7), ("callback", 8), ("settled", None)]


def test_a_future_is_resolved_behind_its_callback_and_gives_its_bytes_back() -> None:
    buffer_pool, got = BufferPool(10, 100_000), []
    report = FutureReport(None, RECORD, lambda metadata, error: got.append(report.future.done()), buffer_pool)
    report.accepted()
    assert buffer_pool.bytes > 0
    assert report.future.running()
    report(None, message())
    assert (got, report.future.done()) == ([False], False)  # until its record does not count any more
    report.resolve()
    assert (report.future.result(0).offset, buffer_pool.bytes) == (7, 0)


def test_a_future_of_a_record_that_is_given_up_fails_although_its_callback_raises(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def failing(metadata: RecordMetadata, error: KafkaError | None) -> None:
        raise ValueError("mine")

    report = FutureReport(None, RECORD, failing, BufferPool(10, 100_000))
    with caplog.at_level(logging.ERROR, "headrace"):
        report(ERROR, message(ERROR))
    report.resolve()
    assert "the callback of a record of t raised" in caplog.text
    with pytest.raises(KafkaException) as failed:
        report.future.result(0)
    assert failed.value.error == ERROR


def test_a_future_of_the_loop_is_resolved_unless_it_was_cancelled() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        good, bad, gone = (loop.create_future() for _ in range(3))
        gone.cancel()
        for future, error in ((good, None), (bad, ERROR), (gone, None)):
            LoopFutureReport(None, RECORD, None, future)(error, message(error))
        assert (await good).offset == 7
        with pytest.raises(KafkaException):
            await bad
        assert gone.cancelled()

    asyncio.run(main())


def test_a_result_is_given_once() -> None:
    async def main() -> None:
        future = asyncio.get_running_loop().create_future()
        resolve(future, 1, None)
        resolve(future, 2, None)
        resolve(future, None, ValueError("late"))
        assert await future == 1

    asyncio.run(main())


@pytest.mark.parametrize("error", [None, ERROR])
def test_a_watch_hears_of_its_topic_and_why_it_cannot_be_used(error: KafkaError | None) -> None:
    told: list[Any] = []
    watch = TopicWatch(lambda: told.append(watch.is_done()))
    assert (watch.is_done(), watch.error) == (False, None)
    watch(error, None)
    assert (watch.is_done(), watch.error, told) == (True, error, [True])


def test_without_interceptors_records_go_straight_to_the_accumulators() -> None:
    engine: Any = SimpleNamespace(accumulators=SimpleNamespace(open={"t": 1}), produce=print,
                                  deliveries=SimpleNamespace(has_at_once=False, only_errors=False))
    plain = InterceptedSend(engine, None)
    assert (plain.open, plain.produce) == (engine.accumulators.open, print)
    assert not engine.deliveries.has_at_once
    assert plain.intercept(("t", b"v", None, -1, 0, None)) == (("t", b"v", None, -1, 0, None), None)
    assert plain.reporting(print, 5) is print
    with pytest.raises(TypeError, match="send\\(\\) takes a ProducerRecord, not dict"):
        plain.accept({})
