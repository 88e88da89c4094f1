"""Spark's entry about the calendar in a footer survives a rewrite: without it, Spark refuses old dates."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hudi_services.errors import UnsupportedTable
from hudi_services.files import parquet_schema as ps
from hudi_services.files.calendar import FooterMetadata, calendar_metadata
from hudi_services.files.parquet_footer import Physical
from hudi_services.files.parquet_schema import OPTIONAL, node
from hudi_services.rewriting.rewrite import rewrite_group
from hudi_services.rewriting.task import RewriteTask
from hudi_services.rows.settings import FileSettings

from .parquet_samples import real_file, schema_of, slices_in

DAY = node("day", OPTIONAL, Physical.INT32, converted=ps.DATE)
DATES = schema_of(DAY)
NUMBERS = schema_of(node("n", OPTIONAL, Physical.INT32))
OLD_TIMES = schema_of(DAY, node("at", OPTIONAL, Physical.INT96))

SPARK = {"org.apache.spark.version": "3.5.1"}
AVRO: dict[str, str] = {"writer.model.name": "avro"}
LEGACY = {
    **SPARK,
    "org.apache.spark.legacyDateTime": "",
    "org.apache.spark.legacyINT96": "",
    "org.apache.spark.timeZone": "UTC",
}


def notes(*files: dict[str, str], schema: ps.FileSchema = DATES) -> dict[str, str]:
    return calendar_metadata([FooterMetadata(f"{i}.parquet", one) for i, one in enumerate(files)], schema)


def test_the_newest_note_is_kept() -> None:
    assert notes(SPARK, {"org.apache.spark.version": "3.3.0"}) == SPARK
    assert notes(AVRO, SPARK) == SPARK
    assert notes(AVRO, AVRO) == {}
    assert notes({**SPARK, "other": "x"}) == SPARK


def test_the_old_calendar_is_kept() -> None:
    assert notes(LEGACY, LEGACY) == LEGACY
    assert notes({"org.apache.spark.version": "2.4.8"}) == {"org.apache.spark.version": "2.4.8"}


@pytest.mark.parametrize(
    "other", [SPARK, AVRO, {**LEGACY, "org.apache.spark.timeZone": "Asia/Tokyo"}], ids=["new", "avro", "zone"]
)
def test_two_calendars_are_refused(other: dict[str, str]) -> None:
    with pytest.raises(UnsupportedTable, match=r"1\.parquet and 0\.parquet count their dates in different calendars"):
        notes(LEGACY, other)
    assert notes(LEGACY, other, schema=NUMBERS) == {}


def test_int96_changed_its_calendar_later() -> None:
    early = {"org.apache.spark.version": "3.0.3"}
    assert notes(SPARK, early) == SPARK
    with pytest.raises(UnsupportedTable):
        notes(SPARK, early, schema=OLD_TIMES)


def test_a_rewrite_carries_it_over(tmp_path: Path) -> None:
    storage, path = real_file(tmp_path, "1.2.0_bulk")
    assert pq.read_metadata(tmp_path / path).metadata[b"org.apache.spark.version"].startswith(b"3.5")
    task = RewriteTask(
        storage,
        "20260101000000000",
        "",
        *slices_in(storage, path),
        ("a-0",),
        (),
        "LINEAR",
        None,
        (),
        meta_fields=True,
        settings=FileSettings(),
    )
    (new,) = rewrite_group(task, "0-0-0").files
    assert pq.read_metadata(tmp_path / new.file.path).metadata[b"org.apache.spark.version"].startswith(b"3.5")
