"""Writes a base file from the row groups of other files, without decoding a value (parquet-mr's binary copy).

Pages are copied as they are, or recompressed with another codec; `_hoodie_file_name` and the footer are written anew.
The rows of a row group stay together, so the new file has the row groups of the old files.
"""

import hashlib
import re
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import IO, Any

from ..codecs import thrift
from ..codecs.thrift import ListValue, Struct
from ..errors import CheckFailed
from ..parquet.chunk_stats import column_stats, untold_leaves
from ..parquet.compression import ParquetCodec, codec_called, codec_numbered
from ..parquet.file_schema import FileSchema, Leaf
from ..parquet.footer import MAGIC, ColumnChunk, Footer, RowGroup
from ..parquet.page_checks import ChunkCheck, page_sums
from ..parquet.page_header import PageKind
from ..parquet.pages import (
    Page,
    check_dictionary,
    check_without_values,
    compressed,
    constant_pages,
    plain,
    read_pages,
    with_crc,
)
from ..parquet.value_bounds import ValueBounds
from ..storage import Storage
from .chunk_bounds import chunk_bounds
from .file_reader import BaseFileReader
from .file_writer import FILE_NAME_COLUMN
from .new_file import NewFile
from .page_index import PageIndexes, constant_column_index, old_indexes

_FORMAT_VERSION = 1
_WITHOUT_ERRATA = re.compile(r"parquet-mr version 1\.1[0-9]\.|parquet-cpp-arrow version (?:[3-9]|[1-9][0-9]+)\.")
"""Writers whose pages no reader treats in a way of its own. Sources: CorruptStatistics and CorruptDeltaByteArrays of
parquet-java; ApplicationVersion of Arrow's parquet/metadata.cc."""


class Fingerprint:
    """64 bits over a row group: column by column, page by page (the `content` of a page), then the chunk's facts.

    The body of a page counts by 64 bits, its CRC-32 and its Adler-32: both together take a fifth of the time of SHA-1.
    """

    def __init__(self) -> None:
        # It need not withstand attacks.
        self._digest = hashlib.sha1(usedforsecurity=False)
        self.seconds = 0.0
        """The time that it has taken, for the report."""

    def add(self, leaf: Leaf, page: Page) -> None:
        start = time.perf_counter()
        header, body = page.content
        self._digest.update(repr((leaf.dotted, header, len(body), *page_sums(body))).encode())
        self.seconds += time.perf_counter() - start

    def add_facts(self, facts: "ChunkFacts", codec: ParquetCodec | None) -> None:
        """Add the facts of the chunk in the footer, and its `codec` when pages are taken as they are."""
        self._digest.update(repr((facts, codec)).encode())

    def __int__(self) -> int:
        return int.from_bytes(self._digest.digest()[:8], "big")


@dataclass(frozen=True, slots=True)
class ChunkFacts:
    """The facts of a chunk that readers take from its footer. `min` and `max` are raw bytes, both or neither."""

    num_values: int
    min: bytes | None
    max: bytes | None
    null_count: int | None

    @property
    def are_known(self) -> bool:
        """Whether the bounds are known, or all values are null."""
        return self.min is not None or self.null_count == self.num_values

    @classmethod
    def of(cls, chunk: ColumnChunk, *, ordered: bool) -> "ChunkFacts":
        """The facts of a chunk. Bounds without an order mean nothing: they are left out of another file."""
        known = ordered and chunk.min is not None and chunk.max is not None
        return cls(chunk.num_values, *((chunk.min, chunk.max) if known else (None, None)), chunk.null_count)


def row_group_fingerprint(reader: BaseFileReader, index: int, *, file_name: str | None, recoded: bool) -> int:
    """The `Fingerprint` of row group `index` of a new file, without `_hoodie_file_name` when there is a `file_name`.

    `recoded`: of the uncompressed pages, which a change of codec does not change. Raises CheckFailed when a row has
    another file name.
    """
    fingerprint = Fingerprint()
    group = reader.row_groups[index]
    with reader.held(index):
        for i, (leaf, chunk) in enumerate(zip(reader.schema.leaves, group.columns, strict=True)):
            codec, pages = _codec(chunk), _checked_pages(reader, index, i)
            facts = ChunkFacts.of(chunk, ordered=i in reader.ordered_leaves)
            if file_name is not None and leaf.path == (FILE_NAME_COLUMN,):
                wanted = constant_pages(file_name.encode(), group.num_rows, nullable=leaf.max_def > 0)
                found = [plain(page, codec, reader.full_path).content for page in pages]
                if found != [page.content for page in wanted] or facts != _constant_facts(file_name, group.num_rows):
                    raise CheckFailed(f"{reader.full_path}: {FILE_NAME_COLUMN} does not hold the name of the file")
                continue
            for page in pages:
                fingerprint.add(leaf, plain(page, codec, reader.full_path) if recoded else page)
            fingerprint.add_facts(facts, None if recoded else codec)
    return int(fingerprint)


def _constant_facts(file_name: str, rows: int) -> ChunkFacts:
    return ChunkFacts(rows, file_name.encode(), file_name.encode(), 0)


def can_be_copied(codecs: Iterable[int]) -> bool:
    """Whether all codecs of a row group, by their numbers in the footer, are known here."""
    return all(codec_numbered(one) is not None for one in codecs)


def needs_recoding(reader: BaseFileReader, codec: str) -> bool:
    """Whether a chunk of the file has another codec than `codec`."""
    number = codec_called(codec).number
    return any(c.codec != number for group in reader.row_groups for c in group.columns)


def joint_writer(writers: Collection[str]) -> str | None:
    """The writer to name in a footer for pages of several writers; None when readers may treat their pages differently.

    Readers look for old releases, whose statistics or encodings were wrong.
    """
    if len(writers) > 1 and not all(map(_WITHOUT_ERRATA.match, writers)):
        return None
    return min(writers)


class RowGroupCopier:
    """Writes one base file out of row groups; use as a context manager, which aborts on an exception.

    `target`: the schema of every input. `file_name`: the value of `_hoodie_file_name`, None to copy that column, too.
    `codec`: the codec of the new pages, None to leave them as they are. `created_by`: the writer of the pages.
    `ranged`: dotted paths of the leaves whose ranges are wanted; where no footer has them, their values are read.
    """

    def __init__(
        self,
        storage: Storage,
        path: str,
        target: FileSchema,
        *,
        file_name: str | None,
        codec: str | None,
        created_by: str,
        ranged: Collection[str] = (),
    ) -> None:
        self._path = path
        self._full_path = storage.full_path(path)
        self._target = target
        self._file_name = file_name
        self._codec = codec_called(codec) if codec is not None else None
        self._created_by = created_by
        self._ranged = frozenset(ranged)
        self._known: dict[tuple[int, int], ValueBounds] = {}
        self._groups: list[_NewRowGroup] = []
        self._out = _CountedOutput(storage.open_output(path))
        self._out.write(MAGIC)

    def __enter__(self) -> "RowGroupCopier":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.abort()

    def append(self, reader: BaseFileReader, index: int) -> Fingerprint:
        """Copy row group `index`; returns the fingerprint of its old pages.

        Raises CorruptFile for damaged pages, and CheckFailed when the new footer would give them another meaning.
        """
        if reader.schema != self._target:
            raise CheckFailed(f"{reader.full_path} has another schema than {self._full_path}")
        old = reader.row_groups[index]
        group = _NewRowGroup(old.num_rows, self._out.position)
        fingerprint = Fingerprint()
        with reader.held(index, page_indexes=True):
            for i, (leaf, chunk) in enumerate(zip(self._target.leaves, old.columns, strict=True)):
                if self._file_name is not None and leaf.path == (FILE_NAME_COLUMN,):
                    group.chunks.append(self._constant(leaf, self._file_name, old.num_rows, chunk))
                else:
                    facts = ChunkFacts.of(chunk, ordered=i in reader.ordered_leaves)
                    group.chunks.append(self._copied(reader, (index, i), facts, fingerprint))
            for place, bounds in chunk_bounds(reader, index, self._untold_leaves(reader, old)).items():
                self._known[len(self._groups), place] = bounds
        self._groups.append(group)
        return fingerprint

    def _untold_leaves(self, reader: BaseFileReader, row_group: RowGroup) -> set[int]:
        """Leaves of `ranged` whose range the footer of the new file will not have."""
        made = {FILE_NAME_COLUMN} if self._file_name is not None else set()
        indexed = {i for i, leaf in enumerate(self._target.leaves) if leaf.dotted in self._ranged - made}
        return (indexed - reader.ordered_leaves).union(untold_leaves(self._target, row_group, self._ranged - made))

    def _copied(
        self, reader: BaseFileReader, place: tuple[int, int], facts: ChunkFacts, fingerprint: Fingerprint
    ) -> "_NewChunk":
        """The new chunk of the leaf at `place` (row group, leaf), with its pages written."""
        group, leaf = reader.row_groups[place[0]], reader.schema.leaves[place[1]]
        chunk = group.columns[place[1]]
        old = _codec(chunk)
        new = _NewChunk(leaf, self._codec or old, facts)
        for page in _checked_pages(reader, *place):
            if self._codec is None:
                check_without_values(page, leaf, old, reader.full_path)
                fingerprint.add(leaf, page)
                new.write(with_crc(page), self._out)
            else:
                bare = plain(page, old, reader.full_path)
                if page.kind is PageKind.DICTIONARY:
                    check_dictionary(bare, leaf, reader.full_path)
                fingerprint.add(leaf, bare)
                new.write(with_crc(page) if old == self._codec else compressed(bare, self._codec), self._out)
        fingerprint.add_facts(facts, old if self._codec is None else None)
        new.indexes = old_indexes(reader, chunk, len(new.places), group.num_rows, bounds=facts.are_known)
        return new

    def _constant(self, leaf: Leaf, value: str, rows: int, chunk: ColumnChunk) -> "_NewChunk":
        codec = self._codec or _codec(chunk)
        new = _NewChunk(leaf, codec, _constant_facts(value, rows))
        for page in constant_pages(value.encode(), rows, nullable=leaf.max_def > 0):
            new.write(compressed(page, codec), self._out)
        # Some readers drop the indexes of all columns when one has none.
        new.indexes = PageIndexes((0,), constant_column_index(value.encode()))
        return new

    def close(self, key_values: Mapping[str, str]) -> NewFile:
        """Write page indexes and the footer with `key_values`, and publish the file."""
        for group in self._groups:
            for chunk in group.chunks:
                chunk.write_indexes(self._out)
        footer = self._footer()
        columns = column_stats(self._target, footer.row_groups, self._known)
        footer.set_key_values(key_values)
        self._out.write(footer.as_file()[len(MAGIC) :])
        self._out.close()
        return NewFile.of(self._path, self._out.position, footer.num_rows, columns)

    def abort(self) -> None:
        """Drop what was written; nothing is published."""
        self._out.drop()

    def _footer(self) -> Footer:
        groups = [group.encoded(ordinal) for ordinal, group in enumerate(self._groups)]
        orders = [Struct({1: (thrift.STRUCT, Struct())}) for _ in self._target.leaves]
        tree = Struct(
            {
                1: (thrift.I32, _FORMAT_VERSION),
                2: (thrift.LIST, ListValue(thrift.STRUCT, list(self._target.elements))),
                3: (thrift.I64, sum(group.rows for group in self._groups)),
                4: (thrift.LIST, ListValue(thrift.STRUCT, groups)),
                6: (thrift.BINARY, self._created_by.encode()),
                7: (thrift.LIST, ListValue(thrift.STRUCT, orders)),
            }
        )
        return Footer(tree, self._full_path)


@dataclass(slots=True)
class _NewRowGroup:
    rows: int
    start: int
    chunks: list["_NewChunk"] = field(default_factory=list)

    def encoded(self, ordinal: int) -> Struct:
        return Struct(
            {
                1: (thrift.LIST, ListValue(thrift.STRUCT, [chunk.encoded() for chunk in self.chunks])),
                2: (thrift.I64, sum(chunk.uncompressed_bytes for chunk in self.chunks)),
                3: (thrift.I64, self.rows),
                5: (thrift.I64, self.start),
                6: (thrift.I64, sum(chunk.compressed_bytes for chunk in self.chunks)),
                **({7: (thrift.I16, ordinal)} if ordinal < 1 << 15 else {}),
            }
        )


@dataclass(slots=True)
class _NewChunk:
    """One column chunk as it is written."""

    leaf: Leaf
    codec: ParquetCodec
    facts: ChunkFacts
    num_values: int = 0
    uncompressed_bytes: int = 0
    compressed_bytes: int = 0
    dictionary: int | None = None
    places: list[tuple[int, int]] = field(default_factory=list)
    """Offset and size of each data page."""
    encodings: set[int] = field(default_factory=set)
    pages: Counter[tuple[int, int]] = field(default_factory=Counter)
    """The number of pages of each kind and encoding."""
    indexes: PageIndexes | None = None
    column_index: tuple[int, int] | None = None
    offset_index: tuple[int, int] | None = None

    def write(self, page: Page, out: "_CountedOutput") -> None:
        header = page.encoded_header()
        size = len(header) + len(page.body)
        if page.kind is PageKind.DICTIONARY:
            self.dictionary = out.position
        else:
            self.places.append((out.position, size))
            self.num_values += page.num_values
        self.encodings |= {page.encoding, *page.level_encodings}
        self.pages[int(page.kind), page.encoding] += 1
        self.uncompressed_bytes += len(header) + page.uncompressed_bytes
        self.compressed_bytes += size
        out.write(header)
        out.write(page.body)

    def write_indexes(self, out: "_CountedOutput") -> None:
        if self.indexes is None:
            return
        if self.indexes.column_index is not None:
            self.column_index = out.position, len(self.indexes.column_index)
            out.write(self.indexes.column_index)
        encoded = self.indexes.offset_index(self.places)
        self.offset_index = out.position, len(encoded)
        out.write(encoded)

    def encoded(self) -> Struct:
        """The ColumnChunk of the footer."""
        first = self.places[0][0] if self.places else self.dictionary or 0
        stats = [
            Struct({1: (thrift.I32, kind), 2: (thrift.I32, encoding), 3: (thrift.I32, count)})
            for (kind, encoding), count in sorted(self.pages.items())
        ]
        meta: dict[int, tuple[int, Any]] = {
            1: (thrift.I32, int(self.leaf.physical)),
            2: (thrift.LIST, ListValue(thrift.I32, sorted(self.encodings))),
            3: (thrift.LIST, ListValue(thrift.BINARY, [name.encode() for name in self.leaf.path])),
            4: (thrift.I32, self.codec.number),
            5: (thrift.I64, self.num_values),
            6: (thrift.I64, self.uncompressed_bytes),
            7: (thrift.I64, self.compressed_bytes),
            9: (thrift.I64, first),
        }
        if self.dictionary is not None:
            meta[11] = (thrift.I64, self.dictionary)
        meta[12] = (thrift.STRUCT, self._statistics())
        meta[13] = (thrift.LIST, ListValue(thrift.STRUCT, stats))
        start = first if self.dictionary is None else self.dictionary
        chunk = {2: (thrift.I64, start), 3: (thrift.STRUCT, Struct(meta))}
        for place, field_id in ((self.offset_index, 4), (self.column_index, 6)):
            if place is not None:
                chunk |= {field_id: (thrift.I64, place[0]), field_id + 1: (thrift.I32, place[1])}
        return Struct(chunk)

    def _statistics(self) -> Struct:
        stats = Struct()
        if self.facts.null_count is not None:
            stats.set(3, thrift.I64, self.facts.null_count)
        if self.facts.min is not None and self.facts.max is not None:
            stats.set(5, thrift.BINARY, self.facts.max)
            stats.set(6, thrift.BINARY, self.facts.min)
        return stats


class _CountedOutput:
    """An output that knows how much was written."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out: IO[bytes] | None = out
        self.position = 0

    def write(self, data: bytes) -> None:
        assert self._out is not None
        self._out.write(data)
        self.position += len(data)

    def close(self) -> None:
        assert self._out is not None
        self._out.close()

    def drop(self) -> None:
        # An output that is destroyed without being closed removes its temporary file.
        self._out = None


def _codec(chunk: ColumnChunk) -> ParquetCodec:
    codec = codec_numbered(chunk.codec)
    assert codec is not None, "can_be_copied comes first"
    return codec


def _checked_pages(reader: BaseFileReader, group: int, leaf: int) -> Iterator[Page]:
    """The pages of a chunk; raises CorruptFile for a damaged one, or after the last when the footer says otherwise."""
    chunk, place = reader.row_groups[group].columns[leaf], reader.place(group, leaf)
    check = ChunkCheck(place, reader.schema.leaves[leaf], chunk, reader.row_groups[group].num_rows)
    yield from read_pages(reader.read_bytes(chunk.start, chunk.compressed_bytes), place, check)
    check.finish()
