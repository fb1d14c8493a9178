"""Properties of serializers."""

import pytest

from headrace.client.schema_serdes.serde_settings import READING, VALIDATION, WRITING, settings_of


def test_what_is_not_given_has_its_default() -> None:
    settings = settings_of(None, WRITING)
    assert settings["auto.register.schemas"] is True
    assert settings["use.latest.version"] is False
    assert settings_of({"auto.register.schemas": False}, WRITING)["auto.register.schemas"] is False


@pytest.mark.parametrize(("known", "conf", "name"), [
    (WRITING, {"auto.register.schemas": "yes"}, "auto.register.schemas must be a boolean value"),
    (WRITING, {"normalize.schemas": 1}, "normalize.schemas must be a boolean value"),
    (WRITING, {"use.schema.id": "1"}, "use.schema.id must be an int value"),
    (WRITING, {"use.latest.version": None}, "use.latest.version must be a boolean value"),
    (WRITING, {"use.latest.with.metadata": "a"}, "use.latest.with.metadata must be a dict value"),
    (WRITING, {"schema.id.serializer": None}, "schema.id.serializer must be callable"),
    (READING, {"schema.id.deserializer": 3}, "schema.id.deserializer must be callable"),
    (READING, {"use.schema.id": 3}, "Unrecognized properties: use.schema.id"),
    (WRITING, {"use.latest.version": True}, "both use.latest.version and auto.register.schemas"),
    (VALIDATION, {"validation.rules.execution": "AFTER_DOMAIN_RULES"}, "can only be DISABLED"),
    (VALIDATION, {"validation.rules.executor": object()}, "cannot be set"),
])
def test_what_will_not_do_is_refused_with_its_name(known, conf, name) -> None:
    with pytest.raises(ValueError, match=name):
        settings_of(conf, known)


def test_a_property_without_a_value_may_be_none_where_none_is_the_default() -> None:
    assert settings_of({"use.schema.id": None, "use.latest.with.metadata": None}, WRITING)["use.schema.id"] is None
