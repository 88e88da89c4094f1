"""The files outside of a bootstrapped table that have the columns of its rows, by the table's bootstrap index.

A table that was bootstrapped by metadata alone has base files of the instant 00000000000001 with the meta columns only.
The n-th row of such a file belongs to the n-th row of its source file, which an HFile names:

    .hoodie/.aux/.bootstrap/.partitions/…_00000000000001.hfile
    key     part=<partition path of the table>
    value   an Avro file with one HoodieBootstrapPartitionMetadata: bootstrapPartitionPath, below the folder of the
            sources, and fileIdToBootstrapFile, a HoodieFileStatus (path.uri, length) by file id

Columns of the partition path that the source files do not have are texts of the path.
Source: HFileBootstrapIndex, AbstractTableFileSystemView.addBootstrapBaseFileIfPresent of Apache Hudi 0.15.0 to 1.2.0.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ..codecs import avro
from ..computed_once import cached_property
from ..errors import CorruptFile
from ..model import BOOTSTRAP_INSTANT, SourceFile, path_in
from ..paths import TABLE_FOLDER
from ..storage import FileInfo, Storage
from ..table_config import TableConfig

if TYPE_CHECKING:
    from ..hfile.hfile_reader import HFileReader

BASE_PATH = "hoodie.bootstrap.base.path"
_FOLDER = f"{TABLE_FOLDER}/.aux/.bootstrap/.partitions"
_FILE = f"{_FOLDER}/00000000-0000-0000-0000-000000000000-0_1-0-1_{BOOTSTRAP_INSTANT}.hfile"
_DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"


class BootstrapIndex:
    """The bootstrap index of a table; it is read when it is first asked for."""

    def __init__(self, storage: Storage, config: TableConfig) -> None:
        self._storage = storage
        self._config = config

    @property
    def is_there(self) -> bool:
        """Whether the table has base files whose columns are elsewhere. Raises StorageError."""
        return self._file is not None

    def sources(self, partition: str) -> Mapping[str, SourceFile]:
        """The source files of a partition of the table, by file id. Raises CorruptFile and StorageError."""
        value = None if self._reader is None else self._reader.get(f"part={partition}".encode())
        if value is None:
            return {}
        path = self._storage.full_path(_FILE)
        tree = avro.read_container(value, path)
        try:
            folder, columns = str(tree["bootstrapPartitionPath"] or ""), self._path_columns(partition)
            files = dict(tree["fileIdToBootstrapFile"] or {})
            return {file_id: _source(folder, one, columns) for file_id, one in files.items()}
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptFile(f"{path} does not name the source files of the partition {partition!r}") from error

    @cached_property
    def _file(self) -> FileInfo | None:
        return self._storage.head(_FILE) if self._config.raw.get(BASE_PATH) else None

    @cached_property
    def _reader(self) -> "HFileReader | None":
        # Commands that need no Arrow read tables, too.
        from ..hfile.hfile_ranges import StoredRanges
        from ..hfile.hfile_reader import HFileReader

        if self._file is None:
            return None
        return HFileReader(StoredRanges(self._storage, _FILE, self._file.size), self._storage.full_path(_FILE))

    def _path_columns(self, partition: str) -> tuple[tuple[str, str | None], ...]:
        names, parts = self._config.partition_fields, partition.split("/")
        if len(parts) != len(names):
            return ()
        return tuple((name, self._text(name, part)) for name, part in zip(names, parts, strict=True))

    def _text(self, name: str, part: str) -> str | None:
        # The folders of the source are kept as they are, whatever the style of the table.
        shown = part.removeprefix(f"{name}=")
        found = unquote(shown) if self._config.version.bootstrap_unescapes else shown
        return None if found == _DEFAULT_PARTITION else found


def _source(folder: str, status: Mapping[str, Any], columns: tuple[tuple[str, str | None], ...]) -> SourceFile:
    uri = str(status["path"]["uri"])
    name = unquote(uri.rpartition("/")[2])
    return SourceFile(path_in(folder, name), uri, int(status["length"] or 0), columns)
