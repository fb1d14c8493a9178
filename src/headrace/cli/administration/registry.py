"""`headrace registry`: subjects, schemas, compatibility and modes of a Schema Registry."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.cli.shared.exits import FAILED, RefusedError
from headrace.cli.shared.output import Column
from headrace.cli.shared.parsers import Parser, number
from headrace.cli.shared.subcommands import CHANGED, CommandGroup, Session, Subcommand
from headrace.errors import ConfigError, SchemaRegistryError

if TYPE_CHECKING:
    from headrace.schema_registry import RegisteredSchema, Schema, SchemaReference

__all__ = ["main", "make_parsers"]

_TYPES = ("AVRO", "JSON", "PROTOBUF")
_ENDINGS = {".avsc": "AVRO", ".json": "JSON", ".proto": "PROTOBUF"}
_LEVELS = ("NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")
_MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT")
_NO_SUCH_SETTING = (40401, 40408, 40409)
_SUBJECTS = (Column("subject", "its name"),)
_VERSIONS = (
    Column("subject", "its name"), Column("version", "from 1"), Column("id", "of the schema"),
    Column("type", "AVRO, JSON or PROTOBUF"), Column("references", "schemas that it uses, as SUBJECT:VERSION"),
    Column("guid", "of the schema, in all registries", wide=True),
)
_LEVEL = (Column("subject", "its name; null for the registry"), Column("compatibility", f"one of {', '.join(_LEVELS)}"))
_MODE = (Column("subject", "its name; null for the registry"), Column("mode", f"one of {', '.join(_MODES)}"))
_CHECKED = (Column("subject", "its name"), Column("compatible", "whether the schema may be registered"))


def _subjects(session: Session) -> None:
    found = session.registry.get_subjects(session.given.prefix, deleted=session.given.deleted)
    session.show([{"subject": name} for name in sorted(found)])


def _versions(session: Session) -> None:
    rows = list[dict[str, Any]]()
    for subject in session.given.subjects:
        versions = session.registry.get_versions(subject, deleted=session.given.deleted)
        rows += [_row(session.registry.get_version(subject, version, session.given.deleted)) for version in versions]
    session.show(rows)


def _row(found: RegisteredSchema) -> dict[str, Any]:
    return {"subject": found.subject, "version": found.version, "id": found.schema_id,
            "type": found.schema.schema_type or "AVRO",
            "references": [f"{each.subject}:{each.version}" for each in found.schema.references or ()],
            "guid": found.guid}


def _schema(session: Session) -> None:
    given = session.given
    if (given.subject is None) == (given.id is None):
        session.refuse("give a subject, or --id")
    if given.id is not None:
        text = session.registry.get_schema(given.id).schema_str
    else:
        version = given.version if given.version == "latest" else int(given.version)
        text = session.registry.get_version(given.subject, version).schema.schema_str
    print(text)


def _register(session: Session) -> None:
    given = session.given
    found = session.registry.register_schema_full_response(given.subject, _read(given), given.normalize)
    version = f"version {found.version} with " if found.version else ""
    session.changed(f"registered as {version}id {found.schema_id}", "schema", given.subject)


def _check(session: Session) -> None:
    given, schema = session.given, _read(session.given)
    if given.all_versions:
        compatible = session.registry.test_compatibility_all_versions(given.subject, schema, given.normalize)
    else:
        compatible = session.registry.test_compatibility(given.subject, schema, given.version, given.normalize)
    session.show([{"subject": given.subject, "compatible": compatible}])
    if not compatible:
        raise RefusedError(f"it is not compatible with {given.subject}", FAILED)


def _read(given: Any) -> Schema:
    from headrace.schema_registry import Schema

    try:
        text = sys.stdin.read() if given.file == "-" else Path(given.file).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{given.file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{given.file}: not UTF-8 at byte {error.start}") from None
    return Schema(text, given.type or _ENDINGS.get(Path(given.file).suffix.lower(), "AVRO"), given.reference)


def _compatibility(session: Session) -> None:
    given, registry = session.given, session.registry
    if given.set is not None:
        registry.set_compatibility(given.subject, given.set)
    elif given.unset:
        registry.delete_config(given.subject)
    session.show([{"subject": given.subject, "compatibility": _own(
        lambda subject: registry.get_compatibility(subject), given.subject)}])


def _mode(session: Session) -> None:
    given, registry = session.given, session.registry
    if given.set is not None and given.subject is None:
        registry.update_global_mode(given.set, given.force)
    elif given.set is not None:
        registry.update_mode(given.subject, given.set, given.force)
    elif given.unset:
        registry.delete_mode(given.subject)
    session.show([{"subject": given.subject, "mode": _own(
        lambda subject: registry.get_global_mode() if subject is None else registry.get_mode(subject),
        given.subject)}])


def _own(find: Any, subject: str | None) -> Any:
    """The subject's own, else the registry's."""
    try:
        return find(subject)
    except SchemaRegistryError as error:
        if subject is None or error.error_code not in _NO_SUCH_SETTING:
            raise
        return find(None)


def _delete(session: Session) -> None:
    given = session.given
    what = given.subject if given.version is None else f"{given.subject}, version {given.version}"
    session.confirm(f"this deletes {what}{' for good' if given.permanent else ''}", [given.subject])
    if given.dry_run:
        versions = session.registry.get_versions(given.subject, deleted=given.permanent)
        deleted = [version for version in versions if given.version in (None, version)]
    elif given.version is None:
        deleted = session.registry.delete_subject(given.subject, given.permanent)
    else:
        deleted = [session.registry.delete_version(given.subject, given.version, given.permanent)]
    for version in deleted:
        session.changed("deleted", "version", f"{given.subject}:{version}")


# Options


def _subjects_options(parser: Parser) -> None:
    parser.add_argument("prefix", nargs="?", metavar="PREFIX", help="only subjects that begin so")
    _deleted(parser)


def _deleted(parser: Parser) -> None:
    parser.add_argument("--deleted", action="store_true", help="what was deleted, and not for good, as well")


def _versions_options(parser: Parser) -> None:
    parser.add_argument("subjects", nargs="+", metavar="SUBJECT", help="its name")
    _deleted(parser)


def _version(text: str) -> str:
    if text != "latest" and not (text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is neither a version nor latest")
    return text


def _schema_options(parser: Parser) -> None:
    parser.add_argument("subject", nargs="?", metavar="SUBJECT", help="its name")
    parser.add_argument("--version", type=_version, default="latest", metavar="N", help="of the subject "
                        "(default: latest)")
    parser.add_argument("--id", type=number(1), metavar="N", help="of the schema, without a subject")


def _file(parser: Parser) -> None:
    parser.add_argument("subject", metavar="SUBJECT", help="its name, for example orders-value")
    parser.add_argument("file", metavar="FILE", help="with the schema; - for standard input")
    parser.add_argument("--type", choices=_TYPES, help="what it is (default: by the ending .avsc, .json or .proto; "
                        "AVRO otherwise)")
    parser.add_argument("--reference", type=_reference, action="append", default=[], metavar="NAME=SUBJECT:VERSION",
                        help="a schema that it uses; may be given again")
    parser.add_argument("--normalize", action="store_true", help="the registry brings it into its normal form before")


def _reference(text: str) -> SchemaReference:
    from headrace.schema_registry import SchemaReference

    name, _, rest = text.partition("=")
    subject, _, version = rest.rpartition(":")
    if not name or not subject or not version.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=SUBJECT:VERSION")
    return SchemaReference(name, subject, int(version))


def _check_options(parser: Parser) -> None:
    _file(parser)
    parser.add_argument("--version", type=_version, default="latest", metavar="N",
                        help="compare with this one (default: latest)")
    parser.add_argument("--all-versions", action="store_true", help="with those that the level of the subject says")


def _setting(parser: Parser, choices: tuple[str, ...]) -> None:
    parser.add_argument("subject", nargs="?", metavar="SUBJECT", help="its name (default: the registry)")
    change = parser.add_mutually_exclusive_group()
    change.add_argument("--set", type=str.upper, choices=choices, help="change it")
    change.add_argument("--unset", action="store_true", help="back to the default; a subject's is the registry's")


def _compatibility_options(parser: Parser) -> None:
    _setting(parser, _LEVELS)


def _mode_options(parser: Parser) -> None:
    _setting(parser, _MODES)
    parser.add_argument("--force", action="store_true", help="although there are schemas already")


def _delete_options(parser: Parser) -> None:
    parser.add_argument("subject", metavar="SUBJECT", help="its name")
    parser.add_argument("--version", type=number(1), metavar="N", help="only this one (default: all)")
    parser.add_argument("--permanent", action="store_true", help="for good; it must have been deleted before")


def _of_registry(name: str, about: str, run: Any, columns: Any, options: Any, **named: Any) -> Subcommand:
    return Subcommand(name, about, run, columns, options, cluster=False, registry=True, **named)


_GROUP = CommandGroup(
    "registry", "schemas of a Schema Registry",
    _of_registry("subjects", "the subjects", _subjects, _SUBJECTS, _subjects_options),
    _of_registry("versions", "the versions of subjects", _versions, _VERSIONS, _versions_options),
    _of_registry("schema", "print a schema", _schema, None, _schema_options),
    _of_registry("register", "register a schema", _register, CHANGED, _file,
                 examples="  headrace registry register orders-value order.avsc --registry http://localhost:8081\n"),
    _of_registry("check", "find out whether a schema may be registered; 1 when not", _check, _CHECKED, _check_options),
    _of_registry("compatibility", "show or change what new versions must be compatible with", _compatibility, _LEVEL,
                 _compatibility_options),
    _of_registry("mode", "show or change whether schemas can be registered", _mode, _MODE, _mode_options),
    _of_registry("delete", "delete a subject or one of its versions", _delete, CHANGED, _delete_options,
                 destructive=True, dry_run=True),
)
make_parsers, main = _GROUP.make_parsers, _GROUP.main
