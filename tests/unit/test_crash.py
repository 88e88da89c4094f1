"""After a kill at any storage write, readers see the same rows, and the next execute repairs the table and finishes."""

import shutil
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_services.engine import LocalEngine
from hudi_services.jobs import clustering
from hudi_services.runs.report import RunState
from hudi_services.runs.request import Mode
from hudi_services.snapshot import Snapshot
from hudi_services.timeline.instant import Action

from .faulty_storage import FaultyStorage, Killed
from .shares import TWO_SHARES, share
from .tables import both_views, open_local, request, unpack

SORT = {"hoodie.clustering.plan.strategy.sort.columns": "label,ts desc"}


def orphans(table: Snapshot) -> set[str]:
    """Base files whose instant the timeline does not know as a completed write."""
    known = {instant.ts for instant in table.timeline.completed_writes()}
    files = [file for file in table.storage.list_tree("") if file.name.endswith(".parquet") and file.path[0] != "."]
    return {file.path for file in files if file.name.rsplit("_", 1)[1].split(".")[0] not in known}


def scheduled(release: str, folder: Path, options: Mapping[str, str] = SORT) -> tuple[Path, str]:
    path = unpack(release, folder)
    report = clustering.schedule(request(path, Mode.SCHEDULE, dict(options)))
    assert report.instant
    return path, report.instant


class Execution:
    """Of one plan, again and again: the plan names files by their whole paths, and the table is always in one place."""

    def __init__(self, release: str, folder: Path, options: Mapping[str, str] = SORT) -> None:
        self.path, self.ts = scheduled(release, folder, options)
        self._options = dict(options)
        self._made = Path(shutil.copytree(self.path, folder / "made"))
        self.before = both_views(self.path)[0]

    def run(self, writes: int | None = None) -> FaultyStorage:
        """Execute the plan, of which nothing was done yet; killed after so many writes."""
        shutil.rmtree(self.path)
        shutil.copytree(self._made, self.path)
        storage = FaultyStorage(str(self.path), writes)
        with nullcontext() if writes is None else pytest.raises(Killed):
            report = clustering.execute(request(self.path, Mode.EXECUTE, self._options), storage, LocalEngine())
            assert bool(report.decoded) == (self._options == SORT)
        return storage

    def kill_and_mend(self, survived: int) -> None:
        storage = self.run(survived)
        for seen in both_views(self.path):
            assert seen.equals(self.before), f"after {survived} writes ({storage.log[-1:]})"
        mend(self.path, self.ts, self.before, survived)


@pytest.mark.sweep
@pytest.mark.parametrize(("release", "number"), TWO_SHARES)
def test_every_write_may_be_the_last(release: str, number: int, tmp_path: Path) -> None:
    execution = Execution(release, tmp_path)
    total = len(execution.run().log)
    assert total > 20
    for survived in share(range(total), number, 2):
        execution.kill_and_mend(survived)


def test_every_write_of_a_copy_may_be_the_last(tmp_path: Path) -> None:
    """Unsorted groups are copied page by page: another writer of files, the same attempt."""
    execution = Execution("0.15.0", tmp_path, {"hoodie.parquet.block.size": "8192"})
    for survived in share(range(len(execution.run().log)), 0, 2):
        execution.kill_and_mend(survived)


def mend(path: Path, ts: str, before: pa.Table, survived: int) -> None:
    completed = open_local(path).timeline.find(ts, Action.REPLACE_COMMIT)
    assert completed is not None
    if not completed.is_completed:
        report = clustering.execute(request(path, Mode.EXECUTE), engine=LocalEngine())
        assert report.state is RunState.COMPLETED and report.instant == ts
    table = open_local(path)
    for seen in both_views(path):
        assert seen.equals(before), f"mended after {survived} writes"
    assert orphans(table) == set()
    assert not table.timeline.pending()
    assert table.metadata is not None and not table.metadata.timeline.pending()
    done = table.timeline.find(ts, Action.REPLACE_COMMIT)
    assert done is not None and done.is_completed
    instants = {
        file for one in table.view.partitions() for file in (s.base_instant for s in table.view.latest_slices(one))
    }
    assert instants == {ts}


@pytest.mark.thorough
@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
@pytest.mark.parametrize(("begun", "most"), [(6, 18), (14, 14)], ids=["rolled back", "taken up"])
def test_killed_while_it_mends(release: str, begun: int, most: int, tmp_path: Path) -> None:
    """The rollback of a killed attempt, and the attempt after it, may be killed, too; and one that is taken up."""
    path, ts = scheduled(release, tmp_path)
    before = both_views(path)[0]
    with pytest.raises(Killed):
        # Before the first group is done, and in the middle of the metadata table's delta commit.
        clustering.execute(request(path, Mode.EXECUTE), FaultyStorage(str(path), begun), LocalEngine())
    for survived in range(2, most + 1, 2):
        with pytest.raises(Killed):
            clustering.execute(request(path, Mode.EXECUTE), FaultyStorage(str(path), survived), LocalEngine())
        for seen in both_views(path):
            assert seen.equals(before), f"after {survived} writes"
    mend(path, ts, before, 20)
