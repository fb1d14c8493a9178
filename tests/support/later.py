"""What another thread does while a call waits."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def later(seconds: float, act: Callable[[], object]) -> Iterator[None]:
    """Do something in another thread, so many seconds after the body began.

    As the last of `with pytest.raises(...), later(...)` it also holds for what comes before the body has begun, on a
    machine that stops just then.
    """
    timer = threading.Timer(seconds, act)
    timer.start()
    try:
        yield
    finally:
        timer.join()
