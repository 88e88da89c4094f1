"""Killed at any storage write, the table reads the same rows, and the next execute mends it and finishes."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_services.engine import LocalEngine
from hudi_services.jobs import clustering
from hudi_services.jobs.report import State
from hudi_services.jobs.request import Mode
from hudi_services.snapshot import Snapshot
from hudi_services.timeline.instant import Action

from .faulty_storage import FaultyStorage, Killed
from .tables import listed_view, open_local, request, rows, unpack

SORT = {"hoodie.clustering.plan.strategy.sort.columns": "label,ts desc"}


def both_views(path: Path) -> Iterator[pa.Table]:
    table = open_local(path)
    assert table.metadata is not None
    yield rows(table, table.view)
    yield rows(table, listed_view(table))


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


def writes_of_an_execution(release: str, folder: Path, options: Mapping[str, str] = SORT) -> list[str]:
    path, _ = scheduled(release, folder, options)
    storage = FaultyStorage(str(path))
    report = clustering.execute(request(path, Mode.EXECUTE, dict(options)), storage, LocalEngine())
    assert bool(report.decoded) == (options == SORT)
    return storage.log


@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_every_write_may_be_the_last(release: str, tmp_path: Path) -> None:
    total = len(writes_of_an_execution(release, tmp_path / "whole"))
    assert total > 20
    for survived in range(total):
        kill_and_mend(release, tmp_path / str(survived), survived)


def test_every_write_of_a_copy_may_be_the_last(tmp_path: Path) -> None:
    """Unsorted groups are copied page by page: another writer of files, the same attempt."""
    options = {"hoodie.parquet.block.size": "8192"}
    total = len(writes_of_an_execution("0.15.0", tmp_path / "whole", options))
    for survived in range(0, total, 2):
        kill_and_mend("0.15.0", tmp_path / str(survived), survived, options)


def kill_and_mend(release: str, folder: Path, survived: int, options: Mapping[str, str] = SORT) -> None:
    path, ts = scheduled(release, folder, options)
    before = next(both_views(path))
    storage = FaultyStorage(str(path), survived)
    with pytest.raises(Killed):
        clustering.execute(request(path, Mode.EXECUTE, dict(options)), storage, LocalEngine())
    for seen in both_views(path):
        assert seen.equals(before), f"after {survived} writes ({storage.log[-1:]})"
    mend(path, ts, before, survived)


def mend(path: Path, ts: str, before: pa.Table, survived: int) -> None:
    completed = open_local(path).timeline.find(ts, Action.REPLACE_COMMIT)
    assert completed is not None
    if not completed.is_completed:
        report = clustering.execute(request(path, Mode.EXECUTE), engine=LocalEngine())
        assert report.state is State.COMPLETED and report.instant == ts
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


@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
@pytest.mark.parametrize(("begun", "most"), [(6, 18), (14, 14)], ids=["rolled back", "taken up"])
def test_killed_while_it_mends(release: str, begun: int, most: int, tmp_path: Path) -> None:
    """The rollback of a killed attempt, and the attempt after it, may be killed, too; and one that is taken up."""
    path, ts = scheduled(release, tmp_path)
    before = next(both_views(path))
    with pytest.raises(Killed):
        # Before the first group is done, and in the middle of the metadata table's delta commit.
        clustering.execute(request(path, Mode.EXECUTE), FaultyStorage(str(path), begun), LocalEngine())
    for survived in range(2, most + 1, 2):
        with pytest.raises(Killed):
            clustering.execute(request(path, Mode.EXECUTE), FaultyStorage(str(path), survived), LocalEngine())
        for seen in both_views(path):
            assert seen.equals(before), f"after {survived} writes"
    mend(path, ts, before, 20)
