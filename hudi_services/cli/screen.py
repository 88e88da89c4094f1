"""What a report shows on one screen: of each list a few lines, then what holds of the whole run."""

from collections.abc import Mapping, Sequence

from ..options import DEFAULT_SOURCE
from ..runs.report import CheckResult, Report
from ..runs.report_rows import (
    CheckedPartitionRow,
    ClusteringSliceRow,
    CompactionSliceRow,
    HealthFindingRow,
    MeasureRow,
    Row,
    Values,
)
from ..units import counted, size_text
from .cells import cell
from .grouping import GroupedRows, Grouping, grouped, grouping_of
from .largest import COUNT, lines_of
from .lists import excerpt_of
from .sheet import Fact, ScreenColumn, Sheet
from .single_rows import words_of

_LINES = 20
"""Lines of all long lists together."""
_MOST, _LEAST = 8, 3
"""Lines of one of them."""
_GROUPS = 8
"""Groups of all lists that are told by groups."""
_MOST_GROUPS = 6
_WIDE = 120
"""From this width on, groups have their example beside them, not below."""
_KIND_LINES, _UNUSED = 2, 16
"""Lines of what a group has in common, and what is not used of them because lines end between words."""
_MOST_OPTIONS = 3
_LONG_VALUE = 40
_MOST_CHECKS = 4
_MOST_NAMES = 8
"""Names of checks that passed; more are counted."""
_MOST_PHASES = 3
_MOST_REASONS = 4
_GROUP = (
    ScreenColumn(COUNT, "rows", is_number=True),
    ScreenColumn("kind", "what they say", least=40),
    ScreenColumn("example", "for example", least=40),
)


def print_screen(sheet: Sheet, report: Report) -> None:
    # Not values(), which copies: there may be a million file slices.
    lists: dict[type[Row], list[Values]] = {
        kind: [vars(row) for row in rows] for kind, rows in report.lists.items() if rows and kind is not MeasureRow
    }
    tables = {kind: rows for kind, rows in lists.items() if len(rows) > 1 or not excerpt_of(kind).is_fact}
    hows = {kind: grouping_of(kind, len(rows)) for kind, rows in tables.items()}
    by_groups = sum(how is not None for how in hows.values())
    share = max(_LEAST, min(_MOST, _LINES // max(1, len(hows) - by_groups)))
    groups = min(_MOST_GROUPS, _GROUPS // max(1, by_groups))
    is_cut = False
    for kind, rows in tables.items():
        how = hows[kind]
        sheet.console.print()
        sheet.print_wrapped(f"{_title(kind)}: {len(rows):,}", bold=len(_title(kind)) + 1)
        is_cut |= _print_largest(sheet, kind, rows, share) if how is None else _print_groups(sheet, rows, how, groups)
    sheet.console.print()
    sheet.print_labelled([*_of_lists(report, lists), *_checks(report), *_of_run(report)], "dim")
    if is_cut:
        sheet.print_wrapped("every row: --verbose or --format json")


def _title(kind: type[Row]) -> str:
    return kind.list_name.replace("_", " ")


def _print_largest(sheet: Sheet, kind: type[Row], rows: Sequence[Values], share: int) -> bool:
    """Print a list by its largest rows. Returns whether some rows are told together."""
    how = excerpt_of(kind)
    lines, is_cut = lines_of(rows, how, how.most or share)
    cells = [{field: sheet.plain(cell(field, value)) for field, value in line.items()} for line in lines]
    sheet.console.print(sheet.table(how.columns, cells, how.fewer))
    notes = [(one[how.label], _noted(one, how.notes), False) for one in cells]
    sheet.print_labelled([one for one in notes if one[1]], "")
    return is_cut


def _noted(line: Mapping[str, str], notes: Sequence[tuple[str, str]]) -> str:
    return "".join(words.format(text) for field, words in notes if (text := line.get(field)))


def _print_groups(sheet: Sheet, rows: Sequence[Values], how: Grouping, most: int) -> bool:
    """Print a list by groups, each with one example. Returns whether some rows are told together."""
    groups = grouped(rows, how, cell, most)
    if sheet.width >= _WIDE:
        room = sheet.width // 2
        lines = [{COUNT: f"{one.count:,}", "kind": one.kind, "example": _example(sheet, one, room)} for one in groups]
        sheet.console.print(sheet.table(_GROUP, lines, ()))
    else:
        widest = max(len(f"{one.count:,}") for one in groups)
        for one in groups:
            kind = sheet.shortened(
                sheet.plain(one.kind), (sheet.width - widest) * _KIND_LINES - _UNUSED, in_middle=False
            )
            sheet.print_labelled([(f"{one.count:>{widest},}", kind, False)], "")
            example = _example(sheet, one, sheet.width - widest - 2)
            sheet.print_labelled([(" " * widest, example, True)], "")
    return any(one.count > 1 for one in groups)


def _example(sheet: Sheet, group: GroupedRows, room: int) -> str:
    """Where one row of the group is, and what it says: where there is too little room, both are shortened."""
    detail = f": {sheet.plain(group.detail)}" if group.place and group.detail else sheet.plain(group.detail)
    place = sheet.shortened(sheet.plain(group.place), max(room * 2 // 5, room - len(detail)))
    return sheet.shortened(f"{place}{detail}", room, in_middle=False)


def _of_lists(report: Report, lists: Mapping[type[Row], Sequence[Values]]) -> list[Fact]:
    """Lists of one row, of which all columns with a value are told, and counts by reason."""
    facts = [
        (_title(kind), words_of(report.lists[kind][0]), False)
        for kind, rows in lists.items()
        if len(rows) == 1 and excerpt_of(kind).is_fact
    ]
    measures = {row.measure: row.value for row in report.shown(MeasureRow)}
    if "live_files" in measures:
        facts.append(("has", _of_table(measures), False))
    if report.left_out and not {ClusteringSliceRow, CompactionSliceRow} & lists.keys():
        facts.append(("left out", _counts(report.left_out, "file slice"), False))
    if report.decoded:
        told = _counts(report.decoded, "group", ", whose pages could not be copied as they are")
        facts.append(("decoded", f"the rows of {told}", False))
    return facts


def _of_table(measures: Mapping[str, float]) -> str:
    """Some of the numbers of the table."""

    def count(name: str) -> int:
        return int(measures.get(name, 0))

    return (
        f"{counted(count('live_files'), 'live file')} ({size_text(count('live_bytes'))}), "
        f"{counted(count('other_files'), 'old one')} "
        f"({size_text(count('other_bytes'))}), {counted(count('commits_on_timeline'), 'commit')} on the timeline"
    )


def _counts(counts: Mapping[str, int], noun: str, what: str = "") -> str:
    """How many of what for which reason, the most frequent reasons first; `what` says what the reasons are for."""
    found = sorted(counts.items(), key=lambda pair: -pair[1])
    told = [f"{reason} {count:,}" for reason, count in found[:_MOST_REASONS]] if len(found) > 1 else [found[0][0]]
    rest = sum(count for _, count in found[_MOST_REASONS:])
    if rest:
        told.append(f"{counted(len(found) - _MOST_REASONS, 'other reason')} {rest:,}")
    total = sum(counts.values())
    return f"{counted(total, noun)}{what}: {', '.join(told)}"


def _checks(report: Report) -> list[Fact]:
    """Checks that failed or were skipped, each with its detail, and the names of those that passed."""
    facts = list[Fact]()
    for result in (CheckResult.FAILED, CheckResult.SKIPPED, CheckResult.PASSED):
        found = [check for check in report.checks if check.result is result]
        told_by_list = CheckedPartitionRow in report.lists or (
            HealthFindingRow in report.lists and result is CheckResult.FAILED
        )
        if told_by_list and result is not CheckResult.SKIPPED:
            continue
        # Where there are no lists, the checks are what was asked for.
        has_detail = result is not CheckResult.PASSED or not report.lists
        told = [f"{one.name}: {one.detail}" if one.detail and has_detail else one.name for one in found]
        if len(told) > _MOST_CHECKS and has_detail and report.lists:
            told[_MOST_CHECKS - 1 :] = [f"and {len(told) - _MOST_CHECKS + 1:,} more"]
        label = {CheckResult.FAILED: "failed", CheckResult.SKIPPED: "skipped", CheckResult.PASSED: "passed"}[result]
        if has_detail:
            facts += [(label, one, False) for one in told]
        elif told:
            names = ", ".join(told) if len(told) <= _MOST_NAMES else f"{len(told)} checks"
            facts.append((label, names, False))
    return facts


def _of_run(report: Report) -> list[Fact]:
    facts = list[Fact]()
    table = report.table
    if table.name:
        facts.append(("table", f"{table.name} ({table.type}, version {table.table_version})", True))
    facts.append(("path", table.base_path, False))
    if report.instant:
        facts.append(("instant", report.instant, True))
    if report.seconds:
        facts.append(("time", _time(report), False))
    facts += [("options", text, False) for text in _options(report)]
    return facts


def _time(report: Report) -> str:
    """The seconds of the run and of its longest phases, the requests, and the memory."""
    phases = {name: seconds for name, seconds in report.seconds.items() if ":" not in name and name != "total"}
    longest = sorted(phases.items(), key=lambda pair: -pair[1])[:_MOST_PHASES]
    total = report.seconds.get("total", sum(phases.values()))
    told = f"{total:.2f} s"
    told += f" ({', '.join(f'{name} {seconds:.2f}' for name, seconds in longest)})" if longest else ""
    asked = sum(sum(counts.values()) for counts in report.requests.values())
    told += f", {asked:,} requests" if asked else ""
    return told + (f", {size_text(report.peak_bytes)} of memory" if report.peak_bytes is not None else "")


def _options(report: Report) -> list[str]:
    """Some of the options that are set, and by what, a text for each source."""
    found = [one for one in report.settings if one.source != DEFAULT_SOURCE]
    told = dict[str, list[str]]()
    for one in found[:_MOST_OPTIONS]:
        value = one.value if len(one.value) <= _LONG_VALUE else f"{one.value[:_LONG_VALUE]}..."
        told.setdefault(one.source, []).append(f"{one.key}={value}")
    texts = [f"{', '.join(settings)} ({source})" for source, settings in told.items()]
    rest = len(found) - _MOST_OPTIONS
    return [*texts, f"and {rest:,} more"] if rest > 0 else texts
