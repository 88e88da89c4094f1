"""A table's storage, reached by URL, on the driver and on executors.

Paths are relative to the root URL, with "/" between names and no leading slash; "" is the root itself.
Atomic create-if-absent is what commits rest on, so only stores that have it are accepted (obstore: local,
S3, GCS, Azure).
"""

import functools
import itertools
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any, Protocol, cast
from urllib.parse import unquote, urlsplit

import obstore
from obstore import exceptions as obx
from obstore.store import LocalStore, from_url

from .errors import AlreadyExists, ConfigError, CorruptFile, NotFound, PermissionDenied, StorageError
from .limits import LARGEST_FILE

_CHUNK = 8 * 1024 * 1024
_CHUNKS_AT_ONCE = 4
"""Of a file that is written: a slow store must not let them gather in memory."""
_DELETE_BATCH = 1000
"""What S3 takes in one request."""
_DELETES_AT_ONCE = 16
_STAGED = re.compile(r".+#[0-9]+")
"""How obstore calls a local file until it is whole; it hides such names from its listings."""
# Hadoop's names for the same stores.
_SCHEME_ALIASES = {"s3a": "s3", "s3n": "s3", "wasb": "azure", "wasbs": "azure", "abfss": "abfs"}
_SCHEMES = {"s3", "gs", "az", "azure", "abfs", "adl"}


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A stored file: path relative to the root, size in bytes, modification time in epoch milliseconds."""

    path: str
    size: int
    mtime_millis: int
    tag: str = field(default="", compare=False)
    """The store's tag of this content (ETag), "" where there is none."""

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]


class Storage(Protocol):
    """Files below one root URL. Every method raises the StorageError family, naming the full path."""

    @property
    def root(self) -> str:
        """The root as Hudi writes it into plans: an absolute local path without scheme, or the URL."""

    def full_path(self, path: str) -> str: ...

    def read(self, path: str, limit: int = LARGEST_FILE) -> bytes:
        """The whole file; raises CorruptFile, before reading it, when it has more than `limit` bytes (see `limits`)."""

    def read_range(self, path: str, start: int, length: int) -> bytes: ...

    def head(self, path: str) -> FileInfo | None:
        """None when the file does not exist."""

    def list_dir(self, path: str) -> tuple[list[FileInfo], list[str]]:
        """Files and sub-folder paths directly below `path`; both empty when it does not exist."""

    def list_tree(self, path: str) -> list[FileInfo]:
        """All files below `path`, recursively."""

    def create(self, path: str, data: bytes) -> None:
        """Write a new file, whole or not at all; raises AlreadyExists and leaves the existing file alone."""

    def put(self, path: str, data: bytes) -> None:
        """Write or overwrite."""

    def replace(self, path: str, data: bytes, seen: FileInfo) -> bool:
        """Overwrite the file that was `seen`; False when it is another one by now, or gone.

        The store compares; on local storage we do, right before.
        """

    def delete(self, path: str) -> None:
        """Delete; a missing file is success."""

    def delete_all(self, paths: Sequence[str], done: Callable[[int], None]) -> None:
        """As `delete` for each, many at once; `done` is told how many more are gone."""

    def open_output(self, path: str) -> IO[bytes]:
        """A sequential writer; the file appears when it is closed."""

    def delete_output(self, path: str) -> None:
        """As `delete`, and also drop what a killed writer of `open_output` left of the file."""

    def remove_empty_dirs(self, path: str) -> None:
        """Drop the folder that held deleted files, where the store has folders at all."""

    def move(self, source: str, target: str) -> None:
        """Give a file another path; raises NotFound, and AlreadyExists without touching either file.

        Killed in the middle, it leaves the whole file under both paths; on local storage the next move ends that.
        """

    def list_staged(self) -> list[FileInfo]:
        """What killed writers of `open_output` and `create` left of files, which no other listing shows.

        What vanishes meanwhile is passed over.
        """


@functools.lru_cache(maxsize=64)
def _store(url: str) -> Any:
    return from_url(url)


class ObjectStorage:
    """`Storage` on obstore. Pickles to its URL, so that executors open their own connections.

    Credentials come from where the store's own tools look for them: environment, profile, instance role.
    """

    def __init__(self, url: str) -> None:
        scheme = urlsplit(url).scheme if "://" in url or url.startswith("file:") else ""
        if scheme in ("", "file"):
            path = unquote(urlsplit(url).path) if scheme else url
            self._local: str | None = os.path.abspath(path)
            self._root = self._local
        else:
            known = _SCHEME_ALIASES.get(scheme, scheme)
            if known not in _SCHEMES:
                raise ConfigError(
                    f"the scheme of {url} is not supported: a store with atomic create-if-absent is needed",
                    hint="use a local path, s3://, gs:// or an Azure URL",
                )
            self._local = None
            self._root = url.rstrip("/")
            self._url = known + self._root[len(scheme) :]

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self._root,))

    @property
    def root(self) -> str:
        return self._root

    def full_path(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    @property
    def _backend(self) -> Any:
        if self._local is None:
            return _store(self._url)
        return _local_store(self._local)

    def read(self, path: str, limit: int = LARGEST_FILE) -> bytes:
        with self.errors(path):
            found = obstore.get(self._backend, path)
            size = found.meta["size"]
            if size > limit:
                raise CorruptFile(
                    f"{self.full_path(path)} has {size} bytes, and no honest file of its kind has more than {limit}"
                )
            return bytes(found.bytes())

    def read_range(self, path: str, start: int, length: int) -> bytes:
        if length == 0:
            return b""
        with self.errors(path):
            return bytes(obstore.get_range(self._backend, path, start=start, length=length))

    def head(self, path: str) -> FileInfo | None:
        try:
            with self.errors(path):
                return _info(obstore.head(self._backend, path))
        except NotFound:
            return None

    def list_dir(self, path: str) -> tuple[list[FileInfo], list[str]]:
        if self._is_missing(path):
            return [], []
        with self.errors(path):
            found = obstore.list_with_delimiter(self._backend, path or None)
        return [_info(m) for m in found["objects"]], list(found["common_prefixes"])

    def list_tree(self, path: str) -> list[FileInfo]:
        if self._is_missing(path):
            return []
        with self.errors(path):
            return [_info(m) for page in obstore.list(self._backend, path or None) for m in page]

    def create(self, path: str, data: bytes) -> None:
        with self.errors(path):
            obstore.put(self._backend, path, data, mode="create", use_multipart=False)

    def put(self, path: str, data: bytes) -> None:
        # The twin goes first: Hadoop refuses a file that does not match it, and accepts one without.
        self._drop_checksum_twin(path)
        with self.errors(path):
            obstore.put(self._backend, path, data)

    def replace(self, path: str, data: bytes, seen: FileInfo) -> bool:
        if self._local is not None:
            found = self.head(path)
            if found is None or (found, found.tag) != (seen, seen.tag):
                return False
            self.put(path, data)
            return True
        try:
            with self.errors(path):
                obstore.put(self._backend, path, data, mode={"e_tag": seen.tag}, use_multipart=False)
        except (AlreadyExists, NotFound):
            return False
        return True

    def delete(self, path: str) -> None:
        self._drop_checksum_twin(path)
        try:
            with self.errors(path):
                obstore.delete(self._backend, path)
        except NotFound:
            pass

    def delete_all(self, paths: Sequence[str], done: Callable[[int], None]) -> None:
        with ThreadPoolExecutor(_DELETES_AT_ONCE) as pool:
            for start in range(0, len(paths), _DELETE_BATCH):
                batch = paths[start : start + _DELETE_BATCH]
                for path in batch:
                    self._drop_checksum_twin(path)
                try:
                    with self.errors(batch[0]):
                        obstore.delete(self._backend, list(batch))
                except StorageError:
                    # One that is missing ends the batch with others still there, and the error may be another file's.
                    list(pool.map(self.delete, batch))
                done(len(batch))

    def open_output(self, path: str) -> IO[bytes]:
        with self.errors(path):
            raw = obstore.open_writer(self._backend, path, buffer_size=_CHUNK, max_concurrency=_CHUNKS_AT_ONCE)
        return cast(IO[bytes], _Writer(self, path, raw))

    def delete_output(self, path: str) -> None:
        self.delete(path)
        if self._local is None:
            return
        # Staged under `<name>#<n>`, n from 1.
        for number in itertools.count(1):
            with self.errors(path):
                try:
                    os.unlink(f"{self._os_path(path)}#{number}")
                except (FileNotFoundError, NotADirectoryError):
                    return

    def remove_empty_dirs(self, path: str) -> None:
        if self._local is None:
            return
        for folder, _, _ in os.walk(self._os_path(path), topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                return

    def move(self, source: str, target: str) -> None:
        if self._local is not None:
            self._move_link(source, target)
        elif self.head(target) is not None:
            raise AlreadyExists(f"{self.full_path(target)} exists already")
        else:
            # Not every store copies only if absent.
            with self.errors(source):
                obstore.copy(self._backend, source, target)
            self.delete(source)

    def list_staged(self) -> list[FileInfo]:
        if self._local is None:
            # An upload that was not finished is no object.
            return []
        found: list[FileInfo] = []
        with self.errors(""):
            for folder, _, names in os.walk(self._local, onerror=_raise_unless_gone):
                for name in filter(_STAGED.fullmatch, names):
                    path = os.path.join(folder, name)
                    try:
                        status = os.stat(path)
                    except FileNotFoundError:
                        continue
                    relative = os.path.relpath(path, self._local).replace(os.sep, "/")
                    found.append(FileInfo(relative, status.st_size, status.st_mtime_ns // 1_000_000))
        return found

    def _move_link(self, source: str, target: str) -> None:
        """A rename would overwrite; obstore's creation of files, too, rests on links."""
        with self.errors(source):
            os.makedirs(os.path.dirname(self._os_path(target)), exist_ok=True)
            try:
                os.link(self._os_path(source), self._os_path(target))
            except FileExistsError as e:
                # Two links to one file: a move was cut off here.
                if not os.path.samefile(self._os_path(source), self._os_path(target)):
                    raise AlreadyExists(f"{self.full_path(target)} exists already") from e
            self._drop_checksum_twin(target)
            self._drop_checksum_twin(source)
            os.unlink(self._os_path(source))

    def _is_missing(self, path: str) -> bool:
        """Whether there is no such local folder; a folder that cannot be looked at is an error, not an empty one."""
        if self._local is None:
            return False
        with self.errors(path):
            try:
                return not stat.S_ISDIR(os.stat(self._os_path(path)).st_mode)
            except (FileNotFoundError, NotADirectoryError):
                return True

    def _os_path(self, path: str) -> str:
        return os.path.join(cast(str, self._local), *path.split("/")) if path else cast(str, self._local)

    def _drop_checksum_twin(self, path: str) -> None:
        """Hadoop's local file system keeps `.<name>.crc` beside a file and fails reads that do not match it."""
        if self._local is None:
            return
        folder, _, name = self._os_path(path).rpartition("/")
        try:
            os.unlink(f"{folder}/.{name}.crc")
        except FileNotFoundError:
            pass
        except PermissionError as e:
            raise PermissionDenied(f"no permission to change {self.full_path(path)}") from e

    @contextmanager
    def errors(self, path: str) -> Iterator[None]:
        """Tell whatever the store raises inside as one of our family, with the full path."""
        try:
            yield
        except (FileNotFoundError, obx.NotFoundError) as e:
            raise NotFound(f"{self.full_path(path)} does not exist") from e
        except (obx.AlreadyExistsError, obx.PreconditionError) as e:
            raise AlreadyExists(f"{self.full_path(path)} exists already") from e
        except (PermissionError, obx.PermissionDeniedError, obx.UnauthenticatedError) as e:
            raise PermissionDenied(
                f"no permission for {self.full_path(path)}", hint="check the rights of this user on the table's folder"
            ) from e
        except (OSError, obx.BaseError) as e:
            text = str(e)
            if "Permission denied" in text or "PermissionDenied" in text:
                raise PermissionDenied(
                    f"no permission for {self.full_path(path)}",
                    hint="check the rights of this user on the table's folder",
                ) from e
            raise StorageError(f"{self.full_path(path)}: {text.splitlines()[0] if text else type(e).__name__}") from e


class _Writer:
    """A writer whose failures (disk full, credentials gone) are told like all others."""

    def __init__(self, storage: ObjectStorage, path: str, raw: Any) -> None:
        self._storage = storage
        self._path = path
        self._raw = raw

    def write(self, data: bytes) -> int:
        with self._storage.errors(self._path):
            return int(self._raw.write(data))

    def close(self) -> None:
        with self._storage.errors(self._path):
            self._raw.close()


def _raise_unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


@functools.lru_cache(maxsize=64)
def _local_store(root: str) -> LocalStore:
    return LocalStore(root)


def _info(meta: Any) -> FileInfo:
    return FileInfo(meta["path"], meta["size"], int(meta["last_modified"].timestamp() * 1000), meta.get("e_tag") or "")
