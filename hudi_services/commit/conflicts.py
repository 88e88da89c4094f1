"""Other writers: who is visibly at work, and whether somebody changed what we are about to replace."""

from collections.abc import Collection, Iterable, Mapping

from ..errors import ConflictError, CorruptFile, NotFound
from ..files.names import TABLE_FOLDER
from ..handle import Table
from ..model import BaseFile, FileSlice
from ..table.view import FileGroupId
from ..timeline.instant import Action, Instant, State
from .markers import marker_folder

_REQUESTED_PATIENCE = 10
"""How many times the life of a heartbeat a write may take from its request to its first file."""
_WRITES = {Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT}


class StaleInput(ConflictError):
    """A file group of a plan was rewritten or replaced by a completed instant: the plan can never be executed."""


def heartbeat_path(instant: str) -> str:
    return f"{TABLE_FOLDER}/.heartbeat/{instant}"


def is_alive(table: Table, instant: Instant, expires_millis: int) -> bool:
    """Whether somebody worked at the inflight `instant` within `expires_millis`: heartbeat, inflight file, or a marker.

    Hudi beats for clusterings from 1.2 on, and only if asked to; before, its markers are all that tells.
    """
    files = [
        table.storage.head(heartbeat_path(instant.ts)),
        table.storage.head(table.timeline.path(instant.file_name)),
        *table.storage.list_tree(marker_folder(instant.ts)),
    ]
    latest = max((file.mtime_millis for file in files if file is not None), default=0)
    return table.clock.now().timestamp() * 1000 - latest < expires_millis


def pending_writes(table: Table) -> list[Instant]:
    """Ingestion writes that are under way, or were when their writer died; clusterings are not among them."""
    clusterings = {instant.ts for instant in table.timeline.pending_clusterings()}
    return [instant for instant in table.timeline.pending(_WRITES) if instant.ts not in clusterings]


def refuse_beside_writers(table: Table, expires_millis: int, own: str = "") -> None:
    """Raise ConflictError when another writer is visibly at work: without a shared lock neither is safe.

    An inflight write counts as long as it is pending. One that is only requested may be looking up its keys for long,
    but a writer that a pending plan refused leaves just that, so it counts for a while. A clean or an index build,
    which Hudi leaves to its next run when it was killed, counts until `expires_millis` after it began. `own` is the
    instant that the caller works at.
    """
    now = table.clock.now().timestamp() * 1000
    patience = {State.INFLIGHT: None, State.REQUESTED: _REQUESTED_PATIENCE * expires_millis}
    candidates = [(write, patience[write.state]) for write in pending_writes(table)]
    services = table.timeline.pending({Action.CLEAN, Action.INDEXING})
    candidates += [
        (service, expires_millis) for service in services if service.state is State.INFLIGHT and service.ts != own
    ]
    for instant, limit in candidates:
        if limit is None or now - table.timeline.begun[instant.ts] < limit:
            until = f" for {limit / 60_000:g} minutes" if limit is not None else ""
            raise ConflictError(
                f"{table.storage.root}: the {instant.action.value} {instant.ts} of another writer is in progress "
                f"({instant.file_name}), and no lock provider is configured",
                hint=f"wait for it (it counts{until or ' until it is completed or rolled back'}), "
                "or set hoodie.write.lock.provider for both",
            )


def check_inputs(table: Table, inputs: Iterable[BaseFile]) -> None:
    """Raise StaleInput unless each input is still the whole newest slice of a live file group.

    Holds for any table version and whatever the other writer did: updated the group, logged to it, replaced it, or
    rolled back what the plan was made from.
    """
    wanted: dict[str, list[BaseFile]] = {}
    for one in inputs:
        wanted.setdefault(one.partition, []).append(one)
    for partition, files in wanted.items():
        slices = {one.file_id: one for one in table.view.latest_slices(partition)}
        for file in files:
            problem = _change(slices.get(file.file_id), file)
            if problem:
                raise StaleInput(
                    f"{table.storage.full_path(file.path)} {problem} since the plan was made",
                    hint="nothing was committed; schedule a new plan",
                )


def _change(current: FileSlice | None, planned: BaseFile) -> str:
    if current is None or current.base_file is None:
        return "was replaced or removed"
    if current.base_file.name != planned.name:
        return f"was superseded by {current.base_file.name}"
    return "got log files" if current.log_files else ""


def check_pending_rollbacks(table: Table, inputs: Iterable[BaseFile]) -> None:
    """Raise ConflictError while a commit that wrote one of `inputs` is to be rolled back: its rows must not live on."""
    written_by = {one.instant for one in inputs}
    for rollback in table.timeline.pending({Action.ROLLBACK}):
        target = table.timeline.read_rollback_plan(rollback).ts
        if target in written_by:
            raise ConflictError(
                f"{table.storage.root}: {rollback.file_name} rolls back {target}, which wrote files of this clustering",
                hint="nothing was committed; let Apache Hudi finish that rollback first",
            )


def rollbacks_of(table: Table, ts: str, known: Collection[str]) -> list[str]:
    """Rollbacks of `ts`, in any state, that are not among the `known` ones."""
    rollbacks = (i for i in table.timeline.instants if i.action is Action.ROLLBACK and i.ts not in known)
    return [one.ts for one in rollbacks if table.timeline.read_rollback_plan(one).ts == ts]


def check_pending_writes(table: Table, groups: Mapping[FileGroupId, str]) -> None:
    """Raise ConflictError when an inflight write has announced that it updates one of `groups`."""
    for instant in pending_writes(table):
        if instant.state is not State.INFLIGHT:
            continue
        try:
            forecast = table.timeline.read_commit(instant)
        except (NotFound, CorruptFile):
            # Completed or rolled back since we looked: then check_inputs decides.
            continue
        for partition, stats in forecast.stats.items():
            for stat in stats:
                if stat.file_id and (partition, stat.file_id) in groups:
                    raise ConflictError(
                        f"{table.storage.root}: the write {instant.ts} in progress updates {stat.file_id} "
                        f"in {partition or 'the table'}, which this clustering rewrites",
                        hint="nothing was committed; execute again when that write has ended",
                    )
