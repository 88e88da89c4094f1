"""The record keys of the files that an undone clustering had replaced, for the record index.

Needed where the index cannot just forget the clustering, because its entries were compacted.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from ..errors import CorruptFile
from ..files.names import parse_base_file
from ..handle import Table
from ..metadata.buckets import Buckets
from ..metadata.index_keys import key_tasks, read_keys
from ..metadata.index_log import MovedKeys, write_index_logs
from ..metadata.keys import RECORD_INDEX
from ..model import BaseFile, path_in
from .markers import marker_folder


def restored_keys(table: Table, target: str, rollback: str) -> MovedKeys | None:
    """Where the keys lie again once the pending clustering `target` is undone; None for anything else.

    The runs of keys lie beside the markers of the rollback. Raises CorruptFile and StorageError.
    """
    clustering = next((one for one in table.timeline.pending_clusterings() if one.ts == target), None)
    if table.metadata is None or clustering is None:
        return None
    buckets = Buckets.of_groups(table.metadata.file_groups(RECORD_INDEX))
    files = [
        _base_file(table, one.partition, one.data_file)
        for group in table.timeline.read_plan(clustering).groups
        for one in group.slices
    ]
    tasks = key_tasks(table.storage, files, buckets, f"{marker_folder(rollback)}/record_keys/run")
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        runs = tuple(run for of_task in pool.map(partial(read_keys, token="0"), tasks) for run in of_task)
    return MovedKeys(buckets, runs, write_index_logs)


def _base_file(table: Table, partition: str, full_path: str) -> BaseFile:
    name = full_path.rpartition("/")[2]
    info = table.storage.head(path_in(partition, name))
    file = parse_base_file(partition, name, info.size) if info is not None else None
    if file is None:
        raise CorruptFile(f"{full_path}, which the clustering had replaced, is gone")
    return file
