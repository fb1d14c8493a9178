"""The driver's and the tasks' part of exactly-once writes, at an embedded broker and without Spark."""

import pytest

pytest.importorskip("pyspark")

from headrace import Consumer, KafkaException, TopicPartition
from headrace.admin import AdminClient, NewTopic
from headrace.broker.settings import BrokerSettings
from headrace.errors import ConfigError, KafkaError
from headrace.machines.joint.joined_transaction import JoinedTransaction
from headrace.spark.exactly_once import driver_transaction, task_transaction
from headrace.spark.exactly_once.batch_marker import BatchMarker
from headrace.spark.exactly_once.spark_task import TaskIdentity
from headrace.spark.exactly_once.task_report import TaskReport
from headrace.spark.options import SinkOptions
from headrace.spark.sink import append_rows
from headrace.testing import EmbeddedBroker

pyarrow = pytest.importorskip("pyarrow")


@pytest.fixture(scope="module", params=[0, 2], ids=["version-1", "version-2"])
def broker(request):
    with EmbeddedBroker(settings=BrokerSettings(transaction_version=request.param)) as made:
        yield made


class Query:
    """A streaming query of two tasks: what Spark does with a sink."""

    def __init__(self, broker, topic, **options):
        self.servers, self.topic = broker.bootstrap_servers, topic
        self.options = SinkOptions.parse({
            "kafka.bootstrap.servers": self.servers, "topic": topic, "delivery.guarantee": "exactly_once",
            "sinkId": topic, **options})

    def begin(self):
        return driver_transaction.begin(self.options)

    def task(self, begun, batch, partition, rows=3, attempt=0, speculative=False, query="q", attempt_id=None):
        marker = None if batch is None else BatchMarker(query, batch)
        attempt_id = 100 + partition if attempt_id is None else attempt_id
        task = TaskIdentity(marker, partition, attempt, attempt_id, speculative)
        values = [b"%s-%d" % (str(batch).encode(), number) for number in range(rows)]
        data = [pyarrow.RecordBatch.from_pydict({
            "value": values, "partition": pyarrow.array([partition] * rows, pyarrow.int32())})]
        return task_transaction.write(begun, task, self.options.client, data,
                                      lambda out, part: append_rows(out, part, self.options))

    def run(self, batch, query="q"):
        begun = self.begin()
        reports = [self.task(begun, batch, number, query=query) for number in range(2)]
        driver_transaction.commit(self.options, reports)
        return reports

    def committed(self, ordered=True):
        found = [message.value().decode() for message in self.messages()]
        return sorted(found) if ordered else found

    def messages(self):
        with Consumer({"bootstrap.servers": self.servers, "group.id": "r", "auto.offset.reset": "earliest",
                       "enable.partition.eof": True, "enable.auto.commit": False}) as consumer:
            consumer.subscribe([self.topic])
            found, ended = [], set()
            while len(ended) < len(consumer.list_topics(self.topic).topics[self.topic].partitions):
                message = consumer.poll(10)
                assert message is not None
                if message.error() is None:
                    found.append(message)
                else:
                    ended.add(message.partition())
            return found


def rows_of(*batches, times=2):
    return sorted(f"{batch}-{number}" for batch in batches for number in range(3) for _ in range(times))


@pytest.fixture
def query(broker, request):
    return Query(broker, make_topic(broker, f"t{abs(hash(request.node.name))}"))


def make_topic(broker, name):
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for done in admin.create_topics([NewTopic(name, num_partitions=3, replication_factor=1)]).values():
        done.result()
    return name


def test_a_micro_batch_that_runs_again_is_skipped(query):
    for batch in (0, 1):
        assert not any(each.skipped for each in query.run(batch))
        assert all(each.skipped for each in query.run(batch))
    assert query.committed() == rows_of(0, 1)


def test_a_micro_batch_that_runs_again_with_more_rows_than_it_had_is_refused_not_skipped(query):
    query.run(0)
    begun = query.begin()
    reports = [query.task(begun, 0, number, rows=3 + number) for number in range(2)]
    with pytest.raises(KafkaException, match="in the topics with 6 rows, and has 7 now: the checkpoint was taken back"):
        driver_transaction.commit(query.options, reports)
    driver_transaction.abort(query.options, begun)
    assert query.committed() == rows_of(0)


def test_a_driver_that_dies_before_the_end_leaves_nothing_behind(query):
    begun = query.begin()
    reports = [query.task(begun, 0, number) for number in range(2)]
    driver_transaction.mark(query.options, reports[0], {(query.topic, 0), (query.topic, 1)})
    assert query.committed() == []
    query.run(0)
    assert query.committed() == rows_of(0)


def test_a_driver_that_was_replaced_can_neither_commit_nor_disturb(query):
    begun = query.begin()
    reports = [query.task(begun, 0, number) for number in range(2)]
    successor = query.begin()
    again = [query.task(successor, 0, number) for number in range(2)]
    with pytest.raises(KafkaException, match="another process has taken over its name"):
        driver_transaction.commit(query.options, reports)
    driver_transaction.abort(query.options, begun)
    driver_transaction.commit(query.options, again)
    assert query.committed() == rows_of(0)


def test_a_task_of_the_transaction_before_cannot_write(query):
    begun = query.begin()
    query.begin()
    with pytest.raises(KafkaException, match=f"headrace-sink-{query.topic} was taken over.*a sinkId of its own"):
        query.task(begun, 0, 0)


def test_a_transaction_that_is_given_up_is_aborted_at_once_for_readers_wait_for_its_end(query):
    begun = query.begin()
    query.task(begun, 0, 0)
    with AdminClient({"bootstrap.servers": query.servers}) as admin:
        def state():
            name = begun.transaction.transactional_id
            return admin.describe_transactions([name])[name].result(10).state

        assert state() == "Ongoing"
        driver_transaction.abort(query.options, begun)
        assert state() != "Ongoing"
    driver_transaction.abort(query.options, None)


def test_an_abort_that_fails_is_a_warning_for_the_next_beginning_aborts_as_well(query, monkeypatch, caplog):
    class Gone:
        def abort(self, transaction):
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, "no broker answers"))

    begun = query.begin()
    monkeypatch.setattr(driver_transaction, "kept_owner", lambda properties: Gone())
    driver_transaction.abort(query.options, begun)
    assert f"{begun.transaction.transactional_id} was not aborted, readers wait for its end: no broker" in caplog.text


def test_an_abort_behind_a_commit_whose_answer_was_lost_changes_nothing(query):
    begun = query.begin()
    reports = [query.task(begun, 0, number) for number in range(2)]
    driver_transaction.commit(query.options, reports)
    driver_transaction.abort(query.options, begun)
    assert all(each.skipped for each in query.run(0))
    assert query.committed() == rows_of(0)


def test_a_transaction_with_a_task_that_was_forgotten_is_not_committed(query):
    begun = query.begin()
    reports = [query.task(begun, 0, number) for number in range(2)]
    with pytest.raises(KafkaException, match="holds other partitions than were reported"):
        driver_transaction.commit(query.options, reports[:1])
    driver_transaction.abort(query.options, begun)
    assert query.committed() == []


def test_a_second_attempt_does_not_write_but_one_without_rows_is_no_harm(query):
    begun = query.begin()
    with pytest.raises(KafkaException, match="attempt 1 of task 0") as caught:
        query.task(begun, 0, 0, attempt=1)
    assert "by_partition" not in str(caught.value)  # which is the remedy of others
    assert query.task(begun, 0, 0, rows=0, attempt=1).written == {}


def test_two_tasks_of_one_partition_are_refused(query):
    begun = query.begin()
    query.task(begun, 0, 0)
    with pytest.raises(KafkaException, match=r"by one task, as headrace\.spark\.by_partition\(\)"):
        query.task(begun, 0, 0)


def test_attempts_that_claim_at_the_same_moment_are_told_apart_by_their_first_batches(query, monkeypatch):
    """Neither sees the other's records: then the leader takes those that come first, and refuses the others."""
    monkeypatch.setattr(JoinedTransaction, "_is_ours", lambda self, known: False)
    begun = query.begin()
    query.task(begun, 0, 0, rows=300, attempt_id=2)
    with pytest.raises(KafkaException, match=r"by one task, as headrace\.spark\.by_partition\(\)"):
        query.task(begun, 0, 0, rows=300, attempt_id=6)


@pytest.mark.parametrize("rows", [1, 3, 4, 300])
def test_rows_keep_their_order_however_many_go_ahead(query, rows):
    begun = query.begin()
    report = query.task(begun, 7, 0, rows=rows, attempt_id=3)
    assert report.written == {(query.topic, 0): rows}
    driver_transaction.commit(query.options, [report])
    assert query.committed(ordered=False) == [f"7-{number}" for number in range(rows)]


@pytest.mark.parametrize("ahead", [0, 2, 5])
def test_key_and_headers_go_with_their_row_however_many_rows_go_ahead(query, ahead):
    begun = query.begin()
    rows = [(b"k%d" % number, b"v%d" % number, [("h", b"%d" % number)]) for number in range(4)]
    keys, values, headers = zip(*rows, strict=True)
    kind = pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))
    shown = [[{"key": name, "value": value} for name, value in each] for each in headers]
    with task_transaction.JoinedColumnWriter(
            query.options.client, begun, attempt_id=ahead - 1 if ahead else None) as out:
        out.append(query.topic, pyarrow.array(keys), pyarrow.array(values), pyarrow.array([2] * 4, pyarrow.int32()),
                   pyarrow.array(shown, kind))
        out.finish()
        written = out.written()
    report = TaskReport(begun, BatchMarker("q", 0), False, written)
    driver_transaction.commit(query.options, [report])
    found = [(each.key(), each.value(), each.headers()) for each in query.messages()]
    assert found == rows


def test_rows_that_are_in_the_transaction_twice_or_not_at_all_are_not_reported(query):
    begun = query.begin()
    task = TaskIdentity(BatchMarker("q", 0), 0, 0, 100, False)
    assert task_transaction.written(begun, task, 3, {(query.topic, 0): 1, (query.topic, 1): 2}).written
    for found in (2, 4):
        with pytest.raises(KafkaException, match=f"3 rows were written, and {found} records are in the transaction"):
            task_transaction.written(begun, task, 3, {(query.topic, 0): found})


def test_speculation_is_refused(query):
    begun = query.begin()
    with pytest.raises(ConfigError, match=r"spark\.speculation=false"):
        query.task(begun, 0, 0, speculative=True)


def test_a_micro_batch_without_rows_commits_nothing_and_needs_no_marker(query):
    begun = query.begin()
    driver_transaction.commit(query.options, [query.task(begun, 0, number, rows=0) for number in range(2)])
    assert query.begin().last is None
    driver_transaction.commit(query.options, [])


def test_a_checkpoint_that_was_taken_back_is_refused(query):
    query.run(4)
    with pytest.raises(KafkaException, match="the checkpoint was taken back"):
        query.run(3)


def test_a_new_query_numbers_its_micro_batches_anew(query):
    query.run(0)
    assert not any(each.skipped for each in query.run(0, query="another"))
    assert query.committed() == rows_of(0, times=4)


def test_a_batch_write_is_one_transaction_without_a_marker(query):
    begun = driver_transaction.begin_alone(query.options)
    reports = [query.task(begun, None, number) for number in range(2)]
    assert query.committed() == []
    driver_transaction.commit(query.options, reports)
    assert query.committed() == rows_of(None)


def test_batch_writes_without_a_name_do_not_end_each_other(query):
    options = SinkOptions.parse({"kafka.bootstrap.servers": query.servers, "topic": query.topic,
                                 "delivery.guarantee": "exactly_once"})
    first, second = driver_transaction.begin_alone(options), driver_transaction.begin_alone(options)
    assert first.transaction.transactional_id != second.transaction.transactional_id


@pytest.mark.parametrize(("given", "name"), [
    ({"sinkId": "alone"}, "headrace-sink-alone"), ({"kafka.transactional.id": "mine", "sinkId": "alone"}, "mine")])
def test_a_batch_write_has_the_name_and_the_claims_that_its_options_give_it(query, given, name):
    options = SinkOptions.parse({
        "kafka.bootstrap.servers": query.servers, "topic": query.topic, "delivery.guarantee": "exactly_once",
        "exactlyOnce.claims": "topic", "exactlyOnce.claimsTopic": f"claims-{query.topic}", **given})
    begun = driver_transaction.begin_alone(options)
    assert begun.transaction.transactional_id == name
    assert begun.claims is not None
    assert begun.claims.topic == f"claims-{query.topic}"


@pytest.mark.parametrize(("given", "name"), [
    ({"sinkId": "orders"}, "headrace-sink-orders"),
    ({"kafka.transactional.id": "mine", "sinkId": "orders"}, "mine"),
    ({"checkpointlocation": "/c/1"}, "headrace-sink-4137c722b48ad98e9819"),
    ({"checkpointlocation": "/c/1/"}, "headrace-sink-4137c722b48ad98e9819"),
])
def test_the_name_of_a_stream_comes_from_what_tells_it_from_others(given, name):
    options = SinkOptions.parse({"kafka.bootstrap.servers": "h:1", "delivery.guarantee": "exactly_once", **given})
    assert driver_transaction.sink_name(options) == name


def test_offsets_of_a_group_come_to_be_with_the_records(query):
    begun = query.begin()
    report = query.task(begun, 0, 0)
    group, source = f"of-{query.topic}", TopicPartition(query.topic, 2)
    with Consumer({"bootstrap.servers": query.servers, "group.id": group}) as consumer:
        driver_transaction.mark(query.options, report, set(report.written))
        driver_transaction.commit_offsets(query.options, begun, group, {(query.topic, 2): 5})
        driver_transaction.end(query.options, begun)
        assert [each.offset for each in consumer.committed([source], 10)] == [5]
        begun = query.begin()
        query.task(begun, 1, 0)
        driver_transaction.commit_offsets(query.options, begun, group, {(query.topic, 2): 9})
        driver_transaction.abort(query.options, begun)
        assert [each.offset for each in consumer.committed([source], 10)] == [5]


def test_a_stream_without_a_name_is_refused_with_the_remedy():
    options = SinkOptions.parse({"kafka.bootstrap.servers": "h:1", "delivery.guarantee": "exactly_once"})
    with pytest.raises(ConfigError, match="set option sinkId"):
        driver_transaction.begin(options)


def test_two_attempts_that_are_alive_at_once_never_share_sequences_with_claims_in_a_topic(broker, request):
    topic = make_topic(broker, f"t{abs(hash(request.node.name))}")
    query = Query(broker, topic, **{"exactlyOnce.claims": "topic", "exactlyOnce.claimsTopic": f"claims-{topic}"})
    begun = query.begin()
    first = query.task(begun, 0, 0, attempt_id=5)
    with pytest.raises(KafkaException, match="another attempt has claimed it"):
        query.task(begun, 0, 0, attempt_id=5 + 127)
    driver_transaction.commit(query.options, [first, query.task(begun, 0, 1)])
    assert query.committed() == rows_of(0)
    query.run(1)
    assert all(each.skipped for each in query.run(1))
    assert query.committed() == rows_of(0, 1)
