"""What a server gives to a test: a place for tables, and how to reach it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from hudi_services.storage import Storage
from hudi_services.stores import open_storage
from hudi_services.stores.options import StorageOptions, Value


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket or container on a server of this machine.

    `url` is the URL prefix of tables, without a slash at its end. `options_at` gives the storage options for an
    endpoint: that of the server, or of a proxy before it.
    """

    url: str
    endpoint: str
    options_at: Callable[[str], dict[str, Value]]

    @property
    def options(self) -> StorageOptions:
        return StorageOptions(self.options_at(self.endpoint))

    def open(self, name: str) -> Storage:
        """The storage at `name` in the bucket."""
        return open_storage(f"{self.url}/{name}", self.options)

    def behind(self, endpoint: str) -> "Bucket":
        """The same bucket, reached by another endpoint."""
        return replace(self, endpoint=endpoint)


def upload(path: Path, url: str, options: StorageOptions | None = None) -> None:
    """Create all files below `path` in the storage at `url`."""
    storage = open_storage(url, options)
    for file in path.rglob("*"):
        if file.is_file():
            storage.create(str(file.relative_to(path)), file.read_bytes())
