"""The input of a task that rewrites file slices: one group of a plan, as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ..base_files.slices import SliceReader, SliceSource
from ..bucket_index.bucket_split import BucketSplit
from ..model import FileSlice
from ..options.clustering_keys import SORT_AND_SIZE_EXECUTION
from ..parquet.file_schema import FileSchema
from ..rows.file_output import Form
from ..rows.memory import TaskMemory
from ..rows.settings import FileSettings
from ..rows.sort_order import SortColumn
from ..schema.table_schema import TableSchema
from ..storage import Storage
from .columns import Columns


class AppendedRows(Protocol):
    """Rows that are in no file yet, and that the next slice of a file group gets."""

    def after(self, old: SliceReader) -> tuple[FileSchema, TableSchema]:
        """The schema of the next slice of `old`, and its Avro schema. Raises UnsupportedTable."""

    def opened(self, old: SliceReader, target: FileSchema) -> SliceReader:
        """The rows as a slice with the schema `target`, to be rewritten together with the slice `old`."""


@dataclass(frozen=True, slots=True)
class GroupForm:
    """What all new files of a group have in common, by all of its old files.

    `key_values` are for every footer. `one_calendar`: whether the old files have two calendars, and are read in one.
    """

    target: FileSchema
    key_values: Mapping[str, str]
    columns: Columns
    one_calendar: bool


@dataclass(frozen=True, slots=True)
class Copied:
    """Which segments of a part are copied as they are stored, and which encoded; `created_by` is for the footer."""

    segments: tuple[bool, ...]
    created_by: str


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a group that is divided: some rows of the slices of its task, or a range of the sorted rows.

    `group` is the digest of the whole group, and `number` that of the part. `rows` from row `start` on are the rows of
    the part; None for all rows of the slices. `decoded` as for `GroupEstimate`; `copied`: None where all are decoded.
    """

    group: str
    number: int
    form: GroupForm = field(repr=False)
    decoded: str | None
    start: int = 0
    rows: int | None = None
    copied: Copied | None = None
    bytes: int = 0
    """Bytes of the old files, about: its share of those of the group."""


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """One group: its file slices, newest first. `file_ids` names the new file groups."""

    storage: Storage
    instant: str
    partition: str
    slices: tuple[FileSlice, ...]
    source: SliceSource
    file_ids: tuple[str, ...]
    sort: tuple[SortColumn, ...]
    layout: str
    """How the sort columns order the rows, see `rows.row_order`."""
    table_schema: TableSchema | None
    """Without meta columns; None lets the newest file decide."""
    dropped_columns: tuple[str, ...]
    """Partition columns that base files need not have (hoodie.datasource.write.drop.partition.columns)."""
    meta_fields: bool
    settings: FileSettings
    memory: TaskMemory = field(default_factory=TaskMemory)
    counted: tuple[str, ...] = ()
    """The completed writes that decide which log blocks count, where the names of log files do not tell."""
    indexed: tuple[str, ...] = ()
    """Columns (dotted paths) whose ranges the commit needs, whether footers have them or not."""
    until: str | None = None
    """The query instant at which the slices are read; None to read all of their files."""
    keeps_group: bool = False
    """Whether the one new file is the next slice of the file group that `file_ids` names: it is also written empty."""
    resumes: bool = True
    """Whether the group may be finished already, by an earlier attempt or an earlier try of the task."""
    execution: str = SORT_AND_SIZE_EXECUTION
    """The execution strategy (`execution`), by Hudi's class or `package.module:Class`."""
    parameters: tuple[tuple[str, str], ...] = ()
    """The parameters of a strategy of the operator's own, by key."""
    split: BucketSplit | None = None
    """By consistent hashing: which new file gets which rows."""
    appended: AppendedRows | None = None
    """Rows that follow those of the one slice."""
    part: Part | None = None
    """The part of a divided group that the task reads or writes; then it has the slices of the part alone."""
    staging: Storage | None = None
    """Where the new files wait until the commit moves them to the table; None to write them to the table at once."""

    @property
    def bytes(self) -> int:
        """Bytes of its old files, as far as the slices tell them; of a part its share."""
        if self.part is not None:
            return self.part.bytes
        return sum(one.size for one in self.slices)

    @property
    def rows(self) -> int | None:
        """Rows of its old files, where they are known without opening these: those of a part."""
        return None if self.part is None else self.part.rows

    @property
    def output(self) -> Storage:
        """Where the new files are written; their paths are relative to its root."""
        return self.storage if self.staging is None else self.staging

    @property
    def inputs(self) -> SliceSource:
        """Opens the slices as the plan found them, within the memory of the task."""
        merged = sum(bool(one.log_files) for one in self.slices)
        return self.source.columns_at(self.instant).as_of(self.until, self.memory.log_records // max(1, merged))

    def form(self, write_token: str, group: GroupForm) -> Form:
        """The common properties of the group's new files."""
        where = (self.output, self.instant, self.partition, write_token)
        has_markers = self.staging is None
        return Form(*where, group.target, group.key_values, self.meta_fields, self.settings, self.ranged, has_markers)

    @property
    def ranged(self) -> frozenset[str]:
        """Columns whose ranges in the new files are needed: the commit needs `indexed`, the report the sort columns."""
        return frozenset(self.indexed).union(column.name for column in self.sort)
