"""A run of a service on a table that is open: what its steps hand to each other."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic, TypeVar

from ..commit.settings import TransactionSettings, transaction_settings
from ..computed_once import cached_property
from ..engine import Engine
from ..indexing.derived import DerivedIndexes
from ..options import Options
from ..snapshot import Snapshot
from .report import Report
from .request import Request

R_co = TypeVar("R_co", bound=Request, covariant=True)


@dataclass(frozen=True)
class Run(Generic[R_co]):
    """One run of one service."""

    request: R_co
    """The options of the request are over those of the table."""
    table: Snapshot
    report: Report
    indexes: DerivedIndexes = field(default_factory=DerivedIndexes)
    """What has to be kept in step with new files; empty for a service that writes none."""
    engine: Engine | None = None
    """The engine that was given in place of Spark."""

    @property
    def options(self) -> Options:
        return self.request.options

    @cached_property
    def settings(self) -> TransactionSettings:
        """Raises ConfigError for a lock provider that cannot be used."""
        return transaction_settings(self.options, self.table.storage)

    @property
    def seen(self) -> frozenset[str]:
        """The completed writes of the table."""
        return frozenset(write.ts for write in self.table.timeline.completed_writes())

    def progress(self, phase: str) -> Callable[[int, int], None]:
        """To be called with how many pieces of the phase are done, and how many there are."""
        return partial(self.request.progress, phase)

    def at(self, table: Snapshot) -> "Run[R_co]":
        """The same run, with the same settings, on its table as it is later."""
        later = replace(self, table=table)
        vars(later)["settings"] = self.settings
        return later
