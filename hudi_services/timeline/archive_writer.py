"""What an archive takes: instants with the contents of their files; one protocol, a writer for each timeline layout."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..options import archive_keys, value_of
from .instant import Instant, State


@dataclass(frozen=True, slots=True)
class StoredState:
    """One file of an instant: the instant in that state, its content, its modification time in epoch milliseconds."""

    instant: Instant
    data: bytes
    mtime_millis: int


@dataclass(frozen=True, slots=True)
class StoredInstant:
    """A completed instant with all of its files that are there, lowest state first."""

    instant: Instant
    states: tuple[StoredState, ...]

    def content(self, state: State) -> bytes:
        """The content of the file of this state, of the newest one; b"" where there is none."""
        return next((one.data for one in reversed(self.states) if one.instant.state is state), b"")


@dataclass(frozen=True, slots=True)
class ArchiveForm:
    """How the files of an archive are written.

    `zone` is that of the timeline, and `release` the Hudi release whose schemas count. `entries` is the number of
    entries of a block (layout 1), `merged` the number of files of one level that are merged,
    `merged_bytes` the size from which on a file is merged no more, `manifests` the number that is kept (layout 2).
    """

    zone: str
    release: str
    entries: int = value_of(archive_keys.ARCHIVE_BATCH)
    merged: int = value_of(archive_keys.ARCHIVE_MERGED_FILES)
    merged_bytes: int = value_of(archive_keys.ARCHIVE_FILE_BYTES)
    manifests: int = value_of(archive_keys.ARCHIVE_MANIFESTS)


class ArchiveWriter(Protocol):
    """Adds to one archive. The caller holds the table's lock; `check_held` raises ConflictError when it was lost.

    Each method may be repeated after a kill, and takes no entry twice.
    """

    def add(self, instants: Sequence[StoredInstant], check_held: Callable[[], None]) -> list[str]:
        """Add instants, which are in timeline order, and return the names of the new files.

        An instant that a killed archival has added already is left out. What the archive has counts from here on.
        Raises CorruptFile for an instant file that cannot be read.
        """

    def compact(self, check_held: Callable[[], None]) -> list[str]:
        """Merge small files where that is due, delete those that no reader needs, and return the names of new files."""
