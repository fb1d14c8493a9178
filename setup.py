"""Builds the native record batches; where that fails, the package is installed without them and runs in plain Python.

Everything else is in pyproject.toml.
"""

import sys

from setuptools import Extension, setup

NATIVE = "src/headrace/records/"


def extensions() -> list[Extension]:
    """The one extension; none without Cython."""
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    native = Extension(
        "headrace.records._native",
        [NATIVE + "_native.pyx"],
        depends=[NATIVE + name for name in ("_native.h", "_message.pxi", "_write.pxi", "_delivery.pxi",
                                            "_topic_buffer.pxi", "_read.pxi", "_columns.pxi")],
        # No -march=native: a wheel must run anywhere. What needs newer instructions asks the processor first.
        extra_compile_args=["/O2"] if sys.platform == "win32" else ["-O3", "-fno-strict-aliasing"],
    )
    built: list[Extension] = cythonize([native])
    for extension in built:
        extension.optional = True  # said here because cythonize() does not carry it over
    return built


setup(ext_modules=extensions())
