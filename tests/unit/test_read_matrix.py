"""The matrix of readers: its comparison finds each fault, and the page shows what was recorded."""

from pathlib import Path

import duckdb
import polars
import pyarrow as pa
import pytest

from ..read_matrix import Cell, compare, load, measure, render, with_tables

_PAGE = Path(__file__).parents[2] / "docs/readers.md"
_AT = pa.array([1_700_000_000_123_556, 2_000, None], pa.timestamp("us", "UTC"))
_ROWS = pa.table({"id": ["a", "b", "c"], "ts": [1, 2, 3], "at": _AT, "_hoodie_file_name": ["f", "f", "f"]})
_BEFORE = _ROWS.set_column(1, "ts", pa.array([0, 2, 3]))
_GONE = _ROWS.slice(0, 1).set_column(0, "id", pa.array(["gone"]))


@pytest.mark.parametrize(
    ("found", "cell", "text"),
    [
        (_ROWS.take([2, 0, 1]), Cell(), "right"),
        (_ROWS.select(["at", "id", "ts"]), Cell(), "right"),
        (_BEFORE, Cell(by_design=True), "read-optimised"),
        (pa.concat_tables([_ROWS, _ROWS]), Cell(twice=3), "**rows twice**"),
        (_ROWS.slice(1), Cell(missing=1), "**rows missing**"),
        (pa.concat_tables([_ROWS, _GONE]), Cell(strangers=1), "**rows too many**"),
        (pa.concat_tables([_ROWS, _BEFORE]), Cell(twice=2, versions=1), "**rows twice, wrong versions**"),
        (_ROWS.set_column(2, "at", pa.array([None, 2_000, None], _AT.type)), Cell(versions=1), "**wrong versions**"),
    ],
)
def test_each_fault_is_found(found: pa.Table, cell: Cell, text: str) -> None:
    assert compare(_ROWS, _BEFORE, found) == cell
    assert cell.text == text


def test_a_reader_with_milliseconds_is_compared_in_milliseconds() -> None:
    rounded = _ROWS.set_column(2, "at", pa.array([1_700_000_000_124, 2, None], pa.timestamp("ms")))
    assert compare(_ROWS, _BEFORE, rounded) == Cell(versions=1)
    assert compare(_ROWS, _BEFORE, rounded, unit="ms") == Cell()


def test_an_error_keeps_its_sentence_without_what_differs_by_table(tmp_path: Path) -> None:
    def read(path: Path) -> pa.Table:
        raise FileNotFoundError(
            f"first line\nno {path}/p1/12345678-abcd-4000-8000-123456789abc-0_0-1-2_20261127112233444.parquet"
        )

    assert measure(read, tmp_path, _ROWS, _ROWS) == Cell(error="no TABLE/PARTITION/FILE.parquet")


def test_the_page_shows_the_record() -> None:
    page = _PAGE.read_text(encoding="utf-8")
    assert with_tables(page, load()) == page, "scripts/read_matrix.py --record writes both"
    assert "right" in render(load())


def test_every_engine_of_the_record_is_on_the_page() -> None:
    page = _PAGE.read_text(encoding="utf-8").partition("<!--")[0]
    for reader in {name for row in load() for name in row.cells}:
        words = reader.partition(", file group reader")[0].replace(",", "").split()
        assert all(word in page for word in words), reader


def test_duckdb_and_polars_have_no_reader() -> None:
    """Should one come, it belongs into the matrix."""
    assert not [name for name in dir(polars) if "hudi" in name]
    names = duckdb.sql(
        "SELECT extension_name FROM duckdb_extensions() UNION SELECT function_name FROM duckdb_functions()"
    )
    assert not [name for (name,) in names.fetchall() if "hudi" in name]
