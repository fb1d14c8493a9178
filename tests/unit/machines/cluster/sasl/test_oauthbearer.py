"""OAUTHBEARER: what is sent, what cannot be, and a broker that does not take it."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import ConfigError, KafkaError, KafkaException
from headrace.machines.cluster.sasl.oauthbearer import OAuthBearer


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


@given(st.binary(max_size=200) | st.text("rsievpm=,0123456789rOprNGfwEbeRWgbNEkqO+/", max_size=80).map(str.encode))
def test_hostile_challenges_raise_nothing_but_kafka_exceptions(challenge: bytes) -> None:
    with contextlib.suppress(KafkaException):
        OAuthBearer("t", {}).step(challenge)


@pytest.mark.parametrize(("challenge", "complaint"), [
    (b'{"status":"invalid_token"}', "status invalid_token"),
    (b'{"scope":"a b"}', "scope a b"),
    (b'{"status":"bad\\u001b[31m\\nline"}', r"status bad \[31m line"),
    (b"[1, 2]", "that the token is not valid"),
    (b"{}", "that the token is not valid"),
    (b"\xff\xfe", "that the token is not valid"),
    (b"[" * 100_000, "that the token is not valid"),
])
def test_a_complaint_is_told_in_one_line_whatever_it_looks_like(challenge: bytes, complaint: str) -> None:
    mechanism = OAuthBearer("abc", {})
    assert mechanism.step(challenge) == b"\x01"
    with pytest.raises(KafkaException, match=f"authentication failed: {complaint}: check the token") as failed:
        mechanism.step(b"")
    assert failed.value.error == KafkaError._AUTHENTICATION


NAMES = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", min_size=1).filter(lambda name: name != "auth")
VALUES = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7e) | st.sampled_from("\t\r\n"), min_size=1)


@given(st.from_regex(r"[A-Za-z0-9._~+/-]+=*", fullmatch=True), st.dictionaries(NAMES, VALUES))
def test_the_broker_reads_back_the_token_and_every_extension(token: str, extensions: dict[str, str]) -> None:
    head, *pairs, end, rest = OAuthBearer(token, extensions).first().decode().split("\x01")
    assert (head, end, rest) == ("n,,", "", "")
    assert dict(pair.split("=", 1) for pair in pairs) == {"auth": f"Bearer {token}", **extensions}
