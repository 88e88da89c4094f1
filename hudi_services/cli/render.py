"""A report as JSON, or as tables for people."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..jobs.report import InOut, Report, Row, State
from ..options import DEFAULT_SOURCE
from .grouping import Grouping, grouped, grouping_of
from .terminal import harmless, harmless_json

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
_MOST_ROWS = 40
"""Rows of one list that are printed: a person reads no more."""
_FOLDED = 30
"""Columns that are wider than this may be folded."""
_NARROWEST = 20
"""The width of a folded column, in characters."""
_TITLES = {"garbage": "orphan-files"}
"""Services whose name in the report is older than their command."""
_ENDINGS = {
    State.REQUESTED: "a plan was written",
    State.COMPLETED: "done",
    State.IDLE: "nothing to do",
    State.PARTLY_DONE: "partly done",
    State.FAILED: "failed",
}


def as_json(report: Report, *, ascii_only: bool = False) -> str:
    return harmless_json(report.document(), ascii_only=ascii_only) + "\n"


def as_tables(report: Report, verbose: bool) -> str:
    """The report as tables that fit the width of stdout.

    Unless `verbose`, long lists are told by groups or cut off, and options at their default are left out.
    """
    from rich.console import Console

    console = Console()
    ending = "a dry run" if report.dry_run else _ENDINGS[report.state]
    title = " ".join(dict.fromkeys(_TITLES.get(word, word) for word in (report.service, report.action)))
    with console.capture() as text:
        console.print(f"[bold]{title}[/bold]: {ending}", highlight=False)
        if report.reason:
            console.print(_text(report.reason))
        console.print(_facts(report))
        lists = [_list(name, rows, console.width, verbose) for name, rows in report.tables.items()]
        for table in (_left_out(report), *lists, _checks(report), _options(report, verbose)):
            if table.row_count:
                console.print(table)
        if not verbose and any(grouping_of(*one) or len(one[1]) > _MOST_ROWS for one in report.tables.items()):
            console.print("each row of these lists: --verbose, or --format json", highlight=False)
    return text.get()


def size_text(count: int | None) -> str:
    """A number of bytes with three significant digits and its unit."""
    if count is None:
        return "?"
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{count} {_UNITS[0]}" if unit == 0 else f"{value:.3g} {_UNITS[unit]}"


def _facts(report: Report) -> "Table":
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    facts = report.table
    kind = f"{facts.name} ({facts.type}, version {facts.table_version})" if facts.name else ""
    rows = {
        "table": kind,
        "base path": facts.base_path,
        "instant": report.instant or "",
        "groups": "" if report.groups is None else str(report.groups),
        "decoded": ", ".join(f"{count} groups: {reason}" for reason, count in report.decoded.items()),
        "files": _change(report.files),
        "bytes": _change(report.bytes, sizes=True),
        "rows": _change(report.rows),
        "seconds": ", ".join(f"{name} {seconds:.2f}" for name, seconds in report.seconds.items()),
    }
    for name, value in rows.items():
        if value:
            grid.add_row(_text(name, "dim"), _text(value))
    return grid


def _change(quantity: InOut, sizes: bool = False) -> str:
    if quantity.before is None and quantity.after is None:
        return ""
    values = (quantity.before, quantity.after)
    before, after = (size_text(v) if sizes else "?" if v is None else f"{v:,}" for v in values)
    return before if quantity.after is None else f"{before} -> {after}"


def _left_out(report: Report) -> "Table":
    return _table({"left out": "right", "reason": "left"}, [(str(n), why) for why, n in report.left_out.items()])


def _list(name: str, rows: Sequence[Row], width: int, verbose: bool) -> "Table":
    """One of the report's lists: all rows when `verbose`, else a screen of it."""
    how = None if verbose else grouping_of(name, rows)
    if how is not None:
        return _groups(name, rows, how)
    return _rows(name, rows, width, len(rows) if verbose else _MOST_ROWS)


def _groups(name: str, rows: Sequence[Row], how: Grouping) -> "Table":
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right")
    table.add_column(overflow="fold")
    for group in grouped(rows, how, _cell):
        table.add_row(_text(f"{group.count:,}"), _text(group.kind))
        table.add_row("", _text(f"for example {group.example}", "dim"))
    table.title, table.title_justify = f"{name.replace('_', ' ')}: {len(rows):,}", "left"
    return table


def _rows(name: str, rows: Sequence[Row], width: int, most: int) -> "Table":
    """At most so many rows; fields that end in `bytes` are sizes, numbers are aligned right.

    When the columns do not fit, each field gets a line: an instant that is broken over lines cannot be copied.
    """
    cells = [{field: _cell(field, value) for field, value in row.items()} for row in rows[:most]]
    widths = {field: max(len(text) for text in (field, *(row[field] for row in cells))) for field in (rows or [{}])[0]}
    needed = sum((one if one <= _FOLDED else _NARROWEST) + 2 for one in widths.values())
    if needed > width:
        table = _table({"field": "left", name.replace("_", " "): "left"}, [])
        for row in cells:
            for field, text in row.items():
                if text:
                    table.add_row(_text(field.replace("_", " "), "dim"), _text(text))
            table.add_section()
    else:
        numeric = {field for field in widths if all(isinstance(row[field], int | float | None) for row in rows)}
        table = _table({f.replace("_", " "): "right" if f in numeric else "left" for f in widths}, [])
        for column, one in zip(table.columns, widths.values(), strict=True):
            column.no_wrap = one <= _FOLDED
        for row in cells:
            table.add_row(*map(_text, row.values()))
        table.title, table.title_justify = name.replace("_", " "), "left"
    if len(rows) > most:
        table.caption, table.caption_justify = f"and {len(rows) - most:,} more", "left"
    return table


def _cell(field: str, value: str | int | float | bool | None) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and field.endswith("bytes"):
        return size_text(value)
    return f"{value:,}" if isinstance(value, int) else harmless(str(value))


def _checks(report: Report) -> "Table":
    rows = [(check.name, check.result.value, check.detail) for check in report.checks]
    return _table({"check": "left", "result": "left", "detail": "left"}, rows)


def _options(report: Report, every: bool) -> "Table":
    rows = [(s.key, s.value, s.source) for s in report.settings if every or s.source != DEFAULT_SOURCE]
    return _table({"option": "left", "value": "left", "from": "left"}, rows)


def _table(columns: dict[str, str], rows: Sequence[tuple[str, ...]]) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, side in columns.items():
        table.add_column(name, justify="right" if side == "right" else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(_text, row))
    return table


def _text(text: str, style: str = "") -> "Text":
    """`text` for the console, without markup and without effect on the terminal."""
    from rich.text import Text

    return Text(harmless(text), style=style)
