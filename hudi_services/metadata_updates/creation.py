"""Creates the metadata table of a table without commits, with the partitions that are on by default in its release.

    version 6       files
    versions 8, 9   files, column_stats, and for a table with partitions partition_stats

    1 delete    .hoodie/metadata, which a killed creation has left
    2 create    .hoodie/metadata/.hoodie with its hoodie.properties
    3 build     each partition: empty file groups, its delta commit; in `files` one record, the empty list of partitions
    4 define    the index definitions: the columns that column_stats describes
    5 switch    hoodie.table.metadata.partitions names all partitions: before it, the table has no metadata table

Hudi names each partition as soon as it is built; here all are named at once, so that a killed creation leaves nothing
that counts. Source: HoodieBackedTableMetadataWriter (initializeIfNeeded, initializeMetaClient,
initializeFromFilesystem) of Apache Hudi 0.15.0, 1.0.2 and 1.2.0; compared with what these releases write.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..errors import ConflictError, UnsupportedTable
from ..hfile.hfile_writer import write_hfile
from ..merging.rules import EVENT_TIME_STRATEGY, PAYLOAD_STRATEGY
from ..metadata.file_groups.new_groups import (
    base_path,
    base_stat,
    complete_build,
    create_groups,
    initial_instants,
)
from ..metadata.index_definitions import write_definitions
from ..metadata.records.codec import encode_record
from ..metadata.records.keys import ALL_PARTITIONS_KEY, COLUMN_STATS, FILES, PARTITION_STATS, group_id
from ..metadata.records.model import FilesRecord, RecordType
from ..metadata.records.record_schema import stored_schema
from ..metadata.statistics.indexed_columns import column_stats_definition
from ..model import WriteStat
from ..options import value_of, writing_keys
from ..schema.table_schema import TableSchema
from ..storage import Storage
from ..table.log_naming import log_naming
from ..table_config import METADATA_TABLE_FOLDER, TableConfig
from ..timeline.active import Timeline

_METADATA = "org.apache.hudi.metadata."


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStatistics:
    """The statistics of a new table."""

    enable: bool | None = value_of(writing_keys.COLUMN_STATS_ENABLE, lambda asked: asked == "TRUE" if asked else None)
    """None: as in the release that owns the version of the table."""
    columns: tuple[str, ...] = value_of(writing_keys.COLUMN_STATS_COLUMNS)
    """Not stored in version 6, whose writers must all have it."""
    most_columns: int = value_of(writing_keys.COLUMN_STATS_MOST)
    """Counts without a list, and not in version 6."""
    file_groups: int = value_of(writing_keys.COLUMN_STATS_GROUPS)
    ranges: bool = value_of(writing_keys.PARTITION_STATS_ENABLE)
    """With column_stats, whether there are partition_stats, too."""
    range_file_groups: int = value_of(writing_keys.PARTITION_STATS_GROUPS)


DEFAULT_STATISTICS = NewStatistics()


def create_metadata_table(
    storage: Storage,
    schema: TableSchema,
    times: Callable[[], str],
    *,
    writer: str = "",
    statistics: NewStatistics = DEFAULT_STATISTICS,
) -> TableConfig:
    """Create the metadata table, and return the table's configuration, which names its partitions.

    The caller holds the table's lock, and no completed write exists. `schema` is that of the rows that will be
    written, without meta columns; `times` gives instants greater than all on both timelines. `writer` is
    the caller's own instant, which may have begun. A table that has a metadata table stays as it is, so that this may
    be called again after a kill.

    Raises UnsupportedTable for a table with commits, ConflictError beside another pending instant, which may be
    completed without the metadata table, and CorruptFile or UnsupportedTable for a schema that we cannot read.
    """
    # Read here, under the lock: what an older snapshot does not show must not be deleted.
    config = TableConfig.load(storage)
    if FILES in config.metadata_partitions:
        return config
    timeline = Timeline.open(storage, config)
    _check_empty(storage, timeline, writer)
    form = _FORMS[config.version.number]
    groups = _file_groups(config, form, statistics)
    definitions = {}
    if COLUMN_STATS in groups and form.has_definitions:
        described = column_stats_definition(config, schema, statistics.columns, statistics.most_columns)
        definitions[COLUMN_STATS] = described
    storage.delete_tree(METADATA_TABLE_FOLDER)
    _build(storage, _create(storage, config, form), timeline, groups, times)
    changes: dict[str, str | None] = {
        "hoodie.table.metadata.partitions": ",".join(sorted(groups)),
        "hoodie.table.metadata.partitions.inflight": "",
    }
    if definitions:
        write_definitions(storage, config.index_defs_path, definitions)
        changes["hoodie.table.index.defs.path"] = config.index_defs_path
    else:
        storage.delete(config.index_defs_path)
    return config.update(storage, changes)


def _check_empty(storage: Storage, timeline: Timeline, writer: str) -> None:
    if timeline.completed_writes():
        raise UnsupportedTable(
            f"{storage.root} has commits without a metadata table, and only a new table can get one here",
            hint="let a writer of Apache Hudi with hoodie.metadata.enable=true make it",
        )
    other = next((instant for instant in timeline.pending() if instant.ts != writer), None)
    if other is not None:
        raise ConflictError(
            f"{storage.root}: {other.file_name} is pending, and its writer may not know of a new metadata table",
            hint="wait until it is completed, or roll it back if its writer is dead",
        )


def _file_groups(config: TableConfig, form: "_Form", statistics: NewStatistics) -> dict[str, int]:
    """The number of file groups of each partition, in the order in which Hudi builds them."""
    groups = {FILES: 1}
    if form.has_definitions if statistics.enable is None else statistics.enable:
        groups[COLUMN_STATS] = statistics.file_groups
        if form.has_definitions and config.partition_fields and statistics.ranges:
            groups[PARTITION_STATS] = statistics.range_file_groups
    return groups


def _create(storage: Storage, config: TableConfig, form: "_Form") -> TableConfig:
    common = {
        "hoodie.table.name": f"{config.name}_metadata",
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": str(config.version.number),
        "hoodie.table.base.file.format": "HFILE",
        "hoodie.table.recordkey.fields": "key",
        "hoodie.populate.meta.fields": "false",
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.compaction.payload.class": f"{_METADATA}HoodieMetadataPayload",
    }
    own = TableConfig({**common, **form.properties}, config.version, METADATA_TABLE_FOLDER)
    own.make_folders(storage)
    return TableConfig.create(storage, own.raw, own.root)


def _build(
    storage: Storage, own: TableConfig, data: Timeline, groups: Mapping[str, int], times: Callable[[], str]
) -> None:
    timeline = Timeline.open(storage, own)
    instants = iter(initial_instants(log_naming(own.version), data))
    for partition, count in groups.items():
        instant = next(instants)
        create_groups(storage, partition, [group_id(partition, number) for number in range(count)], instant)
        stats = [_create_listing(storage, own.version.release, instant)] if partition == FILES else []
        complete_build(timeline, own.version.release, partition, instant, stats, times)


def _create_listing(storage: Storage, release: str, instant: str) -> WriteStat:
    """Write the base file of `files`, with an empty list of partitions."""
    schema = stored_schema(release)
    record = FilesRecord(ALL_PARTITIONS_KEY, RecordType.ALL_PARTITIONS, {})
    data = write_hfile([(record.key.encode(), encode_record(record, schema, typed=False))], schema.text)
    storage.create(base_path(FILES, group_id(FILES, 0), instant), data)
    return base_stat(FILES, group_id(FILES, 0), instant, 1, len(data))


@dataclass(frozen=True, slots=True)
class _Form:
    """What the metadata table of a table version has."""

    properties: Mapping[str, str]
    has_definitions: bool
    """True: column statistics are on by default, with ranges of partitions, and have an index definition."""


def _of_layout_2(version: int) -> _Form:
    properties = {
        "hoodie.timeline.layout.version": "2",
        "hoodie.table.initial.version": str(version),
        "hoodie.archivelog.folder": "history",
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        "hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA",
        "hoodie.record.merge.mode": "CUSTOM",
        "hoodie.record.merge.strategy.id": PAYLOAD_STRATEGY,
    }
    return _Form(properties, has_definitions=True)


_OF_LAYOUT_1 = {
    "hoodie.timeline.layout.version": "1",
    "hoodie.archivelog.folder": "archived",
    "hoodie.table.keygenerator.class": f"{_METADATA}HoodieTableMetadataKeyGenerator",
    "hoodie.compaction.record.merger.strategy": EVENT_TIME_STRATEGY,
}
_FORMS = {6: _Form(_OF_LAYOUT_1, has_definitions=False), 8: _of_layout_2(8), 9: _of_layout_2(9)}
