"""Opens a table for a service, and refuses what is not supported before anything is written."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from ..base_files.source_folder import SourceFolder
from ..clock import SystemClock
from ..commit.conflicts import check_plans
from ..commit.lease import look_ahead
from ..engine import Engine
from ..errors import ConfigError, HudiServicesError
from ..indexing.derived import DerivedIndexes
from ..options import effects, file_keys
from ..options.option import Phase
from ..snapshot import Snapshot, open_snapshot, read_ahead, with_sources
from ..storage import Storage
from ..stores import open_storage
from ..table.support import Operation, check_support, check_timeline
from ..table.time_zone import check_zone
from .report import Report, TableFacts
from .request import Request
from .run import Run

R = TypeVar("R", bound=Request)


def open_supported(
    request: R,
    storage: Storage | Snapshot | None,
    report: Report,
    *,
    repairs: bool = False,
    reads_rows: bool = False,
    commits: bool = False,
) -> Run[R]:
    """The run on the table, whose own properties are the lowest layer of the options.

    `storage` replaces that of `request.base_path`; or it is the table, as it is known. Raises the ConfigError family,
    CorruptFile, and NeedsRecovery unless the service `repairs` tables.
    """
    with report.phase("open"):
        effects.refuse(request.options, request.phase)
        if isinstance(storage, Snapshot):
            table = storage
        else:
            table = _opened(storage or open_storage(request.base_path), commits=commits)
            if reads_rows:
                read_ahead(table)
        table = replace(table, on_wait=request.on_wait)
        report.table = TableFacts(table.storage.root, table.config.name, table.config.type, table.config.version.number)
        # A wrong value in the table must not prevent its repair.
        options = request.options.over_table(table.config.raw, lenient=request.phase is Phase.REPAIR)
        report.options = options
        report.warn(options.ignored)
        partitions = (*table.config.metadata_partitions, *table.config.metadata_partitions_inflight)
        report.warn(effects.warnings(request.options, request.phase, partitions))
        options.check(request.phase)
        request = replace(request, options=options)
        if request.table_name and request.table_name != table.config.name:
            raise ConfigError(
                f"--table-name {request.table_name} is not the name of the table at {table.storage.root}, "
                f"which is {table.config.name}",
                hint="leave --table-name out, or correct it",
            )
        for operation in request.operations:
            check_support(operation, table)
        # A service that deletes files must know which keys it deletes with them. An index may go that is not known.
        if Operation.INDEX_DROP not in request.operations:
            DerivedIndexes.check(table)
        check_zone(table.timeline, table.storage.root)
        table = with_sources(table, SourceFolder(options[file_keys.BOOTSTRAP_SOURCE]))
        run = Run(request, table, report)
        if not repairs:
            check_timeline(table.timeline, table.storage)
            check_plans(table, run.settings)
        return run


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
    request: R, storage: Storage | Snapshot | None, report: Report, engine: Engine | None = None
) -> Run[R]:
    """The run of a service that writes files, and keeps the indexes of the table in step with them.

    Raises UnsupportedTable for an index that is not computed here, and what `open_supported` raises.
    """
    run = open_supported(request, storage, report, reads_rows=True, commits=True)
    return replace(run, indexes=DerivedIndexes.of(run.table, run.options), engine=engine)
