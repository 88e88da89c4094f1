"""Quarantines: orphan files that were moved out of the table, and can be restored.

    .hoodie/.hudi_services/quarantine/<id>/manifest.json     the files to move, written before the first move
                                     <id>/files/<path>       the files, by their paths in the table

The id is the time, yyyyMMddTHHmmssSSS in UTC. A file that the manifest names is either under `files/`, or still (or
again) at its path in the table; a move that was killed leaves the whole file in both places. The names of unfinished
uploads get the suffix `.staged`, because the store would hide them otherwise.

    manifest   {"version": 1, "tool": {"name", "version"}, "table": {"base_path", "name"}, "created",
                "files": [{"path", "size", "mtime" (epoch milliseconds), "attempt", "action", "reason",
                           "seen" (whether readers took it for a committed file)}]}
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from enum import Enum
from functools import partial

from .._version import __version__
from ..codecs.json_text import parse_json
from ..commit.checkpoints import checkpoint_folder
from ..commit.markers import marker_folder
from ..commit.new_files import staging_folder
from ..errors import AlreadyExists, ConfigError, ConflictError, CorruptFile, NotFound, StorageError
from ..file_names import OWN_FOLDER
from ..log_files.log_reader import scan_blocks
from ..model import DataFile, LogFile
from ..paths import bare_name
from ..snapshot import Snapshot
from ..storage import FileInfo, Storage
from .data_files import parse_strictly
from .model import Item, OrphanKind, Total

QUARANTINE_FOLDER = f"{OWN_FOLDER}/quarantine"
_MANIFEST = "manifest.json"
_MANIFEST_VERSION = 1
_ID = re.compile(r"[0-9]{8}T[0-9]{9}")
_STAGED = ".staged"
_MOVES_AT_ONCE = 16
_BATCH = 256
_PIECE = 1024 * 1024
_NAMES_TOLD = 5

Progress = Callable[[int, int], None]


class _Move(Enum):
    DONE = "done"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Quarantine:
    """A quarantine that exists. `held` counts the files in it now."""

    id: str
    held: Total

    @property
    def created(self) -> datetime:
        return _moment(self.id)


@dataclass(frozen=True, slots=True)
class Moved:
    """The files that a run moved, and sentences about the files that it could not move."""

    total: Total
    problems: tuple[str, ...] = ()


def create(table: Snapshot, items: Sequence[Item]) -> str:
    """Create a quarantine for `items`, with a manifest and no files yet; return its id."""
    moment = table.clock.now().astimezone(timezone.utc)
    while True:
        name = _id(moment)
        try:
            table.storage.create(f"{_folder(name)}/{_MANIFEST}", _manifest(table, items, moment))
            return name
        except AlreadyExists:
            moment += timedelta(milliseconds=1)


def fill(storage: Storage, quarantine: str, items: Sequence[Item], progress: Progress) -> Moved:
    """Move `items` into a quarantine; a file that was deleted meanwhile is no problem."""
    sizes = {item.path: item.size for item in items}
    moved = _move_all({path: _stored_at(quarantine, path) for path in sizes}, sizes, storage.move, progress)
    of_attempts = {
        OrphanKind.MARKERS: marker_folder,
        OrphanKind.CHECKPOINTS: checkpoint_folder,
        OrphanKind.STAGED: staging_folder,
    }
    for reason, folder in of_attempts.items():
        for attempt in {item.attempt for item in items if item.reason is reason}:
            storage.remove_empty_dirs(folder(attempt))
    return moved


def restore(table: Snapshot, quarantine: str, progress: Progress) -> Moved:
    """Move all files of a quarantine back to their paths in the table, then delete the quarantine.

    A file whose path is taken by another file stays, and the result reports the problem. May be repeated. Raises
    ConfigError for a quarantine that does not exist. Raises ConflictError, before any move, when readers would now take
    a file for committed that they did not when it was moved: without a metadata table they do so once the timeline
    begins after the file's instant.
    """
    storage = table.storage
    stored = _stored(storage, quarantine)
    sizes = {file.path: file.size for file in stored}
    targets = {file.path: _original(quarantine, file.path) for file in stored}
    _refuse_new_rows(table, quarantine, stored)
    moved = _move_all(targets, sizes, lambda source, target: _bring_back(storage, source, target), progress)
    if not moved.problems:
        _remove_empty(storage, quarantine)
    return moved


def check_restore(table: Snapshot, quarantine: str) -> Total:
    """Count the files that a restore would move. Raises ConfigError and ConflictError as `restore` does."""
    stored = _stored(table.storage, quarantine)
    _refuse_new_rows(table, quarantine, stored)
    return _total(stored)


def delete(storage: Storage, quarantine: str, progress: Progress) -> Total:
    """Delete a quarantine with its files, the manifest last, so that an interrupted deletion can be repeated."""
    stored = _held(storage, quarantine)
    with ThreadPoolExecutor(_MOVES_AT_ONCE) as pool:
        for done, _ in enumerate(pool.map(lambda file: storage.delete(file.path), stored), 1):
            progress(done, len(stored))
    storage.delete_tree(_folder(quarantine))
    return _total(stored)


def list_quarantines(storage: Storage) -> list[Quarantine]:
    """The quarantines, oldest first; a link in the place of a quarantine holds no files."""
    _, folders = storage.list_dir(QUARANTINE_FOLDER)
    names = sorted(bare_name(folder) for folder in folders)
    return [Quarantine(name, _total(_held(storage, name))) for name in names if _ID.fullmatch(name) and _is_time(name)]


def _move_all(
    targets: dict[str, str], sizes: dict[str, int], move: Callable[[str, str], None], progress: Progress
) -> Moved:
    def one(source: str) -> _Move | str:
        try:
            move(source, targets[source])
            return _Move.DONE
        except NotFound:
            return _Move.GONE
        except StorageError as error:
            return error.message

    total, problems, sources = Total(), [], sorted(targets)
    with ThreadPoolExecutor(_MOVES_AT_ONCE) as pool:
        # In batches, so that only few more files are moved after an error that is not a StorageError.
        for start in range(0, len(sources), _BATCH):
            batch = sources[start : start + _BATCH]
            for source, outcome in zip(batch, pool.map(one, batch), strict=True):
                if outcome is _Move.DONE:
                    total = total.plus(sizes[source])
                elif isinstance(outcome, str):
                    problems.append(outcome)
            progress(start + len(batch), len(sources))
    return Moved(total, tuple(problems))


def _bring_back(storage: Storage, source: str, target: str) -> None:
    try:
        storage.move(source, target)
    except AlreadyExists:
        # A move that was killed between copy and deletion left the file in both places.
        if not _are_equal(storage, source, target):
            raise
        storage.delete(source)


def _are_equal(storage: Storage, path: str, other: str) -> bool:
    """Compare two files piece by piece, because many comparisons run at once and base files can be large."""
    first, second = storage.head(path), storage.head(other)
    if first is None or second is None or first.size != second.size:
        return False
    pieces = ((start, min(_PIECE, first.size - start)) for start in range(0, first.size, _PIECE))
    return all(storage.read_range(path, *piece) == storage.read_range(other, *piece) for piece in pieces)


def _refuse_new_rows(table: Snapshot, quarantine: str, stored: Iterable[FileInfo]) -> None:
    seen_now = [path for one in stored if _is_seen(table, path := _original(quarantine, one.path), one.path, one.size)]
    if not seen_now:
        return
    seen_then = _seen_then(table.storage, quarantine)
    new = sorted(path for path in seen_now if path not in seen_then)
    if new:
        more = f" and {len(new) - _NAMES_TOLD} more" if len(new) > _NAMES_TOLD else ""
        raise ConflictError(
            f"the timeline is now later than files of the quarantine {quarantine}, so that readers would take them for "
            f"committed: {', '.join(new[:_NAMES_TOLD])}{more}",
            hint=f"nothing was moved: leave the files in {table.storage.full_path(_folder(quarantine))}, "
            "or delete them with --delete-older-than",
        )


def _is_seen(table: Snapshot, path: str, stored: str, size: int) -> bool:
    """Whether readers take the file for committed because of its instant alone, or will when a savepoint is deleted.

    `path` is its path in the table, `stored` where its `size` bytes are now.
    """
    partition, _, _ = path.rpartition("/")
    file = parse_strictly(partition, FileInfo(path, 0, 0)) if table.metadata is None else None
    facts = table.ledger.facts
    return file is not None and any(
        instant is None or facts.is_committed(instant) or facts.is_hidden(instant)
        for instant in _instants(table, file, stored, size)
    )


def _instants(table: Snapshot, file: DataFile, stored: str, size: int) -> set[str | None]:
    """The instants that wrote the file; None among them when one is not known."""
    if not isinstance(file, LogFile) or table.log_naming.tells_writers:
        return {file.instant}
    try:
        blocks = scan_blocks(partial(table.storage.read_range, stored), size, table.storage.full_path(stored))
        return {block.instant for block in blocks}
    except (CorruptFile, NotFound):
        return {None}


def _seen_then(storage: Storage, quarantine: str) -> frozenset[str]:
    path = f"{_folder(quarantine)}/{_MANIFEST}"
    try:
        files = parse_json(storage.read(path))["files"]
        return frozenset(file["path"] for file in files if file.get("seen"))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise CorruptFile(f"{storage.full_path(path)} is not a manifest of a quarantine: {error}") from error


def _stored(storage: Storage, quarantine: str) -> list[FileInfo]:
    folder = _folder(quarantine)
    if not _ID.fullmatch(quarantine) or not any(storage.list_dir(folder)):
        known = ", ".join(one.id for one in list_quarantines(storage)) or "none"
        raise ConfigError(
            f"there is no quarantine {quarantine} in {storage.full_path(QUARANTINE_FOLDER)}",
            hint=f"the quarantines of the table are: {known}",
        )
    return _held(storage, quarantine)


def _held(storage: Storage, quarantine: str) -> list[FileInfo]:
    below = f"{_folder(quarantine)}/files/"
    return [file for file in storage.list_tree(_folder(quarantine)) if file.path.startswith(below)]


def _remove_empty(storage: Storage, quarantine: str) -> None:
    storage.delete(f"{_folder(quarantine)}/{_MANIFEST}")
    storage.remove_empty_dirs(_folder(quarantine))


def _manifest(table: Snapshot, items: Sequence[Item], moment: datetime) -> bytes:
    files: Iterator[dict[str, str | int | bool | None]] = (
        {
            "path": item.path,
            "size": item.size,
            "mtime": item.mtime_millis,
            "attempt": item.attempt,
            "action": item.action,
            "reason": item.reason.value,
            "seen": _is_seen(table, item.path, item.path, item.size),
        }
        for item in items
    )
    content = {
        "version": _MANIFEST_VERSION,
        "tool": {"name": "hudi-services", "version": __version__},
        "table": {"base_path": table.storage.root, "name": table.config.name},
        "created": moment.isoformat(timespec="milliseconds"),
        "files": list(files),
    }
    return json.dumps(content, indent=1, ensure_ascii=False).encode()


def _folder(quarantine: str) -> str:
    return f"{QUARANTINE_FOLDER}/{quarantine}"


def _stored_at(quarantine: str, path: str) -> str:
    staged = re.fullmatch(r".+#[0-9]+", path) is not None
    return f"{_folder(quarantine)}/files/{path}{_STAGED if staged else ''}"


def _original(quarantine: str, stored: str) -> str:
    path = stored[len(f"{_folder(quarantine)}/files/") :]
    return path.removesuffix(_STAGED) if re.fullmatch(r".+#[0-9]+\.staged", path) else path


def _total(files: Sequence[FileInfo]) -> Total:
    return Total(len(files), sum(file.size for file in files))


def _id(moment: datetime) -> str:
    return moment.strftime("%Y%m%dT%H%M%S") + f"{moment.microsecond // 1000:03d}"


def _moment(name: str) -> datetime:
    return datetime.strptime(name + "000", "%Y%m%dT%H%M%S%f").replace(tzinfo=timezone.utc)


def _is_time(name: str) -> bool:
    try:
        return bool(_moment(name))
    except ValueError:
        return False
