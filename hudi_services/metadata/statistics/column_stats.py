"""Column statistics of new files as records, and their merge into ranges of partitions.

A range in partition_stats is tight when it was computed over every live file of the partition: readers then take it
instead of widening the older range. Readers skip a whole partition by it, so it must never be narrower than the data.
Source: HoodieTableMetadataUtil (getColumnsToIndex, collectAndProcessColumnMetadata), HoodieMetadataWriteUtils,
FileFormatUtils.getColumnRangeInPartition of Apache Hudi.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Literal

from ...base_files.new_file import NewFile
from ...parquet.chunk_stats import ColumnStats
from ...schema.column_type import ColumnType, Kind
from ...schema.widening import widest
from ..records.keys import column_stats_key, partition_stats_key
from ..records.model import Record, RecordType, StatsRecord, Stored
from .values import NoPromotion, bound_type, comparable, fits_v1, greatest, ordinal, promote, smallest

Side = Literal["minimum", "maximum"]
"""A side of a range."""
SIDES: tuple[Side, Side] = ("minimum", "maximum")


def is_covered(column: ColumnType, *, typed: bool) -> bool:
    """Whether a record can hold the bounds of a column of this type."""
    bound = bound_type(column)
    return bound is not None and (typed or fits_v1(bound))


def column_records(file: NewFile, columns: Collection[str], *, typed: bool) -> list[StatsRecord]:
    """The column_stats records of a file, for those of `columns` whose range is known."""
    covered = (one for one in file.columns if one.column in columns and is_covered(one.type, typed=typed))
    return [_column_record(file, stats, typed) for stats in covered if _is_known(stats)]


def untold_columns(file: NewFile, columns: Collection[str], *, typed: bool) -> list[str]:
    """The columns, of `columns`, that need a record and whose range is not known."""
    covered = (one for one in file.columns if one.column in columns and is_covered(one.type, typed=typed))
    return [stats.column for stats in covered if not _is_known(stats)]


def _is_known(stats: ColumnStats) -> bool:
    return stats.has_range and stats.null_count is not None


def partition_record(partition: str, column: str, files: Sequence[StatsRecord], *, tight: bool) -> StatsRecord:
    """The partition_stats record over the column_stats records of `files`, at least one.

    Hudi drops the statistics of files whose type cannot be promoted; here the record is not tight then, so that it
    widens the older range.
    """
    bound = widest([record.bound for record in files])
    minima, maxima = [], []
    for record in files:
        try:
            low, high = (promote(v, record.bound, bound) for v in (record.minimum, record.maximum))
        except NoPromotion:
            tight = False
            continue
        minima.append(low)
        maxima.append(high)
    return StatsRecord(
        key=partition_stats_key(column, partition),
        type=RecordType.PARTITION_STATS,
        file_name=partition,
        column=column,
        bound=bound,
        minimum=smallest(minima),
        maximum=greatest(maxima),
        value_count=sum(record.value_count for record in files),
        null_count=sum(record.null_count for record in files),
        total_size=sum(record.total_size for record in files),
        total_uncompressed_size=sum(record.total_uncompressed_size for record in files),
        tight=tight,
    )


def same_statistics(record: StatsRecord, other: StatsRecord) -> bool:
    """Whether two records have the same statistics, in whatever form: -0.0 is 0.0, and a type may be wider."""
    return (
        same_bound(record, other, "minimum")
        and same_bound(record, other, "maximum")
        and counts(record) == counts(other)
    )


def same_bound(record: StatsRecord, other: StatsRecord, side: Side) -> bool:
    """Whether two records have the same bound on one side; one of them has the type of the column."""
    left, right = getattr(record, side), getattr(other, side)
    if left is None or right is None:
        return left is right
    return bool(comparable(left, record.bound, other.bound) == comparable(right, other.bound, record.bound))


def counts(record: StatsRecord) -> tuple[int, int, int, int]:
    """The counts of a record: values, nulls among them, bytes, uncompressed bytes."""
    return (record.value_count, record.null_count, record.total_size, record.total_uncompressed_size)


def holds_range(partition: StatsRecord, files: StatsRecord) -> bool:
    """Whether the range of a partition holds the range of `files`: then no reader skips the partition wrongly.

    Spark compares byte arrays by unsigned bytes; Hudi computes the ranges of partitions by signed bytes, and its own
    readers then skip existing rows (seen with 1.0.2).
    """
    return holds_bound(partition, files, "minimum") and holds_bound(partition, files, "maximum")


def holds_bound(outer: StatsRecord, inner: StatsRecord, side: Side, *, incomparable: bool = True) -> bool:
    """Whether one bound of `inner` is not outside of `outer`; otherwise as `holds_range`.

    `incomparable` is the result for values that do not compare: the column had another type before.
    """
    bound, value = getattr(outer, side), getattr(inner, side)
    if value is None or bound is None:
        return value is None
    # Hudi's readers cannot skip by NaN, see value_bounds.
    if bound != bound:
        return False
    limit, found = comparable(bound, outer.bound, inner.bound), comparable(value, inner.bound, outer.bound)
    try:
        return bool(limit <= found if side == "minimum" else found <= limit)
    except TypeError:
        return incomparable


def covers_bound(stored: StatsRecord, files: StatsRecord, merged: Record | None, side: Side) -> bool:
    """Whether one bound of a partition is right for its `files`.

    `merged` is their range as Hudi merges it, where that is right, too: of byte arrays in typed statistics.
    """
    if holds_bound(stored, files, side):
        return True
    return isinstance(merged, StatsRecord) and same_bound(stored, merged, side)


def holds_nulls(partition: StatsRecord, files: StatsRecord) -> bool:
    """Whether the counts of a partition say that there are nulls, and values, where `files` have some."""
    if files.null_count > 0 and partition.null_count <= 0:
        return False
    return files.null_count >= files.value_count or partition.null_count < partition.value_count


def settled(record: StatsRecord, stored: Stored | None) -> StatsRecord:
    """The partition_stats `record` to write above what is `stored` so that readers find the ranges of both.

    Readers merge a record that is not tight with the stored records: byte arrays by signed bytes, times in the unit of
    the newer record. Where that would give too narrow a range, or fail, the result holds both ranges, and is tight.
    """
    if stored is None or record.tight:
        return record
    below = [one for one in (stored.base, stored.logs) if isinstance(one, StatsRecord) and not one.deleted]
    before, merged = stored.merged, stored.after(record).merged
    assert isinstance(merged, StatsRecord), "statistics merge to statistics"
    known = [before] if isinstance(before, StatsRecord) and not before.deleted else []
    if all(_is_merged(one, record) for one in below) and all(holds_range(merged, one) for one in (record, *known)):
        return record
    both = partition_record(record.file_name, record.column, [record, *known], tight=True)
    return replace(both, key=record.key) if both.tight else record


def _is_merged(older: StatsRecord, newer: StatsRecord) -> bool:
    """Whether Hudi can merge the bounds of two records: it compares them as they are, and fails for int and long."""
    told = [ordinal(one.bound) for one in (older, newer) if (one.minimum, one.maximum) != (None, None)]
    return len({*told}) < 2


def is_exact(column: ColumnType, *, typed: bool) -> bool:
    """Whether the bounds of a record are the bounds of the column, and not wider.

    A bound without a type (V1) is a number without a unit. Hudi writes the number of the file and compares it with
    others as it is, while its readers take it for microseconds, and miss the rows (seen with 1.0.2): a range must hold
    both.
    """
    return typed or column.kind is not Kind.TIMESTAMP or column.unit == "micros"


def _column_record(file: NewFile, stats: ColumnStats, typed: bool) -> StatsRecord:
    bound = bound_type(stats.type)
    assert bound is not None and stats.null_count is not None, "no other is covered and known"
    low, high = _plain(stats.min), _plain(stats.max)
    if low is not None and not is_exact(stats.type, typed=typed):
        assert bound.unit_nanos is not None, "a time has a unit"
        low, high = min(low, low * bound.unit_nanos // 1000), max(high, -(-high * bound.unit_nanos // 1000))
    return StatsRecord(
        key=column_stats_key(stats.column, file.partition, file.name),
        type=RecordType.COLUMN_STATS,
        file_name=file.name,
        column=stats.column,
        bound=bound,
        minimum=low,
        maximum=high,
        value_count=stats.value_count,
        null_count=stats.null_count,
        total_size=stats.total_size,
        total_uncompressed_size=stats.total_uncompressed_size,
    )


def _plain(value: Any) -> Any:
    """A decimal, which has the scale of its column, as its unscaled number; any other value as it is."""
    if not isinstance(value, Decimal):
        return value
    sign, digits, _ = value.as_tuple()
    unscaled = int("".join(map(str, digits)) or "0")
    return -unscaled if sign else unscaled
