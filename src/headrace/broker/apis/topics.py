"""CreateTopics, DeleteTopics, CreatePartitions, DeleteRecords."""

from __future__ import annotations

from collections import Counter

from headrace.broker.cluster import ApiCall
from headrace.broker.served_api import ServedApi
from headrace.broker.storage.catalog import Topic
from headrace.broker.storage.partition import ApiError
from headrace.broker.storage.topic_configs import TOPIC_CONFIGS
from headrace.errors import KafkaError
from headrace.wire.messages.admin.topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from headrace.wire.schema import ZERO_UUID

__all__ = ["SERVES", "create_partitions", "create_topics", "delete_records", "delete_topics"]

_IDS_FROM = 6
_NEVER = 1 << 15
_DEFAULT = -1
_HIGH_WATERMARK = -1
_FROM_TOPIC, _FROM_DEFAULT = 1, 5
"""Where a setting's value comes from, as configs in replies name it."""


def create_topics(call: ApiCall, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """Make topics; each succeeds or fails by itself, a name given twice fails."""
    names = [wanted.name for wanted in request.topics]
    beside = set(names) - call.cluster.catalog.topics.keys()
    replies = {}
    for wanted in request.topics:
        try:
            if names.count(wanted.name) > 1:
                raise ApiError(KafkaError.INVALID_REQUEST, f"Topic '{wanted.name}' is in the request more than once")
            topic = _create(call, wanted, beside, request.validate_only)
            replies[wanted.name] = _created(topic)
        except ApiError as error:
            replies[wanted.name] = CreatableTopicResult(
                name=wanted.name, topic_id=ZERO_UUID, error_code=error.code, error_message=error.reason, configs=[])
    return CreateTopicsResponse(topics=list(replies.values()))


def _create(call: ApiCall, wanted: CreatableTopic, beside: set[str], validate_only: bool) -> Topic:
    cluster = call.cluster
    assignment = _assignment(wanted)
    count = cluster.settings.default_partitions if wanted.num_partitions == _DEFAULT else wanted.num_partitions
    factor = (cluster.default_replication_factor if wanted.replication_factor == _DEFAULT
              else wanted.replication_factor)
    overrides = {each.name: each.value for each in wanted.configs}
    if missing := [name for name, value in overrides.items() if value is None]:
        raise ApiError(KafkaError.INVALID_CONFIG, f"No value is given for {', '.join(missing)}")
    return cluster.catalog.create(
        wanted.name, count, factor, {name: str(value) for name, value in overrides.items()}, assignment,
        validate_only=validate_only, beside=beside)


def _assignment(wanted: CreatableTopic) -> list[list[int]] | None:
    if not wanted.assignments:
        return None
    if wanted.num_partitions != _DEFAULT or wanted.replication_factor != _DEFAULT:
        raise ApiError(KafkaError.INVALID_REQUEST, "With an assignment, partitions and replication factor must be -1")
    placed = {each.partition_index: each.broker_ids for each in wanted.assignments}
    if sorted(each.partition_index for each in wanted.assignments) != list(range(len(placed))):
        raise ApiError(KafkaError.INVALID_REPLICA_ASSIGNMENT, "Partitions must be numbered from 0 on, each once")
    return [placed[index] for index in range(len(placed))]


def _created(topic: Topic) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=topic.name, topic_id=topic.id, error_code=0, error_message=None,
        num_partitions=len(topic.partitions), replication_factor=len(topic.partitions[0].replicas),
        configs=[CreatableTopicConfigs(name=name, value=topic.configs[name], read_only=False, is_sensitive=False,
                                       config_source=_FROM_TOPIC if name in topic.overrides else _FROM_DEFAULT)
                 for name in TOPIC_CONFIGS])


def delete_topics(call: ApiCall, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """Remove topics by name or id, and what groups committed for them."""
    wanted = request.topics if call.version >= _IDS_FROM else [DeleteTopicState(name=name, topic_id=ZERO_UUID)
                                                              for name in request.topic_names]
    counts = Counter((each.name, each.topic_id) for each in wanted)
    each_once = {(each.name, each.topic_id): each for each in wanted}
    gone: list[Topic] = []
    responses = [_delete(call, each, gone, is_repeated=counts[key] > 1) for key, each in each_once.items()]
    call.cluster.offsets.forget_topics({topic.name for topic in gone})
    call.cluster.shares.forget_topics({topic.id for topic in gone})
    return DeleteTopicsResponse(responses=responses)


def _delete(call: ApiCall, wanted: DeleteTopicState, gone: list[Topic], *, is_repeated: bool) -> DeletableTopicResult:
    try:
        if is_repeated or (wanted.name is None) == (wanted.topic_id == ZERO_UUID):
            raise ApiError(KafkaError.INVALID_REQUEST, "A topic is named once, either by name or by id")
        topic = call.topic(wanted.name or "", wanted.topic_id, _IDS_FROM if wanted.name is None else _NEVER)
    except ApiError as error:
        return DeletableTopicResult(name=wanted.name, topic_id=wanted.topic_id, error_code=error.code,
                                    error_message=error.reason)
    call.cluster.catalog.delete(topic)
    gone.append(topic)
    return DeletableTopicResult(name=topic.name, topic_id=topic.id, error_code=0)


def create_partitions(call: ApiCall, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    """Give topics more partitions."""
    counts = Counter(each.name for each in request.topics)
    return CreatePartitionsResponse(results=[
        _grow(call, each, request.validate_only, is_repeated=counts[each.name] > 1)
        for each in {each.name: each for each in request.topics}.values()])


def _grow(
    call: ApiCall, wanted: CreatePartitionsTopic, validate_only: bool, *, is_repeated: bool
) -> CreatePartitionsTopicResult:
    assignment = None if wanted.assignments is None else [each.broker_ids for each in wanted.assignments]
    try:
        if is_repeated:
            raise ApiError(KafkaError.INVALID_REQUEST, "The topic stands more than once in the request")
        topic = call.topic(wanted.name, ZERO_UUID, _NEVER)
        call.cluster.catalog.grow(topic, wanted.count, assignment, validate_only=validate_only)
    except ApiError as error:
        return CreatePartitionsTopicResult(name=wanted.name, error_code=error.code, error_message=error.reason)
    return CreatePartitionsTopicResult(name=wanted.name, error_code=0)


def delete_records(call: ApiCall, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    """Stop serving the records before an offset; -1 is the log's end."""
    reply = DeleteRecordsResponse(topics=[
        DeleteRecordsTopicResult(name=topic.name, partitions=[_delete_records(call, topic.name, each)
                                                              for each in topic.partitions])
        for topic in request.topics
    ])
    call.cluster.catalog.save()
    return reply


def _delete_records(call: ApiCall, name: str, wanted: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    try:
        topic = call.topic(name, ZERO_UUID, _NEVER)
        partition = call.led_partition(topic, wanted.partition_index)
        log = partition.log
        policy = topic.configs["cleanup.policy"]
        if "compact" in policy and "delete" not in policy:
            raise ApiError(KafkaError.POLICY_VIOLATION)
        offset = log.end_offset if wanted.offset == _HIGH_WATERMARK else wanted.offset
        if not 0 <= offset <= log.end_offset:
            raise ApiError(KafkaError.OFFSET_OUT_OF_RANGE)
    except ApiError as error:
        return DeleteRecordsPartitionResult(partition_index=wanted.partition_index, low_watermark=-1,
                                            error_code=error.code)
    partition.advance_start(offset)
    return DeleteRecordsPartitionResult(partition_index=wanted.partition_index, low_watermark=log.start_offset,
                                        error_code=0)


SERVES = (
    ServedApi(CreateTopicsRequest, create_topics, "At most 10,000 partitions."),
    ServedApi(DeleteTopicsRequest, delete_topics),
    ServedApi(CreatePartitionsRequest, create_partitions),
    ServedApi(DeleteRecordsRequest, delete_records),
)
