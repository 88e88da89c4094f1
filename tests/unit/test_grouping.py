"""Long lists on the console: a screen says what is wrong; JSON and --verbose have every row."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.cli import grouping
from hudi_services.cli.grouping import GroupedRows, Grouping, grouped, grouping_of
from hudi_services.cli.render import as_json, as_tables
from hudi_services.runs.report import Report, TableFacts
from hudi_services.runs.report_rows import (
    ClusteringGroupRow,
    DifferenceRow,
    EstimatedGroupRow,
    PendingInstantRow,
    Row,
    Values,
    VisibleAgainRow,
    columns,
)

from .corruptions import do_damage, wrong_column_stats, wrong_listing
from .tables import unpack
from .test_validate import run

_SCREEN = 40


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
    return grouped([row.values() for row in rows], how, told)


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
    assert only.example == "day=2026-01-01/0.parquet: it says 0.0, the file inf"
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
    assert low.example.startswith("column c0, day=2026-01-01/")


_VALUES = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["a", "b", "c"])


@given(st.lists(st.fixed_dictionaries({"a": _VALUES, "b": _VALUES, "c": st.integers(0, 40), "n": st.integers(0, 9)})))
def test_every_row_is_in_one_group(rows: list[Values]) -> None:
    how = Grouping(
        kind=(("a", "{}"), ("b", ", {}"), ("c", ", {}")),
        example=(("n", "{}"),),
        sums=(("n", "{} n"),),
        cause="b",
        by_cause=("c",),
        gives_up=("c", "b"),
        first="a",
    )
    found = grouped(rows, how, told)
    assert sum(one.count for one in found) == len(rows)
    assert len(found) <= grouping._MOST_GROUPS
    assert [one.count > 0 for one in found] == [True] * len(found)


def _row_of(kind: type[Row], number: int) -> Row:
    """Different in each field."""
    whole = next((one for one in reversed(kind.__subclasses__()) if one.list_name == kind.list_name), kind)
    return whole(**{name: number if of is int else of(f"{name} {number}") for name, of in columns(kind).items()})


@pytest.mark.parametrize("kind", grouping._GROUPINGS)
def test_what_is_told_of_groups_are_columns(kind: type[Row]) -> None:
    how = grouping._GROUPINGS[kind]
    told_fields = {field for part in (how.kind, how.sums, how.example) for field, _ in part}
    also = {how.cause, how.first, *how.by_cause, *how.gives_up} - {""}
    assert told_fields | also <= set(columns(kind))


@pytest.mark.parametrize("kind", grouping._GROUPINGS)
@pytest.mark.parametrize("width", [80, 200])
def test_no_list_is_longer_than_a_screen(kind: type[Row], width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where no two rows have anything in common."""
    monkeypatch.setenv("COLUMNS", str(width))
    rows = [_row_of(kind, number) for number in range(400)]
    report = report_of(kind, rows)
    lines = as_tables(report, verbose=False).splitlines()
    assert len(lines) <= _SCREEN, lines
    assert "each row of these lists: --verbose, or --format json" in lines
    assert "400" in "".join(lines)
    values = [value for value in rows[399].values().values() if not isinstance(value, bool)]
    for text in (as_tables(report, verbose=True), as_json(report)):
        assert all(str(value) in text for value in values)
    assert "--verbose" not in as_tables(report, verbose=True)


def test_short_lists_are_shown_row_by_row() -> None:
    rows = [VisibleAgainRow(f"p{n}", 1, 10) for n in range(10)]
    shown = as_tables(report_of(VisibleAgainRow, rows), verbose=False)
    assert all(f" p{n} " in shown for n in range(10)) and "--verbose" not in shown


def test_rows_that_take_many_lines_are_told_by_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the columns do not fit beside each other, each field of a row has a line."""
    wide = dict.fromkeys(("state", "age", "last_sign", "heartbeat", "blocks"), "as wide as it can be")
    rows = [
        PendingInstantRow(
            f"2026010100000000{n}", action="commit", markers=0, files=0, decision="wait", why="it lives", **wide
        )
        for n in range(5)
    ]
    monkeypatch.setenv("COLUMNS", "80")
    assert "5  wait: commit" in as_tables(report_of(PendingInstantRow, rows), verbose=False)
    assert "2026010100000000" in as_tables(report_of(PendingInstantRow, rows[:2]), verbose=False)
    assert "instants: " not in as_tables(report_of(PendingInstantRow, rows[:2]), verbose=False)


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("width", [40, 200])
def test_rows_may_lack_fields(width: int, verbose: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As clustering groups whose footers a dry run has not read: that ended in a traceback."""
    monkeypatch.setenv("COLUMNS", str(width))
    known, unknown = ClusteringGroupRow(0, "p0", 3, 10, 1), ClusteringGroupRow(1, "p1", 3, 10, 1)
    rows = [
        EstimatedGroupRow(**vars(known), rows=7, new_bytes=1, new_file_bytes=1, memory_bytes=1, decoded=""),
        unknown,
    ]
    shown = as_tables(report_of(ClusteringGroupRow, rows), verbose=verbose)
    assert "p0" in shown and "p1" in shown and "7" in shown


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
