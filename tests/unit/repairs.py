"""Tables with an instant to roll back, and requests to roll it back."""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa

from hudi_services.base_files.new_file import NewFile
from hudi_services.commit.markers import marker_folder
from hudi_services.commit.new_files import NewFiles
from hudi_services.engine import LocalEngine
from hudi_services.indexing.new_keys import moved_keys, record_shards
from hudi_services.jobs import clustering
from hudi_services.metadata_updates.sync import Change, sync_commit
from hudi_services.model import CommitMetadata, WriteStat
from hudi_services.options import resolve
from hudi_services.parquet.chunk_stats import column_stats
from hudi_services.parquet.file_schema import FileSchema
from hudi_services.parquet.footer import read_footer
from hudi_services.runs.request import Mode, RepairRequest, RollbackRequest, UndoRequest
from hudi_services.timeline.instant import Action, Instant, State

from .metadata_tables import open_metadata
from .tables import both_views, open_local, request

P = "day=2026-01-01"
LATER = "20980101000000000"
"""An instant after everything that a test does."""
LOCK = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"}
DEAD_AT_ONCE = {"hudi.services.abandoned.after.minutes": "0"}
NO_HEARTBEAT = {**DEAD_AT_ONCE, "hoodie.client.heartbeat.tolerable.misses": "0"}
"""Whatever is pending counts as dead, a rollback that was just begun, too."""


def repair(
    path: Path | str, command: str, ts: str, options: dict[str, str] | None = None, **more: bool
) -> RepairRequest:
    known = {"hoodie.time.generator.max_expected_clock_skew_ms": "0", **(options or {})}
    kind = {"rollback": RollbackRequest, "undo": UndoRequest}[command]
    return kind(base_path=str(path), options=resolve([("test", known)]), instant=ts, **more)


def both(path: Path) -> list[pa.Table]:
    """The rows with and without the metadata table."""
    return list(both_views(path))


def newest(path: Path) -> Instant:
    return open_local(path).timeline.completed_writes()[-1]


def fail_newest(path: Path, markers: str = "DIRECT") -> str:
    """Make the newest commit one whose writer was killed just before it completed it; its instant.

    `markers` are DIRECT, TIMELINE_SERVER_BASED or none (""), as Hudi writes them.
    """
    timeline = open_local(path).timeline
    target = newest(path)
    commit = timeline.read_commit(target)
    stats = [stat for of_partition in commit.stats.values() for stat in of_partition]
    names = [f"{stat.path}.marker.{'CREATE' if stat.prev_commit == 'null' else 'MERGE'}" for stat in stats]
    folder = path / marker_folder(target.ts)
    if markers:
        folder.mkdir(parents=True)
    if markers == "DIRECT":
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).touch()
    if markers == "TIMELINE_SERVER_BASED":
        (folder / "MARKERS.type").write_text(markers)
        (folder / "MARKERS0").write_text("".join(f"{name}\n" for name in names))
    timeline.storage.delete(timeline.path(target.file_name))
    return target.ts


def cluster(path: Path) -> str:
    """A completed clustering; its instant."""
    options = {"hoodie.clustering.plan.strategy.sort.columns": "label,ts desc"}
    ts = clustering.schedule(request(path, Mode.SCHEDULE, options)).instant
    assert ts
    clustering.execute(request(path, Mode.EXECUTE), engine=LocalEngine())
    return ts


def files_of(path: Path, ts: str) -> set[str]:
    """Data files that bear the instant, on storage."""
    return {str(file.relative_to(path)) for file in path.glob("**/*.parquet") if file.stem.endswith(f"_{ts}")}


def timeline_files(path: Path, ts: str) -> set[str]:
    """Timeline files of the instant, in whatever state."""
    table = open_local(path)
    return {name for name in table.timeline.sizes if name.startswith(ts)}


def insert_copy(path: Path, ts: str = LATER) -> str:
    """A later commit of one file with the rows of another one: keys that are there twice."""
    table = open_local(path)
    (source, *_) = [one.base_file for one in table.view.latest_slices(P) if one.base_file]
    file_id = f"11111111-1111-1111-1111-{ts[2:14]}-0"
    name = f"{file_id}_0-0-0_{ts}.parquet"
    shutil.copy(path / source.path, path / P / name)
    stat = WriteStat(P, file_id, f"{P}/{name}", num_writes=1, num_inserts=1, file_size=source.size)
    timeline, end = table.timeline, f"{ts[:-3]}999"
    for state in (State.REQUESTED, State.INFLIGHT):
        timeline.publish(ts, Action.COMMIT, state)
    footer, _ = read_footer(table.storage, f"{P}/{name}", source.size)
    new = NewFile.of(f"{P}/{name}", source.size, 1, column_stats(FileSchema.of(footer), footer.row_groups))
    live = {P: [one.base_file.name for one in table.view.latest_slices(P) if one.base_file]}
    shards = record_shards(table)
    moved = moved_keys(LocalEngine(), table, shards, NewFiles.in_place(table.storage, ts), [stat]) if shards else None
    sync_commit(open_metadata(path), Change(ts, (new,), live, moved), _times_after(ts))
    data = timeline.layout.encode_commit(CommitMetadata("INSERT", {P: (stat,)}), table.config.version.release)
    timeline.publish(ts, Action.COMMIT, State.COMPLETED, data, end)
    shutil.rmtree(path / ".hoodie/.temp" / ts, ignore_errors=True)
    return ts


def complete(
    path: Path, ts: str, commit: CommitMetadata, action: Action = Action.COMMIT, states: Iterable[State] = State
) -> None:
    """Publish a completed commit of another writer, or some of its states."""
    table = open_local(path)
    data = table.timeline.layout.encode_commit(commit, table.config.version.release)
    for state in states:
        table.timeline.publish(ts, action, state, data if state is State.COMPLETED else b"", "20990201000000000")


def write_beside(path: Path, partition: str, source: Path, file_id: str) -> str:
    """A later commit that consists of a copy of one file, without the metadata table knowing; its path."""
    name = f"{file_id}_0-0-0_{LATER}.parquet"
    shutil.copy(source, path / partition / name)
    stat = WriteStat(partition, file_id, f"{partition}/{name}", num_writes=1, file_size=source.stat().st_size)
    complete(path, LATER, CommitMetadata("INSERT", {partition: (stat,)}))
    return f"{partition}/{name}"


def hide_metadata(path: Path) -> None:
    """Make it a table without a metadata table: the hand-made commit is not in it."""
    properties = path / ".hoodie/hoodie.properties"
    lines = [line for line in properties.read_text().splitlines() if "metadata.partitions" not in line]
    properties.write_text("\n".join(line for line in lines if "checksum" not in line) + "\n")


def _times_after(ts: str) -> Callable[[], str]:
    numbers = iter(range(100, 900))
    return lambda: f"{ts[:-3]}{next(numbers)}"
