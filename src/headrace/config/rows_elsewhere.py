"""Properties of librdkafka and Java that do nothing here: accepted when nothing is lost by it, else refused.

Together with the other tables these are all names that librdkafka's CONFIGURATION.md and Java's ConsumerConfig,
ProducerConfig and AdminClientConfig have (`tests/unit/config` holds them to that).
"""

from __future__ import annotations

from typing import Any

from headrace.config.property import INT32, Property

__all__ = ["NOT_FOR_SHARE_GROUPS", "NOT_SUPPORTED", "WITHOUT_EFFECT"]

_OAUTH = "org.apache.kafka.common.security.oauthbearer."
_PACKAGES_OF_HANDLER = (_OAUTH, f"{_OAUTH}secured.")
_KINIT = 'kinit -R -t "%{sasl.kerberos.keytab}" -k %{sasl.kerberos.principal} || ' \
    'kinit -t "%{sasl.kerberos.keytab}" -k %{sasl.kerberos.principal}'
_PYTHONS_LOGGING = "logging of Python's "
_NO_JVM = "there is no JVM"
_TICKETS = "a ticket is got with sasl.kerberos.keytab when a connection needs one, or is in the ticket cache"
_RENEWED = "a token is got anew when sasl.login.refresh.window.factor of its life is over and a connection needs one"
_CHECKED_BY_BROKERS = "a token is checked by the brokers, not by this client"
_SHADED = ("", "shadedmskiam.")
"""Databricks has Amazon's classes under another name."""
_NO_OFFSET_FILES = "offsets lie with the brokers"
_ALWAYS_ASKED = "brokers are always asked which versions they speak"
_SAMPLES = "statistics cover the last 1,000 requests"
_ASYNCIO_HAS_SOCKETS = "sockets belong to asyncio"


def _row(name: str, kind: str, why: str, **limits: Any) -> Property:
    return Property(name, kind, None, why, **limits)


_ROWS = (
    _row("api.version.fallback.ms", "int", "brokers always say which versions they speak", low=0, high=604_800_000),
    _row("api.version.request", "bool", _ALWAYS_ASKED, only=(True,)),
    _row("api.version.request.timeout.ms", "int", "socket.connection.setup.timeout.ms covers the question", low=1,
         high=300_000),
    _row("auto.include.jmx.reporter", "bool", _NO_JVM),
    _row("bootstrap.resolve.timeout.ms", "int", "a name that cannot be resolved is asked for again with each dial",
         low=0),
    _row("broker.address.ttl", "int", "each dial asks the resolver anew", low=0, high=86_400_000),
    _row("broker.version.fallback", "str", "brokers always say which versions they speak"),
    _row("buffer.memory.allocation.strategy", "enum", "batches take memory as they grow",
         choices=("full", "incremental")),
    _row("builtin.features", "str", "a feature that is missing is reported where it is asked for"),
    _row("client.dns.lookup", "enum", "all addresses of a host are tried",
         choices=("use_all_dns_ips", "default", "resolve_canonical_bootstrap_servers_only"),
         only=("use_all_dns_ips", "default")),
    _row("client.software.name", "str", "brokers get the name of this library"),
    _row("client.software.version", "str", "brokers get the version of this library"),
    _row("consume.callback.max.messages", "int", "no callback consumes: `consume()` takes the number", low=0,
         high=1_000_000),
    _row("coordinator.query.interval.ms", "int", "the coordinator is sought again as soon as a broker says that it "
         "moved, or is lost", low=1, high=3_600_000),
    _row("debug", "list", f"{_PYTHONS_LOGGING}decides what is shown: the logger is `headrace`, or the property logger",
         choices=("generic", "broker", "topic", "metadata", "feature", "queue", "msg", "protocol", "cgrp", "security",
                  "fetch", "interceptor", "plugin", "consumer", "admin", "eos", "mock", "assignor", "conf", "telemetry",
                  "all")),
    _row("default.api.timeout.ms", "int", "calls are given their own time; those of an AdminClient that are not have "
         "socket.timeout.ms", low=0, high=INT32),
    _row("enable.gapless.guarantee", "bool", "a transaction is what leaves no gap", only=(False,)),
    _row("enable.metrics.push", "bool", "metrics are not pushed to brokers"),
    _row("enable.random.seed", "bool", "random numbers are seeded by the system"),
    _row("enable.sparse.connections", "bool", "a broker is dialled when there is something to ask it"),
    _row("enable_sasl_queue", "bool", "oauth_cb is called without being polled for"),
    _row("enabled_events", "int", "events are callbacks", low=0, high=INT32),
    _row("fetch.queue.backoff.ms", "int", "a partition is fetched again as soon as the queue has room", low=0,
         high=300_000),
    _row("group.protocol.type", "str", "members of another type share no partitions", only=("consumer",)),
    _row("internal.termination.signal", "int", "the loop's thread ends without a signal", low=0, high=128),
    _row("internal.throw.on.fetch.stable.offset.unsupported", "bool", "brokers of Kafka 2.5 and later give stable "
         "offsets, older ones cannot", only=(False,)),
    _row("log.connection.close", "bool", "a connection that closes while it is not used is not reported"),
    _row("log.queue", "bool", f"{_PYTHONS_LOGGING}takes messages at once"),
    _row("log.thread.name", "bool", f"{_PYTHONS_LOGGING}knows the thread"),
    _row("log_level", "int", f"{_PYTHONS_LOGGING}decides: set the level of the logger `headrace`", low=0, high=7),
    _row("message.copy.max.bytes", "int", "a record is copied once, into its batch", low=0, high=1_000_000_000),
    _row("metadata.cluster.check.enable", "bool", "no request says which cluster is expected behind an address"),
    _row("metadata.max.idle.ms", "int", "topics that are not used any more cost next to nothing", low=0),
    _row("metadata.request.timeout.ms", "int", "a broker that does not answer in 30 seconds is left for another one",
         low=10),
    _row("metric.reporters", "list", "use stats_cb, or call `metrics()`",
         only=((), ("org.apache.kafka.common.metrics.JmxReporter",))),
    _row("metrics.num.samples", "int", _SAMPLES, low=1),
    _row("metrics.recording.level", "enum", "all statistics are always kept", choices=("info", "debug", "trace")),
    _row("metrics.sample.window.ms", "int", _SAMPLES, low=0),
    _row("offset.store.method", "enum", _NO_OFFSET_FILES, choices=("broker", "file", "none"), only=("broker",)),
    _row("offset.store.path", "str", _NO_OFFSET_FILES),
    _row("offset.store.sync.interval.ms", "int", _NO_OFFSET_FILES, low=-1, high=86_400_000),
    _row("produce.offset.report", "bool", "reports always have the offset"),
    _row("queue.buffering.backpressure.threshold", "int", "batches grow by themselves while a broker is slow; "
         "linger.ms and batch.size say how large they are otherwise", low=1, high=1_000_000),
    _row("queuing.strategy", "enum", "records stay in order", choices=("fifo", "lifo"), only=("fifo",)),
    _row("reconnect.backoff.jitter.ms", "int", "reconnect.backoff.ms has its own jitter", low=0, high=3_600_000),
    _row("sasl.client.callback.handler.class", "str", "Java's classes cannot be loaded: give sasl.username and "
         "sasl.password, or oauth_cb, or sasl.mechanism=AWS_MSK_IAM",
         only=tuple(f"{package}software.amazon.msk.auth.iam.IAMClientCallbackHandler" for package in _SHADED)),
    _row("sasl.kerberos.kinit.cmd", "str", f"no program is run: {_TICKETS}", only=("", "/usr/bin/kinit", _KINIT)),
    _row("sasl.kerberos.min.time.before.relogin", "int", _TICKETS, low=0, high=86_400_000),
    _row("sasl.kerberos.ticket.renew.jitter", "float", _TICKETS, low=0),
    _row("sasl.kerberos.ticket.renew.window.factor", "float", _TICKETS, low=0),
    _row("sasl.login.callback.handler.class", "str", "Java's classes cannot be loaded: tokens come from "
         "sasl.oauthbearer.token.endpoint.url, or give oauth_cb; for Amazon's, sasl.mechanism=AWS_MSK_IAM",
         only=tuple(f"{package}OAuthBearerLoginCallbackHandler" for package in _PACKAGES_OF_HANDLER)),
    _row("sasl.login.refresh.buffer.seconds", "int", _RENEWED, low=0, high=3_600),
    _row("sasl.login.refresh.min.period.seconds", "int", _RENEWED, low=0, high=900),
    _row("sasl.login.refresh.window.jitter", "float", _RENEWED, low=0, high=0.25),
    _row("sasl.oauthbearer.allow.unverified.audience", "bool", _CHECKED_BY_BROKERS, only=(False,)),
    _row("sasl.oauthbearer.allow.unverified.issuer", "bool", _CHECKED_BY_BROKERS, only=(False,)),
    _row("sasl.oauthbearer.clock.skew.seconds", "int", _CHECKED_BY_BROKERS, low=0),
    _row("sasl.oauthbearer.jwks.endpoint.refresh.ms", "int", _CHECKED_BY_BROKERS, low=0),
    _row("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", "int", _CHECKED_BY_BROKERS, low=0),
    _row("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", "int", _CHECKED_BY_BROKERS, low=0),
    _row("sasl.oauthbearer.jwt.validator.class", "str", f"Java's classes cannot be loaded; {_CHECKED_BY_BROKERS}",
         only=(f"{_OAUTH}DefaultJwtValidator", f"{_OAUTH}ClientJwtValidator")),
    _row("sasl.oauthbearer.scope.claim.name", "str", _CHECKED_BY_BROKERS),
    _row("sasl.oauthbearer.sub.claim.name", "str", _CHECKED_BY_BROKERS),
    _row("socket.blocking.max.ms", "int", "sockets never block", low=1, high=60_000),
    _row("socket.max.fails", "int", "a request that is not answered in time closes the connection", low=0,
         high=1_000_000),
    _row("ssl.ca.certificate.stores", "list", "the system's certificates are trusted, on Windows those of the stores "
         "Root and CA: export those of another store to a file and give it as ssl.ca.location",
         only=(("Root",), ("CA",), ("Root", "CA"), ("CA", "Root"), ())),
    _row("ssl.engine.id", "str", "OpenSSL's own configuration file chooses engines and providers", only=("dynamic",)),
    _row("ssl.keymanager.algorithm", "str", f"{_NO_JVM}, and OpenSSL has one way to do it", only=("SunX509", "PKIX")),
    _row("ssl.providers", "list", "OpenSSL's own configuration file chooses engines and providers",
         only=(("default",), ())),
    _row("ssl.trustmanager.algorithm", "str", f"{_NO_JVM}, and OpenSSL has one way to do it", only=("PKIX",)),
    _row("topic.metadata.refresh.fast.cnt", "int", "metadata is asked for until the leader is known", low=0,
         high=1_000),
    _row("topic.metadata.refresh.fast.interval.ms", "int", "retry.backoff.ms is the pause while a leader is sought",
         low=1, high=60_000),
    _row("topic.metadata.refresh.sparse", "bool", "only topics that are used are asked for"),
    _row("transaction.two.phase.commit.enable", "bool", "transactions end with the client that began them",
         only=(False,)),
)

WITHOUT_EFFECT: dict[str, Property] = {row.name: row for row in _ROWS}
"""Accepted, so that a configuration written for librdkafka or Java works. `doc` says why there is nothing to do, `only`
which values are accepted if another one should have an effect."""

NOT_SUPPORTED: dict[str, str] = {
    # Names of librdkafka and Java that cannot mean anything here, and what to use instead.
    "background_event_cb": "callbacks run in `poll()`: call it from a thread of your own",
    "bootstrap.controllers": "controllers are reached through brokers: give brokers as bootstrap.servers",
    "closesocket_cb": _ASYNCIO_HAS_SOCKETS,
    "config.providers": "read the secret in Python and give its value",
    "connect_cb": _ASYNCIO_HAS_SOCKETS,
    "consume_cb": "call `consume()`, or iterate over the consumer",
    "default_topic_conf": "give the properties at the top level, or under default.topic.config",
    "events_cb": "use error_cb, stats_cb and throttle_cb",
    "interceptors": "give the interceptors of a producer as interceptor.classes",
    "key.deserializer": "messages have bytes: decode them after `poll()`",
    "key.serializer": "`produce()` takes bytes and str: serialise keys before, or make a `SerializingProducer`",
    "log_cb": "give a logging.Logger as logger",
    "msg_order_cmp": "records stay in order",
    "oauthbearer_token_refresh_cb": "give a function as oauth_cb; it returns the token",
    "offset_commit_cb": "give a function as on_commit, called as (error, partitions)",
    "opaque": "bind what the callback needs to the callback, with a closure or functools.partial",
    "open_cb": "files are opened by Python",
    "partitioner_callback": "give the function as partitioner, called as (topic, key, value, partition_count)",
    "partitioner_cb": "give the function as partitioner, called as (topic, key, value, partition_count)",
    "plugin.library.paths": "native plugins cannot be loaded: use interceptor.classes",
    "rebalance_cb": "give on_assign, on_revoke and on_lost to `subscribe()`",
    "resolve_cb": "names are resolved by asyncio",
    "sasl.login.class": "Java's classes cannot be loaded: give sasl.username and sasl.password, or oauth_cb",
    "sasl.oauthbearer.expected.audience": f"{_CHECKED_BY_BROKERS}: remove it",
    "sasl.oauthbearer.expected.issuer": f"{_CHECKED_BY_BROKERS}: remove it",
    "sasl.oauthbearer.jwks.endpoint.url": f"{_CHECKED_BY_BROKERS}: remove it",
    "security.providers": f"{_NO_JVM}: OpenSSL's own configuration file chooses its providers",
    "socket_cb": _ASYNCIO_HAS_SOCKETS,
    "ssl.certificate.verify_cb": "give the certificates to trust as ssl.ca.location or ssl.ca.pem",
    "ssl.engine.factory.class": "Java's classes cannot be loaded: give certificates and key as ssl.*.location or "
        "ssl.*.pem",
    "ssl.engine.location": "OpenSSL's own configuration file chooses engines and providers",
    "ssl.provider": f"{_NO_JVM}: OpenSSL's own configuration file chooses its providers",
    "ssl.secure.random.implementation": f"{_NO_JVM}: OpenSSL has random numbers of its own",
    "ssl.sigalgs.list": "set SignatureAlgorithms in OpenSSL's own configuration file, which OPENSSL_CONF names",
    "ssl_ca": "give the certificates as ssl.ca.pem or ssl.ca.location",
    "ssl_certificate": "give the certificate as ssl.certificate.pem or ssl.certificate.location",
    "ssl_engine_callback_data": "OpenSSL's own configuration file chooses engines and providers",
    "ssl_key": "give the key as ssl.key.pem or ssl.key.location",
    "test.mock.broker.rtt": "give a `headrace.testing.EmbeddedBroker` faults that delay its replies",
    "test.mock.num.brokers": "start a `headrace.testing.EmbeddedBroker` and give its bootstrap_servers",
    "topic.blacklist": "topics are asked for only when they are used; give `subscribe()` a pattern that leaves others "
        "out",
    "value.deserializer": "messages have bytes: decode them after `poll()`",
    "value.serializer": "`produce()` takes bytes and str: serialise values before, or make a `SerializingProducer`",
}

NOT_FOR_SHARE_GROUPS: dict[str, str] = {
    **dict.fromkeys(("auto.offset.reset", "isolation.level", "session.timeout.ms", "heartbeat.interval.ms"),
                    "brokers decide it for the whole group: set it on the group, as share.auto.offset.reset, "
                    "share.isolation.level, share.session.timeout.ms or share.heartbeat.interval.ms"),
    **dict.fromkeys(("group.instance.id", "group.protocol", "group.protocol.type", "group.remote.assignor",
                     "partition.assignment.strategy"),
                    "each member of a share group may get each partition, and brokers choose which"),
    **dict.fromkeys(("enable.auto.commit", "on_commit"),
                    "records are acknowledged, not committed: see share.acknowledgement.mode and "
                    "`set_acknowledgement_commit_callback()`"),
    **dict.fromkeys(("enable.partition.eof", "queued.max.messages.kbytes"),
                    "a share consumer reads no partition from one end to the other, and nothing ahead"),
}
"""Properties that a share consumer refuses, as librdkafka's and Java's do, and why."""
