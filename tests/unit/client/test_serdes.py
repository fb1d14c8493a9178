"""Serializers: the same as confluent_kafka's, and how a client is given them and closes what it had built."""

from types import SimpleNamespace

import confluent_kafka
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace
from headrace.client.serdes import (
    CLUSTER_ID_TIMEOUT_S,
    IntegerDeserializer,
    IntegerSerializer,
    StringDeserializer,
    StringSerializer,
    built,
    close_all,
    offer_cluster_id,
    offer_cluster_id_async,
    parts_of,
    rest_of,
)
from tests.support.same_as_confluent import by_name, error_of, same


@by_name({
    "str": lambda s: (s.StringSerializer()("värld"), s.StringSerializer("latin-1")("é", None),
                      s.StringSerializer()(None)),
    "str back": lambda s: (s.StringDeserializer()("värld".encode()), s.StringDeserializer()(None),
                           s.StringSerializer().codec),
    "int": lambda s: [s.IntegerSerializer()(n) for n in (0, 1, -1, 2**31 - 1, -(2**31), None)],
    "int back": lambda s: [s.IntegerDeserializer()(b) for b in (b"\0\0\0\x07", b"\xff\xff\xff\xff", None)],
    "double": lambda s: [s.DoubleSerializer()(n) for n in (0.0, 1.5, -1, None)],
    "double back": lambda s: [s.DoubleDeserializer()(b) for b in (b"\x3f\xf8\0\0\0\0\0\0", None)],
    "base classes": lambda s: [issubclass(getattr(s, f"{kind}{base}"), getattr(s, base))
                               for kind in ("String", "Integer", "Double") for base in ("Serializer", "Deserializer")],
    "fields": lambda s: [(str(f), f == f.value, f.name) for f in s.MessageField],
    "context": lambda s: (lambda c: (c.topic, c.field, c.headers))(s.SerializationContext("t", s.MessageField.KEY)),
    "context with headers": lambda s: s.SerializationContext("t", s.MessageField.VALUE, [("a", b"b")]).headers,
    "defaults": lambda s: (s.Serializer().close(), s.Deserializer().set_cluster_id_resolver(print)),
})
def test_serializers(case):
    same(lambda kafka: case(kafka.serialization))


@by_name({
    "too large an int": lambda s: s.IntegerSerializer()(2**31), "no int": lambda s: s.IntegerSerializer()("1"),
    "too few bytes": lambda s: s.IntegerDeserializer()(b"1"), "no float": lambda s: s.DoubleSerializer()("1"),
    "too many bytes": lambda s: s.DoubleDeserializer()(b"123456789"),
    "text out of its codec": lambda s: s.StringSerializer("ascii")("é"),
    "no UTF-8": lambda s: s.StringDeserializer()(b"\xff"),
})
def test_what_cannot_be_converted_is_a_serialization_error(case):
    def told(kafka):
        return error_of(kafka, lambda: case(kafka.serialization))

    assert same(told)[0] == "SerializationError"


@by_name({
    "base": lambda s: s.Serializer()(1), "deserializer": lambda s: s.Deserializer()(b""),
    "builder": lambda s: s.SerializerBuilder().build({}, True),
    "other": lambda s: s.DeserializerBuilder().build({}, True),
})
def test_base_classes_do_nothing_themselves(case):
    for kafka in (confluent_kafka, headrace):
        with pytest.raises(NotImplementedError):
            case(kafka.serialization)


@given(st.integers(-2**31, 2**31 - 1))
def test_a_number_comes_back(number):
    assert IntegerDeserializer()(IntegerSerializer()(number)) == number


@given(st.text())
def test_text_comes_back_in_every_codec_that_has_all_of_unicode(text):
    encodable = text.encode("utf-8", "ignore").decode()
    for codec in ("utf_8", "utf_16", "utf_32"):
        assert StringDeserializer(codec)(StringSerializer(codec)(encodable)) == encodable


def test_key_and_value_are_taken_out_of_the_properties_which_stay_as_they_are():
    conf = {"client.id": "c", "key.serializer": print, "value.serializer.builder": repr}
    (key, value), left = parts_of(conf, "serializer")
    assert (key.name, key.serde, key.builder, key.is_key) == ("key.serializer", print, None, True)
    assert (value.name, value.serde, value.builder, value.is_key) == ("value.serializer", None, repr, False)
    assert left == {"client.id": "c"}
    assert len(conf) == 3


def test_properties_of_the_other_way_are_left():
    assert parts_of({"key.deserializer": print}, "serializer")[1] == {"key.deserializer": print}


@pytest.mark.parametrize("field", ["key", "value"])
def test_a_serializer_and_its_builder_cannot_both_be_given(field):
    name = f"{field}.serializer"
    with pytest.raises(ValueError, match=rf"Cannot configure both {name} and {name}\.builder"):
        parts_of({name: print, f"{name}.builder": print}, "serializer")


@pytest.mark.parametrize("result", [None, 5, (print,), (print, None), [print, {}], (print, {}, 3)])
def test_a_builder_returns_a_serializer_and_what_is_left(result):
    (part, _), _ = parts_of({}, "serializer")
    with pytest.raises(ValueError, match=r'"key\.serializer\.builder" must return a serializer and a dict'):
        built(part, result)
    assert built(part, (print, {"a": 1})) == (print, {"a": 1})


def test_a_property_is_left_only_if_no_builder_took_it():
    conf = {"for.key": 1, "for.value": 2, "client.id": "c"}
    assert rest_of(conf, []) == conf
    assert rest_of(conf, [{"for.value": 2, "client.id": "c"}, {"for.key": 1, "client.id": "c"}]) == {"client.id": "c"}


def test_a_builder_may_change_what_the_client_gets():
    assert rest_of({"client.id": "c"}, [{"client.id": "mine", "linger.ms": 5}]) == {"client.id": "mine", "linger.ms": 5}


def test_all_are_closed_and_the_first_that_raises_is_heard():
    closed = []

    def serde(name, error=None):
        def close():
            closed.append(name)
            if error is not None:
                raise error

        return SimpleNamespace(close=close)

    serdes = [serde("a", ValueError("second")), serde("b"), serde("c", ValueError("first"))]
    with pytest.raises(ValueError, match="first"):
        close_all(serdes)
    assert sorted(closed) == ["a", "b", "c"]
    close_all(serdes)  # none is closed twice
    assert len(closed) == 3


def test_the_clusters_id_is_offered_to_those_that_can_wait_for_it():
    class Blocking:
        def set_cluster_id_resolver(self, resolver):
            self.resolver = resolver

        def __call__(self, value, ctx):
            """Not awaited."""

    class Awaited(Blocking):
        async def __call__(self, value, ctx):
            """Awaited."""

    class Both(Awaited):
        def set_async_cluster_id_resolver(self, resolver):
            self.awaited = resolver

    asked = []
    made = [Blocking(), Awaited(), Both(), print]
    offer_cluster_id_async(made, asked.append)
    assert [vars(each).keys() for each in made[:3]] == [set(), {"resolver"}, {"awaited"}]
    made[1].resolver()
    made[2].awaited()
    offer_cluster_id(made, asked.append)
    made[0].resolver()
    assert asked == [CLUSTER_ID_TIMEOUT_S] * 3
