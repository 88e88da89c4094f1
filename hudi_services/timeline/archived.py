"""The archive of timeline layout 2: completion times, and which instants it has.

`timeline/history/` holds parquet files `<first ts>_<last ts>_<level>.parquet`, one row an action (instantTime,
completionTime, action, metadata, plan, version), and `manifest_<N>` = JSON {"files": [{"fileName", "fileLen"}]}: only
files in the manifest count. `_version_` is N in ASCII; without it the largest manifest counts.
Source: LSMTimeline, ArchivedTimelineLoaderV2 of Apache Hudi.
"""

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from itertools import repeat
from typing import TYPE_CHECKING

from ..codecs.commit_metadata import decode_commit_avro
from ..codecs.json_text import parse_json
from ..codecs.rollback_plan import RollbackMetadata, decode_rollback_metadata
from ..errors import CorruptFile, NotFound
from ..limits import SMALL_FILE
from ..paths import is_name
from ..storage import Storage
from ..table_config import TableConfig
from .archived_instants import ArchivedAction, ArchivedInstants
from .instant import Action

if TYPE_CHECKING:
    from .archive_file import ArchiveFile

_DATA_FILE = re.compile(r"([0-9]+)_([0-9]+)_[0-9]\.parquet")
_MANIFEST = re.compile(r"manifest_([0-9]+)")
_VERSION_FILE = "_version_"


def is_archived(storage: Storage, config: TableConfig) -> bool:
    """Whether anything left the active timeline for the archive; told by its folder alone."""
    files, _ = storage.list_dir(config.history_path)
    return bool(files)


class ArchivedTimes:
    """Looks up completion times, reading each archive file at most once and only when it may hold the instant."""

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage = storage
        self._folder = folder
        self._files: tuple[str, ...] | None = None
        self._times: dict[str, dict[str, str]] = {}

    def completion_time(self, ts: str) -> str | None:
        """When the archived instant of `ts` was completed, None when no archive file has it. Raises CorruptFile."""
        if self._files is None:
            self._files = _manifest_files(self._storage, self._folder)
        for name in self._files:
            match = _DATA_FILE.fullmatch(name)
            if match is not None and match[1] <= ts <= match[2]:
                found = self._load(name).get(ts)
                if found is not None:
                    return found
        return None

    def _load(self, name: str) -> dict[str, str]:
        if name not in self._times:
            self._times[name] = _read_times(self._storage, f"{self._folder}/{name}")
        return self._times[name]


def read_archive(storage: Storage, folder: str, file_ids: Collection[str] = ()) -> ArchivedInstants:
    """All that the archive in `folder` knows, of file groups only whether it knows `file_ids`.

    Raises CorruptFile, naming the file, and StorageError.
    """
    return ArchivedInstants.of(
        entry
        for name in _manifest_files(storage, folder)
        for entry in _read_actions(storage, f"{folder}/{name}", frozenset(file_ids))
    )


def _manifest_files(storage: Storage, folder: str) -> tuple[str, ...]:
    number = _manifest_number(storage, folder)
    if number is None:
        return ()
    path = f"{folder}/manifest_{number}"
    try:
        files = parse_json(storage.read(path, SMALL_FILE))["files"]
        names = tuple(dict.fromkeys(entry["fileName"] for entry in files))
        if not all(map(is_name, names)):
            raise ValueError("it names files elsewhere")
        return names
    except (ValueError, KeyError, TypeError) as e:
        raise CorruptFile(f"{storage.full_path(path)} is no timeline manifest: {e}") from e


def _manifest_number(storage: Storage, folder: str) -> int | None:
    path = f"{folder}/{_VERSION_FILE}"
    try:
        return int(storage.read(path, SMALL_FILE))
    except NotFound:
        # Between the deletion and the re-creation of the version file.
        matches = (_MANIFEST.fullmatch(info.name) for info in storage.list_dir(folder)[0])
        return max((int(match[1]) for match in matches if match), default=None)
    except ValueError as e:
        raise CorruptFile(f"{storage.full_path(path)} holds no manifest number") from e


def _read_actions(storage: Storage, path: str, file_ids: frozenset[str]) -> Iterator[ArchivedAction]:
    file = _open(storage, path)
    entries: list[ArchivedAction] = []
    for ts, action in file.texts("instantTime", "action"):
        if ts is None or action is None:
            raise CorruptFile(f"{file.path} has a row without instantTime or action")
        entries.append(ArchivedAction(ts, action))
    decoders = list(map(_decoders(file_ids, file.path), entries))
    # The results hold whole commits: large, and mostly of no use here.
    results = file.results("metadata", decoders) if any(decoders) else repeat(None, len(entries))
    for entry, result in zip(entries, results, strict=True):
        if isinstance(result, RollbackMetadata):
            yield replace(entry, rolled_back=result)
        else:
            yield entry if result is None else replace(entry, file_ids=result)


_Decoder = Callable[[bytes], RollbackMetadata | frozenset[str]]


def _decoders(file_ids: frozenset[str], path: str) -> Callable[[ArchivedAction], _Decoder | None]:
    """How the results of entries are read: those of rollbacks, and of writes for what they tell of `file_ids`."""

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


def _read_times(storage: Storage, path: str) -> dict[str, str]:
    times = _open(storage, path).texts("instantTime", "completionTime")
    return {start: end for start, end in times if start is not None and end is not None}


def _open(storage: Storage, path: str) -> "ArchiveFile":
    # pyarrow is slow to load, and most commands look at no archive.
    from .archive_file import ArchiveFile

    return ArchiveFile(storage.read(path), storage.full_path(path))
