"""The arrows of the architecture: who may import whom. Lazy and TYPE_CHECKING imports count."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
PACKAGE = SOURCE / "headrace"

BASE = {"arguments", "interpreter", "error_codes", "errors", "types", "config", "slotted", "states", "compiled"}
FACES = {"aio", "admin", "as_confluent_kafka", "avro", "schema_registry", "opentelemetry", "serialization", "spark",
         "frames", "decode", "cli", "testing", "serializing_producer", "deserializing_consumer",
         "deserializing_share_consumer"}
MAY_IMPORT = {
    "wire": BASE,
    "schemas": BASE,
    "records": BASE,
    "buffers": BASE | {"records"},
    "machines": BASE | {"wire", "records"},
    "net": BASE | {"wire", "records", "buffers", "machines"},
    "client": BASE | {"wire", "records", "schemas", "buffers", "machines", "net"},
    "values": BASE | {"schemas", "client"},
    "broker": BASE | {"wire", "records", "schemas"},
    **{face: BASE | FACES | {"records", "client", "values", "broker", "net", ""} for face in FACES},
    "decode": BASE | {"wire", "records"},
    "spark": BASE | FACES | {"records", "schemas", "client", "values", "broker", "net", ""},
    "cli": BASE | FACES | {"wire", "records", "buffers", "client", "values", "broker", "net", ""},
    "": BASE | {"records", "client", "frames"},
}
SPARK = {"headrace.spark", "headrace.spark.exactly_once.spark_task", "headrace.spark.foreach_batch.batches",
         "headrace.spark.foreach_batch.stream_of_batch", "headrace.spark.foreach_batch.transaction_sink",
         "headrace.spark.inline_sink", "headrace.spark.partition_owners", "headrace.spark.pipeline.progress",
         "headrace.spark.pipeline.run", "headrace.spark.pipeline.session", "headrace.spark.pipeline.tables",
         "headrace.spark.pipeline.views", "headrace.spark.sink", "headrace.spark.source",
         "headrace.spark.spark_required", "headrace.spark.values.spark_types"}
"""Modules that may import pyspark."""
IMPURE = {"asyncio", "socket", "ssl", "select", "selectors", "threading", "time", "random", "os", "concurrent",
          "subprocess", "datetime"}
"""`machines` decide without any of these: time, chance and waiting are given to them."""


WAITING_IN_THE_BROKER = {"headrace.broker.broker", "headrace.broker.clock", "headrace.broker.server",
                         "headrace.broker.registry.http_server"}
"""The broker's modules that have the clock, the loop and the sockets; all others get time and chance as arguments."""
IMPURE_IN_THE_BROKER = IMPURE - {"os"}
"""Its storage writes files."""


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports_of(path: Path) -> set[str]:
    """Every module that a file names in an import, wherever the statement stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            # `from headrace import records` names a module; it does not use the public face.
            found |= names if node.module == "headrace" and names <= all_modules() else names | {node.module}
    return found


@cache
def all_modules() -> set[str]:
    return {module_name(path) for path in PACKAGE.rglob("*.py")}


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
NATIVE = sorted([*PACKAGE.rglob("*.pyx"), *PACKAGE.rglob("*.pxd")])


def layer(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_its_layer_may(module: str) -> None:
    own = layer(module)
    allowed = MAY_IMPORT.get(own, BASE) | {own}
    for name in imports_of(MODULES[module]):
        if name in MODULES and name != "headrace":
            assert layer(name) in allowed, f"{module} imports {name}"
        elif name == "headrace":
            assert own in FACES | {""}, f"{module} imports the package's public face"


@pytest.mark.parametrize("path", NATIVE, ids=lambda path: path.name)
def test_native_code_imports_only_what_its_layer_may(path: Path) -> None:
    own = layer(module_name(path))
    named = re.findall(r"^ *(?:from|import|cimport) (headrace[\w.]*)", path.read_text(), re.M)
    assert {layer(name) for name in named} <= MAY_IMPORT[own] | {own}
    assert "include \"" not in path.read_text()


@pytest.mark.parametrize("module", [name for name in MODULES if layer(name) == "machines"])
def test_a_machine_has_no_way_to_wait_or_to_roll_dice(module: str) -> None:
    assert not {name.split(".")[0] for name in imports_of(MODULES[module])} & IMPURE


@pytest.mark.parametrize("module", [name for name in MODULES
                                    if layer(name) == "broker" and name not in WAITING_IN_THE_BROKER])
def test_the_broker_decides_without_a_clock_a_loop_or_dice(module: str) -> None:
    assert not {name.split(".")[0] for name in imports_of(MODULES[module])} & IMPURE_IN_THE_BROKER
    tree = ast.parse(MODULES[module].read_text())
    named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | {
        node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)} | {
        alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert not named & {"uuid1", "uuid4", "urandom", "time_ns", "monotonic"}
    assert not any(isinstance(node, (ast.AsyncFunctionDef, ast.Await)) for node in ast.walk(tree))


def test_there_are_no_import_cycles() -> None:
    graph = {module: {name for name in imports_of(path) if name in MODULES and name not in (module, "headrace")}
             for module, path in MODULES.items()}
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " -> ".join((*trail[trail.index(module):], module))
        if module not in done:
            for target in sorted(graph[module]):
                # A package's __init__ is imported with any of its modules; that is not an arrow of the design.
                if not module.startswith(f"{target}."):
                    visit(target, (*trail, module))
            done.add(module)

    for module in graph:
        visit(module, ())


def test_only_spark_imports_pyspark_and_few_import_pyarrow_at_the_top() -> None:
    for module, path in MODULES.items():
        names = {name.split(".")[0] for name in imports_of(path)}
        if "pyspark" in names:
            assert module in SPARK, module
        if layer(module) not in ("spark", "values"):
            top = {alias.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.Import)
                   for alias in node.names}
            assert "pyarrow" not in top, module


def locks_left(code: str) -> list[str]:
    """Locks of `threading` that a `with` statement takes, as they are written."""
    tree = ast.parse(code)
    made = {ast.unparse(target) for node in ast.walk(tree) if isinstance(node, ast.Assign)
            for target in node.targets if re.search(r"\b(?<!asyncio\.)(R?Lock|Condition)\(", ast.unparse(node.value))}
    return [ast.unparse(item.context_expr) for node in ast.walk(tree) if isinstance(node, ast.With)
            for item in node.items if ast.unparse(item.context_expr) in made]


def test_the_check_of_locks_finds_those_that_a_with_statement_takes() -> None:
    assert locks_left("self._a = threading.Lock()\nwith self._a:\n    pass") == ["self._a"]
    assert locks_left("from threading import RLock\na = RLock()\nwith b, a:\n    pass") == ["a"]
    assert locks_left("a = SteadyLock()\nwith a:\n    pass\nb = Lock()\nb.acquire()") == []


def test_no_with_statement_takes_a_lock_that_ctrl_c_could_leave_locked() -> None:
    found = {module: left for module, path in MODULES.items()
             if layer(module) != "buffers" and (left := locks_left(path.read_text()))}
    assert not found, "take a headrace.interpreter.SteadyLock"
