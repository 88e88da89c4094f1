"""The file groups of a new partition of the metadata table, and the delta commit that builds them.

    <partition>/.hoodie_partition_metadata
    <partition>/<file id>_0-0-0_<instant>.hfile              the base file of each file group that has records
    <partition>/.<file id>_<instant>.log.1_0-0-0             an empty delete block: so that every file group exists
    <instant>.deltacommit.requested, .inflight, completed    a bulk insert

No reader uses the partition until `hoodie.table.metadata.partitions` names it.
Source: HoodieBackedTableMetadataWriter.initializeFileGroups, commitInternal of Apache Hudi.
"""

from collections.abc import Callable, Iterable, Sequence

from ...codecs.avro import load_schema
from ...concurrency import at_once
from ...errors import AlreadyExists
from ...file_names import PARTITION_METAFILE, base_file_name, log_file_name
from ...log_files.block_contents import delete_block_content
from ...log_files.log_blocks import BlockType, HeaderKey, LogBlock
from ...log_files.log_writer import encode_block
from ...model import CommitMetadata, WriteStat
from ...paths import bare_name
from ...storage import Storage
from ...table.log_naming import INITIALISATION, LogNaming
from ...table.partition_metafile import metafile
from ...timeline.active import Timeline
from ...timeline.instant import Action, State
from ..metadata_table import MetadataTable

_NO_TASK = "0-0-0"
_OPERATION = "BULK_INSERT_PREPPED"


def initial_instants(naming: LogNaming, data: Timeline) -> Iterable[str]:
    """Instants for the delta commits that build partitions, in their order; `data` is the table's own timeline."""
    completed = data.completed()
    return naming.initial_instants(completed[-1].ts if completed else INITIALISATION)


def base_path(partition: str, file_id: str, instant: str) -> str:
    """The path of the base file of a file group, relative to the storage."""
    return MetadataTable.path(partition, base_file_name(file_id, _NO_TASK, instant, ".hfile"))


def log_path(partition: str, file_id: str, instant: str, version: int) -> str:
    """The path of a log file of a file group; the log file of version 1 makes the file group exist."""
    return MetadataTable.path(partition, log_file_name(file_id, instant, version, _NO_TASK))


def create_groups(storage: Storage, partition: str, file_ids: Iterable[str], instant: str) -> None:
    """Create the folder of a partition with empty file groups; may be repeated."""
    storage.put(MetadataTable.path(partition, PARTITION_METAFILE), metafile(instant, depth=1))
    begin_groups(storage, partition, file_ids, instant)


def begin_groups(storage: Storage, partition: str, file_ids: Iterable[str], instant: str) -> None:
    """Create empty file groups, which count when the delta commit `instant` is completed; may be repeated."""
    block = encode_block(LogBlock(BlockType.DELETE, {HeaderKey.INSTANT_TIME: instant}, delete_block_content([])))

    def begin(file_id: str) -> None:
        storage.put(MetadataTable.path(partition, log_file_name(file_id, instant, 1, _NO_TASK)), block)

    at_once(begin, file_ids)


def base_stat(partition: str, file_id: str, instant: str, entries: int, size: int) -> WriteStat:
    """The write stat of the base file of a file group."""
    name = bare_name(base_path(partition, file_id, instant))
    return WriteStat.of_file(f"{partition}/{name}", size, entries, file_id)


def complete_build(
    timeline: Timeline, release: str, partition: str, instant: str, stats: Sequence[WriteStat], times: Callable[[], str]
) -> None:
    """Complete the delta commit that builds a partition, on the metadata table's `timeline`; under the table's lock.

    `stats` are those of its base files. A completed delta commit of a partition that the table does not name is
    harmless: after a kill in between, this may be called again, with the timeline as it is then.
    """
    for state in (State.REQUESTED, State.INFLIGHT):
        _publish_once(timeline, instant, state)
    extra = {"schema": load_schema("HoodieMetadataRecord", release).text}
    by_partition = {partition: tuple(stats)} if stats else {}
    done = timeline.layout.encode_commit(CommitMetadata(_OPERATION, by_partition, extra), release)
    if not _is_completed(timeline, instant):
        timeline.publish(instant, Action.DELTA_COMMIT, State.COMPLETED, done, times)


def _publish_once(timeline: Timeline, instant: str, state: State) -> None:
    try:
        timeline.publish(instant, Action.DELTA_COMMIT, state)
    except AlreadyExists:
        return


def _is_completed(timeline: Timeline, instant: str) -> bool:
    found = timeline.find(instant, Action.DELTA_COMMIT)
    return found is not None and found.is_completed
