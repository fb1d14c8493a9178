"""Topics of a program's own."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from headrace.admin import AdminClient, NewTopic


def made(bootstrap: str, random: Random, sizes: Iterable[int]) -> list[str]:
    """The names of new topics with so many partitions."""
    name = f"waits-{random.getrandbits(64):x}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    answers = admin.create_topics([NewTopic(f"{name}-{size}", size, 1) for size in sizes])
    for answer in answers.values():
        answer.result()
    return list(answers)
