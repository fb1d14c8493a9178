"""Without pyspark, or without pyarrow, each module either comes or says what to install."""

import subprocess
import sys
from pathlib import Path

import pytest

import headrace

PACKAGE = Path(headrace.__file__).parent
HIDING = """
import importlib, sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in sys.argv[1].split(","):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
from headrace.errors import DependencyError
for name in sys.argv[2:]:
    try:
        importlib.import_module(name)
    except DependencyError as error:
        print(name, "says", error)
"""


def modules(folder: str) -> list[str]:
    found = (path.relative_to(PACKAGE.parent).with_suffix("") for path in sorted((PACKAGE / folder).rglob("*.py")))
    return [".".join(each.parts).removesuffix(".__init__") for each in found]


def imported(hidden: str, folder: str) -> dict[str, str]:
    """What the modules of a folder that do not come say; one that fails in another way fails the process."""
    ran = subprocess.run([sys.executable, "-c", HIDING, hidden, *modules(folder)], capture_output=True, text=True,
                         timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    return dict(line.split(" says ") for line in ran.stdout.splitlines())


@pytest.mark.parametrize("hidden", ["pyspark,pyarrow", "pyspark", "pyarrow"])
def test_a_module_that_needs_what_is_not_installed_says_how_to_install_it(hidden):
    pytest.importorskip("pyspark")
    pytest.importorskip("pyarrow")
    told = imported(hidden, "spark")
    said = "this needs pyspark and pyarrow: pip install 'headrace[spark]'"
    assert {told[f"headrace.spark.{name}"] for name in ("sink", "source", "pipeline.run", "partition_owners")} == {said}
    assert "headrace.spark.options" not in told
    arrow = "this needs pyarrow: pip install 'headrace[arrow]'"
    assert told.get("headrace.spark.range_columns") == (arrow if "pyarrow" in hidden else None)


def told_by(preparation: str, *lines: str) -> list[str]:
    """What a process prints that begins like this."""
    pytest.importorskip("pyspark")
    ran = subprocess.run([sys.executable, "-c", "\n".join([preparation, *lines]), "pyarrow"], capture_output=True,
                         text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


TOO_OLD = "import pyspark; pyspark.__version__ = {!r}"
OPENED = """
import pyspark_headrace
from pyspark.sql.datasource import DataSource
source = pyspark_headrace.DefaultSource
print(source.name(), issubclass(source, DataSource))
try:
    print(source({}).options)
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize("version", ["4.1.9", "4.0.0", "3.5.5", "4.1.0.dev3"])
def test_a_spark_that_is_too_old_is_named_with_the_first_that_is_not(version):
    text = f"this needs pyspark 4.2 or later, and here is {version}: pip install 'headrace[spark]'"
    assert told_by(TOO_OLD.format(version), "try:", "    import headrace.spark.source", "except ImportError as error:",
                   "    print(error)") == [text]
    assert told_by(TOO_OLD.format(version), OPENED) == ["headrace True", text]


@pytest.mark.parametrize("version", ["4.2.0", "4.10.0", "5.0.0.dev1"])
def test_a_spark_that_is_new_enough_gets_the_source(version):
    assert told_by(TOO_OLD.format(version), OPENED) == ["headrace True", "{}"]


def test_spark_finds_a_format_that_says_what_is_missing_and_goes_on_to_find_those_of_others():
    assert told_by(HIDING.partition("for name")[0], OPENED) == [
        "headrace True", "this needs pyspark and pyarrow: pip install 'headrace[spark]'"]
