"""Every pending or half-done instant of a table, the evidence, and the decision: findings only, and no change.

    write       alive: wait            dead: roll back
    clustering  alive: wait            dead attempt, or inputs changed, or planned long ago: roll back, drop the plan
                                       a file that cannot be rewritten: drop the plan; of a plan of Hudi: wait
    clean       alive: wait            dead: resume        plan unreadable: drop it
    rollback    alive: wait            dead: resume        plan unreadable: drop it
    savepoint   recent: wait           else drop it
    compaction  alive, or planned: wait    dead attempt: roll back; only the plan of a log compaction is dropped
    restore, index build           wait: only Apache Hudi can finish them

`commit.liveness` decides which instants are dead. A clustering plan that no process has begun is dropped at the age at
which a write without heartbeat counts as abandoned: until then a process may be about to execute it. At any age, an
instant is left alone while a process of ours holds its lease, because the process may be waiting for the lock.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

from ..attempts.clean import pending_cleans
from ..bucket_index.kept_rings import why_kept
from ..clock import duration
from ..clustering.planned_slices import input_slices, is_ours
from ..commit.checkpoints import checkpoints
from ..commit.conflicts import input_changes
from ..commit.liveness import Liveness, Signs, age_millis, is_stale_rollback, liveness, now_millis, rollback_liveness
from ..commit.markers import marker_folder, read_markers
from ..commit.newest_files import check_superseded
from ..commit.settings import TransactionSettings
from ..errors import CheckFailed, CorruptFile, HudiServicesError, NotFound, SymbolicLink
from ..own_commands import own_command
from ..rollback.execution import (
    completed_twin,
    is_still_completed,
    pending_rollback,
    without_target,
)
from ..rollback.requests import unfit_markers
from ..snapshot import Snapshot
from ..table.partitions import StorageLister
from ..timeline.instant import Action, Instant, State
from .unfit_plans import way_out, why_unfit


class Decision(Enum):
    RESUME = "resume"
    ROLL_BACK = "roll back"
    DROP = "drop the plan"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class Finding:
    """One instant: `why` is the reason of the decision, `blocks` names what the instant holds up."""

    instant: Instant
    signs: Liveness
    age_millis: float
    silent_millis: float
    """Milliseconds since the last sign of life."""
    heartbeat: str
    """none, alive or ended."""
    markers: int
    """The number of its markers; where they cannot be read, that of their files."""
    files: int | None
    """The number of existing data files that its markers name; None if it writes no data, or the number is unknown."""
    decision: Decision
    why: str
    blocks: str


@dataclass(frozen=True, slots=True)
class _Case:
    """An instant with its signs of life."""

    table: Snapshot
    instant: Instant
    settings: TransactionSettings
    signs: Liveness

    @property
    def silence(self) -> str:
        """The time since the last sign of life, for people."""
        return duration(now_millis(self.table) - self.signs.last_sign_millis) if self.signs.last_sign_millis else "ever"

    @property
    def is_young(self) -> bool:
        """Whether a process may still be writing the instant's first file."""
        return age_millis(self.table, self.instant) < self.settings.heartbeat_expires_millis

    @property
    def is_old(self) -> bool:
        """Whether an instant without promised signs of life counts as abandoned."""
        return now_millis(self.table) - self.signs.last_sign_millis >= self.settings.abandoned_millis


_Judgement = tuple[Decision, str, str]
"""The decision, its reason, and what the instant blocks."""


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision with its reason, what the instant blocks, and the signs of life that it rests on."""

    decision: Decision
    why: str
    blocks: str
    signs: Liveness


_WRITERS = "cleaning and archiving of everything after it"


def find(table: Snapshot, settings: TransactionSettings) -> list[Finding]:
    """The findings for every pending or half-done instant of the timeline, in the order in which to handle them.

    Rollbacks come first, because they remove the instants that they undo; then writes, newest first, as Hudi rolls them
    back.
    """
    instants = {*table.timeline.pending(), *pending_cleans(table)}
    lister, listed = StorageLister(table.storage), Signs(table.storage)
    found = [_judge(table, instant, settings, lister, listed) for instant in instants]
    return sorted(found, key=lambda one: (_RANK.get(one.instant.action, len(_RANK)), _newest_first(one.instant.ts)))


def abandoned(table: Snapshot, instants: Iterable[Instant], settings: TransactionSettings) -> Instant | None:
    """The first of the pending `instants` that no process will finish without a repair; None without one."""
    return next((one for one in instants if decide(table, one, settings).decision is not Decision.WAIT), None)


_RANK = {
    Action.ROLLBACK: 0,
    Action.COMMIT: 1,
    Action.DELTA_COMMIT: 1,
    Action.REPLACE_COMMIT: 1,
    Action.CLUSTERING: 1,
    Action.CLEAN: 2,
}


def _newest_first(ts: str) -> int:
    return -int(ts)


def _judge(
    table: Snapshot, instant: Instant, settings: TransactionSettings, lister: StorageLister, listed: Signs
) -> Finding:
    """The finding for one instant; `lister` lists partitions."""
    decided = decide(table, instant, settings, listed)
    signs, now, writes = decided.signs, now_millis(table), instant.action.writes_data
    markers, files = _written(table, instant, lister) if writes else (0, None)
    return Finding(
        instant,
        signs,
        age_millis(table, instant),
        now - signs.last_sign_millis,
        _heartbeat(signs, now, settings),
        markers,
        files,
        decided.decision,
        decided.why,
        decided.blocks,
    )


def decide(table: Snapshot, instant: Instant, settings: TransactionSettings, listed: Signs | None = None) -> Decided:
    """The decision about one instant of `table`.

    Without `listed`, the signs of life that a caller with many instants has listed once, they are those of now.
    """
    if instant.action is Action.ROLLBACK:
        signs = rollback_liveness(table, instant, settings)
    else:
        signs = liveness(table, instant, settings, listed=listed)
    case = _Case(table, instant, settings, signs)
    decision, why, blocks = _judges(table, instant)(case)
    if instant.action.writes_data and decision in (Decision.ROLL_BACK, Decision.DROP):
        decision, why = _beside_completed(case, decision, why)
    if decision is Decision.ROLL_BACK and instant.action.writes_data:
        decision, why = _without_markers(case, decision, why)
    if signs.holder:
        decision, why = Decision.WAIT, f"{signs.holder}: that process holds the lease of this instant"
    return Decided(decision, why, blocks, signs)


def _beside_completed(case: _Case, decision: Decision, why: str) -> tuple[Decision, str]:
    """The decision when a completed write has the same time: a rollback would delete its files, so drop the plan."""
    try:
        twin = completed_twin(case.table, case.instant.ts)
    except (CorruptFile, NotFound) as error:
        return (
            Decision.WAIT,
            f"{why}, but it is unknown whether a write with this instant was completed: {error.message}",
        )
    if twin:
        return Decision.DROP, f"{twin}, and {case.instant.file_name} is not one of its files"
    return decision, why


def _without_markers(case: _Case, decision: Decision, why: str) -> tuple[Decision, str]:
    """The decision about a rollback that is still to be planned, when markers name files of other instants."""
    problem, may_be_listed = unfit_markers(case.table, case.instant)
    if not problem or pending_rollback(case.table, case.instant.ts) is not None:
        return decision, why
    if may_be_listed:
        return decision, f"{why}; {problem}: its files will be found by listing"
    return Decision.WAIT, f"{why}, but {problem}, and only the markers could tell which files it appended to"


def _heartbeat(signs: Liveness, now: float, settings: TransactionSettings) -> str:
    if signs.heartbeat_millis is None:
        return "none"
    return "alive" if now - signs.heartbeat_millis < settings.heartbeat_expires_millis else "ended"


def _written(table: Snapshot, instant: Instant, lister: StorageLister) -> tuple[int, int | None]:
    """The numbers of markers, and of existing files that these name."""
    try:
        markers = read_markers(table.storage, instant.ts)
    except CorruptFile:
        return len(table.storage.list_tree(marker_folder(instant.ts))), None
    try:
        lister.load(sorted({marker.partition for marker in markers}))
    except (CorruptFile, SymbolicLink):
        return len(markers), None
    named = {(marker.partition, marker.file_name) for marker in markers}
    return len(markers), sum(name in lister.files(partition) for partition, name in named)


def _judges(table: Snapshot, instant: Instant) -> Callable[[_Case], _Judgement]:
    if instant.action in _SERVICES:
        return _SERVICES[instant.action]
    if instant.action in (Action.REPLACE_COMMIT, Action.CLUSTERING):
        try:
            return _clustering if table.timeline.is_clustering(instant) else _write
        except CorruptFile:
            return _unreadable_replace
    return _write


def _write(case: _Case) -> _Judgement:
    blocks = f"{_WRITERS}; without a lock, every service"
    begun_rollback = _rollback_of(case)
    if begun_rollback is not None:
        return *begun_rollback, blocks
    if case.signs.alive:
        return Decision.WAIT, f"its writer gave a sign of life {case.silence} ago", blocks
    return Decision.ROLL_BACK, f"no sign of life for {case.silence}", blocks


def _clustering(case: _Case) -> _Judgement:
    plan = case.table.timeline.read_plan(case.instant)
    groups = sum(len(group.slices) for group in plan.groups)
    blocks = f"updates of its {groups} file groups, {_WRITERS}"
    begun_rollback = _rollback_of(case)
    if begun_rollback is not None:
        return *begun_rollback, blocks
    begun = case.instant.state is State.INFLIGHT
    if case.signs.alive and (begun or case.signs.heartbeat_millis is not None):
        return Decision.WAIT, f"its process gave a sign of life {case.silence} ago", blocks
    kept = why_kept(case.table, case.instant)
    if kept:
        return Decision.WAIT, kept, blocks
    if begun:
        done = len(checkpoints(case.table, case.instant))
        more = f", with {done} finished tasks that execute would keep" if done else ""
        why = f"its execution gives no sign of life for {case.silence}; the plan is deleted with it{more}"
        return Decision.ROLL_BACK, why, blocks
    if not plan.groups:
        if case.is_young:
            return Decision.WAIT, "a process has just reserved its instant", blocks
        return Decision.ROLL_BACK, f"a process reserved its instant {case.silence} ago, and did not go on", blocks
    try:
        stale = _why_stale(case)
    except CheckFailed as error:
        return Decision.WAIT, f"it is unknown whether the plan can be executed: {error.message}; {error.hint}", blocks
    if stale:
        return Decision.DROP, f"the plan can never be executed: {stale}", blocks
    unfit = _why_unfit(case)
    if isinstance(unfit, CorruptFile) or (unfit is not None and is_ours(plan)):
        why = f"the plan can never be executed: {unfit.line}; {way_out(case.table, case.instant)}"
        return Decision.DROP, why, blocks
    age = age_millis(case.table, case.instant)
    if age >= case.settings.abandoned_millis:
        why = f"it was planned {duration(age)} ago and was not executed; schedule a new plan if you want the clustering"
        return Decision.DROP, why, blocks
    if unfit is not None:
        why = f"the plan cannot be executed here: {unfit.line}; let Apache Hudi execute it, or"
        return Decision.WAIT, f"{why} {way_out(case.table, case.instant)}", blocks
    command = own_command("execute", case.table.storage.root, f"--instant-time {case.instant.ts}")
    return Decision.WAIT, f"the plan can be executed: {command}", blocks


def _why_unfit(case: _Case) -> HudiServicesError | None:
    """As `why_unfit`, unless a process is about to find out."""
    return None if case.signs.holder else why_unfit(case.table, case.instant)


def _why_stale(case: _Case) -> str:
    timeline = case.table.timeline
    source = case.table.storage.full_path(timeline.path(timeline.requested_name(case.instant)))
    try:
        groups = input_slices(timeline.read_plan(case.instant), source)
    except CorruptFile as error:
        return error.message
    except HudiServicesError:
        # A slice with log files or no base file, or a group over several partitions: only Hudi can execute this plan.
        return ""
    changed = input_changes(case.table, [one for group in groups for one in group])
    # `execute` leaves out the groups that were changed.
    of_groups = [[changed.get((one.partition, one.file_id)) for one in group] for group in groups if group]
    firsts = [next(filter(None, found), None) for found in of_groups]
    return firsts[0].message if firsts and firsts[0] and all(firsts) else ""


def _unreadable_replace(case: _Case) -> _Judgement:
    name = case.table.timeline.requested_name(case.instant)
    blocks = f"everybody who reads plans, {_WRITERS}"
    if case.signs.alive:
        return Decision.WAIT, f"{name} cannot be read, and was written {case.silence} ago", blocks
    if case.instant.state is State.REQUESTED:
        return Decision.DROP, f"{name} cannot be read, and nothing was begun", blocks
    return Decision.ROLL_BACK, f"{name} cannot be read, and there was no sign of life for {case.silence}", blocks


def _clean(case: _Case) -> _Judgement:
    blocks = "new cleans"
    if case.signs.alive:
        return Decision.WAIT, f"its process gave a sign of life {case.silence} ago", blocks
    timeline = case.table.timeline
    name = timeline.requested_name(case.instant)
    try:
        plan = timeline.read_cleaner_plan(case.instant)
    except CorruptFile as error:
        if case.is_young:
            return Decision.WAIT, f"{name} cannot be read, and may be being written", blocks
        if not timeline.sizes.get(name):
            return Decision.DROP, f"{name} is empty: its process died while it wrote it", blocks
        why = f"{error.message}; the next clean deletes the files that are left"
        return Decision.DROP, why, f"{blocks}, all of them"
    try:
        check_superseded(case.table, plan.names)
    except CheckFailed as error:
        return Decision.DROP, f"it must not be finished: {error.message}", blocks
    except (CorruptFile, SymbolicLink) as error:
        return Decision.WAIT, f"it cannot be finished: {error.message}; {error.hint}", blocks
    files = sum(map(len, plan.files.values()))
    return Decision.RESUME, f"its plan names {files} files; finishing it is safe at any time", blocks


def _rollback(case: _Case) -> _Judgement:
    timeline = case.table.timeline
    name = timeline.requested_name(case.instant)
    blocks = "clustering of the files that its plan deletes"
    if case.signs.alive:
        return Decision.WAIT, f"its process gave a sign of life {case.silence} ago", blocks
    try:
        plan = timeline.read_rollback_plan(case.instant)
    except CorruptFile as error:
        why = f"{error.message}; recover then finds what it had to undo"
        return Decision.DROP, why, f"every writer: {name} must be read"
    if is_still_completed(case.table, plan):
        # A rollback deletes files only after the completed file: nothing was deleted, and others may build on it now.
        why = f"it had to roll {plan.action} {plan.ts} back, which is still complete: start that rollback again"
        return Decision.DROP, why, blocks
    if committed := without_target(case.table, plan):
        why = f"its plan deletes {committed}, and the instant {plan.ts} is not on the timeline: it may be archived"
        return Decision.DROP, why, blocks
    why = f"the rollback of {plan.action} {plan.ts} gave no sign of life for {case.silence}"
    return Decision.RESUME, why, blocks


def _savepoint(case: _Case) -> _Judgement:
    if not case.is_old:
        return Decision.WAIT, f"it was begun {case.silence} ago", "nothing"
    return Decision.DROP, f"it was begun {case.silence} ago, and holds nothing", "nothing"


def _restore(case: _Case) -> _Judgement:
    return Decision.WAIT, "only Apache Hudi can finish a restore: start it again there", "every writer and service"


def _indexing(case: _Case) -> _Judgement:
    return (
        Decision.WAIT,
        "let HoodieIndexer of Apache Hudi finish it, or drop the index there",
        "writers update an index that no reader uses",
    )


def _compaction(case: _Case) -> _Judgement:
    blocks = f"clustering of its file groups, {_WRITERS}"
    begun_rollback = _rollback_of(case)
    if begun_rollback is not None:
        return *begun_rollback, blocks
    if case.instant.state is State.REQUESTED:
        if case.instant.action is Action.LOG_COMPACTION:
            return Decision.WAIT, "let Apache Hudi execute it", blocks
        unfit = _why_unfit(case)
        if unfit is None:
            return Decision.WAIT, f"execute it: {own_command('compact', case.table.storage.root)}", blocks
        why = f"the plan cannot be executed here: {unfit.line}; {way_out(case.table, case.instant)}"
        return Decision.WAIT, why, blocks
    if case.signs.alive:
        return Decision.WAIT, f"its process gave a sign of life {case.silence} ago", blocks
    kept = case.instant.action is Action.COMPACTION
    then = "its plan stays, because log files may be named after it" if kept else "the plan is deleted with it"
    return Decision.ROLL_BACK, f"its execution gives no sign of life for {case.silence}; {then}", blocks


_SERVICES: dict[Action, Callable[[_Case], _Judgement]] = {
    Action.CLEAN: _clean,
    Action.ROLLBACK: _rollback,
    Action.SAVEPOINT: _savepoint,
    Action.RESTORE: _restore,
    Action.INDEXING: _indexing,
    Action.COMPACTION: _compaction,
    Action.LOG_COMPACTION: _compaction,
}


def _rollback_of(case: _Case) -> tuple[Decision, str] | None:
    """The decision because of a pending rollback of the instant; None without one that can be read."""
    rollback = pending_rollback(case.table, case.instant.ts)
    if rollback is None:
        return None
    if is_stale_rollback(case.table, rollback, case.settings):
        return Decision.ROLL_BACK, f"the rollback {rollback.ts} of it was begun, and its process is dead"
    return Decision.WAIT, f"the rollback {rollback.ts} of it is in progress"
