"""Writes the next slices of file groups whose rows a write updates or deletes.

The next slice is a rewrite of the base file and the rows of the write: rows are merged by the table's rule, counted by
other code than that which merges them, and read back; row groups that no row of the write touches are copied.
Source: HoodieMergeHandle, FileGroupReaderBasedMergeHandle of Apache Hudi.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa

from ..base_files.keyed_slices import KeyedBaseSlices, RowKeys
from ..base_files.slices import BaseFileSlices, SliceFacts
from ..merging.log_records import KEY
from ..merging.merged_slice import MergedSlice
from ..merging.rules import MergeRule
from ..merging.slice_changes import RowChanges
from ..merging.slices import MergedFacts
from ..model import FileSlice
from ..options.clustering_keys import NO_LAYOUT
from ..parquet.conversion import converted_table
from ..parquet.file_schema import FileSchema
from ..rewriting.rewrite import RewriteResult, rewrite_group
from ..rewriting.task import RewriteTask
from ..rows.memory import TaskMemory
from ..rows.settings import FileSettings
from ..storage import Storage
from .base_files import next_slice_schema
from .meta_columns import MetaColumns, some_at_a_time
from .schema import WriterSchema, with_key

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class UpdateTask:
    """Rows for one file group that is there: `rows` of them, of about `row_bytes`, are merged with the slice `updated`.

    `number` is that of the task in the write.
    """

    storage: Storage
    instant: str
    number: int
    updated: FileSlice
    rows: int
    row_bytes: int
    rule: MergeRule
    schema: WriterSchema
    dropped_columns: tuple[str, ...]
    settings: FileSettings
    ranged: frozenset[str]
    memory: TaskMemory
    file_keys: RowKeys | None = None
    """As in `KeptRows`."""

    @property
    def partition(self) -> str:
        return self.updated.partition


def write_updates(task: UpdateTask, rows: Callable[[], Iterator[pa.Table]], token: str) -> RewriteResult:
    """Write the next slice of the file group.

    `rows` gives, each time from the first one on, tables of the record key and the data columns of the writer's schema,
    and tables of the record key alone, of rows that are deleted. Raises the errors of `rewrite_group`.
    """
    rewrite = RewriteTask(
        storage=task.storage,
        instant=task.instant,
        partition=task.partition,
        slices=(task.updated,),
        source=_Updated(task, rows),
        file_ids=(task.updated.file_id,),
        sort=(),
        layout=NO_LAYOUT,
        table_schema=task.schema.table,
        dropped_columns=task.dropped_columns,
        meta_fields=task.schema.has_meta,
        # The next slice is one file, whatever its size.
        settings=replace(task.settings, file_bytes=sys.maxsize),
        memory=task.memory,
        indexed=tuple(sorted(task.ranged)),
        keeps_group=True,
    )
    return rewrite_group(rewrite, token)


@dataclass(frozen=True, slots=True)
class _Updated:
    """The source of the one slice of a task: its base file, merged with the rows."""

    task: UpdateTask
    rows: Callable[[], Iterator[pa.Table]]
    memory: int = 256 << 20

    def open(self, one: FileSlice) -> MergedSlice:
        task, keys = self.task, self.task.file_keys
        slices = BaseFileSlices(task.storage) if keys is None else KeyedBaseSlices(task.storage, keys)
        base = slices.open(one).gregorian()
        schema, _ = next_slice_schema(base, task.schema, task.dropped_columns)
        if base.makes_keys:
            schema = with_key(schema)
        changes = RowChanges(
            base.full_path,
            task.partition,
            schema,
            task.rule,
            lambda: self._records(schema),
            task.rows,
            task.row_bytes,
        )
        return MergedSlice(one, base, changes, self.memory)

    def _records(self, schema: FileSchema) -> Iterator[pa.Table]:
        """The rows in the raw form of `schema`, with meta columns if there are any; tables of keys as they are."""
        source = self.task.schema.keyed
        plain = [source.arrow.field(name) for name in source.columns]
        meta, start = MetaColumns(self.task.instant, self.task.partition, self.task.number), 0
        for rows in self.rows():
            if rows.column_names == [KEY]:
                yield rows
                continue
            for part in meta.add([rows], start) if self.task.schema.has_meta else some_at_a_time([rows]):
                known = [field for field in plain if field.name in part.column_names]
                part = pa.table([part.column(f.name).cast(f.type) for f in known], schema=pa.schema(known))
                given = source.select(part.column_names)
                yield converted_table(part, part.num_rows, given, given.columns_of(schema.columns), schema)
            start += rows.num_rows

    def facts(self, one: FileSlice, take: Callable[[SliceFacts], T]) -> T:
        return take(MergedFacts(self.open(one)))

    def as_of(self, instant: str | None, memory: int) -> "_Updated":
        return replace(self, memory=memory)

    def counting(self, instant: str) -> "_Updated":
        return self

    def checked(self, one: FileSlice) -> FileSlice:
        self.open(one)
        return one
