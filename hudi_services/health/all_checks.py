"""All checks of a table, in the order in which they are told, and the one place that makes them."""

from collections.abc import Sequence

from ..errors import HudiServicesError
from . import layout_checks, metadata_checks, option_checks, pending_checks, service_checks, storage_checks
from .examination import Examination
from .model import CheckOutcome, HealthCheck

CHECKS: tuple[HealthCheck, ...] = tuple(
    HealthCheck(look.__name__, look)
    for look in (
        # First: rows that are hidden from readers; nobody else tells it.
        metadata_checks.hidden_rows,
        metadata_checks.narrow_partition_ranges,
        metadata_checks.metadata_behind,
        metadata_checks.drift,
        option_checks.eager_rollbacks,
        option_checks.writers_without_lock,
        option_checks.short_retention,
        service_checks.checkpoint_gone,
        service_checks.checkpoint_about_to_go,
        pending_checks.dead_writers,
        pending_checks.plans_given_up,
        pending_checks.pending_plans,
        pending_checks.half_done_services,
        pending_checks.long_writers,
        pending_checks.lock_left,
        pending_checks.signs_left,
        service_checks.cleaner_held_back,
        service_checks.cleaner_lags,
        service_checks.clustering_holds_archive,
        service_checks.archive_held_back,
        service_checks.archive_lags,
        service_checks.compaction_lags,
        service_checks.savepoints,
        metadata_checks.metadata_compaction_lags,
        metadata_checks.index_half_built,
        metadata_checks.record_index_balance,
        metadata_checks.metadata_missing,
        layout_checks.small_files,
        layout_checks.oversized_files,
        layout_checks.skewed_partitions,
        layout_checks.many_log_files,
        layout_checks.overlap,
        storage_checks.orphan_files,
        storage_checks.refused_features,
        option_checks.archive_before_clean,
        option_checks.index_not_kept,
    )
)


def examine(seen: Examination) -> Sequence[CheckOutcome]:
    """Make every check; one that fails says why, and the others go on."""
    return [_outcome(check, seen) for check in CHECKS]


def _outcome(check: HealthCheck, seen: Examination) -> CheckOutcome:
    outcome = CheckOutcome(check)
    try:
        outcome.findings += check.look(seen)
    except HudiServicesError as error:
        outcome.unable = error.line
    return outcome
