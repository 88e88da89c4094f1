"""Cleaning merge-on-read tables that real Hudi wrote: log files go with their slices, and readers miss none."""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hudi_services.clock import SystemClock, parse_instant
from hudi_services.codecs.clean_plan import CleanerPlan, encode_cleaner_plan
from hudi_services.codecs.compaction_plan import CompactionOperation, CompactionPlan, encode_compaction_plan
from hudi_services.engine import LocalEngine
from hudi_services.errors import CheckFailed, NothingToDo
from hudi_services.jobs import clean as job
from hudi_services.jobs import clustering
from hudi_services.model import FileSlice
from hudi_services.runs.report import RunState
from hudi_services.runs.request import Mode
from hudi_services.timeline.instant import Action
from hudi_services.timeline.instant import State as Progress

from . import histories
from .faulty_storage import FaultyStorage, Killed
from .metadata_tables import files_by_partition
from .repairs import LATER
from .shares import places, share
from .tables import RELEASES, open_local, request
from .test_clean import COMMITS_1, VERSIONS_1, wanted
from .test_merge_histories import comparable, merged_rows

MEMORY = 1 << 20
HOURS_1 = {"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS", "hoodie.clean.hours.retained": "1"}
P = "p0"


def both_rows(path: Path) -> list[dict[str, Any]]:
    """The rows by our merge, which must be the same with the metadata table and without."""
    table = open_local(path)
    found = comparable(merged_rows(table, MEMORY))
    assert comparable(merged_rows(table, MEMORY, view=table.view)) == found
    return found


def stored(path: Path) -> set[str]:
    """The names of the data files on storage."""
    return {file.name for file in (path / P).iterdir() if file.name.endswith(".parquet") or ".log." in file.name}


def listed(path: Path) -> set[str]:
    """The names of the data files by the metadata table."""
    table = open_local(path)
    assert table.metadata is not None and not table.metadata.timeline.pending()
    return set(files_by_partition(table.metadata)[P])


def names(slices: list[FileSlice]) -> set[str]:
    return {file.name for one in slices for file in one.files}


def group_of_old_slices(path: Path) -> list[FileSlice]:
    """The slices of the file group with several slices."""
    return next(group for group in open_local(path).view.all_slices(P).values() if len(group) > 1)


def clustered(release: str, folder: Path) -> Path:
    """A table with a metadata table, of whose replaced file groups one has log files."""
    path = histories.MadeHistory(release, "indexed", folder).path
    clustering.schedule(request(path, Mode.SCHEDULE))
    clustering.execute(request(path, Mode.EXECUTE), engine=LocalEngine())
    return path


def cleaned(path: Path, options: Mapping[str, str] = VERSIONS_1) -> Any:
    return job.clean(wanted(path, options))


@pytest.mark.parametrize("policy", [VERSIONS_1, COMMITS_1, HOURS_1], ids=["versions", "commits", "hours"])
@pytest.mark.parametrize("release", RELEASES)
def test_log_files_go_with_their_slice(
    release: str, policy: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = histories.MadeHistory(release, "compaction", tmp_path).path
    if policy is HOURS_1:
        timeline = open_local(path).timeline
        newest_write = parse_instant(timeline.completed_writes()[-1].ts, timeline.zone)
        assert newest_write is not None
        monkeypatch.setattr(SystemClock, "now", lambda clock: newest_write + timedelta(hours=1))
    before = both_rows(path)
    old, newest = group_of_old_slices(path)
    change_data = path / P / f"{old.log_files[0].name}.cdc"
    change_data.write_bytes(b"changes")
    done = cleaned(path, policy)
    # The last slice before the earliest commit to retain is the newest one: the compaction is older than that commit.
    assert stored(path) == names([newest]) and len(newest.log_files) == 2
    assert done.files.before == len(old.files) + 1 == 3
    assert both_rows(path) == before


@pytest.mark.parametrize("release", RELEASES)
def test_log_files_go_with_replaced_file_groups(release: str, tmp_path: Path) -> None:
    path = histories.MadeHistory(release, "clustering", tmp_path).path
    before = both_rows(path)
    live = names(open_local(path).view.live_slices())
    assert cleaned(path).files.before == 3
    assert stored(path) == live
    assert both_rows(path) == before


@pytest.mark.parametrize("policy", [VERSIONS_1, COMMITS_1], ids=["versions", "commits"])
@pytest.mark.parametrize("release", RELEASES)
def test_the_slice_of_a_pending_compaction_keeps_the_one_before(
    release: str, policy: dict[str, str], tmp_path: Path
) -> None:
    made = histories.MadeHistory(release, "compaction", tmp_path)
    assert made.rewind(made.steps[-3])
    (pending,) = open_local(made.path).timeline.pending({Action.COMPACTION})
    before, files = both_rows(made.path), stored(made.path)
    with pytest.raises(NothingToDo):
        cleaned(made.path, policy)
    assert open_local(made.path).timeline.pending() == (pending,)
    assert (both_rows(made.path), stored(made.path)) == (before, files)


def plan_compaction(path: Path, action: Action, one: FileSlice, base: str) -> None:
    """A pending plan that names the files of a slice, and another base instant."""
    table = open_local(path)
    logs = tuple(log.name for log in one.log_files)
    name = one.base_file.name if one.base_file else ""
    operation = CompactionOperation(P, one.file_id, base, name, logs)
    data = encode_compaction_plan(CompactionPlan((operation,)), table.config.version.release)
    table.timeline.publish(LATER, action, Progress.REQUESTED, data)


@pytest.mark.parametrize("action", [Action.COMPACTION, Action.LOG_COMPACTION])
@pytest.mark.parametrize("release", RELEASES)
def test_what_a_pending_plan_names_stays(release: str, action: Action, tmp_path: Path) -> None:
    """Whatever slice it falls in: Hudi 1.0.2 has planned log files that its clean saw in an older slice."""
    path = histories.MadeHistory(release, "compaction", tmp_path).path
    old, newest = group_of_old_slices(path)
    # Without the plan, the clean takes the older slice.
    assert cleaned_dry(path) == {"more versions than are retained": 2}
    plan_compaction(path, action, old, newest.base_instant)
    with pytest.raises(NothingToDo):
        cleaned(path)
    assert names([old]) <= stored(path)
    # Nor is a plan of another program carried out that takes it.
    table = open_local(path)
    plan = CleanerPlan("KEEP_LATEST_FILE_VERSIONS", "", "", {P: tuple(str(path / log.path) for log in old.log_files)})
    data = encode_cleaner_plan(plan, table.config.version.release)
    table.timeline.publish(f"{LATER[:-1]}1", Action.CLEAN, Progress.REQUESTED, data)
    with pytest.raises(CheckFailed, match=f"{old.log_files[0].name} is to be deleted, and a pending plan names it"):
        cleaned(path)
    assert names([old]) <= stored(path)


def cleaned_dry(path: Path) -> dict[str, int]:
    report = job.clean(wanted(path, VERSIONS_1, dry_run=True))
    return {row["rule"]: row["files"] for row in report.tables["deleted"]}  # type: ignore[misc]


@pytest.mark.parametrize("release", RELEASES)
def test_no_log_file_goes_without_its_base_file(release: str, tmp_path: Path) -> None:
    """A plan of another program that takes only the log files of an older slice, or those of the newest one."""
    path = histories.MadeHistory(release, "compaction", tmp_path).path
    files = stored(path)
    for one, why in zip(group_of_old_slices(path), ("its base file .* stays", "readers need it"), strict=True):
        table = open_local(path)
        plan = CleanerPlan("", "", "", {P: tuple(str(path / log.path) for log in one.log_files)})
        data = encode_cleaner_plan(plan, table.config.version.release)
        ts = f"{LATER[:-1]}{len(one.log_files)}"
        table.timeline.publish(ts, Action.CLEAN, Progress.REQUESTED, data)
        with pytest.raises(CheckFailed, match=why):
            cleaned(path)
        (path / table.timeline.path(f"{ts}.clean.requested")).unlink()
    assert stored(path) == files


@pytest.mark.parametrize("release", ["1.0.2", "1.2.0"])
def test_log_files_behind_a_base_file_that_is_not_committed(release: str, tmp_path: Path) -> None:
    """They are in no slice of a clean: whether they belong to the slice before or after depends on that file."""
    path = histories.MadeHistory(release, "compaction", tmp_path).path
    old, newest = group_of_old_slices(path)
    assert newest.base_file is not None
    table = open_local(path)
    begun = f"{int(table.timeline.completion_time(newest.base_instant) or '') + 1}"
    shutil.copy(path / newest.base_file.path, path / P / newest.base_file.name.replace(newest.base_instant, begun))
    assert [one.log_files for one in group_of_old_slices(path)] == [old.log_files, newest.log_files[:1]]
    cleaned(path)
    assert names([newest]) <= stored(path) and not names([old]) & stored(path)


@pytest.mark.thorough
@pytest.mark.sweep
@pytest.mark.parametrize("release", RELEASES)
def test_every_write_may_be_the_last(release: str, tmp_path: Path) -> None:
    made = clustered(release, tmp_path / "made")
    path = tmp_path / "table"
    before = both_rows(made)

    def run(writes: int | None) -> list[str]:
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(made, path)
        storage = FaultyStorage(str(path), writes)
        with suppress(Killed):
            job.clean(wanted(path, VERSIONS_1), storage)
        return storage.log

    log = run(None)
    left = names(open_local(path).view.live_slices())
    assert stored(path) == listed(path) == left and len(log) > 15
    for survived in share(places(log), 3, 10):
        run(survived)
        assert both_rows(path) == before, survived
        with suppress(NothingToDo):
            assert cleaned(path).state is RunState.COMPLETED
        assert both_rows(path) == before, survived
        assert stored(path) == listed(path) == left, f"after {survived} writes: {log[survived]}"
        assert not open_local(path).timeline.pending()
