"""The footers of base files, read concurrently, and the values of columns whose range a footer does not have; and the
log files, block by block, with the values of their indexed columns."""

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from ..base_files.new_file import NewFile
from ..base_files.slices import SliceFacts, SliceSource
from ..errors import CorruptFile, NotFound, UnsupportedTable
from ..metadata.bloom_filters import bloom_record
from ..metadata.records.keys import BLOOM_FILTERS, COLUMN_STATS
from ..metadata.records.model import BloomRecord, StatsRecord
from ..metadata.statistics.column_stats import column_records, is_exact, untold_columns
from ..metadata.statistics.indexed_columns import IndexColumns
from ..model import BaseFile, DataFile, FileSlice, LogFile
from ..parquet.chunk_stats import ColumnStats
from ..storage import Storage
from ..table_config import TableConfig
from ..timeline.active import Timeline
from .doubts import Doubt
from .members import Member

if TYPE_CHECKING:
    from ..merging.log_contents import LogContent

_FOOTERS_AT_ONCE = 16
_VALUES_AT_ONCE = 4
"""Files whose values are read at once; each has a piece of a column in memory."""


@dataclass(frozen=True, slots=True)
class FileSource:
    """Where the files of a table are read. A plain value, which is sent to the executors."""

    storage: Storage
    slices: SliceSource
    counts: Callable[[str], bool]
    """Whether blocks of log files of an instant are read."""
    dropped: frozenset[str]
    """Partition columns that the files lack."""

    @classmethod
    def of(cls, storage: Storage, slices: SliceSource, config: TableConfig, timeline: Timeline) -> "FileSource":
        return cls(storage, slices, _counts(config, timeline), frozenset(config.dropped_columns))


def _counts(config: TableConfig, timeline: Timeline) -> Callable[[str], bool]:
    if not config.is_merge_on_read:
        return _every_block
    # Only here: tables without log files start without the code that merges them.
    from ..merging.counted_instants import counted_instants

    return counted_instants(timeline)


def _every_block(instant: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Described:
    """A data file with the column_stats records that a commit would write for it.

    `bloom` is a digest of its bloom filter (a filter has hundreds of kilobytes); None without a filter.
    """

    member: Member
    row_groups: int
    """The row groups of a base file; the data blocks of a log file."""
    records: Sequence[StatsRecord]
    bloom: bytes | None
    bounded: frozenset[str] = frozenset()
    """Columns whose bounds hold the values but are not from the footer: the bounds of a stored record may be wider."""
    unreadable: tuple[str, ...] = ()
    """Indexed columns whose range is not known: no record is expected for them."""

    @property
    def file(self) -> DataFile:
        return self.member.file

    @property
    def is_live(self) -> bool:
        return self.member.is_live


@dataclass(frozen=True, slots=True)
class Broken:
    """A base file whose footer cannot be read, or a log file that cannot be read."""

    member: Member
    problem: str = ""
    """For a log file: why readers of Hudi lose its records; "" when this program alone cannot read it."""

    @property
    def doubt(self) -> Doubt:
        return Doubt.NOT_MERGED if isinstance(self.file, LogFile) and not self.problem else Doubt.BROKEN_FILE

    @property
    def file(self) -> DataFile:
        return self.member.file

    def concerns(self, index: str) -> bool:
        """Whether the content of the file decides what a metadata partition must have."""
        if not isinstance(self.file, LogFile):
            return True
        return index == COLUMN_STATS or (self.member.is_live and index != BLOOM_FILTERS)


@dataclass(frozen=True, slots=True)
class _Read:
    """A file as in `Described`, before the indexed columns are known."""

    member: Member
    row_groups: int
    stats: NewFile
    bloom: bytes | None
    log: "LogContent | None" = None
    from_values: frozenset[str] = field(default=frozenset())
    """Columns whose ranges are not from the footer."""

    def untold(self, indexed: IndexColumns) -> frozenset[str]:
        """Columns for which a record is expected, and whose range is not known."""
        return frozenset(untold_columns(self.stats, self._columns(indexed), typed=indexed.typed))

    def describe(self, indexed: IndexColumns) -> Described:
        records = column_records(self.stats, self._columns(indexed), typed=indexed.typed)
        widened = {one.column for one in self.stats.columns if not is_exact(one.type, typed=indexed.typed)}
        bounded, unreadable = self.from_values | widened, tuple(sorted(self.untold(indexed)))
        return Described(self.member, self.row_groups, records, self.bloom, bounded, unreadable)

    def _columns(self, indexed: IndexColumns) -> frozenset[str]:
        # Hudi writes no records for a base file without rows, and some for a log file with deletes alone.
        return indexed.columns if self.row_groups or self.log is not None else frozenset()


class FooterReader:
    """Reads footers; `choose` gives the indexed columns of files that have the columns it is called with."""

    def __init__(self, source: FileSource, choose: Callable[[Sequence[ColumnStats]], IndexColumns]) -> None:
        self._source = source
        self._choose = choose
        self._indexed: IndexColumns | None = None

    def read(self, members: Sequence[Member]) -> list[Described | Broken]:
        """Describe each file, in order; files that were deleted meanwhile are skipped."""
        with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
            found = [one for some in pool.map(self._read, members) for one in some]
        if self._indexed is None:
            self._indexed = self._columns([one.stats for one in found if isinstance(one, _Read)])
        with ThreadPoolExecutor(_VALUES_AT_ONCE) as pool:
            return [one for one in pool.map(self._described, found) if one is not None]

    def _read(self, member: Member) -> Sequence[_Read | Broken]:
        file = member.file
        try:
            if isinstance(file, LogFile):
                return self._logs(member) if file == member.slice.log_files[0] else ()
            return [self._source.slices.facts(FileSlice.of_base(file), partial(_of_facts, member))]
        except NotFound:
            return ()
        except CorruptFile:
            return [Broken(member)]

    def _logs(self, member: Member) -> list[_Read | Broken]:
        """All log files of the slice of a log file: one may cancel blocks of another one."""
        # Only here: tables without log files start without the code that merges them.
        from ..merging.log_contents import log_contents

        return [
            self._of_log(replace(member, file=one.file), one)
            for one in log_contents(self._source.storage, member.slice, self._source.counts)
        ]

    def _of_log(self, member: Member, content: "LogContent") -> _Read | Broken:
        if content.problem or not content.is_known:
            return Broken(member, content.problem)
        file = member.file
        try:
            stats = NewFile.of(file.path, file.size, columns=content.columns())
        except CorruptFile as error:
            return Broken(member, error.message)
        except UnsupportedTable:
            return Broken(member)
        return _Read(member, int(content.has_records), stats, None, log=content)

    def _described(self, read: _Read | Broken) -> Described | Broken | None:
        if isinstance(read, Broken):
            return read
        assert self._indexed is not None, "it was settled before"
        try:
            if read.log is not None:
                return self._with_log_values(read, read.log, self._indexed.columns).describe(self._indexed)
            untold = read.untold(self._indexed)
            return (self._with_values(read, untold) if untold else read).describe(self._indexed)
        except NotFound:
            return None
        except (CorruptFile, UnsupportedTable) as error:
            if read.log is None:
                return read.describe(self._indexed)
            return Broken(read.member, error.message if isinstance(error, CorruptFile) else "")

    def _with_log_values(self, read: _Read, log: "LogContent", columns: frozenset[str]) -> _Read:
        if not log.has_records:
            return read
        return replace(read, stats=replace(read.stats, columns=log.statistics(self._source.storage, columns)))

    def _with_values(self, read: _Read, columns: frozenset[str]) -> _Read:
        assert isinstance(read.member.file, BaseFile), "the values of log files are read by their blocks"
        reader = self._source.slices.open(FileSlice.of_base(read.member.file))
        stats = replace(read.stats, columns=reader.column_stats(complete=columns))
        return replace(read, stats=stats, from_values=columns)

    def _columns(self, files: Sequence[NewFile]) -> IndexColumns:
        candidates = {stats.column: stats for file in files for stats in file.columns}
        found = self._choose(list(candidates.values()))
        # Readers take partition columns that files lack from the path, and some writers record them all the same.
        return replace(found, columns=found.columns.difference(self._source.dropped))


def read_bloom(source: SliceSource, file: BaseFile) -> BloomRecord | None:
    """The bloom filter of one file as a record. Raises CorruptFile and StorageError."""
    one = FileSlice.of_base(file)
    return source.facts(one, lambda facts: bloom_record(one, facts.bloom, file.instant))


def digest(bloom: BloomRecord) -> bytes:
    """A digest of the type and the bits of a bloom filter."""
    return hashlib.blake2b(bloom.bits, digest_size=16, key=bloom.type_code.encode()).digest()


def _of_facts(member: Member, facts: SliceFacts) -> _Read:
    file = member.file
    assert isinstance(file, BaseFile), "a log file has no footer"
    bloom = bloom_record(FileSlice.of_base(file), facts.bloom, file.instant)
    stats = NewFile.of(file.path, file.size, facts.rows, facts.columns)
    return _Read(member, facts.row_groups, stats, None if bloom is None else digest(bloom))
