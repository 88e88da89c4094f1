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

from ..errors import ConflictError, UnsupportedTable
from ..hfile.hfile_writer import write_hfile
from ..metadata.file_groups.new_groups import (
    base_path,
    base_stat,
    complete_build,
    create_groups,
    initial_instants,
)
from ..metadata.index_definitions import write_definitions
from ..metadata.records.codec import encode_record
from ..metadata.records.keys import ALL_PARTITIONS_KEY, COLUMN_STATS, FILES, group_id, partition_id
from ..metadata.records.model import FileEntry, FilesRecord, RecordType
from ..metadata.records.record_schema import stored_schema
from ..model import WriteStat
from ..own_commands import own_command
from ..schema.table_schema import TableSchema
from ..storage import Storage
from ..table.log_naming import log_naming
from ..table.partitions import Files
from ..table_config import METADATA_TABLE_FOLDER, TableConfig
from ..timeline.active import Timeline
from .metadata_form import DEFAULT_STATISTICS, NewStatistics, create_folder, has_definitions


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
    groups = {FILES: 1} | statistics.groups(config)
    definitions = {}
    if COLUMN_STATS in groups and has_definitions(config):
        definitions[COLUMN_STATS] = statistics.definition(config, schema)
    storage.delete_tree(METADATA_TABLE_FOLDER)
    _build(storage, create_folder(storage, config), timeline, groups, times)
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
            f"{storage.root} has commits without a metadata table",
            hint=f"build it first: {own_command('index-bootstrap', storage.root, '--index files,column_stats')}",
        )
    other = next((instant for instant in timeline.pending() if instant.ts != writer), None)
    if other is not None:
        raise ConflictError(
            f"{storage.root}: {other.file_name} is pending, and its writer may not know of a new metadata table",
            hint="wait until it is completed, or roll it back if its writer is dead",
        )


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
    group, data = group_id(FILES, 0), listing_content(release, {})
    storage.create(base_path(FILES, group, instant), data)
    return base_stat(FILES, group, instant, 1, len(data))


def listing_content(release: str, listing: Mapping[str, Files]) -> bytes:
    """The bytes of the base file of `files`: all data partitions, and the files of each."""
    schema = stored_schema(release)
    names = {partition_id(partition): FileEntry(0) for partition in listing}
    records = [FilesRecord(ALL_PARTITIONS_KEY, RecordType.ALL_PARTITIONS, names)]
    for partition, files in listing.items():
        entries = {name: FileEntry(size) for name, size in files.items()}
        records.append(FilesRecord(partition_id(partition), RecordType.FILES, entries))
    encoded = sorted((one.key.encode(), encode_record(one, schema, typed=False)) for one in records)
    return write_hfile(encoded, schema.text)
