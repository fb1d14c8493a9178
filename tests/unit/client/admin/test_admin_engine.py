"""The admin client against brokers that move: it finds the right one and settles, in memory."""

import asyncio
from typing import Any

import pytest

from headrace.client.admin.admin_calls import AdminCalls
from headrace.client.core import ClientCore
from headrace.config import ADMIN, Config
from headrace.errors import KafkaError, KafkaException
from headrace.types.acls import AclBinding
from headrace.types.admin import ConfigResource, ListOffsetsResultInfo, NewTopic, OffsetSpec
from headrace.types.cluster import ConsumerGroupState, ConsumerGroupType
from headrace.types.groups import ConsumerGroupListing
from headrace.types.records import TopicPartition
from headrace.wire.api import API
from headrace.wire.frame import RequestFrame
from headrace.wire.messages.admin.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from headrace.wire.messages.admin.security import CreateAclsRequest, CreateAclsResponse
from headrace.wire.messages.admin.topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from headrace.wire.messages.cluster.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.wire.messages.cluster.session import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from headrace.wire.messages.consumer.offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from headrace.wire.messages.groups.classic_groups import (
    Coordinator,
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from tests.support.scripted_broker import SILENCE, ScriptedBroker, admin_config

NODES = {"node1": ("one", 1), "node2": ("two", 2)}


def calls(broker: ScriptedBroker) -> tuple[ClientCore, AdminCalls]:
    config = Config(ADMIN, admin_config(retry_backoff_ms=5, retry_backoff_max_ms=10))
    core = ClientCore(config, connector=broker.connector)
    return core, AdminCalls(core)


def test_a_moved_controller_is_found_again() -> None:
    async def run() -> None:
        broker = ScriptedBroker(**NODES)
        codes = [41, 41, 0]
        broker.on(CreateTopicsRequest, lambda frame: CreateTopicsResponse(
            topics=[CreatableTopicResult(name="t", error_code=codes.pop(0))]))
        core, admin = calls(broker)
        assert await admin.create_topics([NewTopic("t")], request_timeout=5).results() == {"t": None}
        assert broker.count(MetadataRequest) >= 2
        await core.close()

    asyncio.run(run())


def test_what_does_not_settle_in_time_is_told() -> None:
    async def run() -> None:
        broker = ScriptedBroker(**NODES)
        broker.on(CreateTopicsRequest, CreateTopicsResponse(topics=[CreatableTopicResult(name="t", error_code=41)]))
        core, admin = calls(broker)
        assert await admin.create_topics([NewTopic("t")], request_timeout=3.0).results() == {
            "t": KafkaError.NOT_CONTROLLER}
        await core.close()

    asyncio.run(run())


def test_what_was_done_stays_done_when_the_rest_is_asked_for_again() -> None:
    async def run() -> None:
        broker = ScriptedBroker(**NODES)
        codes = [(0, KafkaError.THROTTLING_QUOTA_EXCEEDED), (KafkaError.TOPIC_ALREADY_EXISTS, 0)]
        broker.on(CreateTopicsRequest, lambda frame: CreateTopicsResponse(topics=[
            CreatableTopicResult(name=name, error_code=code) for name, code in zip("ab", codes.pop(0), strict=True)]))
        core, admin = calls(broker)
        topics = [NewTopic("a"), NewTopic("b")]
        assert await admin.create_topics(topics, request_timeout=5).results() == {"a": None, "b": None}
        await core.close()

    asyncio.run(run())


def test_an_attempt_that_comes_too_late_leaves_what_the_one_before_said() -> None:
    async def run() -> None:
        broker = ScriptedBroker(**NODES)
        refusal = CreateTopicsResponse(topics=[CreatableTopicResult(name="t", error_code=41)])
        # A broker answers a connection in order: behind the request that it does not answer, it answers nothing.
        broker.on(CreateTopicsRequest, lambda *_: refusal if broker.count(CreateTopicsRequest) == 1 else SILENCE)
        broker.on(MetadataRequest, lambda frame: broker.metadata(frame) if broker.count(CreateTopicsRequest) < 2
                  else SILENCE)
        core, admin = calls(broker)
        assert await admin.create_topics([NewTopic("t")], request_timeout=3.0).results() == {
            "t": KafkaError.NOT_CONTROLLER}
        assert broker.count(CreateTopicsRequest) == 2
        await core.close()

    asyncio.run(run())


def led_by(leaders: list[int]) -> Any:
    """A metadata script in which the leader of t[0] is the first of `leaders`."""
    def script(broker: ScriptedBroker, frame: RequestFrame) -> MetadataResponse:
        reply = broker.metadata(frame)
        partitions = [
            MetadataResponsePartition(partition_index=0, leader_id=leaders[0], leader_epoch=10 - len(leaders)),
            MetadataResponsePartition(partition_index=1, leader_id=1, leader_epoch=1)]
        reply.topics = [MetadataResponseTopic(name="t", partitions=partitions)]
        return reply

    return script


def test_offsets_are_asked_of_each_leader_and_again_when_one_moves() -> None:
    async def run() -> None:
        broker = ScriptedBroker(**NODES)
        leaders = [1, 2]
        script = led_by(leaders)
        broker.on(MetadataRequest, lambda frame: script(broker, frame))

        def offsets(frame: RequestFrame) -> ListOffsetsResponse:
            request = frame.request
            assert isinstance(request, ListOffsetsRequest)
            asked = [p.partition_index for p in request.topics[0].partitions]
            moved = 0 in asked and len(leaders) > 1
            if moved:
                leaders.pop(0)
            return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[
                ListOffsetsPartitionResponse(partition_index=n, offset=100 + n, error_code=6 if n == 0 and moved else 0)
                for n in asked])])

        broker.on(ListOffsetsRequest, offsets)
        core, admin = calls(broker)
        wanted = {TopicPartition("t", n): OffsetSpec.latest() for n in (0, 1, 5)}
        found = await admin.list_offsets(wanted, request_timeout=5).results()
        assert found[TopicPartition("t", 0)] == ListOffsetsResultInfo(100, -1, None)
        assert found[TopicPartition("t", 1)] == ListOffsetsResultInfo(101, -1, None)
        assert found[TopicPartition("t", 5)] == KafkaError._UNKNOWN_PARTITION
        assert broker.count(ListOffsetsRequest) == 2  # what was settled is not asked again
        await core.close()

    asyncio.run(run())


def test_a_brokers_own_configuration_is_asked_of_that_broker() -> None:
    async def run() -> None:
        broker = ScriptedBroker(**NODES)

        def configs(frame: RequestFrame) -> DescribeConfigsResponse:
            request = frame.request
            assert isinstance(request, DescribeConfigsRequest)
            return DescribeConfigsResponse(results=[
                DescribeConfigsResult(resource_type=r.resource_type, resource_name=r.resource_name, configs=[])
                for r in request.resources])

        broker.on(DescribeConfigsRequest, configs)
        core, admin = calls(broker)
        await core.wait_for_metadata(lambda cluster: 2 in cluster.nodes, 5)
        resources = [ConfigResource("broker", "1"), ConfigResource("broker", "2"), ConfigResource("topic", "t"),
                     ConfigResource("topic", "u")]
        assert set(await admin.describe_configs(resources, request_timeout=5).results()) == set(resources)
        assert broker.count(DescribeConfigsRequest) == 3
        await core.close()

    asyncio.run(run())


def test_consumer_groups_are_gathered_from_all_brokers_and_errors_are_kept_apart() -> None:
    async def run() -> None:
        broker = ScriptedBroker(**NODES)
        replies = [ListGroupsResponse(groups=[
            ListedGroup(group_id="a", protocol_type="consumer", group_state="Stable", group_type="classic"),
            ListedGroup(group_id="connect", protocol_type="connect")]), ListGroupsResponse(error_code=15, groups=[])]
        broker.on(ListGroupsRequest, lambda frame: replies.pop(0))
        core, admin = calls(broker)
        result = await admin.list_consumer_groups(request_timeout=5)
        assert result.valid == [
            ConsumerGroupListing("a", False, ConsumerGroupState.STABLE, ConsumerGroupType.CLASSIC)]
        assert [failure.error.code() for failure in result.errors or ()] == [15]
        await core.close()

    asyncio.run(run())


def test_a_group_is_deleted_at_its_coordinator_which_may_move() -> None:
    async def run() -> None:
        broker = ScriptedBroker(**NODES)
        found = [FindCoordinatorResponse(error_code=15), FindCoordinatorResponse(node_id=1),
                 FindCoordinatorResponse(node_id=2)]
        broker.on(FindCoordinatorRequest, lambda frame: found.pop(0))
        codes = [16, 0]
        broker.on(DeleteGroupsRequest, lambda frame: DeleteGroupsResponse(
            results=[DeletableGroupResult(group_id="g", error_code=codes.pop(0))]))
        core, admin = calls(broker)
        assert await admin.delete_consumer_groups(["g"], request_timeout=5).results() == {"g": None}
        assert found == codes == []
        await core.close()

    asyncio.run(run())


def test_brokers_that_cannot_be_reached_are_a_time_that_is_over_and_the_text_says_why() -> None:
    async def run() -> None:
        core = ClientCore(Config(ADMIN, admin_config(host="127.0.0.1", port=1, retry_backoff_ms=5)))
        admin = AdminCalls(core)
        core.on_error = lambda error: None
        outcomes: list[KafkaError] = []
        for call in (admin.create_topics([NewTopic("t")], request_timeout=0.2),
                     admin.delete_consumer_groups(["g"], request_timeout=0.2),
                     admin.list_offsets({TopicPartition("t", 0): OffsetSpec.latest()}, request_timeout=0.2)):
            try:
                outcomes += (each for each in (await call.results()).values() if isinstance(each, KafkaError))
            except KafkaException as error:
                outcomes.append(error.error)
        assert [error.code() for error in outcomes] == [KafkaError._TIMED_OUT] * 3
        assert all("127.0.0.1:1" in error.str() for error in outcomes)
        await core.close()

    asyncio.run(run())


def test_coordinators_of_many_groups_are_found_in_one_request_and_those_of_an_old_broker_one_by_one() -> None:
    def deleted(frame: RequestFrame) -> DeleteGroupsResponse:
        request = frame.request
        assert isinstance(request, DeleteGroupsRequest)
        return DeleteGroupsResponse(results=[DeletableGroupResult(group_id=name) for name in request.groups_names])

    async def run(newest: int, questions: int) -> None:
        broker = ScriptedBroker(**NODES)
        broker.on(ApiVersionsRequest, lambda frame: ApiVersionsResponse(api_keys=[
            ApiVersion(api_key=a.key, min_version=a.min_version,
                       max_version=newest if a.key == FindCoordinatorRequest.api_key else a.max_version)
            for a in API.values()]))
        groups = [f"g{number}" for number in range(6)]
        broker.on(FindCoordinatorRequest, lambda frame: FindCoordinatorResponse(
            node_id=1) if newest < 4 else FindCoordinatorResponse(coordinators=[
                Coordinator(key=name, node_id=1 + number % 2) for number, name in enumerate(groups)]))
        broker.on(DeleteGroupsRequest, deleted)
        core, admin = calls(broker)
        await core.wait_for_metadata(lambda cluster: 2 in cluster.nodes, 5)
        assert await admin.delete_consumer_groups(groups, request_timeout=5).results() == dict.fromkeys(groups)
        assert broker.count(FindCoordinatorRequest) == questions
        await core.close()

    asyncio.run(run(6, 1))
    asyncio.run(run(3, 6))


def test_an_answer_that_does_not_fit_the_question_is_an_error_of_the_broker() -> None:
    async def run() -> None:
        broker = ScriptedBroker(**NODES)
        broker.on(CreateAclsRequest, CreateAclsResponse(results=[]))
        broker.on(CreateTopicsRequest, CreateTopicsResponse(topics=[CreatableTopicResult(name="another")]))
        core, admin = calls(broker)
        rule = AclBinding("topic", "t", "literal", "User:a", "*", "read", "allow")
        with pytest.raises(KafkaException, match="CreateAclsResponse does not answer what was asked") as refused:
            await admin.create_acls([rule]).results()
        assert refused.value.error == KafkaError._BAD_MSG
        futures = {"t": asyncio.get_running_loop().create_future()}
        await admin.create_topics([NewTopic("t")]).settle(futures)
        with pytest.raises(KafkaException, match="does not mention it"):
            await futures["t"]
        await core.close()

    asyncio.run(run())
