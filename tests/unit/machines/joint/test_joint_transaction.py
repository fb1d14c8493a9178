"""What the owner and the participants of a transaction know of it."""

import pickle

from headrace.machines.joint.joint_transaction import CommittedMark, JointTransaction


def test_a_transaction_travels_to_other_processes():
    begun = JointTransaction("x", 7, 3, 2)
    assert pickle.loads(pickle.dumps(begun)) == begun
    assert begun != begun._replace(epoch=4)


def test_the_mark_with_the_highest_number_is_the_greatest():
    assert max(CommittedMark(9, "a"), CommittedMark(10, "")) == CommittedMark(10, "")
