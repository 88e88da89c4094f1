"""One write to a copy-on-write table: inserts and upserts by Hudi's file sizing, bulk inserts, overwrites, deletes.

keep      the rows, conformed to the table's schema, with key and partition path; nothing is written yet
begin     the instant; before the first commit of a table also its metadata table
assign    by the view of the table from now on: rows whose keys are there to their file groups, new ones to small files
          and then to new file groups
write     the new files, each read back and compared
commit    the metadata table, then the completed file

Where another writer has changed what the rows were assigned to, the write is rolled back, and begins again with the
rows that it has kept: all that the table decides is decided again.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial

from ..attempts.write_attempt import WriteAttempt
from ..codecs.clustering_plan import encode_requested_replace
from ..commit.commit_draft import CommitDraft
from ..commit.conflicts import StaleInput
from ..commit.drafts import TimesSource
from ..commit.expectations import Expectation, FilesStored, VersionUnchanged
from ..commit.rolling_metadata import RollingMetadata
from ..commit.written_groups import (
    AppendedGroups,
    BucketsFree,
    GroupsNotBegun,
    GroupsUnchanged,
    SchemaUnchanged,
    refuse_planned,
)
from ..derived_indexes.secondary_index import check_columns, has_key_indexes
from ..engine import Engine
from ..errors import HudiServicesError, NotFound
from ..indexing.new_keys import record_shards
from ..metadata_updates.creation import create_metadata_table
from ..metadata_updates.metadata_form import NewStatistics
from ..model import FileSlice, WriteStat
from ..options import clean_keys, commit_keys, index_keys, writing_keys
from ..rollback.failed_writes import roll_back_failed_writes
from ..runs.metadata_services import metadata_services
from ..runs.report import Report
from ..runs.request import WriteOperation, WriteRequest
from ..runs.run import Run
from ..schema.table_schema import TableSchema
from ..snapshot import Snapshot, refresh
from ..table.partition_metafile import create_metafiles
from ..timeline.instant import Action, State
from ..writing.assignment import Assigned, DuplicatePolicy
from ..writing.buckets import check_groups
from ..writing.inserted_files import Written
from ..writing.last_logs import check_last_logs
from ..writing.row_store import Place
from ..writing.sizing import (
    Bucket,
    SizingRules,
    average_record_bytes,
    insert_buckets,
    small_files,
    telling_commits,
)
from ..writing.write_index import bucket_index, index_type, ring_index, write_index
from .write_report import show_prospect, show_written
from .write_rows import WriteRows
from .write_settings import bulk_sort, check_rings, commit_metadata, known_keys
from .write_tasks import WriteTask, WriteTasks, workload, write_form
from .written_keys import WrittenKeys


class WriteRun:
    """One write of rows that are kept."""

    def __init__(
        self,
        run: Run[WriteRequest],
        rows: WriteRows,
        known: TableSchema | None,
        engine: Engine,
        deleted: Callable[[Snapshot], Sequence[str]] = lambda table: (),
    ) -> None:
        """`known` is the table's schema, of which that of the rows was made.

        `deleted` gives the partitions whose rows are deleted.
        """
        self._run = run
        self._wanted = run.request
        self._table = run.table
        self._settings = run.settings
        self._rows = rows
        self._kept = rows.kept
        self._known = known
        self._indexes = run.indexes
        self._report = run.report
        self._engine = engine
        self._deleted = deleted
        self._index_buckets = bucket_index(run.options, run.table.config)
        self._rings = ring_index(run.options, run.table.config)
        self._retries = 0
        """How often the rows were assigned again."""
        self.after: Snapshot | None = None
        """The table after the commit; None where only another look would tell."""

    def refuse_groups(self) -> None:
        """Raise UnsupportedTable where the rows cannot be written (other buckets, what no index takes, what is merged
        before older rows), ConfigError for a record index of another kind than the table's, ConflictError where file
        groups of a pending plan would be replaced."""
        table, shards = self._table, record_shards(self._table)
        write_index(self._wanted.options, table.config, shards)
        if shards is not None:
            shards.holding(self._kept.partitions, 1)
        if table.metadata is not None:
            check_columns(table.metadata, self._kept.schema.table.types)
        check_rings(table, self._wanted, has_index=self._rings is not None)
        if table.config.is_merge_on_read and (self._rows.rule is not None or self._index_buckets is not None):
            self._indexes.refuse_log_files(table)
            check_last_logs(table, self._partitions(table, everywhere=self._looks_everywhere()))
        self._replaced(table)
        looks = self._wanted.operation not in (WriteOperation.INSERT_OVERWRITE_TABLE, WriteOperation.DELETE_PARTITION)
        if looks and self._rings is None:
            check_groups(table, self._partitions(table, everywhere=self._looks_everywhere()), self._index_buckets)

    def _looks_everywhere(self) -> bool:
        """Also for rows whose partitions are not known before they are written."""
        if not self._kept.count and self._wanted.operation.needs_rows:
            return True
        return self._rows.rule is not None and index_type(self._wanted.options).is_global

    def _partitions(self, table: Snapshot, *, everywhere: bool = False) -> list[str]:
        """The partitions that the write may change; `everywhere`: it may find its keys in all of them."""
        if everywhere or self._wanted.operation is WriteOperation.INSERT_OVERWRITE_TABLE:
            return table.view.partitions()
        return [*self._kept.partitions, *self._deleted(table)]

    @property
    def _name(self) -> str:
        return self._wanted.operation.value.replace("_", " ")

    @property
    def _merges_buckets(self) -> bool:
        return (self._index_buckets is not None or self._rings is not None) and self._rows.rule is not None

    def look(self) -> Report:
        """Say what would be written."""
        replaced = self._replaced(self._table)
        with self._assigned(self._table) as assigned:
            tasks = self._tasks(self._table, "", assigned)
        show_prospect(self._report, self._kept.count, tasks, replaced, merges_buckets=self._merges_buckets)
        return self._report.looked("dry run: nothing was written")

    def commit(self) -> Report:
        """Write and commit the rows in the store; where their file groups have changed meanwhile, assign them again."""
        with self._report.phase("begin"):
            self._roll_back_failed()
        while True:
            attempt = self._attempt()
            try:
                self._carry_out(attempt)
            except (StaleInput, NotFound) as conflict:
                self._look_again(attempt, conflict)
            else:
                break
        with self._report.phase("clean up"):
            try:
                attempt.clean_up()
            except HudiServicesError as error:
                return self._report.partly_done(
                    f"the {self._wanted.operation.value} is complete, but its markers could not be deleted: {error}"
                )
        return self._report

    def _carry_out(self, attempt: WriteAttempt) -> None:
        report = self._report
        with attempt:
            report.instant = attempt.ts
            with ExitStack() as stack:
                with report.phase("assign rows"):
                    replaced = self._replaced(attempt.table)
                    assigned = stack.enter_context(self._assigned(attempt.table))
                    tasks = self._tasks(attempt.table, attempt.ts, assigned)
                    work = workload(attempt.table, self._wanted.operation, tasks)
                    attempt.start(work, partial(self._create_metafiles, attempt, tasks))
                with report.phase("write"):
                    results = self._rows.write(attempt.table, attempt.ts, tasks)
                spilled = 0 if assigned is None else assigned.store.spilled_bytes
            draft = self._draft(attempt, tasks, results, replaced)
            with report.phase("commit"):
                attempt.finish(draft, metadata_services(self._engine, self._run))
        report.completed(attempt.ts)
        self.after = attempt.after
        spilled += self._kept.store.spilled_bytes if self._rows.rule is not None else 0
        show_written(report, self._rows, tasks, results, replaced, spilled=spilled, retries=self._retries)

    def _look_again(self, attempt: WriteAttempt, conflict: StaleInput | NotFound) -> None:
        """Let the rows be assigned to the table as it is now, after `conflict` in an attempt that was rolled back.

        Raises `conflict` where that does not help, or was done as often as the options allow; ConflictError for a table
        that has got another schema or version.
        """
        report, most = self._report, self._wanted.options[commit_keys.CONFLICT_RETRIES]
        if not attempt.rolled_back:
            raise conflict
        now = refresh(attempt.table)
        if isinstance(conflict, NotFound) and _others(attempt.table, attempt) == _others(now, attempt):
            # Nobody has cleaned the file away.
            raise conflict
        if self._retries >= most:
            hint = f"nothing was committed; run again, or retry more often: {commit_keys.CONFLICT_RETRIES.key}={most}"
            raise StaleInput(conflict.message, hint=hint) from conflict
        SchemaUnchanged(self._known).check(now)
        VersionUnchanged(self._table.config.version).check(now)
        self._retries += 1
        report.warn(
            [
                f"the {self._name} {attempt.ts} was rolled back by {attempt.rolled_back[-1]}, and its rows were "
                f"assigned again, because the table has changed: {conflict.message}"
            ]
        )
        self._table = now
        self.refuse_groups()

    def _attempt(self) -> WriteAttempt:
        operation, action, requested = self._wanted.operation, self._action(), b""
        if operation.replaces:
            named = operation.name if operation is WriteOperation.DELETE_PARTITION else None
            requested = encode_requested_replace(named, self._table.config.version.release)
        repeats = self._engine.repeats_tasks
        return WriteAttempt(self._table, self._name, self._settings, self._prepared, action, requested, repeats=repeats)

    def _action(self) -> Action:
        if self._wanted.operation.replaces:
            return Action.REPLACE_COMMIT
        config, is_bulk = self._table.config, self._wanted.operation is WriteOperation.BULK_INSERT
        if not config.is_merge_on_read or (is_bulk and config.version.bulk_insert_is_commit):
            return Action.COMMIT
        return Action.DELTA_COMMIT

    def _replaced(self, table: Snapshot) -> list[FileSlice]:
        """The slices whose file groups are replaced. Raises ConflictError for one that a pending plan is to rewrite."""
        if not self._wanted.operation.replaces:
            return []
        found = table.view.latest_slices_of(self._partitions(table))
        refuse_planned(table, found, "is to be replaced")
        return found

    @contextmanager
    def _assigned(self, table: Snapshot) -> Iterator[Assigned | None]:
        """The rows by where they go; the rows of an operation that looks for none are inserts as they are."""
        index = write_index(self._wanted.options, table.config, record_shards(table))
        # With the rings by which the rows are assigned now.
        self._rings = index.ring
        if index.ring is not None:
            # Before they are sent to tasks: what is stored and expected later is what these went by.
            for partition in self._kept.partitions:
                index.ring.ring(table, partition)
        known = known_keys(self._wanted.options, self._wanted.operation) or DuplicatePolicy.WRITE
        with self._rows.assigned(table, index, known) as assigned:
            # Log files may be written beside a pending compaction.
            by_log = table.config.is_merge_on_read
            changed = [] if assigned is None else list(assigned.slices.values())
            refuse_planned(table, changed, "has rows to update or delete", compactions=not by_log)
            yield assigned

    def _create_metafiles(self, attempt: WriteAttempt, tasks: Sequence[WriteTask]) -> None:
        storage, in_base_format = attempt.table.storage, attempt.table.config.partition_metafile_in_base_format
        known = attempt.table.metadata.listed_partitions() if attempt.table.metadata is not None else ()
        begun = [task.partition for task in tasks if task.inserts or task.begins_group]
        partitions = dict.fromkeys(one for one in begun if one not in known)
        if self._rings is not None:
            self._rings.begin(attempt.table, [task.partition for task in tasks])
        create_metafiles(storage, partitions, attempt.ts, in_base_format=in_base_format)

    def _roll_back_failed(self) -> None:
        if self._wanted.options[clean_keys.CLEAN_FAILED_WRITES] == "NEVER":
            return
        failed = roll_back_failed_writes(self._table, self._settings)
        if failed:
            self._report.warnings.append(f"failed writes were rolled back: {', '.join(failed)}")
            self._table = refresh(self._table)

    def _prepared(self, current: Snapshot, times: TimesSource) -> Snapshot:
        """The table under the lock, before the instant is drawn: a table without commits gets its metadata table."""
        options = self._wanted.options
        if current.metadata is not None or current.timeline.first_write or not options[writing_keys.METADATA_ENABLE]:
            return current
        create_metadata_table(current.storage, self._kept.schema.table, times, statistics=options.of(NewStatistics))
        return refresh(current)

    def _tasks(self, table: Snapshot, ts: str, assigned: Assigned | None) -> list[WriteTask]:
        """The tasks of the rows; those of the inserts of a partition take them in their order."""
        if assigned is None:
            return []
        options = self._wanted.options
        sort = bulk_sort(options, self._wanted.operation)
        form = write_form(table, ts, self._kept.schema, options, self._rows.task_memory, sort)
        tasks = WriteTasks(table, form, self._kept, assigned, options, self._rows.rule)
        candidates = options[writing_keys.SMALL_FILE_CANDIDATES] if table.config.is_merge_on_read else None
        return tasks.all(self._buckets(table, assigned, options.of(SizingRules, candidates=candidates)))

    def _buckets(self, table: Snapshot, assigned: Assigned, rules: SizingRules) -> Iterator[tuple[Place, list[Bucket]]]:
        """The buckets of each place of inserts. A bulk insert has one, and needs to know nothing of the table."""
        counts = assigned.inserts.items()
        if self._index_buckets is not None:
            slices = [] if self._wanted.operation.replaces else table.view.latest_slices_of(self._kept.partitions)
            found = list(self._index_buckets.inserts(assigned.inserts, slices))
            filled = [one.filled for _, (one,) in found if one.filled is not None]
            refuse_planned(table, filled, "has rows to insert", compactions=not table.config.is_merge_on_read)
            yield from found
            return
        if self._wanted.operation is WriteOperation.BULK_INSERT:
            yield from ((place, [Bucket(None, count)]) for place, count in counts)
            return
        if not counts:
            return
        most = self._wanted.options[writing_keys.RECORD_BYTES_COMMITS]
        record_bytes = average_record_bytes(telling_commits(table, most), rules)
        planned = {*table.ledger.groups_in_clusterings(), *table.ledger.groups_in_compactions}
        fills = bool(table.timeline.first_write) and self._wanted.operation.fills
        if fills:
            table.view.load([place.partition for place, _ in counts])
        for place, count in counts:
            small = small_files(table.view.latest_slices(place.partition), planned, rules) if fills else []
            yield place, insert_buckets(count, small, record_bytes, rules)

    def _draft(
        self,
        attempt: WriteAttempt,
        tasks: Sequence[WriteTask],
        results: Sequence[Written],
        replaced: Sequence[FileSlice],
    ) -> CommitDraft:
        table, engine = attempt.table, self._engine
        written = [one for result in results for one in result.files]
        stats = [one.stat for one in written]
        before = [task.before for task in tasks if task.before is not None]
        appended = [task.appended for task in tasks if task.appended is not None]
        grown = [one for one in appended if one.files]
        ids: dict[str, list[str]] = {}
        for one in replaced:
            ids.setdefault(one.partition, []).append(one.file_id)
        seen = frozenset(one.ts for one in table.timeline.completed_writes())
        in_partitions = not index_type(self._wanted.options).is_global
        by_bucket = self._index_buckets is not None or self._rings is not None
        written_keys = WrittenKeys(stats, before, replaced, appended, by_bucket, in_partitions)
        has_keys = table.metadata is not None and has_key_indexes(table.metadata)
        with self._report.phase("read keys") if has_keys else nullcontext():
            groups = self._wanted.options[index_keys.PARTITION_INDEX_MIN_GROUPS]
            moved, pairs = written_keys.of_indexes(engine, attempt, groups)
        return CommitDraft(
            attempt.instant,
            self._wanted.operation.name,
            written,
            replaced=ids if self._wanted.operation.replaces else None,
            index_delta=moved,
            secondary_deltas=pairs,
            expressions=self._indexes.records(engine, table, attempt.files, stats),
            expectations=(
                VersionUnchanged(self._table.config.version),
                SchemaUnchanged(self._known),
                GroupsUnchanged([*replaced, *before], seen, self._settings),
                AppendedGroups(grown, seen, table.ledger.groups_in_compactions, self._settings),
                FilesStored(table.storage, stats, is_alone=not (replaced or before)),
                *self._bucket_expectations(stats, [*before, *appended], replaced),
                *self._ring_expectations(table, tasks),
            ),
            schema=_versioned(table, self._kept.schema.table, attempt.ts),
            rolling=self._wanted.options.of(RollingMetadata),
            extra=commit_metadata(self._wanted.options),
        )

    def _ring_expectations(self, table: Snapshot, tasks: Sequence[WriteTask]) -> list[Expectation]:
        if self._rings is None:
            return []
        begun = [(task.partition, task.appended.file_id) for task in tasks if task.appended and task.begins_group]
        return [GroupsNotBegun(begun), self._rings.expectation(table, [task.partition for task in tasks])]

    def _bucket_expectations(
        self, stats: Sequence[WriteStat], before: Sequence[FileSlice], replaced: Sequence[FileSlice]
    ) -> list[BucketsFree]:
        if self._index_buckets is None:
            return []
        old = {(one.partition, one.file_id) for one in before}
        begun = [(one.partition, one.file_id) for one in stats if (one.partition, one.file_id) not in old]
        return [BucketsFree(begun, frozenset((one.partition, one.file_id) for one in replaced))]


def _versioned(table: Snapshot, schema: TableSchema, instant: str) -> TableSchema:
    """The schema of a write, with its version where the table has a schema history: a new one for new columns."""
    history = table.history.value
    return schema if history is None else replace(schema, version=history.grown(schema, instant).now.text)


def _others(table: Snapshot, attempt: WriteAttempt) -> set[tuple[str, State]]:
    """The instants that are not those of an attempt."""
    own = (attempt.ts, *attempt.rolled_back)
    return {(one.ts, one.state) for one in table.timeline.instants if one.ts not in own}
