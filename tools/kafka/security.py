"""Certificates and users for test clusters, and the broker properties that they need.

Everything is made anew for each cluster: a certificate authority, one certificate for the brokers, one for a client.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LISTENERS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
USERS: Final[Mapping[str, str]] = {"alice": "alice-secret", "bob": "bob-secret"}
"""Users and passwords of every SASL listener, under every mechanism."""

_MODULE: Final = "org.apache.kafka.common.security"


@dataclass(frozen=True, slots=True)
class Certificates:
    """Files in PEM: the authority's certificate, and a client's chain and key for mutual TLS."""

    ca: Path
    client_chain: Path
    client_key: Path
    broker_chain: Path
    broker_key: Path


def make_certificates(directory: Path) -> Certificates:
    """Make an authority with a broker's and a client's certificate below `directory`.

    Raises:
        ModuleNotFoundError: the packages trustme and cryptography are not installed.
    """
    import trustme  # only clusters with TLS need it

    authority = trustme.CA()
    made = Certificates(*(directory / f"{name}.pem" for name in ("ca", "client", "client-key", "broker", "broker-key")))
    made.ca.write_bytes(authority.cert_pem.bytes())
    for leaf, chain, key in (
        (authority.issue_cert("127.0.0.1", "localhost"), made.broker_chain, made.broker_key),
        (authority.issue_cert("client@headrace.test"), made.client_chain, made.client_key),
    ):
        chain.write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
        key.write_bytes(_pkcs8(leaf.private_key_pem.bytes()))
        key.chmod(0o600)
    return made


def _pkcs8(key: bytes) -> bytes:
    """Rewrite a private key in the one form that Kafka reads."""
    from cryptography.hazmat.primitives import serialization

    return serialization.load_pem_private_key(key, None).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def tls_properties(certificates: Certificates) -> dict[str, str]:
    """Broker properties for TLS; a client may show a certificate but need not."""
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": certificates.broker_chain.read_text(),
        "ssl.keystore.key": certificates.broker_key.read_text(),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": certificates.ca.read_text(),
        "ssl.client.auth": "requested",
    }


def sasl_properties(listeners: Iterable[str]) -> dict[str, str]:
    """Broker properties that let `USERS` in with every mechanism of `MECHANISMS`."""
    users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
    properties = {"sasl.enabled.mechanisms": ",".join(MECHANISMS)}
    for listener in (name.lower() for name in listeners if name.startswith("SASL")):
        properties[f"listener.name.{listener}.plain.sasl.jaas.config"] = (
            f"{_MODULE}.plain.PlainLoginModule required {users} ;"
        )
        for mechanism in MECHANISMS[1:]:
            properties[f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config"] = (
                f"{_MODULE}.scram.ScramLoginModule required ;"
            )
    return properties


def scram_arguments() -> list[str]:
    """Arguments of Kafka's format command that store the SCRAM users before the first start."""
    return [
        argument
        for name, password in USERS.items()
        for mechanism in MECHANISMS[1:]
        for argument in ("--add-scram", f"{mechanism}=[name={name},password={password}]")
    ]
