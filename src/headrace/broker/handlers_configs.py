"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs: settings of topics, and a look at the broker's."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.broker.catalog import Topic
from headrace.broker.cluster import Call
from headrace.broker.partition import Refused
from headrace.broker.settings import INT, STRING, TOPIC_CONFIGS, invalid_config
from headrace.errors import KafkaError
from headrace.wire.messages.admin_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from headrace.wire.schema import ZERO_UUID

__all__ = ["alter_configs", "describe_configs", "incremental_alter_configs"]

_TOPIC, _BROKER = 2, 4
_FROM_TOPIC, _FROM_FILE, _FROM_DEFAULT = 1, 4, 5
_SET, _DELETE, _APPEND, _SUBTRACT = 0, 1, 2, 3
_NO_IDS = 1 << 15


def describe_configs(call: Call, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Every setting of the topics and brokers asked for, or those named."""
    return DescribeConfigsResponse(results=[_describe(call, each, request) for each in request.resources])


def _describe(call: Call, resource: DescribeConfigsResource, request: DescribeConfigsRequest) -> DescribeConfigsResult:
    result = DescribeConfigsResult(error_code=0, error_message=None, resource_type=resource.resource_type,
                                   resource_name=resource.resource_name, configs=[])
    try:
        found = _entries(call, resource, request)
    except Refused as refused:
        result.error_code, result.error_message = refused.code, refused.reason
        return result
    keys = resource.configuration_keys
    result.configs = [entry for entry in found if keys is None or entry.name in keys]
    return result


def _entries(
    call: Call, resource: DescribeConfigsResource, request: DescribeConfigsRequest
) -> list[DescribeConfigsResourceResult]:
    if resource.resource_type == _TOPIC:
        topic = call.topic(resource.resource_name, ZERO_UUID, _NO_IDS)
        return [_topic_entry(topic, name, request) for name in TOPIC_CONFIGS]
    if resource.resource_type == _BROKER:
        if resource.resource_name not in ("", str(call.node_id)):
            raise Refused(KafkaError.INVALID_REQUEST, f"Unexpected broker id, expected {call.node_id} but received "
                          f"{resource.resource_name}")
        return [_broker_entry(name, value) for name, value in _broker_configs(call).items()]
    raise Refused(KafkaError.INVALID_REQUEST, f"Resource type {resource.resource_type} is not served")


def _topic_entry(topic: Topic, name: str, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    row = TOPIC_CONFIGS[name]
    is_set = name in topic.overrides
    synonyms = [DescribeConfigsSynonym(name=name, value=topic.configs[name], source=_FROM_TOPIC)] if is_set else []
    synonyms.append(DescribeConfigsSynonym(name=name, value=row.default, source=_FROM_DEFAULT))
    return DescribeConfigsResourceResult(
        name=name, value=topic.configs[name], read_only=False, is_sensitive=False,
        config_source=_FROM_TOPIC if is_set else _FROM_DEFAULT,
        synonyms=synonyms if request.include_synonyms else [],
        config_type=row.type, documentation=row.about if request.include_documentation else None)


def _broker_configs(call: Call) -> dict[str, str]:
    cluster = call.cluster
    return {
        "auto.create.topics.enable": str(cluster.settings.auto_create_topics).lower(),
        "broker.id": str(call.node_id),
        "default.replication.factor": str(cluster.default_replication_factor),
        "group.initial.rebalance.delay.ms": str(cluster.settings.initial_rebalance_delay_ms),
        "group.max.session.timeout.ms": str(cluster.settings.max_session_timeout_ms),
        "group.min.session.timeout.ms": str(cluster.settings.min_session_timeout_ms),
        "node.id": str(call.node_id),
        "num.partitions": str(cluster.settings.default_partitions),
        "socket.request.max.bytes": str(cluster.settings.max_request_bytes),
    }


def _broker_entry(name: str, value: str) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=name, value=value, read_only=True, is_sensitive=False, config_source=_FROM_FILE, synonyms=[],
        config_type=INT if value.lstrip("-").isdigit() else STRING, documentation=None)


def alter_configs(call: Call, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """Replace all settings of topics by those given."""
    return AlterConfigsResponse(responses=[
        _altered(call, each.resource_type, each.resource_name, {entry.name: entry.value for entry in each.configs},
                 request.validate_only)
        for each in request.resources])


def incremental_alter_configs(call: Call, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    """Change single settings of topics: set, remove, add to a list, take from a list (KIP-339)."""
    responses = []
    for each in request.resources:
        topic = call.cluster.catalog.topics.get(each.resource_name)
        values: dict[str, str | None] = dict(topic.overrides) if topic else {}
        for entry in each.configs:
            values[entry.name] = _changed(entry.config_operation, entry.name, values, entry.value)
        done = _altered(call, each.resource_type, each.resource_name, values, request.validate_only)
        responses.append(IncrementalAlterConfigsResourceResponse(
            error_code=done.error_code, error_message=done.error_message, resource_type=done.resource_type,
            resource_name=done.resource_name))
    return IncrementalAlterConfigsResponse(responses=responses)


def _changed(operation: int, name: str, values: Mapping[str, str | None], value: str | None) -> str | None:
    row = TOPIC_CONFIGS.get(name)
    present = (values.get(name) or (row.default if row else "")).split(",")
    if operation == _DELETE:
        return None
    if operation == _APPEND:
        return ",".join(dict.fromkeys([*filter(None, present), *(value or "").split(",")]))
    if operation == _SUBTRACT:
        return ",".join(each for each in present if each not in (value or "").split(","))
    return value


def _altered(
    call: Call, kind: int, name: str, values: Mapping[str, str | None], validate_only: bool
) -> AlterConfigsResourceResponse:
    reply = AlterConfigsResourceResponse(error_code=0, error_message=None, resource_type=kind, resource_name=name)
    try:
        if kind != _TOPIC:
            raise Refused(KafkaError.INVALID_REQUEST, "Only settings of topics can be changed")
        topic = call.topic(name, ZERO_UUID, _NO_IDS)
        if wrong := invalid_config(values):
            raise Refused(KafkaError.INVALID_CONFIG, wrong)
    except Refused as refused:
        reply.error_code, reply.error_message = refused.code, refused.reason
        return reply
    if not validate_only:
        topic.configure({key: value for key, value in values.items() if value is not None})
        call.cluster.catalog.save()
    return reply
