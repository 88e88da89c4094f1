"""A build of the record index in processes of their own, of which the first two are killed.

One kill comes while the keys are read, one while the shards are written. A key hash of this module says when to kill:
it counts the base files that it saw, and never returns from the third.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hudi_services.indexing.checkpoints import WORK_FOLDER

from ..interop.ours import PROGRAM_WITH_PROCESSES

ONE_TASK = {"spark": ("--spark-master", "local[1]"), "local": ("--engine", "local", "--parallelism", "1")}
"""Flags of the engines, for one task at a time."""
ROOT = Path(__file__).resolve().parents[2]
_HASH = """
import os, time
from hudi_services.codecs.java_hash import file_group_indexes

def counted(keys, count):
    with open(os.environ["SEEN"], "a") as seen:
        seen.write("file\\n")
    return file_group_indexes(keys, count)

def stuck(keys, count):
    found = counted(keys, count)
    while len(open(os.environ["SEEN"]).readlines()) > 2:
        time.sleep(1)
    return found
"""
# A task of the real size would take all of a small table.
_PROGRAM = """
from hudi_services.indexing import build
build._KEYS_PER_TASK = 1
"""


def build_killed_twice(path: Path, folder: Path, engine: str = "spark") -> dict[str, Any]:
    """Build the index of the table at `path`, with 40 shards; gives the report of the run that finished.

    Asserts that nothing was done twice, and that nobody saw the index before.
    """
    (folder / "slow_hash.py").write_text(_HASH)
    seen, work, properties = folder / "seen", path / WORK_FOLDER, path / ".hoodie/hoodie.properties"
    seen.touch()
    before = properties.read_bytes()

    kill_when(_start(path, folder, engine, "stuck"), lambda: len(_lines(seen)) == 3)
    read = _times(work, "keys-*.json") | _times(work, "run-*.arrow")
    tasks = len(json.loads((work / "plan.json").read_text())["tasks"])
    assert len(list(work.glob("keys-*.json"))) == 2 < tasks

    kill_when(_start(path, folder, engine, "counted", "--resume"), lambda: len(list(work.glob("shard-*.json"))) >= 3)
    assert len(_lines(seen)) == 3 + tasks - 2
    assert read.items() <= (_times(work, "keys-*.json") | _times(work, "run-*.arrow")).items()
    noted = {file.with_suffix(".hfile").name for file in work.glob("shard-*.json")}
    written = {name: time for name, time in _times(work, "shard-*.hfile").items() if name in noted}
    assert 3 <= len(written) < 40
    assert properties.read_bytes() == before

    process = _start(path, folder, engine, "counted", "--resume")
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors.decode()[-4000:]
    assert len(_lines(seen)) == 3 + tasks - 2
    index = _times(path / ".hoodie/metadata/record_index", "*.hfile")
    assert {index[_name_there(name, index)] for name in written} == set(written.values())
    assert not work.exists()
    report: dict[str, Any] = json.loads(output)
    return report


def _start(path: Path, folder: Path, engine: str, function: str, *flags: str) -> subprocess.Popen[bytes]:
    """In a session of its own, so that Spark's processes can be killed with it."""
    options = ["--file-group-count", "40", "--hoodie-conf", f"hudi.services.index.hash=slow_hash:{function}"]
    arguments = ["index-bootstrap", "-sp", str(path), *ONE_TASK[engine], "--format", "json", *options]
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM + PROGRAM_WITH_PROCESSES, *arguments, *flags],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(folder), "SEEN": str(folder / "seen"), "TZ": "UTC"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def kill_when(process: subprocess.Popen[bytes], reached: Callable[[], bool]) -> None:
    """Kill the process, which leads a session, and all others of that, as soon as `reached` says so."""
    deadline = time.monotonic() + 240
    while not reached():
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()[1].decode()[-4000:]
        time.sleep(0.002)
    while members := _session(process.pid):
        for member in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL


def _session(leader: int) -> list[int]:
    """The live processes of a session: Spark's workers have a process group of their own, but no session."""
    found = subprocess.run(["ps", "-eo", "pid=,sess=,stat="], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in found.splitlines()]
    return [int(pid) for pid, session, state in rows if int(session) == leader and not state.startswith("Z")]


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines()


def _times(folder: Path, pattern: str) -> dict[str, int]:
    return {file.name: file.stat().st_mtime_ns for file in folder.glob(pattern)}


def _name_there(name: str, index: dict[str, int]) -> str:
    """What `shard-<n>.hfile` is called in the metadata table."""
    shard = int(name.removeprefix("shard-").removesuffix(".hfile"))
    (found,) = [one for one in index if one.startswith(f"record-index-{shard:04d}-0_")]
    return found
