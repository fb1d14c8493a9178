"""The jars of Apache Kafka and of Spark's connector: pinned, checked, downloaded once.

Each `locks/NAME.lock` names every jar of one set as `group:artifact:version sha256`. Maven fetches them when it is
installed, because it knows the mirrors of this machine; otherwise they are read over HTTPS from Maven Central, or from
the base address in HEADRACE_MAVEN_URL. What arrives is used only if its checksum is the pinned one.

Jars are kept in `~/.cache/headrace/jars`, or under HEADRACE_CACHE.
"""

from __future__ import annotations

import concurrent.futures
import hashlib
import os
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

VERSIONS: Final = ("4.4.0", "4.3.1", "3.9.2")
"""Versions of Apache Kafka that are pinned, newest first."""

CENTRAL: Final = "https://repo1.maven.org/maven2"
_LOCKS: Final = Path(__file__).parent / "locks"
_MAVEN_TIMEOUT_S: Final = 600
_DOWNLOAD_TIMEOUT_S: Final = 60


class RegistryError(RuntimeError):
    """The jars cannot be had: no network, no such artifact, or a wrong checksum. The text says which."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """One jar: its coordinates in Maven Central and the checksum of its bytes."""

    group: str
    name: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """Name of the jar, which is unique among the sets."""
        return f"{self.name}-{self.version}.jar"

    @property
    def address(self) -> str:
        """Where the jar is below the registry's base address."""
        return f"{self.group.replace('.', '/')}/{self.name}/{self.version}/{self.file_name}"


def cache_directory() -> Path:
    """Where downloads are kept between runs."""
    return Path(os.environ.get("HEADRACE_CACHE") or Path.home() / ".cache" / "headrace")


def class_path(version: str) -> str:
    """The Java class path of one version of Apache Kafka.

    Raises:
        ValueError: the version is not pinned.
        RegistryError: a jar cannot be had.
    """
    if version not in VERSIONS:
        raise ValueError(f"Apache Kafka {version} is not pinned here; there are {', '.join(VERSIONS)}")
    return os.pathsep.join(str(jar) for jar in jars(f"kafka-{version}"))


def spark_connector_jars() -> list[Path]:
    """The jars of Spark's own Kafka connector, for `spark.jars`."""
    return jars("spark-connector")


def spark_avro_jars() -> list[Path]:
    """The jar that has `from_avro`, for `spark.jars`; the classes behind it come with Spark."""
    return jars("spark-avro")


def jars(lock_name: str) -> list[Path]:
    """The files of one set of artifacts, fetched if they are not in the cache.

    Args:
        lock_name: name of a lock file without its suffix.

    Raises:
        RegistryError: a jar cannot be had.
    """
    wanted = _read_lock(lock_name)
    store = cache_directory() / "jars"
    missing = [artifact for artifact in wanted if not (store / artifact.file_name).exists()]
    if missing:
        store.mkdir(parents=True, exist_ok=True)
        _fetch(missing, store)
    return [store / artifact.file_name for artifact in wanted]


def _read_lock(lock_name: str) -> list[Artifact]:
    rows = (_LOCKS / f"{lock_name}.lock").read_text(encoding="ascii").splitlines()
    found = []
    for row in rows:
        coordinates, sha256 = row.split()
        group, name, version = coordinates.split(":")
        found.append(Artifact(group, name, version, sha256))
    return found


def _fetch(missing: Sequence[Artifact], store: Path) -> None:
    """Fetch into a directory beside the store, check, then move: the store never holds half a jar."""
    with tempfile.TemporaryDirectory(dir=store.parent, prefix="fetch-") as name:
        draft = Path(name)
        maven = shutil.which("mvn")
        failure = _fetch_with_maven(maven, missing, draft) if maven else "mvn is not installed"
        if failure:
            _download_all([a for a in missing if not (draft / a.file_name).exists()], draft, failure)
        for artifact in missing:
            _check(artifact, draft / artifact.file_name)
        for artifact in missing:
            (draft / artifact.file_name).replace(store / artifact.file_name)


def _check(artifact: Artifact, path: Path) -> None:
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != artifact.sha256:
        raise RegistryError(
            f"{artifact.file_name} has the checksum {found}, pinned is {artifact.sha256}: it is another file"
        )


def _fetch_with_maven(maven: str, missing: Sequence[Artifact], target: Path) -> str:
    """Let Maven copy exactly these jars; the reason as text when it cannot."""
    pom = target / "pom.xml"
    pom.write_text(_pom(missing), encoding="utf-8")
    command = [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={target}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_MAVEN_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"mvn: {error}"
    errors = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line]
    return "" if done.returncode == 0 else f"mvn: {errors[0] if errors else f'exit code {done.returncode}'}"


def _pom(artifacts: Sequence[Artifact]) -> str:
    # The lock is the whole closure, so nothing that the artifacts depend on is followed.
    alone = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    rows = "".join(
        f"<dependency><groupId>{a.group}</groupId><artifactId>{a.name}</artifactId>"
        f"<version>{a.version}</version>{alone}</dependency>"
        for a in artifacts
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>headrace</groupId>'
        f"<artifactId>jars</artifactId><version>1</version><dependencies>{rows}</dependencies></project>"
    )


def _download_all(missing: Sequence[Artifact], target: Path, before: str) -> None:
    base = os.environ.get("HEADRACE_MAVEN_URL", CENTRAL).rstrip("/")

    def download(artifact: Artifact) -> None:
        address = f"{base}/{artifact.address}"
        with (
            urllib.request.urlopen(address, timeout=_DOWNLOAD_TIMEOUT_S) as reply,
            (target / artifact.file_name).open("wb") as file,
        ):
            shutil.copyfileobj(reply, file)

    with concurrent.futures.ThreadPoolExecutor(max_workers=8) as pool:
        tasks = {pool.submit(download, artifact): artifact for artifact in missing}
        for task in concurrent.futures.as_completed(tasks):
            try:
                task.result()
            except (OSError, urllib.error.URLError) as error:
                pool.shutdown(cancel_futures=True)
                raise RegistryError(
                    f"cannot fetch {tasks[task].file_name} from {base} ({error}); before that, {before}. Install "
                    "Maven, or set HEADRACE_MAVEN_URL to a mirror of Maven Central"
                ) from error
