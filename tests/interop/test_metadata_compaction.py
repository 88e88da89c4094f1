"""The metadata table compacted by us: real Hudi reads it, goes on with it, and completes what a kill left of it."""

from pathlib import Path

import pyarrow as pa
import pytest

import hudi_services
from hudi_services.jobs import writing
from hudi_services.options import resolve
from hudi_services.runs.request import WriteOperation, WriteRequest

from ..unit.faulty_storage import FaultyStorage, Killed
from . import layout, ours
from .conftest import Tables
from .mdt_check import check_metadata
from .peer import Peer
from .pristine import Pristine
from .reading import METADATA_OFF, METADATA_ON, Reading, newer
from .recipes import SMALL_FILTERS, WRITE_DEFAULTS
from .rides import RIDES
from .test_recover import long_ago

_BY_HUDI = """
frame = spark.createDataFrame([(one["id"], one["day"], one["ts"]) for one in rows], "id string, day string, ts long")
frame.write.format("hudi").options(**options).mode("append").save(path)
"""
_COMPACT = {"hoodie.metadata.compact.max.delta.commits": "1"}
# Hudi cleans the metadata table when three instants follow its last compaction.
_FEW = {
    "hoodie.metadata.compact.max.delta.commits": "3",
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.clean.fileversions.retained": "1",
    "hoodie.cleaner.fileversions.retained": "1",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
}


class KilledAt(FaultyStorage):
    """Dies at the first write of a path with this text in it."""

    def __init__(self, url: str, text: str) -> None:
        super().__init__(url)
        self._text = text

    def _write(self, what: str, path: str) -> None:
        if self._text in path:
            self.left = 0
        super()._write(what, path)


def _timeline(path: Path, suffix: str) -> list[str]:
    """Instants of the metadata table that have a file like this."""
    found = (path / ".hoodie/metadata/.hoodie").rglob(f"*.{suffix}")
    return sorted(file.name.split(".")[0].split("_")[0] for file in found)


def _is_true(peer: Peer, path: Path) -> None:
    assert check_metadata(peer, path) == []
    rows = peer.rows(path, METADATA_ON)
    key, name = rows["id"][0].as_py(), rows["name"][0].as_py()
    options = {**METADATA_ON, "hoodie.enable.data.skipping": "true"}
    assert peer.rows(path, options, where=f"id = '{key}'").num_rows == 1
    # By the secondary index, where there is one.
    assert peer.rows(path, options, where=f"name = '{name}'").num_rows == rows["name"].to_pylist().count(name)


# 1.0.2 writes the same as 1.2.0, and is among the deep ones.
@pytest.mark.releases("0.15.0", "1.2.0")
@pytest.mark.deep("1.2.0")
def test_hudi_goes_on(peer: Peer, known: Pristine, table: Tables) -> None:
    """It reads the new base files, writes on top of them, and compacts again."""
    path, rows = table("keyed"), known.rows("keyed").sort_by("id")
    (done,) = ours.clustered(path, options=_COMPACT)["tables"]["metadata_compaction"]
    assert _timeline(path, "commit")[-1] == done["instant"]
    assert peer.rows(path, METADATA_ON).sort_by("id").select(["id", "ts", "name"]) == rows.select(["id", "ts", "name"])
    assert check_metadata(peer, path) == []
    peer.upsert(path, newer(rows.slice(0, 5)), **_COMPACT)
    assert _timeline(path, "commit")[-1] == done["instant"]
    peer.delete(path, rows.slice(20, 3), **_COMPACT)
    assert _timeline(path, "commit")[-1] > str(done["instant"])
    assert check_metadata(peer, path) == []


@pytest.mark.deep
@pytest.mark.releases("0.15.0", "1.2.0")
def test_hudi_cleans_and_archives_it(peer: Peer, known: Pristine, table: Tables) -> None:
    path, before = table("keyed"), known.reading("keyed")
    ours.schedule(path, sort=("name",))
    (row,) = ours.execute(path, options=_COMPACT).report["tables"]["metadata_compaction"]
    done = str(row["instant"])
    assert _timeline(path, "commit")[-1] == done and row["file_groups"] > 1
    assert before.differences(Reading.of(peer, path)) == []
    _is_true(peer, path)
    rows, oldest = before.hudi.sort_by("id"), _timeline(path, "deltacommit")[0]
    stored = set((path / ".hoodie/metadata").glob("*/*.hfile"))
    for number in range(11):
        peer.upsert(path, newer(rows.slice(number, 4)), **_FEW)
    assert _timeline(path, "clean")
    assert stored - set((path / ".hoodie/metadata").glob("*/*.hfile")), "Hudi did not clean any slice"
    assert _timeline(path, "deltacommit")[0] > oldest, "Hudi did not archive what is merged"
    assert peer.rows(path).num_rows == rows.num_rows
    _is_true(peer, path)


# With the plan alone, and when some files are there.
@pytest.mark.deep
@pytest.mark.releases("0.15.0", "1.2.0")
@pytest.mark.parametrize("at", [".compaction.inflight", "/record-index-0001-0_0-0-0_"])
def test_hudi_completes_what_a_kill_left(peer: Peer, known: Pristine, table: Tables, at: str) -> None:
    path, before = table("keyed"), known.reading("keyed")
    ours.schedule(path, sort=("name",))
    with pytest.raises(Killed):
        ours.run("execute", path, options=_COMPACT, storage=KilledAt(str(path), at))
    left = _timeline(path, "compaction.requested")[-1]
    assert left not in _timeline(path, "commit") and not layout.pending(path)
    long_ago(path)
    assert before.differences(Reading.of(peer, path)) == []
    _is_true(peer, path)
    rows = before.hudi.sort_by("id")
    peer.upsert(path, newer(rows.slice(0, 5)))
    peer.upsert(path, newer(rows.slice(3, 5)))
    assert left in _timeline(path, "commit"), "Hudi did not complete it"
    assert peer.rows(path).num_rows == rows.num_rows
    _is_true(peer, path)


# What Hudi 1.0.2 reads of the plan is what 1.2.0 reads.
@pytest.mark.deep
@pytest.mark.releases("0.15.0", "1.2.0")
def test_cleaned_by_us(peer: Peer, tmp_path: Path) -> None:
    """Hudi reads what our cleans leave, completes the clean of a process that was killed, and goes on."""
    version = peer.table_version.number
    path = tmp_path / "rides"
    options = {**SMALL_FILTERS, **_FEW, "hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
    table = hudi_services.create(path, table_version=version, options={**options, **RIDES}, engine="local")
    wanted = WriteRequest(base_path=str(path), options=resolve([("test", options)]), operation=WriteOperation.UPSERT)
    times = iter(range(100))

    def batch() -> pa.Table:
        ts, ids = next(times), [f"k{n}" for n in range(9)]
        return pa.table({"id": ids, "day": [f"d{n % 2}" for n in range(9)], "ts": [ts] * 9})

    def is_true() -> None:
        assert check_metadata(peer, path) == []
        with_it, without = (peer.rows(path, how).sort_by("id") for how in (METADATA_ON, METADATA_OFF))
        assert with_it == without and len(set(with_it["ts"].to_pylist())) == 1

    cleaned = [one for one in range(12) if "metadata_clean" in table.upsert(batch(), options=options).tables]
    assert cleaned and len(_timeline(path, "clean")) == len(cleaned)
    is_true()
    with pytest.raises(Killed):
        for _ in range(9):
            writing.write(wanted, batch().to_reader, KilledAt(str(path), ".clean.inflight"))
    assert len(_timeline(path, "clean.requested")) == len(cleaned) + 1
    is_true()
    for _ in range(4):
        peer.eval(_BY_HUDI, rows=batch().to_pylist(), options={**WRITE_DEFAULTS, **_FEW, **RIDES}, path=str(path))
    assert not {*_timeline(path, "clean.requested")} - {*_timeline(path, "clean")}, "Hudi did not complete it"
    is_true()
    assert table.upsert(batch(), options=options).ok and table.validate(strict=True).ok
    is_true()
