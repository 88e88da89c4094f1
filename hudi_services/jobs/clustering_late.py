"""Clusters beside writers: the rows are rewritten first, and the plan is published when it is committed."""

from collections.abc import Sequence
from dataclasses import replace

from ..clustering.plan import input_slices
from ..codecs.clustering_plan import encode_clustering_plan
from ..commit.conflicts import NEW_PLAN, refuse_beside_index_builds
from ..commit.critical_section import request
from ..commit.late_plan import LatePlan
from ..commit.liveness import age_millis, is_reserved, lease_name, liveness
from ..commit.newest_files import check_newest
from ..commit.planned_groups import PlannedGroups
from ..commit.rollback.execution import roll_back
from ..commit.settings import TransactionSettings
from ..commit.times import Times, refuse_ahead
from ..commit.transaction import Transaction
from ..concurrency import at_once
from ..engine import Engine
from ..errors import ConfigError, LockBusy
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

        with report.phase("reserve"):
            action = table.timeline.layout.clustering_action
            ts = request(table, action, "reserve", lambda _: encode([]), settings, rewrites=True, beside_writers=True)
            reserved = reopen(table)
            refuse_ahead(reserved, ts)
        report.instant = ts
        report.warnings += zone_warnings(None, table)
        tasks = rewrite_tasks(wanted, reserved, ts, plan, groups)
        report.groups = len(groups)
        report.files = InOut(sum(map(len, groups)), None)
        planned = PlannedGroups(
            [group for group in groups if group], seen, settings, plan=NEW_PLAN, all_or_nothing=wanted.all_or_nothing
        )
        instant = reserved.timeline.find(ts, action)
        assert instant is not None, "it was published under the lock"
        rewrite = clustering_rewrite(instant, planned, tasks, LatePlan(planned, encode, settings))
        return carry_out(rewrite, wanted, reserved, expressions, settings, report, running)


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


def _without_dead_reservations(table: Snapshot, settings: TransactionSettings, report: Report) -> Snapshot:
    """Roll back what killed runs have left. Raises LockBusy while another run is at work."""
    left = [one for one in table.timeline.pending_clusterings() if is_reserved(table, one)]
    for one in left:
        report.warnings.append(f"an earlier attempt was rolled back ({_roll_back(table, one, settings)})")
    return reopen(table) if left else table


def _roll_back(table: Snapshot, reserved: Instant, settings: TransactionSettings) -> str:
    ts = reserved.ts
    with Transaction(table, lease_name(reserved), f"roll back {ts}", settings) as transaction:
        # A run that has just reserved the instant takes the lease next.
        may_begin = transaction.lease.previous is None
        is_young = may_begin and age_millis(table, reserved) < settings.heartbeat_expires_millis
        if is_young or liveness(table, reserved, settings, held=transaction.lease).alive:
            raise LockBusy(
                f"{table.storage.root}: another run clusters the table, under the instant {ts}",
                hint="wait for it; without a sign of life for two minutes it counts as dead",
            )
        with transaction.section(f"roll back {ts}", repairs=ts, beside_writers=True) as current:
            found = current.timeline.find(ts, reserved.action)
            done = roll_back(current, found or reserved, Times(current, settings.skew_millis), keep_plan=False)
        transaction.forget()
        return done
