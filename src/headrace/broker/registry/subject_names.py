"""Names of subjects and the contexts in them: `:.context:subject`. The default context is `.`, and is not written.

Each context has ids of its own. Read next: `broker.registry.registry_state`.
"""

from __future__ import annotations

import re
from typing import Final

from headrace.broker.registry.rest_errors import RestError

__all__ = ["DEFAULT_CONTEXT", "context_of", "in_context", "normalized", "plain_name",
           "referred_subject"]

DEFAULT_CONTEXT: Final = "."
ALL_CONTEXTS: Final = ":*:"
"""Prefix that every subject has."""
_QUALIFIED = re.compile(r":(\.[^:]*):(.*)", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_RESERVED = ("__GLOBAL", "__EMPTY")


def normalized(name: str) -> str:
    """A subject as it is kept: without the default context.

    Raises:
        RestError: 42208, it cannot be a subject.
    """
    if _CONTROL.search(name) or name in _RESERVED:
        raise RestError(42208, f"The specified subject '{name}' is not a valid.")
    return in_context(context_of(name), plain_name(name))


def context_of(name: str) -> str:
    """The context of a subject."""
    found = _QUALIFIED.fullmatch(name)
    return found[1] if found else DEFAULT_CONTEXT


def plain_name(name: str) -> str:
    """A subject without its context."""
    found = _QUALIFIED.fullmatch(name)
    return found[2] if found else name


def referred_subject(referring: str, name: str) -> str:
    """The subject that a reference names: in the context of the one that refers, if it names none."""
    own = context_of(name) if _QUALIFIED.fullmatch(name) else context_of(referring)
    return in_context(own, plain_name(name))


def in_context(context: str, plain: str) -> str:
    """A subject with its context, where it is not the default one."""
    return plain if context == DEFAULT_CONTEXT else f":{context}:{plain}"
