"""A connection's failure as one line that says what to do; and what it means for the requests on it.

Bytes that break the format, Kafka's or that of TLS below it, say nothing about a request: its caller gets a
lost connection, which passes, and `error_cb` the real error. So it is with every end of a connection but a refusal that
was understood (decision 0010).

Knows sockets' and OpenSSL's exceptions, no requests. Read next: `net.connection`.
"""

from __future__ import annotations

import errno
import socket
import ssl
from enum import Enum

from headrace.errors import KafkaError, KafkaException, ProtocolError
from headrace.machines.cluster.in_flight import ClientRequest
from headrace.machines.machine import REFUSALS, because
from headrace.types.records import NodeAddress

__all__ = [
    "CANCELLED",
    "ErrorDeduplicator",
    "Phase",
    "connection_error",
    "history",
    "is_garbled",
    "no_memory",
    "no_reply",
    "request_error",
    "setup_timeout",
]

_OTHER_NAME = (62, 64)  # OpenSSL: X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH
_OTHER_DATES = (9, 10)  # X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED
_NO_HOST = (socket.gaierror, UnicodeError)
"""The second is raised for names that cannot be written in a question to the resolver, as `a..b`."""
_LOST = (ConnectionResetError, BrokenPipeError, ConnectionAbortedError, EOFError)
_OF_REQUESTS = frozenset({
    KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._RESOLVE, KafkaError._DESTROY,
    KafkaError._UNSUPPORTED_FEATURE, *REFUSALS,
})
"""Codes of a connection's end that mean the same to its requests. All others are about the connection alone."""
_TLS_VERDICTS = (
    "HANDSHAKE_FAILURE", "CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED", "ALERT_PROTOCOL_VERSION",
    "INSUFFICIENT_SECURITY", "INAPPROPRIATE_FALLBACK", "UNRECOGNIZED_NAME", "UNKNOWN_PSK_IDENTITY",
    "NO_APPLICATION_PROTOCOL", "UNSUPPORTED_PROTOCOL", "NO_PROTOCOLS_AVAILABLE", "NO_CIPHERS_AVAILABLE",
    "NO_SHARED_CIPHER", "TOO_SMALL", "TOO_WEAK",
)
"""Parts of OpenSSL's reasons by which one side understood the other and refused it. All others may be damage: one bit
turned in what a server sends gives twenty different ones (`tests/unit/net/test_garbled_answers.py`)."""

_TLS_HINTS = (
    (("CERTIFICATE_REQUIRED", "BAD_CERTIFICATE"),
     'the broker may ask for a client certificate, or refuse the one it got: set "ssl.certificate.location" and '
     '"ssl.key.location"'),
    (("ALERT_CERTIFICATE", "ALERT_UNKNOWN_CA", "ALERT_UNSUPPORTED_CERTIFICATE", "ALERT_ACCESS_DENIED"),
     "the broker refuses this client's certificate: is it within its dates, not revoked, and signed by an authority "
     'that the broker trusts? Check "ssl.certificate.location"'),
    (("HANDSHAKE_FAILURE", "INSUFFICIENT_SECURITY"),
     'the broker takes none of the ciphers: check "ssl.cipher.suites" and "ssl.curves.list"; or it may ask for a '
     'client certificate: set "ssl.certificate.location" and "ssl.key.location"'),
    (("PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL"),
     'the broker speaks other versions of TLS: check "ssl.enabled.protocols" and "ssl.protocol"'),
    (("WRONG_VERSION", "RECORD_LAYER", "UNKNOWN_PROTOCOL"), 'the port may be plaintext: check "security.protocol"'),
)
"""What to do, by parts of OpenSSL's reasons; the first that is found counts."""

CANCELLED = KafkaException(KafkaError(KafkaError._TRANSPORT, "a task that opens the connection was cancelled"))
"""Others than the client did so, with all tasks of their loop: it says nothing about the broker, and nobody is told."""


class Phase(Enum):
    """How far a connection had come when it ended."""

    OPENING = "before the broker's first answer"
    SASL = "during authentication"
    RENEWAL = "while authentication was renewed"
    FIRST_REQUEST = "open, but no request was answered"
    OPEN = "open"


def connection_error(
    cause: BaseException | None, name: str, phase: Phase, protocol: str, *, history: str = ""
) -> KafkaError:
    """Class what ended a connection, or kept it from opening.

    Args:
        cause: the exception; None when the broker closed the connection.
        name: host and port of the broker.
        phase: how far the connection had come.
        protocol: the client's security.protocol.
        history: since when and how often it failed.
    """
    code, text, retriable = KafkaError._TRANSPORT, None, None
    if isinstance(cause, KafkaException):
        code, text, retriable = cause.error.code(), cause.error.str(), cause.error.retriable()
    elif isinstance(cause, _NO_HOST):
        code = KafkaError._RESOLVE
    elif _is_tls_failure(cause):
        code = KafkaError._SSL
    return KafkaError(code, f"{name}: {text or _describe(cause, phase, protocol)}{history}", retriable=retriable)


def is_garbled(cause: BaseException | None) -> bool:
    """Whether it was bytes that cannot be understood: they prove nothing, and the next ones may be like them."""
    return isinstance(cause, ProtocolError) or (_is_tls_failure(cause) and not _is_tls_verdict(cause))


def request_error(error: KafkaError, cause: BaseException | None, *, written: bool) -> KafkaError:
    """What a connection's end means for a request on it.

    Args:
        error: what ended the connection, as `error_cb` gets it.
        cause: the exception behind it.
        written: the broker may have the request.
    """
    kept = error.code() in _OF_REQUESTS and not is_garbled(cause)
    return KafkaError(error.code() if kept else KafkaError._TRANSPORT, error.str(),
                      retriable=error.retriable() if kept else None, maybe_applied=written)


def setup_timeout(timeout_s: float, state: str) -> KafkaException:
    """The connection did not come into being in time."""
    return KafkaException(KafkaError(
        KafkaError._TRANSPORT, f"no connection after {timeout_s:g} s ({state}): is this a Kafka port, does it need TLS "
        'or SASL ("security.protocol"), does a firewall let it through?'))


def no_memory() -> KafkaException:
    """A reply does not fit into what the process may have. It may later, so requests are only lost with it."""
    return KafkaException(KafkaError(
        KafkaError._CRIT_SYS_RESOURCE, "there is no memory for what it sends: raise the limit of the process, or have "
        'less come at once ("max.partition.fetch.bytes", "fetch.max.bytes", "queued.max.messages.kbytes")'))


def no_reply(call: ClientRequest, before: KafkaError | None) -> KafkaException:
    """A written request was not answered in time.

    Args:
        call: the request.
        before: what ended the connection when it was last open. It says more than an attempt for which little time
            was left; None if the broker has answered since.
    """
    why = because(None if before == KafkaError._TIMED_OUT else before)  # one such text says it all
    return KafkaException(KafkaError(
        KafkaError._TIMED_OUT, f"{type(call.send.request).__name__} was not answered within "
        f"{call.send.timeout_s + call.grace_s:g} s, the connection is given up{why}"))


def history(failures: int, elapsed_s: float) -> str:
    """How often and for how long a connection could not be opened, to be added to its last error."""
    return f" ({failures} attempts in {elapsed_s:.1f} s)" if failures > 1 else ""


class ErrorDeduplicator:
    """Reports each broken connection once, and once that no broker is left, until one can be used again."""

    __slots__ = ("_all_down", "_reported")

    def __init__(self) -> None:
        self._reported: dict[int, str] = {}
        self._all_down = False

    def over(self) -> None:
        """A connection can be used: the next failure is reported again."""
        self._all_down = False
        self._reported.clear()

    def lost(self, node: NodeAddress, error: KafkaError, node_count: int, all_down: bool) -> list[KafkaError]:
        """A connection failed. Returns the errors that were not reported yet."""
        unreported = []
        text = error.str().partition(" (")[0]  # without its history
        if self._reported.get(node.id) != text:
            self._reported[node.id] = text
            unreported.append(error)
        if all_down and not self._all_down:
            self._all_down = True
            who = "the only known broker" if node_count == 1 else f"none of {node_count} known brokers"
            can = "cannot" if node_count == 1 else "can"
            unreported.append(KafkaError(KafkaError._ALL_BROKERS_DOWN,
                                   f"{who} {can} be reached, still trying; the last error was {error.str()}"))
        return unreported


def _is_tls_failure(cause: BaseException | None) -> bool:
    return isinstance(cause, ssl.SSLError) and not isinstance(cause, (ssl.SSLEOFError, ssl.SSLZeroReturnError))


def _is_tls_verdict(cause: BaseException | None) -> bool:
    reason = cause.reason or "" if isinstance(cause, ssl.SSLError) else ""
    return isinstance(cause, ssl.SSLCertVerificationError) or any(verdict in reason for verdict in _TLS_VERDICTS)


def _describe(error: BaseException | None, phase: Phase, protocol: str) -> str:
    if isinstance(error, _NO_HOST):
        return 'the host name cannot be resolved: correct it in "bootstrap.servers" or in the broker\'s ' \
               "advertised.listeners"
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _OTHER_NAME:
            return f"the broker's certificate is for another host ({error.verify_message.rstrip('.')}): dial a name " \
                   'that it contains, or change advertised.listeners; ' \
                   '"ssl.endpoint.identification.algorithm": "none" gives the check up'
        advice = "renew it, or set the clock of this machine right" if error.verify_code in _OTHER_DATES else \
            'set "ssl.ca.location" to the CA that signed it'
        return f"the broker's certificate is not trusted ({error.verify_message.rstrip('.')}): {advice}"
    if isinstance(error, ssl.SSLError) and _is_tls_failure(error):
        return f"TLS failed ({error.reason or error}): {_tls_hint(error)}"
    if isinstance(error, ConnectionAbortedError) and error.errno is None:  # from here: `TlsPipe`
        return f"the connection is given up: {error}"
    if error is None or isinstance(error, (*_LOST, ssl.SSLError)):
        return _closed(phase, protocol)
    if isinstance(error, TimeoutError):
        return "no answer to the attempt to connect: is the host up, and does a firewall let the port through?"
    if isinstance(error, ConnectionRefusedError) or _all_refused(error):
        return 'connection refused: is the broker running, and is the port in "bootstrap.servers" right?'
    if isinstance(error, OSError) and error.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH):
        return "no route to the host: check the network and the address"
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        return "too many open files: raise the limit (ulimit -n) or close clients that are not needed"
    return f"{type(error).__name__}: {error}"


def _closed(phase: Phase, protocol: str) -> str:
    if phase is Phase.OPEN or (phase is Phase.FIRST_REQUEST and protocol.startswith("sasl")):
        return "the broker closed the connection"
    if phase is Phase.SASL:
        return 'the broker closed the connection during SASL: check "sasl.mechanism" and the credentials; its log ' \
               "tells why"
    if phase is Phase.RENEWAL:  # a refusal would have been said
        return "the broker closed the connection while SASL was renewed: the session may have been over before, " \
               'behind slow requests: check "connections.max.reauth.ms" of the broker'
    if phase is Phase.FIRST_REQUEST:
        wanted = "sasl_ssl" if protocol == "ssl" else "sasl_plaintext"
        return "the broker closed the connection at its first request: the port may need SASL, with " \
               f'"security.protocol": "{wanted}"'
    if protocol.endswith("ssl"):
        return 'the connection was closed during the TLS handshake: the port may be plaintext ("security.protocol")'
    return 'the broker closed the connection at its first request: the port may need TLS or SASL ("security.protocol")'


def _tls_hint(error: ssl.SSLError) -> str:
    reason = (error.reason or str(error)).upper()
    return next((hint for parts, hint in _TLS_HINTS if any(part in reason for part in parts)),
                "check the ssl.* properties and the broker's listener")


def _all_refused(error: BaseException) -> bool:
    """Asyncio folds the failures of several addresses into one text."""
    text = str(error)
    return text.startswith("Multiple exceptions") and text.count("Errno") == text.count(f"[Errno {errno.ECONNREFUSED}]")
