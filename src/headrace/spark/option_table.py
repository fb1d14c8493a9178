"""The options of `format("headrace")`, for people: what each is for, as data.

`headrace.spark.options` reads them; `tools.spark_options_page` makes the reference page of this table, and a test sees
to it that both have the same names. This module knows neither Spark nor a socket.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["OPTIONS", "UNREACHABLE", "SparkOption"]

READ: Final = "read"
STREAM: Final = "stream"
BATCH: Final = "batch read"
WRITE: Final = "write"


class SparkOption(NamedTuple):
    """One option.

    Attributes:
        name: as it is written; its case does not matter.
        use: where it belongs: `READ` (batch and stream), `STREAM`, `BATCH`, `WRITE`; several with " and ".
        default: what is done without it.
        about: what it does, in a sentence or two.
        ours: Spark's own connector has no such option.
    """

    name: str
    use: str
    default: str
    about: str
    ours: bool = False


def _of_both_sides(name: str, use: str, default: str, about: str) -> tuple[SparkOption, SparkOption]:
    return (SparkOption(f"value.{name}", use, default, about, True),
            SparkOption(f"key.{name}", use, default, f"As value.{name}, of the key.", True))


OPTIONS: Final = (
    SparkOption("kafka.*", "read and write", "", "A property of the Kafka client, without the prefix; see "
                "[configuration](configuration.md). `kafka.bootstrap.servers` is required."),
    SparkOption("includeHeaders", READ, "false", "A column `headers`. A write has no need of it: the column is written "
                "where it is there."),
    SparkOption("subscribe", READ, "", "Topics, with commas between. Give one of subscribe, subscribePattern, assign."),
    SparkOption("subscribePattern", READ, "", "Regular expression of Python that is found in a topic's name, "
                "anywhere unless `^` and `$` bind it. Kafka's internal topics are left out. New topics are seen within "
                "a second."),
    SparkOption("assign", READ, "", 'Single partitions: `{"topic": [0, 1]}`.'),
    SparkOption("startingOffsets", READ, "stream: latest; batch: earliest", "earliest, latest (streams only), or an "
                'offset for each partition: `{"topic": {"0": 42, "1": -2}}`, where -2 is earliest and -1 latest. A '
                "batch read that starts behind its end is an error. A query that starts again goes on from its "
                "checkpoint."),
    SparkOption("startingTimestamp", READ, "", "Milliseconds since 1970: the first record at that time or later. -2 is "
                "earliest and -1 latest. Goes before startingOffsetsByTimestamp and startingOffsets."),
    SparkOption("startingOffsetsByTimestamp", READ, "", 'Times of partitions: `{"topic": {"0": 1700000000000}}`. '
                "Goes before startingOffsets."),
    SparkOption("startingOffsetsByTimestampStrategy", READ, "error", "Where a partition has no record that late: "
                "error, or latest to start at its end."),
    SparkOption("endingOffsets", BATCH, "latest", "latest, or an offset for each partition, where -1 is latest. "
                "An offset behind the end of the log is an error; with failOnDataLoss=false the end is taken."),
    SparkOption("endingTimestamp", BATCH, "", "As startingTimestamp, for the end; the end of a partition without a "
                "record that late. Goes before endingOffsetsByTimestamp and endingOffsets."),
    SparkOption("endingOffsetsByTimestamp", BATCH, "", "A time for each partition. Goes before endingOffsets."),
    SparkOption("failOnDataLoss", READ, "true", "Fail when records that were still to be read are gone: aged out, "
                "their topic deleted or made anew (seen by its id), or cut off by an unclean election (seen by the "
                "terms of leaders). With false the query goes on with what there is."),
    SparkOption("minPartitions", READ, "", "At least so many tasks: large ranges are cut, and small ones do not share "
                "a task. For rows that are dear to work on."),
    SparkOption("maxRecordsPerPartition", READ, "", "No task has more records than this."),
    SparkOption("maxRecordsPerSharedTask", READ, "50000", "Small ranges of several partitions share a task while it "
                "has no more records than this; 0: each range is a task. A task costs Spark as much as so many rows.",
                True),
    SparkOption("maxOffsetsPerTrigger", STREAM, "", "About so many records in a micro-batch, shared by backlog."),
    SparkOption("minOffsetsPerTrigger", STREAM, "", "Wait for so many records, but not longer than maxTriggerDelay. A "
                "query that starts takes what there is, and so do the triggers once and availableNow."),
    SparkOption("maxTriggerDelay", STREAM, "15m", "Longest wait for minOffsetsPerTrigger: 500ms, 30s, 15m, 1 hour; "
                "milliseconds without a unit."),
    SparkOption("maxOffsetsPerPartition", STREAM, "", "At most so many records of each partition in a micro-batch.",
                True),
    SparkOption("maxBytesPerTrigger", STREAM, "", "About so many bytes in a micro-batch: 1048576, 64m, 1g. Counted as "
                "brokers store them (compressed), by the first 64 KiB of each topic's backlog, looked at every 30 s.",
                True),
    SparkOption("columns", READ, "all", "Names with commas between: only these columns are decoded and handed to "
                "Spark. `headers` may be one of them: includeHeaders has no say then.", True),
    SparkOption("groupId", STREAM, "", "Group whose offsets are set when a micro-batch is finished, so that lag tools "
                "see the query. Nothing is read from there. The group must have no members.", True),
    SparkOption("stopFile", STREAM, "", "A path: once there is a file, no further micro-batch is planned.", True),
    SparkOption("kafkaConsumer.pollTimeoutMs", READ, "120000", "How long a task waits for data; brokers may restart "
                "meanwhile."),
    SparkOption("fetchOffset.numRetries", READ, "as often as 120 s allow", "How often the driver asks again for "
                "partitions and offsets when brokers fail."),
    SparkOption("fetchOffset.retryIntervalMs", READ, "250", "Milliseconds between two of these questions."),
    SparkOption("groupIdPrefix", READ, "", "Accepted, and nothing to do: no group takes part in reading. So is "
                "`kafka.group.id`."),
    SparkOption("topic", WRITE, "the column topic", "Topic to write to; goes before the column."),
    SparkOption("delivery.guarantee", WRITE, "at_least_once", "at_least_once or exactly_once: one Kafka transaction "
                "for each micro-batch or batch write.", True),
    SparkOption("sinkId", WRITE, "made of checkpointLocation", "Name of the stream for exactly_once: no other stream "
                "may have it, and it must stay when the query starts again. kafka.transactional.id goes before it.",
                True),
    SparkOption("exactlyOnce.claims", WRITE, "describe", "How a task makes sure that nothing else writes to its "
                "partitions: describe asks their leaders; topic claims its work in a topic, which leaves no "
                "gap.", True),
    SparkOption("exactlyOnce.claimsTopic", WRITE, "headrace-claims", "The topic for claims, which any number of "
                "streams share; created with one partition where there is none.", True),
    *_of_both_sides("format", "read and write", "raw", "What the bytes are: raw, string, json, avro, protobuf or "
                    "json-schema. All but raw and string are read into columns, and written from them."),
    *_of_both_sides("schema", "read and write", "of the registry", "The schema's text: Avro's JSON, a .proto file or a "
                    "descriptor set in base64, a JSON Schema; for json columns as in `a bigint, b string`."),
    *_of_both_sides("schema.file", "read and write", "", "A file with the schema's text, or what protoc "
                    "--descriptor_set_out writes, read by the driver."),
    *_of_both_sides("subject", "read and write", "by the strategy", "Subject in the registry."),
    *_of_both_sides("schema.version", "read and write", "latest", "Version of the subject."),
    *_of_both_sides("message", "read and write", "the first one", "Name of the Protobuf message."),
    *_of_both_sides("subject.strategy", "read and write", "topic", "Name of the subject: topic, record or "
                    "topic_record."),
    *_of_both_sides("framing", "read and write", "confluent with a registry", "confluent: a schema's number stands "
                    "before each value; or none."),
    *_of_both_sides("validate", "read and write", "false", "json-schema: check each value against its schema."),
    *_of_both_sides("emit.default.values", READ, "false", "protobuf: fields that are not there have their default "
                    "instead of null."),
    *_of_both_sides("malformed", READ, "fail", "What becomes of bytes that cannot be read: fail, null, or dead-letter, "
                    "which writes them to deadLetterTopic."),
    SparkOption("deadLetterTopic", READ, "", "Topic for what cannot be read, with headers that say where it was and "
                "why.", True),
    *_of_both_sides("auto.register", WRITE, "true", "Register the frame's schema if the subject lacks it."),
    *_of_both_sides("use.latest", WRITE, "false", "Write with the subject's latest schema."),
    SparkOption("schema.registry.*", "read and write", "", "A property of the Schema Registry client, without the "
                "prefix: `schema.registry.url`, `schema.registry.basic.auth.user.info`.", True),
)
"""In the order of the page."""

UNREACHABLE: Final = {
    "kafka.auto.offset.reset, kafka.enable.auto.commit":
        "an error that says what to use: startingOffsets, the checkpoint",
    "kafka.key.deserializer, kafka.value.deserializer, kafka.key.serializer, kafka.value.serializer":
        "an error: columns are bytes, or what the option value.format says",
    "kafka.interceptor.classes in a read": "an error: records are read as columns, which interceptors do not see",
    "continuous trigger, real-time mode, asynchronous progress":
        "Spark refuses them for every Python source; of a sink it takes the continuous trigger and drops the rows, "
        "which are not committed then",
    "metrics of the source in the progress": "Spark takes none from a Python source: see headrace.spark.lag",
    "preferred locations of tasks": "a Python source cannot name any",
    "delegation tokens of Spark": "give the client's SASL properties with the prefix kafka.",
    "spark.kafka.consumer.cache.*, spark.kafka.producer.cache.*": "nothing to do: connections are kept for a minute",
}
"""What Spark's own connector has and a Python data source cannot, or must not, have; and what happens."""
