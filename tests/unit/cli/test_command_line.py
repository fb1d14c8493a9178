"""The frame: the table of commands, help, version, mistakes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace import __version__
from headrace.cli import main
from headrace.cli.shared.commands import COMMANDS, SECTIONS
from headrace.cli.shared.exits import DONE, USAGE
from headrace.cli.shared.installation import EXTRAS, version_lines

MOST_MS = 60


def test_every_command_of_the_table_can_be_run_and_says_what_it_takes() -> None:
    for name, command in COMMANDS.items():
        module = command.load()
        assert callable(module.main)
        assert command.section in SECTIONS
        parsers = module.make_parsers() if hasattr(module, "make_parsers") else {"": module.make_parser()}
        for sub, parser in parsers.items():
            assert parser.prog == f"headrace {name} {sub}".rstrip()
            for argument in parser.arguments:
                assert parser.help_of(argument), f"{parser.prog}: {argument.dest} has no help"


def test_help_shows_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for name, command in COMMANDS.items():
        assert f"  {name}" in shown
        assert command.about in shown
    assert main([]) == 2


@pytest.mark.parametrize(("argv", "told"), [
    (["prodce"], "headrace: unknown command 'prodce'; did you mean produce? (see `headrace --help`)\n"),
    (["profiles", "lits"],
     "headrace profiles: unknown command 'lits'; did you mean list? (see `headrace profiles --help`)\n"),
    (["perf", "prodce"],
     "headrace perf: unknown command 'prodce'; did you mean produce? (see `headrace perf --help`)\n"),
])
def test_an_unknown_command_is_told_with_the_nearest_one(
    capsys: pytest.CaptureFixture[str], argv: list[str], told: str
) -> None:
    assert main(argv) == 2
    assert capsys.readouterr().err == told


@pytest.mark.parametrize(("argv", "told"), [
    (["profiles", "list", "--outptu", "json"], "unrecognized arguments: --outptu; did you mean --output?"),
    (["profiles", "list", "-o", "jsno"], "did you mean json?"),
    (["profiles", "list", "more"], "unrecognized arguments: more"),
    (["profiles", "list", "--outp", "json"], "unrecognized arguments: --outp; did you mean --output?"),
])
def test_a_wrong_option_is_one_line_with_status_2(
    capsys: pytest.CaptureFixture[str], argv: list[str], told: str
) -> None:
    with pytest.raises(SystemExit) as left:
        main(argv)
    assert left.value.code == 2
    shown = capsys.readouterr().err
    assert told in shown
    assert shown.count("\n") == 1


def test_version_says_what_runs_and_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"headrace {__version__}"
    monkeypatch.setenv("HEADRACE_PURE", "1")
    assert "native modules: not used, for HEADRACE_PURE=1 says so: plain Python runs" in version_lines()
    monkeypatch.delenv("HEADRACE_PURE")
    monkeypatch.setattr("headrace.cli.shared.installation.find_spec", lambda name: None)
    told = version_lines()
    assert "_batch, _joined_rows, _buffer, _avro_columns" in told[2]
    assert all(f"{extra} (" in told[3] for extra in EXTRAS)


def test_help_takes_little_cpu_and_loads_no_command() -> None:
    code = ("import sys, time\nfrom headrace.cli import main\nmain(['--help'])\nprint(time.process_time(), "
            "*sys.modules, file=sys.stderr)")
    rounds = []
    for _ in range(8):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                              env=dict(os.environ))
        spent, *loaded = done.stderr.split()
        rounds.append(float(spent) * 1000)
        if rounds[-1] < MOST_MS:
            break
    assert min(rounds) < MOST_MS
    assert not {f"headrace.cli.{command.place}" for command in COMMANDS.values()} & set(loaded)
    assert not {"argparse", "asyncio", "headrace.client"} & set(loaded)


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of Unix closes the streams")
@pytest.mark.parametrize(("command", "status"), [("errors 3", DONE), ("--help", DONE), ("nope", USAGE)])
def test_standard_streams_that_the_shell_has_closed_do_no_harm(command: str, status: int, tmp_path: Path) -> None:
    told = tmp_path / "told"
    for closed in (f"<&- >&- 2>{told}", f">{told} 2>&-"):
        told.unlink(missing_ok=True)
        done = subprocess.run(f"'{sys.executable}' -m headrace.cli {command} {closed}", shell=True, timeout=100,
                              env=dict(os.environ))
        assert done.returncode == status
        assert "Traceback" not in told.read_text()
