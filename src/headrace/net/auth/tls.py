"""TLS as the ssl.* properties ask for it.

Knows Python's ssl module and the configuration; PKCS#12 files are read by the optional package cryptography.
Read next: `net.connection`.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import ssl
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from headrace.errors import ConfigError, DependencyError
from headrace.net.auth.renewed_files import RenewedFiles

__all__ = ["RenewedContext", "renewed_tls", "tls_context", "trusting_context"]

_VERSIONS = {"tlsv1.2": ssl.TLSVersion.TLSv1_2, "tlsv1.3": ssl.TLSVersion.TLSv1_3}
_PEM = b"-----BEGIN "
_SYSTEMS_OWN = "probe"
_FILES = (
    "ssl.ca.location", "ssl.crl.location", "ssl.certificate.location", "ssl.key.location", "ssl.keystore.location")
_JKS = b"\xfe\xed\xfe\xed"
_CIPHER_OF_TLS_13 = re.compile(r"TLS_(?!.*_WITH_)\w+")
_CURVES_OF_NIST = {"P-256": "prime256v1", "P-384": "secp384r1", "P-521": "secp521r1"}
_CIPHER_OF_JAVA = re.compile(r"TLS_(\w+)_WITH_(\w+)")


class RenewedContext(RenewedFiles[ssl.SSLContext]):
    """TLS settings that are made anew for a connection when files that they come from have changed since.

    Args:
        make: makes the settings from the files.
        paths: the files, or directories; empty names are left out.

    Raises:
        ConfigError: they cannot be made the first time.
    """

    def __init__(self, make: Callable[[], ssl.SSLContext], paths: Iterable[str]) -> None:
        super().__init__(make, paths, "files of TLS have changed and cannot be used, connections are opened with what "
                                      "they held before")


def renewed_tls(config: Mapping[str, Any]) -> RenewedContext | None:
    """`tls_context` for each new connection of a client; None when it speaks plaintext.

    Raises:
        ConfigError: as by `tls_context`.
        DependencyError: as by `tls_context`.
    """
    if "ssl" not in config["security.protocol"]:
        return None
    return RenewedContext(lambda: tls_context(config), [config[name] for name in _FILES])


def tls_context(config: Mapping[str, Any]) -> ssl.SSLContext:
    """The TLS settings of a client that speaks it.

    Raises:
        ConfigError: a certificate or key cannot be read, or they do not fit together.
        DependencyError: a PKCS#12 file is given and the package cryptography is not installed.
    """
    context = trusting_context(config, "ssl.ca.location", "ssl.ca.pem", "ssl.truststore.password")
    context.minimum_version, context.maximum_version = _versions(config)
    verify = config["enable.ssl.certificate.verification"]
    context.check_hostname = verify and config["ssl.endpoint.identification.algorithm"] == "https"
    context.verify_mode = ssl.CERT_REQUIRED if verify else ssl.CERT_NONE
    _load_revocations(context, config["ssl.crl.location"])
    _set_ciphers(context, config["ssl.cipher.suites"])
    _set_groups(context, config["ssl.curves.list"])
    _load_identity(context, config)
    return context


def trusting_context(
    config: Mapping[str, Any], path_name: str, pem_name: str, password_name: str = ""
) -> ssl.SSLContext:
    """A context that trusts the authorities that two properties name and nobody else: in a file or directory, as text.

    Where they name none, or librdkafka's word for it, the system's own are trusted.

    Raises:
        ConfigError: they cannot be loaded.
    """
    # Not ssl.create_default_context(): it goes by RFC 5280 to the letter since Python 3.13 and refuses certificates
    # that OpenSSL takes, and so do other clients, as those of many a company's own authority are.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # who is named is trusted, also below an authority
    path, pem = config[path_name], config[pem_name]
    if path == _SYSTEMS_OWN or not (path or pem):
        context.load_default_certs()
        path = ""
    try:
        if os.path.isdir(path):
            context.load_verify_locations(capath=path)
        elif path and _read(path).lstrip().startswith(_PEM):
            context.load_verify_locations(path)
        elif path:
            password = config[password_name] if password_name else ""
            context.load_verify_locations(cadata="\n".join(map(_pem, _store(path_name, path, password)[1])))
        if pem:
            path = ""
            # Python takes ASCII only and no blanks in front; what stands between certificates may be anything.
            context.load_verify_locations(cadata=pem.encode("ascii", "ignore").decode().strip())
    except ConfigError:
        raise
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        name = f'"{path_name}" ({path})' if path else f'"{pem_name}"'
        raise ConfigError(f"{name} cannot be loaded ({_reason(error)}): expected CA certificates in PEM") from None
    return context


def _versions(config: Mapping[str, Any]) -> tuple[ssl.TLSVersion, ssl.TLSVersion]:
    enabled = [_VERSIONS.get(name.lower()) for name in config["ssl.enabled.protocols"]]
    allowed = sorted(version for version in enabled if version is not None)
    if not allowed or None in enabled:
        raise ConfigError('Invalid value for configuration property "ssl.enabled.protocols": expected TLSv1.2, TLSv1.3 '
                          "or both; older versions are not spoken")
    highest = _VERSIONS.get(config["ssl.protocol"], allowed[-1])
    if highest < allowed[0]:
        raise ConfigError('"ssl.protocol" is older than any version in "ssl.enabled.protocols"')
    return allowed[0], min(highest, allowed[-1])


def _load_revocations(context: ssl.SSLContext, path: str) -> None:
    if not path:
        return
    try:
        context.load_verify_locations(path)
    except (OSError, ValueError) as error:
        raise ConfigError(f'"ssl.crl.location" ({path}) cannot be loaded ({_reason(error)}): expected certificate '
                          "revocation lists in PEM") from None
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _set_ciphers(context: ssl.SSLContext, text: str) -> None:
    names = [name for name in re.split(r"[:,\s]+", text) if name and not _CIPHER_OF_TLS_13.fullmatch(name)]
    if not names:
        return  # all of TLS 1.3 or none at all: nothing to choose
    try:
        context.set_ciphers(":".join(map(_openssl_cipher, names)))
    except ssl.SSLError:
        raise ConfigError(f'Invalid value {text!r} for configuration property "ssl.cipher.suites": OpenSSL knows none '
                          "of them") from None


def _set_groups(context: ssl.SSLContext, text: str) -> None:
    """Python 3.15 takes a list; before, there is only what was made for one curve."""
    names = [name for name in re.split(r"[:,\s]+", text) if name]
    if not names:
        return
    set_groups = getattr(context, "set_groups", None)
    if set_groups is None and len(names) > 1:
        raise ConfigError(f'Invalid value {text!r} for configuration property "ssl.curves.list": more than one group '
                          "needs Python 3.15; give one, or set Groups in OpenSSL's own configuration file, which "
                          "OPENSSL_CONF names")
    try:
        if set_groups is not None:
            set_groups(":".join(names))
        else:
            context.set_ecdh_curve(_CURVES_OF_NIST.get(names[0].upper(), names[0]))
    except (ValueError, ssl.SSLError):
        raise ConfigError(f'Invalid value {text!r} for configuration property "ssl.curves.list": OpenSSL knows no such '
                          "group") from None


def _openssl_cipher(name: str) -> str:
    """TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 is ECDHE-RSA-AES256-GCM-SHA384 to OpenSSL."""
    found = _CIPHER_OF_JAVA.fullmatch(name)
    if found is None:
        return name
    exchange = "" if found[1] == "RSA" else f"{found[1]}-"
    cipher = re.sub(r"AES_(\d+)(?:_CBC)?", r"AES\1", found[2]).removesuffix("_SHA256") \
        if found[2].startswith("CHACHA20") else re.sub(r"AES_(\d+)(?:_CBC)?", r"AES\1", found[2])
    return f"{exchange}{cipher}".replace("_", "-")


def _load_identity(context: ssl.SSLContext, config: Mapping[str, Any]) -> None:
    """This client's certificate chain and key: each from a file or as text, or both from one file."""
    certificate, key, store = (
        _one_of(config, names) for names in (("ssl.certificate.location", "ssl.certificate.pem"),
                                             ("ssl.key.location", "ssl.key.pem"), ("ssl.keystore.location",)))
    given = [f'"{name}"' for name in (certificate, key, store) if name]
    if not given:
        return
    if store and len(given) > 1:
        raise ConfigError(f"{' and '.join(given)} exclude each other: give one of them")
    if key and not certificate:
        missing = key.replace("key", "certificate")
        raise ConfigError(f'"{key}" needs "{missing}": give the certificate as well')
    shown = ", ".join(config[name] for name in (certificate, key, store) if name.endswith("location"))
    try:
        with _identity_files(config, certificate, key) as (chain, key_path, password):
            context.load_cert_chain(chain, key_path, password=password)
    except ConfigError:
        raise
    except (OSError, ValueError) as error:
        wanted = 'PEM that belongs together, and the right "ssl.key.password"' if key or store else \
            'PEM with the private key in it as well, or "ssl.key.location", and the right "ssl.key.password"'
        raise ConfigError(f"{' and '.join(given)} ({shown or 'hidden'}) cannot be loaded ({_reason(error)}): expected "
                          f"{wanted}") from None


def _one_of(config: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """The name of the one property that is given; empty for none."""
    given = [name for name in names if config[name]]
    if len(given) > 1:
        raise ConfigError(" and ".join(f'"{name}"' for name in given) + " exclude each other: give one of them")
    return given[0] if given else ""


@contextlib.contextmanager
def _identity_files(
    config: Mapping[str, Any], certificate: str, key: str
) -> Iterator[tuple[str, str | None, str]]:
    """Paths of the chain and the key, and the key's password: Python's ssl reads files only.

    Args:
        config: the properties.
        certificate: name of the one with the certificate; empty where a keystore is given.
        key: name of the one with the key; empty where it is in the file of the certificate.
    """
    password = config["ssl.key.password"]
    with contextlib.ExitStack() as kept:
        def path_of(text: bytes) -> str:
            directory = kept.enter_context(tempfile.TemporaryDirectory())  # readable by nobody else
            path = Path(directory, "identity.pem")
            path.write_bytes(text)
            return str(path)

        if certificate:
            chain, key_path = (
                config[name] if not name.endswith("pem") else path_of(config[name].strip().encode())
                for name in (certificate, key or certificate))
            yield chain, key_path, password
            return
        path = config["ssl.keystore.location"]
        text = _read(path)
        if text.lstrip().startswith(_PEM):
            password = password or config["ssl.keystore.password"]
        else:
            text, password = _keystore_pem(path, config["ssl.keystore.password"] or password)
        yield path_of(text), None, password


def _keystore_pem(path: str, password: str) -> tuple[bytes, str]:
    """A PKCS#12 file's chain and key as PEM; the key under a password that is made for the purpose."""
    key, certificates = _store("ssl.keystore.location", path, password)
    if key is None or not certificates:
        raise ConfigError(f'"ssl.keystore.location" ({path}) has no private key with a certificate')
    from cryptography.hazmat.primitives import serialization

    once = secrets.token_urlsafe()
    text: bytes = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                    serialization.BestAvailableEncryption(once.encode()))
    return text + "".join(map(_pem, certificates)).encode(), once


def _store(name: str, path: str, password: str) -> tuple[Any, list[Any]]:
    """Key and certificates of a PKCS#12 file."""
    data = _read(path)
    if data.startswith(_JKS):
        raise ConfigError(f'"{name}" ({path}) is a Java keystore (JKS), which only Java reads: convert it with keytool '
                          f"-importkeystore -srckeystore {os.path.basename(path)} -destkeystore store.p12 "
                          "-deststoretype pkcs12")
    try:
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError:
        raise DependencyError(f'"{name}" ({path}) is not PEM, and PKCS#12 needs the package cryptography: pip install '
                              "'headrace[tls]'") from None
    try:
        found = pkcs12.load_pkcs12(data, password.encode() or None)
    except ValueError as error:
        raise ConfigError(f'"{name}" ({path}) cannot be loaded ({error}): expected PKCS#12 or PEM, and the right '
                          f'"{_PASSWORDS[name]}"') from None
    certificates = [found.cert, *found.additional_certs] if found.cert is not None else found.additional_certs
    return found.key, [entry.certificate for entry in certificates]


_PASSWORDS = {"ssl.keystore.location": "ssl.keystore.password", "ssl.ca.location": "ssl.truststore.password",
              "https.ca.location": "https.ca.location"}


def _pem(certificate: Any) -> str:
    text: str = ssl.DER_cert_to_PEM_cert(certificate.public_bytes(_der()))
    return text


def _der() -> Any:
    from cryptography.hazmat.primitives.serialization import Encoding

    return Encoding.DER


def _read(path: str) -> bytes:
    return Path(path).read_bytes()


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or str(error)
    return getattr(error, "strerror", None) or str(error)
