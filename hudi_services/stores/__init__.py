"""The stores that tables are in, one class each, and the one way to open one: by its URL (see `schemes`)."""

from ..errors import ConfigError
from ..paths import is_unicode
from ..plugins import load
from ..schemes import SCHEMES
from ..storage import Storage
from ..urls import check_url, local_path, scheme_of
from .options import StorageOptions


def open_storage(url: str, options: StorageOptions | None = None) -> Storage:
    """The storage at a path or URL; nothing is asked of the store.

    Raises ConfigError for a scheme that is not supported; for a URL that holds more than a place, is not UTF-8 (an
    argument of a program need not be), or is a relative path without a working directory; and for options that the
    store does not have.
    """
    check_url(url)
    if not is_unicode(url) or "\0" in (local_path(url) or url):
        raise ConfigError(
            f"the path {url!r} is no UTF-8 text, and Apache Hudi could not name its files",
            hint="give the table's folder another name, or a link to it that has one",
        )
    scheme = SCHEMES.get(scheme_of(url))
    if scheme is None:
        raise ConfigError(
            f"the scheme of {url} is not supported: a store with atomic create-if-absent is needed",
            hint=f"use a path, or a URL that begins with {', '.join(f'{one}:' for one in SCHEMES if one)}",
        )
    if options is not None and not scheme.takes_options:
        raise ConfigError(
            f"storage_options are for stores that take some, and that of {url} takes none",
            hint="leave storage_options out",
        )
    kind = load(scheme.storage, "store")
    storage: Storage = kind(url) if options is None else kind(url, options)
    return storage
