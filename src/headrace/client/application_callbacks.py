"""What an application gave a client to call. Functions: the client's face holds them, its machines only borrow them.

Such a function often leads back to the face, as a method of the object that owns it does. Machines run on a loop that
lives on; if they held the function, the face would live as long as the loop. So what leads back to the face is held by
the face alone, and the garbage collector finds the circle. It must not know when callbacks are called.

A logger leads back to no face; what it raises is its own fault, and ends nothing of the client.

Read next: `client.consumer.consumer_engine`, `client.producer.producer`.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import traceback
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from headrace.buffers import Tether
from headrace.config import PROPERTIES, Config

__all__ = ["ApplicationCallbacks", "ApplicationLog"]

_NAMES = {name: row.name for row in PROPERTIES.values() if row.kind == "callable" for name in (row.name, *row.aliases)}


class ApplicationCallbacks:
    """Holds functions for a face. The face must hold this, and nothing else may.

    Args:
        face: the client that functions get to see.
    """

    def __init__(self, face: Any) -> None:
        self._functions: dict[object, Callable[..., Any] | None] = {}
        self._link = _Link()
        self._tether = Tether()
        self._end: weakref.finalize[..., Tether] | None = None
        self.renew(face)

    def renew(self, face: Any) -> None:
        """Let the functions be called in the face's last call as well, which may be one in a `__del__` method.

        Before the collector calls those of a circle, it has cut the weak references to all that is in it.
        """
        self._link.holder, self._link.face = weakref.ref(self), weakref.ref(face)

    def lend(self, key: object, function: Callable[..., Any] | None) -> Callable[..., Any] | None:
        """A function that calls the one held under a key, as long as the face is there; None for none."""
        self._functions[key] = function
        if function is None:
            return None
        link = self._link

        def call(*arguments: Any) -> Any:
            held = link.holder()
            now = None if held is None else held._functions[key]
            return None if now is None else now(*arguments)

        async def call_and_wait(*arguments: Any) -> Any:
            result = call(*arguments)
            return await result if inspect.isawaitable(result) else result

        return call_and_wait if inspect.iscoroutinefunction(function) else call

    def lend_with_face(self, key: object, function: Callable[..., Any] | None) -> Callable[..., Any] | None:
        """Lend a function that gets the face in front of the other arguments; None for none."""
        link = self._link
        return self.lend(key, None if function is None else lambda *arguments: function(link.face(), *arguments))

    def lend_properties(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """Properties with the functions among them lent."""
        return {name: self.lend(_NAMES[name], value) if name in _NAMES and callable(value) else value
                for name, value in properties.items()}

    def held(self, key: object) -> Callable[..., Any] | None:
        """The function itself, for who may hold it: a face."""
        return self._functions.get(key)

    def when_let_go(self, usable: Callable[[], bool], abandon: Callable[[], object]) -> None:
        """Have `abandon` called on the running loop once the face is let go, behind what `__del__` methods call.

        Args:
            usable: whether there is something to do; called on the thread on which the face ends.
            abandon: called on the loop. Neither may lead back to the face, nor to a function that it holds.
        """
        self.end_with(_let_go, asyncio.get_running_loop(), usable, abandon).atexit = False

    def end_with(self, action: Callable[..., object], *arguments: Any) -> weakref.finalize[..., Tether]:
        """Have something else called, on the thread on which the face is let go, or when the interpreter ends."""
        if self._end is not None:
            self._end.detach()
        self._end = weakref.finalize(self._tether, action, *arguments)
        return self._end


class _Link:
    """Leads from functions that were lent to who holds them, and to the face."""

    holder: weakref.ref[ApplicationCallbacks]
    face: weakref.ref[Any]


def _let_go(loop: asyncio.AbstractEventLoop, usable: Callable[[], bool], abandon: Callable[[], object]) -> None:
    if usable():
        with suppress(RuntimeError):  # the loop is closed; so are the sockets
            loop.call_soon_threadsafe(abandon)


class ApplicationLog:
    """Writes to the logger of the property "logger", or to "headrace" of `logging`. Thread-safe, if that one is.

    Handlers of `logging` swallow what they raise; one that an application wrote need not, nor a logger that is none of
    `logging`'s. Most lines are written on the client's loop, amid its work, where nobody could catch it.

    Args:
        config: the client's.
    """

    def __init__(self, config: Config) -> None:
        # As in confluent_kafka, log() is all that a logger must have.
        self._logger = config["logger"] or logging.getLogger("headrace")
        self._has_failed = False

    def log(self, level: int, text: str, *arguments: Any, **details: Any) -> None:
        """Write a line. The first that cannot be written is told on stderr: a full disk would fail at each.

        Args:
            level: one of `logging`.
            text: with a place for each argument, as `%` fills them in.
            arguments: for these places.
            details: others of `logging.Logger.log`, as `exc_info`.
        """
        try:
            self._logger.log(level, text, *arguments, **details)
        except Exception:
            if not self._has_failed:
                self._has_failed = True
                traceback.print_exc()
