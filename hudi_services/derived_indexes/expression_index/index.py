"""How the records of an expression index (`definitions`) are computed, by `file_records`.

    column_stats    a record of type 3 for each base file: the range of f(column). `valueCount` counts what is not null,
                    `totalSize` is the file's, `totalUncompressedSize` twice that
    bloom_filters   a record of type 4 for each base file: the texts of f(column)

A file without rows has no record. The definitions come from the table, and so are bounded: no text is longer than 200
characters, and filters are no larger than those that `hoodie.properties` may ask for.
Source: SparkMetadataWriterUtils, HoodieIndexDefinition of Apache Hudi 1.0.2, 1.2.0.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from ...base_files.bloom import DYNAMIC, BloomSettings
from ...errors import ConfigError, UnsupportedTable
from ...limits import LEAST_BLOOM_RATE, MOST_BLOOM_ENTRIES
from ...metadata.metadata_table import MetadataTable
from ...metadata.records.keys import (
    BLOOM_FILTERS,
    bloom_filter_key,
    column_stats_key,
)
from ...metadata.records.model import BloomRecord, StatsRecord
from ...options.value_types import integer
from ...paths import bare_name
from ...schema.column_type import ColumnType, Kind
from ...schema.table_schema import META_COLUMNS, TableSchema
from .definitions import ExpressionIndex, refused
from .expressions import Expression, NotComputed, as_texts, compile_expression
from .time_functions import Zone

_LONGEST_TEXT = 200
"""Characters of a function's name or option, at most: each value of a format has as many characters as the format."""
_MOST_ROWS = 10_000
"""Rows of a dynamic filter, at most: each row takes time, however small it is."""


ExpressionRecord = StatsRecord | BloomRecord


@dataclass(frozen=True, slots=True)
class Computation:
    """How the records of an index are computed; plain values, for a task."""

    index: ExpressionIndex
    column: ColumnType
    zone: Zone
    bloom: BloomSettings

    def expression(self) -> Expression:
        """The function of the index. Raises UnsupportedTable for a function that is not computed here."""
        index = self.index
        try:
            found = compile_expression(index.function, dict(index.options), self.column, self.zone)
            if index.kind == BLOOM_FILTERS:
                self.bloom.new_filter(0)
                as_texts(found.apply(pa.array([], found.source)), found.result)
            elif found.result.kind is Kind.TIMESTAMP and not index.typed:
                # Without a type they would have another wrapper than statistics of columns have.
                raise NotComputed("statistics of timestamps are not written for an index of version V1")
        except (NotComputed, ConfigError) as e:
            raise refused(index.partition, f"{index.function}({index.column}): {e}") from e
        return found


@dataclass(frozen=True, slots=True)
class ComputedIndex:
    """The records of new base files in one index."""

    index: ExpressionIndex
    records: tuple[ExpressionRecord, ...]


def renamed_records(computed: ComputedIndex, files: Sequence[tuple[str, str, str]], instant: str) -> ComputedIndex:
    """The records of files that are renamed to `instant`: each with its partition, its path, and its new path."""
    bloom: dict[str, str] = {}
    stats: dict[str, tuple[str, str]] = {}
    for partition, before, after in files:
        old, new = bare_name(before), bare_name(after)
        bloom[bloom_filter_key(partition, old)] = bloom_filter_key(partition, new)
        stats[old] = partition, new

    def rename(record: ExpressionRecord) -> ExpressionRecord:
        if isinstance(record, BloomRecord):
            return replace(record, key=bloom[record.key], instant=instant)
        partition, name = stats[record.file_name]
        return replace(record, key=column_stats_key(record.column, partition, name), file_name=name)

    return replace(computed, records=tuple(map(rename, computed.records)))


def computation(
    metadata: MetadataTable, index: ExpressionIndex, schema: TableSchema | None, zone: Zone, bloom: BloomSettings
) -> Computation:
    """The computation of one index. Raises UnsupportedTable if that is not possible here, and CorruptFile.

    `schema` is that of the table; `bloom` applies where the index has no settings of its own.
    """
    _check_texts(index)
    found = Computation(index, _column(metadata, index, schema), zone, _bloom(index, bloom))
    found.expression()
    return found


def _column(metadata: MetadataTable, index: ExpressionIndex, schema: TableSchema | None) -> ColumnType:
    config = metadata.table_config
    if index.column in META_COLUMNS:
        return ColumnType(Kind.STRING, nullable=True)
    if index.column in config.dropped_columns:
        raise refused(index.partition, f"the column {index.column:.80} is not in the base files")
    found = (schema or TableSchema("{}", metadata.data_timeline.storage.root)).type_of(index.column)
    if found is None:
        raise refused(index.partition, f"the column {index.column:.80} is no column of the table by itself")
    return found


def _check_texts(index: ExpressionIndex) -> None:
    options = (*index.options, *index.bloom_options)
    texts = [("function", index.function), *(("option", name) for name, _ in options), *options]
    for what, text in texts:
        if len(text) > _LONGEST_TEXT:
            why = f"its {what} has {len(text)} characters, more than {_LONGEST_TEXT}: {text:.80}…"
            raise refused(index.partition, why)


def _bloom(index: ExpressionIndex, settings: BloomSettings) -> BloomSettings:
    given = dict(index.bloom_options)
    found = BloomSettings(
        entries=_entries(index, "numentries", settings.entries),
        false_positive_rate=_rate(index, settings.false_positive_rate),
        max_entries=_entries(index, "maxentries", settings.max_entries),
        filter_type=given.get("filtertype", settings.filter_type),
    )
    # Only options of the index are limited here; the operator's own options are not.
    sized = "numentries" in given or "maxentries" in given
    if sized and found.filter_type == DYNAMIC and found.max_entries > _MOST_ROWS * found.entries:
        rows = f"{found.entries} values in each of its rows and {found.max_entries} in all"
        raise _not_made(index, f"{rows} are more than {_MOST_ROWS} rows")
    return found


def _entries(index: ExpressionIndex, name: str, default: int) -> int:
    text = dict(index.bloom_options).get(name)
    if text is None:
        return default
    try:
        # Fewer than hoodie.properties may ask for are fine: CREATE INDEX takes them for small columns.
        return integer(1, MOST_BLOOM_ENTRIES)(text)
    except ValueError as e:
        raise _not_made(index, f"{name}={text:.80} {e}") from e


def _rate(index: ExpressionIndex, default: float) -> float:
    text = dict(index.bloom_options).get("fpp")
    if text is None:
        return default
    try:
        rate = float(text)
    except ValueError as e:
        raise _not_made(index, f"fpp={text:.80} is not a number") from e
    if 0 < rate < LEAST_BLOOM_RATE:
        raise _not_made(index, f"fpp={text:.80} is less than {LEAST_BLOOM_RATE:g}")
    return rate


def _not_made(index: ExpressionIndex, why: str) -> UnsupportedTable:
    return refused(index.partition, f"its bloom filter cannot be made: {why}")
