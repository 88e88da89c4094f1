"""Column statistics of new files as records, and what they add up to per partition.

A range in partition_stats is tight when it was computed over every live file of the partition: readers then take it
instead of widening the older one. Readers skip a whole partition by it, so it must never be narrower than the data.
Source: HoodieTableMetadataUtil (getColumnsToIndex, collectAndProcessColumnMetadata), HoodieMetadataWriteUtils,
FileFormatUtils.getColumnRangeInPartition of Apache Hudi.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from ..files.column_stats import ColumnStats
from ..files.column_type import ColumnType, Kind
from ..model import path_in
from .keys import column_stats_key, partition_stats_key
from .records import RecordType, StatsRecord
from .values import BoundType, NoPromotion, ValueType, greatest, number, promote, smallest

Side = Literal["minimum", "maximum"]
"""Of a range."""


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that a commit added: its data partition, bare name, size in bytes and its columns' statistics."""

    partition: str
    name: str
    size: int
    columns: tuple[ColumnStats, ...] = ()

    @property
    def path(self) -> str:
        return path_in(self.partition, self.name)


_SIMPLE = {
    Kind.BOOLEAN: ValueType.BOOLEAN,
    Kind.INT: ValueType.INT,
    Kind.LONG: ValueType.LONG,
    Kind.FLOAT: ValueType.FLOAT,
    Kind.DOUBLE: ValueType.DOUBLE,
    Kind.STRING: ValueType.STRING,
    Kind.BYTES: ValueType.BYTES,
    Kind.FIXED: ValueType.FIXED,
    Kind.DATE: ValueType.DATE,
}
_TIMES = {
    (Kind.TIME, "millis", False): ValueType.TIME_MILLIS,
    (Kind.TIME, "micros", False): ValueType.TIME_MICROS,
    (Kind.TIMESTAMP, "millis", True): ValueType.TIMESTAMP_MILLIS,
    (Kind.TIMESTAMP, "micros", True): ValueType.TIMESTAMP_MICROS,
    (Kind.TIMESTAMP, "nanos", True): ValueType.TIMESTAMP_NANOS,
    (Kind.TIMESTAMP, "millis", False): ValueType.LOCAL_TIMESTAMP_MILLIS,
    (Kind.TIMESTAMP, "micros", False): ValueType.LOCAL_TIMESTAMP_MICROS,
    (Kind.TIMESTAMP, "nanos", False): ValueType.LOCAL_TIMESTAMP_NANOS,
}
# Widest last: a partition's range is kept in the widest type that its files have.
_WIDTH = {ValueType.INT: 1, ValueType.LONG: 2, ValueType.FLOAT: 3, ValueType.DOUBLE: 4}


def bound_type(column: ColumnType) -> BoundType | None:
    """The type of a column's bounds; None for columns that no index covers (groups, enums, unsigned numbers)."""
    if column.kind is Kind.DECIMAL:
        return BoundType(ValueType.DECIMAL, column.precision, column.scale)
    kind = _SIMPLE.get(column.kind) or _TIMES.get((column.kind, column.unit, column.utc))
    return BoundType(kind) if kind else None


def is_indexable(stats: ColumnStats, *, typed: bool) -> bool:
    """Whether a record can hold these statistics: a supported type, and a known range."""
    bound = bound_type(stats.type)
    if bound is None or not stats.has_range or stats.null_count is None:
        return False
    return typed or (bound.fits_v1 and bound.type is not ValueType.FIXED)


def column_records(file: NewFile, columns: Collection[str], *, typed: bool) -> list[StatsRecord]:
    """The column_stats records of a new file, for those of `columns` that it has statistics of."""
    return [
        _column_record(file, stats)
        for stats in file.columns
        if stats.column in columns and is_indexable(stats, typed=typed)
    ]


def partition_record(partition: str, column: str, files: Sequence[StatsRecord], *, tight: bool) -> StatsRecord:
    """The partition_stats record over the column_stats records of `files`, at least one.

    Hudi drops the statistics of files whose type cannot be promoted; here the record then is not tight, and the older
    range stays in.
    """
    bound = _widest([record.bound for record in files])
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


def same_statistics(one: StatsRecord, other: StatsRecord) -> bool:
    """Whether two records tell the same, in whatever form: -0.0 is 0.0, and a type may be a wider one."""
    return same_bound(one, other, "minimum") and same_bound(one, other, "maximum") and counts(one) == counts(other)


def same_bound(one: StatsRecord, other: StatsRecord, side: Side) -> bool:
    """Of a column whose type one of the records tells."""
    left = number(getattr(one, side), one.bound, other.bound)
    return bool(left == number(getattr(other, side), other.bound, one.bound))


def counts(record: StatsRecord) -> tuple[int, int, int, int]:
    """Values, nulls among them, bytes, uncompressed bytes."""
    return (record.value_count, record.null_count, record.total_size, record.total_uncompressed_size)


def holds_range(partition: StatsRecord, files: StatsRecord) -> bool:
    """Whether the range of a partition holds that of `files`: then no reader skips the partition who must not.

    Java orders byte arrays by signed bytes, parquet by unsigned ones: nobody can tell which of their ranges is right.
    """
    if files.minimum is None or isinstance(files.minimum, bytes):
        return True
    if partition.minimum is None or partition.maximum is None:
        return False
    low, high = (number(value, partition.bound, files.bound) for value in (partition.minimum, partition.maximum))
    try:
        return bool(low <= number(files.minimum, files.bound) and number(files.maximum, files.bound) <= high)
    except TypeError:
        # The column had another type before, as which its values cannot be compared.
        return True


def holds_bound(outer: StatsRecord, inner: StatsRecord, side: Side) -> bool:
    """Whether one bound of `outer` is that of `inner`, or farther out; False where they do not compare.

    So with byte arrays, which Java and parquet order differently.
    """
    if inner.null_count >= inner.value_count:
        return True
    left = number(getattr(outer, side), outer.bound, inner.bound)
    right = number(getattr(inner, side), inner.bound, outer.bound)
    if left is None or right is None or isinstance(left, bytes) or isinstance(right, bytes):
        return False
    try:
        return bool(left <= right if side == "minimum" else left >= right)
    except TypeError:
        return False


def holds_nulls(partition: StatsRecord, files: StatsRecord) -> bool:
    """Whether the counts of a partition say that there are nulls, and values, where `files` have some."""
    if files.null_count > 0 and partition.null_count <= 0:
        return False
    return files.null_count >= files.value_count or partition.null_count < partition.value_count


def _column_record(file: NewFile, stats: ColumnStats) -> StatsRecord:
    bound = bound_type(stats.type)
    assert bound is not None and stats.null_count is not None, "is_indexable lets nothing else through"
    return StatsRecord(
        key=column_stats_key(stats.column, file.partition, file.name),
        type=RecordType.COLUMN_STATS,
        file_name=file.name,
        column=stats.column,
        bound=bound,
        minimum=_plain(stats.min),
        maximum=_plain(stats.max),
        value_count=stats.value_count,
        null_count=stats.null_count,
        total_size=stats.total_size,
        total_uncompressed_size=stats.total_uncompressed_size,
    )


def _plain(value: Any) -> Any:
    """A decimal as its unscaled number; it stands at its column's scale."""
    if not isinstance(value, Decimal):
        return value
    sign, digits, _ = value.as_tuple()
    unscaled = int("".join(map(str, digits)) or "0")
    return -unscaled if sign else unscaled


def _widest(bounds: Sequence[BoundType]) -> BoundType:
    """The first bound's type, which is the newest file's, unless an older file is wider."""
    known = [bound for bound in bounds if bound.type is not ValueType.NULL]
    if not known:
        return bounds[0]
    return max(known, key=lambda bound: (_WIDTH.get(bound.type, 0), bound.scale))
