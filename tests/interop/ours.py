"""Our command line, in this process or as a process of its own, and our jobs without Spark."""

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hudi_services.cli import app
from hudi_services.engine import LocalEngine
from hudi_services.jobs import clean, clustering, compaction, index_bootstrap, rollback, undo
from hudi_services.storage import Storage

_REPOSITORY = Path(__file__).parents[2]
PROGRAM_WITH_PROCESSES = """
from hudi_services.processes import process_engine
process_engine.LITTLE = -1
from hudi_services.cli.app import main
main()
"""
"""The command line, whose `--engine local` does nothing in its own process."""
# One clock serves us and the writers of the tests: nobody has to wait for another one.
_ONE_CLOCK = {"hoodie.time.generator.max_expected_clock_skew_ms": "1"}


@dataclass(frozen=True)
class Run:
    """How one run of `hudi-services` ended."""

    code: int
    report: dict[str, Any]
    stderr: str

    def ok(self) -> "Run":
        """Itself, when it did something and that is done."""
        done = self.code == 0 and self.report.get("state") in ("requested", "completed")
        assert done, f"exit {self.code}: {self.report} {self.stderr}"
        return self


def run(
    command: str,
    path: Path | str,
    *flags: str,
    options: Mapping[str, str] | None = None,
    storage: Storage | None = None,
) -> Run:
    """`hudi-services COMMAND --base-path PATH --format json ...` in this process, with its clock in UTC, like Hudi's.

    The whole command line app runs, flags to exit code; only Spark does not start: tasks run here, too. `storage`
    stands in for the one of the table in what writes instants.
    """
    output, errors = io.StringIO(), io.StringIO()
    # A write runs the services that follow it in this process anyway.
    jobs = nullcontext() if command == "write" else _with(LocalEngine(), storage)
    with _in_utc(), jobs, redirect_stdout(output), redirect_stderr(errors):
        code = app.run(_arguments(command, path, flags, _ONE_CLOCK | dict(options or {})))
    return _ended(code, output.getvalue(), errors.getvalue())


def run_process(command: str, path: Path, *flags: str, options: Mapping[str, str] | None = None) -> Run:
    """As `run`, in a process of its own, as an operator does it: `execute` and `index-bootstrap` start Spark."""
    return _as_process(["-m", "hudi_services"], _arguments(command, path, flags, options or {}))


def run_local(command: str, path: Path, *flags: str, options: Mapping[str, str] | None = None) -> Run:
    """As `run_process`, with `--engine local`, whose processes do the tasks of small tables, too."""
    arguments = _arguments(command, path, ("--engine", "local", *flags), options or {})
    return _as_process(["-c", PROGRAM_WITH_PROCESSES], arguments)


def _as_process(program: list[str], arguments: list[str]) -> Run:
    done = subprocess.run(
        [sys.executable, *program, *arguments],
        cwd=_REPOSITORY,
        env={**os.environ, "TZ": "UTC"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return _ended(done.returncode, done.stdout, done.stderr)


def schedule(path: Path, *, sort: tuple[str, ...] = (), options: Mapping[str, str] | None = None) -> str:
    """Schedule a clustering; its instant."""
    instant = run("schedule", path, options={**_sorting(sort), **(options or {})}).ok().report["instant"]
    assert isinstance(instant, str)
    return instant


def execute(path: Path, *flags: str, options: Mapping[str, str] | None = None, storage: Storage | None = None) -> Run:
    """Execute the earliest pending plan, or the one of `--instant-time`, without Spark."""
    return run("execute", path, *flags, options=options, storage=storage).ok()


def execute_on_spark(path: Path, *flags: str, options: Mapping[str, str] | None = None) -> Run:
    """As `execute`, in a process of its own."""
    return run_process("execute", path, *flags, options=options).ok()


def cluster(path: Path, *, sort: tuple[str, ...] = (), options: Mapping[str, str] | None = None) -> str:
    """Plan and execute a clustering at once, without Spark; its instant."""
    instant = clustered(path, sort=sort, options=options)["instant"]
    assert isinstance(instant, str)
    return instant


def clustered(path: Path, *, sort: tuple[str, ...] = (), options: Mapping[str, str] | None = None) -> dict[str, Any]:
    """As `cluster`; the report."""
    both = {**_sorting(sort), **(options or {})}
    return execute(path, "--mode", "scheduleAndExecute", options=both).report


def _sorting(columns: tuple[str, ...]) -> dict[str, str]:
    return {"hoodie.clustering.plan.strategy.sort.columns": ",".join(columns)} if columns else {}


def _arguments(command: str, path: Path | str, flags: tuple[str, ...], options: Mapping[str, str]) -> list[str]:
    pairs = [word for key, value in options.items() for word in ("--hoodie-conf", f"{key}={value}")]
    return [command, "--base-path", str(path), "--format", "json", *flags, *pairs]


def _ended(code: int, output: str, errors: str) -> Run:
    return Run(code, json.loads(output) if output.strip() else {}, errors)


@contextmanager
def _in_utc() -> Iterator[None]:
    try:
        with patch.dict(os.environ, {"TZ": "UTC"}):
            time.tzset()
            yield
    finally:
        time.tzset()


@contextmanager
def _with(engine: LocalEngine, storage: Storage | None) -> Iterator[None]:
    """The commands give the jobs an engine, which stands in for Spark, and a storage: arguments that jobs have."""
    of_both = (
        *((service, name) for service in (clustering, compaction) for name in ("execute", "schedule_and_execute")),
        (index_bootstrap, "index_bootstrap"),
    )
    of_storage = ((clean, "clean"), (rollback, "rollback"), (undo, "undo"))
    with ExitStack() as stack:
        for module, name in (*of_both, *of_storage):
            given = {"engine": engine} if (module, name) in of_both else {}
            job = partial(getattr(module, name), storage=storage, **given)
            stack.enter_context(patch.object(module, name, job))
        yield
