"""The indexes of files that `--index` asks for, as they are to be built.

files             the listing: makes the metadata table of a table that has none
column_stats      the ranges of columns in each file, and in versions 8 and 9 partition_stats beside them
partition_stats   the ranges of columns in each data partition
bloom_filters     the bloom filters of record keys of each base file
expression        a function of a column: expression:NAME:FUNCTION(COLUMN), with options after the column, as
                  expression:by_day:from_unixtime(ts, format=yyyy-MM-dd); NAME may be followed by bloom_filters:
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...base_files.bloom import BloomSettings
from ...derived_indexes.expression_index.definitions import defined_index
from ...derived_indexes.expression_index.index import Computation, computation
from ...derived_indexes.expression_index.time_functions import Zone
from ...errors import ConfigError, NothingToDo, UnsupportedTable
from ...metadata.records.keys import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    EXPRESSION_INDEX,
    FILES,
    PARTITION_STATS,
)
from ...metadata.statistics.column_stats import is_covered
from ...metadata.statistics.indexed_columns import NO_COLUMNS, IndexColumns, index_columns, is_typed
from ...metadata_updates.metadata_form import NewStatistics, has_definitions
from ...options import Options, index_keys
from ...schema.table_schema import META_COLUMNS
from ...snapshot import Snapshot
from ...table.support import schema_history
from .names import EXPRESSION, names_in

_CALL = re.compile(r"(\w{1,100}):(?:(column_stats|bloom_filters):)?(\w+)\(\s*([\w.]+)\s*((?:,\s*\w+\s*=[^,]*)*)\)")
_OPTION = re.compile(r",\s*(\w+)\s*=([^,]*)")
_BUILD_LISTING = "name files as well: --index files,column_stats"


@dataclass(frozen=True, slots=True)
class FileIndexes:
    """Indexes to build: `groups` has the number of file groups of each metadata partition, in the order of the build.

    `definitions` are those of index.json. `makes_table`: whether they are the first of a new metadata table.
    """

    groups: Mapping[str, int]
    makes_table: bool
    columns: IndexColumns = NO_COLUMNS
    definitions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    computations: tuple[Computation, ...] = ()

    @property
    def logs_have_records(self) -> bool:
        """Whether log files get statistics: Hudi 0.15 builds an index without them, and reads each such file."""
        return bool(self.definitions) or PARTITION_STATS in self.groups

    @property
    def typed(self) -> frozenset[str]:
        """The metadata partitions whose statistics are written with a value type."""
        statistics = {COLUMN_STATS, PARTITION_STATS} if self.columns.typed else set[str]()
        return frozenset(statistics | {one.index.partition for one in self.computations if one.index.typed})


def asked_of_files(text: str, table: Snapshot, options: Options) -> FileIndexes:
    """The indexes to build, without those that the table has.

    Raises ConfigError for what cannot be built, UnsupportedTable for a table or a function without such an index, and
    NothingToDo when the table has all of them.
    """
    if table.schema is None:
        raise NothingToDo(f"{table.storage.root} has no commits yet: its first write makes the metadata table")
    if text.startswith(EXPRESSION):
        return _of_expression(text, table, options)
    there, names = table.config.metadata_partitions, names_in(text)
    makes_table = FILES not in there
    if makes_table and FILES not in names:
        raise ConfigError(f"{table.storage.root} has no metadata table", hint=_BUILD_LISTING)
    wanted = [one for one in names if one not in there or makes_table]
    if not wanted:
        raise NothingToDo(f"{table.storage.root} has {' and '.join(names)} already")
    return _of_names(wanted, table, options, makes_table=makes_table)


def _of_names(names: Iterable[str], table: Snapshot, options: Options, *, makes_table: bool) -> FileIndexes:
    config, schema, statistics = table.config, table.schema, options.of(NewStatistics)
    assert schema is not None, "looked at before"
    groups, definitions, columns = dict[str, int](), dict[str, Mapping[str, Any]](), NO_COLUMNS
    has_columns = COLUMN_STATS in names or (COLUMN_STATS in config.metadata_partitions and not makes_table)
    if not {COLUMN_STATS, PARTITION_STATS}.isdisjoint(names) and schema_history(table):
        raise UnsupportedTable(
            f"{table.storage.root} has a schema history, and Hudi would miss rows by statistics by the names of "
            "columns",
            hint="build --index files",
        )
    if FILES in names:
        groups[FILES] = 1
    if COLUMN_STATS in names:
        groups[COLUMN_STATS] = statistics.file_groups
        definition = statistics.definition(config, schema)
        columns = _columns(table, statistics, definition)
        if has_definitions(config):
            definitions[COLUMN_STATS] = definition
    elif table.metadata is not None and PARTITION_STATS in names and has_columns:
        columns = index_columns(table.metadata, [])
    ranges = {PARTITION_STATS: statistics.range_file_groups} if PARTITION_STATS in names else {}
    if PARTITION_STATS in names:
        _check_ranges(table, has_columns=has_columns)
    elif COLUMN_STATS in names and PARTITION_STATS not in config.metadata_partitions:
        ranges = statistics.range_groups(config)
    groups |= ranges
    if BLOOM_FILTERS in names:
        groups[BLOOM_FILTERS] = options[index_keys.BLOOM_FILTER_GROUPS]
    return FileIndexes(groups, makes_table, columns, definitions)


def _columns(table: Snapshot, statistics: NewStatistics, definition: Mapping[str, Any]) -> IndexColumns:
    """The columns with statistics. Raises UnsupportedTable where Hudi 0.15 would miss rows by those of the others."""
    if not has_definitions(table.config):
        _check_old_statistics(table, statistics)
    fields = [str(one) for one in definition["sourceFields"]]
    if not has_definitions(table.config) and not statistics.columns and table.config.populate_meta_fields:
        # Without a list, Hudi 0.15 has the statistics of all meta columns.
        fields += META_COLUMNS
    return IndexColumns(frozenset(fields), typed=definition.get("version") == "V2")


def _check_old_statistics(table: Snapshot, statistics: NewStatistics) -> None:
    """Hudi 0.15 takes a column without statistics for null, in a filter on several columns."""
    root, schema = table.storage.root, table.schema
    assert schema is not None, "looked at before"
    told = [one for one in schema.columns if not one.type.is_nested and not is_covered(one.type, typed=False)]
    if table.config.dropped_columns:
        what = f"the column {table.config.dropped_columns[0]}, which only some of its files have"
    elif told and not statistics.columns:
        what = f"the column {told[0].name} of the type {told[0].type}, which has no statistics"
    else:
        return
    raise UnsupportedTable(
        f"{root} has {what}, and Hudi 0.15 would miss rows by the statistics of the others", hint="build --index files"
    )


def _check_ranges(table: Snapshot, *, has_columns: bool) -> None:
    root = table.storage.root
    if not has_definitions(table.config):
        raise UnsupportedTable(
            f"{root} has table version {table.config.version.number}, and no release that writes it knows "
            f"{PARTITION_STATS}",
            hint=f"leave out {PARTITION_STATS}",
        )
    if not table.config.partition_fields:
        raise UnsupportedTable(f"{root} has no partitions", hint=f"leave out {PARTITION_STATS}")
    if not has_columns:
        raise ConfigError(f"{PARTITION_STATS} are ranges over {COLUMN_STATS}", hint=f"name {COLUMN_STATS}, too")


def _of_expression(text: str, table: Snapshot, options: Options) -> FileIndexes:
    metadata, root = table.metadata, table.storage.root
    call = _CALL.fullmatch(text.removeprefix(EXPRESSION))
    if call is None:
        raise ConfigError(
            f"--index {text} is no index that can be built",
            hint="name expression:NAME:FUNCTION(COLUMN), as expression:by_day:from_unixtime(ts, format=yyyy-MM-dd)",
        )
    if metadata is None or not has_definitions(table.config):
        why = "no metadata table" if metadata is None else f"table version {table.config.version.number}"
        raise UnsupportedTable(
            f"{root} has {why}, and expression indexes are a part of the metadata table of versions 8 and 9",
            hint=_BUILD_LISTING if metadata is None else "upgrade the table with Apache Hudi first",
        )
    name, kind, function, column, rest = call.groups()
    partition = f"{EXPRESSION_INDEX}{name}"
    if partition in table.config.metadata_partitions:
        raise NothingToDo(f"{root} has the index {partition} already")
    definition = {
        "indexName": partition,
        "indexType": kind or COLUMN_STATS,
        "indexFunction": function,
        "sourceFields": [column],
        "indexOptions": {"expr": function, **{key: _unquoted(value) for key, value in _OPTION.findall(rest)}},
        **({"version": "V2"} if is_typed(metadata, {}) else {}),
    }
    if kind == BLOOM_FILTERS and table.config.is_merge_on_read:
        raise UnsupportedTable(
            f"{root} is of type MERGE_ON_READ, and no release of Apache Hudi writes log files beside bloom filters of "
            "an expression",
            hint="leave out bloom_filters: the index then has ranges",
        )
    index = defined_index(metadata, partition, definition)
    zone, bloom = Zone.of_session(options), options.of(BloomSettings)
    one = computation(metadata, index, table.schema, zone, bloom)
    return FileIndexes(
        {partition: options[index_keys.EXPRESSION_INDEX_GROUPS]},
        makes_table=False,
        definitions={partition: definition},
        computations=(one,),
    )


def _unquoted(value: str) -> str:
    text = value.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == "'" else text
