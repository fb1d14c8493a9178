"""Imports are cheap: nothing heavy is loaded before it is used, and all messages together cost a few milliseconds."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from headrace.records import implementation

MESSAGES = Path(__file__).parents[2] / "src/headrace/wire/messages"
ALL_MESSAGES = "import headrace.wire.api, " + ", ".join(
    f"headrace.wire.messages.{path.parent.name}.{path.stem}" for path in sorted(MESSAGES.glob("*/*.py"))
    if path.stem != "__init__")
CLIENTS = {"asyncio", "ssl", "pyarrow", "pyspark", "cramjam", "headrace.wire.codec",
           "headrace.client.producer.producer_engine"}
LIBRARY = {"collections", "contextlib", "dataclasses", "enum", "functools", "inspect", "re", "typing", "uuid"}
"""What together costs more than all messages, and they need none of it."""

FEWEST_ROUNDS, MOST_ROUNDS = 12, 80
ASYNCIO_MS = 40
"""Bars of CPU are those of a machine that needs so much to import asyncio. A slower one is allowed as much more as it
needs for that, measured in the same rounds: shared processors vary by a factor of two from hour to hour."""

WITH_IMPORT_MS, CONSTRUCTION_MS = 80, 10
MOST_MODULES = 128
"""Of the package, for a producer and a consumer: each costs a quarter of a millisecond, also an empty one."""
NOBODY = {"bootstrap.servers": "127.0.0.1:1"}
BOTH = "from headrace import Consumer, Producer"
SELDOM = {
    "concurrent.futures.thread", "dataclasses", "difflib", "ipaddress", "json", "pyarrow", "random", "secrets",
    "tempfile",
    "headrace.config.rows_elsewhere", "headrace.machines.cluster.sasl.scram", "headrace.net.auth.tls",
    "headrace.net.auth.tokens", "headrace.records.legacy.conversion", "headrace.types.metrics",
}
"""What ordinary producers and consumers do without."""
NATIVE_ONLY = pytest.mark.skipif(implementation == "plain", reason="the plain twin is what runs here")
FIRST_PRODUCER = f"""
import time
started = time.process_time()
from headrace import Producer
imported = time.process_time()
producer = Producer({NOBODY})
made = time.process_time()
print((imported - started) * 1000, (made - imported) * 1000)
"""

FIRST_OF_ASYNCIO = """
import time
started = time.process_time()
import asyncio
print((time.process_time() - started) * 1000)
"""


def loaded_by(code: str) -> set[str]:
    """Modules that code loads and the bare interpreter does not."""
    def modules(before: str) -> set[str]:
        shown = subprocess.run([sys.executable, "-c", f"{before}\nimport sys; print(*sys.modules)"],
                               capture_output=True, text=True, check=True).stdout
        return set(shown.split())

    return modules(code) - modules("pass")


def cpu_ms(code: str, environment: Mapping[str, str]) -> float:
    """User and system time of a whole process, its start and its end too."""
    process = os.posix_spawn(sys.executable, [sys.executable, "-c", code], environment)
    _, status, used = os.wait4(process, 0)
    assert status == 0
    return (used.ru_utime + used.ru_stime) * 1000


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert not (CLIENTS | LIBRARY | {"headrace.wire.messages.consumer.fetch"}) & loaded_by("import headrace")


def test_importing_all_messages_loads_nothing_heavy() -> None:
    loaded = loaded_by(ALL_MESSAGES)
    assert "headrace.wire.messages.consumer.fetch" in loaded
    assert not (CLIENTS | LIBRARY) & loaded


def test_an_api_imports_its_own_messages_only() -> None:
    loaded = loaded_by("from headrace.wire.api import API; assert len(API) > 90; API[3].max_version; API.get(-1)")
    assert {name for name in loaded if "wire.messages." in name} == {
        "headrace.wire.messages.cluster", "headrace.wire.messages.cluster.metadata"}


def slowness(asyncio_ms: float) -> float:
    """How much slower this machine is than that of the bars, from what it needs to import asyncio; 1 if it is not."""
    return max(asyncio_ms / ASYNCIO_MS, 1.0)


@pytest.fixture
def compiled(tmp_path: Path) -> Mapping[str, str]:
    """The environment of processes that keep what they compile in a folder of their own.

    What a test runner forbids or has compiled already does not count.
    """
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {**environment, "PYTHONPYCACHEPREFIX": str(tmp_path)}


@pytest.mark.parametrize(("code", "bar_ms"), [("import headrace", 5), (ALL_MESSAGES, 15)],
                         ids=["the package", "all messages"])
def test_importing_takes_little_cpu_over_the_bare_interpreter(
    code: str, bar_ms: int, compiled: Mapping[str, str], tmp_path: Path
) -> None:
    for warmed in ("pass", code):
        cpu_ms(warmed, compiled)
    assert any(tmp_path.rglob("*.pyc"))
    bare_ms, whole_ms, asyncio_ms, rounds = [], [], [], 0

    def allowed_ms() -> float:
        return bar_ms * slowness(min(asyncio_ms) - min(bare_ms))

    # Other work on the machine makes processes dearer, never cheaper: a busy one is given more rounds.
    while rounds < FEWEST_ROUNDS or (rounds < MOST_ROUNDS and min(whole_ms) - min(bare_ms) > allowed_ms()):
        bare_ms.append(cpu_ms("pass", compiled))
        whole_ms.append(cpu_ms(code, compiled))
        asyncio_ms.append(cpu_ms("import asyncio", compiled))
        rounds += 1
    cost_ms = min(whole_ms) - min(bare_ms)
    assert cost_ms <= allowed_ms(), (
        f"{cost_ms:.1f} ms of CPU, {allowed_ms():.1f} are allowed: the best of {rounds} processes took "
        f"{min(whole_ms):.1f} ms, the bare interpreter {min(bare_ms):.1f} ms, asyncio {min(asyncio_ms):.1f} ms")


def test_the_first_producer_is_there_after_little_cpu(compiled: Mapping[str, str]) -> None:
    def measure(code: str) -> list[float]:
        """CPU of all threads, as a fresh process prints it."""
        shown = subprocess.run([sys.executable, "-c", code], env=compiled, check=True, capture_output=True)
        return [float(each) for each in shown.stdout.split()]

    def is_cheap() -> bool:
        scale = slowness(min(asyncio_ms))
        return min(whole_ms) <= WITH_IMPORT_MS * scale and min(made_ms) <= CONSTRUCTION_MS * scale

    for warmed in (FIRST_PRODUCER, FIRST_OF_ASYNCIO):
        measure(warmed)
    whole_ms: list[float] = []
    made_ms: list[float] = []
    asyncio_ms: list[float] = []
    while len(whole_ms) < FEWEST_ROUNDS or (len(whole_ms) < MOST_ROUNDS and not is_cheap()):
        imported, made = measure(FIRST_PRODUCER)
        whole_ms.append(imported + made)
        made_ms.append(made)
        asyncio_ms += measure(FIRST_OF_ASYNCIO)
    assert is_cheap(), (f"the best of {len(whole_ms)} processes took {min(whole_ms):.1f} ms of CPU, {min(made_ms):.1f} "
                        f"of them after the import; {WITH_IMPORT_MS} and {CONSTRUCTION_MS} are allowed where importing "
                        f"asyncio takes {ASYNCIO_MS}, which took {min(asyncio_ms):.1f}")


def test_a_producer_without_tls_sasl_or_columns_loads_nothing_for_them() -> None:
    loaded = loaded_by(f"from headrace import Producer; Producer({NOBODY})")
    assert "headrace.client.producer.producer_engine" in loaded
    unused = {"headrace.client.producer.column_feed", "headrace.client.producer.interceptors",
              "headrace.client.producer.transaction_calls", "headrace.machines.producer.transactions",
              "headrace.machines.producer.transactional_sequences", "headrace.machines.cluster.coordinator",
              "headrace.wire.messages.producer.transactions", "headrace.wire.messages.consumer.fetch",
              "headrace.wire.messages.groups.classic_groups"}
    assert not (SELDOM | unused) & loaded


def test_a_consumer_loads_nothing_of_a_producer() -> None:
    loaded = loaded_by(f"from headrace import Consumer; Consumer({NOBODY | {'group.id': 'readers'}})")
    assert "headrace.client.consumer.consumer_engine" in loaded
    unused = {"headrace.machines.consumer.truncation",
              "headrace.machines.producer.sender", "headrace.machines.producer.sequences",
              "headrace.machines.producer.transactions", "headrace.wire.messages.producer.produce"}
    assert not (SELDOM | unused) & loaded


def test_a_registry_client_loads_the_http_library_only_when_there_is_http_to_do() -> None:
    mocked = "from headrace.schema_registry import SchemaRegistryClient; SchemaRegistryClient({'url': 'mock://'})"
    assert not {"httpx2", "httpcore2", "headrace.wire.api"} & loaded_by(mocked)
    assert "httpx2" in loaded_by(mocked.replace("mock://", "http://localhost:8081"))


@NATIVE_ONLY
def test_where_the_native_twin_runs_the_plain_one_is_not_loaded() -> None:
    loaded = loaded_by(BOTH)
    assert {"headrace.records._batch", "headrace.buffers._buffer"} <= loaded
    assert not {"headrace.records.batch", "headrace.records.builder", "headrace.records.columns.columns",
                "headrace.records.legacy.message_set", "headrace.buffers.record_accumulator",
                "headrace.buffers.closed_batch"} & loaded


def test_options_without_formats_load_no_codec_and_where_the_native_one_runs_the_plain_one_is_not_loaded() -> None:
    given = {"kafka.bootstrap.servers": "a:1", "subscribe": "t"}
    options = f"from headrace.spark.options import SourceOptions; SourceOptions.parse({given}, streaming=True)"
    columns = "headrace.schemas.columns"
    assert not {"pyarrow", columns, "headrace.schemas", "headrace.values.value_planning"} & loaded_by(options)
    loaded = loaded_by(f"from {columns}.avro_columns import AvroColumns; from headrace.schemas.avro import parse_avro; "
                       "AvroColumns(parse_avro('\"int\"'))")
    native = f"{columns}._avro_columns" in loaded
    assert (f"{columns}.avro.avro_plain_decoder" in loaded) is not native


@NATIVE_ONLY
def test_a_producer_and_a_consumer_load_few_modules() -> None:
    loaded = {name for name in loaded_by(BOTH) if name.partition(".")[0] == "headrace"}
    assert "headrace.client.consumer.consumer" in loaded
    assert len(loaded) <= MOST_MODULES
