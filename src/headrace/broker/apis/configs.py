"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources: settings of topics, and a look at the
broker's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headrace.broker.cluster import ApiCall
from headrace.broker.served_api import ServedApi
from headrace.broker.storage.catalog import check_name
from headrace.broker.storage.partition import ApiError
from headrace.broker.storage.topic_configs import BOOLEAN, INT, LIST, TOPIC_CONFIGS, ConfigRow, invalid_config
from headrace.errors import KafkaError
from headrace.wire.messages.admin.configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    ListedConfigResource,
)
from headrace.wire.schema import ZERO_UUID

__all__ = ["SERVES", "alter_configs", "describe_configs", "incremental_alter_configs", "list_config_resources"]

_TOPIC, _BROKER, _METRICS = 2, 4, 16
_GROUP = 32
_TYPES = (_TOPIC, _BROKER, 8, _METRICS, _GROUP)
_LISTED_TYPES_FROM = 1
_FROM_TOPIC, _FROM_FILE, _FROM_DEFAULT, _FROM_GROUP = 1, 4, 5, 8
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
_NO_IDS = 1 << 15

Resource = AlterConfigsResource | IncrementalAlterConfigsResource
ValuesOf = Callable[[Mapping[str, str], Any], dict[str, str]]


def describe_configs(call: ApiCall, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Every setting of the topics and brokers asked for, or those named."""
    return DescribeConfigsResponse(results=[_describe(call, each, request) for each in request.resources])


def _describe(
    call: ApiCall, resource: DescribeConfigsResource, request: DescribeConfigsRequest
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(error_code=0, error_message="", resource_type=resource.resource_type,
                                   resource_name=resource.resource_name, configs=[])
    try:
        found = _entries(call, resource)
    except ApiError as error:
        result.error_code, result.error_message = error.code, error.reason
        return result
    wanted = resource.configuration_keys
    result.configs = [entry for entry in found if not wanted or entry.name in wanted]
    for entry in result.configs:
        if call.version == 0:
            entry.is_default = entry.config_source == _FROM_DEFAULT
        if not request.include_synonyms:
            entry.synonyms = []
        if not request.include_documentation:
            entry.documentation = None
    return result


def _entries(call: ApiCall, resource: DescribeConfigsResource) -> list[DescribeConfigsResourceResult]:
    name = resource.resource_name
    if resource.resource_type == _TOPIC:
        check_name(name)
        topic = call.topic(name, ZERO_UUID, _NO_IDS)
        return [_entry(each, row, topic.configs[each], topic.overrides, _FROM_TOPIC)
                for each, row in TOPIC_CONFIGS.items()]
    if resource.resource_type == _BROKER:
        if name == "":
            return []  # what was set for all brokers while they run, which here is nothing
        if name != str(call.node_id):
            raise ApiError(KafkaError.INVALID_REQUEST, f"Node {call.node_id} answers for itself, not for {name!r}")
        return [_broker_entry(*row) for row in _broker_configs(call)]
    if resource.resource_type == _GROUP:
        if not name:
            raise ApiError(KafkaError.INVALID_REQUEST, "Group name must not be empty")
        configs = call.cluster.group_configs
        return [_entry(each, row, configs.value(name, each), configs.overrides(name), _FROM_GROUP)
                for each, row in configs.rows.items()]
    raise ApiError(KafkaError.INVALID_REQUEST, f"Resources of type {resource.resource_type} have no settings here")


def _entry(
    name: str, row: ConfigRow, value: str, overrides: Mapping[str, str], source: int
) -> DescribeConfigsResourceResult:
    """One setting of a topic or a group. `source` says where an override comes from."""
    is_set = name in overrides
    synonyms = [DescribeConfigsSynonym(name=name, value=value, source=source)] if is_set else []
    if row.of_broker or source == _FROM_GROUP:
        synonyms.append(DescribeConfigsSynonym(name=row.of_broker or name, value=row.default, source=_FROM_DEFAULT))
    return DescribeConfigsResourceResult(
        name=name, value=value, read_only=False, is_sensitive=False, config_source=source if is_set else _FROM_DEFAULT,
        synonyms=synonyms, config_type=row.type, documentation=row.about)


def _broker_configs(call: ApiCall) -> list[tuple[str, int, str, str]]:
    """Name, type, value and default of each."""
    cluster, settings, node = call.cluster, call.cluster.settings, call.cluster.nodes[call.node_id]
    host = f"[{node.host}]" if ":" in node.host else node.host
    return [
        ("advertised.listeners", LIST, f"PLAINTEXT://{host}:{node.port}", ""),
        ("auto.create.topics.enable", BOOLEAN, str(settings.auto_create_topics).lower(), "true"),
        ("broker.id", INT, str(call.node_id), "-1"),
        ("default.replication.factor", INT, str(cluster.default_replication_factor), "1"),
        ("group.initial.rebalance.delay.ms", INT, str(settings.initial_rebalance_delay_ms), "3000"),
        ("group.max.session.timeout.ms", INT, str(settings.max_session_timeout_ms), "1800000"),
        ("group.min.session.timeout.ms", INT, str(settings.min_session_timeout_ms), "6000"),
        ("log.dirs", LIST, cluster.catalog.place, ""),
        ("node.id", INT, str(call.node_id), ""),
        ("num.partitions", INT, str(settings.default_partitions), "1"),
        ("socket.request.max.bytes", INT, str(settings.max_request_bytes), "104857600"),
    ]


def _broker_entry(name: str, kind: int, value: str, default: str) -> DescribeConfigsResourceResult:
    synonyms = [DescribeConfigsSynonym(name=name, value=default, source=_FROM_DEFAULT)] if default else []
    if value != default:
        synonyms.insert(0, DescribeConfigsSynonym(name=name, value=value, source=_FROM_FILE))
    return DescribeConfigsResourceResult(
        name=name, value=value, read_only=True, is_sensitive=False, config_source=synonyms[0].source,
        synonyms=synonyms, config_type=kind, documentation="Given when the broker was started.")


def alter_configs(call: ApiCall, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """Replace all settings of topics and groups by those given."""
    return AlterConfigsResponse(responses=[
        AlterConfigsResourceResponse(error_code=code, error_message=reason, resource_type=each.resource_type,
                                     resource_name=each.resource_name)
        for each, code, reason in _alter_all(call, request.resources, _replaced, validate_only=request.validate_only)])


def incremental_alter_configs(
    call: ApiCall, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Change single settings of topics and groups: set, remove, add to a list, take from a list (KIP-339)."""
    return IncrementalAlterConfigsResponse(responses=[
        IncrementalAlterConfigsResourceResponse(error_code=code, error_message=reason,
                                                resource_type=each.resource_type, resource_name=each.resource_name)
        for each, code, reason in _alter_all(call, request.resources, _changed, validate_only=request.validate_only)])


def _alter_all(
    call: ApiCall, resources: Sequence[Resource], values_of: ValuesOf, *, validate_only: bool
) -> list[tuple[Resource, int, str | None]]:
    """Change each resource but those that are named twice.

    Args:
        call: of the request.
        resources: what to change.
        values_of: gives all settings that a topic or group shall have, by those that it has.
        validate_only: check, and change nothing.

    Returns:
        Each resource with its error code and the error in words.
    """
    counts = Counter((each.resource_type, each.resource_name) for each in resources)
    done: list[tuple[Resource, int, str | None]] = []
    for each in resources:
        try:
            if counts[each.resource_type, each.resource_name] > 1:
                raise ApiError(KafkaError.INVALID_REQUEST, "The resource stands more than once in the request")
            _alter(call, each, values_of, validate_only=validate_only)
            done.append((each, 0, None))
        except ApiError as error:
            done.append((each, error.code, error.reason))
    return done


def _alter(call: ApiCall, resource: Resource, values_of: ValuesOf, *, validate_only: bool) -> None:
    if resource.resource_type not in (_TOPIC, _GROUP):
        raise ApiError(KafkaError.INVALID_REQUEST, "Only settings of topics and groups can be changed here")
    names = [entry.name for entry in resource.configs]
    if len(set(names)) < len(names):
        raise ApiError(KafkaError.INVALID_REQUEST, "A setting stands more than once in the request")
    if resource.resource_type == _GROUP:
        _alter_group(call, resource, values_of, validate_only=validate_only)
        return
    check_name(resource.resource_name)
    topic = call.topic(resource.resource_name, ZERO_UUID, _NO_IDS)
    values = values_of(topic.overrides, resource)
    if wrong := invalid_config(values):
        raise ApiError(KafkaError.INVALID_CONFIG, wrong)
    if not validate_only:
        topic.configure(values)
        call.cluster.catalog.save()


def _alter_group(call: ApiCall, resource: Resource, values_of: ValuesOf, *, validate_only: bool) -> None:
    name, configs = resource.resource_name, call.cluster.group_configs
    if not name:
        raise ApiError(KafkaError.INVALID_REQUEST, "Default group resources are not allowed")
    values = values_of(configs.overrides(name), resource)
    if wrong := configs.wrong(values):
        raise ApiError(KafkaError.INVALID_CONFIG, wrong)
    if not validate_only:
        configs.configure(name, values)


def _replaced(_: Mapping[str, str], resource: AlterConfigsResource) -> dict[str, str]:
    return {entry.name: _given(entry.name, entry.value) for entry in resource.configs}


def _given(name: str, value: str | None) -> str:
    if value is None:
        raise ApiError(KafkaError.INVALID_REQUEST, f"No value is given for {name}")
    return value


def _changed(overrides: Mapping[str, str], resource: IncrementalAlterConfigsResource) -> dict[str, str]:
    values = dict(overrides)
    for entry in resource.configs:
        if entry.config_operation == _DELETE:
            values.pop(entry.name, None)
        else:
            values[entry.name] = _set(entry, values)
    return values


def _set(entry: IncrementalAlterableConfig, values: Mapping[str, str]) -> str:
    given = _given(entry.name, entry.value)
    if entry.config_operation == _SET:
        return given
    row = TOPIC_CONFIGS.get(entry.name)
    if entry.config_operation not in (_APPEND, _SUBTRACT):
        raise ApiError(KafkaError.INVALID_REQUEST, f"Operation {entry.config_operation} on {entry.name} is not known")
    if row is None or row.type != LIST:
        raise ApiError(KafkaError.INVALID_CONFIG, f"{entry.name} is no list that can be added to or taken from")
    present = [part for part in values.get(entry.name, row.default).split(",") if part]
    parts = given.split(",")
    if entry.config_operation == _APPEND:
        return ",".join(dict.fromkeys([*present, *parts]))
    return ",".join(part for part in present if part not in parts)


def list_config_resources(call: ApiCall, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    """The topics and nodes, which have settings, and the groups on which something is set; nothing of other types."""
    wanted = request.resource_types if call.version >= _LISTED_TYPES_FROM else [_METRICS]
    if not set(wanted) <= set(_TYPES):
        return ListConfigResourcesResponse(error_code=KafkaError.UNSUPPORTED_VERSION, config_resources=[])
    wanted = wanted or list(_TYPES)
    found = [ListedConfigResource(resource_name=name, resource_type=_TOPIC) for name in call.cluster.catalog.topics
             if _TOPIC in wanted]
    found += [ListedConfigResource(resource_name=str(node.id), resource_type=_BROKER) for node in call.cluster.up_nodes
              if _BROKER in wanted]
    found += [ListedConfigResource(resource_name=name, resource_type=_GROUP)
              for name in call.cluster.group_configs.configured() if _GROUP in wanted]
    return ListConfigResourcesResponse(error_code=0, config_resources=found)


SERVES = (
    ServedApi(DescribeConfigsRequest, describe_configs,
              "Of a broker, only what this one can be started with. Broker loggers and client metrics have no "
              "settings; groups have those of share groups and the times of consumer groups, which are only kept."),
    ServedApi(AlterConfigsRequest, alter_configs, "Topics and groups only."),
    ServedApi(IncrementalAlterConfigsRequest, incremental_alter_configs, "Topics and groups only."),
    ServedApi(ListConfigResourcesRequest, list_config_resources, "Topics, brokers and groups only."),
)
