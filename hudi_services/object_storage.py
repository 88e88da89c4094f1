"""A table's storage on obstore: local folders, S3, GCS and Azure by URL.

Commits rest on atomic create-if-absent, so only stores that have it are accepted.
"""

import functools
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import IO, Any, cast

import obstore
from obstore import exceptions as obx
from obstore.store import LocalStore, from_url

from .errors import AlreadyExists, ConfigError, CorruptFile, NotFound, PermissionDenied, StorageError
from .limits import LARGEST_FILE, check_size
from .local_folder import LocalFolder
from .paths import is_addressable, is_below, is_unicode
from .storage import FOLDER_FILE, FileInfo
from .storage_options import StorageOptions
from .urls import absolute_path, check_url, local_path, message_without_secrets, scheme_of

_CHUNK = 8 * 1024 * 1024
_CHUNKS_AT_ONCE = 4
"""Chunks of a written file that are uploaded at once: with a slow store they must not gather in memory."""
_DELETE_BATCH = 1000
"""Paths that S3 accepts in one request."""
_DELETES_AT_ONCE = 16
_WHO_NAMED_IT = (
    "a file of the table names it: hudi-services recover lists plans and markers that do, and with --apply drops them"
)
_CHECK_RIGHTS = "check the rights of this user, in a store those of its credentials, on the table's folder"
_INSTANCE_METADATA = ("169.254.169.254", "169.254.170.2", "metadata.google.internal")
"""Who is asked for the credentials of a machine's role, when the environment has none."""
_NO_CREDENTIALS = (
    "the environment has no credentials for the store, and this machine has no role: set them, as AWS_ACCESS_KEY_ID "
    "and AWS_SECRET_ACCESS_KEY; profiles of ~/.aws are not read (aws configure export-credentials --format env prints "
    "one)"
)
# Hadoop's names for the same stores.
_SCHEME_ALIASES = {"s3a": "s3", "s3n": "s3", "wasb": "azure", "wasbs": "azure", "abfss": "abfs"}
_SCHEMES = {"s3", "gs", "az", "azure", "abfs", "adl"}


@functools.lru_cache(maxsize=64)
def _store(url: str, options: StorageOptions | None) -> Any:
    if options is None:
        return from_url(url)
    config: Any = options.config
    client: Any = options.client
    return from_url(url, config=config, client_options=client)


_PAGE = 1_000
"""Files that stores list in one request."""


class ObjectStorage:
    """`Storage` on obstore. Pickles to its URL and options, so that executors open their own connections.

    Credentials come from the options, else from the environment, else from the role of the machine.
    """

    def __init__(self, url: str, options: StorageOptions | None = None) -> None:
        """Raises ConfigError for a scheme that is not supported; for a URL that holds more than a place, is not UTF-8
        (an argument of a program need not be), or is a relative path without a working directory; and for options that
        the store does not have.
        """
        check_url(url)
        path = local_path(url)
        if not is_unicode(url) or "\0" in (path or url):
            raise ConfigError(
                f"the path {url!r} is no UTF-8 text, and Apache Hudi could not name its files",
                hint="give the table's folder another name, or a link to it that has one",
            )
        if path is not None:
            self._local: str | None = absolute_path(path)
            self._root = self._local
            self._folder: LocalFolder | None = LocalFolder(self._local)
        else:
            scheme = scheme_of(url)
            known = _SCHEME_ALIASES.get(scheme, scheme)
            if known not in _SCHEMES:
                raise ConfigError(
                    f"the scheme of {url} is not supported: a store with atomic create-if-absent is needed",
                    hint="use a local path, s3://, gs:// or an Azure URL",
                )
            self._local, self._folder = None, None
            self._root = url.rstrip("/")
            self._url = known + self._root[len(scheme) :]
        self._options = options
        if options is not None:
            self._check_options(options)

    def _check_options(self, options: StorageOptions) -> None:
        if self._local is not None:
            raise ConfigError(
                f"storage_options are for stores, and {self._root} is a local path", hint="leave storage_options out"
            )
        try:
            _store(self._url, options)
        except (obx.BaseError, ValueError) as e:
            said = options.hide(str(e).splitlines()[0].rstrip("."))
            raise ConfigError(
                f"storage_options cannot be used for {self._root}: {said}",
                hint="the names are those of obstore, as aws_endpoint, aws_region and allow_http",
            ) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self._root,) if self._options is None else (self._root, self._options))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._root!r})"

    @property
    def root(self) -> str:
        return self._root

    @property
    def renames(self) -> bool:
        return self._folder is not None

    @property
    def identity(self) -> Hashable:
        # The options may name another endpoint, where a bucket of the same name is another bucket.
        return (self._root, self._options)

    def full_path(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def elsewhere(self, url: str) -> "ObjectStorage":
        other = ObjectStorage(url)
        if self._options is None or other._local is not None or scheme_of(other._url) != scheme_of(self._url):
            return other
        return ObjectStorage(url, self._options)

    @property
    def _backend(self) -> Any:
        if self._local is None:
            return _store(self._url, self._options)
        return _local_store(self._local)

    def check_paths(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._check_way(path)

    def read(self, path: str, limit: int = LARGEST_FILE) -> bytes:
        self._check_path(path)
        with self.errors(path):
            if self._folder is not None:
                return self._folder.read(path, limit)
            found = obstore.get(self._backend, path)
            check_size(self.full_path(path), found.meta["size"], limit)
            return bytes(found.bytes())

    def read_range(self, path: str, start: int, length: int) -> bytes:
        self._check_path(path)
        with self.errors(path):
            if self._folder is not None:
                return self._folder.read_range(path, start, length)
            if length == 0:
                return b""
            return bytes(obstore.get_range(self._backend, path, start=start, length=length))

    def head(self, path: str) -> FileInfo | None:
        self._check_path(path)
        try:
            with self.errors(path):
                if self._folder is None:
                    return _info(obstore.head(self._backend, path))
                found = self._folder.status(path)
                return None if found is None else _local_info(path, found)
        except NotFound:
            return None

    def list_dir(self, path: str) -> tuple[list[FileInfo], list[str]]:
        self._check_folder(path)
        with self.errors(path):
            if self._folder is not None:
                return _split(self._folder.list_dir(path))
            found = obstore.list_with_delimiter(self._backend, path or None)
        return [_info(m) for m in found["objects"]], list(found["common_prefixes"])

    def list_new(self, path: str, known: AbstractSet[str]) -> list[FileInfo]:
        if self._folder is None:
            return [file for file in self.list_dir(path)[0] if file.name not in known]
        self._check_folder(path)
        with self.errors(path):
            return [_local_info(*file) for file in self._folder.list_new(path, known)]

    def list_tree(self, path: str) -> list[FileInfo]:
        self._check_folder(path)
        with self.errors(path):
            if self._folder is not None:
                return [_local_info(*file) for file in self._folder.list_tree(path)]
            return [_info(m) for page in obstore.list(self._backend, path or None) for m in page]

    def list_few(self, path: str, most: int) -> list[FileInfo] | None:
        self._check_folder(path)
        found: list[FileInfo] = []
        with self.errors(path):
            if self._folder is not None:
                for file in self._folder.list_tree(path):
                    found.append(_local_info(*file))
                    if len(found) > most:
                        return None
                return found
            for page in obstore.list(self._backend, path or None, chunk_size=_PAGE):
                found += [_info(m) for m in page]
                if len(found) > most:
                    return None
        return found

    def create(self, path: str, data: bytes) -> None:
        self._check_way(path)
        with self.errors(path):
            obstore.put(self._backend, path, data, mode="create", use_multipart=False)

    def put(self, path: str, data: bytes) -> None:
        self._check_path(path)
        with self.errors(path):
            if self._folder is not None:
                self._folder.prepare_put(path)
            obstore.put(self._backend, path, data)

    def replace(self, path: str, data: bytes, seen: FileInfo) -> bool:
        if self._folder is not None:
            found = self.head(path)
            if found is None or (found, found.tag) != (seen, seen.tag):
                return False
            self.put(path, data)
            return True
        self._check_path(path)
        try:
            with self.errors(path):
                obstore.put(self._backend, path, data, mode={"e_tag": seen.tag}, use_multipart=False)
        except (AlreadyExists, NotFound):
            return False
        return True

    def delete(self, path: str) -> None:
        self._check_path(path)
        try:
            with self.errors(path):
                if self._folder is not None:
                    self._folder.unlink(path)
                else:
                    obstore.delete(self._backend, path)
        except NotFound:
            pass

    def delete_all(self, paths: Sequence[str], done: Callable[[int], None]) -> None:
        for path in paths:
            self._check_path(path)
        with ThreadPoolExecutor(_DELETES_AT_ONCE) as pool:
            for start in range(0, len(paths), _DELETE_BATCH):
                batch = paths[start : start + _DELETE_BATCH]
                if self._folder is not None or not self._delete_batch(batch):
                    shares = (batch[first::_DELETES_AT_ONCE] for first in range(_DELETES_AT_ONCE))
                    list(pool.map(self._delete_each, shares))
                done(len(batch))

    def _delete_each(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.delete(path)

    def _delete_batch(self, batch: Sequence[str]) -> bool:
        """Whether one request deleted all files. A missing file ends it while others still exist, and the error may
        name another file."""
        try:
            with self.errors(batch[0]):
                obstore.delete(self._backend, list(batch))
        except StorageError:
            return False
        return True

    def open_output(self, path: str) -> IO[bytes]:
        self._check_way(path)
        with self.errors(path):
            raw = obstore.open_writer(self._backend, path, buffer_size=_CHUNK, max_concurrency=_CHUNKS_AT_ONCE)
        return cast(IO[bytes], _Writer(self, path, raw))

    def delete_output(self, path: str) -> None:
        self.delete(path)
        if self._folder is not None:
            with self.errors(path):
                self._folder.unlink_staged(path)

    def delete_tree(self, path: str) -> None:
        self._check_path(path)
        if self._folder is None:
            self.delete_all([file.path for file in self.list_tree(path)], lambda _: None)
            return
        with self.errors(path):
            self._folder.remove_tree(path)

    def make_folder(self, path: str) -> None:
        self._check_path(path)
        if self._folder is None:
            self.put(f"{path}/{FOLDER_FILE}", b"")
            return
        with self.errors(path):
            self._folder.make(path)

    def remove_empty_dirs(self, path: str) -> None:
        self._check_path(path)
        if self._folder is not None:
            with self.errors(path):
                self._folder.remove_empty_dirs(path)

    def move(self, source: str, target: str) -> None:
        self._check_path(source)
        self._check_path(target)
        with self.errors(source):
            if self._folder is not None:
                self._folder.move(source, target)
            elif self.head(target) is not None:
                raise AlreadyExists(f"{self.full_path(target)} exists already")
            else:
                # Not every store can copy only if the target is absent.
                obstore.copy(self._backend, source, target)
                self.delete(source)

    def list_staged(self) -> list[FileInfo]:
        if self._folder is None:
            # An unfinished upload is not an object.
            return []
        with self.errors(""):
            return [_local_info(*file) for file in self._folder.list_staged()]

    def _check_folder(self, path: str) -> None:
        """Check a folder to list: its name may have control characters, so that callers can find and report it."""
        if path and not is_below(path):
            raise self._outside(path)

    def _check_path(self, path: str) -> None:
        """Check the path of a file; every path passes here before anything is touched."""
        if not is_below(path):
            raise self._outside(path)
        if not is_addressable(path):
            raise CorruptFile(
                f"{self._root}: the path {path!r} has a control character, or is no Unicode text",
                hint="stores take no such path; Apache Hudi writes such partition values as %XX with "
                "hoodie.datasource.write.partitionpath.urlencode=true",
            )

    def _outside(self, path: str) -> CorruptFile:
        return CorruptFile(f"the path {path!r} leaves {self._root}", hint=_WHO_NAMED_IT)

    def _check_way(self, path: str) -> None:
        self._check_path(path)
        if self._folder is not None:
            with self.errors(path):
                self._folder.check_way(path)

    @contextmanager
    def errors(self, path: str) -> Iterator[None]:
        """Turn an exception of the store in this context into one of the StorageError family, with the full path."""
        try:
            yield
        except (FileNotFoundError, obx.NotFoundError) as e:
            raise NotFound(f"{self.full_path(path)} does not exist") from e
        except (obx.AlreadyExistsError, obx.PreconditionError) as e:
            raise AlreadyExists(f"{self.full_path(path)} exists already") from e
        except (PermissionError, obx.PermissionDeniedError, obx.UnauthenticatedError) as e:
            raise PermissionDenied(f"no permission for {self.full_path(path)}", hint=_CHECK_RIGHTS) from e
        except (OSError, ValueError, obx.BaseError) as e:
            text = str(e)
            if "Permission denied" in text or "PermissionDenied" in text:
                raise PermissionDenied(
                    f"no permission for {self.full_path(path)}",
                    hint=_CHECK_RIGHTS,
                ) from e
            # Messages of stores have the URL of the endpoint as the environment gives it: it may hold secrets.
            said = message_without_secrets(text.splitlines()[0]) if text else type(e).__name__
            said = said if self._options is None else self._options.hide(said)
            hint = _NO_CREDENTIALS if any(one in text for one in _INSTANCE_METADATA) else ""
            raise StorageError(f"{self.full_path(path)}: {said}", hint=hint) from e


class _Writer:
    """A writer whose failures (disk full, credentials expired) raise the same errors as all other methods."""

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


@functools.lru_cache(maxsize=64)
def _local_store(root: str) -> LocalStore:
    return LocalStore(root)


def _info(meta: Any) -> FileInfo:
    return FileInfo(meta["path"], meta["size"], int(meta["last_modified"].timestamp() * 1000), meta.get("e_tag") or "")


def _split(found: Iterable[tuple[str, os.stat_result | None]]) -> tuple[list[FileInfo], list[str]]:
    files: list[FileInfo] = []
    folders: list[str] = []
    for path, status in found:
        if status is None:
            folders.append(path)
        else:
            files.append(_local_info(path, status))
    return files, folders


def _local_info(path: str, found: os.stat_result) -> FileInfo:
    # The tag has the time of the last change of any kind (ctime), too: programs can set the other times.
    tag = f"{found.st_ino:x}-{found.st_mtime_ns:x}-{found.st_size:x}-{found.st_ctime_ns:x}"
    return FileInfo(path, found.st_size, found.st_mtime_ns // 1_000_000, tag)
