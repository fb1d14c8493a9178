"""Builds the native modules; where that fails, the package is installed without them and runs in plain Python.

Beside them it puts the table of `headrace.compiled`, which is of one Python as they are.

HEADRACE_NATIVE=require makes a failure an error, as the builds of wheels need it; HEADRACE_NATIVE=skip builds none.
Everything else is in pyproject.toml.
"""

import os
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

TOPICS = "src/headrace/wire/_topic_rows"
BATCH = "src/headrace/records/_batch"
BUFFER = "src/headrace/buffers/_buffer"
COLUMNS = "src/headrace/schemas/columns"
CODECS = ("_avro_columns", "_column_tree", "_json_columns", "_protobuf_columns")
"""Codecs of whole columns (decision 0038); each stands alone, and shares what is inline in the folder's `.pxd`s."""
# No -march=native: a wheel must run anywhere. What needs newer instructions asks the processor first.
FLAGS = ["/O2"] if sys.platform == "win32" else ["-O3", "-g0", "-fno-strict-aliasing"]
NATIVE = os.environ.get("HEADRACE_NATIVE", "try")
if NATIVE not in ("try", "require", "skip"):
    sys.exit(f"HEADRACE_NATIVE must be try, require or skip, not {NATIVE!r}")


def extensions() -> list[Extension]:
    """The extensions; none without Cython. `_buffer` reads the fields of `_batch`'s classes in place."""
    if NATIVE == "skip":
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        if NATIVE == "require":
            raise
        return []
    built: list[Extension] = cythonize([
        Extension("headrace.wire._topic_rows", [f"{TOPICS}.pyx"], extra_compile_args=FLAGS),
        Extension("headrace.records._batch", [f"{BATCH}.pyx"], depends=[f"{BATCH}.h", f"{BATCH}.pxd"],
                  extra_compile_args=FLAGS),
        Extension("headrace.records._joined_rows", ["src/headrace/records/_joined_rows.pyx"],
                  depends=[f"{BATCH}.h", f"{BATCH}.pxd"], extra_compile_args=FLAGS),
        Extension("headrace.buffers._buffer", [f"{BUFFER}.pyx"], depends=[f"{BUFFER}.h", f"{BATCH}.pxd"],
                  extra_compile_args=FLAGS),
        *(Extension(f"headrace.schemas.columns.{name}", [f"{COLUMNS}/{name}.pyx"],
                    depends=[f"{COLUMNS}/_growing.pxd", f"{COLUMNS}/_column_tree.pxd"],
                    extra_compile_args=FLAGS) for name in CODECS),
    ], include_path=["src"])
    for extension in built:
        extension.optional = NATIVE == "try"  # said here because cythonize() does not carry it over
    return built


class BuildWithTable(build_ext):
    """Builds the native modules and then the table."""

    def run(self) -> None:
        """Without the table the package only starts more slowly, so that it is as optional as the modules are."""
        super().run()
        package = Path("src" if self.inplace else self.build_lib) / "headrace"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(("src", ".")), "HEADRACE_PURE": "1"}
        subprocess.run([sys.executable, "-m", "tools.compiled_texts", str(package / "_compiled.bin")],
                       env=environment, check=NATIVE == "require")


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildWithTable})
