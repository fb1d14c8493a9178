"""SASL mechanisms and the exchange that carries them, without a socket."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import ConfigError, KafkaError, KafkaException, ProtocolError
from headrace.machines.cluster.handshake import Handshake, opening_frame
from headrace.machines.cluster.sasl.exchange import Mechanism, SaslExchange
from headrace.machines.cluster.sasl.oauthbearer import OAuthBearer
from headrace.machines.cluster.sasl.plain import Plain
from headrace.machines.cluster.sasl.scram import MOST_ITERATIONS, Scram
from headrace.wire.frame import encode_response
from headrace.wire.messages.cluster.session import (
    ApiVersion,
    ApiVersionsResponse,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from headrace.wire.schema import Response

RANGES = {17: (0, 1), 36: (0, 2)}
SERVER_NONCE = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SERVER_FIRST = f"r={SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"


def frame(response: Response, version: int) -> bytes:
    return b"".join(encode_response(response, version, 0))[4:]


def scram(nonce: str = "rOprNGfwEbeRWgbNEkqO", password: str = "pencil", name: str = "SCRAM-SHA-256") -> Scram:
    mechanism = Scram(name, "user", password, nonce)
    mechanism.first()
    return mechanism


# Mechanisms


def test_plain_is_name_and_password_in_utf8() -> None:
    plain = Plain("jürgen", "pass wörd")
    assert plain.first() == "\0jürgen\0pass wörd".encode()
    assert plain.step(b"") is None
    assert plain.done


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
    for mechanism in (scram(), OAuthBearer("t", {})):
        try:
            mechanism.step(challenge)
        except KafkaException:
            pass


def test_an_oauth_token_travels_with_its_extensions() -> None:
    mechanism = OAuthBearer("abc.def.", {"traceId": "1 2", "cluster": "x"})
    assert mechanism.first() == b"n,,\x01auth=Bearer abc.def.\x01traceId=1 2\x01cluster=x\x01\x01"
    assert mechanism.step(b"") is None
    assert mechanism.done


def test_a_complaint_about_the_token_is_answered_so_that_the_broker_can_say_no() -> None:
    mechanism = OAuthBearer("abc", {})
    assert mechanism.step(b'{"status":"invalid_token","scope":"kafka:read"}') == b"\x01"
    with pytest.raises(KafkaException, match="status invalid_token scope kafka:read"):
        mechanism.step(b"")
    assert not mechanism.done


@pytest.mark.parametrize("token", ["", "q w", "q\x01w", "ä"])
def test_a_token_that_cannot_be_sent_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(KafkaException) as failed:
        OAuthBearer(token, {})
    assert not token or token not in failed.value.error.str()


@pytest.mark.parametrize("extensions", [{"auth": "x"}, {"a1": "x"}, {"": "x"}, {"a": "\x01"}, {"a": ""}])
def test_an_extension_that_cannot_be_sent_is_refused(extensions: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="SASL extension"):
        OAuthBearer("t", extensions)


# The exchange


def chosen(mechanism: Mechanism, **fields: object) -> SaslExchange:
    exchange = SaslExchange(mechanism, RANGES)
    exchange.begin()
    exchange.on_frame(frame(SaslHandshakeResponse(mechanisms=[mechanism.name]), 1))
    return exchange


def test_the_mechanism_is_chosen_and_its_tokens_travel_in_sasl_authenticate() -> None:
    exchange = SaslExchange(Plain("u", "p"), RANGES)
    request, version = exchange.begin()
    assert isinstance(request, SaslHandshakeRequest)
    assert (request.mechanism, version) == ("PLAIN", 1)
    following = exchange.on_frame(frame(SaslHandshakeResponse(mechanisms=["PLAIN"]), 1))
    assert isinstance(following, tuple)
    assert isinstance(following[0], SaslAuthenticateRequest)
    assert (following[0].auth_bytes, following[1]) == (b"\0u\0p", 2)
    done = SaslAuthenticateResponse(error_message=None, auth_bytes=b"", session_lifetime_ms=1500)
    assert exchange.on_frame(frame(done, 2)) is None
    assert exchange.session_s == 1.5


def test_a_broker_before_1_0_gets_bare_tokens() -> None:
    exchange = SaslExchange(Plain("u", "p"), {17: (0, 0)})
    assert exchange.begin()[1] == 0
    following = exchange.on_frame(frame(SaslHandshakeResponse(mechanisms=["PLAIN"]), 0))
    assert following == (b"\0u\0p", 0)
    assert b"".join(opening_frame(following, "c")) == b"\0\0\0\x04\0u\0p"
    assert exchange.on_frame(b"") is None


def test_a_slow_answer_is_left_to_the_caller_but_a_refusal_is_raised_at_once() -> None:
    exchange = chosen(scram())
    later = exchange.on_frame(frame(SaslAuthenticateResponse(error_message=None, auth_bytes=SERVER_FIRST.encode()), 2))
    assert callable(later)
    assert isinstance(later(), tuple)
    with pytest.raises(KafkaException):
        chosen(scram()).on_frame(frame(SaslAuthenticateResponse(error_code=58, error_message="no", auth_bytes=b""), 2))


def test_a_mechanism_that_is_not_offered_is_named_with_those_that_are() -> None:
    exchange = SaslExchange(Plain("u", "p"), RANGES)
    with pytest.raises(KafkaException, match=r'does not take SASL mechanism PLAIN here, it takes GSSAPI, '
                                             r'SCRAM-SHA-256: change "sasl\.mechanism"') as failed:
        exchange.on_frame(frame(SaslHandshakeResponse(error_code=33, mechanisms=["GSSAPI", "SCRAM-SHA-256"]), 1))
    assert failed.value.error == KafkaError._AUTHENTICATION


@pytest.mark.parametrize("ranges", [{}, RANGES], ids=["no such request", "refused"])
def test_a_port_without_sasl_is_recognised(ranges: dict[int, tuple[int, int]]) -> None:
    with pytest.raises(KafkaException, match=r'set "security\.protocol" to "plaintext" or "ssl"'):
        SaslExchange(Plain("u", "p"), ranges).on_frame(frame(SaslHandshakeResponse(error_code=34, mechanisms=[]), 1))


def test_the_brokers_reason_is_shown_in_one_line_and_the_password_is_not() -> None:
    exchange = chosen(Plain("u", "hunter2"))
    reply = SaslAuthenticateResponse(error_code=58, error_message="bad\r\n\x1b[31m" + "x" * 5000, auth_bytes=b"")
    with pytest.raises(KafkaException) as failed:
        exchange.on_frame(frame(reply, 2))
    text = failed.value.error.str()
    assert "SASL PLAIN authentication failed: bad [31mxx" in text
    assert text.endswith('check "sasl.username" and "sasl.password"')
    assert "hunter2" not in text
    assert len(text) < 500


def test_an_exchange_that_ends_before_the_broker_has_proved_itself_is_refused() -> None:
    class Trusting(Plain):
        def step(self, challenge: bytes) -> None:
            return None

    with pytest.raises(KafkaException, match="before it proved who it is"):
        chosen(Trusting("u", "p")).on_frame(frame(SaslAuthenticateResponse(error_message=None, auth_bytes=b""), 2))


def test_a_token_of_absurd_length_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError, match="at most 65536"):
        chosen(Plain("u", "p")).on_frame(bytes(70_000))


# The handshake with SASL


def test_sasl_follows_the_versions_and_a_renewal_begins_with_sasl() -> None:
    keys = [ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in RANGES.items()]
    handshake = Handshake("1", mechanism=Plain("u", "p"))
    handshake.begin()
    following = handshake.on_frame(frame(ApiVersionsResponse(api_keys=keys), 4))
    assert isinstance(following, tuple)
    assert isinstance(following[0], SaslHandshakeRequest)
    for current in (handshake, handshake.renewed(Plain("u", "p"))):
        assert isinstance(current.begin()[0], SaslHandshakeRequest)
        assert current.authenticating
        current.on_frame(frame(SaslHandshakeResponse(mechanisms=["PLAIN"]), 1))
        assert not current.ready
        done = SaslAuthenticateResponse(error_message=None, auth_bytes=b"", session_lifetime_ms=9_000)
        assert current.on_frame(frame(done, 2)) is None
        assert current.ready
        assert (current.session_s, current.ranges) == (9.0, RANGES)
