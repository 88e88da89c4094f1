"""What follows a commit under the same lock: services of the metadata table."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from ..commit.drafts import TimesSource
from ..metadata.metadata_table import MetadataTable
from ..snapshot import Snapshot, hold_nothing

Afterwards: TypeAlias = Callable[[MetadataTable, TimesSource], bool]
"""Called with the metadata table as it is after the commit; returns whether it has changed that table."""


def settled(after: Snapshot | None, afterwards: Afterwards | None, times: TimesSource) -> Snapshot | None:
    """The table `after` a commit and what follows it, for whoever comes next without the lock.

    None where only another look would tell.
    """
    if after is None or (after.metadata is not None and afterwards is not None and afterwards(after.metadata, times)):
        return None
    return replace(after, check_held=hold_nothing)
