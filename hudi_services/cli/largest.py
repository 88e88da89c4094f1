"""Lists of a report as a few lines: the largest rows, and one line with the sums of the rest.

Nothing is lost in the sums: the lines of a list, added up, are all of its rows. JSON has every row, and so has
`--verbose`.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..runs.report_rows import Value, Values
from ..units import counted
from .sheet import ScreenColumn

_OF_ONE = 4
"""Lines of one section."""
COUNT = "count"
"""The column with the number of rows that a line stands for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """How a list is told: its columns, and which rows come first."""

    columns: tuple[ScreenColumn, ...]
    label: str
    """The column that says that a line is the rest."""
    fewer: tuple[str, ...] = ()
    """Columns that are left out where the console is too narrow, the first first."""
    largest: str = ""
    """Rows with the largest value of this column come first; "" keeps their order."""
    by: tuple[str, ...] = ()
    """Rows that are alike in these two columns are one line, and each value of the first has lines of its own."""
    adds: tuple[str, ...] = ()
    """Columns whose values are added up."""
    notes: tuple[tuple[str, str], ...] = ()
    """Fields that are told below the table, row by row, with the words around them: `{}` stands for the value."""
    most: int = 0
    """Lines that are shown; 0 for what is left of a screen."""
    is_fact: bool = False
    """Whether a single row is told in one line, as it says something of the whole run."""


def lines_of(rows: Iterable[Values], how: Excerpt, most: int) -> tuple[list[Values], bool]:
    """At most `most` lines that stand for all rows, and whether some of them stand for several.

    Every line has the number of its rows as `COUNT`. A line for the rest has no number in a column that one of its rows
    lacks.
    """
    if not how.by:
        lines = _sorted([{**row, COUNT: 1} for row in rows], how)
        return _cut(lines, how, most), len(lines) > most
    lines = _added_up(rows, how)
    sections = dict[Value, list[Values]]()
    for line in lines:
        sections.setdefault(line[how.by[0]], []).append(line)
    found = sorted(sections.values(), key=lambda one: -sum(_size(line, how.largest) for line in one))
    if len(found) > most:
        others = [line for one in found[most - 1 :] for line in one]
        found[most - 1 :] = [[{**line, how.by[0]: f"{len(found) - most + 1:,} other"} for line in others]]
    shares = _shares([min(len(one), _OF_ONE) for one in found], most)
    told = list[Values]()
    for one, share in zip(found, shares, strict=True):
        first, *more = _cut(_sorted(one, how), how, share)
        told += [first, *({**line, how.by[0]: None} for line in more)]
    return told, any(line[COUNT] != 1 for line in told)


def _shares(counts: Sequence[int], most: int) -> list[int]:
    """How many of `most` lines each gets: one, and of those that are left as many as it has, in turn."""
    shares = [1] * len(counts)
    left = most - len(counts)
    while left > 0 and any(share < want for share, want in zip(shares, counts, strict=True)):
        for number, want in enumerate(counts):
            if left and shares[number] < want:
                shares[number], left = shares[number] + 1, left - 1
    return shares


def _sorted(lines: list[Values], how: Excerpt) -> list[Values]:
    """The largest first; of those that are as large, the one with the largest first number that is added up."""
    fields = (how.largest, *how.adds[:1])
    return sorted(lines, key=lambda line: [-_size(line, field) for field in fields]) if how.largest else lines


def _size(line: Values, field: str) -> float:
    value = line.get(field)
    return value if isinstance(value, int | float) else 0


def _cut(lines: Sequence[Values], how: Excerpt, most: int) -> list[Values]:
    """At most `most` lines: the first ones, and the sums of the rest."""
    if len(lines) <= most:
        return list(lines)
    rest = lines[most - 1 :]
    is_all = most == 1
    sums: dict[str, Value] = {field: _sum(rest, field) for field in how.adds}
    places = len({line.get(how.label) for line in rest})
    label = counted(places, how.label.replace("_", " ")) if is_all else f"and {len(rest):,} more"
    told: Values = {how.label: label, COUNT: sum(int(_size(line, COUNT)) for line in rest), **sums}
    if is_all and how.by:
        example = {field: f"{rest[0][how.label]}/{value}" for field, value in rest[0].items() if field == "file_id"}
        told = {how.by[0]: rest[0][how.by[0]], **told, **example}
    return [*lines[: most - 1], told]


def _sum(lines: Sequence[Values], field: str) -> Value:
    values = [line.get(field) for line in lines]
    numbers = [value for value in values if isinstance(value, int | float)]
    return sum(numbers) if len(numbers) == len(values) else None


def _added_up(rows: Iterable[Values], how: Excerpt) -> list[Values]:
    """One line for the rows that are alike in the two columns of `by`, with the other values of the first of them."""
    section, place = how.by
    found = defaultdict[tuple[Value, Value], list[Values]](list)
    for row in rows:
        found[row[section], row[place]].append(row)
    return [
        {**alike[0], COUNT: len(alike), **{field: _sum(alike, field) for field in how.adds}} for alike in found.values()
    ]
