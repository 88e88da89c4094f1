"""What `fleet` costs beside the work that it does: the same services on copies of the same tables, called one by one.

python scripts/measure_fleet.py [tables] [at once]

The work alone is each service that `fleet` has run, on a copy of its table, by as many threads as it has places, in one
process with the same engines: without looks, ranking, budget or results. Prints seconds of the wall clock and of the
CPU, of this process and of its children, and the ratio; and what a budget of half the bytes and a run that is killed
leave.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hudi_services.fleet.due import DueService
from hudi_services.fleet.table_turns import request_of
from hudi_services.jobs import fleet
from hudi_services.jobs.services import job_of
from hudi_services.options import resolve
from hudi_services.process import usable_cores
from hudi_services.processes.process_engine import ProcessEngine
from hudi_services.runs.report import Report
from hudi_services.runs.report_rows import FleetServiceRow
from hudi_services.runs.request import FleetRequest
from tests.unit.fleets import DUE, KINDS, make, rows_of

OPTIONS = {**DUE, "hudi.services.engine": "local"}


def copies(seeds: Path, folder: Path, tables: int) -> list[Path]:
    kinds = [*KINDS]
    paths = [folder / f"{kinds[number % len(kinds)]}{number:04d}" for number in range(tables)]
    for path in paths:
        shutil.copytree(seeds / path.name.rstrip("0123456789"), path)
    return paths


def listed(folder: Path) -> str:
    file = folder.parent / f"{folder.name}.txt"
    file.write_text(f"{folder}/*\n")
    return str(file)


def run_fleet(folder: Path, at_once: int, **options: str) -> Report:
    of_run = resolve([("measure", {**OPTIONS, "hudi.services.fleet.tables.at.once": str(at_once), **options})])
    return fleet.fleet(FleetRequest(base_path=listed(folder), options=of_run, apply=True))


def work_alone(folder: Path, services: Sequence[tuple[str, str]], at_once: int) -> None:
    """The services of each table, in the order in which `fleet` has run them, table by table."""
    options = resolve([("measure", OPTIONS)])
    by_table: dict[str, list[str]] = {}
    for place, command in services:
        by_table.setdefault(Path(place).name, []).append(command)

    def work(name: str) -> None:
        for command in by_table[name]:
            is_rewriting = command in ("compact", "execute")
            request = request_of(DueService(command, ""), str(folder / name), options)
            engine = (
                {"engine": ProcessEngine(max(1, usable_cores() // at_once), engines=at_once)} if is_rewriting else {}
            )
            try:
                job_of(request)(request, **engine)
            except Exception as error:
                if type(error).__name__ != "NothingToDo":
                    raise

    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(work, by_table))


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds of the wall clock, and of the CPU."""
    wall, before = time.perf_counter(), os.times()
    work()
    after = os.times()
    return time.perf_counter() - wall, sum(after[:4]) - sum(before[:4])


def main(tables: int, at_once: int) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        root = Path(name)
        seeds = root / "seeds"
        seeds.mkdir()
        rows = {kind: rows_of(make(seeds, kind)) for kind in KINDS}
        copies(seeds, root / "look", tables)
        services = [(row.base_path, row.service) for row in _look(root / "look").shown(FleetServiceRow)]
        shutil.rmtree(root / "look")
        print(f"{tables} tables, {len(services)} services, {at_once} at once")
        # Each is the first one once: what a process has loaded and kept helps the second one.
        for number, order in enumerate((("fleet", "alone"), ("alone", "fleet"))):
            found: dict[str, tuple[float, float]] = {}
            for what in order:
                folder = root / f"{what}{number}"
                paths = copies(seeds, folder, tables)
                if what == "alone":
                    found[what] = timed(partial(work_alone, folder, services, at_once))
                else:
                    found[what] = timed(partial(run_fleet, folder, at_once))
                sample = paths[:: max(1, tables // 20)]
                assert all(rows_of(path).equals(rows[path.name.rstrip("0123456789")]) for path in sample)
                print(f"{what:5} {found[what][0]:7.1f} s, {found[what][1]:7.1f} CPU s")
                shutil.rmtree(folder)
            wall, cpu = (one / other for one, other in zip(found["fleet"], found["alone"], strict=True))
            print(f"ratio {wall:7.2f}    {cpu:7.2f}")
        budgets(seeds, root, min(tables, 30), at_once)
        killed(seeds, root, min(tables, 30), at_once)


def budgets(seeds: Path, root: Path, tables: int, at_once: int) -> None:
    for share in (0.1, 0.5, 0.9):
        folder = root / f"budget{share}"
        copies(seeds, folder, tables)
        cost = sum(row.cost_bytes or 0 for row in _look(folder).shown(FleetServiceRow))
        report = run_fleet(folder, at_once, **{"hudi.services.fleet.max.bytes": str(int(cost * share))})
        read = report.bytes.before or 0
        print(f"budget {share:.0%} of {cost:,} bytes: {read:,} read, {read / (cost * share):.2f} of the budget")
        shutil.rmtree(folder)


def _look(folder: Path) -> Report:
    return fleet.fleet(FleetRequest(base_path=listed(folder), options=resolve([("measure", OPTIONS)])))


def killed(seeds: Path, root: Path, tables: int, at_once: int) -> None:
    """Kill the command several times, go on with --resume, and count what was done twice."""
    folder, results = root / "killed", root / "results.jsonl"
    paths = copies(seeds, folder, tables)
    conf = [word for key, value in OPTIONS.items() for word in ("--hoodie-conf", f"{key}={value}")]
    command = [sys.executable, "-m", "hudi_services", "fleet", listed(folder), "--apply", "--results", str(results)]
    for number in range(20):
        process = subprocess.Popen(
            [*command, "--resume", "--at-once", str(at_once), *conf],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            code = process.wait(4 + number)
            break
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    states = {line["state"] for line in lines}
    same = all(rows_of(path).equals(rows_of(seeds / path.name.rstrip("0123456789"))) for path in paths)
    print(f"killed {number} times, then exit code {code}: {len(lines)} lines, {states}, the rows are the same: {same}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200, int(sys.argv[2]) if len(sys.argv) > 2 else 4)
