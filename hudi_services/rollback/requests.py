"""The files that the rollback of an instant deletes: by its markers, its commit metadata, or a listing of the table.

    only requested              nothing
    completed                   the files in its commit metadata: one request a file, without fileId and base instant
    completed, file empty       every file in any partition that bears its time
    pending, with markers       one request a marker, with fileId and base instant
    pending, without markers    every file in any partition that bears its time (Hudi does not delete those); on version
                                6, also the log files whose blocks have its time
    pending, unfit markers      as without markers, when nothing was appended: a marker names no file of the instant

Only files that bear the instant's time are ever deleted; of a compaction, only base files. Where the instant appended
to a log file of an older slice (table version 6), the request names the log file, so that a command block cancels its
blocks: one request a file group.
Sources: MarkerBasedRollbackStrategy, ListingBasedRollbackStrategy, RollbackUtils of Apache Hudi.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..bucket_index.kept_rings import refuse_rollback
from ..codecs.commit_metadata import UNKNOWN_OPERATION
from ..codecs.rollback_plan import PartitionRollback
from ..commit.markers import Marker, marker_folder, read_markers
from ..computed_once import cached_property
from ..concurrency import at_once
from ..errors import CorruptFile
from ..file_names import parse_base_file, parse_data_file, parse_log_file
from ..log_files.log_reader import stored_blocks
from ..model import BaseFile, CommitMetadata, FileSlice, LogFile, WriteStat, path_in
from ..paths import bare_name
from ..recent import Recent
from ..snapshot import Snapshot
from ..storage import Storage
from ..table.partitions import Files, StorageLister
from ..table.view import slices_of
from ..timeline.instant import Action, Instant, State


class BlockInstants:
    """The instants that have blocks in log files. Each log file is read once, and again when it has grown."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._known: dict[tuple[str, int], frozenset[str]] = {}

    def of(self, logs: Sequence[LogFile]) -> list[frozenset[str]]:
        """The instants of the blocks of each log file."""
        unread = [log for log in logs if (log.path, log.size) not in self._known]
        for log, instants in zip(unread, at_once(self._read, unread), strict=True):
            self._known[log.path, log.size] = instants
        return [self._known[log.path, log.size] for log in logs]

    def _read(self, log: LogFile) -> frozenset[str]:
        instants = (block.instant for block in stored_blocks(self._storage, log))
        return frozenset(instant for instant in instants if instant is not None)


class FoundFiles:
    """The files of a table as they were listed lately (see `Recent`), for the rollbacks of many targets, whose writers
    are dead; and what their log files tell (`blocks`)."""

    def __init__(self, table: Snapshot, blocks: BlockInstants | None = None) -> None:
        self.blocks = blocks or BlockInstants(table.storage)
        self._table = table
        self._listed = Recent(self._list)

    def partitions(self) -> Mapping[str, "FoundPartition"]:
        """The data partitions in their order."""
        return self._listed()

    def _list(self) -> dict[str, "FoundPartition"]:
        lister = StorageLister(self._table.storage)
        return {one: FoundPartition(self._table, one, lister.files(one)) for one in lister.partitions()}


@dataclass(frozen=True)
class FoundPartition:
    """The files of a data partition."""

    table: Snapshot
    name: str
    files: Files

    @cached_property
    def groups(self) -> Mapping[str, Sequence[FileSlice]]:
        """The committed slices by file id, oldest first."""
        return slices_of(self.name, self.files, self.table.ledger.facts, self.table.log_naming)


def rollback_requests(
    table: Snapshot, target: Instant, *, using_markers: bool = True, files: FoundFiles | None = None
) -> tuple[PartitionRollback, ...]:
    """The requests of a plan to roll `target` back.

    Without `using_markers` the files of a pending instant are found by listing. `files` serves several targets. Raises
    CorruptFile for commit metadata that cannot be read, and for unfit markers when a listing would not find all that
    the instant wrote.
    """
    refuse_rollback(table, target)
    if target.state is State.REQUESTED:
        return ()
    files = files or FoundFiles(table)
    if target.is_completed:
        commit = table.timeline.read_commit(target)
        return _grouped(
            _by_listing(table, target, files) if says_nothing(commit) else _by_commit(table, target, commit)
        )
    if using_markers and table.storage.list_tree(marker_folder(target.ts)):
        try:
            return _grouped(_by_markers(table, target))
        except CorruptFile:
            if not _listing_finds_all(table, target):
                raise
    return _grouped([*_by_listing(table, target, files), *_appended(table, target, files)])


def unfit_markers(table: Snapshot, target: Instant) -> tuple[str, bool]:
    """What is wrong with the markers of an instant ("" for nothing), and whether it can be rolled back without them."""
    if target.is_completed:
        return "", True
    try:
        list(_by_markers(table, target))
        return "", True
    except CorruptFile as error:
        return error.message, _listing_finds_all(table, target)


def _listing_finds_all(table: Snapshot, target: Instant) -> bool:
    """Whether all files that the instant wrote bear its time; blocks appended to log files of older slices do not."""
    if _may_append(table, target):
        return False
    try:
        return all(marker.kind != "APPEND" for marker in read_markers(table.storage, target.ts))
    except CorruptFile:
        return True


def says_nothing(commit: CommitMetadata) -> bool:
    """Whether the commit's file does not record what the commit did: it is empty, or has no such content."""
    return commit.operation == UNKNOWN_OPERATION and not commit.stats and not commit.replaced


def _by_markers(table: Snapshot, target: Instant) -> Iterator[PartitionRollback]:
    for marker in read_markers(table.storage, target.ts):
        log = parse_log_file(marker.partition, marker.file_name, 0)
        writer = table.log_naming.writer(log) if log is not None else None
        if marker.kind == "APPEND" and log is not None and writer is None:
            yield _append(table, log, target.ts)
        else:
            yield _created(table, marker, log if writer is not None else None, target.ts)


def _created(table: Snapshot, marker: Marker, log: LogFile | None, ts: str) -> PartitionRollback:
    file = parse_base_file(marker.partition, marker.file_name, 0) or log
    if file is None or file.instant != ts or marker.kind == "APPEND":
        raise CorruptFile(
            f"{table.storage.root}: the marker of {marker.path} ({marker.kind}) does not name a file of {ts}",
            hint="let Apache Hudi roll this instant back",
        )
    return PartitionRollback(marker.partition, (table.storage.full_path(marker.path),), file.file_id, ts)


def _append(table: Snapshot, log: LogFile, ts: str) -> PartitionRollback:
    """The request for a log file, named after its slice, that a writer of version 6 was about to append to."""
    if log.instant == ts:
        return PartitionRollback(log.partition, (table.storage.full_path(log.path),))
    stored = table.storage.head(log.path)
    blocks = {log.name: stored.size} if stored else {}
    return PartitionRollback(log.partition, (), log.file_id, log.instant, blocks)


def _by_commit(table: Snapshot, target: Instant, commit: CommitMetadata) -> Iterator[PartitionRollback]:
    lister = StorageLister(table.storage)
    with_logs = table.timeline.began_as(target) is not Action.COMPACTION
    for partition, stats in commit.stats.items():
        paths = [
            path for stat in stats for path in (*(path for path, _ in stat.files), *(stat.log_files or ())) if path
        ]
        names = {bare_name(path) for path in paths}
        if table.config.is_merge_on_read and not table.log_naming.tells_writers:
            # Later writes that were rolled back may have left log files in the slices that go.
            ids = {stat.file_id for stat in stats}
            logs = (parse_log_file(partition, name, 0) for name in lister.files(partition))
            names |= {log.name for log in logs if log and log.file_id in ids}
        for name in sorted(names):
            if _bears(partition, name, target.ts, with_logs=with_logs):
                yield PartitionRollback(partition, (table.storage.full_path(path_in(partition, name)),))
        for stat in stats:
            log = parse_log_file(partition, bare_name(stat.path), 0)
            if log is not None and log.instant != target.ts:
                # Hudi stores the number of bytes written, and 1 where it does not know that number.
                blocks = {table.storage.full_path(log.path): stat.total_write_bytes or 1}
                yield PartitionRollback(partition, (), log.file_id, log.instant, blocks)


def _by_listing(table: Snapshot, target: Instant, files: FoundFiles) -> Iterator[PartitionRollback]:
    # In version 6 the log files of a compaction's slice also bear its time, and hold rows of other instants.
    with_logs = table.timeline.began_as(target) is not Action.COMPACTION
    for partition, listed in files.partitions().items():
        # Few of many names have to be parsed.
        for name in sorted(name for name in listed.files if target.ts in name):
            if _bears(partition, name, target.ts, with_logs=with_logs):
                yield PartitionRollback(partition, (table.storage.full_path(path_in(partition, name)),))


def _appended(table: Snapshot, target: Instant, files: FoundFiles) -> Iterator[PartitionRollback]:
    """Version 6, without markers: the file groups that a write announced to append to, and the log files that have
    blocks of the write, because it need not announce inserts."""
    if not _may_append(table, target):
        return
    forecast = table.timeline.read_commit(target) if target.action is Action.DELTA_COMMIT else None
    for partition, listed in files.partitions().items():
        slices = ((one.file_id, one) for group in listed.groups.values() for one in group)
        newest = {file_id: one for file_id, one in slices if one.base_instant < target.ts}
        announced = {stat.file_id for stat in (forecast.stats.get(partition, ()) if forecast else ()) if _updates(stat)}
        for one in (newest[file_id] for file_id in sorted(announced & newest.keys())):
            # No record names the log file; the file group is named instead, as in Hudi's plans.
            group = {table.storage.full_path(path_in(partition, one.file_id)): 1}
            yield PartitionRollback(partition, (), one.file_id, one.base_instant, group)
        logs = [log for one in newest.values() for log in one.log_files]
        for log, instants in zip(logs, files.blocks.of(logs), strict=True):
            if target.ts in instants:
                path = table.storage.full_path(log.path)
                yield PartitionRollback(partition, (), log.file_id, log.instant, {path: log.size})


def _may_append(table: Snapshot, target: Instant) -> bool:
    """Whether the instant may have appended blocks to log files of older slices."""
    return target.action in (Action.DELTA_COMMIT, Action.LOG_COMPACTION) and not table.log_naming.tells_writers


def _updates(stat: WriteStat) -> bool:
    return bool(stat.file_id) and stat.prev_commit != "null"


def _bears(partition: str, name: str, ts: str, *, with_logs: bool = True) -> bool:
    """Whether the name is that of a base file or log file of the instant `ts`."""
    file = parse_data_file(partition, name, 0)
    return file is not None and file.instant == ts and (with_logs or isinstance(file, BaseFile))


def _grouped(requests: Iterable[PartitionRollback]) -> tuple[PartitionRollback, ...]:
    """The requests, with one for all log files of a file group, or its blocks would be cancelled more than once."""
    cancelled: dict[tuple[str, str], PartitionRollback] = {}
    others: list[PartitionRollback] = []
    for request in requests:
        if request.log_blocks:
            group = (request.partition, request.file_id)
            before = cancelled.get(group, request)
            cancelled[group] = replace(before, log_blocks={**before.log_blocks, **request.log_blocks})
        else:
            others.append(request)
    return (*others, *cancelled.values())
