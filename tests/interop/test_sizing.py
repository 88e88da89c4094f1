"""File sizing beside real Hudi: the same batches written by both, and the sizes of the files after each of them."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_services

from .peer import Peer
from .readers import same_values
from .reading import METADATA_OFF, METADATA_ON
from .recipes import SMALL_FILTERS, WRITE_DEFAULTS
from .rides import RIDES

_WRITE = "hoodie.datasource.write."
_MAX, _SMALL = 1 << 20, 896 << 10
_SIZES = {
    **SMALL_FILTERS,
    "hoodie.parquet.max.file.size": str(_MAX),
    "hoodie.parquet.small.file.limit": str(_SMALL),
    # About right: with twice as much, the first batch leaves several small files in a partition, by Hudi's rules.
    "hoodie.copyonwrite.record.size.estimate": "150",
}
_WRITE_FILE = """
frame = spark.read.parquet(rows).coalesce(1)
frame.write.format("hudi").options(**options).mode("append").save(path)
"""
_BATCHES, _NOISE = 20, 120
Sizes = Mapping[str, list[int]]
"""The bytes of the base files that readers see, by partition, ascending."""


def batches(seed: int) -> Iterator[tuple[str, pa.Table]]:
    """Inserts of new keys, and upserts of new and old keys: of few and of many rows, most of them in one partition."""
    random = np.random.default_rng(seed)
    known = 0
    for number in range(_BATCHES):
        count = int(random.integers(300, 2_000)) if number % 3 else int(random.integers(6_000, 12_000))
        fresh = np.arange(known, known + count)
        if number % 4 == 3:
            old = random.choice(known, count // 4, replace=False)
            yield "upsert", _rows(np.concatenate([old, fresh]), number, random)
        else:
            yield "insert", _rows(fresh, number, random)
        known += count


def _rows(keys: "np.typing.NDArray[np.int64]", batch: int, random: np.random.Generator) -> pa.Table:
    noise = random.bytes(_NOISE * len(keys)).hex()
    return pa.table(
        {
            "id": pa.array([f"k{n:07d}" for n in keys.tolist()]),
            "day": pa.array(["d0" if n % 7 < 4 else f"d{n % 2 + 1}" for n in keys.tolist()]),
            "ts": pa.array(np.full(len(keys), batch), pa.int64()),
            "text": pa.array([noise[2 * _NOISE * at : 2 * _NOISE * (at + 1)] for at in range(len(keys))]),
        }
    )


def sizes(path: Path) -> Sizes:
    slices = hudi_services.open(path, engine="local").slices().to_pylist()
    found: dict[str, list[int]] = {}
    for one in slices:
        found.setdefault(one["partition"], []).append(one["base_size"])
    return {partition: sorted(found[partition]) for partition in sorted(found)}


def small(of: Sizes) -> dict[str, int]:
    return {partition: sum(size < _SMALL for size in found) for partition, found in of.items()}


def shown(name: str, of: Sizes) -> str:
    """One line of KiB for each partition."""
    lines = [f"  {partition}: {' '.join(str(size >> 10) for size in found)}" for partition, found in of.items()]
    return "\n".join([f"{name}: {sum(map(len, of.values()))} files, in KiB", *lines])


@pytest.mark.deep
@pytest.mark.releases("1.2.0")
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_files_have_the_sizes_that_are_asked_for(peer: Peer, kind: str, tmp_path: Path) -> None:
    """Ours are within 15 % of the largest size, and not more than those of Hudi; at most one small one a partition.

    Of merge-on-read tables Hudi fills no slice that has log files: there are no more small ones than Hudi leaves.
    """
    version = peer.table_version
    our_path, their_path = tmp_path / "ours", tmp_path / "theirs"
    known = {**RIDES, f"{_WRITE}table.type": kind}
    for path in (our_path, their_path):
        hudi_services.create(path, table_version=version.number, options=known, engine="local")
    ours = hudi_services.open(our_path, engine="local", options={**_SIZES, "hoodie.clean.automatic": "false"})
    file, grown = tmp_path / "rows.parquet", ""
    for number, (operation, new) in enumerate(batches(41)):
        pq.write_table(new, file)
        options = {**WRITE_DEFAULTS, **_SIZES, **known, f"{_WRITE}operation": operation}
        options["hoodie.compact.inline.max.delta.commits"] = "1000"
        peer.eval(_WRITE_FILE, rows=str(file), options=options, path=str(their_path))
        assert getattr(ours, operation)(new).ok
        our_small, their_small = small(sizes(our_path)), small(sizes(their_path))
        grown += f"\n  batch {number}: {new.num_rows} rows, small files {our_small}, by Hudi {their_small}"
        most = their_small if kind == "MERGE_ON_READ" else dict.fromkeys(our_small, 1)
        assert all(count <= max(most[partition], 1) for partition, count in our_small.items()), grown
    found, theirs = sizes(our_path), sizes(their_path)
    table = f"{shown('ours', found)}\n{shown('Hudi ' + peer.version, theirs)}{grown}"
    print(table)
    for of_partition in found.values():
        # The smallest file of a partition has what is left; of merge-on-read, those with log files have what they had.
        large = of_partition[1:] if kind == "COPY_ON_WRITE" else [size for size in of_partition if size >= _SMALL]
        assert all(0.85 * _MAX <= size <= 1.15 * _MAX for size in large), table
        assert len(of_partition) > 2, table
    assert sum(map(len, found.values())) <= sum(map(len, theirs.values())) + len(found), table
    names = ["_hoodie_record_key", "_hoodie_partition_path", "ts", "text"]
    wanted = peer.rows(their_path, METADATA_OFF).select(names)
    for options in (METADATA_ON, METADATA_OFF):
        assert not same_values(wanted, peer.rows(our_path, options).select(names))
