"""The columns that the statistics of a table cover, and the form in which statistics are stored.

`.hoodie/.index_defs/index.json` (table versions 8 and 9) names them:

    {"indexDefinitions": {"column_stats": {"sourceFields": [column, ...], "version": "V1" | "V2", ...}}}

Without it the columns of existing records count; in an empty index Hudi's default applies.
Source: HoodieIndexDefinition, HoodieIndexVersion, HoodieTableMetadataUtil.getColumnsToIndex of Apache Hudi.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...codecs.hashing import xxh64_key
from ...parquet.chunk_stats import ColumnStats
from ...schema.column_type import Column, ColumnType
from ...schema.table_schema import META_COLUMNS, TableSchema
from ...table_config import TableConfig
from ...versions import TableVersion
from ..index_definitions import read_definitions, write_definitions
from ..metadata_table import MetadataTable
from ..records.keys import COLUMN_STATS, PARTITION_STATS
from .column_stats import is_covered

DEFAULT_COLUMNS = 32
"""hoodie.metadata.index.column.stats.max.columns.to.index"""

_ALWAYS = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key")
_META_PREFIX = "_hoodie_"
_V2 = "V2"


@dataclass(frozen=True, slots=True)
class IndexColumns:
    """Columns with statistics; `typed` records carry a value type (index version V2)."""

    columns: frozenset[str]
    typed: bool


NO_COLUMNS = IndexColumns(frozenset(), typed=False)


def index_columns(metadata: MetadataTable, candidates: Sequence[ColumnStats]) -> IndexColumns:
    """The columns to record of files that have the columns `candidates`, in schema order. Raises CorruptFile."""
    definition = read_definitions(metadata).get(COLUMN_STATS) or {}
    typed = is_typed(metadata, definition)
    fields = definition.get("sourceFields")
    if fields:
        return IndexColumns(frozenset(map(str, fields)), typed)
    supported = [stats.column for stats in candidates if is_covered(stats.type, typed=typed)]
    recorded = _recorded(metadata, described_columns(metadata).union(supported))
    return IndexColumns(recorded or frozenset(_default(metadata.config.version, supported)), typed)


def new_index_columns(metadata: MetadataTable, known: IndexColumns, schema: TableSchema | None) -> list[str]:
    """The columns of a commit's schema that get statistics with it, besides `known`, in schema order.

    As Hudi does, where the columns of the table have been those of its default; a list of a user's own stays.
    """
    if schema is None:
        return []
    before = metadata.data_timeline.schema
    if before is None or before == schema:
        return []
    old, new = (column_stats_definition(metadata.table_config, one)["sourceFields"] for one in (before, schema))
    if _without_meta(old) != _without_meta(known.columns):
        return []
    return [column for column in new if column not in known.columns]


def define_columns(metadata: MetadataTable, new: Sequence[str]) -> None:
    """Add columns to the definition of the column statistics, where there is one with columns. Raises CorruptFile."""
    if not new:
        return
    metadata.forget_definitions()
    definitions = read_definitions(metadata)
    definition = definitions.get(COLUMN_STATS) or {}
    fields = definition.get("sourceFields")
    if fields:
        path = metadata.table_config.index_defs_path
        definition = {**definition, "sourceFields": [*fields, *new]}
        write_definitions(metadata.storage, path, {**definitions, COLUMN_STATS: definition})


def _without_meta(columns: Iterable[str]) -> frozenset[str]:
    return frozenset(column for column in columns if not column.startswith(_META_PREFIX))


def column_stats_definition(
    config: TableConfig, schema: TableSchema, listed: Sequence[str] = (), most: int = DEFAULT_COLUMNS
) -> dict[str, Any]:
    """The definition of the column statistics of a new table, as Hudi orders its fields and columns.

    `schema` is the table's, without meta columns. Of the `listed` columns, those count that the table has
    and whose type has statistics; without a list, `most` columns at most. Raises CorruptFile and UnsupportedTable for
    a schema that we cannot read.
    """
    typed = config.version.typed_column_stats
    leaves = {leaf: kind for one in schema.columns for leaf, kind in _leaves(one)}
    meta = list(_ALWAYS) if config.populate_meta_fields else []
    if listed:
        wanted = [
            name for name in listed if name not in meta and name in leaves and is_covered(leaves[name], typed=typed)
        ]
        fields = [*meta, *wanted]
    else:
        fields = _default(
            config.version, [*meta, *(one.name for one in schema.columns if is_covered(one.type, typed=typed))], most
        )
    found = {
        "indexName": COLUMN_STATS,
        "indexType": COLUMN_STATS,
        "indexFunction": COLUMN_STATS,
        "sourceFields": list(dict.fromkeys(fields)),
        "indexOptions": {},
    }
    return found | ({"version": _V2} if typed else {})


def typed_among(metadata: MetadataTable, partitions: Iterable[str]) -> frozenset[str]:
    """The metadata partitions, of `partitions`, whose statistics are written with a value type. Raises CorruptFile."""
    definitions = read_definitions(metadata)
    # Ranges of whole partitions have the form of column statistics.
    names = {one: COLUMN_STATS if one == PARTITION_STATS else one for one in partitions}
    return frozenset(one for one, name in names.items() if is_typed(metadata, definitions.get(name) or {}))


def is_typed(metadata: MetadataTable, definition: Mapping[str, Any]) -> bool:
    """Whether the statistics of an index are written with a value type."""
    version = definition.get("version")
    return metadata.config.version.typed_column_stats if version is None else version == _V2


def described_columns(metadata: MetadataTable) -> frozenset[str]:
    """Columns that any file may have a record of: by the definition, or else by the schema. Raises CorruptFile.

    Hudi indexes the fields of the table's schema where it has no list of its own, meta columns included.
    """
    fields = (read_definitions(metadata).get(COLUMN_STATS) or {}).get("sourceFields")
    if fields:
        return frozenset(map(str, fields))
    schema = metadata.data_timeline.schema
    return frozenset(META_COLUMNS if schema is None else (*META_COLUMNS, *schema.names))


def may_be_indexed(metadata: MetadataTable) -> frozenset[str]:
    """The columns that `index_columns` may name for files of any schema, and maybe more. Raises CorruptFile."""
    found = described_columns(metadata)
    schema = metadata.data_timeline.schema
    if schema is None or (read_definitions(metadata).get(COLUMN_STATS) or {}).get("sourceFields"):
        return found
    return found.union(leaf for one in schema.columns for leaf, _ in _leaves(one))


def _leaves(column: Column) -> Iterator[tuple[str, ColumnType]]:
    """The fields of structs, by their full names; another column itself."""
    for one in column.type.fields:
        for leaf, kind in _leaves(one):
            yield f"{column.name}.{leaf}", kind
    if not column.type.fields:
        yield column.name, column.type


def _recorded(metadata: MetadataTable, columns: Iterable[str]) -> frozenset[str]:
    """The columns, of `columns`, that some file has a record of."""
    prefixes = {xxh64_key(column): column for column in columns}
    found = metadata.reader(COLUMN_STATS).scan_prefixes(prefixes)
    return frozenset(prefixes[prefix] for prefix, records in found if next(records, None) is not None)


def _default(version: TableVersion, columns: Sequence[str], most: int = DEFAULT_COLUMNS) -> list[str]:
    """The columns that Hudi indexes without a list, of supported `columns` in schema order; `most` of the table's own.

    Meta columns come first.
    """
    top_level = [column for column in columns if "." not in column]
    if version.all_columns_are_indexed:
        return top_level
    own = [column for column in top_level if not column.startswith(_META_PREFIX)]
    return [*(column for column in _ALWAYS if column in top_level), *own[:most]]
