"""Where the process comes from that workers are forked from."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hudi_services.preloading import start_detached

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import json, os, socket, sys, threading, time
from hudi_services import preloading, process
os.environ.update(process.ENVIRONMENT)
if sys.argv[1] == "changed":
    os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "mimalloc"
if sys.argv[1] == "threads":
    threading.Thread(target=time.sleep, args=(9,), daemon=True).start()
import tests.unit.test_preloading as module
module.is_copied = True
preloading.fork_ahead()
if sys.argv[1] == "gone":
    os.kill(preloading._ahead[0]._pid, 9)
    os.waitpid(preloading._ahead[0]._pid, 0)
print("on stdout")
mine, its = socket.socketpair()
with its:
    ended = preloading.start_preloading("tests.unit.test_preloading", ["word"], its.fileno(), ["wave"])
told = json.loads(mine.makefile().readline())
ended()
print(json.dumps([*told, os.getpid()]))
"""


is_copied = False
"""Set by the other process, whose copy has it."""


def main() -> None:
    """What the process calls."""
    import os
    import socket

    from hudi_services.preloading import load

    if len(sys.argv) == 2:
        beside = Path(sys.argv[1]).with_suffix(".part")
        beside.write_text(os.getcwd())
        beside.rename(sys.argv[1])
        return
    number, word, names = sys.argv[1:]
    load(names)
    print("not in the report")
    with socket.socket(fileno=int(number)) as asked:
        told = [
            is_copied,
            word,
            os.getppid(),
            os.getsid(0) == os.getpid(),
            "wave" in sys.modules,
            "isal" in sys.modules,
        ]
        asked.sendall(json.dumps(told).encode() + b"\n")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "case, is_copy", [("", True), ("threads", False), ("changed", False), ("gone", False)], ids=lambda one: str(one)
)
def test_a_process_without_threads_forks_itself(case: str, is_copy: bool) -> None:
    """Else, or when that process is gone, Python is started anew; both do the same."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, case], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    said, told = done.stdout.splitlines()
    found, word, parent, has_session, *have_modules, pid = json.loads(told)
    assert said == "on stdout" and done.stderr == "not in the report\n"
    assert (found, word, parent, has_session, have_modules) == (is_copy, "word", pid, True, [True, True])


def test_a_process_that_goes_on_does_not_need_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java does not start in a directory that is gone, as the one that Airflow makes for a task is after the task."""
    (tmp_path / "of the task").mkdir()
    monkeypatch.chdir(tmp_path / "of the task")
    start_detached("tests.unit.test_preloading", [str(tmp_path / "told")])
    (tmp_path / "of the task").rmdir()
    end = time.monotonic() + 60
    while not (tmp_path / "told").exists() and time.monotonic() < end:
        time.sleep(0.02)
    assert (tmp_path / "told").read_text() == "/"
