"""Rolling back an instant that is older than an index or the whole metadata table leaves nothing of it there."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_services.engine import LocalEngine
from hudi_services.errors import ConflictError, CorruptFile, NothingToDo
from hudi_services.jobs.index_bootstrap import index_bootstrap
from hudi_services.jobs.rollback import rollback
from hudi_services.jobs.undo import undo
from hudi_services.metadata.records.keys import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    PARTITION_STATS,
    RECORD_INDEX,
    bloom_filter_key,
)
from hudi_services.metadata_updates.rollback.lasting import lasting_in
from hudi_services.parquet.chunk_stats import ColumnStats, column_stats
from hudi_services.runs.report import RunState as Outcome
from hudi_services.storage import Storage

from .corruptions import add_index, metadata_of, write_own
from .faulty_storage import FaultyStorage, Killed
from .metadata_tables import build_anew, files_by_partition, open_metadata, stats_of
from .repairs import NO_HEARTBEAT, P, both, cluster, files_of, insert_copy, newest, repair
from .shares import TWO_SHARES, places, share
from .tables import RELEASES, digest, open_local, unpack
from .test_completed_rollback import delete_partition
from .test_expression_index import BLOOM, index_is_true
from .test_expression_index import INDEXES as EXPRESSIONS
from .test_expression_index import cluster as cluster_expressions
from .test_index_bootstrap import indexed_locations, real_locations, wanted
from .test_validate import run, with_indexes

TakeBack = Callable[..., None]


def undone(path: Path, ts: str, storage: Storage | None = None) -> None:
    assert undo(repair(path, "undo", ts, NO_HEARTBEAT), storage).state is Outcome.COMPLETED


def rolled_back(path: Path, ts: str, storage: Storage | None = None) -> None:
    assert rollback(repair(path, "rollback", ts, NO_HEARTBEAT, completed=True), storage).state is Outcome.COMPLETED


def newest_ts(path: Path) -> str:
    return newest(path).ts


def insert(path: Path) -> str:
    """The newest commit that put keys in: the fixtures end with updates."""
    rolled_back(path, newest_ts(path))
    return newest_ts(path)


def overwrite(path: Path) -> str:
    return delete_partition(path)[0]


def bootstrap(path: Path) -> None:
    index_bootstrap(wanted(path), engine=LocalEngine())


def assert_right(path: Path, at: object = None) -> None:
    """Everything in the metadata table, the keys too."""
    report = run(path)
    assert report.exit_code == 0, (at, report.error, report.tables["differences"][:5])
    if RECORD_INDEX in metadata_of(open_local(path)).partitions:
        assert indexed_locations(path) == real_locations(path), at
    listing, seen = both(path)
    assert listing.equals(seen), at


def kept(path: Path) -> dict[str, str]:
    """A hash of each file, but for leases."""
    return {name: found for name, found in digest(path).items() if ".locks" not in name}


WHAT = pytest.mark.parametrize(
    ("make", "command"), [(cluster, undone), (insert, rolled_back), (overwrite, rolled_back), (cluster, rolled_back)]
)


@pytest.mark.thorough
@pytest.mark.spread(3)
@WHAT
@pytest.mark.parametrize("release", RELEASES)
def test_a_record_index_that_is_younger(
    release: str, make: Callable[[Path], str], command: TakeBack, tmp_path: Path
) -> None:
    path = unpack(release, tmp_path)
    ts = make(path)
    bootstrap(path)
    assert RECORD_INDEX in lasting_in(open_metadata(path), ts)
    before = real_locations(path)
    command(path, ts)
    assert real_locations(path) != before
    assert_right(path)
    assert not list((path / ".hoodie/.temp").glob("*"))


@pytest.mark.parametrize("release", RELEASES)
def test_an_index_that_is_older_forgets_by_itself(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    bootstrap(path)
    ts = insert_copy(path)
    assert not lasting_in(open_metadata(path), ts)


@pytest.mark.parametrize("release", RELEASES)
def test_keys_that_another_live_file_has_stay(release: str, tmp_path: Path) -> None:
    """The rows were inserted twice, and the index has the younger ones: when these go, it has the others."""
    path = unpack(release, tmp_path)
    before = real_locations(path)
    ts = insert_copy(path)
    bootstrap(path)
    rolled_back(path, ts)
    assert_right(path)
    assert indexed_locations(path) == before


@pytest.mark.thorough
@pytest.mark.spread(6)
@pytest.mark.parametrize(("make", "command"), [(cluster, undone), (cluster, rolled_back)])
@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("release", RELEASES)
def test_a_metadata_table_that_was_built_anew(
    release: str, indexed: bool, make: Callable[[Path], str], command: TakeBack, tmp_path: Path
) -> None:
    path = with_indexes(release, tmp_path, BLOOM_FILTERS, *([COLUMN_STATS] if release == "0.15.0" else []))
    if indexed:
        bootstrap(path)
    before = both(path)[0]
    ts = make(path)
    build_anew(path)
    assert_right(path)
    assert lasting_in(open_metadata(path), ts) == set(open_metadata(path).partitions)
    command(path, ts)
    assert_right(path)
    assert both(path)[0].equals(before)
    # Also when nobody knows any more that it was rolled back.
    listed = {name for names in files_by_partition(open_metadata(path)).values() for name in names}
    assert not [name for name in listed if ts in name]


@pytest.mark.parametrize("release", RELEASES)
def test_a_commit_before_the_metadata_table_was_built_anew(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    build_anew(path)
    assert_right(path)
    before = kept(path)
    with pytest.raises(ConflictError, match="was built after"):
        rolled_back(path, newest_ts(path))
    assert kept(path) == before


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
def test_statistics_and_filters_of_restored_files_that_an_index_does_not_have(release: str, tmp_path: Path) -> None:
    """As an index that was built after the clustering, which described the files that were live then."""
    path = with_indexes(release, tmp_path, BLOOM_FILTERS, *([COLUMN_STATS] if release == "0.15.0" else []))
    old = {f.name: f.partition for s in slices(path) if (f := s.base_file)}
    ts = cluster(path)
    stats = [one.key for one in stats_of(open_metadata(path), COLUMN_STATS) if one.file_name in old]
    blooms = [bloom_filter_key(partition, name) for name, partition in old.items()]
    write_own(path, {}, {COLUMN_STATS: stats, BLOOM_FILTERS: blooms})
    assert {COLUMN_STATS, BLOOM_FILTERS} <= lasting_in(open_metadata(path), ts)
    undone(path, ts)
    assert_right(path)


def slices(path: Path):  # type: ignore[no-untyped-def]
    view = open_local(path).view
    return [one for partition in view.partitions() for one in view.latest_slices(partition)]


@pytest.mark.parametrize("release", ["1.0.2", "1.2.0"])
def test_ranges_of_partitions_that_are_younger_hold_the_rows_that_come_back(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    metadata = open_metadata(path)
    old = {one.key for one in stats_of(metadata, PARTITION_STATS) if one.file_name == P}
    ts = overwrite(path)
    # Built when the partition had no rows.
    write_own(path, {}, {PARTITION_STATS: sorted(old)})
    assert PARTITION_STATS in lasting_in(open_metadata(path), ts)
    rolled_back(path, ts)
    assert_right(path)
    found = {one.key for one in stats_of(open_metadata(path), PARTITION_STATS) if one.file_name == P}
    assert found == old


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
def test_a_repair_since_put_the_keys_in_again(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    bootstrap(path)
    ts = insert_copy(path)
    keys = sorted(indexed_locations(path))[:7]
    write_own(path, {}, {RECORD_INDEX: keys})
    assert run(path, repair=True).exit_code == 0
    rolled_back(path, ts)
    assert_right(path)


@pytest.mark.thorough
@pytest.mark.parametrize("release", ["1.0.2", "1.2.0"])
def test_a_secondary_index(release: str, tmp_path: Path) -> None:
    """A clustering moves no pair of value and key; any other write is not taken out of it."""
    path = unpack(release, tmp_path)
    index = "secondary_index_by_label"
    definitions = path / ".hoodie/.index_defs/index.json"
    text = '"indexDefinitions":{"secondary_index_by_label":{"indexName":"x","indexType":"secondary_index",'
    text += '"indexFunction":"","sourceFields":["label"],"indexOptions":{},"version":"V1"},'
    definitions.write_text(definitions.read_text().replace(" ", "").replace('"indexDefinitions":{', text))
    add_index(path, index, "secondary-index-by-label")
    ts, clustered = newest_ts(path), cluster(path)
    assert run(path, repair=True).exit_code == 0
    pairs = sorted(one.key for one in metadata_of(open_local(path)).reader(index).scan())
    assert index in lasting_in(open_metadata(path), ts)
    undone(path, clustered)
    assert_right(path)
    assert sorted(one.key for one in metadata_of(open_local(path)).reader(index).scan()) == pairs
    before = kept(path)
    with pytest.raises(ConflictError, match=f"the index {index} was built or repaired after {ts}") as raised:
        rolled_back(path, ts)
    assert f"drop {index} with Apache Hudi" in (raised.value.hint or "")
    assert kept(path) == before


@pytest.mark.thorough
@pytest.mark.parametrize("release", ["1.0.2", "1.2.0"])
def test_expression_indexes_forget_what_was_inserted_and_keep_what_a_clustering_had_replaced(
    release: str, tmp_path: Path
) -> None:
    """Those of the fixture are younger than its commits."""
    path = unpack(release, tmp_path, "expressions")
    ts = newest_ts(path)
    assert {*EXPRESSIONS} <= lasting_in(open_metadata(path), ts)
    clustered = cluster_expressions(path)
    undone(path, clustered)
    index_is_true(path)
    rolled_back(path, ts)
    index_is_true(path)


@pytest.mark.parametrize("release", ["1.0.2", "1.2.0"])
def test_an_expression_index_without_records_of_restored_files(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path, "expressions")
    old = [f for s in slices(path) if (f := s.base_file)]
    ts = cluster_expressions(path)
    gone = {BLOOM: [bloom_filter_key(f.partition, f.name) for f in old[:1]]}
    write_own(path, {}, gone)
    before = kept(path)
    with pytest.raises(ConflictError, match=f"the index {BLOOM} was built or repaired after {ts}: it has no record of"):
        undone(path, ts)
    assert kept(path) == before


@pytest.mark.thorough
@pytest.mark.spread(2)
@pytest.mark.sweep
@pytest.mark.parametrize(("make", "command"), [(insert, rolled_back), (overwrite, rolled_back), (cluster, undone)])
@pytest.mark.parametrize(("release", "number"), TWO_SHARES)
def test_every_write_may_be_the_last(
    release: str, number: int, make: Callable[[Path], str], command: TakeBack, tmp_path: Path
) -> None:
    made = unpack(release, tmp_path / "made")
    ts = make(made)
    bootstrap(made)
    whole = tmp_path / "whole"
    shutil.copytree(made, whole)
    storage = FaultyStorage(str(whole))
    command(whole, ts, storage)
    for survived in share(places(storage.log), number, 2):
        path = tmp_path / "killed"
        shutil.copytree(made, path)
        with pytest.raises(Killed) as killed:
            command(path, ts, FaultyStorage(str(path), survived))
        at = f"after {survived} writes: {killed.value}"
        try:
            command(path, ts)
        except NothingToDo:
            assert survived >= len(storage.log) - 6, at
        assert not open_local(path).timeline.pending() and files_of(path, ts) == set(), at
        assert indexed_locations(path) == real_locations(path), at
        shutil.rmtree(path)


@pytest.mark.thorough
@pytest.mark.parametrize("release", ["1.0.2", "1.2.0"])
def test_ranges_that_nobody_knows_are_not_made_up(
    release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value that is too long leaves no range in the footer, the values cannot be read, and the range of the partition
    would hide it."""
    path = unpack(release, tmp_path)
    ts = overwrite(path)
    old = {one.key for one in stats_of(open_metadata(path), PARTITION_STATS) if one.file_name == P}
    write_own(path, {}, {PARTITION_STATS: sorted(old)})

    def unknown(*args: Any) -> tuple[ColumnStats, ...]:
        return tuple(replace(one, has_range=one.column != "label") for one in column_stats(*args))

    def unreadable(*args: Any) -> tuple[ColumnStats, ...]:
        raise CorruptFile("pages that nobody can read")

    monkeypatch.setattr("hudi_services.base_files.base_file_slice.column_stats", unknown)
    monkeypatch.setattr("hudi_services.base_files.base_file_slice.complete_stats", unreadable)
    before = kept(path)
    with pytest.raises(ConflictError, match=r"do not tell the range of label"):
        rolled_back(path, ts)
    assert kept(path) == before
    # Of a clustering the rows stay the same, and the range with them.
    clustered = cluster(unpack(release, tmp_path / "other"))
    undone(tmp_path / "other/table", clustered)


@pytest.mark.parametrize("release", RELEASES)
def test_keys_of_too_many_rows_are_not_read_under_the_lock(
    release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only where keys were inserted: updates put back what the older files tell."""
    path = unpack(release, tmp_path)
    updated, inserted = newest_ts(path), open_local(path).timeline.completed_writes()[-2].ts
    bootstrap(path)
    monkeypatch.setattr("hudi_services.rollback.later_indexes._MOST_ROWS", 1)
    rolled_back(path, updated)
    assert_right(path)
    before = kept(path)
    with pytest.raises(
        ConflictError, match=r"the index record_index was built .*: the keys of \d+ files would have to"
    ):
        rolled_back(path, inserted)
    assert kept(path) == before
