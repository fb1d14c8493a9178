"""`headrace run`: its exit statuses, its one-line errors, Ctrl-C, and the files that it leaves."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from headrace.cli.run import main
from headrace.errors import KafkaError, KafkaException
from headrace.spark import require_spark
from tests.integration.kafka.command_line_tour import fits, said_by
from tests.support.let_go import until

PIPELINE = """
[pipeline]
name = "numbers"
checkpoint = "checkpoint"
trigger = "{trigger}"

[[source]]
name = "numbers"
topic = "{topic}"
format = "json"
schema = "n INT"
malformed = "drop"
options.maxOffsetsPerTrigger = 100

[[step]]
name = "squares"
sql = "{sql}"

[[sink]]
from = "squares"
path = "squares"
"""
SQL = "SELECT n, n * n AS square FROM numbers"


@pytest.fixture
def pipeline(tmp_path):
    def write(topic, trigger="available-now", sql=SQL):
        path = tmp_path / "pipeline.toml"
        path.write_text(PIPELINE.format(topic=topic, trigger=trigger, sql=sql))
        return path

    return write


def is_running(pid):
    """Whether a process is there, and not only waits to be buried."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.strip().startswith("Z")


def start(path, *options, environment=None, **streams):
    code = "import sys; from headrace.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "run", str(path), "--directory", str(path.parent), *options]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                            env={**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})}, **streams)


@pytest.fixture
def without_java(monkeypatch):
    """Whatever starts Spark fails."""
    pytest.importorskip("pyspark")
    def start(*_given):
        raise AssertionError("Spark was to be started")

    monkeypatch.setattr("headrace.spark.pipeline.run.prepare_java", start)


def test_a_missing_file_is_one_line_and_status_2(capsys, tmp_path):
    pytest.importorskip("pyspark")
    assert main([str(tmp_path / "none.toml")]) == 2
    complaint = capsys.readouterr().err
    assert complaint.startswith("headrace run: cannot read the pipeline file")
    assert complaint.count("\n") == 1


def test_a_missing_package_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr("headrace.spark.find_spec", lambda name: None if name == "pyspark" else object())
    with pytest.raises(ImportError, match=r"this needs pyspark: pip install headrace\[spark\]"):
        require_spark()
    assert main(["x.toml"]) == 2
    assert "pip install headrace[spark]" in capsys.readouterr().err


def test_a_wrong_topic_fails_with_one_line_and_a_report(without_java, pipeline, brokers, capsys):
    pytest.importorskip("pyspark")
    path = pipeline("no-such-topic")
    status = main([str(path), "--directory", str(path.parent), "--bootstrap", brokers])
    told, complaint = capsys.readouterr()
    assert status == 1
    assert "topic no-such-topic does not exist: create it or check its name" in complaint
    assert complaint.count("\n") == 1
    assert "failed" in told
    assert "does not exist" in (path.parent / "report.html").read_text()


@pytest.mark.parametrize(("old", "new", "said"), [
    ("options.maxOffsetsPerTrigger = 100", 'options.maxOffsetPerTrigger = 100', "source numbers: unknown option"),
    ("options.maxOffsetsPerTrigger = 100", 'options.maxOffsetsPerTrigger = "many"', "maxOffsetsPerTrigger must be"),
    ('path = "squares"', 'topic = "out"\noptions.partitoner = "random"', "sink squares: unknown option 'partitoner'"),
    ('path = "squares"', 'topic = "out"\noptions."kafka.acks" = "some"', "sink squares: "),
])
def test_a_mistake_in_an_option_is_one_line_before_spark_starts(without_java, pipeline, capsys, old, new, said):
    pytest.importorskip("pyspark")
    path = pipeline("numbers")
    path.write_text(path.read_text().replace(old, new))
    assert main([str(path), "--directory", str(path.parent), "--bootstrap", "localhost:1"]) == 2
    told, complaint = capsys.readouterr()
    assert told == ""
    assert said in complaint
    assert complaint.count("\n") == 1


@pytest.mark.parametrize(("code", "status"), [
    (KafkaError._TRANSPORT, 3), (KafkaError.TOPIC_AUTHORIZATION_FAILED, 4), (KafkaError._INVALID_ARG, 2)])
def test_what_keeps_it_from_beginning_has_a_status_of_its_own(monkeypatch, pipeline, capsys, code, status):
    pytest.importorskip("pyspark")

    def refuse(_job):
        raise KafkaException(KafkaError(code, "so it is"))

    monkeypatch.setattr("headrace.cli.run.run_job", refuse)
    assert main([str(pipeline("numbers")), "--bootstrap", "localhost:1"]) == status
    assert capsys.readouterr().err == "headrace run: so it is\n"


@pytest.mark.spark
class TestWithSpark:
    @pytest.fixture(autouse=True)
    def _java(self, java):
        pytest.importorskip("pyspark")

    @pytest.fixture
    def topic(self, make_topic, produce):
        topic = make_topic(2)
        values = [f'{{"n": {n}}}' for n in range(300)] + ["{broken"]
        produce(topic, [{"value": value} for value in values])
        return topic

    @pytest.fixture
    def here(self, spark, brokers, capsys):
        """Runs the command in this process, beside the session that is there: no JVM is started."""
        def run(path, *options):
            status = main([str(path), "--directory", str(path.parent), "--bootstrap", brokers, *options])
            return status, *capsys.readouterr()

        return run

    def test_all_is_read_written_and_reported(self, here, pipeline, topic):
        path = pipeline(topic)
        status, told, complaint = here(path)
        assert (status, complaint) == (0, "")
        assert fits(said_by(status, told, complaint), [
            "starting Spark for numbers ...",
            "...",
            "squares: batch 3, 1 row in N s (... rows/s), 301 read in all, 0 written, lag 0",
            "squares: 301 rows read, 300 written to Parquet squares in 4 batches",
            "finished after N s; report: DIR",
        ]), told
        report = (path.parent / "report.html").read_text()
        assert report.count("<svg") == 3
        assert "<td>301</td>" in report

    def test_a_mistake_in_a_step_names_it(self, here, pipeline, topic):
        status, _, complaint = here(pipeline(topic, sql="SELECT m FROM numbers"))
        assert status == 2
        assert complaint.startswith("headrace run: step squares: [UNRESOLVED_COLUMN")
        assert complaint.count("\n") == 1

    def test_ctrl_c_lets_the_batch_end_and_gives_130(self, pipeline, brokers, topic):
        path = pipeline(topic, trigger="processing-time 1 second")
        process = start(path, "--bootstrap", brokers)
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("squares: batch"):
                break
        # The whole group gets the signal, as from a terminal: Spark's processes must not die of it.
        os.killpg(process.pid, signal.SIGINT)
        told, complaint = process.communicate(timeout=60)
        assert (process.returncode, complaint) == (130, "")
        assert "stopping after the running micro-batch" in told
        assert "stopped by Ctrl-C" in (path.parent / "report.html").read_text()
        begun = {entry.name for entry in Path(path.parent, "checkpoint/squares/offsets").iterdir()}
        ended = {entry.name for entry in Path(path.parent, "checkpoint/squares/commits").iterdir()}
        assert begun == ended

    def test_java_that_is_killed_is_one_line_and_status_1(self, pipeline, brokers, topic):
        process = start(pipeline(topic, trigger="processing-time 1 second"), "--bootstrap", brokers)
        java, _ = self.first_batch(process)
        os.kill(java, signal.SIGKILL)
        told, complaint = process.communicate(timeout=60)
        assert process.returncode == 1, told + complaint
        assert complaint.startswith("headrace run: Spark's Java process has ended")
        assert complaint.count("\n") == 1

    def test_a_term_signal_to_all_processes_of_a_run_gives_143(self, pipeline, brokers, topic):
        process = start(pipeline(topic, trigger="processing-time 1 second"), "--bootstrap", brokers)
        _, group = self.first_batch(process)
        os.killpg(group, signal.SIGTERM)  # as `timeout` and service managers do it: Java dies of it
        told, complaint = process.communicate(timeout=60)
        assert (process.returncode, complaint) == (143, ""), told + complaint
        assert "stopped by SIGTERM" in told

    def first_batch(self, process):
        """Wait for it; the process ids of Java and of the group."""
        for line in process.stdout:
            if line.startswith("squares: batch"):
                break
        of_it = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(process.pid)], capture_output=True, text=True,
                               check=True).stdout
        (java,) = (int(line.split()[0]) for line in of_it.splitlines() if line.split()[1] == "java")
        return java, process.pid

    def test_ctrl_c_twice_while_java_starts_leaves_no_java_behind(self, pipeline, brokers, topic, tmp_path):
        home, began = tmp_path / "spark", tmp_path / "began"
        submit = home / "bin/spark-submit"
        submit.parent.mkdir(parents=True)
        submit.write_text(f"#!/bin/sh\necho $$ > {began}.draft\nmv {began}.draft {began}\nexec sleep 600\n")
        submit.chmod(0o755)
        process = start(pipeline(topic), "--bootstrap", brokers, environment={"SPARK_HOME": str(home)})
        until(began.exists)
        pid = int(began.read_text())
        try:
            process.send_signal(signal.SIGINT)
            for line in process.stdout:  # two that nobody has seen to are one
                if line.startswith("stopping as soon as"):
                    break
            assert is_running(pid)
            process.send_signal(signal.SIGINT)
            told, complaint = process.communicate(timeout=60)
            assert process.returncode == 130, told + complaint
            until(lambda: not is_running(pid))
        finally:
            process.kill()
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
