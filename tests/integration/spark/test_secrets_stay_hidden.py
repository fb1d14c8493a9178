"""Secrets in options show nowhere: not in plans, progress, errors, the driver's log, event logs or checkpoints.

All files of a run are searched for each secret, as text and as the base64 in which pickles travel.
"""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.testing import EmbeddedBroker
from tests.support.real_kafka import make_topic, running
from tools.kafka import KafkaCluster
from tools.kafka.security import USERS

pytest.importorskip("pyspark")
pytest.importorskip("httpx2")

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(400)]

SECRETS = {"SECRET_SASL": USERS["alice"], "SECRET_KEY": "keyp-7d20b4aa", "SECRET_REGISTRY": "someone:regi-51e8c0dd"}


def forms(secret):
    """What a secret may look like: as it is, and in base64, whose letters depend on where the first byte lies."""
    plain = secret.rpartition(":")[2].encode()
    yield plain
    for shift in range(3):
        coded = base64.b64encode(b"\0" * shift + plain)
        yield coded[-(-shift * 8 // 6):(shift + len(plain)) * 8 // 6]


def found_in(data, secret):
    return any(form in data for form in forms(secret))


@pytest.fixture(scope="module")
def kafka():
    """A broker that wants a password; the embedded one knows none."""
    yield from running(KafkaCluster(quick=True, listeners=["SASL_PLAINTEXT"]))


@pytest.fixture(scope="module")
def told(java, kafka, tmp_path_factory):
    """Runs the program; gives its directory, with all that Spark wrote down."""
    directory = tmp_path_factory.mktemp("secrets")
    program = Path(__file__).with_name("secrets_program.py")
    client = kafka.client_properties("SASL_PLAINTEXT", "SCRAM-SHA-256")
    assert client["sasl.password"] == SECRETS["SECRET_SASL"]
    topics = [make_topic(kafka, 2), make_topic(kafka, 2)]
    with EmbeddedBroker(registry=True) as broker:  # its registry takes any credentials
        done = subprocess.run([sys.executable, str(program), broker.registry_url, *topics, str(directory)],
                              capture_output=True, timeout=380,
                              env={**os.environ, **SECRETS, "CLIENT": json.dumps(client)})
    (directory / "terminal.txt").write_bytes(done.stdout + done.stderr)
    assert done.returncode == 0, done.stderr[-3000:].decode()
    return directory


@pytest.mark.parametrize("name", SECRETS)
def test_no_file_of_a_run_has_a_secret(told, name):
    files = [path for path in told.rglob("*") if path.is_file()]
    kinds = {path.relative_to(told).parts[0] for path in files}
    assert {"events", "checkpoint", "driver.log", "told.txt", "terminal.txt"} <= kinds
    shown = [str(path.relative_to(told)) for path in files if found_in(path.read_bytes(), SECRETS[name])]
    assert shown == []


def test_the_run_told_what_it_should(told):
    text = (told / "told.txt").read_text()
    assert text.startswith("20\n")
    assert "StreamingRelationV2" in text
    assert "[DATATYPE_MISMATCH" in text
    assert "Did you mean 'subscribe'?" in text
    assert "no schema under subject none-value" in text
    assert (told / "driver.log").stat().st_size > 1000
    assert any("SparkListenerSQLExecutionStart" in path.read_text(errors="replace")
               for path in (told / "events").rglob("*") if path.is_file())


@pytest.mark.parametrize("secret", SECRETS.values())
def test_a_secret_that_is_there_is_found(secret):
    for shift in range(3):
        pickled = b"x" * shift + b"{'kafka.sasl.password': '" + secret.encode() + b"'}"
        assert found_in(pickled, secret)
        assert found_in(b"data:" + base64.b64encode(pickled), secret)
    assert not found_in(base64.b64encode(b"{'kafka.sasl.password': 'another'}"), secret)
