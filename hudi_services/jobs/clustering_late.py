"""Clusters beside writers: the rows are rewritten first, and the plan is published when it is committed."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from ..clustering.plan import input_slices
from ..codecs.clustering_plan import encode_clustering_plan
from ..commit.conflicts import NEW_PLAN, refuse_beside_index_builds
from ..commit.critical_section import request
from ..commit.late_plan import LatePlan
from ..commit.liveness import age_millis, is_reserved, lease_name, liveness
from ..commit.newest_files import check_newest
from ..commit.planned_groups import PlannedGroups
from ..commit.rollback.execution import drop_attempt, roll_back
from ..commit.settings import TransactionSettings
from ..commit.times import Times, refuse_ahead
from ..commit.transaction import Transaction
from ..concurrency import at_once
from ..engine import Engine
from ..errors import ConfigError, HudiServicesError, JobLost, LockBusy, PartlyDone
from ..metadata.expression_index.index import Computation
from ..options.resolve import Options
from ..snapshot import Snapshot, reopen
from ..table.support import check_group
from ..timeline.instant import Instant
from .clustering_execution import clustering_rewrite
from .clustering_schedule import plan_now
from .clustering_tasks import rewrite_tasks
from .plan_instants import zone_warnings
from .report import InOut, Report
from .request import ClusteringRequest
from .rewriting import carry_out
from .running import started
from .settings import transaction_settings

_HUDI_CLUSTERS = (
    "hoodie.clustering.inline",
    "hoodie.datasource.clustering.inline.enable",
    "hoodie.clustering.async.enabled",
    "hoodie.datasource.clustering.async.enable",
)


def cluster_late(
    wanted: ClusteringRequest,
    table: Snapshot,
    expressions: tuple[Computation, ...],
    report: Report,
    engine: Engine | None,
) -> Report:
    """Plan, rewrite, and commit what writers have not changed meanwhile.

    Raises ConfigError where Hudi's writers cluster, too, and the errors of a clustering.
    """
    _refuse_clustering_writers(wanted.options)
    settings = transaction_settings(wanted.options, table.storage)
    table = _without_dead_reservations(table, settings, report)
    plan = plan_now(wanted, table, settings, report)
    groups = input_slices(plan, "the plan")
    for group in groups:
        check_group(group, table.storage)
    check_newest(table, [(one.partition, one.file_id) for group in groups for one in group])
    refuse_beside_index_builds(table)
    seen = frozenset(write.ts for write in table.timeline.completed_writes())
    release = table.config.version.release
    with started("clustering", groups, wanted, report, engine) as running:
        at_once(table.slices.check, [one for group in groups for one in group if one.log_files])

        def encode(numbers: Sequence[int]) -> bytes:
            named = [group for group in plan.groups if group.slices]
            return encode_clustering_plan(replace(plan, groups=tuple(named[number] for number in numbers)), release)

        action = table.timeline.layout.clustering_action
        with report.phase("reserve"):
            ts = request(
                table,
                action,
                "reserve",
                lambda _: encode([]),
                settings,
                rewrites=True,
                ts=wanted.instant,
                beside_writers=True,
            )
        report.instant = ts
        try:
            reserved = reopen(table)
            refuse_ahead(reserved, ts)
            report.warnings += zone_warnings(wanted.instant, table)
            tasks = rewrite_tasks(wanted, reserved, ts, plan, groups)
            report.groups = len(groups)
            report.files = InOut(sum(map(len, groups)), None)
            planned = PlannedGroups(
                [group for group in groups if group],
                seen,
                settings,
                instant=ts,
                plan=NEW_PLAN,
                all_or_nothing=wanted.all_or_nothing,
            )
            instant = reserved.timeline.find(ts, action)
            assert instant is not None, "it was published under the lock"
            rewrite = clustering_rewrite(instant, planned, tasks, LatePlan(planned, encode, settings))
            return carry_out(rewrite, wanted, reserved, expressions, settings, report, running)
        except JobLost:
            # A task may still be writing a file; the next run takes the attempt back.
            raise
        except BaseException as error:
            _take_back(table, ts, settings, error)
            raise


def _refuse_clustering_writers(options: Options) -> None:
    """Raise ConfigError where writers cluster, too: they would take the reserved instant for a plan, and fail."""
    texts = options.texts()
    for key in _HUDI_CLUSTERS:
        if texts.get(key, "").lower() == "true":
            raise ConfigError(
                f"--publish late cannot be used with {key}=true: a writer of Hudi that clusters fails on an instant "
                "that is only reserved",
                hint="leave --publish late out, or let only one of the two cluster",
            )


def _take_back(table: Snapshot, ts: str, settings: TransactionSettings, error: BaseException) -> None:
    """Take back this run's attempt after `error`; where that fails, the next run does it.

    Raises PartlyDone when the attempt is complete in spite of the error.
    """
    is_done = False
    with suppress(HudiServicesError):
        found = reopen(table).timeline.find(ts, table.timeline.layout.clustering_action)
        is_done = found is not None and found.is_completed
        if found is not None and not is_done:
            with Transaction(table, lease_name(found), f"take back {ts}", settings) as transaction:
                _drop(transaction, found, settings)
    if is_done and not isinstance(error, PartlyDone):
        raise PartlyDone(f"the clustering {ts} is complete, in spite of: {error}") from error


def _without_dead_reservations(table: Snapshot, settings: TransactionSettings, report: Report) -> Snapshot:
    """Take back what killed runs have left. Raises LockBusy while another run is at work."""
    left = [one for one in table.timeline.pending_clusterings() if is_reserved(table, one)]
    for one in left:
        _take_back_dead(table, one, settings)
        report.warnings.append(f"the attempt {one.ts} of an earlier run was taken back")
    return reopen(table) if left else table


def _take_back_dead(table: Snapshot, reserved: Instant, settings: TransactionSettings) -> None:
    ts = reserved.ts
    with Transaction(table, lease_name(reserved), f"take back {ts}", settings) as transaction:
        # A run that has just reserved the instant takes the lease next.
        may_begin = transaction.lease.previous is None
        is_young = may_begin and age_millis(table, reserved) < settings.heartbeat_expires_millis
        if is_young or liveness(table, reserved, settings, held=transaction.lease).alive:
            raise LockBusy(
                f"{table.storage.root}: another run clusters the table, under the instant {ts}",
                hint="wait for it; without a sign of life for two minutes it counts as dead",
            )
        _drop(transaction, reserved, settings)


def _drop(transaction: Transaction, attempt: Instant, settings: TransactionSettings) -> None:
    """Take an attempt back: beside writers, as long as nobody has seen its plan."""
    ts = attempt.ts
    with transaction.section(f"take back {ts}", repairs=ts, beside_writers=True) as current:
        found = current.timeline.find(ts, attempt.action)
        is_unseen = found is not None and is_reserved(current, found)
        if found is not None and is_unseen:
            drop_attempt(current, found)
    if found is not None and not is_unseen:
        with transaction.section(f"take back {ts}", repairs=ts) as current:
            found = current.timeline.find(ts, attempt.action)
            if found is not None and not found.is_completed:
                roll_back(current, found, Times(current, settings.skew_millis), keep_plan=False)
    transaction.forget()
