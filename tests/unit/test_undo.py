"""Undoing a clustering: old files are read again, newer rows stay, and one with later writes on it is refused."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_services.codecs.clean_plan import CleanerPlan
from hudi_services.engine import LocalEngine
from hudi_services.errors import CheckFailed, ConfigError, ConflictError, NothingToDo
from hudi_services.file_names import parse_base_file
from hudi_services.jobs import clustering
from hudi_services.jobs.index_bootstrap import index_bootstrap
from hudi_services.jobs.undo import undo
from hudi_services.metadata_updates.rollback.lasting import may_be_merged
from hudi_services.model import CommitMetadata
from hudi_services.runs.report import Report
from hudi_services.runs.report import RunState as Outcome
from hudi_services.runs.request import Mode
from hudi_services.storage import Storage
from hudi_services.timeline.active import Timeline
from hudi_services.timeline.instant import Action, State

from .faulty_storage import FaultyStorage, Killed
from .metadata_tables import compact, open_metadata
from .other_writers import OtherWriters
from .repairs import (
    LATER,
    LOCK,
    NO_HEARTBEAT,
    P,
    both,
    cluster,
    complete,
    files_of,
    hide_metadata,
    repair,
    timeline_files,
    write_beside,
)
from .shares import TWO_SHARES, places, share
from .tables import listed_view, open_local, request, rows, unpack
from .test_index_bootstrap import indexed_locations, real_locations, wanted

CLEAN = "20990101000000000"


@pytest.fixture(params=["0.15.0", "1.0.2", "1.2.0"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return unpack(request.param, tmp_path)


def roll_back_instant(path: Path, ts: str, storage: Storage | None = None, **more: bool) -> Report:
    return undo(repair(path, "undo", ts, NO_HEARTBEAT, **more), storage)


def live_files(path: Path) -> set[str]:
    view = open_local(path).view
    return {s.base_file.path for p in view.partitions() for s in view.latest_slices(p) if s.base_file}


@pytest.mark.thorough
def test_the_old_files_are_read_again(path: Path) -> None:
    before, old = both(path), live_files(path)
    ts = cluster(path)
    new = files_of(path, ts)
    assert live_files(path) == new
    dry = roll_back_instant(path, ts, dry_run=True)
    assert dry.state is Outcome.COMPLETED and files_of(path, ts) == new
    report = roll_back_instant(path, ts)
    assert report.state is Outcome.COMPLETED
    assert live_files(path) == old
    assert all(seen.equals(before[0]) for seen in both(path))
    assert files_of(path, ts) == set() == timeline_files(path, ts)
    assert sum(int(str(row["files"])) for row in report.tables["visible_again"]) == len(old)
    assert report.tables["partitions"] == dry.tables["partitions"]
    table = open_local(path)
    assert not table.timeline.pending() and table.metadata is not None and not table.metadata.timeline.pending()
    with pytest.raises(NothingToDo, match="was rolled back already"):
        roll_back_instant(path, ts)
    # And all over again.
    again = cluster(path)
    assert again > ts and both(path)[0].equals(before[0])


def test_rows_written_since_to_other_files_stay(path: Path) -> None:
    ts = cluster(path)
    source = path / sorted(files_of(path, ts))[0]
    new = write_beside(path, P, source, "11111111-1111-1111-1111-111111111111-0")
    before = rows(open_local(path), listed_view(open_local(path)))
    roll_back_instant(path, ts)
    assert (path / new).exists()
    assert rows(open_local(path), listed_view(open_local(path))).equals(before)


def test_what_is_no_completed_clustering(path: Path) -> None:
    write = open_local(path).timeline.completed_writes()[-1].ts
    planned = clustering.schedule(request(path, Mode.SCHEDULE)).instant
    for ts in (write, planned, LATER):
        with pytest.raises(ConfigError, match="has no completed clustering with the instant"):
            roll_back_instant(path, str(ts))


def a_newer_slice(path: Path, ts: str) -> str:
    source = path / sorted(files_of(path, ts))[0]
    base = parse_base_file(str(source.parent.relative_to(path)), source.name, 1)
    assert base
    path_of_new = write_beside(path, base.partition, source, base.file_id)
    hide_metadata(path)
    return f"was superseded by {Path(path_of_new).name}"


def replaced_since(path: Path, ts: str) -> str:
    source = sorted(files_of(path, ts))[0]
    base = parse_base_file(str(Path(source).parent), Path(source).name, 1)
    assert base
    complete(
        path, LATER, CommitMetadata("INSERT", {}, replaced={base.partition: (base.file_id,)}), Action.REPLACE_COMMIT
    )
    return "was replaced since"


def an_old_file_cleaned(path: Path, ts: str) -> str:
    plan = open_local(path).timeline.read_plan(open_local(path).timeline.completed({Action.REPLACE_COMMIT})[-1])
    Path(plan.groups[0].slices[0].data_file).unlink()
    return "was cleaned"


def planned_again(path: Path, ts: str) -> str:
    options = {"hoodie.clustering.plan.strategy.small.file.limit": "1000000000"}
    later = clustering.schedule(request(path, Mode.SCHEDULE, options)).instant
    return f"the pending plan {later} reads"


@pytest.mark.thorough
@pytest.mark.parametrize("happen", [a_newer_slice, replaced_since, an_old_file_cleaned, planned_again])
def test_what_somebody_built_on(path: Path, happen: Callable[[Path, str], str]) -> None:
    ts = cluster(path)
    text = happen(path, ts)
    everything = sorted(file for file in path.rglob("*") if file.is_file() and ".locks" not in file.parts)
    with pytest.raises(ConflictError, match=text):
        roll_back_instant(path, ts)
    assert everything == sorted(file for file in path.rglob("*") if file.is_file() and ".locks" not in file.parts)


def test_log_files_on_the_new_slices(tmp_path: Path) -> None:
    path = unpack("0.15.0", tmp_path)
    hide_metadata(path)
    ts = cluster(path)
    base = parse_base_file("", Path(sorted(files_of(path, ts))[0]).name, 1)
    assert base
    (path / P / f".{base.file_id}_{ts}.log.1_0-0-0").write_bytes(b"#HUDI#")
    with pytest.raises(ConflictError, match="got log files"):
        roll_back_instant(path, ts)


@pytest.mark.thorough
@pytest.mark.parametrize("indexed", [False, True])
def test_a_clustering_of_which_groups_were_left_out(path: Path, indexed: bool) -> None:
    """The commit names what it replaced; the plan names the groups that a writer in progress updated, too."""
    if indexed:
        index_bootstrap(wanted(path), engine=LocalEngine())
    before, live = both(path), open_local(path).view.live_slices()
    largest = max(one.base_bytes for one in live)
    options = {**LOCK, "hoodie.clustering.plan.strategy.max.bytes.per.group": str(largest * 5 // 2)}
    ts = clustering.schedule(request(path, Mode.SCHEDULE, options)).instant
    assert ts
    others = OtherWriters(path)
    write = others.begin(live[0])
    assert clustering.execute(request(path, Mode.EXECUTE, options), engine=LocalEngine()).exit_code == 7
    others.end(write)
    report = roll_back_instant(path, ts)
    assert report.state is Outcome.COMPLETED and files_of(path, ts) == set()
    assert [seen.equals(before[0]) for seen in both(path)] == [True, True]
    assert open_local(path).view.live_slices() == live
    assert not open_local(path).timeline.pending()
    assert not indexed or indexed_locations(path) == real_locations(path)


def test_a_savepoint_since(path: Path) -> None:
    ts = cluster(path)
    timeline = open_local(path).timeline
    for state in (State.INFLIGHT, State.COMPLETED):
        timeline.publish(LATER, Action.SAVEPOINT, state, b"", "20990201000000000")
    with pytest.raises(ConfigError, match=f"the savepoint {LATER} holds the files of {ts}"):
        roll_back_instant(path, ts)


def test_a_clean_that_is_about_to_take_an_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = sorted(live_files(path))[0]
    ts = cluster(path)
    plan = CleanerPlan("KEEP_LATEST_COMMITS", "", "", {str(Path(old).parent): (f"file:{path}/{old}",)})
    monkeypatch.setattr(Timeline, "read_cleaner_plan", lambda self, instant: plan)
    open_local(path).timeline.publish(CLEAN, Action.CLEAN, State.REQUESTED)
    with pytest.raises(ConflictError, match=f"the pending clean {CLEAN}"):
        roll_back_instant(path, ts)


def test_another_number_of_rows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ts = cluster(path)
    read = Timeline.read_commit

    def one_less(self: Timeline, instant: object) -> CommitMetadata:
        commit = read(self, instant)  # type: ignore[arg-type]
        stats = {
            partition: tuple(replace(stat, num_writes=stat.num_writes - 1) for stat in found)
            for partition, found in commit.stats.items()
        }
        return replace(commit, stats=stats)

    monkeypatch.setattr(Timeline, "read_commit", one_less)
    with pytest.raises(CheckFailed, match="rows, and its own") as raised:
        roll_back_instant(path, ts)
    assert raised.value.exit_code == 5
    assert files_of(path, ts)


@pytest.mark.thorough
@pytest.mark.sweep
@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize(("release", "number"), TWO_SHARES)
def test_every_write_may_be_the_last(release: str, number: int, indexed: bool, tmp_path: Path) -> None:
    def clustered(path: Path) -> str:
        if not indexed:
            return cluster(path)
        index_bootstrap(wanted(path), engine=LocalEngine())
        ts = cluster(path)
        # So that the index cannot just forget where the keys went; on 1.2.0 it was due after the clustering.
        if not may_be_merged(open_metadata(path), ts):
            compact(path)
        return ts

    whole = unpack(release, tmp_path / "whole")
    before = both(whole)[0]
    ts = clustered(whole)
    made = tmp_path / "made"
    shutil.copytree(whole, made)
    storage = FaultyStorage(str(whole))
    roll_back_instant(whole, ts, storage)
    assert len(storage.log) > 15
    for survived in share(places(storage.log), number, 4):
        path = tmp_path / str(survived)
        shutil.copytree(made, path)
        with pytest.raises(Killed) as killed:
            roll_back_instant(path, ts, FaultyStorage(str(path), survived))
        at = f"after {survived} writes: {killed.value}"
        assert all(seen.equals(before) for seen in both(path)), at
        try:
            roll_back_instant(path, ts)
        except NothingToDo:
            assert survived == len(storage.log) - 1 or not timeline_files(path, ts), at
        assert all(seen.equals(before) for seen in both(path)), at
        assert not open_local(path).timeline.pending(), at
        assert files_of(path, ts) == set(), at
        if indexed:
            assert indexed_locations(path) == real_locations(path), at
            assert not (path / ".hoodie/.temp").exists() or not list((path / ".hoodie/.temp").iterdir()), at
        shutil.rmtree(path)
