"""What `import confluent_kafka` finds in a process that a program on headrace has started: headrace.

Such a process (multiprocessing's `spawn` and `forkserver`) is a new interpreter, in which nothing is installed; what it
gets of its parent, in front of everything that it imports, is `sys.path`.
"""

from __future__ import annotations

import sys
from importlib import import_module

from headrace.as_confluent_kafka import install

if __name__ == "confluent_kafka":
    del sys.modules[__name__]  # install() refuses where it is there already
    install()
    import_module(__name__)
