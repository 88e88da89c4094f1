"""The record index: built by us, used and kept by real Hudi; and true after our commits."""

from pathlib import Path

import pyarrow as pa
import pytest

from ..spark.killed_build import build_killed_twice
from ..unit.rides import FILTERS, create
from ..unit.test_upserts import rows
from . import layout, ours
from .conftest import Tables
from .mdt_check import check_metadata
from .peer import Peer, table_properties
from .pristine import Pristine
from .reading import METADATA_ON, Reading, newer
from .recipes import WRITE_DEFAULTS
from .test_recover import killed_execution, long_ago

# A writer that wants the index and does not build it. Without the last key 1.2.0 fails.
_ASYNC = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.index.async": "true",
    "hoodie.metadata.streaming.write.enabled": "false",
}
_COMPACT = {"hoodie.metadata.compact.max.delta.commits": "1"}


def _has_index(path: Path) -> bool:
    return "record_index" in table_properties(path)["hoodie.table.metadata.partitions"].split(",")


def _hudi_uses_it(peer: Peer, path: Path) -> None:
    """Updates, deletes and keys that come back are tagged by the index, also when it was compacted."""
    rows = peer.rows(path).sort_by("id")
    count = rows.num_rows
    peer.upsert(path, newer(rows.slice(0, 7)), **_ASYNC)
    peer.delete(path, rows.slice(20, 6))
    assert peer.rows(path).num_rows == count - 6
    peer.upsert(path, newer(newer(rows.slice(22, 3))), **_COMPACT)
    peer.upsert(path, newer(newer(rows.slice(0, 7))), **_COMPACT)
    assert peer.rows(path).num_rows == count - 3
    assert list((path / ".hoodie/metadata/.hoodie").rglob("*.commit"))
    assert _has_index(path)
    assert check_metadata(peer, path) == []
    rows = peer.rows(path)
    key, name = rows["id"][0].as_py(), rows["name"][0].as_py()
    named = rows["name"].to_pylist().count(name)
    for options in (METADATA_ON, {**METADATA_ON, "hoodie.enable.data.skipping": "true"}):
        assert peer.rows(path, options, where=f"id = '{key}'").num_rows == 1
        # By the secondary index, where there is one.
        assert peer.rows(path, options, where=f"name = '{name}'").num_rows == named


@pytest.mark.deep
def test_bootstrap(peer: Peer, table: Tables) -> None:
    _builds(peer, table("plain"))


@pytest.mark.deep
@pytest.mark.releases("1.2.0")
def test_bootstrap_on_version_8(peer: Peer, table: Tables) -> None:
    _builds(peer, table("plain8"))


def _builds(peer: Peer, path: Path) -> None:
    peer.upsert(path, newer(peer.rows(path).slice(0, 3)), **_ASYNC)
    assert not _has_index(path)
    before = Reading.of(peer, path)
    # One release stands for all with Spark, one with processes.
    run = {"0.15.0": ours.run_process, "1.0.2": ours.run_local}.get(peer.version, ours.run)
    report = run("index-bootstrap", path, "--file-group-count", "4").ok().report
    assert report["rows"] == {"in": before.hudi.num_rows, "out": before.hudi.num_rows}
    assert _has_index(path)
    assert before.differences(Reading.of(peer, path)) == []
    assert check_metadata(peer, path) == []
    _hudi_uses_it(peer, path)


@pytest.mark.releases("0.15.0", "1.2.0")
@pytest.mark.deep
def test_clustering_keeps_every_index(peer: Peer, known: Pristine, table: Tables) -> None:
    """Ours, then Hudi's, an undo and a clean: bloom filters, statistics and the record index are true after each."""
    path, before = table("keyed"), known.reading("keyed")
    ours.schedule(path, sort=("name",))
    # Compacted, the index cannot just forget the clustering.
    assert ours.execute_on_spark(path, options=_COMPACT).report["tables"]["metadata_compaction"]
    assert before.differences(Reading.of(peer, path)) == []
    assert check_metadata(peer, path) == []
    ts = layout.writes(path)[-1].requested
    ours.run("undo", path, "--instant", ts).ok()
    assert before.differences(Reading.of(peer, path)) == []
    assert check_metadata(peer, path) == []
    peer.upsert(path, newer(before.hudi.slice(0, 3)))
    ours.cluster(path)
    peer.upsert(path, newer(newer(before.hudi.slice(0, 3))))
    ours.run("clean", path, options={"hoodie.clean.commits.retained": "1"}).ok()
    assert _has_index(path)
    assert check_metadata(peer, path) == []
    _hudi_uses_it(peer, path)
    listed = table_properties(path)["hoodie.table.metadata.partitions"]
    assert ("secondary_index_on_name" in listed) == (peer.version == "1.2.0")


@pytest.mark.deep
@pytest.mark.releases("0.15.0", "1.2.0")
def test_a_killed_clustering_with_the_record_index(peer: Peer, known: Pristine, table: Tables) -> None:
    path, before = table("keyed"), known.reading("keyed")
    # Among the log files of the metadata table.
    killed_execution(0.75)(peer, path)
    assert layout.pending(path)
    long_ago(path)
    ours.run("recover", path, "--apply").ok()
    assert before.differences(Reading.of(peer, path)) == []
    assert check_metadata(peer, path) == []
    _hudi_uses_it(peer, path)


@pytest.mark.deep
@pytest.mark.releases("0.15.0", "1.2.0")
def test_a_bootstrap_that_was_killed_twice(peer: Peer, table: Tables, tmp_path: Path) -> None:
    path = table("plain")
    peer.upsert(path, newer(peer.rows(path).slice(0, 3)), **_ASYNC)
    before = Reading.of(peer, path)
    report = build_killed_twice(path, tmp_path)
    assert report["rows"] == {"in": before.hudi.num_rows, "out": before.hudi.num_rows}
    assert before.differences(Reading.of(peer, path)) == []
    assert check_metadata(peer, path) == []
    _hudi_uses_it(peer, path)


@pytest.mark.deep("0.15.0", "1.0.2")
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", pytest.param("MERGE_ON_READ", marks=pytest.mark.deep)])
def test_hudi_finds_the_row_that_stays(peer: Peer, kind: str, tmp_path: Path) -> None:
    """Of a key in two partitions we delete one row, by an index of partitions: Hudi's writers find the other one."""
    version = peer.table_version.number
    path = tmp_path / "rides"
    table = create(path, table_version=version, table_type=kind)
    by_partition = {**FILTERS, **WRITE_DEFAULTS, "hoodie.index.type": "SIMPLE"}
    assert table.upsert(rows(0, 12), options=by_partition).ok
    assert table.build_index(options={"hoodie.metadata.global.record.level.index.min.filegroup.count": "2"}).ok
    table.upsert(rows(0, 12, "copy", ts=1, more_days=1), options=by_partition)
    table.upsert(rows(0, 6, "again", ts=2), options=by_partition)
    # The index names the first row of some of these keys, and the second one of others.
    gone = pa.concat_tables([rows(0, 3), rows(3, 6, more_days=1), rows(6, 9), rows(9, 12, more_days=1)])
    assert table.delete(gone, options=by_partition).ok
    left = peer.rows(path)
    assert left.num_rows == 12
    keys = left.column("id").to_pylist()
    found = {key: partition for key, (partition, _, _) in peer.record_locations(path, keys).items()}
    assert found == dict(zip(keys, left.column("day").to_pylist(), strict=True))
    # With a global index an update goes where the index says: a key that it did not have would come a second time.
    peer.upsert(path, newer(left))
    assert peer.rows(path).num_rows == 12
    assert table.validate().ok
