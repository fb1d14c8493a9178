"""Nothing that programs may use vanishes or changes by accident: the stored listing is what the package has."""

from __future__ import annotations

from tools import public_api


def test_what_is_public_is_what_the_listing_says() -> None:
    changes = public_api.compared(public_api.PAGE.read_text(), public_api.listing())
    assert changes == [], "if this is meant: python -m tools.public_api, and a line in CHANGELOG.md"


def test_a_name_that_goes_and_a_signature_that_changes_are_seen() -> None:
    before = "[m]\na(x: int)\nb(y)\nc\n"
    assert public_api.compared(before, "[m]\na(x: int, z)\nc\n") == ["-a(x: int)", "-b(y)", "+a(x: int, z)"]


def test_classes_are_listed_with_their_members_functions_with_their_signatures_and_enums_with_their_values() -> None:
    listed = public_api.PAGE.read_text().splitlines()
    assert "Consumer.poll(self, timeout: float | None = -1) -> Message | None" in listed
    assert "AcknowledgeType.REJECT = 3" in listed
    assert "murmur2(key: bytes, partition_count: int) -> int" in listed
    assert not [line for line in listed if " at 0x" in line]


def test_every_face_is_listed() -> None:
    assert {"[headrace]", "[headrace.admin]", "[headrace.aio]", "[headrace.spark]", "[headrace.testing]"} <= set(
        public_api.PAGE.read_text().splitlines())
