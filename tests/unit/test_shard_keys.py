"""A shard's keys in order, a range at a time, whatever the runs look like."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.base_files.base_file_slices import BaseFileSlices
from hudi_services.base_files.key_runs import write_key_run
from hudi_services.metadata.record_index import shard_keys
from hudi_services.metadata.record_index.key_reading import key_tasks
from hudi_services.metadata.record_index.locations import Location, decode_location
from hudi_services.metadata.record_index.shard_keys import ShardKeys
from hudi_services.metadata.record_index.shards import Shards
from hudi_services.metadata.records.record_schema import stored_schema
from hudi_services.model import BaseFile, FileSlice
from hudi_services.stores import open_storage

SCHEMA = stored_schema("1.2.0")
ROWS = st.lists(st.tuples(st.integers(0, 2), st.text(max_size=6), st.integers(0, 1)), max_size=40)


@given(runs=st.lists(ROWS, max_size=4), limit=st.integers(1, 30), together=st.sampled_from([1, 600, 8 << 20]))
def test_ranges_hold_every_key_once(
    runs: list[list[tuple[int, str, int]]], limit: int, together: int, tmp_path_factory: object
) -> None:
    """Whichever runs are read at once, because they have no more than `together` bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shard_keys, "_BYTES_AT_ONCE", together)
        _check_ranges(runs, limit, tmp_path_factory)


def _check_ranges(runs: list[list[tuple[int, str, int]]], limit: int, tmp_path_factory: object) -> None:
    folder = tmp_path_factory.mktemp("runs")  # type: ignore[attr-defined]
    storage = open_storage(str(folder))
    paths, expected = [], {}
    for number, rows in enumerate(runs):
        locations = [Location("p", f"file-{number}-{i}", 1000 + number) for i in range(2)]
        notes = {"locations": json.dumps([[at.partition, at.file_id, at.instant_millis] for at in locations])}
        shards = np.array([shard for shard, _, _ in rows], np.int32)
        keys = pa.array([key for _, key, _ in rows], pa.string())
        places = np.array([place for _, _, place in rows], np.int32)
        paths.append(f"run-{number}")
        write_key_run(storage, paths[-1], shards, keys, places, notes)
        expected |= {key: locations[place] for shard, key, place in rows if shard == 1}
    found = ShardKeys(storage, paths, 1, SCHEMA)
    assert found.rows == sum(shard == 1 for rows in runs for shard, _, _ in rows)
    ranges = list(found.read_all(found.splits(limit)))
    keys = [key for some in ranges for key in some.keys.to_pylist()]
    values = [value for some in ranges for value in some.values.to_pylist()]
    assert keys == sorted(expected, key=str.encode)
    assert {k: decode_location(v, SCHEMA, "f") for k, v in zip(keys, values, strict=True)} == expected


def test_ranges_are_of_even_size(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    notes = {"locations": json.dumps([["", "f", 1]])}
    count = 20_000
    for number in range(3):
        keys = pa.array([f"k-{i * 3 + number:08d}" for i in np.random.default_rng(number).permutation(count)])
        write_key_run(storage, f"run-{number}", np.zeros(count, np.int32), keys, np.zeros(count, np.int32), notes)
    found = ShardKeys(storage, [f"run-{number}" for number in range(3)], 0, SCHEMA)
    sizes = [len(some.keys) for some in found.read_all(found.splits(6_000))]
    assert sum(sizes) == 3 * count and len(sizes) == 10
    assert max(sizes) < 9_000


@given(st.lists(st.integers(0, 40 << 20) | st.integers(0, 1 << 20), max_size=150))
def test_small_slices_share_a_task(sizes: list[int]) -> None:
    """All slices are read, in their order; a task has several only when they are small."""
    storage = open_storage("/nowhere")
    bases = [
        BaseFile("p", f"f-{i}_0_1.parquet", f"f-{i}", "0-1-0", "20260101000000000", size)
        for i, size in enumerate(sizes)
    ]
    slices = [FileSlice("p", base.file_id, base.instant, base) for base in bases]
    tasks = key_tasks(storage, BaseFileSlices(storage), slices, Shards(("s",)), "run")
    assert [one for task in tasks for one, _ in task.slices] == slices
    assert len({task.prefix for task in tasks}) == len(tasks)
    for task, following in pairwise(tasks):
        some = [one.base_bytes for one, _ in task.slices]
        assert len(some) == 1 or (len(some) <= 32 and sum(some) <= 32 << 20)
        assert len(some) == 32 or sum(some) + following.slices[0][0].base_bytes > 32 << 20
