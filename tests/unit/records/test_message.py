from __future__ import annotations

import gc
import inspect
import pickle
import weakref
from typing import Any

import pytest

from headrace import records
from headrace.errors import KafkaError
from headrace.records.message import Message as PlainMessage

from .samples import batch, fields


def lazy(twin: Any) -> Any:
    """A message that points into a batch."""
    return twin.Cursor(batch([(9, b"k", b"val", [(b"h", b"x"), (b"n", None)])], base_offset=4), "t", 2, 0).take_one()


def test_a_read_message_answers_every_question(twin: Any) -> None:
    assert fields(lazy(twin)) == ("t", 2, 4, b"k", b"val", [("h", b"x"), ("n", None)], (1, 9), 7, None, None, 3)


def test_an_empty_message_knows_nothing(twin: Any) -> None:
    assert fields(twin.Message()) == (None, None, None, None, None, None, (0, 0), None, None, None, 0)
    assert twin.Message()


def test_a_message_is_made_from_keywords_and_from_places(twin: Any) -> None:
    error = KafkaError(KafkaError._TIMED_OUT)
    message = twin.Message(topic="t", partition=1, offset=2, key="k", value=[1, 2], headers=[("a", b"b")], error=error,
                           timestamp=(2, 5), latency=0.25, leader_epoch=6)
    assert fields(message) == ("t", 1, 2, "k", [1, 2], [("a", b"b")], (2, 5), 6, 0.25, error, 2)
    assert twin.Message("t", 1, 2, "k", [1, 2], [("a", b"b")], error, (2, 5), 0.25, 6) == message


def test_what_is_set_is_what_is_there(twin: Any) -> None:
    for message in (lazy(twin), twin.Message()):
        message.set_key({"id": 1})
        message.set_value([1, 2, 3])
        message.set_headers([("x", b"y")])
        message.set_topic("other")
        message.set_error(KafkaError(KafkaError._FAIL))
        assert (message.key(), message.value(), message.headers(), message.topic(), len(message)) == (
            {"id": 1}, [1, 2, 3], [("x", b"y")], "other", 3)
        assert message.error() == KafkaError._FAIL


def test_a_new_topic_leaves_the_rest_as_it_was(twin: Any) -> None:
    message = lazy(twin)
    message.set_topic("other")
    assert fields(message)[1:] == fields(lazy(twin))[1:]


def test_messages_are_equal_by_what_they_say(twin: Any) -> None:
    assert lazy(twin) == lazy(twin)
    other = lazy(twin)
    other.set_value(b"else")
    assert other != lazy(twin)
    assert lazy(twin) != "message"


def test_a_message_can_be_pickled(twin: Any) -> None:
    assert fields(pickle.loads(pickle.dumps(lazy(twin)))) == fields(lazy(twin))


class Counted:
    """What an application adds to messages, in tests of its own for example."""

    def __init__(self, value: bytes, copies: int) -> None:
        super().__init__("t", 1, 2, value=value)  # type: ignore[call-arg]
        self.copies = copies


class CountedUsed(Counted, records.Message):
    """Of the message that applications see: the native one, where it is built."""


class CountedPlain(Counted, PlainMessage):
    """Of the plain one."""


@pytest.mark.parametrize("kind", [CountedUsed, CountedPlain])
def test_an_applications_own_kind_of_message_is_a_message_and_can_be_pickled(kind: Any) -> None:
    made = kind(b"v", copies=3)
    read = pickle.loads(pickle.dumps(made))
    assert (type(read), read.copies, read.value(), read.partition(), len(read)) == (kind, 3, b"v", 1, 1)
    assert read == made


@pytest.mark.parametrize("kind", [CountedUsed, CountedPlain])
def test_an_applications_own_messages_are_freed_with_what_refers_back_to_them(kind: Any) -> None:
    made = kind(b"v", copies=3)
    made.copies = made
    gone = weakref.ref(made)
    del made
    gc.collect()
    assert gone() is None


def test_a_message_shows_where_it_is_from(twin: Any) -> None:
    assert repr(lazy(twin)) == "Message{t[2]@4,key=b'k',3 bytes}"
    assert "Broker" in repr(twin.Message("t", 0, error=KafkaError(KafkaError._FAIL, "Broker is gone")))


def test_a_message_of_a_wrong_name_in_a_header_still_opens(twin: Any) -> None:
    data = batch([(1, None, b"v", [(b"\xff\xfe", b"x")])])
    assert twin.Cursor(data, "t", 0, 0).take_one().headers() == [("��", b"x")]


def test_dropped_messages_let_their_bytes_go(twin: Any) -> None:
    class Bytes(bytearray):
        """A bytearray whose end can be seen."""

    data = Bytes(batch([(1, None, b"v", [])] * 10))
    gone = weakref.ref(data)
    messages = twin.Cursor(data, "t", 0, 0).take(10)
    del data
    gc.collect()
    assert messages[9].value() == b"v"
    del messages
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("bad", [{"unknown": 1}, {"timestamp": 5}])
def test_wrong_arguments_are_type_errors(twin: Any, bad: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        twin.Message(**bad)


def test_a_message_of_a_share_group_knows_how_often_it_was_delivered(twin: Any) -> None:
    assert lazy(twin).delivery_count() is None
    assert twin.Message(delivery_count=3).delivery_count() == 3
    assert twin.Message(delivery_count=0).delivery_count() is None
    assert twin.Message("t", 1, 2, delivery_count=3) != twin.Message("t", 1, 2)
    [kept] = twin.acquired([lazy(twin)], [(4, 4, 2)])
    assert pickle.loads(pickle.dumps(kept)).delivery_count() == 2


def test_a_latency_below_zero_is_none(twin: Any) -> None:
    assert twin.Message(latency=-1.0).latency() is None
    assert (twin.Message(latency=0.0).latency(), twin.Message(latency=0.5).latency()) == (0.0, 0.5)


def test_only_what_is_acquired_is_kept_with_its_count(twin: Any) -> None:
    made = [twin.Message("t", 0, offset) for offset in (3, 4, 6, 9, 10)]
    kept = twin.acquired(made, [(0, 2, 1), (4, 8, 1), (10, 12, 5)])
    assert [(message.offset(), message.delivery_count()) for message in kept] == [(4, 1), (6, 1), (10, 5)]
    assert twin.acquired(made, []) == []
    assert twin.acquired([], [(0, 9, 1)]) == []


def test_the_native_message_says_of_itself_what_the_plain_one_says() -> None:
    said = {name: inspect.getdoc(each) for name, each in vars(PlainMessage).items()
            if inspect.isfunction(each) and not name.startswith("_")}
    assert len(said) > 15
    assert all(said.values())
    silent = [name for name, docstring in said.items()
              if not (inspect.getdoc(getattr(records.Message, name)) or "").endswith(docstring or "-")]
    assert silent == []  # in front of it stands the signature
    assert (inspect.getdoc(records.Message) or "").endswith(inspect.getdoc(PlainMessage) or "-")
