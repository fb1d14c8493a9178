"""GSSAPI: Kerberos tickets, by the optional package gssapi, which binds the system's Kerberos library.

Its steps ask the key server and read files: they are run off the event loop. Source: RFC 4752, RFC 4121, KIP-12.
"""

from __future__ import annotations

from typing import Any

from headrace.errors import DependencyError, KafkaException, ProtocolError
from headrace.machines.cluster.sasl.exchange import one_line, refused

__all__ = ["Kerberos", "require_gssapi"]

_NO_LAYER = 1
_OFFER_BYTES = 4
_NO_LAYER_REPLY = bytes([_NO_LAYER, 0, 0, 0])


def require_gssapi() -> Any:
    """The package gssapi.

    Raises:
        DependencyError: it, or the Kerberos library below it, is not installed.
    """
    try:
        import gssapi
    except (ImportError, OSError) as error:
        raise DependencyError(
            '"sasl.mechanism": "GSSAPI", its default, needs the package gssapi and the system\'s Kerberos library '
            f"({error}): pip install 'headrace[gssapi]', or give another mechanism") from None
    return gssapi


class Kerberos:
    """One authentication with a Kerberos ticket.

    Args:
        service: first part of the broker's principal, ``kafka`` as a rule.
        host: the broker's host, second part of its principal.
        principal: whose ticket to use; the default one of the ticket cache or keytab when empty.
        keytab: file of keys to get a ticket with; the ticket cache is used when empty.
    """

    name = "GSSAPI"
    slow = True
    remedy = "check the principal, its ticket (klist), the clocks, and that the broker's host name is the one in its " \
             "own principal"

    def __init__(self, service: str, host: str, principal: str, keytab: str) -> None:
        self.done = False
        self._peer = f"{service}@{host}"
        self._principal, self._keytab = principal, keytab
        self._context: Any = None
        self._layer_settled = False

    def first(self) -> bytes:
        """The ticket for the broker."""
        gssapi = require_gssapi()
        try:
            name = gssapi.Name(self._principal, gssapi.NameType.kerberos_principal) if self._principal else None
            # Tickets got with a keytab are kept in memory, apart from those of other keytabs and of kinit.
            cache = f"MEMORY:headrace {self._keytab} {self._principal}"
            store = {"client_keytab": self._keytab, "ccache": cache} if self._keytab else None
            credentials = gssapi.Credentials(name=name, usage="initiate", store=store) if name or store else None
            flags = gssapi.RequirementFlag.mutual_authentication | gssapi.RequirementFlag.integrity
            self._context = gssapi.SecurityContext(
                name=gssapi.Name(self._peer, gssapi.NameType.hostbased_service), creds=credentials, flags=flags,
                usage="initiate")
            return self._context.step() or b""
        except gssapi.exceptions.GSSError as error:
            raise self._failed(error) from None

    def step(self, challenge: bytes) -> bytes | None:
        """Take the broker's ticket, then agree that nothing beyond authentication is wanted of the mechanism."""
        gssapi = require_gssapi()
        try:
            if self._layer_settled:
                self.done = True
                return None
            if not self._context.complete:
                return self._context.step(challenge) or b""
            offer = self._context.unwrap(challenge).message
            if len(offer) != _OFFER_BYTES:
                raise ProtocolError(f"GSSAPI: an offer of {len(offer)} bytes where {_OFFER_BYTES} are expected")
            if not offer[0] & _NO_LAYER:
                raise refused("GSSAPI: the broker insists on a security layer below SASL, which Kafka does not have")
            self._layer_settled = True
            wrapped: bytes = self._context.wrap(_NO_LAYER_REPLY, False).message
            return wrapped
        except gssapi.exceptions.GSSError as error:
            raise self._failed(error) from None

    def _failed(self, error: Any) -> KafkaException:
        return refused(f"SASL GSSAPI authentication to {self._peer} failed: {one_line(str(error))}: {self.remedy}")
