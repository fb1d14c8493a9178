"""The tutorials, done as they are written: programs, files and commands in order, and what they print."""

import pytest

from tests.support.pages import DOCS, Reader, blocks_of

pytest.importorskip("pyspark")
for package in ("fastavro", "httpx2"):
    pytest.importorskip(package)

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

SPARK, FIRST_STEPS = DOCS / "tutorial/spark.md", DOCS / "tutorial/first-steps.md"
PAGES = pytest.mark.parametrize("page", [SPARK, FIRST_STEPS], ids=lambda page: page.stem)


@pytest.fixture
def settings_kept(spark):
    """The session is everybody's: what the page sets is set back."""
    before = spark.conf.get("spark.sql.shuffle.partitions")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", before)


@PAGES
def test_each_program_of_the_tutorial_prints_what_the_page_says(page, settings_kept, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Reader(capsys).follow(blocks_of(page))


@PAGES
def test_the_page_says_what_its_programs_print(page):
    kinds = [kind for kind, _ in blocks_of(page)]
    assert kinds.count("python") >= 5
    assert all(later == "text" for earlier, later, content in zip(kinds, kinds[1:], blocks_of(page), strict=False)
               if (earlier == "python" and "print(" in content[1]) or
               (earlier == "python" and ".show()" in content[1]))


def test_the_page_for_spark_has_programs_commands_and_a_file():
    assert {kind for kind, _ in blocks_of(SPARK)} == {"sh", "python", "text", "toml"}
