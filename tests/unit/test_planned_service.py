"""A service with plans is one class: one of the tests' own plans, publishes and executes by the frame alone."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import hudi_services
from hudi_services.codecs.compaction_plan import CompactionOperation, CompactionPlan, encode_compaction_plan
from hudi_services.engine import LocalEngine
from hudi_services.errors import NothingToDo
from hudi_services.jobs import planned_service
from hudi_services.jobs.compaction_execution import CompactionExecution
from hudi_services.model import FileSlice
from hudi_services.options import resolve
from hudi_services.runs.report import RunState
from hudi_services.runs.request import CompactionRequest, Mode
from hudi_services.snapshot import Snapshot
from hudi_services.table.view import FileGroupId
from hudi_services.timeline.instant import Action, Instant

from .request_scenarios import rows
from .rides import create
from .tables import open_local

NO_SERVICES = {"hoodie.table.services.enabled": "false"}


class OnePartition(planned_service.PlannedService[CompactionRequest, CompactionPlan]):
    """Merges the log files of the last partition only."""

    name = "compaction"
    planned: Callable[[], object] = staticmethod(lambda: None)
    """Called when it has planned: what another writer does meanwhile."""

    @property
    def action(self) -> Action:
        return Action.COMPACTION

    def build(self, table: Snapshot) -> CompactionPlan:
        slices = [one for one in table.view.latest_slices(table.view.partitions()[-1]) if one.log_files]
        if not slices:
            raise NothingToDo("no log file")
        type(self).planned()
        return CompactionPlan(tuple(map(CompactionOperation.of, slices)))

    def groups(self, plan: CompactionPlan) -> list[FileGroupId]:
        return [(one.partition, one.file_id) for one in plan.operations]

    def encode(self, table: Snapshot, plan: CompactionPlan) -> bytes:
        return encode_compaction_plan(plan, table.config.version.release)

    def pending(self) -> Sequence[Instant]:
        return self.run.table.timeline.pending({Action.COMPACTION})

    def is_own(self, instant: Instant) -> bool:
        return instant.action is Action.COMMIT

    def execution(self) -> type[CompactionExecution]:
        return CompactionExecution


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A table of two partitions, each with a base file and a log file."""
    table = create(tmp_path / "rides", table_type="MERGE_ON_READ")
    table.bulk_insert(rows(range(40), 1), options=NO_SERVICES)
    table.upsert(rows(range(2), 2), options=NO_SERVICES)
    return tmp_path / "rides"


def request(path: Path, mode: Mode, **more: Any) -> CompactionRequest:
    return CompactionRequest(base_path=str(path), options=resolve([]), mode=mode, **more)


def with_logs(path: Path) -> list[FileSlice]:
    view = open_local(path).view
    return [one for partition in view.partitions() for one in view.latest_slices(partition) if one.log_files]


def test_a_service_of_ones_own(path: Path) -> None:
    before = with_logs(path)
    assert len(before) == 2
    looked = planned_service.schedule(OnePartition, request(path, Mode.SCHEDULE, dry_run=True), None)
    assert looked.dry_run and not open_local(path).timeline.pending()
    done = planned_service.schedule_and_execute(
        OnePartition, request(path, Mode.SCHEDULE_AND_EXECUTE), None, LocalEngine()
    )
    assert (done.state, done.groups) == (RunState.COMPLETED, 1)
    assert with_logs(path) == before[:1]
    with pytest.raises(NothingToDo, match="no log file"):
        planned_service.schedule(OnePartition, request(path, Mode.SCHEDULE), None)
    with pytest.raises(NothingToDo, match=f"the compaction {done.instant} is completed already"):
        planned_service.execute(OnePartition, request(path, Mode.EXECUTE, instant=done.instant), None, LocalEngine())


@pytest.mark.parametrize("is_changed", [False, True])
def test_a_plan_is_made_again_when_the_table_has_changed(
    is_changed: bool, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[bool] = []

    def write() -> None:
        calls.append(is_changed)
        if is_changed and len(calls) == 1:
            hudi_services.open(path).upsert(rows(range(1, 2), 3), options=NO_SERVICES)

    monkeypatch.setattr(OnePartition, "planned", staticmethod(write))
    report = planned_service.schedule(OnePartition, request(path, Mode.SCHEDULE), None)
    assert len(calls) == 1 + is_changed
    (pending,) = open_local(path).timeline.pending({Action.COMPACTION})
    (operation,) = open_local(path).timeline.read_compaction_plan(pending).operations
    assert pending.ts == report.instant and len(operation.log_files) == 1 + is_changed
