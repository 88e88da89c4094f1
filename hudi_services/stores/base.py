"""What all stores have in common: the check of every path, the errors, and what follows from the other methods."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import Any

from obstore import exceptions as obx

from ..concurrency import at_once
from ..errors import AlreadyExists, CorruptFile, NotFound, PermissionDenied, StorageError
from ..paths import is_addressable, is_below
from ..schemes import SCHEMES
from ..storage import FOLDER_FILE, FileInfo, Storage
from ..urls import message_without_secrets, scheme_of
from . import open_storage
from .options import StorageOptions

_DELETE_BATCH = 1000
"""Paths that S3 accepts in one request."""
_WHO_NAMED_IT = (
    "a file of the table names it: hudi-services recover lists plans and markers that do, and with --apply drops them"
)
_CHECK_RIGHTS = "check the rights of this user, in a store those of its credentials, on the table's folder"


class BaseStorage(Storage):
    """The part of `Storage` that does not depend on the store, for a store without folders and unfinished files.

    Pickles to its root and options, so that executors open their own connections.
    """

    def __init__(self, root: str, options: StorageOptions | None = None) -> None:
        self._root = root
        self._given = self._options = options

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self._root,) if self._given is None else (self._root, self._given))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._root!r})"

    @property
    def root(self) -> str:
        return self._root

    @property
    def identity(self) -> Hashable:
        # The options may name another endpoint, where a bucket of the same name is another bucket.
        return (self._root, self._options)

    def full_path(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def elsewhere(self, url: str) -> Storage:
        other = open_storage(url)
        there, here = (SCHEMES[scheme_of(one)].opened_as for one in (url, self._root))
        return other if self._given is None or there != here else open_storage(url, self._given)

    def check_paths(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._check_path(path)

    def list_new(self, path: str, known: AbstractSet[str]) -> list[FileInfo]:
        return [file for file in self.list_dir(path)[0] if file.name not in known]

    def list_few(self, path: str, most: int) -> list[FileInfo] | None:
        found = self.list_tree(path)
        return found if len(found) <= most else None

    def delete_all(self, paths: Sequence[str], done: Callable[[int], None]) -> None:
        for path in paths:
            self._check_path(path)
        for start in range(0, len(paths), _DELETE_BATCH):
            batch = paths[start : start + _DELETE_BATCH]
            if not self._delete_batch(batch):
                at_once(self.delete, batch)
            done(len(batch))

    def _delete_batch(self, batch: Sequence[str]) -> bool:
        """Delete all files by one request, if the store can; False when some may be left."""
        return False

    def delete_output(self, path: str) -> None:
        self.delete(path)

    def delete_tree(self, path: str) -> None:
        self._check_path(path)
        self.delete_all([file.path for file in self.list_tree(path)], lambda _: None)

    def make_folder(self, path: str) -> None:
        self._check_path(path)
        self.put(f"{path}/{FOLDER_FILE}", b"")

    def remove_empty_dirs(self, path: str) -> None:
        self._check_path(path)

    def list_staged(self) -> list[FileInfo]:
        return []

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
            raise StorageError(f"{self.full_path(path)}: {said}", hint=self._way_out(text)) from e

    def _way_out(self, said: str) -> str:
        """The hint for a failure of which the store has `said` this; it may hold secrets."""
        return ""
