"""From a table to a cleaner plan: trigger, horizon, partitions, files.

Source: CleanPlanActionExecutor of Apache Hudi.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from ..clock import parse_instant
from ..codecs.clean_plan import CleanerPlan, CleanMetadata
from ..file_names import parse_data_file
from ..model import path_in
from ..options import Options, clean_keys, computed, settings, value_of
from ..snapshot import Snapshot
from ..table.partitions import StorageLister
from ..table.view import FileSystemView
from ..timeline.instant import Action, Instant
from ..units import counted
from .choice import PartitionDecision, ReasonToKeep, Rules, Tally, choose
from .retention import Horizon, Policy, Retention, horizon
from .scope import (
    SAVEPOINTS,
    CleanedPartitionRules,
    commits_since_clean,
    last_clean,
    partitions_to_look_at,
    removed_savepoints,
    savepoints,
)

_BATCH = 64
"""Partitions that are listed at once."""


def _retention(options: Options) -> Retention:
    return options.of(Retention, most_commits=options[clean_keys.CLEAN_MAX_COMMITS])


@dataclass(frozen=True, slots=True)
class CleanRules:
    """The rules of a clean plan."""

    retention: Retention = computed(_retention, Retention())
    partitions: CleanedPartitionRules = settings(CleanedPartitionRules)
    trigger_commits: int = value_of(clean_keys.CLEAN_TRIGGER_COMMITS)
    """The number of commits completed since the last clean that a new plan requires."""
    empty_clean_hours: int | None = value_of(clean_keys.EMPTY_CLEAN_HOURS, lambda hours: hours if hours > 0 else None)
    """After so many hours without a clean, a clean without files is planned, to move the earliest commit to retain."""


@dataclass(slots=True)
class CleanPlanning:
    """The result of planning: `plan` is None when there is nothing to delete, and `why_empty` is the reason."""

    plan: CleanerPlan | None = None
    why_empty: str = ""
    horizon: Horizon = field(default_factory=Horizon)
    looked_at: int = 0
    """The number of partitions that were considered."""
    half_released: tuple[str, ...] = ()
    """Deleted savepoints that may have held files in partitions which were not considered."""
    choices: list[PartitionDecision] = field(default_factory=list)
    """The choices for the partitions that lose files."""
    kept: dict[ReasonToKeep, Tally] = field(default_factory=dict)
    """The files that stay, over all partitions that were considered."""


def plan_clean(table: Snapshot, rules: CleanRules, progress: Callable[[int, int], None]) -> CleanPlanning:
    """Plan a clean of the table as it is; writes nothing. `progress` is called with (partitions done, all of them)."""
    previous = last_clean(table.timeline)
    since = commits_since_clean(table.timeline, previous)
    if since < rules.trigger_commits:
        return CleanPlanning(
            why_empty=f"{counted(since, 'commit')} since the last clean, and a clean is planned after "
            f"{rules.trigger_commits} (hoodie.clean.trigger.max.commits)"
        )
    until = horizon(table.timeline, rules.retention, table.clock.now(), previous.earliest_to_retain if previous else "")
    found = CleanPlanning(horizon=until)
    if until.earliest is None and rules.retention.policy is not Policy.FILE_VERSIONS:
        found.why_empty = _why_no_horizon(table, rules.retention, until)
        return found
    partitions = partitions_to_look_at(table, until, rules.retention.policy, rules.partitions, previous)
    found.looked_at = len(partitions)
    if rules.partitions.incremental and not table.config.version.removed_savepoint_rescans_table:
        found.half_released = tuple(sorted(removed_savepoints(table, previous)))
    emptied = _choose_all(table, partitions, rules.retention, found, progress)
    extra = _extra(table)
    if found.choices or emptied or (_empty_clean_is_due(table, rules, until)):
        found.plan = CleanerPlan(
            policy=rules.retention.policy.value,
            earliest_to_retain=_not_before(until.earliest, previous, bool(found.choices or emptied)),
            last_completed=_last_completed(table),
            files={choice.partition: _full_paths(table, choice) for choice in found.choices},
            partitions_to_delete=tuple(emptied),
            extra=extra,
            earliest_action=until.earliest.action.value if until.earliest else "",
        )
    else:
        found.why_empty = _why_nothing(found)
    return found


def _choose_all(
    table: Snapshot,
    partitions: list[str],
    retention: Retention,
    planning: CleanPlanning,
    progress: Callable[[int, int], None],
) -> list[str]:
    """Choose the files of all `partitions` into `planning`; return the partitions of which nothing is left."""
    rules = Rules(
        retention.policy,
        planning.horizon.earliest.ts if planning.horizon.earliest else "",
        retention.versions,
        frozenset(name for _, name in table.ledger.held),
        {one.group: one.base_instant for _, one in table.ledger.merged},
        table.ledger.planned,
    )

    def look(partition: str, view: FileSystemView) -> tuple[PartitionDecision, bool]:
        groups = view.all_slices(partition)
        times = {file_id: view.replaced_at(partition, file_id) for file_id in groups}
        replaced = {file_id: at for file_id, at in times.items() if at is not None}
        return choose(partition, groups, replaced, rules), len(replaced) == len(groups)

    emptied: list[str] = []
    for number, (partition, view) in enumerate(table.view.each(partitions), start=1):
        choice, no_live_group = look(partition, view)
        if choice.names:
            planning.choices.append(choice)
        for why, tally in choice.kept.items():
            planning.kept.setdefault(why, Tally()).add(tally.files, tally.bytes)
        # Unlike Hudi, which does not consider that a savepoint may hold the last files.
        if no_live_group and not choice.kept and partition and not _has_other_files(table, choice):
            emptied.append(partition)
        if number % _BATCH == 0 or number == len(partitions):
            progress(number, len(partitions))
    return emptied


def _has_other_files(table: Snapshot, choice: PartitionDecision) -> bool:
    """Whether the folder holds data files that the clean does not delete: files of pending writes."""
    going = set(choice.names)
    stored = StorageLister(table.storage).files(choice.partition)
    return any(name not in going and parse_data_file(choice.partition, name, 0) for name in stored)


def _last_completed(table: Snapshot) -> str:
    writes = table.timeline.completed_writes()
    return writes[-1].ts if writes else ""


def _extra(table: Snapshot) -> dict[str, str]:
    # Also for a plan without partitions, where Hudi leaves the key out: Hudi's archiver relies on the key, and would
    # archive a replacecommit whose old files a savepoint still holds.
    held = savepoints(table)
    return {SAVEPOINTS: ",".join(held)} if held else {}


def _full_paths(table: Snapshot, choice: PartitionDecision) -> tuple[str, ...]:
    return tuple(table.storage.full_path(path_in(choice.partition, name)) for name in choice.names)


def _empty_clean_is_due(table: Snapshot, rules: CleanRules, until: Horizon) -> bool:
    if rules.empty_clean_hours is None or until.earliest is None or not rules.partitions.incremental:
        return False
    cleans = table.timeline.completed({Action.CLEAN})
    last = parse_instant(cleans[-1].ts, table.timeline.zone) if cleans else None
    return last is None or table.clock.now() - last > timedelta(hours=rules.empty_clean_hours)


def _not_before(earliest: Instant | None, previous: CleanMetadata | None, has_files: bool) -> str:
    """The earliest commit to retain, "" for none; a clean without files never moves it back."""
    ts = earliest.ts if earliest else ""
    return ts if has_files or previous is None else max(ts, previous.earliest_to_retain)


def _why_no_horizon(table: Snapshot, retention: Retention, until: Horizon) -> str:
    if until.held_back_by is not None:
        pending = until.held_back_by
        return f"the pending {pending.action.value} {pending.ts} is older than every commit that could be cleaned"
    if retention.policy is Policy.HOURS:
        return f"no completed commit began in the last {counted(retention.hours, 'hour')}, so all files are kept"
    completed = len(table.timeline.completed_writes())
    return f"{counted(completed, 'completed commit')}, and the last {retention.commits} are retained"


def _why_nothing(planning: CleanPlanning) -> str:
    pending = planning.horizon.held_back_by
    held = f"; the pending {pending.action.value} {pending.ts} keeps everything that came after it" if pending else ""
    return f"nothing can be deleted in the {counted(planning.looked_at, 'partition')} that were planned for{held}"
