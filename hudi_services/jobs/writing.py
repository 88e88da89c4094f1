"""Writes rows to a copy-on-write table: inserts and upserts by Hudi's file sizing, bulk inserts, and deletes.

keep      the rows, conformed to the table's schema, with key and partition path; nothing is written yet
begin     the instant; before the first commit of a table also its metadata table
assign    by the view of the table from now on: rows whose keys are there to their file groups, new ones to small files
          and then to new file groups
write     the new files, each read back and compared
commit    the metadata table, then the completed file
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from ..codecs.table_schema import parse_table_schema
from ..commit.drafts import CommitDraft, TimesSource, WrittenFile
from ..commit.expectations import FilesStored
from ..commit.rollback.failed_writes import roll_back_failed_writes
from ..commit.write_attempt import WriteAttempt
from ..commit.written_groups import GroupsUnchanged, SchemaUnchanged, refuse_planned
from ..engine import Engine, LocalEngine
from ..errors import HudiServicesError, NothingToDo, UnsupportedTable
from ..indexing.expressions import computed_indexes
from ..indexing.keys import moved_keys, record_shards
from ..merging.rules import MergeRule, merge_rule
from ..metadata.creation import create_metadata_table
from ..metadata.expression_index.index import Computation
from ..metadata.expression_index.times import Zone
from ..metadata.record_index.log_writing import MovedKeys
from ..model import FileSlice, WriteStat
from ..object_storage import ObjectStorage
from ..options import creation_keys, keys, writing_keys
from ..process import peak_bytes
from ..rows.conservation import Checksum
from ..rows.memory import TaskMemory
from ..snapshot import Snapshot, current_schema, pending_clusterings, reopen
from ..storage import Storage
from ..table.partition_metafile import create_metafiles
from ..table.support import Operation, are_buckets, check_support
from ..table_config import TableConfig
from ..timeline.active import Timeline
from ..writing.assignment import Assigned, Assigner
from ..writing.creation import create_table, has_table_files
from ..writing.distinct_rows import DistinctRows
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
from .settings import new_statistics, session_zone, sizing_rules, transaction_settings, write_index
from .write_tasks import WriteTask, WriteTasks, Written, workload

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
    if known is None and wanted.operation is WriteOperation.DELETE:
        raise NothingToDo("the table has no rows to delete")
    rule = _rule(wanted, table.config)
    with RowStore(memory.limit // 4) as store:
        with report.phase("keep rows"):
            kept = _keep(wanted, rows, table.config, known, store, partial(key_maker, table))
            distinct = _distinct(kept, rule, memory, table.config)
        run = _Run(wanted, table, kept, known, expressions, memory, report, engine, distinct)
        run.refuse_groups()
        return run.look() if wanted.dry_run else run.commit()


def _write_new(wanted: WriteRequest, rows: Rows, storage: Storage) -> Report:
    """Create the table, once it is known that it can take the rows, and write them."""
    report, engine = Report.start(wanted), LocalEngine()
    new = definition(wanted.options)
    config = TableConfig(new.properties(), new.version)
    check_support(Operation.WRITE, _New(storage, config, Timeline.open(storage, config)))
    memory, rule = _memory(wanted, engine), _rule(wanted, config)
    if wanted.operation is WriteOperation.DELETE:
        raise NothingToDo(f"there is no table at {storage.root} to delete rows of")
    with RowStore(memory.limit // 4) as store:
        with report.phase("keep rows"):
            kept = _keep(
                wanted, rows, config, None, store, lambda schema, zone: KeyMaker.of(config, schema, None, zone=zone)
            )
            distinct = _distinct(kept, rule, memory, config)
        if wanted.dry_run:
            return report.looked(f"dry run: the table at {storage.root} would be created, with {kept.count:,} rows")
        create_table(storage, new)
        table, wanted, expressions = open_rewritable(wanted, storage, report)
        return _Run(wanted, table, kept, None, expressions, memory, report, engine, distinct).commit()


@dataclass(frozen=True, slots=True)
class _New:
    """A table that is not there yet."""

    storage: Storage
    config: TableConfig
    timeline: Timeline


def _memory(wanted: WriteRequest, engine: Engine) -> TaskMemory:
    return TaskMemory(wanted.options[keys.MEMORY_PER_TASK] or engine.task_memory)


def _rule(wanted: WriteRequest, config: TableConfig) -> MergeRule | None:
    """The merge rule of an operation that looks for rows. Raises UnsupportedTable when the table has none for us."""
    if not wanted.operation.looks_up:
        return None
    if not config.populate_meta_fields:
        raise UnsupportedTable(
            f"the table {config.name} has no meta fields (hoodie.populate.meta.fields=false), and only inserts are "
            "written to such tables yet",
            hint="write with --operation insert or bulk_insert, or with Apache Hudi",
        )
    try:
        rule = merge_rule(config)
    except UnsupportedTable as error:
        raise UnsupportedTable(error.message, hint="write with Apache Hudi, or insert without looking up") from None
    # A delete has no values that could be preferred to those of a row.
    return MergeRule() if wanted.operation is WriteOperation.DELETE else rule


def _distinct(kept: KeptRows, rule: MergeRule | None, memory: TaskMemory, config: TableConfig) -> DistinctRows | None:
    """The rows of an operation that looks up, checked before anything is written. Raises as `DistinctRows`."""
    if rule is None:
        return None
    rows = DistinctRows(kept, rule, memory, config.name)
    rows.check()
    return rows


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
    deletes = wanted.operation is WriteOperation.DELETE
    schema = writer_schema(
        reader.schema,
        config,
        of_table,
        nulls_for_missing=options[writing_keys.NULLS_FOR_MISSING],
        keys_only=deletes,
    )
    across = wanted.operation is WriteOperation.UPSERT and write_index(options, has_record_index=True).kind.is_global
    kept = KeptRows(schema, store, keys_only=deletes, numbered=across)
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
        distinct: DistinctRows | None,
    ) -> None:
        """`known` is the table's schema, of which that of the rows was made; `distinct` is for look-ups."""
        self._wanted = wanted
        self._table = table
        self._settings = transaction_settings(wanted.options, table.storage)
        self._kept = kept
        self._known = known
        self._expressions = expressions
        self._report = report
        self._engine = engine
        self._memory = memory
        self._distinct = distinct

    def refuse_groups(self) -> None:
        """Raise UnsupportedTable where the rows cannot be written: into buckets, or beside a partitioned index."""
        table = self._table
        shards = record_shards(table)
        if shards is not None and shards.is_partitioned:
            raise UnsupportedTable(
                f"{table.storage.root} has a partitioned record index, which writes cannot keep in step yet",
                hint="write to it with Apache Hudi, or drop the index first",
            )
        is_global = self._looks_everywhere()
        partitions = table.view.partitions() if is_global else self._kept.partitions
        table.view.load(partitions)
        for partition in partitions:
            slices = table.view.latest_slices(partition)
            if are_buckets(slices):
                raise UnsupportedTable(
                    f"{table.storage.root} has file groups named after buckets ({slices[0].file_id[:8]}…), and rows "
                    "cannot be written to buckets yet",
                    hint="write to it with Apache Hudi",
                )

    def _looks_everywhere(self) -> bool:
        index = write_index(self._wanted.options, has_record_index=True)
        return self._distinct is not None and index.kind.is_global

    def look(self) -> Report:
        """Say what would be written."""
        with self._assigned(self._table) as assigned:
            tasks = self._tasks(self._table, "", assigned)
        before = [task for task in tasks if task.before is not None]
        row: Row = {
            "partitions": len({task.partition for task in tasks}),
            "rows": self._kept.count,
            "inserts": sum(task.inserts for task in tasks),
            "updates": None,
            "deletes": None,
            "filled_files": sum(not task.changes for task in before),
            "updated_files": sum(bool(task.changes) for task in before),
            "new_files": len(tasks) - len(before),
            "max_bytes": None,
        }
        self._report.tables["written"] = [row]
        self._report.rows = InOut(self._kept.count, None)
        return self._report.looked("dry run: nothing was written")

    def commit(self) -> Report:
        """Write and commit the rows in the store."""
        report, operation = self._report, self._wanted.operation
        attempt = WriteAttempt(self._table, operation.value.replace("_", " "), self._settings, self._prepared)
        with report.phase("begin"):
            self._roll_back_failed()
        with attempt:
            report.instant = attempt.ts
            with ExitStack() as stack:
                with report.phase("assign rows"):
                    assigned = stack.enter_context(self._assigned(attempt.table))
                    tasks = self._tasks(attempt.table, attempt.ts, assigned)
                    self._create_metafiles(attempt, tasks)
                    attempt.start(workload(attempt.table, operation, tasks))
                with report.phase("write"):
                    results = self._write(tasks)
                spilled = assigned.store.spilled_bytes
            draft = self._draft(attempt, tasks, results)
            with report.phase("commit"):
                attempt.finish(draft, compaction_afterwards(self._engine, self._wanted, report))
        report.completed(attempt.ts)
        self._account(tasks, results, spilled)
        with report.phase("clean up"):
            try:
                attempt.clean_up()
            except HudiServicesError as error:
                return report.partly_done(
                    f"the {operation.value} is complete, but its markers could not be deleted: {error}"
                )
        return report

    @contextmanager
    def _assigned(self, table: Snapshot) -> Iterator[Assigned]:
        """The rows by where they go; the rows of an operation that looks for none are inserts as they are."""
        if self._distinct is None:
            yield Assigned(self._kept.store)
            return
        index = write_index(self._wanted.options, has_record_index=record_shards(table) is not None)
        with RowStore(self._memory.limit // 4) as store:
            assigned = Assigner(table, self._kept, index, self._distinct).assign(store)
            refuse_planned(table, list(assigned.slices.values()))
            yield assigned

    def _create_metafiles(self, attempt: WriteAttempt, tasks: Sequence[WriteTask]) -> None:
        storage, in_base_format = attempt.table.storage, attempt.table.config.partition_metafile_in_base_format
        partitions = dict.fromkeys(task.partition for task in tasks if task.inserts)
        create_metafiles(storage, partitions, attempt.ts, in_base_format=in_base_format)

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

    def _tasks(self, table: Snapshot, ts: str, assigned: Assigned) -> list[WriteTask]:
        """The tasks of the rows; those of the inserts of a partition take them in their order."""
        options = self._wanted.options
        tasks = WriteTasks(
            table, ts, self._kept, assigned, options, self._memory, self._distinct.rule if self._distinct else None
        )
        return tasks.all(self._buckets(table, assigned, sizing_rules(options)))

    def _buckets(self, table: Snapshot, assigned: Assigned, rules: SizingRules) -> Iterator[tuple[str, list[Bucket]]]:
        """The buckets of each partition. A bulk insert has one, and needs to know nothing of the table."""
        counts = sorted(assigned.inserts.items())
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

    def _write(self, tasks: Sequence[WriteTask]) -> list[Written]:
        results: list[Written] = []
        for task in tasks:
            results.append(task.run())
            self._wanted.progress("write", len(results), len(tasks))
        return results

    def _draft(self, attempt: WriteAttempt, tasks: Sequence[WriteTask], results: Sequence[Written]) -> CommitDraft:
        table, engine = attempt.table, self._engine
        written = [WrittenFile(stat, new.file.columns) for result in results for new, stat in result.files]
        stats = [one.stat for one in written]
        before = [task.before for task in tasks if task.before is not None]
        seen = frozenset(one.ts for one in table.timeline.completed_writes())
        return CommitDraft(
            attempt.instant,
            self._wanted.operation.name,
            written,
            moved=self._moved(attempt, stats, before),
            expressions=computed_indexes(engine, table, self._expressions, attempt.files, stats, []),
            expectations=(
                SchemaUnchanged(self._known),
                GroupsUnchanged(before, seen, self._settings),
                FilesStored(table.storage, stats),
            ),
            schema=self._kept.schema.text,
        )

    def _moved(
        self, attempt: WriteAttempt, stats: Sequence[WriteStat], before: Sequence[FileSlice]
    ) -> MovedKeys | None:
        """The keys that are new or gone, for the record index."""
        shards = record_shards(attempt.table)
        if shards is None:
            return None
        with self._report.phase("read keys"):
            # A file group that has only updates has the keys that it had.
            changed = [one for one in stats if one.num_inserts or one.num_deletes]
            deleted = {(one.partition, one.file_id) for one in stats if one.num_deletes}
            old = [one for one in before if (one.partition, one.file_id) in deleted]
            return moved_keys(self._engine, attempt.table, shards, attempt.files, changed, old)

    def _account(self, tasks: Sequence[WriteTask], results: Sequence[Written], spilled: int) -> None:
        report, new = self._report, [one for result in results for one in result.files]
        before = [task.before for task in tasks if task.before is not None]
        stats = [stat for _, stat in new]
        updated = sum(1 for task in tasks if task.changes)
        report.files = InOut(len(before), len(new))
        report.bytes = InOut(sum(one.base_bytes for one in before), sum(one.file_size for one in stats))
        report.rows = InOut(self._kept.count, sum(one.num_writes for one in stats))
        report.tables["written"] = [
            {
                "partitions": len({one.partition for one in stats}),
                "rows": self._kept.count,
                "inserts": sum(one.num_inserts for one in stats),
                "updates": sum(one.num_update_writes for one in stats),
                "deletes": sum(one.num_deletes for one in stats),
                "filled_files": len(before) - updated,
                "updated_files": updated,
                "new_files": len(new) - len(before),
                "max_bytes": max((one.file_size for one in stats), default=0),
            }
        ]
        kept = self._kept.store.spilled_bytes if self._distinct is not None else 0
        report.tables["memory"] = [
            {
                "limit_bytes": self._memory.limit,
                "peak_bytes": max((result.peak for result in results), default=peak_bytes()),
                "spilled_bytes": kept + spilled + sum(result.spilled for result in results),
            }
        ]
        phases = sorted({phase for result in results for phase in result.seconds})
        spent = {phase: sum(result.seconds.get(phase, 0.0) for result in results) for phase in phases}
        report.seconds |= {f"tasks: {phase}": seconds for phase, seconds in spent.items()}
        checked = sum((result.checked for result in results), start=Checksum())
        detail = f"{checked} read back from the new files"
        report.checks.append(Check("row conservation", CheckResult.PASSED, detail))
