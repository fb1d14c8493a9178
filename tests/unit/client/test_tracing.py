"""Spans of records that are sent, and the context that they carry (OpenTelemetry)."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

if not os.environ.get("CI"):  # there a missing SDK is a failure
    pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode, TraceFlags

from headrace import Consumer, KafkaException, Producer, ProducerRecord, TopicPartition
from headrace.broker.settings import BrokerSettings
from headrace.errors import BufferFullError
from headrace.opentelemetry import TracingInterceptor, extract
from headrace.testing import EmbeddedBroker


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"one": 1}, settings=BrokerSettings(auto_create_topics=False)) as made:
        yield made


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter: InMemorySpanExporter) -> TracerProvider:
    made = TracerProvider()
    made.add_span_processor(SimpleSpanProcessor(exporter))
    return made


def props(broker: EmbeddedBroker, provider: TracerProvider, **more: object) -> dict[str, object]:
    return {"bootstrap.servers": broker.bootstrap_servers, "client.id": "traced", "linger.ms": 1,
            "interceptor.classes": [TracingInterceptor(provider)], **more}


def read_last(broker: EmbeddedBroker):
    with Consumer({"bootstrap.servers": broker.bootstrap_servers}) as consumer:
        _, end = consumer.get_watermark_offsets(TopicPartition("one", 0))
        consumer.assign([TopicPartition("one", 0, end - 1)])
        return consumer.poll(20)


@pytest.mark.parametrize("with_callback", [True, False])
def test_a_record_has_a_span_that_ends_with_its_acknowledgement(broker, provider, exporter, with_callback) -> None:
    with Producer(props(broker, provider, **{"linger.ms": 10_000})) as producer:
        with provider.get_tracer("application").start_as_current_span("order") as order:
            reports = []
            callback = (lambda error, message: reports.append(message)) if with_callback else None
            producer.produce("one", b"value", key="k1", callback=callback)
        assert [span.name for span in exporter.get_finished_spans()] == ["order"]
        producer.flush(20)
    _, span = exporter.get_finished_spans()
    assert (span.name, span.kind, span.status.status_code) == ("send one", SpanKind.PRODUCER, StatusCode.UNSET)
    assert span.parent.span_id == order.get_span_context().span_id
    assert dict(span.attributes) == {
        "messaging.system": "kafka", "messaging.operation.name": "send", "messaging.operation.type": "send",
        "messaging.destination.name": "one", "messaging.client.id": "traced", "messaging.kafka.message.key": "k1",
        "messaging.destination.partition.id": "0", "messaging.kafka.offset": read_last(broker).offset(),
    }


def test_who_reads_the_record_finds_the_span_in_its_headers(broker, provider, exporter) -> None:
    with Producer(props(broker, provider)) as producer:
        producer.produce("one", None, headers={"mine": b"\xff"})
        producer.flush(20)
    message = read_last(broker)
    headers = dict(message.headers())
    sent, = exporter.get_finished_spans()
    assert headers["mine"] == b"\xff"
    assert headers["traceparent"].decode().split("-")[1] == f"{sent.context.trace_id:032x}"
    assert sent.attributes["messaging.kafka.message.tombstone"] is True
    with provider.get_tracer("reader").start_as_current_span("process one", context=extract(message)) as handling:
        assert handling.parent.span_id == sent.context.span_id
        assert handling.parent.is_remote


def test_a_record_that_is_sent_on_gets_a_new_context_and_a_link_to_the_old_one(broker, provider, exporter) -> None:
    with Producer(props(broker, provider)) as producer:
        producer.produce("one", b"1")
        producer.flush(20)
        producer.produce("one", b"2", headers=read_last(broker).headers())
        producer.flush(20)
    first, second = exporter.get_finished_spans()
    assert [link.context.span_id for link in second.links] == [first.context.span_id]
    assert [name for name, _ in read_last(broker).headers()] == ["traceparent"]
    assert trace.get_current_span(extract(read_last(broker))).get_span_context().span_id == second.context.span_id


def spans_with_error(exporter, kind):
    return [span for span in exporter.get_finished_spans() if span.attributes.get("error.type") == kind]


def test_a_record_that_is_not_accepted_has_a_span_that_failed(broker, provider, exporter) -> None:
    with Producer(props(broker, provider, **{"queue.buffering.max.messages": 1, "linger.ms": 10_000})) as producer:
        producer.produce("one", b"1")
        producer.flush(20)
        producer.produce("one", b"1")
        with pytest.raises(BufferFullError):
            producer.produce("one", b"2")
        [failed] = spans_with_error(exporter, "_QUEUE_FULL")
        assert failed.status.status_code is StatusCode.ERROR
        with pytest.raises(TypeError):
            producer.produce("one", 5)
        assert len(spans_with_error(exporter, "TypeError")) == 1


def test_a_record_that_is_given_up_has_a_span_that_failed(broker, provider, exporter) -> None:
    with Producer(props(broker, provider, **{"topic.metadata.propagation.max.ms": 100})) as producer:
        future = producer.send(ProducerRecord("one", b"x"))
        future.result(20)
        producer.produce("nowhere", b"x")
        producer.flush(20)
        with pytest.raises(KafkaException):
            producer.send(ProducerRecord("one", b"x", partition=7)).result(20)
    stored, *failed = exporter.get_finished_spans()
    assert stored.status.status_code is StatusCode.UNSET
    assert [span.name for span in failed] == ["send nowhere", "send one"]
    assert all(span.attributes["error.type"].startswith(("_UNKNOWN", "UNKNOWN")) for span in failed)


def test_a_record_that_is_not_sampled_carries_that_and_keeps_nothing(broker) -> None:
    interceptor = TracingInterceptor(TracerProvider(sampler=ALWAYS_OFF))
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "interceptor.classes": interceptor}) as producer:
        producer.produce("one", b"x")
        assert not interceptor._open
        producer.flush(20)
    flags = int(dict(read_last(broker).headers())["traceparent"].rpartition(b"-")[2], 16)
    assert not flags & TraceFlags.SAMPLED


def test_it_can_be_named_by_its_import_path_and_works_without_an_sdk_set_up(broker) -> None:
    with Producer({"bootstrap.servers": broker.bootstrap_servers,
                   "interceptor.classes": "headrace.opentelemetry.TracingInterceptor"}) as producer:
        producer.produce("one", b"plain", headers={"a": "b"})
        assert producer.flush(20) == 0
    assert read_last(broker).headers() == [("a", b"b")]
    assert not trace.get_current_span(extract(read_last(broker))).get_span_context().is_valid


def test_spans_that_nothing_is_heard_of_end_with_the_producer(provider, exporter) -> None:
    interceptor = TracingInterceptor(provider)
    interceptor.configure({"client.id": "c"})
    interceptor.on_send(ProducerRecord("one", b"x"))
    interceptor.close()
    assert [span.name for span in exporter.get_finished_spans()] == ["send one"]


def test_without_opentelemetry_the_error_says_what_to_install() -> None:
    code = ("import sys; sys.modules['opentelemetry'] = None\n"
            "from headrace import Producer\n"
            "path = 'headrace.opentelemetry.TracingInterceptor'\n"
            "Producer({'bootstrap.servers': 'a:1', 'interceptor.classes': path})")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'pip install "headrace[otel]"' in run.stderr.splitlines()[-1]
