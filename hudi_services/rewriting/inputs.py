"""The inputs of a rewrite: the file slices of a group, and whether one file can hold the rows of all of them.

A task opens its group by `open_group`. Whoever plans asks `fitting` first: it refuses, slice by slice, what a task
would refuse after it has read the footers and the headers of log blocks; values are not read.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..base_files.file_writer import writer_options
from ..base_files.footer_entries import footer_entries
from ..base_files.slice_outline import SliceForm
from ..base_files.slices import SliceReader, SliceSource
from ..calendars.calendar import calendar_metadata, have_two_calendars
from ..concurrency import at_once, files_at_once
from ..derived_indexes.expression_index.definitions import DROP_HINT, expression_indexes
from ..errors import CorruptFile, HudiServicesError, NotFound, UnsupportedTable
from ..model import FileSlice
from ..parquet.file_schema import FileSchema
from ..parquet.schema_evolution import SourceSchema, resolve_target
from ..schema.table_schema import TableSchema
from ..snapshot import Snapshot
from .columns import Columns
from .task import GroupForm, RewriteTask

AnySlice = TypeVar("AnySlice", bound=SliceForm)
"""Open slices, or their outlines."""


@dataclass(frozen=True, slots=True)
class TableColumns:
    """What the columns of new files follow, see `RewriteTask`; `root` names the table.

    `computed`: the columns that expression indexes are computed of.
    """

    root: str
    schema: TableSchema | None
    dropped: tuple[str, ...]
    computed: frozenset[str] = frozenset()

    @classmethod
    def of(cls, table: Snapshot) -> "TableColumns":
        indexes = expression_indexes(table.metadata) if table.metadata is not None else ()
        computed = frozenset(index.column for index in indexes)
        return cls(table.storage.root, table.schema, table.config.dropped_columns, computed)

    def target(self, slices: Sequence[SliceForm]) -> tuple[FileSchema, TableSchema | None]:
        """The one schema of the new files, and the table's in the form that files have; None without one.

        Raises UnsupportedTable when the schemas of the old files do not fit together.
        """
        columns = {column for one in slices for column in one.schema.columns}
        table = self.schema and self.schema.for_files(columns, self.dropped)
        return resolve_target([SourceSchema(one.path, one.schema) for one in slices], table), table


@dataclass(frozen=True, slots=True)
class OpenGroup:
    """The open slices of a group, newest first, in one calendar, and the form of its new files."""

    readers: list[SliceReader]
    form: GroupForm


def open_group(task: RewriteTask) -> OpenGroup:
    """Open the old files of the group, or of its part. Raises CorruptFile, UnsupportedTable and StorageError."""
    readers = open_slices(task)
    if task.part is not None:
        form = task.part.form
        return OpenGroup([reader.gregorian() for reader in readers] if form.one_calendar else readers, form)
    if task.appended is None:
        return OpenGroup(*with_form(task, readers))
    target, table = task.appended.after(readers[0])
    return OpenGroup(*_with_form(task, [*readers, task.appended.opened(readers[0], target)], target, table))


def open_slices(task: RewriteTask) -> list[SliceReader]:
    """The slices of the task, open, in their order. Raises CorruptFile, UnsupportedTable and StorageError."""
    # Each holds the end of its file.
    return at_once(task.inputs.open, task.slices, files_at_once(one.size for one in task.slices))


def with_form(task: RewriteTask, slices: list[AnySlice]) -> tuple[list[AnySlice], GroupForm]:
    """All slices of a group in one calendar, and the form of its new files. Raises UnsupportedTable."""
    target, table = TableColumns(task.storage.root, task.table_schema, task.dropped_columns).target(slices)
    return _with_form(task, slices, target, table)


def _with_form(
    task: RewriteTask, slices: list[AnySlice], target: FileSchema, table: TableSchema | None
) -> tuple[list[AnySlice], GroupForm]:
    gregorian = _in_one_calendar(slices, target)
    one_calendar, slices = gregorian is not slices, gregorian
    key_values = calendar_metadata([one.calendar for one in slices], target)
    key_values |= footer_entries([one.key_values for one in slices], target, table)
    columns = Columns.of(target, slices, meta_fields=task.meta_fields)
    return slices, GroupForm(target, key_values, columns, one_calendar)


def _in_one_calendar(slices: list[AnySlice], target: FileSchema) -> list[AnySlice]:
    if have_two_calendars([one.calendar for one in slices], target):
        return [one.gregorian() for one in slices]
    return slices


@dataclass(frozen=True, slots=True)
class Unfit:
    """A slice that cannot be rewritten with the others of its group, and the error that a task would end with."""

    slice: FileSlice
    error: HudiServicesError


def refuse_unmerged(unfit: Iterable[Unfit]) -> None:
    """Raise the error of the first slice with log files: its table has a merge rule, or types, that need Hudi."""
    for one in unfit:
        if one.slice.log_files:
            raise one.error


def fitting(
    source: SliceSource, slices: Iterable[FileSlice], columns: TableColumns
) -> tuple[list[FileSlice], list[Unfit]]:
    """The slices, in their order, that can be rewritten together, and the others.

    A slice whose files are missing counts as one that can: whoever compares all sources says what is wrong. Raises
    StorageError where a file cannot be looked at.
    """
    given = list(slices)
    pairs = list(zip(given, at_once(lambda one: _opened(source, one, columns.computed), given), strict=True))
    missing = {id(one) for one, found in pairs if isinstance(found, NotFound)}
    unfit = [
        Unfit(one, found) for one, found in pairs if isinstance(found, HudiServicesError) and id(one) not in missing
    ]
    good = [(one, found) for one, found in pairs if not isinstance(found, HudiServicesError)]
    # Newest first, as a task has them.
    good.sort(key=lambda pair: pair[0].base_instant, reverse=True)
    if good and _problem([reader for _, reader in good], columns) is not None:
        good, others = _divided(good, columns)
        unfit += others
    kept = missing.union(id(one) for one, _ in good)
    return [one for one in given if id(one) in kept], unfit


def _divided(
    slices: Sequence[tuple[FileSlice, SliceReader]], columns: TableColumns
) -> tuple[list[tuple[FileSlice, SliceReader]], list[Unfit]]:
    """The slices that fit together, beginning with the newest, and the others."""
    kept: list[tuple[FileSlice, SliceReader]] = []
    unfit: list[Unfit] = []
    # Slices have few schemas, and the calendar matters only where timestamps have no zone that is known.
    models: list[SliceReader] = []
    for one, reader in slices:
        is_known = any(reader.schema == model.schema and not reader.calendar.is_marked for model in models)
        problem = None if is_known else _problem([*models, reader], columns)
        if problem is None:
            kept.append((one, reader))
            models += [] if is_known else [reader]
        else:
            unfit.append(Unfit(one, problem))
    return kept, unfit


def _opened(source: SliceSource, file_slice: FileSlice, computed: Collection[str]) -> SliceReader | HudiServicesError:
    try:
        reader = source.open(file_slice)
    except (CorruptFile, NotFound, UnsupportedTable) as error:
        return error
    if computed and reader.calendar.is_hybrid:
        for leaf, calendar in reader.calendar.of_leaves:
            if calendar.is_hybrid and leaf.path[0] in computed:
                # Releases of Hudi differ in whether they compute such an index of the converted values.
                return UnsupportedTable(
                    f"{reader.full_path} has old dates in the hybrid calendar in column {leaf.dotted}, which an "
                    "expression index is computed of",
                    hint=DROP_HINT,
                )
    return reader


def _problem(readers: list[SliceReader], columns: TableColumns) -> HudiServicesError | None:
    try:
        target, _ = columns.target(readers)
        _in_one_calendar(readers, target)
        # Raises where pages of this schema cannot be made, should they have to be.
        writer_options(target, columns.root, "zstd", ())
    except (CorruptFile, UnsupportedTable) as error:
        return error
    return None
