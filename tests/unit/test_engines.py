"""The engines of this machine: tasks in this process, and in processes of their own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hudi_services.engine import Engine, LocalEngine
from hudi_services.errors import JobLost
from hudi_services.processes.process_engine import ProcessEngine

from ..engine_contract import EngineContract

ROOT = Path(__file__).resolve().parents[2]


class TestThisProcess(EngineContract):
    in_other_processes = False

    @pytest.fixture
    def engine(self) -> Engine:
        return LocalEngine()


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessEngine]:
    engine = ProcessEngine(2)
    yield engine
    engine.close()


class TestProcesses(EngineContract):
    @pytest.fixture
    def engine(self, processes: ProcessEngine) -> Engine:
        return processes


def nothing(done: int, total: int) -> None:
    """The progress."""


class Unpicklable(Exception):
    def __init__(self, first: int, second: int) -> None:
        super().__init__("two things went wrong")


def ends_badly(task: str, token: str) -> object:
    if task == "value":
        raise ValueError("wrong, but known")
    if task == "unpicklable":
        raise Unpicklable(1, 2)
    if task == "result":
        return lambda: None
    if task == "exit":
        os._exit(3)
    if task == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    while True:
        time.sleep(60)


@pytest.mark.parametrize(
    ("task", "error", "said"),
    [
        ("value", ValueError, "wrong, but known"),
        ("unpicklable", JobLost, "'end' failed: .*Unpicklable: two things went wrong"),
        ("result", JobLost, "'end' failed: .*[Pp]ickle"),
        ("exit", JobLost, "'end' failed: a process ended with exit code 3"),
        ("killed", JobLost, "'end' failed: a process was ended by SIGKILL"),
    ],
)
def test_a_task_that_ends_the_job(processes: ProcessEngine, task: str, error: type[Exception], said: str) -> None:
    """The other task would never end; the engine goes on with new processes."""
    with pytest.raises(error, match=said) as told:
        processes.map(ends_badly, ["other", task], "end", nothing)
    assert told.value.__cause__ is not None
    assert [pid for one in children(os.getpid()) for pid in children(one)] == []
    assert len(processes.map(pid_of, [1, 2, 3], "go on", nothing)) == 3


def pid_of(task: int, token: str) -> tuple[int, int, list[str]]:
    print("this is not part of a report")
    return os.getpid(), os.getppid(), os.listdir(f"/proc/{os.getppid()}/task")


def test_workers_are_forked_from_a_process_without_threads(
    processes: ProcessEngine, capfd: pytest.CaptureFixture[str]
) -> None:
    found = processes.map(pid_of, [*range(6)], "look", nothing)
    assert {parent for _, parent, _ in found} == {int(threads[0]) for _, _, threads in found}
    assert all(len(threads) == 1 for _, _, threads in found)
    assert len({pid for pid, _, _ in found}) <= 2
    assert "not part" not in capfd.readouterr().out


DRIVER = """
import os, signal, sys, time
from hudi_services.processes.process_engine import ProcessEngine
from tests.unit.test_engines import nothing, wait_forever

# A shell that starts the tests in the background has them ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
engine = ProcessEngine(2)
print(engine._workers.folder, flush=True)
try:
    engine.map(wait_forever, [sys.argv[1]] * 2, "wait", nothing)
finally:
    print("ended", flush=True)
"""


def wait_forever(place: str, token: str) -> None:
    Path(f"{place}-{token}").write_text(str(os.getpid()))
    while True:
        time.sleep(60)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_of_a_driver_that_ends(number: signal.Signals, tmp_path: Path) -> None:
    line = [sys.executable, "-c", DRIVER, str(tmp_path / "task")]
    with (
        subprocess.Popen(
            line, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
        ) as driver,
        ExitStack() as stack,
    ):
        # Where an assertion fails, nothing waits for a driver that waits for ever.
        stack.callback(driver.kill)
        assert driver.stdout is not None
        folder = Path(driver.stdout.readline().strip())
        wait_for(lambda: len([file for file in tmp_path.iterdir() if file.read_text()]) == 2)
        workers = [int(file.read_text()) for file in tmp_path.iterdir()]
        parents = [pid for pid in children(driver.pid) if {*workers} <= {*children(pid)}]
        assert folder.is_dir() and len(parents) == 1
        # As a terminal does: to all of its group.
        os.killpg(driver.pid, number)
        said = driver.stdout.read()
    if number == signal.SIGINT:
        assert said == "ended\n" and not any(map(is_alive, workers))
    wait_for(lambda: not folder.exists() and not any(map(is_alive, [*workers, *parents])))


def children(pid: int) -> list[int]:
    """The live processes that this one has started."""
    every = [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]
    return [one for one in every if stat_of(one)[1:2] == [str(pid)] and is_alive(one)]


def is_alive(pid: int) -> bool:
    return stat_of(pid)[:1] not in ([], ["Z"])


def stat_of(pid: int) -> list[str]:
    """What Linux says of a process from its state on: state, parent, ...; nothing where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def wait_for(reached: Any) -> None:
    deadline = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.01)
