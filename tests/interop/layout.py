"""What lies on storage: base files by partition, their physical schemas and order, and instants."""

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from .peer import Peer

_INSTANT = re.compile(r"^(\d{17})(?:_(\d{17}))?\.([a-z]+)$")
_WRITES = {"commit", "deltacommit", "replacecommit"}


class Instant(NamedTuple):
    """A completed instant. In version 6 there is no completion time: the requested time stands in its place."""

    requested: str
    completed: str
    action: str


def timeline(path: Path) -> Path:
    """The folder of the active timeline. A downgrade leaves the one of the newer layout, too, without instants."""
    old, new = path / ".hoodie", path / ".hoodie/timeline"
    is_old = not new.exists() or any(_INSTANT.match(file.name) for file in old.iterdir())
    return old if is_old else new


def completed(path: Path) -> list[Instant]:
    """The completed instants of the active timeline, in the order of their requested times."""
    names = [_INSTANT.match(f.name) for f in timeline(path).iterdir()]
    return sorted(Instant(m[1], m[2] or m[1], m[3]) for m in names if m and m[3] != "inflight")


def writes(path: Path) -> list[Instant]:
    """The completed instants that wrote data."""
    return [i for i in completed(path) if i.action in _WRITES]


def pending(path: Path) -> list[str]:
    """The requested times of instants that are not completed."""
    files = timeline(path).iterdir()
    begun = {f.name.split(".")[0] for f in files if f.name.endswith((".requested", ".inflight"))}
    return sorted(begun - {i.requested for i in completed(path)})


def live_files(peer: Peer, path: Path) -> dict[str, list[Path]]:
    """The base files that a snapshot read opens, by partition."""
    return by_partition(path, peer.live_files(path))


def by_partition(path: Path, names: Iterable[str]) -> dict[str, list[Path]]:
    """The base files that have these names, by partition."""
    wanted = set(names)
    found: dict[str, list[Path]] = defaultdict(list)
    for file in sorted(path.rglob("*.parquet")):
        if file.name in wanted and ".hoodie" not in file.relative_to(path).parts:
            found[str(file.parent.relative_to(path))].append(file)
    return found


def physical_schema(file: Path) -> list[str]:
    """Every leaf as parquet stores it: path, physical and logical type, repetition by its levels, and field id."""
    schema = pq.read_metadata(file).schema
    leaves = [schema.column(i) for i in range(len(schema))]
    facts = [
        (c.path, c.physical_type, str(c.logical_type), c.length, c.max_definition_level, c.max_repetition_level)
        for c in leaves
    ]
    return [*map(str, facts), str(schema.to_arrow_schema().remove_metadata())]


def list_layouts(file: Path) -> set[str]:
    """How lists are stored: of two levels (`array`), of three (`list.element`). Hudi 1.2.0 expects one in a file."""
    schema = pq.read_metadata(file).schema
    paths = [schema.column(i).path for i in range(len(schema))]
    found = {"three" for path in paths if ".list.element" in path}
    return found | {"two" for path in paths if path.endswith(".array") or ".array." in path}


def is_sorted(file: Path, columns: tuple[str, ...]) -> bool:
    """Whether the rows ascend by `columns`, nulls first or nulls last, NaN after all other numbers."""
    rows = pq.ParquetFile(file).read(columns=list(columns)).select(columns).to_pylist()
    orders = ([tuple(_rank(v, nulls) for v in row.values()) for row in rows] for nulls in (-1, 1))
    return any(order == sorted(order) for order in orders)


def _rank(value: Any, nulls: int) -> tuple[int, bool, Any]:
    if value is None:
        return (nulls, False, 0)
    not_a_number = value != value
    return (0, not_a_number, 0 if not_a_number else value)
