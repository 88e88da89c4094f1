"""The archive of timeline layout 2: completion times, and which instants it has.

`timeline/history/` holds parquet files `<first ts>_<last ts>_<level>.parquet`, one row an action (instantTime,
completionTime, action, metadata, plan, version), and `manifest_<N>` = JSON {"files": [{"fileName", "fileLen"}]}: only
files in the manifest count. `_version_` is N in ASCII; without it the largest manifest counts.
Source: LSMTimeline, ArchivedTimelineLoaderV2 of Apache Hudi.
"""

import io
import json
import re
from collections.abc import Collection, Iterator
from typing import Any

from ..codecs.commit_metadata import decode_commit_avro
from ..codecs.rollback_plan import decode_rollback_metadata
from ..errors import CorruptFile, NotFound
from ..storage import Storage
from ..table_config import TableConfig
from .archived_instants import ArchivedAction, ArchivedInstants
from .instant import Action

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
        return tuple(entry["fileName"] for entry in json.loads(storage.read(path))["files"])
    except (ValueError, KeyError, TypeError, RecursionError) as e:
        raise CorruptFile(f"{storage.full_path(path)} is no timeline manifest: {e}") from e


def _manifest_number(storage: Storage, folder: str) -> int | None:
    path = f"{folder}/{_VERSION_FILE}"
    try:
        return int(storage.read(path))
    except NotFound:
        # Between the deletion and the re-creation of the version file.
        matches = (_MANIFEST.fullmatch(info.name) for info in storage.list_dir(folder)[0])
        return max((int(match[1]) for match in matches if match), default=None)
    except ValueError as e:
        raise CorruptFile(f"{storage.full_path(path)} holds no manifest number") from e


def _read_actions(storage: Storage, path: str, file_ids: frozenset[str]) -> Iterator[ArchivedAction]:
    data, full = storage.read(path), storage.full_path(path)
    times, actions = _columns(data, full, "instantTime", "action")
    results: list[Any] = [None] * len(times)
    if file_ids or Action.ROLLBACK.value in actions:
        # It holds the whole commits: large, and mostly of no use here.
        (results,) = _columns(data, full, "metadata")
    for ts, action, result in zip(times, actions, results, strict=True):
        if not isinstance(ts, str) or not isinstance(action, str):
            raise CorruptFile(f"{full} has a row without instantTime or action")
        entry = ArchivedAction(ts, action)
        if action == Action.ROLLBACK.value and result is not None:
            yield ArchivedAction(ts, action, rolled_back=decode_rollback_metadata(result, full))
        elif entry.is_completed_write and file_ids and result is not None:
            yield ArchivedAction(ts, action, file_ids=file_ids & _file_ids(result, full))
        else:
            yield entry


def _file_ids(data: bytes, path: str) -> set[str]:
    commit = decode_commit_avro(data, path)
    written = {stat.file_id for stats in commit.stats.values() for stat in stats}
    return written.union(*(commit.replaced or {}).values())


def _read_times(storage: Storage, path: str) -> dict[str, str]:
    starts, ends = _columns(storage.read(path), storage.full_path(path), "instantTime", "completionTime")
    return {start: end for start, end in zip(starts, ends, strict=True) if start is not None and end is not None}


def _columns(data: bytes, path: str, *names: str) -> list[list[Any]]:
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(io.BytesIO(data), columns=list(names), page_checksum_verification=True)
        return [table.column(name).to_pylist() for name in names]
    except (pyarrow.ArrowException, OSError, KeyError, UnicodeDecodeError) as e:
        raise CorruptFile(f"{path} is no archived timeline: {e}") from e
