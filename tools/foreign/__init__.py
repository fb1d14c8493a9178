"""Clients of other projects as child processes: kafkajs, franz-go and Java, installed when they are needed.

`python -m tools.foreign` installs all three. Their programs are in `tests/integration/foreign`. Read next:
`tools.foreign.install`.
"""

from tools.foreign.install import CLIENTS, MissingClientError, Program, program

__all__ = ["CLIENTS", "MissingClientError", "Program", "program"]
