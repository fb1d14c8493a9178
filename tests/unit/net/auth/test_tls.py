"""TLS as the properties ask for it: every way to give a key, what is trusted, and what cannot be used."""

import re
import shutil
import ssl
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from headrace.config import ADMIN, Config
from headrace.errors import ConfigError, DependencyError
from headrace.net.auth import tls
from headrace.net.auth.tls import RenewedContext, renewed_tls, tls_context, trusting_context


def config(**properties: Any) -> Config:
    return Config(ADMIN, {"bootstrap.servers": "b:1", **properties})


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def files(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One client certificate in every form; the password is `hunter2`."""
    directory = tmp_path_factory.mktemp("tls")
    leaf = authority.issue_cert("client")
    chain = b"".join(blob.bytes() for blob in leaf.cert_chain_pems)
    key = serialization.load_pem_private_key(leaf.private_key_pem.bytes(), None)
    secret = serialization.BestAvailableEncryption(b"hunter2")
    encrypted = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, secret)
    certificate = x509.load_pem_x509_certificate(chain)
    ca = x509.load_pem_x509_certificate(authority.cert_pem.bytes())
    made = {
        "chain": chain, "key": encrypted, "both.pem": chain + encrypted, "ca": authority.cert_pem.bytes(),
        "store.p12": pkcs12.serialize_key_and_certificates(b"c", key, certificate, [ca], secret),  # type: ignore[arg-type]
        "trust.p12": pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(ca, b"ca")], secret),
        "store.jks": b"\xfe\xed\xfe\xed\0\0\0\2", "garbage": b"\x30\x03zzz",
    }
    for name, data in made.items():
        (directory / name).write_bytes(data)
    return {name: str(directory / name) for name in made}


def context(**properties: Any) -> ssl.SSLContext:
    return tls_context(config(**{"security.protocol": "ssl", **properties}))


@pytest.mark.parametrize("given", [
    {"ssl.certificate.location": "chain", "ssl.key.location": "key", "ssl.key.password": "hunter2"},
    {"ssl.certificate.pem": "+chain", "ssl.key.pem": "+key", "ssl.key.password": "hunter2"},
    {"ssl.keystore.certificate.chain": "+chain", "ssl.keystore.key": "+key", "ssl.key.password": "hunter2"},
    {"ssl.certificate.location": "chain", "ssl.key.pem": "+key", "ssl.key.password": "hunter2"},
    {"ssl.certificate.pem": "+chain", "ssl.key.location": "key", "ssl.key.password": "hunter2"},
    {"ssl.certificate.pem": "+both.pem", "ssl.key.password": "hunter2"},
    {"ssl.keystore.location": "both.pem", "ssl.key.password": "hunter2"},
    {"ssl.keystore.location": "store.p12", "ssl.keystore.password": "hunter2", "ssl.keystore.type": "PKCS12"},
], ids=["files", "text", "Java's text", "file and text", "text and file", "one text", "one file", "PKCS#12"])
def test_a_client_s_encrypted_key_can_be_given_in_every_way(
    given: dict[str, str], files: dict[str, str], authority: trustme.CA
) -> None:
    def value(text: str) -> str:
        name = text.removeprefix("+")
        return text if name not in files else f"\n  {Path(files[name]).read_text()}" if text != name else files[name]

    client = context(**{name: value(text) for name, text in given.items()}, **{"ssl.ca.location": files["ca"]})
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("broker").configure_cert(server)
    server.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(server)
    shown = shake_hands(client, server)
    assert ("DNS", "client") in shown["subjectAltName"]


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext) -> Any:
    """The certificate that the client shows to the server, both in memory."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    here = client.wrap_bio(down, up, server_hostname="broker")
    there = server.wrap_bio(up, down, server_side=True)
    for _ in range(10):
        for side in (here, there):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return there.getpeercert()


@pytest.mark.parametrize(("given", "text"), [
    ({"ssl.certificate.location": "chain", "ssl.key.location": "key", "ssl.key.password": "wrong"}, "ssl.key.password"),
    ({"ssl.keystore.location": "store.p12", "ssl.keystore.password": "wrong"}, "ssl.keystore.password"),
    ({"ssl.keystore.location": "store.jks"}, "keytool -importkeystore"),
    ({"ssl.keystore.location": "garbage"}, "expected PKCS#12 or PEM"),
    ({"ssl.keystore.location": "trust.p12", "ssl.keystore.password": "hunter2"}, "no private key"),
    ({"ssl.keystore.location": "nowhere"}, "ssl.keystore.location"),
    ({"ssl.keystore.location": "both.pem", "ssl.certificate.location": "chain"}, "exclude each other"),
    ({"ssl.key.location": "key"}, '"ssl.key.location" needs "ssl.certificate.location"'),
    ({"ssl.certificate.location": "chain"}, 'or "ssl.key.location"'),
    ({"ssl.certificate.location": "chain", "ssl.certificate.pem": "chain"}, "exclude each other"),
    ({"ssl.ca.location": "trust.p12", "ssl.truststore.password": "wrong"}, "ssl.truststore.password"),
    ({"ssl.ca.location": "chain", "ssl.crl.location": "nowhere"}, "ssl.crl.location"),
    ({"ssl.cipher.suites": "NO-SUCH-CIPHER"}, "ssl.cipher.suites"),
    ({"ssl.curves.list": "P-255"}, "ssl.curves.list"),
    ({"ssl.enabled.protocols": "TLSv1.1"}, "ssl.enabled.protocols"),
    ({"ssl.enabled.protocols": "TLSv1.3", "ssl.protocol": "TLSv1.2"}, "ssl.protocol"),
])
def test_what_cannot_be_used_is_refused_and_named(given: dict[str, str], text: str, files: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as refused:
        context(**{name: files.get(value, value) for name, value in given.items()})
    assert text in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_pkcs_12_without_its_package_says_what_to_install(
    files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.serialization", None)
    with pytest.raises(DependencyError, match=r"pip install 'headrace\[tls\]'"):
        context(**{"ssl.keystore.location": files["store.p12"]})


def test_a_java_truststore_is_trusted(files: dict[str, str]) -> None:
    made = context(**{"ssl.truststore.location": files["trust.p12"], "ssl.truststore.password": "hunter2"})
    names = [dict(part[0] for part in ca["subject"]) for ca in made.get_ca_certs()]
    assert any("trustme" in name.get("organizationName", "") for name in names)


def test_a_revoked_certificate_is_refused(tmp_path: Path) -> None:
    from datetime import UTC, datetime, timedelta

    from cryptography.hazmat.primitives.asymmetric import ec

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "authority")])

    def certificate(subject: x509.Name, public: Any, *, ca: bool) -> x509.Certificate:
        made = x509.CertificateBuilder().subject_name(subject).issuer_name(name).public_key(public).serial_number(
            x509.random_serial_number()).not_valid_before(now - timedelta(1)).not_valid_after(now + timedelta(1))
        made = made.add_extension(x509.BasicConstraints(ca, None), True)
        made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName("broker")]), False)
        made = made.add_extension(x509.SubjectKeyIdentifier.from_public_key(public), False)
        made = made.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), False)
        if ca:
            made = made.add_extension(x509.KeyUsage(False, False, False, False, False, True, True, False, False), True)
        return made.sign(key, hashes.SHA256())

    ca = certificate(name, key.public_key(), ca=True)
    own = ec.generate_private_key(ec.SECP256R1())
    leaf = certificate(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "b")]), own.public_key(), ca=False)
    revoked = x509.RevokedCertificateBuilder().serial_number(leaf.serial_number).revocation_date(now).build()
    crls = [x509.CertificateRevocationListBuilder().issuer_name(name).last_update(now - timedelta(1)).next_update(
        now + timedelta(1)), ]
    crls.append(crls[0].add_revoked_certificate(revoked))
    (tmp_path / "server.pem").write_bytes(own.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + leaf.public_bytes(serialization.Encoding.PEM))
    (tmp_path / "ca.pem").write_bytes(ca.public_bytes(serialization.Encoding.PEM))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "server.pem")
    outcomes = []
    for crl in crls:
        (tmp_path / "crl.pem").write_bytes(crl.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        try:
            shake_hands(context(**{"ssl.ca.location": str(tmp_path / "ca.pem"),
                                   "ssl.crl.location": str(tmp_path / "crl.pem")}), server)
            outcomes.append("trusted")
        except ssl.SSLCertVerificationError as error:
            outcomes.append(error.verify_message)
    assert outcomes == ["trusted", "certificate revoked"]


@pytest.mark.parametrize("names", [
    "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
])
def test_ciphers_are_known_under_openssl_s_and_java_s_names(names: str) -> None:
    chosen = {cipher["name"] for cipher in context(**{"ssl.cipher.suites": names}).get_ciphers()
              if cipher["protocol"] != "TLSv1.3"}
    assert chosen == {"ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305"}


def groups_offered(client: ssl.SSLContext) -> list[int]:
    """The numbers of the groups in a client's first message (RFC 8446, 4.2.7)."""
    out = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        client.wrap_bio(ssl.MemoryBIO(), out, server_hostname="broker").do_handshake()
    hello = out.read()
    place = 5 + 4 + 2 + 32  # the record's head, the message's, version, random
    place += 1 + hello[place]  # session
    place += 2 + int.from_bytes(hello[place : place + 2])  # ciphers
    place += 1 + hello[place] + 2  # compressions, length of the extensions
    while int.from_bytes(hello[place : place + 2]) != 10:
        place += 4 + int.from_bytes(hello[place + 2 : place + 4])
    size = int.from_bytes(hello[place + 4 : place + 6])
    return [int.from_bytes(hello[at : at + 2]) for at in range(place + 6, place + 6 + size, 2)]


@pytest.mark.parametrize(("name", "number"), [("P-256", 23), ("prime256v1", 23), ("P-384", 24), ("p-521", 25),
                                              ("X25519", 29), ("X448", 30)])
def test_the_group_for_the_exchange_of_keys_can_be_chosen(name: str, number: int) -> None:
    assert groups_offered(context(**{"ssl.curves.list": name})) == [number]
    assert len(groups_offered(context())) > 3


def test_several_groups_need_a_newer_python(monkeypatch: pytest.MonkeyPatch) -> None:
    class Newer(ssl.SSLContext):
        def set_groups(self, groups: str) -> None:
            chosen.append(groups)

    chosen: list[str] = []
    properties = {"ssl.curves.list": "X25519, P-256"}
    if not hasattr(ssl.SSLContext, "set_groups"):
        with pytest.raises(ConfigError, match=r'"ssl.curves.list": more than one group needs Python 3\.15'):
            context(**properties)
    monkeypatch.setattr(tls, "ssl", SimpleNamespace(**{**vars(ssl), "SSLContext": Newer}))
    context(**properties)
    assert chosen == ["X25519:P-256"]


@pytest.mark.parametrize(("given", "versions"), [
    ({}, (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)),
    ({"ssl.enabled.protocols": "TLSv1.3"}, (ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3)),
    ({"ssl.protocol": "TLSv1.2"}, (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2)),
    ({"ssl.protocol": "TLS", "ssl.enabled.protocols": "TLSv1.2"}, (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2)),
])
def test_versions_of_tls_can_be_chosen(given: dict[str, str], versions: tuple[Any, Any]) -> None:
    made = context(**given)
    assert (made.minimum_version, made.maximum_version) == versions


@pytest.mark.parametrize(("protocol", "spoken"), [
    ("plaintext", False), ("ssl", True), ("sasl_plaintext", False), ("sasl_ssl", True)])
def test_tls_is_spoken_where_the_protocol_says_so(protocol: str, spoken: bool) -> None:
    sasl = {"sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p"} if "sasl" in protocol else {}
    assert (renewed_tls(config(**{"security.protocol": protocol, **sasl})) is not None) is spoken


@pytest.mark.parametrize(("given", "checks_certificate", "checks_name"), [
    ({}, True, True),
    ({"ssl.endpoint.identification.algorithm": "none"}, True, False),
    ({"enable.ssl.certificate.verification": False}, False, False),
])
def test_certificates_and_names_are_checked_unless_that_is_switched_off(
    given: dict[str, Any], checks_certificate: bool, checks_name: bool
) -> None:
    made = context(**given)
    assert made.verify_mode is (ssl.CERT_REQUIRED if checks_certificate else ssl.CERT_NONE)
    assert made.check_hostname is checks_name


def subjects(made: ssl.SSLContext) -> list[str]:
    """Whom it trusts, by the names that `authorities` gave them."""
    names = (dict(part[0] for part in ca["subject"]) for ca in made.get_ca_certs())
    return sorted(name["organizationName"] for name in names)


@pytest.fixture
def authorities(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Texts of certificates by name, each also in a file of that name; the system trusts one of them."""
    made = {name: trustme.CA(organization_name=name).cert_pem.bytes().decode() for name in ("system", "file", "text")}
    for name, text in made.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "system"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.chdir(tmp_path)
    return made


@pytest.mark.parametrize("prefix", ["ssl", "https"])
@pytest.mark.parametrize(("file", "text", "trusted"), [
    ("", False, ["system"]), ("probe", False, ["system"]), ("file", False, ["file"]), ("", True, ["text"]),
    ("file", True, ["file", "text"]), ("probe", True, ["system", "text"]),
])
def test_who_is_named_is_trusted_and_nobody_else(
    prefix: str, file: str, text: bool, trusted: list[str], authorities: dict[str, str]
) -> None:
    given = {f"{prefix}.ca.location": file, f"{prefix}.ca.pem": authorities["text"] if text else ""}
    assert subjects(trusting_context(given, f"{prefix}.ca.location", f"{prefix}.ca.pem")) == trusted
    if prefix == "ssl":
        assert subjects(context(**given)) == trusted


def test_text_may_have_blanks_and_remarks_around_the_certificates(authorities: dict[str, str]) -> None:
    text = f"\n  {authorities['file']}\n of \u00fc:\n{authorities['text']}  \n"
    assert subjects(context(**{"ssl.ca.pem": text})) == ["file", "text"]


def test_a_file_without_certificates_is_refused_and_the_system_not_trusted_in_its_place(
    authorities: dict[str, str], files: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "empty.p12").write_bytes(pkcs12.serialize_key_and_certificates(
        b"k", serialization.load_pem_private_key(Path(files["key"]).read_bytes(), b"hunter2"), None, None,  # type: ignore[arg-type]
        serialization.NoEncryption()))
    for given in ({"ssl.ca.location": str(tmp_path / "empty.p12")}, {"ssl.ca.pem": " \n"}):
        with pytest.raises(ConfigError, match=next(iter(given))):
            context(**given)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl names the files")
def test_a_directory_of_authorities_is_looked_into(
    files: dict[str, str], authority: trustme.CA, tmp_path: Path
) -> None:
    command = ["openssl", "x509", "-in", files["ca"], "-noout", "-subject_hash"]
    name = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    (tmp_path / f"{name}.0").write_bytes(authority.cert_pem.bytes())
    client = context(**{"ssl.ca.location": str(tmp_path), "ssl.certificate.location": files["chain"],
                        "ssl.key.location": files["key"], "ssl.key.password": "hunter2"})
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("broker").configure_cert(server)
    server.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(server)
    assert shake_hands(client, server)


def test_certificates_need_not_follow_rfc_5280_to_the_letter_on_any_python() -> None:
    assert not context().verify_flags & ssl.VERIFY_X509_STRICT


class Identity:
    """A client's files on disk, as who renews certificates leaves them.

    Args:
        directory: where they lie.
        authority: that a broker trusts.
    """

    def __init__(self, directory: Path, authority: trustme.CA) -> None:
        self.certificate, self.key, self.trusted = directory / "chain.pem", directory / "key.pem", directory / "ca.pem"
        self.issue(authority, "old")
        self.key_too()
        self.trusted.write_bytes(authority.cert_pem.bytes())

    def issue(self, authority: trustme.CA, name: str) -> None:
        """The certificate, without its key yet."""
        self._leaf = authority.issue_cert(name)
        self.certificate.write_bytes(b"".join(blob.bytes() for blob in self._leaf.cert_chain_pems))

    def key_too(self) -> None:
        """The key of the certificate."""
        self.key.write_bytes(self._leaf.private_key_pem.bytes())

    def contexts(self) -> RenewedContext:
        """As a client has them."""
        found = renewed_tls(config(**{
            "security.protocol": "ssl", "ssl.certificate.location": str(self.certificate),
            "ssl.key.location": str(self.key), "ssl.ca.location": str(self.trusted)}))
        assert found is not None
        return found


@pytest.fixture
def broker(authority: trustme.CA) -> ssl.SSLContext:
    """Of a broker that wants to see a certificate."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("broker").configure_cert(server)
    server.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(server)
    return server


def test_a_certificate_that_is_renewed_on_disk_is_shown_from_the_next_connection_on(
    authority: trustme.CA, broker: ssl.SSLContext, tmp_path: Path
) -> None:
    identity = Identity(tmp_path, authority)
    contexts = identity.contexts()
    first = contexts()
    assert contexts() is first
    assert ("DNS", "old") in shake_hands(first, broker)["subjectAltName"]
    identity.issue(authority, "new")
    identity.key_too()
    assert ("DNS", "new") in shake_hands(contexts(), broker)["subjectAltName"]


def test_files_that_do_not_fit_together_yet_leave_what_was_there_until_they_change_again(
    authority: trustme.CA, broker: ssl.SSLContext, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    identity = Identity(tmp_path, authority)
    contexts = identity.contexts()
    identity.issue(authority, "new")
    for _ in range(2):
        assert ("DNS", "old") in shake_hands(contexts(), broker)["subjectAltName"]
    assert [record.message for record in caplog.records if "KEY_VALUES_MISMATCH" in record.message] \
        == [record.message for record in caplog.records]
    assert len(caplog.records) == 1
    identity.key.unlink()
    assert ("DNS", "old") in shake_hands(contexts(), broker)["subjectAltName"]
    identity.key_too()
    assert ("DNS", "new") in shake_hands(contexts(), broker)["subjectAltName"]


def test_authorities_that_are_renewed_on_disk_are_trusted_from_the_next_connection_on(
    authority: trustme.CA, tmp_path: Path
) -> None:
    identity = Identity(tmp_path, authority)
    contexts = identity.contexts()
    other = trustme.CA()
    broker = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    other.issue_cert("broker").configure_cert(broker)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(contexts(), broker)
    identity.trusted.write_bytes(authority.cert_pem.bytes() + other.cert_pem.bytes())
    shake_hands(contexts(), broker)


@pytest.mark.parametrize("name", ["ssl.ca.location", "ssl.crl.location", "ssl.certificate.location",
                                  "ssl.keystore.location"])
def test_a_file_whose_name_cannot_be_one_is_refused_by_its_property(name: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(name)):
        renewed_tls(config(**{"security.protocol": "ssl", name: "a\0b"}))
