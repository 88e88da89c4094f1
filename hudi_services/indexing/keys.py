"""The record keys of new base files, read by an engine's tasks, for the commit that adds the files."""

from collections.abc import Sequence

from ..commit.new_files import NewFiles
from ..engine import Engine
from ..files.names import written_slice
from ..metadata.record_index.key_reading import key_tasks, read_keys
from ..metadata.record_index.log_writing import IndexLogTask, MovedKeys, write_index_log
from ..metadata.record_index.shards import Shards
from ..metadata.records.keys import RECORD_INDEX
from ..model import WriteStat
from ..snapshot import Snapshot


def record_shards(table: Snapshot) -> Shards | None:
    """The shards of the table's record index; None when it has none."""
    if table.metadata is None or RECORD_INDEX not in table.metadata.partitions:
        return None
    return Shards.of_groups(table.metadata.file_groups(RECORD_INDEX))


def moved_keys(
    engine: Engine, table: Snapshot, shards: Shards, files: NewFiles, written: Sequence[WriteStat]
) -> MovedKeys:
    """Read the keys of the new files `written`."""
    slices = [written_slice(one) for one in written]
    tasks = key_tasks(table.storage, files.source, slices, shards, f"{files.scratch}/record_keys/run")
    runs = [run for of_task in engine.map(read_keys, tasks, "read record keys", _silent) for run in of_task]

    def write(logs: Sequence[IndexLogTask]) -> list[int]:
        return engine.map(write_index_log, logs, "write the record index", _silent)

    return MovedKeys(shards, tuple(runs), write)


def _silent(done: int, total: int) -> None:
    """Show no progress: the work is short compared with the rewrite."""
