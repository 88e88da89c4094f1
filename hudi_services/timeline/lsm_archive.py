"""The folder of an archive of timeline layout 2: which of its files count.

`timeline/history/` holds parquet files `<first ts>_<last ts>_<level>.parquet`, one row an action (instantTime,
completionTime, action, metadata, plan, version), and `manifest_<N>` = JSON {"files": [{"fileName", "fileLen"}]}: only
files in the manifest count. `_version_` is N in ASCII; without it the largest manifest counts.
Source: LSMTimeline of Apache Hudi.
"""

import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..codecs.json_text import parse_json
from ..computed_once import cached_property
from ..errors import CorruptFile, NotFound
from ..file_cache import shared_cache
from ..limits import LARGEST_LOG, SMALL_FILE
from ..paths import is_name
from ..storage import FileInfo, Storage

if TYPE_CHECKING:
    from .archive_file import ArchiveFile

_DATA_FILE = re.compile(r"([0-9]+)_([0-9]+)_([0-9])\.parquet")
_MANIFEST = re.compile(r"manifest_([0-9]+)")
VERSION_FILE = "_version_"


@dataclass(frozen=True, slots=True)
class LsmFile:
    """A parquet file of an archive by its name: the first and the last instant that it has, and its level."""

    name: str
    first: str
    last: str
    level: int
    size: int = 0
    """Bytes, as the manifest says."""

    def overlaps(self, first: str, last: str) -> bool:
        return self.first <= last and first <= self.last


def parse_lsm_file(name: str, size: int = 0) -> LsmFile | None:
    """The file of that name, None when no file of an archive has such a name."""
    match = _DATA_FILE.fullmatch(name)
    return LsmFile(name, match[1], match[2], int(match[3]), size) if match else None


def manifest_name(number: int) -> str:
    return f"manifest_{number}"


class LsmArchive:
    """The folder of an archive at one moment. Only `_version_` changes; this process reads every other file once."""

    def __init__(self, storage: Storage, folder: str) -> None:
        self.storage = storage
        self.folder = folder

    @cached_property
    def files(self) -> tuple[str, ...]:
        """The names of its parquet files. Raises CorruptFile."""
        return tuple(self.sizes)

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """The parquet files by name, with their sizes as the manifest has them (0 where it has none)."""
        return {} if self.number is None else self.manifest(self.number)

    @cached_property
    def number(self) -> int | None:
        """The number of the manifest that counts, None when there is no archive. Raises CorruptFile."""
        with ThreadPoolExecutor(1) as pool:
            version = pool.submit(self._version)
            # Listed at the same time: a file that is newer than the listing is read all the same.
            listed = self.manifests
            number = version.result()
        # The version file is missing between its deletion and its re-creation.
        return max(listed, default=None) if number is None else number

    def grown(self, number: int, sizes: Mapping[str, int], written: Mapping[str, int]) -> "LsmArchive":
        """The archive with the manifest `number`, which names `sizes`; `written` are its new files with their sizes."""
        found = LsmArchive(self.storage, self.folder)
        new = {name: FileInfo(self.path(name), size, 0) for name, size in written.items()}
        found.__dict__.update(number=number, sizes=sizes, listed={**self.listed, **new})
        return found

    @property
    def manifests(self) -> tuple[int, ...]:
        """The numbers of all manifests, smallest first."""
        return tuple(sorted(int(match[1]) for name in self.listed if (match := _MANIFEST.fullmatch(name))))

    def manifest(self, number: int) -> dict[str, int]:
        """The files that a manifest names, with their sizes. Raises CorruptFile."""
        name = manifest_name(number)
        try:
            entries = parse_json(self._read(name, SMALL_FILE))["files"]
            sizes = {entry["fileName"]: int(entry.get("fileLen") or 0) for entry in entries}
            if not all(map(is_name, sizes)):
                raise ValueError("it names files elsewhere")
            return sizes
        except (AttributeError, ValueError, KeyError, TypeError) as e:
            raise CorruptFile(f"{self._full_path(name)} is no timeline manifest: {e}") from e

    def open(self, name: str) -> "ArchiveFile":
        # pyarrow is slow to load, and most commands read no archive.
        from .archive_file import ArchiveFile

        return ArchiveFile(self._read(name, LARGEST_LOG), self._full_path(name))

    @cached_property
    def listed(self) -> Mapping[str, FileInfo]:
        """The files of the folder by name."""
        return {file.name: file for file in self.storage.list_dir(self.folder)[0]}

    def path(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def _read(self, name: str, limit: int) -> bytes:
        listed = self.listed.get(name)
        if listed is None:
            return self.storage.read(self.path(name), limit)
        return shared_cache().read(self.storage, listed, limit)

    def _full_path(self, name: str) -> str:
        return self.storage.full_path(self.path(name))

    def _version(self) -> int | None:
        try:
            return int(self.storage.read(self.path(VERSION_FILE), SMALL_FILE))
        except NotFound:
            return None
        except ValueError as e:
            raise CorruptFile(f"{self._full_path(VERSION_FILE)} holds no manifest number") from e
