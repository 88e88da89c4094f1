"""Merge-on-read tables whose base files have several row groups: those that no log record touches are copied."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from . import ours
from .mdt_check import check_metadata
from .peer import EACH_DELTA_COMMIT, Peer
from .recipes import SMALL_FILTERS, WRITE_DEFAULTS
from .test_merge_on_read import keyed, read_by_all

_WRITER = {
    **WRITE_DEFAULTS,
    **SMALL_FILTERS,
    "hoodie.table.name": "grouped",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.compact.inline": "false",
    "hoodie.parquet.block.size": "30000",
}
_SIZE = {"hoodie.parquet.block.size": "30000"}
IN_PART = {"log files in some row groups": 1}


def rows(ids: Sequence[int], ts: int, note: str) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{i:05d}" for i in ids],
            "p": ["a"] * len(ids),
            "ts": pa.array([ts] * len(ids), pa.int64()),
            "note": [f"{note} {i * 7919 % 10007:07d} {i * i:012d}" for i in ids],
            "ratio": [i / 7 if i % 5 else None for i in ids],
        }
    )


def row_groups(path: Path) -> int:
    (file,) = path.glob("a/*.parquet")
    return int(pq.read_metadata(file).num_row_groups)


@pytest.mark.deep
@pytest.mark.parametrize("codec", ["zstd", "gzip"])
def test_copied_beside_merged(codec: str, peer: Peer, tmp_path: Path) -> None:
    """Updates, deletes, late updates and inserts in a small range of the keys; Hudi goes on afterwards."""
    path = tmp_path / "table"
    writer = {**_WRITER, "hoodie.parquet.compression.codec": "gzip"}
    peer.write(path, rows(range(4000), 5, "first"), writer | {"hoodie.datasource.write.operation": "bulk_insert"})
    assert row_groups(path) > 8
    peer.upsert(path, rows(range(1500, 1600), 6, "second"), **writer)
    peer.upsert(path, rows([7, 3999], 1, "too late"), **writer)
    peer.upsert(path, rows([*range(5000, 5010)], 6, "new"), **writer)
    peer.delete(path, rows(range(1550, 1580), 7, ""), **writer)
    before = keyed(peer.rows(path))
    assert len(before) == 3980
    clustered = tmp_path / "clustered"
    shutil.copytree(path, clustered)
    options = {**_SIZE, "hoodie.parquet.compression.codec": codec}
    compact = ("compact", path, "--mode", "scheduleAndExecute")
    done = ours.run(*compact, options=options | EACH_DELTA_COMMIT).ok().report
    assert done["decoded"] == IN_PART
    # With keys that Hudi has put into another file group, the group to cluster has a slice without log files.
    assert set(ours.clustered(clustered, options=options)["decoded"]) == set(IN_PART)
    for place in (path, clustered):
        for reader, found in read_by_all(peer, place).items():
            assert found == before, f"{place.name}, {reader}"
        assert [text for text in check_metadata(peer, place) if ".log." not in text] == []
        assert ours.run("validate", place).ok().code == 0
        peer.upsert(place, rows(range(1590, 1610), 9, "third"), **writer)
        peer.delete(place, rows([0, 3000], 9, ""), **writer)
        now = keyed(peer.rows(place))
        assert len(now) == 3978
        assert sum("third" in row["note"] for row in now.values()) == 20
