"""What the log files of a slice hold, file by file: the blocks that count, and the statistics of their records.

Hudi writes column statistics for each log file when it writes the file: over the records of its data blocks as they
are, before any merge. A file with deletes alone has statistics without values. Source: HoodieAppendHandle
(updateWriteStatus), HoodieTableMetadataUtil.collectColumnRangeMetadata of Apache Hudi.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ..errors import CorruptFile, UnsupportedTable
from ..log_files.log_blocks import BlockPlace, HeaderKey
from ..log_files.log_reader import Read, stored_blocks
from ..model import FileSlice, LogFile
from ..parquet.chunk_stats import ColumnStats
from ..parquet.file_schema import FileSchema, Leaf
from ..parquet.node_types import parquet_type
from ..parquet.value_bounds import BoundsOf, leaf_arrays
from ..small_files import FileRanges
from ..storage import Storage
from .block_order import by_instant, lost_records
from .log_records import is_data, records_of, written_schemas


@dataclass(frozen=True, slots=True)
class LogContent:
    """One log file and its blocks that count."""

    file: LogFile
    blocks: Sequence[BlockPlace] = ()
    problem: str = ""
    """Why readers of Hudi lose records of it; "" when they do not."""
    is_known: bool = True
    """Whether this program knows all kinds of blocks in its slice."""
    read: Read | None = None
    """Gives the bytes of a file with blocks that count."""

    @property
    def has_records(self) -> bool:
        """Whether it has data blocks that count, and not deletes alone."""
        return any(map(is_data, self.blocks))

    def columns(self) -> tuple[ColumnStats, ...]:
        """Its columns, as those of a file without values. Raises CorruptFile and UnsupportedTable."""
        described = [block for block in self.blocks if block.header.get(HeaderKey.SCHEMA)]
        schemas = written_schemas(described, self.file.name)
        leaves = {schema.path_of(leaf): leaf for schema in schemas for leaf in schema.leaves}
        return tuple(_Column(path, leaf).statistics for path, leaf in leaves.items())

    def statistics(
        self,
        storage: Storage,
        names: Collection[str],
        seen: Callable[[FileSchema, pa.Table], None] = lambda schema, records: None,
    ) -> tuple[ColumnStats, ...]:
        """The statistics of the columns `names` over its records, of which some are in memory at a time.

        `seen` is called with them, and their schema. A column with items, or with several types in the file, has no
        range. Raises CorruptFile, UnsupportedTable and StorageError.
        """
        found: dict[str, _Column] = {}
        for block in filter(is_data, self.blocks):
            read = self.read or FileRanges(storage, self.file.path, self.file.size)
            schema, pieces = records_of(read, block)
            columns = [
                found.setdefault(path, _Column(path, leaf)).beside(leaf) if path in names else None
                for path, leaf in ((schema.path_of(leaf), leaf) for leaf in schema.leaves)
            ]
            for piece in pieces:
                seen(schema, piece)
                _add(schema, columns, piece)
        return tuple(column.statistics for column in found.values())


class _Column:
    """The statistics of one leaf column, to which values are added."""

    def __init__(self, path: str, leaf: Leaf) -> None:
        self._path = path
        self._type = parquet_type(leaf.node)
        self._bounds = BoundsOf(leaf)
        self._rows = 0
        self._is_known = not leaf.max_rep

    def beside(self, leaf: Leaf) -> "_Column":
        """Itself, after a look at the column as another block has it: of several types there is no range."""
        self._is_known = self._is_known and parquet_type(leaf.node) == self._type
        return self

    def add(self, values: pa.Array) -> None:
        if self._is_known:
            self._bounds.add(values)
        self._rows += len(values)

    @property
    def statistics(self) -> ColumnStats:
        bounds = self._bounds.exact
        return ColumnStats(
            column=self._path,
            type=self._type,
            min=bounds.low,
            max=bounds.high,
            value_count=self._rows,
            null_count=self._rows - bounds.values,
            total_size=0,
            total_uncompressed_size=0,
            has_range=self._is_known,
        )


def log_contents(storage: Storage, file_slice: FileSlice, counts: Callable[[str], bool]) -> list[LogContent]:
    """The content of each log file of a slice; `counts` says whether blocks of an instant are read.

    A file that cannot be read, or has blocks of unknown kinds, has a problem, as a file with a torn block that a commit
    wrote. Raises StorageError.
    """
    scanned: list[BlockPlace] = []
    problems: dict[str, str] = {}
    reads = {log.path: FileRanges(storage, log.path, log.size, log.content) for log in file_slice.log_files}
    for log in file_slice.log_files:
        try:
            scanned += list(stored_blocks(storage, log, reads[log.path]))
        except CorruptFile as error:
            problems[storage.full_path(log.path)] = error.message
    paths = [storage.full_path(log.path) for log in file_slice.log_files]
    try:
        order, lost = by_instant(scanned, counts)
    except UnsupportedTable:
        return [LogContent(log, is_known=False) for log in file_slice.log_files]
    except CorruptFile as error:
        return [
            LogContent(log, problem=problems.get(path, error.message))
            for log, path in zip(file_slice.log_files, paths, strict=True)
        ]
    problems = {**{block.path: lost_records(block) for block in lost}, **problems}
    blocks = _by_file(order)
    return [
        LogContent(log, blocks[path], problems.get(path, ""), read=reads[log.path])
        for log, path in zip(file_slice.log_files, paths, strict=True)
    ]


def _by_file(order: Mapping[str, Sequence[BlockPlace]]) -> dict[str, list[BlockPlace]]:
    """The blocks by the full path of their file."""
    found: dict[str, list[BlockPlace]] = defaultdict(list)
    for blocks in order.values():
        for block in blocks:
            found[block.path].append(block)
    return found


def _add(schema: FileSchema, columns: Sequence[_Column | None], piece: pa.Table) -> None:
    """Add the values of a table to its leaf columns, given in the order of the leaves of `schema`."""
    names = [leaf.path[0] for leaf in schema.leaves]
    for name in dict.fromkeys(names):
        own = [column for column, of in zip(columns, names, strict=True) if of == name]
        if all(column is None for column in own):
            continue
        for chunk in piece.column(name).chunks:
            for column, values in zip(own, leaf_arrays(chunk), strict=True):
                if column is not None:
                    column.add(values)
