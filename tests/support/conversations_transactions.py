"""What transactional producers ask of coordinators: for `test_broker_answers_as_kafka_does`."""

from headrace.wire.messages.consumer.offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from headrace.wire.messages.groups.classic_groups import DeleteGroupsRequest, DescribeGroupsRequest
from headrace.wire.messages.producer.produce import InitProducerIdRequest
from headrace.wire.messages.producer.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
)
from headrace.wire.schema import Request
from tests.support.conversations_groups import lone_member
from tests.support.talk import Conversation, Talk, only
from tests.support.transactional_talk import (
    END,
    INIT,
    OFFSETS,
    OWN_EPOCHS_END,
    OWN_EPOCHS_PRODUCE,
    Producer,
    add,
    add_offsets,
    ask_when_over,
    commit_plainly,
    committed,
    committed_offsets,
    described,
    end,
    finish,
    init,
    offsets_of,
    old_add,
    producer,
    records,
    send,
    state,
    store_in_transaction,
    when_it_is_over,
)


def ids_are_taken_over(talk: Talk) -> None:
    first = talk.ask(init(talk))
    second = talk.ask(init(talk))
    assert (first.producer_id, second.producer_epoch) == (second.producer_id, 1)
    state(talk)
    pid = first.producer_id
    if talk.version >= 3:
        for had in ((pid, 1), (pid, 1), (pid, 2), (pid, 0), (pid, 9), (pid + 1000, 2), (pid, -1), (-1, 2)):
            talk.ask(init(talk, had=had))
        talk.ask(init(talk, f"{talk.name}-new", had=(pid, 3)))
    talk.ask(init(talk))


def ids_that_cannot_be(talk: Talk) -> None:
    talk.ask(init(talk, ""))
    for timeout_ms in (0, -1, 900_000, 900_001, (1 << 31) - 1):
        talk.ask(init(talk, f"{talk.name}{timeout_ms}", timeout_ms=timeout_ms))


def ids_of_an_open_transaction(talk: Talk) -> None:
    talk.topic()
    who = producer(talk)
    store_in_transaction(talk, who, b"a")
    if talk.version >= 3:
        talk.ask(init(talk, had=(who[0] + 1000, who[1])))
    talk.ask(init(talk))  # must be asked again: what is open is aborted
    ask_when_over(talk, init(talk))
    talk.note(talk.call(end(talk, who, True), END), END)
    committed(talk)
    who = producer(talk)
    old_add(talk, who, [0])
    if talk.version >= 3:
        talk.ask(init(talk, had=(who[0], who[1] - 1)))
        ask_when_over(talk, init(talk, had=(who[0], who[1])))
        ask_when_over(talk, init(talk))


def partitions_are_added(talk: Talk) -> None:
    talk.topic(partitions=3)
    who = producer(talk)
    for partitions in ([0], [0], [2, 1], [], [0, 7], [9]):
        talk.ask(add(talk, who, partitions))
    state(talk)
    talk.ask(add(talk, who, [0], topic="nowhere"))
    talk.ask(add(talk, who, name=""))
    talk.ask(add(talk, who, name="nobody"))
    talk.ask(add(talk, (who[0] + 1000, who[1])))
    talk.ask(add(talk, (who[0], who[1] + 1)))
    talk.ask(add(talk, (who[0], -1)))
    finish(talk, who, True)
    if talk.version < 4:
        talk.ask(add(talk, who))
        state(talk)
        finish(talk, who, False)


def partitions_are_verified(talk: Talk) -> None:
    talk.topic(partitions=3)
    who = producer(talk)
    if talk.version < 4:
        return
    talk.ask(add(talk, who, [0, 1], verify=True))
    talk.ask(add(talk, who, [0]))
    for partitions in ([0], [0, 1], [7], []):
        talk.ask(add(talk, who, partitions, verify=True))
    talk.ask(add(talk, (who[0], who[1] + 1), verify=True))
    talk.ask(add(talk, (who[0] + 1000, who[1]), verify=True))
    talk.ask(add(talk, who, name="nobody", verify=True))


def groups_are_added(talk: Talk) -> None:
    who = producer(talk)
    talk.ask(add_offsets(talk, who))
    state(talk)
    for request in (add_offsets(talk, who), add_offsets(talk, who, name=""), add_offsets(talk, who, name="nobody"),
                    add_offsets(talk, (who[0] + 1000, who[1])), add_offsets(talk, (who[0], who[1] + 1))):
        talk.ask(request)


def offsets_wait_for_the_end(talk: Talk) -> None:
    talk.topic(partitions=2)
    who = producer(talk)
    if talk.version < 5:
        talk.ask(offsets_of(talk, who, 5))
        talk.call(add_offsets(talk, who), OFFSETS)
    talk.ask(offsets_of(talk, who, 5, 6))
    talk.ask(offsets_of(talk, who, 7))
    state(talk)
    committed_offsets(talk)
    talk.call(commit_plainly(talk, 100), 5)
    committed_offsets(talk)
    who = over(talk, who, True)
    committed_offsets(talk)
    if talk.version < 5:
        talk.call(add_offsets(talk, who), OFFSETS)
    talk.ask(offsets_of(talk, who, 70, 80))
    over(talk, who, False)
    committed_offsets(talk)


def over(talk: Talk, who: Producer, commit: bool) -> Producer:
    """End a transaction in the way that belongs to the conversation's version; the next identity."""
    if talk.version < 5:
        finish(talk, who, commit)
        return who
    reply = talk.call(end(talk, who, commit), OWN_EPOCHS_END)
    assert reply.error_code == 0, reply
    state(talk)
    return reply.producer_id, reply.producer_epoch


def offsets_that_cannot_be(talk: Talk) -> None:
    talk.topic()
    who = producer(talk)
    if talk.version < 5:
        talk.call(add_offsets(talk, who), OFFSETS)
    talk.ask(offsets_of(talk, who, 1, name=""))
    talk.ask(offsets_of(talk, who, 1, name="nobody"))
    talk.ask(offsets_of(talk, who, 1, topic="nowhere"))
    talk.ask(offsets_of(talk, who, 1, 2))
    talk.ask(offsets_of(talk, who, 1, note="x" * 4097))
    talk.ask(offsets_of(talk, who, 1, group=""))
    talk.ask(offsets_of(talk, (who[0] + 1000, who[1]), 1))
    talk.ask(TxnOffsetCommitRequest(transactional_id=talk.name, producer_id=who[0], producer_epoch=who[1],
                                    group_id=talk.name, topics=[]))


def offsets_of_members(talk: Talk) -> None:
    talk.topic()
    member = lone_member(talk)
    who = producer(talk)
    if talk.version < 5:
        talk.call(add_offsets(talk, who), OFFSETS)
    talk.ask(offsets_of(talk, who, 1))
    if talk.version < 3:
        return
    for name, generation, instance in ((member, 1, None), (member, 2, None), (member, 0, None), (member, -1, None),
                                       ("nobody", 1, None), ("", 1, None), (member, 1, "none"), ("nobody", -1, None)):
        talk.ask(offsets_of(talk, who, 2, member=name, generation=generation, instance=instance))
    talk.ask(offsets_of(talk, who, 2, group=f"{talk.name}-new", member="nobody", generation=3))


def groups_that_only_a_transaction_knows(talk: Talk) -> None:
    talk.topic()
    who = producer(talk)
    if talk.version < 5:
        talk.call(add_offsets(talk, who), OFFSETS)
    for request, version in (
        (DescribeGroupsRequest(groups=[talk.name]), 5),
        (OffsetDeleteRequest(group_id=talk.name, topics=[OffsetDeleteRequestTopic(
            name=talk.name, partitions=[OffsetDeleteRequestPartition(partition_index=0)])]), 0),
        (DeleteGroupsRequest(groups_names=[talk.name]), 2),
    ):
        talk.ask(offsets_of(talk, who, 5))
        talk.note(talk.call(request, version), version)
        committed_offsets(talk)
    over(talk, who, True)
    committed_offsets(talk)
    who = producer(talk)
    if talk.version < 5:
        talk.call(add_offsets(talk, who), OFFSETS)
    talk.ask(offsets_of(talk, who, 6))
    over(talk, who, False)
    talk.note(talk.call(DescribeGroupsRequest(groups=[talk.name]), 5), 5)
    if talk.version >= 3:
        talk.ask(offsets_of(talk, producer(talk), 2, member="nobody", generation=3))


def transactions_are_ended(talk: Talk) -> None:
    talk.topic()
    who = producer(talk)
    talk.ask(end(talk, who, True))
    reply = talk.ask(end(talk, who, False))
    state(talk)
    who = (who[0], reply.producer_epoch) if talk.version >= OWN_EPOCHS_END else who
    for commit in (True, False):
        for _ in range(2):
            old_add(talk, who, [0])
        reply = talk.ask(end(talk, who, commit))
        state(talk)
        talk.ask(end(talk, who, commit))  # again
        talk.ask(end(talk, who, not commit))
        if talk.version >= OWN_EPOCHS_END:
            who = reply.producer_id, reply.producer_epoch
            talk.ask(end(talk, who, True))
            reply = talk.ask(end(talk, who, False))  # with nothing in it
            state(talk)
            who = reply.producer_id, reply.producer_epoch


def ends_that_cannot_be(talk: Talk) -> None:
    talk.topic()
    who = producer(talk)
    old_add(talk, who, [0])
    for request in (end(talk, who, True, name=""), end(talk, who, True, name="nobody"),
                    end(talk, (who[0] + 1000, who[1]), True), end(talk, (who[0], who[1] + 1), True),
                    end(talk, (who[0], who[1] - 1), False), end(talk, (-1, -1), True)):
        talk.ask(request)
    state(talk)


@only("4.4")
def transactions_with_epochs_of_their_own(talk: Talk) -> None:
    """As Kafka 4 goes: partitions come with their records, and each end gives a new epoch."""
    talk.topic(partitions=2)
    who = producer(talk)
    for commit in (True, False, True):
        for partition in (0, 1):
            reply = talk.call(send(talk, records(who, b"a", b"b"), partition=partition), OWN_EPOCHS_PRODUCE)
            talk.note(reply, OWN_EPOCHS_PRODUCE)
        talk.note(talk.call(offsets_of(talk, who, 5), 5), 5)
        reply = talk.ask(end(talk, who, commit))
        state(talk)
        talk.ask(end(talk, who, commit))
        who = (reply.producer_id, reply.producer_epoch) if talk.version >= OWN_EPOCHS_END else producer(talk)
        committed(talk)
        described(talk)
        committed_offsets(talk)
    talk.call(send(talk, records(who, b"open")), OWN_EPOCHS_PRODUCE)
    talk.note(talk.call(init(talk), INIT), INIT)
    talk.note(when_it_is_over(talk, init(talk), INIT), INIT)
    committed(talk)
    described(talk)
    talk.note(talk.call(send(talk, records(who, b"late", sequence=1)), OWN_EPOCHS_PRODUCE), OWN_EPOCHS_PRODUCE)


CONVERSATIONS: dict[type[Request], list[Conversation]] = {
    InitProducerIdRequest: [ids_are_taken_over, ids_that_cannot_be, ids_of_an_open_transaction],
    AddPartitionsToTxnRequest: [partitions_are_added, partitions_are_verified],
    AddOffsetsToTxnRequest: [groups_are_added],
    TxnOffsetCommitRequest: [offsets_wait_for_the_end, offsets_that_cannot_be, offsets_of_members,
                             groups_that_only_a_transaction_knows],
    EndTxnRequest: [transactions_are_ended, ends_that_cannot_be, transactions_with_epochs_of_their_own],
}
