"""`headrace copy` at embedded brokers: what arrives, where the next copy begins, and how it ends."""

import signal
import subprocess
import sys
from itertools import chain

import pytest

from headrace import Consumer, Producer, TopicPartition
from headrace.admin import AdminClient, NewPartitions
from headrace.broker.faults import Action, Fault
from headrace.broker.settings import BrokerSettings
from headrace.cli.copy import main
from headrace.testing import EmbeddedBroker
from headrace.wire.messages.producer.produce import ProduceRequest

COMMAND = [sys.executable, "-c", "import sys; from headrace.cli import main; sys.exit(main())", "copy"]


@pytest.fixture(scope="module")
def broker():
    with EmbeddedBroker(settings=BrokerSettings(auto_create_topics=False)) as made:
        yield made


@pytest.fixture
def topics(broker, request):
    name = f"t{abs(hash(request.node.nodeid))}"
    for each in (name, f"{name}-copy"):
        broker.create_topic(each, 2)
    return name, f"{name}-copy"


@pytest.fixture
def copy(broker, topics, capsys):
    def run(*options, target=None):
        status = main([topics[0], target or topics[1], "-b", broker.bootstrap_servers, *options])
        return status, capsys.readouterr().err

    return run


def fill(broker, topic, count=10, first=0, partitions=2):
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        for row in range(first, first + count):
            producer.produce(topic, None if row % 5 == 0 else b"v%d\xff" % row, b"k%d" % row if row % 3 else None,
                             partition=row % partitions, timestamp=1_000 + row,
                             headers=[("h", b"x"), ("n", None)] if row % 4 == 0 else None)
        producer.flush()


def content(broker, topic, **config):
    """What each partition has, in order."""
    with Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "enable.partition.eof": True,
                   **config}) as consumer:
        ends = range(len(broker.end_offsets(topic)))
        consumer.assign([TopicPartition(topic, number, 0) for number in ends])
        found, left = {number: [] for number in ends}, len(ends)
        while left:
            message = consumer.poll(20)
            if message.error() is not None:
                left -= 1
            else:
                found[message.partition()].append(
                    (message.key(), message.value(), message.headers(), message.timestamp()[1]))
        return found


@pytest.mark.parametrize("options", [[], ["-z", "zstd"], ["--exactly-once"], ["-g", "plain"]])
def test_records_arrive_as_they_are_in_their_partitions(broker, topics, copy, options):
    fill(broker, topics[0], 100)
    status, said = copy(*options)
    assert status == 0
    assert said.startswith(f"100 records copied from {topics[0]} to {topics[1]} in ")
    assert content(broker, topics[1]) == content(broker, topics[0])


def test_another_cluster_can_be_the_target(broker, topics, copy):
    fill(broker, topics[0])
    with EmbeddedBroker(topics={topics[0]: 2}) as other:
        assert copy("--to-bootstrap-server", other.bootstrap_servers, "-q", target=topics[0]) == (0, "")
        assert content(other, topics[0]) == content(broker, topics[0])


@pytest.fixture(scope="module")
def other():
    """Another cluster."""
    with EmbeddedBroker(settings=BrokerSettings(auto_create_topics=False)) as made:
        yield made


@pytest.mark.parametrize(("source_partitions", "partitions"), [(2, 2), (2, 5), (5, 2)])
def test_exactly_once_into_another_cluster_goes_on_behind_what_is_there(
        broker, other, topics, copy, source_partitions, partitions):
    if source_partitions != 2:
        with AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin:
            admin.create_partitions([NewPartitions(topics[0], source_partitions)])[topics[0]].result(10)
    other.create_topic(topics[1], partitions)
    fill(broker, topics[0], 40, partitions=source_partitions)
    options = ["--exactly-once", "--transaction-every", "3", "--to-bootstrap-server", other.bootstrap_servers,
               *(["--repartition"] if partitions < source_partitions else [])]
    assert copy(*options, "-q", "-c", "7") == (0, "")
    assert copy(*options)[1].startswith("33 records copied")
    fill(broker, topics[0], 5, first=40, partitions=source_partitions)
    assert copy(*options)[1].startswith("5 records copied")
    assert copy(*options)[1].startswith("0 records copied")
    there, here = content(other, topics[1]), content(broker, topics[0])
    assert sorted(map(str, chain(*there.values()))) == sorted(map(str, chain(*here.values())))
    if partitions >= source_partitions:
        assert {number: there[number] for number in here} == here


def test_positions_of_another_topic_are_not_taken_for_those_of_this_one(broker, other, topics, copy):
    other.create_topic(topics[1], 2)
    fill(broker, topics[0])
    options = ["--exactly-once", "--to-bootstrap-server", other.bootstrap_servers]
    assert copy(*options, "-q") == (0, "")
    with AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        admin.delete_topics([topics[0]])[topics[0]].result(10)
    broker.create_topic(topics[0], 2)
    fill(broker, topics[0])
    status, said = copy(*options)
    assert (status, len(said.splitlines())) == (6, 1)
    assert "another topic called" in said
    assert "give another -g" in said
    assert copy(*options, "-g", "anew")[1].startswith("10 records copied")


@pytest.mark.parametrize(
    "options", [["-g", "rest"], ["--exactly-once"], ["--exactly-once", "--transaction-every", "3"]])
def test_the_next_copy_goes_on_behind_the_last_one(broker, topics, copy, options):
    fill(broker, topics[0], 10)
    assert copy(*options, "-q", "-c", "4")[0] == 0
    assert copy(*options, "-q")[0] == 0
    fill(broker, topics[0], 5, first=10)
    assert copy(*options)[1].startswith("5 records copied")
    assert copy(*options)[1].startswith("0 records copied")
    assert content(broker, topics[1]) == content(broker, topics[0])


def test_offsets_and_partitions_choose_records(broker, topics, copy):
    fill(broker, topics[0], 10)
    assert copy("-p", "1", "-o", "1:3", "-q") == (0, "")
    assert content(broker, topics[1]) == {0: [], 1: content(broker, topics[0])[1][1:3]}


def test_keys_may_choose_the_partitions_of_a_smaller_topic(broker, topics, copy):
    fill(broker, topics[0], 10)
    broker.create_topic(f"{topics[0]}-one", 1)
    status, said = copy(target=f"{topics[0]}-one")
    assert status == 2
    assert "has 1 partition, and no partition 1" in said
    assert copy("--repartition", "-q", target=f"{topics[0]}-one") == (0, "")
    assert len(content(broker, f"{topics[0]}-one")[0]) == 10


def test_a_transaction_that_fails_leaves_nothing_and_no_offsets(broker, topics, copy):
    fill(broker, topics[0], 10)
    broker.add_fault(Fault(action=Action.ERROR, request=ProduceRequest, error_code=29))
    try:
        status, said = copy("--exactly-once")
    finally:
        broker.clear_faults()
    assert status == 4
    assert "the transaction was aborted: nobody sees its records" in said
    assert copy("--exactly-once", "-q") == (0, "")
    assert content(broker, topics[1]) == content(broker, topics[0])


@pytest.mark.parametrize(("options", "why"), [
    (["-o", "stored"], "-g GROUP"), (["--follow", "-o", ":5"], "--follow has no end"),
])
def test_wrong_usage_is_explained(capsys, options, why):
    with pytest.raises(SystemExit):
        main(["a", "b", "-b", "localhost:1", *options])
    assert why in capsys.readouterr().err


def test_a_topic_is_not_copied_to_itself(capsys):
    with pytest.raises(SystemExit):
        main(["a", "a", "-b", "localhost:1"])
    assert "the same topic" in capsys.readouterr().err


def test_a_topic_that_is_not_there_is_one_clear_line(broker, topics, copy):
    status, said = copy(target="nope")
    assert (status, len(said.splitlines())) == (5, 1)
    assert "nope" in said


@pytest.mark.parametrize("options", [["-g", "followed"], ["--exactly-once"]])
def test_a_follower_copies_what_comes_and_ends_in_order(broker, topics, options):
    fill(broker, topics[0], 10)
    with subprocess.Popen([*COMMAND, *topics, "-b", broker.bootstrap_servers, "--follow", *options],
                          stderr=subprocess.PIPE) as process:
        try:
            with Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"}) as consumer:
                consumer.assign([TopicPartition(topics[1], number, 0) for number in range(2)])
                assert len(take(consumer, 10)) == 10
                fill(broker, topics[0], 2, first=10)
                assert len(take(consumer, 2)) == 2
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=30)[1]
        finally:
            process.kill()
    assert process.returncode == 130
    assert b"12 records copied" in said
    assert b"stopped by Ctrl-C" in said
    assert content(broker, topics[1]) == content(broker, topics[0])
    assert main([*topics, "-b", broker.bootstrap_servers, *options, "-q"]) == 0
    assert content(broker, topics[1]) == content(broker, topics[0])


def take(consumer, count):
    found = []
    while len(found) < count:
        more = consumer.consume(count - len(found), 20)
        assert more, "nothing came"
        found += more
    return found
