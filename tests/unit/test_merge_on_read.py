"""Clustering merge-on-read tables: the rows stay, with the metadata table and without, and Hudi's rules decide."""

import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hudi_services.codecs.clustering_plan import SliceInfo, encode_clustering_plan
from hudi_services.engine import LocalEngine
from hudi_services.errors import CheckFailed, ConflictError, CorruptFile, NothingToDo, UnsupportedTable
from hudi_services.file_names import log_file_name
from hudi_services.jobs import clustering
from hudi_services.log_files.log_blocks import HeaderKey, LogBlock
from hudi_services.log_files.log_reader import read_log_blocks
from hudi_services.log_files.log_writer import encode_block
from hudi_services.merging import merged_logs
from hudi_services.merging.fold import Merged, Numbers, RecordFacts
from hudi_services.merging.rules import MergeRule
from hudi_services.model import CommitMetadata, FileSlice, WriteStat
from hudi_services.runs.report import RunState
from hudi_services.runs.request import Mode
from hudi_services.timeline.instant import Action
from hudi_services.timeline.instant import State as InstantState

from . import histories
from .faulty_storage import FaultyStorage, Killed
from .repairs import LOCK, complete
from .shares import share
from .tables import RELEASES, digest, open_local, request
from .test_merge_histories import CUSTOM, comparable, merged_rows

REFUSED = {"torn_tail"}
# In some of these a write of Hudi failed, and nobody has rolled it back.
ELSEWHERE = REFUSED | {"bucket", "null_in_log", "null_in_base", "null_int", "of_date", "uncommitted", "listed_pending"}
CASES = [
    (release, name)
    for release in RELEASES
    for name in histories.names(release)
    if name not in ELSEWHERE and not (release == "1.0.2" and name in CUSTOM)
]
MEMORY = 1 << 20
SORT = {"hoodie.clustering.plan.strategy.sort.columns": "val desc"}


@pytest.mark.thorough
@pytest.mark.spread(12)
@pytest.mark.parametrize(
    ("release", "name", "sort"), [(*case, False) for case in CASES] + [(*case, True) for case in CASES[::4]]
)
def test_the_rows_stay(release: str, name: str, sort: bool, tmp_path: Path) -> None:
    path = histories.MadeHistory(release, name, tmp_path).path
    before = comparable(merged_rows(open_local(path), MEMORY))
    dry = clustering.schedule(request(path, Mode.SCHEDULE, SORT if sort else {}, dry_run=True))
    assert dry.rows.before == len(before)
    options = SORT if sort else {}
    planned = clustering.schedule(request(path, Mode.SCHEDULE, options))
    assert planned.state is RunState.REQUESTED, planned
    done = clustering.execute(request(path, Mode.EXECUTE, options), engine=LocalEngine())
    assert done.state is RunState.COMPLETED
    table = open_local(path)
    assert comparable(merged_rows(table, MEMORY)) == before
    assert done.rows.after == len(before)
    for one in table.view.live_slices():
        assert one.log_files == () and one.base_file is not None and one.base_instant == done.instant


@pytest.mark.parametrize("sort", [False, True])
@pytest.mark.parametrize("release", RELEASES)
def test_buckets_stay(release: str, sort: bool, tmp_path: Path) -> None:
    """Merging the file groups of a bucket index would break it: each is rewritten by itself, with its file id."""
    path = histories.MadeHistory(release, "bucket", tmp_path).path
    before = comparable(merged_rows(open_local(path), MEMORY))
    ids = [one.file_id for one in open_local(path).view.live_slices()]
    options = SORT if sort else {}
    planned = clustering.schedule(request(path, Mode.SCHEDULE, options))
    assert any("are the buckets of an index" in warning for warning in planned.warnings)
    done = clustering.execute(request(path, Mode.EXECUTE, options), engine=LocalEngine())
    table = open_local(path)
    assert comparable(merged_rows(table, MEMORY)) == before and done.rows.after == len(before)
    slices = table.view.live_slices()
    assert [(one.file_id, one.base_instant, one.log_files) for one in slices] == [(i, done.instant, ()) for i in ids]
    assert table.timeline.read_commit(table.timeline.completed_writes()[-1]).replaced == {}
    if not sort:
        # Without logs and order, another rewrite gains nothing.
        with pytest.raises(NothingToDo, match="1 alone in its group"):
            clustering.schedule(request(path, Mode.SCHEDULE))


def always(*_: Any) -> Any:
    """Every log record is preferred."""
    return np.ones(_[3].record.size, np.bool_)


def first(rule: MergeRule, facts: RecordFacts, groups: Sequence[Numbers]) -> Merged:
    """The oldest log record of each key."""
    return Merged(groups[0].copy(), {name: groups[0].copy() for name in facts.holes})


def high(holes: Any, base: Any, log: Any, wins: Any) -> Any:
    """Nothing is filled."""
    return np.where(wins, log, base)


class SmallEngine(LocalEngine):
    """Its tasks have so little memory that log records, and what the check knows of them, go to the local disk."""

    task_memory = 4096


@pytest.mark.thorough
@pytest.mark.spread(2)
@pytest.mark.parametrize(
    ("release", "name", "place", "lie"),
    [
        ("1.2.0", "default_order", "log_wins", always),
        ("0.15.0", "default_payload", "log_wins", always),
        ("1.2.0", "overwrite_latest", "fold", first),
        ("1.0.2", "default_order", "fold", first),
        ("0.15.0", "mysql", "log_wins", always),
        ("0.15.0", "partial_update", "filled", high),
        ("1.2.0", "partial_update", "filled", high),
        ("1.2.0", "merge_into", "fold", first),
        ("1.2.0", "postgres", "fold", first),
    ],
)
def test_a_merge_that_lies_is_found(
    release: str, name: str, place: str, lie: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = histories.MadeHistory(release, name, tmp_path).path
    before = comparable(merged_rows(open_local(path), MEMORY))
    clustering.schedule(request(path, Mode.SCHEDULE))
    for engine in (LocalEngine(), SmallEngine()):
        with monkeypatch.context() as patched:
            patched.setattr(merged_logs, place, lie)
            with pytest.raises(CheckFailed, match="does not hold the same rows"):
                clustering.execute(request(path, Mode.EXECUTE), engine=engine)
    assert comparable(merged_rows(open_local(path), MEMORY)) == before
    done = clustering.execute(request(path, Mode.EXECUTE), engine=SmallEngine())
    assert done.tables["memory"][0]["spilled_groups"] == done.groups
    assert comparable(merged_rows(open_local(path), MEMORY)) == before


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", sorted(REFUSED | CUSTOM))
def test_what_is_refused(release: str, name: str, tmp_path: Path) -> None:
    if name not in histories.names(release) or (name in CUSTOM and release != "1.0.2"):
        return
    path = histories.MadeHistory(release, name, tmp_path).path
    before = digest(path)
    with pytest.raises((UnsupportedTable, CorruptFile)):
        clustering.schedule(request(path, Mode.SCHEDULE))
    assert digest(path) == before


@pytest.mark.parametrize("release", ["1.0.2", "1.2.0"])
def test_files_of_a_write_that_is_not_completed(release: str, tmp_path: Path) -> None:
    path = histories.MadeHistory(release, "uncommitted", tmp_path).path
    with pytest.raises(NothingToDo, match="1 has files of a write that is not completed"):
        clustering.schedule(request(path, Mode.SCHEDULE))


def logged(path: Path) -> FileSlice:
    """The first slice that has log files."""
    return next(one for one in open_local(path).view.live_slices() if one.log_files)


def append_log(
    path: Path, ts: str, states: Iterable[InstantState] = InstantState, *, of_slice: str | None = None
) -> None:
    """A write that appends a log file to a slice: the newest one again, under a new name."""
    one = logged(path)
    newest = one.log_files[-1]
    instant = open_local(path).log_naming.instant_for(lambda: of_slice or one.base_instant, ts)
    name = log_file_name(one.file_id, instant, newest.version + 1, "9-9-9")
    blocks = read_log_blocks((path / newest.path).read_bytes(), "f")
    data = b"".join(encode_block(LogBlock(b.type, {**b.header, HeaderKey.INSTANT_TIME: ts}, b.content)) for b in blocks)
    (path / one.partition / name).write_bytes(data)
    stat = WriteStat(one.partition, one.file_id, f"{one.partition}/{name}", num_writes=1, file_size=len(data))
    complete(path, ts, CommitMetadata("UPSERT", {one.partition: (stat,)}), Action.DELTA_COMMIT, states)


class Appending(LocalEngine):
    """An engine beside which a writer appends a log file, after the rows were read."""

    def __init__(self, path: Path, ts: str, *, is_written: bool) -> None:
        self._path, self._ts, self._is_written = path, ts, is_written

    def map(self, function: Any, tasks: Any, what: str, progress: Any) -> Any:
        found = super().map(function, tasks, what, progress)
        if "rewrite" in what and not self._is_written:
            append_log(self._path, self._ts)
        elif "rewrite" in what:
            complete(self._path, self._ts, self._commit(), Action.DELTA_COMMIT, [InstantState.COMPLETED])
        return found

    def _commit(self) -> CommitMetadata:
        one = logged(self._path)
        stat = WriteStat(one.partition, one.file_id, one.log_files[-1].path, num_writes=1)
        return CommitMetadata("UPSERT", {one.partition: (stat,)})


@pytest.mark.parametrize("release", RELEASES)
def test_a_log_file_is_appended_meanwhile(release: str, tmp_path: Path) -> None:
    """The plan can never be executed; the table is as the writer left it."""
    path = histories.MadeHistory(release, "overwrite_latest", tmp_path).path
    ts = clustering.schedule(request(path, Mode.SCHEDULE, LOCK)).instant
    assert ts
    writer = Appending(path, f"{int(ts) - 5}", is_written=False)
    with pytest.raises(ConflictError, match="got log files since the plan was made"):
        clustering.execute(request(path, Mode.EXECUTE, LOCK), engine=writer)
    assert len(logged(path).log_files) > 1
    assert not list(path.rglob(f"*_{ts}.parquet"))


def test_a_write_ends_whose_log_file_the_plan_names(tmp_path: Path) -> None:
    """On version 6 the name of a log file does not tell who wrote it: its records were not read."""
    path = histories.MadeHistory("0.15.0", "overwrite_latest", tmp_path).path
    planned = clustering.schedule(request(path, Mode.SCHEDULE, LOCK)).instant
    assert planned
    earlier = str(int(planned) - 5)
    append_log(path, earlier, [InstantState.REQUESTED, InstantState.INFLIGHT])
    requested = path / f".hoodie/{planned}.replacecommit.requested"
    plan = open_local(path).timeline.read_plan(open_local(path).timeline.pending_clusterings()[0])
    live = logged(path)
    logs = tuple(str(path / log.path) for log in live.log_files)

    def renamed(one: SliceInfo) -> SliceInfo:
        return replace(one, log_files=logs) if one.file_id == live.file_id else one

    groups = [replace(group, slices=tuple(map(renamed, group.slices))) for group in plan.groups]
    named = replace(plan, groups=tuple(groups))
    requested.write_bytes(encode_clustering_plan(named, "0.15.0"))
    with pytest.raises(ConflictError, match=f"was updated by {earlier} since it was read"):
        clustering.execute(request(path, Mode.EXECUTE, LOCK), engine=Appending(path, earlier, is_written=True))


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
def test_every_write_may_be_the_last(release: str, tmp_path: Path) -> None:
    """Readers see the same rows after a kill, and the next execute repairs the table and finishes."""
    made = histories.MadeHistory(release, "indexed", tmp_path / "made").path
    path = Path(shutil.copytree(made, tmp_path / "table"))
    ts = clustering.schedule(request(path, Mode.SCHEDULE)).instant
    planned = Path(shutil.copytree(path, tmp_path / "planned"))
    before = comparable(merged_rows(open_local(path), MEMORY))

    def execute(writes: int | None) -> int:
        shutil.rmtree(path)
        shutil.copytree(planned, path)
        storage = FaultyStorage(str(path), writes)
        with suppress(Killed):
            clustering.execute(request(path, Mode.EXECUTE), storage, LocalEngine())
        return len(storage.log)

    total = execute(None)
    assert total > 20
    for survived in share(range(total), 3, 10):
        execute(survived)
        assert comparable(merged_rows(open_local(path), MEMORY)) == before, survived
        # Or it was killed after the commit.
        with suppress(NothingToDo):
            clustering.execute(request(path, Mode.EXECUTE), engine=LocalEngine())
        table = open_local(path)
        assert comparable(merged_rows(table, MEMORY)) == before, survived
        assert not table.timeline.pending()
        assert {one.base_instant for one in table.view.live_slices()} == {ts}
