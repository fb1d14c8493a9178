"""Errors: values that compare by code, exceptions classed by what to do."""

import pickle

import pytest
from confluent_kafka.schema_registry.error import OAuthTokenError as PeersTokenError
from confluent_kafka.schema_registry.error import SchemaRegistryError as PeersRegistryError

from headrace.error_codes import CODES, ErrorCodes
from headrace.errors import (
    BufferFullError,
    ClientClosedError,
    ConfigError,
    KafkaError,
    KafkaException,
    KeySerializationError,
    OAuthTokenError,
    RetriableError,
    SchemaRegistryError,
)


def test_an_error_compares_with_codes_and_errors_of_the_same_code() -> None:
    error = KafkaError(KafkaError._TIMED_OUT, "late")
    assert error == KafkaError._TIMED_OUT
    assert error == KafkaError(KafkaError._TIMED_OUT)
    assert error != KafkaError._TRANSPORT
    assert hash(error) == hash(KafkaError(KafkaError._TIMED_OUT))


def test_an_error_may_be_raised_and_is_caught_as_kafka_exception() -> None:
    with pytest.raises(KafkaException) as info:
        raise KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, "no such topic")
    assert info.value.args[0].name() == "UNKNOWN_TOPIC_OR_PART"


@pytest.mark.parametrize(("kind", "base"), [(ConfigError, ValueError), (BufferFullError, BufferError),
                                             (ClientClosedError, RuntimeError)])
def test_classed_errors_are_also_the_builtin_that_users_of_confluent_kafka_catch(kind: type[KafkaException],
                                                                                 base: type[Exception]) -> None:
    with pytest.raises(base, match="why"):
        raise kind("why")
    assert isinstance(kind("why").args[0], KafkaError)


def test_errors_survive_pickling() -> None:
    error = pickle.loads(pickle.dumps(KafkaError(KafkaError._FATAL, "fenced", fatal=True)))
    assert (error.code(), error.str(), error.fatal()) == (KafkaError._FATAL, "fenced", True)


def test_text_names_the_code_where_the_class_does_not() -> None:
    late = KafkaError(KafkaError._TIMED_OUT, "late")
    assert str(late) == str(KafkaException(late)) == str(RetriableError(late))
    assert str(late) == 'KafkaError{code=_TIMED_OUT,val=-185,str="late"}'
    assert str(ConfigError("wrong")) == "wrong"


def test_what_is_fatal_or_asks_for_an_abort_is_retriable_only_if_told_so() -> None:
    assert KafkaError(KafkaError._TIMED_OUT).retriable()
    assert not KafkaError(KafkaError._TIMED_OUT, fatal=True).retriable()
    assert not KafkaError(KafkaError._TIMED_OUT, txn_requires_abort=True).retriable()
    assert KafkaError(KafkaError._TIMED_OUT, txn_requires_abort=True, retriable=True).retriable()


def test_errors_of_serializers_keep_their_cause_when_pickled() -> None:
    error = pickle.loads(pickle.dumps(KeySerializationError(ValueError("x"))))
    assert (error.code, error.name, error.args[0].str()) == (
        KafkaError._KEY_SERIALIZATION, "_KEY_SERIALIZATION", "x")
    assert isinstance(error.exception, ValueError)


def test_every_code_has_a_name_and_a_meaning() -> None:
    for name, code in vars(ErrorCodes).items():
        if isinstance(code, int) and not name.startswith("__"):
            assert CODES[code].name == name
            assert len(CODES[code].about) > 8
            assert CODES[code].about.endswith(".")


def test_every_code_that_travels_is_known() -> None:
    assert set(range(-1, 137)) == {code for code in CODES if code >= -1}


def test_a_registrys_error_has_what_confluent_kafkas_has_and_survives_pickling() -> None:
    ours, theirs = SchemaRegistryError(409, 40901, "incompatible"), PeersRegistryError(409, 40901, "incompatible")
    assert (str(ours), repr(ours), ours.UNKNOWN) == (str(theirs), repr(theirs), theirs.UNKNOWN)
    again = pickle.loads(pickle.dumps(ours))
    assert (again.http_status_code, again.error_code, again.error_message) == (409, 40901, "incompatible")


def test_a_token_that_cannot_be_had_says_what_was_answered() -> None:
    ours, theirs = OAuthTokenError("no token", 401, "denied"), PeersTokenError("no token", 401, "denied")
    assert str(ours) == str(theirs) == "no token (HTTP 401): denied"
    again = pickle.loads(pickle.dumps(ours))
    assert (again.message, again.status_code, again.response_text) == ("no token", 401, "denied")
