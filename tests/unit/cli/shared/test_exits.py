"""How commands end."""

import gc
import io
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from headrace.cli.shared.exits import MEANINGS, RefusedError, guarded, status_of, text_of
from headrace.errors import ConfigError, DependencyError, KafkaError, KafkaException, SchemaRegistryError


@pytest.mark.parametrize(("error", "status"), [
    (ConfigError("x"), 2), (DependencyError("x"), 2), (RefusedError("x"), 2), (RefusedError("x", 1), 1),
    (KafkaException(KafkaError(KafkaError._TRANSPORT)), 3), (KafkaException(KafkaError(KafkaError._TIMED_OUT)), 3),
    (KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)), 4),
    (KafkaException(KafkaError(KafkaError.SASL_AUTHENTICATION_FAILED)), 4),
    (KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)), 5),
    (KafkaException(KafkaError(KafkaError.TOPIC_ALREADY_EXISTS)), 6),
    (KafkaException(KafkaError(KafkaError.NON_EMPTY_GROUP)), 6),
    (KafkaException(KafkaError(KafkaError.UNKNOWN)), 1), (SchemaRegistryError(-1, -1, "x"), 3),
    (SchemaRegistryError(404, 40401, "x"), 5), (SchemaRegistryError(401, 401, "x"), 4),
    (SchemaRegistryError(409, 409, "x"), 6), (SchemaRegistryError(500, 1, "x"), 1), (OSError(28, "full"), 1),
    (KeyboardInterrupt(), 130),
])
def test_each_error_has_its_documented_status(error: BaseException, status: int) -> None:
    assert status_of(error) == status
    assert status in MEANINGS


def test_an_error_is_one_line() -> None:
    assert text_of(KafkaException(KafkaError(KafkaError._FAIL, "a\n  b"))) == "a b"
    assert text_of(OSError(28, "No space left on device", "out.json")) == "out.json: No space left on device"
    assert text_of(OSError(28, "No space left on device")) == "No space left on device"
    assert text_of(RuntimeError()) == "RuntimeError"


def test_ctrl_c_between_a_call_and_its_beginning_says_nothing() -> None:
    async def call() -> None: ...

    def interrupted() -> int:
        not_begun = call()
        raise KeyboardInterrupt(not_begun.__name__)

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert guarded("headrace", interrupted) == 130
        gc.collect()
    assert not warned


def test_what_ends_a_command_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def refuse() -> int:
        raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, 'topic "x" is not known'))

    assert guarded("headrace x", refuse) == 5
    assert capsys.readouterr().err == 'headrace x: topic "x" is not known\n'
    assert guarded("headrace x", lambda: 0) == 0


def test_a_mistake_of_ours_is_not_hidden() -> None:
    def fail() -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        guarded("headrace x", fail)


def test_ctrl_c_is_status_130_and_silent_elsewhere_than_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert guarded("headrace x", stop) == 130
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]


def test_a_reader_that_has_seen_enough_ends_it_cleanly(tmp_path: Path) -> None:
    rows = "[{'t': n} for n in range(100_000)]"
    code = ("import sys; from headrace.cli.shared.output import *; from headrace.cli.shared.exits import guarded; "
            f"sys.exit(guarded('x', lambda: print_rows('json', [Column('t', '')], {rows}) or 0))")
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"[\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_told_in_one_line() -> None:
    code = ("import sys; from headrace.cli.shared.exits import guarded; "
            "sys.exit(guarded('headrace x', lambda: print('a' * 100) or 0))")
    with open("/dev/full", "w") as full:
        ended = subprocess.run([sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True)
    assert ended.stderr == "headrace x: No space left on device\n"
    assert ended.returncode == 1
