"""Kerberos at a real Kafka, with a key server of our own. Part of the long tests: it needs MIT Kerberos and gssapi."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace import KafkaError, KafkaException, Producer
from headrace.admin import AdminClient
from tests.support.configuration import Configuration
from tests.support.real_kafka import read_all, running
from tools.kafka import KafkaCluster
from tools.kafka.cluster import free_ports

pytestmark = pytest.mark.slow
KRB5 = """[libdefaults]
 default_realm = TEST.LOCAL
 dns_lookup_kdc = false
 dns_canonicalize_hostname = false
 rdns = false
[realms]
 TEST.LOCAL = {{
  kdc = 127.0.0.1:{port}
 }}
"""
KDC = """[kdcdefaults]
 kdc_listen = 127.0.0.1:{port}
 kdc_tcp_listen = 127.0.0.1:{port}
[realms]
 TEST.LOCAL = {{
  database_name = {directory}/principal
  key_stash_file = {directory}/stash
 }}
"""


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A key server with keys for the broker (`broker.keytab`) and for alice (`alice.keytab`)."""
    pytest.importorskip("gssapi", reason="the package gssapi is not installed: pip install 'headrace[gssapi]'")
    if shutil.which("krb5kdc") is None:
        pytest.skip("there is no krb5kdc: install krb5-kdc and krb5-admin-server")
    directory, [port] = tmp_path_factory.mktemp("kdc"), free_ports(1)
    (directory / "krb5.conf").write_text(KRB5.format(port=port))
    (directory / "kdc.conf").write_text(KDC.format(port=port, directory=directory))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5_CONFIG", str(directory / "krb5.conf"))
        patch.setenv("KRB5_KDC_PROFILE", str(directory / "kdc.conf"))
        patch.setenv("KRB5CCNAME", f"FILE:{directory}/no-cache")
        patch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={directory}/krb5.conf")
        commands = [["kdb5_util", "create", "-s", "-P", "pw"]]
        for principal, keytab in (("kafka/127.0.0.1", "broker"), ("alice", "alice")):
            commands.append(["kadmin.local", "addprinc", "-randkey", principal])
            commands.append(["kadmin.local", "ktadd", "-k", f"{directory}/{keytab}.keytab", principal])
        for command in commands:
            subprocess.run(command, check=True, capture_output=True, env=os.environ)
        server = subprocess.Popen(["krb5kdc", "-n"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield directory
        finally:
            server.terminate()
            server.wait()


@pytest.fixture(scope="module")
def kerberized(realm: Path, configured: Configuration) -> Iterator[KafkaCluster]:
    """One broker that takes Kerberos tickets, and wants a new one every 2 s."""
    module = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
    yield from running(KafkaCluster(configured.version, quick=True, listeners=("SASL_PLAINTEXT",), properties={
        "sasl.enabled.mechanisms": "GSSAPI", "sasl.kerberos.service.name": "kafka",
        "listener.name.sasl_plaintext.gssapi.connections.max.reauth.ms": "2000",
        "listener.name.sasl_plaintext.gssapi.sasl.jaas.config":
            f'{module} keyTab="{realm}/broker.keytab" principal="kafka/127.0.0.1@TEST.LOCAL" ;',
    }))


def properties(cluster: KafkaCluster, realm: Path) -> dict[str, str]:
    return {"bootstrap.servers": cluster.bootstrap("SASL_PLAINTEXT"), "security.protocol": "sasl_plaintext",
            "sasl.mechanism": "GSSAPI", "sasl.kerberos.keytab": f"{realm}/alice.keytab",
            "sasl.kerberos.principal": "alice@TEST.LOCAL"}


def test_records_travel_and_tickets_are_renewed(kerberized: KafkaCluster, realm: Path) -> None:
    given = properties(kerberized, realm)
    errors: list[KafkaError] = []
    with Producer({**given, "error_cb": errors.append}) as producer:
        for i in range(50):
            producer.produce("kerberized", str(i))
            assert producer.flush(10) == 0
            time.sleep(0.1)
    assert errors == []
    assert len(read_all(kerberized, "kerberized", 50, **given)) == 50


@pytest.mark.parametrize("wrong", [
    {"sasl.kerberos.keytab": "/nowhere.keytab"},
    {"sasl.kerberos.principal": "mallory@TEST.LOCAL"},
    {"sasl.kerberos.service.name": "elsewhere"},
    {"sasl.kerberos.keytab": "", "sasl.kerberos.principal": ""},
], ids=["no keytab", "another principal", "another service", "no ticket"])
def test_what_kerberos_refuses_is_an_authentication_error_at_once(
    kerberized: KafkaCluster, realm: Path, wrong: dict[str, str]
) -> None:
    with AdminClient({**properties(kerberized, realm), **wrong}) as admin:
        started = time.monotonic()
        with pytest.raises(KafkaException) as failed:
            admin.list_topics(timeout=10)
        assert time.monotonic() - started < 8
    assert failed.value.error == KafkaError._AUTHENTICATION
    assert "klist" in failed.value.error.str()
    assert "\n" not in failed.value.error.str()
