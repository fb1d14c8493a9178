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
