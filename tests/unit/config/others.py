"""What the other clients call their properties: asked of librdkafka and of Java, kept as data beside this file.

    python -m tests.unit.config.others

asks again and writes the data. librdkafka is the one that confluent_kafka's wheel brings along; Java's names are those
of the newest pinned kafka-clients. Names, ranges and defaults are taken, nothing else.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tools.jvm_options import SHORT_LIVED

HERE = Path(__file__).parent
KAFKA = "4.4.0"
"""The release of kafka-clients whose names are kept."""
_ROLES = {"C": ("consumer",), "P": ("producer",), "*": ("admin", "consumer", "producer")}
_ROW = re.compile(r"([a-z][\w.]+) +\| +([CP*]) +\| (.*?) \| (.*?) \| \w+ +\|")
_RANGE = re.compile(r"(-?\d+) \.\. (-?\d+)")


class Other(NamedTuple):
    """One property of another client.

    Attributes:
        name: its name there.
        roles: clients that have it.
        values: both ends of its range, or its choices; none when anything goes.
        default: as text; empty when there is none.
    """

    name: str
    roles: tuple[str, ...]
    values: tuple[str, ...]
    default: str


def kept(client: str) -> tuple[str, list[Other]]:
    """The version of `librdkafka` or `java`, and the properties that are kept of it."""
    data = json.loads((HERE / f"{client}.json").read_text())
    return data["version"], [Other(name, tuple(row["roles"]), tuple(row["values"]), row["default"])
                             for name, row in data["properties"].items()]


# librdkafka

def bundled_librdkafka() -> ctypes.CDLL | None:
    """The library that confluent_kafka's wheel has in it; None when it was built against another one."""
    found = importlib.util.find_spec("confluent_kafka")
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent.with_name("confluent_kafka.libs")
    libraries = sorted(folder.glob("librdkafka-*"))
    return ctypes.CDLL(str(libraries[0])) if libraries else None


def ask_librdkafka(library: ctypes.CDLL) -> tuple[str, list[Other]]:
    """Its version and properties, those that its documentation leaves out as well."""
    library.rd_kafka_version_str.restype = ctypes.c_char_p
    properties: dict[str, Other] = {}
    for row in _shown(library):
        before = properties.get(row.name)  # some are both a client's and a topic's: the client's range counts
        properties.setdefault(row.name, row)
        if before is not None:
            properties[row.name] = before._replace(default=before.default or row.default)
    for name, default in _hidden(library):
        properties.setdefault(name, Other(name, _ROLES["*"], (), default))
    return library.rd_kafka_version_str().decode(), sorted(properties.values())


def _shown(library: ctypes.CDLL) -> Iterator[Other]:
    """What `rd_kafka_conf_properties_show()` prints: the table of CONFIGURATION.md."""
    c = ctypes.CDLL(None)
    c.fopen.restype = ctypes.c_void_p
    c.fclose.argtypes = library.rd_kafka_conf_properties_show.argtypes = [ctypes.c_void_p]
    with tempfile.NamedTemporaryFile() as file:
        stream = c.fopen(file.name.encode(), b"w")
        library.rd_kafka_conf_properties_show(stream)
        c.fclose(stream)
        text = Path(file.name).read_text()
    for name, role, values, default in _ROW.findall(text):
        limits = _RANGE.fullmatch(values.strip())
        choices = limits.groups() if limits else tuple(filter(None, re.split(r",\s*", values.strip())))
        yield Other(name, _ROLES[role], choices, default.strip())


def _hidden(library: ctypes.CDLL) -> Iterator[tuple[str, str]]:
    """Names that only a dump has, with their values."""
    for scope in ("rd_kafka_conf", "rd_kafka_topic_conf"):
        make, dump = getattr(library, f"{scope}_new"), getattr(library, f"{scope}_dump")
        make.restype = ctypes.c_void_p
        dump.restype = ctypes.POINTER(ctypes.c_char_p)
        dump.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t)]
        count = ctypes.c_size_t()
        texts = dump(make(), ctypes.byref(count))
        for index in range(0, count.value, 2):
            yield (texts[index] or b"").decode(), (texts[index + 1] or b"").decode()


# Java

def ask_java(java: str, class_path: str, version: str) -> tuple[str, list[Other]]:
    """The names of ConsumerConfig, ProducerConfig and AdminClientConfig.

    Args:
        java: a `java` of a JDK.
        class_path: Kafka's jars.
        version: of the jars.
    """
    done = subprocess.run([java, *SHORT_LIVED, "-cp", class_path, str(HERE / "Properties.java")],
                          capture_output=True, text=True, check=True)
    properties: dict[str, Other] = {}
    for line in sorted(done.stdout.splitlines()):
        role, name, kind, default = line.split("\t")
        values = ("true", "false") if kind == "BOOLEAN" else ()
        before = properties.get(name, Other(name, (), values, default))
        properties[name] = before._replace(roles=(*before.roles, role))
    return version, sorted(properties.values())


def main() -> None:
    """Ask both and write the data."""
    from tools.kafka.artifacts import class_path
    from tools.kafka.java import find_java

    library = bundled_librdkafka()
    if library is None:
        raise SystemExit("confluent_kafka is not installed, or brings no librdkafka along")
    for client, (version, properties) in (("librdkafka", ask_librdkafka(library)),
                                          ("java", ask_java(find_java(), class_path(KAFKA), KAFKA))):
        (HERE / f"{client}.json").write_text(written(version, properties))


def written(version: str, properties: list[Other]) -> str:
    """The text of a file of data: a line for each property."""
    rows: list[str] = []
    for name, roles, values, default in properties:
        row: dict[str, Any] = {"roles": roles, "values": values, "default": default}
        rows.append(f"  {json.dumps(name)}: {json.dumps(row)}")
    return f'{{"version": {json.dumps(version)}, "properties": {{\n{f",{chr(10)}".join(rows)}\n}}}}\n'


if __name__ == "__main__":
    main()
