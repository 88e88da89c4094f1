"""A bucket of S3, Google Cloud Storage or Azure as a storage, on obstore.

Credentials come from the options, else from the environment, else from Hadoop's settings, else from the role of the
machine. Hadoop's are read once, where the storage is opened: tasks of executors get them with it.
"""

import os
import sys
from collections.abc import Sequence
from typing import IO, Any

import obstore
from obstore import exceptions as obx

from ..errors import AlreadyExists, ConfigError, NotFound, StorageError
from ..limits import LARGEST_FILE, check_size
from ..request_counts import PAGE, Asked, count_pages, count_upload
from ..schemes import SCHEMES
from ..storage import FileInfo, StoreCapabilities
from ..urls import scheme_of
from .base import BaseStorage
from .conditional_put import ConditionalPut, tag_of
from .hadoop_settings import hadoop_options
from .object_client import client, is_cut_off, tried
from .options import StorageOptions, Value
from .upload import CHUNKS_BYTES, open_output

_PART = 5 << 20
"""Bytes of a part of an object that obstore uploads in parts."""
_ACCOUNT = "AZURE_STORAGE_ACCOUNT_NAME"
_AZURE = "core.windows.net"
_AZURE_ENDPOINTS = ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")
_INSTANCE_METADATA = ("169.254.169.254", "169.254.170.2", "metadata.google.internal")
"""Who is asked for the credentials of a machine's role, when the environment has none."""
_NO_CREDENTIALS = (
    "the environment has no credentials for the store, and this machine has no role: set them, as AWS_ACCESS_KEY_ID "
    "and AWS_SECRET_ACCESS_KEY; profiles of ~/.aws are not read (aws configure export-credentials --format env prints "
    "one)"
)


class ObjectStorage(BaseStorage):
    """`Storage` below the URL of an object store."""

    def __init__(
        self, url: str, options: StorageOptions | None = None, of_hadoop: StorageOptions | None = None
    ) -> None:
        """`of_hadoop` are the options by Hadoop's settings, which are read without it. Raises ConfigError for options
        that the store does not have, and for settings that cannot be read or make no sense."""
        super().__init__(url.rstrip("/"), options)
        given = options or StorageOptions({})
        self._store = SCHEMES[scheme_of(url)].opened_as
        self._url, place, of_url = _opened_as(self._store, self._root, given)
        self._of_hadoop = hadoop_options(self._store, place, given) if of_hadoop is None else of_hadoop
        self._options = of_url.over(given).over(self._of_hadoop) or None
        if options is not None and self._options is not None:
            self._check_options(self._options)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._root, self._given, self._of_hadoop)

    def _check_options(self, options: StorageOptions) -> None:
        try:
            client(self._url, options)
        except (obx.BaseError, ValueError) as e:
            said = options.hide(str(e).splitlines()[0].rstrip("."))
            raise ConfigError(
                f"storage_options cannot be used for {self._root}: {said}",
                hint="the names are those of obstore, as aws_endpoint, aws_region and allow_http",
            ) from None

    @property
    def capabilities(self) -> StoreCapabilities:
        return StoreCapabilities(
            atomic_create=self._has_conditions, conditional_replace=self._has_conditions, renames=False
        )

    @property
    def _has_conditions(self) -> bool:
        """Whether puts may have conditions: not every store that is like S3 knows them, and then they are off."""
        if self._store != "s3":
            return True
        given = None if self._options is None else self._options.get("conditional_put")
        return (given or os.environ.get("AWS_CONDITIONAL_PUT")) != "disabled"

    @property
    def _backend(self) -> Any:
        """The client of requests that it repeats itself: listings, page by page, and uploads in parts."""
        return client(self._url, self._options)

    def _once(self, sent: int = 0) -> Any:
        """The client of requests that are repeated here, and have up to `sent` bytes, or take the store as long."""
        return client(self._url, self._options, sent, retries=False)

    def read(self, path: str, limit: int = LARGEST_FILE) -> bytes:
        self._check_path(path)

        def read() -> bytes:
            found = obstore.get(self._once(), path)
            check_size(self.full_path(path), found.meta["size"], limit)
            return bytes(found.bytes())

        with self.errors(path):
            return tried(Asked.GET, read)

    def read_range(self, path: str, start: int, length: int) -> bytes:
        self._check_path(path)
        if length == 0:
            return b""
        with self.errors(path):
            return tried(Asked.GET, lambda: bytes(obstore.get_range(self._once(), path, start=start, length=length)))

    def head(self, path: str) -> FileInfo | None:
        self._check_path(path)
        try:
            with self.errors(path):
                return _info(tried(Asked.HEAD, lambda: obstore.head(self._once(), path)))
        except NotFound:
            return None

    def list_dir(self, path: str) -> tuple[list[FileInfo], list[str]]:
        self._check_folder(path)
        with self.errors(path):
            found = tried(Asked.LIST, lambda: obstore.list_with_delimiter(self._backend, path or None), is_cut_off)
        count_pages(len(found["objects"]) + len(found["common_prefixes"]), counted=1)
        return [_info(m) for m in found["objects"]], list(found["common_prefixes"])

    def list_tree(self, path: str) -> list[FileInfo]:
        self._check_folder(path)
        return self._listed(path, sys.maxsize)

    def list_few(self, path: str, most: int) -> list[FileInfo] | None:
        self._check_folder(path)
        found = self._listed(path, most)
        return found if len(found) <= most else None

    def _listed(self, path: str, most: int) -> list[FileInfo]:
        """All files below a folder, or the first ones, which are more than `most`."""

        def listed() -> list[FileInfo]:
            found: list[FileInfo] = []
            for page in obstore.list(self._backend, path or None, chunk_size=PAGE):
                found += map(_info, page)
                if len(found) > most:
                    break
            return found

        with self.errors(path):
            files = tried(Asked.LIST, listed, is_cut_off)
        count_pages(len(files), counted=1)
        return files

    def create(self, path: str, data: bytes) -> None:
        self._check_path(path)
        with self.errors(path):
            if not self._put_if(path, data):
                raise AlreadyExists(f"{self.full_path(path)} exists already")

    def put(self, path: str, data: bytes) -> None:
        self._check_path(path)
        count_upload(len(data), _PART + 1)
        with self.errors(path):
            obstore.put(client(self._url, self._options, len(data)), path, data, chunk_size=_PART)

    def replace(self, path: str, data: bytes, seen: FileInfo) -> bool:
        self._check_path(path)
        if self._store == "gs" and not seen.version:
            # Google compares generations, which its listings do not tell.
            now = self.head(path)
            if now is None or now.tag != seen.tag:
                return False
            seen = now
        with self.errors(path):
            return self._put_if(path, data, seen)

    def _put_if(self, path: str, data: bytes, seen: FileInfo | None = None) -> bool:
        return ConditionalPut(self._once(len(data)), path, data, seen).carry_out()

    def open_output(self, path: str) -> IO[bytes]:
        self._check_path(path)
        return open_output(self, client(self._url, self._options, CHUNKS_BYTES), path)

    def delete(self, path: str) -> None:
        self._check_path(path)
        try:
            with self.errors(path):
                tried(Asked.DELETE, lambda: obstore.delete(self._once(), path))
        except NotFound:
            pass

    def _delete_batch(self, batch: Sequence[str]) -> bool:
        # A missing file ends the request while others still exist, and the error may name another file.
        try:
            with self.errors(batch[0]):
                tried(Asked.DELETE, lambda: obstore.delete(self._once(_PART), list(batch)))
        except StorageError:
            return False
        return True

    def move(self, source: str, target: str) -> None:
        self._check_path(source)
        self._check_path(target)
        if self.head(target) is not None:
            raise AlreadyExists(f"{self.full_path(target)} exists already")
        with self.errors(source):
            # Not every store can copy only if the target is absent.
            # The store may send nothing while it copies.
            tried(Asked.COPY, lambda: obstore.copy(self._once(CHUNKS_BYTES), source, target))
            self.delete(source)

    def _way_out(self, said: str) -> str:
        return _NO_CREDENTIALS if any(one in said for one in _INSTANCE_METADATA) else ""


def _opened_as(store: str, root: str, given: StorageOptions) -> tuple[str, str, StorageOptions]:
    """The URL by which obstore knows the place, the place by which Hadoop's settings do, and the options that the URL
    says.

    Hadoop's URLs of Azure have the account, as container@account.dfs.core.windows.net; other clouds of Azure have other
    domains.
    """
    authority, slash, path = root.partition("://")[2].partition("/")
    container, _, host = authority.partition("@")
    url = f"{store}://{container}{slash}{path}"
    if store != "az":
        return url, container, StorageOptions({})
    if not host:
        return url, f"{given.get('account_name') or os.environ.get(_ACCOUNT)}.{_AZURE}", StorageOptions({})
    account, _, domain = host.partition(".")
    domain = domain.partition(".")[2] or _AZURE
    found: dict[str, Value] = {"account_name": account}
    if domain != _AZURE and not given.get("endpoint") and not any(os.environ.get(one) for one in _AZURE_ENDPOINTS):
        found["endpoint"] = f"https://{account}.blob.{domain}"
    return url, f"{account}.{domain}", StorageOptions(found)


def _info(meta: Any) -> FileInfo:
    millis = int(meta["last_modified"].timestamp() * 1000)
    return FileInfo(meta["path"], meta["size"], millis, tag_of(meta), meta.get("version") or "")
