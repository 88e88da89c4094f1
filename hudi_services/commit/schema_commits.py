"""The schema history that goes with each commit of a table that has one, as Hudi's writers store it.

Each commit names the version of its schema (`latest_schema`), and stores the whole history beside the timeline before
it is completed; Hudi reads the last file of a completed commit. Table services store it, too: otherwise archival might
leave no commit whose file counts.
Source: BaseHoodieWriteClient.saveInternalSchema, FileBasedInternalSchemaStorageManager.persistHistorySchemaStr.
"""

from collections.abc import Collection
from contextlib import suppress

from ..errors import ConflictError, CorruptFile, NotFound, Outdated
from ..schema.schema_history import SchemaHistory, SchemaVersion
from ..schema.table_schema import TableSchema
from ..snapshot import Snapshot
from ..storage import FileInfo
from ..table.stored_history import HISTORY_FOLDER, HistoryFiles, file_name
from ..timeline.instant import Action, Instant
from .drafts import TimesSource

_ALTER = "ALTER_SCHEMA"
_WRITES = frozenset({Action.COMMIT, Action.DELTA_COMMIT})


def refuse_altered(current: Snapshot, ts: str, schema: TableSchema | None) -> None:
    """Raise ConflictError when readers would look for other columns in new files of the instant `ts`, now or soon.

    `schema` names the version whose columns they have; None for files that were written without a history.
    """
    root, history = current.storage.root, current.history.value
    now = 0 if history is None else history.at(ts).id
    known = 0
    if schema is not None and schema.version:
        known = SchemaVersion.parse(schema.version, f"the commit {ts} of {root}").id
    # The commit itself may make a version.
    if now != known and known != int(ts):
        raise ConflictError(
            f"ALTER TABLE has changed the columns of {root} since this run read them",
            hint="nothing was committed; roll the instant back if it is still pending, and run again",
        )
    for one in current.timeline.pending(_WRITES):
        if one.ts < ts and _operation(current, one) == _ALTER:
            raise ConflictError(
                f"an ALTER TABLE of {root} is under way ({one.ts}), and would change the columns of the new files",
                hint="nothing was committed; run again when it has ended. Where its process died, run recover",
            )


def _operation(current: Snapshot, pending: Instant) -> str:
    """The operation that a pending write names; "" where it does not, or was rolled back just now."""
    with suppress(CorruptFile, NotFound, Outdated):
        return current.timeline.read_commit(pending).operation
    return ""


def store_history(current: Snapshot, ts: str, schema: TableSchema | None, times: TimesSource) -> None:
    """Store the history for the commit at `ts`, whose schema is `schema`; the caller holds the lock.

    May be repeated. Nothing for a schema without a version. Raises ConflictError when the lock was lost, and
    StorageError.
    """
    if schema is None or not schema.version:
        return
    storage, timeline = current.storage, current.timeline
    history = _with_version(current.history.value, schema, f"the commit {ts} of {storage.root}")
    files = HistoryFiles.list(storage, timeline)
    pending = {one.ts for one in timeline.pending()}
    stale = _stale(files, {ts, *pending, *(one.ts for one in timeline.completed())})
    completion = times()
    new = {file_name(timeline, ts, completion, state): data for state, data in (("requested", b""), ("inflight", b""))}
    new[file_name(timeline, ts, completion)] = history.text.encode()
    # What an attempt that was killed has left may have the same name, and be older than the history.
    for name, data in new.items():
        storage.put(f"{HISTORY_FOLDER}/{name}", data)
    left = [*files.by_instant.get(ts, ()), *stale]
    storage.delete_all([one.path for one in left if one.name not in new], lambda count: None)


def _with_version(history: SchemaHistory | None, schema: TableSchema, source: str) -> SchemaHistory:
    """The history with the version of a schema, which the commit may be the first to have."""
    assert history is not None, "a commit that names a version was not refused"
    version = SchemaVersion.parse(schema.version, source)
    return history if history.has(version) else SchemaHistory((version, *history.versions), history.exact_floats)


def _stale(files: HistoryFiles, known: Collection[str]) -> list[FileInfo]:
    """The files of instants that are on the active timeline no more: nobody reads them. Hudi deletes them, too."""
    return [one for ts, of in files.by_instant.items() if ts not in known and files.newest not in of for one in of]
