"""The archive of timeline layout 2: completion times, and which instants it has.

`timeline/history/` holds parquet files `<first ts>_<last ts>_<level>.parquet`, one row an action (instantTime,
completionTime, action, metadata, plan, version), and `manifest_<N>` = JSON {"files": [{"fileName", "fileLen"}]}: only
files in the manifest count. `_version_` is N in ASCII; without it the largest manifest counts.
Source: LSMTimeline, ArchivedTimelineLoaderV2 of Apache Hudi.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING

from ..codecs.commit_metadata import decode_commit_avro
from ..codecs.json_text import parse_json
from ..codecs.rollback_plan import RollbackMetadata, decode_rollback_metadata
from ..errors import CorruptFile, NotFound
from ..file_cache import shared_cache
from ..limits import LARGEST_LOG, SMALL_FILE
from ..paths import is_name
from ..storage import FileInfo, Storage
from ..table_config import TableConfig
from .archived_instants import ArchivedAction, ArchivedInstants
from .instant import Action

if TYPE_CHECKING:
    from .archive_file import ArchiveFile

_DATA_FILE = re.compile(r"([0-9]+)_([0-9]+)_[0-9]\.parquet")
_MANIFEST = re.compile(r"manifest_([0-9]+)")
_VERSION_FILE = "_version_"


def is_archived(storage: Storage, config: TableConfig) -> bool:
    """Whether the folder of the archive has any file."""
    files, _ = storage.list_dir(config.history_path)
    return bool(files)


class _Archive:
    """The folder of an archive at one moment. Only `_version_` changes; this process reads every other file once."""

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage = storage
        self._folder = folder

    @cached_property
    def files(self) -> tuple[str, ...]:
        """The names of its parquet files. Raises CorruptFile."""
        with ThreadPoolExecutor(1) as pool:
            number = pool.submit(self._manifest_number)
            # Listed at the same time: a file that is newer than the listing is read all the same.
            _ = self._listed
            found = number.result()
        return () if found is None else self._names(f"manifest_{found}")

    def open(self, name: str) -> "ArchiveFile":
        # pyarrow is slow to load, and most commands read no archive.
        from .archive_file import ArchiveFile

        return ArchiveFile(self._read(name, LARGEST_LOG), self._full_path(name))

    @cached_property
    def _listed(self) -> Mapping[str, FileInfo]:
        return {file.name: file for file in self._storage.list_dir(self._folder)[0]}

    def _read(self, name: str, limit: int) -> bytes:
        listed = self._listed.get(name)
        if listed is None:
            return self._storage.read(f"{self._folder}/{name}", limit)
        return shared_cache().read(self._storage, listed, limit)

    def _full_path(self, name: str) -> str:
        return self._storage.full_path(f"{self._folder}/{name}")

    def _names(self, manifest: str) -> tuple[str, ...]:
        try:
            files = parse_json(self._read(manifest, SMALL_FILE))["files"]
            names = tuple(dict.fromkeys(entry["fileName"] for entry in files))
            if not all(map(is_name, names)):
                raise ValueError("it names files elsewhere")
            return names
        except (ValueError, KeyError, TypeError) as e:
            raise CorruptFile(f"{self._full_path(manifest)} is no timeline manifest: {e}") from e

    def _manifest_number(self) -> int | None:
        try:
            return int(self._storage.read(f"{self._folder}/{_VERSION_FILE}", SMALL_FILE))
        except NotFound:
            # The version file is missing between its deletion and its re-creation.
            matches = (_MANIFEST.fullmatch(info.name) for info in self._storage.list_dir(self._folder)[0])
            return max((int(match[1]) for match in matches if match), default=None)
        except ValueError as e:
            raise CorruptFile(f"{self._full_path(_VERSION_FILE)} holds no manifest number") from e


class ArchivedTimes:
    """Looks up completion times, reading each archive file at most once and only when it may hold the instant."""

    def __init__(self, storage: Storage, folder: str) -> None:
        self._archive = _Archive(storage, folder)
        self._times: dict[str, dict[str, str]] = {}

    def completion_time(self, ts: str) -> str | None:
        """The completion time of the archived instant of `ts`, None when no archive file has it. Raises CorruptFile."""
        for name in self._archive.files:
            match = _DATA_FILE.fullmatch(name)
            if match is not None and match[1] <= ts <= match[2]:
                found = self._load(name).get(ts)
                if found is not None:
                    return found
        return None

    def _load(self, name: str) -> dict[str, str]:
        if name not in self._times:
            times = self._archive.open(name).texts("instantTime", "completionTime")
            self._times[name] = {start: end for start, end in times if start is not None and end is not None}
        return self._times[name]


def read_archive(storage: Storage, folder: str, file_ids: Collection[str] = ()) -> ArchivedInstants:
    """The instants that the archive in `folder` records, and which of `file_ids` its completed writes touched.

    Raises CorruptFile, naming the file, and StorageError.
    """
    archive = _Archive(storage, folder)
    return ArchivedInstants.of(
        entry for name in archive.files for entry in _read_actions(archive.open(name), frozenset(file_ids))
    )


def _read_actions(file: "ArchiveFile", file_ids: frozenset[str]) -> Iterator[ArchivedAction]:
    entries: list[ArchivedAction] = []
    for ts, action in file.texts("instantTime", "action"):
        if ts is None or action is None:
            raise CorruptFile(f"{file.path} has a row without instantTime or action")
        entries.append(ArchivedAction(ts, action))
    decoders = list(map(_decoders(file_ids, file.path), entries))
    # This column holds whole commits: it is large, and mostly not needed here.
    results = file.results("metadata", decoders) if any(decoders) else repeat(None, len(entries))
    for entry, result in zip(entries, results, strict=True):
        if isinstance(result, RollbackMetadata):
            yield replace(entry, rolled_back=result)
        else:
            yield entry if result is None else replace(entry, file_ids=result)


_Decoder = Callable[[bytes], RollbackMetadata | frozenset[str]]


def _decoders(file_ids: frozenset[str], path: str) -> Callable[[ArchivedAction], _Decoder | None]:
    """The decoder of an entry's metadata: for rollbacks, and for completed writes when there are `file_ids`."""

    def of_rollback(result: bytes) -> RollbackMetadata:
        return decode_rollback_metadata(result, path)

    def of_write(result: bytes) -> frozenset[str]:
        return file_ids & _file_ids(result, path)

    def of_entry(entry: ArchivedAction) -> _Decoder | None:
        if entry.action == Action.ROLLBACK.value:
            return of_rollback
        return of_write if file_ids and entry.is_completed_write else None

    return of_entry


def _file_ids(data: bytes, path: str) -> set[str]:
    commit = decode_commit_avro(data, path)
    written = {stat.file_id for stats in commit.stats.values() for stat in stats}
    return written.union(*(commit.replaced or {}).values())
