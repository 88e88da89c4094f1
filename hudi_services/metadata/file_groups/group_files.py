"""The files of file groups of the metadata table, read from storage or from the cache of this process.

A base file or log file never changes under its name, except that log files of version 6 may grow: then their size
differs. This process reads files that the caller has listed once; tasks, which have no listing, read from storage.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...concurrency import at_once
from ...errors import NotFound, Outdated
from ...file_cache import shared_cache
from ...hfile.hfile_ranges import RangeReader, StoredRanges
from ...limits import LARGEST_LOG
from ...model import BaseFile, DataFile, FileSlice
from ...storage import FileInfo, Storage

_WHOLE = 256 << 10
"""Base files up to this size in bytes are read by one request; of larger files only the parts that are needed."""


@dataclass(frozen=True, slots=True)
class GroupFiles:
    """Files below `folder`. `listed` are the files of the partition by name, as the caller has listed them."""

    storage: Storage
    folder: str
    listed: Mapping[str, FileInfo] = field(default_factory=dict)

    def full_path(self, file: DataFile) -> str:
        """The full path of a file, for messages."""
        return self.storage.full_path(self._path(file))

    def read(self, file_slice: FileSlice) -> Mapping[DataFile, bytes]:
        """The contents of the slice's log files, and of a small base file that `ranges` will be asked for.

        Raises NotFound and CorruptFile.
        """
        base = file_slice.base_file
        files: list[DataFile] = [*file_slice.log_files]
        if base is not None and self._is_whole(base):
            files.append(base)
        return dict(zip(files, at_once(self._read, files), strict=True))

    def read_small(self, file_slice: FileSlice) -> None:
        """Read the small files of the slice into the cache of this process. Raises NotFound and CorruptFile."""
        found = (self.listed.get(file.name) for file in file_slice.files)
        small = [file for file in found if file is not None and file.tag and file.size <= _WHOLE]
        at_once(lambda file: shared_cache().read(self.storage, file, LARGEST_LOG), small)

    def ranges(self, base: BaseFile) -> RangeReader:
        """A reader of parts of a base file. Its reads raise Outdated when the file was deleted."""
        listed = self.listed.get(base.name)
        if listed is None:
            return StoredRanges(self.storage, self._path(base), base.size)
        return _ListedRanges(self.storage, listed, self._is_whole(base))

    def _is_whole(self, base: BaseFile) -> bool:
        listed = self.listed.get(base.name)
        return listed is not None and bool(listed.tag) and listed.size <= _WHOLE

    def _read(self, file: DataFile) -> bytes:
        listed = self.listed.get(file.name)
        if listed is None:
            return self.storage.read(self._path(file), LARGEST_LOG)
        return shared_cache().read(self.storage, listed, LARGEST_LOG)

    def _path(self, file: DataFile) -> str:
        return f"{self.folder}/{file.path}"


@dataclass(frozen=True, slots=True)
class _ListedRanges:
    """`RangeReader` of a listed file."""

    storage: Storage
    file: FileInfo
    whole: bool

    @property
    def size(self) -> int:
        return self.file.size

    def read(self, start: int, length: int) -> bytes:
        try:
            if self.whole:
                return shared_cache().read(self.storage, self.file)[start : start + length]
            return shared_cache().read_range(self.storage, self.file, start, length)
        except NotFound as error:
            raise Outdated.of(error) from error
