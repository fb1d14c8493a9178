"""`Tether`: something to tie the end of an object to. The plain twin.

Read next: `headrace.client.application_callbacks`, which ties clients to it.
"""

from __future__ import annotations

__all__ = ["Tether"]


class Tether:
    """Ends behind the object that holds it.

    Of a circle that it finds, the garbage collector cuts the weak references first, then calls the `__del__` methods,
    then takes the circle apart. Only the native twin ends with the last step, for the collector does not see it; this
    one ends with the first.
    """

    __slots__ = ("__weakref__",)
