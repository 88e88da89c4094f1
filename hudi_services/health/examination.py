"""The facts that the checks of a table share: each is looked up once, when a check first asks for it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..archival.archive import archive_plan
from ..archival.selection import ArchivalSelection, bounds_of_table, select
from ..cleaning.retention import Horizon, Retention, horizon
from ..cleaning.scope import commits_since_clean, last_clean
from ..clock import parse_instant
from ..codecs.clean_plan import CleanMetadata
from ..commit.liveness import age_millis, is_clustering, now_millis
from ..commit.settings import TransactionSettings
from ..computed_once import cached_property
from ..options import Options
from ..recovery.findings import Decision, Finding, find
from ..snapshot import Snapshot
from ..timeline.instant import Action, Instant
from .file_facts import FileFacts, file_facts
from .model import Number

_COMPACTIONS = frozenset({Action.COMPACTION, Action.LOG_COMPACTION})
_SAMPLED_PARTITIONS, _SAMPLED_SLICES = 8, 4_000
"""How much of a large table the checks look at that list storage, or read ranges."""


@dataclass(frozen=True, slots=True)
class HealthLimits:
    """From where on a number counts as too large."""

    files_to_save: int = 20
    """A clustering is worth a word when it would leave so many files less, and half of the small ones."""
    times_too_large: int = 2
    """A base file is oversized when it is so many times as large as writers make them."""
    times_the_median: int = 20
    """A partition is skewed when it has so many times the bytes of the median one."""
    log_files: int = 10
    """So many log files of one slice are many."""
    times_late: int = 2
    """A service lags when it is due for so many times the commits that it waits for."""
    orphan_minutes: int = 60
    """Younger files may be of a writer at work, as for orphan-files."""
    alive_hours: int = 6
    """A write that is at work for so long is long."""


@dataclass
class Examination:
    """One look at one table. `longest_query_minutes`: of readers, None if not told."""

    table: Snapshot
    options: Options
    settings: TransactionSettings
    longest_query_minutes: int | None = None
    limits: HealthLimits = field(default_factory=HealthLimits)
    measures: dict[str, Number] = field(default_factory=dict)
    """Numbers of the table, whether or not something is wrong with them. The names tell the units."""

    @cached_property
    def files(self) -> FileFacts:
        return file_facts(self.table)

    @cached_property
    def pending(self) -> list[Finding]:
        """All pending instants, with what `recover` would do about them."""
        return find(self.table, self.settings)

    @cached_property
    def writes(self) -> tuple[Instant, ...]:
        """The completed writes of the active timeline."""
        return self.table.timeline.completed_writes()

    @cached_property
    def now_millis(self) -> float:
        return now_millis(self.table)

    @cached_property
    def last_clean(self) -> CleanMetadata | None:
        return last_clean(self.table.timeline)

    @cached_property
    def since_clean(self) -> int:
        """Completed writes since the last clean, or all of them without one, as cleans count them."""
        return commits_since_clean(self.table.timeline, self.last_clean)

    @cached_property
    def retention(self) -> Retention:
        return self.options.of(Retention)

    @cached_property
    def horizon(self) -> Horizon:
        """From which commit on a clean would keep all files, now."""
        previous = self.last_clean
        return horizon(
            self.table.timeline,
            self.retention,
            self.table.clock.now(),
            previous.earliest_to_retain if previous is not None else "",
        )

    @cached_property
    def archival(self) -> ArchivalSelection:
        """What an archival of the table would take, now, and what holds it back."""
        rules = archive_plan(self.options, self.table.config).table
        return select(self.table.timeline, rules, bounds_of_table(self.table.timeline, self.table.metadata))

    @cached_property
    def sample(self) -> Sequence[str]:
        """The largest partitions, and some between the others, for checks that cannot look at all."""
        ordered = self.files.largest_partitions
        step = max(1, math.ceil(len(ordered) / _SAMPLED_PARTITIONS))
        chosen: list[str] = []
        slices = 0
        counts = dict(zip(self.files.partitions, self.files.partition_slices.tolist(), strict=True))
        for partition in dict.fromkeys([*ordered[: _SAMPLED_PARTITIONS // 2], *ordered[::step]]):
            if chosen and slices + counts[partition] > _SAMPLED_SLICES:
                break
            chosen.append(partition)
            slices += counts[partition]
            if len(chosen) == _SAMPLED_PARTITIONS:
                break
        return sorted(chosen)

    def is_plan(self, instant: Instant) -> bool:
        """Whether a pending instant is the plan of a clustering or a compaction, which may wait for its execution."""
        return instant.action in _COMPACTIONS or is_clustering(self.table, instant)

    def way_out(self, ts: str) -> str:
        """The command after which the instant `ts` is no longer pending; `recover`, which says more, for one that
        only its own process ends."""
        found = next((one for one in self.pending if one.instant.ts == ts), None)
        if found is None:
            return "recover"
        if found.decision is not Decision.WAIT:
            return f"recover --apply --instant {ts}"
        if not self.is_plan(found.instant):
            return "recover"
        return f"{'compact' if found.instant.action in _COMPACTIONS else 'execute'} --instant-time {ts}"

    def age_minutes(self, instant: Instant) -> int:
        return round(age_millis(self.table, instant) / 60_000)

    def minutes_between(self, first: Instant, last: Instant) -> float | None:
        """The minutes between the requests of two instants; None where they are no times."""
        zone = self.table.timeline.zone
        begin, end = parse_instant(first.ts, zone), parse_instant(last.ts, zone)
        return None if begin is None or end is None else (end - begin).total_seconds() / 60
