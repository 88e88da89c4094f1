"""Building indexes of files, and with `files` the metadata table of a table that has none."""

from ..commit.conflicts import refuse_beside_index_builds
from ..commit.times import Times
from ..commit.transaction import Transaction
from ..engine import Engine
from ..errors import ConflictError, NothingToDo
from ..indexing.of_files.asked import FileIndexes, asked_of_files
from ..indexing.of_files.file_build import FOLDER, FileBuild
from ..indexing.of_files.file_publication import FileIndexesDraft
from ..runs.report import InOut, Report
from ..runs.request import IndexRequest
from ..runs.run import Run
from ..runs.running import Running
from ..snapshot import Snapshot, refresh
from ..table.support import check_bare
from .index_publishing import publish_when_quiet

_SERVICE = "index-bootstrap"


def file_index_bootstrap(run: Run[IndexRequest], engine: Engine | None) -> Report:
    """Build the indexes that the request asks for, and publish them in one step. `engine` replaces Spark."""
    table, report, request = run.table, run.report, run.request
    try:
        wanted = asked_of_files(request.index, table, run.options)
    except NothingToDo:
        if not request.dry_run:
            with Transaction(table, _SERVICE, _SERVICE, run.settings):
                table.storage.delete_tree(FOLDER)
        raise
    _check(table, wanted)
    refuse_beside_index_builds(table)
    if request.dry_run:
        return _dry_run(run, wanted)
    if request.resume:
        report.warnings.append("a build of these indexes is not resumed: it begins anew")
    with (
        Transaction(table, _SERVICE, _SERVICE, run.settings),
        Running(f"hudi_services index {table.config.name}", request, report, engine, table.view.live_slices) as runner,
    ):
        table = refresh(table)
        wanted = asked_of_files(request.index, table, run.options)
        build = FileBuild(table, runner, request.progress, wanted)
        with report.phase("plan"):
            build.begin(table, Times(table, run.settings.skew_millis).next)
        with report.phase("read files"):
            build.read(table)
        with report.phase("write file groups"):
            build.write()
        with report.phase("publish"):
            names = ", ".join(wanted.groups)
            publish_when_quiet(build, FileIndexesDraft(build), run, f"publish {names}")
        build.forget()
    return _account(run, build)


def _check(table: Snapshot, indexes: FileIndexes) -> None:
    check_bare(table.config, table.view, table.storage)
    being_built = sorted(set(table.config.metadata_partitions_inflight).intersection(indexes.groups))
    if being_built:
        raise ConflictError(
            f"{table.storage.root}: an indexer of Apache Hudi is building its index {being_built[0]}",
            hint="wait for it",
        )


def _dry_run(run: Run[IndexRequest], indexes: FileIndexes) -> Report:
    table, report = run.table, run.report
    report.dry_run = True
    with report.phase("plan"):
        files = sum(len(one.files) for one in table.view.live_slices())
    report.groups = sum(indexes.groups.values())
    report.files = InOut(files, None)
    return report.looked(f"dry run: {', '.join(indexes.groups)} would be built")


def _account(run: Run[IndexRequest], build: FileBuild) -> Report:
    report, bases = run.report, build.bases
    report.groups = sum(build.wanted.groups.values())
    report.files = InOut(build.files, len([one for one in bases if one.entries]))
    report.rows, report.bytes = InOut(None, sum(one.entries for one in bases)), InOut(None, sum(o.size for o in bases))
    if build.wanted.makes_table:
        report.warnings.append(
            "set hoodie.metadata.enable=true in every writer: a writer of Apache Hudi that has set it to false deletes "
            "the metadata table with its next write"
        )
    return report.completed(build.instants[0])
