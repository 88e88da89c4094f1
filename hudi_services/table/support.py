"""What we may touch: features of a table that a service cannot keep true are refused before anything is written."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..errors import NeedsRecovery, UnsupportedTable
from ..model import FileSlice
from ..storage import Storage
from ..table_config import TableConfig
from ..timeline.active import Timeline
from ..timeline.instant import Action

_METADATA_PARTITIONS = frozenset({"files", "column_stats", "partition_stats", "bloom_filters", "record_index"})


_SECONDARY_INDEX = "secondary_index_"
"""What maps secondary keys to record keys: nothing that we do changes either."""


_EXPRESSION_INDEX = "expr_index_"
"""What our commits write records of, once Hudi has built it."""


def unsupported_partitions(config: TableConfig) -> list[str]:
    """Those metadata partitions, sorted, that our commits would leave wrong."""
    names = {*config.metadata_partitions, *config.metadata_partitions_inflight}
    built = {name for name in config.metadata_partitions if name.startswith(_EXPRESSION_INDEX)}
    return sorted(n for n in names - built - _METADATA_PARTITIONS if not n.startswith(_SECONDARY_INDEX))


@dataclass(frozen=True, slots=True)
class _Rule:
    """A feature, told by the table's configuration, that no service supports."""

    applies: Callable[[TableConfig], bool]
    what: Callable[[TableConfig], str]
    hint: str


_RULES = (
    _Rule(
        lambda c: c.type != "COPY_ON_WRITE",
        lambda c: f"hoodie.table.type={c.type}",
        "use Apache Hudi's own service; this tool handles COPY_ON_WRITE tables so far",
    ),
    _Rule(
        lambda c: c.base_file_format != "PARQUET",
        lambda c: f"hoodie.table.base.file.format={c.base_file_format}",
        "only parquet base files are supported",
    ),
    _Rule(
        lambda c: c.raw.get("hoodie.table.multiple.base.file.formats.enable", "").lower() == "true",
        lambda c: "hoodie.table.multiple.base.file.formats.enable=true",
        "only tables with parquet base files alone are supported",
    ),
    _Rule(
        lambda c: bool(c.raw.get("hoodie.bootstrap.base.path")),
        lambda c: "hoodie.bootstrap.base.path",
        "let Apache Hudi rewrite the bootstrapped files first",
    ),
    _Rule(
        lambda c: c.raw.get("hoodie.table.format", "native").lower() != "native",
        lambda c: f"hoodie.table.format={c.raw['hoodie.table.format']}",
        "only the native table format is supported",
    ),
)


def check_config(config: TableConfig, storage: Storage) -> None:
    """Raise UnsupportedTable, naming the key, for a table that every service must leave alone."""
    for rule in _RULES:
        if rule.applies(config):
            raise UnsupportedTable(f"{storage.root} has {rule.what(config)}, which is not supported", hint=rule.hint)
    unknown = unsupported_partitions(config)
    if unknown:
        raise UnsupportedTable(
            f"{storage.root} has the metadata partition {unknown[0]} "
            f"({_where(config, unknown[0])}), which this version cannot keep in step",
            hint="use Apache Hudi's own service with the index switched on, or drop the index first",
        )


def _where(config: TableConfig, partition: str) -> str:
    being_built = partition not in config.metadata_partitions
    return f"hoodie.table.metadata.partitions{'.inflight' if being_built else ''}"


def check_rewritable(config: TableConfig, timeline: Timeline, storage: Storage) -> None:
    """Raise UnsupportedTable for a table whose files may be deleted, but not be rewritten.

    Columns that are told by the ids of a schema history are one case: a name then does not tell a column.
    """
    writes = timeline.completed_writes()
    if writes and timeline.read_commit(writes[-1]).extra.get("latest_schema"):
        raise _has_schema_history(storage)
    history, _ = storage.list_dir(f"{config.meta_path}/.schema")
    if any(file.name.endswith(".schemacommit") for file in history):
        # Commits of table services need not repeat it, so that the newest one alone does not tell.
        raise _has_schema_history(storage)
    files, folders = storage.list_dir(f"{config.meta_path}/.bucket_index")
    if files or folders:
        raise UnsupportedTable(f"{storage.root} has a bucket index, whose file groups must not be merged")


def check_timeline(timeline: Timeline, storage: Storage) -> None:
    """Raise NeedsRecovery while a restore is half-done: nobody may write then."""
    restores = timeline.pending({Action.RESTORE})
    if restores:
        raise NeedsRecovery(
            f"{storage.root}: the restore {restores[0].ts} is not finished", hint="let Apache Hudi finish the restore"
        )


def _has_schema_history(storage: Storage) -> UnsupportedTable:
    return UnsupportedTable(
        f"{storage.root} keeps a schema history (hoodie.schema.on.read.enable), which is not supported",
        hint="cluster it with Apache Hudi",
    )


def check_slices(slices: Iterable[FileSlice], storage: Storage) -> None:
    """Raise UnsupportedTable for bucketed file groups: eight digits, the bucket's number, begin every file id."""
    ids = [one.file_id[:8] for one in slices]
    if ids and all(text.isdecimal() and text.startswith("000") for text in ids):
        raise UnsupportedTable(
            f"{storage.root} has file groups named after buckets ({ids[0]}…): merging them would break its bucket index"
        )
