"""The public names, signatures and constants of confluent_kafka 2.16.1, its consumers, values and asyncio clients.

Each is listed here. The list is compared with the peer, so that it misses nothing; ours is compared with the list. What
is not here, or differs, has a reason. What calls do is compared by `test_same_as_confluent_consumer` and its siblings,
the codes of `KafkaError` by `test_same_as_confluent_values`.
"""

import ast
import contextlib
import enum
import importlib
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import confluent_kafka
import confluent_kafka.admin
import confluent_kafka.aio
import confluent_kafka.aio.producer
import pytest

import headrace
import headrace.aio
import headrace.records.message

PACKAGE = """
ConcurrentModificationException
ConsumerGroupState.COMPLETING_REBALANCING = 2
ConsumerGroupState.DEAD = 4
ConsumerGroupState.EMPTY = 5
ConsumerGroupState.PREPARING_REBALANCING = 1
ConsumerGroupState.STABLE = 3
ConsumerGroupState.UNKNOWN = 0
ConsumerGroupState.UNKOWN = 0
ConsumerGroupTopicPartitions(group_id, topic_partitions=None)
ConsumerGroupType.CLASSIC = 2
ConsumerGroupType.CONSUMER = 1
ConsumerGroupType.UNKNOWN = 0
ElectionType.PREFERRED = 0
ElectionType.UNCLEAN = 1
IllegalStateException
IsolationLevel.READ_COMMITTED = 1
IsolationLevel.READ_UNCOMMITTED = 0
KafkaError(error, reason=None, fatal=False, retriable=False, txn_requires_abort=False)
KafkaError.code()
KafkaError.fatal()
KafkaError.name()
KafkaError.retriable()
KafkaError.str()
KafkaError.txn_requires_abort()
KafkaException
Message(topic=..., partition=..., offset=..., key=..., value=..., headers=..., error=..., timestamp=..., latency=..., \
leader_epoch=..., delivery_count=...)
Message.__len__()
Message.delivery_count()
Message.deserialized_key()
Message.deserialized_value()
Message.error()
Message.headers()
Message.key()
Message.latency()
Message.leader_epoch()
Message.offset()
Message.partition()
Message.set_error(error)
Message.set_headers(headers)
Message.set_key(key)
Message.set_topic(topic)
Message.set_value(value)
Message.timestamp()
Message.topic()
Message.value()
Node(id, host, port, rack=None)
OFFSET_BEGINNING = -2
OFFSET_END = -1
OFFSET_INVALID = -1001
OFFSET_STORED = -1000
TIMESTAMP_CREATE_TIME = 1
TIMESTAMP_LOG_APPEND_TIME = 2
TIMESTAMP_NOT_AVAILABLE = 0
ThrottleEvent(broker_name, broker_id, throttle_time)
TopicCollection(topic_names)
TopicPartition(topic, partition=-1, offset=-1001, metadata=None, leader_epoch=None)
TopicPartition.error
TopicPartition.leader_epoch
TopicPartition.metadata
TopicPartition.offset
TopicPartition.partition
TopicPartition.topic
TopicPartitionInfo(id, leader, replicas, isr)
Uuid(most_significant_bits, least_significant_bits)
Uuid.get_least_significant_bits()
Uuid.get_most_significant_bits()
consistent(key, partition_count)
fnv1a(key, partition_count)
libversion()
murmur2(key, partition_count)
version()

Consumer(config=..., **kwargs)
Consumer.__enter__()
Consumer.__exit__(exc_type, exc_value, exc_traceback)
Consumer.assign(partitions)
Consumer.assignment()
Consumer.close()
Consumer.cluster_id(timeout=-1)
Consumer.commit(message=None, offsets=None, asynchronous=True)
Consumer.committed(partitions, timeout=-1)
Consumer.consume(num_messages=1, timeout=-1)
Consumer.consumer_group_metadata()
Consumer.get_watermark_offsets(partition, timeout=-1, cached=False)
Consumer.incremental_assign(partitions)
Consumer.incremental_unassign(partitions)
Consumer.list_topics(topic=None, timeout=-1)
Consumer.memberid()
Consumer.offsets_for_times(partitions, timeout=-1)
Consumer.pause(partitions)
Consumer.poll(timeout=-1)
Consumer.position(partitions)
Consumer.resume(partitions)
Consumer.seek(partition)
Consumer.set_sasl_credentials(username, password)
Consumer.store_offsets(message=None, offsets=None)
Consumer.subscribe(topics, on_assign=None, on_revoke=None, on_lost=None)
Consumer.unassign()
Consumer.unsubscribe()
DeserializingConsumer(conf)
DeserializingConsumer.__exit__(exc_type, exc_value, exc_traceback)
DeserializingConsumer.close()
DeserializingConsumer.consume(num_messages=1, timeout=-1)
DeserializingConsumer.poll(timeout=-1)

AcknowledgeType.ACCEPT = 1
AcknowledgeType.REJECT = 3
AcknowledgeType.RELEASE = 2
DeserializingShareConsumer(conf)
DeserializingShareConsumer.poll(timeout=-1)
Messages(messages=())
Messages.__getitem__(index)
Messages.__iter__()
Messages.__len__()
Messages.count()
Messages.is_empty()
Messages.records()
ShareConsumer(config=..., **kwargs)
ShareConsumer.__enter__()
ShareConsumer.__exit__(exc_type, exc_value, exc_traceback)
ShareConsumer.acknowledge(message, ack_type=...)
ShareConsumer.acknowledge_offset(topic, partition, offset, ack_type=...)
ShareConsumer.close()
ShareConsumer.commit_async()
ShareConsumer.commit_sync(timeout=60)
ShareConsumer.poll(timeout=-1)
ShareConsumer.set_acknowledgement_commit_callback(callback)
ShareConsumer.set_sasl_credentials(username, password)
ShareConsumer.subscribe(topics)
ShareConsumer.subscription()
ShareConsumer.unsubscribe()

Producer(config=..., **kwargs)
Producer.__enter__()
Producer.__exit__(exc_type, exc_value, exc_traceback)
Producer.__len__()
Producer.abort_transaction(timeout=-1)
Producer.begin_transaction()
Producer.close()
Producer.cluster_id(timeout=-1)
Producer.commit_transaction(timeout=-1)
Producer.flush(timeout=-1)
Producer.init_transactions(timeout=-1)
Producer.list_topics(topic=None, timeout=-1)
Producer.poll(timeout=-1)
Producer.produce(topic, value=None, key=None, partition=-1, callback=None, on_delivery=None, timestamp=0, headers=None)
Producer.produce_batch(topic, messages, partition=-1, callback=None, on_delivery=None)
Producer.purge(in_queue=True, in_flight=True, blocking=True)
Producer.send_offsets_to_transaction(positions, group_metadata, timeout=-1)
Producer.set_sasl_credentials(username, password)
SerializingProducer(conf)
SerializingProducer.__exit__(exc_type, exc_value, exc_traceback)
SerializingProducer.close()
SerializingProducer.produce(topic, key=None, value=None, partition=-1, on_delivery=None, timestamp=0, headers=None)
"""

AIO = """
AIOConsumer(consumer_conf, max_workers=100, executor=None)
AIOConsumer.__aenter__()
AIOConsumer.__aexit__(*_)
AIOConsumer.assign(partitions)
AIOConsumer.assignment()
AIOConsumer.close()
AIOConsumer.cluster_id(timeout=-1)
AIOConsumer.commit(message=None, offsets=None, asynchronous=True)
AIOConsumer.committed(partitions, timeout=-1)
AIOConsumer.consume(num_messages=1, timeout=-1)
AIOConsumer.consumer_group_metadata()
AIOConsumer.get_watermark_offsets(partition, timeout=-1, cached=False)
AIOConsumer.incremental_assign(partitions)
AIOConsumer.incremental_unassign(partitions)
AIOConsumer.list_topics(topic=None, timeout=-1)
AIOConsumer.offsets_for_times(partitions, timeout=-1)
AIOConsumer.pause(partitions)
AIOConsumer.poll(timeout=-1)
AIOConsumer.position(partitions)
AIOConsumer.resume(partitions)
AIOConsumer.seek(partition)
AIOConsumer.set_sasl_credentials(username, password)
AIOConsumer.store_offsets(message=None, offsets=None)
AIOConsumer.subscribe(topics, on_assign=None, on_revoke=None, on_lost=None)
AIOConsumer.unassign()
AIOConsumer.unsubscribe()
AsyncDeserializingConsumer(conf, **kwargs)
AsyncDeserializingConsumer.close()
AsyncDeserializingConsumer.consume(num_messages=1, timeout=-1)
AsyncDeserializingConsumer.poll(timeout=-1)

AIOProducer(producer_conf, max_workers=4, executor=None, batch_size=1000, buffer_timeout=1.0)
AIOProducer.__aenter__()
AIOProducer.__aexit__(*_)
AIOProducer.__len__()
AIOProducer.abort_transaction(timeout=-1)
AIOProducer.begin_transaction()
AIOProducer.close()
AIOProducer.cluster_id(timeout=-1)
AIOProducer.commit_transaction(timeout=-1)
AIOProducer.flush(timeout=-1)
AIOProducer.init_transactions(timeout=-1)
AIOProducer.list_topics(topic=None, timeout=-1)
AIOProducer.poll(timeout=0, *args, **kwargs)
AIOProducer.produce(topic, value=None, key=None, *args, **kwargs)
AIOProducer.purge(in_queue=True, in_flight=True, blocking=True)
AIOProducer.send_offsets_to_transaction(positions, group_metadata, timeout=-1)
AIOProducer.set_sasl_credentials(username, password)
AsyncSerializingProducer(conf, **kwargs)
AsyncSerializingProducer.close()
AsyncSerializingProducer.produce(topic, key=None, value=None, partition=-1, timestamp=0, headers=None)
"""
"""Where the peer takes `*args, **kwargs` only to hand them to its blocking client, these are that one's arguments."""

MODULES_HERE = {"admin", "aio", "error", "serialization"}

LEFT_OUT = {
    "os": "imported by the peer for itself",
    "cimpl": "its compiled module; what is public of it is a name of the package",
    "deserializing_consumer": "the class is `headrace.DeserializingConsumer`: one place for one name",
    "deserializing_share_consumer": "as deserializing_consumer",
    "serializing_producer": "as deserializing_consumer",
}
"""Modules of the peer that are no modules here."""

BY_THREADS = "how the peer brings a blocking client to a loop by means of threads; no thread is needed here"
BATCHES = "how the peer gathers records into batches before a thread takes them; here `produce()` does so natively"
INSIDE = {
    "aio._common": (BY_THREADS, {"AsyncLogger", "ReentryContext", "T", "async_call", "wrap_callback",
                                 "wrap_common_callbacks", "wrap_conf_callback", "wrap_conf_logger"}),
    "aio.producer._buffer_timeout_manager": (BATCHES, {"BufferTimeoutManager"}),
    "aio.producer._kafka_batch_executor": (BATCHES, {"ProducerBatchExecutor"}),
    "aio.producer._message_batch": (BATCHES, {"MessageBatch", "create_message_batch"}),
    "aio.producer._producer_batch_processor": (BATCHES, {"ProducerBatchManager"}),
}
"""Names in private modules of the peer, which none of its public ones has: left out."""

DIFFERENT = {
    "KafkaError": "retriable=None: whether an error is retriable follows from its code, until somebody says otherwise",
    "AIOProducer.poll": "further arguments, which the peer does not use either, are refused",
    "AIOProducer.produce": "the further arguments are named",
}

NOT_IN_THE_STUB = {"Message.set_topic", "Uuid.get_least_significant_bits", "Uuid.get_most_significant_bits"}
WRONG_IN_THE_STUB = {"KafkaError": "its first argument is called `error`"}
CLASSES_OF_C = {"Consumer", "KafkaError", "Message", "Producer", "ShareConsumer", "TopicPartition", "Uuid"}


class Argument(NamedTuple):
    """One of a signature; `default` is its text, `...` when there is one that is not told."""

    name: str
    default: str | None = None


class Listed(NamedTuple):
    """A line of the list: a name, and its arguments or its value."""

    name: str
    arguments: list[Argument] | None
    value: int | None


def of_node(node: ast.FunctionDef) -> list[Argument]:
    """The arguments of a definition, without `self`."""
    given, places = node.args, [*node.args.posonlyargs, *node.args.args]
    defaults: list[ast.expr | None] = [None] * (len(places) - len(given.defaults))
    pairs = zip([*places, *given.kwonlyargs], [*defaults, *given.defaults, *given.kw_defaults], strict=True)
    found = [Argument(each.arg, None if default is None else ast.unparse(default)) for each, default in pairs]
    stars = [Argument(f"{star}{each.arg}") for star, each in (("*", given.vararg), ("**", given.kwarg)) if each]
    return [each for each in found if each.name != "self"] + stars


def of_callable(function: Any) -> list[Argument]:
    """The arguments of a function or class."""
    function = function.__init__ if inspect.isclass(function) else function
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [Argument(stars.get(each.kind, "") + each.name, None if each.default is each.empty else repr(each.default))
            for each in inspect.signature(function).parameters.values() if each.name != "self"]


def lines(text: str) -> Iterator[Listed]:
    for line in filter(None, text.splitlines()):
        name, equals, value = line.partition(" = ")
        head, bracket, _ = line.partition("(")
        if bracket:
            (definition,) = ast.parse(f"def f({line[len(head) + 1:]}: ...").body
            assert isinstance(definition, ast.FunctionDef)
            yield Listed(head, of_node(definition), None)
        else:
            yield Listed(name, None, int(value) if equals else None)


LISTED = [*lines(PACKAGE), *lines(AIO)]
BY_NAME = {each.name: each for each in LISTED}


@cache
def stub() -> dict[str, list[list[Argument]]]:
    """What the peer publishes of its compiled functions: the signatures of each, several where it is overloaded."""
    path = Path(confluent_kafka.__file__).with_name("cimpl.pyi")
    found: dict[str, list[list[Argument]]] = {}
    for node in ast.parse(path.read_text()).body:
        for member in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(member, ast.FunctionDef):
                owner = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
                name = f"{owner}{member.name}".removesuffix(".__init__")
                found.setdefault(name, []).append(of_node(member))
    return found


def find(package: ModuleType, name: str) -> Any:
    """A listed name of a package, or of its asyncio module."""
    owner = package.aio if name.partition(".")[0] in confluent_kafka.aio.__all__ else package
    for part in name.split("."):
        owner = getattr(owner, part)
    return owner


def special(member: str) -> bool:
    return member in {"__enter__", "__exit__", "__aenter__", "__aexit__", "__len__", "__iter__", "__getitem__"}


def public_members(owner: type) -> set[str]:
    """What a class adds to its bases, or replaces; all of a compiled one."""
    found = {name for name in vars(owner) if not name.startswith("_") or special(name)}
    if isinstance(owner, enum.EnumType):
        return set(owner.__members__)
    return {name for name in found if not (owner.__name__ == "KafkaError" and name.isupper())}


def public_names(module: ModuleType, names: list[str]) -> set[str]:
    """All that a module has to offer, with the members of its classes."""
    found = set()
    for name in names:
        value = getattr(module, name)
        members = public_members(value) if inspect.isclass(value) else set[str]()
        found |= {f"{name}.{member}" for member in members}
        if not isinstance(value, ModuleType | enum.EnumType):
            found.add(name)
    return found


def test_the_list_has_every_public_name_of_the_package() -> None:
    names = [name for name in dir(confluent_kafka) if not name.startswith("_")]
    assert public_names(confluent_kafka, names) == {each.name for each in lines(PACKAGE)}


def test_the_list_has_every_public_name_of_the_asyncio_module() -> None:
    assert public_names(confluent_kafka.aio, confluent_kafka.aio.__all__) == {each.name for each in lines(AIO)}


def test_every_module_is_here_or_left_out_for_a_reason() -> None:
    modules = {name for name in dir(confluent_kafka) if isinstance(getattr(confluent_kafka, name), ModuleType)}
    asked_for = {name for name in modules if not name.startswith("_")} - {"avro", "schema_registry"}
    assert asked_for - {"kafkatest"} == MODULES_HERE | set(LEFT_OUT)
    for name in MODULES_HERE:
        importlib.import_module(f"headrace.{name}")


@pytest.mark.parametrize("name", INSIDE)
def test_what_is_left_out_of_the_asyncio_module_is_private_to_the_peer(name: str) -> None:
    module = importlib.import_module(f"confluent_kafka.{name}")
    own = {each for each, value in vars(module).items() if not each.startswith("_") and (
        getattr(value, "__module__", "") == module.__name__ and each != "logger")}
    assert own == INSIDE[name][1]
    assert not own & {*confluent_kafka.aio.__all__, *confluent_kafka.aio.producer.__all__, *headrace.aio.__all__}


def their_signatures(name: str) -> list[list[Argument]]:
    """All that the peer says of the arguments of a name; none where it says nothing."""
    value, (owner, _, member) = find(confluent_kafka, name), name.partition(".")
    if owner in CLASSES_OF_C or (not member and not inspect.isclass(value)):
        return stub().get(name, [])
    found = of_callable(value)
    if found == [Argument("*args"), Argument("**kwargs")]:
        blocking = "Consumer" if "Consumer" in owner else "Producer"
        return [BY_NAME[f"{blocking}.{member}"].arguments or []]
    return [found]


@pytest.mark.parametrize("listed", [each for each in LISTED if each.arguments is not None], ids=lambda each: each.name)
def test_the_arguments_that_are_listed_are_the_peers(listed: Listed) -> None:
    theirs = their_signatures(listed.name)
    assert listed.arguments is not None
    if listed.name in WRONG_IN_THE_STUB:
        assert theirs != [listed.arguments]
    elif len(theirs) < 2:
        assert theirs == ([] if listed.name in NOT_IN_THE_STUB else [listed.arguments])
    else:  # overloads: each has a part of them
        told = {argument.name.strip("*") for signature in theirs for argument in signature}
        assert {argument.name.strip("*") for argument in listed.arguments} == told


@pytest.mark.parametrize("listed", [each for each in LISTED if each.value is not None], ids=lambda each: each.name)
def test_a_constant_has_the_value_that_it_has_there(listed: Listed) -> None:
    theirs, ours = (getattr(found, "value", found) for found in (
        find(package, listed.name) for package in (confluent_kafka, headrace)))
    assert ours == theirs == listed.value


def takes(ours: list[Argument], wanted: list[Argument]) -> bool:
    """Whether a function takes what another one takes: by place, by name, and by default."""
    places = [each for each in wanted if not each.name.startswith("*")]
    stars = {each.name.count("*") for each in wanted} - {0}
    same = len(ours) >= len(places) and all(
        mine.name == each.name and (mine.default is not None if each.default == "..." else mine.default == each.default)
        for mine, each in zip(ours, places, strict=False))
    rest = ours[len(places):]
    return same and stars <= {each.name.count("*") for each in rest} and all(
        each.default is not None or each.name.startswith("*") for each in rest)


def our_arguments(name: str) -> list[Argument]:
    """Of a name of ours; of the plain twin, where the native one has no signature."""
    if name.startswith("Message") and not name.startswith("Messages"):
        return of_callable(find(headrace.records.message, name))
    function = find(headrace, name)
    if inspect.isclass(function):
        with contextlib.suppress(TypeError):
            function()  # a slotted class gets its `__init__` with its first value
    return of_callable(function)


@pytest.mark.parametrize("listed", LISTED, ids=lambda each: each.name)
def test_every_name_is_here_and_takes_the_same_arguments(listed: Listed) -> None:
    ours, theirs = find(headrace, listed.name), find(confluent_kafka, listed.name)
    assert callable(ours) == callable(theirs)
    assert inspect.isclass(ours) == inspect.isclass(theirs)
    assert inspect.iscoroutinefunction(ours) == inspect.iscoroutinefunction(theirs)
    if listed.arguments is not None and "__" not in listed.name:
        assert takes(our_arguments(listed.name), listed.arguments) is (listed.name not in DIFFERENT)


def test_two_signatures_that_differ_are_told_apart() -> None:
    def arguments(text: str) -> list[Argument]:
        (found,) = lines(f"f({text})")
        return found.arguments or []

    assert takes(arguments("a, b=1, c=None"), arguments("a, b=1"))
    for other in ("a", "a, c=1", "a, b=2", "b=1, a=1", "a, b=1, *, d", "a, b"):
        assert not takes(arguments(other), arguments("a, b=1")), other
    assert not takes(arguments("a, **kwargs"), arguments("a, *args, **kwargs"))
    assert takes(arguments("a=None, *, logger=None, **properties"), arguments("a=..., **kwargs"))


@pytest.mark.parametrize(("derived", "base"), {
    "DeserializingConsumer": "Consumer", "DeserializingShareConsumer": "ShareConsumer",
    "SerializingProducer": "Producer", "AsyncDeserializingConsumer": "AIOConsumer",
    "AsyncSerializingProducer": "AIOProducer"}.items())
def test_clients_of_objects_have_all_that_their_base_has_and_the_peers_are_generic(derived: str, base: str) -> None:
    assert issubclass(find(headrace, derived), find(headrace, base))
    theirs, ours = (hasattr(find(package, derived), "__class_getitem__") for package in (confluent_kafka, headrace))
    assert ours == theirs


def test_states_and_types_are_in_the_order_of_their_numbers() -> None:
    for name in ("ConsumerGroupState", "ConsumerGroupType", "ElectionType", "IsolationLevel"):
        theirs, ours = (sorted(getattr(package, name)) for package in (confluent_kafka, headrace))
        assert [each.name for each in ours] == [each.name for each in theirs]
    with pytest.raises(TypeError):
        headrace.ElectionType.PREFERRED < headrace.IsolationLevel.READ_COMMITTED  # type: ignore[operator]  # noqa: B015
