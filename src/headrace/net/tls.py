"""TLS as the ssl.* properties ask for it.

Knows Python's ssl module and the configuration. Read next: `net.connection`.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

from headrace.errors import ConfigError

__all__ = ["tls_context"]


def tls_context(config: Mapping[str, Any]) -> ssl.SSLContext | None:
    """The TLS settings of a client; None when it speaks plaintext.

    Raises:
        ConfigError: a certificate or key can not be read, or they do not fit together.
    """
    if "ssl" not in config["security.protocol"]:
        return None
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    verify = config["enable.ssl.certificate.verification"]
    context.check_hostname = verify and config["ssl.endpoint.identification.algorithm"] == "https"
    context.verify_mode = ssl.CERT_REQUIRED if verify else ssl.CERT_NONE
    _load_authorities(context, config["ssl.ca.location"], config["ssl.ca.pem"])
    _load_identity(context, config)
    return context


def _load_authorities(context: ssl.SSLContext, path: str, pem: str) -> None:
    if not path and not pem:
        return
    try:
        context.load_verify_locations(cafile=path or None, cadata=pem or None)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        name = f'"ssl.ca.location" ({path})' if path else '"ssl.ca.pem"'
        raise ConfigError(f"{name} can not be loaded ({_reason(error)}): expected CA certificates in PEM") from None


def _load_identity(context: ssl.SSLContext, config: Mapping[str, Any]) -> None:
    certificate, key = config["ssl.certificate.location"], config["ssl.key.location"]
    if not certificate:
        if key:
            raise ConfigError('"ssl.key.location" needs "ssl.certificate.location": give the certificate as well')
        return
    try:
        context.load_cert_chain(certificate, key or None, password=config["ssl.key.password"] or "")
    except (OSError, ValueError) as error:
        shown = certificate if not key else f"{certificate}, {key}"
        raise ConfigError(f'"ssl.certificate.location" and "ssl.key.location" ({shown}) can not be loaded '
                          f"({_reason(error)}): expected PEM files that belong together, and the right "
                          '"ssl.key.password"') from None


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or str(error)
    return getattr(error, "strerror", None) or str(error)
