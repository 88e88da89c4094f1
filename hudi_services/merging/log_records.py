"""The records of the log files of one slice as Arrow tables, with the facts that decide between them.

A table has the columns of the slice's schema (raw form) and the columns below. An entry of a delete block is a row with
nothing but its key.

    ENTRY       bool: an entry of a delete block
    DELETES     bool: the record deletes its key
    COMPARABLE  bool: its ordering value has the type of the ordering field
    UNORDERED   bool: it has no ordering value
    SUBSET      int16: the number of the set of columns that the record has, see `LogRecords.subsets`
    ORDER + n   its value of the n-th ordering field

Sources: HoodieDeleteBlock, DeleteContext, OrderingValues, HoodieAvroUtils.rewriteRecordWithNewSchema of Apache Hudi.
"""

import decimal
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..base_files.slices import RECORD_KEY
from ..errors import CorruptFile, UnsupportedTable
from ..log_files.avro_columns import avro_decoder
from ..log_files.data_blocks import avro_blocks, avro_pieces, avro_record_count, parquet_block
from ..log_files.delete_records import DeleteRecord, Wrapped, delete_records
from ..log_files.log_blocks import BlockPlace, BlockType, HeaderKey, LogBlock
from ..log_files.log_reader import Read
from ..parquet.conversion import converted_table
from ..parquet.file_schema import FileSchema
from ..parquet.node_types import parquet_type
from ..parquet.schema_versions import evolved_schema
from ..schema.column_type import Kind
from ..schema.schema_history import SchemaHistory
from ..table.support import WITH_HUDI
from .ordering import OrderingField
from .rules import DeleteMarker, Fill, MergeRule

KEY, PARTITION = RECORD_KEY, "_hoodie_partition_path"
IS_DELETED = "_hoodie_is_deleted"
ENTRY, DELETES, COMPARABLE, UNORDERED, SUBSET, ORDER = (
    f"hudi_services {name}" for name in ("entry", "deletes", "comparable", "unordered", "subset", "order ")
)
_DELETES_AT_ONCE = 16384
_RUN_BYTES = 8 << 20
_DECIMAL_SCALE = 15


def is_data(block: BlockPlace) -> bool:
    """Whether the block has records; otherwise it has only keys that are deleted."""
    return block.type is not BlockType.DELETE


def header_schema(block: BlockPlace) -> str:
    """The Avro schema of the records of a data block. Raises CorruptFile when it has none."""
    text = block.header.get(HeaderKey.SCHEMA)
    if text is None:
        raise CorruptFile(f"{block.path} has a data block without a schema at {block.offset}")
    return text


def records_of(
    read: Read, block: BlockPlace, history: SchemaHistory | None = None
) -> tuple[FileSchema, Iterator[pa.Table]]:
    """The schema and the records of a data block, in its raw form, in the columns of the newest version of `history`.

    Without a history its columns are as they were written.
    """
    if block.type is BlockType.AVRO_DATA:
        decoder = avro_decoder(header_schema(block), block.path)
        evolved = evolved_schema(decoder.schema, history, block.instant, block.path)
        schema = decoder.schema if evolved is None else evolved.given
        pieces = avro_pieces(read, block, decoder)
        return schema, (_evolved(decoder.schema, piece, block, history)[1] for piece in pieces)
    file = parquet_block(read, block)
    file = file.evolved(evolved_schema(file.schema, history, block.instant, block.path))
    return file.schema, (piece for group in range(len(file.row_groups)) for piece in file.pieces(group))


def record_count(read: Read, block: BlockPlace) -> int:
    """The records of a block without its deletes. Raises CorruptFile."""
    if not is_data(block):
        return 0
    if block.type is BlockType.AVRO_DATA:
        return avro_record_count(read, block)
    return sum(group.num_rows for group in parquet_block(read, block).row_groups)


def written_schemas(blocks: Iterable[BlockPlace], path: str, history: SchemaHistory | None = None) -> list[FileSchema]:
    """The schemas of records of blocks, each once, as those of base files; `path` is for messages.

    They have the columns of the newest version of `history`; without one, those that were written. Raises CorruptFile
    and UnsupportedTable.
    """
    found: dict[FileSchema, None] = {}
    for one, instant in dict.fromkeys((header_schema(block), block.instant) for block in blocks):
        written = avro_decoder(one, path).as_written
        evolved = evolved_schema(written, history, instant, path)
        found[written if evolved is None else evolved.given] = None
    return list(found)


def column_with_default(blocks: Iterable[BlockPlace]) -> str:
    """A column with a default value other than null in the schema of a block; "" when there is none."""
    fields = (one for text in dict.fromkeys(map(header_schema, blocks)) for one in json.loads(text)["fields"])
    return next((str(one["name"]) for one in fields if one.get("default") is not None), "")


def is_partial(block: BlockPlace) -> bool:
    """Whether the records of a data block have only some columns."""
    return block.header.get(HeaderKey.IS_PARTIAL, "").lower() == "true"


def deletes(rows: pa.Table, marker: DeleteMarker | None) -> pa.ChunkedArray:
    """Whether each row deletes its key: by `_hoodie_is_deleted`, or by the marker of the table."""
    found = pa.chunked_array([pa.repeat(pa.scalar(False), rows.num_rows)])
    if IS_DELETED in rows.column_names and pa.types.is_boolean(rows.schema.field(IS_DELETED).type):
        found = pc.or_(found, pc.fill_null(rows.column(IS_DELETED), False))
    if marker is not None and marker.field in rows.column_names:
        texts = rows.column(marker.field).cast(pa.string())
        if marker.ignores_case:
            texts = pc.utf8_lower(texts)
        value = marker.value.lower() if marker.ignores_case else marker.value
        found = pc.or_(found, pc.fill_null(pc.equal(texts, value), False))
    return found


@dataclass(slots=True)
class LogRecords:
    """Reads the records of blocks in the raw form of `schema`; the partition is that of the slice."""

    schema: FileSchema
    partition: str
    rule: MergeRule
    ordering: tuple[OrderingField, ...]
    history: SchemaHistory | None = None
    """Records have the columns of its newest version; without one, those that were written."""
    subsets: list[frozenset[str]] = field(default_factory=lambda: [frozenset()])
    """Sets of columns that records lack; 0 is the set of none."""

    def pieces(self, read: Read, block: BlockPlace) -> Iterator[pa.Table]:
        """The records of a data or delete block, in order, some at a time; `read` gives bytes of its file.

        Raises CorruptFile, UnsupportedTable and the errors of `read`.
        """
        if is_data(block):
            yield from self._data(read, block)
        else:
            yield from self._entries(read, block)

    def all(self, blocks: Sequence[BlockPlace], read_of: Callable[[BlockPlace], Read]) -> Iterator[pa.Table]:
        """The records of some blocks, in order, some at a time; `read_of` gives the bytes of a block's file.

        Raises as `pieces`.
        """
        for run in block_runs(blocks, self.history):
            try:
                found = self._together(run, read_of) if len(run) > 1 else None
            except CorruptFile:
                # The blocks one by one say which of them it is.
                found = None
            if found is not None:
                yield found
            else:
                for block in run:
                    yield from self.pieces(read_of(block), block)

    def _together(self, run: Sequence[BlockPlace], read_of: Callable[[BlockPlace], Read]) -> pa.Table:
        """The records of small blocks; those with records have one schema."""
        contents = [read_of(block)(block.offset, block.length) for block in run]
        data = [number for number, block in enumerate(run) if is_data(block)]
        deletes = [number for number, block in enumerate(run) if not is_data(block)]
        parts: dict[int, pa.Table] = {}
        if data:
            first = run[data[0]]
            decoder = avro_decoder(header_schema(first), first.path)
            records, counts = avro_blocks([run[n] for n in data], [contents[n] for n in data], decoder)
            schema, records = _evolved(decoder.schema, records, first, self.history)
            parts |= _parts(self._as_table(records, schema, first, 0), data, counts)
        entries = [list(_entries_of(run[n], contents[n])) for n in deletes]
        table = self._entry_table(list(chain.from_iterable(entries)))
        parts |= _parts(table, deletes, [len(of_block) for of_block in entries])
        return pa.concat_tables(parts[number] for number in range(len(run))).combine_chunks()

    def none(self) -> pa.Table:
        """A table without records."""
        return self._entry_table([])

    # ---- rows of a write

    def of_rows(self, rows: pa.Table) -> pa.Table:
        """The records of rows that are being written, in the raw form of `schema`; of keys alone, their deletes."""
        if rows.column_names == [KEY]:
            return self._deleted_keys(rows.column(KEY))
        return self._with_facts(rows, deletes(rows, self.rule.marker), 0)

    def _deleted_keys(self, keys: pa.ChunkedArray) -> pa.Table:
        count, schema = len(keys), self.schema.arrow
        table = pa.table([keys if f.name == KEY else pa.nulls(count, f.type) for f in schema], schema=schema)
        order = [pa.chunked_array([pa.nulls(count, one.arrow)]) for one in self.ordering]
        yes, no = np.ones(count, np.bool_), np.zeros(count, np.bool_)
        return _joined(table, yes, pa.chunked_array([pa.array(yes)]), no, yes, 0, order)

    # ---- data blocks

    def _data(self, read: Read, block: BlockPlace) -> Iterator[pa.Table]:
        found, pieces = records_of(read, block, self.history)
        subset = self._subset(block, found)
        for piece in pieces:
            yield self._as_table(piece, found, block, subset)

    def _as_table(self, records: pa.Table, schema: FileSchema, block: BlockPlace, subset: int) -> pa.Table:
        exact = self.rule.exact_floats and block.type is BlockType.AVRO_DATA
        columns = schema.columns_of(self.schema.columns)
        table = converted_table(records, records.num_rows, schema, columns, self.schema, exact_floats=exact)
        self._check(table, block)
        return self._with_facts(table, deletes(table, self.rule.marker), subset)

    def _subset(self, block: BlockPlace, schema: FileSchema) -> int:
        if not is_partial(block):
            return 0
        if self.rule.fill is not Fill.NOTHING:
            raise UnsupportedTable(
                f"{block.path} has a partial update at {block.offset}, and the table fills values of its records",
                hint=WITH_HUDI,
            )
        lacking = frozenset(self.schema.columns).difference(schema.columns)
        missing = [one.path[0] for one in self.ordering if one.path[0] in lacking]
        if missing:
            raise UnsupportedTable(
                f"{block.path} has a partial update at {block.offset} without the ordering field {missing[0]}",
                hint=WITH_HUDI,
            )
        if lacking not in self.subsets:
            self.subsets.append(lacking)
        return self.subsets.index(lacking)

    def _check(self, table: pa.Table, block: BlockPlace) -> None:
        if table.column(KEY).null_count:
            raise CorruptFile(f"{block.path} has a record without a key in the block at {block.offset}")
        if any(found != self.partition for found in pc.unique(table.column(PARTITION)).to_pylist()):
            raise CorruptFile(f"{block.path} has a record of another partition in the block at {block.offset}")

    def _with_facts(self, table: pa.Table, deletes: pa.ChunkedArray, subset: int) -> pa.Table:
        rows = table.num_rows
        # Hudi's default ordering value is the int 0, and a null counts as the default.
        order = [pc.fill_null(one.values(table), 0) if one.is_int else one.values(table) for one in self.ordering]
        nulls = np.zeros(rows, np.bool_)
        for values in order:
            nulls |= pc.is_null(values).to_numpy()
        unordered, comparable = nulls, ~nulls
        if len(self.ordering) == 1 and self.ordering[0].is_int:
            unordered = pc.equal(order[0], 0).to_numpy()
        return _joined(table, np.zeros(rows, np.bool_), deletes, comparable, unordered, subset, order)

    # ---- delete blocks

    def _entries(self, read: Read, block: BlockPlace) -> Iterator[pa.Table]:
        entries = _entries_of(block, read(block.offset, block.length))
        while some := list(islice(entries, _DELETES_AT_ONCE)):
            yield self._entry_table(some)

    def _entry_table(self, records: Sequence[DeleteRecord]) -> pa.Table:
        rows = len(records)
        keys = pa.array([record.key for record in records], pa.string())
        arrays = [keys if f.name == KEY else pa.nulls(rows, f.type) for f in self.schema.arrow]
        table = pa.table(arrays, schema=self.schema.arrow)
        count = len(self.ordering)
        wrapped = [record.ordering if _is_ordered(record, count) else None for record in records]
        unordered = np.array([one is None for one in wrapped], np.bool_)
        comparable = ~unordered
        order = []
        for i, one in enumerate(self.ordering):
            values = [found[i] if found is not None else None for found in wrapped]
            comparable &= np.array([v is not None and v[0] in one.wrappers for v in values], np.bool_)
            order.append(pa.chunked_array([_unwrapped(values, one)]))
        deletes = pa.chunked_array([pa.repeat(pa.scalar(True), rows)])
        return _joined(table, np.ones(rows, np.bool_), deletes, comparable, unordered, 0, order)


def block_runs(blocks: Iterable[BlockPlace], history: SchemaHistory | None = None) -> Iterator[list[BlockPlace]]:
    """Neighbours that are read together: small blocks, with records of the same columns, or with deleted keys."""
    run: list[BlockPlace] = []
    size, schema = 0, None
    for block in blocks:
        text = _columns_of(block, history) if is_data(block) else schema
        small = block.type in (BlockType.AVRO_DATA, BlockType.DELETE) and not is_partial(block)
        if run and (not small or size + block.length > _RUN_BYTES or (schema is not None and text != schema)):
            yield run
            run, size, schema = [], 0, None
        if small:
            run.append(block)
            size, schema = size + block.length, text if is_data(block) else schema
        else:
            yield [block]
    if run:
        yield run


def _evolved(
    schema: FileSchema, records: pa.Table, block: BlockPlace, history: SchemaHistory | None
) -> tuple[FileSchema, pa.Table]:
    """Records of a block, in the raw form of `schema`, in the columns of the newest version of `history`."""
    evolved = evolved_schema(schema, history, block.instant, block.path)
    if evolved is None or history is None:
        return schema, records
    return evolved.given, evolved.table(records, exact_floats=history.exact_floats)


def _columns_of(block: BlockPlace, history: SchemaHistory | None) -> tuple[str, int]:
    """What says which columns the records of a block have: their schema, and its version."""
    return header_schema(block), 0 if history is None else history.at(block.instant).id


def _parts(table: pa.Table, blocks: Sequence[int], counts: Sequence[int]) -> dict[int, pa.Table]:
    """The records of each of the blocks with these numbers, which have so many each, in order."""
    starts = accumulate(counts, initial=0)
    return {block: table.slice(start, count) for block, start, count in zip(blocks, starts, counts, strict=False)}


def _entries_of(block: BlockPlace, content: bytes) -> Iterator[DeleteRecord]:
    return delete_records(LogBlock(block.type, block.header, content, block.path, block.offset))


def _is_ordered(record: DeleteRecord, fields: int) -> bool:
    """Whether a delete entry has ordering values: not none, and not the default, the int 0."""
    return len(record.ordering) == fields and record.ordering != (("IntWrapper", 0),) and None not in record.ordering


def _unwrapped(values: Sequence[Wrapped], ordering: OrderingField) -> pa.Array:
    """The values as those of the ordering field; null where a value is of a type that has no meaning there."""
    kind = ordering.arrow
    leaf = parquet_type(ordering.leaf).kind
    plain: list[Any] = [None if value is None else _value(value, leaf) for value in values]
    if leaf is Kind.DECIMAL:
        return pa.array(plain, pa.decimal256(76, 38)).cast(kind)
    if pa.types.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array(plain, width).view(kind)
    return pa.array(plain, kind)


_OF_KIND = {
    Kind.BOOLEAN: {"BooleanWrapper"},
    Kind.STRING: {"StringWrapper"},
    Kind.DECIMAL: {"DecimalWrapper"},
    Kind.FLOAT: {"FloatWrapper", "IntWrapper", "LongWrapper"},
    Kind.DOUBLE: {"FloatWrapper", "DoubleWrapper", "IntWrapper", "LongWrapper"},
}
_INTEGERS = {"IntWrapper", "LongWrapper", "DateWrapper", "TimeMicrosWrapper", "TimestampMicrosWrapper"}


def _value(value: tuple[str, Any], kind: Kind) -> Any:
    name, content = value
    if name not in _OF_KIND.get(kind, _INTEGERS):
        return None
    if kind is Kind.DECIMAL:
        return decimal.Decimal(int.from_bytes(content, "big", signed=True)).scaleb(-_DECIMAL_SCALE)
    return float(content) if kind in (Kind.FLOAT, Kind.DOUBLE) else content


def _joined(
    table: pa.Table,
    entry: Any,
    deletes: pa.ChunkedArray,
    comparable: Any,
    unordered: Any,
    subset: int,
    order: Sequence[pa.ChunkedArray],
) -> pa.Table:
    facts = {
        ENTRY: pa.array(entry),
        DELETES: deletes,
        COMPARABLE: pa.array(comparable),
        UNORDERED: pa.array(unordered),
        SUBSET: pa.array(np.full(table.num_rows, subset, np.int16)),
    }
    facts |= {f"{ORDER}{i}": values for i, values in enumerate(order)}
    for name, values in facts.items():
        table = table.append_column(name, values)
    return table
