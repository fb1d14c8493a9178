"""A file as text."""

import pytest

from headrace.schemas.proto.proto_nodes import ProtoNames
from headrace.schemas.proto.proto_parser import parse_proto
from headrace.schemas.proto.proto_text import proto_text
from tests.unit.schemas.proto.samples import EDITION, OTHER, PROTO2, PROTO3


def written(text: str, *, normalize: bool = False) -> str:
    return proto_text(ProtoNames(parse_proto(text), {"other/types.proto": parse_proto(OTHER)}), normalize=normalize)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("text", [PROTO2, PROTO3, EDITION, OTHER, ""])
def test_what_is_written_reads_and_is_written_the_same_again(text: str, normalize: bool) -> None:
    once = written(text, normalize=normalize)
    assert written(once, normalize=normalize) == once


def test_types_keep_their_names_or_get_their_full_ones_when_normalized() -> None:
    text = 'syntax = "proto3"; package p; message B { A b = 2; A a = 1; } message A { }'
    assert "A b = 2;" in written(text)
    normal = written(text, normalize=True)
    assert ".p.A b = 2;" in normal
    assert normal.index("a = 1") < normal.index("b = 2")
