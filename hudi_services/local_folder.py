"""The folder of a table in the local file system: whatever is done there stays there.

The folder itself may be, or lie below, a symbolic link: operators do that. Below it no link is followed, neither to
list nor to read, write or delete: what it leads to is no part of the table, and this user may have rights to more than
the table. As with Hadoop's FileUtil.fullyDelete, a link that is to be deleted is itself deleted. Links are looked for
right before; who puts one there in the same moment wins.

What else lies around is passed over by listings: pipes, sockets and devices; files whose names have control characters,
and whatever has a name that is no UTF-8, or lies so deep that the operating system takes no path that long, since no
path in a table's files can name them. `remove_tree` takes them, too. However deep folders lie, nothing here recurses.
"""

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from operator import attrgetter

from .errors import AlreadyExists, StorageError, SymbolicLink
from .folder_removal import FOLDER, remove_tree
from .limits import check_size
from .paths import is_addressable, is_unicode

_STAGED = re.compile(r"[^#]*#[0-9]+")
"""How obstore calls a local file until it is whole; it would take no other file of such a name."""
_STRIDE = 16
"""After so many folders, the way to the next ones starts there."""
_ODD = re.compile(r"[\x00-\x1f\x7f#]")
"""In names that need another look; most have none of these."""

Found = tuple[str, os.stat_result]
"""A file: its path relative to the folder, and its status."""


class LocalFolder:
    """Paths are relative to `root`, "" being the root, and were checked to stay below it.

    Raises OSError, and the StorageError family.
    """

    def __init__(self, root: str) -> None:
        self._root = root

    def os_path(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def check_way(self, path: str) -> None:
        """Raise SymbolicLink when a folder on the way to `path` is a link."""
        self._plain_folders(path.split("/")[:-1])

    def read(self, path: str, limit: int) -> bytes:
        """The whole file; raises CorruptFile for one of more than `limit` bytes."""
        with self._opened(path) as (file, size):
            check_size(self.os_path(path), size, limit)
            return _read(file, 0, size)

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Less than `length` where the file ends before; raises StorageError when nothing is there."""
        if not length:
            self.check_file(path)
            return b""
        with self._opened(path) as (file, size):
            if start >= size:
                raise StorageError(f"{self.os_path(path)} has {size} bytes, and none at {start}")
            return _read(file, start, min(length, size - start))

    @contextmanager
    def _opened(self, path: str) -> Iterator[tuple[int, int]]:
        """The descriptor of a file, and its size. By ourselves: cheaper than by obstore, and no link is followed."""
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

    def check_file(self, path: str) -> None:
        """As `check_way`, and raise StorageError also for what is there but no file: it is not to be opened."""
        folders, name = path.split("/")[:-1], path.rpartition("/")[2]
        if not self._plain_folders(folders):
            return
        with _missing_passed_over():
            mode = os.lstat(self.os_path(path)).st_mode
            if stat.S_ISLNK(mode):
                raise self._link(path)
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                raise StorageError(f"{self.os_path(path)} is no file: {name} is a pipe, a socket or a device")

    def status(self, path: str) -> os.stat_result | None:
        """Of a file; None when there is none."""
        self.check_way(path)
        try:
            return _status(self.os_path(path), os.lstat(self.os_path(path)))
        except OSError as e:
            if _is_missing(e):
                return None
            raise

    def list_dir(self, path: str) -> Iterator[tuple[str, os.stat_result | None]]:
        """What lies directly below a folder, by name: files, and folders with None.

        A link to a folder is such a folder, so that whoever goes there is refused; one to a file is a file as large as
        that, so that nobody takes it for lost.
        """
        if path and not self._plain_folders(path.split("/")):
            return
        for below, entry in self._entries(path):
            if not entry.is_file(follow_symlinks=False) and _is_folder(entry):
                yield below, None
            elif (found := _file(entry)) is not None:
                yield below, found

    def list_tree(self, path: str) -> Iterator[Found]:
        """All files below a folder; a link counts as a file, wherever it leads, so that nothing is below one."""
        if path:
            self.check_way(path)
        for below, entry in self._walk(path):
            if not entry.is_dir(follow_symlinks=False) and (found := _file(entry)) is not None:
                yield below, found

    def list_staged(self) -> Iterator[Found]:
        """What killed writers left, which the others do not list."""
        for below, entry in self._walk(""):
            if _STAGED.fullmatch(entry.name) and entry.is_file(follow_symlinks=False) and is_addressable(below):
                with _missing_passed_over():
                    yield below, entry.stat(follow_symlinks=False)

    def unlink(self, path: str) -> None:
        """Delete a file, or a link, not what it leads to; a missing one is success, and a folder is no file."""
        self.check_way(path)
        self._drop_checksum_twin(path)
        with suppress(IsADirectoryError), _missing_passed_over():
            os.unlink(self.os_path(path))

    def unlink_staged(self, path: str) -> None:
        """Delete what killed writers left of a file: it is staged under `<name>#<n>`, n from 1."""
        number = 1
        with _missing_passed_over():
            while True:
                os.unlink(f"{self.os_path(path)}#{number}")
                number += 1

    def prepare_put(self, path: str) -> None:
        """Before a file is written: the twin goes first, for Hadoop refuses a file that does not match it, and accepts
        one without."""
        self.check_way(path)
        self._drop_checksum_twin(path)

    def remove_tree(self, path: str) -> None:
        """Delete a folder with all that is in it; what is put there meanwhile stays."""
        self.check_way(path)
        top = self.os_path(path)
        try:
            if not stat.S_ISDIR(os.lstat(top).st_mode):
                os.unlink(top)
                return
        except OSError as e:
            if _is_missing(e):
                return
            raise
        remove_tree(top)

    def remove_empty_dirs(self, path: str) -> None:
        """Delete a folder that has nothing but folders in it."""
        self.check_way(path)
        folders = [path]
        for below, entry in self._walk(path):
            if not entry.is_dir(follow_symlinks=False):
                return
            folders.append(below)
        # Each stands behind the one that it is in.
        for folder in reversed(folders):
            try:
                os.rmdir(self.os_path(folder))
            except OSError:
                return

    def move(self, source: str, target: str) -> None:
        """A rename would overwrite; obstore's creation of files, too, rests on hard links."""
        self.check_file(source)
        self.check_way(target)
        old, new = self.os_path(source), self.os_path(target)
        try:
            try:
                os.link(old, new, follow_symlinks=False)
            except FileNotFoundError:
                self._make_folders(target.split("/")[:-1])
                os.link(old, new, follow_symlinks=False)
        except FileExistsError as e:
            # Two hard links to one file: a move was cut off here.
            if not os.path.samestat(os.lstat(old), os.lstat(new)):
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
        """What is below a folder, each after the folder that it is in; nothing when it is a link, or not there.

        The caller has looked at the way to `path`.
        """
        waiting = [path]
        while waiting:
            folder = waiting.pop()
            # Looked at again: a link may have taken its place since it was listed.
            if folder and not self._is_plain_folder(folder):
                continue
            for below, entry in self._entries(folder):
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(below)
                yield below, entry

    def _is_plain_folder(self, path: str) -> bool:
        try:
            return stat.S_ISDIR(os.lstat(self.os_path(path)).st_mode)
        except OSError as e:
            if _is_missing(e):
                return False
            raise

    def _entries(self, path: str) -> Iterator[tuple[str, "os.DirEntry[str]"]]:
        """What is in a folder, by name, each with its path; nothing when there is no such folder."""
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
        """Whether what lies on the way is there; raises SymbolicLink for a link among it."""
        here, start = self._root, None
        try:
            for number, name in enumerate(names, 1):
                here = f"{here}/{name}"
                if stat.S_ISLNK(os.lstat(here, dir_fd=start).st_mode):
                    raise self._link("/".join(names[:number]))
                if number % _STRIDE == 0:
                    # Else the system would go all of the way for each: in deep folders that takes minutes.
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
        """Hadoop's local file system keeps `.<name>.crc` beside a file and fails reads that do not match it."""
        folder, _, name = self.os_path(path).rpartition("/")
        with suppress(IsADirectoryError), _missing_passed_over():
            os.unlink(f"{folder}/.{name}.crc")


def _read(file: int, start: int, length: int) -> bytes:
    """Raises OSError for a file that became shorter meanwhile."""
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
        # A link to itself, or to where this user may not look.
        return False


def _file(entry: "os.DirEntry[str]") -> os.stat_result | None:
    """None for what listings pass over, and for what is gone by now."""
    if _ODD.search(entry.name) and (_STAGED.fullmatch(entry.name) or not is_addressable(entry.name)):
        return None
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError as e:
        if _is_missing(e):
            return None
        raise
    return found if stat.S_ISREG(found.st_mode) else _status(entry.path, found)


def _status(path: str, found: os.stat_result) -> os.stat_result | None:
    """Of a link to a file that of the file, so that sizes are right; None for folders, pipes and the like."""
    if stat.S_ISREG(found.st_mode):
        return found
    if not stat.S_ISLNK(found.st_mode):
        return None
    with suppress(OSError):
        target = os.stat(path)
        return target if stat.S_ISREG(target.st_mode) else found
    return found


def _is_missing(error: OSError) -> bool:
    """Whether there is no such file or folder, or none that a path can name."""
    return isinstance(error, FileNotFoundError | NotADirectoryError) or error.errno == errno.ENAMETOOLONG


@contextmanager
def _missing_passed_over() -> Iterator[None]:
    try:
        yield
    except OSError as e:
        if not _is_missing(e):
            raise
