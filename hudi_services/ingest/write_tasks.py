"""The tasks of a write: inserts into small files and new file groups, and next slices of file groups with updates."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import pyarrow as pa

from ..log_files.change_schema import ChangesMode
from ..merging.rules import MergeRule
from ..merging.slices import MergedSlices
from ..metadata.records.keys import COLUMN_STATS
from ..model import CommitMetadata, FileSlice, WriteStat
from ..options import Options, writing_keys
from ..rows.memory import TaskMemory
from ..rows.settings import file_settings
from ..rows.sort_order import SortColumn
from ..runs.request import WriteOperation
from ..runs.rewrite_tasks import indexed_columns
from ..snapshot import Snapshot
from ..table.new_logs import LogNames, log_numbers
from ..writing.appended_logs import AppendTask, append_rows
from ..writing.assignment import Assigned
from ..writing.change_logs import ChangesForm
from ..writing.inserted_files import InsertTask, Written, write_inserts
from ..writing.kept_rows import KeptRows
from ..writing.path_columns import path_columns
from ..writing.row_store import Place, Portion, RowStore
from ..writing.sizing import Bucket
from ..writing.updated_files import UpdateTask, write_updates
from ..writing.write_form import WriteForm
from ..writing.writer_schema import WriterSchema

_BLOCK_SHARE = 8
"""A data block has one part of the memory in so many: it is encoded, joined and sent as a whole."""
_MOST_BLOCK_BYTES = 1 << 30
"""Of a block, whatever is asked for: readers of Hudi hold it in an array of Java, which has less than 2 GiB."""


@dataclass(frozen=True, slots=True)
class WriteTask:
    """`task` with the portions of a store that are its rows; plain data, which may be sent to another process."""

    task: InsertTask | UpdateTask | AppendTask
    portions: tuple[Portion, ...]
    inserts: int
    changes: int = 0
    """Rows and keys for rows that are there."""

    @property
    def partition(self) -> str:
        return self.task.partition

    @property
    def before(self) -> FileSlice | None:
        """The slice that it writes the next one of."""
        return self.task.updated if isinstance(self.task, UpdateTask) else None

    @property
    def appended(self) -> FileSlice | None:
        """The slice that gets a log file."""
        return self.task.appended if isinstance(self.task, AppendTask) else None

    @property
    def begins_group(self) -> bool:
        """Whether its log file begins a file group."""
        return self.appended is not None and not self.appended.files

    @property
    def group(self) -> FileSlice | None:
        """The newest slice of its file group, if that is there."""
        return self.before or self.appended

    def run(self, store: RowStore, token: str = "") -> Written:
        """Write the files. Raises what `write_inserts`, `write_updates` and `append_rows` raise."""
        task = self.task
        token = token or _token(task.number)

        def rows(portions: Iterable[Portion]) -> Iterator[pa.Table]:
            return chain.from_iterable(store.read(one.place, one.start, one.count) for one in portions)

        if isinstance(task, InsertTask):
            return inserted(task, rows(self.portions), token)
        if isinstance(task, AppendTask):
            log = append_rows(task, rows(self.portions))
            return Written((log.file,), log.checked, log.seconds, log.peak)
        changes, inserts = ([one for one in self.portions if one.is_insert is wanted] for wanted in (False, True))
        done = write_updates(task, partial(rows, changes), partial(rows, inserts), token)
        files = tuple(new.next_of(task.updated, done.logs) for new in done.files)
        return Written(files, done.after, dict(done.seconds), done.peak, done.spilled)


class WriteTasks:
    """Makes the tasks of the rows of one write, as they are assigned to file groups of `table`."""

    def __init__(
        self,
        table: Snapshot,
        form: WriteForm,
        kept: KeptRows,
        assigned: Assigned,
        options: Options,
        rule: MergeRule | None,
    ) -> None:
        """`rule` is needed for updates."""
        self._table = table
        self._form = form
        self._file_keys = kept.file_keys
        self._assigned = assigned
        self._rule = rule
        self._block_bytes = block_bytes(options, form.memory)
        self._parquet_blocks = options[writing_keys.LOG_BLOCK_FORMAT] == "PARQUET"
        self._names: dict[str, LogNames] = {}

    def all(self, buckets: Iterable[tuple[Place, Sequence[Bucket]]]) -> list[WriteTask]:
        """The tasks for the inserts in buckets, of each place in the order of its rows, and for all updates."""
        tasks: list[WriteTask] = []
        updated = dict(self._assigned.slices)
        for place, of_place in buckets:
            start = 0
            for bucket in of_place:
                rows = Portion(place, start, bucket.inserts)
                start += bucket.inserts
                one = bucket.filled
                if one is not None and place.bucket is not None and self._appends:
                    # A bucket may have log files, and its rows are not merged here.
                    updated.pop((one.partition, one.file_id), None)
                    tasks.append(self._append(len(tasks), one, rows))
                elif one is not None:
                    updated.pop((one.partition, one.file_id), None)
                    tasks.append(self._update(len(tasks), one, rows))
                else:
                    new = InsertTask(self._form, place.partition, len(tasks), bucket.inserts, place.bucket)
                    tasks.append(WriteTask(new, (rows,), bucket.inserts))
        for one in updated.values():
            if self._appends:
                tasks.append(self._append(len(tasks), one))
            else:
                tasks.append(self._update(len(tasks), one, None))
        return tasks

    @property
    def _appends(self) -> bool:
        """Whether updates and deletes go to log files."""
        return self._table.config.is_merge_on_read

    def _append(self, number: int, file_slice: FileSlice, inserts: Portion | None = None) -> WriteTask:
        table, assigned = self._table, self._assigned
        assert isinstance(table.slices, MergedSlices), "log files are those of merge-on-read tables"
        count = 0 if inserts is None else inserts.count or 0
        task = AppendTask(
            storage=table.storage,
            instant=self._form.instant,
            number=number,
            appended=file_slice,
            log=self._log_names(file_slice.partition).next(file_slice, self._log_token(number)),
            marker_kind=table.log_naming.marker_kind,
            # Inserts need no rule.
            rule=self._rule or MergeRule(),
            schema=self._form.schema,
            inserts=count,
            block_bytes=self._block_bytes,
            parquet=self._form.settings if self._parquet_blocks else None,
            dates=table.config.version.dates_in_delete_entries,
            ranged=self._form.ranged,
            path_columns=path_columns(table.config, file_slice.partition),
            source=table.slices,
        )
        portions = (*assigned.portions(file_slice), *([inserts] if inserts is not None else []))
        return WriteTask(task, portions, count, assigned.count(file_slice))

    def _log_token(self, number: int) -> str:
        """The write token of a log file, which no other write uses: on version 6 the name has no instant.

        Its parts are ints of Java; the last one is the time of day of the instant.
        """
        return f"{number}-0-{int(self._form.instant[-9:] or 0)}"

    def _log_names(self, partition: str) -> LogNames:
        table = self._table
        if partition not in self._names:
            # Only where names are numbered within a slice: also by files that readers do not see.
            listed = [] if table.log_naming.tells_writers else table.storage.list_dir(partition)[0]
            numbers = log_numbers(file.name for file in listed)
            self._names[partition] = LogNames(
                table.log_naming,
                partition,
                self._form.instant,
                numbers,
                lambda: table.ledger.compacting,
                tells_slice=table.config.captures_changes,
            )
        return self._names[partition]

    def _update(self, number: int, file_slice: FileSlice, inserts: Portion | None) -> WriteTask:
        """The next slice of a file group, which may get inserts: none of their keys is in it."""
        assigned = self._assigned
        count = 0 if inserts is None else inserts.count or 0
        task = UpdateTask(
            self._form,
            number=number,
            updated=file_slice,
            changes=assigned.count(file_slice),
            change_bytes=assigned.size(file_slice),
            inserts=count,
            insert_bytes=0 if inserts is None else assigned.size_of_inserts(inserts.place, count),
            # Inserts need no rule.
            rule=self._rule or MergeRule(),
            file_keys=self._file_keys,
        )
        portions = (*assigned.portions(file_slice), *([inserts] if inserts is not None else []))
        return WriteTask(task, portions, count, task.changes)


def inserted(task: InsertTask, rows: Iterable[pa.Table], token: str, spilled: int = 0) -> Written:
    """Write the rows of `task`, of which `spilled` bytes waited on the local disk. Raises as `write_inserts`."""
    done = write_inserts(task, rows, token)
    return replace(done, spilled=spilled + done.spilled)


def _token(number: int) -> str:
    """The write token of a task."""
    return f"{number}-0-{number}"


def write_form(
    table: Snapshot,
    instant: str,
    schema: WriterSchema,
    options: Options,
    memory: TaskMemory,
    sort: tuple[SortColumn, ...] = (),
) -> WriteForm:
    """What the tasks of a write have in common; `memory` is that of each of them."""
    settings = replace(file_settings(options, table.config), file_bytes=options[writing_keys.MAX_FILE_BYTES])
    ranged, dropped = ranged_columns(table, schema), table.config.dropped_columns
    changes = changes_form(table, options, memory)
    return WriteForm(
        table.storage, instant, schema, dropped, settings, ranged, memory, sort, table.history, table.sources, changes
    )


def changes_form(table: Snapshot, options: Options, memory: TaskMemory) -> ChangesForm | None:
    """How a write logs the changes that it makes in base files; None where the table does not want them."""
    config = table.config
    if not config.captures_changes:
        return None
    block, file = block_bytes(options, memory), options[writing_keys.LOG_FILE_BYTES]
    return ChangesForm(ChangesMode[config.changes_mode], block, file, table.log_naming.marker_kind)


def block_bytes(options: Options, memory: TaskMemory) -> int:
    """The size at which the block of a log file is closed."""
    return min(options[writing_keys.LOG_BLOCK_BYTES], memory.limit // _BLOCK_SHARE, _MOST_BLOCK_BYTES)


def ranged_columns(table: Snapshot, schema: WriterSchema) -> frozenset[str]:
    """The columns that the metadata table may have statistics of after a write with this schema."""
    if table.metadata is None or COLUMN_STATS not in table.metadata.partitions:
        return frozenset()
    known = table.schema.types if table.schema is not None else {}
    return indexed_columns(table).union(leaf.dotted for leaf in schema.target.leaves if leaf.path[0] not in known)


def workload(table: Snapshot, operation: WriteOperation, tasks: Sequence[WriteTask]) -> bytes:
    """The content of the inflight file: the inserts of each partition, and what each file group gets that is there.

    Hudi leaves it empty for a bulk insert.
    """
    if operation is WriteOperation.BULK_INSERT:
        return b""
    stats: dict[str, tuple[WriteStat, ...]] = {}
    for partition in sorted({task.partition for task in tasks}):
        own = [task for task in tasks if task.partition == partition]
        groups = [
            WriteStat.forecast(partition, one.group, one.inserts, one.changes) for one in own if one.group is not None
        ]
        stats[partition] = (WriteStat.forecast(partition, None, sum(one.inserts for one in own)), *groups)
    return table.timeline.layout.encode_commit(CommitMetadata(operation.name, stats), table.config.version.release)
