"""Writes rows to a copy-on-write table: inserts by Hudi's file sizing, or bulk inserts into new file groups alone.

keep      the rows, conformed to the table's schema, with key and partition path; nothing is written yet
begin     the instant; before the first commit of a table also its metadata table
assign    small files, then new file groups, by the view of the table from now on
write     the new files, each read back and compared
commit    the metadata table, then the completed file
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from ..codecs.table_schema import parse_table_schema
from ..commit.drafts import CommitDraft, TimesSource, WrittenFile
from ..commit.expectations import FilesStored
from ..commit.rollback.failed_writes import roll_back_failed_writes
from ..commit.write_attempt import WriteAttempt
from ..commit.written_groups import GroupsUnchanged, SchemaUnchanged
from ..engine import Engine, LocalEngine
from ..errors import HudiServicesError, NothingToDo, UnsupportedTable
from ..indexing.expressions import computed_indexes
from ..indexing.keys import moved_keys, record_shards
from ..metadata.creation import create_metadata_table
from ..metadata.expression_index.index import Computation
from ..metadata.expression_index.times import Zone
from ..metadata.record_index.log_writing import MovedKeys
from ..model import CommitMetadata, WriteStat
from ..object_storage import ObjectStorage
from ..options import creation_keys, keys, writing_keys
from ..rows.conservation import Checksum
from ..rows.memory import TaskMemory
from ..snapshot import Snapshot, current_schema, pending_clusterings, reopen
from ..storage import Storage
from ..table.partition_metafile import create_metafiles
from ..table.support import Operation, are_buckets, check_support
from ..table_config import TableConfig
from ..timeline.active import Timeline
from ..writing.base_files import InsertResult, InsertTask, write_inserts
from ..writing.creation import create_table, has_table_files
from ..writing.input_files import input_rows
from ..writing.kept_rows import KeptRows, writer_schema
from ..writing.keys import KeyMaker
from ..writing.known_keys import key_maker
from ..writing.row_store import RowStore
from ..writing.sizing import Bucket, SizingRules, average_record_bytes, insert_buckets, small_files, telling_commits
from .creation import check_definition, definition
from .metadata_compaction import compaction_afterwards
from .opening import open_rewritable
from .report import Check, CheckResult, InOut, Report, Row
from .request import WriteOperation, WriteRequest
from .rewrite_tasks import indexed_columns
from .settings import file_settings, new_statistics, session_zone, sizing_rules, transaction_settings

Rows: TypeAlias = "Callable[[], pa.RecordBatchReader]"
"""Gives the rows, from the first one on whenever it is called."""


def write_files(wanted: WriteRequest, urls: Sequence[str], file_format: str = "") -> Report:
    """Write the rows of files in one commit. Where there is no table, and options say what it is, it is made first.

    `urls` and `file_format` as for `input_rows`.
    """
    rows = partial(input_rows, urls, file_format)
    storage = ObjectStorage(wanted.base_path)
    if wanted.options.is_set(creation_keys.RECORD_KEY) and not has_table_files(storage):
        return _write_new(wanted, rows, storage)
    return write(wanted, rows, storage)


def write(wanted: WriteRequest, rows: Rows, storage: Storage | None = None) -> Report:
    """Write the rows in one commit, in this process; `storage` replaces the storage of `wanted.base_path`."""
    report, engine = Report.start(wanted), LocalEngine()
    table, wanted, expressions = open_rewritable(wanted, storage, report)
    check_definition(wanted.options, table.config)
    known, memory = current_schema(table), _memory(wanted, engine)
    with RowStore(memory.limit // 4) as store:
        with report.phase("keep rows"):
            kept = _keep(wanted, rows, table.config, known, store, partial(key_maker, table))
        run = _Run(wanted, table, kept, known, expressions, memory, report, engine)
        run.refuse_groups()
        return run.look() if wanted.dry_run else run.commit()


def _write_new(wanted: WriteRequest, rows: Rows, storage: Storage) -> Report:
    """Create the table, once it is known that it can take the rows, and write them."""
    report, engine = Report.start(wanted), LocalEngine()
    new = definition(wanted.options)
    config = TableConfig(new.properties(), new.version)
    check_support(Operation.WRITE, _New(storage, config, Timeline.open(storage, config)))
    memory = _memory(wanted, engine)
    with RowStore(memory.limit // 4) as store:
        with report.phase("keep rows"):
            kept = _keep(
                wanted, rows, config, None, store, lambda schema, zone: KeyMaker.of(config, schema, None, zone=zone)
            )
        if wanted.dry_run:
            return report.looked(f"dry run: the table at {storage.root} would be created, with {kept.count} rows")
        create_table(storage, new)
        table, wanted, expressions = open_rewritable(wanted, storage, report)
        return _Run(wanted, table, kept, None, expressions, memory, report, engine).commit()


@dataclass(frozen=True, slots=True)
class _New:
    """A table that is not there yet."""

    storage: Storage
    config: TableConfig
    timeline: Timeline


def _memory(wanted: WriteRequest, engine: Engine) -> TaskMemory:
    return TaskMemory(wanted.options[keys.MEMORY_PER_TASK] or engine.task_memory)


def _keep(
    wanted: WriteRequest,
    rows: Rows,
    config: TableConfig,
    known: str | None,
    store: RowStore,
    maker: Callable[["pa.Schema", Zone], KeyMaker],
) -> KeptRows:
    """Read the rows. `known` is the table's schema. Raises ConfigError, and NothingToDo without rows."""
    reader, options = rows(), wanted.options
    of_table = None if known is None else parse_table_schema(known, wanted.base_path)
    schema = writer_schema(reader.schema, config, of_table, nulls_for_missing=options[writing_keys.NULLS_FOR_MISSING])
    kept = KeptRows(schema, store)
    kept.add(reader, maker(schema.arrow, session_zone(options)))
    if not kept.count:
        raise NothingToDo("there are no rows to write")
    return kept


class _Run:
    """One write of rows that are kept."""

    def __init__(
        self,
        wanted: WriteRequest,
        table: Snapshot,
        kept: KeptRows,
        known: str | None,
        expressions: tuple[Computation, ...],
        memory: TaskMemory,
        report: Report,
        engine: Engine,
    ) -> None:
        """`known` is the table's schema, of which that of the rows was made."""
        self._wanted = wanted
        self._table = table
        self._settings = transaction_settings(wanted.options, table.storage)
        self._kept = kept
        self._known = known
        self._expressions = expressions
        self._report = report
        self._engine = engine
        self._memory = memory

    def refuse_groups(self) -> None:
        """Raise UnsupportedTable where the rows cannot be written: into buckets, or beside a partitioned index."""
        table = self._table
        shards = record_shards(table)
        if shards is not None and shards.is_partitioned:
            raise UnsupportedTable(
                f"{table.storage.root} has a partitioned record index, which writes cannot keep in step yet",
                hint="write to it with Apache Hudi, or drop the index first",
            )
        table.view.load([*self._kept.store.counts])
        for partition in self._kept.store.counts:
            slices = table.view.latest_slices(partition)
            if are_buckets(slices):
                raise UnsupportedTable(
                    f"{table.storage.root} has file groups named after buckets ({slices[0].file_id[:8]}…), and rows "
                    "cannot be written to buckets yet",
                    hint="write to it with Apache Hudi",
                )

    def look(self) -> Report:
        """Say what would be written."""
        tasks = self._tasks(self._table, "")
        filled = [task.filled for task in tasks if task.filled is not None]
        rows, store = self._kept.count, self._kept.store
        row: Row = {"partitions": len(store.counts), "rows": rows, "filled_files": len(filled)}
        self._report.tables["written"] = [{**row, "new_files": len(tasks) - len(filled), "max_bytes": None}]
        self._report.rows = InOut(rows, None)
        return self._report.looked("dry run: nothing was written")

    def commit(self) -> Report:
        """Write and commit the rows in the store."""
        report, operation = self._report, self._wanted.operation
        attempt = WriteAttempt(self._table, operation.value.replace("_", " "), self._settings, self._prepared)
        with report.phase("begin"):
            self._roll_back_failed()
        with attempt:
            report.instant = attempt.ts
            with report.phase("assign rows"):
                tasks = self._tasks(attempt.table, attempt.ts)
                self._create_metafiles(attempt)
                attempt.start(self._workload(attempt.table, tasks))
            with report.phase("write"):
                results = self._write(tasks)
            draft = self._draft(attempt, tasks, results)
            with report.phase("commit"):
                attempt.finish(draft, compaction_afterwards(self._engine, self._wanted, report))
        report.completed(attempt.ts)
        self._account(results)
        with report.phase("clean up"):
            try:
                attempt.clean_up()
            except HudiServicesError as error:
                return report.partly_done(
                    f"the {operation.value} is complete, but its markers could not be deleted: {error}"
                )
        return report

    def _create_metafiles(self, attempt: WriteAttempt) -> None:
        storage, in_base_format = attempt.table.storage, attempt.table.config.partition_metafile_in_base_format
        create_metafiles(storage, self._kept.store.counts, attempt.ts, in_base_format=in_base_format)

    def _roll_back_failed(self) -> None:
        failed = roll_back_failed_writes(self._table, self._settings)
        if failed:
            self._report.warnings.append(f"failed writes were rolled back: {', '.join(failed)}")
            self._table = reopen(self._table)

    def _prepared(self, current: Snapshot, times: TimesSource) -> Snapshot:
        """The table under the lock, before the instant is drawn: a table without commits gets its metadata table."""
        options = self._wanted.options
        if current.metadata is not None or current.timeline.first_write or not options[writing_keys.METADATA_ENABLE]:
            return current
        create_metadata_table(current.storage, self._kept.schema.text, times, statistics=new_statistics(options))
        return reopen(current)

    def _tasks(self, table: Snapshot, ts: str) -> list[InsertTask]:
        """A task for each bucket; the rows of a partition go to its buckets in their order."""
        options = self._wanted.options
        rules = sizing_rules(options)
        settings = replace(file_settings(options, table.config), file_bytes=rules.max_file)
        indexed = indexed_columns(table)
        tasks: list[InsertTask] = []
        for partition, buckets in self._buckets(table, rules):
            for bucket in buckets:
                tasks.append(
                    InsertTask(
                        storage=table.storage,
                        instant=ts,
                        partition=partition,
                        number=len(tasks),
                        rows=bucket.inserts,
                        filled=bucket.filled,
                        source=table.slices,
                        schema=self._kept.schema,
                        dropped_columns=table.config.dropped_columns,
                        settings=settings,
                        ranged=indexed,
                        memory=self._memory,
                    )
                )
        return tasks

    def _buckets(self, table: Snapshot, rules: SizingRules) -> Iterator[tuple[str, list[Bucket]]]:
        """The buckets of each partition. A bulk insert has one, and needs to know nothing of the table."""
        counts = sorted(self._kept.store.counts.items())
        if self._wanted.operation is WriteOperation.BULK_INSERT:
            yield from ((partition, [Bucket(None, count)]) for partition, count in counts)
            return
        most = self._wanted.options[writing_keys.RECORD_BYTES_COMMITS]
        record_bytes = average_record_bytes(telling_commits(table, most), rules)
        planned = pending_clusterings(table)
        fills = bool(table.timeline.first_write)
        if fills:
            table.view.load([partition for partition, _ in counts])
        for partition, count in counts:
            small = small_files(table.view.latest_slices(partition), planned, rules) if fills else []
            yield partition, insert_buckets(count, small, record_bytes, rules)

    def _workload(self, table: Snapshot, tasks: Sequence[InsertTask]) -> bytes:
        """The content of the inflight file: the inserts of each partition, and of each file group that is filled.

        Hudi leaves it empty for a bulk insert.
        """
        if self._wanted.operation is WriteOperation.BULK_INSERT:
            return b""
        stats: dict[str, tuple[WriteStat, ...]] = {}
        for partition in sorted({task.partition for task in tasks}):
            own = [task for task in tasks if task.partition == partition]
            filled = [
                WriteStat(partition, one.filled.file_id, "", one.filled.base_instant, num_inserts=one.rows)
                for one in own
                if one.filled is not None
            ]
            stats[partition] = (WriteStat(partition, "", "", num_inserts=sum(one.rows for one in own)), *filled)
        workload = CommitMetadata(self._wanted.operation.name, stats)
        return table.timeline.layout.encode_commit(workload, table.config.version.release)

    def _write(self, tasks: Sequence[InsertTask]) -> list[InsertResult]:
        results: list[InsertResult] = []
        taken: dict[str, int] = {}
        for task in tasks:
            start = taken.get(task.partition, 0)
            rows = self._kept.store.read(task.partition, start, task.rows)
            results.append(write_inserts(task, rows, f"{task.number}-0-{task.number}"))
            taken[task.partition] = start + task.rows
            self._wanted.progress("write", len(results), len(tasks))
        return results

    def _draft(
        self, attempt: WriteAttempt, tasks: Sequence[InsertTask], results: Sequence[InsertResult]
    ) -> CommitDraft:
        table, engine = attempt.table, self._engine
        written = [
            WrittenFile(stat, new.file.columns)
            for result in results
            for stat, (new, _) in zip(result.stats, result.files, strict=True)
        ]
        stats = [one.stat for one in written]
        filled = [task.filled for task in tasks if task.filled is not None]
        seen = frozenset(one.ts for one in table.timeline.completed_writes())
        return CommitDraft(
            attempt.instant,
            self._wanted.operation.name,
            written,
            moved=self._moved(attempt, stats),
            expressions=computed_indexes(engine, table, self._expressions, attempt.files, stats, []),
            expectations=(
                SchemaUnchanged(self._known),
                GroupsUnchanged(filled, seen, self._settings),
                FilesStored(table.storage, stats),
            ),
            schema=self._kept.schema.text,
        )

    def _moved(self, attempt: WriteAttempt, stats: Sequence[WriteStat]) -> MovedKeys | None:
        """The keys of the new files, for the record index."""
        shards = record_shards(attempt.table)
        if shards is None:
            return None
        with self._report.phase("read keys"):
            return moved_keys(self._engine, attempt.table, shards, attempt.files, stats)

    def _account(self, results: Sequence[InsertResult]) -> None:
        report, new = self._report, [(one, inserted) for result in results for one, inserted in result.files]
        filled = [result.task.filled for result in results if result.task.filled is not None]
        inserted = sum(rows for _, rows in new)
        report.files = InOut(len(filled), len(new))
        report.bytes = InOut(sum(one.base_bytes for one in filled), sum(one.file.size for one, _ in new))
        report.rows = InOut(inserted, sum(one.file.rows for one, _ in new))
        report.tables["written"] = [
            {
                "partitions": len({result.task.partition for result in results}),
                "rows": inserted,
                "filled_files": len(filled),
                "new_files": len(new) - len(filled),
                "max_bytes": max(one.file.size for one, _ in new),
            }
        ]
        peak = max(result.peak for result in results)
        report.tables["memory"] = [
            {"limit_bytes": self._memory.limit, "peak_bytes": peak, "spilled_bytes": self._kept.store.spilled_bytes}
        ]
        phases = sorted({phase for result in results for phase in result.seconds})
        spent = {phase: sum(result.seconds.get(phase, 0.0) for result in results) for phase in phases}
        report.seconds |= {f"tasks: {phase}": seconds for phase, seconds in spent.items()}
        checked = sum((result.checked for result in results), start=Checksum())
        detail = f"{checked} read back from the new files"
        report.checks.append(Check("row conservation", CheckResult.PASSED, detail))
