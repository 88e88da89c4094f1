"""Access to the folder of a table in the local file system, and to nothing outside of it.

The folder itself may be a symbolic link, or be below one: operators do that. Below the folder no link is followed,
neither to list nor to read, write or delete: the target of a link is no part of the table, and this user may have
rights to more than the table. As with Hadoop's FileUtil.fullyDelete, a link that is to be deleted is itself deleted.
Links are checked right before each access; a link that another process creates between the two may be followed.

Listings skip pipes, sockets and devices; files whose names have control characters; and everything whose name is not
UTF-8, or whose path is too long for the operating system, because no path in a table's files can name them.
`remove_tree` deletes these, too. Nothing here recurses, however deep folders are.
"""

import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from operator import attrgetter

from ..errors import AlreadyExists, StorageError, SymbolicLink
from ..limits import check_size
from ..paths import bare_name, is_addressable, is_unicode
from .folder_removal import FOLDER, remove_tree

_STAGED = re.compile(r"[^#]*#[0-9]+")
"""The name of a local file that obstore has not finished; obstore accepts no other file with such a name."""
_LONGEST_LOCK, _LOCK_PAUSE = 10.0, 0.005
"""Seconds to wait for a process that replaces a file: it may have been stopped in the middle."""
_STRIDE = 16
"""After so many folders, a path continues from a descriptor of the last one."""
_ODD = re.compile(r"[\x00-\x1f\x7f#]")
"""Characters of names that need a closer check; most names have none of them."""

Found = tuple[str, os.stat_result]
"""A file: its path relative to the folder, and its status."""


class LocalFolder:
    """The files below `root`. Paths are relative to it ("" is the root); the caller checks that they stay below it.

    Methods raise OSError and the StorageError family.
    """

    def __init__(self, root: str) -> None:
        self._root = root

    def os_path(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def check_way(self, path: str) -> None:
        """Raise SymbolicLink when a folder on the way to `path` is a link."""
        self._plain_folders(path.split("/")[:-1])

    def make(self, path: str) -> None:
        """Make a folder, with those above it; one that exists is success."""
        self.check_way(f"{path}/")
        os.makedirs(self.os_path(path), exist_ok=True)

    @contextmanager
    def exclusive(self, path: str) -> Iterator[bool]:
        """A context in which no other process is in this context of the same folder; gives False where one stays in.

        File systems without `flock` know no such context; gives True there.
        """
        self.check_way(path)
        try:
            folder = os.open(self.os_path(path.rpartition("/")[0]), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as e:
            if not _is_missing(e):
                raise
            yield False
            return
        try:
            yield _locked(folder)
        finally:
            os.close(folder)

    def read(self, path: str, limit: int) -> bytes:
        """The whole file; raises CorruptFile for one of more than `limit` bytes."""
        with self._opened(path) as (file, size):
            check_size(self.os_path(path), size, limit)
            return _read(file, 0, size)

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """`length` bytes from `start`, or fewer up to the end; raises StorageError when nothing is at `start`."""
        if not length:
            self.check_file(path)
            return b""
        with self._opened(path) as (file, size):
            if start >= size:
                raise StorageError(f"{self.os_path(path)} has {size} bytes, and none at {start}")
            return _read(file, start, min(length, size - start))

    @contextmanager
    def _opened(self, path: str) -> Iterator[tuple[int, int]]:
        """The descriptor of a file, and its size. This is cheaper than obstore, and follows no link."""
        self.check_file(path)
        try:
            file = os.open(self.os_path(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except NotADirectoryError as e:
            raise FileNotFoundError(*e.args) from e
        try:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode):
                raise FileNotFoundError(errno.ENOENT, "it is no file")
            yield file, found.st_size
        finally:
            os.close(file)

    def check_file(self, path: str) -> bool:
        """As `check_way`, also for a link at `path`; raise StorageError when `path` is a pipe, a socket or a device.

        Whether there is anything at `path`.
        """
        folders, name = path.split("/")[:-1], bare_name(path)
        if not self._plain_folders(folders):
            return False
        with _missing_passed_over():
            mode = os.lstat(self.os_path(path)).st_mode
            if stat.S_ISLNK(mode):
                raise self._link(path)
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                raise StorageError(f"{self.os_path(path)} is no file: {name} is a pipe, a socket or a device")
            return True
        return False

    def status(self, path: str) -> os.stat_result | None:
        """The status of a file, or of the file that a link leads to; None when there is none."""
        self.check_way(path)
        try:
            return _status(self.os_path(path), os.lstat(self.os_path(path)))
        except OSError as e:
            if _is_missing(e):
                return None
            raise

    def list_dir(self, path: str) -> Iterator[tuple[str, os.stat_result | None]]:
        """The entries of a folder by name: a file with its status, a folder with None.

        A link to a folder is listed as a folder, so that access through it is refused. A link to a file is listed with
        the size of that file, so that it does not count as lost.
        """
        if path and not self._plain_folders(path.split("/")):
            return
        for below, entry in self._entries(path):
            if not entry.is_file(follow_symlinks=False) and _is_folder(entry):
                yield below, None
            elif (found := _file(entry)) is not None:
                yield below, found

    def list_new(self, path: str, known: AbstractSet[str]) -> Iterator[Found]:
        """The files of `list_dir` whose names are not `known`: only these are looked at."""
        if path and not self._plain_folders(path.split("/")):
            return
        names: set[str] = set()
        with _missing_passed_over():
            names = {*os.listdir(self.os_path(path))} - known
        for name in sorted(names):
            below = f"{path}/{name}" if path else name
            if is_addressable(name) and not _STAGED.fullmatch(name) and not os.path.isdir(self.os_path(below)):
                with _missing_passed_over():
                    found = _status(self.os_path(below), os.lstat(self.os_path(below)))
                    if found is not None:
                        yield below, found

    def list_tree(self, path: str) -> Iterator[Found]:
        """All files below a folder; a link counts as a file, wherever it leads, and nothing below it is listed."""
        if path:
            self.check_way(path)
        for below, entry in self._walk(path):
            if not entry.is_dir(follow_symlinks=False) and (found := _file(entry)) is not None:
                yield below, found

    def list_staged(self) -> Iterator[Found]:
        """The unfinished files that killed writers left; the other listings skip them."""
        for below, entry in self._walk(""):
            if _STAGED.fullmatch(entry.name) and entry.is_file(follow_symlinks=False) and is_addressable(below):
                with _missing_passed_over():
                    yield below, entry.stat(follow_symlinks=False)

    def unlink(self, path: str) -> None:
        """Delete a file, or a link but not its target; a missing file is success, and a folder stays."""
        self.check_way(path)
        self._drop_checksum_twin(path)
        with suppress(IsADirectoryError), _missing_passed_over():
            os.unlink(self.os_path(path))

    def unlink_staged(self, path: str) -> None:
        """Delete the unfinished versions of a file that killed writers left: `<name>#<n>`, n from 1."""
        number = 1
        with _missing_passed_over():
            while True:
                os.unlink(f"{self.os_path(path)}#{number}")
                number += 1

    def prepare_put(self, path: str) -> None:
        """Delete the checksum file before a file is written: Hadoop refuses a file that does not match it, and accepts
        a file without it."""
        self.check_way(path)
        self._drop_checksum_twin(path)

    def remove_tree(self, path: str) -> bool:
        """Delete a folder with its content; files that another process adds meanwhile stay. False for a missing one."""
        self.check_way(path)
        top = self.os_path(path)
        try:
            if not stat.S_ISDIR(os.lstat(top).st_mode):
                os.unlink(top)
                return True
        except OSError as e:
            if _is_missing(e):
                return False
            raise
        remove_tree(top)
        return True

    def remove_empty_dirs(self, path: str) -> None:
        """Delete a folder that has nothing but folders in it."""
        self.check_way(path)
        folders = [path]
        for below, entry in self._walk(path):
            if not entry.is_dir(follow_symlinks=False):
                return
            folders.append(below)
        # Each folder comes after its parent.
        for folder in reversed(folders):
            try:
                os.rmdir(self.os_path(folder))
            except OSError:
                return

    def move(self, source: str, target: str) -> None:
        """Move a file by a hard link; raises AlreadyExists. A rename would overwrite; obstore uses hard links, too."""
        if not self.check_file(source):
            raise FileNotFoundError(errno.ENOENT, "it does not exist")
        self.check_way(target)
        old, new = self.os_path(source), self.os_path(target)
        try:
            try:
                os.link(old, new, follow_symlinks=False)
            except FileNotFoundError:
                self._make_folders(target.split("/")[:-1])
                os.link(old, new, follow_symlinks=False)
        except FileExistsError as e:
            # Both paths are hard links to one file when an earlier move was cut off here.
            if source == target or not os.path.samestat(os.lstat(old), os.lstat(new)):
                raise AlreadyExists(f"{new} exists already") from e
        self._drop_checksum_twin(target)
        self._drop_checksum_twin(source)
        os.unlink(old)

    def _make_folders(self, names: list[str]) -> None:
        here = self._root
        for name in names:
            here = f"{here}/{name}"
            with suppress(FileExistsError):
                os.mkdir(here)

    def _walk(self, path: str) -> Iterator[tuple[str, "os.DirEntry[str]"]]:
        """All entries below a folder, each after its parent; none when the folder is a link or does not exist.

        The caller has checked the folders on the way to `path`.
        """
        waiting = [path]
        while waiting:
            folder = waiting.pop()
            # Checked again: a link may have taken the place of the folder since it was listed.
            if folder and not self._is_plain_folder(folder):
                continue
            folders: list[str] = []
            for below, entry in self._entries(folder):
                if entry.is_dir(follow_symlinks=False):
                    folders.append(below)
                yield below, entry
            # In the order of their names, as a store lists them.
            waiting += reversed(folders)

    def _is_plain_folder(self, path: str) -> bool:
        try:
            return stat.S_ISDIR(os.lstat(self.os_path(path)).st_mode)
        except OSError as e:
            if _is_missing(e):
                return False
            raise

    def _entries(self, path: str) -> Iterator[tuple[str, "os.DirEntry[str]"]]:
        """The entries of a folder by name, each with its path; none when there is no such folder."""
        try:
            with os.scandir(self.os_path(path)) as found:
                entries = sorted(found, key=attrgetter("name"))
        except OSError as e:
            if _is_missing(e):
                return
            raise
        prefix = f"{path}/" if path else ""
        for entry in entries:
            name = entry.name
            if name.isascii() or is_unicode(name):
                yield prefix + name, entry

    def _plain_folders(self, names: list[str]) -> bool:
        """Whether all folders on the way exist; raises SymbolicLink when one of them is a link."""
        here, start = self._root, None
        try:
            for number, name in enumerate(names, 1):
                here = f"{here}/{name}"
                if stat.S_ISLNK(os.lstat(here, dir_fd=start).st_mode):
                    raise self._link("/".join(names[:number]))
                if number % _STRIDE == 0:
                    # Otherwise the system would resolve the whole path each time: in deep folders that takes minutes.
                    before, start = start, os.open(here, FOLDER, dir_fd=start)
                    here = "."
                    if before is not None:
                        os.close(before)
        except OSError as e:
            if _is_missing(e):
                return False
            raise
        finally:
            if start is not None:
                os.close(start)
        return True

    def _link(self, path: str) -> SymbolicLink:
        return SymbolicLink(
            f"{self.os_path(path)} is a symbolic link, and below a table's folder no link is followed",
            hint="put what it leads to in its place, or delete the link if it is not the table's; only the table's "
            "folder itself may be reached by a link",
        )

    def _drop_checksum_twin(self, path: str) -> None:
        """Delete `.<name>.crc`, the checksum of a file in Hadoop's local file system, which reads of it must match."""
        folder, _, name = self.os_path(path).rpartition("/")
        with suppress(IsADirectoryError), _missing_passed_over():
            os.unlink(f"{folder}/.{name}.crc")


def _read(file: int, start: int, length: int) -> bytes:
    """`length` bytes from `start`. Raises OSError for a file that became shorter meanwhile."""
    parts = []
    while True:
        # The system gives at most 2 GiB at once.
        data = os.pread(file, length, start)
        parts.append(data)
        start, length = start + len(data), length - len(data)
        if not length:
            return parts[0] if len(parts) == 1 else b"".join(parts)
        if not data:
            raise OSError(errno.EIO, "it became shorter while it was read")


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        # A link to itself, or to a place that this user may not read.
        return False


def _file(entry: "os.DirEntry[str]") -> os.stat_result | None:
    """The status of an entry; None for an entry that listings skip, or that was deleted meanwhile."""
    if _ODD.search(entry.name) and (_STAGED.fullmatch(entry.name) or not is_addressable(entry.name)):
        return None
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError as e:
        if _is_missing(e):
            return None
        raise
    return found if stat.S_ISREG(found.st_mode) else _status(entry.path, found)


def _status(path: str, status: os.stat_result) -> os.stat_result | None:
    """The status that listings give: for a link to a file, that of the file; None for folders, pipes and the like."""
    if stat.S_ISREG(status.st_mode):
        return status
    if not stat.S_ISLNK(status.st_mode):
        return None
    with suppress(OSError):
        target = os.stat(path)
        return target if stat.S_ISREG(target.st_mode) else status
    return status


def _is_missing(error: OSError) -> bool:
    """Whether `error` says that the file or folder does not exist, or that no path can name it."""
    return isinstance(error, FileNotFoundError | NotADirectoryError) or error.errno == errno.ENAMETOOLONG


@contextmanager
def _missing_passed_over() -> Iterator[None]:
    try:
        yield
    except OSError as e:
        if not _is_missing(e):
            raise


def _locked(folder: int) -> bool:
    """Take the lock of a descriptor, which ends when it is closed; False when another process keeps it."""
    end = time.monotonic() + _LONGEST_LOCK
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(_LOCK_PAUSE)
        except OSError as e:
            if e.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL):
                raise
            return True
        else:
            return True
