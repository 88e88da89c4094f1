"""Checkpoints: records of groups that were rewritten and checked, so that a killed attempt can be resumed.

    .hoodie/.hudi_services/clustering-<instant>/group-<digest>.json    {"sum": SHA-256 of the rest, "version", ...}

The digest covers everything that decides the rewrite of the group. A checkpoint counts only for the attempt that wrote
it: a checkpoint older than the inflight file belongs to an attempt that was rolled back since.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..codecs.json_text import parse_json
from ..concurrency import at_once
from ..errors import CorruptFile, NotFound
from ..file_names import OWN_FOLDER, instant_in
from ..model import LogCounts
from ..paths import bare_name, is_below
from ..snapshot import Snapshot
from ..storage import Storage
from ..timeline.instant import Instant, State
from .liveness import last_written_millis

_VERSION = 3
_FILE = re.compile(r"group-([0-9a-f]+)\.json")


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    """A new base file."""

    file_id: str
    path: str
    size: int
    rows: int
    millis: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A finished group. `rows` and `bytes` are those of the old files.

    `before` and `after` are row count and checksum of the old and of the new files. `decoded` is the reason why the
    rows were decoded, None when they were copied; `logs` counts the log files of the old slices.
    """

    digest: str
    files: tuple[CheckpointFile, ...]
    rows: int
    bytes: int
    before: tuple[int, int]
    after: tuple[int, int]
    decoded: str | None
    logs: LogCounts


def checkpoint_folder(instant: str) -> str:
    return f"{OWN_FOLDER}/clustering-{instant}"


def save_checkpoint(storage: Storage, instant: str, group: Checkpoint) -> None:
    """Write a checkpoint, over an earlier one with the same digest. Raises StorageError."""
    content = {"version": _VERSION, **asdict(group)}
    data = json.dumps({"sum": _sum(content), **content}).encode()
    storage.put(_path(instant, group.digest), data)


def read_checkpoint(storage: Storage, instant: str, digest: str) -> Checkpoint:
    """The checkpoint with this digest. Raises NotFound and CorruptFile."""
    path = _path(instant, digest)
    try:
        content = parse_json(storage.read(path))
        if content.pop("sum") != _sum(content) or content.pop("version") != _VERSION or content["digest"] != digest:
            raise ValueError("it is not as it was written")
        files = tuple(CheckpointFile(**file) for file in content.pop("files"))
        if not all(is_below(file.path) and instant_in(bare_name(file.path)) == instant for file in files):
            raise ValueError("it names files of others")
        before, after = _pair(content.pop("before")), _pair(content.pop("after"))
        logs = LogCounts(**content.pop("logs"))
        return Checkpoint(files=files, before=before, after=after, logs=logs, **content)
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise CorruptFile(f"{storage.full_path(path)} is no checkpoint of a finished group: {e}") from e


def checkpoints(table: Snapshot, attempt: Instant) -> list[Checkpoint]:
    """The checkpoints of the pending instant `attempt` that count and can be read; [] unless it is inflight."""
    if attempt.state is not State.INFLIGHT:
        return []
    return _written_since(table.storage, attempt.ts, last_written_millis(table, attempt, (State.INFLIGHT,)))


def checkpointed_files(storage: Storage, instant: str) -> frozenset[str]:
    """The paths of the new files in all readable checkpoints of an instant, whether the checkpoints count or not."""
    return frozenset(file.path for group in _written_since(storage, instant, 0) for file in group.files)


def _written_since(storage: Storage, instant: str, began_millis: int) -> list[Checkpoint]:
    # list_tree, because it lists no files below a link.
    stored = storage.list_tree(checkpoint_folder(instant))
    found = [_FILE.fullmatch(file.name) for file in stored if file.mtime_millis >= began_millis]

    def read(digest: str) -> Checkpoint | None:
        try:
            return read_checkpoint(storage, instant, digest)
        except (CorruptFile, NotFound):
            return None

    return [group for group in at_once(read, (one[1] for one in found if one)) if group is not None]


def delete_checkpoints(storage: Storage, instant: str) -> None:
    """Delete all checkpoints of an instant."""
    storage.delete_tree(checkpoint_folder(instant))


def _path(instant: str, digest: str) -> str:
    return f"{checkpoint_folder(instant)}/group-{digest}.json"


def _sum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _pair(content: Any) -> tuple[int, int]:
    first, second = content
    return first, second
