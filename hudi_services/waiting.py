"""Waits for other processes: what is waited for goes to the log, and to whoever shows it to a person."""

import logging
from collections.abc import Callable
from types import TracebackType
from typing import TypeAlias

_log = logging.getLogger(__name__)

OnWait: TypeAlias = Callable[["Waiting", str], None]
"""Called with a wait and what it is for, whenever that changes; with "" when the wait is over."""


def unseen(wait: "Waiting", what: str) -> None:
    """Show nothing."""


class Waiting:
    """A context manager around a wait, or around what may become one."""

    def __init__(self, on_wait: OnWait = unseen) -> None:
        self._on_wait = on_wait
        self._told = ""

    def __enter__(self) -> "Waiting":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._told:
            self._on_wait(self, "")

    def tell(self, what: str) -> None:
        """Say what is waited for; again and again, in case that it changes."""
        if what == self._told:
            return
        self._told = what
        _log.info("waiting for %s", what)
        self._on_wait(self, what)
