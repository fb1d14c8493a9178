"""Errors: one value that describes what went wrong, and exceptions classed by what the caller should do.

`KafkaError` is a description (code, name, text, flags) and is what callbacks and `Message.error()` hand out.
`KafkaException` is what is raised; its first argument is the `KafkaError`. Subclasses say what to do about it:
fix the program, wait, retry, or close the client. The table of codes is in `headrace.error_codes`.

This module must not know anything above it: no wire format, no clients. Read next: `headrace.error_codes`.
"""

from __future__ import annotations

import builtins
import operator

from headrace.error_codes import CODES, ErrorCode, ErrorCodes

TYPE_CHECKING = False  # as in `headrace`
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "BufferFullError",
    "CallbackTypeError",
    "ClientClosedError",
    "CommitError",
    "ConcurrentModificationException",
    "ConfigError",
    "ConsumeError",
    "CorruptRecordError",
    "DependencyError",
    "FatalError",
    "IllegalStateException",
    "KafkaError",
    "KafkaException",
    "KeyDeserializationError",
    "KeySerializationError",
    "OAuthTokenError",
    "ProduceError",
    "ProtocolError",
    "RetriableError",
    "SchemaRegistryError",
    "SerializationError",
    "ValueDeserializationError",
    "ValueSerializationError",
    "WakeupError",
]


class KafkaException(Exception):
    """Raised for every failure that Kafka or the client reports. `args[0]` is the `KafkaError`."""

    @property
    def error(self) -> KafkaError:
        """The `KafkaError` that says what happened."""
        first = self.args[0] if self.args else None
        return first if isinstance(first, KafkaError) else KafkaError(KafkaError._FAIL, str(self))


class KafkaError(ErrorCodes, KafkaException):
    """What went wrong: a code, its name, one line of text, and what may be done about it.

    Compares as its code does, with codes and with others of its kind (`err == KafkaError._TIMED_OUT`). Every code is
    a class attribute under librdkafka's name: negative codes are the client's own, others the broker's.

    Args:
        error: error code, a key of `headrace.error_codes.CODES`.
        reason: one line that says what, where and what to do; the code's documented meaning when None.
        fatal: the client cannot go on and must be closed.
        retriable: the same call may succeed when it is tried again; None takes the documented answer of the code,
            which is no if the error is fatal or asks for an abort.
        txn_requires_abort: the current transaction must be aborted.
        maybe_applied: the broker may have carried the request out although no reply arrived.
    """

    def __init__(
        self,
        error: int,
        reason: builtins.str | None = None,
        fatal: bool = False,
        retriable: bool | None = None,
        txn_requires_abort: bool = False,
        *,
        maybe_applied: bool = False,
    ) -> None:
        code = operator.index(error)
        if not -(1 << 31) <= code < 1 << 31:
            raise OverflowError(f"error {code} is no code: it must fit in 32 bits")
        if not (reason is None or isinstance(reason, builtins.str)):
            raise TypeError(f"reason must be str or None, not {type(reason).__name__}")
        entry = CODES.get(code) or ErrorCode(code, f"ERR_{code}?", f"ERR_{code}?", False,
                                             f"Err-{code}?: this code is not known here.")
        self._entry = entry
        self._code = code
        self._reason = entry.about if reason is None else reason
        self._fatal = bool(operator.index(fatal))
        self._txn_requires_abort = bool(operator.index(txn_requires_abort))
        documented = entry.retriable and not (self._fatal or self._txn_requires_abort)
        self._retriable = documented if retriable is None else bool(operator.index(retriable))
        self.maybe_applied = maybe_applied
        super().__init__(self)

    def code(self) -> int:
        """The error code: negative for the client's own errors, positive for the broker's."""
        return self._code

    def name(self) -> builtins.str:
        """The code's name as librdkafka spells it, for example ``UNKNOWN_TOPIC_OR_PART``."""
        return self._entry.name

    def str(self) -> builtins.str:
        """One line of text: what happened, and where known what to do."""
        return self._reason

    def fatal(self) -> bool:
        """True when the client instance cannot continue and must be closed."""
        return self._fatal

    def retriable(self) -> bool:
        """True when the operation may succeed if it is tried again."""
        return self._retriable

    def txn_requires_abort(self) -> bool:
        """True when the current transaction must be aborted before going on."""
        return self._txn_requires_abort

    def __eq__(self, other: object) -> bool:
        if isinstance(other, KafkaError):
            return self._code == other._code
        if isinstance(other, int):
            return self._code == other
        return NotImplemented

    def __lt__(self, other: KafkaError | int) -> bool:
        return self._code < _code_of(other)

    def __le__(self, other: KafkaError | int) -> bool:
        return self._code <= _code_of(other)

    def __gt__(self, other: KafkaError | int) -> bool:
        return self._code > _code_of(other)

    def __ge__(self, other: KafkaError | int) -> bool:
        return self._code >= _code_of(other)

    def __hash__(self) -> int:
        return hash(self._code)

    def __str__(self) -> builtins.str:
        fatal = "FATAL," if self._fatal else ""
        return f'KafkaError{{{fatal}code={self.name()},val={self._code},str="{self._reason}"}}'

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self._code, self._reason, self._fatal, self._retriable,
                           self._txn_requires_abort, self.maybe_applied))


def _rebuild(
    cls: type[KafkaError], code: int, reason: str, fatal: bool, retriable: bool, abort: bool, maybe: bool
) -> KafkaError:
    return cls(code, reason, fatal, retriable, abort, maybe_applied=maybe)


def _code_of(error: KafkaError | int) -> int:
    return error.code() if isinstance(error, KafkaError) else error


class _Classed(KafkaException):
    """An exception class with a fixed code; takes one line of text or a ready `KafkaError`."""

    code = KafkaError._FAIL

    def __init__(self, reason: str | KafkaError) -> None:
        super().__init__(reason if isinstance(reason, KafkaError) else KafkaError(self.code, reason))

    def __str__(self) -> str:
        error = self.error
        return error.str() if error.code() == self.code else super().__str__()  # the class says the code


class ConfigError(_Classed, ValueError):
    """A property is unknown, malformed or contradicts another. Fix the program; nothing was started."""

    code = KafkaError._INVALID_ARG


class CallbackTypeError(ConfigError, TypeError):
    """A property that takes a function was given something else."""


class BufferFullError(_Classed, BufferError):
    """The producer's buffer is full. Serve delivery reports with `poll()` and try again, or raise the limit."""

    code = KafkaError._QUEUE_FULL


class ClientClosedError(_Classed, RuntimeError):
    """A method was called on a client after `close()`. Make a new client."""

    code = KafkaError._DESTROY


class WakeupError(_Classed):
    """`wakeup()` has ended a call that waited. The client goes on as before: nothing is lost, call it again."""

    code = KafkaError._INTR


class IllegalStateException(RuntimeError):
    """A share consumer cannot do that now: it is closed, has no subscription, or waits for acknowledgements."""


class ConcurrentModificationException(RuntimeError):
    """A share consumer was called while another call to it went on, in another thread or task."""


class RetriableError(_Classed):
    """The call failed for a passing reason (lost connection, moving leader, timeout). Try it again."""

    code = KafkaError._RETRY


class FatalError(_Classed):
    """The client cannot go on: fenced, not authorised, or its guarantees are broken. Close it."""

    code = KafkaError._FATAL


class ProtocolError(_Classed, ValueError):
    """Bytes or a message break the wire format: a bad length, count or version. The connection is closed."""

    code = KafkaError._BAD_MSG


class CorruptRecordError(ProtocolError):
    """A record batch is damaged: bad checksum, size or count. Names topic, partition and offset where known."""

    code = KafkaError.INVALID_MSG


class DependencyError(ImportError):
    """An optional package is missing. The text names the extra to install, for example `headrace[spark]`."""


class CommitError(KafkaException):
    """Offsets were not committed, or not those of all partitions.

    Attributes:
        partitions: what was to be committed, each with its own `error`; None for those that were.
    """

    def __init__(self, error: KafkaError, partitions: list[Any]) -> None:
        super().__init__(error)
        self.partitions = partitions

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.error, self.partitions))


class SerializationError(KafkaException):
    """Raised by serializers and deserializers: this object, or these bytes, cannot be converted."""


class _ClientError(KafkaException):
    """An error with the exception, and the message, that it is about.

    Attributes:
        exception: what was raised, None if nothing was.
        kafka_message: the message that was read, None if there is none.
    """

    def __init__(
        self, kafka_error: KafkaError, exception: Exception | None = None, kafka_message: Any = None
    ) -> None:
        super().__init__(kafka_error)
        self.exception = exception
        self.kafka_message = kafka_message

    @property
    def code(self) -> int:
        """The code of the error."""
        return self.error.code()

    @property
    def name(self) -> str:
        """The name of the code."""
        return self.error.name()

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild_client_error, (type(self), self.args, self.__dict__))


def _rebuild_client_error(cls: type[_ClientError], args: tuple[Any, ...], state: dict[str, Any]) -> _ClientError:
    made = cls.__new__(cls, *args)
    made.__dict__.update(state)
    return made


class ConsumeError(_ClientError):
    """A message cannot be read; `kafka_message` has its bytes."""


class KeyDeserializationError(ConsumeError, SerializationError):
    """A key cannot be deserialized."""

    def __init__(self, exception: Exception | None = None, kafka_message: Any = None) -> None:
        super().__init__(KafkaError(KafkaError._KEY_DESERIALIZATION, str(exception)), exception, kafka_message)


class ValueDeserializationError(ConsumeError, SerializationError):
    """A value cannot be deserialized."""

    def __init__(self, exception: Exception | None = None, kafka_message: Any = None) -> None:
        super().__init__(KafkaError(KafkaError._VALUE_DESERIALIZATION, str(exception)), exception, kafka_message)


class ProduceError(_ClientError):
    """A message cannot be sent."""

    def __init__(self, kafka_error: KafkaError, exception: Exception | None = None) -> None:
        super().__init__(kafka_error, exception)


class KeySerializationError(ProduceError, SerializationError):
    """A key cannot be serialized."""

    def __init__(self, exception: Exception | None = None) -> None:
        super().__init__(KafkaError(KafkaError._KEY_SERIALIZATION, str(exception)), exception)


class ValueSerializationError(ProduceError, SerializationError):
    """A value cannot be serialized."""

    def __init__(self, exception: Exception | None = None) -> None:
        super().__init__(KafkaError(KafkaError._VALUE_SERIALIZATION, str(exception)), exception)


class SchemaRegistryError(Exception):
    """A Schema Registry refused a call, answered what cannot be read, or did not answer.

    Args:
        http_status_code: of the answer; -1 when there was none.
        error_code: the registry's own code; `UNKNOWN` when it gave none.
        error_message: one line that says what happened.
    """

    UNKNOWN = -1

    def __init__(self, http_status_code: int, error_code: int, error_message: str) -> None:
        super().__init__(http_status_code, error_code, error_message)
        self.http_status_code = http_status_code
        self.error_code = error_code
        self.error_message = error_message

    def __str__(self) -> str:
        return f"{self.error_message} (HTTP status code {self.http_status_code}, SR code {self.error_code})"

    __repr__ = __str__


class OAuthTokenError(Exception):
    """A token for a Schema Registry cannot be had.

    Args:
        message: what happened.
        status_code: of the answer of who was asked for it, None when there was none.
        response_text: what that answer said.
    """

    def __init__(self, message: str, status_code: int | None = None, response_text: str | None = None) -> None:
        super().__init__(message, status_code, response_text)
        self.message = message
        self.status_code = status_code
        self.response_text = response_text

    def __str__(self) -> str:
        return f"{self.message} (HTTP {self.status_code}): {self.response_text}"
