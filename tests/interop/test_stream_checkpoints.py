"""Spark's streaming sink of real Hudi on tables that we cluster, compact, clean and archive: a replayed micro-batch.

The sink finds by its checkpoint, in the extra metadata of a commit, that a batch was written. A driver that dies after
the commit, before Spark notes it, replays the batch when it starts again.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest

from . import ours
from .peer import Peer

_KEY = "_hudi_streaming_sink_checkpoint"
_ROLLING = {"hoodie.write.rolling.metadata.keys": _KEY}
_BEYOND = {"hudi.services.archive.beyond.checkpoint": "true"}
_STREAM = """
def stream():
    frame = spark.readStream.schema("id string, v bigint").parquet(files)
    query = frame.writeStream.format("hudi").options(**options).trigger(availableNow=True)
    query.start(path).awaitTermination()
"""
_WRITE = (
    _STREAM
    + """
for k in range(3):
    frame = spark.range(k * 10, k * 10 + 10).coalesce(1).selectExpr("cast(id as string) id", "id v")
    frame.write.mode("append").parquet(files)
    stream()
"""
)
_FEW = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
    "hoodie.metadata.compact.max.delta.commits": "2",
    "hoodie.clustering.plan.strategy.small.file.limit": "1073741824",
    "hoodie.compact.inline.trigger.strategy": "TIME_ELAPSED",
}


def _options(checkpoint: Path, kind: str) -> dict[str, str]:
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.operation": "insert",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.clean.automatic": "false",
        "hoodie.archive.automatic": "false",
        "hoodie.datasource.compaction.async.enable": "false",
        "checkpointLocation": str(checkpoint),
    }


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("more", [{}, _ROLLING, _BEYOND], ids=["kept", "rolling", "archived"])
def test_a_replayed_batch(peer: Peer, kind: str, more: Mapping[str, str], tmp_path: Path) -> None:
    table, source, checkpoint = tmp_path / "t", tmp_path / "in", tmp_path / "checkpoint"
    options = _options(checkpoint, kind)
    peer.eval(_WRITE, path=str(table), files=str(source), options=options)
    for _ in range(5):
        ours.cluster(table, sort=("id",), options={**_FEW, **more})
        for command in ("clean", "archive"):
            done = ours.run(command, table, options={**_FEW, **more})
            assert done.code == 0, done
    told = [one for one in done.report["warnings"] if _KEY in one]
    assert bool(told) == (not more), done.report
    assert peer.rows(table).num_rows == 30
    # The driver died before it noted the last batch.
    for name in ("2", ".2.crc"):
        (checkpoint / "commits" / name).unlink(missing_ok=True)
    peer.eval(_STREAM + "stream()", path=str(table), files=str(source), options=options)
    rows = peer.rows(table)
    keys = len(set(rows.column("id").to_pylist()))
    # Without its checkpoint the sink writes the batch a second time: why we keep it.
    assert (rows.num_rows, keys) == ((40, 30) if more is _BEYOND else (30, 30))
