"""Which services are due on a table, what each would gain, and what it would read: from one look at the table.

A service decides by itself, when it runs, what it does; this only says whether to ask it. Gains are bytes: those that
storage gets back, or that one read of the whole table saves. What a file costs a reader before its first byte counts as
`OPEN_COST` bytes, as in Spark (spark.sql.files.openCostInBytes).
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..archival.selection import Why
from ..cleaning.plan import CleanRules, plan_clean
from ..clustering.planned_slices import sized_slices
from ..compaction.plan import why_not_due
from ..errors import HudiServicesError
from ..health import layout_checks, pending_checks
from ..health.examination import Examination
from ..health.model import CheckOutcome
from ..options import clustering_keys
from ..timeline.compaction_trigger import Trigger
from ..timeline.instant import Action, Instant
from ..units import counted

OPEN_COST = 4 << 20
MENDING = ("recover", "validate", "orphan-files")
"""Services that are due where a check names them as the command that mends what it found."""
_WAITING_FOR_CLEAN = (Why.REPLACED, Why.CLEAN)


@dataclass(frozen=True, slots=True)
class DueService:
    """A service of a table by its command; `gain` and `cost` in bytes, the cost 0 where it rewrites no data."""

    command: str
    why: str
    gain: int = 0
    cost: int = 0
    instant: str | None = None
    """The pending plan to execute; None to make a new one."""

    @property
    def gain_per_byte(self) -> float:
        return self.gain / max(1, self.cost)


def due_services(seen: Examination, outcomes: Sequence[CheckOutcome], commands: Collection[str]) -> list[DueService]:
    """Those of the services, by their `commands`, that are due, in the order in which a table gets them."""
    clean = [*_clean(seen)]
    found = [
        *_by_findings(outcomes),
        *clean,
        *_archive(seen, is_cleaned=bool(clean)),
        *_compact(seen),
        *_execute(seen, outcomes),
    ]
    return [one for one in found if one.command in commands]


def _by_findings(outcomes: Sequence[CheckOutcome]) -> Iterator[DueService]:
    for command in MENDING:
        named = {
            outcome.check.name: sum(int(one.numbers.get("bytes", 0)) for one in outcome.findings)
            for outcome in outcomes
            if any(one.command.startswith(f"{command} --apply") for one in outcome.findings)
        }
        if named:
            gain = sum(named.values()) if command == "orphan-files" else 0
            yield DueService(command, f"found by {', '.join(named)}", gain)


def _clean(seen: Examination) -> Iterator[DueService]:
    if seen.files.other_files == seen.files.held_files:
        return
    found = plan_clean(seen.table, seen.options.of(CleanRules), lambda done, of: None)
    if found.plan is not None:
        going = [tally for choice in found.choices for tally in choice.gone.values()]
        count = counted(sum(one.files for one in going), "old file")
        why = f"{counted(seen.since_clean, 'commit')} since the last clean, {count} to delete"
        yield DueService("clean", why, gain=sum(one.bytes for one in going))


def _archive(seen: Examination, *, is_cleaned: bool) -> Iterator[DueService]:
    found = seen.archival
    follows_clean = found.held is not None and found.held.why in _WAITING_FOR_CLEAN and found.commits > found.most
    if found.instants or (follows_clean and is_cleaned):
        yield DueService("archive", f"{found.commits} commits on the timeline, {found.most} at most")


def _compact(seen: Examination) -> Iterator[DueService]:
    table, files = seen.table, seen.files
    if not table.config.is_merge_on_read:
        return
    waiting = [one for one in _waiting(seen) if one.action is Action.COMPACTION]
    for instant in waiting:
        plan = table.timeline.read_compaction_plan(instant)
        table.view.load(sorted({one.partition for one in plan.operations}))
        cost = sum(_size(seen, one.partition, one.names) for one in plan.operations)
        logs = sum(_size(seen, one.partition, one.log_files) for one in plan.operations)
        count = sum(len(one.log_files) for one in plan.operations)
        why = f"the plan {instant.ts} waits for its execution"
        yield DueService("compact", why, logs + count * OPEN_COST, cost, instant.ts)
    logged = files.log_files > 0
    if waiting or not logged.any() or why_not_due(table, seen.options.of(Trigger)):
        return
    count, size = int(files.log_files.sum()), int(files.log_bytes.sum())
    yield DueService(
        "compact",
        f"every read merges {count} log files",
        gain=size + count * OPEN_COST,
        cost=int((files.base_bytes + files.log_bytes)[logged].sum()),
    )


def _execute(seen: Examination, outcomes: Sequence[CheckOutcome]) -> Iterator[DueService]:
    table = seen.table
    waiting = [one for one in _waiting(seen) if table.timeline.is_clustering(one)]
    for instant in waiting:
        slices = [
            one
            for group in sized_slices(table, table.timeline.read_plan(instant), f"the plan {instant.ts}")
            for one in group
        ]
        cost = sum(one.size for one in slices)
        why = f"the plan {instant.ts} waits for its execution"
        yield DueService("execute", why, len(slices) * OPEN_COST, cost, instant.ts)
    if waiting:
        return
    findings = {outcome.check.look: outcome.findings for outcome in outcomes if outcome.findings}
    small, overlap = findings.get(layout_checks.small_files), findings.get(layout_checks.overlap)
    files = seen.files
    if overlap:
        depth, count = overlap[0].numbers["depth"], overlap[0].numbers["files"]
        # One look-up in each partition opens so many files more than a sorted table has it open.
        saved = round((depth - 1) * overlap[0].numbers["sampled_partitions"] / max(1, count) * files.live_bytes)
        yield DueService("execute", overlap[0].sentence, saved, files.live_bytes)
    elif small:
        limit = seen.options[clustering_keys.SMALL_FILE_LIMIT]
        taken = (files.base_bytes > 0) & (files.base_bytes < limit)
        size = int(np.sum((files.base_bytes + files.log_bytes)[taken]))
        saved = int(small[0].numbers["files_to_save"])
        yield DueService("execute", f"a clustering leaves {saved} fewer small files", saved * OPEN_COST, size)


def _waiting(seen: Examination) -> list[Instant]:
    """The pending plans that nobody has executed for long, and that can be executed."""
    late = {found.subject for found in pending_checks.pending_plans(seen)}
    return [one.instant for one in seen.pending if one.instant.ts in late]


def _size(seen: Examination, partition: str, names: Collection[str]) -> int:
    """The bytes of files of a partition, as the table lists them; 0 for a file that is not there."""
    sizes = seen.table.view.sizes(partition)
    return sum(sizes.get(name, 0) for name in names)


def due_or_why(
    seen: Examination, outcomes: Sequence[CheckOutcome], commands: Collection[str]
) -> tuple[list[DueService], str]:
    """What is due; or nothing, and why that cannot be found out."""
    try:
        return due_services(seen, outcomes, commands), ""
    except HudiServicesError as error:
        return [], error.line
