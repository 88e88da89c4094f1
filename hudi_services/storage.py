"""The protocol of a table's storage: files below a root URL, on the driver and on executors.

Paths are relative to the root URL, with "/" between names and no leading slash; "" is the root itself.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import IO, Protocol

from .errors import ConfigError
from .limits import LARGEST_FILE

FOLDER_FILE = ".folder"
"""The empty file that stands for a folder in a store, which has none."""
_READ_ONLY = (
    "what only reads works there; changes need local storage, or an object store with conditional puts, which "
    "aws_conditional_put (AWS_CONDITIONAL_PUT) may have switched off"
)


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A stored file: path relative to the root, size in bytes, modification time in epoch milliseconds."""

    path: str
    size: int
    mtime_millis: int
    tag: str = field(default="", compare=False)
    """The store's tag of this content (ETag); "" where there is none, and then `file_cache` keeps nothing."""
    version: str = field(default="", compare=False)
    """The number of this version in stores that have one; listings need not tell it."""

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True)
class StoreCapabilities:
    """What not every store can do. A storage declares it, and whoever needs it asks before anything is written."""

    atomic_create: bool
    """`create` writes a file only where there is none, for one of several processes: every change of a table rests on
    that, and without it a table can be read."""
    conditional_replace: bool
    """`replace` overwrites nothing but what was seen: lock files that expire, and archives of layout 2, need it."""
    renames: bool
    """`move` renames the file, so that its size does not matter."""


class FileReads(Protocol):
    """The part of a storage that reads bytes of files."""

    def full_path(self, path: str) -> str: ...

    def read_range(self, path: str, start: int, length: int) -> bytes: ...

    def head(self, path: str) -> FileInfo | None: ...


class FileWrites(Protocol):
    """The part of a storage that writes files."""

    def full_path(self, path: str) -> str: ...

    def open_output(self, path: str) -> IO[bytes]: ...


class Storage(Protocol):
    """Files below one root URL. Every method raises the StorageError family, naming the full path.

    A path that does not stay below the root, or that stores do not accept (control characters), raises CorruptFile
    before anything is touched: a file of the table named it. On local storage no link below the root is followed:
    access through a link raises SymbolicLink (see `stores.local_folder`).
    """

    @property
    def root(self) -> str:
        """The root as Hudi writes it into plans: an absolute local path without scheme, or the URL."""

    @property
    def capabilities(self) -> StoreCapabilities: ...

    @property
    def identity(self) -> Hashable:
        """Equal for storages of the same files: the same root, reached in the same way."""

    def full_path(self, path: str) -> str: ...

    def elsewhere(self, url: str) -> "Storage":
        """The storage at another URL, with the same options when it is a store of the same kind. Raises ConfigError."""

    def check_paths(self, paths: Iterable[str]) -> None:
        """Raise the error with which the methods below refuse one of the paths; sends nothing to an object store."""

    def read(self, path: str, limit: int = LARGEST_FILE) -> bytes:
        """The whole file; raises CorruptFile, before reading it, when it has more than `limit` bytes (see `limits`)."""

    def read_range(self, path: str, start: int, length: int) -> bytes: ...

    def head(self, path: str) -> FileInfo | None:
        """The FileInfo of a file; None when it does not exist."""

    def list_dir(self, path: str) -> tuple[list[FileInfo], list[str]]:
        """Files and sub-folder paths directly below `path`; both empty when it does not exist.

        A link is listed as its target. Local files with names that no path can have are left out; a folder with control
        characters in its name is listed, and can itself be listed.
        """

    def list_new(self, path: str, known: AbstractSet[str]) -> list[FileInfo]:
        """The files of `list_dir` whose names are not `known`; few of many take less time on local storage."""

    def list_tree(self, path: str) -> list[FileInfo]:
        """All files below `path`, recursively. A link counts as a file: nothing is below it."""

    def list_few(self, path: str, most: int) -> list[FileInfo] | None:
        """As `list_tree`, folder by folder in the order of their names; None when there are more files than `most`."""

    def create(self, path: str, data: bytes) -> None:
        """Write a new file, whole or not at all; raises AlreadyExists and leaves the existing file alone.

        A file that this call itself has written is no existing one, although the store's answer was lost. Needs
        `atomic_create`.
        """

    def put(self, path: str, data: bytes) -> None:
        """Write or overwrite."""

    def replace(self, path: str, data: bytes, seen: FileInfo) -> bool:
        """Overwrite the file that was `seen`; False when it has changed since, or does not exist any more.

        The store compares the two; on local storage this method does, under a lock of the folder that only this method
        takes: what else writes the file in between is overwritten. Needs `conditional_replace`.
        """

    def delete(self, path: str) -> None:
        """Delete a file, or a link but not its target; a missing file is success, and a folder stays."""

    def delete_all(self, paths: Sequence[str], done: Callable[[int], None]) -> None:
        """As `delete` for each path, many at once; `done` is called with how many more were deleted."""

    def open_output(self, path: str) -> IO[bytes]:
        """A sequential writer; the file appears when it is closed."""

    def delete_output(self, path: str) -> None:
        """As `delete`; also delete the unfinished versions of the file that killed writers of `open_output` left."""

    def delete_tree(self, path: str) -> None:
        """Delete a folder with its content; a missing folder is success. Links are deleted, also at `path`; not their
        targets."""

    def make_folder(self, path: str) -> None:
        """Make a folder, with those above it; one that exists is success. In a store an empty file stands for it."""

    def remove_empty_dirs(self, path: str) -> None:
        """Delete a folder that has nothing but folders in it, where the store has folders at all."""

    def move(self, source: str, target: str) -> None:
        """Move a file to another path; raises NotFound, and AlreadyExists without touching either file.

        A process killed in the middle leaves the whole file under both paths; on local storage the next move completes
        it.
        """

    def list_staged(self) -> list[FileInfo]:
        """The unfinished files that killed writers of `open_output` and `create` left, and no other listing shows.

        Files that vanish meanwhile are skipped.
        """


def check_creates(storage: Storage, what: str = "a change of a table") -> None:
    """Raise ConfigError where `create` is not atomic, which `what` needs."""
    if not storage.capabilities.atomic_create:
        raise ConfigError(
            f"{what} needs a store that creates a file only where there is none, and that of {storage.root} does not",
            hint=_READ_ONLY,
        )


def check_replaces(storage: Storage, what: str) -> None:
    """Raise ConfigError where `replace` is not conditional, which `what` needs."""
    if not storage.capabilities.conditional_replace:
        raise ConfigError(
            f"{what} needs a store that replaces a file only if nobody has changed it, and that of {storage.root} does "
            "not",
            hint=_READ_ONLY,
        )
