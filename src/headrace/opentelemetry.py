"""OpenTelemetry: a span for each record that is sent, and its context for the reader of the record.

Needs `pip install headrace[otel]`, the API alone; what becomes of spans is up to the SDK that the application sets up.
A span is made and ended in Python for each record: where a producer sends hundreds of thousands of them a second, let
the SDK sample.

`TracingInterceptor` is given to "interceptor.classes": as text, `headrace.opentelemetry.TracingInterceptor`, or as an
object. Source: OpenTelemetry's semantic conventions for messaging and for Kafka. Read next:
`client.producer.interceptors`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

try:
    from opentelemetry import propagate, trace
    from opentelemetry.context import Context
    from opentelemetry.propagators.textmap import Getter, Setter, TextMapPropagator
    from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, TracerProvider
except ImportError as missing:
    raise ImportError(f'{missing}: pip install "headrace[otel]"') from missing

from headrace.client.producer.interceptors import ProducerInterceptor
from headrace.errors import KafkaError, KafkaException
from headrace.interpreter import SteadyLock
from headrace.records import Message
from headrace.types.records import ProducerRecord, RecordMetadata

__all__ = ["TracingInterceptor", "extract"]

Headers = list[tuple[str, Any]]

_LONGEST_KEY_BYTES = 1_000  # of a key that is shown
_MOST_OPEN = 1_000_000


class _Getter(Getter[Headers]):
    """Reads what a propagator asks for out of headers; what is no text is not there."""

    def get(self, carrier: Headers, key: str) -> list[str] | None:
        """The values of a header, None for none."""
        found = [_text(value) for name, value in carrier if name.lower() == key.lower()]
        return [value for value in found if value is not None] or None

    def keys(self, carrier: Headers) -> list[str]:
        """All names."""
        return [name for name, _ in carrier]


class _Setter(Setter[Headers]):
    """Writes headers; one of the same name is replaced."""

    def set(self, carrier: Headers, key: str, value: str) -> None:
        """Set a header."""
        carrier[:] = [(name, other) for name, other in carrier if name.lower() != key.lower()]
        carrier.append((key, value.encode()))


_GETTER, _SETTER = _Getter(), _Setter()


def extract(
    message: Message, context: Context | None = None, *, propagator: TextMapPropagator | None = None
) -> Context:
    """The context that a record's headers carry: the parent, or a link, for the span of who handles the record.

    Args:
        message: what a consumer read.
        context: what to add it to; the current context when None.
        propagator: reads the headers; the one of `opentelemetry.propagate` when None.

    Returns:
        A context; where the headers carry none, it is the given one.
    """
    reader = propagator or propagate.get_global_textmap()
    return reader.extract(_pairs(message.headers()), context, _GETTER)


class TracingInterceptor(ProducerInterceptor):
    """Makes the span "send TOPIC" for each record, from `produce()` or `send()` to its acknowledgement.

    The record's headers carry the span's context. Context that they carried before, of a record that is sent on, is
    replaced, and the span has a link to it.

    Args:
        tracer_provider: makes the tracer; the global one when None.
        propagator: writes the headers (`traceparent`); the one of `opentelemetry.propagate` when None.
    """

    def __init__(
        self, tracer_provider: TracerProvider | None = None, propagator: TextMapPropagator | None = None
    ) -> None:
        self._tracer = trace.get_tracer("headrace", tracer_provider=tracer_provider)
        self._propagator = propagator
        self._client_id = ""
        self._open: dict[tuple[int, int], Span] = {}
        self._lock = SteadyLock()

    def configure(self, config: Mapping[str, Any]) -> None:
        """Note the name of the client."""
        self._client_id = str(config["client.id"])

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """Start the span, and have the record carry its context. Returns the record that was given."""
        headers = _pairs(record.headers)
        before = self._context_of(headers)
        span = self._tracer.start_span(
            f"send {record.topic}", kind=SpanKind.PRODUCER, attributes=self._attributes(record),
            links=[Link(before)] if before.is_valid else None)
        context = span.get_span_context()
        if context.is_valid:
            self._writer().inject(headers, trace.set_span_in_context(span), _SETTER)
            record.headers = headers
        if span.is_recording():
            self._keep(context, span)
        return record

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: Exception | None) -> None:
        """End the record's span; its headers identify it."""
        if metadata is None:
            return
        context = self._context_of(_pairs(metadata.headers))
        with self._lock:
            span = self._open.pop((context.trace_id, context.span_id), None)
        if span is None:
            return
        if metadata.partition >= 0:
            span.set_attribute("messaging.destination.partition.id", str(metadata.partition))
        if metadata.offset >= 0:
            span.set_attribute("messaging.kafka.offset", metadata.offset)
        if error is not None:
            _fail(span, error)
        span.end()

    def close(self) -> None:
        """End the spans of records without a report."""
        with self._lock:
            left, self._open = list(self._open.values()), {}
        for span in left:
            span.end()

    def _attributes(self, record: ProducerRecord) -> dict[str, str | bool]:
        attributes: dict[str, str | bool] = {
            "messaging.system": "kafka", "messaging.operation.name": "send", "messaging.operation.type": "send",
            "messaging.destination.name": record.topic, "messaging.client.id": self._client_id,
        }
        key = _text(record.key)
        if key is not None and len(key) <= _LONGEST_KEY_BYTES:
            attributes["messaging.kafka.message.key"] = key
        if record.value is None:
            attributes["messaging.kafka.message.tombstone"] = True
        return attributes

    def _writer(self) -> TextMapPropagator:
        return self._propagator or propagate.get_global_textmap()

    def _context_of(self, headers: Headers) -> SpanContext:
        found = self._writer().extract(headers, Context(), _GETTER)
        return trace.get_current_span(found).get_span_context()

    def _keep(self, context: SpanContext, span: Span) -> None:
        with self._lock:
            self._open[context.trace_id, context.span_id] = span
            oldest = self._open.pop(next(iter(self._open))) if len(self._open) > _MOST_OPEN else None
        if oldest is not None:  # its header was taken away by another interceptor
            oldest.end()


def _fail(span: Span, error: Exception | KafkaError) -> None:
    kafka = error.error if isinstance(error, KafkaException) else error
    kind = kafka.name() if isinstance(kafka, KafkaError) else type(error).__name__
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, kafka.str() if isinstance(kafka, KafkaError) else str(error)))


def _pairs(headers: Mapping[str, Any] | Iterable[tuple[str, Any]] | None) -> Headers:
    if headers is None:
        return []
    return list(headers.items() if isinstance(headers, Mapping) else headers)


def _text(value: Any) -> str | None:
    """Text, or bytes that are text; else None."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            return None
    return value if isinstance(value, str) else None
