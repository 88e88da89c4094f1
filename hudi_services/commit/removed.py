"""Copies of timeline files that a repair takes away: `.hoodie/.hudi_services/removed/<instant of the repair>/<file>`.

Nothing reads them but people: they show what an instant was before it was rolled back.
"""

from collections.abc import Iterable
from contextlib import suppress

from ..errors import AlreadyExists, NotFound
from ..files.names import OWN_FOLDER
from ..handle import Table
from ..timeline.instant import Instant

_FOLDER = f"{OWN_FOLDER}/removed"


def keep_copies(table: Table, repair: str, file_names: Iterable[str]) -> None:
    """Copy files of the timeline, before the repair at `repair` deletes them; what is gone already is passed over."""
    for name in file_names:
        with suppress(NotFound, AlreadyExists):
            table.storage.create(f"{_FOLDER}/{repair}/{name}", table.timeline.read_details(name))


def remove_instant(table: Table, instant: Instant) -> None:
    """Take a pending instant off the timeline, its latest state first; copies of its files are kept.

    The caller holds the lock. Raises ConflictError when it was lost.
    """
    files = sorted(table.timeline.files_of(instant.ts, instant.action), key=lambda file: file.state, reverse=True)
    keep_copies(table, instant.ts, [file.file_name for file in files])
    table.check_held()
    for file in files:
        table.storage.delete(table.timeline.path(file.file_name))
