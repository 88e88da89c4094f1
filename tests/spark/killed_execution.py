"""Executions of a clustering in processes of their own, which end when so many groups are done.

A layout of this module says when: it counts the groups that it saw, in a file, and does not return from one of them.
It waits to be killed with its driver, or kills its worker or the Java process.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hudi_services.commit.checkpoints import checkpoint_folder

from ..interop.ours import PROGRAM_WITH_PROCESSES
from .killed_build import ONE_TASK, ROOT, kill_when

_LAYOUT = """
import os, signal, time
import numpy as np
from hudi_services.rows.row_order import RowOrder

def parent(pid):
    return int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])

def java():
    # That of the driver, which started the process that this worker is a fork of.
    pid = os.getpid()
    while True:
        pid = parent(pid)
        for one in map(int, filter(str.isdigit, os.listdir("/proc"))):
            try:
                if parent(one) == pid and open(f"/proc/{one}/comm").read().strip() == "java":
                    return one
            except OSError:
                continue

class Counted(RowOrder):
    def learn(self, sample):
        pass

    def places(self, keys):
        with open(os.environ["SEEN"], "a") as seen:
            seen.write("group\\n")
        if len(open(os.environ["SEEN"]).readlines()) == int(os.environ["AT_MOST"]) + 1:
            end = os.environ["END"]
            if end == "worker":
                os.kill(os.getpid(), signal.SIGKILL)
            if end == "java":
                os.kill(java(), signal.SIGKILL)
            time.sleep(600)
        return np.arange(len(keys[0]))[::-1].astype(np.int64)
"""
_ALL = 1000


class Executions:
    """Of the plan at `ts` of the table at `path`, whose groups are sorted by something; `folder` is theirs."""

    def __init__(
        self, path: Path, ts: str, folder: Path, options: dict[str, str] | None = None, engine: str = "spark"
    ) -> None:
        self._path = path
        self._ts = ts
        self._folder = folder
        self._options = options or {}
        self._engine = engine
        (folder / "counted.py").write_text(_LAYOUT)

    def killed_after(self, groups: int) -> None:
        """Driver and workers are killed when so many groups more are done, and the next one is not."""
        before = len(self.notes())
        process = self._start(groups, "killed")
        kill_when(process, lambda: len(self.seen()) == groups + 1)
        assert len(self.notes()) == before + groups

    def failed_after(self, groups: int) -> str:
        """A worker dies when so many groups more are done, and the execution ends; what stood on stderr."""
        before = len(self.notes())
        process = self._start(groups, "worker")
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 1, errors.decode()[-4000:]
        # Spark may begin the next task before it ends the job.
        assert len(self.notes()) - before in (groups, groups + 1)
        return errors.decode()

    def without_java_after(self, groups: int) -> tuple[dict[str, Any], str]:
        """Spark's Java process dies when so many groups more are done; the same execution tries again, and ends."""
        process = self._start(groups, "java", "--retry", "1")
        return _ended(process)

    def tried_again_after(self, groups: int) -> tuple[dict[str, Any], str]:
        """A worker dies when so many groups more are done; the same execution tries again, and ends."""
        return _ended(self._start(groups, "worker", "--retry", "1"))

    def whole(self) -> tuple[dict[str, Any], int]:
        """The report of one that ends, and how many groups it rewrote."""
        report, _ = _ended(self._start(_ALL, ""))
        return report, len(self.seen())

    def notes(self) -> list[Path]:
        return sorted((self._path / checkpoint_folder(self._ts)).glob("*.json"))

    def seen(self) -> list[str]:
        return (self._folder / "seen").read_text().splitlines()

    def _start(self, at_most: int, end: str, *flags: str) -> subprocess.Popen[bytes]:
        """In a session of its own, so that Spark's processes can be killed with it; one group after the other."""
        (self._folder / "seen").write_text("")
        options = {"hoodie.layout.optimize.strategy": "counted:Counted", **self._options}
        line = ["execute", "-sp", str(self._path), *ONE_TASK[self._engine], "--format", "json", *flags]
        line += [word for key, value in options.items() for word in ("--hoodie-conf", f"{key}={value}")]
        told = {"SEEN": str(self._folder / "seen"), "AT_MOST": str(at_most), "END": end}
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM_WITH_PROCESSES, *line],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(self._folder), "TZ": "UTC", **told},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )


def _ended(process: subprocess.Popen[bytes]) -> tuple[dict[str, Any], str]:
    """Its report, and what stood on stderr."""
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors.decode()[-4000:]
    return json.loads(output), errors.decode()
