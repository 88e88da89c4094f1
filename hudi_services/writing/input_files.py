"""Rows of files, for a write: parquet, CSV with a line of names, JSON with one object on each line, Arrow IPC.

    lake/new.parquet      a file
    lake/new              a folder: all files below it whose names do not begin with `_` or `.`
    lake/new/*/a-*.csv    files by pattern: * and ? do not match /, ** does

The files are read one after the other, in the order of their paths. All have the schema of the first one.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from ..errors import ConfigError
from ..files.range_source import RangeSource
from ..object_storage import ObjectStorage
from ..storage import FileInfo

FORMATS: Mapping[str, tuple[str, ...]] = {
    "parquet": (".parquet", ".parq"),
    "csv": (".csv",),
    "json": (".json", ".jsonl", ".ndjson"),
    "arrow": (".arrow", ".feather", ".ipc"),
}
"""The formats, and the ends of the names of their files."""
_PATTERN = re.compile(r"[*?\[]")


def input_rows(urls: Sequence[str], file_format: str = "") -> pa.RecordBatchReader:
    """The rows of the files at paths or URLs; `file_format` of `FORMATS`, "" goes by the names of the files.

    Raises ConfigError for no files, names of no format, a file that cannot be read, and for another schema than that of
    the first file; the last two also while the rows are read.
    """
    found = [(storage, file) for url in urls for storage, file in _files(url)]
    if not found:
        raise ConfigError(f"there are no files at {', '.join(urls)}")
    storage, first = found[0]
    schema = _open(storage, first, file_format).schema

    def batches() -> Iterator[pa.RecordBatch]:
        for where, file in found:
            for batch in _read(where, file, file_format):
                yield _alike(batch, schema, where.full_path(file.path))

    return pa.RecordBatchReader.from_batches(schema, batches())


def _files(url: str) -> list[tuple[ObjectStorage, FileInfo]]:
    pattern = _PATTERN.search(url)
    if pattern is not None:
        begin = url.rfind("/", 0, pattern.start()) + 1
        storage, matches = ObjectStorage(url[:begin] or "."), re.compile(_regex(url[begin:])).fullmatch
        return [(storage, file) for file in _visible(storage) if matches(file.path)]
    folder, _, name = url.rstrip("/").rpartition("/")
    if name and not url.endswith("/"):
        storage = ObjectStorage(folder or ("/" if url.startswith("/") else "."))
        file = storage.head(name)
        if file is not None:
            return [(storage, file)]
    storage = ObjectStorage(url)
    return [(storage, file) for file in _visible(storage)]


def _visible(storage: ObjectStorage) -> list[FileInfo]:
    files = storage.list_tree("")
    return sorted((one for one in files if not _is_hidden(one.path)), key=lambda one: one.path)


def _is_hidden(path: str) -> bool:
    return any(name.startswith(("_", ".")) for name in path.split("/"))


def _regex(pattern: str) -> str:
    """A regular expression for paths that match the pattern."""
    tokens = re.split(r"(\*\*|\*|\?|\[[^]]+\])", pattern)
    meanings = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(meanings.get(one) or (one if one.startswith("[") else re.escape(one)) for one in tokens)


def _format_of(file: FileInfo, given: str, where: str) -> str:
    found = given or next((name for name, ends in FORMATS.items() if file.name.lower().endswith(ends)), "")
    if not found:
        raise ConfigError(
            f"{where} does not say by its name which format it has", hint=f"name the format: {', '.join(FORMATS)}"
        )
    return found


def _open(storage: ObjectStorage, file: FileInfo, given: str) -> Any:
    """The open file: its `schema`, and its record batches when it is iterated over."""
    where = storage.full_path(file.path)
    kind = _format_of(file, given, where)
    source = pa.PythonFile(RangeSource(storage, file.path, file.size), mode="r")
    try:
        return _OPENERS[kind](source)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(where, kind, error) from error


def _read(storage: ObjectStorage, file: FileInfo, given: str) -> Iterator[pa.RecordBatch]:
    where = storage.full_path(file.path)
    try:
        yield from _open(storage, file, given)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(where, _format_of(file, given, where), error) from error


def _unreadable(where: str, kind: str, error: Exception) -> ConfigError:
    return ConfigError(f"{where} cannot be read as {kind}: {str(error).splitlines()[0]}")


class _ParquetFile:
    def __init__(self, source: pa.NativeFile) -> None:
        self._file = pq.ParquetFile(source, pre_buffer=True)
        self.schema = self._file.schema_arrow

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(self._file.iter_batches())


def _arrow_file(source: pa.NativeFile) -> Any:
    try:
        file = pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_stream(source)
    return pa.RecordBatchReader.from_batches(
        file.schema, (file.get_batch(number) for number in range(file.num_record_batches))
    )


_OPENERS = {
    "parquet": _ParquetFile,
    "csv": pyarrow.csv.open_csv,
    "json": pyarrow.json.open_json,
    "arrow": _arrow_file,
}


def _alike(batch: pa.RecordBatch, schema: pa.Schema, where: str) -> pa.RecordBatch:
    if batch.schema.equals(schema):
        return batch
    hint = "write files of different columns one after the other"
    different = {*batch.schema.names}.symmetric_difference(schema.names)
    if different:
        raise ConfigError(
            f"{where} does not have the columns of the first file: {min(different)} is in only one of them", hint=hint
        )
    try:
        return batch.select(schema.names).cast(schema)
    except pa.ArrowException as error:
        raise ConfigError(
            f"{where} does not have the types of the first file: {str(error).splitlines()[0]}", hint=hint
        ) from error
