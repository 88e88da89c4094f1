"""Change data: log files beside a new base file, with the rows that a write inserted, updated or deleted in it.

The base file is finished before. Its merge is done once more, and gives the rows before and after it, some at a time;
nothing but one block is in memory. Each block is closed at a size, and so is each file, whose next one has the next
number; a merge that changed nothing leaves a block without records. All files are read back and compared.
Source: HoodieCDCLogger, HoodieMergeHandleWithChangeLog, FileGroupReaderBasedMergeHandle of Apache Hudi.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

import pyarrow as pa

from ..base_files.new_file import NewFile
from ..base_files.slices import RECORD_KEY
from ..codecs.row_hash import all_row_hashes
from ..commit.markers import create_marker
from ..errors import REPORT_IT, CheckFailed
from ..file_names import log_file_name, parse_base_file
from ..log_files.avro_columns import avro_decoder
from ..log_files.avro_encoding import flat
from ..log_files.change_schema import ChangesMode, change_schema
from ..log_files.data_blocks import avro_pieces
from ..log_files.log_blocks import BlockType, HeaderKey, LogBlock
from ..log_files.log_reader import scan_blocks
from ..log_files.log_writer import encode_block
from ..merging.merged_slice import MergedSlice
from ..merging.updates import Touched
from ..model import LogCounts, path_in
from ..parquet.conversion import converted_table
from ..parquet.file_schema import FileSchema
from ..rows.conservation import Checksum, checksum
from ..small_files import FileRanges
from ..storage import Storage
from ..table.view import CHANGE_DATA
from .data_block import AvroBlock
from .writer_schema import WriterSchema

_INSERT, _UPDATE, _DELETE = "iud"


@dataclass(frozen=True, slots=True)
class ChangesForm:
    """How a table logs changes: `mode`, the size at which a block is closed, and a file, and the kind of its marker."""

    mode: ChangesMode
    block_bytes: int
    file_bytes: int
    marker_kind: str


class ChangeLogs:
    """The change data of one new base file. Raises CheckFailed, and StorageError."""

    def __init__(self, storage: Storage, instant: str, schema: WriterSchema, form: ChangesForm, new: NewFile) -> None:
        base = parse_base_file(new.partition, new.name, new.size)
        assert base is not None, "it is the name of a base file"
        self._storage, self._instant, self._form, self._base = storage, instant, form, base
        self._text = change_schema(form.mode, schema.table.avro)
        self._decoder = avro_decoder(self._text, storage.full_path(new.path))
        self._arrow = self._decoder.as_written.arrow
        self._columns = schema.arrow.names
        self._images = schema.target
        self._block = AvroBlock(self._text)
        self._meant = Checksum()
        self._output: IO[bytes] | None = None
        self._size = 0
        self._closed: list[tuple[str, int]] = []
        self._inserts = self._deletes = 0

    # ---- changes

    def add_merge(self, merged: MergedSlice) -> None:
        """Log what a merge changes."""
        for before, after, touched in merged.touched_rows():
            self._add_touched(merged.keyed_schema, before, after, touched)
        for rows in merged.added_rows():
            self.add_inserts(merged.keyed_schema, rows)

    def add_inserts(self, schema: FileSchema, rows: pa.Table) -> None:
        """Log new rows in the raw form of `schema`, with their record keys."""
        self._inserts += rows.num_rows
        self._add(_INSERT, rows.column(RECORD_KEY), None, self._image(schema, rows))

    def _add_touched(self, schema: FileSchema, before: pa.Table, after: pa.Table, touched: Touched) -> None:
        gone = touched.deletes
        old = self._image(schema, before)
        keys = before.column(RECORD_KEY)
        if gone.any():
            self._deletes += int(gone.sum())
            self._add(_DELETE, keys.filter(pa.array(gone)), old.filter(pa.array(gone)), None)
        lives = pa.array(~gone)
        old, keys, new = old.filter(lives), keys.filter(lives), self._image(schema, after)
        wins = touched.wins[~gone]
        if not wins.all():
            # A row that wins all the same may have got values of the other one.
            changed = pa.array(wins | (all_row_hashes(old) != all_row_hashes(new)))
            old, new, keys = old.filter(changed), new.filter(changed), keys.filter(changed)
        self._add(_UPDATE, keys, old, new)

    def _image(self, schema: FileSchema, rows: pa.Table) -> pa.Table:
        return converted_table(rows, rows.num_rows, schema, schema.columns_of(self._columns), self._images)

    def _add(self, op: str, keys: pa.ChunkedArray, before: pa.Table | None, after: pa.Table | None) -> None:
        if not len(keys):
            return
        known = before if before is not None else after
        values = {
            "op": lambda: pa.repeat(pa.scalar(op), len(keys)),
            "ts_ms": lambda: pa.repeat(pa.scalar(self._instant), len(keys)),
            "record_key": lambda: flat(keys),
            "before": lambda: self._struct("before", known, is_null=before is None),
            "after": lambda: self._struct("after", known if after is None else after, is_null=after is None),
        }
        rows = pa.table([values[name]() for name in self._arrow.names], schema=self._arrow)
        self._meant += checksum(rows)
        at_once = max(1, rows.num_rows * self._form.block_bytes // max(1, rows.nbytes))
        for start in range(0, rows.num_rows, at_once):
            self._block.add(rows.slice(start, at_once))
            if self._block.size >= self._form.block_bytes:
                self._write_block()

    def _struct(self, name: str, image: pa.Table | None, *, is_null: bool) -> pa.Array:
        """Rows as one column; where they are null, `image` gives the children, which then mean nothing."""
        assert image is not None, "a change has a row before or after it"
        kind = self._arrow.field(name).type
        fields = [kind.field(i) for i in range(kind.num_fields)]
        children = [flat(image.column(field.name)) for field in fields]
        mask = pa.repeat(pa.scalar(True), image.num_rows) if is_null else None
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)

    # ---- files

    def _write_block(self) -> None:
        if self._output is not None and self._size > self._form.file_bytes:
            self._end_file()
        path = self._path(len(self._closed) + 1)
        if self._output is None:
            create_marker(self._storage, self._instant, path, self._form.marker_kind)
            self._output, self._size = self._storage.open_output(path), 0
        header = {HeaderKey.INSTANT_TIME: self._instant, HeaderKey.SCHEMA: self._text}
        self._size += self._output.write(encode_block(LogBlock(BlockType.CDC_DATA, header, self._block.content())))
        self._block = AvroBlock(self._text)

    def _end_file(self) -> None:
        assert self._output is not None, "a block was written"
        self._output.close()
        self._closed.append((self._path(len(self._closed) + 1), self._size))
        self._output = None

    def _path(self, number: int) -> str:
        base = self._base
        name = log_file_name(base.file_id, self._instant, number, base.write_token) + CHANGE_DATA
        return path_in(base.partition, name)

    def finish(self, counts: LogCounts) -> tuple[tuple[str, int], ...]:
        """Close the files, read them back and compare them; returns their paths and sizes. `counts` is what the merge
        said that it did. Raises CheckFailed where one of them differs."""
        if self._block.size or self._output is None:
            self._write_block()
        self._end_file()
        found = sum((self._read_back(path, size) for path, size in self._closed), start=Checksum())
        # Deletes of keys that no row has are counted, too.
        if found != self._meant or self._inserts != counts.inserts or self._deletes > counts.deletes:
            raise CheckFailed(
                f"{self._storage.full_path(self._closed[0][0])} does not hold the changes that were to be written "
                f"({found} are in it, {self._meant} were to be; {self._inserts} inserts and {self._deletes} deletes, "
                f"and the merge had {counts.inserts} and {counts.deletes})",
                hint=REPORT_IT,
            )
        return tuple(self._closed)

    def _read_back(self, path: str, size: int) -> Checksum:
        target, found = self._decoder.as_written, Checksum()
        for rows in self._records(path, size):
            columns = self._decoder.schema.columns_of(target.columns)
            found += checksum(converted_table(rows, rows.num_rows, self._decoder.schema, columns, target))
        return found

    def _records(self, path: str, size: int) -> Iterator[pa.Table]:
        full, read = self._storage.full_path(path), FileRanges(self._storage, path, size)
        for block in scan_blocks(read, size, full):
            if block.type is not BlockType.CDC_DATA or block.header.get(HeaderKey.SCHEMA) != self._text:
                raise CheckFailed(f"{full} has another block at {block.offset} than was written", hint=REPORT_IT)
            yield from avro_pieces(read, block, self._decoder)
