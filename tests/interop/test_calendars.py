"""Old dates and timestamps in files of two calendars: real Hudi reads the same before and after our services."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from . import ours
from .peer import EACH_DELTA_COMMIT, Peer
from .readers import hudi_rs_rows

_WRITES = [("CORRECTED", "UTC"), ("LEGACY", "America/Los_Angeles"), ("LEGACY", "UTC"), ("LEGACY", "Asia/Manila")]
"""How each file counts its dates, and the time zone of the session that writes it."""
_ROWS = 400
_WRITE = """
spark.conf.set("spark.sql.parquet.datetimeRebaseModeInWrite", mode)
spark.conf.set("spark.sql.session.timeZone", zone)
rows = spark.range(first, first + count).selectExpr(
    "cast(id as string) id", "0 ts",
    "case when id % 7 = 3 then null else date_from_unix_date(cast(-719162 + (id * 97003) % 720000 as int)) end d",
    "timestamp_micros(-62135596800000000 + (id * 155345600123457) % 62135596800000000) at",
    "array(named_struct('at', timestamp_micros(-62135596800000000 + id * 155345600123457))) nested")
rows.coalesce(1).write.format("hudi").options(**options).mode("append").save(path)
spark.conf.set("spark.sql.session.timeZone", "UTC")
spark.conf.unset("spark.sql.parquet.datetimeRebaseModeInWrite")
result = None
"""
_READ = """
rows = spark.read.format("hudi").load(path).selectExpr(
    "id", "ts", "unix_date(d) d", "unix_micros(at) at", "unix_micros(nested[0].at) nested")
result = sorted([list(row) for row in rows.collect()])
"""


def _options(kind: str, operation: str, **more: str) -> dict[str, str]:
    return {
        "hoodie.table.name": "old",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.datasource.write.operation": operation,
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.clean.automatic": "false",
        "hoodie.compact.inline": "false",
        **more,
    }


def _make(peer: Peer, path: Path, kind: str) -> list[list[Any]]:
    for number, (mode, zone) in enumerate(_WRITES):
        options = _options(kind, "bulk_insert")
        peer.eval(_WRITE, path=str(path), mode=mode, zone=zone, first=number * _ROWS, count=_ROWS, options=options)
    return _read(peer, path)


def _read(peer: Peer, path: Path) -> list[list[Any]]:
    found: list[list[Any]] = peer.eval(_READ, path=str(path))
    return found


def _by_hudi_rs(path: Path) -> list[list[Any]]:
    rows = hudi_rs_rows(path)
    columns = [rows[name].cast(kind) for name, kind in (("d", pa.int32()), ("at", pa.int64()))]
    return sorted(
        [list(row) for row in zip(rows["id"].to_pylist(), *(one.to_pylist() for one in columns), strict=True)]
    )


@pytest.mark.thorough
@pytest.mark.deep("0.15.0", "1.0.2")
def test_a_clustering_keeps_old_dates(peer: Peer, tmp_path: Path) -> None:
    path = tmp_path / "t"
    before = _make(peer, path, "COPY_ON_WRITE")
    assert min(row[2] for row in before if row[2] is not None) == -719_162
    ours.schedule(path)
    done = ours.run("execute", path).ok()
    assert done.report["decoded"] == {"values converted": 1}
    assert _read(peer, path) == before
    # It heeds no markers, which are gone now.
    assert _by_hudi_rs(path) == [[row[0], row[2], row[3]] for row in before]


# 1.0.2 cannot append to log files of this table: a NullPointerException in its writer.
@pytest.mark.releases("0.15.0", "1.2.0")
@pytest.mark.deep
def test_a_compaction_keeps_old_dates(peer: Peer, tmp_path: Path) -> None:
    path = tmp_path / "t"
    before = {row[0]: row for row in _make(peer, path, "MERGE_ON_READ")}
    # Row 1 of each file becomes another one.
    options = _options("MERGE_ON_READ", "upsert")
    changed = [1 + number * _ROWS for number in range(len(_WRITES))]
    for first in changed:
        peer.eval(_WRITE, path=str(path), mode="CORRECTED", zone="UTC", first=first, count=1, options=options)
    assert {row[0]: row for row in _read(peer, path)} == before
    ours.run("compact", path, "--mode", "scheduleAndExecute", options=EACH_DELTA_COMMIT).ok()
    assert {row[0]: row for row in _read(peer, path)} == before
