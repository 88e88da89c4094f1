"""Planning, as all services with plans do it, cleans among them.

First without the lock: an idle or wrong call leaves no trace, and locks are held for no longer than needed. The plan is
published under the lock; when the table has changed meanwhile, it is made again.
"""

import logging
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from ..commit.critical_section import Requested, request
from ..errors import NothingToDo
from ..runs.request import Request
from ..runs.run import Run
from ..snapshot import Snapshot, is_unchanged
from ..timeline.instant import Action

Q = TypeVar("Q", bound=Request)
Plan = TypeVar("Plan")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Planner(ABC, Generic[Q, Plan]):
    """Plans one run of a service."""

    run: Run[Q]

    name: ClassVar[str]
    """The service in messages."""
    activity: ClassVar[str] = "schedule"
    """Shown to people who wait for the lock."""
    rewrites: ClassVar[bool] = True
    """Whether the plan replaces file groups by files that bear its time."""

    @property
    @abstractmethod
    def action(self) -> Action:
        """The action of the plan's instant."""

    def why_not_due(self, table: Snapshot) -> str:
        """The reason to wait for more commits, or ""."""
        return ""

    @abstractmethod
    def build(self, table: Snapshot) -> Plan:
        """The plan for the table as it is, which the report describes. Nothing is written. Raises NothingToDo."""

    @abstractmethod
    def check(self, table: Snapshot, plan: Plan) -> None:
        """Raise CheckFailed when not all sources agree on the files of the plan."""

    @abstractmethod
    def encode(self, table: Snapshot, plan: Plan) -> bytes:
        """The content of the plan's file."""

    def publish(self, plan: Plan, ts: str | None = None) -> Requested:
        """Publish the plan, at the instant `ts` if it is given. Raises NothingToDo when there is none any more."""
        run = self.run

        def content(current: Snapshot) -> bytes:
            # Planning may take long, and the lock is held: plan again only when the table has changed.
            final = plan if is_unchanged(current, run.table) else self._again(current)
            self.check(current, final)
            return self.encode(current, final)

        with run.report.phase("publish"):
            done = request(run.table, self.action, self.activity, content, run.settings, rewrites=self.rewrites, ts=ts)
        _log.info("scheduled the %s %s", self.name, done.ts)
        return done

    def _again(self, table: Snapshot) -> Plan:
        if waiting := self.why_not_due(table):
            raise NothingToDo(waiting)
        return self.build(table)
