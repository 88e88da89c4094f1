"""Deletes a local folder with its content, however deep, by descriptors, of which two are open at a time."""

import errno
import os
from contextlib import suppress
from dataclasses import dataclass

from ..errors import StorageError

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags that open a folder and nothing else, not even a link to a folder."""


@dataclass(slots=True)
class _Emptied:
    """A folder that `remove_tree` is deleting: its name, its identity, and the folders that are left in it."""

    name: str
    identity: tuple[int, int]
    folders: list[str]


def remove_tree(top: str) -> None:
    """Delete a folder, its files first. Descriptors keep all paths short, and no link is followed.

    Raises StorageError when another process moves a folder below it meanwhile.
    """
    parent, _, name = top.rpartition("/")
    way: list[_Emptied] = []
    # The caller has checked the path to the folder; the table's folder itself may be a link.
    here = os.open(parent or "/", FOLDER & ~os.O_NOFOLLOW)
    try:
        pending = _Emptied("", _identity(here), [name])
        while True:
            if pending.folders:
                name = pending.folders.pop()
                below = _open_folder(name, here)
                if below is None:
                    continue
                os.close(here)
                here = below
                way.append(pending)
                pending = _Emptied(name, _identity(here), _remove_files(here))
            elif way:
                outer = way.pop()
                above = os.open("..", FOLDER, dir_fd=here)
                os.close(here)
                here = above
                if _identity(here) != outer.identity:
                    raise StorageError(f"{top}: a folder in it was moved while it was deleted", hint="run it again")
                _remove_folder(pending.name, here)
                pending = outer
            else:
                return
    finally:
        os.close(here)


def _identity(folder: int) -> tuple[int, int]:
    found = os.fstat(folder)
    return found.st_dev, found.st_ino


def _open_folder(name: str, here: int) -> int | None:
    """Open a folder; None when it does not exist. A link in its place is itself deleted."""
    try:
        return os.open(name, FOLDER, dir_fd=here)
    except FileNotFoundError:
        return None
    except OSError as e:
        if e.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=here)
    return None


def _remove_files(here: int) -> list[str]:
    """Delete everything in a folder except its folders, and return the names of these."""
    folders = []
    with os.scandir(here) as found:
        entries = list(found)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            folders.append(entry.name)
        else:
            with suppress(FileNotFoundError):
                os.unlink(entry.name, dir_fd=here)
    return folders


def _remove_folder(name: str, here: int) -> None:
    try:
        os.rmdir(name, dir_fd=here)
    except NotADirectoryError:
        # A link has taken its place.
        os.unlink(name, dir_fd=here)
    except OSError as e:
        # Another process has deleted the folder, or put something into it.
        if e.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST):
            raise
