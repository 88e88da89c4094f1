"""Dates of two calendars: Spark's entry in a footer survives a rewrite; where files differ, all become Gregorian."""

from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_services.calendars import calendar_rebase
from hudi_services.calendars.calendar import FileCalendar, calendar_metadata, have_two_calendars
from hudi_services.calendars.calendar_rebase import zone_rule
from hudi_services.errors import CheckFailed, UnsupportedTable
from hudi_services.parquet import file_schema as ps
from hudi_services.parquet.file_schema import OPTIONAL, node
from hudi_services.parquet.footer import Physical
from hudi_services.rewriting.inputs import TableColumns, fitting
from hudi_services.rewriting.rewrite import RewriteResult, rewrite_group
from hudi_services.rewriting.task import RewriteTask
from hudi_services.rows.settings import FileSettings
from hudi_services.rows.sort_order import SortColumn
from hudi_services.stores import open_storage

from .parquet_samples import real_file, schema_of, slices_in

DAY = node("day", OPTIONAL, Physical.INT32, converted=ps.DATE)
DATES = schema_of(DAY)
NUMBERS = schema_of(node("n", OPTIONAL, Physical.INT32))
OLD_TIMES = schema_of(DAY, node("at", OPTIONAL, Physical.INT96))
TIMES = schema_of(node("at", OPTIONAL, Physical.INT64, converted=ps.TIMESTAMP_MICROS))

SPARK = {"org.apache.spark.version": "3.5.1"}
AVRO: dict[str, str] = {"writer.model.name": "avro"}
LEGACY = {
    **SPARK,
    "org.apache.spark.legacyDateTime": "",
    "org.apache.spark.legacyINT96": "",
    "org.apache.spark.timeZone": "UTC",
}


def calendars(*files: dict[str, str], schema: ps.FileSchema = DATES) -> list[FileCalendar]:
    return [FileCalendar(f"{i}.parquet", one, schema) for i, one in enumerate(files)]


def notes(*files: dict[str, str], schema: ps.FileSchema = DATES) -> dict[str, str]:
    found = calendars(*files, schema=schema)
    assert not have_two_calendars(found, schema)
    return calendar_metadata(found, schema)


def test_the_newest_note_is_kept() -> None:
    assert notes(SPARK, {"org.apache.spark.version": "3.3.0"}) == SPARK
    assert notes(AVRO, SPARK) == SPARK
    assert notes(AVRO, AVRO) == {}
    assert notes({**SPARK, "other": "x"}) == SPARK


def test_the_old_calendar_is_kept() -> None:
    assert notes(LEGACY, LEGACY) == LEGACY
    assert notes({"org.apache.spark.version": "2.4.8"}) == {"org.apache.spark.version": "2.4.8"}
    # Dates have no zone.
    assert notes(LEGACY, {**LEGACY, "org.apache.spark.timeZone": "Asia/Tokyo"}) == LEGACY


@pytest.mark.parametrize(
    "other", [SPARK, AVRO, {**LEGACY, "org.apache.spark.timeZone": "Asia/Tokyo"}], ids=["new", "avro", "zone"]
)
def test_two_calendars_become_one(other: dict[str, str]) -> None:
    found = calendars(LEGACY, other, schema=TIMES)
    assert have_two_calendars(found, TIMES)
    assert calendar_metadata([one.converted() for one in found], TIMES) == SPARK
    assert not have_two_calendars(found, NUMBERS) and calendar_metadata(found, NUMBERS) == {}


def test_a_converted_file_of_spark_2_does_not_say_so() -> None:
    (old,) = calendars({"org.apache.spark.version": "2.4.8"})
    assert calendar_metadata([old.converted()], DATES) == {"org.apache.spark.version": "3.1.0"}


def test_int96_changed_its_calendar_later() -> None:
    early = {"org.apache.spark.version": "3.0.3"}
    assert notes(SPARK, early) == SPARK
    assert have_two_calendars(calendars(SPARK, early, schema=OLD_TIMES), OLD_TIMES)


def test_int96_that_becomes_micros_may_meet_another_calendar() -> None:
    legacy = {**SPARK, "org.apache.spark.legacyINT96": "", "org.apache.spark.timeZone": "UTC"}
    at = ps.node("at", OPTIONAL, Physical.INT96)
    (old,), (new,) = calendars(legacy, schema=schema_of(at)), calendars(SPARK, schema=TIMES)
    assert have_two_calendars([new, old], TIMES)


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
    assert pq.read_metadata(tmp_path / new.path).metadata[b"org.apache.spark.version"].startswith(b"3.5")


# ------------------------------------------------------------------------------------------------- values of two files

CALIFORNIA = {**LEGACY, "org.apache.spark.timeZone": "America/Los_Angeles"}
OLD_DAYS = [-719_164, -354_221, -354_220, -141_428, -141_427, 0, None]
"""Julian: 0001-01-01, 1000-02-29 (a day that the Gregorian calendar has not), 1000-03-01, 1582-10-04; 1582-10-15."""
SAME_LABELS = [date(1, 1, 1), date(1000, 3, 1), date(1000, 3, 1), date(1582, 10, 4), date(1582, 10, 15)]
OLD_MICROS = [-62_135_769_600_000_000 + 28_800_000_000, -2_717_640_000_000_001, -2_717_640_000_000_000, 1, None]
"""0001-01-01T00:00 in Los Angeles; the last time of its mean time, and the first time of its standard time."""
SAME_TIMES = [
    datetime(1, 1, 1, 7, 52, 58, tzinfo=UTC),
    datetime(1883, 11, 18, 19, 52, 57, 999999, tzinfo=UTC),
    datetime(1883, 11, 18, 20, tzinfo=UTC),
    datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    None,
]


def days(values: list[int | None]) -> pa.Array:
    return pa.array(values, pa.int32()).cast(pa.date32())


def instants(values: list[int | None], unit: str = "us") -> pa.Array:
    return pa.array(values, pa.int64()).cast(pa.timestamp(unit, "UTC"))


def write(folder: Path, name: str, table: pa.Table, entries: dict[str, str], **options: object) -> None:
    pq.write_table(table.replace_schema_metadata(entries), folder / name, **options)


def rewritten(folder: Path, *names: str, sort: tuple[SortColumn, ...] = ()) -> tuple[RewriteResult, pq.ParquetFile]:
    storage = open_storage(str(folder))
    task = RewriteTask(
        storage,
        "20260101000000000",
        "",
        *slices_in(storage, *names),
        ("a-0",),
        sort,
        "LINEAR",
        None,
        (),
        meta_fields=False,
        settings=FileSettings(),
    )
    result = rewrite_group(task, "0-0-0")
    return result, pq.ParquetFile(folder / result.files[0].path)


def entries_of(file: pq.ParquetFile) -> dict[str, str]:
    found = file.metadata.metadata or {}
    return {k.decode(): v.decode() for k, v in found.items() if k.startswith(b"org.apache.spark")}


@pytest.mark.parametrize("sort", [(), (SortColumn("d"),)], ids=["unsorted", "sorted"])
def test_files_of_two_calendars_become_one_gregorian_file(sort: tuple[SortColumn, ...], tmp_path: Path) -> None:
    write(tmp_path, "old.parquet", pa.table({"d": days(OLD_DAYS)}), LEGACY)
    write(tmp_path, "new.parquet", pa.table({"d": days([-719_162])}), SPARK)
    result, file = rewritten(tmp_path, "new.parquet", "old.parquet", sort=sort)
    assert entries_of(file) == SPARK
    found = file.read().column("d").to_pylist()
    assert sorted(filter(None, found)) == sorted([date(1, 1, 1), *SAME_LABELS, date(1970, 1, 1)])
    (stats,) = result.files[0].columns
    assert (stats.min, stats.max) == (-719_162, 0)
    assert result.decoded == ("sorted" if sort else "values converted")


def test_timestamps_of_all_forms_keep_their_labels(tmp_path: Path) -> None:
    """In structs, lists and maps, too, and in millis; local times and times without values stay what they are."""
    micros = instants(OLD_MICROS)
    numbers = pa.array([1, 2, 3, 4, 5])
    local = pa.array(OLD_MICROS, pa.int64()).cast(pa.timestamp("us"))
    table = pa.table(
        {
            "at": micros,
            "ms": instants([None if one is None else one // 1000 for one in OLD_MICROS], "ms"),
            "local": local,
            "in_struct": pa.StructArray.from_arrays([numbers, micros], ["n", "at"]),
            "in_list": pa.array([[1, None], None, [], [-62_135_740_800_000_000], [3]], pa.list_(pa.int64())).cast(
                pa.list_(pa.timestamp("us", "UTC"))
            ),
            "in_map": pa.array(
                [[("a", -62_135_740_800_000_000)], None, [], [], [("b", None)]], pa.map_("string", "int64")
            ).cast(pa.map_(pa.string(), pa.timestamp("us", "UTC"))),
        }
    )
    write(tmp_path, "old.parquet", table, CALIFORNIA)
    write(tmp_path, "new.parquet", table.slice(0, 1), SPARK)
    _, file = rewritten(tmp_path, "new.parquet", "old.parquet")
    found = file.read().slice(1)
    assert found.column("at").to_pylist() == SAME_TIMES
    assert found.column("ms").to_pylist() == [
        one and one.replace(microsecond=one.microsecond // 1000 * 1000) for one in SAME_TIMES
    ]
    assert found.column("local").cast(pa.int64()).to_pylist() == OLD_MICROS
    assert found.column("in_struct").to_pylist() == [
        {"n": n, "at": at} for n, at in zip(numbers.to_pylist(), SAME_TIMES, strict=True)
    ]
    first, epoch = SAME_TIMES[0], datetime(1970, 1, 1, tzinfo=UTC)
    assert found.column("in_list").to_pylist() == [
        [epoch.replace(microsecond=1), None],
        None,
        [],
        [first],
        [epoch.replace(microsecond=3)],
    ]
    assert found.column("in_map").to_pylist() == [[("a", first)], None, [], [], [("b", None)]]


def test_int96_keeps_its_label(tmp_path: Path) -> None:
    old, new = pa.table({"at": instants(OLD_MICROS[1:])}), pa.table({"at": instants([0])})
    for name, table, entries in (("old.parquet", old, CALIFORNIA), ("new.parquet", new, SPARK)):
        write(tmp_path, name, table, entries, use_deprecated_int96_timestamps=True)
    _, file = rewritten(tmp_path, "new.parquet", "old.parquet")
    found = file.read().column("at").cast(pa.timestamp("us", "UTC")).to_pylist()[1:]
    assert found == SAME_TIMES[1:] and entries_of(file) == SPARK


def test_a_file_with_recent_values_alone_is_of_both_calendars(tmp_path: Path) -> None:
    """The statistics of its footer say so; its pages are copied."""
    write(
        tmp_path,
        "old.parquet",
        pa.table({"d": days([-141_427, 9]), "at": instants([-2_208_988_800_000_000, 3])}),
        LEGACY,
    )
    write(tmp_path, "new.parquet", pa.table({"d": days([-719_162, 9]), "at": instants([-9, 3])}), SPARK)
    result, file = rewritten(tmp_path, "old.parquet", "new.parquet")
    assert entries_of(file) == SPARK
    assert file.read().column("d").cast(pa.int32()).to_pylist() == [-141_427, 9, -719_162, 9]
    assert result.decoded in (None, "small row groups")
    # The other way round: the old values are hybrid, and the Gregorian file has recent ones alone.
    write(tmp_path, "old.parquet", pa.table({"d": days(OLD_DAYS[:2]), "at": instants([0, 3])}), LEGACY)
    write(tmp_path, "new.parquet", pa.table({"d": days([8, 9]), "at": instants([-9, 3])}), SPARK)
    _, file = rewritten(tmp_path, "new.parquet", "old.parquet")
    assert entries_of(file) == LEGACY
    assert file.read().column("d").cast(pa.int32()).to_pylist() == [8, 9, *OLD_DAYS[:2]]


@pytest.mark.parametrize("zone", ["", "Nowhere/Else"])
def test_timestamps_of_an_unknown_zone_are_refused(zone: str, tmp_path: Path) -> None:
    """What they mean depends on the reader; their dates do not, nor do timestamps since 1900."""
    entries = {**LEGACY, "org.apache.spark.timeZone": zone}
    write(tmp_path, "new.parquet", pa.table({"d": days([-719_162]), "at": instants([-3_000_000_000_000_000])}), SPARK)
    write(tmp_path, "old.parquet", pa.table({"d": days([1]), "at": instants([-3_000_000_000_000_000])}), entries)
    with pytest.raises(UnsupportedTable, match=r"old\.parquet counts timestamps before 1900 .* depends on the reader"):
        rewritten(tmp_path, "new.parquet", "old.parquet")
    write(tmp_path, "old.parquet", pa.table({"d": days(OLD_DAYS[:1]), "at": instants([1])}), entries)
    _, file = rewritten(tmp_path, "new.parquet", "old.parquet")
    assert file.read().column("d").to_pylist() == [date(1, 1, 1), date(1, 1, 1)]


def test_no_expression_index_is_computed_of_hybrid_dates(tmp_path: Path) -> None:
    """A task would refuse the new file, so no plan names the old one; where its dates are recent, it may be planned."""
    write(tmp_path, "old.parquet", pa.table({"d": days(OLD_DAYS), "e": days([3] * 7)}), LEGACY)
    slices, source = slices_in(open_storage(str(tmp_path)), "old.parquet")
    for column, problems in (("d", 1), ("e", 0), ("other", 0)):
        kept, unfit = fitting(source, slices, TableColumns(str(tmp_path), None, (), frozenset({column})))
        assert (len(kept), len(unfit)) == (1 - problems, problems)
        assert all("old dates in the hybrid calendar in column d" in one.error.message for one in unfit)


def test_other_code_checks_the_conversion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "old.parquet", pa.table({"d": days(OLD_DAYS)}), LEGACY)
    write(tmp_path, "new.parquet", pa.table({"d": days([-719_162])}), SPARK)
    monkeypatch.setattr(calendar_rebase, "_days_between", lambda days: (days < 0) * 2)
    with pytest.raises(CheckFailed, match=r"old\.parquet: the dates of column d have other labels"):
        rewritten(tmp_path, "new.parquet", "old.parquet")


@pytest.mark.parametrize(
    ("zone", "offset"),
    [
        ("UTC", 0),
        ("+01:00", 0),
        ("UTC+01:00", 0),
        ("Z", 0),
        ("GMT+8", 28800),
        ("GMT-05:30", -19800),
        ("Etc/GMT+8", -28800),
    ],
)
def test_offsets_are_taken_as_java_util_takes_them(zone: str, offset: int) -> None:
    """Seen with Spark 3.5.9: an offset that does not begin with GMT is UTC for java.util.TimeZone."""
    rule = zone_rule(zone)
    assert rule is not None and (rule.offset, rule.correction, rule.changes) == (offset, 0, ())


def test_no_zone_is_guessed() -> None:
    assert zone_rule("Europe/Nowhere") is None and zone_rule("") is None
