"""Sorted bulk inserts: the rows of each file are in the order in which real Hudi writes them."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_services

from .peer import Peer
from .recipes import SMALL_FILTERS, WRITE_DEFAULTS
from .rides import RIDES

_COLUMNS = "hoodie.bulkinsert.user.defined.partitioner."
_BY_COLUMNS = {
    f"{_COLUMNS}class": "org.apache.hudi.execution.bulkinsert.RowCustomColumnsSortPartitioner",
    f"{_COLUMNS}sort.columns": "few,ratio",
}
CASES: Mapping[str, Mapping[str, str]] = {
    "by key": {"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"},
    "by key in each task": {"hoodie.bulkinsert.sort.mode": "PARTITION_SORT"},
    "by columns": {**_BY_COLUMNS, f"{_COLUMNS}sort.columns": "few,ratio,ts"},
    "by columns and key": {**_BY_COLUMNS, "hoodie.bulkinsert.sort.suffix.record_key": "true"},
}
_WRITE = "hoodie.datasource.write."
_BY_HUDI = """
spark.read.parquet(rows).coalesce(1).write.format("hudi").options(**options).mode("append").save(path)
"""


def _rows() -> pa.Table:
    """Texts whose order in UTF-8 is that of their code points; numbers with nulls, NaN, zeros of both signs."""
    numbers = [n * 389 % 601 for n in range(601)]
    ratios = [None, float("nan"), -0.0, 0.0, float("-inf"), float("inf"), 2.5]
    return pa.table(
        {
            "id": [f"{'aZé€ﾮ😀'[n % 6]}{n}" for n in numbers],
            "day": [f"d{n % 3}" for n in numbers],
            "ts": pa.array(numbers, pa.int64()),
            "few": pa.array([None if n % 5 == 0 else n % 4 - 2 for n in numbers], pa.int32()),
            "ratio": pa.array([ratios[n % 7] for n in numbers], pa.float64()),
        }
    )


def _stored(path: Path) -> dict[str, list[str]]:
    """The keys of each partition path as its one base file has them."""
    found = {one.parent.name: pq.ParquetFile(one).read(["id"])["id"].to_pylist() for one in path.rglob("d*/*.parquet")}
    assert sorted(found) == ["d0", "d1", "d2"]
    return found


@pytest.mark.deep
def test_rows_in_the_order_of_hudi(peer: Peer, tmp_path: Path) -> None:
    version = peer.table_version.number
    pq.write_table(_rows(), tmp_path / "rows.parquet")
    for case, more in CASES.items():
        if peer.version == "0.15.0" and "suffix" in " ".join(more):
            continue  # an option of 1.x
        theirs, shared = tmp_path / case / "theirs", tmp_path / case / "ours"
        options = {**WRITE_DEFAULTS, **SMALL_FILTERS, **RIDES, **more, f"{_WRITE}operation": "bulk_insert"}
        options["hoodie.bulkinsert.shuffle.parallelism"] = "1"
        peer.eval(_BY_HUDI, rows=str(tmp_path / "rows.parquet"), options=options, path=str(theirs))
        ours = hudi_services.create(shared, table_version=version, options=RIDES, engine="local")
        assert ours.bulk_insert(_rows(), options={**SMALL_FILTERS, **more}).ok
        assert _stored(shared) == _stored(theirs), case
