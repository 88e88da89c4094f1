"""Secondary indexes: partitions `secondary_index_<name>`, whose keys join a value of a column with a record key.

    <value>$<record key>     `\\`, `$` and NUL are written with a `\\` before them; a null value is a single NUL

A record says only whether it is deleted. The version of an index decides:

                    V1 (table version 8)    V2
    file group      hash of the whole key   hash of `<value>$`
    null value      no key                  a key
    date            2024-02-29              days since 1970

Integers are decimal, timestamps are microseconds since 1970. Floating-point numbers are texts of Java, which differ
among its releases: no key of them is written here.
Source: SecondaryIndexKeyUtils, SecondaryIndexRecordGenerationUtils, HoodieTableMetadataUtil (
getSecondaryKeyToFileGroupMappingFunction) of Apache Hudi 1.0.2 and 1.2.0.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ..base_files.slices import RECORD_KEY, SliceReader, SliceSource
from ..errors import CorruptFile, UnsupportedTable
from ..metadata.index_definitions import read_definitions
from ..metadata.metadata_table import MetadataTable
from ..metadata.records.keys import RECORD_INDEX, SECONDARY_INDEX_PREFIX
from ..model import FileSlice
from ..parquet.conversion import natural
from ..parquet.file_schema import Node
from ..parquet.node_types import parquet_type
from ..schema.column_type import ColumnType, Kind

NULL_VALUE = "\0"
_ESCAPED = ("\\", "$", "\0")
# Up to the first `$` that has no backslash before it.
_VALUE = r"(?s)^(?P<value>(?:[^\\$]|\\.)*\$)"
_VALUE_OF_KEY = re.compile(_VALUE)
_V1 = "V1"
_PLAIN = frozenset({Kind.STRING, Kind.INT, Kind.LONG, Kind.DATE})


class UnknownTexts(UnsupportedTable):
    """The indexed values have texts that are not known here."""


@dataclass(frozen=True, slots=True)
class SecondaryIndex:
    """One secondary index: its partition, its column, and whether it is of version V2."""

    partition: str
    column: str
    by_value: bool

    def texts(self, values: pa.Array, leaf: Node) -> pa.Array:
        """The texts of column values, as keys have them. `leaf` is of a type that `check` accepts."""
        values, kind = natural(values, leaf), parquet_type(leaf).kind
        if kind is Kind.DATE:
            values = values.cast(pa.int32() if self.by_value else pa.date32())
        elif kind is Kind.TIMESTAMP:
            values = values.cast(pa.int64())
        return values.cast(pa.string())

    def check(self, kind: ColumnType, where: str) -> None:
        """Raise UnknownTexts for a column whose values have texts that are not known here."""
        if kind.kind not in _PLAIN and not (kind.kind is Kind.TIMESTAMP and kind.utc and kind.unit == "micros"):
            raise self.refused(
                f"the column {self.column} is of the type {kind} in {where}, and the texts by which Hudi indexes such "
                "values are not known here"
            )

    def refused(self, why: str) -> UnknownTexts:
        """The error about an index that cannot be kept in step, because of `why`."""
        return UnknownTexts(
            f"the metadata partition {self.partition} cannot be kept in step: {why}",
            hint="write with Apache Hudi, or drop the index first",
        )

    def hashed_part(self, keys: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        """The part of each string key of the index that is hashed."""
        return pc.struct_field(pc.extract_regex(keys, _VALUE), 0) if self.by_value else keys


@dataclass(frozen=True, slots=True)
class SecondaryPairs:
    """A source of the keys that slices have in a secondary index, in place of their record keys.

    `record_keys`: only those of rows with these record keys; None for all rows.
    """

    source: SliceSource
    index: SecondaryIndex
    record_keys: pa.Array | None = None

    def open(self, file_slice: FileSlice) -> "PairReader":
        return PairReader(self.source.open(file_slice), self.index, self.record_keys)


@dataclass(frozen=True, slots=True)
class PairReader:
    """The keys of one open slice."""

    reader: SliceReader
    index: SecondaryIndex
    chosen_keys: pa.Array | None = None
    """The record keys of the rows that count; None for all."""

    def record_keys(self) -> Iterator[pa.ChunkedArray]:
        """One key for each row with a value that has a key, some at a time.

        Raises UnknownTexts for values whose texts are not known, CorruptFile and StorageError.
        """
        reader, index = self.reader, self.index
        leaf = reader.schema.column_of(index.column)
        if leaf is not None:
            _check_values(reader, leaf, index)
        for _, table in reader.tables([RECORD_KEY, *([leaf.name] if leaf is not None else [])]):
            rows = table.combine_chunks()
            keys = rows.column(RECORD_KEY).cast(pa.string()).combine_chunks()
            texts = pa.nulls(len(keys), pa.string())
            if leaf is not None:
                texts = index.texts(rows.column(leaf.name).combine_chunks(), leaf)
            if self.chosen_keys is not None:
                counts = pc.is_in(keys, self.chosen_keys)
                keys, texts = keys.filter(counts), texts.filter(counts)
            if not index.by_value:
                keys, texts = keys.filter(texts.is_valid()), texts.drop_null()
            yield pa.chunked_array([secondary_keys(texts, keys)])

    def release(self) -> None:
        self.reader.release()


def secondary_index(metadata: MetadataTable, partition: str) -> SecondaryIndex:
    """The index of a metadata partition, by its definition. Raises CorruptFile when no definition names its column."""
    definition = read_definitions(metadata).get(partition) or {}
    fields = definition.get("sourceFields")
    if not isinstance(fields, list) or len(fields) != 1:
        path = metadata.storage.full_path(metadata.table_config.index_defs_path)
        raise CorruptFile(f"{path} does not name the column of {partition}")
    version = definition.get("version")
    by_value = metadata.config.version.typed_column_stats if version is None else version != _V1
    return SecondaryIndex(partition, str(fields[0]), by_value)


def new_secondary_index(metadata: MetadataTable, name: str, column: str) -> SecondaryIndex:
    """The secondary index that the release of the table would make."""
    return SecondaryIndex(f"{SECONDARY_INDEX_PREFIX}{name}", column, metadata.config.version.typed_column_stats)


def secondary_indexes(metadata: MetadataTable) -> tuple[SecondaryIndex, ...]:
    """The secondary indexes that commits keep in step. Raises as `secondary_index`."""
    names = [name for name in metadata.partitions if name.startswith(SECONDARY_INDEX_PREFIX)]
    return tuple(secondary_index(metadata, name) for name in names)


def secondary_keys(texts: pa.Array, record_keys: pa.Array) -> pa.Array:
    """The keys of rows with values of these texts, or nulls, and with these record keys, all strings."""
    return pc.binary_join_element_wise(pc.coalesce(_escape(texts), NULL_VALUE), _escape(record_keys), "$")


def has_key_indexes(metadata: MetadataTable) -> bool:
    """Whether commits with other keys must update an index: the record index, or a secondary index."""
    return any(one == RECORD_INDEX or one.startswith(SECONDARY_INDEX_PREFIX) for one in metadata.partitions)


def check_columns(metadata: MetadataTable, columns: Mapping[str, ColumnType]) -> None:
    """Raise UnsupportedTable when keys of a secondary index cannot be made of these columns of the table."""
    for index in secondary_indexes(metadata):
        if index.column not in columns:
            raise index.refused(f"its column {index.column} is no column of the table by itself")
        index.check(columns[index.column], "the table")


def placing_part(metadata: MetadataTable, partition: str) -> Callable[[str], str]:
    """A function that gives the part of a key that is hashed, in any metadata partition."""
    if not partition.startswith(SECONDARY_INDEX_PREFIX) or not secondary_index(metadata, partition).by_value:
        return str

    def value(key: str) -> str:
        found = _VALUE_OF_KEY.match(key)
        return found["value"] if found else key

    return value


def _check_values(reader: SliceReader, leaf: Node, index: SecondaryIndex) -> None:
    kind = parquet_type(leaf)
    index.check(kind, reader.full_path)
    if kind.kind in (Kind.DATE, Kind.TIMESTAMP) and reader.calendar.is_hybrid:
        raise index.refused(f"{reader.full_path} counts its dates in the old calendar")


def _escape(texts: pa.Array) -> pa.Array:
    for special in _ESCAPED:
        texts = pc.replace_substring(texts, special, "\\" + special)
    return texts
