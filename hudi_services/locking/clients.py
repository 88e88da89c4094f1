"""Makes errors of the client libraries of lock services ours."""

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import StorageError


@contextmanager
def failing_as_storage(lock: str, kinds: tuple[type[Exception], ...], hint: str) -> Iterator[None]:
    """Errors of a client library, of these `kinds`, become a StorageError about the lock."""
    try:
        yield
    except kinds as e:
        raise StorageError(f"the lock {lock}: {type(e).__name__}{f': {e}' if str(e) else ''}", hint=hint) from e
