"""The metadata table against the table: exactly the wrong records are found, and repaired by one commit."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hudi_services.cli import app
from hudi_services.codecs.clean_plan import (
    CleanerPlan,
    CleanMetadata,
    encode_clean_metadata,
    encode_cleaner_plan,
)
from hudi_services.engine import LocalEngine
from hudi_services.errors import CheckFailed, CorruptFile, NotFound, PartlyDone, UnsupportedTable
from hudi_services.file_names import parse_base_file
from hudi_services.file_records.doubts import Doubt
from hudi_services.file_records.expected_state import ExpectedState
from hudi_services.file_records.footers import Described, FileSource, FooterReader
from hudi_services.file_records.members import Member
from hudi_services.jobs import clean, validate
from hudi_services.jobs.index_bootstrap import index_bootstrap
from hudi_services.jobs.rollback import rollback
from hudi_services.jobs.undo import undo
from hudi_services.limits import LARGEST_FILE
from hudi_services.metadata.records.keys import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
    column_stats_key,
)
from hudi_services.metadata.records.model import FileEntry, FilesRecord, RecordType, StatsRecord
from hudi_services.metadata.statistics.indexed_columns import index_columns
from hudi_services.metadata.statistics.values import wrap
from hudi_services.model import CommitMetadata, FileSlice
from hudi_services.options import resolve
from hudi_services.runs.report import CheckResult, Report
from hudi_services.runs.report import RunState as Outcome
from hudi_services.runs.request import CleanRequest, ValidateRequest
from hudi_services.runs.retries import run_with_retries
from hudi_services.schema.column_type import ColumnType
from hudi_services.schema.column_type import Kind as TypeKind
from hudi_services.storage import FileInfo, Storage
from hudi_services.stores import open_storage
from hudi_services.stores.local import LocalStorage
from hudi_services.table_config import TableConfig
from hudi_services.timeline.instant import Action, State
from hudi_services.validation.column_stats import ColumnStatsCheck
from hudi_services.validation.model import DifferenceKind, Severity

from .corruptions import (
    DEAD,
    GONE,
    Damage,
    Finding,
    add_index,
    do_damage,
    metadata_of,
    write_own,
    wrong_blooms,
    wrong_column_stats,
    wrong_keys,
    wrong_listing,
    wrong_pairs,
    wrong_ranges,
)
from .faulty_storage import FaultyStorage, Killed
from .metadata_tables import compact, files_by_partition, open_metadata
from .repairs import P, both, cluster, fail_newest, newest, repair
from .shares import TWO_SHARES, share
from .tables import RELEASES, open_local, unpack
from .test_index_bootstrap import indexed_locations, real_locations, wanted
from .test_quarantine import tree

QUICK = {"hoodie.time.generator.max_expected_clock_skew_ms": "0", "hoodie.write.lock.wait_time_ms": "10"}
PREFIXES = {BLOOM_FILTERS: "bloom-filters", COLUMN_STATS: "col-stats"}


def run(path: Path, storage: Storage | None = None, **how: bool) -> Report:
    wanted = ValidateRequest(base_path=str(path), options=resolve([("test", QUICK)]), **how)
    return run_with_retries(lambda one: validate.validate(one, storage), wanted, 0, lambda seconds: None)


def found(report: Report, severity: Severity | None = None, listed: str = "differences") -> set[Finding]:
    rows = [r for r in report.tables[listed] if severity is None or r["severity"] == severity.value]
    return {(r["metadata_partition"], r["kind"], r["data_partition"], r["file"], r["column"]) for r in rows}  # type: ignore[misc]


def unsure(report: Report) -> set[tuple[Any, ...]]:
    return {(row["data_partition"], row["file"], row["reason"]) for row in report.tables["unsure"]}


def delta_commits(path: Path) -> list[str]:
    return [i.ts for i in open_metadata(path).timeline.completed({Action.DELTA_COMMIT})]


def with_indexes(release: str, folder: Path, *indexes: str) -> Path:
    """A table with these indexes, too, filled by a repair."""
    path = unpack(release, folder)
    for index in indexes:
        add_index(path, index, PREFIXES[index])
    if indexes:
        assert run(path, repair=True).state is Outcome.COMPLETED
    return path


@pytest.mark.parametrize("release", RELEASES)
def test_a_table_of_hudi_agrees(release: str, tmp_path: Path) -> None:
    report = run(unpack(release, tmp_path))
    assert (report.state, report.exit_code, report.error) == (Outcome.COMPLETED, 0, None)
    assert found(report) == unsure(report) == set()
    counts = {row["metadata_partition"]: row["records"] for row in report.tables["partitions"]}
    listed = {FILES: 12}
    assert counts == (listed if release == "0.15.0" else {**listed, COLUMN_STATS: 100, PARTITION_STATS: 20})
    assert [(c.name, c.result) for c in report.checks] == [(name, CheckResult.PASSED) for name in counts]


WRONGS: dict[str, tuple[Callable[[Path], Damage], tuple[str, ...]]] = {
    FILES: (wrong_listing, ()),
    COLUMN_STATS: (wrong_column_stats, (COLUMN_STATS,)),
    PARTITION_STATS: (wrong_ranges, ()),
    BLOOM_FILTERS: (wrong_blooms, (BLOOM_FILTERS,)),
}


CASES = [
    (release, index) for release in RELEASES for index in WRONGS if (release, index) != ("0.15.0", PARTITION_STATS)
]


@pytest.mark.thorough
@pytest.mark.parametrize(("release", "index"), CASES)
def test_what_is_wrong_is_found_exactly_and_mended(release: str, index: str, tmp_path: Path) -> None:
    wrong, needed = WRONGS[index]
    path = unpack(release, tmp_path)
    ready = open_local(path).config.metadata_partitions
    missing = tuple(name for name in needed if name not in ready)
    shutil.rmtree(path)
    path = with_indexes(release, tmp_path, *missing)
    rows = both(path)
    damage = wrong(path)
    do_damage(path, damage)
    before = delta_commits(path)

    report = run(path)
    assert found(report) == damage.found
    assert found(report, Severity.HARMLESS) == damage.harmless
    assert (report.state, report.exit_code) == (Outcome.FAILED, CheckFailed.exit_code)
    assert {c.name for c in report.checks if c.result is CheckResult.FAILED} == {index}
    assert delta_commits(path) == before

    report = run(path, repair=True)
    assert (report.state, report.exit_code) == (Outcome.COMPLETED, 0), report.tables["differences"]
    assert [row["metadata_partition"] for row in report.tables["repaired"]] == [index]
    assert found(report, listed="repaired_differences") == damage.found
    assert delta_commits(path) == [*before, report.instant]
    assert open_local(path).timeline.find(report.instant or "") is None
    assert found(report) == set()
    assert run(path).exit_code == 0
    assert both(path) == rows


def only_harmless(damage: Damage) -> Damage:
    """The records of a file and a column that have nothing harmful."""
    harmful = {(file, column) for _, _, _, file, column in damage.found - damage.harmless}
    known = {(file, column) for _, _, _, file, column in damage.harmless} - harmful
    records = {
        index: [one for one in some if isinstance(one, StatsRecord) and (one.file_name, one.column) in known]
        for index, some in damage.records.items()
    }
    return Damage(records, {}, {one for one in damage.harmless if one[3:] in known})


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
def test_harmless_differences_fail_only_a_strict_run(release: str, tmp_path: Path) -> None:
    path = with_indexes(release, tmp_path, *([COLUMN_STATS] if release == "0.15.0" else []))
    damage = only_harmless(wrong_column_stats(path))
    do_damage(path, damage)
    report = run(path)
    assert (report.state, report.exit_code, report.error) == (Outcome.COMPLETED, 0, None)
    assert found(report) == found(report, Severity.HARMLESS) == damage.found
    assert {kind for _, kind, *_ in damage.found} == {
        kind.value
        for kind in (
            DifferenceKind.WRONG_MINIMUM,
            DifferenceKind.WRONG_MAXIMUM,
            DifferenceKind.WRONG_COUNTS,
            DifferenceKind.STALE_STATISTICS,
        )
    }
    total = len(report.tables["differences"])
    assert report.reason == f"the metadata table agrees with the table; {total} harmless differences"
    (row,) = (row for row in report.tables["partitions"] if row["metadata_partition"] == COLUMN_STATS)
    assert row["differences"] == row["harmless"] == total
    (check,) = (check for check in report.checks if check.name == COLUMN_STATS)
    assert check.result is CheckResult.PASSED and f"{total} harmless differences" in check.detail

    strict = run(path, strict=True)
    assert (strict.state, strict.exit_code) == (Outcome.FAILED, CheckFailed.exit_code)
    assert strict.tables == report.tables
    assert {c.result for c in strict.checks if c.name == COLUMN_STATS} == {CheckResult.FAILED}

    assert run(path, repair=True).tables["differences"] == []
    assert run(path, strict=True).exit_code == 0


def _as_compacted_by_0_15(record: StatsRecord) -> StatsRecord:
    """A decimal as Hudi 0.15's compaction leaves it: the bytes of DecimalWrapper, of scale 15, in a BytesWrapper."""
    bounds = (wrap(value, record.bound, typed=False) for value in (record.minimum, record.maximum))
    minimum, maximum = (bound[1] if bound else None for bound in bounds)
    return replace(record, bound=ColumnType(TypeKind.BYTES), minimum=minimum, maximum=maximum)


@pytest.mark.thorough
def test_decimals_that_a_compaction_made_bytes(tmp_path: Path) -> None:
    path = with_indexes("0.15.0", tmp_path, COLUMN_STATS)
    stored = metadata_of(open_local(path)).reader(COLUMN_STATS).scan()
    prices = [one for one in stored if isinstance(one, StatsRecord) and one.column == "price"]
    assert {one.bound.kind for one in prices} == {TypeKind.DECIMAL} and len(prices) == 10
    compacted = [_as_compacted_by_0_15(one) for one in prices]
    gone = [replace(one, minimum=None, maximum=None, deleted=True) for one in prices]
    write_own(path, {COLUMN_STATS: [*gone, *compacted]})
    assert found(run(path)) == set()

    # One of another file's is still wrong, and mended above the bytes.
    other = next(one for one in compacted if (one.minimum, one.maximum) != (compacted[0].minimum, compacted[0].maximum))
    wrong = replace(compacted[0], minimum=other.minimum, maximum=other.maximum)
    write_own(path, {COLUMN_STATS: [gone[0], wrong]})
    assert {(kind, file) for _, kind, _, file, _ in found(run(path))} == {
        (kind.value, prices[0].file_name)
        for kind, side in ((DifferenceKind.WRONG_MINIMUM, "minimum"), (DifferenceKind.WRONG_MAXIMUM, "maximum"))
        if getattr(other, side) != getattr(compacted[0], side)
    }
    assert run(path, repair=True).exit_code == run(path).exit_code == 0


def found_keys(report: Report) -> set[tuple[Any, ...]]:
    rows = [row for row in report.tables["differences"] if row["key"] is not None]
    return {(row["kind"], row["data_partition"], row["file"], row["key"]) for row in rows}


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
def test_wrong_keys_are_found_exactly_and_mended(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    index_bootstrap(wanted(path), engine=LocalEngine())
    cluster(path)
    assert run(path).exit_code == 0
    real = indexed_locations(path)
    damage = wrong_keys(path)
    do_damage(path, damage)

    report = run(path)
    assert found_keys(report) == damage.keys
    assert len(report.tables["differences"]) == 10
    assert (report.state, report.exit_code) == (Outcome.FAILED, CheckFailed.exit_code)

    report = run(path, repair=True)
    assert (report.state, report.exit_code) == (Outcome.COMPLETED, 0), report.tables["differences"]
    assert report.tables["repaired"] == [{"metadata_partition": RECORD_INDEX, "records": 10}]
    assert indexed_locations(path) == real == real_locations(path)
    assert run(path).exit_code == 0
    assert not list((path / ".hoodie").rglob("validate/*"))


def with_secondary_index(path: Path, column: str, version: str | None) -> str:
    """An empty one; its name."""
    index = f"secondary_index_{column}"
    definition = {"indexName": index, "indexType": "secondary_index", "sourceFields": [column]}
    definition |= {"version": version} if version else {}
    file = path / ".hoodie/.index_defs/index.json"
    definitions = json.loads(file.read_text())
    definitions["indexDefinitions"][index] = definition
    file.write_text(json.dumps(definitions))
    add_index(path, index, f"secondary-index-{column}")
    return index


@pytest.mark.thorough
@pytest.mark.spread(3)
# A column that the files do not have has nulls in all rows.
@pytest.mark.parametrize(
    ("release", "column", "version"),
    [("1.0.2", "label", None), ("1.0.2", "ts", None), ("1.2.0", "label", "V2"), ("1.2.0", "nowhere", "V2")],
)
def test_wrong_pairs_of_a_secondary_index_are_found_and_mended(
    release: str, column: str, version: str | None, tmp_path: Path
) -> None:
    path = unpack(release, tmp_path)
    index = with_secondary_index(path, column, version)
    rows = pq.read_table(path, columns=["_hoodie_record_key"], partitioning=None).num_rows
    report = run(path)
    assert {kind for kind, *_ in found_keys(report)} == {DifferenceKind.KEY_MISSING.value}
    assert 0 < len(report.tables["differences"]) <= rows
    assert run(path, repair=True).exit_code == run(path).exit_code == 0

    damage = wrong_pairs(path, index)
    do_damage(path, damage)
    report = run(path)
    assert found_keys(report) == damage.keys
    assert len(report.tables["differences"]) == 10
    harmless = [row["kind"] for row in report.tables["differences"] if row["severity"] == Severity.HARMLESS.value]
    assert harmless == 5 * [DifferenceKind.DEAD_KEY.value]
    report = run(path, repair=True)
    assert report.tables["repaired"] == [{"metadata_partition": index, "records": 10}]
    assert run(path).exit_code == 0


def test_a_secondary_index_that_cannot_be_judged(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    index = with_secondary_index(path, "price", "V2")
    report = run(path)
    assert report.exit_code == 0
    assert {reason for *_, reason in unsure(report)} == {Doubt.UNKNOWN_TYPE.value}
    assert {c.name: c.result for c in report.checks}[index] is CheckResult.SKIPPED


@pytest.mark.parametrize("release", RELEASES)
def test_what_lies_on_storage_and_is_not_committed_is_no_difference(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    file = next((path / P).glob("*.parquet"))
    base = parse_base_file(P, file.name, 0)
    assert base is not None
    stray = f"{base.file_id}_9-9-9_{base.instant}.parquet"
    rolled_back = f"{base.file_id}_9-9-9_{int(open_local(path).timeline.first_ts() or 0) + 1}.parquet"
    later = f"{base.file_id}_9-9-9_20980101000000000.parquet"
    ancient = f"{base.file_id}_9-9-9_20200101000000000.parquet"
    for name in (stray, rolled_back, later, ancient, "README.parquet"):
        shutil.copy(file, file.with_name(name))
    timeline = open_local(path).timeline
    timeline.publish("20980101000000000", Action.COMMIT, State.REQUESTED)
    report = run(path)
    assert (report.exit_code, found(report)) == (0, set())
    ((_, name, reason),) = unsure(report)
    assert name == ancient and "older than the timeline" in reason
    assert "1 file cannot be judged" in (report.reason or "")


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
def test_a_file_that_was_deleted_or_changed_on_storage(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    gone, broken = sorted((path / P).glob("*.parquet"))[:2]
    gone.unlink()
    with broken.open("ab") as file:
        file.write(b"more")
    report = run(path)
    stats = {d for d in found(report) if d[0] == COLUMN_STATS}
    assert found(report) - stats == {
        (FILES, DifferenceKind.STALE_FILE.value, P, gone.name, None),
        (FILES, DifferenceKind.WRONG_SIZE.value, P, broken.name, None),
    }
    assert {(kind, file) for _, kind, _, file, _ in stats} == (
        set() if release == "0.15.0" else {(DifferenceKind.STALE_STATISTICS.value, gone.name)}
    )
    assert {name for _, name, _ in unsure(report)} == (set() if release == "0.15.0" else {broken.name})
    run(path, repair=True)
    assert found(run(path)) == set()


def test_a_file_that_is_listed_and_there_without_its_commit(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    ts = fail_newest(path, markers="")
    for file in (path / ".hoodie/timeline").glob(f"{ts}.*"):
        file.unlink()
    report = run(path)
    assert {reason for _, _, reason in unsure(report)} == {
        "listed and there, but its instant is gone from the timeline"
    }
    assert {kind for index, kind, *_ in found(report) if index == FILES} == set()


class Watched(LocalStorage):
    """Calls `act` once, just before something that `trigger` recognises is read or listed."""

    def __init__(self, url: str, trigger: str, act: Callable[[], None]) -> None:
        super().__init__(url)
        self._trigger = trigger
        self._act: Callable[[], None] | None = act

    def _watch(self, path: str) -> None:
        if self._act is not None and self._trigger in path:
            act, self._act = self._act, None
            act()

    def list_dir(self, path: str) -> tuple[list[FileInfo], list[str]]:
        self._watch(f"list {path}")
        return super().list_dir(path)

    def read(self, path: str, limit: int = LARGEST_FILE) -> bytes:
        self._watch(f"read {path}")
        return super().read(path, limit)

    def create(self, path: str, data: bytes) -> None:
        self._watch(f"create {path}")
        super().create(path, data)


def clean_all(path: Path, storage: Storage | None = None) -> None:
    options = {**QUICK, "hoodie.clean.fileversions.retained": "1"}
    clean.clean(CleanRequest(base_path=str(path), options=resolve([("test", options)])), storage)


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("trigger", [f"list {P}", "read .hoodie/metadata/files"])
def test_no_false_alarm_beside_writers(release: str, trigger: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    done = []

    def act() -> None:
        cluster(path)
        clean_all(path)
        done.append(True)

    report = run(path, Watched(str(path), trigger, act))
    assert done
    assert (report.exit_code, found(report)) == (0, set()), report.error
    assert run(path).exit_code == 0


@pytest.mark.parametrize("release", RELEASES)
def test_what_a_pending_clean_deletes_is_no_difference(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path / "all")
    storage = FaultyStorage(str(path))
    clean_all(path, storage)
    first = next(i for i, entry in enumerate(storage.log) if entry.startswith(f"delete {P}"))
    shutil.rmtree(path)
    path = unpack(release, tmp_path / "half")
    with pytest.raises(Killed):
        clean_all(path, FaultyStorage(str(path), first + 1))
    report = run(path)
    assert (report.exit_code, found(report)) == (0, set())
    assert {reason for _, _, reason in unsure(report)} == {"a pending clean or rollback deletes it"}


@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
@pytest.mark.parametrize("release", RELEASES)
def test_a_partition_that_a_pending_clean_deletes_is_no_difference(release: str, state: State, tmp_path: Path) -> None:
    """Its folder goes first, and long before the listing of the metadata table when the clean is killed."""
    path = unpack(release, tmp_path)
    table = open_local(path)
    assert table.metadata is not None
    names = table.metadata.list_partition(P)
    last = table.timeline.completed_writes()[-1].ts
    plan = CleanerPlan(
        policy="KEEP_LATEST_COMMITS",
        earliest_to_retain=last,
        last_completed=last,
        files={P: tuple(str(path / P / name) for name in names)},
        partitions_to_delete=(P,),
        extra={},
        earliest_action="commit",
    )
    ts = "20261231000000000"
    content = encode_cleaner_plan(plan, table.config.version.release)
    table.timeline.publish(ts, Action.CLEAN, State.REQUESTED, content)
    if state is State.INFLIGHT:
        table.timeline.publish(ts, Action.CLEAN, state, content)
    shutil.rmtree(path / P)
    report = run(path)
    assert (report.exit_code, found(report)) == (0, set())
    assert unsure(report) == {(P, name, Doubt.GOING.value) for name in (*names, None)}


def test_files_of_the_metadata_table_that_are_cleaned_meanwhile(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)

    def fail() -> None:
        raise NotFound("gone")

    assert run(path, Watched(str(path), "read .hoodie/metadata/column_stats", fail)).exit_code == 0


@pytest.mark.thorough
def test_a_repair_does_only_what_is_still_wrong_under_the_lock(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    do_damage(path, wrong_listing(path))
    faster: list[Report] = []
    storage = Watched(str(path), "create .hoodie/.locks", lambda: faster.append(run(path, repair=True)))
    report = run(path, storage, repair=True)
    assert faster[0].exit_code == report.exit_code == 0
    assert report.tables["repaired"] == [] and report.instant is None
    assert delta_commits(path)[-1] == faster[0].instant


@pytest.mark.thorough
@pytest.mark.sweep
@pytest.mark.parametrize(("release", "number"), TWO_SHARES)
def test_killed_at_any_write_of_a_repair(release: str, number: int, tmp_path: Path) -> None:
    path = unpack(release, tmp_path / "whole")
    damages = [wrong_listing(path)] + ([wrong_column_stats(path), wrong_ranges(path)] if release == "1.2.0" else [])
    for damage in damages:
        do_damage(path, damage)
    wrong = found(run(path))
    shutil.copytree(path, tmp_path / "copy")
    storage = FaultyStorage(str(path))
    assert run(path, storage, repair=True).exit_code == 0
    for survived in share(range(len(storage.log)), number, 2):
        path = tmp_path / str(survived)
        shutil.copytree(tmp_path / "copy", path)
        with pytest.raises(Killed):
            run(path, FaultyStorage(str(path), survived), repair=True)
        report = run(path)
        assert found(report) in (wrong, set()), survived
        repaired = run(path, repair=True)
        assert (repaired.exit_code, found(repaired)) == (0, set()), survived
        assert not open_metadata(path).timeline.pending()


@pytest.mark.thorough
@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_the_next_commit_rolls_a_killed_repair_back(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path / "whole")
    old = next(s[0].base_file for s in open_local(path).view.all_slices(P).values() if len(s) > 1)
    assert old is not None
    write_own(path, {FILES: [FilesRecord(P, RecordType.FILES, {old.name: GONE})]})
    shutil.copytree(path, tmp_path / "copy")
    storage = FaultyStorage(str(path))
    run(path, storage, repair=True)
    completes = max(i for i, entry in enumerate(storage.log) if entry.endswith(".deltacommit"))
    with pytest.raises(Killed):
        run(tmp_path / "copy", FaultyStorage(str(tmp_path / "copy"), completes), repair=True)
    (pending,) = open_metadata(tmp_path / "copy").timeline.pending()
    cluster(tmp_path / "copy")
    metadata = open_metadata(tmp_path / "copy")
    assert not metadata.timeline.pending() and metadata.timeline.find(pending.ts) is None
    assert found(run(tmp_path / "copy")) == {(FILES, DifferenceKind.FILE_MISSING.value, P, old.name, None)}


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
def test_above_a_base_file(release: str, tmp_path: Path) -> None:
    """Log files are merged before the base file: one deletion of what both have takes it out of the log files only."""
    path = unpack(release, tmp_path)
    listing = files_by_partition(metadata_of(open_local(path)))[P]
    big, stale, missing = sorted(listing)[:3]
    write_own(path, {FILES: [FilesRecord(P, RecordType.FILES, {DEAD: FileEntry(7)})]})
    compact(path)
    assert found(run(path)) == {(FILES, DifferenceKind.STALE_FILE.value, P, DEAD, None)}
    entries = {DEAD: FileEntry(8), big: FileEntry(listing[big] + 1), missing: GONE}
    write_own(path, {FILES: [FilesRecord(P, RecordType.FILES, entries)]})
    (path / P / stale).unlink()
    wrong = found(run(path))
    assert {(kind, file) for index, kind, _, file, _ in wrong if index == FILES} == {
        (DifferenceKind.STALE_FILE.value, DEAD),
        (DifferenceKind.WRONG_SIZE.value, big),
        (DifferenceKind.FILE_MISSING.value, missing),
        (DifferenceKind.STALE_FILE.value, stale),
    }
    report = run(path, repair=True)
    assert (report.exit_code, found(report)) == (0, set())
    compact(path)
    assert run(path).exit_code == 0


@pytest.mark.parametrize("release", RELEASES)
def test_a_size_that_is_too_big_in_a_base_file_is_left(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    name, size = sorted(files_by_partition(metadata_of(open_local(path)))[P].items())[0]
    write_own(path, {FILES: [FilesRecord(P, RecordType.FILES, {name: FileEntry(size + 1)})]})
    compact(path)
    left = {(FILES, DifferenceKind.WRONG_SIZE.value, P, name, None)}
    report = run(path, repair=True)
    assert (report.exit_code, found(report)) == (CheckFailed.exit_code, left)
    assert "rebuild" in report.hint
    write_own(path, {FILES: [FilesRecord(P, RecordType.FILES, {DEAD: FileEntry(1)})]})
    report = run(path, repair=True)
    assert (report.state, report.exit_code) == (Outcome.PARTLY_DONE, PartlyDone.exit_code)
    assert found(report) == left
    assert report.tables["repaired"] == [{"metadata_partition": FILES, "records": 1}]


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
def test_statistics_above_a_base_file(release: str, tmp_path: Path) -> None:
    """Version 6 cannot narrow a range there, but mends all that may hide rows."""
    path = with_indexes(release, tmp_path, *((COLUMN_STATS,) if release == "0.15.0" else ()))
    compact(path)
    name = min(files_by_partition(metadata_of(open_local(path)))[P])
    (right,) = metadata_of(open_local(path)).reader(COLUMN_STATS).scan(column_stats_key("ts", P, name))
    assert isinstance(right, StatsRecord)
    for wrong, from_base in (
        (replace(right, minimum=right.maximum, value_count=1), False),
        (replace(right, minimum=right.minimum - 1, null_count=5), True),
    ):
        gone = replace(right, minimum=None, maximum=None, deleted=True)
        write_own(path, {COLUMN_STATS: [gone, replace(wrong, tight=True)]})
        if from_base:
            compact(path)
        # A range that is too wide harms nobody, and on version 6 the record of a log file only widens it.
        harms = not from_base and release != "0.15.0"
        assert run(path).exit_code == (CheckFailed.exit_code if harms else 0)
        assert run(path, strict=True).exit_code == CheckFailed.exit_code
        report = run(path, repair=True, strict=True)
        left = {(COLUMN_STATS, DifferenceKind.WRONG_MINIMUM.value, P, name, "ts")}
        stays = from_base and release == "0.15.0"
        assert (report.exit_code, found(report)) == ((7, left) if stays else (0, set()))


def test_what_hudi_says_of_row_groups_with_nothing_but_nulls(tmp_path: Path) -> None:
    """Zero for a bound, as parquet-mr does; seen in files of 0.15.0, 1.0.2 and 1.2.0."""
    path = unpack("1.2.0", tmp_path)
    table = open_local(path)
    file = next(s.base_file for s in table.view.latest_slices(P) if s.base_file)
    (true,) = metadata_of(table).reader(COLUMN_STATS).scan(column_stats_key("amount", P, file.name))
    assert isinstance(true, StatsRecord) and true.minimum > 0 and 0 < true.null_count < true.value_count
    all_null = replace(true, minimum=None, maximum=None, null_count=true.value_count)
    for right, stored, row_groups, kinds in (
        (true, replace(true, minimum=0.0), 2, []),
        (true, replace(true, minimum=0.0), 1, [DifferenceKind.WRONG_MINIMUM]),
        (true, replace(true, minimum=-1.0), 2, [DifferenceKind.WRONG_MINIMUM]),
        (true, replace(true, maximum=0.0), 2, [DifferenceKind.WRONG_MAXIMUM]),
        (all_null, replace(all_null, minimum=0.0, maximum=0.0), 1, []),
        (all_null, replace(all_null, minimum=0.0, maximum=1.0), 1, [DifferenceKind.WRONG_MAXIMUM]),
    ):
        write_own(path, {COLUMN_STATS: [replace(stored, tight=True)]})
        current = open_local(path)
        check = ColumnStatsCheck(metadata_of(current), ExpectedState(current))
        described = Described(Member(file, FileSlice.of_base(file), True), row_groups, [right], None)
        assert [one.kind for one in check.at([described])] == kinds


def test_a_file_without_rows_has_no_statistics(tmp_path: Path) -> None:
    """Hudi writes one, without row groups, when it deletes the last rows of a file group; in all three releases."""
    path = unpack("1.2.0", tmp_path)
    full = next((path / P).glob("*.parquet"))
    name = f"{DEAD.partition('_')[0]}_0-0-0_20260101000000000.parquet"
    pq.ParquetWriter(path / P / name, pq.read_schema(full)).close()
    files = [parse_base_file(P, one.name, one.stat().st_size) for one in (full, path / P / name)]
    table = open_local(path)
    source = FileSource.of(table.storage, table.slices, table.config, table.timeline)
    read = FooterReader(source, partial(index_columns, metadata_of(table))).read(
        [Member(file, FileSlice.of_base(file), True) for file in files if file]
    )
    assert [(one.row_groups, len(one.records)) for one in read if isinstance(one, Described)] == [(1, 10), (0, 0)]


@pytest.mark.thorough
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = unpack("1.2.0", tmp_path)
    write_own(path, {FILES: [FilesRecord(P, RecordType.FILES, {DEAD: FileEntry(1)})]})
    quick = [part for key, value in QUICK.items() for part in ("--hoodie-conf", f"{key}={value}")]
    assert app.run(["validate", "--base-path", str(path), *quick]) == 5
    told = capsys.readouterr()
    assert "stale file" in told.out and "failed" in told.out
    assert "1 difference between the metadata table and the table" in told.err and "--apply" in told.err
    assert app.run(["validate", "--base-path", str(path), "--apply", *quick]) == 0
    told = capsys.readouterr().out
    said = "1 difference was found, and 1 record of the metadata table was written again; no difference is left."
    assert said in " ".join(told.split()) and "compared: no difference" not in told
    assert "repaired differences" in told and "kind stale file, severity harmful" in " ".join(told.split())


@pytest.mark.parametrize("kind", ["hfile", "log"])
def test_a_broken_file_of_the_metadata_table_is_named(kind: str, tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    file = next(
        f for f in sorted((path / ".hoodie/metadata/files").iterdir()) if f".{kind}" in f.name and f.suffix != ".crc"
    )
    os.truncate(file, 10)
    file.write_bytes(b"no such format" * 100)
    for repairs in (False, True):
        report = run(path, repair=repairs)
        assert isinstance(report.error, CorruptFile) and report.exit_code == 1
        assert file.name in str(report.error) and "rebuild" in report.hint


def test_a_table_without_a_metadata_table(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    storage = open_storage(str(path))
    TableConfig.load(storage).update(storage, {"hoodie.table.metadata.partitions": None})
    report = run(path)
    assert (report.state, report.exit_code) == (Outcome.IDLE, 0)


def test_partitions_that_are_not_checked_are_told(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    storage = open_storage(str(path))
    TableConfig.load(storage).update(storage, {"hoodie.table.metadata.partitions.inflight": BLOOM_FILTERS})
    report = run(path)
    assert report.exit_code == 0
    assert report.tables["partitions"][-1] == {
        "metadata_partition": BLOOM_FILTERS, "records": None, "differences": None, "harmless": None
    }  # fmt: skip
    assert [(c.name, c.detail) for c in report.checks if c.result is CheckResult.SKIPPED] == [
        (BLOOM_FILTERS, "it is being built")
    ]
    assert (report.reason or "").endswith("; not checked: bloom_filters")


def test_an_index_of_keys_that_files_do_not_store(tmp_path: Path) -> None:
    """Hudi 1.2.0 builds record indexes of tables without meta fields."""
    path = unpack("1.2.0", tmp_path)
    index_bootstrap(wanted(path), engine=LocalEngine())
    storage = open_storage(str(path))
    TableConfig.load(storage).update(storage, {"hoodie.populate.meta.fields": "false"})
    report = run(path)
    assert report.exit_code == 0 and (report.reason or "").endswith("; not checked: record_index")
    assert [(c.name, c.detail) for c in report.checks if c.result is CheckResult.SKIPPED] == [
        (RECORD_INDEX, "the files of a table without meta fields have no record keys to compare with it")
    ]
    # Rows that come back would need keys in the index.
    before, ts = tree(path), newest(path).ts
    for again in (rollback, undo):
        with pytest.raises(UnsupportedTable, match="has a record index and no meta fields"):
            again(repair(path, again.__name__, ts, completed=again is rollback))
    assert tree(path) == before


def test_many_differences_are_counted_and_not_all_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validate, "_MOST_LISTED", 4)
    path = unpack("1.2.0", tmp_path)
    do_damage(path, wrong_listing(path))
    report = run(path)
    assert len(report.tables["differences"]) == 4
    assert report.tables["partitions"][0]["differences"] == 11
    assert report.warnings == ["of 11 differences the first 4 are listed"]
    assert "11 differences" in str(report.error)


@pytest.mark.thorough
@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("release", RELEASES)
def test_a_partition_that_is_out_of_sight_is_told_and_kept(release: str, indexed: bool, tmp_path: Path) -> None:
    """Its folder may not be mounted: what is mended beside it must not touch anything of it."""
    indexes = [BLOOM_FILTERS, *([COLUMN_STATS] if release == "0.15.0" else [])]
    path = with_indexes(release, tmp_path / "table", *indexes)
    if indexed:
        index_bootstrap(wanted(path), engine=LocalEngine())
    whole = {name: list(open_metadata(path).reader(name).scan()) for name in open_metadata(path).partitions}
    (path / P).rename(tmp_path / "away")
    report = run(path)
    listed = set(files_by_partition(open_metadata(path))[P])
    assert {(f[0], f[2]) for f in found(report)} == {(FILES, P)}
    assert {f[3] for f in found(report)} == {None, *listed}
    assert all("no file of the partition is stored" in str(row["detail"]) for row in report.tables["differences"])
    assert report.exit_code == 5 and "--drop-missing-partitions" in (report.hint or "")
    assert indexed == ((P, None, Doubt.MISSING_PARTITION.value) in unsure(report))
    other = next(name for name in files_by_partition(open_metadata(path)) if name != P)
    lost = sorted(files_by_partition(open_metadata(path))[other])[0]
    write_own(path, {FILES: [FilesRecord(other, RecordType.FILES, {lost: GONE})] * 2})
    report = run(path, repair=True)
    assert report.exit_code == 7 and "--drop-missing-partitions" in (report.hint or "")
    (tmp_path / "away").rename(path / P)
    assert run(path).exit_code == 0
    assert whole == {name: list(open_metadata(path).reader(name).scan()) for name in open_metadata(path).partitions}


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
def test_a_partition_that_is_gone_for_good_is_dropped_on_demand(release: str, tmp_path: Path) -> None:
    path = with_indexes(release, tmp_path / "table", BLOOM_FILTERS)
    index_bootstrap(wanted(path), engine=LocalEngine())
    shutil.rmtree(path / P)
    assert run(path, repair=True).exit_code == 5
    assert P in files_by_partition(open_metadata(path))
    assert run(path, repair=True, drop_missing_partitions=True).exit_code == 0
    assert P not in files_by_partition(open_metadata(path))
    assert run(path).exit_code == 0 and indexed_locations(path) == real_locations(path)


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("by", ["replaced", "cleaned"])
def test_a_partition_that_the_timeline_says_is_gone_is_dropped(release: str, by: str, tmp_path: Path) -> None:
    """Its deletion, or the clean that took its files, is on the timeline: the listing has it yet."""
    path = unpack(release, tmp_path)
    table = open_local(path)
    live = table.view.latest_slices(P)
    action, ts = (Action.REPLACE_COMMIT if by == "replaced" else Action.CLEAN), "20980101000000000"
    version = table.config.version.release
    if by == "replaced":
        done = CommitMetadata("DELETE_PARTITION", {}, {}, {P: tuple(one.file_id for one in live)})
        plan, data = b"", table.timeline.layout.encode_commit(done, version)
    else:
        names = tuple(f"file:{path}/{one.base_file.path}" for one in live if one.base_file)
        plan = encode_cleaner_plan(CleanerPlan("KEEP_LATEST_COMMITS", "", "", {P: names}), version)
        data = encode_clean_metadata(CleanMetadata(ts, "", "", {P: names}), version)
    for state in State:
        content = data if state is State.COMPLETED else plan
        table.timeline.publish(ts, action, state, content, "20980101000001000")
    shutil.rmtree(path / P)
    assert run(path, repair=True).exit_code == 0
    assert P not in files_by_partition(open_metadata(path))
