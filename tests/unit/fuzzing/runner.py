"""A process that tries cases, and who watches it: a case may hang, take all memory, or end the process.

python -m tests.unit.fuzzing.runner TABLE SEED NUMBER [FOLDER] tries one case and leaves its tables in FOLDER.
"""

import functools
import json
import os
import resource
import select
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import typer.main

from hudi_services.clock import SystemClock

from .cases import Bench
from .commands import use_local_engine
from .tables import AFTER_ALL

ROOT = Path(__file__).resolve().parents[3]
_SECONDS = 60
"""For one case on a busy machine; a second is more than they take."""
_MORE_MEMORY = 200 << 20
"""Bytes by which one case may raise the most that the process ever had."""
_ADDRESSES = 4 << 30


class Runner:
    """A process of its own, started anew when a case has ended it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None

    def run(self, name: str, seed: int, number: int) -> list[str]:
        """What went wrong in this case, in words that say how to try it again."""
        process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps([name, seed, number]) + "\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], _SECONDS)
        line = process.stdout.readline() if ready else ""
        if not line:
            self.close()
            what = f"it ended the process ({process.returncode})" if ready else f"no end after {_SECONDS} s"
            return [f"{_again(name, seed, number)}: {what}"]
        answer: dict[str, Any] = json.loads(line)
        drawn = f"{answer['command']} over {answer['file']} ({answer['how']})"
        return [f"{_again(name, seed, number)}: {drawn}: {one}" for one in answer["violations"]]

    def _start(self) -> subprocess.Popen[str]:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(self._folder)],
            cwd=ROOT,
            env={**os.environ, "TZ": "UTC", "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self._process

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


def _again(name: str, seed: int, number: int) -> str:
    return f"python -m {__name__} {name} {seed} {number}"


def _prepare() -> None:
    """Tasks run here, the commands of the program are built once, memory is bounded, and the clock is behind all
    instants of the tables, as it is everywhere."""
    use_local_engine()
    typer.main.get_command = functools.cache(typer.main.get_command)
    began = time.monotonic()
    start = max(datetime.now(timezone.utc), AFTER_ALL + timedelta(days=2))
    SystemClock.now = lambda self: start + timedelta(seconds=time.monotonic() - began)  # type: ignore[method-assign]
    with open("/proc/self/statm") if os.path.exists("/proc/self/statm") else open(os.devnull) as file:
        pages = int((file.read().split() or ["0"])[0])
    if pages:
        limit = pages * resource.getpagesize() + _ADDRESSES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _try(bench: Bench, seed: int, number: int) -> dict[str, Any]:
    most = _most_memory()
    drawn, outcome, found = bench.run(seed, number)
    more = _most_memory() - most
    if more > _MORE_MEMORY:
        found.append(f"it took {more >> 20} MB")
    return {
        "command": drawn.command.name,
        "file": drawn.file,
        "how": drawn.how,
        "code": outcome.code,
        "said": outcome.err,
        "violations": found,
    }


def _most_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _serve(folder: Path) -> None:
    """Answer lines of stdin; what is printed otherwise goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    _prepare()
    bench: Bench | None = None
    for line in sys.stdin:
        name, seed, number = json.loads(line)
        if bench is None or bench.name != name:
            bench = Bench(name, Path(tempfile.mkdtemp(dir=folder)))
        print(json.dumps(_try(bench, seed, number)), file=answers, flush=True)


def _main(arguments: list[str]) -> None:
    if len(arguments) == 1:
        _serve(Path(arguments[0]))
        return
    name, seed, number, *folder = arguments
    _prepare()
    bench = Bench(name, Path(tempfile.mkdtemp(dir=folder[0] if folder else None)))
    print(json.dumps(_try(bench, int(seed), int(number)), indent=2))
    print(f"the tables are in {bench.folder}: intact, damaged (before the command) and work (after it)")


if __name__ == "__main__":
    _main(sys.argv[1:])
