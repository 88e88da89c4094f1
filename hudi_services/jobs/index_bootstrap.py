"""The index job: build the record index of a live table. Mirrors HoodieIndexer of Apache Hudi."""

import logging
import time
from contextlib import suppress

from ..base_files.slices import describe
from ..commit.begun_rollbacks import begun_rollbacks, not_yet_rolled_back
from ..commit.conflicts import pending_writes, recover_hint, refuse_beside_index_builds
from ..commit.critical_section import critical_section
from ..commit.liveness import liveness
from ..commit.settings import TransactionSettings
from ..commit.times import Times
from ..commit.transaction import Transaction, complete
from ..engine import Engine
from ..errors import ConflictError, NeedsRecovery, NothingToDo
from ..indexing.build import Build
from ..indexing.checkpoints import forget, load_plan
from ..indexing.publication import Behind, IndexDraft
from ..indexing.shard_count import GroupSizing, file_group_count
from ..metadata.metadata_table import MetadataTable
from ..metadata.record_index.key_hash import load_key_hash
from ..metadata.record_index.shard_base_file import WrittenBase
from ..metadata.records.keys import RECORD_INDEX
from ..metadata_updates.new_partition import LostWork
from ..options import index_keys
from ..runs.opening import open_supported
from ..runs.report import InOut, Report
from ..runs.request import IndexRequest
from ..runs.run import Run
from ..runs.running import Running, check_engine
from ..snapshot import Snapshot, refresh
from ..storage import Storage
from ..timeline.instant import Instant, State
from ..waiting import Waiting

_log = logging.getLogger(__name__)

_POLL_SECONDS = 1.0


def index_bootstrap(request: IndexRequest, storage: Storage | None = None, engine: Engine | None = None) -> Report:
    """Build the record index and publish it. `storage` replaces that of `request.base_path`, and `engine` Spark."""
    report = Report.start(request)
    check_engine(request, engine)
    run = open_supported(request, storage, report)
    table = run.table
    metadata = _check(table, forgets=not request.dry_run)
    refuse_beside_index_builds(table)
    # Before Spark is started, so that wrong bounds are reported at once.
    sizing = run.options.of(GroupSizing)
    hash_name = run.options[index_keys.INDEX_HASH]
    load_key_hash(hash_name)
    if request.dry_run:
        return _dry_run(run, sizing)
    with (
        Transaction(table, "index-bootstrap", "index-bootstrap", run.settings),
        Running(f"hudi_services index {table.config.name}", request, report, engine, table.view.live_slices) as runner,
    ):
        build = Build(table, metadata, runner, request.progress, hash_name)
        with report.phase("plan"):
            why_anew = build.resume() if request.resume else ""
            if why_anew or not request.resume:
                _begin(build, sizing, run)
        try:
            bases = _carry_out(build, run)
        except LostWork as lost:
            why_anew = lost.message
            with report.phase("plan"):
                _begin(build, sizing, run.at(refresh(table)))
            bases = _carry_out(build, run)
        if why_anew:
            report.warnings.append(f"{why_anew}: the build starts again from the beginning")
    report.groups = build.plan.shards
    build.forget()
    return _account(report, build, bases)


def _dry_run(run: Run[IndexRequest], sizing: GroupSizing) -> Report:
    """Report what would be read and built; a build that would be resumed keeps the number of its file groups."""
    table, report = run.table, run.report
    report.dry_run = True
    with report.phase("plan"):
        slices = table.view.live_slices()
        count = sum(describe(table.slices, slices, lambda _, facts: facts.most_rows))
        begun = load_plan(table.storage) if run.request.resume else None
    report.groups = begun.shards if begun else file_group_count(count, sizing)
    report.files, report.rows = InOut(len(slices), None), InOut(count, None)
    return report.looked("dry run: no index was built")


def _check(table: Snapshot, *, forgets: bool = True) -> MetadataTable:
    """The metadata table. Raises ConflictError while Hudi builds the index, and NothingToDo for a table that has it.

    `forgets`: delete what a build left behind on a table that has the index.
    """
    root = table.storage.root
    assert table.metadata is not None, "it is refused otherwise (table.support)"
    if RECORD_INDEX in table.config.metadata_partitions:
        if forgets:
            forget(table.storage)
        raise NothingToDo(f"{root} has a record index already")
    if RECORD_INDEX in table.config.metadata_partitions_inflight:
        raise ConflictError(f"{root}: an indexer of Apache Hudi is building its record index", hint="wait for it")
    return table.metadata


def _begin(build: Build, sizing: GroupSizing, run: Run[IndexRequest]) -> None:
    build.begin(run.table, _check(run.table), sizing, Times(run.table, run.settings.skew_millis).next)


def _carry_out(build: Build, run: Run[IndexRequest]) -> list[WrittenBase]:
    """Carry out the steps that are not done yet, and publish the index. Raises LostWork when the build must restart."""
    with run.report.phase("read keys"):
        build.read_keys()
    with run.report.phase("write shards"):
        bases = build.write_shards()
    with run.report.phase("publish"):
        _publish(build, bases, run)
    return bases


def _publish(build: Build, bases: list[WrittenBase], run: Run[IndexRequest]) -> None:
    """Follow the table until, under its lock, the index is up to date and no write is pending; then publish the index.

    A write that began before the index existed may not add its rows to the index, and a rollback may not take the rows
    of an older commit out of it. Raises ConflictError or NeedsRecovery when one stays pending for too long.
    """

    def look_again(now: Snapshot) -> None:
        if _unfinished(now) or build.is_behind(now):
            raise Behind(f"{now.storage.root} has changed while the files of the index were moved")

    table, settings = run.table, run.settings
    deadline = time.monotonic() + settings.lock_wait.wait_millis / 1000
    with Waiting(table.on_wait) as waiting:
        while True:
            current = refresh(table)
            if build.is_behind(current):
                build.catch_up(current)
            with critical_section(current, "publish the record index", settings) as locked:
                pending = _unfinished(locked)
                if not pending and not build.is_behind(locked):
                    with suppress(Behind):
                        draft = IndexDraft(build, bases, look_again)
                        complete(locked, draft, Times(locked, settings.skew_millis).next)
                        return
            if not pending:
                continue
            first = pending[0]
            if time.monotonic() > deadline:
                raise _blocked(locked, first, settings)
            waiting.tell(f"the {first.action.value} {first.ts} to end ({first.file_name})")
            table.clock.sleep(_POLL_SECONDS)


def _unfinished(table: Snapshot) -> list[Instant]:
    """Pending writes, clusterings that have begun, and completed commits that are about to be rolled back.

    The execution of any other plan will see the index.
    """
    clusterings = [one for one in table.timeline.pending_clusterings() if one.state is State.INFLIGHT]
    return [*pending_writes(table), *clusterings, *(target for _, target in begun_rollbacks(table))]


def _blocked(table: Snapshot, pending: Instant, settings: TransactionSettings) -> ConflictError | NeedsRecovery:
    if pending.is_completed:
        return not_yet_rolled_back(table, table.timeline.pending_rollbacks[pending.ts], pending, settings)
    message = (
        f"{table.storage.root}: the {pending.action.value} {pending.ts} is not finished ({pending.file_name}), and may "
        "not know of the new index"
    )
    if liveness(table, pending, settings).alive:
        return ConflictError(message, hint="run again with --resume when it is finished; what was built is kept")
    return NeedsRecovery(
        f"{message}; this instant was abandoned: its writer gives no sign of life",
        hint=f"{recover_hint(table)}; then run again with --resume: what was built is kept",
    )


def _account(report: Report, build: Build, bases: list[WrittenBase]) -> Report:
    entries, repeated = sum(base.entries for base in bases), sum(base.repeated for base in bases)
    size = sum(base.size for base in bases)
    report.files, report.rows = InOut(len(build.plan.slices), len(bases)), InOut(entries + repeated, entries)
    report.bytes = InOut(None, size)
    if repeated:
        report.warnings.append(f"{repeated} rows share a record key with another row: the index has the last one")
    _log.info("%d keys in %d shards", entries, build.plan.shards)
    return report.completed(build.plan.instant)
