"""Private keys for assertions in every form, and what an assertion says when its signature holds."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

PASSPHRASE = "hunter2"
_PEM, _PKCS8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
_OPEN = serialization.NoEncryption()


class SigningKeys:
    """Keys below a directory.

    Attributes:
        rsa, other_rsa: files of RSA keys in PEM (PKCS#8).
        old_rsa: the first one as OpenSSL wrote it once (PKCS#1).
        encrypted: the first one under `PASSPHRASE`.
        bare: the first one in base64, without the lines of PEM around it, as Java may have it.
        ec: file of a key of the curve P-256.
        other_ec: of another curve.
        bare_ec: one of P-256 as `bare`, whose last byte would be a blank in a text.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._keys: dict[str, Any] = {}
        secret = serialization.BestAvailableEncryption(PASSPHRASE.encode())
        first = rsa.generate_private_key(65_537, 2_048)
        self.rsa = self._kept("rsa", first, first.private_bytes(_PEM, _PKCS8, _OPEN))
        self.old_rsa = self._kept(
            "old_rsa", first, first.private_bytes(_PEM, serialization.PrivateFormat.TraditionalOpenSSL, _OPEN))
        self.encrypted = self._kept("encrypted", first, first.private_bytes(_PEM, _PKCS8, secret))
        self.bare = self._kept("bare", first, base64.encodebytes(
            first.private_bytes(serialization.Encoding.DER, _PKCS8, _OPEN)))
        second = rsa.generate_private_key(65_537, 2_048)
        self.other_rsa = self._kept("other_rsa", second, second.private_bytes(_PEM, _PKCS8, _OPEN))
        for name, curve in (("ec", ec.SECP256R1()), ("other_ec", ec.SECP384R1())):
            key = ec.generate_private_key(curve)
            self._kept(name, key, key.private_bytes(_PEM, _PKCS8, _OPEN))
        self.ec, self.other_ec = str(directory / "ec"), str(directory / "other_ec")
        key = ec.generate_private_key(ec.SECP256R1())
        while not (data := key.private_bytes(serialization.Encoding.DER, _PKCS8, _OPEN))[-1:].isspace():
            key = ec.generate_private_key(ec.SECP256R1())
        self.bare_ec = self._kept("bare_ec", key, base64.encodebytes(data))

    def _kept(self, name: str, key: Any, data: bytes) -> str:
        path = self._directory / name
        path.write_bytes(data)
        self._keys[str(path)] = key.public_key()
        return str(path)

    def verified(self, path: str, assertion: str, *, der: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
        """Header and claims of an assertion that the key in a file signed.

        Args:
            path: the file.
            assertion: what was signed.
            der: its signature by a curve is one in DER, as librdkafka makes it.

        Raises:
            cryptography.exceptions.InvalidSignature: another one did.
        """
        signed, _, signature = assertion.rpartition(".")
        header, claims = (json.loads(_decoded(part)) for part in signed.split("."))
        public, data = self._keys[path], _decoded(signature)
        if isinstance(public, rsa.RSAPublicKey):
            public.verify(data, signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        else:
            if not der:
                assert len(data) == 64
                data = encode_dss_signature(int.from_bytes(data[:32], "big"), int.from_bytes(data[32:], "big"))
            public.verify(data, signed.encode(), ec.ECDSA(hashes.SHA256()))
        return header, claims


def _decoded(part: str) -> bytes:
    assert "=" not in part
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
