"""The metadata table computed again: tables of real Hudi agree, and Hudi reads, writes and compacts repaired tables."""

from pathlib import Path

import pytest

from hudi_services.metadata.records.keys import column_stats_prefix
from hudi_services.validation.checks import look

from ..unit.corruptions import (
    Damage,
    Finding,
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
from ..unit.tables import open_local
from ..unit.test_trusted_sources import HARMS, do_harm, last_log
from . import ours
from .conftest import Tables
from .mdt_check import check_metadata
from .peer import Peer, PeerError
from .pristine import ALL, Pristine, recipes_of
from .reading import METADATA_ON, Reading, newer
from .recipes import RECIPES
from .test_rollback import fail_a_write

_COMPACT = {"hoodie.metadata.compact.max.delta.commits": "1"}
# The tests of the others validate their tables themselves.
_ALL = RECIPES.keys() - {"no_mdt", "expressions", "by_partition", "by_no_partition", "unbounded", "beyond"}
# Columns with statistics by which Hudi's own readers miss rows: NaN, and with 1.0.2 binaries above 0x7F, times in
# milliseconds and in 96 bits.
_HIDING = {
    ("1.0.2", "types_row"): {"real", "wide", "bin", "at"},
    ("1.0.2", "types_avro"): {"real", "wide"},
    ("1.0.2", "mixed"): {"real", "wide"},
    **{
        (release, recipe): {"real", "wide"}
        for release in ("1.1.1", "1.2.0")
        for recipe in ("types_row", "types_avro", "mixed")
    },
}


@pytest.mark.releases(*ALL)
@pytest.mark.cases(lambda recipe, release: recipe in recipes_of(release))
@pytest.mark.parametrize("recipe", sorted(_ALL))
def test_a_table_of_hudi_agrees(recipe: str, version: str, known: Pristine) -> None:
    table = open_local(known.table(recipe))
    findings = look(table, metadata_of(table), lambda phase, done, total: None)
    assert {one.column for one in findings.differences} == _HIDING.get((version, recipe), set())
    assert findings.unsure == []
    assert all(findings.checked.values())


def _damage(path: Path) -> list[Damage]:
    """Ten wrongs of each partition that is there."""
    ready = open_local(path).config.metadata_partitions
    ranges = [wrong_ranges(path)] if "partition_stats" in ready else []
    keys = [wrong_keys(path)] if "record_index" in ready else []
    pairs = [wrong_pairs(path, index) for index in ready if index.startswith("secondary_index_")]
    found = [wrong_listing(path), wrong_column_stats(path), wrong_blooms(path), *ranges, *keys, *pairs]
    for damage in found:
        do_damage(path, damage)
    return found


@pytest.mark.deep
def test_what_is_mended_is_right_for_hudi(peer: Peer, known: Pristine, table: Tables) -> None:
    path, before = table("keyed"), known.reading("keyed")
    damages = _damage(path)
    with pytest.raises(PeerError):
        peer.rows(path, METADATA_ON)

    run = ours.run("validate", path)
    assert run.code == 5
    assert _found(run) == set().union(*(one.found for one in damages))
    assert _found_keys(run) == set().union(*(one.keys for one in damages))
    run = ours.run("validate", path, "--apply").ok()
    assert (run.code, run.report["tables"]["differences"]) == (0, [])
    repair = run.report["instant"]
    assert check_metadata(peer, path) == []
    assert before.differences(Reading.of(peer, path)) == []

    # A write that fails, and is rolled back by the next one, which compacts the metadata table; and one above that.
    keys = before.hudi.sort_by("id").slice(3, 4)
    fail_a_write(peer, path, newer(before.hudi))
    for rows_ in (newer(keys), newer(newer(keys))):
        peer.upsert(path, rows_, **_COMPACT)
        assert check_metadata(peer, path) == []
    assert _is_compacted(path, repair)
    assert peer.rows(path, METADATA_ON).num_rows == before.hudi.num_rows
    assert ours.run("validate", path).code == 0


def _found(run: ours.Run) -> set[Finding]:
    fields = ("metadata_partition", "kind", "data_partition", "file", "column")
    rows = (row for row in run.report["tables"]["differences"] if row["key"] is None)
    return {tuple(row[field] for field in fields) for row in rows}


def _found_keys(run: ours.Run) -> set[tuple[str, str | None, str | None, str]]:
    rows = (row for row in run.report["tables"]["differences"] if row["key"] is not None)
    return {(row["kind"], row["data_partition"], row["file"], row["key"]) for row in rows}


def _is_compacted(path: Path, repair: str) -> bool:
    """Whether the repair is in a base file of each partition of the metadata table."""
    metadata = metadata_of(open_local(path))
    newest = {
        partition: max(group.base_file.instant for group in metadata.file_groups(partition) if group.base_file)
        for partition in metadata.partitions
    }
    return min(newest.values()) > repair


@pytest.mark.deep
@pytest.mark.releases("1.0.2", "1.2.0")
def test_ranges_that_hide_rows(peer: Peer, table: Tables) -> None:
    """Hudi skips whole partitions by their ranges."""
    path = table("keyed")
    queries = ("ts <= 1000", "ts > 1000", "_hoodie_record_key > 'k'")

    def counts() -> list[int]:
        return [peer.rows(path, METADATA_ON, where=where).num_rows for where in queries]

    right = counts()
    do_damage(path, wrong_ranges(path))
    wrong = counts()
    assert all(found < known for found, known in zip(wrong, right, strict=True)), (wrong, right)
    ours.run("validate", path, "--apply").ok()
    assert counts() == right


@pytest.mark.deep("0.15.0")
def test_a_lost_log_file_is_made_up_for(peer: Peer, known: Pristine, table: Tables) -> None:
    """Hudi passes over the torn log file, reads the repair, and compacts both."""
    path, before = table("keyed"), known.reading("keyed")
    log = last_log(path)
    do_harm(log, HARMS["cut in half"])
    assert ours.run("schedule", path).code == 1
    ours.run("validate", path, "--apply").ok()
    assert check_metadata(peer, path) == []
    assert before.differences(Reading.of(peer, path)) == []
    peer.upsert(path, newer(before.hudi.sort_by("id").slice(3, 4)), **_COMPACT)
    assert check_metadata(peer, path) == []
    assert before.hudi.num_rows == peer.rows(path, METADATA_ON).num_rows
    assert ours.run("validate", path).code == 0


@pytest.mark.releases("0.15.0", "1.2.0")
@pytest.mark.deep
def test_hudi_first_after_a_repair_that_was_killed(peer: Peer, known: Pristine, table: Tables) -> None:
    path, rows = table("keyed"), known.rows("keyed").sort_by("id")
    keys = [
        one.key for one in metadata_of(open_local(path)).reader("column_stats").scan(column_stats_prefix("qty", "p0"))
    ]
    write_own(path, {}, {"column_stats": keys})
    instant = ours.run("validate", path, "--apply").ok().report["instant"]
    timeline = metadata_of(open_local(path)).timeline
    done = timeline.find(instant)
    assert done is not None and done.is_completed
    timeline.storage.delete(timeline.path(done.file_name))
    assert len(_found(ours.run("validate", path))) == len(keys)

    peer.upsert(path, newer(rows.slice(0, 4)))
    ours.run("validate", path, "--apply").ok()
    assert check_metadata(peer, path) == []
    assert not metadata_of(open_local(path)).timeline.pending()
    peer.upsert(path, newer(newer(rows.slice(0, 4))), **_COMPACT)
    assert check_metadata(peer, path) == []
    assert peer.rows(path).num_rows == rows.num_rows
