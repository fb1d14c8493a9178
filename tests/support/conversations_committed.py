"""What becomes of records in transactions, as readers and administrators see it: for
`test_broker_answers_as_kafka_does`.
"""

import time

from headrace.records import GZIP
from headrace.wire.messages.consumer.fetch import FetchRequest
from headrace.wire.messages.consumer.offsets import (
    ListOffsetsRequest,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from headrace.wire.messages.producer.produce import PartitionProduceData, ProduceRequest
from headrace.wire.messages.producer.transactions import (
    DescribeTransactionsRequest,
    ListTransactionsRequest,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from headrace.wire.schema import Request
from tests.support.conversations_records import fetch, list_offsets, store
from tests.support.raw_client import batch_of
from tests.support.talk import Conversation, Talk, only
from tests.support.transactional_talk import (
    COMMIT,
    END,
    OFFSETS,
    OWN_EPOCHS_END,
    OWN_EPOCHS_PRODUCE,
    START_MS,
    STORE,
    Producer,
    add_offsets,
    codes_in,
    commit_plainly,
    committed,
    described,
    end,
    finish,
    offsets_of,
    old_add,
    producer,
    records,
    send,
    state,
    store_in_transaction,
)


@only(since=3)
def batches_of_a_transaction(talk: Talk) -> None:
    talk.topic(partitions=2)
    who = producer(talk)
    talk.ask(send(talk, records(who, b"early")))
    state(talk)
    if talk.version < OWN_EPOCHS_PRODUCE:
        old_add(talk, who, [0])
        talk.ask(send(talk, records(who, b"a", b"b")))
    talk.ask(send(talk, records(who, b"c", sequence=2), name="nobody"))  # nobody asks: the transaction is open here
    talk.ask(send(talk, records(who, b"x", sequence=9)))
    talk.ask(send(talk, batch_of([b"plain"], *who, 3, timestamp_ms=START_MS)))
    talk.ask(send(talk, records(who, b"other"), partition=1))
    state(talk)
    described(talk)
    talk.ask(send(talk, records(who, b"no name", sequence=3), name=None))
    talk.ask(send(talk, records((who[0] + 1000, 0), b"another id")))
    talk.ask(send(talk, records((-1, -1), b"no id", sequence=-1)))
    talk.ask(send(talk, records((who[0], who[1]), b"x"), name="nobody", partition=1))
    committed(talk)


@only("4.4", since=3)  # earlier ones forget to ask which epoch the open transaction has
def a_later_epoch_in_an_open_transaction(talk: Talk) -> None:
    talk.topic()
    who = producer(talk)
    if talk.version < OWN_EPOCHS_PRODUCE:
        old_add(talk, who, [0])
    talk.ask(send(talk, records(who, b"a")))
    talk.ask(send(talk, records((who[0], who[1] + 1), b"later")))
    talk.call(add_offsets(talk, who), OFFSETS)
    for version in (2, 4, 5, 6):
        for epoch in (who[1], who[1] + 1):
            talk.note(talk.call(offsets_of(talk, (who[0], epoch), 1), version), version)


@only(since=3)
def batches_after_the_end(talk: Talk) -> None:
    talk.topic()
    who = producer(talk)
    first = records(who, b"a", b"b")
    if talk.version < OWN_EPOCHS_PRODUCE:
        store_in_transaction(talk, who, b"a", b"b", commit=True)
        talk.ask(send(talk, first))  # again
        talk.ask(send(talk, records(who, b"c", sequence=2)))
    else:
        talk.ask(send(talk, first))
        reply = talk.call(end(talk, who, True), OWN_EPOCHS_END)
        state(talk)
        talk.ask(send(talk, first))
        who = reply.producer_id, reply.producer_epoch
        talk.ask(send(talk, records(who, b"c", sequence=2)))
        talk.ask(send(talk, records(who, b"c")))
        talk.ask(send(talk, records(who, b"d", sequence=1)))
    described(talk)
    committed(talk)


@only(since=3)
def batches_of_two_producers(talk: Talk) -> None:
    talk.topic(partitions=2)
    who = producer(talk)
    request = send(talk, records(who, b"a"))
    request.topic_data[0].partition_data.append(PartitionProduceData(index=1, records=records((who[0] + 1, 0), b"b")))
    talk.ask(request)
    plain = send(talk, records(who, b"a"), name=None)
    plain.topic_data[0].partition_data.append(PartitionProduceData(index=1, records=batch_of([b"plain"])))
    talk.ask(plain)


def fetch_of_transactions(talk: Talk) -> None:
    talk.topic()
    store(talk, batch_of([b"plain"], timestamp_ms=START_MS))
    who = producer(talk)
    store_in_transaction(talk, who, b"a", b"b", commit=True)
    store_in_transaction(talk, who, b"c", sequence=2, commit=False)
    store_in_transaction(talk, who, b"d", sequence=3, commit=False)
    store(talk, batch_of([b"more"], codec=GZIP, timestamp_ms=START_MS))
    store_in_transaction(talk, who, b"e", b"f", sequence=4)
    store(talk, batch_of([b"behind"], timestamp_ms=START_MS))
    # Kafka gives old readers that begin at a marker the record behind it twice.
    for offset in (0, 1, 4, 5, 6, 8, 9, 11, 12) if talk.version >= 4 else (0, 1, 4, 6, 8, 9, 11, 12):
        for isolation in (0, 1) if talk.version >= 4 else (0,):
            request = fetch(talk, offset)
            request.isolation_level = isolation
            talk.ask(request)
    finish(talk, who, False)
    committed(talk)
    described(talk)


def fetch_of_transactions_side_by_side(talk: Talk) -> None:
    talk.topic()
    names = [f"{talk.name}-{number}" for number in range(3)]
    producers = [producer(talk, name) for name in names]
    for name, who in zip(names, producers, strict=True):
        old_add(talk, who, [0], name)
        assert codes_in(talk.call(send(talk, records(who, name.encode()), name=name), STORE)) == {0}
    for number, commit in ((1, False), (0, True), (2, False)):
        assert talk.call(end(talk, producers[number], commit, names[number]), END).error_code == 0
        state(talk, names[number])
        request = fetch(talk)
        request.isolation_level = 1
        talk.ask(request)


def offsets_of_transactions(talk: Talk) -> None:
    talk.topic()
    who = producer(talk)
    store_in_transaction(talk, who, b"a", commit=True)
    store_in_transaction(talk, who, b"b", sequence=1)
    now = int(time.time() * 1000) + 3_600_000
    levels = (0, 1) if talk.version >= 2 else (0,)
    for isolation in levels:
        for each in (-1, -2, -3, START_MS, START_MS + 1, now):
            talk.ask(list_offsets(talk, each, isolation=isolation))
    finish(talk, who, False)
    for isolation in levels:
        for each in (-1, -3):
            talk.ask(list_offsets(talk, each, isolation=isolation))


def stable_offsets(talk: Talk) -> None:
    talk.topic()
    who = producer(talk)
    talk.call(commit_plainly(talk, 3), 5)
    talk.call(add_offsets(talk, who), OFFSETS)
    assert codes_in(talk.call(offsets_of(talk, who, 4), COMMIT)) == {0}
    if talk.version >= 8:
        topics = [OffsetFetchRequestTopics(name=talk.name, topic_id=talk.id_of(talk.name), partition_indexes=[0])]
        for wanted in (topics, None):
            talk.ask(OffsetFetchRequest(require_stable=True, groups=[OffsetFetchRequestGroup(
                group_id=talk.name, topics=wanted)]))
    elif talk.version >= 2:
        talk.ask(OffsetFetchRequest(group_id=talk.name, require_stable=talk.version >= 7, topics=None, groups=[]))


def marker(talk: Talk, who: Producer, commit: bool, *, epoch: int = 0, version: int = 0, topic: str | None = None,
           partition: int = 0) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(markers=[WritableTxnMarker(
        producer_id=who[0], producer_epoch=who[1], transaction_result=commit, coordinator_epoch=epoch,
        transaction_version=version if talk.version >= 2 else 0,
        topics=[WritableTxnMarkerTopic(name=topic or talk.name, partition_indexes=[partition])])])


def markers_are_written(talk: Talk) -> None:
    talk.topic()
    producer(talk)
    who = producer(talk)
    store_in_transaction(talk, who, b"a")
    talk.ask(marker(talk, who, False, topic="nowhere"))
    talk.ask(marker(talk, who, False, partition=5))
    talk.ask(marker(talk, (who[0], who[1] - 1), False))
    committed(talk)
    talk.ask(marker(talk, who, False))
    committed(talk)
    described(talk)
    talk.ask(marker(talk, who, False))
    talk.ask(marker(talk, who, False, epoch=-1))
    talk.ask(marker(talk, (who[0], who[1] + 5), False))
    talk.ask(marker(talk, who, True))
    talk.ask(marker(talk, (who[0] + 1000, 3), True, epoch=7))
    talk.ask(marker(talk, (who[0] + 2000, 3), True, epoch=-5))
    talk.ask(marker(talk, (-1, 0), True))
    talk.ask(marker(talk, (who[0], -1), True))
    described(talk)
    talk.ask(WriteTxnMarkersRequest(markers=[]))


def markers_of_own_epochs(talk: Talk) -> None:
    if talk.version < 2:
        return
    talk.topic()
    who = producer(talk)
    store_in_transaction(talk, who, b"a")
    talk.ask(marker(talk, who, True, version=2))
    talk.ask(marker(talk, (who[0], who[1] + 1), True, version=2))
    talk.ask(marker(talk, (who[0], who[1] + 1), True, version=2))
    talk.ask(marker(talk, who, True, version=2))
    described(talk)
    committed(talk)


def transactions_are_described(talk: Talk) -> None:
    talk.topic(partitions=2)
    who = producer(talk)
    talk.ask(DescribeTransactionsRequest(transactional_ids=[talk.name, "nobody", ""]))
    old_add(talk, who, [1, 0])
    talk.call(add_offsets(talk, who), OFFSETS)
    talk.ask(DescribeTransactionsRequest(transactional_ids=[talk.name, talk.name]))
    finish(talk, who, True)
    talk.ask(DescribeTransactionsRequest(transactional_ids=[]))


def transactions_are_listed(talk: Talk) -> None:
    talk.topic()
    who = producer(talk)
    for _ in range(2):
        for states in ([], ["Ongoing"], ["Empty", "CompleteAbort"], ["Nonsense"], ["Nonsense", "Empty"], ["ongoing"],
                       ["Dead"], ["PrepareEpochFence"]):
            listed(talk, ListTransactionsRequest(state_filters=states, producer_id_filters=[who[0]]))
        for ids in ([who[0] + 1000], [who[0], 5]):
            listed(talk, ListTransactionsRequest(state_filters=[], producer_id_filters=ids))
        old_add(talk, who, [0])
    if talk.version >= 1:
        for duration in (-1, -7, 0, 60_000):
            time.sleep(0.002)
            listed(talk, ListTransactionsRequest(state_filters=[], producer_id_filters=[who[0]],
                                                 duration_filter=duration))
    finish(talk, who, False)
    listed(talk, ListTransactionsRequest(state_filters=[], producer_id_filters=[who[0]]))


def transactions_are_listed_by_pattern(talk: Talk) -> None:
    producer(talk)
    if talk.version < 2:
        return
    for pattern in ("", talk.name, talk.name[:-1], f"{talk.name[:5]}.*", ".*_listed_by_.*", "(a|t)ransactions[^x]+\\d",
                    "nothing", "[", "(", "a**", "x{1001}", "(?=a)", "\\d", "(?P<name>trans).*", f"\\Q{talk.name}\\E",
                    ".{3,}", "^trans.*$", "trans", "[[:alpha:]]+", "a{2,1}", "*"):
        listed(talk, ListTransactionsRequest(state_filters=[], producer_id_filters=[], duration_filter=-1,
                                             transactional_id_pattern=pattern))


def listed(talk: Talk, request: ListTransactionsRequest) -> None:
    """Ask, and note only what is the conversation's."""
    reply = talk.call(request, talk.version)
    reply.transaction_states = [each for each in reply.transaction_states if each.transactional_id == talk.name]
    talk.note(reply, talk.version)


CONVERSATIONS: dict[type[Request], list[Conversation]] = {
    ProduceRequest: [batches_of_a_transaction, a_later_epoch_in_an_open_transaction, batches_after_the_end,
                     batches_of_two_producers],
    FetchRequest: [fetch_of_transactions, fetch_of_transactions_side_by_side],
    ListOffsetsRequest: [offsets_of_transactions],
    OffsetFetchRequest: [stable_offsets],
    WriteTxnMarkersRequest: [markers_are_written, markers_of_own_epochs],
    DescribeTransactionsRequest: [transactions_are_described],
    ListTransactionsRequest: [transactions_are_listed, transactions_are_listed_by_pattern],
}
