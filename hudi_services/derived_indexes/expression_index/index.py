"""Expression indexes: their definitions, and how their records are computed (`file_records`).

`.hoodie/.index_defs/index.json` (table versions 8 and 9) has for each partition `expr_index_<name>`:

    {"indexType": "column_stats" | "bloom_filters", "indexFunction": f, "sourceFields": [column],
     "indexOptions": {"expr": f, ...}, "version": "V1" | "V2"}

    column_stats    a record of type 3 for each base file: the range of f(column). `valueCount` counts what is not null,
                    `totalSize` is the file's, `totalUncompressedSize` twice that
    bloom_filters   a record of type 4 for each base file: the texts of f(column)

A file without rows has no record. The definitions come from the table, and so are bounded: no text is longer than 200
characters, and filters are no larger than those that `hoodie.properties` may ask for.
Source: SparkMetadataWriterUtils, HoodieIndexDefinition of Apache Hudi 1.0.2, 1.2.0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from ...base_files.bloom import DYNAMIC, BloomSettings
from ...errors import ConfigError, UnsupportedTable
from ...limits import LEAST_BLOOM_RATE, MOST_BLOOM_ENTRIES
from ...metadata.metadata_table import MetadataTable
from ...metadata.records.keys import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    EXPRESSION_INDEX,
    bloom_filter_key,
    column_stats_key,
)
from ...metadata.records.model import BloomRecord, StatsRecord
from ...metadata.statistics.indexed_columns import is_typed, read_definitions
from ...options.value_types import integer
from ...paths import bare_name
from ...schema.column_type import ColumnType, Kind
from ...schema.table_schema import META_COLUMNS, TableSchema
from .expressions import Expression, NotComputed, as_texts, compile_expression
from .time_functions import Zone

_EXPRESSION = "expr"
_BLOOM_OPTIONS = ("filtertype", "numentries", "fpp", "maxentries")
_LONGEST_TEXT = 200
"""Characters of a function's name or option, at most: each value of a format has as many characters as the format."""
_MOST_ROWS = 10_000
"""Rows of a dynamic filter, at most: each row takes time, however small it is."""
DROP_HINT = "drop the index, or cluster the table with Apache Hudi, where its function can be computed"


@dataclass(frozen=True, slots=True)
class ExpressionIndex:
    """The definition of one index, in the partition `partition` of the metadata table."""

    partition: str
    kind: str
    """column_stats or bloom_filters."""
    column: str
    function: str
    options: tuple[tuple[str, str], ...]
    """Options of the function."""
    bloom_options: tuple[tuple[str, str], ...]
    typed: bool
    """Whether its statistics have a value type."""


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


def expression_indexes(metadata: MetadataTable) -> tuple[ExpressionIndex, ...]:
    """The expression indexes of a table, by name. Raises CorruptFile, and UnsupportedTable for unknown definitions."""
    names = [name for name in metadata.partitions if name.startswith(EXPRESSION_INDEX)]
    definitions = read_definitions(metadata) if names else {}
    return tuple(_index(metadata, name, definitions.get(name)) for name in names)


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


def _index(metadata: MetadataTable, name: str, definition: Mapping[str, Any] | None) -> ExpressionIndex:
    if definition is None:
        raise refused(name, "it has no definition in .hoodie/.index_defs/index.json")
    kind, fields = str(definition.get("indexType", "")).lower(), definition.get("sourceFields")
    if kind not in (COLUMN_STATS, BLOOM_FILTERS):
        raise refused(name, f"it is of the type {kind or 'none':.80}")
    if not isinstance(fields, list) or len(fields) != 1:
        raise refused(name, "it is not of one column")
    options = definition.get("indexOptions") or {}
    if not isinstance(options, dict):
        raise refused(name, "its options cannot be read")
    known = _BLOOM_OPTIONS if kind == BLOOM_FILTERS else ()
    pairs = sorted((str(k), str(v)) for k, v in options.items() if k != _EXPRESSION)
    return ExpressionIndex(
        partition=name,
        kind=kind,
        column=str(fields[0]),
        function=str(definition.get("indexFunction", "")),
        options=tuple(pair for pair in pairs if pair[0] not in known),
        bloom_options=tuple(pair for pair in pairs if pair[0] in known),
        typed=is_typed(metadata, definition),
    )


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


def refused(partition: str, why: str) -> UnsupportedTable:
    """The error about an index that cannot be kept in step, because of `why`."""
    return UnsupportedTable(f"the metadata partition {partition} cannot be kept in step: {why}", hint=DROP_HINT)
