"""Completion: the shells themselves are asked, where they are installed."""

import shutil
import subprocess

import pytest

from headrace.cli.shared.commands import COMMANDS
from headrace.cli.shared.completions import SHELLS, completion_script, words_of_all


def completed(line: str) -> list[str]:
    """What bash offers for a line."""
    words = line.split(" ")
    script = (f"{completion_script('bash')}\nCOMP_WORDS=({' '.join(words)} {'' if words[-1] else chr(39) * 2})\n"
              f"COMP_CWORD={len(words) - 1}\n_headrace\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"")
    done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")


@needs_bash
def test_bash_offers_commands_their_commands_options_and_values() -> None:
    assert set(completed("headrace ")) == set(COMMANDS)
    assert completed("headrace prod") == ["produce"]
    assert set(completed("headrace profiles ")) == {"list", "show"}
    assert completed("headrace produce --transactional") == ["--transactional-id"]
    assert completed("headrace produce t --format ") == ["lines", "jsonl", "csv", "parquet"]
    assert completed("headrace profiles list -o js") == ["json"]
    assert completed("headrace produce t --key ") == []


def test_every_command_has_words() -> None:
    words = words_of_all()
    for name in COMMANDS:
        assert words[name,]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_that_is_here_can_read_its_script(shell: str) -> None:
    script = completion_script(shell)
    assert "headrace" in script
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    checked = subprocess.run([shell, "-n" if shell != "fish" else "--no-execute"], input=script, text=True,
                             capture_output=True)
    assert (checked.returncode, checked.stderr) == (0, "")
