"""Archival: what we choose is what real Hudi chooses; Hudi reads our archive, writes on, and archives on top of it."""

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_services
from hudi_services.jobs import archive as job
from hudi_services.options import resolve
from hudi_services.runs.request import ArchiveRequest

from ..unit.faulty_storage import FaultyStorage, Killed
from ..unit.tables import open_local
from . import layout
from .mdt_check import check_metadata
from .peer import Peer
from .readers import hudi_rs_rows
from .reading import METADATA_OFF, METADATA_ON
from .recipes import SMALL_FILTERS, WRITE_DEFAULTS

_WRITE = "hoodie.datasource.write."
_KEEP = {
    "hoodie.keep.max.commits": "6",
    "hoodie.keep.min.commits": "4",
    "hoodie.clean.commits.retained": "2",
    "hoodie.cleaner.commits.retained": "2",
    "hoodie.timeline.compaction.batch.size": "3",
}
_AT_ONCE = {"hoodie.time.generator.max_expected_clock_skew_ms": "0"}
_ARCHIVED = """
conf = jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(spark.sparkContext._jsc.hadoopConfiguration())
client = jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder().setConf(conf).setBasePath(path).build()
archived = client.getArchivedTimeline()
archived.loadCompletedInstantDetailsInMemory()
result = []
for one in archived.getInstants():
    ts = one.getTimestamp() if version == "0.15.0" else one.requestedTime()
    details = archived.getInstantDetails(one) if one.isCompleted() else None
    size = len(details.get()) if details is not None and details.isPresent() else 0
    result.append([ts, one.getAction(), one.getState().toString(), size])
"""


class Life:
    """A table that Hudi and we write, and what its rows must be."""

    def __init__(self, peer: Peer, path: Path, kind: str, *, metadata: bool) -> None:
        self.peer, self.path, self.metadata = peer, path, metadata
        version = peer.table_version
        self._options = {
            **WRITE_DEFAULTS,
            **SMALL_FILTERS,
            "hoodie.table.name": "rides",
            f"{_WRITE}recordkey.field": "id",
            f"{_WRITE}partitionpath.field": "day",
            f"{_WRITE}precombine.field": "ts",
            f"{_WRITE}table.type": kind,
            "hoodie.write.table.version": str(version.number),
            "hoodie.metadata.enable": str(metadata).lower(),
            "hoodie.metadata.compact.max.delta.commits": "3",
            "hoodie.clean.automatic": "true",
            "hoodie.clean.commits.retained": "2",
            "hoodie.cleaner.commits.retained": "2",
            "hoodie.compact.inline": str(kind == "MERGE_ON_READ").lower(),
            "hoodie.compact.inline.max.delta.commits": "3",
            "hoodie.archive.automatic": "false",
        }
        self.rows: dict[str, int] = {}
        self._round = 0

    def write(self, operation: str = "upsert", options: Mapping[str, str] | None = None) -> None:
        """Hudi writes some rows, old and new ones."""
        self._round += 1
        chosen = [(7 * self._round + 3 * n) % 40 for n in range(8)]
        if operation == "insert_overwrite":
            chosen = [n for n in chosen if n % 2 == 0]
            self.rows = {key: at for key, at in self.rows.items() if int(key) % 2}
        keys = [str(n) for n in dict.fromkeys(chosen)]
        self.rows |= dict.fromkeys(keys, self._round)
        new = pa.table(
            {
                "id": keys,
                "ts": pa.array([self._round] * len(keys), pa.int64()),
                "day": [f"d{int(key) % 2}" for key in keys],
            }
        )
        self.peer.write(self.path, new, {**self._options, f"{_WRITE}operation": operation, **(options or {})})

    def check(self) -> None:
        for options in (METADATA_ON, METADATA_OFF) if self.metadata else (METADATA_OFF,):
            assert _seen(self.peer.rows(self.path, options)) == self.rows
        assert _seen(hudi_rs_rows(self.path)) == self.rows
        if self.metadata and self._options[f"{_WRITE}table.type"] == "COPY_ON_WRITE":
            # It does not know the statistics of log files, which `validate` compares.
            assert check_metadata(self.peer, self.path) == []


def _seen(rows: pa.Table) -> dict[str, int]:
    assert len(set(rows["id"].to_pylist())) == rows.num_rows
    return dict(zip(rows["id"].to_pylist(), rows["ts"].to_pylist(), strict=True))


def _timeline(path: Path) -> list[str]:
    """The names of all instant files."""
    return sorted(open_local(path).timeline.sizes)


def _archived(peer: Peer, path: Path) -> list[tuple[str, str, str, int]]:
    found: Sequence[Any] = peer.eval(_ARCHIVED, path=str(path), version=peer.version)
    return [(ts, action, state, size) for ts, action, state, size in found]


def _archive(path: Path) -> hudi_services.Result:
    return hudi_services.open(path, engine="local").archive(options=_KEEP)


def _by_hudi(peer: Peer, path: Path, *, metadata: bool, most: int = 6) -> None:
    peer.sql(
        f"call archive_commits(path => '{path}', min_commits => 4, max_commits => {most}, retain_commits => 2, "
        f"enable_metadata => {str(metadata).lower()})"
    )


def _completed(path: Path) -> set[tuple[str, str]]:
    return {(one.ts, one.action.value) for one in open_local(path).timeline.completed()}


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["MERGE_ON_READ", "COPY_ON_WRITE"])
@pytest.mark.parametrize("metadata", [True, False], ids=["with metadata table", "without"])
def test_archival_in_turns(peer: Peer, kind: str, metadata: bool, tmp_path: Path) -> None:
    life = Life(peer, tmp_path / "table", kind, metadata=metadata)
    for number in range(16):
        life.write("insert_overwrite" if number == 5 and kind == "COPY_ON_WRITE" else "upsert")
    before = _completed(life.path)

    # The same choice, on a copy for Hudi.
    theirs = Path(shutil.copytree(life.path, tmp_path / "theirs"))
    _by_hudi(peer, theirs, metadata=metadata)
    result = _archive(life.path)
    assert result.ok and not result.idle, result.reason
    assert _timeline(life.path) == _timeline(theirs)
    gone = before - _completed(life.path)
    assert len(gone) > 5

    # Hudi reads our archive, which has every instant once.
    found = _archived(peer, life.path)
    assert max(Counter(one[:3] for one in found).values()) == 1
    completed = {(ts, action) for ts, action, state, _ in found if state == "COMPLETED"}
    assert completed == gone
    assert all(size for _, action, state, size in found if state == "COMPLETED")
    assert {one[:3] for one in found} == {one[:3] for one in _archived(peer, theirs)}
    assert life.path.joinpath(".hoodie/metadata").exists() == metadata
    life.check()

    # Hudi writes and archives on, and so do we.
    for number in range(9):
        life.write(options={**_KEEP, "hoodie.archive.automatic": "true"})
        if number % 4 == 3:
            for _ in range(4):
                life.write()
            assert _archive(life.path).ok
    life.check()
    again = _archived(peer, life.path)
    assert max(Counter(one[:3] for one in again).values()) == 1
    assert {one[:3] for one in found} < {one[:3] for one in again}
    assert not {one[:2] for one in again if one[2] == "COMPLETED"} & _completed(life.path)
    assert hudi_services.open(life.path, engine="local").validate(strict=True).ok or not metadata


@pytest.mark.deep
def test_what_holds_the_timeline_is_the_same(peer: Peer, tmp_path: Path) -> None:
    """A clustering before and after its old files are cleaned, a write that is not completed, a savepoint."""
    life = Life(peer, tmp_path / "table", "COPY_ON_WRITE", metadata=False)
    quiet = {"hoodie.clean.automatic": "false"}
    tables = {}

    def keep(name: str) -> Path:
        tables[name] = Path(shutil.copytree(life.path, tmp_path / name))
        return tables[name]

    for number in range(13):
        if number == 4:
            peer.cluster(life.path, options={"hoodie.clustering.inline.max.commits": "1"})
        life.write(options=quiet)
        if number == 9:
            keep("never cleaned")
            held = keep("held")
            first = open_local(held).timeline.completed_writes()[2].ts
            peer.procedure(held, "create_savepoint", f"commit_time => '{first}'")
        if number == 10:
            peer.clean(life.path, retain=3)
    keep("cleaned")
    # Cleans would retain all since the commit before it, and so do archivals.
    writes = open_local(life.path).timeline.completed_writes()
    pending = keep("pending")
    (layout.timeline(pending) / writes[2].file_name).unlink()
    left = {}
    for name, path in tables.items():
        theirs = Path(shutil.copytree(path, tmp_path / f"{name}, theirs"))
        _by_hudi(peer, theirs, metadata=False)
        _archive(path)
        assert _timeline(path) == _timeline(theirs), name
        left[name] = len(open_local(path).timeline.completed_writes())
    assert left == {"never cleaned": 7, "held": 9, "cleaned": 4, "pending": 13}


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudi_goes_on_after_a_kill(peer: Peer, kind: str, tmp_path: Path) -> None:
    """Wherever ours was killed, Hudi sees the rows, and its next archival ends as one without the kill."""
    life = Life(peer, tmp_path / "table", kind, metadata=True)
    for _ in range(12):
        life.write()
    before = _completed(life.path)
    whole = Path(shutil.copytree(life.path, tmp_path / "whole"))
    job.archive(_request(whole), storage := FaultyStorage(str(whole)))
    wanted = _timeline(whole)
    rows = life.rows
    own = [n for n, what in enumerate(storage.log) if "metadata" not in what]
    for survived in own[:: max(len(own) // 5, 1)]:
        life.path = Path(shutil.copytree(tmp_path / "table", tmp_path / f"killed {survived}"))
        life.rows = dict(rows)
        with pytest.raises(Killed):
            job.archive(_request(life.path), FaultyStorage(str(life.path), survived))
        for options in (METADATA_ON, METADATA_OFF):
            assert _seen(peer.rows(life.path, options)) == life.rows
        # What is left of it may be less than begins an archival.
        left = len(open_local(life.path).timeline.completed_writes())
        if left > 5:
            _by_hudi(peer, life.path, metadata=True, most=min(left - 1, 6))
        assert set(wanted) <= set(_timeline(life.path))
        found = _archived(peer, life.path)
        assert {(ts, action) for ts, action, state, _ in found if state == "COMPLETED"} | _completed(
            life.path
        ) == before
        life.check()
        life.write(options={**_KEEP, "hoodie.archive.automatic": "true"})
        life.check()


def _request(path: Path) -> ArchiveRequest:
    return ArchiveRequest(base_path=str(path), options=resolve([("test", {**_KEEP, **_AT_ONCE})]))


@pytest.mark.thorough
@pytest.mark.releases("1.0.2", "1.2.0")
def test_an_upgrade_rewrites_our_archive(peer: Peer, tmp_path: Path) -> None:
    """Hudi 1.x turns the log files of version 6 into its own archive, when it upgrades the table."""
    path = tmp_path / "table"
    definition = {"name": "rides", "record_key": "id", "partition_by": "day", "ordering": "ts"}
    table = hudi_services.create(path, table_version=6, engine="local", options=SMALL_FILTERS, **definition)
    options = {**SMALL_FILTERS, **_KEEP, "hoodie.metadata.compact.max.delta.commits": "3"}
    for number in range(10):
        rows = pa.table({"id": ["a", "b"], "ts": pa.array([number] * 2, pa.int64()), "day": ["x", "y"]})
        (table.insert_overwrite if number == 2 else table.upsert)(rows, options=options)
    gone = open_local(path).timeline.archived.completed
    assert len(gone) > 3 and "replacecommit" in gone.values()
    rows = rows.set_column(1, "ts", pa.array([99] * 2, pa.int64()))
    peer.upsert(path, rows, **{"hoodie.metadata.enable": "true", "hoodie.archive.automatic": "false"})
    assert hudi_services.open(path, engine="local").version > 6
    found = {ts: action for ts, action, _, size in _archived(peer, path) if size}
    assert {ts: action for ts, action in found.items() if action.endswith("commit")} == gone
    # Not hudi-rs, which refuses the metadata table of an upgraded table.
    for seen in (peer.rows(path, METADATA_ON), peer.rows(path, METADATA_OFF)):
        assert _seen(seen) == {"a": 99, "b": 99}
