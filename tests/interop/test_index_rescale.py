"""Another number of file groups for the record index: real Hudi finds every key afterwards, and keeps the index."""

from pathlib import Path

import pytest

from hudi_services.engine import LocalEngine
from hudi_services.jobs.index_rescale import index_rescale

from ..unit.faulty_storage import Killed
from ..unit.test_index_rescale import DiesAtPublishing, wanted
from . import ours
from .conftest import Tables
from .live_writer import LiveWriter, alarm, validate_once
from .mdt_check import check_metadata
from .peer import Peer
from .reading import Reading, newer
from .test_index import _has_index, _hudi_uses_it
from .test_partitioned_index import _hudi_uses_it as _hudi_uses_it_by_partition
from .test_partitioned_index import _is_found

_COMPACT = {"hoodie.metadata.compact.max.delta.commits": "1"}


def _groups(path: Path) -> set[str]:
    folder = path / ".hoodie/metadata/record_index"
    names = (file.name.lstrip(".") for file in folder.iterdir() if "record-index" in file.name)
    return {name.partition("_")[0] for name in names}


@pytest.mark.thorough
def test_rescaled_up_and_down(peer: Peer, table: Tables) -> None:
    path = table("keyed")
    # One release stands for Spark, one for processes.
    run = {"0.15.0": ours.run_process, "1.0.2": ours.run_local}.get(peer.version, ours.run)
    for count in (8, 3):
        # Log files on top of the base files.
        peer.upsert(path, newer(peer.rows(path).slice(0, 3)))
        before = Reading.of(peer, path)
        report = run("index-rescale", path, "--file-group-count", str(count)).ok().report
        assert report["rows"]["out"] == before.hudi.num_rows
        assert len(_groups(path)) == count
    assert before.differences(Reading.of(peer, path)) == []
    assert check_metadata(peer, path) == []
    _hudi_uses_it(peer, path)
    rows = peer.rows(path)
    peer.clean(path)
    peer.upsert(path, newer(rows.slice(0, 3)), **_COMPACT)
    assert peer.rows(path).num_rows == rows.num_rows
    assert len(_groups(path)) == 3


@pytest.mark.deep
@pytest.mark.releases("1.2.0")
def test_rescaled_by_partition(peer: Peer, table: Tables) -> None:
    path = table("by_partition")
    before = Reading.of(peer, path)
    partition = str(before.hudi["_hoodie_partition_path"][0].as_py())
    ours.run("index-rescale", path, "--file-group-count", "5", "--partition", partition).ok()
    ours.run("index-rescale", path, "--file-group-count", "3").ok()
    assert before.differences(Reading.of(peer, path)) == []
    assert check_metadata(peer, path) == []
    _is_found(peer, path)
    _hudi_uses_it_by_partition(peer, path)


@pytest.mark.deep
def test_killed_without_an_index(peer: Peer, table: Tables) -> None:
    """A writer of Hudi builds the index that is not there; the next run rescales that one."""
    path = table("keyed")
    before = Reading.of(peer, path)
    with pytest.raises(Killed):
        index_rescale(wanted(path, 8), DiesAtPublishing(str(path)), LocalEngine())
    assert not _has_index(path)
    assert before.differences(Reading.of(peer, path)) == []
    # The writer knows no index by the properties, so that it must be told to keep one.
    peer.upsert(
        path,
        newer(before.hudi.slice(0, 7)),
        **{"hoodie.metadata.record.index.enable": "true", "hoodie.index.type": "RECORD_INDEX"},
    )
    assert peer.rows(path).num_rows == before.hudi.num_rows
    assert _has_index(path)
    assert check_metadata(peer, path) == []
    ours.run("index-rescale", path, "--file-group-count", "8", "--resume").ok()
    assert len(_groups(path)) == 8
    assert check_metadata(peer, path) == []
    _hudi_uses_it(peer, path)


_LOCKED = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
}


@pytest.mark.deep
def test_beside_a_live_writer(peer: Peer, tmp_path: Path) -> None:
    """It writes all the time, compacts, cleans and archives its metadata table; under one lock with us."""
    path, counts = tmp_path / "table", []
    with LiveWriter(peer, path, options=_LOCKED) as writer:
        while len(counts) < 2 and writer.writes < 60 and writer.error is None:
            count = (5, 3)[len(counts)]
            done = ours.run("index-rescale", path, "--file-group-count", str(count), options=_LOCKED)
            # It may find no moment without a pending write, and the writer may have made the index anew.
            assert done.code in (0, 4), done.stderr
            counts += [count] if done.code == 0 else []
    assert counts == [5, 3]
    assert alarm(validate_once(path)) is None
    rows = peer.rows(path)
    assert len({*rows["id"].to_pylist()}) == rows.num_rows
    names = ("id", "_hoodie_partition_path", "_hoodie_file_name")
    columns = (rows[name].to_pylist() for name in names)
    real = {key: (partition, name.split("_")[0]) for key, partition, name in zip(*columns, strict=True)}
    found = peer.record_locations(path, [*real])
    assert {key: (partition, file_id) for key, (partition, file_id, _) in found.items()} == real
