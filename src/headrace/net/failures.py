"""What went wrong with a connection, in one line that says what to do.

Knows sockets' and OpenSSL's exceptions, no requests. Read next: `net.connection`.
"""

from __future__ import annotations

import errno
import socket
import ssl

from headrace.errors import KafkaError, KafkaException

__all__ = ["connection_error", "describe"]

_LOST = (ConnectionResetError, BrokenPipeError, ConnectionAbortedError, EOFError)


def connection_error(error: BaseException | None, *, opening: bool, tls: bool) -> KafkaError:
    """Class the exception that ended a connection, or kept it from opening.

    Args:
        error: the exception; None when the broker closed the connection.
        opening: it happened before the first answer of the broker.
        tls: the connection is meant to speak TLS.
    """
    if isinstance(error, KafkaException):
        return error.error
    code = KafkaError._TRANSPORT
    if isinstance(error, socket.gaierror):
        code = KafkaError._RESOLVE
    elif isinstance(error, TimeoutError) and not isinstance(error, OSError):
        code = KafkaError._TIMED_OUT
    elif isinstance(error, ssl.SSLError) and not isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        code = KafkaError._SSL
    return KafkaError(code, describe(error, opening=opening, tls=tls))


def describe(error: BaseException | None, *, opening: bool, tls: bool) -> str:
    """One line: what happened and what to do."""
    if isinstance(error, socket.gaierror):
        return 'the host name can not be resolved: correct it in "bootstrap.servers" or in the broker\'s ' \
               "advertised.listeners"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the broker's certificate is not trusted ({error.verify_message.rstrip('.')}): set " \
               '"ssl.ca.location" to the CA that signed it, and dial a name that it contains'
    if isinstance(error, ssl.SSLError) and not isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        return f"TLS failed ({error.reason or error}): {_tls_hint(error)}"
    if error is None or isinstance(error, (*_LOST, ssl.SSLError)):
        return _closed(opening, tls)
    if isinstance(error, TimeoutError):
        return "no answer to the attempt to connect: is the host up, and does a firewall let the port through?"
    if isinstance(error, ConnectionRefusedError) or _all_refused(error):
        return 'connection refused: is the broker running, and is the port in "bootstrap.servers" right?'
    if isinstance(error, OSError) and error.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH):
        return "no route to the host: check the network and the address"
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        return "too many open files: raise the limit (ulimit -n) or close clients that are not needed"
    return f"{type(error).__name__}: {error}"


def _closed(opening: bool, tls: bool) -> str:
    if not opening:
        return "the broker closed the connection"
    if tls:
        return 'the connection was closed during the TLS handshake: the port may be plaintext ("security.protocol")'
    return 'the broker closed the connection at its first request: the port may need TLS or SASL ("security.protocol")'


def _tls_hint(error: ssl.SSLError) -> str:
    reason = (error.reason or str(error)).upper()
    if "CERTIFICATE_REQUIRED" in reason or "HANDSHAKE_FAILURE" in reason or "BAD_CERTIFICATE" in reason:
        return 'the broker may ask for a client certificate: set "ssl.certificate.location" and "ssl.key.location"'
    if "WRONG_VERSION" in reason or "RECORD_LAYER" in reason or "UNKNOWN_PROTOCOL" in reason:
        return 'the port may be plaintext: check "security.protocol"'
    return "check the ssl.* properties and the broker's listener"


def _all_refused(error: BaseException) -> bool:
    """Asyncio folds the failures of several addresses into one text."""
    text = str(error)
    return text.startswith("Multiple exceptions") and text.count("Errno") == text.count(f"[Errno {errno.ECONNREFUSED}]")
