"""Certificates and users for test clusters, and the broker properties that they need.

Everything is made anew for each cluster: a certificate authority, one certificate for the brokers, one for a client.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

LISTENERS: Final[Mapping[str, str]] = {
    "PLAINTEXT": "PLAINTEXT", "SSL": "SSL", "MTLS": "SSL", "SASL_PLAINTEXT": "SASL_PLAINTEXT", "SASL_SSL": "SASL_SSL",
    "OIDC": "SASL_SSL",
}
"""Listeners and their protocols. MTLS insists on a client's certificate, OIDC takes signed tokens only."""
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
USERS: Final[Mapping[str, str]] = {"alice": "alice-secret", "bob": "bob-secret", "dora": "\u00aa\u2168a\u0308"}
"""Users and passwords of every SASL listener, under PLAIN and SCRAM.

Dora's has not only ASCII, and Unicode normalization would make another of it; she has no PLAIN.
"""

_MODULE: Final = "org.apache.kafka.common.security"
_VALIDATOR: Final = f"{_MODULE}.oauthbearer.OAuthBearerValidatorCallbackHandler"
_OAUTH_MODULE: Final = "oauthbearer.OAuthBearerLoginModule required"
ISSUER: Final = "https://issuer.test"
"""Who made the tokens of the OIDC listener out, as they must say themselves (`iss`)."""
_KEY_ID: Final = "test-key"


@dataclass(frozen=True, slots=True)
class Certificates:
    """Files in PEM: the authority's certificate, and a client's chain and key for mutual TLS."""

    ca: Path
    client_chain: Path
    client_key: Path
    broker_chain: Path
    broker_key: Path


@dataclass(frozen=True, slots=True)
class Issuer:
    """Whom the OIDC listener trusts: a key to sign tokens with, in PEM, and the public half as a JWKS."""

    key: Path
    jwks: Path

    def sign(self, claims: Mapping[str, Any]) -> str:
        """A token (JWT, RS256) that says these things."""
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import padding, rsa

        key = serialization.load_pem_private_key(self.key.read_bytes(), None)
        assert isinstance(key, rsa.RSAPrivateKey)
        head = {"alg": "RS256", "typ": "JWT", "kid": _KEY_ID}
        signed = ".".join(_base64(json.dumps(part).encode()) for part in (head, claims))
        return f"{signed}.{_base64(key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def make_issuer(directory: Path) -> Issuer:
    """Make a signing key below `directory`."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(65_537, 2_048)
    made = Issuer(directory / "issuer-key.pem", directory / "jwks.json")
    made.key.write_bytes(key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    public = key.public_key().public_numbers()
    made.jwks.write_text(json.dumps({"keys": [{
        "kty": "RSA", "kid": _KEY_ID, "alg": "RS256", "use": "sig",
        "n": _base64(public.n.to_bytes(256, "big")), "e": _base64(public.e.to_bytes(3, "big")),
    }]}))
    return made


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


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
    """Broker properties for TLS; a client may show a certificate but need not, on the listener MTLS it must."""
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": certificates.broker_chain.read_text(),
        "ssl.keystore.key": certificates.broker_key.read_text(),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": certificates.ca.read_text(),
        "ssl.client.auth": "requested",
        "listener.name.mtls.ssl.client.auth": "required",
    }


def sasl_properties(listeners: Iterable[str]) -> dict[str, str]:
    """Broker properties that let `USERS` in with every mechanism of `MECHANISMS`; OAUTHBEARER takes unsigned tokens."""
    users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items() if password.isascii())
    modules = {"PLAIN": f"plain.PlainLoginModule required {users}", "OAUTHBEARER": _OAUTH_MODULE}
    properties = {"sasl.enabled.mechanisms": ",".join(MECHANISMS)}
    for listener in (name.lower() for name in listeners if name.startswith("SASL")):
        for mechanism in MECHANISMS:
            module = modules.get(mechanism, "scram.ScramLoginModule required")
            properties[f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config"] = f"{_MODULE}.{module} ;"
    return properties


def oidc_properties(issuer: Issuer) -> dict[str, str]:
    """Broker properties of the listener OIDC: it takes tokens for the audience `kafka` that the issuer signed."""
    return {
        "listener.name.oidc.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.oidc.oauthbearer.sasl.jaas.config": f"{_MODULE}.{_OAUTH_MODULE} ;",
        "listener.name.oidc.oauthbearer.sasl.server.callback.handler.class": _VALIDATOR,
        "listener.name.oidc.sasl.oauthbearer.jwks.endpoint.url": issuer.jwks.as_uri(),
        "listener.name.oidc.sasl.oauthbearer.expected.audience": "kafka",
        "listener.name.oidc.sasl.oauthbearer.expected.issuer": ISSUER,
    }


def scram_arguments() -> list[str]:
    """Arguments of Kafka's format command that store the SCRAM users before the first start."""
    return [
        argument
        for name, password in USERS.items()
        for mechanism in MECHANISMS
        if mechanism.startswith("SCRAM")
        for argument in ("--add-scram", f"{mechanism}=[name={name},password={password}]")
    ]
