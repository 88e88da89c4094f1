"""Our two commands on tables of real Hudi: every reader reads the same rows, and Hudi goes on working."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from . import layout, ours
from .conftest import Tables
from .mdt_check import check_metadata
from .peer import Peer, PeerError
from .pristine import Pristine
from .readers import daft_rows, same_rows, same_values
from .reading import METADATA_OFF, METADATA_ON, Reading, newer
from .recipes import RECIPES

# Daft lists files and knows no replaced ones: it agrees once these are cleaned away.
_FOR_DAFT = {"plain", "no_mdt"}
# hudi-rs panics on local timestamps; only the 1.2.0 tables of all types have such a column.
_NOT_FOR_HUDI_RS = {("types_avro", "1.2.0"), ("types_row", "1.2.0")}
# Of `unbounded` Hudi's own statistics are wrong: test_statistics.py.
_FOR_OTHER_SERVICES = {
    "past",
    "beyond",
    "plain8",
    "changes",
    "keyed",
    "by_partition",
    "by_no_partition",
    "expressions",
    "unbounded",
}
# Read with a pending plan, too.
_PLANNED = {"plain", "paths", "types_row", "many"}
# Each kind of page in one release at least.
_COPIED = {
    "0.15.0": {"types_avro", "types_row", "no_meta"},
    "1.0.2": {"bulk", "no_meta"},
    "1.2.0": {"types_row", "paths", "bulk", "no_meta"},
}
# Where Hudi itself cannot upsert, clustered or not: null list elements on the Avro path, virtual keys with BLOOM,
# url-encoded partitions with BLOOM ("format not supported yet"), lists of bulk inserts (they come back as null).
_NO_UPSERT = {
    "0.15.0": {"types_row", "no_meta", "mixed"},
    "1.0.2": {"types_row", "no_meta", "paths"},
    "1.2.0": {"types_row", "no_meta"},
}


# The longest are deep.
@pytest.mark.parametrize(
    "recipe",
    [
        pytest.param(name, marks=pytest.mark.deep) if name in ("paths", "many", "bulk", "mixed", "types_avro") else name
        for name in sorted(RECIPES.keys() - _FOR_OTHER_SERVICES)
    ],
)
def test_rows_stay_and_hudi_goes_on(recipe: str, peer: Peer, known: Pristine, table: Tables) -> None:
    path = table(recipe)
    before, old_files = known.reading(recipe), known.live_files(recipe, path)
    assert ("hudi-rs" in before.rows) == ((recipe, peer.version) not in _NOT_FOR_HUDI_RS)
    sort = RECIPES[recipe].sort

    instant = ours.schedule(path, sort=sort)
    if recipe in _PLANNED:
        assert before.differences(Reading.of(peer, path)) == [], "with a pending plan"
    report = ours.execute(path).report

    assert report["instant"] == instant
    assert report["rows"] == {"in": before.hudi.num_rows, "out": before.hudi.num_rows}
    assert layout.pending(path) == []
    _is_a_table_of_hudi(recipe, peer, path, before, old_files, sort)


@pytest.mark.deep("1.2.0-paths")
@pytest.mark.cases(lambda recipe, release: recipe in _COPIED[release])
@pytest.mark.parametrize("recipe", sorted({recipe for recipes in _COPIED.values() for recipe in recipes}))
def test_row_groups_are_copied_as_they_are(recipe: str, peer: Peer, known: Pristine, table: Tables) -> None:
    """Unsorted groups of one schema, whose pages go over without being decoded; each recipe has some."""
    path = table(recipe)
    before, old_files = known.reading(recipe), known.live_files(recipe, path)
    # All row groups are within the sizes that are copied then; some pages change their codec, others do not.
    codec = {"hoodie.parquet.compression.codec": "gzip"} if recipe == "paths" else {}
    options = {"hoodie.parquet.block.size": "8192", **codec}
    ours.schedule(path, options=options)
    report = ours.execute(path, options=options).report

    assert sum(report["decoded"].values()) < report["groups"]
    assert set(report["decoded"]) <= {"schemas differ"}
    _is_a_table_of_hudi(recipe, peer, path, before, old_files, ())


def _is_a_table_of_hudi(
    recipe: str, peer: Peer, path: Path, before: Reading, old_files: dict[str, list[Path]], sort: tuple[str, ...]
) -> None:
    """The same rows for every reader, true metadata, well-made files; and Hudi writes to it."""
    assert before.differences(Reading.of(peer, path)) == []
    assert check_metadata(peer, path) == []
    _files_are_well_made(peer, path, old_files, sort)
    if recipe not in _NO_UPSERT[peer.version]:
        _hudi_updates_and_deletes(peer, path, before.hudi)


def _files_are_well_made(peer: Peer, path: Path, old_files: dict[str, list[Path]], sort: tuple[str, ...]) -> None:
    """One file per partition, in order, with the parquet schema that its inputs agree on."""
    new_files = layout.live_files(peer, path)
    assert {p: len(files) for p, files in new_files.items()} == dict.fromkeys(old_files, 1)
    for partition, (file,) in new_files.items():
        assert not sort or layout.is_sorted(file, sort), f"{file} is not sorted by {sort}"
        assert len(layout.list_layouts(file)) <= 1, f"{file} mixes lists of two levels and of three"
        schemas = [layout.physical_schema(old) for old in old_files[partition]]
        if all(schema == schemas[0] for schema in schemas):
            assert layout.physical_schema(file) == schemas[0]


def _hudi_updates_and_deletes(peer: Peer, path: Path, before: pa.Table) -> None:
    """An upsert finds the old keys by the bloom filters and key ranges of our footers; a delete too."""
    rows = before.sort_by("id")
    peer.upsert(path, newer(rows.slice(0, 5)))
    peer.delete(path, rows.slice(5, 3))
    after = peer.rows(path, METADATA_ON)
    assert sorted(after["id"].to_pylist()) == sorted(set(rows["id"].to_pylist()) - set(rows["id"][5:8].to_pylist()))
    untouched = pc.invert(pc.is_in(rows["id"], rows["id"][:8]))
    # Values only: the rows that came through pyarrow made every column of the table nullable.
    assert same_values(rows.filter(untouched), _without(after, rows["id"][:5])) == []
    assert check_metadata(peer, path) == []


def _without(rows: pa.Table, keys: pa.ChunkedArray) -> pa.Table:
    return rows.filter(pc.invert(pc.is_in(rows["id"], keys.combine_chunks())))


@pytest.mark.releases("1.2.0")
@pytest.mark.deep
@pytest.mark.parametrize("sort", [("id",), ()], ids=["decoded", "copied"])
def test_keys_that_java_orders_otherwise_are_found_again(
    sort: tuple[str, ...], peer: Peer, known: Pristine, table: Tables
) -> None:
    """By code point a kanji beyond U+FFFF comes after halfwidth letters, for Java before them. (After a clustering of
    Hudi's own the upsert inserts all three once more.)"""
    path = table("plain")
    some = known.rows("plain").slice(0, 3)
    keys = ["\uff71-\u30ab\u30ca", "\U00020bb7\u91ce\u5bb6", "\uffe5-yen"]
    for name, values in (("part", ["late"] * 3), ("id", keys)):
        some = some.set_column(some.column_names.index(name), some.schema.field(name), pa.array(values))
    for one in (0, 1, 2):
        peer.insert(path, some.slice(one, 1))
    options = {
        "hoodie.clustering.plan.strategy.partition.selected": "part=late",
        "hoodie.parquet.block.size": "1024",
    }
    ours.schedule(path, sort=sort, options=options)
    report = ours.execute(path, options=options).report
    assert (report["rows"], report["decoded"]) == ({"in": 3, "out": 3}, {"sorted": 1} if sort else {})
    _hudi_finds_a_flipped_bit(peer, path, "part=late")
    peer.upsert(path, newer(some))
    found = peer.rows(path, METADATA_ON, where="part = 'late'")
    assert sorted(found["id"].to_pylist()) == sorted(keys)


def _hudi_finds_a_flipped_bit(peer: Peer, path: Path, partition: str) -> None:
    """Our pages have checksums that real readers look at: this one stands for all, which they read without a word."""
    (file,) = layout.live_files(peer, path)[partition]
    sound, chunk = file.read_bytes(), pq.read_metadata(file).row_group(0).column(2)
    damaged = bytearray(sound)
    damaged[chunk.data_page_offset + 40] ^= 1
    file.write_bytes(damaged)
    with pytest.raises(PeerError, match="CRC checksum verification failed"):
        peer.rows(path, METADATA_ON)
    file.write_bytes(sound)


@pytest.mark.deep
def test_a_life_after(peer: Peer, known: Pristine, table: Tables) -> None:
    """Real Hudi inserts, clusters and cleans; incremental and time-travel queries give what they did before."""
    path = table("plain")
    past = layout.writes(path)
    travels = {i: peer.as_of(path, i.requested) for i in past}
    changes = {i: peer.incremental(path, i.completed) for i in past}
    before = known.rows("plain")

    ours.schedule(path, sort=("name",))
    clustering = ours.execute(path).report["instant"]

    for i in past:
        assert same_rows(travels[i], peer.as_of(path, i.requested)) == [], f"as of {i}"
        assert same_rows(changes[i], peer.incremental(path, i.completed)) == [], f"since {i}"
    (done,) = [i for i in layout.writes(path) if i.requested == clustering]
    assert peer.incremental(path, done.completed).num_rows == 0
    assert same_rows(before, peer.as_of(path, clustering)) == []

    new = newer(before.slice(0, 20))
    ids = pa.array([f"new-{i:03d}" for i in range(20)])
    peer.insert(path, new.set_column(new.column_names.index("id"), new.schema.field("id"), ids))
    since = peer.incremental(path, done.completed)
    assert sorted(since["id"].to_pylist()) == ids.to_pylist()
    grown = peer.rows(path)
    assert grown.num_rows == before.num_rows + 20

    peer.cluster(path, order="qty")
    assert same_rows(grown, peer.rows(path)) == []
    peer.clean(path)
    assert same_rows(grown, peer.rows(path, METADATA_ON)) == []
    assert same_rows(grown, peer.rows(path, METADATA_OFF)) == []
    assert check_metadata(peer, path) == []


@pytest.mark.deep
def test_filtered_reads_find_their_rows(peer: Peer, table: Tables) -> None:
    """Data skipping by our column stats, partition stats and footers loses nothing."""
    path = table("many")
    conditions = ["at < timestamp_micros(1700000000153456)", "id = 'k-000133'", "qty > 450", "amount is null"]
    options = {**METADATA_ON, "hoodie.enable.data.skipping": "true"}
    before = _the_same_is_found(peer, path, options, conditions, sort="at")
    # Hudi recomputes the stats of a partition from those of its files when it writes there.
    one = peer.rows(path, where="id = 'k-000133'")
    peer.upsert(path, newer(one))
    for condition, rows in before.items():
        found = peer.rows(path, options, where=condition)
        assert sorted(found["id"].to_pylist()) == sorted(rows["id"].to_pylist()), condition


def _the_same_is_found(
    peer: Peer, path: Path, options: Mapping[str, str], conditions: Sequence[str], *, sort: str
) -> dict[str, pa.Table]:
    """Cluster by `sort`; each condition finds the rows that it found before, and there are some."""
    before = {c: peer.rows(path, options, where=c) for c in conditions}
    assert all(rows.num_rows for rows in before.values())
    ours.cluster(path, sort=(sort,))
    for condition, rows in before.items():
        assert same_rows(rows, peer.rows(path, options, where=condition)) == [], condition
    return before


@pytest.mark.releases("0.15.0", "1.2.0")
def test_not_a_number_is_found(peer: Peer, table: Tables) -> None:
    """NaN is the greatest value for Spark: a footer that leaves it out of its range hides rows from filters."""
    path = table("mixed")
    conditions = ["wide > 1e300", "real > 1e30", "wide = double('NaN')", "real <= 0", "wide = 0"]
    _the_same_is_found(peer, path, METADATA_OFF, conditions, sort="wide")


@pytest.mark.deep
@pytest.mark.releases("0.15.0")  # Daft reads tables up to version 6
def test_daft_reads_the_same_rows_once_hudi_has_cleaned(peer: Peer, known: Pristine, table: Tables) -> None:
    for recipe in sorted(_FOR_DAFT):
        path = table(recipe)
        rows = known.rows(recipe).sort_by("id")
        before = daft_rows(path) if recipe == "no_mdt" else rows
        ours.cluster(path, sort=("ts",))
        # Daft takes the schema from a `.commit`, and only a later commit lets Hudi clean the replaced files.
        peer.upsert(path, newer(rows.slice(0, 1)))
        peer.clean(path)
        assert same_values(_without(before, rows["id"][:1]), _without(daft_rows(path), rows["id"][:1])) == [], recipe
