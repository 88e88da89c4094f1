"""Writes the next slices of file groups that are there: rows are updated or deleted, and new rows follow.

The next slice is a rewrite of the base file. Rows that change others are merged with them by the table's rule, and
counted by other code than that which merges them. New rows are appended: a small file that takes them is an update
without changes. Row groups that no row touches are copied.
Source: HoodieMergeHandle, FileGroupReaderBasedMergeHandle, HoodieConcatHandle of Apache Hudi.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa

from ..base_files.base_file_slices import BaseFileSlices
from ..base_files.keyed_slices import KeyedBaseSlices, RowKeys
from ..base_files.slices import SliceFacts
from ..merging.log_records import KEY
from ..merging.merged_slice import MergedSlice
from ..merging.rules import MergeRule
from ..merging.slice_changes import RowChanges
from ..merging.slices import MergedFacts
from ..model import FileSlice
from ..options.clustering_keys import NO_LAYOUT
from ..parquet.conversion import converted_table
from ..parquet.file_schema import FileSchema
from ..process import peak_bytes
from ..rewriting.rewrite import RewriteResult, rewrite_group
from ..rewriting.task import RewriteTask
from ..rows.file_output import Stopwatch
from ..schema.schema_history import KnownHistory
from ..schema.table_schema import META_COLUMNS
from .change_logs import ChangeLogs, ChangesForm
from .meta_columns import MetaColumns, some_at_a_time
from .new_rows import InsertedRows, new_rows, next_slice_schema
from .write_form import WriteForm
from .writer_schema import with_key

T = TypeVar("T")
RowsAgain = Callable[[], Iterator[pa.Table]]
"""Gives tables of rows, each time from the first one on."""


@dataclass(frozen=True, slots=True)
class UpdateTask:
    """Rows for the file group of the slice `updated`: `changes` rows and keys for rows that are there, and `inserts`.

    The one have about `change_bytes` in memory, the others `insert_bytes`. `number` is that of the task in the write.
    `rule` merges the changes.
    """

    form: WriteForm
    number: int
    updated: FileSlice
    changes: int
    change_bytes: int
    inserts: int
    insert_bytes: int
    rule: MergeRule
    file_keys: RowKeys | None = None
    """As in `KeptRows`."""

    @property
    def partition(self) -> str:
        return self.updated.partition

    @property
    def meta(self) -> MetaColumns:
        """The meta columns of its rows."""
        return self.form.meta(self.partition, self.number)


def write_updates(task: UpdateTask, changes: RowsAgain, inserts: RowsAgain, token: str) -> RewriteResult:
    """Write the next slice of the file group.

    Both give tables of the record key and the data columns of the writer's schema, each time from the first one on;
    `changes` also tables of the record key alone, of rows that are deleted. No keys of `inserts` are looked for. Raises
    the errors of `rewrite_group`.
    """
    form = task.form
    appended = InsertedRows(
        inserts, task.inserts, task.insert_bytes, form.schema, task.meta, task.changes, form.dropped_columns
    )
    rewrite = RewriteTask(
        storage=form.storage,
        instant=form.instant,
        partition=task.partition,
        slices=(task.updated,),
        source=_Updated(task, changes) if task.changes else BaseFileSlices(form.storage, form.history, form.sources),
        file_ids=(task.updated.file_id,),
        sort=(),
        layout=NO_LAYOUT,
        table_schema=form.schema.table,
        dropped_columns=form.dropped_columns,
        meta_fields=form.schema.has_meta,
        # The next slice is one file, whatever its size.
        settings=replace(form.settings, file_bytes=sys.maxsize),
        memory=form.memory,
        indexed=tuple(sorted(form.ranged)),
        keeps_group=True,
        appended=appended if task.inserts else None,
    )
    result = rewrite_group(rewrite, token)
    return result if form.changes is None else _with_changes(task, changes, inserts, result, form.changes)


def _with_changes(
    task: UpdateTask, changes: RowsAgain, inserts: RowsAgain, result: RewriteResult, how: ChangesForm
) -> RewriteResult:
    """The result with the log of the changes, which is written from a merge of its own."""
    form, clock, spilled = task.form, Stopwatch(), 0
    (new,) = result.files
    with clock.phase("changes"):
        logs = ChangeLogs(form.storage, form.instant, form.schema, how, new)
        if task.changes:
            merged = _Updated(task, changes, form.memory.log_records).open(task.updated)
            logs.add_merge(merged)
            merged.release()
            spilled = merged.spilled_bytes
        schema = form.schema.target
        names = [name for name in schema.columns if name == KEY or name not in META_COLUMNS]
        for rows in new_rows(form.schema, task.meta, inserts(), schema, names, task.changes) if task.inserts else ():
            logs.add_inserts(schema, rows)
        new = replace(new, stat=replace(new.stat, cdc_files=logs.finish(result.logs)))
    seconds = {**result.seconds, **clock.seconds}
    return replace(
        result, files=(new,), seconds=seconds, spilled=result.spilled + spilled, peak=max(result.peak, peak_bytes())
    )


@dataclass(frozen=True, slots=True)
class _Updated:
    """The source of the one slice of a task: its base file, merged with the rows that change it."""

    task: UpdateTask
    rows: RowsAgain
    memory: int = 256 << 20

    @property
    def history(self) -> KnownHistory:
        return self.task.form.history

    def open(self, file_slice: FileSlice) -> MergedSlice:
        task, form, keys = self.task, self.task.form, self.task.file_keys
        slices = (
            BaseFileSlices(form.storage, form.history, form.sources)
            if keys is None
            else KeyedBaseSlices(form.storage, keys=keys)
        )
        base = slices.open(file_slice).gregorian()
        schema, _ = next_slice_schema(base, form.schema, form.dropped_columns)
        if base.makes_keys:
            schema = with_key(schema)
        changes = RowChanges(
            base.full_path,
            task.partition,
            schema,
            task.rule,
            lambda: self._records(schema),
            task.changes,
            task.change_bytes,
        )
        return MergedSlice(file_slice, base, changes, self.memory)

    def _records(self, schema: FileSchema) -> Iterator[pa.Table]:
        """The rows in the raw form of `schema`, with meta columns if there are any; tables of keys as they are."""
        source = self.task.form.schema.keyed
        plain = [source.arrow.field(name) for name in source.columns]
        meta, start = self.task.meta, 0
        for rows in self.rows():
            if rows.column_names == [KEY]:
                yield rows
                continue
            for part in meta.add([rows], start) if self.task.form.schema.has_meta else some_at_a_time([rows]):
                known = [field for field in plain if field.name in part.column_names]
                part = pa.table([part.column(f.name).cast(f.type) for f in known], schema=pa.schema(known))
                given = source.select(part.column_names)
                yield converted_table(part, part.num_rows, given, given.columns_of(schema.columns), schema)
            start += rows.num_rows

    def facts(self, file_slice: FileSlice, take: Callable[[SliceFacts], T]) -> T:
        return take(MergedFacts(self.open(file_slice)))

    def as_of(self, instant: str | None, memory: int) -> "_Updated":
        return replace(self, memory=memory)

    def columns_at(self, instant: str) -> "_Updated":
        # Its base file is opened in the columns of the write.
        return self

    def counting(self, instant: str) -> "_Updated":
        return self

    def checked(self, file_slice: FileSlice) -> FileSlice:
        self.open(file_slice)
        return file_slice
