"""One file of rows, read by the schema of all files: its columns by name, in any order, and its values in the types.

Texts of CSV and JSON are parsed into the types. Values of parquet and Arrow files are cast to them, but never from
numbers or times to texts, or back: such a file has another meaning than the first one.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ConfigError, CorruptFile, UnsupportedTable
from ..parquet.footer import read_footer
from ..parquet.range_source import RangeSource
from ..small_files import FileRanges
from ..storage import FileInfo, Storage
from .input_formats import (
    WrongValue,
    arrow_file,
    check_names,
    compression_of,
    csv_names,
    csv_texts,
    decompressed,
    has_lines,
    json_tables,
)
from .input_parquet import ParquetFile
from .input_types import Values, is_bytes, is_text, json_type, parsed, said_of, shown

_OTHER_COLUMNS = "write files of different columns one after the other"
_VALUES = "correct the values: the column has this type in the table, or in the first file"
_UTF_8 = "CSV and JSON are text in UTF-8; the name of a compressed file ends in .gz, .zst or .bz2"


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file of rows; of parquet `row_groups` are the first one of these rows and the number of them, None for all."""

    storage: Storage
    file: FileInfo
    kind: str
    row_groups: tuple[int, int] | None = None
    has_others: bool = False
    """Whether the file may have columns that the schema does not have: they are left out."""

    @property
    def where(self) -> str:
        return self.storage.full_path(self.file.path)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn an error of a reader in this context into a ConfigError."""
        try:
            yield
        except WrongValue as error:
            raise self._wrong(error.column, error.kind, error) from error
        except (CorruptFile, UnsupportedTable) as error:
            said = error.message.removeprefix(self.where).lstrip(": ")
            raise ConfigError(f"{self.where} cannot be read as {self.kind}: {said}", hint=error.hint) from error
        except (pa.ArrowException, OSError, ValueError) as error:
            said = (str(error).splitlines() or [type(error).__name__])[0]
            hint = _UTF_8 if isinstance(error, UnicodeDecodeError) else ""
            raise ConfigError(f"{self.where} cannot be read as {self.kind}: {said}", hint=hint) from error

    def open(self) -> "ParquetFile | pa.RecordBatchReader":
        """The open file, of parquet or Arrow: its `schema`, and its record batches when it is iterated over."""
        if self.kind == "parquet":
            return ParquetFile(self._source(), read_footer(self.storage, self.file.path, self.file.size)[0])
        opened = arrow_file(self._source())
        check_names(opened.schema)
        return opened

    def schema(self, uses: Callable[[str], bool]) -> pa.Schema:
        """The columns of a parquet or Arrow file that `uses` takes. Raises ConfigError, also for no type of Spark."""
        with self.reading():
            opened = self.open()
            found = pa.schema([field for field in opened.schema if uses(field.name)])
            if isinstance(opened, ParquetFile):
                opened.check(found.names)
            return found

    def csv_names(self) -> list[str]:
        """The columns of a CSV file, none for one without content. Raises ConfigError, also for two of one name."""
        with self.reading():
            names = csv_names(self._source())
        doubled = {name for name in names if names.count(name) > 1}
        if doubled:
            raise ConfigError(f"{self.where} has several columns called {min(doubled)}")
        return names

    def csv_texts(self, names: Sequence[str], texts: Collection[str]) -> Iterator[pa.RecordBatch]:
        """The rows of a CSV file whose columns are `names`: as bytes, those of the columns `texts` as texts."""
        with self.reading():
            yield from csv_texts(self._source(), names, {*names}.difference(texts))

    def json_tables(self, schema: pa.Schema | None = None) -> Iterator[tuple[bytes, pa.Table]]:
        """As `input_formats.json_tables`. Raises ConfigError."""
        with self.reading():
            yield from json_tables(self._source(), schema, ignores_others=self.has_others)

    def has_columns(self) -> bool:
        """Whether the file says which columns it has: an empty one of CSV or JSON does not. Raises ConfigError."""
        if self.kind == "csv":
            return bool(self.csv_names())
        with self.reading():
            return self.kind != "json" or has_lines(self._source())

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Its rows. Raises ConfigError for a file that cannot be read, and for another schema."""
        if self.kind == "csv":
            names = self.csv_names()
            if names:
                self._check_names(names, schema)
                texts = [field.name for field in schema if not is_bytes(field.type)]
                for batch in self.csv_texts(names, texts):
                    yield self._of_texts(batch, schema)
        elif self.kind == "json":
            plain = pa.schema([(field.name, json_type(field.type)) for field in schema])
            for _, table in self.json_tables(plain):
                for batch in table.to_batches():
                    yield self._of_texts(batch, schema)
        else:
            with self.reading():
                for batch in self._read(schema):
                    # Arrow trusts the bytes of these formats.
                    batch.validate(full=True)
                    yield self._cast(batch, schema)

    def _read(self, schema: pa.Schema) -> Iterable[pa.RecordBatch]:
        opened = self.open()
        if not isinstance(opened, ParquetFile):
            batches: Iterable[pa.RecordBatch] = opened
            return batches
        opened.check(schema.names)
        columns = schema.names if self.has_others else None
        return opened.of_row_groups(*(self.row_groups or (0, opened.num_row_groups)), columns)

    def _source(self) -> pa.NativeFile:
        source = pa.PythonFile(RangeSource(FileRanges(self.storage, self.file.path, self.file.size)), mode="r")
        codec = compression_of(self.file.name)
        return source if codec is None else decompressed(source, codec)

    def _check_names(self, names: Collection[str], schema: pa.Schema) -> None:
        wanted, own = {*schema.names}, {*names}
        different = wanted - own if self.has_others else wanted ^ own
        if different:
            raise ConfigError(
                f"{self.where} does not have the columns of the first file: {min(different)} is in only one of them",
                hint=_OTHER_COLUMNS,
            )

    def _of_texts(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        return pa.record_batch([self._parsed(batch.column(one.name), one) for one in schema], schema=schema)

    def _parsed(self, values: pa.Array, field: pa.Field) -> pa.Array:
        if values.type == field.type:
            return values
        try:
            if pa.types.is_string(values.type):
                return parsed(values, field.type, with_nulls=self.kind == "csv")
            return values.cast(field.type)
        except (pa.ArrowException, ValueError) as error:
            raise self._wrong(field.name, field.type, error) from error

    def _wrong(self, column: str, kind: pa.DataType, error: Exception) -> ConfigError:
        return ConfigError(
            f"{self.where}: column {column} has the type {shown(kind)}, and {said_of(error)}",
            hint=_UTF_8 if "UTF8" in str(error) else _VALUES,
        )

    def _cast(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        if batch.schema.equals(schema):
            return batch
        self._check_names(batch.schema.names, schema)
        chosen = batch.select(schema.names)
        try:
            for own, field in zip(chosen.schema, schema, strict=True):
                if not _same_meaning(own.type, field.type):
                    raise ValueError(f"column {own.name} is {shown(own.type)} here, and {shown(field.type)} there")
            cast = chosen.cast(schema)
            for name in schema.names:
                _check_rounding(name, chosen.column(name), cast.column(name))
        except (pa.ArrowException, ValueError) as error:
            raise ConfigError(
                f"{self.where} does not have the types of the first file: {str(error).splitlines()[0]}",
                hint=_OTHER_COLUMNS,
            ) from error
        return cast


def _same_meaning(own: pa.DataType, data_type: pa.DataType) -> bool:
    """Whether a cast keeps what values mean: numbers stay numbers, texts texts, and times times of the same kind."""
    if pa.types.is_dictionary(own) or pa.types.is_dictionary(data_type):
        own, data_type = (one.value_type if pa.types.is_dictionary(one) else one for one in (own, data_type))
        return _same_meaning(own, data_type)
    if pa.types.is_null(own) or own == data_type:
        return True
    if pa.types.is_struct(own) and pa.types.is_struct(data_type):
        parts = {one.name: one.type for one in data_type}
        return all(_same_meaning(one.type, parts[one.name]) for one in own if one.name in parts)
    if pa.types.is_map(own) and pa.types.is_map(data_type):
        return _same_meaning(own.key_type, data_type.key_type) and _same_meaning(own.item_type, data_type.item_type)
    if pa.types.is_nested(own) and pa.types.is_nested(data_type):
        lists = not any(
            pa.types.is_struct(one) or pa.types.is_map(one) or pa.types.is_union(one) for one in (own, data_type)
        )
        return lists and _same_meaning(own.value_type, data_type.value_type)
    return _meaning(own) == _meaning(data_type)


def _meaning(kind: pa.DataType) -> str:
    if is_text(kind) or is_bytes(kind):
        return "text"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_date(kind):
        return "date"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "instant"
    return str(kind)


def _check_rounding(name: str, own: Values, cast: Values) -> None:
    """Raise ValueError for values that have lost digits: of floats, Arrow does not see it."""
    if not (pa.types.is_floating(own.type) and pa.types.is_floating(cast.type)) or own.type == cast.type:
        return
    same = pc.or_(pc.equal(cast.cast(own.type), own), pc.is_nan(own))
    if not pc.all(same).as_py():
        raise ValueError(f"column {name} has values that a {shown(cast.type)} cannot hold")
