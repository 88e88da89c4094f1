"""Files of even sizes, whatever the rows are like."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.rewriting.rewrite import rewrite_group
from hudi_services.rewriting.task import RewriteTask
from hudi_services.rows.file_sizing import even_cuts
from hudi_services.rows.settings import FileSettings
from hudi_services.rows.sort_order import parse_sort_columns
from hudi_services.schema.table_schema import META_COLUMNS
from hudi_services.stores import open_storage

from .parquet_samples import slices_in

ROWS = 80_000
RNG = np.random.default_rng(11)


@given(st.lists(st.tuples(st.integers(1, 500), st.floats(0, 1e6)), max_size=20), st.integers(1, 30))
def test_cuts_share_out_all_rows(pieces: list[tuple[int, float]], files: int) -> None:
    total = sum(rows for rows, _ in pieces)
    cuts = even_cuts(pieces, files)
    assert sum(cuts) == total and len(cuts) == min(files, total)
    assert all(rows > 0 for rows in cuts)


def test_cuts_go_by_weight() -> None:
    assert even_cuts([(100, 10.0), (100, 30.0)], 2) == [133, 67]
    assert even_cuts([(10, 0.0)], 3) == [3, 4, 3]
    assert even_cuts([], 3) == []


def texts(lengths: np.ndarray) -> pa.Array:
    """Texts that do not compress, of these lengths."""
    letters = RNG.integers(97, 123, int(lengths.sum()), dtype=np.uint8).tobytes()
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(letters))


KEYS = {
    "zipf": lambda: pa.array(np.minimum(RNG.zipf(1.3, ROWS), 1_000_000)),
    "all equal": lambda: pa.array(np.zeros(ROWS, np.int64)),
    "nulls": lambda: pa.array(RNG.integers(0, 50, ROWS), mask=RNG.random(ROWS) < 0.7),
    "ascending": lambda: pa.array(np.arange(ROWS)),
}
CONTENTS = {
    # Long texts and a few distinct ones, both bound to the key: sorting brings them together.
    "heavy at one end": lambda key: texts(np.where(rank(key) < ROWS // 4, 60, 3)),
    "random": lambda key: texts(np.full(ROWS, 16)),
    "repeats": lambda key: pa.array([f"city-{n % 20}" for n in range(ROWS)]),
}


def rank(key: pa.Array) -> np.ndarray:
    order = pa.compute.sort_indices(key).to_numpy()
    found = np.empty(len(order), np.int64)
    found[order] = np.arange(len(order))
    return found


@pytest.mark.thorough
@pytest.mark.spread(8)
@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("sort", ["key", ""])
def test_new_files_are_even(key: str, content: str, sort: str, tmp_path: Path) -> None:
    keys = KEYS[key]()
    table = pa.table({"key": keys, "content": CONTENTS[content](keys), "n": pa.array(RNG.random(ROWS))})
    if not sort:
        table = table.sort_by("key")
    found = sizes(tmp_path, table, sort, 8)
    assert len(found) == 8
    middle = float(np.median(found))
    assert max(abs(size - middle) for size in found) <= 0.1 * middle


def test_fewer_rows_than_files(tmp_path: Path) -> None:
    assert len(sizes(tmp_path, pa.table({"key": [3, 1, 2]}), "key", 8)) == 3


def test_files_that_are_meant_to_be_tiny(tmp_path: Path) -> None:
    """No more of them than rows."""
    table = pa.table({"key": [3, 1, 2]})
    for wanted in (1, 10, 1000):
        assert 1 <= len(sizes(tmp_path, table, "key", 1, wanted)) <= 3


def sizes(folder: Path, table: pa.Table, sort: str, files: int, wanted: int = 1 << 30) -> list[int]:
    meta = {name: pa.array([f"{n:09d}" for n in range(len(table))]) for name in META_COLUMNS[:5]}
    rows = pa.table({**meta, **dict(zip(table.column_names, table.columns, strict=True))})
    # Of another codec than the new files, so that they are decoded.
    pq.write_table(rows, folder / "in.parquet", row_group_size=1_600, compression="snappy")
    storage = open_storage(str(folder))
    task = RewriteTask(
        storage, "20260101000000000", "", *slices_in(storage, "in.parquet"), tuple(f"f{n}-0" for n in range(files)),
        parse_sort_columns(sort), "LINEAR", None, (), True, FileSettings(bloom=None, file_bytes=wanted),
    )  # fmt: skip
    return [new.size for new in rewrite_group(task, "0-0-0").files]


@pytest.mark.thorough
@pytest.mark.spread(2)
@pytest.mark.parametrize("sort", ["key", ""])
@pytest.mark.parametrize("content", ["heavy at one end", "repeats"])
def test_more_files_than_planned_where_these_would_be_too_large(content: str, sort: str, tmp_path: Path) -> None:
    """What was planned by old sizes may not hold: another order or codec makes of the rows what it makes."""
    keys = KEYS["zipf"]()
    table = pa.table({"key": keys, "content": CONTENTS[content](keys), "n": pa.array(RNG.random(ROWS))})
    wanted = sum(sizes(tmp_path, table, sort, 1)) // 5
    found = sizes(tmp_path, table, sort, 2, wanted)
    assert len(found) >= 5
    assert max(found) <= 1.15 * wanted
    assert max(found) - min(found) <= 0.1 * max(found)
