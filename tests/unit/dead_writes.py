"""Many dead writes on a table: their writers were killed, each after another step."""

from collections.abc import Callable
from pathlib import Path

from hudi_services.clock import SystemClock, next_instant
from hudi_services.commit.markers import create_marker
from hudi_services.file_names import base_file_name, log_file_name, new_file_id
from hudi_services.log_files.log_blocks import BlockType, HeaderKey, LogBlock
from hudi_services.log_files.log_writer import encode_block
from hudi_services.metadata.records.keys import FILES, partition_id
from hudi_services.metadata.records.model import FileEntry, FilesRecord, RecordType
from hudi_services.metadata_updates.delta_commit import write_delta_commit
from hudi_services.model import CommitMetadata, FileSlice, WriteStat, path_in
from hudi_services.snapshot import Snapshot, refresh
from hudi_services.timeline.instant import Action, State

from .tables import open_local

DeadWrite = Callable[[Snapshot, str, FileSlice], Snapshot]
"""Leaves a dead write of the given time, beside or in the given slice; returns the table as it is then."""


def kill_writes(path: Path, count: int, kinds: list[DeadWrite]) -> list[str]:
    """Leave dead writes of all kinds by turns; the instants, oldest first."""
    table = open_local(path)
    slices = table.view.live_slices()
    times: list[str] = []
    latest = table.timeline.latest_time()
    for number in range(count):
        latest = next_instant(SystemClock().now(), table.timeline.zone, latest)
        times.append(latest)
        table = kinds[number % len(kinds)](table, latest, slices[number % len(slices)])
    return times


def requested(table: Snapshot, ts: str, beside: FileSlice) -> Snapshot:
    table.timeline.publish(ts, _action(table), State.REQUESTED)
    return table


def begun(table: Snapshot, ts: str, beside: FileSlice) -> Snapshot:
    """No file and no marker yet."""
    _begin(table, ts, CommitMetadata("UPSERT", {}))
    return table


def written(table: Snapshot, ts: str, beside: FileSlice) -> Snapshot:
    """A base file that no reader sees."""
    path = path_in(beside.partition, base_file_name(new_file_id(), "0-0-0", ts))
    stat = WriteStat(beside.partition, "", "", num_inserts=1)
    _begin(table, ts, CommitMetadata("UPSERT", {beside.partition: (stat,)}))
    create_marker(table.storage, ts, path)
    table.storage.create(path, b"PAR1")
    return table


def appended(table: Snapshot, ts: str, beside: FileSlice) -> Snapshot:
    """A log file in the slice."""
    naming = table.log_naming
    base = naming.instant_for(lambda: beside.base_instant, delta=ts)
    version = len(table.storage.list_dir(beside.partition)[0]) if base != ts else 1
    path = path_in(beside.partition, log_file_name(beside.file_id, base, version, "0-0-0"))
    stat = WriteStat(beside.partition, beside.file_id, "", prev_commit=beside.base_instant, num_update_writes=1)
    _begin(table, ts, CommitMetadata("UPSERT", {beside.partition: (stat,)}))
    create_marker(table.storage, ts, path, naming.marker_kind)
    table.storage.create(path, encode_block(LogBlock(BlockType.DELETE, {HeaderKey.INSTANT_TIME: ts}, b"\0" * 8)))
    return table


def told(table: Snapshot, ts: str, beside: FileSlice) -> Snapshot:
    """A base file that the metadata table knows: only the completed instant is missing."""
    written(table, ts, beside)
    assert table.metadata is not None
    (name,) = (
        file.name for file in table.storage.list_dir(beside.partition)[0] if file.name.endswith(f"_{ts}.parquet")
    )
    listing = FilesRecord(partition_id(beside.partition), RecordType.FILES, {name: FileEntry(4)})
    write_delta_commit(table.metadata, ts, {FILES: [listing]}, lambda: f"{int(ts) + 1}")
    return refresh(table)


def _begin(table: Snapshot, ts: str, workload: CommitMetadata) -> None:
    data = table.timeline.layout.encode_commit(workload, table.config.version.release)
    table.timeline.publish(ts, _action(table), State.REQUESTED)
    table.timeline.publish(ts, _action(table), State.INFLIGHT, data)


def _action(table: Snapshot) -> Action:
    return Action.DELTA_COMMIT if table.config.is_merge_on_read else Action.COMMIT
