"""Long lists of a report, told by groups: rows that say the same, with their number, their sums and one example.

An operator at night reads a screen, not four hundred lines. JSON has every row, and so has `--verbose`.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..runs.report_rows import (
    ArchiveFileRow,
    AttemptRow,
    ClusteringGroupRow,
    ClusteringSliceRow,
    CompactionGroupRow,
    CompactionSliceRow,
    DeletedRow,
    DifferenceRow,
    DroppedGroupRow,
    PartitionRow,
    PendingCleanRow,
    PendingInstantRow,
    QuarantineRow,
    RollbackRow,
    Row,
    UnsureRow,
    Value,
    Values,
    VisibleAgainRow,
)

Told: TypeAlias = tuple[tuple[str, str], ...]
"""Fields of a row with the words around them: `{}` stands for the value. Fields without a value are left out."""
Cell: TypeAlias = Callable[[str, Value], str]
"""Gives the text of a field's value."""

_MOST_GROUPS = 8
_MOST_VALUES = 4
"""Values of one field that are told of a group."""
_LONG = 10
"""Lists with more rows than this are told by groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """How one list is told. `kind` says what the rows of a group have in common, `example` which row one of them is.

    Rows with a `cause` may differ in the fields of `by_cause`, and where there are too many groups, rows may differ in
    those of `gives_up`, in one after the other: of such fields some values are told. Groups are ordered by the first
    appearance of their field `first`, then by their number of rows. `noun` says what rows are.
    """

    example: Told
    kind: Told = ()
    sums: Told = ()
    cause: str = ""
    by_cause: tuple[str, ...] = ()
    gives_up: tuple[str, ...] = ()
    first: str = ""
    noun: str = ""
    always: bool = False
    """Whether short lists are told by groups, too."""

    def fields(self, row: Values, given_up: Collection[str]) -> list[str]:
        """The fields in which the rows of a group are the same, for the group of `row`."""
        free = {*given_up, *(self.by_cause if row.get(self.cause) else ())}
        return [field for field, _ in self.kind if field not in free]


@dataclass(frozen=True, slots=True)
class GroupedRows:
    """Some rows of a list: their number, what they have in common, and which row one of them is."""

    count: int
    kind: str
    example: str


_FILES: Told = (("files", "{} files"), ("bytes", "{}"))
_LOGS: Told = (("log_files", "{} log files"), ("log_bytes", "{} in log files"))
_PLACE: Told = (("data_partition", "{}"), ("file", "/{}"))
_SLICE: Told = (("partition", "{}"), ("file_id", "/{}"))
_OF_PARTITIONS = Grouping(sums=_FILES, example=(("partition", "{}"),), noun="partitions")
_GROUPINGS: dict[type[Row], Grouping] = {
    DifferenceRow: Grouping(
        kind=(
            ("severity", "{}: "),
            ("kind", "{}"),
            ("metadata_partition", " ({})"),
            ("column", ", column {}"),
            ("cause", ": {}"),
        ),
        example=(*_PLACE, ("key", ", key {}"), ("detail", ": {}")),
        cause="cause",
        by_cause=("kind", "metadata_partition"),
        gives_up=("column", "metadata_partition"),
        first="severity",
        always=True,
    ),
    UnsureRow: Grouping(
        kind=(("reason", "{}"), ("metadata_partition", " ({})")),
        example=_PLACE,
        gives_up=("metadata_partition",),
        always=True,
    ),
    ClusteringSliceRow: Grouping(kind=(("reason", "{}"),), sums=(("bytes", "{}"),), example=_SLICE),
    CompactionSliceRow: Grouping(kind=(("reason", "{}"),), sums=(("bytes", "{}"), *_LOGS), example=_SLICE),
    ClusteringGroupRow: Grouping(
        kind=(("decoded", "decoded: {}"),),
        sums=(*_FILES, ("rows", "{} rows"), ("new_files", "{} new files"), ("new_bytes", "about {}")),
        example=(("group", "group {}"), ("partition", " in {}")),
        noun="groups",
    ),
    CompactionGroupRow: Grouping(sums=(("bytes", "{}"), *_LOGS), example=_SLICE, noun="file groups"),
    DroppedGroupRow: Grouping(
        kind=(("why", "{}"),),
        sums=(("files", "{} files"),),
        example=(("group", "group {}"), ("partition", " in {}"), ("why", ": {}")),
        gives_up=("why",),
        noun="groups",
    ),
    DeletedRow: Grouping(
        kind=(("rule", "{}"), ("whole_partition", ", and the whole partition")),
        sums=_FILES,
        example=(("partition", "{}"),),
        noun="partitions",
    ),
    PendingCleanRow: Grouping(
        kind=(("state", "{}"), ("policy", ", {}")), sums=(("files", "{} files"),), example=(("instant", "{}"),)
    ),
    PartitionRow: _OF_PARTITIONS,
    VisibleAgainRow: _OF_PARTITIONS,
    RollbackRow: Grouping(kind=(("action", "{}"),), example=(("instant", "{}"), ("of", " of {}"))),
    AttemptRow: Grouping(
        kind=(("reason", "{}"), ("action", " ({})")), sums=_FILES, example=(("attempt", "{}"), ("oldest", ", from {}"))
    ),
    QuarantineRow: Grouping(sums=_FILES, example=(("quarantine", "{}"),), noun="quarantines"),
    PendingInstantRow: Grouping(
        kind=(("decision", "{}"), ("action", ": {}"), ("state", ", {}"), ("done", ": {}")),
        example=(("instant", "{}"), ("why", ": {}")),
        gives_up=("done", "state"),
    ),
    ArchiveFileRow: Grouping(kind=(("timeline", "{}"),), example=(("file", "{}"),)),
}
"""The lists of reports that grow with the table."""


def grouping_of(kind: type[Row], count: int, *, is_long: bool = False) -> Grouping | None:
    """How a list of `count` rows is told by groups; None for a list that is shown row by row.

    `is_long`: the rows take many lines, however many they are.
    """
    found = _GROUPINGS.get(kind)
    return found if found is not None and count and (found.always or is_long or count > _LONG) else None


def grouped(rows: Sequence[Values], how: Grouping, cell: Cell) -> list[GroupedRows]:
    """The groups of the rows, at most as many as a person reads: the last one may have rows of several kinds."""
    given_up: tuple[str, ...] = ()
    found = _divided(rows, how, given_up)
    while len(found) > _MOST_GROUPS and len(given_up) < len(how.gives_up):
        given_up = how.gives_up[: len(given_up) + 1]
        found = _divided(rows, how, given_up)
    rest = [row for one in found[_MOST_GROUPS - 1 :] for row in one]
    if len(found) > _MOST_GROUPS:
        found[_MOST_GROUPS - 1 :] = [rest]
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
    kind = f"{how.noun}: {kind}" if how.noun and kind else kind or how.noun
    shown = dict(how.example)
    several = {field for field in given_up if field not in shown and len({row.get(field) for row in rows}) > 1}
    own = tuple(piece for piece in how.kind if piece[0] in several)
    places = (_words(example, pieces, cell) for pieces in (own, how.example))
    return GroupedRows(len(rows), f"{kind} ({', '.join(added)})" if added else kind, ", ".join(filter(None, places)))


def _values(rows: Sequence[Values], field: str, cell: Cell) -> str:
    """The values that the rows have in one field, some of them when there are many."""
    found = [cell(field, value) for value in dict.fromkeys(row.get(field) for row in rows) if value]
    if len(found) > _MOST_VALUES:
        found[_MOST_VALUES - 1 :] = [f"{len(found) - _MOST_VALUES + 1:,} more"]
    return " and ".join([", ".join(found[:-1]), found[-1]]) if len(found) > 1 else "".join(found)


def _words(row: Values, pieces: Told, cell: Cell) -> str:
    told = (words.format(cell(field, value)) for field, words in pieces if (value := row.get(field)) or value == 0)
    return "".join(told).lstrip(" ,:/")
