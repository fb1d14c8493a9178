"""A member of a share group that writes down what it gets and what brokers have confirmed, until it is told to end.

    python -m tests.support.share_worker PROPERTIES TOPIC LOG

Each line of the log is a word, a partition, an offset and a delivery count: D for a record that was handed out, A for
one whose acceptance a broker has confirmed. A record in ten is released the first time. SIGTERM ends it.
"""

import ast
import signal
import sys
from pathlib import Path
from typing import Any

from headrace import AcknowledgeType, Message, ShareConsumer


def main(properties: str, topic: str, log: str) -> None:
    """Read, acknowledge and commit."""
    ends: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ends.append(number))
    with Path(log).open("a") as file, ShareConsumer(ast.literal_eval(properties)) as consumer:
        consumer.subscribe([topic])
        while not ends:
            messages = [message for message in consumer.poll(0.3) if message.error() is None]
            write(file, "D", messages)
            accepted = [message for message in messages if not process(consumer, message)]
            answers = consumer.commit_sync(10)
            confirmed = {where.partition for where, error in answers.items() if error is None}
            write(file, "A", [message for message in accepted if message.partition() in confirmed])


def process(consumer: ShareConsumer, message: Message) -> bool:
    """Acknowledge a record; whether it was released."""
    released = message.delivery_count() == 1 and int(message.value()) % 10 == 3
    consumer.acknowledge(message, AcknowledgeType.RELEASE if released else AcknowledgeType.ACCEPT)
    return released


def write(file: Any, word: str, messages: list[Message]) -> None:
    """Write a line for each record, and let nothing of it be lost with the process."""
    file.writelines(f"{word} {m.partition()} {m.offset()} {m.delivery_count()}\n" for m in messages)
    file.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
