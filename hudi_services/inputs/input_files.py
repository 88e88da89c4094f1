"""Rows of files, for a write: parquet, CSV with a line of names, JSON with one object on each line, Arrow IPC.

    lake/new.parquet      a file
    lake/new              a folder: all files below it whose names do not begin with `_` or `.`
    lake/new/*/a-*.csv    files by pattern: * and ? do not match /, ** does; [ab] is one of these characters, [!ab] not

The files are read one after the other, in the order of their paths. All have one schema (`input_schema`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import itemgetter

import pyarrow as pa

from ..concurrency import at_once, one_ahead
from ..errors import ConfigError
from ..packing import pack
from ..storage import FileInfo, Storage
from ..stores import open_storage
from .input_file import InputFile
from .input_formats import FORMATS, TEXT_FORMATS, compression_of, format_of
from .input_parquet import ParquetFile
from .input_schema import schema_of
from .input_types import InputTypes

_PATTERN = re.compile(r"[*?\[]")
_TOKEN = re.compile(r"(\*\*|\*|\?|\[[^]/]+\])")
_MEANINGS = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
_LEAST_PART, _LARGEST_PART = 4 << 20, 128 << 20
"""Bytes of the files of one part, as Spark divides files (spark.sql.files.openCostInBytes, maxPartitionBytes)."""


@dataclass(frozen=True, slots=True)
class InputFiles:
    """Files of rows, which are read by one schema."""

    schema: pa.Schema
    files: Sequence[InputFile]

    @classmethod
    def of(cls, files: Sequence[InputFile], types: InputTypes) -> "InputFiles":
        """The files, with the schema that they have.

        Raises ConfigError for a file that cannot be read, as far as files are read for that, and NothingToDo where all
        are empty.
        """
        schema = schema_of(files, types)
        if types.only is not None and types.only.issuperset(schema.names):
            files = [replace(file, has_others=True) for file in files]
        return cls(schema, files)

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


def find_files(urls: Sequence[str], file_format: str = "") -> list[InputFile]:
    """The files at paths or URLs; `file_format` of `FORMATS`, "" goes by the names of the files.

    Raises ConfigError for no files, and for names of no format.
    """
    found = [InputFile(*one, _format_of(*one, file_format)) for url in urls for one in _files(url)]
    if not found:
        raise ConfigError(
            f"there are no files at {', '.join(urls)}",
            hint="check the path: a file, a folder that has files, or a pattern such as 'new/*.parquet'",
        )
    return found


def input_rows(urls: Sequence[str], file_format: str = "", types: InputTypes | None = None) -> pa.RecordBatchReader:
    """The rows of the files at paths or URLs. Raises what `find_files`, `InputFiles.of` and `InputFiles.rows` raise."""
    return InputFiles.of(find_files(urls, file_format), types or InputTypes()).rows()


def _pieces(most_bytes: int, file: InputFile) -> list[tuple[InputFile, int]]:
    """A file, or its row groups some at a time, with their bytes."""
    if file.kind != "parquet" or file.file.size <= most_bytes:
        return [(file, file.file.size)]
    with file.reading():
        opened = file.open()
        assert isinstance(opened, ParquetFile)
        sizes = opened.row_group_bytes()
    found = [
        (replace(file, row_groups=(groups[0][0], len(groups))), sum(size for _, size in groups))
        for groups in pack(enumerate(sizes), itemgetter(1), most_bytes)
    ]
    return found or [(file, file.file.size)]


def _files(url: str) -> list[tuple[Storage, FileInfo]]:
    folder, _, name = url.rstrip("/").rpartition("/")
    if name and not url.endswith("/"):
        # Also where the name looks like a pattern.
        storage = open_storage(folder or ("/" if url.startswith("/") else "."))
        file = storage.head(name)
        if file is not None:
            return [(storage, file)]
    pattern = _PATTERN.search(url)
    if pattern is not None:
        begin = url.rfind("/", 0, pattern.start()) + 1
        storage, matches = open_storage(url[:begin] or "."), _expression(url[begin:]).fullmatch
        return [(storage, file) for file in _visible(storage) if matches(file.path)]
    storage = open_storage(url)
    return [(storage, file) for file in _visible(storage)]


def _visible(storage: Storage) -> list[FileInfo]:
    files = storage.list_tree("")
    return sorted((one for one in files if not _is_hidden(one.path)), key=lambda one: one.path)


def _is_hidden(path: str) -> bool:
    return any(name.startswith(("_", ".")) for name in path.split("/"))


def _expression(pattern: str) -> re.Pattern[str]:
    """What paths match that match the pattern. Raises ConfigError for a range of characters that has no end."""
    try:
        return re.compile("".join(map(_meaning, _TOKEN.split(pattern))), re.DOTALL)
    except re.error as error:
        raise ConfigError(f"{pattern} is no pattern of file names: {error}") from error


def _meaning(token: str) -> str:
    if token in _MEANINGS:
        return _MEANINGS[token]
    if not _TOKEN.fullmatch(token):
        return re.escape(token)
    negation, characters = ("^/", token[2:-1]) if token[1] in "!^" and len(token) > 3 else ("", token[1:-1])
    return f"[{negation}{re.escape(characters).replace(chr(92) + '-', '-')}]"


def _format_of(storage: Storage, file: FileInfo, given: str) -> str:
    found, where = given or format_of(file.name), storage.full_path(file.path)
    if not found:
        raise ConfigError(
            f"{where} does not say by its name which format it has",
            hint=f"say it with --input-format: {', '.join(FORMATS)}",
        )
    if found not in TEXT_FORMATS and compression_of(file.name) is not None:
        raise ConfigError(
            f"{where} is compressed as a whole, and only {' and '.join(TEXT_FORMATS)} files are read so",
            hint="decompress it first",
        )
    return found
