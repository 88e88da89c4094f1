"""Long lists on the console: a screen says what is wrong; JSON and --verbose have every row."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.cli import grouping
from hudi_services.cli.grouping import GroupedRows, Grouping, grouped, grouping_of
from hudi_services.cli.render import as_tables
from hudi_services.runs.report import Report, TableFacts
from hudi_services.runs.report_rows import (
    DifferenceRow,
    Row,
    Values,
    columns,
)

from .corruptions import do_damage, wrong_column_stats, wrong_listing
from .tables import unpack
from .test_validate import run


def report_of(kind: type[Row], rows: Sequence[Row]) -> Report:
    report = Report("clean", "clean", TableFacts("/t", "rides", "COPY_ON_WRITE", 9))
    report.show(kind, rows)
    return report.completed(None)


def told(field: str, value: object) -> str:
    return str(value)


_KNOWN = DifferenceRow(
    metadata_partition="column_stats",
    kind="wrong maximum",
    severity="harmful",
    data_partition="day=2026-01-01",
    file=f"{'9a1f' * 9}-0_0-1-2_20260101000000000.parquet",
    column="fare",
    key=None,
    detail="it says 0.0, the file inf",
    cause=None,
)


def difference(**fields: str | None) -> DifferenceRow:
    return DifferenceRow(**{**vars(_KNOWN), **fields})


def groups_of(rows: Sequence[DifferenceRow]) -> list[GroupedRows]:
    how = grouping_of(DifferenceRow, len(rows))
    assert how is not None
    return grouped([row.values() for row in rows], how, told, 6)


def test_one_cause_is_one_group_whatever_it_led_to() -> None:
    kinds = [
        ("wrong minimum", "column_stats"),
        ("wrong maximum", "column_stats"),
        ("range too narrow", "partition_stats"),
    ]
    rows = [
        difference(kind=kind, metadata_partition=index, cause="NaN was recorded as 0.0 to 0.0", file=f"{n}.parquet")
        for n in range(13)
        for kind, index in kinds
    ]
    (only,) = groups_of(rows)
    assert only.count == 39
    assert only.kind == (
        "harmful: wrong minimum, wrong maximum and range too narrow (column_stats and partition_stats), column fare: "
        "NaN was recorded as 0.0 to 0.0"
    )
    assert (only.place, only.detail) == ("day=2026-01-01/0.parquet", "it says 0.0, the file inf")
    assert len(as_tables(report_of(DifferenceRow, rows), verbose=False).splitlines()) < 15


def test_harmful_differences_come_first_then_the_many() -> None:
    rows = [
        *[difference(kind="wrong size")] * 2,
        *[difference(kind="file missing")] * 5,
        *[difference(kind="stale bloom filter", severity="harmless")] * 9,
    ]
    assert [(one.count, one.kind.partition(" (")[0]) for one in groups_of(rows)] == [
        (5, "harmful: file missing"),
        (2, "harmful: wrong size"),
        (9, "harmless: stale bloom filter"),
    ]


def test_many_columns_are_one_group() -> None:
    rows = [difference(column=f"c{n}", kind=kind) for n in range(200) for kind in ("wrong minimum", "wrong maximum")]
    low, high = groups_of(rows)
    assert (low.count, high.count) == (200, 200)
    assert low.kind == "harmful: wrong minimum (column_stats), column c0, c1, c2 and 197 more"
    assert low.place.startswith("day=2026-01-01/") and low.detail.startswith("column c0, it says")


_VALUES = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["a", "b", "c"])


@given(
    st.lists(st.fixed_dictionaries({"a": _VALUES, "b": _VALUES, "c": st.integers(0, 40), "n": st.integers(0, 9)})),
    st.integers(1, 8),
)
def test_every_row_is_in_one_group(rows: list[Values], most: int) -> None:
    how = Grouping(
        kind=(("a", "{}"), ("b", ", {}"), ("c", ", {}")),
        place=(("n", "{}"),),
        sums=(("n", "{} n"),),
        cause="b",
        by_cause=("c",),
        gives_up=("c", "b"),
        first="a",
    )
    found = grouped(rows, how, told, most)
    assert sum(one.count for one in found) == len(rows)
    assert len(found) <= most
    assert [one.count > 0 for one in found] == [True] * len(found)


@pytest.mark.parametrize("kind", grouping._GROUPINGS)
def test_what_is_told_of_groups_are_columns(kind: type[Row]) -> None:
    how = grouping._GROUPINGS[kind]
    told_fields = {field for part in (how.kind, how.sums, how.place, how.detail) for field, _ in part}
    also = {how.cause, how.first, *how.by_cause, *how.gives_up} - {""}
    assert told_fields | also <= set(columns(kind))


def test_validate_on_a_table_with_many_differences(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    for damage in (wrong_listing(path), wrong_column_stats(path)):
        do_damage(path, damage)
    report = run(path)
    rows = report.tables["differences"]
    assert len(rows) > 20 and all(row.keys() >= {"cause", "detail"} for row in rows)
    lines = as_tables(report, verbose=False).splitlines()
    listed = lines[next(n for n, line in enumerate(lines) if line.startswith("differences: ")) :]
    counts = [int(line.split()[0]) for line in listed if "harmful: " in line or "harmless: " in line]
    assert sum(counts) == len(rows)
