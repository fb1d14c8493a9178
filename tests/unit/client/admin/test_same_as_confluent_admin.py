"""The same administration on both packages: names, signatures, arguments that are taken or refused, texts, results.

Calls are written as text, which is run with the names of each package; `c` is its `AdminClient`, without a broker.
What differs has a reason.
"""

from __future__ import annotations

import ast
import copy
import enum
import importlib
import inspect
import operator
import pickle
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from types import ModuleType
from typing import Any

import confluent_kafka
import confluent_kafka.admin
import pytest

import headrace
import headrace.admin
import headrace.aio
from headrace.broker.faults import Action, Fault
from headrace.testing import EmbeddedBroker
from headrace.wire.messages.admin.topics import CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest
from tests.support.same_as_confluent import QUIET, by_name, same
from tests.support.told import settled, told

NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "error_cb": lambda error: None, "logger": QUIET,
           "socket.timeout.ms": 100}
PATIENCE_S = 20
TOPIC = 'c.create_topics([NewTopic("t")], {})'
CALLS = [
    *(TOPIC.format(f"{name}={value}") for name in ("request_timeout", "operation_timeout")
      for value in ("-1", "0", "3600", "3600.1", "'1'", "True")),
    *(TOPIC.format(f"validate_only={value}") for value in ("1", "0", "'maybe'", "None", "True")),
    *(f"c.create_topics([NewTopic({given})])" for given in (
        "'', 1", "'t', 0", "'t', -2", "'t', 100000", "'t', 100001", "'t', 1, 0", "'t', 1, -2", "'t', 1, 10000",
        "'t', 1, 10001", "'t', 2, 1, [[1], [2]]", "'t', 2, -1, [[1]]", "'t', 2, -1, [[1], [2]]", "'t', -1, -1, []",
        "'t', 1, -1, [[]]", "'t', config={'a': None}", "'t', config={}", "'t', config={'n': 5, 'b': True}")),
    "c.create_topics((NewTopic('t'),))", "c.create_topics([])", "c.create_topics(None)", "c.create_topics()",
    "c.create_topics([NewTopic('t'), NewTopic('t')])", "c.create_topics(new_topics=[NewTopic('t')])",
    "c.create_topics(topics=[NewTopic('t')])", "c.create_topics([NewTopic('t')], foo=1)",
    "c.create_topics([NewTopic('t')], True)",
    "c.delete_topics([])", "c.delete_topics(['a', 'a'])", "c.delete_topics('a')", "c.delete_topics(('a',))",
    "c.delete_topics([''])", "c.delete_topics([None])", "c.delete_topics(['a'], validate_only=True)",
    "c.create_partitions([])", "c.create_partitions(None)", "c.create_partitions([NewPartitions('t', 0)])",
    "c.create_partitions([NewPartitions('t', 100001)])",
    "c.create_partitions([NewPartitions('t', 2, [[1], [2], [3]])])",
    "c.create_partitions([NewPartitions('t', 2, [])])", "c.create_partitions([NewPartitions('t', 2, [[1]])])",
    "NewPartitions('t')", "NewPartitions()", "NewTopic()", "NewTopic(None)", "NewTopic(1)", "NewTopic('t', '2')",
    "NewTopic('t', 2.5)", "NewTopic('t', config=[1])",
    "c.describe_configs([])", "c.describe_configs([1])", "c.describe_configs([None])", "c.describe_configs(None)",
    "c.describe_configs([ConfigResource('topic', '')])", "c.describe_configs([ConfigResource('broker', 'x')])",
    "c.describe_configs([ConfigResource('broker', '1'), ConfigResource('broker', '2')])",
    "c.describe_configs([ConfigResource('topic', 'x')], broker=1)",
    "c.describe_configs([ConfigResource('topic', 'x')], broker='1')",
    "c.describe_configs([ConfigResource('topic', 'x')], broker=-5)",
    "c.describe_configs([ConfigResource('topic', 'x'), ConfigResource('topic', 'x')])",
    "c.describe_configs(ConfigResource('topic', 'x'))", "c.describe_configs([ConfigResource('topic', 5)])",
    "c.alter_configs([ConfigResource('topic', 'x', set_config={'a': None})])", "c.alter_configs([])",
    "c.alter_configs([1])", "c.alter_configs([ConfigResource('topic', 'x')], validate_only=1)",
    "ConfigResource(99, 'x')", "ConfigResource('nope', 'x')", "ConfigResource('topic', None)",
    "ConfigResource('ToPiC', 'x')", "ConfigResource(2, 'x')", "ConfigResource('topic', 5)", "ConfigResource('topic')",
    "c.incremental_alter_configs([1])", "c.incremental_alter_configs([ConfigResource('topic', 'x')])",
    *(f"c.incremental_alter_configs([ConfigResource('topic', 'x', incremental_configs={given})])" for given in (
        "[ConfigEntry('a', 'b')]", "'something'", "[]", "[1]",
        "[ConfigEntry('a', None, incremental_operation=AlterConfigOpType.SET)]",
        "[ConfigEntry('a', 5, incremental_operation=AlterConfigOpType.SET)]",
        "[ConfigEntry(None, 'b', incremental_operation=AlterConfigOpType.SET)]",
        "[ConfigEntry(5, 'b', incremental_operation=AlterConfigOpType.SET)]",
        "[ConfigEntry('a', None, incremental_operation=AlterConfigOpType.DELETE)]",
        "[ConfigEntry('a', 'b', incremental_operation=0)]")),
    "c.list_topics(5)", "c.list_topics(timeout='x')", "c.list_groups(5)", "c.list_groups(timeout='x')",
    *(f"c.list_consumer_groups({given})" for given in (
        "states=None", "states=set()", "states={1}", "states=[]", "states='EMPTY'", "states={ConsumerGroupState.EMPTY}",
        "types={ConsumerGroupType.CLASSIC}", "types={ConsumerGroupType.UNKNOWN}", "states={ConsumerGroupState.UNKNOWN}",
        "types=[1]", "types={1}", "types=None", "set()", "group_types=set()", "request_timeout=-1")),
    *(f"c.describe_consumer_groups({given})" for given in (
        "[None]", "['']", "['a', 'a']", "('a',)", "[]", "'a'", "['a'], include_authorized_operations='x'",
        "['a'], include_authorized_operations=1", "['a'], include_authorized_operations=True")),
    *(f"c.delete_consumer_groups({given})" for given in ("[1]", "['']", "['a', 'a']", "[None]", "[]", "'a'")),
    *(f"c.describe_topics({given})" for given in (
        "TopicCollection([''])", "TopicCollection(['a', 'a'])", "['a']", "TopicCollection([])", "TopicCollection([1])",
        "TopicCollection('a')", "TopicCollection(['a']), include_authorized_operations='x'", "",
        "TopicCollection(['a']), request_timeout=-1")),
    "c.describe_cluster(include_authorized_operations='x')", "c.describe_cluster(request_timeout=-1)",
    "c.describe_cluster(True)", "c.describe_cluster()",
    *(f"c.{call}_consumer_group_offsets({given})" for call in ("list", "alter") for given in (
        "None", "1", "''", "[]", "[ConsumerGroupTopicPartitions('g')]", "[ConsumerGroupTopicPartitions('')]",
        "[ConsumerGroupTopicPartitions(None)]", "[ConsumerGroupTopicPartitions([])]",
        "[ConsumerGroupTopicPartitions()]",
        "[ConsumerGroupTopicPartitions('g'), ConsumerGroupTopicPartitions('h')]",
        "[ConsumerGroupTopicPartitions('g', 't')]", "[ConsumerGroupTopicPartitions('g', [])]",
        "[ConsumerGroupTopicPartitions('g', [None])]", "[ConsumerGroupTopicPartitions('g', ['t'])]",
        "[ConsumerGroupTopicPartitions('g', [TopicPartition('', 0)])]",
        "[ConsumerGroupTopicPartitions('g', [TopicPartition('t')])]",
        "[ConsumerGroupTopicPartitions('g', [TopicPartition('t', 0)])]",
        "[ConsumerGroupTopicPartitions('g', [TopicPartition('t', 0, 5)])]",
        "[ConsumerGroupTopicPartitions('g', [TopicPartition('t', 0, -1001)])]")),
    "c.list_consumer_group_offsets([ConsumerGroupTopicPartitions('g')], require_stable='x')",
    "c.list_consumer_group_offsets([ConsumerGroupTopicPartitions('g')], require_stable=True)",
    *(f"c.{call}({given})" for call, kind in (("create_acls", "AclBinding"), ("delete_acls", "AclBindingFilter"))
      for given in ("None", "[]", "'topic'", "['topic']", "[None]",
                    f"[{kind}('topic', 'n', 'literal', 'User:a', '*', 'read', 'allow')]",
                    f"[{kind}('topic', 'n', 'literal', 'User:a', '*', 'read', 'allow')] * 2")),
    "c.create_acls([AclBindingFilter('topic', 'n', 'literal', 'User:a', '*', 'read', 'allow')])",
    "c.create_acls([AclBinding('unknown', 'n', 'literal', 'User:a', '*', 'read', 'allow')])",
    "c.create_acls([AclBinding('topic', 'n', 'literal', 'User:a', '*', 'unknown', 'allow')])",
    "c.delete_acls([AclBinding('topic', 'n', 'literal', 'User:a', '*', 'read', 'allow')])",
    "c.describe_acls(1)", "c.describe_acls()", "c.describe_acls(None)",
    "c.describe_acls(AclBindingFilter('any', None, 'any', None, None, 'any', 'any'))",
    *(f"{kind}({given})" for kind in ("AclBinding", "AclBindingFilter") for given in (
        "'topic', 'n', 'literal', 'User:a', '*', 'read', 'allow'",
        "'topic', 5, 'literal', 'User:a', '*', 'read', 'allow'",
        "'nope', 'n', 'literal', 'User:a', '*', 'read', 'allow'", "2, 'n', 3, 'User:a', '*', 3, 3",
        "99, 'n', 3, 'User:a', '*', 3, 3", "2.5, 'n', 3, 'User:a', '*', 3, 3", "None, 'n', 3, 'User:a', '*', 3, 3",
        "2, None, 3, 'User:a', '*', 3, 3", "2, 'n', None, 'User:a', '*', 3, 3", "2, 'n', 3, None, '*', 3, 3",
        "2, 'n', 3, 'User:a', None, 3, 3", "2, 'n', 3, 'User:a', '*', None, 3", "2, 'n', 3, 'User:a', '*', 3, None",
        "1, 'n', 3, 'User:a', '*', 3, 3", "2, 'n', 1, 'User:a', '*', 3, 3", "2, 'n', 2, 'User:a', '*', 3, 3",
        "2, 'n', 3, 'User:a', '*', 1, 3", "2, 'n', 3, 'User:a', '*', 3, 1", "0, 'n', 3, 'User:a', '*', 3, 3",
        "2, 'n', 0, 'User:a', '*', 3, 3", "2, 'n', 3, 'User:a', '*', 0, 3", "2, 'n', 3, 'User:a', '*', 3, 0")),
    "c.list_offsets({TopicPartition('t', 0): OffsetSpec.latest()}, isolation_level=1)", "c.list_offsets([])",
    "c.list_offsets({})", "c.list_offsets({TopicPartition('t', 0): OffsetSpec(-1)})",
    "c.list_offsets({TopicPartition('', 0): OffsetSpec.latest()})", "c.list_offsets({None: OffsetSpec.latest()})",
    "c.list_offsets({TopicPartition('t', 0): None})", "c.list_offsets({TopicPartition('t'): OffsetSpec.latest()})",
    "c.list_offsets({TopicPartition('t', 0): OffsetSpec.latest()}, isolation_level=IsolationLevel.READ_COMMITTED)",
    "OffsetSpec(-9)", "type(OffsetSpec(5)).__name__", "OffsetSpec()", "OffsetSpec.latest() is OffsetSpec(-1)",
    "OffsetSpec.earliest() < OffsetSpec.latest() < OffsetSpec.for_timestamp(5)",
    "OffsetSpec.for_timestamp(7).timestamp",
    "c.delete_records([])", "c.delete_records(())", "c.delete_records([1])",
    *(f"c.delete_records([TopicPartition({given})])" for given in ("'t', -1", "'t', 0", "'t', 0, -1", "'t', 0, -2")),
    *(f"c.elect_leaders({given})" for given in (
        "ElectionType.PREFERRED", "0", "ElectionType.PREFERRED, []", "ElectionType.UNCLEAN, [1]",
        "ElectionType.PREFERRED, [TopicPartition('t', -1)]", "ElectionType.PREFERRED, 'x'", "",
        "ElectionType.PREFERRED, [TopicPartition('t', 0)]", "ElectionType.PREFERRED, request_timeout=-1")),
    *(f"c.describe_user_scram_credentials({given})" for given in (
        "", "None", "[]", "['a', 'a']", "'a'", "10", "[None]", "['']", "['a', 'b'], request_timeout=1")),
    *(f"c.alter_user_scram_credentials({given})" for given in (
        "None", "234", "'test'", "[]", "[None]", "['test']", "[UserScramCredentialAlteration('a')]",
        "[UserScramCredentialAlteration('')]", "[UserScramCredentialAlteration(None)]",
        *(f"[UserScramCredentialUpsertion({up})]" for up in (
            "'a', ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), b'p'",
            "'a', ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), b'p', None",
            "'a', ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), b'p', b''",
            "'a', ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), b'p', 'x'",
            "'a', ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), b''",
            "'a', ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), None",
            "'a', ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 0), b'p'",
            "'a', ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 'x'), b'p'",
            "'a', ScramCredentialInfo('x', 1), b'p'", "'a', None, b'p'",
            "None, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 1), b'p'",
            "'', ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 1), b'p'")),
        "[UserScramCredentialDeletion('a', ScramMechanism.SCRAM_SHA_256)]", "[UserScramCredentialDeletion('a', 1)]",
        "[UserScramCredentialDeletion('', ScramMechanism.SCRAM_SHA_256)]", "[UserScramCredentialDeletion('a', None)]")),
    "c.set_sasl_credentials('a')", "c.set_sasl_credentials('a', None)", "c.set_sasl_credentials(1, 2)",
    "c.poll('x')", "type(c.poll(0)).__name__", "type(c.poll(timeout=0.01)).__name__",
    "c.cluster_id('x')", "AdminClient()", "AdminClient(None)",
    "AdminClient('x')", "AdminClient({'no.such': 1})", "AdminClient({}, no_such=1)", "AdminClient(conf={}) is not None",
    "AdminClient({}, logger=None) is not None",
    # What values look like, and which are equal.
    "NewTopic('a') < NewTopic('b') <= NewTopic('b', 2) > NewTopic('a', 9)", "NewTopic('a') == NewTopic('a', 2)",
    "NewTopic('a', 3, 2) == NewTopic('a', 3, 1)", "NewTopic('a', 3) != NewTopic('a', 3)",
    "len({NewTopic('a'), NewTopic('a'), NewTopic('b')})", "len({NewPartitions('a', 1), NewPartitions('a', 1)})",
    "NewPartitions('a', 1) < NewPartitions('a', 2) >= NewPartitions('a', 1)",
    "NewPartitions('a', 1) == NewPartitions('a', 2)",
    *(f"{show}({value})" for show in ("repr", "str") for value in (
        "NewTopic('t')", "NewTopic('t', 3)", "NewPartitions('t', 3)", "ConfigResource('topic', 'x')",
        "ConfigEntry('a', 'b')", "ConfigEntry('a', None)", "ConfigResource('topic', 'x', error=KafkaError(3, 'why'))",
        "AclBinding('topic', 'n', 'literal', 'User:a', '*', 'read', 'allow')",
        "AclBindingFilter('any', None, 'any', None, None, 'any', 'any')", "ClusterMetadata()", "BrokerMetadata()",
        "TopicMetadata()", "PartitionMetadata()", "GroupMetadata()")),
    "NewTopic('t').config", "NewTopic('t').replica_assignment", "NewTopic('t').num_partitions",
    "NewTopic('t').replication_factor", "NewPartitions('t', 2).replica_assignment",
    "len(ConfigResource('topic', 'a', set_config={'a': 'b'}))", "bool(ConfigResource('topic', 'a'))",
    "ConfigResource('topic', 'a') == ConfigResource(2, 'a')",
    "ConfigResource('topic', 'a') < ConfigResource('broker', 'b')",
    "len({ConfigResource('topic', 'a'), ConfigResource('topic', 'a')})", "ConfigResource('topic', 'a').restype_int",
    "ConfigResource('topic', 'a').configs", "ConfigEntry('a', 'b').source.name", "ConfigEntry('a', 'b').synonyms",
    "ConfigEntry('a', 'b').incremental_operation", "ListConsumerGroupsResult().valid",
    "ListConsumerGroupsResult().errors",
    "MemberAssignment(None).topic_partitions", "DescribeClusterResult(None, []).authorized_operations",
    "DescribeClusterResult(None, [], 'c', ['read', 4]).authorized_operations[1].name",
    "ConsumerGroupDescription('g', False, [], 'range', 'stable', None, [3]).authorized_operations[0].name",
    "ConsumerGroupDescription('g', False, [], 'range', 3, None).state.name",
    "ConsumerGroupDescription('g', False, [], 'range', None, None).type.name",
    "ConsumerGroupListing('g', True, 'empty', 'classic').type.name", "ConsumerGroupListing('g', True, 'nope')",
    "ListOffsetsResultInfo(1, 2, -1).leader_epoch", "ListOffsetsResultInfo(1, 2, 3).leader_epoch",
    "MemberDescription('m', 'c', 'h', MemberAssignment([])).target_assignment",
    "TopicDescription('t', None, False, [], ['all']).authorized_operations[0].name",
    "AclBinding(2, 'n', 3, 'User:a', '*', 3, 3) == AclBinding('topic', 'n', 'literal', 'User:a', '*', 'read', 'allow')",
    "AclBinding(2, 'a', 3, 'User:a', '*', 3, 3) < AclBinding(2, 'b', 3, 'User:a', '*', 3, 3)",
]
SIGNATURE_SAYS = "the published signature allows None, and so do we"
REFUSED_SOONER = "the peer takes it, and the future fails; here it is refused at once"
REASONS = {
    "c.create_topics([NewTopic('t')], request_timeout=None)": SIGNATURE_SAYS,
    "c.create_topics([NewTopic('t')], operation_timeout=None)": SIGNATURE_SAYS,
    "NewTopic('t', config=None).config": SIGNATURE_SAYS,
    "c.create_topics([NewTopic('t', 1, -1, None)])": SIGNATURE_SAYS,
    "c.create_topics([NewTopic('t', 1, -1, [['a']])])": "TypeError, from NewTopic already",
    "c.create_topics([NewTopic('t', config={1: 2})])": "names of properties are text",
    "c.create_topics([1])": "TypeError in place of an AttributeError",
    "c.create_partitions([1])": "TypeError in place of an AttributeError",
    "c.delete_topics([1])": "a number is no name: the peer makes text of it",
    "c.describe_consumer_groups([1])": "a number is no name: the peer makes text of it",
    "c.describe_configs([ConfigResource('any', 'x')])": REFUSED_SOONER,
    "c.describe_configs([ConfigResource('unknown', 'x')])": REFUSED_SOONER,
    "c.describe_configs([ConfigResource('transactional_id', 'x')])": REFUSED_SOONER,
    "c.describe_configs([ConfigResource('topic', 'x')], broker=-1)": "-1 is the default of the published signature",
    "ConfigResource('topic', 'x', set_config=[1])": "a list is no dict",
    "ConfigResource(1.5, 'x')": "TypeError in place of an AttributeError",
    "c.list_consumer_groups(states=frozenset())": "a frozenset is as good",
    "c.set_sasl_credentials('', '')": "a broker refuses them: so do we, at once, as our other clients do",
    "OffsetSpec.for_timestamp('x')": "a time is a number",
    "NewTopic('a') == 1": "False, as everywhere in Python",
    "OffsetSpec.for_timestamp(4) == OffsetSpec.for_timestamp(4)": "equal times are equal",
}
"""What is different, and why."""


@pytest.fixture(scope="module")
def clients() -> Iterator[dict[ModuleType, Any]]:
    with headrace.admin.AdminClient(NOWHERE) as ours:
        yield {confluent_kafka: confluent_kafka.admin.AdminClient(NOWHERE), headrace: ours}


def shape(found: Any) -> Any:
    """What was returned, in a form that can be compared: futures by what they are for."""
    if isinstance(found, dict):
        return sorted(str(key).partition(",offset")[0] for key in found)
    if found is None or isinstance(found, (str, int, bool, list)):
        return found
    return "Future" if isinstance(found, Future) else type(found).__name__


def called(text: str, kafka: ModuleType, clients: dict[ModuleType, Any]) -> Any:
    return eval(text, {**vars(kafka.admin), **public(kafka), "c": clients[kafka]})


def run(text: str, kafka: ModuleType, clients: dict[ModuleType, Any]) -> Any:
    """What a call returns; or the error that it raises."""
    try:
        return shape(called(text, kafka, clients))
    except Exception as error:
        return error


def public(kafka: ModuleType) -> dict[str, Any]:
    names = ("ConsumerGroupState", "ConsumerGroupType", "ConsumerGroupTopicPartitions", "ElectionType",
             "IsolationLevel", "KafkaError", "TopicCollection", "TopicPartition")
    return {name: getattr(kafka, name) for name in names}


def alike(theirs: Any, ours: Any) -> bool:
    """Whether a program sees the same: it catches what it caught before."""
    if isinstance(theirs, Exception):
        kind = next(kind for kind in (TypeError, ValueError, KeyError, Exception) if isinstance(theirs, kind))
        if isinstance(theirs, confluent_kafka.KafkaException):
            return isinstance(ours, headrace.KafkaException) and ours.args[0].code() == theirs.args[0].code()
        return isinstance(ours, kind)
    return not isinstance(ours, Exception) and ours == theirs


@pytest.mark.filterwarnings("ignore::DeprecationWarning:confluent_kafka")
@pytest.mark.filterwarnings("ignore:.*incremental_alter_configs:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*list_groups:DeprecationWarning")
@pytest.mark.parametrize("text", CALLS)
def test_a_call_is_taken_or_refused_as_there(text: str, clients: dict[ModuleType, Any]) -> None:
    theirs, ours = run(text, confluent_kafka, clients), run(text, headrace, clients)
    assert alike(theirs, ours), f"there {theirs!r}, here {ours!r}"


@pytest.mark.parametrize("text", REASONS)
def test_what_differs_does_so_for_a_reason(text: str, clients: dict[ModuleType, Any]) -> None:
    theirs, ours = run(text, confluent_kafka, clients), run(text, headrace, clients)
    assert not alike(theirs, ours) or type(theirs) is not type(ours)


TEXTS = {
    "c.delete_records(None)": "Expected Request to be a list, got 'NoneType'",
    "c.delete_records('x')": "Expected Request to be a list, got 'str'",
    "c.delete_records([TopicPartition('t', 0), 'x'])":
        "Element of the request list must be of type 'TopicPartition' got 'str'",
    "c.elect_leaders(ElectionType.PREFERRED, 'x')": "Expected 'partitions' to be a list, got 'str'",
    "c.elect_leaders(ElectionType.PREFERRED, ['x'])":
        "Element of the 'partitions' list must be of type 'TopicPartition' got 'str'",
    "c.elect_leaders(ElectionType.PREFERRED, [None])":
        "Element of the 'partitions' list must be of type 'TopicPartition' got 'NoneType'",
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_wrong_argument_is_refused_in_the_same_words(text: str, clients: dict[ModuleType, Any]) -> None:
    for kafka in (confluent_kafka, headrace):
        refused = run(text, kafka, clients)
        assert type(refused) is TypeError
        assert str(refused).startswith(TEXTS[text])


SET = "incremental_operation=AlterConfigOpType.SET"
REFUSED_BY_FUTURES = [
    *(f"c.{call}_consumer_group_offsets([ConsumerGroupTopicPartitions('g', [TopicPartition({given})] * 2)])"
      for call, given in (("list", "'t', 0"), ("alter", "'t', 0, 5"))),
    "c.alter_consumer_group_offsets([ConsumerGroupTopicPartitions('g', [TopicPartition('t', 0, 5), "
    "TopicPartition('t', 1, 5), TopicPartition('t', 0, 6)])])",
    "c.delete_records([TopicPartition('t', 0, 1), TopicPartition('t', 1, 1), TopicPartition('t', 0, -1)])",
    "c.elect_leaders(ElectionType.PREFERRED, [TopicPartition('t', 0)] * 2)",
    "c.describe_consumer_groups(['a', 'b', 'a'])", "c.delete_consumer_groups(['a', 'b', 'a'])",
    "c.describe_user_scram_credentials(['a', 'b', 'a'])", "c.describe_topics(TopicCollection(['a', 'b', 'a']))",
    f"c.incremental_alter_configs([ConfigResource('topic', name, incremental_configs=[ConfigEntry('a', 'b', {SET})]) "
    "for name in ('t', 'u', 't')])",
    "c.incremental_alter_configs([ConfigResource('topic', 't', incremental_configs=["
    f"ConfigEntry('a', value, {SET}) for value in 'bc'])])",
    "c.describe_configs([ConfigResource('broker', 'x'), ConfigResource('topic', 't')])",
    "c.describe_configs([ConfigResource('broker', '-1')])",
    "c.alter_configs([ConfigResource('broker', 'x', set_config={'a': 'b'})])",
    f"c.incremental_alter_configs([ConfigResource('broker', 'x', incremental_configs=[ConfigEntry('a', 'b', {SET})])])",
    *(f"c.list_offsets({{TopicPartition('t', 0): OffsetSpec.for_timestamp({time}), "
      "TopicPartition('t', 1): OffsetSpec.latest()})" for time in (-4, -5, -2**63)),
    "c.alter_user_scram_credentials([UserScramCredentialUpsertion(name, ScramCredentialInfo(kind, 5000), b'p') "
    "for name, kind in (('a', ScramMechanism.SCRAM_SHA_256), ('b', ScramMechanism.UNKNOWN))])",
    "c.alter_user_scram_credentials([UserScramCredentialDeletion('a', ScramMechanism.UNKNOWN)])",
]


@pytest.mark.filterwarnings("ignore:.*incremental_alter_configs:DeprecationWarning")
@pytest.mark.parametrize("text", REFUSED_BY_FUTURES)
def test_what_is_there_twice_or_has_no_meaning_fails_every_future(text: str, clients: dict[ModuleType, Any]) -> None:
    theirs, ours = (settled(called(text, kafka, clients)) for kafka in (confluent_kafka, headrace))
    assert ours == theirs
    assert set(ours.values() if isinstance(ours, dict) else [ours]) == {headrace.KafkaError._INVALID_ARG}


@pytest.mark.parametrize("text", ["c.list_groups(timeout=0.1)", "c.alter_configs([ConfigResource('topic', 't')])"])
def test_calls_of_before_are_warned_of_in_the_same_words_where_they_stand(
    text: str, clients: dict[ModuleType, Any]
) -> None:
    def warnings_of(kafka: ModuleType) -> list[tuple[str, str]]:
        with pytest.deprecated_call() as told:
            run(text, kafka, clients)
        return [(str(each.message), each.filename) for each in told]

    assert warnings_of(headrace) == warnings_of(confluent_kafka)


def test_brokers_that_nobody_answers_for_are_an_error_in_the_list_of_groups(clients: dict[ModuleType, Any]) -> None:
    def listed(kafka: ModuleType) -> Any:
        found = clients[kafka].list_consumer_groups(request_timeout=0.2).result(PATIENCE_S)
        return [(type(error).__name__, error.code()) for error in found.errors], found.valid

    assert same(listed) == ([("KafkaError", headrace.KafkaError._TIMED_OUT)], [])


# A client that is closed, was not made, or is made again

USED = [
    "c.create_topics([NewTopic('t', 1)])", "c.delete_topics(['t'])", "c.create_partitions([NewPartitions('t', 2)])",
    "c.describe_configs([ConfigResource('topic', 't')])", "c.alter_configs([ConfigResource('topic', 't')])",
    "c.incremental_alter_configs([ConfigResource('topic', 't', incremental_configs=[ConfigEntry("
    "'a', 'b', incremental_operation=AlterConfigOpType.SET)])])",
    "c.create_acls([AclBinding('topic', 'n', 'literal', 'User:a', '*', 'read', 'allow')])",
    "c.describe_acls(AclBindingFilter('any', None, 'any', None, None, 'any', 'any'))",
    "c.delete_acls([AclBindingFilter('any', None, 'any', None, None, 'any', 'any')])",
    "c.list_consumer_groups()", "c.describe_consumer_groups(['g'])", "c.delete_consumer_groups(['g'])",
    "c.list_consumer_group_offsets([ConsumerGroupTopicPartitions('g')])",
    "c.alter_consumer_group_offsets([ConsumerGroupTopicPartitions('g', [TopicPartition('t', 0, 5)])])",
    "c.list_offsets({TopicPartition('t', 0): OffsetSpec.latest()})", "c.delete_records([TopicPartition('t', 0, 1)])",
    "c.elect_leaders(ElectionType.PREFERRED, [TopicPartition('t', 0)])", "c.describe_cluster()",
    "c.describe_topics(TopicCollection(['t']))", "c.describe_user_scram_credentials(['u'])",
    "c.alter_user_scram_credentials([UserScramCredentialDeletion('u', ScramMechanism.SCRAM_SHA_256)])",
    "c.poll(0)", "c.list_topics(timeout=0.1)", "c.list_groups(timeout=0.1)", "c.cluster_id(0.1)",
    "c.set_sasl_credentials('u', 'p')", "len(c)", "bool(c)", "c.__enter__() is c", "c.__exit__(None, None, None)",
    "c.no_such",
]


@pytest.fixture(scope="module")
def closed() -> dict[ModuleType, Any]:
    made = {confluent_kafka: confluent_kafka.admin.AdminClient(NOWHERE), headrace: headrace.admin.AdminClient(NOWHERE)}
    for client in made.values():
        client.__exit__(None, None, None)
    return made


def said(text: str, kafka: ModuleType, clients: dict[ModuleType, Any]) -> Any:
    found = run(text, kafka, clients)
    return str(found).partition(":")[0] if isinstance(found, RuntimeError) else type(found) if isinstance(
        found, Exception) else found


@pytest.mark.filterwarnings("ignore::DeprecationWarning:confluent_kafka")
@pytest.mark.filterwarnings("ignore:.*incremental_alter_configs:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*list_groups:DeprecationWarning")
@pytest.mark.parametrize("text", USED)
def test_a_client_that_is_closed_or_was_not_made_refuses_in_the_same_words(
    text: str, closed: dict[ModuleType, Any]
) -> None:
    not_made = {kafka: type("Mine", (kafka.admin.AdminClient,), {"__init__": lambda self: None})()
                for kafka in (confluent_kafka, headrace)}
    for clients in (closed, not_made):
        assert said(text, headrace, clients) == said(text, confluent_kafka, clients)


def test_what_headrace_adds_is_closed_in_a_client_that_was_not_made() -> None:
    admin = type("Mine", (headrace.admin.AdminClient,), {"__init__": lambda self: None})()
    for call in (admin.describe_features, admin.list_transactions, admin.list_share_groups):
        with pytest.raises(headrace.errors.ClientClosedError, match="AdminClient has been closed: its __init__"):
            call()
    admin.close()


def test_one_that_is_made_again_is_refused_and_goes_on() -> None:
    with EmbeddedBroker(topics={"t": 1}) as broker:
        for kafka in (confluent_kafka, headrace):
            client = kafka.admin.AdminClient({"bootstrap.servers": broker.bootstrap_servers, "logger": QUIET})
            for given in ({}, NOWHERE):
                with pytest.raises(RuntimeError, match="Admin already __init__:ialized"):
                    client.__init__(given)  # type: ignore[misc]
            assert list(client.list_topics(timeout=10).topics) == ["t"]
            client.__exit__(None, None, None)
        client.__init__({"bootstrap.servers": broker.bootstrap_servers})  # type: ignore[misc]
        assert list(client.list_topics(timeout=10).topics) == ["t"]  # the peer does not come back from its next end
        client.close()


# Names and signatures

OURS = headrace.admin
PUBLIC = sorted(name for name in dir(confluent_kafka.admin) if not name.startswith("_") and name not in {
    "Any", "Dict", "List", "Optional", "Set", "Tuple", "Union", "concurrent", "string_type", "warnings"})
"""All that the peer's module offers, without what it imports for itself."""
FOR_PROGRAMS_THAT_READ_ITS_SOURCE = ("_ConsumerGroupState", "_ConsumerGroupTopicPartitions", "_ConsumerGroupType",
                                     "_ElectionType", "_IsolationLevel", "_TopicCollection", "_TopicPartition")
SPECS = ("EarliestSpec", "LatestSpec", "MaxTimestampSpec", "TimestampSpec")


@pytest.mark.parametrize("name", [*PUBLIC, *FOR_PROGRAMS_THAT_READ_ITS_SOURCE])
def test_every_name_of_the_module_is_here(name: str) -> None:
    theirs, ours = getattr(confluent_kafka.admin, name), getattr(OURS, name)
    if isinstance(theirs, enum.EnumType):
        assert {key: each.value for key, each in theirs.__members__.items()}.items() <= {
            key: each.value for key, each in ours.__members__.items()}.items()
    elif isinstance(theirs, int):
        assert ours == theirs
    elif inspect.isclass(theirs):
        missing = {each for each in vars(theirs) if not each.startswith("_")} - set(dir(ours))
        shown = ours("t", 1) if name in ("NewTopic", "NewPartitions") else None
        assert {each for each in missing if not hasattr(shown, each)} == set()


def test_kinds_of_offsets_have_their_names() -> None:
    specs = [OURS.EarliestSpec(), OURS.LatestSpec(), OURS.MaxTimestampSpec(), OURS.TimestampSpec(5)]
    assert [type(each).__name__ for each in specs] == list(SPECS)
    assert specs[:3] == [OURS.OffsetSpec.earliest(), OURS.OffsetSpec.latest(), OURS.OffsetSpec.max_timestamp()]


VALUES = [name for name in PUBLIC if inspect.isclass(getattr(confluent_kafka.admin, name)) and name not in (
    "AdminClient", "KafkaError", "KafkaException", "NewTopic", "NewPartitions", "OffsetSpec")
    and not isinstance(getattr(confluent_kafka.admin, name), enum.EnumType)]
MADE_WITHOUT = ("BrokerMetadata", "ClusterMetadata", "GroupMember", "GroupMetadata", "PartitionMetadata",
                "TopicMetadata")
"""The peer makes these without arguments; ours take their fields."""


@pytest.mark.parametrize("name", [name for name in VALUES if name not in MADE_WITHOUT])
def test_values_are_made_of_the_same_arguments(name: str) -> None:
    theirs, ours = (list(inspect.signature(getattr(module, name)).parameters.values())
                    for module in (confluent_kafka.admin, OURS))
    assert [each.name for each in ours] == [each.name for each in theirs]
    assert [each.default is not each.empty for each in ours] >= [each.default is not each.empty for each in theirs]


MADE = (
    "ConfigEntry('a', 'b')", "ConfigResource('topic', 't')", "ListOffsetsResultInfo(1, 2, 3)", "DeletedRecords(1)",
    "TopicDescription('t', None, False, [])", "DescribeClusterResult(None, [])", "ConsumerGroupListing('g', True)",
    "ListConsumerGroupsResult()", "MemberAssignment([])", "MemberDescription('m', 'c', 'h', MemberAssignment([]))",
    "ConsumerGroupDescription('g', False, [], 'range', 'empty', None)", "ScramCredentialInfo(None, 1)",
    "UserScramCredentialsDescription('u', [])", "UserScramCredentialDeletion('u', None)",
    "UserScramCredentialUpsertion('u', None, b'p')", "OffsetSpec.for_timestamp(5)",
    "AclBinding('topic', 'n', 'literal', 'User:a', '*', 'read', 'allow')")


@pytest.mark.parametrize("text", MADE)
def test_values_show_the_same_attributes(text: str) -> None:
    theirs, ours = (eval(text, vars(module)) for module in (confluent_kafka.admin, OURS))
    assert {name for name in vars(theirs) if not hasattr(ours, name)} == set()
    assert all(getattr(ours, name) == value for name, value in vars(theirs).items() if name.endswith("_int"))
    assert isinstance(ours, OURS.OffsetSpec) or vars(ours)


@pytest.mark.parametrize("module", ["", ".admin"])
def test_what_may_be_a_key_there_may_be_one_here(module: str) -> None:
    theirs, ours = (importlib.import_module(f"{package}{module}") for package in ("confluent_kafka", "headrace"))
    classes = [name for name in dir(theirs) if not name.startswith("_") and inspect.isclass(getattr(theirs, name))]
    hashable = [name for name in classes if getattr(theirs, name).__hash__ is not None]
    assert len(hashable) > 5
    assert [name for name in hashable if getattr(ours, name, object).__hash__ is None] == []


@pytest.mark.parametrize("text", [
    *MADE, "OffsetSpec.latest()", "NewTopic('t', 3, config={'a': 'b'})", "NewPartitions('t', 3)"])
def test_values_of_equal_fields_are_equal_members_of_sets_and_travel(text: str) -> None:
    first, second = (eval(text, vars(OURS)) for _ in range(2))
    assert len({first, second, copy.copy(first), copy.deepcopy(first), pickle.loads(pickle.dumps(first))}) == 1
    assert first != 3


@pytest.mark.parametrize("name", MADE_WITHOUT)
def test_descriptions_of_a_cluster_have_the_same_fields(name: str) -> None:
    theirs, ours = getattr(confluent_kafka.admin, name)(), getattr(OURS, name)()
    assert {each: getattr(ours, each) for each in vars(theirs)} == vars(theirs)


def stub() -> dict[str, list[str]]:
    """Options of the peer's calls: what its published signatures have beside the things and the future."""
    path = Path(confluent_kafka.__file__).with_name("cimpl.pyi")
    (client,) = [node for node in ast.parse(path.read_text()).body
                 if isinstance(node, ast.ClassDef) and node.name == "_AdminClientImpl"]
    return {node.name: [each.arg for each in node.args.args[-len(node.args.defaults):]] if node.args.defaults else []
            for node in client.body if isinstance(node, ast.FunctionDef)}


BY_ANOTHER_NAME = {"states_int": "states", "types_int": "types", "isolation_level_value": "isolation_level"}
"""The face translates these for the compiled client."""
METHODS = [name for name in dir(confluent_kafka.admin.AdminClient) if not name.startswith("_")]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_takes_the_same_arguments(name: str) -> None:
    method = getattr(confluent_kafka.admin.AdminClient, name)
    written = inspect.signature(method).parameters.values() if inspect.isfunction(method) else ()
    first = [each.name for each in written if each.kind is each.POSITIONAL_OR_KEYWORD]
    for face in (headrace.admin.AdminClient, headrace.aio.AIOAdminClient):
        if name == "poll" and face is headrace.aio.AIOAdminClient:
            continue  # callbacks run on the loop by themselves
        ours = inspect.signature(getattr(face, name)).parameters
        assert list(ours)[:len(first)] == first
        assert {BY_ANOTHER_NAME.get(each, each) for each in stub()[name]} <= set(ours)


# Results, at the embedded broker

@pytest.fixture(scope="module")
def served() -> Iterator[dict[ModuleType, Any]]:
    """A client of each package, at one broker with records and a group."""
    with EmbeddedBroker(topics={"t": 2}) as broker:
        conf = {"bootstrap.servers": broker.bootstrap_servers, "logger": QUIET}
        with headrace.Producer(conf) as producer:
            for number in range(10):
                producer.produce("t", str(number), partition=0, timestamp=1000 + number)
        with headrace.admin.AdminClient(conf) as ours:
            peer = confluent_kafka.admin.AdminClient(conf)
            wanted = headrace.ConsumerGroupTopicPartitions("g", [headrace.TopicPartition("t", 0, 4)])
            ours.alter_consumer_group_offsets([wanted])["g"].result(PATIENCE_S)
            yield {confluent_kafka: peer, headrace: ours}


@by_name({
    "offsets": lambda k, a: a.list_offsets({k.TopicPartition("t", 0): k.admin.OffsetSpec.latest(),
                                            k.TopicPartition("t", 1): k.admin.OffsetSpec.earliest(),
                                            k.TopicPartition("t", 7): k.admin.OffsetSpec.earliest()}),
    "offsets by time": lambda k, a: a.list_offsets({k.TopicPartition("t", 0): k.admin.OffsetSpec.for_timestamp(1004)}),
    "the greatest time": lambda k, a: a.list_offsets({k.TopicPartition("t", 0): k.admin.OffsetSpec.max_timestamp()}),
    "topics": lambda k, a: a.describe_topics(k.TopicCollection(["t", "nowhere"])),
    "a group": lambda k, a: a.describe_consumer_groups(["g", "nobody"]),
    "offsets of a group": lambda k, a: a.list_consumer_group_offsets([k.ConsumerGroupTopicPartitions("g")]),
    "offsets of some partitions": lambda k, a: a.list_consumer_group_offsets([
        k.ConsumerGroupTopicPartitions("g", [k.TopicPartition("t", 0), k.TopicPartition("t", 1)])]),
    "offsets that are set": lambda k, a: a.alter_consumer_group_offsets([
        k.ConsumerGroupTopicPartitions("g", [k.TopicPartition("t", 0, 5)])]),
    "a topic that is there": lambda k, a: a.create_topics([k.admin.NewTopic("t", 1)]),
    "a topic that could be": lambda k, a: a.create_topics([k.admin.NewTopic("new", 1)], validate_only=True),
    "a topic that is not there": lambda k, a: a.delete_topics(["nowhere"]),
    "fewer partitions": lambda k, a: a.create_partitions([k.admin.NewPartitions("t", 1)]),
    "a group that is not there": lambda k, a: a.delete_consumer_groups(["nobody"]),
    "records": lambda k, a: a.delete_records([k.TopicPartition("t", 1, -1), k.TopicPartition("t", 0, 99)]),
    "offsets that are none": lambda k, a: a.delete_records([k.TopicPartition("t", 0), k.TopicPartition("t", 1, -2)]),
    "a property that is wrong": lambda k, a: a.incremental_alter_configs([k.admin.ConfigResource(
        "topic", "t", incremental_configs=[k.admin.ConfigEntry(
            "retention.ms", "x", incremental_operation=k.admin.AlterConfigOpType.SET)])]),
})
def test_futures_end_the_same(case: Any, served: dict[ModuleType, Any]) -> None:
    same(lambda kafka: settled(case(kafka, served[kafka])), side_by_side=False)


@pytest.mark.parametrize("timeout", [0, 1.5], ids=["begun", "waited for"])
@by_name({
    "created": (CreateTopicsRequest, lambda kafka, name, time: kafka[0].create_topics(
        [kafka[1].NewTopic(name, 1, 1)], operation_timeout=time)),
    "grown": (CreatePartitionsRequest, lambda kafka, name, time: kafka[0].create_partitions(
        [kafka[1].NewPartitions(name, 3)], operation_timeout=time)),
    "deleted": (DeleteTopicsRequest, lambda kafka, name, time: kafka[0].delete_topics([name], operation_timeout=time)),
})
def test_work_on_topics_that_is_not_waited_for_may_take_longer(case: Any, timeout: float) -> None:
    request, call = case
    with EmbeddedBroker(topics={"t": 1}) as broker:
        ends, late = [], headrace.KafkaError.REQUEST_TIMED_OUT
        for kafka in (confluent_kafka, headrace):
            broker.add_fault(Fault(action=Action.ERROR, request=request, error_code=late))
            client = kafka.admin.AdminClient({"bootstrap.servers": broker.bootstrap_servers, "logger": QUIET})
            (future,) = call((client, kafka.admin), "t", timeout).values()
            error = future.exception(10)
            ends.append(None if error is None else error.args[0].code())
    assert ends == [None if timeout == 0 else late] * 2


def test_rules_of_a_cluster_that_has_none_are_an_error_and_not_an_empty_list(served: dict[ModuleType, Any]) -> None:
    """The peer does not look at the error of this reply; Java's client does."""
    def rules(kafka: ModuleType) -> Any:
        return served[kafka].describe_acls(kafka.admin.AclBindingFilter("any", None, "any", None, None, "any", "any"))

    assert settled(rules(confluent_kafka)) == []
    assert settled(rules(headrace)) == headrace.KafkaError.SECURITY_DISABLED


def test_groups_are_listed_the_same(served: dict[ModuleType, Any]) -> None:
    def listed(kafka: ModuleType) -> Any:
        found = served[kafka].list_consumer_groups().result(PATIENCE_S)
        return [(each.group_id, each.is_simple_consumer_group, each.state.name, each.type.name)
                for each in found.valid], found.errors

    assert same(listed)[0] != []


def test_the_cluster_is_described_the_same(served: dict[ModuleType, Any]) -> None:
    same(lambda kafka: told(served[kafka].describe_cluster().result(PATIENCE_S)))
    same(lambda kafka: served[kafka].cluster_id(PATIENCE_S))
    same(lambda kafka: {name: repr(each) for name, each in served[kafka].list_topics(timeout=10).topics.items()
                        if not name.startswith("__")})


def test_a_configuration_is_read_the_same(served: dict[ModuleType, Any]) -> None:
    def read(kafka: ModuleType) -> Any:
        resource = kafka.admin.ConfigResource("topic", "t")
        entries = served[kafka].describe_configs([resource])[resource].result(PATIENCE_S)
        return sorted(map(operator.attrgetter("name", "value", "is_read_only", "is_default", "is_sensitive"),
                          entries.values()))

    assert len(same(read)) > 10
