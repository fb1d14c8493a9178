"""The properties of producers: what a record waits for, how it is batched, where it goes.

Read next: `headrace.config.rules`, for how they belong together.
"""

from __future__ import annotations

from headrace.config.property import INT32, PRODUCER, Property

__all__ = ["PRODUCER_ROWS"]

_P = (PRODUCER,)

PRODUCER_ROWS = (
    Property("acks", "enum", -1, "Replicas that must have a record before it is acknowledged: all in sync (all, -1), "
             "the leader (1), or nobody (0).", aliases=("request.required.acks",), roles=_P,
             choices={"all": -1, "-1": -1, "0": 0, "1": 1}),
    Property("enable.idempotence", "bool", True, "Write each record exactly once and in order, whatever is retried. "
             "Needs acks=all and at most 5 requests in flight.", roles=_P, kip="KIP-98"),
    Property("transactional.id", "str", "", "Name under which this producer writes transactions; the last one that "
             "initialises it is the only one that may write. Needs enable.idempotence.", roles=_P, kip="KIP-98"),
    Property("transaction.timeout.ms", "int", 60_000, "The coordinator aborts a transaction that stays open longer.",
             roles=_P, unit="ms", low=1_000, high=INT32, kip="KIP-98"),
    Property("max.in.flight.requests.per.connection", "int", 5, "Produce requests that may await an answer from one "
             "broker.", aliases=("max.in.flight",), roles=_P, low=1, high=1_000_000),
    Property("linger.ms", "float", 5.0, "Wait so long for more records before a batch that is not full is sent.",
             aliases=("queue.buffering.max.ms",), roles=_P, unit="ms", low=0, high=900_000),
    Property("batch.size", "int", 1_000_000, "Largest batch, uncompressed.", roles=_P, unit="bytes", low=1,
             high=INT32),
    Property("batch.num.messages", "int", 10_000, "Most records in one batch.", roles=_P, low=1, high=1_000_000),
    Property("message.max.bytes", "int", 1_000_000, "Largest record and largest produce request.",
             aliases=("max.request.size",), roles=_P, unit="bytes", low=1_000, high=1_000_000_000),
    Property("queue.buffering.max.messages", "int", 100_000, "Records that may wait in the producer; `produce()` "
             "raises BufferError beyond it. 0 means no limit.", roles=_P, low=0, high=INT32),
    Property("queue.buffering.max.kbytes", "int", 1_048_576, "Memory that waiting records may take.", roles=_P,
             unit="KiB", low=1, high=INT32),
    Property("buffer.memory", "int", 0, "Java's name for queue.buffering.max.kbytes, in bytes; 0 leaves that one "
             "alone.", roles=_P, unit="bytes", low=0, high=INT32 * 1024),
    Property("topic.metadata.propagation.max.ms", "int", 30_000, "Records of a topic that is not known wait so long "
             "for it to turn up, if message.timeout.ms is not over before.", roles=_P, unit="ms", low=0,
             high=3_600_000),
    Property("message.timeout.ms", "int", 300_000, "Time from `produce()` until the record is delivered or reported as "
             "failed; 0 waits for ever.", aliases=("delivery.timeout.ms",), roles=_P, unit="ms", low=0, high=INT32,
             kip="KIP-91"),
    Property("request.timeout.ms", "int", 30_000, "Longest wait of a broker for the replicas of a produce request, and "
             "ours for its answer, which may be a tenth later (at most 2 s) with acks=all. No more than "
             "socket.timeout.ms, where that is given, as in librdkafka.", roles=_P, unit="ms", low=1, high=900_000),
    Property("retries", "int", INT32, "Times that a produce request is sent again within message.timeout.ms.",
             aliases=("message.send.max.retries",), roles=_P, low=0, high=INT32),
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
             "sticky.partitioning.linger.ms are over, then to another, at random; uniform_sticky does so whatever "
             "the key. consistent, murmur2, fnv1a: as their namesakes, a missing key being an empty one. random: any, "
             "anew for each record with a key, turns without one. round_robin: one after the other, whatever the key. "
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
                               "org.apache.kafka.clients.producer.internals.")}},
             otherwise="other classes of Java cannot run here: say each record's partition, or choose by partitioner"),
    Property("partitioner.ignore.keys", "bool", False, "Spread records over all partitions although they have keys, "
             "as the partitioner uniform_sticky does.", roles=_P, kip="KIP-794"),
    Property("partitioner.adaptive.partitioning.enable", "bool", True, "Draw partitions the less often the more "
             "batches wait for them, so that a slow broker gets fewer records without a key.", roles=_P,
             kip="KIP-794"),
    Property("partitioner.availability.timeout.ms", "int", 0, "Draw no partition of a broker that has settled none of "
             "the batches that wait for it for so long; 0 waits for ever. Needs "
             "partitioner.adaptive.partitioning.enable.", roles=_P, unit="ms", low=0, high=INT32, kip="KIP-794"),
    Property("partitioner.rack.aware", "bool", False, "Draw only partitions led in client.rack, if there are any.",
             roles=_P, kip="KIP-1123"),
    Property("sticky.partitioning.linger.ms", "int", 10, "Longest turn of a partition with records without a key; 0 "
             "draws a lot for each record. Twice linger.ms, if that is more and this is not given.", roles=_P,
             unit="ms", low=0, high=900_000, kip="KIP-480"),
    Property("interceptor.classes", "objects", (), "`ProducerInterceptor`s, called in this order: classes, objects, or "
             "import paths (`package.module.Class`), which may be text with commas. Properties with a part "
             "`interceptor` in their name are theirs and not checked.", roles=_P, kip="KIP-42"),
    Property("max.block.ms", "int", 60_000, "Longest time that `send()` waits for room in the buffer, or for a topic "
             "that is not known yet. `produce()` never waits.", roles=_P, unit="ms", low=0, high=INT32),
    Property("on_delivery", "callable", None, "Called as on_delivery(KafkaError | None, Message) for each record that "
             "was given no callback of its own, from `poll()` or `flush()`.", aliases=("dr_cb", "dr_msg_cb"), roles=_P),
    Property("delivery.report.only.error", "bool", False, "Call back for failed records only.", roles=_P),
)
