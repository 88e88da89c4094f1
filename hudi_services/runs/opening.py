"""Opens a table for a service, and refuses what is not supported before anything is written."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from ..base_files.bloom import BloomSettings
from ..clock import SystemClock
from ..commit.conflicts import check_plans
from ..commit.lease import look_ahead
from ..commit.settings import transaction_settings
from ..derived_indexes.expression_index.index import Computation, computations, expression_indexes
from ..derived_indexes.expression_index.times import Zone
from ..errors import ConfigError, HudiServicesError
from ..options import effects
from ..options.option import Phase
from ..snapshot import Snapshot, open_snapshot, read_ahead
from ..storage import Storage
from ..stores import open_storage
from ..table.support import check_support, check_timeline
from ..table.time_zone import check_zone
from .report import Report, TableFacts
from .request import Request

R = TypeVar("R", bound=Request)


def open_supported(
    wanted: R,
    storage: Storage | Snapshot | None,
    report: Report,
    *,
    repairs: bool = False,
    reads_rows: bool = False,
    commits: bool = False,
) -> tuple[Snapshot, R]:
    """The table, and `wanted` with the table's own properties as the lowest layer of its options.

    `storage` replaces that of `wanted.base_path`; or it is the table, as it is known. Raises the ConfigError family,
    CorruptFile, and NeedsRecovery unless the service `repairs` tables.
    """
    with report.phase("open"):
        effects.refuse(wanted.options, wanted.phase)
        if isinstance(storage, Snapshot):
            table = storage
        else:
            table = _opened(storage or open_storage(wanted.base_path), commits=commits)
            if reads_rows:
                read_ahead(table)
        table = replace(table, on_wait=wanted.on_wait)
        report.table = TableFacts(table.storage.root, table.config.name, table.config.type, table.config.version.number)
        # A wrong value in the table must not prevent its repair.
        options = wanted.options.over_table(table.config.raw, lenient=wanted.phase is Phase.REPAIR)
        report.options = options
        report.warn(options.ignored)
        partitions = (*table.config.metadata_partitions, *table.config.metadata_partitions_inflight)
        report.warn(effects.warnings(wanted.options, wanted.phase, partitions))
        options.check(wanted.phase)
        wanted = replace(wanted, options=options)
        if wanted.table_name and wanted.table_name != table.config.name:
            raise ConfigError(
                f"--table-name {wanted.table_name} is not the name of the table at {table.storage.root}, "
                f"which is {table.config.name}",
                hint="leave --table-name out, or correct it",
            )
        for operation in wanted.operations:
            check_support(operation, table)
        if table.metadata is not None:
            # A service that deletes files must know which keys it deletes with them.
            expression_indexes(table.metadata)
        check_zone(table.timeline, table.storage.root)
        if not repairs:
            check_timeline(table.timeline, table.storage)
            check_plans(table, transaction_settings(wanted.options, table.storage))
        return table, wanted


def _opened(storage: Storage, *, commits: bool) -> Snapshot:
    """The table; its leases are listed at the same time for a run that `commits`."""
    with ThreadPoolExecutor(1) as pool:
        ahead = pool.submit(look_ahead, storage) if commits else None
        table = open_snapshot(storage, SystemClock())
        if ahead is not None:
            # Whoever takes the lease tells what is wrong.
            with suppress(HudiServicesError):
                ahead.result()
        return table


def open_rewritable(
    wanted: R, storage: Storage | Snapshot | None, report: Report
) -> tuple[Snapshot, R, tuple[Computation, ...]]:
    """The table, the request over its options, and how its expression indexes are computed.

    Raises UnsupportedTable for an expression that is not computed here, and what `open_supported` raises.
    """
    table, wanted = open_supported(wanted, storage, report, reads_rows=True, commits=True)
    if table.metadata is None or not expression_indexes(table.metadata):
        return table, wanted, ()
    zone, bloom = Zone.of_session(wanted.options), wanted.options.of(BloomSettings)
    return table, wanted, computations(table.metadata, table.schema, zone, bloom)
