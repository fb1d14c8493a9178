"""The properties of consumers: the group, its offsets, what is fetched ahead.

Read next: `headrace.config.rules`, for how they belong together.
"""

from __future__ import annotations

from headrace.config.property import CONSUMER, INT32, SHARE, Property

__all__ = ["CONSUMER_ROWS"]

_C = (CONSUMER,)
_CS = (CONSUMER, SHARE)
_S = (SHARE,)

CONSUMER_ROWS = (
    Property("group.id", "str", "", "Name of the consumer group.", roles=_CS),
    Property("group.instance.id", "str", "", "Fixed name of this member: its partitions survive a restart shorter than "
             "session.timeout.ms.", roles=_C, kip="KIP-345"),
    Property("group.protocol", "enum", "classic", "How members of the group agree: classic, where a member plans, or "
             "consumer, where the coordinator does (Apache Kafka 4.0 and later).", roles=_C,
             choices=("classic", "consumer"), kip="KIP-848"),
    Property("group.remote.assignor", "str", "", 'Assignor of the coordinator with "group.protocol": "consumer": '
             "uniform, range, or empty for its own choice.", roles=_C, kip="KIP-848"),
    Property("partition.assignment.strategy", "list", ("range", "roundrobin"), "Assignors this member supports, best "
             "first: range, roundrobin, sticky (Java's members know it, librdkafka's do not), cooperative-sticky, or "
             "Java's names of these classes.", roles=_C),
    Property("session.timeout.ms", "int", 45_000, "The group drops a member that was silent for so long.",
             roles=_C, unit="ms", low=1, high=3_600_000),
    Property("heartbeat.interval.ms", "int", 3_000, "Time between two heartbeats.", roles=_C, unit="ms", low=1,
             high=3_600_000),
    Property("max.poll.interval.ms", "int", 300_000, "A member that does not poll for so long leaves the group.",
             roles=_CS, unit="ms", low=1, high=86_400_000, kip="KIP-62"),
    Property("enable.auto.commit", "bool", True, "Commit stored offsets regularly and on close.",
             aliases=("auto.commit.enable",), roles=_C),
    Property("auto.commit.interval.ms", "int", 5_000, "Time between two automatic commits; 0 commits on close and when "
             "partitions are given up only.", roles=_C, unit="ms", low=0, high=86_400_000),
    Property("enable.auto.offset.store", "bool", True, "Store the offset of each record that is handed out, so that "
             "the next commit covers it.", roles=_C),
    Property("auto.offset.reset", "enum", "latest", "Where to start without a committed offset, or with one that is "
             "out of range, or in a topic that was deleted and made anew. by_duration:PT1H, for example, is the first "
             "record of the last hour (KIP-1106).", roles=_C, choices={
                 "earliest": "earliest", "smallest": "earliest", "beginning": "earliest", "latest": "latest",
                 "largest": "latest", "end": "latest", "error": "error", "none": "error"}),
    Property("isolation.level", "enum", 1, "Hand out records of committed transactions only, or all of them.",
             roles=_C, choices={"read_uncommitted": 0, "read_committed": 1}, kip="KIP-98"),
    Property("fetch.wait.max.ms", "int", 500, "Longest time a broker waits for fetch.min.bytes.",
             aliases=("fetch.max.wait.ms",), roles=_CS, unit="ms", low=0, high=300_000),
    Property("fetch.min.bytes", "int", 1, "A broker answers a fetch when it has so much.", roles=_CS, unit="bytes",
             low=0, high=INT32),
    Property("fetch.max.bytes", "int", 52_428_800, "Most bytes in one fetch reply.", roles=_CS, unit="bytes", low=0,
             high=INT32),
    Property("max.partition.fetch.bytes", "int", 1_048_576, "Most bytes of one partition in one fetch reply.",
             aliases=("fetch.message.max.bytes",), roles=_C, unit="bytes", low=1, high=1_000_000_000),
    Property("fetch.error.backoff.ms", "int", 500, "Wait before a partition is fetched again after an error.",
             roles=_C, unit="ms", low=0, high=300_000),
    Property("queued.max.messages.kbytes", "int", 65_536, "Bytes that may be prefetched and not yet handed out.",
             roles=_C, unit="KiB", low=1, high=2_097_151),
    Property("queued.min.messages", "int", 0, "A partition is not fetched while so many of its records are prefetched "
             "and not yet handed out; 0 fetches until queued.max.messages.kbytes is full.", roles=_C, low=0,
             high=10_000_000),
    Property("exclude.internal.topics", "bool", False, "Leave the brokers' own topics out where a pattern is "
             "subscribed to.", roles=_C),
    Property("enable.partition.eof", "bool", False, "Hand out a message with error _PARTITION_EOF when the end of a "
             "partition is reached.", roles=_C),
    Property("check.crcs", "bool", True, "Verify the checksum of each batch. Java: check.crcs.", roles=_CS),
    Property("on_commit", "callable", None, "Called as on_commit(KafkaError | None, list[TopicPartition]) after each "
             "commit, from `poll()`.", roles=_C),
    Property("share.acknowledgement.mode", "enum", "implicit", "Of a share consumer: implicit accepts the records of "
             "one `poll()` with the next one or with a commit; explicit wants each of them acknowledged.", roles=_S,
             choices=("implicit", "explicit"), kip="KIP-932"),
    Property("share.acquire.mode", "enum", 0, "Of a share consumer: batch_optimized takes whole batches of records, "
             "record_limit no more than max.poll.records (Kafka 4.2 and later).", roles=_S,
             choices={"batch_optimized": 0, "record_limit": 1}, kip="KIP-1206"),
    Property("max.poll.records", "int", 500, "Records that a share consumer asks a broker for; a batch that goes "
             "beyond them comes whole, unless share.acquire.mode is record_limit. Another consumer has no use for it: "
             "`poll()` hands out one record, and `consume()` takes the number.", roles=_S, low=1, high=INT32),
)
