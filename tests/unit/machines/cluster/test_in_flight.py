"""Requests in flight: order, correlation, deadlines."""

import pytest

from headrace.errors import KafkaException, ProtocolError
from headrace.machines.cluster.in_flight import ClientRequest, InFlightRequests
from headrace.machines.machine import Send
from headrace.wire.frame import decode_request, encode_response
from headrace.wire.messages.cluster.metadata import MetadataRequest
from headrace.wire.messages.groups.classic_groups import HeartbeatRequest, HeartbeatResponse


class Nobody:
    def on_reply(self, send: object, reply: object, now: float) -> None: ...
    def on_error(self, send: object, error: object, now: float) -> None: ...


def call(deadline: float = 30.0, grace_s: float = 0.0, expects_reply: bool = True) -> ClientRequest:
    send = Send(1, HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 5.0, expects_reply=expects_reply)
    send.version = 4
    return ClientRequest(Nobody(), send, deadline, grace_s)


def reply_to(sent: ClientRequest) -> bytes:
    return b"".join(encode_response(HeartbeatResponse(error_code=27), 4, sent.correlation_id))[4:]


def test_a_request_is_framed_with_client_id_and_a_correlation_id_of_its_own() -> None:
    pipeline = InFlightRequests("me")
    first, second = call(), call()
    frames = [decode_request(b"".join(pipeline.push(each))[4:]) for each in (first, second)]
    assert [(f.client_id, f.version, f.correlation_id) for f in frames] == [("me", 4, 0), ("me", 4, 1)]
    assert len(pipeline) == 2


def test_replies_are_matched_in_order() -> None:
    pipeline = InFlightRequests("me")
    calls = [call(), call()]
    for each in calls:
        pipeline.push(each)
    for each in calls:
        matched, reply = pipeline.take(reply_to(each))
        assert matched is each
        assert isinstance(reply, HeartbeatResponse)
        assert reply.error_code == 27
    assert len(pipeline) == 0


def test_a_reply_out_of_order_is_refused_and_leaves_the_requests_in_flight() -> None:
    pipeline = InFlightRequests("me")
    first, second = call(), call()
    pipeline.push(first)
    pipeline.push(second)
    with pytest.raises(ProtocolError, match="answered request 1 where 0"):
        pipeline.take(reply_to(second))
    assert pipeline.drain() == [first, second]


def test_a_reply_that_nobody_asked_for_is_refused() -> None:
    with pytest.raises(ProtocolError, match="no request asked for"):
        InFlightRequests("me").take(b"\0\0\0\0\0\0")


def test_a_reply_that_cannot_be_read_leaves_its_request_in_flight() -> None:
    pipeline = InFlightRequests("me")
    sent = call()
    pipeline.push(sent)
    with pytest.raises(ProtocolError):
        pipeline.take(reply_to(sent)[:-1])
    assert pipeline.drain() == [sent]


def test_a_request_without_reply_is_in_flight_until_the_kernel_has_it() -> None:
    pipeline = InFlightRequests("me")
    awaited, silent = call(), call(expects_reply=False)
    pipeline.push(awaited)
    pipeline.push(silent)
    assert len(pipeline) == 2
    assert not pipeline.owed
    assert pipeline.sent() == [silent]
    assert pipeline.sent() == []
    assert len(pipeline) == 1
    assert pipeline.owed
    assert pipeline.drain() == [awaited]
    assert not pipeline.owed


@pytest.mark.parametrize("lost", [False, True], ids=["answered", "lost"])
def test_whoever_waits_for_what_is_owed_is_told(lost: bool) -> None:
    pipeline, awaited = InFlightRequests("me"), call()
    paid: list[bool] = []
    pipeline.push(awaited)
    pipeline.push(call(expects_reply=False))
    pipeline.sent()
    pipeline.on_paid = lambda: paid.append(True)
    assert pipeline.owed
    assert not paid
    if lost:
        pipeline.drain()
    else:
        pipeline.take(reply_to(awaited))
    assert paid


def test_nothing_is_owed_before_the_kernel_has_all_bytes_or_where_every_request_is_answered() -> None:
    pipeline = InFlightRequests("me")
    pipeline.push(call())
    assert not pipeline.owed
    pipeline.push(call(expects_reply=False))
    pipeline.sent()
    assert pipeline.owed
    pipeline.push(call(expects_reply=False))
    assert not pipeline.owed


def test_a_request_without_reply_that_the_kernel_never_takes_is_overdue_and_lost_like_others() -> None:
    pipeline = InFlightRequests("me")
    silent = call(expects_reply=False)
    pipeline.push(silent)
    assert pipeline.deadline() == silent.deadline
    assert pipeline.overdue(silent.deadline) is silent
    assert pipeline.drain() == [silent]
    assert len(pipeline) == 0


def test_a_request_that_cannot_be_written_is_not_in_flight() -> None:
    pipeline = InFlightRequests("me")
    send = Send(1, MetadataRequest(topics=[], include_topic_authorized_operations=True), 5.0)
    send.version = 1
    with pytest.raises(KafkaException):
        pipeline.push(ClientRequest(Nobody(), send, 30.0))
    assert len(pipeline) == 0


def test_the_first_deadline_counts_and_grace_is_added_to_it() -> None:
    pipeline = InFlightRequests("me")
    assert pipeline.deadline() is None
    patient, soon = call(10.0, grace_s=60.0), call(30.0)
    pipeline.push(patient)
    pipeline.push(soon)
    assert pipeline.deadline() == 30.0
    assert pipeline.overdue(29.9) is None
    assert pipeline.overdue(30.0) is soon


def test_a_broker_that_slows_the_client_down_is_waited_for_longer_but_no_longer_than_a_request_may_wait() -> None:
    pipeline, limited, one_shot = InFlightRequests("me"), call(30.0), call(30.0, grace_s=60.0)
    limited.send.most_s, one_shot.send.most_s = 12.0, 5.0
    silent = call(30.0, expects_reply=False)
    silent.send.most_s = 100.0
    for each in (limited, one_shot, silent):
        pipeline.push(each)
    pipeline.wait_longer(4.0)
    assert [each.reply_by() for each in (limited, one_shot, silent)] == [34.0, 90.0, 34.0]
    pipeline.wait_longer(4.0)
    assert [each.reply_by() for each in (limited, one_shot, silent)] == [37.0, 90.0, 38.0]


def test_correlation_ids_begin_again_after_the_largest() -> None:
    pipeline = InFlightRequests("me")
    pipeline.next_id = 2**31 - 1
    last, first = call(), call()
    pipeline.push(last)
    pipeline.push(first)
    assert (last.correlation_id, first.correlation_id) == (2**31 - 1, 0)
