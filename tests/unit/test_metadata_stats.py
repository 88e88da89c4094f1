import dataclasses
import json
from decimal import Decimal
from pathlib import Path

import pytest

from hudi_services.base_files.new_file import NewFile
from hudi_services.errors import CorruptFile
from hudi_services.metadata.records.model import RecordType, StatsRecord, Stored, merge_records
from hudi_services.metadata.statistics.column_stats import (
    column_records,
    holds_range,
    partition_record,
    settled,
    untold_columns,
)
from hudi_services.metadata.statistics.indexed_columns import index_columns
from hudi_services.metadata.statistics.values import NO_VALUES, bound_type, ordinal
from hudi_services.metadata_updates.delta_commit import write_delta_commit
from hudi_services.parquet.chunk_stats import ColumnStats
from hudi_services.schema.column_type import ColumnType, Kind

from .metadata_tables import far_future, files_by_partition, open_metadata, stats_of
from .tables import open_local, unpack


def column(name: str, kind: ColumnType, low: object = 1, high: object = 2, **changes: object) -> ColumnStats:
    stats = ColumnStats(name, kind, low, high, 10, 0, 100, 200, True)
    return dataclasses.replace(stats, **changes)  # type: ignore[arg-type]


INT, LONG, DOUBLE = map(ColumnType, (Kind.INT, Kind.LONG, Kind.DOUBLE))
MILLIS, MICROS = (ColumnType(Kind.TIMESTAMP, unit=unit, utc=True) for unit in ("millis", "micros"))


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        (ColumnType(Kind.BOOLEAN), 2),
        (ColumnType(Kind.FIXED, size=16), 9),
        (ColumnType(Kind.DECIMAL, precision=10, scale=2), 10),
        (ColumnType(Kind.TIME, unit="millis"), 13),
        (MICROS, 16),
        (ColumnType(Kind.TIMESTAMP, unit="millis"), 18),
        (ColumnType(Kind.TIME, unit="nanos"), None),
        (ColumnType(Kind.UNSIGNED, size=32), None),
        (ColumnType(Kind.ENUM), None),
        (ColumnType(Kind.UUID), None),
        (ColumnType(Kind.STRUCT), None),
    ],
)
def test_which_types_are_covered(kind: ColumnType, number: int | None) -> None:
    """Each by the ordinal that typed records have, whether it is nullable or not."""
    for column_type in (kind, dataclasses.replace(kind, nullable=True)):
        bound = bound_type(column_type)
        assert (None if bound is None else ordinal(bound)) == number
        assert bound is None or (bound.kind, bound.unit, bound.scale) == (kind.kind, kind.unit, kind.scale)


@pytest.mark.parametrize(
    ("stats", "typed", "untyped"),
    [
        (column("c", INT), "record", "record"),
        (column("c", INT, has_range=False), "untold", "untold"),
        (column("c", INT, null_count=None), "untold", "untold"),
        (column("c", ColumnType(Kind.FIXED, size=4)), "record", ""),
        (column("c", ColumnType(Kind.DECIMAL, precision=25, scale=4)), "record", ""),
        (column("c", ColumnType(Kind.MAP)), "", ""),
    ],
)
def test_statistics_that_no_record_can_hold_are_left_out_or_told(stats: ColumnStats, typed: str, untyped: str) -> None:
    file = NewFile.of("p/f.parquet", 1, columns=(stats,))
    for is_typed, expected in ((True, typed), (False, untyped)):
        assert bool(column_records(file, {"c"}, typed=is_typed)) is (expected == "record")
        assert untold_columns(file, {"c"}, typed=is_typed) == (["c"] if expected == "untold" else [])
        assert untold_columns(file, {"other"}, typed=is_typed) == []


def test_decimals_become_unscaled_numbers() -> None:
    kind = ColumnType(Kind.DECIMAL, precision=5, scale=2)
    file = NewFile.of(
        "p/f.parquet", 1, columns=(column("d", kind, Decimal("-1.50"), Decimal("0.00")), column("x", INT))
    )
    (record,) = column_records(file, {"d"}, typed=True)
    assert (record.minimum, record.maximum, record.file_name) == (-150, 0, "f.parquet")


def record(low: object, high: object, kind: ColumnType = LONG) -> StatsRecord:
    return StatsRecord("k", RecordType.COLUMN_STATS, "f", "c", kind, low, high, 10, 1, 100, 200)


def test_a_partition_covers_its_files() -> None:
    files = [record(3, 9), record(None, None, NO_VALUES), record(1, 4, INT)]
    found = partition_record("p", "c", files, tight=True)
    assert (found.minimum, found.maximum, found.bound) == (1, 9, LONG)
    assert (found.value_count, found.null_count, found.total_size, found.tight) == (30, 3, 300, True)
    assert (found.file_name, found.type) == ("p", RecordType.PARTITION_STATS)


def test_the_widest_type_of_the_files_wins() -> None:
    found = partition_record("p", "c", [record(3, 9, INT), record(1.5, 2.5, DOUBLE)], tight=True)
    assert (found.minimum, found.maximum, found.bound) == (1.5, 9.0, DOUBLE)


def test_a_file_whose_type_does_not_fit_loosens_the_range() -> None:
    found = partition_record("p", "c", [record(3, 9), record("a", "b", ColumnType(Kind.STRING))], tight=True)
    assert not found.tight


def test_units_are_scaled_where_the_types_tell_them() -> None:
    millis = record(1_000, 2_000, MILLIS)
    micros = record(5, 1_500_000, MICROS)
    for files in ([millis, micros], [micros, millis]):
        found = partition_record("p", "c", files, tight=True)
        assert (found.minimum, found.maximum, found.bound) == (5, 2_000_000, MICROS)
        assert holds_range(found, millis) and holds_range(found, micros)
    assert not holds_range(micros, millis)
    # Merging takes the unit of the newer one: then the older one's bound is cut off.
    older = record(5, 2_000_001, MICROS)
    newer = dataclasses.replace(millis, type=RecordType.PARTITION_STATS)
    found = settled(newer, Stored(older))
    assert (found.minimum, found.maximum, found.tight) == (5, 2_000_001, True)


@pytest.mark.parametrize(("low", "high", "untyped"), [(-5, 7, (-5_000, 7_000)), (5, 7, (5, 7_000))])
def test_untyped_times_hold_what_they_are_in_microseconds(low: int, high: int, untyped: tuple[int, int]) -> None:
    file = NewFile.of("p/f", 1, columns=(column("c", ColumnType(Kind.TIMESTAMP, unit="millis", utc=True), low, high),))
    for typed, expected in ((True, (low, high)), (False, untyped)):
        (found,) = column_records(file, {"c"}, typed=typed)
        assert (found.minimum, found.maximum) == expected


def test_byte_arrays_are_merged_by_signed_bytes_and_read_by_unsigned_ones() -> None:
    older, newer = (record(*bounds, ColumnType(Kind.BYTES)) for bounds in ((b"\x10", b"\x72"), (b"\x80", b"\xff")))
    merged = merge_records(older, newer)
    assert isinstance(merged, StatsRecord) and (merged.minimum, merged.maximum) == (b"\x80", b"\x72")
    assert not holds_range(merged, newer)
    found = settled(newer, Stored(older))
    assert (found.minimum, found.maximum, found.tight) == (b"\x10", b"\xff", True)
    assert settled(newer, None) == newer == settled(newer, Stored(newer))


def test_hudi_compares_bounds_of_one_type_only() -> None:
    """A column that became a long: a record that widens the range of ints is an error to Hudi, wherever these are."""
    ints, longs = record(3, 9, INT), record(5, 1 << 40)
    # Merged with a later log record it is no longer tight, and then meets the record of the base file.
    replaced = dataclasses.replace(longs, tight=True)
    for stored, low, high in (
        (Stored(ints), 3, 9),
        (Stored(None, ints), 3, 9),
        (Stored(ints, replaced), 4, 1 << 40),
    ):
        found = settled(record(4, 6), stored)
        assert (found.minimum, found.maximum, found.tight) == (low, high, True)
    gone = record(None, None, NO_VALUES)
    assert settled(longs, Stored(gone)) == longs == settled(longs, Stored(longs, gone))
    forgotten = Stored(ints, dataclasses.replace(gone, deleted=True))
    assert settled(longs, forgotten) == dataclasses.replace(replaced, type=RecordType.PARTITION_STATS, file_name="f")


def test_nan_is_no_bound_to_go_by() -> None:
    files = record(1.0, float("inf"), DOUBLE)
    assert not holds_range(record(1.0, float("nan"), DOUBLE), files)
    assert not holds_range(record(0.0, 0.0, DOUBLE), files)
    assert holds_range(record(-0.0, float("inf"), DOUBLE), files)


@pytest.mark.parametrize("release", ["1.0.2", "1.2.0"])
def test_ranges_are_those_that_hudi_computed(release: str, tmp_path: Path) -> None:
    table = open_local(unpack(release, tmp_path))
    metadata = table.metadata
    assert metadata is not None
    live = {s.base_file.name for p in table.view.partitions() for s in table.view.latest_slices(p) if s.base_file}
    by_hudi = stats_of(metadata, "partition_stats")
    files = [one for one in stats_of(metadata, "column_stats") if one.file_name in live]
    partition_of = {name: p for p, names in files_by_partition(metadata).items() for name in names}
    assert by_hudi
    for expected in by_hudi:
        here = [f for f in files if partition_of[f.file_name] == expected.file_name and f.column == expected.column]
        assert partition_record(expected.file_name, expected.column, here, tight=True) == expected


CANDIDATES = [column(name, LONG) for name in ("_hoodie_commit_time", "_hoodie_file_name", "id", "nested.x")]


@pytest.mark.parametrize(("release", "typed"), [("1.0.2", False), ("1.2.0", True)])
def test_the_index_definition_names_the_columns(release: str, typed: bool, tmp_path: Path) -> None:
    metadata = open_metadata(unpack(release, tmp_path))
    found = index_columns(metadata, CANDIDATES)
    assert found.typed is typed
    assert {"_hoodie_commit_time", "_hoodie_record_key"} <= found.columns
    assert "_hoodie_file_name" not in found.columns


def test_a_definition_of_version_1_is_untyped_in_any_table(tmp_path: Path) -> None:
    metadata = open_metadata(unpack("1.2.0", tmp_path))
    definition = {"indexDefinitions": {"column_stats": {"sourceFields": ["id"], "version": "V1"}}}
    metadata.storage.put(metadata.table_config.index_defs_path, json.dumps(definition).encode())
    found = index_columns(metadata, CANDIDATES)
    assert (found.columns, found.typed) == (frozenset({"id"}), False)


def test_without_a_definition_the_records_tell(tmp_path: Path) -> None:
    metadata = open_metadata(unpack("1.2.0", tmp_path))
    metadata.storage.delete(metadata.table_config.index_defs_path)
    recorded = {one.column for one in stats_of(metadata, "column_stats")}
    candidates = [column(name, LONG) for name in (*recorded, "unheard_of")]
    assert index_columns(metadata, candidates).columns == recorded == index_columns(metadata, []).columns


def test_in_an_empty_index_the_defaults_apply(tmp_path: Path) -> None:
    metadata = open_metadata(unpack("1.2.0", tmp_path))
    metadata.storage.delete(metadata.table_config.index_defs_path)
    everything = [one.key for one in stats_of(metadata, "column_stats")]
    write_delta_commit(metadata, "20980101000000000", {}, far_future(), deletes={"column_stats": everything})
    metadata = metadata.reload()
    many = [column("_hoodie_unheard", LONG), *(column(f"unheard_{i}", LONG) for i in range(40)), CANDIDATES[3]]
    assert index_columns(metadata, many).columns == {f"unheard_{i}" for i in range(32)}


@pytest.mark.parametrize(
    "broken",
    [
        "{",
        *(
            f'{{"indexDefinitions": {{"column_stats": {one}}}}}'
            for one in (
                "1",
                '{"sourceFields": 1}',
                '{"sourceFields": "id"}',
                '{"sourceFields": [1]}',
                '{"indexOptions": "x"}',
            )
        ),
    ],
)
def test_broken_index_definitions_are_corrupt(broken: str, tmp_path: Path) -> None:
    metadata = open_metadata(unpack("1.2.0", tmp_path))
    metadata.storage.put(metadata.table_config.index_defs_path, broken.encode())
    with pytest.raises(CorruptFile, match=r"index\.json"):
        index_columns(metadata, CANDIDATES)
