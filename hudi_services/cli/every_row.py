"""What --verbose shows of a report: all fields of all rows of all lists, all facts, checks and options."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..runs.report import InOut, Report
from ..runs.report_rows import Row, Values
from ..units import counted, size_text
from .cells import cell
from .sheet import Sheet
from .wrapping import cells_of

if TYPE_CHECKING:
    from rich.table import Table

_FOLDED = 30
"""Columns that are wider than this may be folded."""
_BETWEEN = 4
"""Characters around two columns."""
_NARROWEST = 20
"""The width of a folded column, in characters."""


def print_every_row(sheet: Sheet, report: Report) -> None:
    sheet.console.print(_facts(sheet, report))
    left_out = [(str(count), why) for why, count in report.left_out.items()]
    checks = [(check.name, check.result.value, check.detail) for check in report.checks]
    options = [(setting.key, setting.value, setting.source) for setting in report.settings]
    tables = (
        _table(sheet, {"left out": "right", "reason": "left"}, left_out),
        *(_list(sheet, kind, [row.values() for row in rows]) for kind, rows in report.lists.items()),
        _table(sheet, dict.fromkeys(("check", "result", "detail"), "left"), checks),
        _table(sheet, dict.fromkeys(("option", "value", "from"), "left"), options),
    )
    for table in tables:
        if table.row_count:
            sheet.console.print(table)


def _facts(sheet: Sheet, report: Report) -> "Table":
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(overflow="fold")
    facts = report.table
    rows = {
        "table": f"{facts.name} ({facts.type}, version {facts.table_version})" if facts.name else "",
        "base path": facts.base_path,
        "instant": report.instant or "",
        "groups": _groups(report),
        "decoded": ", ".join(f"{counted(count, 'group')}: {reason}" for reason, count in report.decoded.items()),
        "files": _change(report.files),
        "bytes": _change(report.bytes, sizes=True),
        "rows": _change(report.rows),
        "seconds": ", ".join(f"{name} {seconds:.2f}" for name, seconds in report.seconds.items()),
        "requests": _requests(report),
        "memory": "" if report.peak_bytes is None else f"{size_text(report.peak_bytes)} at most, of all processes",
    }
    for name, value in rows.items():
        if value:
            grid.add_row(sheet.text(name, "dim"), sheet.text(value))
    return grid


def _groups(report: Report) -> str:
    if report.groups is None:
        return ""
    is_divided = report.tasks is not None and report.tasks > report.groups
    return f"{report.groups} in {report.tasks} tasks" if is_divided else str(report.groups)


def _requests(report: Report) -> str:
    told = {
        who: ", ".join(f"{kind} {count:,}" for kind, count in asked.items()) for who, asked in report.requests.items()
    }
    return "; ".join(text if who == "driver" else f"{who}: {text}" for who, text in told.items() if text)


def _change(quantity: InOut, sizes: bool = False) -> str:
    if quantity.before is None and quantity.after is None:
        return ""
    values = (quantity.before, quantity.after)
    before, after = (size_text(v) if sizes else "?" if v is None else f"{v:,}" for v in values)
    return before if quantity.after is None else f"{before} -> {after}"


def _list(sheet: Sheet, kind: type[Row], rows: Sequence[Values]) -> "Table":
    """Fields that end in `bytes` are sizes, numbers are aligned right. Of long lists, rows may lack fields that others
    have.

    When the columns do not fit, each field gets a line: an instant that is broken over lines cannot be copied.
    """
    title = kind.list_name.replace("_", " ")
    fields = dict.fromkeys(field for row in rows for field in row)
    cells = [{field: cell(field, row.get(field)) for field in fields} for row in rows]
    widths = {field: max(map(cells_of, (field, *(row[field] for row in cells)))) for field in fields}
    if not _fits(widths, sheet.width):
        table = _table(sheet, {"field": "left", title: "left"}, [])
        room = sheet.width - max(map(len, ("field", *fields))) - _BETWEEN
        for row in cells:
            for field, text in row.items():
                if text:
                    table.add_row(sheet.text(field.replace("_", " "), "dim"), sheet.lines(text, room))
            table.add_section()
        return table
    numeric = {f for f in widths if all(isinstance(row.get(f), int | float | None) for row in rows)}
    table = _table(sheet, {f.replace("_", " "): "right" if f in numeric else "left" for f in widths}, [])
    for column, one in zip(table.columns, widths.values(), strict=True):
        column.no_wrap = one <= _FOLDED
    for row in cells:
        table.add_row(*map(sheet.text, row.values()))
    table.title, table.title_justify = title, "left"
    return table


def _fits(widths: Mapping[str, int], width: int) -> bool:
    columns = [one if one <= _FOLDED else _NARROWEST for one in widths.values()]
    return sum(columns) + 3 * len(columns) - 1 <= width


def _table(sheet: Sheet, columns: Mapping[str, str], rows: Sequence[tuple[str, ...]]) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, side in columns.items():
        table.add_column(name, justify="right" if side == "right" else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(sheet.text, row))
    return table
