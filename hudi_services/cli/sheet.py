"""A console of a known width and encoding: texts that are shortened to fit, and tables of the columns that fit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import TYPE_CHECKING, TypeAlias

from .terminal import harmless
from .wrapping import cells_of, first_cells, wrapped

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

Cells: TypeAlias = Mapping[str, str]
"""The texts of one line by column; a column may be missing."""

Fact: TypeAlias = tuple[str, str, bool]
"""A label, a text, and whether the text is shortened to one line."""

_GAP = 2
_LEAST_LABEL = 16
"""Cells of labels that are never shortened."""


@dataclass(frozen=True, slots=True)
class ScreenColumn:
    """A column of a table."""

    field: str
    head: str
    is_number: bool = False
    """Numbers are aligned right and never shortened."""
    least: int = 0
    """The width to which its texts may be shortened; 0 for those that may not."""
    is_path: bool = False
    """Paths and ids are shortened in the middle, other texts at their end."""


class Sheet:
    """A console of a known width and encoding, for which texts are made to fit."""

    def __init__(self, console: "Console") -> None:
        self.console = console
        # No width that a person reads is smaller.
        self.width = max(20, console.width)
        self._encoding = console.encoding
        self._mark = "..." if console.options.ascii_only else "…"

    def plain(self, text: str) -> str:
        """`text` as it will be seen: what acts, and what the encoding lacks, is escaped."""
        return harmless(text).encode(self._encoding, "backslashreplace").decode(self._encoding)

    def text(self, text: str, style: str = "") -> "Text":
        """`text` for the console, without markup and without effect on the terminal."""
        from rich.text import Text

        return Text(self.plain(text), style=style)

    def lines(self, text: str, width: int) -> "Text":
        """`text` in as many lines of at most `width` cells as it takes, in which commands can still be copied."""
        from rich.text import Text

        return Text("\n").join(map(self.text, wrapped(self.plain(text), max(1, width))))

    def shortened(self, text: str, width: int, *, in_middle: bool = True) -> str:
        """`text`, escaped before, in at most `width` cells."""
        if cells_of(text) <= width:
            return text
        room = width - len(self._mark)
        if room <= 0:
            return first_cells(text, max(width, 0))
        end = first_cells(text[::-1], room // 2 if in_middle else 0)[::-1]
        return f"{first_cells(text, room - cells_of(end))}{self._mark}{end}"

    def table(self, columns: Sequence[ScreenColumn], lines: Sequence[Cells], fewer: Sequence[str]) -> "Table":
        """A line for each of `lines`, with the columns that have texts and room; those of `fewer` go first."""
        from rich.table import Table

        shown = [column for column in columns if any(line.get(column.field) for line in lines)]
        widths = _natural(shown, lines)
        for field in fewer:
            if _least(shown, widths) > self.width:
                shown = [column for column in shown if column.field != field]
        self._shrink(shown, widths, fewer)
        table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="dim")
        for column in shown:
            table.add_column(column.head, justify="right" if column.is_number else "left", no_wrap=True)
        for line in lines:
            cells = ((column, line.get(column.field, "")) for column in shown)
            table.add_row(*(self.text(self.shortened(t, widths[c.field], in_middle=c.is_path)) for c, t in cells))
        return table

    def print_wrapped(self, text: str, *, bold: int = 0) -> None:
        """Print `text` in as many lines as it takes, its first characters bold."""
        first, *more = wrapped(self.plain(text), self.width)
        line = self.text(first)
        line.stylize("bold", 0, bold)
        for one in (line, *map(self.text, more)):
            self.console.print(one)

    def print_labelled(self, facts: Sequence[Fact], style: str) -> None:
        """Print facts under each other; their labels, in `style`, are a column, where long ones are shortened.

        A label that repeats is told once.
        """
        if not facts:
            return
        most = max(_LEAST_LABEL, self.width * 2 // 5)
        facts = [(self.shortened(label, most), text, is_short) for label, text, is_short in facts]
        indent = max(cells_of(label) for label, _, _ in facts) + _GAP
        before = ""
        for label, text, is_short in facts:
            room = self.width - indent
            plain = self.plain(text)
            lines = [self.shortened(plain, room)] if is_short else wrapped(plain, room)
            shown, before = "" if label == before else label, label
            for name, one in zip(chain([shown], repeat("")), lines, strict=False):
                line = self.text(f"{name:<{indent}}{one}")
                line.stylize(style, 0, indent)
                self.console.print(line)

    def _shrink(self, columns: Sequence[ScreenColumn], widths: dict[str, int], fewer: Sequence[str]) -> None:
        """Take from columns that may be shortened what the lines have too much: from those of `fewer`, then from the
        widest."""
        excess = sum(widths[column.field] + _GAP for column in columns) - _GAP - self.width
        least = {c.field: max(c.least, len(c.head)) for c in columns if c.least}
        for field in (field for field in fewer if field in least):
            taken = max(0, min(excess, widths[field] - least[field]))
            widths[field], excess = widths[field] - taken, excess - taken
        while excess > 0:
            soft = [field for field, limit in least.items() if widths[field] > limit]
            if not soft:
                return
            widths[max(soft, key=widths.__getitem__)] -= 1
            excess -= 1


def _natural(columns: Sequence[ScreenColumn], lines: Sequence[Cells]) -> dict[str, int]:
    return {c.field: max(len(c.head), *(cells_of(line.get(c.field, "")) for line in lines)) for c in columns}


def _least(columns: Sequence[ScreenColumn], widths: Mapping[str, int]) -> int:
    """The width of a line whose cells are as short as they may be."""
    least = (min(widths[c.field], max(c.least, len(c.head))) if c.least else widths[c.field] for c in columns)
    return sum(one + _GAP for one in least) - _GAP
