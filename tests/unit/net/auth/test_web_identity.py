"""Tokens from AWS: what its service is asked, and what becomes of its answers. The service is one of the test's."""

import asyncio
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import ThreadingHTTPServer
from importlib.util import find_spec
from typing import Any
from urllib.parse import parse_qsl

import pytest

from headrace.config import ADMIN, Config
from headrace.errors import ConfigError, DependencyError, KafkaError, KafkaException
from headrace.net.auth import aws_session
from headrace.net.auth import web_identity as module
from headrace.net.auth.mechanisms import mechanism_source
from headrace.types.records import NodeAddress
from tests.support.local_http import QuietHandler, serving

GIVEN = """<GetWebIdentityTokenResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetWebIdentityTokenResult>
<WebIdentityToken>head.body.sig</WebIdentityToken><Expiration>{}</Expiration></GetWebIdentityTokenResult>
<ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></GetWebIdentityTokenResponse>"""
REFUSED = """<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>{}</Code>
<Message>said so</Message></Error><RequestId>r</RequestId></ErrorResponse>"""


class Service(QuietHandler):
    """Answers as the test says; notes what it was asked."""

    status, body, expires_at = 200, "", 0
    seen: list[dict[str, str]] = []

    def do_POST(self) -> None:
        self.seen.append(dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode())))
        assert "Credential=me/" in self.headers["Authorization"]
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(self.body.encode())


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name, value in {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "hunter2", "AWS_EC2_METADATA_DISABLED":
                        "true", "AWS_CONFIG_FILE": str(tmp_path / "none"), "AWS_SHARED_CREDENTIALS_FILE":
                        str(tmp_path / "none"), "no_proxy": "127.0.0.1"}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def service() -> Iterator[str]:
    """URL of a service on a free port."""
    Service.status, Service.seen = 200, []
    Service.expires_at = int(time.time()) + 300
    Service.body = GIVEN.format(datetime.fromtimestamp(Service.expires_at, UTC).isoformat())
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Service)) as port:
        yield f"http://127.0.0.1:{port}"


def config(settings: str, **more: Any) -> Config:
    return Config(ADMIN, {
        "bootstrap.servers": "broker:9092", "security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.metadata.authentication.type": "aws_iam", "sasl.oauthbearer.config": settings, **more})


def first_words(settings: str, **more: Any) -> bytes:
    """What a broker would be told first."""
    async def run() -> bytes:
        source = mechanism_source(config(settings, **more), lambda: 0.0, lambda: 0.5)
        assert source is not None
        return (await source(NodeAddress(1, "broker", 9092))).first()

    return asyncio.run(run())


def test_aws_is_asked_for_a_token_that_the_broker_is_shown(service: str) -> None:
    words = first_words(f"region=eu-central-1,audience=https://x/oidc,sts_endpoint={service}",
                        **{"sasl.oauthbearer.extensions": r"logicalCluster=lkc-1,identityPoolId=p-1\,p-2"})
    assert words == b"n,,\x01auth=Bearer head.body.sig\x01logicalCluster=lkc-1\x01identityPoolId=p-1,p-2\x01\x01"
    assert Service.seen == [{"Action": "GetWebIdentityToken", "Version": "2011-06-15", "Audience.member.1":
                             "https://x/oidc", "SigningAlgorithm": "ES384", "DurationSeconds": "300"}]


def test_length_algorithm_and_tags_are_asked_for(service: str) -> None:
    first_words(f"region=r,audience=a,sts_endpoint={service},duration_seconds=900,signing_algorithm=RS256,"
                "tag_team=data,tag_cost=7")
    [asked] = Service.seen
    assert (asked["DurationSeconds"], asked["SigningAlgorithm"]) == ("900", "RS256")
    assert [asked[f"Tags.member.{n}.{part}"] for n in (1, 2) for part in ("Key", "Value")] == [
        "team", "data", "cost", "7"]


def test_a_token_lives_as_long_as_aws_says(service: str) -> None:
    fetch = module.web_identity(config(f"region=r,audience=a,sts_endpoint={service}"), {})
    assert asyncio.run(fetch()).expires_at == Service.expires_at  # type: ignore[arg-type]


@pytest.mark.parametrize(("status", "code", "meaning"), [
    (403, "AccessDenied", KafkaError._AUTHENTICATION), (400, "InvalidParameterValue", KafkaError._AUTHENTICATION),
    (400, "Throttling", KafkaError._TRANSPORT), (500, "InternalFailure", KafkaError._TRANSPORT),
])
def test_a_refusal_is_told_and_one_that_passes_by_is_no_fault_of_authentication(
    service: str, status: int, code: str, meaning: int
) -> None:
    Service.status, Service.body = status, REFUSED.format(code)
    with pytest.raises(KafkaException, match=rf"no OAuth token from AWS: .*{code}.*said so") as failed:
        first_words(f"region=r,audience=a,sts_endpoint={service}")
    assert failed.value.error.code() == meaning
    assert "hunter2" not in str(failed.value)
    assert len(Service.seen) == 1, "how often it is asked again is the token source's matter"


def test_a_service_that_is_not_there_is_no_answer() -> None:
    with pytest.raises(KafkaException, match=r"no OAuth token from AWS: .*127\.0\.0\.1:1") as failed:
        first_words("region=r,audience=a,sts_endpoint=http://127.0.0.1:1")
    assert failed.value.error.code() == KafkaError._TRANSPORT


@pytest.mark.parametrize("body", ["", "<html>", GIVEN.format("soon"), "<GetWebIdentityTokenResponse/>"])
def test_an_answer_that_makes_no_sense_is_told(service: str, body: str) -> None:
    Service.body = body
    with pytest.raises(KafkaException, match="no OAuth token from AWS: "):
        first_words(f"region=r,audience=a,sts_endpoint={service}")


def test_credentials_that_are_not_there_are_told(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(KafkaException, match="no OAuth token from AWS: Unable to locate credentials"):
        first_words(f"region=r,audience=a,sts_endpoint={service}")
    assert not Service.seen


def test_a_url_that_is_none_is_told() -> None:
    with pytest.raises(KafkaException, match=r"no OAuth token from AWS: .*nothing"):
        first_words("region=r,audience=a,sts_endpoint=nothing")


def test_without_botocore_the_remedy_is_named_when_the_client_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_spec("botocore")
    monkeypatch.setattr(aws_session, "find_spec", lambda name: None)
    with pytest.raises(DependencyError, match=r"pip install 'headrace\[aws\]'"):
        mechanism_source(config("region=r,audience=a"), lambda: 0.0, lambda: 0.5)


def test_what_is_missing_is_told_when_the_client_is_made() -> None:
    with pytest.raises(ConfigError, match=r'"sasl\.oauthbearer\.config" lacks .audience.'):
        config("region=r")
