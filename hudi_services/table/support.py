"""The support table: one row for each feature of a table that makes some operation refuse it.

A row says how the feature is found, which operations refuse it, with which sentence, and what to do instead.
`check_support` is called with the operation before anything is written; docs/support.md is made from `FEATURES`
(scripts/make_support_table.py). An unknown feature is refused where it is read: table versions in `versions`,
properties and partitions of the metadata table below.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from ..errors import NeedsRecovery, UnsupportedTable
from ..file_names import has_bucket_digits
from ..log_files.change_schema import ChangesMode
from ..model import FileSlice
from ..storage import Storage
from ..table_config import CHANGES_MODE, COLUMNS_DROPPED, TableConfig
from ..timeline.active import Timeline
from ..timeline.instant import Action
from .bootstrap_index import BASE_PATH, BootstrapIndex
from .meta_folder import MetaFolder
from .stored_history import EXTENSION, HISTORY_FOLDER, stored_history
from .view import FileSystemView


class Operation(Enum):
    """The operations on a table; the values are the commands."""

    SCHEDULE = "schedule"
    EXECUTE = "execute"
    COMPACT = "compact"
    CLEAN = "clean"
    ARCHIVE = "archive"
    INDEX_BOOTSTRAP = "index-bootstrap"
    INDEX_FILES = "index-bootstrap --index files"
    """Also other indexes that have records of files, not of keys."""
    INDEX_RESCALE = "index-rescale"
    INDEX_DROP = "index-drop"
    INDEX_LOOKUP = "index-lookup"
    VALIDATE = "validate"
    RECOVER = "recover"
    ROLLBACK = "rollback"
    UNDO = "undo"
    ORPHAN_FILES = "orphan-files"
    WRITE = "write"


class Look(Protocol):
    """A table as it is opened, before its metadata table and its files are read."""

    @property
    def storage(self) -> Storage: ...

    @property
    def config(self) -> TableConfig: ...

    @property
    def meta(self) -> MetaFolder: ...

    @property
    def timeline(self) -> Timeline: ...


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature. `find` returns how the feature shows in a table, "" when the table does not have it.

    The sentence of a refusal is "<root> has <what was found>, <why>".
    """

    name: str
    told_by: str
    find: Callable[[Look], str]
    refused: frozenset[Operation]
    why: str = "which is not supported"
    hint: str = ""

    def refusal(self, root: str, text: str) -> UnsupportedTable:
        return UnsupportedTable(f"{root} has {text}, {self.why}", hint=self.hint)


_METADATA_PARTITIONS = frozenset({"files", "column_stats", "partition_stats", "bloom_filters", "record_index"})
_SECONDARY_INDEX = "secondary_index_"
"""Prefix of partitions that map secondary keys to record keys: writes change both, table services neither."""
_EXPRESSION_INDEX = "expr_index_"
"""Prefix of partitions that our commits write records to, once Hudi has built them."""

_BARE = "base files without columns (hoodie.bootstrap.base.path)"
_ALL = frozenset(Operation)
_CLUSTERS = frozenset({Operation.SCHEDULE, Operation.EXECUTE})
_REWRITES = _CLUSTERS | {Operation.COMPACT}
_BUILDS_INDEX = frozenset({Operation.INDEX_BOOTSTRAP})
_WRITES_ROWS = frozenset({Operation.WRITE})
_BY_HUDI = "write to it with Apache Hudi"
WITH_HUDI = "write to this table, compact it and cluster it with Apache Hudi"
"""The way out for tables whose files are not merged or rewritten here."""


def unsupported_partitions(config: TableConfig) -> list[str]:
    """The metadata partitions, sorted, that our commits cannot keep in step."""
    names = {*config.metadata_partitions, *config.metadata_partitions_inflight}
    built = {name for name in config.metadata_partitions if name.startswith(_EXPRESSION_INDEX)}
    return sorted(n for n in names - built - _METADATA_PARTITIONS if not n.startswith(_SECONDARY_INDEX))


def _table_type(look: Look) -> str:
    found = look.config.type
    return "" if found in ("COPY_ON_WRITE", "MERGE_ON_READ") else f"hoodie.table.type={found}"


def _unfit_change_data(look: Look) -> str:
    config = look.config
    if config.captures_changes and config.changes_mode not in ChangesMode.__members__:
        return f"change data capture with {CHANGES_MODE}={config.raw[CHANGES_MODE]}"
    no_meta = _no_meta_fields(look)
    return f"change data capture and {no_meta}" if config.captures_changes and no_meta else ""


def _columns_missed(look: Look) -> str:
    config = look.config
    no_meta = _no_meta_fields(look) if config.dropped_columns else ""
    return f"{COLUMNS_DROPPED}=true and {no_meta}" if no_meta else ""


def _not_merge_on_read(look: Look) -> str:
    return "" if look.config.is_merge_on_read else f"hoodie.table.type={look.config.type}"


def _several_formats(look: Look) -> str:
    key = "hoodie.table.multiple.base.file.formats.enable"
    return f"{key}=true" if look.config.raw.get(key, "").lower() == "true" else ""


def _table_format(look: Look) -> str:
    found = look.config.raw.get("hoodie.table.format", "native")
    return "" if found.lower() == "native" else f"hoodie.table.format={found}"


def _base_file_format(look: Look) -> str:
    found = look.config.base_file_format
    return "" if found == "PARQUET" else f"hoodie.table.base.file.format={found}"


def _without_columns(look: Look) -> str:
    return _BARE if BootstrapIndex(look.storage, look.config).is_there else ""


def _bootstrap_index_unused(look: Look) -> str:
    """Readers of Hudi take the files of such a table for ordinary ones, with nulls in all columns."""
    raw = look.config.raw
    kind = (raw.get("hoodie.bootstrap.index.type") or raw.get("hoodie.bootstrap.index.class", "")).rpartition(".")[2]
    switched_off = raw.get("hoodie.bootstrap.index.enable", "").lower() == "false" or kind.upper().startswith("NO")
    return f"{_BARE} and a bootstrap index that is switched off" if switched_off and _without_columns(look) else ""


def _unknown_partition(look: Look) -> str:
    unknown = unsupported_partitions(look.config)
    if not unknown:
        return ""
    being_built = unknown[0] not in look.config.metadata_partitions
    key = f"hoodie.table.metadata.partitions{'.inflight' if being_built else ''}"
    return f"the metadata partition {unknown[0]} ({key})"


def schema_history(look: Look) -> str:
    """How a schema history shows in a table; "" where it has none.

    A table with a schema history identifies columns by the ids of the history, not by their names.
    """
    schema = look.timeline.schema
    told = schema is not None and bool(schema.version)
    return "a schema history (hoodie.schema.on.read.enable)" if told or _has_history_files(look) else ""


def _has_history_files(look: Look) -> bool:
    if ".schema" not in look.meta.folders:
        return False
    return any(of.name.endswith(EXTENSION) for of in look.storage.list_dir(HISTORY_FOLDER)[0])


def _unfit_history(look: Look) -> str:
    """Raises what `stored_history` raises for a history whose ids do not tell the columns."""
    schema, config = look.timeline.schema, look.config
    if schema is not None and schema.version:
        stored_history(look.storage, config, look.timeline)
        other = _no_meta_fields(look) or _without_columns(look)
        return f"a schema history and {other}" if other else ""
    return "a schema history that its newest write does not continue" if _has_history_files(look) else ""


def _consistent_hashing(look: Look) -> str:
    if ".bucket_index" not in look.meta.folders:
        return ""
    files, folders = look.storage.list_dir(f"{look.config.meta_path}/.bucket_index")
    return "a bucket index with consistent hashing (.hoodie/.bucket_index)" if files or folders else ""


def _no_metadata_table(look: Look) -> str:
    return "" if "files" in look.config.metadata_partitions else "no metadata table"


def _no_meta_fields(look: Look) -> str:
    return "" if look.config.populate_meta_fields else "no meta fields (hoodie.populate.meta.fields=false)"


def _index_without_keys(look: Look) -> str:
    """Hudi 1.2.0 builds such an index."""
    config = look.config
    indexed = "record_index" in (*config.metadata_partitions, *config.metadata_partitions_inflight)
    without = _no_meta_fields(look)
    return f"a record index and {without}" if indexed and without else ""


BUCKETS = Feature(
    "clustering groups over several buckets of a bucket index",
    "file ids that begin with the eight digits of a bucket",
    lambda look: "",
    frozenset({Operation.EXECUTE}),
    "and merging them would break its bucket index",
    "roll the plan back, and schedule a new one here: it rewrites each bucket by itself",
)
"""Found by the names of file groups: see `check_group`."""

BARE_FILES = Feature(
    "indexes of base files that were bootstrapped by metadata alone",
    "hoodie.bootstrap.base.path",
    lambda look: "",
    _BUILDS_INDEX | {Operation.INDEX_FILES},
    "whose columns no index of Apache Hudi has",
    "cluster the table first, with --bootstrap-source",
)
"""Found by live file slices: see `check_bare`."""

_MERGES = _REWRITES | _BUILDS_INDEX
LOGS_WITHOUT_KEYS = Feature(
    "log files of tables without meta fields",
    "hoodie.populate.meta.fields",
    lambda look: "",
    _MERGES | _WRITES_ROWS,
    "and the records of its log files have no keys to merge them by",
    WITH_HUDI,
)
LOGS_OF_FLINK = Feature(
    "log files with the operations of Flink",
    "hoodie.allow.operation.metadata.field",
    lambda look: "",
    _MERGES | _WRITES_ROWS,
    "and log files in which operations of Flink delete rows are not merged here",
    WITH_HUDI,
)
LOG_FILES = {
    LOGS_WITHOUT_KEYS: "false",
    LOGS_OF_FLINK: "true",
}
"""The features by whose properties (with these values) log files are not merged; found where a slice has some: see
`merging.rules`."""

FEATURES = (
    Feature(
        "other table types",
        "hoodie.table.type",
        _table_type,
        _ALL,
        hint="only tables of type COPY_ON_WRITE and MERGE_ON_READ are supported",
    ),
    Feature(
        "ORC and HFile base files",
        "hoodie.table.base.file.format",
        _base_file_format,
        _ALL,
        hint="only parquet base files are supported",
    ),
    Feature(
        "base files of several formats",
        "hoodie.table.multiple.base.file.formats.enable",
        _several_formats,
        _ALL,
        hint="only tables whose base files are all parquet are supported",
    ),
    Feature(
        "bootstrapped tables without their index",
        "hoodie.bootstrap.index.enable",
        _bootstrap_index_unused,
        _REWRITES | _WRITES_ROWS | _BUILDS_INDEX | {Operation.INDEX_FILES},
        "so that readers take all columns for null",
        "switch the bootstrap index on",
    ),
    BARE_FILES,
    Feature(
        "other table formats",
        "hoodie.table.format",
        _table_format,
        _ALL,
        hint="only the native table format is supported",
    ),
    Feature(
        "unknown indexes, and expression indexes that are being built",
        "hoodie.table.metadata.partitions",
        _unknown_partition,
        _ALL - {Operation.INDEX_DROP},
        "which this version cannot keep in step",
        "use Apache Hudi's own service with the index switched on, or drop the index first",
    ),
    Feature(
        "schema history that has ended, or of tables without meta fields or bootstrapped by metadata alone",
        "hoodie.schema.on.read.enable",
        _unfit_history,
        _REWRITES | _WRITES_ROWS,
        "and Apache Hudi itself takes columns of older files for others",
        "write to this table with hoodie.schema.on.read.enable=true from its first ALTER TABLE on",
    ),
    Feature(
        "bucket index with consistent hashing",
        ".hoodie/.bucket_index",
        _consistent_hashing,
        frozenset({Operation.UNDO}),
        "and an undone clustering would leave its buckets split or merged",
        "cluster the table again",
    ),
    BUCKETS,
    *LOG_FILES,
    Feature(
        "tables without a metadata table",
        "hoodie.table.metadata.partitions",
        _no_metadata_table,
        _BUILDS_INDEX | {Operation.INDEX_RESCALE, Operation.INDEX_DROP},
        "which the record index is a part of",
        "build it first: hudi-services index-bootstrap --index files,column_stats",
    ),
    Feature(
        "record indexes of tables without meta fields",
        "hoodie.populate.meta.fields",
        _index_without_keys,
        _REWRITES | _WRITES_ROWS | _BUILDS_INDEX | {Operation.UNDO},
        "and its files have no record keys to keep the index in step with",
        "write to it and cluster it with Apache Hudi, or drop the record index",
    ),
    Feature(
        "tables without meta fields",
        "hoodie.populate.meta.fields",
        _no_meta_fields,
        _BUILDS_INDEX,
        "and so no record keys",
        "build no record index: the base files of this table do not store record keys",
    ),
    Feature(
        "copy-on-write tables",
        "hoodie.table.type",
        _not_merge_on_read,
        frozenset({Operation.COMPACT}),
        "and only tables of type MERGE_ON_READ have log files to compact",
        "cluster this table: hudi-services schedule",
    ),
    Feature(
        "change data capture in another form than Hudi reads, or without meta fields",
        CHANGES_MODE,
        _unfit_change_data,
        _WRITES_ROWS,
        "and Apache Hudi itself cannot write its changes, or read them",
        "switch change data capture off, or set a mode that Hudi has",
    ),
    Feature(
        "files without the partition columns, in tables without meta fields",
        COLUMNS_DROPPED,
        _columns_missed,
        _WRITES_ROWS,
        "and the values of the columns would be missed: keys that are not stored are made of columns",
        _BY_HUDI,
    ),
)


def check_support(operation: Operation, look: Look) -> None:
    """Raise UnsupportedTable, naming the feature and the way out, when the table has one that the operation refuses."""
    for feature in FEATURES:
        found = feature.find(look) if operation in feature.refused else ""
        if found:
            raise feature.refusal(look.storage.root, found)


def are_buckets(slices: Collection[FileSlice]) -> bool:
    """Whether all of the slices have file ids named after buckets; False for no slices."""
    return bool(slices) and all(has_bucket_digits(one.file_id) for one in slices)


def check_group(slices: Collection[FileSlice], storage: Storage) -> None:
    """Raise UnsupportedTable when the slices, which are to be rewritten together, are several buckets."""
    if len(slices) > 1 and are_buckets(slices):
        found = min(one.file_id for one in slices)
        raise BUCKETS.refusal(storage.root, f"file groups named after buckets ({found[:8]}…)")


def check_bare(config: TableConfig, view: FileSystemView, storage: Storage) -> None:
    """Raise UnsupportedTable when a live slice of the table has its columns in a source file."""
    for one in view.live_slices() if config.raw.get(BASE_PATH) else ():
        if one.base_file is not None and one.base_file.source is not None:
            raise BARE_FILES.refusal(storage.root, f"{_BARE}, such as {one.base_file.path}")


def check_timeline(timeline: Timeline, storage: Storage) -> None:
    """Raise NeedsRecovery while a restore is not finished: no process may write then."""
    restores = timeline.pending({Action.RESTORE})
    if restores:
        raise NeedsRecovery(
            f"{storage.root}: the restore {restores[0].ts} is not finished", hint="let Apache Hudi finish the restore"
        )
