"""Assertions for a token endpoint: signed JWTs that say who asks, read from a file or made for each request.

Signing needs the optional package cryptography. What may be given with what is `config.security_properties`' matter.
Source: RFC 7523, RFC 7515, RFC 7518 section 3, KIP-1139 (Java: `DefaultAssertionCreator`).
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from headrace.errors import ConfigError, DependencyError
from headrace.net.auth.renewed_files import RenewedFiles

__all__ = ["assertion_source"]

_FILE = "sasl.oauthbearer.assertion.file"
_KEY_FILE, _KEY_PEM = "sasl.oauthbearer.assertion.private.key.file", "sasl.oauthbearer.assertion.private.key.pem"
_PASSPHRASE = "sasl.oauthbearer.assertion.private.key.passphrase"
_ALGORITHM = "sasl.oauthbearer.assertion.algorithm"
_TEMPLATE = "sasl.oauthbearer.assertion.jwt.template.file"
_SAID = {"sub": "sasl.oauthbearer.assertion.claim.sub", "iss": "sasl.oauthbearer.assertion.claim.iss",
         "aud": "sasl.oauthbearer.assertion.claim.aud"}
_CURVE, _CURVE_BYTES = "secp256r1", 32
_WANTED = {"RS256": "an RSA key", "ES256": "a key of the curve P-256"}

_Sign = Callable[[bytes], bytes]


def assertion_source(config: Mapping[str, Any]) -> Callable[[], str]:
    """What gives the assertion for one request. It reads files, so that it belongs into a thread.

    Raises:
        ConfigError: a file cannot be read or is not what it must be, or the key does not go with the algorithm; by a
            call, only where the assertion comes from a file.
        DependencyError: an assertion is to be signed and the package cryptography is not installed.
    """
    path = config[_FILE]
    if path:
        _ready_assertion(path)  # what is wrong with it shows now
        return lambda: _ready_assertion(path)
    parts = RenewedFiles(
        lambda: (*_template(config[_TEMPLATE]), _signer(config)), [config[_KEY_FILE], config[_TEMPLATE]],
        "files for the assertion to the token endpoint have changed and cannot be used, it is made with what they held "
        "before")

    def make() -> str:
        header, payload, sign = parts()
        header = header | {"alg": config[_ALGORITHM], "typ": "JWT"}
        text = f"{_encoded(_json(header))}.{_encoded(_json(payload | _claims(config)))}"
        return f"{text}.{_encoded(sign(text.encode()))}"

    return make


def _ready_assertion(path: str) -> str:
    text = _read(_FILE, path).strip()
    if not re.fullmatch(rb"[!-~]+", text):
        raise ConfigError(f'"{_FILE}" ({path}) has no assertion: expected one JWT')
    return text.decode()


def _claims(config: Mapping[str, Any]) -> dict[str, Any]:
    now = int(time.time())
    claims: dict[str, Any] = {"iat": now, "exp": now + config["sasl.oauthbearer.assertion.claim.exp.seconds"],
                              "nbf": now - config["sasl.oauthbearer.assertion.claim.nbf.seconds"]}
    claims |= {claim: config[name] for claim, name in _SAID.items() if config[name]}
    if config["sasl.oauthbearer.assertion.claim.jti.include"]:
        from uuid import uuid4  # few ask for it

        claims["jti"] = str(uuid4())
    return claims


def _template(path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and payload, as far as the file has them."""
    if not path:
        return {}, {}
    bad = ConfigError(f'"{_TEMPLATE}" ({path}) cannot be used: expected JSON such as '
                      '{"header": {"kid": "..."}, "payload": {"sub": "..."}}')
    try:
        found = json.loads(_read(_TEMPLATE, path))
        parts = [found.get(name, {}) for name in ("header", "payload")]
    except (ValueError, AttributeError, RecursionError) as error:
        raise (error if isinstance(error, ConfigError) else bad) from None
    if not (isinstance(parts[0], dict) and isinstance(parts[1], dict) and any(parts)):
        raise bad
    return parts[0], parts[1]


def _signer(config: Mapping[str, Any]) -> _Sign:
    name, path = (_KEY_FILE, config[_KEY_FILE]) if config[_KEY_FILE] else (_KEY_PEM, "")
    shown = f'"{name}"' + (f" ({path})" if path else "")
    try:
        from cryptography.hazmat.primitives.asymmetric import ec, rsa
    except ImportError:
        raise DependencyError(f"{shown}: to sign an assertion needs the package cryptography: pip install "
                              "'headrace[tls]'") from None
    key = _private_key(shown, _read(name, path) if path else config[_KEY_PEM].encode(), config[_PASSPHRASE])
    algorithm = config[_ALGORITHM]
    if algorithm == "RS256" and isinstance(key, rsa.RSAPrivateKey):
        return _rs256(key)
    if algorithm == "ES256" and isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name == _CURVE:
        return _es256(key)
    raise ConfigError(f'{shown} does not go with "{_ALGORITHM}": "{algorithm}": give {_WANTED[algorithm]}, or '
                      "another algorithm")


def _private_key(shown: str, data: bytes, passphrase: str) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_der_private_key, load_pem_private_key

    load, data = load_pem_private_key, data.strip()
    try:
        if b"-----BEGIN " not in data:  # as Java may have it: PKCS#8 in base64, without the lines around it
            data, load = base64.b64decode(b"".join(data.split()), validate=True), load_der_private_key
        try:
            return load(data, passphrase.encode() or None)
        except TypeError:  # encrypted without a password, or the other way round, which OpenSSL leaves at that
            if not passphrase:
                raise ConfigError(f'{shown} is encrypted: give "{_PASSPHRASE}"') from None
            return load(data, None)
    except ConfigError:
        raise
    except (ValueError, binascii.Error, UnsupportedAlgorithm):  # whose texts may go on for lines
        wanted = f', and the right "{_PASSPHRASE}"' if passphrase else ""
        raise ConfigError(f"{shown} cannot be loaded: expected a private key in PEM{wanted}") from None


def _rs256(key: Any) -> _Sign:
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.hashes import SHA256

    def sign(data: bytes) -> bytes:
        signature: bytes = key.sign(data, PKCS1v15(), SHA256())
        return signature

    return sign


def _es256(key: Any) -> _Sign:
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
    from cryptography.hazmat.primitives.hashes import SHA256

    def sign(data: bytes) -> bytes:
        numbers = decode_dss_signature(key.sign(data, ECDSA(SHA256())))
        # Not the DER that OpenSSL gives, and librdkafka sends: two numbers of one width (RFC 7518, 3.4).
        return b"".join(number.to_bytes(_CURVE_BYTES, "big") for number in numbers)

    return sign


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _read(name: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL character
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f'"{name}" ({path}) cannot be read: {why}') from None
