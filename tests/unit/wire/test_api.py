"""The table of APIs and the choice of versions."""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages

import pytest

from headrace.errors import KafkaError, KafkaException
from headrace.wire import messages
from headrace.wire.api import API, negotiate
from headrace.wire.messages.consumer.fetch import FetchRequest
from headrace.wire.messages.producer.produce import InitProducerIdRequest, ProduceRequest
from headrace.wire.schema import Request


def test_the_table_holds_the_apis_by_key() -> None:
    assert list(API) == sorted(API)
    assert (API[0].name, API[0].min_version, API[0].max_version) == ("Produce", 0, 13)
    assert API[18].request.__name__ == "ApiVersionsRequest"


def test_the_table_names_every_request_under_its_own_key() -> None:
    modules = [import_module(found.name) for found in walk_packages(messages.__path__, f"{messages.__name__}.")]
    requests = {cls.api_key: cls for module in modules for cls in vars(module).values()
                if isinstance(cls, type) and issubclass(cls, Request) and cls is not Request}
    assert {key: api.request for key, api in API.items()} == requests
    assert {key: api.key for key, api in API.items()} == {key: key for key in requests}


def test_the_highest_version_of_both_sides_is_chosen() -> None:
    assert negotiate(FetchRequest, {1: (4, 99)}) == FetchRequest.max_version
    assert negotiate(FetchRequest, {1: (0, 11)}) == 11
    assert negotiate(FetchRequest, {1: (4, 17)}, max_version=12) == 12


def test_a_version_that_kafka_calls_unstable_is_not_used() -> None:
    assert negotiate(InitProducerIdRequest, {22: (0, 6)}) == 5


def test_kafka_4_says_that_it_takes_the_first_versions_of_produce_but_does_not() -> None:
    assert negotiate(ProduceRequest, {0: (0, 13)}) == 13
    with pytest.raises(KafkaException, match="the broker offers Produce in versions 3-13"):
        negotiate(ProduceRequest, {0: (0, 13)}, max_version=2)
    assert negotiate(ProduceRequest, {0: (0, 2)}) == 2


@pytest.mark.parametrize(("ranges", "text"), [
    ({}, r"the broker does not offer Fetch \(API key 1\); this client knows versions 0-18"),
    ({1: (50, 60)}, "the broker offers Fetch in versions 50-60; this client knows versions 0-18"),
])
def test_no_common_version_is_an_unsupported_feature(ranges: dict[int, tuple[int, int]], text: str) -> None:
    with pytest.raises(KafkaException, match=text) as info:
        negotiate(FetchRequest, ranges)
    assert info.value.error.code() == KafkaError._UNSUPPORTED_FEATURE
