"""A few cases of the campaign."""

import random

import pytest

from tests.campaigns.schemas.__main__ import run
from tests.campaigns.schemas.agreement import DisagreementError, check


def test_generated_schemas_and_values_are_written_and_read_as_others_do() -> None:
    kinds, differences = run(random.randrange(1 << 40), 150)
    assert differences == []
    assert kinds["made"] > 20
    assert kinds["fastavro"] > 20


def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.campaigns.schemas.agreement.encoder_of", lambda schema: lambda value: b"else")
    with pytest.raises(DisagreementError, match="seed 1"):
        check(1)
