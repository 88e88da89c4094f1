"""Reading data files for the indexes of files: their records, and the ranges of their data partitions."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ...codecs.avro import parse_schema
from ...derived_indexes.expression_index.file_records import ExpressionTask, expression_records
from ...derived_indexes.expression_index.index import Computation
from ...errors import CorruptFile, NotFound, UnsupportedTable
from ...file_records.footers import Broken, Described, FileSource, FooterReader, read_bloom
from ...file_records.members import Member
from ...metadata.records.codec import encode_record
from ...metadata.records.keys import BLOOM_FILTERS, COLUMN_STATS, PARTITION_STATS
from ...metadata.records.model import Record, StatsRecord
from ...metadata.statistics.indexed_columns import IndexColumns
from ...metadata.statistics.partition_ranges import whole_range
from ...metadata.statistics.text_ranges import in_both_orders
from ...model import BaseFile, DataFile, LogFile
from .record_runs import RecordRun, joined_range, write_runs

_LEAVE_OUT = "repair the file first (hudi-services validate tells more), or build the index without statistics"


@dataclass(frozen=True, slots=True)
class FilesTask:
    """Data files to read, of neighbouring data partitions.

    `groups`: how many file groups each of the metadata partitions has that get records. `schema` is that of the records
    of the metadata table. Runs are named after `prefix`, relative to the storage.
    """

    source: FileSource
    members: tuple[Member, ...]
    described: frozenset[str] | None
    """The paths of the files that get records; None for all. Other log files of their slices are read with them."""
    groups: Mapping[str, int]
    columns: IndexColumns
    computations: tuple[Computation, ...]
    schema: str
    prefix: str
    logs_have_records: bool

    @property
    def bytes(self) -> int:
        # Of most files the footer is read, and of those of expressions a column.
        return sum(64 << 10 if not self.computations else one.file.size for one in self.members)


def _gets_records(task: FilesTask, member: Member) -> bool:
    return task.described is None or member.file.path in task.described


@dataclass(frozen=True, slots=True)
class FilesRead:
    """The runs of a task, and the paths of the files that were not there any more."""

    runs: tuple[RecordRun, ...]
    missing: frozenset[str]


def read_files(task: FilesTask, token: str) -> FilesRead:
    """Write the runs of a task; a file that was deleted meanwhile is left out.

    Raises CorruptFile, UnsupportedTable for values that no record can be made of, and StorageError.
    """
    schema = parse_schema(task.schema, "the schema of the metadata table")
    typed = {one.index.partition: one.index.typed for one in task.computations}
    encoded: dict[str, list[tuple[str, bytes]]] = defaultdict(list)
    missing: set[str] = set()
    for index, record in _records(task, missing):
        if index in task.groups:
            is_typed = typed.get(index, task.columns.typed)
            encoded[index].append((record.key, encode_record(record, schema, typed=is_typed)))
    runs = write_runs(task.source.storage, f"{task.prefix}-{token}", encoded, task.groups)
    return FilesRead(runs, frozenset(missing))


def _records(task: FilesTask, missing: set[str]) -> Iterator[tuple[str, Record]]:
    """The records, each with its metadata partition; `missing` gets the paths of files that are gone."""
    if not task.groups.keys().isdisjoint({COLUMN_STATS, PARTITION_STATS}):
        yield from _statistics(task, missing)
    if BLOOM_FILTERS in task.groups:
        for member in task.members:
            bloom = _bloom(task, member.file, missing) if _gets_records(task, member) else None
            if bloom is not None:
                yield BLOOM_FILTERS, bloom
    if task.computations:
        yield from _of_expressions(task, missing)


def _bloom(task: FilesTask, file: DataFile, missing: set[str]) -> Record | None:
    try:
        return read_bloom(task.source.slices, file) if isinstance(file, BaseFile) else None
    except NotFound:
        missing.add(file.path)
        return None


def _statistics(task: FilesTask, missing: set[str]) -> Iterator[tuple[str, Record]]:
    members = [one for one in task.members if task.logs_have_records or not isinstance(one.file, LogFile)]
    ranges = _Ranges(PARTITION_STATS)
    reader = FooterReader(task.source, lambda candidates: task.columns)
    found = reader.read(members)
    # Of log files, those of a whole slice are missing with one of them.
    missing |= {one.file.path for one in members if _gets_records(task, one)} - {one.file.path for one in found}
    for one in found:
        if not _gets_records(task, one.member):
            continue
        described = _described(task, one)
        records = [in_both_orders(record) for record in described.records]
        yield from ((COLUMN_STATS, record) for record in records)
        if described.is_live:
            ranges.add(described.file.partition, records)
    yield from ranges.records()


def _described(task: FilesTask, file: Described | Broken) -> Described:
    path = task.source.storage.full_path(file.file.path)
    if isinstance(file, Broken):
        if isinstance(file.file, LogFile) and not file.problem:
            raise UnsupportedTable(f"the log file {path} is not read here", hint=_LEAVE_OUT)
        raise CorruptFile(f"{path}: {file.problem or 'it has no footer that can be read'}", hint=_LEAVE_OUT)
    if file.unreadable:
        raise CorruptFile(
            f"{path} does not tell the range of its column {file.unreadable[0]}, and its values cannot be read",
            hint=_LEAVE_OUT,
        )
    return file


def _of_expressions(task: FilesTask, missing: set[str]) -> Iterator[tuple[str, Record]]:
    ranges = {one.index.partition: _Ranges(one.index.partition) for one in task.computations}
    storage, slices = task.source.storage, task.source.slices
    for member in task.members:
        file = member.file
        if not _gets_records(task, member):
            continue
        try:
            found = expression_records(ExpressionTask(storage, slices, file.instant, file, task.computations), "")
        except NotFound:
            missing.add(file.path)
            continue
        for index, record in found.items():
            yield index, record
            if member.is_live and isinstance(record, StatsRecord):
                ranges[index].add(file.partition, [record])
    for one in ranges.values():
        yield from one.records()


class _Ranges:
    """The ranges of data partitions over the live files of a task, as records of `index`."""

    def __init__(self, index: str) -> None:
        self._index = index
        self._ranges: dict[tuple[str, str], StatsRecord] = {}

    def add(self, partition: str, records: Iterable[StatsRecord]) -> None:
        for record in records:
            place = partition, record.column
            known = [self._ranges[place], record] if place in self._ranges else [record]
            self._ranges[place] = joined_range(partition, record.column, known)

    def records(self) -> Iterator[tuple[str, Record]]:
        for (partition, column), one in self._ranges.items():
            yield self._index, whole_range(self._index, partition, column, [one], tight=False)
