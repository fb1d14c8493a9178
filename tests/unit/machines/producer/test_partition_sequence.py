"""What is kept of a partition's numbers: nothing is known before the first batch, and each partition has its own."""

from uuid import UUID

from headrace.machines.producer.batch_queue import PartitionQueue
from headrace.machines.producer.partition_sequence import PartitionSequence
from headrace.machines.producer.sequences import Sequences, producer_state, restart, topic_id


def test_a_new_partition_is_numbered_from_zero_by_nobody_and_its_leader_knows_nothing():
    new = PartitionSequence()
    assert (new.producer_id, new.epoch, new.next_sequence) == (-1, -1, 0)
    assert not new.confirmed
    assert not new.needs_epoch_bump


def test_a_restart_begins_at_zero_in_the_epoch_that_is_given_and_keeps_producer_and_topic():
    queue, other = PartitionQueue("t", 0), PartitionQueue("t", 1)
    own = queue.partition_sequence
    Sequences(True, 30.0, lambda attempt: 0.1).check_known(queue, UUID(int=5), 1.0)
    own.producer_id, own.epoch, own.next_sequence, own.confirmed, own.needs_epoch_bump = 7, 3, 40, True, True
    restart(queue, 4)
    assert (producer_state(queue), topic_id(queue)) == ((7, 4), UUID(int=5))
    assert (own.next_sequence, own.confirmed, own.needs_epoch_bump) == (0, False, False)
    assert (producer_state(other), topic_id(other)) == ((-1, -1), UUID(int=0))
