"""The rescale job: another number of file groups for the record index of a live table, from the entries that it has."""

import logging
from collections.abc import Mapping, Sequence

from ..commit.conflicts import refuse_beside_index_builds
from ..commit.times import Times
from ..commit.transaction import Transaction
from ..concurrency import at_once
from ..engine import Engine
from ..errors import ConfigError, ConflictError, NeedsRecovery, NothingToDo, UnsupportedTable
from ..indexing.checkpoints import RESCALE_FOLDER, Checkpoints
from ..indexing.publication import RescaleDraft
from ..indexing.rescale import Rescale
from ..indexing.shard_count import GroupSizing, PartitionSizing, file_group_count
from ..metadata.metadata_table import MetadataTable
from ..metadata.record_index.shards import Shards
from ..metadata.records.keys import RECORD_INDEX
from ..metadata_updates.new_partition import LostWork
from ..model import FileSlice
from ..own_commands import own_command
from ..runs.opening import open_supported
from ..runs.report import InOut, Report
from ..runs.request import RescaleRequest
from ..runs.run import Run
from ..runs.running import Running, check_engine
from ..snapshot import Snapshot, refresh
from ..storage import Storage
from .index_leftovers import forget_builds
from .index_publishing import publish_when_quiet

_log = logging.getLogger(__name__)


def index_rescale(request: RescaleRequest, storage: Storage | None = None, engine: Engine | None = None) -> Report:
    """Give the record index another number of file groups. `storage` replaces that of `request.base_path`, and `engine`
    Spark."""
    report = Report.start(request)
    check_engine(request, engine)
    run = open_supported(request, storage, report)
    table = run.table
    refuse_beside_index_builds(table)
    kept = Checkpoints(table.storage, RESCALE_FOLDER)
    is_closed = RECORD_INDEX not in table.config.metadata_partitions and kept.load_closed() is not None
    if is_closed and not request.resume:
        raise NeedsRecovery(
            f"{table.storage.root} has no record index: a rescale was killed when it had taken out the old file groups",
            hint="run again with --resume; or build the index anew with index-bootstrap",
        )
    counts = {} if is_closed else _wanted(run)
    if request.dry_run:
        return _dry_run(run, counts)
    groups = [] if is_closed else _metadata(table).file_groups(RECORD_INDEX)
    with (
        Transaction(table, "index-rescale", "index-rescale", run.settings),
        Running(f"hudi_services index-rescale {table.config.name}", request, report, engine, lambda: groups) as runner,
    ):
        rescale = Rescale(table, _metadata(table), runner, request.progress)
        with report.phase("plan"):
            why_anew = rescale.resume(table) if request.resume else ""
            if why_anew and is_closed:
                raise _lost(table, why_anew)
            if why_anew or not request.resume:
                _begin(rescale, run, counts)
            elif counts and Shards.new(counts).file_ids != rescale.plan.file_ids:
                number = len(rescale.plan.file_ids)
                report.warnings.append(
                    f"the rescale that was begun goes on, to {number} file groups; without --resume another one begins"
                )
        try:
            _carry_out(rescale, run)
        except LostWork as lost:
            if rescale.is_closed:
                raise _lost(table, lost.message) from lost
            why_anew = lost.message
            now = run.at(refresh(table))
            with report.phase("plan"):
                # A data partition may have come, with file groups of its own.
                _begin(rescale, now, _wanted(now), splits=False)
            _carry_out(rescale, run)
        if why_anew:
            report.warnings.append(f"{why_anew}: the rescale starts again from the beginning")
    rescale.forget()
    return _account(report, rescale)


def _lost(table: Snapshot, why: str) -> ConflictError:
    root = table.storage.root
    return ConflictError(
        f"{root} has no record index, and the rescale that took it out cannot go on: {why}",
        hint=f"build the index anew: {own_command('index-bootstrap', root)}",
    )


def _metadata(table: Snapshot) -> MetadataTable:
    assert table.metadata is not None, "it is refused otherwise (table.support)"
    return table.metadata


def _wanted(run: Run[RescaleRequest]) -> dict[str | None, int]:
    """The number of file groups that each data partition is to have, or under None the whole index.

    It is the number that is asked for, or the one that index-bootstrap would choose. Raises UnsupportedTable for a
    table without a record index, ConfigError for a partition of a global one, and NothingToDo when all is so.
    """
    table, only = run.table, run.request.partition
    root = table.storage.root
    if RECORD_INDEX not in table.config.metadata_partitions:
        raise UnsupportedTable(f"{root} has no record index", hint=f"build it: {own_command('index-bootstrap', root)}")
    metadata = _metadata(table)
    groups = metadata.file_groups(RECORD_INDEX)
    shards = Shards.of_groups(groups)
    if only is not None and not shards.is_partitioned:
        raise ConfigError(
            "--partition names a partition, and this record index is one of the whole table", hint="leave it out"
        )
    own = run.options.of(PartitionSizing if shards.is_partitioned else GroupSizing)
    entries = _entries(metadata, groups) if own.at_least < own.at_most else [0] * len(groups)
    if only is not None:
        shards.of(only)
    sets = shards.by_partition
    present = {one: len(some) for one, some in sets.items()}
    asked = {one: file_group_count(sum(entries[number] for number in some), own) for one, some in sets.items()}
    counts = {one: asked[one] if only in (None, one) else number for one, number in present.items()}
    if counts == present:
        if not run.request.dry_run:
            forget_builds(run, RECORD_INDEX)
        raise NothingToDo(f"the record index of {root} has {sum(counts.values())} file groups already")
    return counts


def _entries(metadata: MetadataTable, groups: Sequence[FileSlice]) -> list[int]:
    """About how many entries each file group has: those of the base file and of the log files."""
    opened = at_once(metadata.open_group, groups)
    return [base + in_logs for base, _, in_logs in (one.counts for one in opened)]


def _dry_run(run: Run[RescaleRequest], counts: Mapping[str | None, int]) -> Report:
    """Report what would be read and written; a rescale that would be resumed keeps the number of its file groups."""
    report, metadata = run.report, _metadata(run.table)
    report.dry_run = True
    groups = metadata.file_groups(RECORD_INDEX) if counts else []
    with report.phase("estimate"):
        entries = sum(_entries(metadata, groups))
    begun = Checkpoints(run.table.storage, RESCALE_FOLDER).load_plan() if run.request.resume else None
    report.groups = len(begun.file_ids) if begun else sum(counts.values())
    report.files, report.rows = InOut(len(groups), report.groups), InOut(entries, None)
    report.bytes = InOut(sum(group.size for group in groups), None)
    return report.looked("dry run: the record index keeps its file groups")


def _begin(
    rescale: Rescale, run: Run[RescaleRequest], counts: Mapping[str | None, int], *, splits: bool = True
) -> None:
    times = Times(run.table, run.settings.skew_millis).next
    rescale.begin(run.table, _metadata(run.table), counts, times, splits=splits)


def _carry_out(rescale: Rescale, run: Run[RescaleRequest]) -> None:
    """Carry out the steps that are not done yet, and publish. Raises LostWork when the rescale must begin anew."""
    with run.report.phase("read entries"):
        rescale.read_entries()
    with run.report.phase("write shards"):
        rescale.write_shards()
    with run.report.phase("publish"):
        publish_when_quiet(rescale, RescaleDraft(rescale), run, "publish the record index")


def _account(report: Report, rescale: Rescale) -> Report:
    entries = sum(base.entries for base in rescale.bases)
    report.groups = len(rescale.shards.file_ids)
    report.files = InOut(len(rescale.plan.slices), len(rescale.shards.file_ids))
    report.rows = InOut(entries, entries)
    report.bytes = InOut(sum(one.size for one in rescale.plan.slices), sum(base.size for base in rescale.bases))
    _log.info("%d keys in %d file groups", entries, report.groups)
    return report.completed(rescale.plan.instant)
