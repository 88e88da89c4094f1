"""Completion times of archived instants in timeline layout 2.

`timeline/history/` holds parquet files `<first ts>_<last ts>_<level>.parquet`, one row an action (instantTime,
completionTime, action, metadata, plan, version), and `manifest_<N>` = JSON {"files": [{"fileName", "fileLen"}]}: only
files in the manifest count. `_version_` is N in ASCII; without it the largest manifest counts.
Source: LSMTimeline, ArchivedTimelineLoaderV2 of Apache Hudi.
"""

import io
import json
import re

from ..errors import CorruptFile, NotFound
from ..storage import Storage
from ..table_config import TableConfig

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
            self._files = self._manifest_files()
        for name in self._files:
            match = _DATA_FILE.fullmatch(name)
            if match is not None and match[1] <= ts <= match[2]:
                found = self._load(name).get(ts)
                if found is not None:
                    return found
        return None

    def _manifest_files(self) -> tuple[str, ...]:
        number = self._manifest_number()
        if number is None:
            return ()
        path = f"{self._folder}/manifest_{number}"
        try:
            return tuple(entry["fileName"] for entry in json.loads(self._storage.read(path))["files"])
        except (ValueError, KeyError, TypeError, RecursionError) as e:
            raise CorruptFile(f"{self._storage.full_path(path)} is no timeline manifest: {e}") from e

    def _manifest_number(self) -> int | None:
        path = f"{self._folder}/{_VERSION_FILE}"
        try:
            return int(self._storage.read(path))
        except NotFound:
            # Between the deletion and the re-creation of the version file.
            matches = (_MANIFEST.fullmatch(info.name) for info in self._storage.list_dir(self._folder)[0])
            return max((int(match[1]) for match in matches if match), default=None)
        except ValueError as e:
            raise CorruptFile(f"{self._storage.full_path(path)} holds no manifest number") from e

    def _load(self, name: str) -> dict[str, str]:
        if name not in self._times:
            self._times[name] = _read_times(self._storage, f"{self._folder}/{name}")
        return self._times[name]


def _read_times(storage: Storage, path: str) -> dict[str, str]:
    import pyarrow
    import pyarrow.parquet

    data = storage.read(path)
    try:
        table = pyarrow.parquet.read_table(io.BytesIO(data), columns=["instantTime", "completionTime"])
        starts, ends = (table.column(name).to_pylist() for name in ("instantTime", "completionTime"))
    except (pyarrow.ArrowException, OSError, KeyError) as e:
        raise CorruptFile(f"{storage.full_path(path)} is no archived timeline: {e}") from e
    return {start: end for start, end in zip(starts, ends, strict=True) if start is not None and end is not None}
