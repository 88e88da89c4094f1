"""Which columns of a table a write must not give a wider type, although the old values have a meaning in it.

all, on version 6              0.15.0 fails to move rows by a global index while files have two types
all, on version 8              1.0.2 fails to keep a record index while log files have two types
ordering fields                log files have delete entries with values of the old type (1.0.2 fails by them)
ordering fields with nulls     without log files, too: nulls count as 0 in an int alone (1.0.2 and 1.2.0 fail by them)
expression indexes             have values that functions made of the old type
untyped partition statistics   a query of Hudi fails when it meets ranges of two types (seen with 1.0.2)
"""

from collections.abc import Collection, Iterator

from ..base_files.slices import SliceFacts, describe
from ..derived_indexes.expression_index.definitions import expression_indexes
from ..errors import UnsupportedTable
from ..merging.rules import Final, rule_of_write
from ..metadata.records.keys import PARTITION_STATS, RECORD_INDEX
from ..metadata.statistics.indexed_columns import typed_among
from ..model import FileSlice
from ..runs.rewrite_tasks import indexed_columns
from ..snapshot import Snapshot
from ..table_config import TableConfig
from ..writing.write_index import IndexType


def fixed_types(table: Snapshot, index: IndexType, compared: Collection[str]) -> dict[str, str]:
    """The columns that must keep their types, each with the reason; `index` is the one that the write asks for,
    `compared` are its `compared_fields`.

    Raises CorruptFile, UnsupportedTable and StorageError.
    """
    return dict(_fixed(table, index, compared))


def compared_fields(config: TableConfig, payload: str) -> frozenset[str]:
    """The ordering fields whose values in files an upsert compares with those of its rows; `payload` as in
    `rule_of_write`."""
    try:
        rule = rule_of_write(config, payload)
    except UnsupportedTable:
        return frozenset()
    return frozenset() if rule.final in (Final.ALWAYS, Final.LATER_IN_BINLOG) else frozenset(rule.ordering)


def _fixed(table: Snapshot, index: IndexType, compared: Collection[str]) -> Iterator[tuple[str, str]]:
    config, metadata, schema = table.config, table.metadata, table.schema
    why = _why_all(table, index)
    if schema is not None and why:
        yield from ((name, why) for name in schema.types)
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
    elif compared:
        why = "rows of the table have nulls in it, which count as 0 in an int alone"
        yield from ((name, why) for name in _with_nulls(table, compared))


def _with_nulls(table: Snapshot, columns: Collection[str]) -> Iterator[str]:
    """Those of the columns that may have nulls in a base file, by its footer."""

    def nulls(_: FileSlice, facts: SliceFacts) -> set[str]:
        return {one.column for one in facts.columns if one.column in columns and one.null_count != 0}

    return iter(set().union(*describe(table.slices, table.view.live_slices(), nulls)))


def _why_all(table: Snapshot, index: IndexType) -> str:
    """Why no column may have files of two types; "" when it may."""
    version = table.config.version
    is_recorded = table.metadata is not None and RECORD_INDEX in table.metadata.partitions
    if (index.is_global or is_recorded) and not version.global_index_converts:
        return f"Hudi {version.release} fails to move rows by a global index while files have two types"
    if is_recorded and table.config.is_merge_on_read and not version.record_index_converts:
        return f"Hudi {version.release} fails to keep the record index while log files have two types"
    return ""
