"""Options of format("headrace"): what is accepted, and the one line that each mistake gives."""

import pytest

from headrace.errors import ConfigError
from headrace.spark.options import Position, Retries, SinkOptions, SourceOptions
from headrace.spark.plan import EARLIEST, LATEST

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}


def source(streaming=False, **given):
    return SourceOptions.parse({**SERVERS, "subscribe": "t", **given}, streaming=streaming)


def refusal(streaming=False, **given):
    with pytest.raises(ConfigError) as caught:
        source(streaming, **given)
    return str(caught.value)


def test_option_names_are_case_insensitive():
    options = SourceOptions.parse(
        {"KAFKA.Bootstrap.Servers": "a:1", "SUBSCRIBE": "x, y,x", "MAXoffsetsPERtrigger": "7"}, streaming=True
    )
    assert options.client == {"bootstrap.servers": "a:1"}
    assert options.subscription.topics == ("x", "y")
    assert options.max_rows == 7


def test_a_batch_read_defaults_to_everything_and_a_stream_to_what_comes_next():
    assert source().starting == Position(EARLIEST)
    assert source().ending == Position(LATEST)
    assert source(streaming=True).starting == Position(LATEST)
    assert source(streaming=True, startingOffsets=" Earliest ").starting == Position(EARLIEST)
    assert source(endingOffsets="LATEST").ending == Position(LATEST)


def test_offsets_may_be_given_per_partition_with_logical_ones():
    options = source(startingOffsets='{"t": {"0": 5, "1": -2}}', endingOffsets='{"t": {"0": 9, "1": -1}}')
    assert options.starting.offsets == {("t", 0): 5, ("t", 1): EARLIEST}
    assert options.ending.offsets == {("t", 0): 9, ("t", 1): LATEST}


def test_a_logged_offset_can_be_pasted_as_starting_offsets():
    logged = '{"t": {"0": 5}, "@from": {"t": {"0": 1}}, "@v": 1}'
    assert source(startingOffsets=logged).starting.offsets == {("t", 0): 5}


def test_a_timestamp_goes_before_offsets():
    options = source(startingTimestamp="1000", startingOffsets="earliest", startingOffsetsByTimestampStrategy="latest")
    assert options.starting == Position(timestamp_ms=1000, else_latest=True)


TIMES = '{"t": {"0": 1000, "1": 2000}}'


def test_times_of_partitions_go_before_offsets_and_after_one_time_for_all():
    named = {("t", 0): 1000, ("t", 1): 2000}
    both = {"startingOffsetsByTimestamp": TIMES, "startingOffsets": "earliest", "endingOffsetsByTimestamp": TIMES,
            "endingOffsets": "latest"}
    options = source(**both)
    assert options.starting == Position(timestamps=named)
    assert options.ending == Position(timestamps=named, else_latest=True)
    options = source(**both, startingTimestamp="7", endingTimestamp="9")
    assert options.starting == Position(timestamp_ms=7)
    assert options.ending == Position(timestamp_ms=9, else_latest=True)


def test_a_time_may_be_the_beginning_or_the_end_as_in_spark_s_connector():
    ends = {"startingOffsetsByTimestamp": '{"t": {"0": -1, "1": 5}}',
            "endingOffsetsByTimestamp": '{"t": {"0": -2, "1": -1}}'}
    options = source(**ends)
    assert options.starting == Position(timestamps={("t", 0): LATEST, ("t", 1): 5})
    assert options.ending == Position(timestamps={("t", 0): EARLIEST, ("t", 1): LATEST}, else_latest=True)
    options = source(startingTimestamp="-2", endingTimestamp="-1")
    assert options.starting == Position(timestamp_ms=EARLIEST)
    assert options.ending == Position(timestamp_ms=LATEST, else_latest=True)


def test_waits_and_retries_are_those_of_spark_s_connector():
    options = source(**{"kafkaConsumer.pollTimeoutMs": "500", "fetchOffset.numRetries": "2",
                        "fetchOffset.retryIntervalMs": "30"})
    assert options.poll_timeout_s == 0.5
    assert options.retries == Retries(2, 0.03)
    assert [options.retries.are_over(failures, 1e9) for failures in (1, 2, 3)] == [False, False, True]
    assert [source().retries.are_over(10**6, spent_s) for spent_s in (119.0, 121.0)] == [False, True]


def test_what_concerns_groups_changes_nothing_but_the_group_for_lag_tools():
    options = source(True, groupIdPrefix="p", **{"kafka.group.id": "g"}, groupId="shown")
    assert options.group_id == "shown"


def test_columns_are_named_once_and_bytes_have_units():
    options = source(True, columns=" value, offset,value ", maxBytesPerTrigger="64 MiB", maxOffsetsPerPartition="9")
    assert options.columns == ("value", "offset")
    assert options.max_bytes == 64 << 20
    assert options.max_rows_of_partition == 9
    assert options.is_limited
    assert source(True, minOffsetsPerTrigger="1").is_limited
    assert not source(True).is_limited


def test_assign_names_single_partitions():
    options = SourceOptions.parse({**SERVERS, "assign": '{"a": [1, 0], "b": [2]}'}, streaming=False)
    assert options.subscription.assigned == (("a", 1), ("a", 0), ("b", 2))


@pytest.mark.parametrize(("text", "seconds"), [
    ("15m", 900), ("250 ms", 0.25), ("250", 0.25), ("5 minutes", 300), ("1hour", 3600), ("2 Hours", 7200),
    ("1 min", 60), ("90 sec", 90), ("1 day", 86400), ("2d", 172800), ("500us", 0.0005),
])
def test_times_have_units(text, seconds):
    assert source(True, maxTriggerDelay=text).max_delay_s == pytest.approx(seconds)


def test_a_batch_that_must_have_more_records_than_it_may_have_is_refused():
    assert source(True, minOffsetsPerTrigger="5", maxOffsetsPerTrigger="5").min_rows == 5
    text = refusal(True, minOffsetsPerTrigger="6", maxOffsetsPerTrigger="5")
    assert "minOffsetsPerTrigger, 6, is more than maxOffsetsPerTrigger, 5" in text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"startingOfsets": "earliest"}, "Did you mean 'startingOffsets'?"),
        ({"security.protocol": "ssl"}, "need the prefix: 'kafka.security.protocol'"),
        ({"zzz": "1"}, "unknown option 'zzz'. Options of a read: includeHeaders, subscribe"),
        ({"subscribePattern": "t.*"}, "exactly one of subscribe, subscribePattern and assign; not subscribe and"),
        ({"subscribe": ""}, "exactly one of subscribe, subscribePattern and assign; subscribe is empty"),
        ({"subscribe": None}, "none was given"),
        ({"subscribe": "", "assign": " "}, "subscribe is empty"),
        ({"subscribe": None, "assign": ""}, "assign is empty"),
        ({"subscribe": " , "}, "subscribe names no topic: ','"),
        ({"startingOffsets": "latest"}, "cannot be latest (-1) in a batch read"),
        ({"startingOffsets": '{"t": {"0": 5, "1": -1}}'}, "cannot be latest (-1) in a batch read"),
        ({"startingOffsets": "soon"}, "must be earliest, latest or JSON"),
        ({"startingOffsets": '{"t": {"0": -7}}'}, "whole number of at least -2"),
        ({"startingOffsets": '{"t": 3}'}, "option startingOffsets must be JSON like"),
        ({"startingOffsets": '{"t": "earliest"}'},
         't needs a value for each partition, where -2 is earliest and -1 latest, not "earliest"'),
        ({"startingOffsets": '{"t": {"zero": 1}}'}, "option startingOffsets must be JSON like"),
        ({"startingOffsets": "{}"}, "option startingOffsets names no partition: '{}'"),
        ({"endingOffsets": '{"t": {}}'}, "option endingOffsets names no partition"),
        ({"startingOffsetsByTimestamp": '{"t": {}}'}, "option startingOffsetsByTimestamp names no partition"),
        ({"endingOffsetsByTimestamp": "{}"}, "option endingOffsetsByTimestamp names no partition"),
        ({"endingOffsetsByTimestamp": '[1]'}, "option endingOffsetsByTimestamp must be JSON like"),
        ({"endingOffsetsByTimestamp": '{"t": 7}'}, "where -2 is earliest and -1 latest, not 7"),
        ({"endingOffsets": "earliest"}, "endingOffsets cannot be earliest"),
        ({"endingOffsets": '{"t": {"0": -2}}'}, "endingOffsets cannot be earliest"),
        ({"minPartitions": "0"}, "whole number of at least 1, not '0'"),
        ({"failOnDataLoss": "maybe"}, "must be true or false, not 'maybe'"),
        ({"kafka.bootstrap.servers": "localhost:"}, "expected host:port"),
        ({"kafka.group.idd": "g"}, 'No such configuration property: "group.idd"'),
        ({"kafka.auto.offset.reset": "latest"}, "use startingOffsets"),
        ({"kafka.value.deserializer": "x"}, "cast them in Spark SQL"),
        ({"startingOffsetsByTimestampStrategy": "first"}, "must be error or latest"),
        ({"startingTimestamp": "yesterday"}, "not 'yesterday'. Times are milliseconds since 1970; -2 is the"),
        ({"startingOffsets": '{"t": {"first": 4}}'}, "t has no partition 'first': name them by their numbers"),
        ({"startingOffsetsByTimestamp": '{"t": {"0": "2026"}}'}, "the value of t[0] must be a whole number"),
        ({"startingOffsetsByTimestamp": '{"t": 5}'}, "option startingOffsetsByTimestamp must be JSON like"),
        ({"startingOffsetsByTimestamp": '{"t": {"0": -3}}'}, "whole number of at least -2"),
        ({"startingTimestamp": "-3"}, "whole number of at least 0"),
        ({"startingTimestamp": "4000.5"}, "whole number of at least 0, not '4000.5'"),
        ({"startingTimestamp": "4²"}, "whole number of at least 0, not '4²'"),
        ({"startingTimestamp": "++4"}, "whole number of at least 0, not '++4'"),
        ({"startingTimestamp": "9223372036854775808"}, "startingTimestamp can be at most 9223372036854775807"),
        ({"endingTimestamp": "9" * 30}, "endingTimestamp can be at most 9223372036854775807"),
        ({"startingOffsets": '{"t": {"0": 9223372036854775808}}'}, "at least -2 and at most 9223372036854775807"),
        ({"maxOffsetsPerPartition": "5"}, "belongs to a streaming read only"),
        ({"maxBytesPerTrigger": "5"}, "belongs to a streaming read only"),
        ({"groupId": "g"}, "belongs to a streaming read only"),
        ({"kafkaConsumer.pollTimeoutMs": "long"}, "kafkaConsumer.pollTimeoutMs must be a whole number"),
        ({"fetchOffset.numRetry": "1"}, "Did you mean 'fetchOffset.numRetries'?"),
    ],
)
def test_a_mistake_in_a_batch_read_is_one_clear_line(given, said):
    text = refusal(**given)
    assert said in text
    assert "\n" not in text


@pytest.mark.parametrize("name", [
    "startingTimestamp", "endingTimestamp", "startingOffsets", "endingOffsets", "startingOffsetsByTimestamp",
    "endingOffsetsByTimestamp", "minPartitions", "maxRecordsPerPartition", "failOnDataLoss", "includeHeaders",
    "fetchOffset.numRetries", "kafkaConsumer.pollTimeoutMs", "startingOffsetsByTimestampStrategy",
])
def test_an_option_that_is_given_and_empty_is_refused_and_does_not_mean_the_default(name):
    for empty in ("", " "):
        assert f"option {name} must be" in refusal(**{name: empty})


@pytest.mark.parametrize("name", ["maxOffsetsPerTrigger", "maxBytesPerTrigger", "maxTriggerDelay"])
def test_a_bound_of_micro_batches_that_is_given_and_empty_is_refused(name):
    assert f"option {name} must be" in refusal(True, **{name: ""})


def test_a_group_that_is_given_and_empty_is_refused():
    assert "option groupId is empty" in refusal(True, groupId="")


def test_a_number_may_have_a_plus_as_in_java():
    options = source(startingTimestamp="+4000", endingTimestamp=" +5000 ", minPartitions="+3")
    assert (options.starting.timestamp_ms, options.ending.timestamp_ms, options.min_partitions) == (4000, 5000, 3)


def test_what_only_a_batch_or_only_a_stream_has_is_not_refused_where_it_is_not_known_which_it_is():
    given = {**SERVERS, "subscribe": "t"}
    for name in ("endingOffsets", "startingOffsets"):
        SourceOptions.parse({**given, name: "latest"})
    assert SourceOptions.parse({**given, "groupId": "g"}).group_id == "g"
    with pytest.raises(ConfigError, match="failOnDataLoss must be true or false"):
        SourceOptions.parse({**given, "failOnDataLoss": "perhaps"})


def test_a_batch_read_does_without_the_bounds_of_micro_batches_and_warns_as_spark_s_connector_does(caplog):
    options = source(maxOffsetsPerTrigger="5", minOffsetsPerTrigger="9", maxTriggerDelay="1m")
    assert (options.max_rows, options.min_rows, options.max_delay_s) == (None, None, 900.0)
    assert [record.args[0] for record in caplog.records if record.levelname == "WARNING"] == [
        "maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay"]


def test_a_streaming_read_has_no_end():
    for given in ({"endingOffsets": "latest"}, {"endingTimestamp": "5"},
                  {"endingOffsetsByTimestamp": '{"t": {"0": 5}}'}):
        assert "belongs to a batch read only" in refusal(True, **given)


@pytest.mark.parametrize("text", ["many", "0", "-5m", "5 parsecs"])
def test_a_bad_size_says_what_a_size_looks_like(text):
    assert "like 1048576, 64m or 1g" in refusal(True, maxBytesPerTrigger=text)


@pytest.mark.parametrize("text", ["soon", "5 ss", "3 parsecs", "-1s", "h"])
def test_a_bad_delay_says_what_a_time_looks_like(text):
    assert "like 500ms, 30s, 15m or 1 hour" in refusal(True, maxTriggerDelay=text)


@pytest.mark.parametrize("text", ["[0]", '{"t": 0}', '{"t": ["0"]}', '{"t": [-1]}', "{}", "{"])
def test_a_malformed_assign_shows_the_form(text):
    with pytest.raises(ConfigError, match=r'must look like \{"topic"'):
        SourceOptions.parse({**SERVERS, "assign": text}, streaming=False)


def test_a_broken_pattern_is_named():
    with pytest.raises(ConfigError, match="subscribePattern is not a regular expression"):
        SourceOptions.parse({**SERVERS, "subscribePattern": "("}, streaming=False)


def test_a_dead_letter_topic_in_which_the_pattern_is_found_is_refused():
    given = {**SERVERS, "value.format": "json", "value.schema": "a int", "value.malformed": "dead-letter",
             "deadLetterTopic": "orders-bad"}
    with pytest.raises(ConfigError, match="dead-letter topic orders-bad is among the topics that are read"):
        SourceOptions.parse({**given, "subscribePattern": "orders"})
    assert SourceOptions.parse({**given, "subscribePattern": "orders$"}).dead_letter_topic == "orders-bad"


def test_brokers_are_required():
    with pytest.raises(ConfigError, match=r"kafka\.bootstrap\.servers is missing"):
        SourceOptions.parse({"subscribe": "t"}, streaming=False)


def test_a_sink_takes_its_topic_and_the_producer_s_properties():
    spark_own = {"checkpointLocation": "/x", "queryName": "q"}
    options = SinkOptions.parse({**SERVERS, "Topic": "out", "kafka.linger.ms": "20", **spark_own})
    assert options.topic == "out"
    assert options.client["linger.ms"] == "20"


def test_a_sink_refuses_the_options_of_a_source():
    with pytest.raises(ConfigError, match="unknown option 'subscribe'"):
        SinkOptions.parse({**SERVERS, "subscribe": "t"})


ONCE = {**SERVERS, "delivery.guarantee": "exactly_once"}


def test_a_sink_writes_at_least_once_unless_it_is_told_otherwise():
    assert not SinkOptions.parse(SERVERS).exactly_once
    assert not SinkOptions.parse({**SERVERS, "delivery.guarantee": "at_least_once"}).exactly_once
    assert SinkOptions.parse({**SERVERS, "Delivery.Guarantee": "EXACTLY_ONCE"}).exactly_once


@pytest.mark.parametrize("name", ["delivery.guarantee", "exactlyOnce.claims"])
def test_a_guarantee_that_is_given_and_empty_is_refused_and_does_not_mean_the_weaker_one(name):
    with pytest.raises(ConfigError, match=f"option {name} must be .*, not ''"):
        SinkOptions.parse({**SERVERS, "delivery.guarantee": "exactly_once", name: " "})


@pytest.mark.parametrize("name", ["topic", "sinkId", "exactlyOnce.claimsTopic"])
def test_a_name_that_is_given_and_empty_is_refused_and_nothing_takes_its_place(name):
    with pytest.raises(ConfigError, match=f"option {name} is empty: give a name, or leave the option out"):
        SinkOptions.parse({**SERVERS, "delivery.guarantee": "exactly_once", name: ""})


def test_exactly_once_takes_what_names_a_stream():
    options = SinkOptions.parse({**ONCE, "sinkid": "orders", "checkpointlocation": "/c", "kafka.transactional.id": "x"})
    assert (options.sink_id, options.checkpoint, options.transactional_id) == ("orders", "/c", "x")
    assert "transactional.id" not in options.client
    assert SinkOptions.parse({**ONCE, "exactlyOnce.claims": "describe", "kafka.acks": "all"}).exactly_once


def test_claims_are_taken_in_a_topic_where_that_is_asked_for():
    assert SinkOptions.parse(ONCE).claims_topic == ""
    assert SinkOptions.parse({**ONCE, "exactlyOnce.claims": "topic"}).claims_topic == "headrace-claims"
    assert SinkOptions.parse({**ONCE, "exactlyOnce.claims": "TOPIC", "exactlyonce.claimstopic": "mine"}
                             ).claims_topic == "mine"


@pytest.mark.parametrize(("given", "text"), [
    ({"delivery.guarantee": "exactly once"}, "delivery.guarantee must be at_least_once or exactly_once"),
    ({"kafka.transactional.id": "x"}, "kafka.transactional.id needs delivery.guarantee=exactly_once"),
    ({"sinkId": "x"}, "sinkId needs delivery.guarantee=exactly_once"),
    ({"exactlyOnce.claims": "describe"}, "exactlyOnce.claims needs delivery.guarantee=exactly_once"),
    ({"delivery.guarante": "exactly_once"}, "Did you mean 'delivery.guarantee'?"),
    ({"exactlyOnce.claimsTopic": "t"}, "exactlyOnce.claimsTopic needs delivery.guarantee=exactly_once"),
    ({**ONCE, "exactlyOnce.claims": "leader"}, "exactlyOnce.claims must be describe or topic, not 'leader'"),
    ({**ONCE, "exactlyOnce.claimsTopic": "c"}, "exactlyOnce.claimsTopic needs exactlyOnce.claims=topic"),
    ({**ONCE, "topic": "c", "exactlyOnce.claims": "topic", "exactlyOnce.claimsTopic": "c"}, "name another"),
    ({**ONCE, "kafka.enable.idempotence": "false"}, "kafka.enable.idempotence cannot be false"),
    ({**ONCE, "kafka.acks": "1"}, "kafka.acks must be all"),
])
def test_a_guarantee_that_cannot_be_kept_is_refused_with_the_remedy(given, text):
    with pytest.raises(ConfigError, match=text.replace(".", r"\.").replace("?", r"\?")):
        SinkOptions.parse({**SERVERS, **given})


@pytest.mark.parametrize("name", ["path", "paths"])
def test_a_path_is_told_from_an_option_that_was_given(name):
    assert refusal(**{name: "orders"}) == "load() takes no path: name topics by option subscribe"
    with pytest.raises(ConfigError) as caught:
        SinkOptions.parse({**SERVERS, name: "orders"})
    assert str(caught.value) == "save() and start() take no path: name the topic by option topic"


def test_who_reads_a_table_without_options_learns_where_to_give_them():
    with pytest.raises(ConfigError, match=r"servers is missing: .*: give them with each query, SELECT \* FROM t WITH"):
        SourceOptions.parse({})
    with pytest.raises(ConfigError, match=r"give at least one broker as host:port$"):
        SourceOptions.parse({"subscribe": "t"})
