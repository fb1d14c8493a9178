"""`headrace run --dry-run`: what brokers and registry say about a pipeline before anything runs.

Each check asks one thing and gives one finding; one that cannot be made is a problem, too. Nothing is created or
written, and no Spark starts. Read next: `headrace.spark.pipeline.endpoints`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from headrace.admin import AclOperation, AdminClient, OffsetSpec
from headrace.errors import ConfigError, KafkaException
from headrace.schemas.parsed import InvalidSchemaError
from headrace.spark.pipeline.declared import EMBEDDED, EXACTLY_ONCE, REGISTERED, Input, Sink
from headrace.spark.pipeline.endpoints import Endpoints
from headrace.types.cluster import TopicCollection
from headrace.types.records import TopicPartition
from headrace.values.schema_formats import SchemaText, schema_format
from headrace.values.value_format import ValueFormat

if TYPE_CHECKING:
    from headrace.schema_registry import SchemaRegistryClient
    from headrace.types.admin import TopicDescription

__all__ = ["Finding", "findings"]

_TIMEOUT_S: Final = 20.0
_KINDS: Final = {"avro": "AVRO", "protobuf": "PROTOBUF", "json-schema": "JSON"}


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found.

    Attributes:
        what: what was looked at, for example "source flights".
        good: whether the pipeline can run with it.
        text: what is there, or what is wrong and what to do.
    """

    what: str
    good: bool
    text: str


def findings(endpoints: Endpoints) -> Iterator[Finding]:
    """Check brokers, topics, rights and schemas, one after the other.

    Args:
        endpoints: options of the pipeline's reads and writes.
    """
    if endpoints.embedded:
        yield Finding("brokers", True, "embedded: they begin with the run, without topics, so nothing more is checked")
        return
    with _admin(endpoints.kafka) as admin:
        brokers = _tried("brokers", partial(_brokers, admin, endpoints))
    yield brokers
    if brokers.good:
        yield from _topics(endpoints)
    yield from _schemas(endpoints)


def _admin(client: Mapping[str, str]) -> AdminClient:
    return AdminClient({**client, "error_cb": lambda error: None})  # findings say it


def _tried(what: str, check: Callable[[], tuple[bool, str]]) -> Finding:
    try:
        return Finding(what, *check())
    except KafkaException as error:
        return Finding(what, False, error.error.str())


def _brokers(admin: AdminClient, endpoints: Endpoints) -> tuple[bool, str]:
    cluster = admin.describe_cluster(request_timeout=_TIMEOUT_S).result()
    finalized = admin.describe_features(request_timeout=_TIMEOUT_S).result().finalized
    version = 2 if finalized.get("transaction.version", 0) >= 2 else 1
    text = f"{_amount(len(cluster.nodes), 'broker')} at {endpoints.kafka['bootstrap.servers']}"
    return True, f"{text}, transactions v{version}"


def _amount(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _topics(endpoints: Endpoints) -> Iterator[Finding]:
    """What brokers say of each topic and group that the options of a source or sink name, who may be another user."""
    for each in endpoints.spec.inputs:
        if not each.topic:
            continue
        reads = endpoints.parsed(each)
        with _admin(reads.client) as admin:
            for topic in reads.subscription.topics:
                yield _tried(each.title, partial(_readable, admin, topic))
            if reads.dead_letter_topic:
                letters = f"{each.title}, dead letters"
                yield _tried(letters, partial(_writable, admin, reads.dead_letter_topic, False))
            if reads.group_id:
                yield _tried(f"{each.title}, group", partial(_group, admin, reads.group_id))
    for sink in endpoints.spec.sinks:
        if not sink.topics:
            continue
        options = endpoints.written(sink)
        with _admin(options.client) as admin:
            for topic in endpoints.topics_of(sink, options):
                yield _tried(f"sink {sink.name}", partial(_writable, admin, topic, sink.guarantee == EXACTLY_ONCE))
            if sink.group:
                yield _tried(f"sink {sink.name}, group", partial(_group, admin, sink.group))


def _described(admin: AdminClient, topic: str) -> TopicDescription:
    wanted = TopicCollection([topic])
    described = admin.describe_topics(wanted, request_timeout=_TIMEOUT_S, include_authorized_operations=True)
    return described[topic].result()


def _readable(admin: AdminClient, topic: str) -> tuple[bool, str]:
    found = _described(admin, topic)
    lacking = _lacking(found.authorized_operations, AclOperation.READ)
    if lacking:
        return False, f"topic {topic}: {lacking}"
    partitions = [TopicPartition(topic, one.id) for one in found.partitions]
    ends = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.latest()), request_timeout=_TIMEOUT_S)
    starts = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.earliest()), request_timeout=_TIMEOUT_S)
    records = sum(ends[tp].result().offset - starts[tp].result().offset for tp in partitions)
    return True, f"topic {topic}: {_amount(len(partitions), 'partition')}, about {_amount(records, 'record')}"


def _writable(admin: AdminClient, topic: str, once: bool) -> tuple[bool, str]:
    found = _described(admin, topic)
    # The offsets that mark a micro-batch as written are of the topic, and brokers want the right to read it for them.
    wanted = [AclOperation.WRITE, *([AclOperation.READ] if once else [])]
    for operation in wanted:
        lacking = _lacking(found.authorized_operations, operation)
        if lacking:
            return False, f"topic {topic}: {lacking}"
    return True, f"topic {topic}: {_amount(len(found.partitions), 'partition')}"


def _group(admin: AdminClient, group: str) -> tuple[bool, str]:
    asked = admin.describe_consumer_groups([group], request_timeout=_TIMEOUT_S, include_authorized_operations=True)
    found = asked[group].result()
    lacking = _lacking(found.authorized_operations, AclOperation.READ)
    return (False, f"group {group}: {lacking}") if lacking else (True, f"group {group}: may be committed to")


def _lacking(allowed: list[AclOperation] | None, wanted: AclOperation) -> str:
    """What to say when an operation is not among those allowed; brokers without an authorizer allow all."""
    if not allowed or wanted in allowed or AclOperation.ALL in allowed:
        return ""
    return f"this client lacks the right {wanted.name}: give it with an ACL"


def _schemas(endpoints: Endpoints) -> Iterator[Finding]:
    wanted: list[tuple[str, Input | Sink, str]] = [
        (each.title, each, topic) for each in endpoints.spec.inputs if each.format in REGISTERED
        for topic in endpoints.parsed(each).subscription.topics]
    wanted += [(f"sink {sink.name}", sink, topic) for sink in endpoints.spec.sinks if sink.format in REGISTERED
               for topic in endpoints.topics_of(sink, endpoints.written(sink))]
    url = endpoints.registry.get("url", "")
    if not wanted or not url or url == EMBEDDED:
        return
    from headrace.schema_registry import SchemaRegistryClient

    with SchemaRegistryClient(dict(endpoints.registry)) as registry:
        for title, each, topic in wanted:
            yield _schema(registry, endpoints, f"{title}, schema", each, topic)


def _schema(
    registry: SchemaRegistryClient, endpoints: Endpoints, what: str, each: Input | Sink, topic: str
) -> Finding:
    from headrace.schema_registry import Schema, SchemaRegistryError

    writes = isinstance(each, Sink)
    subject = each.schema_keys.get("subject", f"{topic}-value")
    try:
        text = _own_text(endpoints, each)
        if text and writes and not registry.test_compatibility(subject, Schema(text, _KINDS[each.format])):
            return Finding(what, False, f"subject {subject} would refuse the schema of the file: it is not compatible")
        latest = registry.get_latest_version(subject)
    except SchemaRegistryError as error:
        if error.http_status_code == 404 and (writes or each.schema or "schema_file" in each.schema_keys):
            return Finding(what, True, f"subject {subject} has no schema yet")
        return Finding(what, False, f"subject {subject}: {error.error_message}")
    except (ConfigError, InvalidSchemaError, KafkaException) as error:
        return Finding(what, False, f"subject {subject}: {error}")
    return Finding(what, True, f"subject {subject}: version {latest.version}, id {latest.schema_id}")


def _own_text(endpoints: Endpoints, each: Input | Sink) -> str:
    """The schema that the file gives, as its sink registers it; empty where others would be registered before it."""
    options = endpoints.writing(each) if isinstance(each, Sink) else endpoints.reading(each)
    of = ValueFormat.parse({name.lower(): value for name, value in options.items()}, "value")
    given = schema_format(of.name).given(of.schema, of.message) if of.schema else SchemaText("")
    return "" if given.references else given.text
