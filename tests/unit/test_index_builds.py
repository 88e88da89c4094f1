"""While an indexer of Hudi's builds an index: no command advises to delete the metadata table, or works in vain."""

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_services.engine import LocalEngine
from hudi_services.errors import ConflictError
from hudi_services.indexing.build import _tasks
from hudi_services.jobs import clean, clustering, undo
from hudi_services.jobs.index_bootstrap import index_bootstrap
from hudi_services.metadata.records.keys import COLUMN_STATS
from hudi_services.options import resolve
from hudi_services.runs.report import Report, RunState
from hudi_services.runs.request import CleanRequest, IndexRequest, Mode

from .faulty_storage import FaultyStorage
from .repairs import both, cluster, repair
from .tables import open_local, request, unpack

INFLIGHT = "hoodie.table.metadata.partitions.inflight"
LOCK = {
    "hoodie.time.generator.max_expected_clock_skew_ms": "0",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
}


def builds(path: Path, *indexes: str) -> None:
    """What HoodieIndexer writes first; without one, it has ended."""
    table = open_local(path)
    table.config.update(table.storage, {INFLIGHT: ",".join(indexes) or None})


def scheduled(path: Path, storage: FaultyStorage) -> Report:
    return clustering.schedule(request(path, Mode.SCHEDULE, LOCK), storage)


def executed(path: Path, storage: FaultyStorage) -> Report:
    return clustering.execute(request(path, Mode.EXECUTE, LOCK), storage, LocalEngine())


def cleaned(path: Path, storage: FaultyStorage) -> Report:
    policy = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    return clean.clean(CleanRequest(base_path=str(path), options=resolve([("test", {**LOCK, **policy})])), storage)


def undone(path: Path, storage: FaultyStorage) -> Report:
    ts = open_local(path).timeline.completed_writes()[-1].ts
    return undo.undo(repair(path, "undo", ts, LOCK), storage)


def indexed(path: Path, storage: FaultyStorage) -> Report:
    return index_bootstrap(IndexRequest(base_path=str(path), options=resolve([("test", LOCK)])), storage, LocalEngine())


def plan(path: Path) -> None:
    clustering.schedule(request(path, Mode.SCHEDULE))


_RUNS: dict[str, tuple[Callable[[Path], object], Callable[[Path, FaultyStorage], Report]]] = {
    "schedule": (lambda path: None, scheduled),
    "execute": (plan, executed),
    "clean": (cluster, cleaned),
    "undo": (cluster, undone),
    "index-bootstrap": (lambda path: None, indexed),
}


@pytest.mark.spread(3)
@pytest.mark.parametrize("index", ["bloom_filters", "record_index"])
@pytest.mark.parametrize("command", _RUNS)
@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_no_file_groups_yet(release: str, command: str, index: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    prepare, run = _RUNS[command]
    prepare(path)
    known = open_local(path).timeline.sizes
    builds(path, index)
    storage = FaultyStorage(str(path))
    with pytest.raises(ConflictError, match=r"is being built|is building its index record_index") as refused:
        run(path, storage)
    assert refused.value.exit_code == 4
    assert "delete" not in refused.value.hint and refused.value.hint.startswith("wait")
    assert open_local(path).timeline.sizes == known
    assert not [one for one in storage.log if ".locks" not in one and not one.endswith(".hoodie/lock")]
    builds(path)
    assert run(path, storage).state in (RunState.COMPLETED, RunState.REQUESTED)


@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_a_build_that_begins_while_we_rewrite(release: str, tmp_path: Path) -> None:
    """What was done is kept, and the next run completes it when the index is there."""
    path = unpack(release, tmp_path)
    before = both(path)[0]
    plan(path)

    class Meanwhile(LocalEngine):
        def map(self, function, tasks, description, progress):  # type: ignore[no-untyped-def]
            results = super().map(function, tasks, description, progress)
            builds(path, "bloom_filters")
            return results

    with pytest.raises(ConflictError, match="the index bloom_filters is being built"):
        clustering.execute(request(path, Mode.EXECUTE, LOCK), engine=Meanwhile())
    builds(path)
    assert executed(path, FaultyStorage(str(path))).state is RunState.COMPLETED
    assert all(seen.equals(before) for seen in both(path))


def test_file_groups_that_are_there(tmp_path: Path) -> None:
    """The indexer fills what came before; whoever commits writes to the index, as Hudi's writers do."""
    path = unpack("1.2.0", tmp_path)
    table = open_local(path)
    ready = [name for name in table.config.metadata_partitions if name != COLUMN_STATS]
    table.config.update(table.storage, {"hoodie.table.metadata.partitions": ",".join(ready), INFLIGHT: COLUMN_STATS})
    plan(path)
    executed(path, FaultyStorage(str(path)))
    metadata = open_local(path).metadata
    assert metadata is not None
    written = metadata.timeline.read_commit(metadata.timeline.completed_writes()[-1])
    assert written.stats[COLUMN_STATS]


def test_the_metadata_table_itself(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    table = open_local(path)
    table.config.update(table.storage, {"hoodie.table.metadata.partitions": None, INFLIGHT: "files"})
    for file in path.glob(".hoodie/timeline/*"):
        os.utime(file, (time.time() - 9999,) * 2)
    with pytest.raises(ConflictError, match="the index files is being built"):
        scheduled(path, FaultyStorage(str(path)))


def test_every_file_is_in_one_task_also_when_it_is_empty(tmp_path: Path) -> None:
    slices = open_local(unpack("1.2.0", tmp_path)).view.live_slices()
    draw = random.Random(7)
    for _ in range(200):
        counts = [draw.choice((0, 0, 1, 400_000, 999_999, 1_000_000, 3_000_000)) for _ in slices]
        tasks = _tasks(slices, counts)
        assert [one for task in tasks for one in task] == slices
        rows = dict(zip(slices, counts, strict=True))
        assert all(task and (len(task) == 1 or sum(map(rows.get, task)) <= 1_000_000) for task in tasks)  # type: ignore[arg-type]
