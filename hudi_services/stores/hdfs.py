"""A folder of an HDFS as a storage, on hdfs-native (see `hdfs_client`).

HDFS shows a file as soon as it is created, empty until it is closed, and what a killed writer leaves looks finished
after a while. So a file is written as `<name>#<20 digits>`, and makes its appearance by a rename, which HDFS does in
one step: with the content or not at all, and where nothing may be overwritten for one of several processes. Nobody else
knows the digits: when the answer to a rename is lost, they tell whether it was done.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, cast

from ..concurrency import at_once
from ..errors import AlreadyExists, CorruptFile, NotFound, StorageError
from ..limits import LARGEST_FILE, check_size
from ..storage import FileInfo, StoreCapabilities
from .base import BaseStorage
from .hdfs_client import HdfsClient, client_of, hdfs_native
from .hdfs_replacement import CLAIM, UNFINISHED, Content, Replacement, Vanished, renamed_once, unfinished_name
from .options import StorageOptions

if TYPE_CHECKING:
    from hdfs_native import FileStatus

_NOBODY_ANSWERS = (
    "host and port are those of fs.defaultFS in core-site.xml, often 8020 or 9000, and not those of the NameNode's page"
)
_URL = re.compile(r"([^:]*://[^/]*)(.*)", re.DOTALL)


class HdfsStorage(BaseStorage):
    """`Storage` below an `hdfs:` or `viewfs:` URL; the options are values of Hadoop's configuration."""

    capabilities = StoreCapabilities(atomic_create=True, conditional_replace=True, renames=True)

    def __init__(self, url: str, options: StorageOptions | None = None) -> None:
        """Raises ConfigError without the package hdfs-native."""
        super().__init__(url.rstrip("/"), options)
        hdfs_native()
        found = _URL.match(url)
        assert found is not None
        self._place, self._folder = found[1], found[2].rstrip("/")

    @property
    def _client(self) -> HdfsClient:
        return client_of(self._place, self._options, self._at(""))

    @contextmanager
    def errors(self, path: str) -> Iterator[None]:
        with super().errors(path):
            try:
                yield
            except FileExistsError as e:
                raise AlreadyExists(f"{self.full_path(path)} exists already") from e

    def _at(self, path: str) -> str:
        """The path in the file system."""
        return f"{self._folder}/{path}" if path else self._folder or "/"

    def _check_path(self, path: str) -> None:
        super()._check_path(path)
        if ":" in path:
            raise CorruptFile(
                f"{self.full_path(path)}: no name on HDFS can have a colon",
                hint="Apache Hudi writes such partition values as %3A with "
                "hoodie.datasource.write.partitionpath.urlencode=true",
            )

    # ---- reading

    def read(self, path: str, limit: int = LARGEST_FILE) -> bytes:
        self._check_path(path)
        with self.errors(path):
            file = self._client.open(self._at(path))
            check_size(self.full_path(path), len(file), limit)
            return self._client.read(file, 0, len(file))

    def read_range(self, path: str, start: int, length: int) -> bytes:
        self._check_path(path)
        if not length:
            return b""
        with self.errors(path):
            file = self._client.open(self._at(path))
            if start >= len(file):
                raise StorageError(f"{self.full_path(path)} has {len(file)} bytes, and none at {start}")
            return self._client.read(file, start, min(length, len(file) - start))

    def head(self, path: str) -> FileInfo | None:
        self._check_path(path)
        with self.errors(path):
            found = self._client.status(self._at(path))
        return None if found is None or found.isdir else _info(path, found)

    def list_dir(self, path: str) -> tuple[list[FileInfo], list[str]]:
        self._check_folder(path)
        with self.errors(path):
            entries = self._entries(path)
        files = [_info(below, found) for below, found in entries if not found.isdir]
        return [file for file in files if not UNFINISHED.fullmatch(file.name)], [
            below for below, found in entries if found.isdir and not _is_claim(below)
        ]

    def list_tree(self, path: str) -> list[FileInfo]:
        return [file for file in self._all_files(path) if not UNFINISHED.fullmatch(file.name)]

    def list_staged(self) -> list[FileInfo]:
        return [file for file in self._all_files("", with_claims=True) if UNFINISHED.fullmatch(file.name)]

    def list_few(self, path: str, most: int) -> list[FileInfo] | None:
        self._check_folder(path)
        found: list[FileInfo] = []
        waiting = [path]
        while waiting:
            files, folders = self.list_dir(waiting.pop())
            found += files
            if len(found) > most:
                return None
            waiting += reversed(folders)
        return found

    def _all_files(self, path: str, *, with_claims: bool = False) -> list[FileInfo]:
        """All files below a folder by their paths; a folder that vanishes meanwhile has none."""
        self._check_folder(path)
        files: list[FileInfo] = []
        folders = [path]
        with self.errors(path):
            while folders:
                entries = [entry for listed in at_once(self._entries, folders) for entry in listed]
                files += [_info(below, found) for below, found in entries if not found.isdir]
                folders = [below for below, found in entries if found.isdir and (with_claims or not _is_claim(below))]
        return sorted(files, key=lambda file: file.path)

    def _entries(self, path: str) -> "list[tuple[str, FileStatus]]":
        """What is in a folder, with its paths, in the order of the names: that of HDFS has signed bytes."""
        found = self._client.entries(self._at(path))
        prefix = f"{path}/" if path else ""
        return sorted(((prefix + one.path.rpartition("/")[2], one) for one in found), key=lambda one: one[0])

    # ---- writing

    def create(self, path: str, data: bytes) -> None:
        self._check_path(path)
        with self.errors(path):
            # Most of those that lose have written nothing.
            if self._client.status(self._at(path)) is None and self._publish(path, Content.of(data), overwrite=False):
                return
        raise AlreadyExists(f"{self.full_path(path)} exists already")

    def put(self, path: str, data: bytes) -> None:
        self._check_path(path)
        with self.errors(path):
            self._publish(path, Content.of(data), overwrite=True)

    def _publish(self, path: str, content: Content, *, overwrite: bool) -> bool:
        """Write an unfinished file, and rename it; False where that may not overwrite a file, and there is one."""
        target = self._at(path)
        staged = _beside(target)
        done = False
        try:
            content.write(self._client, staged)
            done = renamed_once(
                self._client, staged, target, lambda: content.is_at(self._client, target), overwrite=overwrite
            )
        finally:
            if not done:
                self._drop(staged)
        return done

    def _drop(self, staged: str) -> None:
        # `list_staged` has what stays.
        with suppress(OSError):
            self._client.delete(staged)

    def replace(self, path: str, data: bytes, seen: FileInfo) -> bool:
        def is_still() -> bool:
            found = self.head(path)
            return found is not None and (found, found.tag) == (seen, seen.tag)

        self._check_path(path)
        with self.errors(path):
            return Replacement(self._client, self._at(path), seen.tag, is_still).run(data)

    def open_output(self, path: str) -> IO[bytes]:
        self._check_path(path)
        with self.errors(path):
            return cast(IO[bytes], _Output(self, self._client, path, self._at(path)))

    # ---- deleting, folders, moving

    def delete(self, path: str) -> None:
        # HDFS would delete an empty folder, too.
        if self.head(path) is not None:
            with self.errors(path):
                self._client.delete(self._at(path))

    def delete_output(self, path: str) -> None:
        self.delete(path)
        with self.errors(path):
            folder, _, name = path.rpartition("/")
            for below, found in self._entries(folder):
                last = below.rpartition("/")[2]
                if not found.isdir and last.startswith(f"{name}#") and UNFINISHED.fullmatch(last):
                    self._client.delete(found.path)

    def delete_tree(self, path: str) -> None:
        self._check_path(path)
        with self.errors(path):
            self._client.delete(self._at(path), with_content=True)

    def make_folder(self, path: str) -> None:
        self._check_path(path)
        with self.errors(path):
            self._client.make_folder(self._at(path))

    def remove_empty_dirs(self, path: str) -> None:
        self._check_path(path)
        with self.errors(path):
            folders = [path]
            for folder in folders:
                entries = self._entries(folder)
                if not all(found.isdir for _, found in entries):
                    return
                folders += [below for below, _ in entries]
            found = self._client.status(self._at(path))
            if found is not None and found.isdir:
                for folder in reversed(folders):
                    self._client.delete(self._at(folder))

    def move(self, source: str, target: str) -> None:
        self._check_path(source)
        self._check_path(target)
        with self.errors(source):
            old, new = self._at(source), self._at(target)
            moved = self._client.status(old)
            if moved is None or moved.isdir:
                raise NotFound(f"{self.full_path(source)} does not exist")
            if self._client.status(new) is None:
                self._client.make_folder(new.rpartition("/")[0] or "/")
                try:
                    if renamed_once(self._client, old, new, lambda: self._is_that(new, moved)):
                        return
                except Vanished as e:
                    raise NotFound(f"{self.full_path(source)} does not exist") from e
        raise AlreadyExists(f"{self.full_path(target)} exists already")

    def _is_that(self, path: str, file: "FileStatus") -> bool:
        """Whether the file at `path` is the one that had this status."""
        found = self._client.status(path)
        return found is not None and _tag(found) == _tag(file)

    def _way_out(self, said: str) -> str:
        return _NOBODY_ANSWERS if "no NameNode answers" in said else ""


class _Output:
    """A writer of an unfinished file, which is renamed when it is closed."""

    def __init__(self, storage: HdfsStorage, client: HdfsClient, path: str, target: str) -> None:
        self._storage = storage
        self._client = client
        self._path = path
        self._target = target
        self._staged = _beside(target)
        self._raw = client.create(self._staged)
        self._bytes = 0

    def write(self, data: bytes) -> int:
        with self._storage.errors(self._path):
            written = self._raw.write(data)
        self._bytes += written
        return written

    def close(self) -> None:
        with self._storage.errors(self._path):
            try:
                self._raw.close()
                renamed_once(self._client, self._staged, self._target, self._is_there, overwrite=True)
            except OSError:
                with suppress(OSError):
                    self._client.delete(self._staged)
                raise

    def _is_there(self) -> bool:
        found = self._client.status(self._target)
        return found is not None and found.length == self._bytes


def _beside(target: str) -> str:
    folder, _, name = target.rpartition("/")
    return f"{folder}/{unfinished_name(name)}"


def _is_claim(path: str) -> bool:
    return CLAIM.fullmatch(path.rpartition("/")[2]) is not None


def _info(path: str, status: "FileStatus") -> FileInfo:
    return FileInfo(path, status.length, status.modification_time, _tag(status))


def _tag(status: "FileStatus") -> str:
    """The time of a file's last byte, its length and its block size, which differs for files that this package writes
    whole (see `hdfs_replacement.Content`).

    What Apache Hudi writes has the block size of the cluster. There the time tells files of one name and length apart:
    between two of them Hudi asks the NameNode several times, which takes longer than a millisecond.
    """
    return f"{status.modification_time:x}-{status.length:x}-{status.blocksize or 0:x}"
