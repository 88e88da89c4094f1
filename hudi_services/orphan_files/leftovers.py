"""Other files that attempts leave: markers, heartbeats, leases and checkpoints of this tool, unfinished uploads.

    .hoodie/.temp/<ts>/**                                   markers
    .hoodie/.heartbeat/<ts>                                 heartbeat
    .hoodie/.locks/hudi_services/<action>-<ts>.<n>.json     lease
    .hoodie/.hudi_services/clustering-<ts>/**               checkpoints of finished groups
    .hoodie/.hudi_services/staged-<ts>/**                   new files that wait for the commit
    <any file>#<n>                                          unfinished file, on local storage and HDFS

Readers ignore all of them.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ..commit.checkpoints import checkpoint_folder
from ..commit.heartbeat import heartbeat_path
from ..commit.lease import LEASE_FOLDER, LEASE_MILLIS, read_lease
from ..commit.liveness import clustering_lease_name
from ..commit.markers import marker_folder
from ..commit.new_files import staging_folder
from ..file_names import OWN_FOLDER
from ..paths import TABLE_FOLDER
from ..storage import FileInfo, Storage
from .data_files import parse_strictly
from .model import Ages, OrphanKind

_INSTANT = re.compile(r"[0-9]{14,}")
_LEASE = re.compile(r"[a-z]+-([0-9]{14,})\.[0-9]+\.json")
_TIMELINE_FILE = re.compile(r"([0-9]{14,})(?:_[0-9]+)?\..+")
_UPLOAD = re.compile(r"(.+)#[0-9]+")


@dataclass(frozen=True, slots=True)
class Leftover:
    """Files that are judged together: all markers or checkpoints of an attempt, or a single file.

    `attempt` is "" where it is not known.
    """

    attempt: str
    reason: OrphanKind
    files: tuple[FileInfo, ...]

    @property
    def mtime_millis(self) -> int:
        return max(file.mtime_millis for file in self.files)

    def least_age(self, ages: Ages) -> int:
        """The least age in milliseconds; Hudi writes a heartbeat before the first file of the instant."""
        if self.reason is OrphanKind.HEARTBEAT:
            return max(ages.minimum, ages.sign_of_life)
        return max(ages.minimum, LEASE_MILLIS) if self.reason is OrphanKind.LEASE else ages.minimum


def list_leftovers(storage: Storage) -> list[Leftover]:
    """All leftovers except uploads, also those of attempts that are at work."""
    checkpoints = _own_folders(storage, checkpoint_folder(""), OrphanKind.CHECKPOINTS)
    # No instant on the timeline shows that such an attempt is at work.
    staged = [one for one in _own_folders(storage, staging_folder(""), OrphanKind.STAGED) if not _is_held(storage, one)]
    return [*_markers(storage), *_heartbeats(storage), *_leases(storage), *checkpoints, *staged]


def list_uploads(storage: Storage, nested: Collection[str]) -> list[Leftover]:
    """Unfinished uploads of this tool; `nested` are the folders of other tables inside this table."""
    found = []
    for file in storage.list_staged():
        match = _UPLOAD.fullmatch(file.path)
        if match is None or any(file.path.startswith(f"{folder}/") for folder in nested):
            continue
        partition, _, name = match[1].rpartition("/")
        data_file = parse_strictly(partition, FileInfo(match[1], file.size, file.mtime_millis))
        if data_file is not None:
            found.append(Leftover(data_file.instant, OrphanKind.UPLOAD, (file,)))
        elif file.path.startswith(f"{TABLE_FOLDER}/"):
            found.append(Leftover(_instant_in(match[1], name), OrphanKind.UPLOAD, (file,)))
    return found


def _instant_in(path: str, name: str) -> str:
    """The instant of a file below `.hoodie`: that of its marker folder, else the one in its name; "" without one."""
    folder = marker_folder("")
    if path.startswith(folder):
        return path[len(folder) :].partition("/")[0]
    match = _TIMELINE_FILE.fullmatch(name)
    return match[1] if match else ""


def _markers(storage: Storage) -> Iterator[Leftover]:
    folder = marker_folder("")
    by_attempt: dict[str, list[FileInfo]] = defaultdict(list)
    for file in storage.list_tree(folder.rstrip("/")):
        attempt, _, below = file.path[len(folder) :].partition("/")
        if below and _INSTANT.fullmatch(attempt):
            by_attempt[attempt].append(file)
    for attempt, files in by_attempt.items():
        paths = {file.path for file in files}
        yield Leftover(attempt, OrphanKind.MARKERS, tuple(file for file in files if _main_file(file) not in paths))


def _main_file(file: FileInfo) -> str | None:
    """The path of the file whose checksum `file` holds, and with which it is deleted; None for any other file."""
    if not (file.name.startswith(".") and file.name.endswith(".crc")):
        return None
    return f"{file.path[: -len(file.name)]}{file.name[1:-4]}"


def _heartbeats(storage: Storage) -> Iterator[Leftover]:
    for file in storage.list_dir(heartbeat_path("").rstrip("/"))[0]:
        if _INSTANT.fullmatch(file.name):
            yield Leftover(file.name, OrphanKind.HEARTBEAT, (file,))


def _leases(storage: Storage) -> Iterator[Leftover]:
    for file in storage.list_dir(LEASE_FOLDER)[0]:
        match = _LEASE.fullmatch(file.name)
        if match is not None:
            yield Leftover(match[1], OrphanKind.LEASE, (file,))


def _is_held(storage: Storage, staged: Leftover) -> bool:
    lease = read_lease(storage, clustering_lease_name(staged.attempt))
    return lease is not None and lease.held


def _own_folders(storage: Storage, prefix: str, kind: OrphanKind) -> Iterator[Leftover]:
    for folder in storage.list_dir(OWN_FOLDER)[1]:
        attempt = folder.removeprefix(prefix)
        if folder.startswith(prefix) and _INSTANT.fullmatch(attempt):
            files = tuple(storage.list_tree(folder))
            if files:
                yield Leftover(attempt, kind, files)
