"""Copies of timeline files that a repair takes away: `.hoodie/.hudi_services/removed/<instant of the repair>/<file>`.

Nothing reads them but people: they show what an instant was before it was rolled back.
"""

from collections.abc import Iterable
from contextlib import suppress

from ..errors import AlreadyExists, NotFound
from ..files.names import TABLE_FOLDER
from ..handle import Table

_FOLDER = f"{TABLE_FOLDER}/.hudi_services/removed"


def keep_copies(table: Table, repair: str, file_names: Iterable[str]) -> None:
    """Copy files of the timeline, before the repair at `repair` deletes them; what is gone already is passed over."""
    for name in file_names:
        with suppress(NotFound, AlreadyExists):
            table.storage.create(f"{_FOLDER}/{repair}/{name}", table.timeline.read_details(name))
