"""The simple bucket index: we and real Hudi write one table in turns, and agree on the bucket of every key."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_services.errors import UnsupportedTable
from hudi_services.writing.buckets import Buckets

from .peer import Peer
from .test_upserts import BUCKETS, Twins

_WRITE = "hoodie.datasource.write."
_HASH = """
identifier = jvm.org.apache.hudi.index.bucket.BucketIdentifier
result = [identifier.getBucketId(key, fields, count) for key in keys]
"""
_PARTS = ["a", "b", "x", "id", ":", ",", ",,", "a:", ",b:", "__null__", "__empty__", "é", "😀", "12:30", "", "k7", "\n"]


def _keys(seed: int, fields: list[str], *, named: bool) -> list[str]:
    """Keys of all characters that mean something to Hudi."""
    random = np.random.default_rng(seed)

    def text() -> str:
        return "".join(random.choice(_PARTS, int(random.integers(1, 4))))

    if not named:
        return [one for one in (text() for _ in range(300)) if one]
    return [",".join(f"{name}:{text() or '__empty__'}" for name in fields) for _ in range(600)]


@pytest.mark.parametrize(
    ("fields", "hashed", "named"),
    [
        (["id"], [], False),
        (["id"], [], True),
        (["a", "b"], [], True),
        (["a", "b", "id"], ["id"], True),
        (["id", "a", "b"], ["b", "id"], True),
    ],
)
def test_the_bucket_of_every_key(peer: Peer, fields: list[str], hashed: list[str], named: bool) -> None:
    version = peer.table_version
    chosen = hashed or fields
    buckets = Buckets(997, tuple(fields), frozenset(chosen), version.bucket_hash_splits_keys)
    keys = _keys(len(fields), fields, named=named)
    # Hudi searches some of the others without end.
    told = [key for key in keys if _is_told(buckets, key)]
    theirs = peer.eval(_HASH, keys=told, fields=",".join(chosen), count=997)
    assert len(told) > len(keys) // 4
    assert dict(zip(told, buckets.of(pa.array(told)).tolist(), strict=True)) == dict(zip(told, theirs, strict=True))


def _is_told(buckets: Buckets, key: str) -> bool:
    try:
        buckets.of(pa.array([key]))
    except UnsupportedTable:
        return False
    return True


@pytest.mark.deep
def test_keys_of_several_fields_in_turns(peer: Peer, tmp_path: Path) -> None:
    """A part of the key decides the bucket; inserts of keys that are there make a second row, as Hudi's do."""
    more = {
        **BUCKETS,
        f"{_WRITE}recordkey.field": "id,day",
        "hoodie.bucket.index.hash.field": "id",
        f"{_WRITE}precombine.field": "ts",
    }
    twins = Twins(peer, tmp_path, more)
    names = ["id", "day", "ts", "text"]

    def some(first: int, end: int, batch: int) -> pa.Table:
        numbers = range(first, end)
        return pa.table(
            {
                "id": pa.array([f"k{n}:ü,{n % 7}" if n % 5 == 0 else f"k{n}" for n in numbers]),
                "day": pa.array([f"d{n % 2}" for n in numbers]),
                "ts": pa.array([batch] * len(numbers), pa.int64()),
                "text": pa.array([f"batch {batch} {n}" for n in numbers]),
            }
        )

    # Hudi 1.2.0 updates only the first of several rows of one key, so that these come last.
    steps = [
        ("insert", some(0, 30, 0), True),
        ("upsert", some(10, 40, 1), False),
        ("upsert", some(20, 50, 2), True),
        ("delete", some(5, 20, 3), True),
        ("delete", some(15, 25, 3), False),
        ("upsert", some(60, 80, 4), False),
        ("insert", some(40, 55, 5), False),
        ("insert", some(50, 65, 6), True),
    ]
    for number, (operation, new, we) in enumerate(steps):
        twins.write(operation, new, we=we)
        twins.compare((number, operation), names)
        twins.compare_buckets()
        assert twins.ours.validate(strict=True).ok, (number, operation)


@pytest.mark.deep
def test_a_bulk_insert_before_hudi(peer: Peer, tmp_path: Path) -> None:
    """Ours begins buckets, and then fills them: one file group for each, where Hudi's upserts find the keys."""
    twins = Twins(peer, tmp_path, {**BUCKETS, f"{_WRITE}precombine.field": "ts"})

    def some(first: int, end: int, batch: int) -> pa.Table:
        numbers = range(first, end)
        days, texts = [f"d{n % 2}" for n in numbers], [f"batch {batch} {n}" for n in numbers]
        ids, times = [f"k{n}" for n in numbers], pa.array([batch] * len(numbers), pa.int64())
        return pa.table({"id": ids, "day": days, "ts": times, "text": texts})

    twins.write("bulk_insert", some(0, 40, 0), we=True)
    twins.ours.bulk_insert(some(40, 60, 0), options=twins.ours_options)
    pq.write_table(some(40, 60, 0), tmp_path / "more.parquet")
    twins.write("upsert", some(20, 70, 1), we=False)
    found = peer.rows(twins.shared)
    assert sorted(found["id"].to_pylist()) == sorted(f"k{n}" for n in range(70))
    assert twins.ours.validate(strict=True).ok
