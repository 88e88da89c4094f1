"""The kinds of orphan files, and the reasons why other files are kept, as an operator reads them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class OrphanKind(Enum):
    """Why a file is an orphan file."""

    STRAY = "its commit does not list it: written by a repeated task"
    DEAD_ATTEMPT = "its instant is not on the timeline: rolled back, or never requested"
    ROLLED_BACK = "rolled back before the timeline begins"
    NEVER_COMMITTED = "older than the timeline, and neither the archive nor the metadata table has it"
    MARKERS = "markers of an attempt that has ended"
    HEARTBEAT = "heartbeat of an attempt that has ended"
    LEASE = "lease of an attempt that has ended"
    CHECKPOINTS = "checkpoints of an attempt that has ended"
    STAGED = "staged files of an attempt that has ended"
    UPLOAD = "unfinished file of a killed writer"


class ReasonToStay(Enum):
    """Why a file that readers do not need, or may not need, stays where it is."""

    PENDING = "belongs to a pending instant: see recover"
    YOUNG = "younger than the minimum age"
    IN_SAVEPOINT = "named in a savepoint"
    IN_PLAN = "named in a pending plan"
    SUSPICIOUS = "suspicious: its commit does not list it, but readers see its rows because there is no metadata table"
    UNREADABLE_COMMIT = "unknown: its commit does not list files"
    OTHER_ACTION = "unknown: its instant is not one that writes files"
    LOG_OF_SLICE = "unknown: a log file whose blocks do not say that it may go, or say that a completed write wrote it"
    CANCELLED = "blocks of a rolled back write, and the command that cancels them, belong together"
    NO_TIMELINE = "unknown: the timeline has no completed write"
    UNREADABLE_ARCHIVE = "unknown: older than the timeline, and the archive cannot be read"
    NOT_IN_ARCHIVE = "unknown: older than the timeline, and the archive does not tell enough of that time"
    LISTED = "unknown: its instant is gone from the timeline, but the metadata table lists it"
    ONLY_FILE = "unknown: rolled back, but the last file of a file group that a completed write may have begun"
    CLEANING = "unknown: rolled back, but a clean is pending, or has just ended, that may rely on it"
    CHANGED = "changed during the run"


Verdict = OrphanKind | ReasonToStay | None
"""None: a live file."""


@dataclass(frozen=True, slots=True)
class Item:
    """One orphan file. `attempt` is the time of the instant that created the file, "" where it is not known."""

    path: str
    size: int
    mtime_millis: int
    attempt: str
    action: str | None
    reason: OrphanKind


@dataclass(frozen=True, slots=True)
class Total:
    files: int = 0
    bytes: int = 0

    def plus(self, size: int) -> "Total":
        return Total(self.files + 1, self.bytes + size)


@dataclass(frozen=True, slots=True)
class Ages:
    """Limits for the milliseconds since a file was last written."""

    minimum: int
    """Younger files are kept."""
    sign_of_life: int
    """Younger heartbeats may belong to a writer whose instant is not on the timeline yet."""


@dataclass(frozen=True, slots=True)
class OrphanFindings:
    """The result for one table: orphan files by path, files that are kept by reason, and files that cannot be read."""

    items: tuple[Item, ...]
    kept: Mapping[ReasonToStay, Total]
    warnings: tuple[str, ...] = ()
