"""Dataclasses and models as dicts."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import BaseModel, Field

from headrace.client.schema_serdes.codecs.plain_values import plain


@dataclass
class Street:
    name: str


@dataclass(slots=True)
class Address:
    street: Street
    number: int
    others: list[Street] = field(default_factory=list)
    by_name: dict[str, Street] = field(default_factory=dict)


@dataclass
class Empty:
    pass


class Model(BaseModel):
    name: str
    within: list[int] = Field(alias="inner")


def test_a_dataclass_becomes_a_dict_and_those_within_it_too() -> None:
    value = Address(Street("a"), 3, [Street("b")], {"c": Street("d")})
    assert plain(value) == {"street": {"name": "a"}, "number": 3, "others": [{"name": "b"}],
                            "by_name": {"c": {"name": "d"}}}
    assert plain(Empty()) == {}
    assert plain(("branch", Street("a"))) == ("branch", {"name": "a"})


def test_a_model_becomes_a_dict_by_the_names_that_others_know() -> None:
    assert plain(Model(name="a", inner=[1])) == {"name": "a", "inner": [1]}


@pytest.mark.parametrize("value", [None, 1, "a", b"a", 1.5, object()])
def test_other_values_stay_what_they_are(value: Any) -> None:
    assert plain(value) is value
