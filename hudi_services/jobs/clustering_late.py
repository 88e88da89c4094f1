"""Clusters beside writers: the rows are rewritten first, and the plan is published when it is committed."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from ..attempts.attempt import Attempt
from ..attempts.late_attempts import delete_staged, take_back, take_back_dead
from ..attempts.late_plan import LatePlan
from ..attempts.staged_attempt import StagedAttempt
from ..bucket_index.signs import has_buckets
from ..clustering.planned_slices import is_ours, sized_slices
from ..codecs.clustering_plan import ClusteringPlan, encode_clustering_plan
from ..commit.conflicts import NEW_PLAN, TakenOver, refuse_beside_index_builds
from ..commit.critical_section import request
from ..commit.liveness import is_reserved, lease_name
from ..commit.planned_groups import PlannedGroups
from ..commit.times import Times, refuse_ahead
from ..commit.transaction import Transaction
from ..computed_once import cached_property
from ..concurrency import at_once
from ..errors import ConfigError, HudiServicesError, JobLost, PartlyDone
from ..model import FileSlice
from ..options import commit_keys
from ..runs.report import InOut, Report
from ..runs.report_rows import PublicationRow
from ..runs.request import ClusteringRequest
from ..runs.rewriting import carry_out
from ..runs.run import Run
from ..runs.running import Running, started
from ..snapshot import Snapshot, refresh
from ..table.support import check_group
from ..timeline.instant import Action, Instant, State
from .clustering_execution import clustering_rewrite
from .clustering_tasks import rewrite_tasks
from .plan_instants import zone_warnings
from .planned_service import PlannedService

_HUDI_CLUSTERS = (
    "hoodie.clustering.inline",
    "hoodie.datasource.clustering.inline.enable",
    "hoodie.clustering.async.enabled",
    "hoodie.datasource.clustering.async.enable",
)


def cluster_late(service: PlannedService[ClusteringRequest, ClusteringPlan]) -> Report:
    """Plan, rewrite, and commit what writers have not changed meanwhile. Raises the errors of a clustering."""
    run, table, report = service.run, service.run.table, service.run.report
    is_staged = _stages(run.request, table)
    dead = take_back_dead(table, run.settings)
    if dead:
        report.warnings.append(f"what earlier runs have left was taken back ({', '.join(dead)})")
        table = refresh(table)
        run = run.at(table)
    plan = type(service)(run).plan_now()
    if has_buckets(plan):
        raise ConfigError(
            f"{table.storage.root} has a bucket index with consistent hashing, whose writers must know of a plan: it "
            "is not published late",
            hint="leave out --publish-late",
        )
    groups = sized_slices(table, plan, "the plan")
    for group in groups:
        check_group(group, table.storage)
    service.check(table, plan)
    refuse_beside_index_builds(table)
    with started("clustering", [one for group in groups for one in group], run) as running:
        report.groups = len(groups)
        report.files = InOut(sum(map(len, groups)), None)
        late = _Late(run, plan, groups, running)
        return late.staged() if is_staged else late.reserved()


@dataclass(frozen=True)
class _Late:
    """A clustering whose groups are planned."""

    run: Run[ClusteringRequest]
    plan: ClusteringPlan
    groups: Sequence[Sequence[FileSlice]]
    running: Running

    @cached_property
    def planned(self) -> PlannedGroups:
        run, all_or_nothing = self.run, self.run.request.all_or_nothing
        return PlannedGroups(
            self.groups, run.seen, run.settings, instant="", plan=NEW_PLAN, all_or_nothing=all_or_nothing
        )

    @property
    def late(self) -> LatePlan:
        return LatePlan(self.planned, self._encode, self.run.settings)

    @property
    def action(self) -> Action:
        return self.run.table.timeline.layout.clustering_action

    def staged(self) -> Report:
        """Stage the new files; the instant is drawn when they are committed."""
        run, table = self.run, self.run.table
        ts = Times(table, 0).next()
        refuse_ahead(table, ts)
        name = table.timeline.layout.file_name(ts, self.action, State.REQUESTED)
        instant = Instant(ts, self.action, State.REQUESTED, None, name)
        tasks = rewrite_tasks(run, ts, self.plan, self.groups)
        attempt = StagedAttempt(table, instant, "clustering", self.late, run.settings)
        storage = attempt.files.storage
        tasks = [replace(task, staging=storage) for task in tasks]
        rewrite = clustering_rewrite(run, instant, self.planned, tasks, storage)
        report = carry_out(rewrite, attempt, run, self.running)
        return self._told("staged", attempt.pending_seconds, report)

    def reserved(self) -> Report:
        """Reserve an instant by a pending plan without groups, and write the new files under it."""
        report, began, given = self.run.report, time.monotonic(), self.run.request.instant
        with report.phase("reserve"):
            ts, table = request(
                self.run.table,
                self.action,
                "reserve",
                lambda _: self._encode([]),
                self.run.settings,
                rewrites=True,
                ts=given,
                beside_writers=True,
            )
        report.instant = ts
        try:
            refuse_ahead(table, ts)
            report.warnings += zone_warnings(given, table)
            run = self.run.at(table)
            tasks = rewrite_tasks(run, ts, self.plan, self.groups)
            instant = table.timeline.find(ts, self.action)
            assert instant is not None, "it was published under the lock"
            rewrite = clustering_rewrite(run, instant, self.planned, tasks, table.storage)
            self.planned.instant = ts
            attempt = Attempt(table, instant, "clustering", [rewrite.unchanged], run.settings, self.late)
            report = carry_out(rewrite, attempt, run, self.running)
        except JobLost:
            # A task may still be writing a file; the next run takes the attempt back.
            raise
        except BaseException as error:
            self._take_back(ts, error)
            raise
        return self._told("reserved", attempt.completed_at - began, report)

    def _encode(self, numbers: Sequence[int]) -> bytes:
        """The plan of some groups, by their number among those that have slices."""
        named = [group for group in self.plan.groups if group.slices]
        plan = replace(self.plan, groups=tuple(named[number] for number in numbers))
        return encode_clustering_plan(plan, self.run.table.config.version.release)

    def _take_back(self, ts: str, error: BaseException) -> None:
        """Take back this run's attempt after `error`; where that fails, the next run does it.

        Raises PartlyDone when the attempt is complete in spite of the error.
        """
        is_done, table, settings = False, self.run.table, self.run.settings
        with suppress(HudiServicesError):
            current = refresh(table)
            found = current.timeline.find(ts, self.action)
            is_done = found is not None and found.is_completed
            # A plan with groups that was taken over is another's work; without groups, nobody can execute it.
            is_ours = (
                found is not None and not is_done and (not isinstance(error, TakenOver) or is_reserved(current, found))
            )
            if found is not None and is_ours:
                with Transaction(table, lease_name(found), f"take back {ts}", settings) as transaction:
                    is_done = not take_back(transaction, ts, self.action, settings)
                    delete_staged(table.storage, ts)
                    transaction.forget()
        if is_done and not isinstance(error, PartlyDone | TakenOver):
            raise PartlyDone(f"the clustering {ts} is complete, in spite of: {error}") from error

    def _told(self, way: str, pending_seconds: float, report: Report) -> Report:
        report.show(PublicationRow, [PublicationRow(way, round(pending_seconds, 3))])
        return report


def _stages(request: ClusteringRequest, table: Snapshot) -> bool:
    """Whether new files are staged: where a move is a rename, and wherever a writer of Hudi may cluster, too.

    Such a writer takes a reserved instant for a plan, and fails. Raises ConfigError when the options ask for that.
    """
    option = commit_keys.PUBLISH_LATE
    way, texts = request.options[option], request.options.texts()
    clusters = next((key for key in _HUDI_CLUSTERS if texts.get(key, "").lower() == "true"), None)
    if way == "RESERVED" and clusters is not None:
        raise ConfigError(
            f"{option.key}=reserved cannot be used with {clusters}=true: a writer of Hudi that clusters "
            "fails on an instant that is only reserved",
            hint=f"leave {option.key} out, or let only one of the two cluster",
        )
    if way == "STAGED" and request.instant is not None:
        raise ConfigError(
            f"{option.key}=staged draws the instant at the commit, and {request.instant} was asked for",
            hint=f"leave the instant out, or {option.key}",
        )
    if way != "AUTO" or request.instant is not None:
        return way == "STAGED"
    return table.storage.capabilities.renames or clusters is not None or hudi_has_clustered(table)


def hudi_has_clustered(table: Snapshot) -> bool:
    """Whether the timeline has a clustering that this tool did not plan."""
    done = [one for one in table.timeline.completed_writes() if table.timeline.is_clustering(one)]
    return not all(at_once(lambda one: is_ours(table.timeline.read_plan(one)), done))
