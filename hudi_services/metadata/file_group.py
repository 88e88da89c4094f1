"""Reading one file group of the metadata table: a base HFile and the blocks of its log files on top.

Each HFile is a layer, each delete block is one. A key's record is what its records in all layers mean together, oldest
first; a delete block forgets what is below it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..codecs.avro import AvroSchema, parse_schema
from ..errors import CorruptFile
from ..files.hfile_reader import HFileReader, StoredRanges
from ..files.log_blocks import BlockType, HeaderKey, LogBlock
from ..files.log_reader import delete_block_keys, read_log_blocks
from ..model import FileSlice
from ..storage import Storage
from .blocks import BlockFilter
from .record_codec import decode_record
from .records import Record, merge_records

_SCHEMA_INFO = b"schema"
_Rows = Iterator[tuple[bytes, bytes]]


@dataclass(frozen=True)
class _Layer:
    """Records of one HFile, or the keys of one delete block."""

    path: str
    reader: HFileReader | None
    schema: AvroSchema | None
    deleted: frozenset[str] = frozenset()


class FileGroupReader:
    """The merged records of one file slice. Log files are read when it is made, the base file in pieces."""

    def __init__(self, storage: Storage, folder: str, file_slice: FileSlice, blocks: BlockFilter) -> None:
        self._layers: list[_Layer] = []
        if file_slice.base_file is not None:
            path = f"{folder}/{file_slice.base_file.path}"
            ranges = StoredRanges(storage, path, file_slice.base_file.size)
            self._layers.append(_hfile_layer(HFileReader(ranges, storage.full_path(path)), storage.full_path(path)))
        found: list[LogBlock] = []
        for log in file_slice.log_files:
            path = f"{folder}/{log.path}"
            found += read_log_blocks(storage.read(path), storage.full_path(path))
        self._layers += [_block_layer(block) for block in blocks.surviving(found)]

    @property
    def newest_schema(self) -> AvroSchema | None:
        """Of the records that were written last; None when there are none."""
        return next((layer.schema for layer in reversed(self._layers) if layer.schema is not None), None)

    def scan(self) -> dict[str, Record]:
        """Every record, by key."""
        return self._merge(lambda reader: reader.scan())

    def scan_prefix(self, prefix: str, keep: Callable[[str], bool] | None = None) -> dict[str, Record]:
        """Records whose key begins with `prefix`, by key; keys that `keep` refuses are not even decoded."""
        raw = prefix.encode()
        return self._merge(lambda reader: reader.scan_prefix(raw), keep)

    def newest_first(self) -> Iterator[tuple[frozenset[str], HFileReader | None, AvroSchema | None, str]]:
        """The layers from the newest on: the keys that one deletes, or its file with schema and path of the values."""
        for layer in reversed(self._layers):
            yield layer.deleted, layer.reader, layer.schema, layer.path

    def _merge(
        self, rows: Callable[[HFileReader], _Rows], keep: Callable[[str], bool] | None = None
    ) -> dict[str, Record]:
        merged: dict[str, Record] = {}
        for layer in self._layers:
            for key in layer.deleted:
                merged.pop(key, None)
            if layer.reader is None or layer.schema is None:
                continue
            for row, value in rows(layer.reader):
                key = _text(row, layer.path)
                if keep is not None and not keep(key):
                    continue
                record = decode_record(key, value, layer.schema, layer.path)
                older = merged.get(key)
                merged[key] = record if older is None else merge_records(older, record)
        return merged


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
