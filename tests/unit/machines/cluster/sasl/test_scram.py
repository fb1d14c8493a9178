"""SCRAM: the exchanges of the RFCs, and what is not accepted from a broker."""

import base64
import contextlib
import hashlib
import hmac

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headrace.errors import KafkaError, KafkaException, ProtocolError
from headrace.machines.cluster.sasl.scram import LEAST_ITERATIONS, MOST_ITERATIONS, Scram

SERVER_NONCE = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SERVER_FIRST = f"r={SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"




class Server:
    """The other side, as RFC 5802 has it: it stores what proves a password, and not the password."""

    def __init__(self, name: str, password: str, salt: bytes, iterations: int = LEAST_ITERATIONS) -> None:
        self.hash = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}[name]
        self.salt, self.iterations = salt, iterations
        salted = hashlib.pbkdf2_hmac(self.hash, password.encode(), salt, iterations)
        self.stored_key = hashlib.new(self.hash, self.mac(salted, b"Client Key")).digest()
        self.server_key = self.mac(salted, b"Server Key")

    def mac(self, key: bytes, message: bytes) -> bytes:
        return hmac.new(key, message, self.hash).digest()

    def challenge(self, first: bytes) -> bytes:
        self.first_bare = first.removeprefix(b"n,,")
        nonce = self.first_bare.split(b"r=", 1)[1].split(b",")[0]
        self.said = b"r=%sSERVER,s=%s,i=%d" % (nonce, base64.b64encode(self.salt), self.iterations)
        return self.said

    def judge(self, final: bytes) -> bytes | None:
        """The server's own proof; None if the client's is wrong."""
        without_proof, proof = final.split(b",p=")
        signed = b",".join((self.first_bare, self.said, without_proof))
        signature = self.mac(self.stored_key, signed)
        client_key = bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True))
        if hashlib.new(self.hash, client_key).digest() != self.stored_key:
            return None
        return b"v=" + base64.b64encode(self.mac(self.server_key, signed))


def scram(nonce: str = "rOprNGfwEbeRWgbNEkqO", password: str = "pencil", name: str = "SCRAM-SHA-256") -> Scram:
    mechanism = Scram(name, "user", password, nonce)
    mechanism.first()
    return mechanism


def test_scram_sha_256_is_the_exchange_of_rfc_7677() -> None:
    mechanism = Scram("SCRAM-SHA-256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    assert mechanism.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert mechanism.step(SERVER_FIRST.encode()) == (
        f"c=biws,r={SERVER_NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode())
    assert not mechanism.done
    assert mechanism.step(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None
    assert mechanism.done


def test_only_the_hashing_is_slow() -> None:
    mechanism = Scram("SCRAM-SHA-512", "user", "pencil", "abc")
    stages = [mechanism.slow]
    mechanism.first()
    stages.append(mechanism.slow)
    mechanism.step(b"r=abcdef,s=QSXCR+Q6sek8bf92,i=4096")
    assert [*stages, mechanism.slow] == [False, True, False]


def test_a_name_with_commas_and_equals_signs_is_quoted_and_a_delegation_token_announced() -> None:
    assert Scram("SCRAM-SHA-256", "a=b,c", "p", "N").first() == b"n,,n=a=3Db=2Cc,r=N"
    assert Scram("SCRAM-SHA-256", "id", "p", "N", delegation_token=True).first() == b"n,,n=id,r=N,tokenauth=true"


@pytest.mark.parametrize("first", [
    "r=other,s=QSXCR+Q6sek8bf92,i=4096",
    "r=rOprNGfwEbeRWgbNEkqO,s=QSXCR+Q6sek8bf92,i=4096",
    "r=rOprNGfwEbeRWgbNEkqOx,s=QSXCR+Q6sek8bf92,i=4095",
    f"r=rOprNGfwEbeRWgbNEkqOx,s=QSXCR+Q6sek8bf92,i={MOST_ITERATIONS + 1}",
    "e=unknown-user",
], ids=["another nonce", "only our nonce", "too few iterations", "too many iterations", "an error"])
def test_a_broker_that_does_not_keep_to_scrams_rules_is_refused(first: str) -> None:
    with pytest.raises(KafkaException) as failed:
        scram().step(first.encode())
    assert failed.value.error == KafkaError._AUTHENTICATION


@pytest.mark.parametrize("first", [
    b"", b"\xff", b"r=rOprNGfwEbeRWgbNEkqOx", b"r=rOprNGfwEbeRWgbNEkqOx,s=,i=4096",
    b"r=rOprNGfwEbeRWgbNEkqOx,s=Q,i=4096", b"m=x,r=rOprNGfwEbeRWgbNEkqOx,s=QSXCR+Q6sek8bf92,i=4096",
    b"r=rOprNGfwEbeRWgbNEkqOx,s=QSXCR+Q6sek8bf92,i=-1", b"r=rOprNGfwEbeRWgbNEkqOx,s=QSXCR+Q6sek8bf92,i=" + b"9" * 5000,
])
def test_a_malformed_challenge_is_a_protocol_error(first: bytes) -> None:
    with pytest.raises(ProtocolError):
        scram().step(first)


@pytest.mark.parametrize("final", ["v=" + base64.b64encode(bytes(32)).decode(), "v=", "x=y", "e=invalid-proof"])
def test_a_broker_that_cannot_prove_that_it_knows_the_password_is_refused(final: str) -> None:
    mechanism = scram()
    mechanism.step(SERVER_FIRST.encode())
    with pytest.raises(KafkaException) as failed:
        mechanism.step(final.encode())
    assert failed.value.error == KafkaError._AUTHENTICATION
    assert not mechanism.done


@given(st.binary(max_size=200) | st.text("rsievpm=,0123456789rOprNGfwEbeRWgbNEkqO+/", max_size=80).map(str.encode))
def test_hostile_challenges_raise_nothing_but_kafka_exceptions(challenge: bytes) -> None:
    with contextlib.suppress(KafkaException):
        scram().step(challenge)


MECHANISMS = st.sampled_from(["SCRAM-SHA-256", "SCRAM-SHA-512"])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(MECHANISMS, TEXTS, TEXTS, st.binary(min_size=1, max_size=40), st.booleans())
@settings(max_examples=30)
def test_both_sides_prove_that_they_know_the_password(
    name: str, username: str, password: str, salt: bytes, delegated: bool
) -> None:
    server, mechanism = Server(name, password, salt), Scram(name, username, password, "N", delegation_token=delegated)
    final = mechanism.step(server.challenge(mechanism.first()))
    assert final is not None
    proof = server.judge(final)
    assert proof is not None
    assert mechanism.step(proof) is None
    assert mechanism.done


@given(MECHANISMS, TEXTS, TEXTS)
@settings(max_examples=20)
def test_another_password_proves_nothing_to_either_side(name: str, password: str, another: str) -> None:
    assume(password.encode() != another.encode() and not same_key(password, another))
    server, mechanism = Server(name, password, b"salt"), Scram(name, "u", another, "N")
    final = mechanism.step(server.challenge(mechanism.first()))
    assert final is not None
    assert server.judge(final) is None
    signed = server.mac(server.server_key, b"anything")
    with pytest.raises(KafkaException, match="does not prove that it knows the password"):
        mechanism.step(b"v=" + base64.b64encode(signed))


def same_key(one: str, other: str) -> bool:
    """HMAC fills a short key with zeros, so that zeros at the end of a password make no difference."""
    return one.rstrip("\0") == other.rstrip("\0")


@given(TEXTS)
def test_the_broker_reads_back_the_name(username: str) -> None:
    head, _, said = Scram("SCRAM-SHA-256", username, "p", "N").first().decode().partition("n,,n=")
    name, _, nonce = said.rpartition(",")
    assert (head, nonce) == ("", "r=N")
    assert "," not in name
    assert name.replace("=2C", ",").replace("=3D", "=") == username


@pytest.mark.parametrize("iterations", [LEAST_ITERATIONS, MOST_ITERATIONS])
def test_the_bounds_of_iterations_are_accepted_themselves(iterations: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashlib, "pbkdf2_hmac", lambda *arguments: bytes(32))  # a million take a second
    assert scram().step(f"r=rOprNGfwEbeRWgbNEkqOx,s=QSXCR+Q6sek8bf92,i={iterations}".encode()) is not None
