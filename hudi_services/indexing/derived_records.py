"""The records of new files in indexes that are computed from rows, by an engine's tasks.

A clustering keeps every row, so that the ranges over its new files must equal the ranges over its old files. Where log
files are merged, rows have been replaced and deleted, and the old ranges must hold the new ones. Otherwise the index
was written with another time zone, or by a program that computes differently: then nothing is committed.
"""

from collections.abc import Iterator, Sequence

from ..commit.new_files import NewFiles
from ..derived_indexes.expression_index.file_records import ExpressionTask, expression_records
from ..derived_indexes.expression_index.index import Computation, ComputedIndex
from ..engine import Engine
from ..errors import CheckFailed
from ..file_names import written_file
from ..metadata.metadata_table import MetadataTable
from ..metadata.records.keys import column_stats_key, column_stats_prefix
from ..metadata.records.model import StatsRecord
from ..metadata.statistics.column_stats import holds_range, partition_record, same_bound
from ..model import FileSlice, WriteStat


def computed_records(
    computations: tuple[Computation, ...],
    engine: Engine,
    metadata: MetadataTable,
    files: NewFiles,
    written: Sequence[WriteStat],
    inputs: Sequence[FileSlice],
) -> tuple[ComputedIndex, ...]:
    """The records of the new files `written`; a clustering wrote them in place of `inputs`, a write beside others.

    Raises CheckFailed when ranges have changed, UnsupportedTable for values that we do not compute, CorruptFile
    and StorageError.
    """
    new = [written_file(one) for one in written]
    tasks = [ExpressionTask(files.storage, files.source, files.instant, one, computations) for one in new]
    found = engine.map(expression_records, tasks, "compute expression indexes", _silent)
    partitions = [one.partition for one in written]
    indexes = []
    for index in (one.index for one in computations):
        records = [(p, of_file[index.partition]) for p, of_file in zip(partitions, found, strict=True) if of_file]
        ranges = [(p, one) for p, one in records if isinstance(one, StatsRecord)]
        _check_ranges(metadata, index.partition, ranges, inputs)
        indexes.append(ComputedIndex(index, tuple(record for _, record in records)))
    return tuple(indexes)


def _check_ranges(
    metadata: MetadataTable, index: str, new: Sequence[tuple[str, StatsRecord]], inputs: Sequence[FileSlice]
) -> None:
    old_files: dict[str, list[str]] = {}
    merged = {one.partition for one in inputs if one.log_files}
    for one in inputs:
        old_files.setdefault(one.partition, []).extend(file.name for file in one.files)
    for partition, names in old_files.items():
        after = [record for of, record in new if of == partition]
        if not after:
            continue
        column = after[0].column
        before = list(_stored(metadata, index, column, partition, names))
        if len(before) != len(names):
            # A file has no rows, or its writer did not maintain the index: there is nothing to compare.
            continue
        was, is_ = (partition_record(partition, column, some, tight=True) for some in (before, after))
        if not (holds_range if partition in merged else _is_same)(was, is_):
            raise CheckFailed(
                f"{metadata.storage.root}: of the partition {partition or '.'} the index {index} says "
                f"{was.minimum!r} to {was.maximum!r}, and the same rows give {is_.minimum!r} to {is_.maximum!r} here",
                hint="set spark.sql.session.timeZone to the zone of the writers' sessions, or drop the index and "
                "create it anew",
            )


def _stored(
    metadata: MetadataTable, index: str, column: str, partition: str, names: list[str]
) -> Iterator[StatsRecord]:
    wanted = {column_stats_key(column, partition, name) for name in names}
    prefix = column_stats_prefix(column, partition)
    for record in metadata.reader(index).scan(prefix, wanted.__contains__):
        if isinstance(record, StatsRecord) and not record.deleted:
            yield record


def _is_same(was: StatsRecord, is_: StatsRecord) -> bool:
    same = same_bound(was, is_, "minimum") and same_bound(was, is_, "maximum")
    return same and (was.value_count, was.null_count) == (is_.value_count, is_.null_count)


def _silent(done: int, total: int) -> None:
    """Show no progress: the work is short compared with the rewrite."""
