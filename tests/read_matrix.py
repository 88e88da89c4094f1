"""The matrix of readers as values: what one read of a table was worth, and the tables of docs/readers.md.

`scripts/read_matrix.py` measures and records it in tests/fixtures/read_matrix.json; the page shows the record, and
tests/interop/test_readers_matrix.py compares what the readers do today with it.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

RECORD = Path(__file__).parent / "fixtures/read_matrix.json"
BEGIN, END = "<!-- scripts/read_matrix.py -->\n", "<!-- end -->\n"
KEY = "id"
_SPARK = ("Spark, Hudi of the table's release", "Spark, later Hudi")
_FAULTS = {
    "twice": "rows twice",
    "versions": "wrong versions",
    "strangers": "rows too many",
    "missing": "rows missing",
}

_VARYING = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]*[\w.-]*\.(parquet|log)[\w.-]*", r"FILE.\1"),
    (r"\b20\d{15}\b", "INSTANT"),
    (r"http://127.0.0.1:\d+/lake/t\d+|local:/\S*?(?=/\.hoodie|/p\d/)", "TABLE"),
    (r"\bp[012]\b", "PARTITION"),
    (r"\b(t|called_)\d+\b", "NAME"),
)
_LONGEST = 200


@dataclass(frozen=True)
class Cell:
    """One read of one table, beside what Hudi's own snapshot has.

    `twice`: rows too many of those that are right; `versions`: versions of rows that are not the newest committed one;
    `strangers`: rows of keys that the table does not have (deleted, replaced, or not committed); `missing`: keys that
    were not read. `by_design`: exactly what a read-optimised query of Hudi gives.
    """

    twice: int = 0
    versions: int = 0
    strangers: int = 0
    missing: int = 0
    by_design: bool = False
    error: str = ""

    @property
    def text(self) -> str:
        if self.error:
            return "error"
        if self.by_design:
            return "read-optimised"
        found = [words for fault, words in _FAULTS.items() if getattr(self, fault)]
        return f"**{', '.join(found)}**" if found else "right"


@dataclass(frozen=True)
class Row:
    """One state of one table, and what each reader made of it."""

    release: str
    version: int
    table: str
    state: str
    cells: Mapping[str, Cell] = field(default_factory=dict)


def measure(
    read: Callable[[Path], pa.Table], path: Path, snapshot: pa.Table, read_optimised: pa.Table, *, unit: str = "us"
) -> Cell:
    """What a reader makes of the table at `path`, beside what Hudi's own queries of both kinds give."""
    try:
        found = read(path)
    except Exception as e:
        return _failed(e, path)
    return compare(snapshot, read_optimised, found, unit=unit)


def compare(snapshot: pa.Table, read_optimised: pa.Table, found: pa.Table, *, unit: str = "us") -> Cell:
    """What the rows `found` are worth. Meta columns are not compared, timestamps rounded to `unit` (us or ms)."""
    wanted, other, got = (_counted(plain(t, snapshot, unit)) for t in (snapshot, read_optimised, found))
    if got == wanted:
        return Cell()
    if got == other:
        return Cell(by_design=True)
    extra = got - wanted
    keys, got_keys = {key for key, _ in wanted}, {key for key, _ in got}
    return Cell(
        twice=sum(n for row, n in extra.items() if row in wanted),
        versions=sum(n for row, n in extra.items() if row not in wanted and row[0] in keys),
        strangers=sum(n for row, n in extra.items() if row[0] not in keys),
        missing=len(keys - got_keys),
    )


def _failed(error: BaseException, path: Path) -> Cell:
    """The sentence of the innermost cause, without what differs from one table to the next."""
    text = next(line for line in reversed(str(error).strip().splitlines()) if line.strip()).strip()
    text = text.removeprefix("caused by ").replace(str(path), "TABLE")
    for pattern, word in _VARYING:
        text = re.sub(pattern, word, text)
    return Cell(error=text[:_LONGEST])


def plain(found: pa.Table, like: pa.Table, unit: str) -> pa.Table:
    """The data columns of `like`, in its types, instants as numbers."""
    names = [name for name in like.column_names if not name.startswith("_hoodie_")]
    columns = []
    for name in names:
        kind, column = like.schema.field(name).type, found[name]
        if pa.types.is_timestamp(kind):
            kind = pa.timestamp("us")
            # A reader with milliseconds rounds.
            column = pc.round_temporal(column.cast(kind), 1, {"us": "microsecond", "ms": "millisecond"}[unit])
        columns.append(column.cast(kind))
    return pa.table(columns, names=names)


def _counted(table: pa.Table) -> Counter[tuple[str, str]]:
    return Counter((row[KEY], repr(row)) for row in table.to_pylist())


def load(path: Path = RECORD) -> list[Row]:
    records = json.loads(path.read_text())["rows"]
    return [Row(**{**r, "cells": {name: Cell(**cell) for name, cell in r["cells"].items()}}) for r in records]


def save(rows: Sequence[Row], path: Path = RECORD) -> None:
    """A line for each row; fields of cells that say nothing are left out."""
    lines = []
    for row in rows:
        cells = {name: {k: v for k, v in asdict(cell).items() if v} for name, cell in row.cells.items()}
        lines.append(json.dumps({**asdict(row), "cells": cells}))
    path.write_text('{"rows": [\n' + ",\n".join(lines) + "\n]}\n")


def render(rows: Sequence[Row]) -> str:
    """The tables of the page: states that every reader takes alike share a line."""
    parts = []
    for (version, kind), some in _grouped(rows, lambda row: (row.version, row.table[:3])).items():
        name = {"cow": "Copy-on-write", "mor": "Merge-on-read"}[str(kind)]
        parts.append(f"### {name}, table version {version}\n\n{_table(some)}")
    return "\n".join([*parts, f"### Errors\n\n{_errors(rows)}"])


def with_tables(page: str, rows: Sequence[Row]) -> str:
    """The page with the tables of these rows."""
    head, _, rest = page.partition(BEGIN)
    return f"{head}{BEGIN}\n{render(rows)}\n{END}{rest.partition(END)[2]}"


def _table(rows: Sequence[Row]) -> str:
    readers = [*_SPARK, *dict.fromkeys(name for row in rows for name in row.cells if not name.startswith("Spark"))]
    lines = [f"| state | {' | '.join(readers)} |", f"|---|{'---|' * len(readers)}"]
    alike: dict[tuple[str, ...], list[Row]] = {}
    # Those that every reader was asked for come first, so that the others find the line that they belong to.
    for row in sorted(rows, key=lambda row: "" in _texts(row, readers)):
        texts = _texts(row, readers)
        line = next((known for known in alike if _agree(known, texts)), texts)
        alike.setdefault(line, []).append(row)
    for line, some in alike.items():
        states = "every state" if len(some) == len(rows) else "; ".join(_states(some, rows))
        lines.append(f"| {states} | {' | '.join(line)} |")
    return "\n".join(lines) + "\n"


def _texts(row: Row, readers: Sequence[str]) -> tuple[str, ...]:
    """Empty where the reader was not asked."""
    own = row.cells.get(f"Spark, Hudi {row.release}")
    later = {c.text for name, c in row.cells.items() if name.startswith("Spark") and name[12:] != row.release}
    spark = (own.text if own else "", ", ".join(sorted(later)))
    return (*spark, *(row.cells[name].text if name in row.cells else "" for name in readers[len(spark) :]))


def _agree(line: Sequence[str], texts: Sequence[str]) -> bool:
    return all(not text or text == known for known, text in zip(line, texts, strict=True))


def _states(alike: Sequence[Row], rows: Sequence[Row]) -> Iterator[str]:
    """The states of a line, with the tables where those of the state differ."""
    for state in dict.fromkeys(row.state for row in rows):
        some = [row for row in alike if row.state == state]
        if len(some) == len([row for row in rows if row.state == state]):
            yield state
        elif some:
            yield f"{state} ({', '.join(dict.fromkeys(f'{row.table[4:]} of {row.release}' for row in some))})"


def _errors(rows: Sequence[Row]) -> str:
    found: dict[tuple[str, str], set[int]] = {}
    for row in rows:
        for name, cell in row.cells.items():
            if cell.error:
                found.setdefault((name, cell.error), set()).add(row.version)
    lines = ["| reader | table versions | its sentence |", "|---|---|---|"]
    for (name, error), versions in sorted(found.items()):
        lines.append(f"| {name} | {', '.join(map(str, sorted(versions)))} | `{error.replace('|', '/')}` |")
    return "\n".join(lines) + "\n"


def _grouped(rows: Iterable[Row], key: Callable[[Row], object]) -> dict[object, list[Row]]:
    found: dict[object, list[Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found
