"""How clients reach a listener of a test cluster: properties under librdkafka's names, and under Java's.

Read next: `tools.kafka.security` (the brokers' half).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tools.kafka.security import LISTENERS, USERS, Certificates

ALLOWED_URLS: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
"""The JVM's property with the URLs from which Kafka takes keys and tokens."""

ALLOWED_FILES: Final = "org.apache.kafka.sasl.oauthbearer.allowed.files"
"""The JVM's property with the files that Kafka makes assertions of."""

_MODULE: Final = "org.apache.kafka.common.security"
_CLIENT_ID, _CLIENT_SECRET = "test-client", "test-client-secret"


def client_properties(
    listener: str, mechanism: str, certificates: Certificates | None, token_url: str | None
) -> dict[str, str]:
    """Properties for librdkafka, and for us.

    Args:
        listener: a name of `LISTENERS`.
        mechanism: for listeners with SASL.
        certificates: of a cluster with TLS.
        token_url: where to get signed tokens, for OAUTHBEARER; unsigned ones are made without it.
    """
    protocol, found = LISTENERS[listener], {"security.protocol": LISTENERS[listener].lower()}
    if protocol.endswith("SSL") and certificates is not None:
        found["ssl.ca.location"] = str(certificates.ca)
        if listener == "MTLS":
            found |= {"ssl.certificate.location": str(certificates.client_chain),
                      "ssl.key.location": str(certificates.client_key)}
    if not protocol.startswith("SASL"):
        return found
    name, password = next(iter(USERS.items()))
    found["sasl.mechanism"] = mechanism
    if mechanism != "OAUTHBEARER":
        return found | {"sasl.username": name, "sasl.password": password}
    if token_url is None:
        return found | {"enable.sasl.oauthbearer.unsecure.jwt": "true",
                        "sasl.oauthbearer.config": f"principal={name}"}
    assert certificates is not None
    return found | {
        "sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.token.endpoint.url": token_url,
        "sasl.oauthbearer.client.id": _CLIENT_ID, "sasl.oauthbearer.client.secret": _CLIENT_SECRET,
        "https.ca.location": str(certificates.ca),
    }


def java_properties(
    listener: str, mechanism: str, certificates: Certificates | None, token_url: str | None
) -> dict[str, str]:
    """The same for Java's clients."""
    protocol, found = LISTENERS[listener], {"security.protocol": LISTENERS[listener]}
    if protocol.endswith("SSL") and certificates is not None:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(certificates.ca)}
        if listener == "MTLS":
            found |= {"ssl.keystore.type": "PEM",
                      "ssl.keystore.certificate.chain": certificates.client_chain.read_text(),
                      "ssl.keystore.key": certificates.client_key.read_text()}
    if not protocol.startswith("SASL"):
        return found
    name, password = next(iter(USERS.items()))
    found["sasl.mechanism"] = mechanism
    if mechanism != "OAUTHBEARER":
        module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        login = f'{module} required username="{name}" password="{password}"'
    elif token_url is None:
        login = f'oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="{name}"'
    else:
        assert certificates is not None
        found |= {"sasl.login.callback.handler.class": f"{_MODULE}.oauthbearer.OAuthBearerLoginCallbackHandler",
                  "sasl.oauthbearer.token.endpoint.url": token_url}
        login = (f'oauthbearer.OAuthBearerLoginModule required clientId="{_CLIENT_ID}" '
                 f'clientSecret="{_CLIENT_SECRET}" ssl.truststore.type="PEM" '
                 f'ssl.truststore.location="{certificates.ca}"')
    return found | {"sasl.jaas.config": f"{_MODULE}.{login} ;"}


def write_properties(path: Path, properties: dict[str, str]) -> Path:
    """Write a file of properties as Java reads it."""
    path.write_text("".join(f"{name}={_escape(value)}\n" for name, value in properties.items()))
    return path


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")
