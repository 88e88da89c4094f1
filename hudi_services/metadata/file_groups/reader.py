"""Reading the file groups of the metadata table: a base HFile each, and the blocks of its log files on top.

Each HFile and each delete block is a layer; all layers have their keys in order, and are read at the same time. The
records that the layers hold under one key are merged as `records.model.Stored` says.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import chain, groupby
from operator import itemgetter

from ...codecs.avro import AvroSchema, parse_schema
from ...codecs.hashing import file_group_index
from ...computed_once import cached_property
from ...errors import CorruptFile
from ...hfile.hfile_reader import HFileReader
from ...log_files.delete_records import delete_block_keys
from ...log_files.log_blocks import BlockType, HeaderKey, LogBlock
from ...log_files.log_reader import read_log_blocks
from ...model import FileSlice, LogFile
from ...paths import bare_name
from ..records.codec import decode_record
from ..records.model import Record, Stored
from .blocks import BlockFilter
from .committed_files import CommittedFiles
from .group_files import GroupFiles

_SCHEMA_INFO = b"schema"
_Row = tuple[bytes, int, bytes | None]
"""(key, number of the layer, value), the value None where a delete block names the key."""
Keep = Callable[[str], bool]
Worth = Callable[[bytes], bool]
_Found = tuple[str, Stored]
Layer = tuple[frozenset[str], HFileReader | None, AvroSchema | None, str]
"""The keys that a layer deletes, or its file with the schema and the path of its values."""


@dataclass(frozen=True)
class _Layer:
    """Records of one HFile, or the keys of one delete block, in order."""

    path: str
    reader: HFileReader | None
    schema: AvroSchema | None
    deleted: frozenset[str] = frozenset()

    @cached_property
    def _deleted_rows(self) -> list[bytes]:
        return sorted(key.encode() for key in self.deleted)

    def rows(self, number: int, prefix: bytes) -> Iterator[_Row]:
        if self.reader is not None:
            pairs = self.reader.scan_prefix(prefix) if prefix else self.reader.scan()
            return ((key, number, value) for key, value in pairs)
        return ((key, number, None) for key in self._deleted_rows if key.startswith(prefix))

    def rows_near(self, number: int, keys: Sequence[bytes]) -> Iterator[_Row]:
        """The rows under `keys`, which ascend, and other rows of the blocks that may have them; others are not read."""
        if self.reader is None:
            yield from ((key, number, None) for key in self._deleted_rows)
            return
        for rows, values in self.reader.columns_with(keys):
            for key, value in zip(rows.to_pylist(), values.to_pylist(), strict=True):
                yield key, number, value

    def decode(self, key: str, value: bytes) -> Record:
        assert self.schema is not None, "only HFiles have values"
        return decode_record(key, value, self.schema, self.path)


class FileGroupReader:
    """The merged records of one file slice of `files`.

    The constructor reads the log files; the base file is read in pieces. Raises CorruptFile when log files do not hold
    what was `committed` there.
    """

    def __init__(
        self, files: GroupFiles, file_slice: FileSlice, blocks: BlockFilter, committed: CommittedFiles
    ) -> None:
        self._layers: list[_Layer] = []
        base, self.has_base = file_slice.base_file, file_slice.base_file is not None
        contents = files.read(file_slice)
        if base is not None:
            path = files.full_path(base)
            self._layers.append(_hfile_layer(HFileReader(files.ranges(base), path), path))
        found: dict[LogFile, list[LogBlock]] = {
            log: read_log_blocks(contents[log], files.full_path(log)) for log in file_slice.log_files
        }
        counted = blocks.surviving(chain.from_iterable(found.values()))
        committed.check_blocks(found, counted)
        self._layers += [_block_layer(block) for block in counted]
        self.log_blocks = [f"{bare_name(block.path)}:{block.offset}" for block in counted]
        """File and offset of each log block that counts, in the order of the layers."""

    @property
    def newest_schema(self) -> AvroSchema | None:
        """The schema of the records that were written last; None when there are no records."""
        return next((layer.schema for layer in reversed(self._layers) if layer.schema is not None), None)

    def scan(self, prefix: str = "", keep: Keep | None = None, worth: Worth | None = None) -> Iterator[Record]:
        """Records whose key begins with `prefix`, in order, where `keep` takes the key, and `worth` a version."""
        found = (stored.merged for _, stored in self.stored(prefix, keep, worth))
        yield from (record for record in found if record is not None)

    def stored(self, prefix: str = "", keep: Keep | None = None, worth: Worth | None = None) -> Iterator[_Found]:
        """As `scan`, for every key that any layer has: what the base file and the log files hold under the key."""
        raw = prefix.encode()
        rows = merge(*(layer.rows(number, raw) for number, layer in enumerate(self._layers)))
        for row, found in groupby(rows, itemgetter(0)):
            versions = list(found)
            if worth is not None and not any(value is not None and worth(value) for _, _, value in versions):
                continue
            key = _text(row, self._layers[versions[0][1]].path)
            if keep is None or keep(key):
                yield key, self._stored(key, versions)

    def stored_under(self, keys: Sequence[str]) -> Iterator[tuple[str, Stored]]:
        """As `stored`, for `keys`, which ascend; keys that no layer has are left out."""
        raw = [key.encode() for key in keys]
        rows = merge(*(layer.rows_near(number, raw) for number, layer in enumerate(self._layers)))
        at = 0
        for row, versions in groupby(rows, itemgetter(0)):
            while at < len(raw) and raw[at] < row:
                at += 1
            if at == len(raw):
                return
            if raw[at] == row:
                yield keys[at], self._stored(keys[at], versions)

    def merged_values(self, schema: AvroSchema, encode: Callable[[Record], bytes]) -> Iterator[tuple[bytes, bytes]]:
        """As `scan`, but encoded pairs, in `schema`; `encode` encodes values that are merged or have another schema."""
        rows = merge(*(layer.rows(number, b"") for number, layer in enumerate(self._layers)))
        for row, found in groupby(rows, itemgetter(0)):
            versions = list(found)
            _, number, value = versions[0]
            layer = self._layers[number]
            as_it_is = layer.schema is not None and layer.schema.says_the_same(schema)
            if as_it_is and value is not None and len(versions) == 1:
                yield row, value
                continue
            merged = self._stored(_text(row, layer.path), versions).merged
            if merged is not None:
                yield row, encode(merged)

    @property
    def counts(self) -> tuple[int, int, int]:
        """The numbers of base file entries, of log blocks, and of the records and deleted keys in these blocks."""
        base = self._layers[:1] if self.has_base else []
        logs = self._layers[len(base) :]
        return sum(map(_count, base)), len(logs), sum(map(_count, logs))

    def newest_first(self, first: int = 0) -> Iterator[Layer]:
        """The layers from the newest on, without the `first` ones."""
        for layer in reversed(self._layers[first:]):
            yield layer.deleted, layer.reader, layer.schema, layer.path

    def _stored(self, key: str, versions: Iterable[_Row]) -> Stored:
        found = Stored()
        for _, number, value in versions:
            if value is None:
                found = found.forgotten()
                continue
            record = self._layers[number].decode(key, value)
            found = Stored(record) if number == 0 and self.has_base else found.after(record)
        return found


class PartitionReader:
    """The merged records of one partition of the metadata table; its log files are read when they are first needed."""

    def __init__(self, open_groups: Callable[[], Sequence[FileGroupReader]]) -> None:
        self._open_groups = open_groups
        self._groups: Sequence[FileGroupReader] | None = None

    def __getstate__(self) -> dict[str, object]:
        """Another process opens the file groups itself."""
        return {"_open_groups": self._open_groups, "_groups": None}

    @property
    def groups(self) -> Sequence[FileGroupReader]:
        # Before Python 3.12 a cached_property would lock out all other readers while one opens its groups.
        if self._groups is None:
            self._groups = self._open_groups()
        return self._groups

    def scan(self, prefix: str = "", keep: Keep | None = None, worth: Worth | None = None) -> Iterator[Record]:
        """Records whose key begins with `prefix`, file group by file group; `keep` and `worth` as for a file group."""
        for group in self.groups:
            yield from group.scan(prefix, keep, worth)

    def scan_prefixes(
        self, prefixes: Iterable[str], keep: Keep | None = None
    ) -> Iterator[tuple[str, Iterator[Record]]]:
        """Each prefix with the records that `scan` finds for it."""
        # In order, so that each block of an HFile is unpacked once.
        for prefix in sorted(prefixes):
            yield prefix, self.scan(prefix, keep)

    def stored(self, keys: Iterable[str]) -> Iterator[tuple[str, Stored]]:
        """The records stored under each of `keys`; an empty `Stored` for a key that no layer has."""
        for key in sorted(keys):
            group = self.groups[file_group_index(key, len(self.groups))]
            yield key, next((stored for _, stored in group.stored(key, key.__eq__)), Stored())

    def stored_in_order(self, keys: Iterable[str]) -> Iterator[tuple[str, Stored]]:
        """As `stored`, for many keys, in one pass over the file groups: no block is read twice, none is kept."""
        ordered = sorted({*keys})
        found = merge(*(group.stored_under(ordered) for group in self.groups), key=itemgetter(0))
        key, stored = next(found, ("", Stored()))
        for wanted in ordered:
            if wanted == key:
                yield wanted, stored
                key, stored = next(found, ("", Stored()))
            else:
                yield wanted, Stored()


def _count(layer: _Layer) -> int:
    return len(layer.deleted) if layer.reader is None else layer.reader.entry_count


def _hfile_layer(reader: HFileReader, path: str) -> _Layer:
    try:
        schema = reader.file_info[_SCHEMA_INFO].decode()
    except (KeyError, UnicodeDecodeError) as e:
        raise CorruptFile(f"{path} has no schema in its file info") from e
    return _Layer(path, reader, parse_schema(schema, path))


def _block_layer(block: LogBlock) -> _Layer:
    if block.type is BlockType.DELETE:
        return _Layer(block.path, None, None, frozenset(delete_block_keys(block)))
    schema = block.header.get(HeaderKey.SCHEMA)
    reader = HFileReader(block.content, block.path)
    if schema is None:
        return _hfile_layer(reader, block.path)
    return _Layer(block.path, reader, parse_schema(schema, block.path))


def _text(row: bytes, path: str) -> str:
    try:
        return row.decode()
    except UnicodeDecodeError as e:
        raise CorruptFile(f"{path} has the key {row[:40]!r}, which is not UTF-8") from e
