"""The tutorial for Spark users, done as it is written: programs, files and commands in order, and what they print."""

import re
import shlex
from pathlib import Path

import pytest

from headrace.cli import main

pytest.importorskip("pyspark")
for package in ("fastavro", "httpx2"):
    pytest.importorskip(package)

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

PAGE = Path(__file__).parents[3] / "docs/tutorial/spark.md"
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text(), re.DOTALL)


class Reader:
    """Who follows the page: one Python session, one directory, one terminal."""

    def __init__(self, capsys):
        self.capsys = capsys
        self.names = {"__name__": "__main__"}
        self.told = ""

    def python(self, program):
        # Relative paths are of the directory in which Spark was started, and here it runs already.
        program = program.replace('"checkpoints/', f'"{Path.cwd()}/checkpoints/')
        exec(compile(program, PAGE.name, "exec"), self.names)
        self.told = self.capsys.readouterr().out

    def text(self, printed):
        assert printed in self.told

    def toml(self, content):
        name = re.match(r"# (\S+)\n", content)[1]
        Path(name).write_text(content)

    def sh(self, lines):
        self.told = ""
        for line in lines.splitlines():
            words = shlex.split(line.replace("localhost:9092", self.names["broker"].bootstrap_servers)
                                if "broker" in self.names else line, comments=True)
            if words[:1] == ["headrace"]:
                assert main([*words[1:], "--directory", str(Path.cwd())]) == 0
                self.told += self.capsys.readouterr().out


@pytest.fixture
def settings_kept(spark):
    """The session is everybody's: what the page sets is set back."""
    before = spark.conf.get("spark.sql.shuffle.partitions")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", before)


def test_each_program_of_the_tutorial_prints_what_the_page_says(settings_kept, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    reader = Reader(capsys)
    try:
        for kind, content in BLOCKS:
            getattr(reader, kind)(content)
    finally:
        if "broker" in reader.names:
            reader.names["broker"].stop()


def test_the_page_has_programs_of_each_kind_and_says_what_they_print():
    kinds = [kind for kind, _ in BLOCKS]
    assert set(kinds) == {"sh", "python", "text", "toml"}
    assert kinds.count("python") >= 5
    assert all(later == "text" for earlier, later, content in zip(kinds, kinds[1:], BLOCKS, strict=False)
               if earlier == "python" and "print(" in content[1])
