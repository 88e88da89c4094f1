"""Which columns of a table a write must not give a wider type, although the old values have a meaning in it.

all, on version 6              0.15.0 fails to move rows by a global index while files have two types
all, on version 8              1.0.2 fails to keep a record index while log files have two types
ordering fields                log files have delete entries with values of the old type (1.0.2 fails by them)
expression indexes             have values that functions made of the old type
untyped partition statistics   a query of Hudi fails when it meets ranges of two types (seen with 1.0.2)
"""

from collections.abc import Iterator

from ..codecs.table_schema import parse_table_schema
from ..files.avro_type import avro_columns
from ..metadata.expression_index.index import expression_indexes
from ..metadata.records.keys import PARTITION_STATS, RECORD_INDEX
from ..metadata.statistics.indexed_columns import typed_among
from ..snapshot import Snapshot, current_schema
from ..writing.index import IndexType
from .rewrite_tasks import indexed_columns


def fixed_types(table: Snapshot, index: IndexType) -> dict[str, str]:
    """The columns that must keep their types, each with the reason; `index` is the one that the write asks for.

    Raises CorruptFile and UnsupportedTable.
    """
    return dict(_fixed(table, index))


def _fixed(table: Snapshot, index: IndexType) -> Iterator[tuple[str, str]]:
    config, metadata, schema = table.config, table.metadata, current_schema(table)
    why = _why_all(table, index)
    if schema is not None and why:
        yield from ((name, why) for name, _ in avro_columns(parse_table_schema(schema, table.storage.root)))
    if metadata is not None:
        if PARTITION_STATS in {*metadata.partitions} - typed_among(metadata, [PARTITION_STATS]):
            why = (
                "the metadata table has its ranges in partitions (partition_stats), and queries of Hudi "
                f"{config.version.release} fail when they meet ranges of two types"
            )
            yield from ((name, why) for name in indexed_columns(table))
        for one in expression_indexes(metadata):
            yield one.column, f"the index {one.partition} has values that are made of it"
    if config.is_merge_on_read:
        yield from ((name, "log files have ordering values of it") for name in config.ordering_fields)


def _why_all(table: Snapshot, index: IndexType) -> str:
    """Why no column may have files of two types; "" when it may."""
    version = table.config.version
    is_recorded = table.metadata is not None and RECORD_INDEX in table.metadata.partitions
    if (index.is_global or is_recorded) and not version.global_index_converts:
        return f"Hudi {version.release} fails to move rows by a global index while files have two types"
    if is_recorded and table.config.is_merge_on_read and not version.record_index_converts:
        return f"Hudi {version.release} fails to keep the record index while log files have two types"
    return ""
