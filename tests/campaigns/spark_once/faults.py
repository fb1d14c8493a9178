"""What is done to a query, by name. Each fault starts the query, hurts it, and leaves it to be finished."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from .case import Case
from .driver import Driver, executor_of, kill
from .site import until

LOCAL: Final = "local[2]"
CLUSTER: Final = "local-cluster[2,1,1024]"
STANDALONE: Final = "standalone"
MASTERS: Final = (LOCAL, CLUSTER, STANDALONE)
RANDOM_KILLS: Final = 20
_SHORT_MS: Final = "8000"
"""How long a transaction may be open that shall expire."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of fault.

    Attributes:
        hurt: starts the query and hurts it.
        nodes: how many brokers it takes.
        masters: where it makes sense.
        transactions: it makes no sense for a sink that writes at least once.
    """

    hurt: Callable[[Case], None]
    nodes: int = 1
    masters: tuple[str, ...] = (LOCAL, CLUSTER)
    transactions: bool = False


def _killed_at(point: str) -> Callable[[Case], None]:
    """The machine of the driver is lost when the query is at a point."""
    def hurt(case: Case) -> None:
        driver = case.start()
        case.catch(point, driver)
        driver.kill_all()
        case.start()

    return hurt


def _killed_mid_task(case: Case) -> None:
    """It is lost while a task has written some of its rows."""
    driver = case.start()
    _catch_writing(case)
    driver.kill_all()
    case.start()


def _catch_writing(case: Case) -> int:
    """Stop a task some of whose rows are in the output's log; the process that runs it."""
    driver = case.drivers[-1]
    case.wait_for_batches(1, driver)
    before = case.site.end(case.output)
    worker = case.catch("task", driver)
    until(lambda: case.site.end(case.output) > before, "no rows of the task that is stopped reach the output")
    return worker


def _each_in_turn(case: Case) -> None:
    """The driver is lost at each point, one after the other, and then there are errors at two of them."""
    for point in ("begun", "task", "commit", "marked", "committed"):
        driver = case.start()
        case.catch(point, driver)
        driver.kill_all()
    _task_raises(case)
    case.points.arm("committed")
    driver = case.drivers[-1]
    case.wait(lambda: case.points.holds("committed"), driver)
    case.points.caught("committed", case.start() if driver.ended() else driver)  # foreachBatch tries again by itself
    case.points.let_go("committed", "raise")


def _task_raises(case: Case) -> None:
    """A task raises when it has written some of its rows, and Spark tries it again."""
    case.job.master = case.job.master.replace("local[2]", "local[2,4]")
    case.start()
    _catch_writing(case)
    case.points.let_go("task", "raise")


def _commit_raises(case: Case) -> None:
    """commit() raises when the transaction is committed; Spark calls abort()."""
    case.catch("committed", case.start())
    case.points.let_go("committed", "raise")


def _killed_at_random(case: Case) -> None:
    """The driver is killed at moments that chance chooses; its Python workers go on until they notice."""
    chance = random.Random(f"{case.output} {case.job.master}")
    small = case.job.source["maxOffsetsPerTrigger"]
    case.job.source["maxOffsetsPerTrigger"] = "40"
    for _ in range(RANDOM_KILLS):
        driver = case.start()
        case.wait(lambda driver=driver: any(row[0] == driver.run for row in case.points.attempts()), driver)
        case.wait_for_batches(case.batches() + chance.randrange(3), driver)  # a start's first one takes the longest
        time.sleep(chance.uniform(0, 0.6))
        driver.kill()
    case.notes.append(f"{RANDOM_KILLS} kills, {case.batches()} micro-batches until then")
    case.job.source["maxOffsetsPerTrigger"] = small
    case.start()


def _executor_lost(case: Case) -> None:
    """An executor with map outputs is killed in the stage that writes: tasks, and as a rule the stage, run again."""
    case.job.shuffle = True
    # Whoever writes again sends batches of the same sizes, which a broker takes for the ones that it has.
    case.job.sink["kafka.batch.num.messages"] = "25"
    case.start()
    worker = _catch_writing(case)
    kill(executor_of(worker))
    kill(worker)
    case.notes.append("executor killed")


def _expires_at(point: str) -> Callable[[Case], None]:
    """A task or the commit takes longer than the transaction may; the coordinator aborts it."""
    def hurt(case: Case) -> None:
        case.job.sink["kafka.transaction.timeout.ms"] = _SHORT_MS
        driver = case.start()
        if point == "task":
            _catch_writing(case)
        else:
            case.catch(point, driver)
        until(lambda: case.site.end(case.output, "read_committed") == case.site.end(case.output), "nothing expires")
        case.job.sink.pop("kafka.transaction.timeout.ms")
        case.points.let_go(point)

    return hurt


def _zombie_at(point: str) -> Callable[[Case], None]:
    """The first driver and all its processes are frozen at a point; they go on when the second has finished."""
    def hurt(case: Case) -> None:
        first = case.start()
        if point == "task":
            _catch_writing(case)
        else:
            case.catch(point, first)
        _give_way(case, first)
        case.finish()
        case.points.let_go(point)
        _come_back(case, first)

    return hurt


def _zombie_beside(case: Case) -> None:
    """As above in a task, but the first driver goes on while the second is at work."""
    first = case.start()
    _catch_writing(case)
    second = _give_way(case, first)
    wanted = case.batches() + 1
    case.wait(lambda: case.batches() >= wanted, second)
    case.points.let_go("task")
    _come_back(case, first)
    case.finish()


def _frozen(case: Case) -> None:
    """As above at a moment that chance chooses."""
    first = case.start()
    case.wait_for_batches(2, first)
    _give_way(case, first)
    case.finish()
    _come_back(case, first)


def _give_way(case: Case, first: Driver) -> Driver:
    """Freeze a driver, and start the one that takes over."""
    first.freeze()
    return case.start()


def _come_back(case: Case, first: Driver) -> None:
    """Let a frozen driver go on, and wait for its end."""
    first.thaw()
    until(first.ended, f"the first driver did not end; {first.log}")
    case.notes.append(f"the first driver ended with status {first.popen.returncode}")


def _broker_killed(case: Case, node: int) -> None:
    """A broker is killed while a task writes, and comes back when the query has gone on without it, or has failed."""
    case.site.cluster.kill(node)
    case.points.let_go("task")
    wanted, driver = case.batches() + 2, case.drivers[-1]
    case.wait(lambda: case.batches() >= wanted, driver)
    case.site.cluster.restart(node)


def _leader_killed(case: Case) -> None:
    case.start()
    _catch_writing(case)
    _broker_killed(case, case.site.leaders(case.output)[0])


def _coordinator_killed(case: Case) -> None:
    case.start()
    _catch_writing(case)
    _broker_killed(case, case.site.coordinator(case.transactional_id))


def _worker_lost(case: Case) -> None:
    """A worker of a standalone cluster is killed, with its executor, in the middle of a task."""
    assert case.standalone is not None
    case.job.shuffle = True
    case.start()
    worker = _catch_writing(case)
    case.standalone.kill_worker(case.standalone.worker_of(executor_of(worker)))
    kill(worker)
    case.standalone.add_worker()


FAULTS: Final = {
    "each point in turn": Fault(_each_in_turn, transactions=True),
    "killed after begin": Fault(_killed_at("begun"), transactions=True),
    "killed mid task": Fault(_killed_mid_task),
    "killed before EndTxn": Fault(_killed_at("commit")),
    "killed behind the marker": Fault(_killed_at("marked"), transactions=True),
    "killed after EndTxn": Fault(_killed_at("committed")),
    "task raises": Fault(_task_raises),
    "commit() raises after EndTxn": Fault(_commit_raises),
    "killed at random": Fault(_killed_at_random),
    "executor lost": Fault(_executor_lost, masters=(CLUSTER,)),
    "transaction expires in a task": Fault(_expires_at("task"), transactions=True),
    "transaction expires at the commit": Fault(_expires_at("commit"), transactions=True),
    "zombie after begin": Fault(_zombie_at("begun"), transactions=True),
    "zombie mid task": Fault(_zombie_at("task")),
    "zombie before EndTxn": Fault(_zombie_at("commit")),
    "zombie behind the marker": Fault(_zombie_at("marked"), transactions=True),
    "zombie after EndTxn": Fault(_zombie_at("committed")),
    "zombie beside its successor": Fault(_zombie_beside),
    "zombie frozen anywhere": Fault(_frozen),
    "leader killed": Fault(_leader_killed, nodes=3),
    "coordinator killed": Fault(_coordinator_killed, nodes=3, transactions=True),
    "worker lost": Fault(_worker_lost, masters=(STANDALONE,)),
}
