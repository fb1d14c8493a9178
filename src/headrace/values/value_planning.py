"""What the driver settles before tasks begin: the reader's schema, and with it the type of the column.

Tasks get the schema as text and never ask which one is meant, so all of a query's tasks read into one type, whatever
the registry is told meanwhile. Read next: `headrace.values.value_decoder`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace.errors import ConfigError, SerializationError
from headrace.schemas.parsed import InvalidSchemaError
from headrace.values.schema_formats import SchemaText, schema_format
from headrace.values.value_format import ValueFormat

if TYPE_CHECKING:
    import pyarrow

__all__ = ["DecodedRead", "PlannedRead", "planned_read", "said_of", "subject_of"]


@contextmanager
def said_of(side: str) -> Iterator[None]:
    """Keys may have a format as well as values: an error names the one that it is about."""
    try:
        yield
    except (SerializationError, InvalidSchemaError) as error:
        raise type(error)(f"column {side}: {error}") from error


@dataclass(frozen=True, slots=True)
class PlannedRead:
    """How one side is read.

    Attributes:
        format: its options.
        reader: schema that the values are to have.
    """

    format: ValueFormat
    reader: SchemaText

    @property
    def data_type(self) -> pyarrow.DataType:
        """Arrow type of the column.

        Raises:
            InvalidSchemaError: the reader's schema is none, or one that a column cannot have.
        """
        of = self.format
        with said_of(of.side):
            return schema_format(of.name).codec(self.reader, self.reader, message=of.message, flags=of.flags).data_type


@dataclass(frozen=True, slots=True)
class DecodedRead:
    """What a read decodes.

    Attributes:
        sides: what was planned, by column name, `key` or `value`.
        texts: columns that are text without any schema.
        dead_letter_topic: where malformed records go.
        client: properties of the client that reads.
    """

    sides: Mapping[str, PlannedRead]
    texts: tuple[str, ...] = ()
    dead_letter_topic: str = ""
    client: Mapping[str, str] = field(default_factory=dict, repr=False)


def planned_read(of: ValueFormat, topics: Sequence[str] | None) -> PlannedRead:
    """Settle the reader's schema: the one that was given, else the subject's in the registry.

    Args:
        of: options of a side that has a schema.
        topics: that are read; None where a pattern chooses them.

    Raises:
        ConfigError: no schema can be found, or the topics have several.
        SchemaRegistryError: the registry did not answer, or refused.
    """
    if of.schema:
        with said_of(of.side):
            return PlannedRead(of, schema_format(of.name).given(of.schema, of.message))
    if not schema_format(of.name).schema_type:
        raise ConfigError(f"{of.side}.format {of.name} needs {of.side}.schema: the fields as Spark's DDL has them, "
                          "such as id BIGINT, name STRING")
    from headrace.values.registry_access import registry_of

    registry = registry_of(of)
    subjects = _subjects(of, topics)
    found = {subject: registry.of_subject(subject, of.version, of.side)[1] for subject in subjects}
    if len(set(found.values())) > 1:
        raise ConfigError(f"the subjects {', '.join(found)} have different schemas: name the one to read into by "
                          f"{of.side}.subject or {of.side}.schema")
    return PlannedRead(of, next(iter(found.values())))


def _subjects(of: ValueFormat, topics: Sequence[str] | None) -> list[str]:
    if of.subject:
        return [of.subject]
    if of.strategy == "record":
        return [subject_of(of, "", of.message)]
    if not topics:
        raise ConfigError(f"topics that a pattern chooses have no subject of their own: give {of.side}.subject or "
                          f"{of.side}.schema")
    return [subject_of(of, topic, of.message) for topic in topics]


def subject_of(of: ValueFormat, topic: str, record: str) -> str:
    """The subject of a side of a topic.

    Args:
        of: options of the side.
        topic: name of the topic.
        record: full name of the record; only the strategies `record` and `topic_record` need it.

    Raises:
        ConfigError: the strategy needs the record's name, and there is none.
    """
    if of.subject:
        return of.subject
    if of.strategy == "topic":
        return f"{topic}-{of.side}"
    if not record:
        raise ConfigError(f"{of.side}.subject.strategy {of.strategy} needs the record's full name: give "
                          f"{of.side}.message, {of.side}.subject or {of.side}.schema")
    return record if of.strategy == "record" else f"{topic}-{record}"
