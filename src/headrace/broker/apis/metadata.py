"""Metadata, DescribeCluster and DescribeTopicPartitions: who leads what, and where the nodes are."""

from __future__ import annotations

from headrace.broker.cluster import CLUSTER_OPERATIONS, TOPIC_OPERATIONS, ApiCall
from headrace.broker.served_api import ServedApi
from headrace.broker.storage.catalog import Topic, check_name
from headrace.broker.storage.partition import NO_LEADER, ApiError
from headrace.errors import KafkaError
from headrace.wire.messages.cluster.metadata import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeTopicPartitionsNextCursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.wire.schema import ZERO_UUID

__all__ = ["SERVES", "describe_cluster", "describe_topic_partitions", "metadata"]

_IDS_FROM = 12
_BROKERS, _CONTROLLERS = 1, 2
_NOT_ASKED = -(1 << 31)
"""Stands for the allowed operations where nobody asked for them."""


def metadata(call: ApiCall, request: MetadataRequest) -> MetadataResponse:
    """The nodes, and the topics that are asked for; unknown ones are made where both sides allow it."""
    cluster = call.cluster
    wanted = request.topics
    if wanted is None or (call.version == 0 and not wanted):
        topics = [_described(call, topic) for topic in cluster.catalog.topics.values()]
    else:
        each_once = {(each.name, each.topic_id): each for each in wanted}
        beside = {each.name for each in wanted if each.name is not None} - cluster.catalog.topics.keys()
        topics = [_asked_for(call, each, beside, request.allow_auto_topic_creation) for each in each_once.values()]
    if request.include_topic_authorized_operations:
        for topic in topics:
            # Rights belong to names: Kafka tells those to a topic that is not there, too.
            topic.topic_authorized_operations = TOPIC_OPERATIONS if topic.name else _NOT_ASKED
    return MetadataResponse(
        cluster_authorized_operations=CLUSTER_OPERATIONS if request.include_cluster_authorized_operations
        else _NOT_ASKED,
        brokers=[MetadataResponseBroker(node_id=node.id, host=node.host, port=node.port) for node in cluster.up_nodes],
        cluster_id=cluster.catalog.cluster_id,
        controller_id=cluster.controller_id,
        topics=topics,
    )


def _asked_for(
    call: ApiCall, wanted: MetadataRequestTopic, beside: set[str], may_create: bool
) -> MetadataResponseTopic:
    catalog = call.cluster.catalog
    try:
        if wanted.name is None or (call.version >= _IDS_FROM and wanted.topic_id != ZERO_UUID):
            return _described(call, call.topic("", wanted.topic_id, 0))
        check_name(wanted.name)
        found = catalog.topics.get(wanted.name)
        if (found is None and may_create and call.cluster.settings.auto_create_topics
                and catalog.collision(wanted.name, beside) is None):
            found = call.cluster.create_topic(wanted.name, beside)
        if found is None:
            raise ApiError(KafkaError.UNKNOWN_TOPIC_OR_PART)
        return _described(call, found)
    except ApiError as error:
        # Before version 12 the name cannot be null.
        name = wanted.name if wanted.name is not None or call.version >= 12 else ""
        return MetadataResponseTopic(error_code=error.code, name=name, topic_id=wanted.topic_id, partitions=[])


def _described(call: ApiCall, topic: Topic) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=0, name=topic.name, topic_id=topic.id, partitions=[
        MetadataResponsePartition(
            error_code=KafkaError.LEADER_NOT_AVAILABLE if each.leader_id == NO_LEADER else 0,
            partition_index=each.index, leader_id=each.leader_id, leader_epoch=each.leader_epoch,
            replica_nodes=each.replicas,
            isr_nodes=[node for node in each.replicas if call.cluster.is_up(node)],
            offline_replicas=[node for node in each.replicas if not call.cluster.is_up(node)],
        ) for each in topic.partitions
    ])


def describe_cluster(call: ApiCall, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """The nodes and the controller."""
    cluster = call.cluster
    if request.endpoint_type != _BROKERS:
        return DescribeClusterResponse(
            error_code=KafkaError.MISMATCHED_ENDPOINT_TYPE if request.endpoint_type == _CONTROLLERS
            else KafkaError.UNSUPPORTED_ENDPOINT_TYPE, error_message="This is a broker's listener, not a "
            "controller's", endpoint_type=1, cluster_id="", brokers=[])
    return DescribeClusterResponse(
        error_code=0, endpoint_type=1, cluster_id=cluster.catalog.cluster_id, controller_id=cluster.controller_id,
        cluster_authorized_operations=CLUSTER_OPERATIONS if request.include_cluster_authorized_operations
        else _NOT_ASKED,
        brokers=[DescribeClusterBroker(broker_id=node.id, host=node.host, port=node.port) for node in cluster.up_nodes],
    )


def describe_topic_partitions(
    call: ApiCall, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Partitions page by page: from the cursor on, no more than the limit (KIP-966)."""
    topics = call.cluster.catalog.topics
    names = sorted({each.name for each in request.topics} or topics)
    start = (request.cursor.topic_name, request.cursor.partition_index) if request.cursor else ("", 0)
    room = max(request.response_partition_limit, 1)
    reply = DescribeTopicPartitionsResponse(topics=[], next_cursor=None)
    for name in names:
        if name < start[0]:
            continue
        topic = topics.get(name)
        first = start[1] if name == start[0] else 0
        if topic is None or first < 0:
            reply.topics.append(_no_page(name, topic))
            continue
        page = _page(call, topic, first, room)
        after = first + len(page.partitions)
        if page.partitions or first >= len(topic.partitions):
            reply.topics.append(page)
        room -= len(page.partitions)
        if after < len(topic.partitions):
            reply.next_cursor = DescribeTopicPartitionsNextCursor(topic_name=name, partition_index=after)
            break
    return reply


def _no_page(name: str, topic: Topic | None) -> DescribeTopicPartitionsResponseTopic:
    """The entry of a topic that does not exist, that cannot exist, or whose cursor lies before its beginning."""
    code, operations = KafkaError.UNKNOWN_TOPIC_OR_PART, TOPIC_OPERATIONS
    if topic is not None:
        code, operations = KafkaError.INVALID_REQUEST, _NOT_ASKED
    try:
        check_name(name)
    except ApiError as error:
        code = error.code
    return DescribeTopicPartitionsResponseTopic(error_code=code, name=name, topic_id=ZERO_UUID, partitions=[],
                                                topic_authorized_operations=operations)


def _page(call: ApiCall, topic: Topic, first: int, room: int) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=0, name=topic.name, topic_id=topic.id, topic_authorized_operations=TOPIC_OPERATIONS, partitions=[
        DescribeTopicPartitionsResponsePartition(
            error_code=KafkaError.LEADER_NOT_AVAILABLE if each.leader_id == NO_LEADER else 0,
            partition_index=each.index, leader_id=each.leader_id, leader_epoch=each.leader_epoch,
            replica_nodes=each.replicas,
            isr_nodes=[node for node in each.replicas if call.cluster.is_up(node)],
            eligible_leader_replicas=[], last_known_elr=[],
            offline_replicas=[node for node in each.replicas if not call.cluster.is_up(node)],
        ) for each in topic.partitions[first:first + room]
    ])


SERVES = (
    ServedApi(MetadataRequest, metadata, "A topic that is made because it was asked for is there in the first reply."),
    ServedApi(DescribeClusterRequest, describe_cluster),
    ServedApi(DescribeTopicPartitionsRequest, describe_topic_partitions),
)
