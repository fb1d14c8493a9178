"""Calls that take lists: the same arguments, right and wrong, over confluent_kafka and headrace, call by call.

Where headrace does otherwise, `otherwise` says so beside the call: the peer's outcome, and ours. The rules behind it:

* What is not a list, or has a member of another kind, is a TypeError in every call. The peer's admin client says
  AttributeError or ValueError of some of them, and lets others pass.
* The peer makes text of what is subscribed to, or deleted, and is not: `subscribe([None])` reads the topic "None".
  That is a defect of its binding.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from types import ModuleType
from typing import Any

import confluent_kafka
import pytest

import headrace
from headrace.broker.settings import BrokerSettings
from headrace.testing import EmbeddedBroker
from tests.support.same_as_confluent import QUIET, outcome

INVALID = ("KafkaException", -186, False, False)
NO_OFFSET = ("KafkaException", -168, False, False)
TIMED_OUT = ("KafkaException", -185, False, False)
INVALID_TOPIC = ("KafkaException", 17, False, False)
UNKNOWN = ("KafkaException", -190, False, False)
UNSUPPORTED = ("KafkaException", 35, False, False)
REFUSED = ("TypeError", "ValueError", "AttributeError", "RuntimeError")

NO_LISTS: dict[str, Callable[[ModuleType], Any]] = {
    "None": lambda k: None, "text": lambda k: "abc", "empty text": lambda k: "", "bytes": lambda k: b"abc",
    "a number": lambda k: 5, "a float": lambda k: 1.5, "a set": lambda k: {"t"}, "a dict": lambda k: {"t": 1},
    "an empty dict": lambda k: {}, "a generator": lambda k: (name for name in ["t"]), "an empty tuple": lambda k: (),
    "a tuple of text": lambda k: ("t", "u"), "a tuple of partitions": lambda k: (k.TopicPartition("t", 0),),
    "a set of partitions": lambda k: {k.TopicPartition("t", 0)}, "a partition": lambda k: k.TopicPartition("t", 0),
    "a tuple of new topics": lambda k: (k.admin.NewTopic("t", 1),), "a new topic": lambda k: k.admin.NewTopic("t", 1),
    "a tuple of resources": lambda k: (k.admin.ConfigResource("topic", "t"),),
    "a dict of specs by text": lambda k: {"t": k.admin.OffsetSpec.latest()},
    "a dict of specs": lambda k: {k.TopicPartition("t", 0): k.admin.OffsetSpec.latest()},
    "a dict of specs of no partition": lambda k: {k.TopicPartition("t", -1): k.admin.OffsetSpec.latest()},
    "a dict of a spec and a number": lambda k: {k.TopicPartition("t", 0): k.admin.OffsetSpec.latest(),
                                                k.TopicPartition("t", 1): 5},
    "a dict of numbers by partition": lambda k: {k.TopicPartition("t", 0): 5},
    "a dict of nothing by partition": lambda k: {k.TopicPartition("t", 0): None},
}
LISTS: dict[str, Callable[[ModuleType], Any]] = {
    "[]": lambda k: [], "[text]": lambda k: ["t"], "[text, text]": lambda k: ["t", "u"],
    "[text twice]": lambda k: ["t", "t"], "[empty text]": lambda k: [""],
    "[subclass of text]": lambda k: [type("S", (str,), {})("t")], "[None]": lambda k: [None],
    "[number]": lambda k: [5], "[bytes]": lambda k: [b"t"], "[list]": lambda k: [["t"]],
    "[tuple]": lambda k: [("t", 0)],
    "[text, number]": lambda k: ["t", 5], "[text, partition]": lambda k: ["t", k.TopicPartition("t", 0)],
    "[partition]": lambda k: [k.TopicPartition("t", 0)], "[partition, text]": lambda k: [k.TopicPartition("t", 0), "t"],
    "[partition, None]": lambda k: [k.TopicPartition("t", 0), None],
    "[partition twice]": lambda k: [k.TopicPartition("t", 0), k.TopicPartition("t", 0)],
    "[no partition]": lambda k: [k.TopicPartition("t")], "[partition -5]": lambda k: [k.TopicPartition("t", -5)],
    "[partition of no topic]": lambda k: [k.TopicPartition("", 0)],
    "[partition at 0]": lambda k: [k.TopicPartition("t", 0, 0)],
    "[partition at -5]": lambda k: [k.TopicPartition("t", 0, -5)],
    "[new topic]": lambda k: [k.admin.NewTopic("u", 1)], "[new topic, text]": lambda k: [k.admin.NewTopic("u", 1), "t"],
    "[new partitions]": lambda k: [k.admin.NewPartitions("t", 2)],
    "[resource]": lambda k: [k.admin.ConfigResource("topic", "t")],
    "[resource, text]": lambda k: [k.admin.ConfigResource("topic", "t"), "t"],
    "[resource twice]": lambda k: [k.admin.ConfigResource("topic", "t"), k.admin.ConfigResource("topic", "t")],
    "[resource that changes]": lambda k: [k.admin.ConfigResource("topic", "t", incremental_configs=[
        k.admin.ConfigEntry("retention.ms", "1", incremental_operation=k.admin.AlterConfigOpType.SET)])],
}
ARGUMENTS = {**NO_LISTS, **LISTS}
NO_TEXT = ("[None]", "[number]", "[bytes]", "[list]", "[tuple]", "[text, number]", "[text, partition]", "[partition]",
           "[partition, text]", "[partition, None]", "[no partition]", "[partition -5]", "[partition of no topic]",
           "[partition at 0]", "[partition at -5]", "[new topic]", "[new topic, text]", "[new partitions]",
           "[resource]", "[resource, text]", "[resource that changes]")
TWICE = ("[partition twice]", "[resource twice]")
PARTITIONS = ("[partition]", "[partition twice]", "[no partition]", "[partition -5]", "[partition of no topic]",
              "[partition at 0]", "[partition at -5]")

Differences = dict[str, tuple[Any, Any]]
Call = Callable[[Any, Any], Any]


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": 1}, settings=BrokerSettings(auto_create_topics=False)) as made:
        yield made


@pytest.fixture
def conf(broker: EmbeddedBroker) -> dict[str, Any]:
    return {"bootstrap.servers": broker.bootstrap_servers, "logger": QUIET}


def plain(found: Any) -> Any:
    """What was returned, in a form that can be compared."""
    if isinstance(found, list):
        return [(tp.topic, tp.partition, tp.offset, tp.error and tp.error.code()) for tp in found]
    if isinstance(found, dict):
        return sorted(str(getattr(key, "name", key)).partition(",offset")[0] for key in found)
    return found


def differences(run: Callable[[ModuleType, Callable[[ModuleType], Any]], Any],
                run_aio: Callable[[Callable[[ModuleType], Any]], Any]) -> Differences:
    """Call with each argument; what the peer does, and what we do, where that is not the same. Our faces agree."""
    found: Differences = {}
    for name, argument in ARGUMENTS.items():
        theirs = outcome(lambda kafka, argument=argument: run(kafka, argument), confluent_kafka)
        ours = outcome(lambda kafka, argument=argument: run(kafka, argument), headrace)
        assert outcome(lambda kafka, argument=argument: run_aio(argument), headrace) == ours, name
        wrong_kind = theirs in REFUSED and ours == "TypeError"
        if theirs != ours and not wrong_kind:
            found[name] = ("passes" if theirs is None or isinstance(theirs, list) else theirs, ours)
    return found


CONSUMER: dict[str, tuple[Call, Differences]] = {
    "subscribe": (lambda c, given: c.subscribe(given), dict.fromkeys(NO_TEXT, ("passes", "TypeError"))
                  | dict.fromkeys(TWICE, (INVALID, "TypeError"))),
    "assign": (lambda c, given: c.assign(given), {}),
    "incremental_assign": (lambda c, given: c.incremental_assign(given), {}),
    "incremental_unassign": (lambda c, given: c.incremental_unassign(given), {}),
    "pause": (lambda c, given: c.pause(given), {}),
    "resume": (lambda c, given: c.resume(given), {}),
    "position": (lambda c, given: c.position(given), {}),
    "committed": (lambda c, given: c.committed(given, 5), {}),
    # Whether there are times below 0 is the broker's to say, and the peer asks in an older version. It waits for a
    # topic whose name the broker refuses.
    "offsets_for_times": (lambda c, given: c.offsets_for_times(given, 1), {
        "[partition at -5]": (UNSUPPORTED, [("t", 0, -1, None)]),
        "[partition of no topic]": (TIMED_OUT, INVALID_TOPIC)}),
    "commit": (lambda c, given: c.commit(offsets=given), {}),
    "commit at once": (lambda c, given: c.commit(offsets=given, asynchronous=False), {}),
    "commit of a message": (lambda c, given: c.commit(given), {}),
    "store_offsets": (lambda c, given: c.store_offsets(offsets=given), {}),
    "store_offsets of a message": (lambda c, given: c.store_offsets(given), {}),
    "seek": (lambda c, given: c.seek(given), {}),
    "get_watermark_offsets": (lambda c, given: c.get_watermark_offsets(given, 5), {}),
    "cached watermarks": (lambda c, given: c.get_watermark_offsets(given, cached=True), {}),
}


@pytest.mark.parametrize("name", CONSUMER)
def test_a_consumers_call(name: str, conf: dict[str, Any]) -> None:
    call, otherwise = CONSUMER[name]
    properties = {**conf, "group.id": "g", "enable.auto.offset.store": False, "enable.auto.commit": False}

    def run(kafka: ModuleType, argument: Callable[[ModuleType], Any]) -> Any:
        with ExitStack() as stack:
            consumer = kafka.Consumer(properties)
            stack.callback(consumer.close)
            return plain(call(consumer, argument(kafka)))

    def run_aio(argument: Callable[[ModuleType], Any]) -> Any:
        async def main() -> Any:
            async with headrace.aio.AIOConsumer(properties) as consumer:
                return plain(await call(consumer, argument(headrace)))

        return asyncio.run(main())

    assert differences(run, run_aio) == otherwise


ADMIN: dict[str, tuple[Call, Differences]] = {
    "create_topics": (lambda a, given: a.create_topics(given, validate_only=True), {}),
    "delete_topics": (lambda a, given: a.delete_topics(given), {
        name: ("passes", "TypeError") for name in (*NO_TEXT, *TWICE)
        if name not in ("[None]", "[list]", "[text, partition]", "[partition, text]", "[partition, None]")}),
    "create_partitions": (lambda a, given: a.create_partitions(given, validate_only=True), {}),
    "describe_configs": (lambda a, given: a.describe_configs(given), {}),
    "alter_configs": (lambda a, given: a.alter_configs(given, validate_only=True), {}),
    "incremental_alter_configs": (lambda a, given: a.incremental_alter_configs(given, validate_only=True), {}),
    "delete_records": (lambda a, given: a.delete_records(given), {}),
    "delete_consumer_groups": (lambda a, given: a.delete_consumer_groups(given), {}),
    "list_offsets": (lambda a, given: a.list_offsets(given), {}),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning:confluent_kafka")
@pytest.mark.filterwarnings("ignore:.*incremental_alter_configs:DeprecationWarning")
@pytest.mark.parametrize("name", ADMIN)
def test_an_admin_clients_call(name: str, conf: dict[str, Any]) -> None:
    call, otherwise = ADMIN[name]
    nowhere = {**conf, "bootstrap.servers": "127.0.0.1:1", "error_cb": lambda error: None}
    peer = confluent_kafka.admin.AdminClient(nowhere)
    client = headrace.admin.AdminClient(nowhere)

    def run(kafka: ModuleType, argument: Callable[[ModuleType], Any]) -> Any:
        return plain(call(peer if kafka is confluent_kafka else client, argument(kafka)))

    def run_aio(argument: Callable[[ModuleType], Any]) -> Any:
        async def main() -> Any:
            async with headrace.aio.AIOAdminClient(nowhere) as aio:
                found = call(aio, argument(headrace))
                for future in found.values():
                    future.cancel()
                return plain(found)

        return asyncio.run(main())

    with client:
        assert differences(run, run_aio) == otherwise


@pytest.mark.parametrize("given", ["Stable", b"Stable", 5, {"Stable": 1}, [5], {5}, [None]])
def test_states_of_groups_are_a_set_of_members(given: Any, conf: dict[str, Any]) -> None:
    """As the peer, which takes a set of the enum's members, and nothing else."""
    nowhere = {**conf, "bootstrap.servers": "127.0.0.1:1", "error_cb": lambda error: None}

    async def aio() -> None:
        async with headrace.aio.AIOAdminClient(nowhere) as client:
            await client.list_consumer_groups(states=given)

    assert outcome(lambda k: confluent_kafka.admin.AdminClient(nowhere).list_consumer_groups(states=given),
                   confluent_kafka) == "TypeError"
    refused = "states must be a set of ConsumerGroupState"
    with headrace.admin.AdminClient(nowhere) as client, pytest.raises(TypeError, match=refused):
        client.list_consumer_groups(states=given)
    with pytest.raises(TypeError, match=refused):
        asyncio.run(aio())


@pytest.mark.parametrize("make", [
    lambda k: k.NewTopic(5, 1), lambda k: k.NewTopic(None, 1), lambda k: k.NewTopic("t", "1"),
    lambda k: k.NewTopic("t", None), lambda k: k.NewTopic("t", 1, config="a=b"),
    lambda k: k.NewTopic("t", 1, config=[("a", "b")]), lambda k: k.NewPartitions(5, 1),
    lambda k: k.NewPartitions("t", "1"),
])
def test_a_value_of_a_wrong_type_is_refused_by_both(make: Callable[[Any], Any]) -> None:
    assert outcome(lambda k: make(k.admin), confluent_kafka) == "TypeError"
    assert outcome(lambda k: make(k.admin), headrace) == "TypeError"


@pytest.mark.parametrize("given", ["12", ["12"], [1, 2], [["a"]], ((1,), (2,)), {1: 2}, [[1], None], [b"12"]])
@pytest.mark.parametrize("kind", ["NewTopic", "NewPartitions"])
def test_an_assignment_of_replicas_is_a_list_of_lists_of_numbers(given: Any, kind: str, conf: dict[str, Any]) -> None:
    """The peer takes anything at first, and refuses it in `create_topics()` and `create_partitions()`."""
    admin = confluent_kafka.admin.AdminClient({**conf, "bootstrap.servers": "127.0.0.1:1", "error_cb": print})
    call = admin.create_topics if kind == "NewTopic" else admin.create_partitions
    assert outcome(lambda k: call([getattr(k.admin, kind)("t", 2, replica_assignment=given)]),
                   confluent_kafka) == "ValueError"
    with pytest.raises(TypeError, match="replica_assignment"):
        getattr(headrace.admin, kind)("t", 2, replica_assignment=given)


def resource_with(entry: Any) -> headrace.admin.ConfigResource:
    made = headrace.admin.ConfigResource("topic", "t")
    made.add_incremental_config(entry)
    return made


@pytest.mark.parametrize("make", [
    lambda: headrace.admin.ConfigResource("topic", "t", set_config="a=b"),
    lambda: headrace.admin.ConfigResource("topic", "t", set_config=[("a", "b")]),
    lambda: headrace.admin.ConfigResource("topic", "t", incremental_configs="ab"),
    lambda: headrace.admin.ConfigResource("topic", "t", incremental_configs=["ab"]),
    lambda: resource_with("ab"),
])
def test_changes_of_a_resource_are_of_their_kind(make: Callable[[], Any], conf: dict[str, Any]) -> None:
    """As the peer, which makes a list of the letters of a text, and refuses it when it is sent."""
    with (headrace.admin.AdminClient({**conf, "bootstrap.servers": "127.0.0.1:1", "error_cb": print}) as client,
          pytest.raises(TypeError, match=r"set_config|incremental_configs|config_entry")):
        client.incremental_alter_configs([make()])


def test_offsets_for_a_transaction(broker: EmbeddedBroker, conf: dict[str, Any]) -> None:
    with ExitStack() as stack:
        groups, producers = {}, {}
        for kafka in (confluent_kafka, headrace):
            consumer = kafka.Consumer({**conf, "group.id": f"of {kafka.__name__}"})
            groups[kafka.__name__] = consumer.consumer_group_metadata()
            consumer.close()
            producer = producers[kafka.__name__] = kafka.Producer({**conf, "transactional.id": f"of {kafka.__name__}"})
            stack.callback(producer.close)
            producer.init_transactions(10)
            producer.begin_transaction()

        def run(kafka: ModuleType, argument: Callable[[ModuleType], Any]) -> Any:
            name = kafka.__name__
            return producers[name].send_offsets_to_transaction(argument(kafka), groups[name], 10)

        def run_aio(argument: Callable[[ModuleType], Any]) -> Any:
            async def main() -> None:
                producer = headrace.aio.AIOProducer({**conf, "transactional.id": "of asyncio"})
                async with AsyncExitStack() as ending:
                    ending.push_async_callback(producer.close)
                    await producer.init_transactions(10)
                    await producer.begin_transaction()
                    await producer.send_offsets_to_transaction(argument(headrace), groups["headrace"], 10)

            return asyncio.run(main())

        assert differences(run, run_aio) == {}


@pytest.mark.parametrize("given", [None, [], [("t", 0)], [("t", -1), ("", 0)]])
def test_an_asynchronous_commit_of_no_offset_is_told_to_on_commit(given: Any, conf: dict[str, Any]) -> None:
    def told(kafka: ModuleType) -> list[Any]:
        codes: list[Any] = []
        consumer = kafka.Consumer({**conf, "group.id": "g", "enable.auto.commit": False,
                                   "on_commit": lambda error, partitions: codes.append(error and error.code())})
        offsets = None if given is None else [kafka.TopicPartition(topic, partition) for topic, partition in given]
        consumer.commit(offsets=offsets)
        deadline = time.monotonic() + 20
        while not codes and time.monotonic() < deadline:
            consumer.poll(0.05)
        consumer.close()
        return codes

    assert outcome(told, headrace) == outcome(told, confluent_kafka) == [-168]


def test_nothing_is_sent_for_a_text_that_was_meant_as_a_list(conf: dict[str, Any]) -> None:
    settings = BrokerSettings(auto_create_topics=True)
    with EmbeddedBroker(topics={"a": 1, "b": 1, "c": 1}, settings=settings) as broker:
        servers = {**conf, "bootstrap.servers": broker.bootstrap_servers}
        with headrace.admin.AdminClient(servers) as admin:
            with pytest.raises(TypeError, match="topics: expected list of str, not str"):
                admin.delete_topics("abc")
            with headrace.Consumer({**servers, "group.id": "g", "allow.auto.create.topics": True}) as consumer:
                with pytest.raises(TypeError, match="topics: expected list of str, not str"):
                    consumer.subscribe("xyz")
                with pytest.raises(TypeError, match=r"partitions: expected list of TopicPartition, not str"):
                    consumer.assign("xyz")
                with pytest.raises(TypeError, match=r"partitions\[1\] is str"):
                    consumer.offsets_for_times([headrace.TopicPartition("x", 0, 0), "y"], 1)
                assert consumer.poll(0.3) is None
            assert sorted(admin.list_topics(timeout=5).topics) == ["a", "b", "c"]


def test_what_is_refused_leaves_an_assignment_as_it_was(conf: dict[str, Any]) -> None:
    wrong = [[headrace.TopicPartition("t", 1)] * 2, [headrace.TopicPartition("t", 1, -5)], "t", [None]]
    with headrace.Consumer({**conf, "group.id": "g"}) as consumer:
        consumer.assign([headrace.TopicPartition("t", 0, 0)])
        for given in wrong:
            with pytest.raises((TypeError, headrace.KafkaException)):
                consumer.assign(given)
            assert [(tp.topic, tp.partition) for tp in consumer.assignment()] == [("t", 0)]
