"""Configuration: one row per property, and the checked mapping that clients read.

A property is known under librdkafka's name and, where Java calls it otherwise, under Java's as well. Values may be
given as text or as Python values; they are converted and checked when the client is made, and an error names the
property, the value and the remedy. Secrets are hidden wherever a configuration is shown.

This module knows no client. The documentation page of all properties is made from `PROPERTIES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from headrace.errors import CallbackTypeError, ConfigError
from headrace.security import MECHANISMS, settle_security
from headrace.slotted import slotted

__all__ = [
    "ADMIN", "CONSUMER", "NOT_SUPPORTED", "PRODUCER", "PROPERTIES", "WITHOUT_EFFECT", "Config", "Property", "is_by_lot",
]

PRODUCER = "producer"
CONSUMER = "consumer"
ADMIN = "admin"
_ALL = (PRODUCER, CONSUMER, ADMIN)
_P = (PRODUCER,)
_C = (CONSUMER,)
_PC = (PRODUCER, CONSUMER)


@slotted(frozen=True)
class Property:
    """One row of the table.

    Attributes:
        name: librdkafka's name, the one that code uses.
        kind: "int", "float", "bool", "str", "enum", "list", "callable", "object", "objects" or "secret".
        default: value when the property is not given; already converted.
        doc: what it does, in one or two sentences.
        aliases: other accepted names: Java's, and librdkafka's own aliases.
        roles: clients that read it; the others accept it silently, so that one mapping may serve several clients.
        unit: unit of the value, "" when it has none.
        low, high: inclusive range of a number.
        choices: allowed values of an enum, in lower case; a mapping gives the stored value of each.
        kip: where it comes from, if a KIP introduced it.
    """

    name: str
    kind: str
    default: Any
    doc: str
    aliases: tuple[str, ...] = ()
    roles: tuple[str, ...] = _ALL
    unit: str = ""
    low: float | None = None
    high: float | None = None
    choices: Mapping[str, Any] | tuple[str, ...] = ()
    kip: str = ""


_INT32 = 2**31 - 1
_DEFAULT_PORT = 9092
_ROWS = (
    # Connecting
    Property("bootstrap.servers", "list", (), "Brokers to make the first contact with, as host:port, separated by "
             "commas. Without a port 9092 is meant.", aliases=("metadata.broker.list",)),
    Property("client.id", "str", "headrace", "Name of this client in the brokers' logs, quotas and metrics."),
    Property("client.rack", "str", "", "Rack of this client; consumers may then read from the nearest replica. For "
             "producers see partitioner.rack.aware.",
             kip="KIP-392"),
    Property("security.protocol", "enum", "plaintext", "How to talk to brokers: with TLS (ssl), with authentication "
             "by SASL, or both.", choices=("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")),
    # TLS
    Property("ssl.ca.location", "str", "", "File of CA certificates in PEM or PKCS#12 that the brokers' certificates "
             "must chain to; the system's own when empty.", aliases=("ssl.truststore.location",)),
    Property("ssl.ca.pem", "str", "", "CA certificates as PEM text, instead of a file.",
             aliases=("ssl.truststore.certificates",)),
    Property("ssl.truststore.password", "secret", "", "Password of ssl.ca.location, if that is a PKCS#12 file."),
    Property("ssl.crl.location", "str", "", "File of certificate revocation lists in PEM; brokers' certificates are "
             "then checked against them."),
    Property("ssl.certificate.location", "str", "", "File of this client's certificate chain in PEM, for mutual TLS."),
    Property("ssl.certificate.pem", "str", "", "This client's certificate chain as PEM text, instead of a file.",
             aliases=("ssl.keystore.certificate.chain",)),
    Property("ssl.key.location", "str", "", "File of this client's private key in PEM."),
    Property("ssl.key.pem", "secret", "", "This client's private key as PEM text, instead of a file.",
             aliases=("ssl.keystore.key",)),
    Property("ssl.key.password", "secret", "", "Password of the private key."),
    Property("ssl.keystore.location", "str", "", "File with both this client's certificate chain and key, in PKCS#12 "
             "(needs headrace[tls]) or PEM, instead of the four above."),
    Property("ssl.keystore.password", "secret", "", "Password of ssl.keystore.location."),
    Property("ssl.keystore.type", "enum", "", "Taken for Java's sake: what ssl.keystore.location is shows in the "
             "file.",
             choices=("", "pkcs12", "pem", "jks")),
    Property("ssl.truststore.type", "enum", "", "The same for ssl.ca.location.",
             choices=("", "pkcs12", "pem", "jks")),
    Property("ssl.endpoint.identification.algorithm", "enum", "https", "Check that the broker's certificate names the "
             "host that was dialled; none switches the check off.",
             choices={"https": "https", "none": "none", "": "none"}),
    Property("enable.ssl.certificate.verification", "bool", True, "Check the brokers' certificates at all."),
    Property("ssl.enabled.protocols", "list", ("TLSv1.2", "TLSv1.3"), "Versions of TLS that may be spoken."),
    Property("ssl.protocol", "enum", "", "Highest version of TLS that may be spoken, if not the highest of "
             "ssl.enabled.protocols.", choices=("", "tls", "tlsv1.2", "tlsv1.3")),
    Property("ssl.cipher.suites", "str", "", "Ciphers for TLS 1.2, under OpenSSL's names separated by colons or "
             "Java's separated by commas. TLS 1.3 always offers all of its own."),
    # SASL
    Property("sasl.mechanism", "enum", "GSSAPI", "How to authenticate.", aliases=("sasl.mechanisms",),
             choices={name.lower(): name for name in MECHANISMS}),
    Property("sasl.username", "str", "", "User for PLAIN and SCRAM."),
    Property("sasl.password", "secret", "", "Password for PLAIN and SCRAM."),
    Property("sasl.scram.tokenauth", "bool", False, "User and password for SCRAM are the id and key of a delegation "
             "token.", kip="KIP-48"),
    Property("sasl.jaas.config", "secret", "", "Java's way to give the credentials, for example "
             "`PlainLoginModule required username=\"u\" password=\"p\";`. Understood of PlainLoginModule, "
             "ScramLoginModule, OAuthBearerLoginModule and Krb5LoginModule.", kip="KIP-85"),
    Property("sasl.kerberos.service.name", "str", "kafka", "First part of the brokers' Kerberos principal."),
    Property("sasl.kerberos.principal", "str", "", "This client's Kerberos principal; that of the ticket cache or "
             "keytab when empty."),
    Property("sasl.kerberos.keytab", "str", "", "File of keys for the principal; the ticket cache of kinit is used "
             "when empty."),
    Property("oauth_cb", "callable", None, "Called as oauth_cb(sasl.oauthbearer.config) whenever OAUTHBEARER needs a "
             "token; returns (token, expiry as seconds since the epoch[, principal[, extensions]]). It runs in a "
             "thread of its own, a coroutine function on the client's loop."),
    Property("sasl.oauthbearer.method", "enum", "", "default: oauth_cb or an unsecured token; oidc: client credentials "
             "at sasl.oauthbearer.token.endpoint.url. Found out when empty.", choices=("", "default", "oidc"),
             kip="KIP-768"),
    Property("sasl.oauthbearer.token.endpoint.url", "str", "", "Where to get tokens with oidc.", kip="KIP-768"),
    Property("sasl.oauthbearer.client.id", "str", "", "Id of this client at the token endpoint.",
             aliases=("sasl.oauthbearer.client.credentials.client.id",)),
    Property("sasl.oauthbearer.client.secret", "secret", "", "Secret of this client at the token endpoint.",
             aliases=("sasl.oauthbearer.client.credentials.client.secret",)),
    Property("sasl.oauthbearer.scope", "str", "", "Scope to ask for at the token endpoint."),
    Property("sasl.oauthbearer.extensions", "str", "", "SASL extensions for the broker: name=value, separated by "
             "commas.", kip="KIP-342"),
    Property("sasl.oauthbearer.config", "secret", "", "Given to oauth_cb; or what an unsecured token shall say: "
             "`principal=alice scope=a,b life=3600 extension_name=value`."),
    Property("enable.sasl.oauthbearer.unsecure.jwt", "bool", False, "Make unsigned tokens, for tests only."),
    Property("https.ca.location", "str", "", "File of CA certificates in PEM for the token endpoint; the system's own "
             "when empty."),
    Property("https.ca.pem", "str", "", "The same as PEM text."),
    Property("sasl.login.refresh.window.factor", "float", 0.8, "Get a new token when this part of the old one's life "
             "is over.", low=0.5, high=1.0),
    Property("sasl.login.read.timeout.ms", "int", 10_000, "Longest wait for the token endpoint.",
             aliases=("sasl.login.connect.timeout.ms",), unit="ms", low=10, high=300_000),
    Property("sasl.login.retry.backoff.ms", "int", 100, "First wait before a token is asked for again.", unit="ms",
             low=1, high=300_000),
    Property("sasl.login.retry.backoff.max.ms", "int", 10_000, "Longest wait before a token is asked for again.",
             unit="ms", low=1, high=300_000),
    Property("socket.connection.setup.timeout.ms", "int", 30_000, "Longest time for opening a connection, TLS and "
             "handshake included.", aliases=("socket.connection.setup.timeout.max.ms",), unit="ms", low=10,
             high=_INT32, kip="KIP-601"),
    Property("socket.timeout.ms", "int", 60_000, "Longest wait for the reply to a request that has no time-out of "
             "its own.", unit="ms", low=10, high=300_000),
    Property("connections.max.idle.ms", "int", 540_000, "Close a connection that was not used for so long; 0 never.",
             unit="ms", low=0, high=_INT32),
    Property("reconnect.backoff.ms", "int", 50, "First wait before a broker is dialled again.", unit="ms", low=0,
             high=3_600_000),
    Property("reconnect.backoff.max.ms", "int", 1_000, "Longest wait between two dials of one broker; the wait doubles "
             "up to it, with jitter.", unit="ms", low=0, high=3_600_000, kip="KIP-144"),
    Property("retry.backoff.ms", "int", 100, "First wait before a failed request is sent again.", unit="ms", low=1,
             high=300_000),
    Property("retry.backoff.max.ms", "int", 1_000, "Longest wait before a failed request is sent again; the wait "
             "doubles up to it, with jitter.", unit="ms", low=1, high=300_000, kip="KIP-580"),
    Property("topic.metadata.refresh.interval.ms", "int", 300_000, "Refresh metadata at least so often; -1 only when "
             "it is needed.", aliases=("metadata.max.age.ms",), unit="ms", low=-1, high=3_600_000),
    Property("metadata.recovery.strategy", "enum", "rebootstrap", "What to do when no known broker answers: start "
             "again from bootstrap.servers, or keep trying.", choices=("rebootstrap", "none"), kip="KIP-899"),
    Property("allow.auto.create.topics", "bool", False, "Let a consumer's metadata request create topics that do not "
             "exist, if the brokers permit it. Producers always ask for it, as in librdkafka.", roles=_C),
    Property("broker.address.family", "enum", "any", "Addresses of brokers to dial: those of IPv4, of IPv6, or all.",
             choices=("any", "v4", "v6")),
    Property("socket.keepalive.enable", "bool", True, "Let the system probe connections on which nothing is said."),
    Property("socket.nagle.disable", "bool", True, "Send small packets at once (TCP_NODELAY)."),
    Property("receive.message.max.bytes", "int", 100_000_000, "Largest reply that is accepted; a larger one closes the "
             "connection.", unit="bytes", low=1_000, high=_INT32),
    Property("socket.send.buffer.bytes", "int", 0, "Size of the socket's send buffer; 0 leaves the system's.",
             aliases=("send.buffer.bytes",), unit="bytes", low=0, high=100_000_000),
    Property("socket.receive.buffer.bytes", "int", 0, "Size of the socket's receive buffer; 0 leaves the system's.",
             aliases=("receive.buffer.bytes",), unit="bytes", low=0, high=100_000_000),
    # Callbacks
    Property("error_cb", "callable", None, "Called as error_cb(KafkaError) for errors that belong to no record, from "
             "`poll()`."),
    Property("throttle_cb", "callable", None, "Called as throttle_cb(ThrottleEvent) when a broker's reply says that it "
             "slows this client down, from `poll()`.", roles=_PC),
    Property("stats_cb", "callable", None, "Called as stats_cb(text) with the client's statistics in JSON every "
             "statistics.interval.ms, from `poll()`.", roles=_PC),
    Property("statistics.interval.ms", "int", 0, "Time between two calls of stats_cb; 0 makes none.", roles=_PC,
             unit="ms", low=0, high=86_400_000),
    Property("logger", "object", None, "logging.Logger to write to instead of `headrace`."),
    # Producer
    Property("acks", "enum", -1, "Replicas that must have a record before it is acknowledged: all in sync (all, -1), "
             "the leader (1), or nobody (0).", aliases=("request.required.acks",), roles=_P,
             choices={"all": -1, "-1": -1, "0": 0, "1": 1}),
    Property("enable.idempotence", "bool", True, "Write each record exactly once and in order, whatever is retried. "
             "Needs acks=all and at most 5 requests in flight.", roles=_P, kip="KIP-98"),
    Property("transactional.id", "str", "", "Name under which this producer writes transactions; whoever initialises "
             "it last is the only one that may write. Needs enable.idempotence.", roles=_P, kip="KIP-98"),
    Property("transaction.timeout.ms", "int", 60_000, "The coordinator aborts a transaction that stays open longer.",
             roles=_P, unit="ms", low=1_000, high=_INT32, kip="KIP-98"),
    Property("max.in.flight.requests.per.connection", "int", 5, "Produce requests that may await an answer from one "
             "broker.", aliases=("max.in.flight",), roles=_P, low=1, high=1_000_000),
    Property("linger.ms", "float", 5.0, "Wait so long for more records before a batch that is not full is sent.",
             aliases=("queue.buffering.max.ms",), roles=_P, unit="ms", low=0, high=900_000),
    Property("batch.size", "int", 1_000_000, "Largest batch, uncompressed.", roles=_P, unit="bytes", low=1,
             high=_INT32),
    Property("batch.num.messages", "int", 10_000, "Most records in one batch.", roles=_P, low=1, high=1_000_000),
    Property("message.max.bytes", "int", 1_000_000, "Largest record and largest produce request.",
             aliases=("max.request.size",), roles=_P, unit="bytes", low=1_000, high=1_000_000_000),
    Property("queue.buffering.max.messages", "int", 100_000, "Records that may wait in the producer; `produce()` "
             "raises BufferError beyond it. 0 means no limit.", roles=_P, low=0, high=_INT32),
    Property("queue.buffering.max.kbytes", "int", 1_048_576, "Memory that waiting records may take.", roles=_P,
             unit="KiB", low=1, high=_INT32),
    Property("buffer.memory", "int", 0, "Java's name for queue.buffering.max.kbytes, in bytes; 0 leaves that one "
             "alone.", roles=_P, unit="bytes", low=0, high=_INT32 * 1024),
    Property("topic.metadata.propagation.max.ms", "int", 30_000, "Records of a topic that is not known wait so long "
             "for it to turn up, if message.timeout.ms is not over before.", roles=_P, unit="ms", low=0,
             high=3_600_000),
    Property("message.timeout.ms", "int", 300_000, "Time from `produce()` until the record is delivered or reported as "
             "failed; 0 waits for ever.", aliases=("delivery.timeout.ms",), roles=_P, unit="ms", low=0, high=_INT32,
             kip="KIP-91"),
    Property("request.timeout.ms", "int", 30_000, "Longest wait for the answer to a produce request; it is also told "
             "to the broker.", roles=_P, unit="ms", low=1, high=900_000),
    Property("retries", "int", _INT32, "Times that a produce request is sent again within message.timeout.ms.",
             aliases=("message.send.max.retries",), roles=_P, low=0, high=_INT32),
    Property("compression.type", "enum", "none", "Codec for batches.", aliases=("compression.codec",), roles=_P,
             choices=("none", "gzip", "snappy", "lz4", "zstd")),
    Property("compression.level", "int", -1, "Level for the codec; -1 takes the codec's own default.", roles=_P,
             low=-1, high=22, kip="KIP-390"),
    Property("compression.gzip.level", "int", -1, "The same if the codec is gzip.", roles=_P, low=-1, high=9,
             kip="KIP-390"),
    Property("compression.lz4.level", "int", -1, "The same if the codec is lz4.", roles=_P, low=-1, high=17,
             kip="KIP-390"),
    Property("compression.zstd.level", "int", -1, "The same if the codec is zstd.", roles=_P, low=-1, high=22,
             kip="KIP-390"),
    Property("partitioner", "enum", "consistent_random", "How a record without a partition finds one. "
             "consistent_random: CRC32 of the key, librdkafka's default. murmur2_random: Java's default, its hash of "
             "the key. fnv1a_random: Sarama's. Without a key (consistent_random: also with an empty one) records take "
             "turns: all go to one partition until it has got batch.size bytes or batch.num.messages records, or "
             "sticky.partitioning.linger.ms are over, then to another, drawn by lot; uniform_sticky does so whatever "
             "the key. consistent, murmur2, fnv1a: as their namesakes, a missing key being an empty one. random: a lot "
             "for each record, turns without a key. round_robin: one after the other, whatever the key. "
             "Or a function, called as partitioner(topic, key, value, partition_count), with key and value as bytes "
             "or None; it returns a partition number.", roles=_P,
             choices=("random", "consistent", "consistent_random", "murmur2", "murmur2_random", "fnv1a",
                      "fnv1a_random", "uniform_sticky", "round_robin")),
    Property("partitioner.class", "enum", "", "Java's way to choose the partitioner: a class of Kafka's own, with or "
             "without its package. DefaultPartitioner is murmur2_random, what Java does without a class.", roles=_P,
             choices={"": "", **{package + name.lower(): ours for name, ours in (
                 ("DefaultPartitioner", "murmur2_random"), ("UniformStickyPartitioner", "uniform_sticky"),
                 ("RoundRobinPartitioner", "round_robin"),
             ) for package in ("", "org.apache.kafka.clients.producer.",
                               "org.apache.kafka.clients.producer.internals.")}}),
    Property("partitioner.ignore.keys", "bool", False, "Spread records over all partitions although they have keys, "
             "as the partitioner uniform_sticky does.", roles=_P, kip="KIP-794"),
    Property("partitioner.adaptive.partitioning.enable", "bool", True, "Draw partitions the less often the more "
             "batches wait for them, so that a slow broker gets fewer records without a key.", roles=_P,
             kip="KIP-794"),
    Property("partitioner.availability.timeout.ms", "int", 0, "Draw no partition of a broker that has settled none of "
             "the batches that wait for it for so long; 0 waits for ever. Needs "
             "partitioner.adaptive.partitioning.enable.", roles=_P, unit="ms", low=0, high=_INT32, kip="KIP-794"),
    Property("partitioner.rack.aware", "bool", False, "Draw only partitions led in client.rack, if there are any.",
             roles=_P, kip="KIP-1123"),
    Property("sticky.partitioning.linger.ms", "int", 10, "Longest turn of a partition with records without a key; 0 "
             "draws a lot for each record. Twice linger.ms, if that is more and this is not given.", roles=_P,
             unit="ms", low=0, high=900_000, kip="KIP-480"),
    Property("interceptor.classes", "objects", (), "`ProducerInterceptor`s, called in this order: classes, objects, or "
             "import paths (`package.module.Class`), which may be text with commas. Properties with a part "
             "`interceptor` in their name are theirs and not checked.", roles=_P, kip="KIP-42"),
    Property("max.block.ms", "int", 60_000, "Longest time that `send()` waits for room in the buffer, or for a topic "
             "that is not known yet. `produce()` never waits.", roles=_P, unit="ms", low=0, high=_INT32),
    Property("on_delivery", "callable", None, "Called as on_delivery(KafkaError | None, Message) for each record that "
             "was given no callback of its own, from `poll()` or `flush()`.", aliases=("dr_cb", "dr_msg_cb"), roles=_P),
    Property("delivery.report.only.error", "bool", False, "Call back for failed records only.", roles=_P),
    # Consumer
    Property("group.id", "str", "", "Name of the consumer group.", roles=_C),
    Property("group.instance.id", "str", "", "Fixed name of this member: its partitions survive a restart shorter than "
             "session.timeout.ms.", roles=_C, kip="KIP-345"),
    Property("partition.assignment.strategy", "list", ("range", "roundrobin"), "Assignors this member supports, best "
             "first: range, roundrobin, cooperative-sticky.", roles=_C),
    Property("session.timeout.ms", "int", 45_000, "The group drops a member from which nothing was heard for so long.",
             roles=_C, unit="ms", low=1, high=3_600_000),
    Property("heartbeat.interval.ms", "int", 3_000, "Time between two heartbeats.", roles=_C, unit="ms", low=1,
             high=3_600_000),
    Property("max.poll.interval.ms", "int", 300_000, "A member that does not poll for so long leaves the group.",
             roles=_C, unit="ms", low=1, high=86_400_000, kip="KIP-62"),
    Property("enable.auto.commit", "bool", True, "Commit stored offsets regularly and on close.", roles=_C),
    Property("auto.commit.interval.ms", "int", 5_000, "Time between two automatic commits.", roles=_C, unit="ms",
             low=1, high=86_400_000),
    Property("enable.auto.offset.store", "bool", True, "Store the offset of each record that is handed out, so that "
             "the next commit covers it.", roles=_C),
    Property("auto.offset.reset", "enum", "latest", "Where to start without a committed offset, or with one that is "
             "out of range.", roles=_C, choices={"earliest": "earliest", "smallest": "earliest",
             "beginning": "earliest", "latest": "latest", "largest": "latest", "end": "latest", "error": "error",
             "none": "error"}),
    Property("isolation.level", "enum", 1, "Hand out records of committed transactions only, or all of them.",
             roles=_C, choices={"read_uncommitted": 0, "read_committed": 1}, kip="KIP-98"),
    Property("fetch.wait.max.ms", "int", 500, "Longest time a broker waits for fetch.min.bytes.",
             aliases=("fetch.max.wait.ms",), roles=_C, unit="ms", low=0, high=300_000),
    Property("fetch.min.bytes", "int", 1, "A broker answers a fetch when it has so much.", roles=_C, unit="bytes",
             low=1, high=100_000_000),
    Property("fetch.max.bytes", "int", 52_428_800, "Most bytes in one fetch reply.", roles=_C, unit="bytes", low=0,
             high=_INT32),
    Property("max.partition.fetch.bytes", "int", 1_048_576, "Most bytes of one partition in one fetch reply.",
             aliases=("fetch.message.max.bytes",), roles=_C, unit="bytes", low=1, high=1_000_000_000),
    Property("fetch.error.backoff.ms", "int", 500, "Wait before a partition is fetched again after an error.",
             roles=_C, unit="ms", low=0, high=300_000),
    Property("queued.max.messages.kbytes", "int", 65_536, "Bytes that may be prefetched and not yet handed out.",
             roles=_C, unit="KiB", low=1, high=2_097_151),
    Property("enable.partition.eof", "bool", False, "Hand out a message with error _PARTITION_EOF when the end of a "
             "partition is reached.", roles=_C),
    Property("check.crcs", "bool", True, "Verify the checksum of each batch. Java: check.crcs.", roles=_C),
    Property("on_commit", "callable", None, "Called as on_commit(KafkaError | None, list[TopicPartition]) after each "
             "commit, from `poll()`.", roles=_C),
)

_ANY: tuple[str, ...] = ()
WITHOUT_EFFECT: dict[str, tuple[tuple[str, ...], str]] = {
    # Accepted, so that a configuration written for librdkafka or Java works: name, values that are accepted (none
    # listed: all), and why there is nothing to do.
    "api.version.fallback.ms": (_ANY, "brokers always say which versions they speak"),
    "api.version.request": (("true", "1"), "brokers are always asked which versions they speak"),
    "api.version.request.timeout.ms": (_ANY, "socket.connection.setup.timeout.ms covers the question"),
    "auto.include.jmx.reporter": (_ANY, "there is no JVM"),
    "broker.address.ttl": (_ANY, "each dial asks the resolver anew"),
    "broker.version.fallback": (_ANY, "brokers always say which versions they speak"),
    "builtin.features": (_ANY, "a feature that is missing is reported where it is asked for"),
    "client.dns.lookup": (("use_all_dns_ips", "default"), "all addresses of a host are tried"),
    "debug": (_ANY, "logging of Python's decides what is shown: the logger is `headrace`, or the property logger"),
    "enable.gapless.guarantee": (("false", "0"), "a transaction is what leaves no gap"),
    "enable.metrics.push": (("false", "0"), "metrics are not pushed to brokers"),
    "enable.random.seed": (_ANY, "random numbers are seeded by the system"),
    "enabled_events": (_ANY, "events are callbacks"),
    "log.connection.close": (_ANY, "a connection that closes while it is not used is not reported"),
    "log.queue": (_ANY, "logging of Python's takes messages at once"),
    "log.thread.name": (_ANY, "logging of Python's knows the thread"),
    "log_level": (_ANY, "logging of Python's decides: set the level of the logger `headrace`"),
    "message.copy.max.bytes": (_ANY, "a record is copied once, into its batch"),
    "metadata.max.idle.ms": (_ANY, "topics that are not used any more cost next to nothing"),
    "metrics.num.samples": (_ANY, "statistics cover the last 1,000 requests"),
    "metrics.recording.level": (_ANY, "all statistics are always kept"),
    "metrics.sample.window.ms": (_ANY, "statistics cover the last 1,000 requests"),
    "produce.offset.report": (_ANY, "reports always have the offset"),
    "queuing.strategy": (("fifo",), "records stay in order"),
    "reconnect.backoff.jitter.ms": (_ANY, "reconnect.backoff.ms has its own jitter"),
    "socket.max.fails": (_ANY, "a request that is not answered in time closes the connection"),
    "topic.metadata.refresh.fast.cnt": (_ANY, "metadata is asked for until the leader is known"),
    "topic.metadata.refresh.fast.interval.ms": (_ANY, "retry.backoff.ms is the pause while a leader is sought"),
    "topic.metadata.refresh.sparse": (_ANY, "only topics that are used are asked for"),
    "transaction.two.phase.commit.enable": (("false", "0"), "transactions end with the client that began them"),
}

NOT_SUPPORTED: dict[str, str] = {
    # Names of librdkafka and Java that can not mean anything here, and what to use instead.
    "background_event_cb": "callbacks run in `poll()`: call it from a thread of your own",
    "closesocket_cb": "sockets belong to asyncio",
    "config.providers": "read the secret in Python and give its value",
    "connect_cb": "sockets belong to asyncio",
    "consume_cb": "call `consume()`, or iterate over the consumer",
    "default_topic_conf": "give the properties at the top level, or under default.topic.config",
    "events_cb": "use error_cb, stats_cb and throttle_cb",
    "internal.termination.signal": "the loop's thread ends without a signal",
    "key.deserializer": "messages have bytes: decode them after `poll()`",
    "key.serializer": "`produce()` takes bytes and str: serialise keys before, or make a `SerializingProducer`",
    "log_cb": "give a logging.Logger as logger",
    "metric.reporters": "use stats_cb, or call `metrics()`",
    "msg_order_cmp": "records stay in order",
    "opaque": "bind what the callback needs to the callback, with a closure or functools.partial",
    "open_cb": "files are opened by Python",
    "partitioner_callback": "give the function as partitioner, called as (topic, key, value, partition_count)",
    "partitioner_cb": "give the function as partitioner, called as (topic, key, value, partition_count)",
    "plugin.library.paths": "native plugins can not be loaded: use interceptor.classes",
    "queue.buffering.backpressure.threshold": "batches grow by themselves while a broker is slow; linger.ms and "
        "batch.size say how large they are otherwise",
    "resolve_cb": "names are resolved by asyncio",
    "socket.blocking.max.ms": "sockets never block: remove it",
    "socket_cb": "sockets belong to asyncio",
    "test.mock.broker.rtt": "give a `headrace.testing.EmbeddedBroker` faults that delay its replies",
    "test.mock.num.brokers": "start a `headrace.testing.EmbeddedBroker` and give its bootstrap_servers",
    "topic.blacklist": "topics are asked for only when they are used",
    "value.deserializer": "messages have bytes: decode them after `poll()`",
    "value.serializer": "`produce()` takes bytes and str: serialise values before, or make a `SerializingProducer`",
}

PROPERTIES: dict[str, Property] = {row.name: row for row in _ROWS}
_BY_ANY_NAME: dict[str, Property] = {alias: row for row in _ROWS for alias in (row.name, *row.aliases)}
_TRUE, _FALSE = ("true", "t", "1", "yes", "on"), ("false", "f", "0", "no", "off")


class Config(Mapping[str, Any]):
    """The checked properties of one client: every property of its role has a value.

    Args:
        role: `PRODUCER`, `CONSUMER` or `ADMIN`.
        properties: what the user gave; None as a value means "not given".
        servers_needed: bootstrap.servers must be given, too.

    Attributes:
        given: the properties that were given, by their first name, converted.
        original: the same as they were given, those of interceptors included.

    Raises:
        ConfigError: unknown name, malformed or out-of-range value, or a contradiction.
    """

    def __init__(self, role: str, properties: Mapping[str, Any], *, servers_needed: bool = True) -> None:
        self.role = role
        self.given: dict[str, Any] = {}
        self.original = {name: value for name, value in _flatten(properties) if value is not None}
        source: dict[str, str] = {}
        for name, value in _flatten(properties):
            row = _BY_ANY_NAME.get(name)
            if row is None and "interceptor" in name.split(".") and self.original.get("interceptor.classes"):
                continue  # an interceptor's own
            if row is None and name in WITHOUT_EFFECT:
                _check_value(name, value)
                continue
            if row is None:
                raise ConfigError(_unknown(name))
            if value is None:
                continue
            converted = _convert(row, name, value)
            if row.name in source and self.given[row.name] != converted:
                raise ConfigError(f'"{name}" and "{source[row.name]}" are the same property and have different '
                                  "values: give one of them")
            source[row.name] = name
            self.given[row.name] = converted
        self._source = source
        self._values = {row.name: self.given.get(row.name, row.default) for row in _ROWS}
        if servers_needed and not self._values["bootstrap.servers"]:
            raise ConfigError('"bootstrap.servers" is missing: give at least one broker as host:port')
        _CHECKS[role](self)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        shown = {n: "[hidden]" if PROPERTIES[n].kind == "secret" else v for n, v in self.given.items()}
        return f"Config({self.role!r}, {shown!r})"

    def seconds(self, name: str) -> float:
        """The value of a property in milliseconds, as seconds."""
        return float(self._values[name]) / 1000.0

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Replace user and password for the connections, and renewed authentications, that come after this.

        Raises:
            ConfigError: one is empty, or has a NUL character.
            TypeError: one is not str.
        """
        for name, value in (("sasl.username", username), ("sasl.password", password)):
            if not isinstance(value, str):
                raise TypeError(f"{name} must be str, not {type(value).__name__}")
            if not value or "\0" in value:
                raise ConfigError(f'"{name}" must not be empty, and have no NUL character')
        self._values.update({"sasl.username": username, "sasl.password": password})


def _flatten(properties: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the properties; the old `default.topic.config` mapping is merged, as in confluent_kafka."""
    for name, value in properties.items():
        if name == "default.topic.config":
            if not isinstance(value, Mapping):
                raise ConfigError('"default.topic.config" must be a mapping of property names to values')
            yield from _flatten(value)
        elif not isinstance(name, str):
            raise ConfigError(f"property names are str, not {type(name).__name__}: {name!r}")
        else:
            yield name, value


def _check_value(name: str, value: Any) -> None:
    """Raise when a property that has no effect is given a value that should have one."""
    accepted, why = WITHOUT_EFFECT[name]
    if accepted and value is not None and str(value).strip().lower() not in accepted:
        raise ConfigError(f'"{name}" can only be {accepted[0]}, not {value!r}: {why}')


def _unknown(name: str) -> str:
    if name in NOT_SUPPORTED:
        return f'"{name}" is not supported: {NOT_SUPPORTED[name]}'
    close = _close_matches(name, [*_BY_ANY_NAME, *WITHOUT_EFFECT])
    hint = f' Did you mean "{close[0]}"?' if close else " `headrace.config.PROPERTIES` lists all of them."
    return f'No such configuration property: "{name}".{hint}'


def _close_matches(text: str, known: list[str]) -> list[str]:
    from difflib import get_close_matches  # nobody waits for it whose properties are right

    return get_close_matches(text, known, n=1)


def _convert(row: Property, name: str, value: Any) -> Any:
    def bad(expected: str) -> ConfigError:
        shown = "[hidden]" if row.kind == "secret" else value
        return ConfigError(f'Invalid value for configuration property "{name}": {shown}: expected {expected}')

    if row.kind in ("int", "float"):
        try:
            number = float(value) if row.kind == "float" else int(value)
        except (TypeError, ValueError):
            raise bad("a number" if row.kind == "float" else "a whole number") from None
        if (row.low is not None and number < row.low) or (row.high is not None and number > row.high):
            raise bad(f"{row.low} to {row.high}{' ' + row.unit if row.unit else ''}")
        return number
    if row.kind == "bool":
        text = str(value).strip().lower()
        if text not in _TRUE + _FALSE:
            raise bad("true or false")
        return text in _TRUE
    if row.kind == "enum":
        if row.name == "partitioner" and callable(value):
            return value
        text = str(value).strip().lower()
        if text not in row.choices:
            close = _close_matches(text, list(row.choices))
            raise bad(f"one of {', '.join(row.choices)}" + (f'; did you mean "{close[0]}"?' if close else ""))
        return row.choices[text] if isinstance(row.choices, Mapping) else text
    if row.kind == "list":
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, (list, tuple)) or not all(isinstance(part, str) for part in parts):
            raise bad("text with commas, or a list of text")
        return tuple(part.strip() for part in parts if part.strip())
    if row.kind == "callable":
        if not callable(value):
            raise CallbackTypeError(f'"{name}" must be callable, not {type(value).__name__}')
        return value
    if row.kind == "object":
        return value
    if row.kind == "objects":
        parts = value.split(",") if isinstance(value, str) else value if isinstance(value, (list, tuple)) else (value,)
        parts = [part.strip() if isinstance(part, str) else part for part in parts]
        return tuple(part for part in parts if part != "")
    if not isinstance(value, (str, int, float)):
        raise bad("text")
    return str(value)


def _check_common(config: Config) -> None:
    servers = tuple(server if ":" in server.rpartition("]")[2] else f"{server}:{_DEFAULT_PORT}"
                    for server in config["bootstrap.servers"])
    config._values["bootstrap.servers"] = servers
    for server in servers:
        host, _, port = server.rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise ConfigError(f'Invalid value {server!r} in "bootstrap.servers": expected host:port, for example '
                              "localhost:9092")
    _settle_backoff(config, "reconnect.backoff.ms", "reconnect.backoff.max.ms")
    _settle_backoff(config, "retry.backoff.ms", "retry.backoff.max.ms")
    settle_security(config.given, config._values)


def _settle_backoff(config: Config, first: str, longest: str) -> None:
    """The longest wait follows the first one, unless the user wants a shorter one."""
    if config[first] > config[longest]:
        if longest in config.given:
            raise ConfigError(f'"{longest}" ({config[longest]}) must not be less than "{first}" ({config[first]})')
        config._values[longest] = config[first]


def _check_producer(config: Config) -> None:
    _check_common(config)
    _settle_times(config)
    _settle_memory(config)
    _settle_partitioner(config)
    level = f"compression.{config['compression.type']}.level"
    if level in config.given:
        _replace(config, "compression.level", config[level], level)
    _settle_idempotence(config)


def _replace(config: Config, name: str, value: Any, by: str) -> None:
    """Set a property for which Java has another one; both may be given only if they agree."""
    if name in config.given and config[name] != value:
        raise ConfigError(f'"{by}" and "{config._source[name]}" contradict each other: give one of them')
    config._values[name] = value


def _settle_times(config: Config) -> None:
    total_ms, linger_ms = config["message.timeout.ms"], config["linger.ms"]
    request_ms = config["request.timeout.ms"]
    if total_ms and linger_ms >= total_ms:
        if "linger.ms" in config.given:
            raise ConfigError(f'"linger.ms" ({linger_ms:g}) must be less than "message.timeout.ms" ({total_ms})')
        config._values["linger.ms"] = total_ms / 2.0
    named_as_java = config._source.get("message.timeout.ms") == "delivery.timeout.ms"
    if named_as_java and "request.timeout.ms" in config.given and 0 < total_ms < linger_ms + request_ms:
        raise ConfigError(f'"delivery.timeout.ms" ({total_ms}) must be at least "linger.ms" + "request.timeout.ms" '
                          f"({linger_ms:g} + {request_ms})")


def _settle_memory(config: Config) -> None:
    if config["buffer.memory"]:
        _replace(config, "queue.buffering.max.kbytes", -(-config["buffer.memory"] // 1024), "buffer.memory")


def _settle_partitioner(config: Config) -> None:
    if config["partitioner.class"]:
        _replace(config, "partitioner", config["partitioner.class"], "partitioner.class")
    if config["partitioner.ignore.keys"]:
        if {"partitioner", "partitioner.class"}.isdisjoint(config.given):
            config._values["partitioner"] = "uniform_sticky"
        elif config["partitioner"] not in ("uniform_sticky", "random"):
            raise ConfigError('"partitioner.ignore.keys" is what the partitioners "uniform_sticky" and "random" do: '
                              "give no other one")
    if config["partitioner.rack.aware"] and not config["client.rack"]:
        raise ConfigError('"partitioner.rack.aware" needs a "client.rack"')
    if config["partitioner.availability.timeout.ms"] and not config["partitioner.adaptive.partitioning.enable"]:
        raise ConfigError('"partitioner.availability.timeout.ms" needs "partitioner.adaptive.partitioning.enable",'
                          " which is false")
    for name in ("partitioner.availability.timeout.ms", "partitioner.rack.aware"):
        if config[name] and not is_by_lot(config["partitioner"]):
            raise ConfigError(f'"{name}" can do nothing for the "partitioner" "{config["partitioner"]}", which '
                              "leaves no record to chance: give another one")
    if "sticky.partitioning.linger.ms" not in config.given:
        turn_ms = max(config["sticky.partitioning.linger.ms"], min(int(2 * config["linger.ms"]), 900_000))
        config._values["sticky.partitioning.linger.ms"] = turn_ms


def is_by_lot(partitioner: object) -> bool:
    """Whether a value of `partitioner` leaves records to chance."""
    return partitioner not in ("consistent", "murmur2", "fnv1a", "round_robin") and not callable(partitioner)


def _settle_idempotence(config: Config) -> None:
    transactional = bool(config["transactional.id"])
    if not config["enable.idempotence"]:
        if transactional:
            raise ConfigError('"transactional.id" needs "enable.idempotence": true')
        return
    contradictions = (
        ("acks", config["acks"] != -1, "acks=all"),
        ("max.in.flight.requests.per.connection", config["max.in.flight.requests.per.connection"] > 5, "at most 5"),
        ("retries", config["retries"] == 0, "at least 1"),
    )
    for name, contradicts, needed in contradictions:
        if contradicts:
            if "enable.idempotence" in config.given:
                raise ConfigError(f'"{name}" must be {needed} with "enable.idempotence": true')
            if transactional:
                raise ConfigError(f'"{name}" must be {needed} with "transactional.id"')
            config._values["enable.idempotence"] = False  # the user asked for less; KIP-679 does the same
            return


def _check_consumer(config: Config) -> None:
    _check_common(config)
    known = ("range", "roundrobin", "cooperative-sticky")
    for name in config["partition.assignment.strategy"]:
        if name not in known:
            raise ConfigError(f'Invalid value "{name}" for "partition.assignment.strategy": expected some of '
                              f"{', '.join(known)}")
    if config["heartbeat.interval.ms"] >= config["session.timeout.ms"]:
        raise ConfigError('"heartbeat.interval.ms" must be less than "session.timeout.ms"')
    if config["group.instance.id"] and not config["group.id"]:
        raise ConfigError('"group.instance.id" needs a "group.id"')


_CHECKS: dict[str, Callable[[Config], None]] = {
    PRODUCER: _check_producer, CONSUMER: _check_consumer, ADMIN: _check_common
}
