"""PLAIN: name and password, as they are."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.machines.cluster.sasl.plain import Plain


def test_plain_is_name_and_password_in_utf8() -> None:
    plain = Plain("jürgen", "pass wörd")
    assert plain.first() == "\0jürgen\0pass wörd".encode()
    assert plain.step(b"") is None
    assert plain.done


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
       st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_the_broker_reads_back_the_name_and_the_password_and_acts_for_nobody_else(name: str, password: str) -> None:
    authorize_as, *credentials = Plain(name, password).first().decode().split("\0")
    assert (authorize_as, credentials) == ("", [name, password])


def test_it_is_satisfied_only_once_the_broker_agrees() -> None:
    plain = Plain("u", "p")
    plain.first()
    assert not plain.done
