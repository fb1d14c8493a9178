"""The .proto files that come with Protobuf and with the registry, as far as they have columns.

A registry knows them by their paths and never sends them. Those that hold themselves (`Struct`, `Value`) are here so
that the refusal can name them. Read next: `schemas.columns.protobuf.protobuf_plan`.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from headrace.schemas.proto.proto_nodes import ProtoFile, ProtoNames
from headrace.schemas.proto.proto_parser import parse_proto

__all__ = ["known_files"]

_WRAPPED: Final = ("double", "float", "int64", "uint64", "int32", "uint32", "bool", "string", "bytes")
_PROTOBUF: Final = {
    "timestamp": "message Timestamp { int64 seconds = 1; int32 nanos = 2; }",
    "duration": "message Duration { int64 seconds = 1; int32 nanos = 2; }",
    "empty": "message Empty {}",
    "any": "message Any { string type_url = 1; bytes value = 2; }",
    "field_mask": "message FieldMask { repeated string paths = 1; }",
    "source_context": "message SourceContext { string file_name = 1; }",
    "wrappers": "".join(
        f"message {'UInt' + kind[4:] if kind[0] == 'u' else kind.capitalize()}Value {{ {kind} value = 1; }}"
        for kind in _WRAPPED),
    "struct": "message Struct { map<string, Value> fields = 1; }"
              "message Value { oneof kind { NullValue null_value = 1; double number_value = 2; string string_value = 3;"
              " bool bool_value = 4; Struct struct_value = 5; ListValue list_value = 6; } }"
              "enum NullValue { NULL_VALUE = 0; } message ListValue { repeated Value values = 1; }",
}
_TYPE: Final = {
    "date": "message Date { int32 year = 1; int32 month = 2; int32 day = 3; }",
    "timeofday": "message TimeOfDay { int32 hours = 1; int32 minutes = 2; int32 seconds = 3; int32 nanos = 4; }",
    "latlng": "message LatLng { double latitude = 1; double longitude = 2; }",
    "money": "message Money { string currency_code = 1; int64 units = 2; int32 nanos = 3; }",
    "decimal": "message Decimal { string value = 1; }",
    "fraction": "message Fraction { int64 numerator = 1; int64 denominator = 2; }",
    "interval": "import \"google/protobuf/timestamp.proto\"; message Interval { google.protobuf.Timestamp start_time "
                "= 1; google.protobuf.Timestamp end_time = 2; }",
    "postal_address": "message PostalAddress { int32 revision = 1; string region_code = 2; string language_code = 3; "
                      "string postal_code = 4; string sorting_code = 5; string administrative_area = 6; string "
                      "locality = 7; string sublocality = 8; repeated string address_lines = 9; repeated string "
                      "recipients = 10; string organization = 11; }",
    "dayofweek": "enum DayOfWeek { DAY_OF_WEEK_UNSPECIFIED = 0; MONDAY = 1; TUESDAY = 2; WEDNESDAY = 3; THURSDAY = 4; "
                 "FRIDAY = 5; SATURDAY = 6; SUNDAY = 7; }",
    "month": "enum Month { MONTH_UNSPECIFIED = 0; JANUARY = 1; FEBRUARY = 2; MARCH = 3; APRIL = 4; MAY = 5; JUNE = 6; "
             "JULY = 7; AUGUST = 8; SEPTEMBER = 9; OCTOBER = 10; NOVEMBER = 11; DECEMBER = 12; }",
    "calendar_period": "enum CalendarPeriod { CALENDAR_PERIOD_UNSPECIFIED = 0; DAY = 1; WEEK = 2; FORTNIGHT = 3; "
                       "MONTH = 4; QUARTER = 5; HALF = 6; YEAR = 7; }",
}
_TEXTS: Final = {
    **{f"google/protobuf/{name}.proto": ("google.protobuf", text) for name, text in _PROTOBUF.items()},
    **{f"google/type/{name}.proto": ("google.type", text) for name, text in _TYPE.items()},
    "confluent/type/decimal.proto":
        ("confluent.type", "message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }"),
}


def known_files(names: ProtoNames) -> dict[str, ProtoFile]:
    """Those of the files that a schema or its references import, by their paths."""
    found: dict[str, ProtoFile] = {}
    waiting = [path for each in (names.own, *names.others.values()) for _, path in each.imports]
    while waiting:
        path = waiting.pop()
        if path in _TEXTS and path not in found:
            found[path] = _parsed(path)
            waiting += [imported for _, imported in found[path].imports]
    return found


@cache
def _parsed(path: str) -> ProtoFile:
    package, text = _TEXTS[path]
    return parse_proto(f'syntax = "proto3"; package {package}; {text}')
