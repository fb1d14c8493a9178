"""What every machine has: the driver calls all of them alike."""

import ast
import inspect
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

import headrace.machines
from headrace.errors import KafkaError
from headrace.machines.machine import ANY_NODE, CONTROLLER, LOST, REFUSALS, ErrorEvent, Event, Machine, Send, because
from headrace.wire.messages.groups.classic_groups import HeartbeatRequest

CALLS = ("poll", "deadline", "on_reply", "on_error", "events")
MODULES = sorted(module.name for module in pkgutil.walk_packages(headrace.machines.__path__, "headrace.machines."))
MACHINES = [found for name in MODULES for found in vars(import_module(name)).values()
            if isinstance(found, type) and found.__module__ == name and hasattr(found, "poll")
            and hasattr(found, "events") and found is not Machine]
IMPURE = {"asyncio", "datetime", "headrace.client", "headrace.net", "random", "secrets", "select", "socket", "ssl",
          "threading", "time"}


def names_of(function: object) -> list[str]:
    return list(inspect.signature(function).parameters)  # type: ignore[arg-type]


def test_the_machines_of_all_rooms_are_found() -> None:
    found = {machine.__name__ for machine in MACHINES}
    assert {"CoordinatorFinder", "Fetcher", "Metadata", "Sender", "Transactions"} <= found


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.__name__)
def test_every_machine_is_called_as_the_driver_calls_it(machine: type) -> None:
    for call in CALLS:
        assert names_of(getattr(machine, call)) == names_of(getattr(Machine, call)), call


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.__name__)
@pytest.mark.parametrize("word", ["alone", "idle"])
def test_every_machine_says_whether_others_have_to_be_polled(machine: type, word: str) -> None:
    source = inspect.getsource(machine)
    assert hasattr(machine, word) or f"self.{word} = " in source


@pytest.mark.parametrize("name", MODULES)
def test_no_machine_has_a_clock_a_socket_a_thread_or_chance(name: str) -> None:
    source = Path(inspect.getsourcefile(import_module(name)) or "").read_text()
    imported = {alias.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import)
                for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)}
    assert not {each for each in imported for banned in IMPURE if each == banned or each.startswith(f"{banned}.")}


def test_what_is_lost_may_be_tried_again_and_what_is_refused_may_not() -> None:
    assert all(KafkaError(code).retriable() for code in (KafkaError._TRANSPORT, KafkaError._RESOLVE))
    assert not any(KafkaError(code).retriable() for code in REFUSALS)
    assert not {*LOST} & {*REFUSALS}


def test_destinations_that_are_no_broker_are_no_brokers_id_and_differ() -> None:
    assert len({ANY_NODE, CONTROLLER}) == 2
    assert max(ANY_NODE, CONTROLLER) < 0


def test_a_request_has_no_version_and_no_broker_until_the_driver_sets_them() -> None:
    send = Send(ANY_NODE, HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 5.0)
    assert (send.version, send.node_id, send.expects_reply, send.max_version, send.for_version) == (
        -1, -1, True, None, None)


def test_two_requests_that_say_the_same_are_two() -> None:
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    first, second = Send(1, request, 5.0), Send(1, request, 5.0)
    assert first != second
    assert len({first, second}) == 2


def test_an_error_that_belongs_to_no_call_is_an_event() -> None:
    error = KafkaError(KafkaError._TRANSPORT, "cut")
    event = ErrorEvent(error)
    assert isinstance(event, Event)
    assert event.error is error
    with pytest.raises(AttributeError):
        event.other = 1  # type: ignore[attr-defined]


def test_a_text_about_time_that_ran_out_ends_with_the_last_error_if_there_was_one() -> None:
    assert because(None) == ""
    assert because(KafkaError(KafkaError._TRANSPORT, "b:1: connection refused")) == (
        "; last error: b:1: connection refused")
