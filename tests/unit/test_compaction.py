"""Compaction: the rows stay, writers go on beside it, and every write may be the last."""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hudi_services.compaction.plan import why_not_due
from hudi_services.compaction.strategies import BEYOND_IO, FEW_BYTES, FEW_FILES, OLDER_DAY, Limits, choose
from hudi_services.engine import LocalEngine
from hudi_services.errors import CheckFailed, ConfigError, ConflictError, CorruptFile, NothingToDo, UnsupportedTable
from hudi_services.jobs import compaction, validate
from hudi_services.merging import merged_logs
from hudi_services.model import BaseFile, CommitMetadata, FileSlice, LogFile
from hudi_services.options import resolve
from hudi_services.runs.report import Report, RunState
from hudi_services.runs.request import CompactionRequest, Mode, ValidateRequest
from hudi_services.timeline.compaction_trigger import Trigger
from hudi_services.timeline.instant import Action
from hudi_services.timeline.instant import State as InstantState

from . import histories
from .faulty_storage import FaultyStorage, Killed
from .repairs import LOCK, complete
from .shares import share
from .tables import RELEASES, digest, open_local
from .test_merge_histories import comparable, merged_rows
from .test_merge_on_read import CASES, CUSTOM, MEMORY, Appending, always, append_log, logged

EAGER = {"hoodie.compact.inline.max.delta.commits": "1"}


def request(path: Path, mode: Mode, options: Mapping[str, str] | None = None, **more: Any) -> CompactionRequest:
    layers = [("test", {**EAGER, **(options or {})})]
    return CompactionRequest(base_path=str(path), mode=mode, options=resolve(layers), **more)


def schedule(path: Path, options: Mapping[str, str] | None = None, **more: Any) -> Report:
    return compaction.schedule(request(path, Mode.SCHEDULE, options, **more))


def execute(path: Path, options: Mapping[str, str] | None = None, engine: LocalEngine | None = None) -> Report:
    return compaction.execute(request(path, Mode.EXECUTE, options), engine=engine or LocalEngine())


def rows_of(path: Path) -> list[dict[str, Any]]:
    return comparable(merged_rows(open_local(path), MEMORY))


def made(release: str, name: str, folder: Path) -> Path:
    return histories.MadeHistory(release, name, folder).path


@pytest.mark.spread(20)
@pytest.mark.parametrize(("release", "name"), [*CASES, *((release, "bucket") for release in RELEASES)])
def test_the_rows_stay(release: str, name: str, tmp_path: Path) -> None:
    path = made(release, name, tmp_path)
    before = rows_of(path)
    old = {(one.partition, one.file_id): one for one in open_local(path).view.live_slices()}
    dry = schedule(path, dry_run=True)
    assert len(dry.tables["file_slices"]) == len(old)
    planned = schedule(path)
    assert planned.state is RunState.REQUESTED
    # The new slice of the pending compaction is read with the old one.
    assert rows_of(path) == before
    done = execute(path)
    assert done.state is RunState.COMPLETED and done.checks[0].result.value == "passed"
    assert rows_of(path) == before
    table = open_local(path)
    for one in table.view.live_slices():
        was = old.pop((one.partition, one.file_id))
        expected = (done.instant, True, ()) if was.log_files else (was.base_instant, True, ())
        assert (one.base_instant, one.base_file is not None, one.log_files) == expected
    assert not old
    (commit,) = (i for i in table.timeline.completed({Action.COMMIT}) if i.ts == done.instant)
    assert table.timeline.read_commit(commit).compacted
    if table.metadata is not None:
        looked = validate.validate(ValidateRequest(base_path=str(path), options=resolve([])))
        assert looked.reason == "the metadata table agrees with the table"


@pytest.mark.parametrize("release", RELEASES)
def test_what_is_refused(release: str, tmp_path: Path) -> None:
    for name in ("torn_tail", *(CUSTOM if release == "1.0.2" else ())):
        path = made(release, name, tmp_path / name)
        before = digest(path)
        with pytest.raises((UnsupportedTable, CorruptFile)):
            schedule(path)
        assert digest(path) == before


def test_every_file_group_was_replaced_since(tmp_path: Path) -> None:
    path = made("1.2.0", "indexed", tmp_path)
    ts = schedule(path).instant
    assert ts
    groups = {}
    for one in open_local(path).view.live_slices():
        groups[one.partition] = (*groups.get(one.partition, ()), one.file_id)
    complete(path, str(int(ts) + 5), CommitMetadata("DELETE_PARTITION", {}, replaced=groups), Action.REPLACE_COMMIT)
    done = execute(path)
    assert done.state is RunState.COMPLETED and "were replaced since the plan was made" in done.warnings[0]
    assert rows_of(path) == [] and not open_local(path).timeline.pending()


def test_copy_on_write_has_no_log_files(tmp_path: Path) -> None:
    path = made("1.2.0", "overwrite_latest", tmp_path)
    properties = path / ".hoodie/hoodie.properties"
    properties.write_text(properties.read_text().replace("MERGE_ON_READ", "COPY_ON_WRITE"))
    for file in path.rglob("hoodie.properties.backup"):
        file.unlink()
    with pytest.raises(UnsupportedTable, match="only tables of type MERGE_ON_READ have log files to compact"):
        schedule(path)


@pytest.mark.parametrize("release", RELEASES)
def test_a_write_between_plan_and_execution(release: str, tmp_path: Path) -> None:
    """The log file of a later write belongs to the next slice, and stays beside the new base file."""
    path = made(release, "overwrite_latest", tmp_path)
    ts = schedule(path).instant
    assert ts
    append_log(path, str(int(ts) + 5), of_slice=ts)
    before = rows_of(path)
    execute(path)
    assert rows_of(path) == before
    (one,) = (one for one in open_local(path).view.live_slices() if one.log_files)
    assert one.base_instant == ts and len(one.log_files) == 1


def test_a_late_write_to_the_old_slice(tmp_path: Path) -> None:
    """Version 6: a write that began before the plan may append to the old slice; the plan does not name its file."""
    path = made("0.15.0", "overwrite_latest", tmp_path)
    ts = schedule(path, LOCK).instant
    assert ts
    append_log(path, str(int(ts) - 5))
    before = rows_of(path)
    assert execute(path, LOCK).state is RunState.COMPLETED
    assert rows_of(path) == before
    assert not any(one.log_files for one in open_local(path).view.live_slices())


def test_a_late_write_while_the_rows_are_merged(tmp_path: Path) -> None:
    path = made("0.15.0", "overwrite_latest", tmp_path)
    ts = schedule(path, LOCK).instant
    assert ts
    with pytest.raises(ConflictError, match="the file slice has changed since it was read"):
        execute(path, LOCK, Appending(path, str(int(ts) - 5), is_written=False))
    before = rows_of(path)
    # The plan stays: writers may have named log files after it.
    assert [one.ts for one in open_local(path).timeline.pending()] == [ts]
    execute(path, LOCK)
    assert rows_of(path) == before


def test_a_late_write_in_progress(tmp_path: Path) -> None:
    path = made("0.15.0", "overwrite_latest", tmp_path)
    earlier = str(int(open_local(path).timeline.instants[-1].ts) + 5)
    complete(path, earlier, CommitMetadata("UPSERT", {}), Action.DELTA_COMMIT, list(InstantState)[:2])
    ts = schedule(path, LOCK).instant
    with pytest.raises(ConflictError, match=f"the deltacommit {earlier} .* began before the compaction {ts}"):
        execute(path, LOCK)
    assert not list(path.rglob(f"*_{ts}.parquet"))
    assert [(one.ts, one.state) for one in open_local(path).timeline.pending({Action.COMPACTION})] == [
        (ts, InstantState.REQUESTED)
    ]


@pytest.mark.parametrize("release", RELEASES)
def test_a_writer_beside_the_merge(release: str, tmp_path: Path) -> None:
    """A write that began after the plan, and ends while the rows are merged, is no conflict."""
    path = made(release, "overwrite_latest", tmp_path)
    ts = schedule(path, LOCK).instant
    assert ts

    class Beside(LocalEngine):
        def map(self, function: Any, tasks: Any, what: str, progress: Any) -> Any:
            found = super().map(function, tasks, what, progress)
            if "rewrite" in what:
                append_log(path, str(int(ts) + 5), of_slice=ts)
            return found

    execute(path, LOCK, Beside())
    table = open_local(path)
    (one,) = (one for one in table.view.live_slices() if one.log_files)
    assert one.base_instant == ts and len(one.log_files) == 1


def test_a_merge_that_lies_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made("1.2.0", "default_order", tmp_path)
    before = rows_of(path)
    schedule(path)
    with monkeypatch.context() as patched:
        patched.setattr(merged_logs, "log_wins", always)
        with pytest.raises(CheckFailed, match="does not hold the same rows"):
            execute(path)
    assert rows_of(path) == before


def test_a_planned_file_is_lost(tmp_path: Path) -> None:
    path = made("1.2.0", "overwrite_latest", tmp_path)
    schedule(path)
    (path / logged(path).log_files[0].path).unlink()
    before = digest(path)
    with pytest.raises((CorruptFile, CheckFailed), match=r"\.log\.1_"):
        execute(path)
    assert digest(path) == before


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
def test_every_write_may_be_the_last(release: str, tmp_path: Path) -> None:
    """Readers see the same rows after a kill, and the next run repairs the table and finishes."""
    original = made(release, "indexed", tmp_path / "made")
    path = Path(shutil.copytree(original, tmp_path / "table"))
    before = rows_of(path)

    def run(writes: int | None) -> int:
        shutil.rmtree(path)
        shutil.copytree(original, path)
        storage = FaultyStorage(str(path), writes)
        with suppress(Killed):
            compaction.schedule_and_execute(request(path, Mode.SCHEDULE_AND_EXECUTE), storage, LocalEngine())
        return len(storage.log)

    total = run(None)
    assert total > 20
    for survived in share(range(total), 3, 10):
        run(survived)
        assert rows_of(path) == before, survived
        again = request(path, Mode.SCHEDULE_AND_EXECUTE, executes_pending=True)
        with suppress(NothingToDo):
            compaction.schedule_and_execute(again, engine=LocalEngine())
        table = open_local(path)
        assert rows_of(path) == before, survived
        assert not table.timeline.pending()
        assert not any(one.log_files for one in table.view.live_slices())


def slice_of(partition: str, number: int, base: int, *logs: int) -> FileSlice:
    file_id = f"{number:08d}-0"
    files = tuple(
        LogFile(partition, f".{file_id}_1.log.{n}_0", file_id, "1", n, "0", "", logs[n]) for n in range(len(logs))
    )
    return FileSlice(
        partition, file_id, "1", BaseFile(partition, f"{file_id}_0_1.parquet", file_id, "0", "1", base), files
    )


MIB = 1 << 20


@pytest.mark.parametrize(
    ("strategy", "limits", "taken", "left"),
    [
        ("log_file_size", Limits(), [2, 1, 0, 3], {}),
        ("log_file_size", Limits(log_bytes=4 * MIB), [2, 1], {FEW_BYTES: [0, 3]}),
        # The slice that reaches the limit is the last one: 100 + 9 + 100 MB, then 120 for a first base file.
        ("log_file_size", Limits(io_megabytes=300), [2, 1], {BEYOND_IO: [0, 3]}),
        ("log_file_number", Limits(), [0, 1, 2, 3], {}),
        ("log_file_number", Limits(log_files=2), [0], {FEW_FILES: [1, 2, 3]}),
        ("bounded_io", Limits(io_megabytes=1), [0], {BEYOND_IO: [1, 2, 3]}),
        ("unbounded", Limits(io_megabytes=1), [0, 1, 2, 3], {}),
        ("day_based", Limits(days=1), [3], {OLDER_DAY: [0, 1, 2]}),
        ("day_based", Limits(days=2), [3, 1, 2], {OLDER_DAY: [0]}),
    ],
)
def test_strategies(strategy: str, limits: Limits, taken: list[int], left: dict[str, list[int]]) -> None:
    slices = [
        slice_of("2026/01/09", 0, 50 * MIB, MIB, MIB, MIB),
        slice_of("2026/01/10", 1, 100 * MIB, 5 * MIB),
        slice_of("2026/01/10", 2, 100 * MIB, 9 * MIB),
        slice_of("2026/11/01", 3, 10 * MIB, MIB),
    ]
    found = choose(strategy, slices, limits)
    assert [slices.index(one) for one in found.taken] == taken
    assert {why: [slices.index(one) for one in some] for why, some in found.left.items() if some} == left


def test_partitions_that_are_no_days() -> None:
    choose("day_based", [slice_of("year=2026/month=01/day=31", 0, 1, 1)], Limits())
    for partition in ("p0", "2026-01-31", "2026/13/01"):
        with pytest.raises(ConfigError, match="needs partitions of the form yyyy/MM/dd"):
            choose("day_based", [slice_of(partition, 0, 1, 1)], Limits())


def test_when_a_plan_is_due(tmp_path: Path) -> None:
    path = made("1.2.0", "compaction", tmp_path)
    table = open_local(path)
    assert len(table.timeline.completed({Action.COMMIT})) == 2
    last = table.timeline.completed({Action.COMMIT})[-1].ts
    assert why_not_due(table, Trigger(commits=3)) == f"2 of 3 delta commits since the compaction {last}"
    assert why_not_due(table, Trigger(commits=2)) == ""
    assert "of 9000000000 seconds" in why_not_due(table, Trigger("TIME_ELAPSED", seconds=9_000_000_000))
    assert why_not_due(table, Trigger("NUM_OR_TIME", commits=2, seconds=9_000_000_000)) == ""
    assert ", and " in why_not_due(table, Trigger("NUM_OR_TIME", commits=5, seconds=9_000_000_000))
    assert "seconds" in why_not_due(table, Trigger("NUM_AND_TIME", commits=2, seconds=9_000_000_000))
    schedule(path)
    pending = open_local(path)
    assert why_not_due(pending, Trigger(commits=2)) == ""
    assert why_not_due(pending, Trigger("NUM_COMMITS_AFTER_LAST_REQUEST", commits=2)).startswith("0 of 2 delta commits")
