"""A report as JSON, or as tables for people."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..options import DEFAULT_SOURCE
from ..runs.report import InOut, Report, RunState
from ..runs.report_rows import Row, Value, Values
from ..units import size_text
from .grouping import Grouping, grouped, grouping_of
from .terminal import harmless, harmless_json

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

_MOST_ROWS = 40
"""Rows of one list that are printed: a person reads no more."""
_FOLDED = 30
"""Columns that are wider than this may be folded."""
_NARROWEST = 20
"""The width of a folded column, in characters."""
_ENDINGS = {
    RunState.REQUESTED: "a plan was written",
    RunState.COMPLETED: "done",
    RunState.IDLE: "nothing to do",
    RunState.PARTLY_DONE: "partly done",
    RunState.FAILED: "failed",
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
    title = " ".join(dict.fromkeys((report.service, report.action)))
    with console.capture() as text:
        console.print(f"[bold]{title}[/bold]: {ending}", highlight=False)
        if report.reason:
            console.print(_text(report.reason))
        console.print(_facts(report))
        lists = [
            _List(kind, [row.values() for row in rows], console.width, verbose) for kind, rows in report.lists.items()
        ]
        for table in (_left_out(report), *(one.table() for one in lists), _checks(report), _options(report, verbose)):
            if table.row_count:
                console.print(table)
        if any(one.is_cut for one in lists):
            console.print("each row of these lists: --verbose, or --format json", highlight=False)
    return text.get()


def _facts(report: Report) -> "Table":
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    facts = report.table
    kind = f"{facts.name} ({facts.type}, version {facts.table_version})" if facts.name else ""
    rows = {
        "table": kind,
        "base path": facts.base_path,
        "instant": report.instant or "",
        "groups": _groups(report),
        "decoded": ", ".join(f"{count} groups: {reason}" for reason, count in report.decoded.items()),
        "files": _change(report.files),
        "bytes": _change(report.bytes, sizes=True),
        "rows": _change(report.rows),
        "seconds": ", ".join(f"{name} {seconds:.2f}" for name, seconds in report.seconds.items()),
        "requests": _requests(report),
        "memory": "" if report.peak_bytes is None else f"{size_text(report.peak_bytes)} at most, of all processes",
    }
    for name, value in rows.items():
        if value:
            grid.add_row(_text(name, "dim"), _text(value))
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


def _left_out(report: Report) -> "Table":
    return _table({"left out": "right", "reason": "left"}, [(str(n), why) for why, n in report.left_out.items()])


@dataclass(frozen=True, slots=True)
class _List:
    """One of the report's lists, as the console shows it. Of long lists, rows may lack fields that others have."""

    kind: type[Row]
    rows: Sequence[Values]
    width: int
    """Of the console, in characters."""
    verbose: bool

    @property
    def is_cut(self) -> bool:
        """Whether there are rows that are not shown."""
        return not self.verbose and (self._grouping is not None or len(self.rows) > _MOST_ROWS)

    def table(self) -> "Table":
        """All rows when `verbose`, else a screen of the list."""
        return self._row_by_row() if self._grouping is None else self._by_groups(self._grouping)

    @property
    def _grouping(self) -> Grouping | None:
        fields = self._widths
        lines = len(self.rows) * (1 if self._fits(fields) else len(fields))
        return None if self.verbose else grouping_of(self.kind, len(self.rows), is_long=lines > _MOST_ROWS)

    @property
    def _title(self) -> str:
        return self.kind.list_name.replace("_", " ")

    @property
    def _cells(self) -> list[dict[str, str]]:
        shown = self.rows if self.verbose else self.rows[:_MOST_ROWS]
        fields = dict.fromkeys(field for row in shown for field in row)
        return [{field: _cell(field, row.get(field)) for field in fields} for row in shown]

    @property
    def _widths(self) -> dict[str, int]:
        cells = self._cells
        return {
            field: max(len(text) for text in (field, *(row[field] for row in cells))) for field in (cells or [{}])[0]
        }

    def _fits(self, widths: Mapping[str, int]) -> bool:
        columns = [one if one <= _FOLDED else _NARROWEST for one in widths.values()]
        return sum(columns) + 3 * len(columns) - 1 <= self.width

    def _by_groups(self, how: Grouping) -> "Table":
        from rich.table import Table

        table = Table.grid(padding=(0, 2))
        table.add_column(justify="right")
        table.add_column(overflow="fold")
        for group in grouped(self.rows, how, _cell):
            table.add_row(_text(f"{group.count:,}"), _text(group.kind))
            table.add_row("", _text(f"for example {group.example}", "dim"))
        table.title, table.title_justify = f"{self._title}: {len(self.rows):,}", "left"
        return table

    def _row_by_row(self) -> "Table":
        """Fields that end in `bytes` are sizes, numbers are aligned right.

        When the columns do not fit, each field gets a line: an instant that is broken over lines cannot be copied.
        """
        cells, widths = self._cells, self._widths
        if not self._fits(widths):
            table = _table({"field": "left", self._title: "left"}, [])
            for row in cells:
                for field, text in row.items():
                    if text:
                        table.add_row(_text(field.replace("_", " "), "dim"), _text(text))
                table.add_section()
        else:
            numeric = {f for f in widths if all(isinstance(row.get(f), int | float | None) for row in self.rows)}
            table = _table({f.replace("_", " "): "right" if f in numeric else "left" for f in widths}, [])
            for column, one in zip(table.columns, widths.values(), strict=True):
                column.no_wrap = one <= _FOLDED
            for row in cells:
                table.add_row(*map(_text, row.values()))
            table.title, table.title_justify = self._title, "left"
        if len(self.rows) > len(cells):
            table.caption, table.caption_justify = f"and {len(self.rows) - len(cells):,} more", "left"
        return table


def _cell(field: str, value: Value) -> str:
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
