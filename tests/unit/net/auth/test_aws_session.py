"""Keys from AWS: where they are found, which region they sign for, and what is said where there are none."""

import json
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from headrace.config import ADMIN, Config
from headrace.errors import DependencyError, KafkaError, KafkaException
from headrace.machines.cluster.sasl.aws_msk_iam import AwsKeys
from headrace.net.auth import aws_session as module
from headrace.net.auth.aws_session import AwsSession
from tests.support.local_http import QuietHandler, serving

HOST = "b-1.my-kafka-1.abc.c2.kafka.eu-central-1.amazonaws.com"
ROLE = "arn:aws:iam::123456789012:role/reader"
TAKEN = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
<AccessKeyId>of role</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>
<Expiration>{}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"""


class Service(QuietHandler):
    """Gives whoever asks the keys of a role, which expire in so many seconds."""

    seen: list[tuple[str, dict[str, str]]] = []
    life_s = 3600

    def do_POST(self) -> None:
        form = dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
        self.seen.append((self.headers["Authorization"].split("/")[2], form))
        self.send_response(200)
        self.end_headers()
        expires = datetime.fromtimestamp(int(time.time()) + self.life_s, UTC)
        self.wfile.write(TAKEN.format(expires.isoformat()).encode())


@pytest.fixture(autouse=True)
def _nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No keys but the test's."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_REGION",
                 "AWS_REGION", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": str(tmp_path / "config"),
                        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"), "no_proxy": "127.0.0.1"}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def by_variables(monkeypatch: pytest.MonkeyPatch) -> AwsKeys:
    for name, value in (("ACCESS_KEY_ID", "me"), ("SECRET_ACCESS_KEY", "hunter2"), ("SESSION_TOKEN", "x")):
        monkeypatch.setenv(f"AWS_{name}", value)
    return AwsKeys("me", "hunter2", "x")


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """AWS's service for roles, on a free port."""
    Service.seen, Service.life_s = [], 3600
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Service)) as port:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://127.0.0.1:{port}")
        yield


def session(**properties: Any) -> AwsSession:
    return AwsSession(Config(ADMIN, {"bootstrap.servers": "b:9098", "security.protocol": "sasl_ssl",
                                     "sasl.mechanism": "AWS_MSK_IAM", **properties}))


def test_keys_come_from_variables_and_the_region_from_the_brokers_name(by_variables: AwsKeys) -> None:
    assert session().keys(HOST) == (by_variables, "eu-central-1")


@pytest.mark.parametrize(("host", "region"), [
    (HOST, "eu-central-1"), ("boot-x.c1.kafka-serverless.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
    ("b-2.x.y.c3.kafka.cn-north-1.amazonaws.com.cn", "cn-north-1"),
    ("b-1.us-east-1.abc.c2.kafka.eusc-de-east-1.amazonaws.eu", "eusc-de-east-1"),
])
def test_the_region_follows_the_services_name(by_variables: AwsKeys, host: str, region: str) -> None:
    assert session().keys(host)[1] == region


def test_an_alias_needs_a_region_that_is_set(by_variables: AwsKeys, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KafkaException, match=r'broker kafka\.example does not say its AWS region: set "sasl\.aws\.reg'):
        session().keys("kafka.example")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    assert session().keys("kafka.example")[1] == "eu-west-1"
    assert session(**{"sasl.aws.region": "eu-west-2"}).keys("kafka.example")[1] == "eu-west-2"


def test_a_profile_is_found_in_the_files(tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text("[p]\naws_access_key_id = of p\naws_secret_access_key = s\n")
    (tmp_path / "config").write_text("[profile p]\nregion = us-west-2\n")
    assert session(**{"sasl.aws.profile": "p"}).keys("alias") == (AwsKeys("of p", "s"), "us-west-2")
    with pytest.raises(KafkaException, match=r"no keys from AWS: .*\(q\) could not be found") as failed:
        session(**{"sasl.aws.profile": "q"}).keys(HOST)
    assert failed.value.error.code() == KafkaError._AUTHENTICATION


def test_who_has_no_keys_hears_what_to_do() -> None:
    with pytest.raises(KafkaException, match=r'no keys from AWS: .*AWS_ACCESS_KEY_ID .*"sasl\.aws\.profile"'):
        session().keys(HOST)
    with pytest.raises(KafkaException, match="no keys from AWS: neither variables"):
        session(**{"sasl.aws.role.arn": ROLE}).keys(HOST)


def test_a_role_is_taken_once_and_again_before_its_keys_expire(by_variables: AwsKeys, service: None) -> None:
    made = session(**{"sasl.aws.role.arn": ROLE, "sasl.aws.role.external.id": "ext",
                      "sasl.aws.sts.region": "us-east-2"})
    for _ in range(2):
        assert made.keys(HOST) == (AwsKeys("of role", "s", "t"), "eu-central-1")
    [(region, form)] = Service.seen
    assert region == "us-east-2"
    assert (form["RoleArn"], form["RoleSessionName"], form["ExternalId"]) == (ROLE, "headrace", "ext")
    Service.life_s = 60
    made = session(**{"sasl.aws.role.arn": ROLE})
    for _ in range(2):
        made.keys(HOST)
    assert [region for region, _ in Service.seen[1:]] == ["eu-central-1"] * 2


def test_javas_line_for_amazons_module_is_understood(by_variables: AwsKeys, service: None) -> None:
    made = session(**{
        "sasl.jaas.config": f'software.amazon.msk.auth.iam.IAMLoginModule required awsRoleArn="{ROLE}" '
                            'awsRoleSessionName="spark" awsStsRegion="eu-west-3";',
        "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler"})
    assert made.keys(HOST)[0].access_key == "of role"
    [(region, form)] = Service.seen
    assert (region, form["RoleSessionName"]) == ("eu-west-3", "spark")


def test_a_service_that_is_not_there_is_no_fault_of_authentication(
    by_variables: AwsKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:1")
    with pytest.raises(KafkaException, match="no keys from AWS: ") as failed:
        session(**{"sasl.aws.role.arn": ROLE}).keys(HOST)
    assert failed.value.error.code() == KafkaError._TRANSPORT
    assert "hunter2" not in json.dumps(str(failed.value))


def test_without_botocore_the_remedy_is_named_when_the_client_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(DependencyError, match=r'"AWS_MSK_IAM" needs .*pip install \'headrace\[aws\]\''):
        session()


def test_a_service_that_does_not_answer_is_left_after_the_time_of_a_login(
    by_variables: AwsKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://127.0.0.1:{silent.getsockname()[1]}")
        began = time.monotonic()
        with pytest.raises(KafkaException, match="no keys from AWS: Read timeout") as failed:
            session(**{"sasl.aws.role.arn": ROLE, "sasl.login.read.timeout.ms": 200}).keys(HOST)
    assert failed.value.error.code() == KafkaError._TRANSPORT
    assert time.monotonic() - began < 5
