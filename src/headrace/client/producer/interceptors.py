"""Interceptors of the producer (KIP-42): they see each record before it is serialised, and what became of it.

`InterceptorChain` calls them in order and keeps their mistakes away from the producer and from each other.
It must not know how records are sent. Read next: `client.producer.interception`.
"""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from headrace.client.application_callbacks import ApplicationLog
from headrace.config import Config
from headrace.errors import ConfigError
from headrace.types.records import ProducerRecord, RecordMetadata

__all__ = ["InterceptorChain", "ProducerInterceptor"]


class ProducerInterceptor:
    """Base class of interceptors (Java: `ProducerInterceptor`); override what is of interest.

    Methods may be called from several threads at once. What `on_send`, `on_acknowledgement` and `close` raise is logged
    and goes no further. They must not wait: records, or their reports, wait behind them.
    """

    def configure(self, config: Mapping[str, Any]) -> None:
        """Called once, before anything else.

        Args:
            config: the producer's properties as they were given, and `client.id`, also when it was not given.

        Raises:
            Exception: the producer is not made; it raises `ConfigError`.
        """

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """A record is about to be sent: nothing is serialised yet, no partition chosen.

        Args:
            record: a copy of the record that was given, or of what the interceptor before returned.

        Returns:
            The record to send: this one, changed or not, or another.
        """
        return record

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: Exception | None) -> None:
        """A record was acknowledged, given up, or not accepted at all. Called just before the record's own callback.

        Args:
            metadata: where it was stored. With an error, what is known: the partition may be `NO_PARTITION`. None when
                `send()` was given something that is no record.
            error: None, a `KafkaError`, or what `send()` or `produce()` raised.
        """

    def close(self) -> None:
        """Called once, when the producer is closed."""


class InterceptorChain:
    """The interceptors of one producer, made and configured.

    Args:
        interceptors: in the order in which they are called.
        log: takes what they raise.
    """

    def __init__(self, interceptors: Sequence[ProducerInterceptor], log: ApplicationLog) -> None:
        self._interceptors = interceptors
        self._log = log
        self._closed = False

    @classmethod
    def of(cls, config: Config) -> InterceptorChain | None:
        """The chain that `interceptor.classes` asks for, None if it asks for none.

        Raises:
            ConfigError: an entry cannot be imported or is no interceptor, or it refused its configuration.
        """
        entries = config["interceptor.classes"]
        if not entries:
            return None
        chain = cls([_make(entry) for entry in entries], ApplicationLog(config))
        given = {**config.original, "client.id": config["client.id"]}
        for each in chain._interceptors:
            try:
                each.configure(dict(given))
            except Exception as refused:
                chain.close()
                raise ConfigError(f'{_name(each)} of "interceptor.classes" refused its configuration: '
                                  f"{type(refused).__name__}: {refused}") from refused
        return chain

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """The record that all interceptors made of this one; the given record stays as it is."""
        for each in self._interceptors:
            try:
                made: Any = each.on_send(_copy(record))  # one that changes it and then raises has changed nothing
            except Exception:
                self._log.log(logging.ERROR, "on_send of %s raised: the record goes on without it", _name(each),
                              exc_info=True)
                continue
            if isinstance(made, ProducerRecord):
                record = made
            else:
                self._log.log(logging.ERROR, "on_send of %s returned %s where a ProducerRecord is expected: the "
                              "record goes on without it", _name(each), type(made).__name__)
        return record

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: Exception | None) -> None:
        """Call all interceptors with a record's outcome."""
        for each in self._interceptors:
            self._call(each, "on_acknowledgement", metadata, error)

    def close(self) -> None:
        """Close all interceptors; the second call does nothing."""
        if not self._closed:
            self._closed = True
            for each in self._interceptors:
                self._call(each, "close")

    def _call(self, interceptor: ProducerInterceptor, method: str, *arguments: Any) -> None:
        try:
            getattr(interceptor, method)(*arguments)
        except Exception:
            self._log.log(logging.ERROR, "%s of %s raised", method, _name(interceptor), exc_info=True)


def _name(interceptor: ProducerInterceptor) -> str:
    return f"{type(interceptor).__module__}.{type(interceptor).__qualname__}"


def _copy(record: ProducerRecord) -> ProducerRecord:
    copied = copy.copy(record)
    if copied.headers is not None:
        copied.headers = dict(copied.headers) if isinstance(copied.headers, Mapping) else list(copied.headers)
    return copied


def _make(entry: Any) -> ProducerInterceptor:
    made = _load(entry) if isinstance(entry, str) else entry
    if isinstance(made, type) and issubclass(made, ProducerInterceptor):
        try:
            made = made()
        except Exception as failed:
            raise ConfigError(f'{made.__qualname__} of "interceptor.classes" cannot be made without arguments: '
                              f"{type(failed).__name__}: {failed}; give an object instead") from failed
    if not isinstance(made, ProducerInterceptor):
        raise ConfigError(f'Invalid value {entry!r} in "interceptor.classes": expected a class derived from '
                          "headrace.ProducerInterceptor, its import path, or an object of it")
    for method in ("on_send", "on_acknowledgement"):
        if inspect.iscoroutinefunction(getattr(made, method)):
            raise ConfigError(f'{method} of {_name(made)} of "interceptor.classes" must be a plain function, not a '
                              "coroutine function")
    return made


def _load(path: str) -> Any:
    module, _, name = path.replace(":", ".").rpartition(".")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as failed:
        raise ConfigError(f'Invalid value "{path}" in "interceptor.classes": {failed}. Expected the import path of a '
                          "Python class, as in package.module.Class") from failed
