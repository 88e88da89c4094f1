"""Rewriting one group: the forms of base files that real Hudi writes and that need care."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_services.errors import CheckFailed
from hudi_services.rewriting import inputs
from hudi_services.rewriting.rewrite import RewriteResult, rewrite_group
from hudi_services.rewriting.task import RewriteTask
from hudi_services.rows.settings import FileSettings
from hudi_services.rows.sort_order import SortColumn
from hudi_services.schema.table_schema import META_COLUMNS
from hudi_services.stores import open_storage

from .parquet_samples import slices_in

INSTANT = "20260101000000000"


def rewrite(folder: Path, *inputs: str, meta_fields: bool = True, sort: tuple[SortColumn, ...] = ()) -> RewriteResult:
    """Into one file; the inputs are newest first."""
    storage = open_storage(str(folder))
    task = RewriteTask(
        storage,
        INSTANT,
        "",
        *slices_in(storage, *inputs),
        ("a-0",),
        sort,
        "LINEAR",
        None,
        (),
        meta_fields,
        FileSettings(),
    )
    return rewrite_group(task, "0-0-0")


def test_empty_meta_columns_stay_where_there_are_no_meta_fields(tmp_path: Path) -> None:
    """Hudi 1.2 writes them so in a bulk insert with hoodie.populate.meta.fields=false."""
    rows = pa.table({**{name: ["", ""] for name in META_COLUMNS[:5]}, "id": ["b", "a"]})
    pq.write_table(rows, tmp_path / "in.parquet")
    (new,) = rewrite(tmp_path, "in.parquet", meta_fields=False).files
    assert pq.read_table(tmp_path / new.path) == rows


@pytest.mark.parametrize("sort", [(), (SortColumn("d"),)], ids=["unsorted", "sorted"])
def test_dates_stay_in_their_calendar(
    sort: tuple[SortColumn, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same number is another day in the hybrid calendar, which a note in the footer tells of."""
    notes = {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""}
    rows = pa.table({"d": pa.array([-200_000, 1], pa.date32())}).replace_schema_metadata(notes)
    pq.write_table(rows, tmp_path / "in.parquet")
    (new,) = rewrite(tmp_path, "in.parquet", meta_fields=False, sort=sort).files
    assert pq.read_metadata(tmp_path / new.path).metadata[b"org.apache.spark.legacyDateTime"] == b""
    monkeypatch.setattr(inputs, "calendar_metadata", lambda *_: {})
    with pytest.raises(CheckFailed, match="calendar"):
        rewrite(tmp_path, "in.parquet", meta_fields=False, sort=sort)
