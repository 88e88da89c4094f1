"""A record index of each partition (Hudi 1.1 and later): true after our commits, and used by real Hudi afterwards."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_services
from hudi_services.metadata.record_index.lookup import Access

from . import layout, ours
from .conftest import Tables
from .mdt_check import check_metadata
from .peer import Peer, has_partitioned_index
from .pristine import Pristine
from .reading import METADATA_ON, Reading, newer
from .recipes import PARTITIONED_INDEX, SMALL_FILTERS
from .test_lookup import found, metadata_of, told
from .test_rollback import DEAD, fail_a_write
from .test_upserts import CASES, Twins, batches

pytestmark = pytest.mark.releases("1.2.0")
_OURS = {
    **SMALL_FILTERS,
    "hoodie.index.type": "RECORD_LEVEL_INDEX",
    "hoodie.metadata.record.level.index.min.filegroup.count": "2",
    "hoodie.clean.automatic": "false",
}
_COMPACT = {"hoodie.metadata.compact.max.delta.commits": "1"}
_KEYS = [f"k-{i:06d}" for i in range(60)]


def _is_found(peer: Peer, path: Path) -> None:
    """In each partition what Hudi's own reader finds there; the same key lies in two of them."""
    rows = peer.rows(path)
    partitions = sorted(set(rows["_hoodie_partition_path"].to_pylist()))
    for partition in partitions:
        theirs = peer.record_locations(path, _KEYS, partition)
        assert theirs and {at[0] for at in theirs.values()} == {partition}
        for access in Access:
            assert found(path, _KEYS, access, partition) == theirs, (partition, access)
    assert told(path, _KEYS, Access.AUTO, "--partition", partitions[-1]) == theirs
    refused = ours.run("index-lookup", path, "--keys-file", str(path.with_name("keys.txt")), "--partition", "part=none")
    assert refused.code == 2 and "no file group for the partition 'part=none'" in refused.stderr


def _base_files_are_seen(path: Path) -> None:
    """Their names are odd, too. While the log files that they were made of are there, look-ups do without them."""
    files = {file.name.split("_")[0] for file in (path / ".hoodie/metadata/record_index").glob("*.hfile")}
    groups = metadata_of(path).file_groups("record_index")
    assert {group.file_id for group in groups if group.base_file is not None} == files


def _hudi_uses_it(peer: Peer, path: Path) -> None:
    """Updates, deletes and keys that come back are tagged, also when the index was compacted."""
    # One order for all, or by chance a null alone makes a new file: Hudi says that such a column is from 0.0 to 0.0.
    rows = peer.rows(path).sort_by([("id", "ascending"), ("_hoodie_partition_path", "descending")])
    count = rows.num_rows
    peer.upsert(path, newer(rows.slice(0, 7)))
    peer.delete(path, rows.slice(20, 6))
    assert peer.rows(path).num_rows == count - 6
    peer.upsert(path, newer(newer(rows.slice(22, 3))), **_COMPACT)
    peer.upsert(path, newer(newer(rows.slice(0, 7))), **_COMPACT)
    assert peer.rows(path).num_rows == count - 3
    assert list((path / ".hoodie/metadata/record_index").glob("*.hfile"))
    assert has_partitioned_index(path)
    assert check_metadata(peer, path) == []
    key = rows["id"][0].as_py()
    for options in (METADATA_ON, {**METADATA_ON, "hoodie.enable.data.skipping": "true"}):
        assert peer.rows(path, options, where=f"id = '{key}'").num_rows == rows["id"].to_pylist().count(key)


@pytest.mark.deep
def test_clustering_keeps_it(peer: Peer, known: Pristine, table: Tables) -> None:
    path, before = table("by_partition"), known.reading("by_partition")
    ours.cluster(path, sort=("name",))
    assert before.differences(Reading.of(peer, path)) == []
    assert check_metadata(peer, path) == []
    _hudi_uses_it(peer, path)
    _base_files_are_seen(path)
    _is_found(peer, path)
    assert ours.run("validate", path).code == 0


@pytest.mark.deep
def test_undo_rollback_and_clean_keep_it(peer: Peer, known: Pristine, table: Tables) -> None:
    path, before = table("by_partition"), known.reading("by_partition")
    _is_found(peer, path)
    ts = ours.cluster(path, sort=("name",))
    ours.run("undo", path, "--instant", ts).ok()
    assert before.differences(Reading.of(peer, path)) == []
    assert check_metadata(peer, path) == []
    _failed_writes_are_rolled_back(peer, path, before)
    ours.cluster(path)
    peer.upsert(path, newer(before.hudi.slice(0, 3)))
    peer.upsert(path, newer(newer(before.hudi.slice(0, 3))))
    ours.run("clean", path, options={"hoodie.clean.commits.retained": "1"}).ok()
    assert check_metadata(peer, path) == []
    _hudi_uses_it(peer, path)
    ours.cluster(path)
    assert check_metadata(peer, path) == []
    _is_found(peer, path)


def _failed_writes_are_rolled_back(peer: Peer, path: Path, before: Reading) -> None:
    """Of a write to known partitions, and of one that brought a new partition and with it file groups of the index."""
    new = before.hudi.slice(0, 5)
    part = new.column_names.index("part")
    new = new.set_column(part, new.schema.field(part), pa.array(["not-yet"] * 5))
    for rows in (newer(before.hudi.slice(0, 30)), new):
        ts = fail_a_write(peer, path, rows)
        ours.run("rollback", path, "--instant", ts, options=DEAD).ok()
        _is_as_before(peer, path, before)
    peer.upsert(path, new)
    assert peer.rows(path).num_rows == before.hudi.num_rows + 5
    assert check_metadata(peer, path) == []
    assert len(peer.record_locations(path, new["id"].to_pylist(), "part=not-yet")) == 5
    ts = layout.writes(path)[-1].requested
    ours.run("rollback", path, "--instant", ts, "--completed").ok()
    _is_as_before(peer, path, before)


def _is_as_before(peer: Peer, path: Path, before: Reading) -> None:
    assert before.differences(Reading.of(peer, path)) == []
    # A rollback, Hudi's too, leaves the folder of a partition that it empties.
    left = path / "part=not-yet"
    assert not list(left.glob("*.parquet"))
    shutil.rmtree(left, ignore_errors=True)
    assert check_metadata(peer, path) == []


@pytest.mark.deep
def test_writes_in_turns(peer: Peer, table: Tables) -> None:
    """Updates, deletes, overwrites and new partitions by us, and by Hudi, which finds each key by the index."""
    path = table("by_partition")
    table_of_ours = hudi_services.open(path, engine="local")
    all_rows = peer.rows(path).sort_by([("id", "ascending"), ("_hoodie_partition_path", "descending")])
    old = all_rows.slice(0, 40).select([name for name in all_rows.column_names if not name.startswith("_hoodie")])
    part = old.column_names.index("part")
    paths = pa.array([f"new_{n % 2}-x=" for n in range(old.num_rows)])
    new = old.set_column(part, old.schema.field(part), paths)
    count = all_rows.num_rows

    def check(rows: int) -> None:
        assert peer.rows(path).num_rows == rows
        assert table_of_ours.validate(strict=True).ok
        assert check_metadata(peer, path) == []

    def update(rows: pa.Table) -> None:
        assert table_of_ours.upsert(rows, options=_OURS).ok

    update(newer(old))
    check(count)
    update(new)
    check(count + 40)
    peer.upsert(path, newer(new))
    check(count + 40)
    assert table_of_ours.delete(new.slice(0, 10), options=_OURS).tables["written"]["deletes"][0].as_py() == 10
    check(count + 30)
    peer.upsert(path, newer(newer(new)))
    check(count + 40)
    update(newer(newer(newer(new))))
    check(count + 40)
    assert table_of_ours.insert_overwrite(new.slice(0, 15), options=_OURS).ok
    check(count + 15)
    peer.delete(path, new.slice(0, 5))
    check(count + 10)
    peer.upsert(path, newer(newer(new)), **_COMPACT)
    update(newer(new))
    check(count + 40)
    _is_found(peer, path)


@pytest.mark.deep
@pytest.mark.parametrize("case", ["bloom", "log files"])
def test_upserts_and_deletes_in_turns(peer: Peer, case: str, tmp_path: Path) -> None:
    twins = Twins(peer, tmp_path, {**CASES[case], **PARTITIONED_INDEX})
    for number, (operation, new) in enumerate(batches(5, moves=False, by_ordering=True)):
        twins.write(operation, new, we=number % 3 != 0)
        twins.compare((number, operation), ["id", "day", "ts", "text"])
        assert twins.ours.validate(strict=True).ok, (number, operation)
        # It knows no log files.
        assert case == "log files" or check_metadata(peer, twins.shared) == []


@pytest.mark.deep
def test_a_table_without_partitions(peer: Peer, known: Pristine, table: Tables) -> None:
    path, before = table("by_no_partition"), known.reading("by_no_partition")
    ours.cluster(path, sort=("name",))
    assert before.differences(Reading.of(peer, path)) == []
    assert check_metadata(peer, path) == []
    _hudi_uses_it(peer, path)
    _is_found(peer, path)


@pytest.mark.deep
def test_built_here(peer: Peer, table: Tables) -> None:
    path = table("plain")
    # A writer that keeps the index, and does not build it itself.
    asynchronous = {"hoodie.metadata.index.async": "true", "hoodie.metadata.streaming.write.enabled": "false"}
    peer.upsert(path, newer(peer.rows(path).slice(0, 3)), **asynchronous)
    before = Reading.of(peer, path)
    ours.run("index-bootstrap", path, "--partitioned", "--min", "2").ok()
    assert has_partitioned_index(path)
    assert before.differences(Reading.of(peer, path)) == []
    assert check_metadata(peer, path) == []
    _hudi_uses_it(peer, path)
    ours.run("index-rescale", path, "--file-group-count", "3").ok()
    _hudi_uses_it(peer, path)
    assert ours.run("validate", path).code == 0
