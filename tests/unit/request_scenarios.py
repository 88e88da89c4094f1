"""What commands ask the storage for: the runs that `make count-requests` and the tests count, each on one table.

The table is merge-on-read, of table version 9, with two partitions, eight base files, seven log files and eleven
commits; one that is copy-on-write has two base files and eight commits. Everything runs in this process, as a new
process would do it: nothing is cached when the run begins.
"""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import pyarrow as pa

import hudi_services
from hudi_services.commit import lease
from hudi_services.engine import LocalEngine
from hudi_services.file_cache import shared_cache
from hudi_services.jobs import archive, clean, clustering, compaction, validate, writing
from hudi_services.options import Options, resolve
from hudi_services.request_counts import RequestsOfRun
from hudi_services.runs.report import Report, RunState
from hudi_services.runs.request import (
    ArchiveRequest,
    CleanRequest,
    ClusteringRequest,
    CompactionRequest,
    Mode,
    ValidateRequest,
    WriteOperation,
    WriteRequest,
)
from hudi_services.storage import Storage

from .counting_storage import CountingStorage, Request
from .quiet import Quiet
from .rides import create

_NO_SERVICES = {"hoodie.table.services.enabled": "false"}
_COMPACTS = {"hoodie.metadata.compact.max.delta.commits": "1"}
_TWO_GROUPS = {"hoodie.clustering.plan.strategy.max.num.groups": "2"}
_EACH_COMMIT = {"hoodie.compact.inline.max.delta.commits": "1"}
_DUE = {"hoodie.cleaner.commits.retained": "1", "hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4"}


@dataclass(frozen=True, slots=True)
class Scenario:
    """A run whose requests are counted.

    `prepared` is done before on the same table, uncounted; it gives the instant of a plan, if there is one.
    """

    run: Callable[[Path, Storage, str], Report]
    prepared: Callable[[Path], str] = lambda path: ""
    merge_on_read: bool = True


@dataclass(frozen=True, slots=True)
class Counted:
    """What one run has asked for, and what its report would tell of that. `seconds`: of the whole run."""

    requests: list[Request]
    seconds: float
    told: dict[str, int]

    @property
    def under_lock(self) -> list[Request]:
        return [one for one in self.requests if one.locked]


def rows(keys: range, stamp: int) -> pa.Table:
    """One row for each key, of one of two days in turn."""
    days = [f"2026-01-0{1 + key % 2}" for key in keys]
    return pa.table(
        {
            "id": [f"k{key:06}" for key in keys],
            "day": days,
            "ts": [stamp] * len(keys),
            "fare": [float(key + stamp) for key in keys],
        }
    )


def build(path: Path, *, merge_on_read: bool) -> None:
    """Make the table of the runs."""
    table = create(path, table_type="MERGE_ON_READ" if merge_on_read else "COPY_ON_WRITE")
    # Small files of copy-on-write are filled by their names, which are random: there is one in each partition.
    files = 4 if merge_on_read else 1
    for number in range(files):
        table.bulk_insert(rows(range(100 * number, 100 * number + 100), 1), options=_NO_SERVICES)
    # Each of these keys is in another base file. The last write compacts the metadata table.
    for number in range(7):
        key = 100 * (number // 2 % files) + number % 2
        table.upsert(rows(range(key, key + 1), 2 + number), options=_NO_SERVICES | (_COMPACTS if number == 6 else {}))


@cache
def _built(folder: Path, merge_on_read: bool) -> Path:
    path = folder / ("merge_on_read" if merge_on_read else "copy_on_write")
    build(path, merge_on_read=merge_on_read)
    return path


def count(scenario: Scenario, folder: Path, delay: float | Quiet) -> Counted:
    """Run it in `folder`, on a table of its own; each request takes `delay` seconds longer, or ends as that says."""
    path = folder / "table"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(_built(folder, scenario.merge_on_read), path)
    instant = scenario.prepared(path)
    storage = CountingStorage(str(path), delay)
    shared_cache().forget()
    lease._given_back.clear()
    start, began = time.monotonic(), RequestsOfRun()
    report = scenario.run(path, storage, instant)
    assert report.state in (RunState.COMPLETED, RunState.REQUESTED), report.state
    return Counted(storage.requests, time.monotonic() - start, began.so_far()["driver"])


def _options(values: dict[str, str]) -> Options:
    return resolve([("test", values)])


def _write(
    path: Path, storage: Storage, _: str, *, operation: WriteOperation, written: pa.Table, services: bool = True
) -> Report:
    wanted = WriteRequest(base_path=str(path), options=_options({} if services else _NO_SERVICES), operation=operation)
    return writing.write(wanted, written.to_reader, storage)


def _clustering(path: Path, mode: Mode, instant: str = "") -> ClusteringRequest:
    return ClusteringRequest(base_path=str(path), options=_options(_TWO_GROUPS), mode=mode, instant=instant or None)


def _compaction(path: Path, mode: Mode, instant: str = "") -> CompactionRequest:
    return CompactionRequest(base_path=str(path), options=_options(_EACH_COMMIT), mode=mode, instant=instant or None)


def _plan_clustering(path: Path) -> str:
    return clustering.schedule(_clustering(path, Mode.SCHEDULE)).instant or ""


def _plan_compaction(path: Path) -> str:
    return compaction.schedule(_compaction(path, Mode.SCHEDULE)).instant or ""


def _compact_twice(path: Path) -> str:
    """Leave old slices behind."""
    for stamp in (20, 21):
        hudi_services.open(path).upsert(rows(range(1), stamp), options=_NO_SERVICES)
        compaction.schedule_and_execute(_compaction(path, Mode.SCHEDULE_AND_EXECUTE), engine=LocalEngine())
    return ""


def _clean(path: Path, storage: Storage | None = None, _: str = "") -> Report:
    return clean.clean(CleanRequest(base_path=str(path), options=_options(_DUE)), storage)


def _archive(path: Path, storage: Storage, _: str) -> Report:
    return archive.archive(ArchiveRequest(base_path=str(path), options=_options(_DUE)), storage)


def _validate(path: Path, storage: Storage, _: str) -> Report:
    return validate.validate(ValidateRequest(base_path=str(path), options=_options({})), storage)


SCENARIOS = {
    "upsert of one key, with the services after it": Scenario(
        partial(_write, operation=WriteOperation.UPSERT, written=rows(range(201, 202), 20))
    ),
    "insert of one row": Scenario(
        partial(_write, operation=WriteOperation.INSERT, written=rows(range(900, 901), 20), services=False)
    ),
    "insert of one row, copy-on-write": Scenario(
        partial(_write, operation=WriteOperation.INSERT, written=rows(range(900, 901), 20), services=False),
        merge_on_read=False,
    ),
    "schedule of a clustering": Scenario(
        lambda path, storage, _: clustering.schedule(_clustering(path, Mode.SCHEDULE), storage)
    ),
    "execute of two groups with log files": Scenario(
        lambda path, storage, ts: clustering.execute(_clustering(path, Mode.EXECUTE, ts), storage, LocalEngine()),
        _plan_clustering,
    ),
    "compact of seven slices, planned before": Scenario(
        lambda path, storage, ts: compaction.execute(_compaction(path, Mode.EXECUTE, ts), storage, LocalEngine()),
        _plan_compaction,
    ),
    "clean": Scenario(_clean, _compact_twice),
    "archive": Scenario(_archive),
    "validate": Scenario(_validate),
}
"""By their names in docs/requests.md."""
