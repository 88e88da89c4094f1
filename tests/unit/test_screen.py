"""What a run prints is one screen, at any width: a sentence, what to do next, the largest rows and the rest of them."""

import io
import re
import shlex
import sys
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from hudi_services.cli import lists, render, terminal
from hudi_services.cli.grouping import _GROUPINGS
from hudi_services.cli.largest import COUNT, lines_of
from hudi_services.cli.lists import excerpt_of
from hudi_services.cli.render import as_json, as_tables
from hudi_services.cli.wrapping import wrapped
from hudi_services.errors import CheckFailed
from hudi_services.own_commands import own_command, setting, shell_word
from hudi_services.runs.report import InOut, Report, TableFacts
from hudi_services.runs.report_rows import (
    ClusteringGroupRow,
    ClusteringSliceRow,
    DifferenceRow,
    EstimatedGroupRow,
    FleetTableRow,
    HealthFindingRow,
    MeasureRow,
    NewFilesRow,
    PendingInstantRow,
    PublicationRow,
    Row,
    SkippingRow,
    TaskMemoryRow,
    UnsureRow,
    Values,
    VisibleAgainRow,
    columns,
)
from hudi_services.units import size_text

from .test_output import HOSTILE

_SCREEN = 40
_NARROW_SCREEN = 48
"""Lines on a console of 40 columns."""
_REASONS = ("picked", "at or above the small-file limit", "in a pending clustering", "has log files", HOSTILE)
_LISTS = list(dict.fromkeys([*lists._LISTS, *_GROUPINGS]))


def report_of(kind: type[Row], rows: Sequence[Row]) -> Report:
    report = Report("clean", "clean", TableFacts("/t", "rides", "COPY_ON_WRITE", 9))
    report.show(kind, rows)
    return report.completed(None)


def dry_run(groups: int, slices: int, name: str) -> Report:
    """A plan of that many groups and slices; `name` is part of all names."""
    report = Report("clustering", "schedule", TableFacts(f"s3a://lake/{name}", f"rides{name}", "COPY_ON_WRITE", 9))
    report.groups, report.files = groups, InOut(3 * groups, groups)
    report.bytes, report.rows = InOut(groups << 20, groups << 19), InOut(groups * 1000, groups * 1000)
    partitions = [f"country=de/year=2026/day={number:05d}{name}" for number in range(max(groups, slices // 3 + 1))]
    known = [
        EstimatedGroupRow(n, partitions[n], 3, n << 20, 1, 1000, 1 << 20, 1 << 20, 1 << 28, decoded=name or None)
        for n in range(groups - 1)
    ]
    report.show(ClusteringGroupRow, [*known, ClusteringGroupRow(groups - 1, partitions[groups - 1], 3, 1 << 40, 1)])
    report.show(
        ClusteringSliceRow,
        [
            ClusteringSliceRow(partitions[n // 3], f"{n:032x}-0", n, _REASONS[n % 5], group=n // 3)
            for n in range(slices)
        ],
    )
    report.show(TaskMemoryRow, [TaskMemoryRow(1 << 30, 1 << 31, 1 << 29, 0, None)])
    report.warnings = [f"mind {name}"]
    return report.looked("dry run: no plan was written")


def differences(count: int, name: str) -> Report:
    """`count` differences of many kinds, and as many files that cannot be judged."""
    report = Report("validate", "validate", TableFacts(f"/data/{name}", f"rides{name}", "COPY_ON_WRITE", 9))
    kinds = ("wrong size", "file missing", f"stale {name}")
    rows = [
        DifferenceRow(
            metadata_partition=("files", "column_stats", f"expr_{name}")[n % 3],
            kind=kinds[n % 3],
            severity="harmful" if n < count * 2 // 3 else "harmless",
            data_partition=f"day={n:05d}{name}",
            file=f"{n:032x}-0_0-1-2_20260101000000000.parquet",
            column=f"c{n % 50}{name}",
            key=None,
            detail=f"it says {n}, the file {n + 1}{name}",
            cause=None,
        )
        for n in range(count)
    ]
    report.show(DifferenceRow, rows)
    report.show(UnsureRow, [UnsureRow("files", f"day={n}{name}", None, f"reason {n % 9}") for n in range(count)])
    hint = f"run: hudi-services validate --base-path /data/{'rides/' * 20} --apply"
    return report.failed(CheckFailed(f"{count} differences{name}", hint=hint))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["", HOSTILE], ids=["plain", "hostile"])
@pytest.mark.parametrize("count", [2, 3000])
@pytest.mark.parametrize("width", [40, 80, 160])
def test_a_screen_at_any_width(width: int, count: int, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    plan = as_tables(dry_run(count, 4 * count, name), verbose=False)
    wrong = as_tables(differences(count, name), verbose=False)
    for text in (plan, wrong, as_tables(dry_run(2, 8, name), verbose=True)):
        assert max(map(cell_len, text.splitlines())) <= width
        assert not set(text) & set("\x1b\x07\x9b\r\u202e\u2066\u2028\udcff")
    for text in (plan, wrong):
        assert len(text.splitlines()) <= (_SCREEN if width >= 80 else _NARROW_SCREEN), text
    words = " ".join(plan.split())
    assert words.startswith(
        f"clustering schedule: a dry run, no plan was written, with 1 warning. {3 * count:,} files ("
    )
    assert "next: the same command without --dry-run" in words
    assert wrong.startswith("validate: failed") and "hudi-services validate" in wrong
    assert [line.split(" ")[0] for line in plan.splitlines()].count("picked") == 1


@pytest.mark.thorough
def test_a_wide_screen_has_more_than_a_narrow_one(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {}
    for width in (40, 80, 160):
        monkeypatch.setenv("COLUMNS", str(width))
        told[width] = as_tables(dry_run(3000, 12_000, ""), verbose=False).splitlines()
    heads = {width: lines[1 + lines.index("clustering groups: 3,000")].split() for width, lines in told.items()}
    assert heads[40] == ["partition", "files", "size"]
    assert len(heads[40]) < len(heads[80]) < len(heads[160])
    assert any("country=de/year=2026/day=02999" in line for line in told[160])
    # The largest group first, and then the rest: all of them but seven.
    assert any(re.match(r"country=de/.*day=02999 +3 +1 TiB", line) for line in told[80])
    assert any(re.match(r"and 2,993 more +8,979", line) for line in told[80])


_ROW = st.fixed_dictionaries(
    {
        "partition": st.sampled_from(["", "a", "b", "c", "d", "e"]),
        "file_id": st.sampled_from(["f", "g"]),
        "bytes": st.integers(0, 1 << 40),
        "reason": st.sampled_from([*"pqrstu"]),
        "group": st.none() | st.integers(0, 9),
    }
)


@given(st.lists(_ROW), st.integers(1, 12))
def test_the_lines_of_slices_add_up_to_all_of_them(rows: list[Values], most: int) -> None:
    lines, is_cut = lines_of(rows, excerpt_of(ClusteringSliceRow), most)
    assert len(lines) <= max(most, 0) and is_cut == (len(lines) < len(rows))
    assert sum(int(str(line[COUNT])) for line in lines) == len(rows)
    assert sum(int(str(line["bytes"])) for line in lines) == sum(int(str(row["bytes"])) for row in rows)
    # Each reason is told once, with its first line.
    told = [line["reason"] for line in lines if line["reason"] is not None]
    assert len(told) == len(set(told))
    if len({row["reason"] for row in rows}) <= most:
        counts = Counter[object]()
        reason: object = None
        for line in lines:
            reason = line["reason"] or reason
            counts[reason] += int(str(line[COUNT]))
        assert counts == Counter(row["reason"] for row in rows)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 1 << 40))), st.integers(1, 9))
def test_the_largest_partitions_come_first_and_the_rest_is_summed_up(sizes: list[tuple[int, int]], most: int) -> None:
    rows = [VisibleAgainRow(f"p{n}", *pair).values() for n, pair in enumerate(sizes)]
    lines, is_cut = lines_of(rows, excerpt_of(VisibleAgainRow), most)
    assert len(lines) == min(len(rows), most) and is_cut == (len(rows) > most)
    for number, field in enumerate(("files", "bytes")):
        assert sum(int(str(line[field])) for line in lines) == sum(pair[number] for pair in sizes)
    shown = [int(str(line["bytes"])) for line in lines if line[COUNT] == 1]
    assert shown == sorted(shown, reverse=True)
    assert shown == sorted((pair[1] for pair in sizes), reverse=True)[: len(shown)]


def test_a_sum_without_one_of_its_numbers_is_none() -> None:
    """A total of the groups whose footers were read would pass for that of all."""
    (line,), _ = lines_of(
        [row.values() for row in dry_run(5, 3, "").shown(ClusteringGroupRow)], excerpt_of(ClusteringGroupRow), 1
    )
    assert (line["files"], line["rows"], line["partition"]) == (15, None, "5 partitions")


def _row_of(kind: type[Row], number: int) -> Row:
    """Different in each field."""
    whole = next((one for one in reversed(kind.__subclasses__()) if one.list_name == kind.list_name), kind)
    found = columns(kind)
    values = {name: of(number + 0.5 * (of is float)) for name, of in found.items() if of in (int, float)}
    return whole(**values, **{name: of(f"{name} {number}") for name, of in found.items() if name not in values})


@pytest.mark.parametrize("kind", lists._LISTS)
def test_what_is_told_of_a_list_are_columns(kind: type[Row]) -> None:
    how = lists._LISTS[kind]
    told = {column.field for column in how.columns}
    also = {how.label, how.largest, *how.fewer, *how.by, *how.adds, *(field for field, _ in how.notes)} - {""}
    assert told | also <= {*columns(kind), COUNT}
    assert {how.label, *how.fewer} <= told and how.label not in how.fewer


@pytest.mark.thorough
@pytest.mark.parametrize("kind", _LISTS)
@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_list_is_longer_than_a_screen(kind: type[Row], width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where no two rows have anything in common."""
    monkeypatch.setenv("COLUMNS", str(width))
    rows = [_row_of(kind, number) for number in range(400)]
    report = report_of(kind, rows)
    lines = as_tables(report, verbose=False).splitlines()
    assert len(lines) <= _SCREEN and max(map(len, lines)) <= width, lines
    assert "every row: --verbose or --format json" in lines
    assert "400" in "".join(lines)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", _LISTS)
def test_verbose_and_json_have_every_value(kind: type[Row], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    rows = [_row_of(kind, number) for number in range(30)]
    values = [value for row in rows for value in row.values().values() if not isinstance(value, bool)]
    report = report_of(kind, rows)
    for text in (as_tables(report, verbose=True), as_json(report)):
        assert all(str(value) in text for value in values)
    assert "--verbose" not in as_tables(report, verbose=True)


def test_few_instants_are_told_one_by_one_with_all_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    rows = [_row_of(PendingInstantRow, number) for number in range(6)]
    few = as_tables(report_of(PendingInstantRow, rows[:5]), verbose=False)
    assert (
        all(
            f"why {number}; heartbeat: heartbeat {number}; markers: {number}; blocks: blocks {number}" in few
            for number in range(5)
        )
        and "--verbose" not in few
    )
    assert "every row: " in as_tables(report_of(PendingInstantRow, rows * 2), verbose=False)


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("width", [40, 200])
def test_rows_may_lack_fields(width: int, verbose: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As clustering groups whose footers a dry run has not read: that ended in a traceback."""
    monkeypatch.setenv("COLUMNS", str(width))
    shown = as_tables(dry_run(2, 0, ""), verbose=verbose)
    assert "day=00000" in shown and "day=00001" in shown


def test_what_is_no_terminal_gets_80_columns_without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where stdin is a wide terminal, and where the encoding has few letters."""
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    monkeypatch.setattr("os.get_terminal_size", lambda fd=0: (_ for _ in ()).throw(OSError()))
    text = as_tables(dry_run(3000, 12_000, "日ä"), verbose=False)
    assert text.isascii() and "\x1b" not in text and r"\u65e5\xe4" in text
    assert 70 < max(map(len, text.splitlines())) <= 80
    assert render._WIDTH == 80


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2


def test_errors_are_one_line_in_a_log_and_whole_words_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hint = f"run: hudi-services rollback --base-path /data/{'r' * 50} --instant 20260101000000000, then look again"
    monkeypatch.setattr("os.get_terminal_size", lambda fd=0: type("Size", (), {"columns": 60})())
    terminal.fail("a b " * 40, hint)
    assert capsys.readouterr().err.count("\n") == 2
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    terminal.fail("a b " * 40, hint)
    lines = screen.getvalue().splitlines()
    assert len(lines) > 4 and max(map(len, lines)) <= 60


_WORD = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=1, max_size=60)


@given(_WORD, st.integers(20, 100))
@example(",", 20)
def test_a_command_that_is_broken_over_lines_is_the_same_command(name: str, width: int) -> None:
    path = "/data/" + name
    command = f"hudi-services execute --base-path {shell_word(path)}"
    lines = wrapped(f"run: {command} --retry 2", width)
    assert max(map(cell_len, lines)) <= width
    pasted = "\n".join(lines).replace("\\\n", "")
    assert "\n" not in pasted.partition("hudi-services")[2]
    assert shlex.split(pasted)[1:] == [
        "hudi-services",
        "execute",
        "--base-path",
        path,
        "--retry",
        "2",
    ]


@pytest.mark.parametrize("path", ["/data/" + "L" * 200, "/data/rides of [red] " + "表" * 50, "/d"])
def test_verbose_cuts_neither_a_path_nor_a_command(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    command = own_command("execute", path, f"--mode scheduleAndExecute {setting('hoodie.x', 'a,b desc')}")
    report = Report("doctor", "doctor", TableFacts(path, "t"))
    report.show(HealthFindingRow, [HealthFindingRow("warning", "overlap", "id", "they overlap " * 9, command, "{}")])
    report.show(MeasureRow, [MeasureRow("live_bytes", 869864.0), MeasureRow("overlap_depth", 2.25)])
    lines = as_tables(report.completed(None), verbose=True).splitlines()
    assert max(map(cell_len, lines)) <= 80
    text = "\n".join(lines)
    pasted = re.sub(r"\\\n +", "", text[text.index(" command ") :]).splitlines()[0]
    assert shlex.split(pasted)[1:] == shlex.split(command)
    of_facts = re.sub(r"\n {3,}", "", text[text.index("base path") :].partition("\n\n")[0])
    assert path.replace(" ", "") in of_facts.replace(" ", "")
    assert " 869,864\n" in text and " 2.25\n" in text


def test_one_of_a_thing_is_no_plural(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    report = Report("doctor", "doctor", TableFacts("/data/rides", "rides"))
    names = ("live_files", "live_bytes", "other_files", "other_bytes", "commits_on_timeline")
    report.show(MeasureRow, [MeasureRow(name, 1) for name in names])
    report.left_out, report.decoded = {"large enough": 1}, {"sorted": 1}
    told = as_tables(report.completed(None), verbose=False)
    assert "1 live file (1 byte), 1 old one (1 byte), 1 commit on the timeline" in told
    assert "1 group" in told and "groups" not in told and "1 file slice:" in told
    assert "1 group" in as_tables(report, verbose=True) and "groups" not in as_tables(report, verbose=True)


def test_what_a_clustering_did_explains_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    report = Report("clustering", "execute", TableFacts("/data/rides", "rides"))
    report.show(NewFilesRow, [NewFilesRow(3, 1 << 20, 2 << 20, 3 << 20, 0.003)])
    report.show(SkippingRow, [SkippingRow("ts", 24, 4.2, 3, 3.0)])
    report.show(PublicationRow, [PublicationRow("staged", 0.085)])
    report.decoded = {"small row groups": 2, "sorted": 1}
    told = as_tables(report.completed(None), verbose=False)
    assert "new files    3 files, the median 1 MiB, the largest 3 MiB\n" in told
    assert "a filter on ts read 4.2 of 24 old files on average, and reads 3 of 3 new files\n" in told
    assert "writers saw the plan as pending for 0.085 s\n" in told
    assert "the rows of 3 groups, whose pages could not be copied as they are: small row groups 2, sorted 1\n" in told
    assert "variation" not in told and "staged" not in told
    more = as_tables(report, verbose=True)
    assert "variation" in more and "staged" in more


def test_sizes_have_no_exponent() -> None:
    assert size_text(1020 << 10) == "1020 KiB" and size_text(1023) == "1023 bytes" and size_text(5 << 29) == "2.5 GiB"


@pytest.mark.parametrize("width", [20, 80, 160])
def test_a_place_that_is_longer_than_a_line_leaves_room_for_what_is_said_of_it(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    place = f"s3://lake/{'folder/' * 40}table"
    row = FleetTableRow(place, "failed", 0, 0, "", 0, 0, 0, 0.5, "its storage does not answer", "run doctor")
    text = as_tables(report_of(FleetTableRow, [row]), verbose=False)
    assert max(map(len, text.splitlines())) <= width
    assert "its storage does not answer; next: run doctor" in " ".join(text.split()) or width == 20
