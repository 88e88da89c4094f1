"""The drop job: take an index out of the metadata table. Mirrors HoodieIndexer with --mode dropindex of Apache Hudi."""

from ..commit.critical_section import critical_section
from ..commit.unfinished import refuse_planned_files, unfinished
from ..errors import ConfigError, ConflictError, NothingToDo
from ..metadata.index_definitions import read_definitions, write_definitions
from ..metadata.metadata_table import MetadataTable
from ..metadata.records.keys import COLUMN_STATS, EXPRESSION_INDEX, FILES, PARTITION_STATS, RECORD_INDEX
from ..metadata.records.keys import SECONDARY_INDEX_PREFIX as SECONDARY
from ..runs.opening import open_supported
from ..runs.report import InOut, Report
from ..runs.request import IndexDropRequest
from ..runs.run import Run
from ..snapshot import Snapshot
from ..storage import FileInfo, Storage

_SHORT = {"record": RECORD_INDEX, "secondary:": SECONDARY, "expression:": EXPRESSION_INDEX}


def index_drop(request: IndexDropRequest, storage: Storage | None = None) -> Report:
    """Drop an index. `storage` replaces that of `request.base_path`.

    In three steps, of which the first one decides: `hoodie.properties` no longer names the index, its definition goes,
    its files go. A drop that was killed is finished by the next one. Raises ConfigError for an index that others need
    or that is none, ConflictError beside a pending write, and NothingToDo when nothing of it is there.
    """
    report = Report.start(request)
    run = open_supported(request, storage, report)
    partition = _named(request.index)
    files = _files(run.table, partition)
    _check(run.table, partition, files)
    report.files = InOut(len(files), None)
    report.bytes = InOut(sum(file.size for file in files), None)
    if request.dry_run:
        report.dry_run = True
        return report.looked(f"dry run: the index {partition} stays")
    with report.phase("drop"):
        _drop(run, partition)
    # A rescale that was killed must not bring the index back. Imported here: a look needs no Arrow.
    from .index_leftovers import forget_builds

    forget_builds(run, partition)
    report.files = InOut(len(files), 0)
    return report.completed("")


def _named(index: str) -> str:
    """The metadata partition that --index names."""
    for short, partition in _SHORT.items():
        if short.endswith(":") and index.startswith(short):
            return partition + index.removeprefix(short)
    return _SHORT.get(index, index)


def _files(table: Snapshot, partition: str) -> list[FileInfo]:
    if partition.strip("/") != partition or not partition or "/" in partition or partition.startswith("."):
        raise ConfigError(f"--index {partition} is no name of an index")
    return [*table.storage.list_tree(MetadataTable.path(partition, "").rstrip("/"))]


def _check(table: Snapshot, partition: str, files: list[FileInfo]) -> None:
    root, named = table.storage.root, table.config.metadata_partitions
    if partition == FILES:
        raise ConfigError(f"{partition} is the list of the table's files, and no index", hint="name another one")
    if partition in table.config.metadata_partitions_inflight:
        raise ConflictError(f"{root}: an indexer of Apache Hudi is building the index {partition}", hint="wait for it")
    if partition not in named and not files:
        there = ", ".join(one for one in named if one != FILES) or "none"
        raise NothingToDo(f"{root} has no index {partition}; it has: {there}")
    others = [one for one in named if one.startswith(SECONDARY)] if partition == RECORD_INDEX else []
    if partition == COLUMN_STATS and PARTITION_STATS in named:
        others = [PARTITION_STATS]
    if others:
        raise ConfigError(
            f"the index {partition} cannot go before {', '.join(others)}, which needs it", hint="drop those first"
        )


def _drop(run: Run[IndexDropRequest], partition: str) -> None:
    with critical_section(run.table, f"drop the index {partition}", run.settings) as table:
        pending = unfinished(table)
        if pending:
            raise ConflictError(
                f"{table.storage.root}: the {pending[0].action.value} {pending[0].ts} is not finished "
                f"({pending[0].file_name}), and may write to the index",
                hint="run again when it is finished",
            )
        _check(table, partition, _files(table, partition))
        refuse_planned_files(table, partition)
        table.check_held()
        if partition in table.config.metadata_partitions:
            table.config.withdraw(table.storage, partition)
        metadata = table.metadata
        definitions = dict(read_definitions(metadata)) if metadata is not None else {}
        if metadata is not None and definitions.pop(partition, None) is not None:
            write_definitions(table.storage, metadata.table_config.index_defs_path, definitions)
        table.storage.delete_tree(MetadataTable.path(partition, "").rstrip("/"))
