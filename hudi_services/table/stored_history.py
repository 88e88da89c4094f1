"""The schema history of a table in the folder `.hoodie/.schema`: found, read, and written with a commit.

    INSTANT.schemacommit                       table version 6; each file has the whole history
    INSTANT_COMPLETION.schemacommit            versions 8 and 9
    INSTANT.schemacommit.requested, .inflight  empty, they stay

A file counts while its instant is a completed write of the active timeline; of these the last one counts. A table has
a history while its newest write names its version (`latest_schema`): once a writer without
hoodie.schema.on.read.enable has committed, Hudi goes by the names of columns again.
Source: FileBasedInternalSchemaStorageManager, TableSchemaResolver, InternalSchemaCache of Apache Hudi.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import UnsupportedTable
from ..paths import TABLE_FOLDER
from ..schema.schema_history import SchemaHistory, SchemaVersion
from ..schema.table_schema import TableSchema
from ..storage import FileInfo, Storage
from ..table_config import TableConfig
from ..timeline.active import Timeline

HISTORY_FOLDER = f"{TABLE_FOLDER}/.schema"
EXTENSION = ".schemacommit"
_HINT = "use Apache Hudi on this table"


@dataclass(frozen=True)
class HistoryFiles:
    """The files of the folder by instant, and `newest`, that of the history; None where no file counts.

    `left` is the last one of an instant that was rolled back, or is not complete.
    """

    by_instant: Mapping[str, tuple[FileInfo, ...]]
    newest: FileInfo | None
    left: FileInfo | None

    @classmethod
    def list(cls, storage: Storage, timeline: Timeline) -> "HistoryFiles":
        """Raises StorageError."""
        files, _ = storage.list_dir(HISTORY_FOLDER)
        found: dict[str, tuple[FileInfo, ...]] = {}
        for file in files:
            stem, extension, _ = file.name.partition(EXTENSION)
            if extension:
                ts = stem.partition("_")[0]
                found[ts] = (*found.get(ts, ()), file)
        counted = {one.ts for one in timeline.completed_writes()}
        whole = {ts: [one for one in of if one.name.endswith(EXTENSION)] for ts, of in found.items()}
        done, others = (
            [one for ts, of in whole.items() if (ts in counted) is is_counted for one in of]
            for is_counted in (True, False)
        )
        newest, left = (max(of, key=lambda one: one.name, default=None) for of in (done, others))
        return cls(found, newest, left)


def stored_history(storage: Storage, config: TableConfig, timeline: Timeline) -> SchemaHistory | None:
    """The history of a table; None where its newest write names no version, so that columns have the names of now.

    Raises UnsupportedTable for a history that does not fit the commits, CorruptFile and StorageError.
    """
    schema, root = timeline.schema, storage.root
    if schema is None or not schema.version:
        return None
    files = HistoryFiles.list(storage, timeline)
    # 1.0.2 keeps one file alone: after a rollback of its commit, the file does not count, and has the history.
    newest = files.newest or files.left
    if newest is None:
        raise UnsupportedTable(f"{root} has a schema history, and no file of it in {HISTORY_FOLDER}", hint=_HINT)
    text, path = storage.read(newest.path).decode(errors="replace"), storage.full_path(newest.path)
    history = SchemaHistory.parse(text, path, exact_floats=config.version.history_keeps_floats)
    check_version(history, schema, f"the newest commit of {root}", path)
    return history


def check_version(history: SchemaHistory, schema: TableSchema, source: str, path: str) -> None:
    """Raise UnsupportedTable when the history in the file `path` does not end with the version of the newest commit."""
    version = SchemaVersion.parse(schema.version, source)
    if not SchemaHistory((history.now,)).has(version):
        raise UnsupportedTable(
            f"{source} names the version {version.id} of the schema, and {path} ends with {history.now.id}", hint=_HINT
        )


def file_name(timeline: Timeline, ts: str, completion: str, state: str = "") -> str:
    """The name of a file of the history of the commit `ts`; `state` is "", `requested` or `inflight`."""
    if state:
        return f"{ts}{EXTENSION}.{state}"
    return f"{ts}_{completion}{EXTENSION}" if timeline.layout.completion_times else f"{ts}{EXTENSION}"
