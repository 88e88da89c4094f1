"""What the base file of a slice is merged with: the records of its log files, or rows that are being written.

Both are tables of records as `log_records` describes them, oldest first, in the columns of the base file and the
records together.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import ClassVar, Protocol

import pyarrow as pa

from ..base_files.base_file_slice import BaseFileSlice
from ..computed_once import cached_property
from ..errors import NotFound
from ..log_files.log_blocks import BlockPlace, HeaderKey
from ..log_files.log_reader import scan_blocks
from ..model import FileSlice, LogFile
from ..parquet.file_schema import FileSchema
from ..schema.schema_history import SchemaHistory
from ..small_files import FileRanges
from ..storage import Storage
from .block_order import replayed
from .counted_instants import CountedInstants
from .log_records import LogRecords, is_partial, record_count
from .merged_schema import merged_schema, widened_floats
from .ordering import OrderingField, ordering_fields, with_ordering
from .rules import MergeRule

_EXPANSION = 3
"""About how many times as large records are in memory as in a log file."""


class Changes(Protocol):
    """The records that change one slice. What reads them raises CorruptFile, UnsupportedTable and StorageError."""

    full_path: str
    """The full path of the base file, or of the first log file, for messages."""
    schema: FileSchema
    """The columns of the base file and the records."""
    rule: MergeRule
    ordering: tuple[OrderingField, ...]
    after_null: ClassVar[tuple[str, str]]
    """What to say of a null ordering value that would be compared with another one, and the way out."""

    @property
    def subsets(self) -> list[frozenset[str]]:
        """As those of `LogRecords`."""

    @property
    def is_partial(self) -> bool:
        """Whether some records have only some of the columns."""

    @property
    def blocks(self) -> int:
        """The log blocks that are stored."""

    @property
    def size(self) -> int:
        """Bytes of the log files."""

    @property
    def encoded_bytes(self) -> int:
        """Bytes of the records as they are encoded."""

    @property
    def memory_bytes(self) -> int:
        """About how many bytes of memory the records take."""

    def count(self) -> int:
        """The number of records that may be rows."""

    def records(self) -> Iterator[pa.Table]:
        """The records, oldest first, some at a time; at least one table."""

    def widened(self, target: FileSchema) -> "Changes | None":
        """The changes with doubles for floats where `target` has doubles; None when there are none."""


class LogChanges:
    """The records of the log files of a slice; `base` is its open base file."""

    after_null: ClassVar[tuple[str, str]] = (
        "Hudi itself cannot read this file slice",
        "delete the record with Apache Hudi, and write it again with a value",
    )

    def __init__(
        self,
        storage: Storage,
        file_slice: FileSlice,
        base: BaseFileSlice | None,
        rule: MergeRule,
        counts: CountedInstants,
        history: SchemaHistory | None,
        wider: FileSchema | None = None,
    ) -> None:
        """`wider`: columns of the wider types that some columns of the slice are to have."""
        self._storage = storage
        self._sizes = {log.path: log.size or self._stored_size(log) for log in file_slice.log_files}
        self._reads = {
            storage.full_path(log.path): FileRanges(storage, log.path, self._sizes[log.path], log.content)
            for log in file_slice.log_files
        }
        found = [place for log in file_slice.log_files for place in self._scan(log)]
        self.blocks = len(found)
        self._counted = replayed(found, counts, with_originals=rule.applies_originals)
        # A slice without a base file may have no block that counts, and no rows.
        is_empty = base is None and not self._counted
        described = [place for place in found if HeaderKey.SCHEMA in place.header] if is_empty else self._counted
        path = storage.full_path(
            file_slice.base_file.path if file_slice.base_file is not None else file_slice.log_files[0].path
        )
        self.full_path = path
        self.schema = merged_schema(path, base, described, rule, wider, history)
        self.ordering = ordering_fields(rule, self.schema, path)
        self.rule = with_ordering(rule, self.ordering)
        self._records = LogRecords(self.schema, file_slice.partition, self.rule, self.ordering, history)
        self._again: Callable[[FileSchema], LogChanges] = lambda more: LogChanges(
            storage, file_slice, base, rule, counts, history, more
        )

    @property
    def subsets(self) -> list[frozenset[str]]:
        return self._records.subsets

    @cached_property
    def is_partial(self) -> bool:
        return any(map(is_partial, self._counted))

    @property
    def size(self) -> int:
        return sum(self._sizes.values())

    @property
    def encoded_bytes(self) -> int:
        return sum(block.length for block in self._counted)

    @property
    def memory_bytes(self) -> int:
        return _EXPANSION * self.encoded_bytes

    def count(self) -> int:
        return sum(record_count(self._read_block(block), block) for block in self._counted)

    def records(self) -> Iterator[pa.Table]:
        return chain([self._records.none()], self._records.all(self._counted, self._read_block))

    def widened(self, target: FileSchema) -> "LogChanges | None":
        wider = widened_floats(self.full_path, self.rule, self.schema, target)
        return self._again(target.select(wider)) if wider else None

    def _scan(self, log: LogFile) -> Iterable[BlockPlace]:
        path = self._storage.full_path(log.path)
        return scan_blocks(self._reads[path], self._sizes[log.path], path)

    def _stored_size(self, log: LogFile) -> int:
        """The bytes of a log file: a plan does not record them."""
        found = self._storage.head(log.path)
        if found is None:
            raise NotFound(f"{self._storage.full_path(log.path)} does not exist")
        return found.size

    def _read_block(self, block: BlockPlace) -> FileRanges:
        return self._reads[block.path]


class RowChanges:
    """Rows of a write, or keys that it deletes.

    `rows` gives tables, each time from the first one on, of at most `count` rows in all and about `memory_bytes`: of
    the columns of `schema` in its raw form, or of the record key alone, whose rows are then deleted.
    """

    after_null: ClassVar[tuple[str, str]] = (
        "Hudi itself cannot merge these rows",
        "give every row a value; nothing was committed",
    )
    blocks = size = 0
    is_partial = False

    def __init__(
        self,
        path: str,
        partition: str,
        schema: FileSchema,
        rule: MergeRule,
        rows: Callable[[], Iterator[pa.Table]],
        count: int,
        memory_bytes: int,
    ) -> None:
        """`path` names the slice in messages."""
        self.full_path = path
        self.schema = schema
        self.ordering = ordering_fields(rule, schema, path)
        self.rule = replace(with_ordering(rule, self.ordering), each_base_row=True)
        self._records = LogRecords(schema, partition, self.rule, self.ordering)
        self._rows = rows
        self._count = count
        self.encoded_bytes = self.memory_bytes = memory_bytes

    @property
    def subsets(self) -> list[frozenset[str]]:
        return self._records.subsets

    def count(self) -> int:
        return self._count

    def records(self) -> Iterator[pa.Table]:
        yield self._records.none()
        for rows in self._rows():
            yield self._records.of_rows(rows)

    def widened(self, target: FileSchema) -> None:
        return None
