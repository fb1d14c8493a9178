"""What is asked about configuration and access rules, in all versions: for `test_broker_answers_as_kafka_does`."""

from collections.abc import Mapping, Sequence

from headrace.wire.messages.admin.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    ListConfigResourcesRequest,
)
from headrace.wire.messages.admin.security import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
)
from headrace.wire.schema import Request
from tests.support.talk import Conversation, Talk

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)


def describe(kind: int, name: str, keys: Sequence[str] | None = None, *, synonyms: bool = False,
             documents: bool = False) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(include_synonyms=synonyms, include_documentation=documents, resources=[
        DescribeConfigsResource(resource_type=kind, resource_name=name,
                                configuration_keys=None if keys is None else list(keys))])


def configs_of_topics_are_described(talk: Talk) -> None:
    name = talk.topic(configs={"retention.ms": "5000", "cleanup.policy": "compact,delete"})
    talk.ask(describe(TOPIC, name, ["retention.ms", "cleanup.policy", "segment.bytes", "nonsense"]))
    talk.ask(describe(TOPIC, name, []))
    talk.ask(describe(TOPIC, "nowhere"))
    talk.ask(describe(TOPIC, "a b"))
    talk.ask(describe(TOPIC, ""))
    talk.ask(describe(TOPIC, name))
    if talk.version >= 1:
        talk.ask(describe(TOPIC, name, synonyms=True))
    if talk.version >= 3:
        talk.ask(describe(TOPIC, name, documents=True))
    request = describe(TOPIC, name, ["retention.ms"])
    request.resources *= 2
    talk.ask(request)
    talk.ask(DescribeConfigsRequest(resources=[]))


def configs_of_what_is_not_there(talk: Talk) -> None:
    for kind, name in ((BROKER, "99"), (BROKER, "x"), (0, "t"), (1, "t"), (77, "t")):
        talk.ask(describe(kind, name))


def configs_of_brokers_are_described(talk: Talk) -> None:
    for name in ("1", ""):
        talk.ask(describe(BROKER, name, ["auto.create.topics.enable"]))
        talk.ask(describe(BROKER, name, ["nonsense"]))


def alter(name: str, values: Mapping[str, str | None], *, kind: int = TOPIC, check: bool = False,
          ) -> AlterConfigsRequest:
    return AlterConfigsRequest(validate_only=check, resources=[AlterConfigsResource(
        resource_type=kind, resource_name=name,
        configs=[AlterableConfig(name=key, value=value) for key, value in values.items()])])


def note_configs(talk: Talk) -> None:
    """Note what the topic is set to now."""
    found = talk.call(describe(TOPIC, talk.name), 4).results[0].configs
    talk.said.append(sorted((each.name, each.value) for each in found if each.config_source == 1))


def configs_are_replaced(talk: Talk) -> None:
    name = talk.topic(configs={"retention.ms": "5000"})
    for values in ({"segment.bytes": "2000000"}, {}, {"nonsense": "1"}, {"retention.ms": "soon"}, {"": "x"},
                   {"retention.ms": None}, {"cleanup.policy": "burn"}, {"cleanup.policy": ""}):
        talk.ask(alter(name, values, check=True))
        note_configs(talk)
        talk.catch_up(talk.ask(alter(name, values)))
        note_configs(talk)
    talk.ask(alter("nowhere", {"retention.ms": "5"}))
    talk.ask(alter("a b", {"retention.ms": "5"}))
    talk.ask(alter(name, {}, kind=77))
    talk.ask(alter(name, {}, kind=0))
    talk.ask(AlterConfigsRequest(resources=[]))


def change(name: str, *changes: tuple[str, int, str | None], kind: int = TOPIC, check: bool = False,
           ) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest(validate_only=check, resources=[IncrementalAlterConfigsResource(
        resource_type=kind, resource_name=name, configs=[
            IncrementalAlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes])])


def configs_are_changed(talk: Talk) -> None:
    name = talk.topic(configs={"retention.ms": "5000"})
    changes: list[list[tuple[str, int, str | None]]] = [
        [("segment.bytes", SET, "2000000")], [("retention.ms", DELETE, None)], [("retention.ms", DELETE, "x")],
        [("cleanup.policy", APPEND, "compact")], [("cleanup.policy", APPEND, "compact")],
        [("cleanup.policy", SUBTRACT, "delete")], [("cleanup.policy", SUBTRACT, "delete")],
        [("cleanup.policy", SUBTRACT, "compact")], [("cleanup.policy", SET, "compact")],
        [("cleanup.policy", APPEND, "burn")], [("retention.ms", APPEND, "5")], [("nonsense", SET, "1")],
        [("nonsense", DELETE, None)], [("retention.ms", SET, "soon")], [("retention.ms", SET, None)],
        [("retention.ms", SET, "5"), ("segment.bytes", SET, "x")],
        [("retention.ms", SET, "5"), ("retention.ms", SET, "6")], [("cleanup.policy", APPEND, None)], [],
        [("retention.ms", SET, "5"), ("segment.ms", SET, "9")],
    ]
    for each in changes:
        talk.ask(change(name, *each, check=True))
        note_configs(talk)
        talk.catch_up(talk.ask(change(name, *each)))
        note_configs(talk)
    talk.ask(change("nowhere", ("retention.ms", SET, "5")))
    talk.ask(change(name, ("retention.ms", SET, "5"), kind=77))
    talk.ask(IncrementalAlterConfigsRequest(resources=[]))
    request = change(name, ("retention.ms", SET, "5"))
    request.resources *= 2
    talk.ask(request)


def access_rules_are_off(talk: Talk) -> None:
    talk.ask(DescribeAclsRequest(resource_type_filter=1, resource_name_filter=None, principal_filter=None,
                                 host_filter=None, operation=1, permission_type=1))


def access_rules_cannot_be_made(talk: Talk) -> None:
    one = AclCreation(resource_type=2, resource_name="t", principal="User:a", host="*", operation=3, permission_type=3)
    for count in (1, 2, 0):
        talk.ask(CreateAclsRequest(creations=[one] * count))


def access_rules_cannot_be_deleted(talk: Talk) -> None:
    one = DeleteAclsFilter(resource_type_filter=2, resource_name_filter="t", principal_filter=None, host_filter=None,
                           operation=1, permission_type=1)
    for count in (1, 2, 0):
        talk.ask(DeleteAclsRequest(filters=[one] * count))


def resources_with_configs_are_listed(talk: Talk) -> None:
    talk.topic()
    if talk.version == 0:
        talk.ask(ListConfigResourcesRequest())
        return
    for kinds in ([TOPIC], [BROKER], [TOPIC, BROKER], [16], [32], [77]):
        reply = talk.call(ListConfigResourcesRequest(resource_types=kinds), talk.version)
        talk.said.append((reply.error_code, sorted({
            (each.resource_type, each.resource_name if each.resource_type == BROKER else "")
            for each in reply.config_resources})))


CONVERSATIONS: dict[type[Request], list[Conversation]] = {
    DescribeConfigsRequest: [configs_of_topics_are_described, configs_of_what_is_not_there,
                             configs_of_brokers_are_described],
    AlterConfigsRequest: [configs_are_replaced],
    IncrementalAlterConfigsRequest: [configs_are_changed],
    DescribeAclsRequest: [access_rules_are_off],
    CreateAclsRequest: [access_rules_cannot_be_made],
    DeleteAclsRequest: [access_rules_cannot_be_deleted],
    ListConfigResourcesRequest: [resources_with_configs_are_listed],
}
