"""The index job: build the record index of a live table. Mirrors HoodieIndexer of Apache Hudi."""

import logging

from ..base_files.slices import describe
from ..commit.conflicts import refuse_beside_index_builds
from ..commit.times import Times
from ..commit.transaction import Transaction
from ..engine import Engine
from ..errors import ConflictError, NothingToDo
from ..indexing.build import Build, group_counts
from ..indexing.checkpoints import WORK_FOLDER, Checkpoints
from ..indexing.kinds import IndexKind, asked_index, check_no_whole_index, check_partitioned, check_unbuilt
from ..indexing.of_files.names import are_of_files
from ..indexing.publication import IndexDraft
from ..indexing.shard_count import GroupSizing, PartitionSizing
from ..metadata.metadata_table import MetadataTable
from ..metadata.record_index.key_hash import load_key_hash
from ..metadata.record_index.shard_base_file import WrittenBase
from ..metadata_updates.new_partition import LostWork
from ..options import index_keys
from ..runs.opening import open_supported
from ..runs.report import InOut, Report
from ..runs.request import IndexRequest
from ..runs.run import Run
from ..runs.running import Running, check_engine
from ..snapshot import Snapshot, refresh
from ..storage import Storage
from ..table.support import check_bare
from .file_index_bootstrap import file_index_bootstrap
from .index_leftovers import forget_builds
from .index_publishing import publish_when_quiet

_log = logging.getLogger(__name__)


def index_bootstrap(request: IndexRequest, storage: Storage | None = None, engine: Engine | None = None) -> Report:
    """Build an index and publish it. `storage` replaces that of `request.base_path`, and `engine` Spark."""
    report = Report.start(request)
    check_engine(request, engine)
    run = open_supported(request, storage, report)
    if are_of_files(request.index):
        return file_index_bootstrap(run, engine)
    table = run.table
    kind = asked_index(request.index, table)
    if request.partitioned:
        check_partitioned(kind, table)
        check_no_whole_index(table)
    try:
        metadata = _check(table, kind)
    except NothingToDo:
        if not request.dry_run:
            forget_builds(run, kind.partition)
        raise
    refuse_beside_index_builds(table)
    # Before Spark is started, so that wrong bounds are reported at once.
    sizing = run.options.of(PartitionSizing if request.partitioned else GroupSizing)
    hash_name = run.options[index_keys.INDEX_HASH]
    load_key_hash(hash_name)
    if request.dry_run:
        return _dry_run(run, sizing)
    with (
        Transaction(table, "index-bootstrap", "index-bootstrap", run.settings),
        Running(f"hudi_services index {table.config.name}", request, report, engine, table.view.live_slices) as runner,
    ):
        build = Build(table, metadata, runner, request.progress, hash_name, kind, of_partitions=request.partitioned)
        with report.phase("plan"):
            why_anew = build.resume(table) if request.resume else ""
            if why_anew or not request.resume:
                _begin(build, sizing, run, kind)
        try:
            bases = _carry_out(build, run)
        except LostWork as lost:
            why_anew = lost.message
            with report.phase("plan"):
                _begin(build, sizing, run.at(refresh(table)), kind)
            bases = _carry_out(build, run)
        if why_anew:
            report.warnings.append(f"{why_anew}: the build starts again from the beginning")
    report.groups = len(build.shards.file_ids)
    build.forget()
    forget_builds(run, kind.partition)
    return _account(report, build, bases)


def _dry_run(run: Run[IndexRequest], sizing: GroupSizing) -> Report:
    """Report what would be read and built; a build that would be resumed keeps the number of its file groups."""
    table, report = run.table, run.report
    report.dry_run = True
    with report.phase("plan"):
        slices = table.view.live_slices()
        counts = describe(table.slices, slices, lambda _, facts: facts.most_rows)
        begun = Checkpoints(table.storage, WORK_FOLDER).load_plan() if run.request.resume else None
    groups = group_counts(slices, counts, sizing, of_partitions=run.request.partitioned)
    report.groups = len(begun.file_ids) if begun else sum(groups.values())
    report.files, report.rows = InOut(len(slices), None), InOut(sum(counts), None)
    return report.looked("dry run: no index was built")


def _check(table: Snapshot, kind: IndexKind) -> MetadataTable:
    """The metadata table. Raises ConflictError while Hudi builds the index, and what `check_unbuilt` raises."""
    assert table.metadata is not None, "it is refused otherwise (table.support)"
    check_unbuilt(kind, table)
    check_bare(table.config, table.view, table.storage)
    if kind.partition in table.config.metadata_partitions_inflight:
        raise ConflictError(
            f"{table.storage.root}: an indexer of Apache Hudi is building its index {kind.partition}",
            hint="wait for it",
        )
    return table.metadata


def _begin(build: Build, sizing: GroupSizing, run: Run[IndexRequest], kind: IndexKind) -> None:
    build.begin(run.table, _check(run.table, kind), sizing, Times(run.table, run.settings.skew_millis).next)


def _carry_out(build: Build, run: Run[IndexRequest]) -> list[WrittenBase]:
    """Carry out the steps that are not done yet, and publish the index. Raises LostWork when the build must restart."""
    with run.report.phase("read keys"):
        build.read_keys()
    with run.report.phase("write shards"):
        bases = build.write_shards()
    with run.report.phase("publish"):
        publish_when_quiet(build, IndexDraft(build), run, f"publish the index {build.kind.partition}")
    return bases


def _account(report: Report, build: Build, bases: list[WrittenBase]) -> Report:
    entries, repeated = sum(base.entries for base in bases), sum(base.repeated for base in bases)
    size = sum(base.size for base in bases)
    report.files, report.rows = InOut(len(build.plan.slices), len(bases)), InOut(entries + repeated, entries)
    report.bytes = InOut(None, size)
    if repeated:
        share = "row shares" if repeated == 1 else "rows share"
        report.warnings.append(f"{repeated:,} {share} a record key with another row: the index has the last one")
    _log.info("%d keys in %d shards", entries, len(build.shards.file_ids))
    return report.completed(build.plan.instant)
