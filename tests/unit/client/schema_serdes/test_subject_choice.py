"""Which subject."""

import asyncio
from types import SimpleNamespace

import pytest

from headrace.client.schema_serdes.registry_steps import run, run_async
from headrace.client.schema_serdes.subject_choice import (
    FALLBACK_TYPE,
    KAFKA_CLUSTER_ID,
    AssociatedNameStrategy,
    AsyncAssociatedNameStrategy,
    SubjectChoice,
    SubjectNameStrategyType,
)
from headrace.errors import SerializationError
from headrace.serialization import MessageField, SerializationContext
from tests.support.kept_registry import AsyncKeptRegistry, KeptRegistry

VALUE = SerializationContext("orders", MessageField.VALUE)
KEY = SerializationContext("orders", MessageField.KEY)


@pytest.mark.parametrize(("kind", "subject"), [
    (None, "orders-value"), ("ASSOCIATED", "orders-value"), ("topic", "orders-value"), ("RECORD", "a.Order"),
    (SubjectNameStrategyType.TOPIC_RECORD, "orders-a.Order")])
def test_a_strategy_by_name(kind, subject) -> None:
    choice = SubjectChoice(kind=kind)
    assert run(choice.subject(VALUE, "a.Order", KeptRegistry())) == subject
    assert choice.lasting


@pytest.mark.parametrize("kind", ["NONE", "SUBJECT"])
def test_a_name_of_no_strategy_is_refused(kind) -> None:
    with pytest.raises(ValueError, match=r"strategy\.type"):
        SubjectChoice(kind=kind)


def test_a_function_goes_before_a_name_and_is_asked_each_time() -> None:
    choice = SubjectChoice(lambda ctx, name: f"{ctx.topic}/{name}", "TOPIC")
    assert run(choice.subject(VALUE, "a.Order", None)) == "orders/a.Order"
    assert not choice.lasting


def test_a_coroutine_function_is_awaited() -> None:
    async def strategy(ctx, name):
        return f"{ctx.topic}+{name}"

    assert asyncio.run(run_async(SubjectChoice(strategy).subject(VALUE, "n", None))) == "orders+n"


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(ValueError, match="must be callable"):
        SubjectChoice("TOPIC")  # type: ignore[arg-type]


def test_the_registry_is_asked_once_for_what_is_associated_with_a_topic() -> None:
    registry, strategy = KeptRegistry(), AssociatedNameStrategy()
    registry.associations = [SimpleNamespace(subject="theirs")]
    assert [strategy(VALUE, None, registry) for _ in range(3)] == ["theirs"] * 3
    assert registry.calls["associations"] == 1
    strategy.clear_cache()
    assert strategy(VALUE, None, registry) == "theirs"
    assert registry.calls["associations"] == 2


def test_an_awaited_registry_is_asked_in_the_same_way() -> None:
    registry, strategy = AsyncKeptRegistry(), AsyncAssociatedNameStrategy()
    registry.kept.associations = [SimpleNamespace(subject="theirs")]
    assert asyncio.run(strategy(VALUE, None, registry)) == "theirs"


def test_key_and_value_have_associations_of_their_own() -> None:
    asked = []

    def associations(**arguments):
        asked.append((arguments["resource_name"], arguments["association_types"], arguments["resource_namespace"]))
        return []

    client = SimpleNamespace(get_associations_by_resource_name=associations)
    strategy = AssociatedNameStrategy()
    assert strategy(KEY, None, client) == "orders-key"
    assert strategy(VALUE, None, client) == "orders-value"
    assert asked == [("orders", ["key"], "-"), ("orders", ["value"], "-")]


def test_no_more_answers_are_kept_than_it_is_told() -> None:
    registry, strategy = KeptRegistry(), AssociatedNameStrategy(cache_capacity=2)
    registry.associations = [SimpleNamespace(subject="theirs")]
    for topic in ("a", "b", "c", "b", "a"):
        strategy(SerializationContext(topic, MessageField.VALUE), None, registry)
    assert registry.calls["associations"] == 4


@pytest.mark.parametrize(("conf", "error"), [
    ({FALLBACK_TYPE: "NONE"}, SerializationError), ({FALLBACK_TYPE: "ASSOCIATED"}, ValueError),
    ({FALLBACK_TYPE: "OTHER"}, ValueError)])
def test_a_fallback_that_is_none_or_that_cannot_be(conf, error) -> None:
    with pytest.raises(error):
        AssociatedNameStrategy()(VALUE, "r", KeptRegistry(), conf)


def test_another_fallback() -> None:
    assert AssociatedNameStrategy()(VALUE, "r", KeptRegistry(), {FALLBACK_TYPE: "RECORD"}) == "r"


def test_several_associations_are_an_error() -> None:
    registry = KeptRegistry()
    registry.associations = [SimpleNamespace(subject="one"), SimpleNamespace(subject="two")]
    with pytest.raises(SerializationError, match=r"Multiple associated subjects found for topic .*: one, two"):
        AssociatedNameStrategy()(VALUE, None, registry)


def test_without_a_context_there_is_no_topic() -> None:
    with pytest.raises(ValueError, match="SerializationContext"):
        AssociatedNameStrategy()(None, "r", KeptRegistry())


def namespace_asked(strategy, conf=None) -> str:
    asked = []
    client = SimpleNamespace(get_associations_by_resource_name=lambda **given: asked.append(given) or [])
    strategy(VALUE, None, client, conf)
    return asked[0]["resource_namespace"]


def test_the_cluster_that_is_named_goes_before_the_one_that_is_asked_for() -> None:
    strategy = AssociatedNameStrategy()
    strategy.set_cluster_id_resolver(lambda: "asked")
    assert namespace_asked(strategy) == "asked"
    strategy.clear_cache()
    assert namespace_asked(strategy, {KAFKA_CLUSTER_ID: "named"}) == "named"


@pytest.mark.parametrize("answer", ["", None, OSError("nobody")])
def test_a_cluster_that_does_not_say_its_id_is_an_error_that_names_the_property(answer) -> None:
    def resolver():
        if isinstance(answer, OSError):
            raise answer
        return answer

    strategy = AssociatedNameStrategy()
    strategy.set_cluster_id_resolver(resolver)
    with pytest.raises(SerializationError, match=KAFKA_CLUSTER_ID):
        namespace_asked(strategy)


def test_an_error_of_the_registry_is_not_taken_for_no_association() -> None:
    def refuse(**asked):
        raise PermissionError

    with pytest.raises(PermissionError):
        AssociatedNameStrategy()(VALUE, None, SimpleNamespace(get_associations_by_resource_name=refuse))
