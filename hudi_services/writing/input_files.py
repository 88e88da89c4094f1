"""Rows of files, for a write: parquet, CSV with a line of names, JSON with one object on each line, Arrow IPC.

    lake/new.parquet      a file
    lake/new              a folder: all files below it whose names do not begin with `_` or `.`
    lake/new/*/a-*.csv    files by pattern: * and ? do not match /, ** does

The files are read one after the other, in the order of their paths. All have the schema of the first one.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from ..concurrency import at_once, one_ahead
from ..errors import ConfigError
from ..files.range_source import RangeSource
from ..object_storage import ObjectStorage
from ..packing import pack
from ..storage import FileInfo

FORMATS: Mapping[str, tuple[str, ...]] = {
    "parquet": (".parquet", ".parq"),
    "csv": (".csv",),
    "json": (".json", ".jsonl", ".ndjson"),
    "arrow": (".arrow", ".feather", ".ipc"),
}
"""The formats, and the ends of the names of their files."""
_PATTERN = re.compile(r"[*?\[]")
_LEAST_PART, _LARGEST_PART = 4 << 20, 128 << 20
"""Bytes of the files of one part, as Spark divides files (spark.sql.files.openCostInBytes, maxPartitionBytes)."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file of rows; of parquet `row_groups` are the first one of these rows and the number of them, None for all."""

    storage: ObjectStorage
    file: FileInfo
    kind: str
    row_groups: tuple[int, int] | None = None

    @property
    def where(self) -> str:
        return self.storage.full_path(self.file.path)

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Its rows. Raises ConfigError for a file that cannot be read, and for another schema."""
        try:
            opened = _open(self)
            for batch in opened if self.row_groups is None else opened.of_row_groups(*self.row_groups):
                yield _alike(batch, schema, self.where)
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(self, error) from error


@dataclass(frozen=True, slots=True)
class InputFiles:
    """Files of rows, which all have the schema of the first one."""

    schema: pa.Schema
    files: Sequence[InputFile]

    @classmethod
    def at(cls, urls: Sequence[str], file_format: str = "") -> "InputFiles":
        """The files at paths or URLs; `file_format` of `FORMATS`, "" goes by the names of the files.

        Raises ConfigError for no files, names of no format, and a first file that cannot be read.
        """
        found = [(storage, file) for url in urls for storage, file in _files(url)]
        if not found:
            raise ConfigError(f"there are no files at {', '.join(urls)}")
        files = [InputFile(*one, _format_of(*one, file_format)) for one in found]
        try:
            return cls(_open(files[0]).schema, files)
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(files[0], error) from error

    def rows(self) -> pa.RecordBatchReader:
        """All rows. Raises ConfigError while they are read, as `InputFile.batches`."""
        batches = (batch for file in self.files for batch in file.batches(self.schema))
        # To read takes as long as what is done with the rows.
        return pa.RecordBatchReader.from_batches(self.schema, one_ahead(batches))

    def parts(self, tasks: int) -> list[list[InputFile]]:
        """The files in parts for tasks, `tasks` of which run at once: of 4 to 128 MiB, where that can be.

        Parquet is divided at its row groups, other files never. Raises ConfigError for a file that cannot be read.
        """
        share = -(-sum(file.file.size for file in self.files) // tasks)
        most_bytes = min(_LARGEST_PART, max(_LEAST_PART, share))
        pieces = chain.from_iterable(at_once(partial(_pieces, most_bytes), self.files))
        return [[piece for piece, _ in part] for part in pack(pieces, itemgetter(1), most_bytes)]


def input_rows(urls: Sequence[str], file_format: str = "") -> pa.RecordBatchReader:
    """The rows of the files at paths or URLs. Raises ConfigError as `InputFiles.at` and `InputFiles.rows`."""
    return InputFiles.at(urls, file_format).rows()


def _pieces(most_bytes: int, file: InputFile) -> list[tuple[InputFile, int]]:
    """A file, or its row groups some at a time, with their bytes."""
    if file.kind != "parquet" or file.file.size <= most_bytes:
        return [(file, file.file.size)]
    try:
        sizes = _open(file).row_group_bytes()
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(file, error) from error
    found = [
        (replace(file, row_groups=(groups[0][0], len(groups))), sum(size for _, size in groups))
        for groups in pack(enumerate(sizes), itemgetter(1), most_bytes)
    ]
    return found or [(file, file.file.size)]


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


def _format_of(storage: ObjectStorage, file: FileInfo, given: str) -> str:
    found = given or next((name for name, ends in FORMATS.items() if file.name.lower().endswith(ends)), "")
    if not found:
        raise ConfigError(
            f"{storage.full_path(file.path)} does not say by its name which format it has",
            hint=f"name the format: {', '.join(FORMATS)}",
        )
    return found


def _open(one: InputFile) -> Any:
    """The open file: its `schema`, and its record batches when it is iterated over."""
    return _OPENERS[one.kind](pa.PythonFile(RangeSource(one.storage, one.file.path, one.file.size), mode="r"))


def _unreadable(one: InputFile, error: Exception) -> ConfigError:
    return ConfigError(f"{one.where} cannot be read as {one.kind}: {str(error).splitlines()[0]}")


class _ParquetFile:
    def __init__(self, source: pa.NativeFile) -> None:
        self._file = pq.ParquetFile(source, pre_buffer=True)
        self.schema = self._file.schema_arrow

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self.of_row_groups(0, self._file.num_row_groups)

    def of_row_groups(self, first: int, count: int) -> Iterator[pa.RecordBatch]:
        # One after the other: Arrow holds the stored bytes of all row groups that it is asked for.
        for number in range(first, first + count):
            yield from self._file.iter_batches(row_groups=[number])

    def row_group_bytes(self) -> list[int]:
        """The bytes of each row group as stored."""
        of_all = self._file.metadata
        groups = map(of_all.row_group, range(of_all.num_row_groups))
        return [sum(one.column(n).total_compressed_size for n in range(one.num_columns)) for one in groups]


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
