"""Code that is compiled when the package is built: it is taken for its own text only, and is what clients need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace import compiled
from headrace.compiled import NONE, code_of, function_of, read_table, table_of
from headrace.testing import EmbeddedBroker

ONE, OTHER = "def f(x):\n    return x + one", "def f(x):\n    return x - one"
FIRST_CLIENTS = """
import sys
from headrace import compiled
compiled.TABLE = sys.argv[1]
missed, code_of = [], compiled.code_of
def noting(text, title, table):
    if title not in table.places:
        missed.append(title)
    return code_of(text, title, table)
compiled.code_of = noting
from headrace import Consumer, Producer, ShareConsumer
where = {"bootstrap.servers": sys.argv[2]}
producer = Producer({**where, "enable.idempotence": True})
producer.produce("t", b"value", key=b"key")
assert producer.flush(20) == 0
for protocol in ("classic", "consumer"):
    consumer = Consumer({**where, "group.id": protocol, "group.protocol": protocol, "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    assert consumer.poll(20).value() == b"value"
    consumer.commit(asynchronous=False)
    consumer.close()
print(missed)
"""


def value_of(text: str, table: compiled.Table) -> int:
    names: dict[str, int] = {"one": 1}
    exec(code_of(text, "f of x", table), names)
    return names["f"](10)  # type: ignore[operator]


def test_a_function_is_what_its_text_says_whether_its_code_was_kept_or_is_made_now() -> None:
    kept = read_table(table_of({"f of x": ONE}))
    assert list(kept.places) == ["f of x"]
    assert (value_of(ONE, kept), value_of(ONE, NONE)) == (11, 11)
    assert function_of("f", ONE, {"one": 1}, "f of x")(10) == 11


def test_the_code_of_another_text_is_not_taken_for_the_same_title() -> None:
    assert value_of(OTHER, read_table(table_of({"f of x": ONE}))) == 9


def test_tracebacks_name_what_a_function_was_made_for() -> None:
    for table in (NONE, read_table(table_of({"f of x": ONE}))):
        assert code_of(ONE, "f of x", table).co_filename == "<f of x>"


def test_the_table_of_another_python_and_one_that_is_cut_short_are_as_good_as_none() -> None:
    whole = table_of({"f of x": ONE})
    assert read_table(b"\0\0\0\0" + whole[4:]) is NONE
    for size in range(len(whole)):
        assert read_table(whole[:size]) is NONE
    assert read_table(whole + b"\0") is NONE


@pytest.mark.parametrize("pure", ["", "1"])
def test_all_that_the_first_clients_of_a_process_need_has_been_compiled_before(tmp_path: Path, pure: str) -> None:
    environment = {**os.environ, "HEADRACE_PURE": pure}
    table = tmp_path / "table"
    subprocess.run([sys.executable, "-m", "tools.compiled_texts", table], check=True, timeout=60, env=environment)
    with EmbeddedBroker(topics={"t": 1}) as broker:
        done = subprocess.run([sys.executable, "-c", FIRST_CLIENTS, table, broker.bootstrap_servers],
                              capture_output=True, text=True, timeout=90, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"
