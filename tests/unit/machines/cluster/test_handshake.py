"""The first words on a connection."""

import pytest

from headrace.errors import KafkaError, KafkaException, ProtocolError
from headrace.machines.cluster.handshake import FIRST_VERSION, Handshake, HandshakeRestartError
from headrace.machines.cluster.sasl.plain import Plain
from headrace.wire.frame import encode_response
from headrace.wire.messages.cluster.session import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from headrace.wire.schema import Response

WITH_SASL = {17: (0, 1), 36: (0, 2)}
FEATURES = [FinalizedFeatureKey(name="transaction.version", max_version_level=2, min_version_level=0)]


def frame(response: Response, version: int) -> bytes:
    return b"".join(encode_response(response, version, 0))[4:]


def ranges(highest: int = 4) -> list[ApiVersion]:
    return [ApiVersion(api_key=0, min_version=0, max_version=13), ApiVersion(api_key=18, min_version=0,
                                                                             max_version=highest)]


def test_the_broker_is_asked_for_its_versions_under_our_name() -> None:
    request, version = Handshake("1.2").begin()
    assert isinstance(request, ApiVersionsRequest)
    assert (request.client_software_name, request.client_software_version) == ("headrace", "1.2")
    assert version == FIRST_VERSION


def test_the_answer_makes_the_connection_ready() -> None:
    handshake = Handshake("1.2")
    handshake.begin()
    answer = ApiVersionsResponse(api_keys=ranges(), finalized_features_epoch=1, finalized_features=FEATURES)
    assert handshake.on_frame(frame(answer, FIRST_VERSION)) is None
    assert handshake.ready
    assert handshake.ranges == {0: (0, 13), 18: (0, 4)}
    assert handshake.features == {"transaction.version": 2}
    assert handshake.session_s == 0.0


@pytest.mark.parametrize(("keys", "version"), [(ranges(2), 2), (ranges(0), 0), ([], 0), (ranges(9), 3)])
def test_a_refusal_is_answered_with_the_highest_version_that_the_broker_knows(
    keys: list[ApiVersion], version: int
) -> None:
    handshake = Handshake("1.2")
    handshake.begin()
    following = handshake.on_frame(frame(ApiVersionsResponse(error_code=35, api_keys=keys), 0))
    assert following is not None
    assert following[1] == version
    assert handshake.on_frame(frame(ApiVersionsResponse(api_keys=ranges(2)), version)) is None
    assert handshake.ready


def test_a_broker_that_refuses_version_0_too_is_an_error() -> None:
    handshake = Handshake("1.2", first_version=0)
    handshake.begin()
    with pytest.raises(KafkaException) as refused:
        handshake.on_frame(frame(ApiVersionsResponse(error_code=35, api_keys=[]), 0))
    assert refused.value.error == KafkaError.UNSUPPORTED_VERSION


def test_garbage_asks_for_a_new_connection_once() -> None:
    handshake = Handshake("1.2")
    handshake.begin()
    with pytest.raises(HandshakeRestartError):
        handshake.on_frame(b"\0\0\0\0\0\0\x7f\x7f\x7f")
    again = Handshake("1.2", first_version=0)
    again.begin()
    with pytest.raises(ProtocolError) as refused:
        again.on_frame(b"\0\0\0\0\0\0\x7f\x7f\x7f")
    assert not isinstance(refused.value, HandshakeRestartError)


@pytest.mark.parametrize("length", range(8))
def test_a_short_answer_is_a_protocol_error(length: int) -> None:
    handshake = Handshake("1.2")
    handshake.begin()
    with pytest.raises(ProtocolError):
        handshake.on_frame(bytes(length))


def test_sasl_follows_the_versions_and_a_renewal_begins_with_sasl() -> None:
    keys = [ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in WITH_SASL.items()]
    handshake = Handshake("1", mechanism=Plain("u", "p"))
    handshake.begin()
    assert not handshake.authenticating
    following = handshake.on_frame(frame(ApiVersionsResponse(api_keys=keys, finalized_features_epoch=1,
                                                             finalized_features=FEATURES), 4))
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
        assert (current.session_s, current.ranges) == (9.0, WITH_SASL)
        assert current.features == {"transaction.version": 2}
        assert current.renewal == (current is not handshake)
