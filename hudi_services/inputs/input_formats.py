"""The formats of files with rows: how a name says which one it is, and what reads each.

CSV is read as texts alone, and JSON by a schema: which types the values have is decided elsewhere (`input_types`).
JSON has one object on each line, so that whole lines are read and parsed a few megabytes at a time.
"""

import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

FORMATS: Mapping[str, tuple[str, ...]] = {
    "parquet": (".parquet", ".parq"),
    "csv": (".csv",),
    "json": (".json", ".jsonl", ".ndjson"),
    "arrow": (".arrow", ".feather", ".ipc"),
}
"""The formats, and the ends of the names of their files."""
TEXT_FORMATS = ("csv", "json")
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}

_MARK = b"\xef\xbb\xbf"
"""The byte order mark, with which some programs begin a file in UTF-8."""
_HEAD, _HEAD_BLOCK = 1 << 20, 1 << 16
_LONGEST_ROW = 8 << 20
"""Bytes of a block of CSV, which holds at least one row."""
_CHUNK, _LONGEST_LINE = 4 << 20, 64 << 20
_TAIL = 1 << 12
_LINE_BREAKS = pyarrow.csv.ParseOptions(newlines_in_values=True)
_ROW = re.compile(r" in row (\d+)")
_COLUMN = re.compile(r"In CSV column #(\d+): (.*)")


class WrongValue(ValueError):
    """A column has a value that is none of its type `kind`."""

    def __init__(self, column: str, kind: pa.DataType, said: str) -> None:
        super().__init__(said)
        self.column = column
        self.kind = kind


def format_of(name: str) -> str:
    """The format that a file of this name has, "" where it does not say so."""
    plain = name.lower()
    end = next((one for one in _COMPRESSIONS if plain.endswith(one)), "")
    plain = plain.removesuffix(end)
    return next((found for found, ends in FORMATS.items() if plain.endswith(ends)), "")


def compression_of(name: str) -> str | None:
    """How a file of this name is compressed, None for not at all."""
    return next((codec for end, codec in _COMPRESSIONS.items() if name.lower().endswith(end)), None)


def decompressed(source: pa.NativeFile, codec: str) -> pa.NativeFile:
    """What was compressed. Arrow asks for a few kilobytes at a time, and each read is a request to the store."""
    return pa.CompressedInputStream(pa.BufferedInputStream(source, _CHUNK), codec)


# ----------------------------------------------------------------------------------------------------------- Arrow IPC


def arrow_file(source: pa.NativeFile) -> pa.RecordBatchReader:
    """The rows of an Arrow file, or of an Arrow stream."""
    try:
        file = pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_stream(source)
    return pa.RecordBatchReader.from_batches(
        file.schema, (file.get_batch(number) for number in range(file.num_record_batches))
    )


def check_names(fields: Iterable[pa.Field]) -> None:
    """Raise UnicodeDecodeError for a name that is no text, on any level: Arrow takes it as it is."""
    for _, kind in [(field.name, field.type) for field in fields]:
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if pa.types.is_map(kind):
            check_names((kind.key_field, kind.item_field))
        elif pa.types.is_struct(kind) or pa.types.is_union(kind):
            check_names(kind.field(number) for number in range(kind.num_fields))
        elif pa.types.is_nested(kind):
            check_names((kind.value_field,))


# ----------------------------------------------------------------------------------------------------------------- CSV


def csv_names(source: pa.NativeFile) -> list[str]:
    """The names in the first line; none for a file without content. Reads the head of the file."""
    head = source.read(_HEAD)
    if not head.removeprefix(_MARK).strip():
        return []
    try:
        return _csv_names(head, _HEAD_BLOCK)
    except pa.ArrowInvalid:
        # A row may be longer than this block, or the only line has no end. Any other error is there again.
        try:
            return _csv_names(head + source.read(2 * _LONGEST_ROW) + b"\n", _LONGEST_ROW)
        except pa.ArrowInvalid as error:
            raise _csv_error(error, ()) from error


def _csv_names(head: bytes, block: int) -> list[str]:
    options = pyarrow.csv.ReadOptions(block_size=block)
    reader = pyarrow.csv.open_csv(pa.BufferReader(head), read_options=options, parse_options=_LINE_BREAKS)
    return list(reader.schema.names)


def csv_texts(source: pa.NativeFile, names: Sequence[str], binary: Collection[str] = ()) -> Iterator[pa.RecordBatch]:
    """The rows of a CSV file whose columns have these names: texts alone, of the columns `binary` the plain bytes.

    Raises pa.ArrowException, and WrongValue for bytes that are no text.
    """
    types = {name: pa.binary() if name in binary else pa.string() for name in names}
    watched, last = _Watched(source), None
    try:
        # By threads, Arrow would read as many blocks ahead as there are cores.
        for batch in pyarrow.csv.open_csv(
            pa.PythonFile(watched, mode="r"),
            read_options=pyarrow.csv.ReadOptions(block_size=_LONGEST_ROW, use_threads=False),
            parse_options=_LINE_BREAKS,
            convert_options=pyarrow.csv.ConvertOptions(column_types=types),
        ):
            last = batch if batch.num_rows else last
            yield batch
    except pa.ArrowInvalid as error:
        if "Empty CSV file" not in str(error):  # There are names, and no row.
            raise _csv_error(error, names) from error
    # Arrow takes all rows behind a quote that has no end for one value.
    value = b"" if last is None else last.columns[-1][-1].cast(pa.binary()).as_py()
    if b"\n" in value and not watched.end.rstrip().endswith(b'"'):
        raise ValueError("a quote has no end")


class _Watched(io.RawIOBase):
    """What is read of a file, whose last bytes are then known."""

    def __init__(self, source: pa.NativeFile) -> None:
        super().__init__()
        self._source = source
        self.end = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = bytes(self._source.read(size))
        self.end = (self.end + data)[-_TAIL:] if len(data) < _TAIL else data[-_TAIL:]
        return data


def _csv_error(error: Exception, names: Sequence[str]) -> ValueError:
    """The error with the name of the column in place of its number."""
    said = str(error).splitlines()[0]
    if "straddling" in said:
        return ValueError(f"a row has more than {_LONGEST_ROW >> 20} MiB, or a quote has no end")
    found = _COLUMN.match(said)
    if found is None or int(found[1]) >= len(names):
        return ValueError(said)
    return WrongValue(names[int(found[1])], pa.string(), found[2])


# ---------------------------------------------------------------------------------------------------------------- JSON


def json_tables(
    source: pa.NativeFile, schema: pa.Schema | None = None, *, ignores_others: bool = False
) -> Iterator[tuple[bytes, pa.Table]]:
    """The rows of a JSON file piece by piece, each with its text; without `schema` as Arrow guesses them for the piece.

    `ignores_others`: fields that are not in the schema are left out, else they are errors. Raises ValueError, and
    WrongValue for a value that is none of the schema.
    """
    rows = 0
    for text in _lines(source):
        text.decode()  # Arrow does not look whether texts are UTF-8.
        try:
            table = _json_table(text, schema, "ignore" if ignores_others else "error")
        except pa.ArrowInvalid as error:
            raise _json_error(text, schema, rows, error) from error
        rows += table.num_rows
        if schema is not None:
            _check_json_numbers(text, table)
        yield text, table


def has_lines(source: pa.NativeFile) -> bool:
    """Whether a JSON file has any content."""
    return next(_lines(source), None) is not None


def _lines(source: pa.NativeFile) -> Iterator[bytes]:
    """The content in pieces of whole lines, none of which is blank. Raises ValueError for a line that is too long."""
    rest, mark = b"", _MARK
    while data := source.read(_CHUNK):
        data, mark = data.removeprefix(mark), b""
        end = data.rfind(b"\n") + 1
        text, rest = (rest + data[:end], data[end:]) if end else (b"", rest + data)
        if len(rest) > _LONGEST_LINE:
            raise ValueError(f"a line has more than {_LONGEST_LINE >> 20} MiB")
        if text.strip():
            yield text
    if rest.strip():
        yield rest


def _json_table(text: bytes, schema: pa.Schema | None, others: str) -> pa.Table:
    # One block: pieces of a row are in no other one.
    return pyarrow.json.read_json(
        pa.BufferReader(text),
        read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(text) + 1),
        parse_options=pyarrow.json.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="infer" if schema is None else others
        ),
    )


def _check_json_numbers(text: bytes, table: pa.Table) -> None:
    """Raise WrongValue for a number that is too large for its type: Arrow does not see all of them."""
    for field, column in zip(table.schema, table.columns, strict=True):
        is_wrong = pa.types.is_float32(field.type) and b"Inf" not in text and pc.any(pc.is_inf(column)).as_py()
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            is_wrong = True
        if is_wrong:
            raise WrongValue(field.name, field.type, "a number is too large for this type")


def _json_error(text: bytes, schema: pa.Schema | None, rows: int, error: Exception) -> ValueError:
    """An error with the number of the row in the file, or with the column, which Arrow does not name."""
    said = str(error).splitlines()[0]
    if schema is not None and "unexpected field" in said:
        others = {*_json_table(text, None, "infer").schema.names} - {*schema.names}
        return ValueError(f"it has the field {min(others)}, and the first file does not" if others else said)
    if "JSON parse error" in said:
        return ValueError(_ROW.sub(lambda found: f" in row {rows + int(found[1]) + 1}", said))
    for field in schema or ():
        try:
            _json_table(text, pa.schema([field]), "ignore")
        except pa.ArrowInvalid as of_field:
            return WrongValue(field.name, field.type, str(of_field).splitlines()[0])
    return ValueError(said)
