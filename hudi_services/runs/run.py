"""A run of a service on a table that is open: what its steps hand to each other."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Generic, TypeVar

from ..commit.settings import TransactionSettings, transaction_settings
from ..engine import Engine
from ..indexing.expressions import DerivedIndexes
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

    def at(self, table: Snapshot) -> "Run[R_co]":
        """The same run, with the same settings, on its table as it is later."""
        later = replace(self, table=table)
        vars(later)["settings"] = self.settings
        return later
