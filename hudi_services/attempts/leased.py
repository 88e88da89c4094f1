"""The frame of an attempt that holds a lease from its beginning to its end, and is ended by itself after an error."""

from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from ..commit.transaction import Transaction

A = TypeVar("A", bound="LeasedAttempt")


class LeasedAttempt:
    """A context manager around `transaction`: entering begins the attempt, and an error undoes it or leaves it."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def __enter__(self: A) -> A:
        self._transaction.__enter__()
        try:
            self._begin()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        end(self._transaction, error, self._failed)

    def _begin(self) -> None:
        """Begin the attempt, under its lease."""
        raise NotImplementedError

    def _failed(self, error: BaseException) -> None:
        """Undo the attempt, or leave it to the next one; may raise another error in the place of `error`."""
        raise NotImplementedError


def end(transaction: Transaction, error: BaseException | None, failed: Callable[[BaseException], None]) -> None:
    """Leave `transaction`, after `failed` for an error: with the error that `failed` raises in its place, if any."""
    left = error
    try:
        if error is not None:
            failed(error)
    except BaseException as another:
        left = another
        raise
    finally:
        transaction.__exit__(type(left) if left else None, left, None)
