"""What may be wrong with a payload that is read, or a value that is written, and what people are told.

Read next: `schemas.columns.avro.avro_plain_decoder`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from headrace.errors import SerializationError
from headrace.schemas.columns.avro.avro_resolution import DecodeProgram
from headrace.schemas.columns.avro.avro_writing import EncodeProgram

__all__ = ["MAX_DEPTH", "MAX_EMPTY_ITEMS", "Flaw", "Misfit", "misfit_error", "reason_of"]

MAX_DEPTH: Final = 320
"""Steps that may be within one another."""
MAX_EMPTY_ITEMS: Final = 10_000
"""Items without bytes that the arrays of a payload may have in all."""


class Flaw(IntEnum):
    """Why a payload cannot be read; the numbers are those of the native module."""

    ENDS = 1
    LONG_NUMBER = 2
    INT_RANGE = 3
    NEGATIVE = 4
    UTF8 = 5
    SYMBOL = 6
    BRANCH = 7
    BOOLEAN = 8
    DIGITS = 9
    ITEMS = 10
    DEPTH = 11
    MISMATCH = 12
    TIMESTAMP = 13
    TIME = 14


_TEXTS: Final = {
    Flaw.ENDS: "the payload ends too early", Flaw.LONG_NUMBER: "a number has more than 64 bits",
    Flaw.INT_RANGE: "an int has more than 32 bits", Flaw.NEGATIVE: "a length is negative",
    Flaw.UTF8: "a string is not UTF-8", Flaw.SYMBOL: "an enum has no such symbol",
    Flaw.BRANCH: "a union has no such branch", Flaw.BOOLEAN: "a boolean is neither 0 nor 1",
    Flaw.DIGITS: "a decimal has more digits than its precision",
    Flaw.ITEMS: "an array or map claims more items than can be there",
    Flaw.DEPTH: f"values nest deeper than {MAX_DEPTH} levels",
    Flaw.TIME: "a time of day is negative, or a day or more",
    Flaw.TIMESTAMP: "a timestamp of microseconds has more than 64 bits",
}


def reason_of(program: DecodeProgram, trouble: int, step: int) -> str:
    """What is wrong with a payload, for people.

    Args:
        program: that read it.
        trouble: a `Flaw`.
        step: number of the step that found it.
    """
    found = program.steps[step]
    text = (program.constants[found.a].decode() if trouble == Flaw.MISMATCH else _TEXTS[Flaw(trouble)])
    return f"at {found.place or '/'}: {text}"


class Misfit(IntEnum):
    """Why a value cannot be written; the numbers are those of the native module."""

    NULL = 1
    SIZE = 2
    SYMBOL = 3
    MEMBERS = 4


_MISFITS: Final = {
    Misfit.NULL: "the value is null, and the schema takes no null",
    Misfit.SIZE: "the value has another size than the schema's",
    Misfit.SYMBOL: "the value is none of the schema's symbols",
    Misfit.MEMBERS: "no member of the union is set, and the schema takes no null",
}


def misfit_error(program: EncodeProgram, row: int, misfit: int, step: int) -> SerializationError:
    """The error of a value.

    Args:
        program: that wrote it.
        row: where it stands, from 0.
        misfit: a `Misfit`.
        step: number of the step that found it.
    """
    return SerializationError(f"row {row}, at {program.steps[step].place or '/'}: {_MISFITS[Misfit(misfit)]}")
