"""Long lists of a report, told by groups: rows that say the same, with their number, their sums and one example.

An operator at night reads a screen, not four hundred lines. JSON has every row, and so has `--verbose`.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..runs.report_rows import (
    AttemptRow,
    DifferenceRow,
    DroppedGroupRow,
    PendingInstantRow,
    RepairedDifferenceRow,
    Row,
    UnsureRow,
    Value,
    Values,
)

Told: TypeAlias = tuple[tuple[str, str], ...]
"""Fields of a row with the words around them: `{}` stands for the value. Fields without a value are left out."""
Cell: TypeAlias = Callable[[str, Value], str]
"""Gives the text of a field's value."""

_MOST_VALUES = 4
"""Values of one field that are told of a group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """How one list is told. `kind` says what the rows of a group have in common, `place` and `detail` which row one of
    them is.

    Rows with a `cause` may differ in the fields of `by_cause`, and where there are too many groups, rows may differ in
    those of `gives_up`, in one after the other: of such fields some values are told. Groups are ordered by the first
    appearance of their field `first`, then by their number of rows.
    """

    kind: Told = ()
    place: Told = ()
    """Where the example is."""
    detail: Told = ()
    """What the example says."""
    sums: Told = ()
    cause: str = ""
    by_cause: tuple[str, ...] = ()
    gives_up: tuple[str, ...] = ()
    first: str = ""
    longer_than: int = 0
    """Shorter lists are told by their largest rows."""

    def fields(self, row: Values, given_up: Collection[str]) -> list[str]:
        """The fields in which the rows of a group are the same, for the group of `row`."""
        free = {*given_up, *(self.by_cause if row.get(self.cause) else ())}
        return [field for field, _ in self.kind if field not in free]


@dataclass(frozen=True, slots=True)
class GroupedRows:
    """Some rows of a list: their number, what they have in common, and where one of them is, and what it says."""

    count: int
    kind: str
    place: str
    detail: str


_PLACE: Told = (("data_partition", "{}"), ("file", "/{}"))
_DIFFERENCES = Grouping(
    kind=(
        ("severity", "{}: "),
        ("kind", "{}"),
        ("metadata_partition", " ({})"),
        ("column", ", column {}"),
        ("cause", ": {}"),
    ),
    place=_PLACE,
    detail=(("key", "key {}, "), ("detail", "{}")),
    cause="cause",
    by_cause=("kind", "metadata_partition"),
    gives_up=("column", "metadata_partition"),
    first="severity",
)
_GROUPINGS: dict[type[Row], Grouping] = {
    DifferenceRow: _DIFFERENCES,
    RepairedDifferenceRow: _DIFFERENCES,
    UnsureRow: Grouping(
        kind=(("reason", "{}"), ("metadata_partition", " ({})")),
        place=_PLACE,
        gives_up=("metadata_partition",),
    ),
    DroppedGroupRow: Grouping(
        kind=(("why", "{}"),),
        sums=(("files", "files {}"),),
        place=(("partition", "{}"),),
        detail=(("group", "group {}"),),
        gives_up=("why",),
    ),
    AttemptRow: Grouping(
        kind=(("reason", "{}"), ("action", " ({})")),
        sums=(("files", "files {}"), ("bytes", "{}")),
        place=(("attempt", "{}"),),
        detail=(("oldest", "from {}"),),
    ),
    PendingInstantRow: Grouping(
        kind=(("decision", "{}"), ("action", ": {}"), ("state", ", {}"), ("done", ": {}")),
        place=(("instant", "{}"),),
        detail=(("why", "{}"),),
        gives_up=("done", "state"),
        longer_than=5,
    ),
}
"""The lists whose rows say why: each of them may be many times the same."""


def grouping_of(kind: type[Row], count: int) -> Grouping | None:
    """How a list of `count` rows is told by groups; None for a list that is told by its largest rows."""
    found = _GROUPINGS.get(kind)
    return found if found is not None and count > found.longer_than else None


def grouped(rows: Sequence[Values], how: Grouping, cell: Cell, most: int) -> list[GroupedRows]:
    """The groups of the rows, at most `most`: the last one may have rows of several kinds."""
    given_up: tuple[str, ...] = ()
    found = _divided(rows, how, given_up)
    while len(found) > most and len(given_up) < len(how.gives_up):
        given_up = how.gives_up[: len(given_up) + 1]
        found = _divided(rows, how, given_up)
    rest = [row for one in found[most - 1 :] for row in one]
    if len(found) > most:
        found[most - 1 :] = [rest]
    return [_told(one, how, given_up, cell) for one in found]


def _divided(rows: Sequence[Values], how: Grouping, given_up: Collection[str]) -> list[list[Values]]:
    """The rows of each group, the groups in their order."""
    found: dict[tuple[object, ...], list[Values]] = {}
    for row in rows:
        found.setdefault(tuple((field, row.get(field)) for field in how.fields(row, given_up)), []).append(row)
    ranks = {value: rank for rank, value in enumerate(dict.fromkeys(row.get(how.first) for row in rows))}
    return sorted(found.values(), key=lambda one: (ranks[one[0].get(how.first)], -len(one)))


def _told(rows: Sequence[Values], how: Grouping, given_up: Collection[str], cell: Cell) -> GroupedRows:
    example = rows[0]
    kind = "".join(words.format(told) for field, words in how.kind if (told := _values(rows, field, cell)))
    sums: dict[str, int] = {
        field: sum(value for row in rows if isinstance(value := row.get(field), int)) for field, _ in how.sums
    }
    added = [words.format(cell(field, sums[field])) for field, words in how.sums if example.get(field) is not None]
    shown = {field for field, _ in how.detail}
    several = {field for field in given_up if field not in shown and len({row.get(field) for row in rows}) > 1}
    own = _words(example, [piece for piece in how.kind if piece[0] in several], cell)
    detail = _words(example, how.detail, cell)
    return GroupedRows(
        len(rows),
        f"{kind}, {', '.join(added)}" if added else kind,
        _words(example, how.place, cell),
        ", ".join(filter(None, (own, detail))),
    )


def _values(rows: Sequence[Values], field: str, cell: Cell) -> str:
    """The values that the rows have in one field, some of them when there are many."""
    found = [cell(field, value) for value in dict.fromkeys(row.get(field) for row in rows) if value]
    if len(found) > _MOST_VALUES:
        found[_MOST_VALUES - 1 :] = [f"{len(found) - _MOST_VALUES + 1:,} more"]
    return " and ".join([", ".join(found[:-1]), found[-1]]) if len(found) > 1 else "".join(found)


def _words(row: Values, pieces: Iterable[tuple[str, str]], cell: Cell) -> str:
    told = (words.format(cell(field, value)) for field, words in pieces if (value := row.get(field)) or value == 0)
    return "".join(told).lstrip(" ,:/")
