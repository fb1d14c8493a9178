"""AWS_MSK_IAM: signed as botocore signs, taken when the broker answers in its version."""

import json
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from headrace.errors import KafkaError, KafkaException
from headrace.machines.cluster.sasl.aws_msk_iam import AwsKeys, AwsMskIam

NOW = "20260203T040506Z"
HOST = "b-1.my-cluster.abc.c2.kafka.eu-central-1.amazonaws.com"


def shown(keys: AwsKeys, host: str = HOST, region: str = "eu-central-1") -> dict[str, Any]:
    return dict(json.loads(AwsMskIam(host, region, keys, NOW, "me").first()))


@pytest.mark.parametrize("token", [None, "IQoJb3JpZ2luX2VjE/+==~ü"], ids=["keys that last", "temporary keys"])
@pytest.mark.parametrize("region", ["eu-central-1", "cn-north-1"])
def test_it_is_signed_as_botocore_signs(token: str | None, region: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda *any_: datetime(2026, 2, 3, 4, 5, 6))
    request = AWSRequest("GET", f"https://{HOST}/", params={"Action": "kafka-cluster:Connect"})
    SigV4QueryAuth(Credentials("AKIDEXAMPLE", "wJalr/XUtn+FEMI", token), "kafka-cluster", region, 900).add_auth(request)
    expected = {name.lower(): value for name, value in parse_qsl(urlsplit(request.url).query)}
    assert shown(AwsKeys("AKIDEXAMPLE", "wJalr/XUtn+FEMI", token), region=region) == {
        "version": "2020_10_22", "host": HOST, "user-agent": "me", **expected}
    assert expected["x-amz-date"] == NOW


def test_another_host_key_or_region_makes_another_signature() -> None:
    keys = AwsKeys("a", "b")
    signatures = {shown(*case)["x-amz-signature"] for case in (  # type: ignore[arg-type]
        (keys,), (keys, "other"), (keys, HOST, "us-east-1"), (AwsKeys("a", "c"),), (AwsKeys("b", "b"),))}
    assert len(signatures) == 5


def test_secrets_are_shown_to_nobody() -> None:
    keys = AwsKeys("a", "hunter2", "token")
    assert "hunter2" not in repr(keys)
    assert "token" not in repr(keys)
    assert b"hunter2" not in AwsMskIam(HOST, "r", keys, NOW, "me").first()


def test_an_answer_of_the_right_version_is_the_end() -> None:
    made = AwsMskIam(HOST, "r", AwsKeys("a", "b"), NOW, "me")
    assert not made.done
    assert made.step(b'{"version":"2020_10_22","request-id":"7"}') is None
    assert made.done


@pytest.mark.parametrize("answer", [b"", b"{}", b"[]", b"no", b'{"version":"2021_01_01"}', b"[" * 100_000, b"\xff"])
def test_any_other_answer_is_a_refusal(answer: bytes) -> None:
    made = AwsMskIam(HOST, "r", AwsKeys("a", "b"), NOW, "me")
    with pytest.raises(KafkaException, match="the broker's answer is none of version 2020_10_22") as failed:
        made.step(answer)
    assert failed.value.error.code() == KafkaError._AUTHENTICATION
    assert not made.done
