"""Writes to base files of the hybrid calendar, and merges with them: new rows and log records are Gregorian."""

from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_services
from hudi_services.commit import newest_files
from hudi_services.engine import LocalEngine
from hudi_services.jobs import compaction
from hudi_services.options import resolve
from hudi_services.runs.request import CompactionRequest, Mode

from .rides import FILTERS, create
from .tables import merged_rows, open_local

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine", "any_size")

OPTIONS = {**FILTERS, "hoodie.metadata.enable": "false"}
OLD, JULIAN = date(1, 1, 1), -719_164
"""The same label; in the Gregorian calendar it is the epoch day -719162."""
LEGACY = {
    b"org.apache.spark.version": b"3.5.1",
    b"org.apache.spark.legacyDateTime": b"",
    b"org.apache.spark.timeZone": b"UTC",
}


@pytest.fixture
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """The spoilt file is not the one that its commit knows the size of."""
    monkeypatch.setattr(newest_files, "_refuse", lambda table, problem: None)


def rows(first: int, end: int, ts: int = 0, day: date = OLD) -> pa.Table:
    count = end - first
    keys = [f"k{n}" for n in range(first, end)]
    return pa.table(
        {"id": keys, "day": ["d"] * count, "ts": pa.array([ts] * count, pa.int64()), "at": pa.array([day] * count)}
    )


def hybrid_table(path: Path, kind: str, key: str = "id", **options: str) -> hudi_services.Table:
    """A table with one base file of ten rows, as Spark writes it in its mode LEGACY."""
    table = create(path, options={**OPTIONS, **options}, table_type=kind, record_key=key)
    assert table.insert(rows(0, 10), options=OPTIONS).ok
    (file,) = path.glob("d/*.parquet")
    found = pq.read_table(file, partitioning=None)
    footer = {k: v for k, v in (pq.read_metadata(file).metadata or {}).items() if k != b"ARROW:schema"}
    julian = pa.array([JULIAN] * 10, pa.int32()).cast(pa.date32())
    found = found.set_column(found.column_names.index("at"), "at", julian)
    pq.write_table(found.replace_schema_metadata({**footer, **LEGACY}), file)
    return table


def newest_file(path: Path) -> Path:
    (one,) = open_local(path).view.latest_slices("d")
    assert one.base_file is not None
    return path / one.base_file.path


def dates(path: Path) -> list[date]:
    """The dates of the newest file, which must be Gregorian, in the order of the keys."""
    file = newest_file(path)
    assert not {b"org.apache.spark.legacyDateTime"} & {*(pq.read_metadata(file).metadata or {})}
    found: list[date] = pq.read_table(file, partitioning=None).sort_by("id").column("at").to_pylist()
    return found


def test_inserts_into_a_small_file(tmp_path: Path) -> None:
    path = tmp_path / "t"
    assert hybrid_table(path, "COPY_ON_WRITE").insert(rows(10, 15), options=OPTIONS).ok
    assert dates(path) == [OLD] * 15


def test_upserts_and_deletes(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = hybrid_table(path, "COPY_ON_WRITE")
    assert table.upsert(rows(0, 2, 1, date(2, 2, 2)), options=OPTIONS).ok
    assert dates(path) == [date(2, 2, 2)] * 2 + [OLD] * 8
    assert table.delete(rows(0, 1).select(["id", "day"]), options=OPTIONS).ok
    assert dates(path) == [date(2, 2, 2)] + [OLD] * 8


def test_keys_that_are_dates_where_no_keys_are_stored(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = hybrid_table(path, "COPY_ON_WRITE", "id,at", **{"hoodie.populate.meta.fields": "false"})
    assert table.upsert(rows(0, 2, 1), options=OPTIONS).ok
    assert dates(path) == [OLD] * 10


def test_a_compaction(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = hybrid_table(path, "MERGE_ON_READ")
    assert table.upsert(rows(0, 2, 1, date(2, 2, 2)), options=OPTIONS).ok
    (one,) = open_local(path).view.latest_slices("d")
    assert one.log_files
    assert merged_rows(path).sort_by("id").column("at").to_pylist() == [date(2, 2, 2)] * 2 + [OLD] * 8
    options = resolve([("test", {"hoodie.compact.inline.max.delta.commits": "1"})])
    wanted = CompactionRequest(base_path=str(path), options=options, mode=Mode.SCHEDULE_AND_EXECUTE)
    assert compaction.schedule_and_execute(wanted, engine=LocalEngine()).exit_code == 0
    assert dates(path) == [date(2, 2, 2)] * 2 + [OLD] * 8
