"""Compaction of the metadata table: when it is due, and that readers find the same, whenever it is killed."""

import json
import pickle
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_services.clock import SystemClock
from hudi_services.codecs.avro import read_container
from hudi_services.codecs.compaction_plan import CompactionPlan, encode_compaction_plan
from hudi_services.commit.times import Times
from hudi_services.engine import LocalEngine
from hudi_services.errors import ConflictError, CorruptFile
from hudi_services.jobs import clustering
from hudi_services.jobs.index_bootstrap import index_bootstrap
from hudi_services.metadata.file_groups.compaction import Compacted, compact
from hudi_services.metadata.file_groups.merged_base import MergedBase, MergeTask, write_merged_base
from hudi_services.metadata.metadata_table import MetadataTable
from hudi_services.metadata.records.keys import BLOOM_FILTERS, COLUMN_STATS, FILES, RECORD_INDEX, partition_id
from hudi_services.metadata.records.model import FileEntry, FilesRecord, Record, RecordType
from hudi_services.metadata_updates.delta_commit import write_delta_commit
from hudi_services.metadata_updates.rollback.lasting import may_be_merged
from hudi_services.runs.report import Report, RunState
from hudi_services.runs.request import Mode
from hudi_services.table.log_naming import BySlice
from hudi_services.timeline import instant as instants
from hudi_services.timeline.compaction_trigger import Trigger
from hudi_services.timeline.instant import Action

from .faulty_storage import FaultyStorage, Killed
from .metadata_tables import compact as compact_again
from .metadata_tables import far_future, open_metadata, stats_of, unpack_compacted
from .tables import RELEASES, as_written, open_local, request, unpack
from .test_index_bootstrap import indexed_locations, real_locations, wanted

COMPACT = {"hoodie.metadata.compact.max.delta.commits": "1"}
P = "day=2026-01-01"
Run = Callable[[Sequence[MergeTask]], Sequence[MergedBase]]


def run_here(tasks: Sequence[MergeTask]) -> list[MergedBase]:
    """As tasks reach an executor."""
    return [write_merged_base(pickle.loads(pickle.dumps(task)), "0-0-0") for task in tasks]


def compacted(path: Path, limit: int = 1, run: Run = run_here) -> Compacted | None:
    return due(path, Trigger(commits=limit), run)


def due(path: Path, trigger: Trigger, run: Run = run_here) -> Compacted | None:
    return compact(open_metadata(path), trigger, SystemClock().now(), Times(open_local(path), 0).next, run)


def contents(path: Path) -> dict[str, dict[str, Record]]:
    metadata = open_metadata(path)
    return {one: {r.key: r for r in metadata.reader(one).scan()} for one in metadata.partitions}


def cluster(path: Path, options: Mapping[str, str] = COMPACT) -> Report:
    wish = request(path, Mode.SCHEDULE_AND_EXECUTE, dict(options))
    return clustering.schedule_and_execute(wish, engine=LocalEngine())


def indexed(release: str, folder: Path) -> Path:
    """With a record index, and log files on top of it."""
    path = unpack(release, folder)
    as_written(path)
    index_bootstrap(wanted(path), engine=LocalEngine())
    cluster(path, {"hoodie.metadata.compact.max.delta.commits": "1000"})
    return path


def write(
    path: Path, records: Mapping[str, Sequence[Record]], deletes: Mapping[str, Sequence[str]], number: int
) -> None:
    """One delta commit that belongs to the metadata table alone."""
    metadata = open_metadata(path)
    times = far_future(number * 10)
    ts = times() + ("010" if isinstance(metadata.log_naming, BySlice) else "")
    write_delta_commit(metadata, ts, records, times, deletes=deletes)


def listing(names: Mapping[str, int]) -> FilesRecord:
    """Sizes by name; less than 0 stands for a deletion."""
    entries = {name: FileEntry(max(size, 0), size < 0) for name, size in names.items()}
    return FilesRecord(partition_id(P), RecordType.FILES, entries)


@pytest.mark.thorough
def test_it_is_due_as_hudi_says(tmp_path: Path) -> None:
    """hoodie.metadata.compact.trigger.strategy and hoodie.metadata.compact.max.delta.seconds of 1.2.0."""
    path, later = unpack("1.2.0", tmp_path), 10**9
    # Before the first compaction there is no time to count from: Hudi 1.2.0 fails to parse the instant of zeros.
    first = due(path, Trigger("TIME_ELAPSED", seconds=later))
    assert first is not None
    cluster(path, {"hoodie.metadata.compact.max.delta.commits": "1000"})
    deltas = open_metadata(path).timeline.completed({Action.DELTA_COMMIT})
    count = sum(1 for one in deltas if one.ts > first.instant)
    for trigger in (
        Trigger("TIME_ELAPSED", seconds=later),
        Trigger("NUM_AND_TIME", count, later),
        Trigger("NUM_AND_TIME", count + 1, 1),
        Trigger("NUM_OR_TIME", count + 1, later),
        Trigger("NUM_COMMITS_AFTER_LAST_REQUEST", count + 1),
    ):
        assert due(path, trigger) is None, trigger
    for trigger in (
        Trigger("TIME_ELAPSED", 10**6, 0),
        Trigger("NUM_AND_TIME", 1, 0),
        Trigger("NUM_OR_TIME", 1, later),
        Trigger("NUM_COMMITS_AFTER_LAST_REQUEST", 1),
    ):
        cluster(path, {"hoodie.metadata.compact.max.delta.commits": "1000"})
        assert due(path, trigger) is not None, trigger
        # No delta commit since: nothing to merge, however long ago the last compaction was.
        assert due(path, replace(trigger, seconds=0)) is None, trigger
    by_time = {
        "hoodie.metadata.compact.trigger.strategy": "TIME_ELAPSED",
        "hoodie.metadata.compact.max.delta.commits": "1",
    }
    assert "metadata_compaction" not in cluster(path, by_time).tables
    time.sleep(1)
    assert cluster(path, {**by_time, "hoodie.metadata.compact.max.delta.seconds": "1"}).tables["metadata_compaction"]


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
def test_readers_find_the_same(release: str, tmp_path: Path) -> None:
    path = indexed(release, tmp_path)
    before = contents(path)
    groups = {one: len(open_metadata(path).file_groups(one)) for one in before}
    done = compacted(path)
    assert done is not None and done.file_groups == sum(groups.values()) and done.log_files > done.file_groups
    assert contents(path) == before
    assert indexed_locations(path) == real_locations(path)
    metadata = open_metadata(path)
    for one, count in groups.items():
        slices = metadata.file_groups(one)
        assert len(slices) == count
        assert all(s.base_instant == done.instant and s.base_file and not s.log_files for s in slices)
    assert done.instant == metadata.timeline.instants[-1].ts and not metadata.timeline.pending()
    # Nothing new: nothing to do. What comes on top then has the new slices below it.
    assert compacted(path) is None
    cluster(path, {})
    assert indexed_locations(path) == real_locations(path)
    (group, *_) = open_metadata(path).file_groups(FILES)
    assert group.base_instant == done.instant and len(group.log_files) == 1
    assert (group.log_files[0].instant == done.instant) == (release == "0.15.0")
    assert compacted(path, limit=2) is None
    assert compacted(path) is not None
    assert indexed_locations(path) == real_locations(path)


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
def test_the_commit_that_makes_it_due_compacts(release: str, tmp_path: Path) -> None:
    path = indexed(release, tmp_path)
    deltas = len(open_metadata(path).timeline.completed({Action.DELTA_COMMIT}))
    report = cluster(path, {"hoodie.metadata.compact.max.delta.commits": str(deltas + 2)})
    assert "metadata_compaction" not in report.tables and report.warnings == []
    report = cluster(path, {"hoodie.metadata.compact.max.delta.commits": str(deltas + 2)})
    assert report.state is RunState.COMPLETED and report.warnings == []
    (row,) = report.tables["metadata_compaction"]
    commit = open_metadata(path).timeline.completed({Action.COMMIT})[-1]
    assert row["instant"] == commit.ts
    assert report.instant and may_be_merged(open_metadata(path), report.instant)
    stats = open_metadata(path).timeline.read_commit(commit)
    assert stats.operation == "COMPACT" and stats.compacted
    assert sum(map(len, stats.stats.values())) == row["file_groups"]
    for one in (one for of_partition in stats.stats.values() for one in of_partition):
        assert (path / ".hoodie/metadata" / one.path).stat().st_size == one.file_size
    assert indexed_locations(path) == real_locations(path)


@pytest.mark.parametrize("release", RELEASES)
def test_what_was_deleted_stays_deleted(release: str, tmp_path: Path) -> None:
    """Keys in delete blocks, deletions in listings of what is there and of what is not, statistics that say it."""
    path = unpack(release, tmp_path)
    names = sorted(contents(path)[FILES][partition_id(P)].entries)  # type: ignore[union-attr]
    write(path, {FILES: [listing({names[0]: -1, "unknown": -1, "added": 7})]}, {}, 0)
    if COLUMN_STATS in open_metadata(path).partitions:
        gone = [record.key for record in stats_of(open_metadata(path), COLUMN_STATS)][::2]
        write(path, {}, {COLUMN_STATS: gone}, 1)
        assert not gone or not contents(path)[COLUMN_STATS].keys() & set(gone)
    before = contents(path)
    assert compacted(path) is not None
    assert contents(path) == before
    record = before[FILES][partition_id(P)]
    assert isinstance(record, FilesRecord) and names[0] not in record.entries and record.entries["unknown"].deleted
    # With a base file below, each of them means what it did.
    write(path, {FILES: [listing({"unknown": 5, "added": -1})]}, {}, 2)
    assert compacted(path) is not None
    record = contents(path)[FILES][partition_id(P)]
    assert isinstance(record, FilesRecord)
    assert record.entries["unknown"] == FileEntry(5) and "added" not in record.entries


@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_a_group_of_which_nothing_is_left(release: str, tmp_path: Path) -> None:
    path = indexed(release, tmp_path)
    write(path, {}, {RECORD_INDEX: list(indexed_locations(path))}, 0)
    assert indexed_locations(path) == {}
    done = compacted(path)
    assert done is not None and done.file_groups == sum(
        len(open_metadata(path).file_groups(one)) for one in contents(path) if one != RECORD_INDEX
    )
    assert indexed_locations(path) == {}
    assert not list((path / ".hoodie/metadata/record_index").glob(f"*{done.instant}.hfile"))


@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_the_commit_says_what_hudi_says(release: str, tmp_path: Path) -> None:
    """Of a compaction of its own: the same fields, with the same values where they do not depend on the files."""
    path = unpack_compacted(release, tmp_path)
    (real,) = stats_of_compactions(path)
    compact_again(path)
    _, done = stats_of_compactions(path)
    assert done.keys() == real.keys()
    for partition, stats in done.items():
        for ours, theirs in zip(stats, real[partition], strict=True):
            assert ours.keys() == theirs.keys()
            same = {"fileId", "partitionPath", "cdcStats", "tempPath", "totalCorruptLogBlock", "totalRollbackBlocks"}
            assert {ours[one] == theirs[one] for one in same} == {True}
            counts = ("totalLogFilesCompacted", "totalLogBlocks", "totalLogRecords", "totalLogSizeCompacted")
            assert all(ours[one] > 0 for one in counts) and ours["numWrites"] > 0
            assert ours["prevCommit"] == theirs["path"].rpartition("_")[2].removesuffix(".hfile")


def stats_of_compactions(path: Path) -> list[dict[str, list[dict[str, Any]]]]:
    timeline = open_metadata(path).timeline
    found = []
    for instant in timeline.completed({Action.COMMIT}):
        data = timeline.read_details(instant.file_name)
        tree = json.loads(data) if timeline.layout.number == 1 else read_container(data, instant.file_name)
        assert (
            tree["operationType"] == "COMPACT"
            and tree["compacted"] is True
            and set(tree["extraMetadata"]) == {"schema"}
        )
        found.append({one: sorted(s, key=lambda x: x["fileId"]) for one, s in tree["partitionToWriteStats"].items()})
    return found


KEYS = st.sampled_from([partition_id(P), "day=2", "day=3"])
NAMES = st.dictionaries(st.sampled_from("abc"), st.integers(-1, 3), max_size=3)
COMMITS = st.lists(
    st.tuples(st.dictionaries(KEYS, NAMES, max_size=3), st.sets(KEYS, max_size=1)), min_size=1, max_size=4
)


@pytest.mark.thorough
@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_any_commits(release: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    made = unpack(release, tmp_path_factory.mktemp("made"))

    @settings(max_examples=5, deadline=None)
    @given(st.lists(COMMITS, min_size=1, max_size=3))
    def check(rounds: list[list[tuple[dict[str, dict[str, int]], set[str]]]]) -> None:
        path = tmp_path_factory.mktemp("copy") / "table"
        shutil.copytree(made, path)
        number = 0
        for commits in rounds:
            for listings, gone in commits:
                kept = {key: names for key, names in listings.items() if key not in gone}
                records = [FilesRecord(key, RecordType.FILES, listing(names).entries) for key, names in kept.items()]
                write(path, {FILES: records}, {FILES: sorted(gone)}, number)
                number += 1
            before = contents(path)
            compacted(path)
            assert contents(path) == before
            (group,) = open_metadata(path).file_groups(FILES)
            assert not group.log_files
        shutil.rmtree(path)

    check()


def in_the_compaction(log: Sequence[str]) -> list[int]:
    """How many writes a run survives that is killed in the compaction of the metadata table, or right after it.

    Of the files that its tasks write, one in the middle will do.
    """
    begun = next(number for number, one in enumerate(log) if one.endswith(".compaction.requested"))
    files = [number for number, one in enumerate(log) if one.startswith("write") and number > begun]
    assert len(files) > 3 and log[files[-1] + 1].endswith(".commit")
    return [begun, begun + 1, begun + 2, files[len(files) // 2], files[-1] + 1, files[-1] + 2]


@pytest.mark.thorough
@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_killed_at_every_write(release: str, tmp_path: Path) -> None:
    made = indexed(release, tmp_path / "made")
    clustering.schedule(request(made, Mode.SCHEDULE))
    whole = tmp_path / "whole"
    shutil.copytree(made, whole)
    counted = FaultyStorage(str(whole))
    clustering.execute(request(whole, Mode.EXECUTE, COMPACT), counted, LocalEngine())
    for survived in in_the_compaction(counted.log):
        # A folder of its own: a process remembers the numbers of the leases of a folder.
        path = tmp_path / f"killed_{survived}"
        shutil.copytree(made, path)
        with pytest.raises(Killed):
            clustering.execute(request(path, Mode.EXECUTE, COMPACT), FaultyStorage(str(path), survived), LocalEngine())
        real = real_locations(path)
        assert indexed_locations(path) == real, survived
        stored = {one.path for one in open_local(path).storage.list_tree(P) if one.path.endswith(".parquet")}
        assert stored == {f"{P}/{name}" for name in open_metadata(path).list_partition(P)}
        left = open_metadata(path).timeline.pending()
        # What is written meanwhile lies on top of the plan that is left, and is not merged with it.
        report = cluster(path, {"hoodie.metadata.compact.max.delta.commits": "1000"})
        assert report.state is RunState.COMPLETED and report.warnings == []
        assert ("metadata_compaction" in report.tables) == bool(left)
        metadata = open_metadata(path)
        assert not metadata.timeline.pending()
        assert indexed_locations(path) == real_locations(path) != real, survived
        if left:
            assert all(len(one.log_files) == 1 for one in metadata.file_groups(RECORD_INDEX)), survived
        assert compacted(path) is not None
        assert indexed_locations(path) == real_locations(path), survived


@pytest.mark.thorough
@pytest.mark.spread(2)
@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
@pytest.mark.parametrize("error", [CorruptFile("broken"), MemoryError("more")])
def test_a_failure_never_fails_the_commit(release: str, error: Exception, tmp_path: Path) -> None:
    path = indexed(release, tmp_path)

    class Fails(LocalEngine):
        def map(self, function, tasks, description, progress):  # type: ignore[no-untyped-def]
            if description == "compact the metadata table":
                super().map(function, tasks[:2], description, progress)
                raise error
            return super().map(function, tasks, description, progress)

    clustering.schedule(request(path, Mode.SCHEDULE))
    report = clustering.execute(request(path, Mode.EXECUTE, COMPACT), engine=Fails())
    assert report.state is RunState.COMPLETED
    assert len(report.warnings) == 1 and "was not compacted" in report.warnings[0]
    assert indexed_locations(path) == real_locations(path)
    (left,) = open_metadata(path).timeline.pending()
    assert cluster(path, {}).tables["metadata_compaction"][0]["instant"] == left.ts
    assert indexed_locations(path) == real_locations(path)


def pending_on_the_table(metadata: MetadataTable) -> None:
    metadata.data_timeline.publish("20200101000000000", Action.COMMIT, instants.State.REQUESTED)


def pending_here(metadata: MetadataTable) -> None:
    metadata.timeline.publish("20200101000000000", Action.DELTA_COMMIT, instants.State.REQUESTED)


def plan_of_hudi(metadata: MetadataTable) -> None:
    data = encode_compaction_plan(CompactionPlan(), metadata.config.version.release)
    metadata.timeline.publish("20200101000000000", Action.COMPACTION, instants.State.REQUESTED, data)


def index_being_built(metadata: MetadataTable) -> None:
    changes: dict[str, str | None] = {"hoodie.table.metadata.partitions.inflight": BLOOM_FILTERS}
    metadata.table_config.update(metadata.storage, changes)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("obstacle", [pending_on_the_table, pending_here, plan_of_hudi, index_being_built])
def test_it_waits_for(release: str, obstacle: Callable[[MetadataTable], None], tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    obstacle(open_metadata(path))
    before = open_metadata(path).timeline.sizes
    assert compacted(path) is None
    assert open_metadata(path).timeline.sizes == before


def test_what_others_left_of_it_goes(tmp_path: Path) -> None:
    path = indexed("1.2.0", tmp_path)
    strays: list[Path] = []

    def killed_hudi(tasks: Sequence[MergeTask]) -> list[MergedBase]:
        for task in tasks:
            strays.append(path / task.path.replace("_0-0-0_", "_3-262-730_"))
            strays[-1].write_bytes(b"half a file")
        return run_here(tasks)

    assert compacted(path, run=killed_hudi) is not None
    assert strays and not any(one.exists() for one in strays)
    assert indexed_locations(path) == real_locations(path)


def test_taken_over_meanwhile(tmp_path: Path) -> None:
    path = indexed("1.2.0", tmp_path)

    def slow(tasks: Sequence[MergeTask]) -> list[MergedBase]:
        assert compacted(path) is not None
        return run_here(tasks)

    with pytest.raises(ConflictError, match="took over"):
        compacted(path, run=slow)
    assert len(open_metadata(path).timeline.completed({Action.COMMIT})) == 1
