"""From a table and rules to a compaction plan: which file slices have log files, and which of them are merged now.

A plan names the newest slice of each file group as it is. Log files that are written later belong to the next slice,
which begins with the instant of the plan, so a plan does not stop the writers.
Sources: ScheduleCompactionActionExecutor, BaseHoodieCompactionPlanGenerator, CompactionUtils of Apache Hudi.
"""

import enum
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..codecs.compaction_plan import CompactionOperation, CompactionPlan
from ..commit.conflicts import touched_groups
from ..concurrency import at_once
from ..model import FileSlice
from ..options import compaction_keys, settings, value_of
from ..rewriting.inputs import TableColumns, fitting, refuse_unmerged
from ..snapshot import Snapshot
from ..table.view import FileGroupId
from ..timeline.compaction_trigger import AFTER_REQUEST, Trigger
from ..timeline.instant import Action, Instant
from .strategies import BEYOND_BUDGET, BEYOND_IO, Limits, choose


class CompactionReason(enum.Enum):
    """Why a file slice is in the plan or not; a strategy has its own reasons for slices that it leaves out."""

    PICKED = "picked"
    NO_LOG_FILES = "has no log files"
    PENDING_COMPACTION = "in a pending compaction"
    PENDING_CLUSTERING = "in a pending clustering"
    HALF_HIDDEN = "has files of commits that were archived beyond a savepoint"
    UNCOMMITTED = "has files of a write that is not completed"


WAITING = (BEYOND_IO, BEYOND_BUDGET)
"""The reasons of slices that the next plan may take."""


@dataclass(frozen=True, slots=True)
class CompactionRules:
    trigger: Trigger = settings(Trigger)
    strategy: str = value_of(compaction_keys.COMPACTION_STRATEGY)
    limits: Limits = settings(Limits)


@dataclass(slots=True)
class PlannedCompaction:
    """The slices of a plan, and every slice with the reason why it is in the plan or not."""

    slices: list[FileSlice] = field(default_factory=list)
    verdicts: list[tuple[FileSlice, str]] = field(default_factory=list)

    @property
    def reasons(self) -> Counter[str]:
        return Counter(reason for _, reason in self.verdicts)

    @property
    def plan(self) -> CompactionPlan:
        return CompactionPlan(tuple(map(CompactionOperation.of, self.slices)))

    @property
    def why_empty(self) -> str:
        counts = ", ".join(f"{count} {reason}" for reason, count in self.reasons.items())
        return f"no file slice to compact: {counts}" if counts else "the table has no file slice"

    def judge(self, slices: Sequence[FileSlice], reason: str) -> None:
        self.verdicts += [(one, reason) for one in slices]


def why_not_due(table: Snapshot, trigger: Trigger) -> str:
    """The reason to wait when too few delta commits, or too little time, have passed; else "".

    Only completed delta commits count.
    """
    since = _last_compaction(table, requested=trigger.kind == AFTER_REQUEST)
    deltas = [one for one in table.timeline.completed({Action.DELTA_COMMIT}) if since is None or one.ts > since.ts]
    return trigger.why_not_due(table.timeline, deltas, since, table.clock.now())


def _last_compaction(table: Snapshot, *, requested: bool) -> Instant | None:
    """The last compaction: a completed one, or, with `requested`, a pending one that is later.

    As in Hudi, every completed commit counts, for example a bulk insert.
    """
    found = list(table.timeline.completed({Action.COMMIT}))
    if requested:
        found += table.timeline.pending({Action.COMPACTION})
    return max(found, key=lambda one: one.ts, default=None)


def build(table: Snapshot, rules: CompactionRules) -> PlannedCompaction:
    """Plan a compaction of `table` as it is now. Nothing is written.

    Raises UnsupportedTable and CorruptFile for a slice that cannot be merged, and ConfigError for a strategy that does
    not fit the partitions.
    """
    planned = PlannedCompaction()
    compactions, clusterings = table.ledger.groups_in_compactions, table.ledger.groups_in_clusterings()
    tells = table.log_naming.tells_writers
    touched = frozenset[FileGroupId]() if tells else touched_groups(table)
    eligible: list[FileSlice] = []
    for partition, view in table.view.each(table.view.partitions()):
        half_hidden = view.half_hidden(partition)
        # Of writes that may change the slice that a plan ends. Where names tell the writer of a log file, a write that
        # ends later belongs to the next slice: only base files count.
        uncommitted = view.uncommitted(partition, logs=not tells)
        for one in view.latest_slices(partition):
            group = (partition, one.file_id)
            reason = None
            if group in compactions:
                reason = CompactionReason.PENDING_COMPACTION
            elif group in clusterings:
                reason = CompactionReason.PENDING_CLUSTERING
            elif not one.log_files:
                reason = CompactionReason.NO_LOG_FILES
            elif one.file_id in half_hidden:
                reason = CompactionReason.HALF_HIDDEN
            elif one.file_id in uncommitted or group in touched:
                reason = CompactionReason.UNCOMMITTED
            if reason is None:
                eligible.append(one)
            else:
                planned.judge([one], reason.value)
    choice = choose(rules.strategy, eligible, rules.limits)
    columns = TableColumns.of(table)
    planned.slices = list(choice.taken)
    planned.judge(planned.slices, CompactionReason.PICKED.value)
    for why, slices in choice.left.items():
        planned.judge(slices, why)
    for _, unfit in at_once(lambda one: fitting(table.slices, [one], columns), planned.slices):
        refuse_unmerged(unfit)
    return planned
