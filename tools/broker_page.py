"""Write `docs/reference/broker.md` from the embedded broker's own tables: `python -m tools.broker_page`."""

from __future__ import annotations

import json
import re
from pathlib import Path

from headrace.broker.dispatch import GENERAL_LIMITS, LIMITS, SERVED, SERVICES
from headrace.broker.profiles import RELEASES
from headrace.broker.registry.rest_api import ROUTES
from headrace.broker.storage.topic_configs import BOOLEAN, LIST, TOPIC_CONFIGS, ConfigRow
from tools.kafka.artifacts import VERSIONS

_ROOT = Path(__file__).parents[1]
PAGE = _ROOT / "docs/reference/broker.md"
_HEAD = """# The embedded broker

Made from the tables in `headrace/broker` by `python -m tools.broker_page`. What is not listed here is not offered, and
clients learn that from ApiVersions before they try.

"""
_CLIENTS = """## Clients

The tests run these clients against it: Apache Kafka's Java client {java}, librdkafka (in confluent-kafka
{confluent} or newer), kafkajs {kafkajs}, franz-go {franz}, kafka-python, aiokafka, and our own. Its answers are
compared with those of Apache Kafka {brokers}, request by request, in every version that both serve
(`tests/unit/broker/test_broker_answers_as_kafka_does.py::test_both_say_the_same_in_every_version`).

"""
_REGISTRY = """## Schema Registry

`headrace broker --registry 127.0.0.1:8081` serves the REST API of Confluent's Schema Registry as well;
`EmbeddedBroker(registry=True)` and the pytest fixture `headrace_registry` have its address as `registry_url`.

```python
def test_orders(headrace_registry):
    registry = SchemaRegistryClient({{"url": headrace_registry.registry_url}})
    producer = Producer({{"bootstrap.servers": headrace_registry.bootstrap_servers}})
```

All that is registered lies in the topic `_schemas`, in Confluent's format: it is kept where the broker's log is, and a
topic copied from another registry is taken as it is. Schemas of the three types are parsed, normalised and compared
here (`headrace.schemas`; decision 0035). There is no authentication and no TLS. Metadata and rules are kept and passed
on, and nothing follows from them. A schema that comes without gets those of the version before, and in any case what a
configuration has as default and overriding ones. Nothing follows from `alias` and `compatibilityGroup`. Exporters,
associations and the mode FORWARD are not offered.

| method | path |
|---|---|
{rows}
"""
_OLDER = """## As an older broker

`BrokerSettings.of_kafka("0.10.2")` offers no more than that release of Apache Kafka did, of what is served here. Known
are {releases}.
`BrokerSettings(api_versions={{"Fetch": (4, 11), "OffsetDelete": None}})` narrows single APIs: to a lowest and a highest
version, or to none. `BrokerSettings(transaction_version=1)` has transactions as they were before Kafka 4 (KIP-890):
each must add its partitions, and keeps its producer's epoch. `marker_delay_ms` lets clients meet one that is still
ending.

"""
_SETTINGS = """## Settings of topics

Names, types, defaults and ranges are those of Kafka 4.4, but `segment.bytes`, which may be as small as in 3.9.

| setting | default | range | what follows from it |
|---|---|---|---|
"""
_APIS = """## APIs

| API | key | versions | limits |
|---|---|---|---|
"""


def page() -> str:
    """The page as it must be."""
    return _HEAD + _limits() + _apis() + _clients() + _registry() + _older() + _settings()


def _limits() -> str:
    return "## Limits\n\n" + "".join(f"* {text}\n" for text in GENERAL_LIMITS) + "\n"


def _apis() -> str:
    rows = []
    for request in sorted(SERVICES, key=lambda request: request.api_key):
        low, high = SERVED[request.api_key]
        name = request.__name__.removesuffix("Request")
        versions = f"{low}-{high}" if low < high else str(low)
        rows.append(f"| {name} | {request.api_key} | {versions} | {LIMITS.get(request, '')} |\n")
    return _APIS + "".join(rows) + "\n"


def _clients() -> str:
    packages = json.loads((_ROOT / "tests/integration/foreign/kafkajs/package.json").read_text())["dependencies"]
    return _CLIENTS.format(
        java=VERSIONS[0], brokers=f"{VERSIONS[0]} and {VERSIONS[-1]}", kafkajs=packages["kafkajs"],
        franz=_pinned("tests/integration/foreign/franz_go/go.mod", r"github\.com/twmb/franz-go v([\d.]+)"),
        confluent=_pinned("pyproject.toml", r"confluent-kafka>=([\d.]+)"))


def _pinned(file: str, pattern: str) -> str:
    found = re.search(pattern, (_ROOT / file).read_text())
    if found is None:
        raise ValueError(f"{file} does not say {pattern}")
    return found[1]


def _registry() -> str:
    paths: dict[str, list[str]] = {}
    for method, path, _ in ROUTES:
        paths.setdefault(path, []).append(method)
    return _REGISTRY.format(rows="\n".join(f"| {', '.join(sorted(methods))} | `/{path}` |"
                                           for path, methods in sorted(paths.items())))


def _older() -> str:
    return _OLDER.format(releases=", ".join(RELEASES))


def _settings() -> str:
    return _SETTINGS + "".join(f"| `{name}` | {row.default} | {_range(row)} | {row.about} |\n"
                               for name, row in TOPIC_CONFIGS.items())


def _range(row: ConfigRow) -> str:
    if row.choices:
        return ", ".join(row.choices)
    if row.type == BOOLEAN:
        return "true, false"
    if row.type == LIST:
        return "list"
    low = "" if row.lowest is None else f"from {row.lowest:g}"
    return low if row.highest is None else f"{low} to {row.highest:.10g}"


if __name__ == "__main__":
    PAGE.write_text(page())
