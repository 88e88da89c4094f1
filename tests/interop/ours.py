"""Our command line as a process of its own, as an operator runs it."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hudi_services.engine import LocalEngine
from hudi_services.jobs import clustering
from hudi_services.jobs.report import State
from hudi_services.jobs.request import Mode

from ..unit.tables import request

_REPOSITORY = Path(__file__).parents[2]


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


def run(command: str, path: Path, *flags: str, options: Mapping[str, str] | None = None) -> Run:
    """`python -m hudi_services COMMAND --base-path PATH --format json ...`; its clock is in UTC, like Hudi's here."""
    arguments = [command, "--base-path", str(path), "--format", "json", *flags]
    for key, value in (options or {}).items():
        arguments += ["--hoodie-conf", f"{key}={value}"]
    done = subprocess.run(
        [sys.executable, "-m", "hudi_services", *arguments],
        cwd=_REPOSITORY,
        env={**os.environ, "TZ": "UTC"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return Run(done.returncode, json.loads(done.stdout) if done.stdout.strip() else {}, done.stderr)


def schedule(path: Path, *, sort: tuple[str, ...] = (), options: Mapping[str, str] | None = None) -> str:
    """Schedule a clustering; its instant."""
    sorting = {"hoodie.clustering.plan.strategy.sort.columns": ",".join(sort)} if sort else {}
    instant = run("schedule", path, options={**sorting, **(options or {})}).ok().report["instant"]
    assert isinstance(instant, str)
    return instant


def execute(path: Path, *flags: str, options: Mapping[str, str] | None = None) -> Run:
    """Execute the earliest pending plan, or the one of `--instant-time`."""
    return run("execute", path, *flags, options=options).ok()


def cluster(path: Path, *, sort: tuple[str, ...] = ()) -> str:
    """Plan and execute a clustering in this process, without Spark, which takes long to be up; its instant."""
    sorting = {"hoodie.clustering.plan.strategy.sort.columns": ",".join(sort)} if sort else {}
    report = clustering.schedule_and_execute(request(path, Mode.SCHEDULE_AND_EXECUTE, sorting), engine=LocalEngine())
    assert report.state is State.COMPLETED and report.instant
    return report.instant
