"""Queries with data skipping find every row of files whose footers have no range: NaN, nulls, long texts and bytes.

Real Hudi skips rows of such files that it wrote itself; it finds the rows after our clustering or `validate --apply`.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from ..unit.corruptions import metadata_of
from ..unit.metadata_tables import stats_of
from ..unit.tables import open_local
from . import ours
from .conftest import Tables
from .peer import Peer

_PREDICATES = (
    "wide > 500",
    "wide = 26",
    "wide < 5",
    "not (wide <= 30)",
    "isnan(wide)",
    "wide is null",
    "real > 15",
    "text < 'b'",
    "text > 'c'",
    # Of a prefix below the least text (b2%, here) Hudi skips the file, whatever the statistics say.
    "text like 'b3%'",
    "text = rpad('c45', 5000, 'é')",
    "ts >= 0 and text = 'b22' and wide = 22",
)
_SOME = ("wide > 500", "text > 'c'")
# Filters on byte arrays fail with 1.2.0, whatever the statistics say (ClassCastException: HeapByteBuffer).
_OF_BYTES = ("bin = cast('a5' as binary)", "bin > cast('c' as binary)", "bin < cast('b' as binary)")
_COUNT = """
frame = spark.read.format("hudi").options(**{"hoodie.metadata.enable": "false"}).load(path)
conditions = ", ".join(f"count_if({one}) c{i}" for i, one in enumerate(predicates))
frame.createOrReplaceTempView("everything")
right = spark.sql(f"select {conditions} from everything").collect()[0]
on = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
result = [
    [one, spark.read.format("hudi").options(**on).load(path).where(one).count(), right[i]]
    for i, one in enumerate(predicates)
]
"""
# What is copied must be of about the size of a row group; the last makes several of them.
_REASONS: dict[str, dict[str, int]] = {"decoded": {"small row groups": 1}, "copied": {}, "sorted": {"sorted": 1}}
_WAYS = {
    "decoded": {},
    "copied": {"hoodie.parquet.block.size": "400000"},
    "sorted": {
        "hoodie.parquet.block.size": "20000",
        "hoodie.clustering.plan.strategy.sort.columns": "wide",
    },
}


def _lost(peer: Peer, path: Path, predicates: Sequence[str] = _PREDICATES) -> dict[str, tuple[int, int]]:
    """Predicates with fewer rows when Hudi skips data: how many it finds, and how many there are."""
    of_bytes = () if peer.version == "1.2.0" else _OF_BYTES
    counts = peer.eval(_COUNT, path=str(path), predicates=[*predicates, *of_bytes])
    assert all(right for _, _, right in counts)
    return {one: (found, right) for one, found, right in counts if found != right}


@pytest.mark.releases("1.0.2", "1.2.0")
@pytest.mark.deep
def test_no_row_is_skipped_whatever_footers_tell(peer: Peer, table: Tables, tmp_path: Path) -> None:
    path = table("unbounded")
    assert _lost(peer, path, _SOME).keys() >= set(_SOME)

    mended = tmp_path / "mended"
    shutil.copytree(path, mended)
    found = ours.run("validate", mended)
    assert found.code == 5
    assert {row["column"] for row in found.report["tables"]["differences"]} == {"wide", "real", "text", "bin"}
    ours.run("validate", mended, "--apply").ok()
    assert _lost(peer, mended) == {}

    for way, options in _WAYS.items():
        selected = {"hoodie.clustering.plan.strategy.partition.selected": way, **options}
        assert ours.clustered(path, options=selected)["decoded"] == _REASONS[way]
    assert _lost(peer, path) == {}
    _insert(peer, path)
    # Hudi has computed the ranges of the partitions anew, from the records of files.
    assert {one.tight for one in stats_of(metadata_of(open_local(path)), "partition_stats")} == {True}
    assert _lost(peer, path) == {}


def _insert(peer: Peer, path: Path) -> None:
    """One row into each partition."""
    rows = peer.rows(path, where="id in ('k-000001', 'k-000081', 'k-000161')")
    keys = [f"new-{i}" for i in range(rows.num_rows)]
    peer.insert(path, rows.set_column(rows.schema.get_field_index("id"), "id", [keys]))
