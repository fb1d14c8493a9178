"""A few cases of the campaign."""

import random

import pytest

from tests.campaigns.schemas.__main__ import run
from tests.campaigns.schemas.agreement import DisagreementError, check
from tests.campaigns.schemas.java_values import differences_with_java
from tests.support.real_kafka import needed_in_ci


def test_generated_schemas_and_values_are_written_and_read_as_others_do() -> None:
    kinds, differences = run(random.randrange(1 << 40), 150, java=False)
    assert differences == []
    assert kinds["made"] > 20
    assert kinds["fastavro"] > 20


def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.campaigns.schemas.agreement.encoder_of", lambda schema: lambda value: b"else")
    with pytest.raises(DisagreementError, match="seed 1"):
        check(1)


def test_java_reads_what_is_written_and_writes_what_is_read() -> None:
    with needed_in_ci():
        kinds, differences = run(random.randrange(1 << 40), 150, java=True)
    assert differences == []
    assert kinds["java"] > 200


def test_what_java_refuses_or_takes_for_another_value_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with needed_in_ci():
        (refused,) = differences_with_java([('"string"', b"\x08ab")])
    assert "Java cannot read" in refused
    monkeypatch.setattr("tests.campaigns.schemas.java_values.answers", lambda source, questions: [{"value": "Ag=="}])
    assert differences_with_java([('"long"', b"\x04")]) == ["\"long\": Java makes b'\\x02' of b'\\x04'"]
    assert differences_with_java([('"long"', b"\x02")]) == []
