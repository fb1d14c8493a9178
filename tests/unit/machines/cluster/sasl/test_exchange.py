"""The exchange that carries a SASL mechanism: what is said, in which order, and what a refusal says."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.errors import KafkaError, KafkaException, ProtocolError
from headrace.machines.cluster.handshake import opening_frame
from headrace.machines.cluster.sasl.exchange import Mechanism, SaslExchange, one_line, refused
from headrace.machines.cluster.sasl.plain import Plain
from headrace.machines.cluster.sasl.scram import Scram
from headrace.wire.frame import encode_response
from headrace.wire.messages.cluster.session import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from headrace.wire.schema import Response

RANGES = {17: (0, 1), 36: (0, 2)}
SERVER_FIRST = "r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"


def frame(response: Response, version: int) -> bytes:
    return b"".join(encode_response(response, version, 0))[4:]


def scram() -> Scram:
    mechanism = Scram("SCRAM-SHA-256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    mechanism.first()
    return mechanism


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


def test_the_next_word_is_never_said_before_the_last_one_is_answered_with_as_many_steps_as_a_mechanism_has() -> None:
    class Steps(Plain):
        def __init__(self, count: int) -> None:
            super().__init__("u", "p")
            self.heard: list[bytes] = []
            self.count = count

        def step(self, challenge: bytes) -> bytes | None:  # type: ignore[override]
            self.heard.append(challenge)
            self.done = len(self.heard) == self.count
            return None if self.done else b"step %d" % len(self.heard)

    for count in range(1, 5):
        mechanism = Steps(count)
        exchange = chosen(mechanism)
        said = [exchange.on_frame(frame(SaslAuthenticateResponse(error_message=None, auth_bytes=b"%d" % place), 2))
                for place in range(count)]
        assert [each and each[0].auth_bytes for each in said] == [  # type: ignore[index, union-attr]
            *(b"step %d" % place for place in range(1, count)), None]
        assert mechanism.heard == [b"%d" % place for place in range(count)]


def test_a_broker_that_answers_something_else_is_a_protocol_error() -> None:
    exchange = SaslExchange(Plain("u", "p"), RANGES)
    exchange.begin()
    another = b"".join(encode_response(SaslHandshakeResponse(mechanisms=["PLAIN"]), 1, 7))[4:]
    with pytest.raises(ProtocolError):
        exchange.on_frame(another)


def test_a_lifetime_below_zero_is_none() -> None:
    exchange = chosen(Plain("u", "p"))
    exchange.on_frame(frame(SaslAuthenticateResponse(error_message=None, auth_bytes=b"", session_lifetime_ms=-5), 2))
    assert exchange.session_s == 0


@given(st.text(max_size=400))
@example("no\u2028such\u2029user")
@example("user \u202e.fdp")
def test_a_brokers_text_is_one_printable_line_of_bearable_length(text: str) -> None:
    line = one_line(text)
    assert len(line) <= 300
    assert len(line.splitlines()) <= 1
    assert set(line) <= {*text, " "}
    assert not {*line} & {*"\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"}, "it turns directions"
    assert not any(ord(sign) < 0x20 or 0x7f <= ord(sign) < 0xa0 for sign in line)


def test_a_refusal_is_not_worth_another_attempt() -> None:
    error = refused("no").error
    assert (error.code(), error.str(), error.retriable()) == (KafkaError._AUTHENTICATION, "no", False)
