"""Writing a base file from the row groups of others, without decoding a value (parquet-mr's binary copy).

Pages go over as they are, or from one codec into another; `_hoodie_file_name` and the footer are made anew. The rows of
a row group stay together, so the new file has the row groups of the old ones.
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from ..codecs import thrift
from ..codecs.thrift import ListValue, Struct
from ..errors import CorruptFile
from ..storage import Storage
from .column_stats import column_stats
from .parquet_codec import ParquetCodec, codec_called, codec_numbered
from .parquet_footer import MAGIC, ColumnChunk, Footer
from .parquet_pages import Page, PageKind, compressed, constant_pages, plain, read_pages
from .parquet_reader import BaseFileReader
from .parquet_schema import FileSchema, Leaf
from .parquet_writer import FILE_NAME_COLUMN, WrittenFile

_FORMAT_VERSION = 1


class Fingerprint:
    """64 bits over the pages of a row group: column by column, page by page, header (but sizes) and body."""

    def __init__(self) -> None:
        # The fastest of hashlib on this scale, and no one attacks it.
        self._digest = hashlib.sha1(usedforsecurity=False)

    def add(self, leaf: Leaf, page: Page) -> None:
        header, body = page.content
        self._digest.update(f"{leaf.dotted}\0{len(header)}\0{len(body)}\0".encode())
        self._digest.update(header)
        self._digest.update(body)

    def __int__(self) -> int:
        return int.from_bytes(self._digest.digest()[:8], "big")


def row_group_fingerprint(reader: BaseFileReader, index: int, *, skip: Collection[str], recoded: bool) -> int:
    """The `Fingerprint` of row group `index` without the top-level columns `skip`.

    `recoded`: of the pages without their compression, which a change of codec leaves as they are.
    """
    fingerprint = Fingerprint()
    group = reader.row_groups[index]
    with reader.held(index):
        for leaf, chunk in zip(reader.schema.leaves, group.columns, strict=True):
            if leaf.path[0] not in skip:
                for page in _checked_pages(reader, leaf, chunk, group.num_rows):
                    fingerprint.add(leaf, plain(page, _codec(chunk), reader.full_path) if recoded else page)
    return int(fingerprint)


def can_be_copied(reader: BaseFileReader) -> bool:
    """Whether every codec of the file is known here."""
    return all(codec_numbered(c.codec) is not None for group in reader.row_groups for c in group.columns)


def needs_recoding(reader: BaseFileReader, codec: str) -> bool:
    """Whether a chunk of the file has another codec than `codec`."""
    return any(c.codec != codec_called(codec).number for group in reader.row_groups for c in group.columns)


class RowGroupCopier:
    """Writes one base file out of row groups; end it with `close`, or with `abort` when something fails.

    `target`: the schema of every input. `file_name`: the value of `_hoodie_file_name`, None to copy that column, too.
    `codec`: what pages are put into, None to leave them as they are. `created_by`: who wrote the pages.
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
    ) -> None:
        self._path = path
        self._full_path = storage.full_path(path)
        self._target = target
        self._file_name = file_name
        self._codec = codec_called(codec) if codec is not None else None
        self._created_by = created_by
        self._groups: list[_NewRowGroup] = []
        self._out: _CountedOutput | None = _CountedOutput(storage.open_output(path))
        self._out.write(MAGIC)

    def append(self, reader: BaseFileReader, index: int) -> int:
        """Copy row group `index`; returns the `Fingerprint` of its old pages. Raises CorruptFile for damaged ones."""
        assert self._out is not None
        old = reader.row_groups[index]
        group = _NewRowGroup(old.num_rows, self._out.position)
        fingerprint = Fingerprint()
        with reader.held(index):
            for leaf, chunk in zip(self._target.leaves, old.columns, strict=True):
                if self._file_name is not None and leaf.path == (FILE_NAME_COLUMN,):
                    group.chunks.append(self._constant(leaf, self._file_name.encode(), old.num_rows, chunk))
                else:
                    group.chunks.append(self._copied(reader, leaf, chunk, old.num_rows, fingerprint))
        self._groups.append(group)
        return int(fingerprint)

    def _copied(
        self, reader: BaseFileReader, leaf: Leaf, chunk: ColumnChunk, rows: int, fingerprint: Fingerprint
    ) -> "_NewChunk":
        assert self._out is not None
        new = _NewChunk(leaf, self._codec or _codec(chunk), (chunk.min, chunk.max, chunk.null_count))
        for page in _checked_pages(reader, leaf, chunk, rows):
            if self._codec is None:
                fingerprint.add(leaf, page)
                new.write(page, self._out)
            else:
                bare = plain(page, _codec(chunk), reader.full_path)
                fingerprint.add(leaf, bare)
                new.write(compressed(bare, self._codec), self._out)
        new.take_indexes(reader, chunk)
        return new

    def _constant(self, leaf: Leaf, value: bytes, rows: int, chunk: ColumnChunk) -> "_NewChunk":
        assert self._out is not None
        codec = self._codec or _codec(chunk)
        new = _NewChunk(leaf, codec, (value, value, 0))
        for page in constant_pages(value, rows, nullable=leaf.max_def > 0):
            new.write(compressed(page, codec), self._out)
        return new

    def close(self, key_values: Mapping[str, str]) -> WrittenFile:
        """Write page indexes and the footer with `key_values`, and publish the file."""
        assert self._out is not None
        try:
            for group in self._groups:
                for chunk in group.chunks:
                    chunk.write_indexes(self._out)
            footer = self._footer()
            columns = column_stats(self._target, footer.row_groups)
            footer.set_key_values(key_values)
            self._out.write(footer.as_file()[len(MAGIC) :])
            size = self._out.position
            self._out.close()
        except BaseException:
            self.abort()
            raise
        return WrittenFile(self._path, size, footer.num_rows, columns)

    def abort(self) -> None:
        """Drop what was written; nothing is published."""
        # An output that goes without being closed removes its temporary file.
        self._out = None

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
    """One column chunk as it is written; `bounds`: min and max as in the footer, and the number of nulls."""

    leaf: Leaf
    codec: ParquetCodec
    bounds: tuple[bytes | None, bytes | None, int | None]
    num_values: int = 0
    uncompressed_bytes: int = 0
    compressed_bytes: int = 0
    dictionary: int | None = None
    places: list[tuple[int, int]] = field(default_factory=list)
    """Offset and size of each data page."""
    encodings: set[int] = field(default_factory=set)
    pages: Counter[tuple[int, int]] = field(default_factory=Counter)
    """How many pages there are of each kind and encoding."""
    indexes: tuple[bytes, ListValue] | None = None
    """The column index, and the page locations of the offset index."""
    index_places: tuple[tuple[int, int], tuple[int, int]] | None = None

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

    def take_indexes(self, reader: BaseFileReader, chunk: ColumnChunk) -> None:
        """The page indexes of the old chunk, whose pages are now those of this one; none where they do not fit."""
        if chunk.column_index is None or chunk.offset_index is None:
            return
        offset_index, _ = thrift.decode_struct(reader.read_bytes(*chunk.offset_index), reader.full_path)
        locations = offset_index.get(1)
        if isinstance(locations, ListValue) and len(locations.items) == len(self.places):
            self.indexes = reader.read_bytes(*chunk.column_index), locations

    def write_indexes(self, out: "_CountedOutput") -> None:
        if self.indexes is None:
            return
        column_index, locations = self.indexes
        for location, (start, size) in zip(locations.items, self.places, strict=True):
            location.set(1, thrift.I64, start)
            location.set(2, thrift.I32, size)
        offset_index = thrift.encode_struct(Struct({1: (thrift.LIST, locations)}))
        at = out.position
        out.write(column_index)
        out.write(offset_index)
        self.index_places = (at, len(column_index)), (at + len(column_index), len(offset_index))

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
        if self.index_places is not None:
            (column_at, column_length), (offset_at, offset_length) = self.index_places
            chunk |= {
                4: (thrift.I64, offset_at),
                5: (thrift.I32, offset_length),
                6: (thrift.I64, column_at),
                7: (thrift.I32, column_length),
            }
        return Struct(chunk)

    def _statistics(self) -> Struct:
        low, high, nulls = self.bounds
        stats = Struct()
        if nulls is not None:
            stats.set(3, thrift.I64, nulls)
        if low is not None and high is not None:
            stats.set(5, thrift.BINARY, high)
            stats.set(6, thrift.BINARY, low)
        return stats


class _CountedOutput:
    """An output that knows how much was written."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self.position = 0

    def write(self, data: bytes) -> None:
        self._out.write(data)
        self.position += len(data)

    def close(self) -> None:
        self._out.close()


def _codec(chunk: ColumnChunk) -> ParquetCodec:
    codec = codec_numbered(chunk.codec)
    assert codec is not None, "can_be_copied comes first"
    return codec


def _checked_pages(reader: BaseFileReader, leaf: Leaf, chunk: ColumnChunk, rows: int) -> Iterator[Page]:
    """The pages of a chunk; raises CorruptFile after the last when they do not hold what the footer says."""
    values = 0
    for page in read_pages(reader.read_bytes(chunk.start, chunk.compressed_bytes), reader.full_path, chunk.start):
        values += page.num_values if page.kind is not PageKind.DICTIONARY else 0
        yield page
    if values != chunk.num_values or (leaf.max_rep == 0 and values != rows):
        raise CorruptFile(
            f"{reader.full_path}: the pages of column {leaf.dotted} hold {values} values; "
            f"its footer says {chunk.num_values} in {rows} rows"
        )
