"""Which instants go to the archive: Hudi's rules, and why the others stay.

Completed writes go, oldest first, when there are more than `most` of them, until `least` are left; never one from the
first bound on. Cleans and rollbacks go with the writes after them (layout 2), or by the same two numbers (layout 1).
Sources: TimelineArchiverV1, TimelineArchiverV2, ArchivalUtils, ClusteringUtils.getEarliestInstantToRetainForClustering,
CompactionUtils.getEarliestInstantToRetainForCompaction, TimelineUtils.getEarliestInstantForMetadataArchival of Hudi.
One rule is ours: the last checkpoint of a stream stays, which Hudi archives.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice

from ..cleaning.retention import Policy, Retention, horizon
from ..cleaning.scope import SAVEPOINTS
from ..clock import parse_instant
from ..codecs.clean_plan import CleanerPlan, CleanMetadata
from ..metadata.metadata_table import MetadataTable
from ..options import Options, archive_keys, commit_keys, settings, value_of
from ..table_config import TableConfig
from ..timeline.active import Timeline
from ..timeline.compaction_trigger import Trigger
from ..timeline.instant import Action, Instant
from ..timeline.stream_checkpoints import LastCheckpoint, last_checkpoint

_REPLACING = frozenset({Action.REPLACE_COMMIT, Action.CLUSTERING})
_FOLLOWING = (Action.CLEAN, Action.ROLLBACK)


class Why(Enum):
    """Why instants stay on the timeline."""

    PENDING = "a write or a plan that is not completed"
    SAVEPOINT = "a savepoint (hoodie.archive.beyond.savepoint)"
    COMPACTION = "the delta commits that the next compaction counts"
    REPLACED = "a replacecommit whose old files no clean has deleted yet"
    CLEAN = "the last clean retains it (hoodie.archive.block.on.latest.clean.ectr)"
    CHECKPOINT = "the last checkpoint of a stream (hudi.services.archive.beyond.checkpoint)"
    ROLLBACK = "a completed commit that is being rolled back"
    METADATA = "the last compaction of the metadata table"
    NO_METADATA_COMPACTION = "the metadata table was never compacted"
    TABLE = "the timeline of the table has it"


@dataclass(frozen=True, slots=True)
class Bound:
    """Instants from `ts` on stay; `ts` is "" where all stay."""

    ts: str
    why: Why


@dataclass(frozen=True, slots=True)
class ArchiveRules:
    """The rules of an archival. `compaction_commits`: how many delta commits a compaction waits for, None if no number.

    `retention` are the cleans of the same writer, which must find the commits that they retain.
    """

    most: int = value_of(archive_keys.ARCHIVE_MOST)
    least: int = value_of(archive_keys.ARCHIVE_LEAST)
    retention: Retention = settings(Retention)
    compaction_commits: int | None = 5
    beyond_savepoint: bool = value_of(archive_keys.ARCHIVE_BEYOND_SAVEPOINT)
    keeps_retained: bool = value_of(archive_keys.ARCHIVE_KEEPS_RETAINED)
    """Whether nothing goes that the last clean retains."""
    beyond_checkpoint: bool = value_of(archive_keys.ARCHIVE_BEYOND_CHECKPOINT)
    """Whether last checkpoints of streams go, too."""
    checkpoint_keys: tuple[str, ...] = value_of(commit_keys.ROLLING_KEYS)
    """Keys of the extra metadata that count as checkpoints beside those that Hudi knows."""


def archive_rules(options: Options, config: TableConfig) -> ArchiveRules:
    """The rules of an archival of a table with this `config`, as writers with these options have them."""
    commits = options.of(Trigger).counts if config.is_merge_on_read else None
    return options.of(ArchiveRules, compaction_commits=commits)


@dataclass(frozen=True, slots=True)
class ArchivalSelection:
    """The instants that go, in timeline order, and what the others stay for."""

    instants: tuple[Instant, ...]
    commits: int
    """The completed writes on the timeline."""
    most: int
    least: int
    held: Bound | None = None
    """The rule because of which fewer go than `least` allows."""
    checkpoint: LastCheckpoint | None = None
    """The checkpoint that stays, and that Hudi's writers would archive by the same numbers."""

    @property
    def why_empty(self) -> str:
        """Why no instant goes."""
        if self.held is None:
            commits = "1 commit is" if self.commits == 1 else f"{self.commits} commits are"
            return f"{commits} on the timeline, and commits are archived from {self.most + 1} on"
        since = f", {self.held.ts}" if self.held.ts else ""
        return f"all {self.commits} commits stay on the timeline: {self.held.why.value}{since}"


def select(
    timeline: Timeline, rules: ArchiveRules, bounds: Sequence[Bound], *, is_due: bool = False
) -> ArchivalSelection:
    """The instants to archive. `bounds` are those of another timeline, and hold cleans and rollbacks, too.

    `is_due`: the archival was begun with more than `most` commits.
    """
    commits = timeline.completed_writes()
    least, most = _numbers(timeline, commits, rules)
    excess = max(len(commits) - least, 0) if is_due or len(commits) > most else 0
    own = _own_bounds(timeline, rules, commits) if excess else []
    first = min((*own, *bounds), key=lambda one: one.ts, default=None)
    free = [one for one in commits if not _is_held(one, first)]
    if rules.beyond_savepoint:
        held = {one.ts for one in timeline.completed({Action.SAVEPOINT})}
        free = [one for one in free if one.ts not in held]
    going = free[:excess]
    checkpoint = None if rules.beyond_checkpoint else last_checkpoint(timeline, going, rules.checkpoint_keys)
    if checkpoint is not None:
        first = Bound(checkpoint.write.ts, Why.CHECKPOINT)
        going = [one for one in going if not _is_held(one, first)]
    following = _following(timeline, going, bounds, least, 0 if is_due else most)
    instants = sorted((*going, *following), key=lambda one: one.order)
    held_by = first if len(going) < excess else None
    return ArchivalSelection(tuple(instants), len(commits), most, least, held_by, checkpoint)


def bounds_of_table(timeline: Timeline, metadata: MetadataTable | None) -> list[Bound]:
    """What the metadata table keeps on the timeline of its table: it knows a block to be valid by the instant there."""
    if metadata is None:
        return []
    last = next(iter(reversed(metadata.timeline.completed({Action.COMMIT}))), None)
    if last is None:
        return [Bound("", Why.NO_METADATA_COMPACTION)]
    if not timeline.layout.completion_times:
        return [Bound(last.ts, Why.METADATA)]
    later = (one.ts for one in timeline.completed_writes() if (one.completion_time or "") > last.ts)
    return [Bound(ts, Why.METADATA) for ts in islice(later, 1)]


def bounds_of_metadata(table: Timeline, *, beyond_savepoint: bool) -> list[Bound]:
    """What `table` keeps on the timeline of its metadata table: all since its first write, or first pending action."""
    writes = (one.ts for one in table.instants if one.action.writes_data)
    first = table.archived_until() if beyond_savepoint else next(writes, None)
    known = (first, next((one.ts for one in table.pending()), None))
    return [Bound(min(one for one in known if one is not None), Why.TABLE)] if any(known) else []


def _numbers(timeline: Timeline, commits: Sequence[Instant], rules: ArchiveRules) -> tuple[int, int]:
    """The least and the most commits, raised so that cleans of the same writer find the commits that they retain."""
    newest = parse_instant(commits[-1].ts, timeline.zone) if commits else None
    if newest is None:
        return rules.least, rules.most
    earliest = horizon(timeline, rules.retention, newest, "", compactions=False).earliest
    if earliest is None:
        return rules.least, rules.most
    needed = sum(one.ts > earliest.ts for one in commits) + 2
    raised = max(needed - rules.least, 0)
    return rules.least + raised, rules.most + raised


def _is_held(instant: Instant, first: Bound | None) -> bool:
    return first is not None and instant.ts >= first.ts


def _following(
    timeline: Timeline, commits: Sequence[Instant], bounds: Sequence[Bound], least: int, most: int
) -> Iterable[Instant]:
    """The cleans and rollbacks that go. The next clean and the next archival read the last clean, which stays."""
    first = min(bounds, key=lambda one: one.ts, default=None)
    unfinished = set(timeline.emptied_cleans())
    for action in _FOLLOWING:
        done = [one for one in timeline.completed({action}) if one not in unfinished]
        if timeline.layout.archives_cleans_with_commits:
            kept = done[-1:] if action is Action.CLEAN else []
            going = [one for one in done if commits and one.ts < commits[-1].ts and one not in kept]
        else:
            going = done[: max(len(done) - least, 0)] if len(done) > most else []
            going = [one for one in going if not _is_held(one, first)]
        yield from going


def _own_bounds(timeline: Timeline, rules: ArchiveRules, commits: Sequence[Instant]) -> list[Bound]:
    found: list[tuple[str | None, Why]] = [
        (_before_pending(timeline, commits), Why.PENDING),
        (_replaced(timeline, rules.retention.policy), Why.REPLACED),
        (next((one.ts for one in commits if one.ts in timeline.pending_rollbacks), None), Why.ROLLBACK),
    ]
    if not rules.beyond_savepoint:
        found.append((next((one.ts for one in timeline.completed({Action.SAVEPOINT})), None), Why.SAVEPOINT))
    if rules.compaction_commits is not None:
        found.append((_compaction(timeline, rules.compaction_commits), Why.COMPACTION))
    if rules.keeps_retained:
        found.append((_retained(timeline) or None, Why.CLEAN))
    return [Bound(ts, why) for ts, why in found if ts is not None]


def _before_pending(timeline: Timeline, commits: Sequence[Instant]) -> str | None:
    """The last completed commit before the first pending write, for which it may look; else that write itself."""
    pending = next((one for one in timeline.pending() if one.action.writes_data), None)
    if pending is None:
        return None
    return max((one.ts for one in commits if one.ts < pending.ts), default=pending.ts)


def _compaction(timeline: Timeline, commits: int) -> str | None:
    """The last compaction, or the first delta commit that the next compaction counts, when enough came after it."""
    last = next(iter(reversed(timeline.completed({Action.COMMIT}))), None)
    deltas = [one for one in timeline.instants if one.action is Action.DELTA_COMMIT]
    if last is not None and timeline.layout.completion_times:
        deltas = [one for one in deltas if (one.completion_time or "") > last.ts]
    elif last is not None:
        deltas = [one for one in deltas if one.ts > last.ts]
    if len(deltas) >= commits:
        return deltas[len(deltas) - commits].ts
    begin = last or next(iter(deltas), None)
    return None if begin is None else begin.ts


def _replaced(timeline: Timeline, policy: Policy) -> str | None:
    """The first replacecommit or clustering whose old files may still be there: readers need it to leave them out."""
    since = ""
    clean = _last_clean(timeline)
    if clean is not None:
        earliest, held = _retention_of(timeline, clean)
        since = earliest or clean.ts
        # Cleans after the savepoint was deleted may not have come back to the files that it held.
        if policy is not Policy.FILE_VERSIONS and held and earliest > held:
            replaced = timeline.completed({Action.REPLACE_COMMIT})
            since = held if any(held <= one.ts <= earliest for one in replaced) else since
    replacing = (one.ts for one in timeline.instants if one.action in _REPLACING)
    return next((ts for ts in replacing if ts >= since), None)


def _retained(timeline: Timeline) -> str:
    clean = _last_clean(timeline)
    return "" if clean is None else _retention_of(timeline, clean)[0]


def _last_clean(timeline: Timeline) -> Instant | None:
    unfinished = set(timeline.emptied_cleans())
    return next((one for one in reversed(timeline.completed({Action.CLEAN})) if one not in unfinished), None)


def _retention_of(timeline: Timeline, clean: Instant) -> tuple[str, str]:
    """The earliest commit to retain of a completed clean, and the first savepoint that it saw; "" for none."""
    done: CleanerPlan | CleanMetadata = timeline.read_clean(clean)
    # Where it deleted nothing, only its plan tells the earliest commit. A killed archival may have deleted the plan.
    if timeline.has_plan(clean):
        done = timeline.read_cleaner_plan(clean)
    savepoints = filter(None, done.extra.get(SAVEPOINTS, "").split(","))
    return done.earliest_to_retain.strip(), min(savepoints, default="")
