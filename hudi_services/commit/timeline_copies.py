"""Copies of timeline files that a repair deletes: `.hoodie/.hudi_services/removed/<instant of the repair>/<file>`.

The copies show what an instant was before it was rolled back: to people, and to a rollback that is resumed. Only the
copy of a completed file is required: from it the rollback learns what to undo in the indexes. An obstacle to other
copies, such as a link or a file in the place of a folder, does not prevent the repair of a table.
"""

import logging
from collections.abc import Iterable
from contextlib import suppress

from ..errors import AlreadyExists, CorruptFile, NotFound, StorageError, SymbolicLink
from ..file_names import OWN_FOLDER
from ..model import CommitMetadata
from ..snapshot import Snapshot
from ..timeline.instant import Action, Instant

_log = logging.getLogger(__name__)

_FOLDER = f"{OWN_FOLDER}/removed"


def keep_copies(table: Snapshot, repair: str, file_names: Iterable[str]) -> None:
    """Copy files of the timeline, before the repair at `repair` deletes them.

    Skips files that are deleted already, and files too large to be read: no instant has such a file, but one blocks the
    table. Raises StorageError only when the copy of a completed instant fails.
    """
    for name in file_names:
        try:
            with suppress(NotFound, AlreadyExists, CorruptFile):
                table.storage.create(f"{_FOLDER}/{repair}/{name}", table.timeline.read_details(name))
        except StorageError as error:
            found = table.timeline.layout.parse(name, 0, table.timeline.zone)
            if found is None or found.is_completed:
                raise
            _log.warning("no copy of %s is kept: %s", name, error.message)


def kept_commit(table: Snapshot, repair: str, ts: str, action: Action) -> CommitMetadata | None:
    """The commit metadata of the instant `ts` when the repair at `repair` began; None when it was not completed then.

    Also None when the folder of the copies is behind a link, where no copy was kept. Raises CorruptFile.
    """
    layout, zone = table.timeline.layout, table.timeline.zone
    try:
        files, _ = table.storage.list_dir(f"{_FOLDER}/{repair}")
    except SymbolicLink as error:
        _log.warning("%s: what %s was before is taken to be pending", error.message, ts)
        return None
    for file in files:
        found = layout.parse(file.name, 0, zone)
        if found and found.is_completed and found.ts == ts and found.action.completed_as is action.completed_as:
            return layout.decode_commit(table.storage.read(file.path), table.storage.full_path(file.path))
    return None


def remove_instant(table: Snapshot, instant: Instant) -> None:
    """Delete a pending instant from the timeline, its latest state first; copies of its files are kept.

    The caller holds the lock. Raises ConflictError when the lock was lost.
    """
    files = sorted(table.timeline.files_of(instant.ts, instant.action), key=lambda file: file.state, reverse=True)
    keep_copies(table, instant.ts, [file.file_name for file in files])
    table.check_held()
    for file in files:
        table.storage.delete(table.timeline.path(file.file_name))
