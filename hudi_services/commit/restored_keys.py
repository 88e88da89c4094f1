"""The record keys of the files that an undone clustering had replaced, for the record index.

Needed where the index cannot just forget the clustering, because its entries were compacted.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from ..errors import CorruptFile
from ..files.names import parse_base_file
from ..handle import Table
from ..metadata.buckets import Buckets
from ..metadata.index_keys import KeyTask, read_keys
from ..metadata.index_log import IndexLogTask, MovedKeys, write_index_log
from ..metadata.keys import RECORD_INDEX
from ..metadata.record_index import millis_of
from ..model import BaseFile
from .markers import marker_folder

_ZONE = "LOCAL"
"""Of the milliseconds in the index, as Hudi has them: see `millis_of`."""


def restored_keys(table: Table, target: str, rollback: str) -> MovedKeys | None:
    """Where the keys lie again once the pending clustering `target` is undone; None for anything else.

    The runs of keys lie beside the markers of the rollback. Raises CorruptFile and StorageError.
    """
    clustering = next((one for one in table.timeline.pending_clusterings() if one.ts == target), None)
    if table.metadata is None or clustering is None:
        return None
    buckets = Buckets(tuple(group.file_id for group in table.metadata.file_groups(RECORD_INDEX)))
    files = [
        _base_file(table, one.partition, one.data_file)
        for group in table.timeline.read_plan(clustering).groups
        for one in group.slices
    ]
    prefix = f"{marker_folder(rollback)}/record_keys/run"
    tasks = [
        KeyTask(table.storage, ((file, millis_of(file.instant, _ZONE)),), buckets, f"{prefix}-{number}")
        for number, file in enumerate(files)
    ]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        runs = tuple(run for of_task in pool.map(partial(read_keys, token="0"), tasks) for run in of_task)
    return MovedKeys(buckets, runs, _write)


def _write(tasks: Sequence[IndexLogTask]) -> list[int]:
    return [write_index_log(task, "") for task in tasks]


def _base_file(table: Table, partition: str, full_path: str) -> BaseFile:
    name = full_path.rpartition("/")[2]
    info = table.storage.head(f"{partition}/{name}" if partition else name)
    file = parse_base_file(partition, name, info.size) if info is not None else None
    if file is None:
        raise CorruptFile(f"{full_path}, which the clustering had replaced, is gone")
    return file
