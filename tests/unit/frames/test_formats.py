"""The arguments of a read and a write, as options of formats."""

from __future__ import annotations

import re
from typing import Any

import pytest

from headrace.errors import ConfigError
from headrace.frames.formats import decoded_read, side_formats

URL = "http://localhost:8081"


def formats(value: str = "raw", key: str = "raw", reading: bool = True, **more: Any) -> Any:
    return side_formats(value, key, more.get("registry"), more.get("schemas"), reading=reading)


def test_bytes_are_raw_unless_a_format_is_named() -> None:
    value, key = formats()
    assert (value.name, key.name) == ("raw", "raw")
    assert decoded_read(value, key, "t") is None


def test_a_registry_is_an_address_or_the_properties_of_its_client_and_is_not_shown() -> None:
    value, _ = formats("avro", registry=URL)
    assert value.registry_properties == {"url": URL}
    value, _ = formats("avro", registry={"url": URL, "basic.auth.user.info": "me:secret", "timeout": 3, "proxy": None})
    assert value.registry_properties == {"url": URL, "basic.auth.user.info": "me:secret", "timeout": 3.0}
    assert "secret" not in repr(value)


@pytest.mark.parametrize(("arguments", "said"), [
    ({"value": "avr"}, "Did you mean 'avro'"),
    ({"value": "avro", "schemas": {"value.shema": "x"}}, "unknown option 'value.shema' in schemas; did you mean"),
    ({"value": "avro", "schemas": {"value.malformed": "dead-letter"}}, "nowhere to put dead letters"),
    ({"value": "avro", "schemas": {"value.auto.register": "false"}}, "unknown option 'value.auto.register'"),
    ({"value": "avro", "schemas": {"deadLetterTopic": "t"}}, "unknown option 'deadLetterTopic'"),
    ({"value": "string", "registry": URL}, "registry has no meaning"),
    ({"schemas": {"value.schema": "x"}}, "has no meaning with value.format raw"),
])
def test_each_mistake_gives_one_line(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        formats(**arguments)


def test_options_of_a_write_are_those_of_the_sink() -> None:
    value, _ = formats("avro", reading=False, registry=URL, schemas={"value.auto.register": "false"})
    assert value.auto_register is False
    with pytest.raises(ConfigError, match=r"unknown option 'value\.malformed'"):
        formats("avro", reading=False, registry=URL, schemas={"value.malformed": "null"})


def test_a_side_that_is_text_needs_no_schema() -> None:
    read = decoded_read(*formats("string", "avro", schemas={"key.schema": '"long"'}), "t")
    assert read is not None
    assert (read.texts, list(read.sides)) == (("value",), ["key"])
