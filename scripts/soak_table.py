"""What scripts/soak.py knows of its table: the model of its rows, its timeline, the comparison, copies of its files.

Nothing here asks hudi_services, except `our_rows`, its reader.
"""

import io
import json
import os
import shutil
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

MARK = "soak.batch"
_SHOWN = 25
_COMPLETED = (".commit", ".deltacommit", ".replacecommit")


@dataclass(frozen=True)
class Row:
    """What a key has. `batch`, its ordering value, is the number of the batch of its writer that wrote it; of a key
    that writers share, a number that no other write of it has."""

    part: str
    value: str
    batch: int


@dataclass(frozen=True)
class Batch:
    """One write. Of a delete, the rows are those that go."""

    writer: str
    number: int
    operation: str
    rows: Mapping[str, Row]
    options: Mapping[str, str]
    shared: Mapping[str, Row] = field(default_factory=dict)
    """Rows of keys that other writers write, too."""

    @property
    def mark(self) -> str:
        """In the extra metadata of its commit."""
        return f"{self.writer}-{self.number}"

    def table(self) -> pa.Table:
        """The rows as the writer gets them."""
        ordered = [(key, self.number, row) for key, row in self.rows.items()]
        ordered += [(key, row.batch, row) for key, row in self.shared.items()]
        rows = [
            {"id": key, "ts": ts, "value": row.value, "writer": self.writer, "part": row.part}
            for key, ts, row in ordered
        ]
        return pa.Table.from_pylist(rows)


@dataclass
class Model:
    """The rows that one writer's table must have, by key, and which commits made them."""

    rows: dict[str, Row] = field(default_factory=dict)
    history: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    gone: set[str] = field(default_factory=set)
    """Keys that were ever deleted or replaced; they may have come back."""

    def apply(self, batch: Batch, instant: str) -> None:
        gone: Iterable[str] = ()
        if batch.operation == "delete":
            gone = batch.rows
        elif batch.operation == "insert_overwrite":
            parts = {row.part for row in batch.rows.values()}
            gone = [key for key, row in self.rows.items() if row.part in parts]
        for key in gone:
            self._note(key, batch, instant, "gone")
            self.gone.add(key)
            self.rows.pop(key, None)
        if batch.operation != "delete":
            for key, row in batch.rows.items():
                self._note(key, batch, instant, row.value)
                self.rows[key] = row

    def apply_shared(self, batch: Batch, instant: str) -> None:
        """Of a key that writers share, the row with the greatest ordering value stays, whoever commits first."""
        for key, row in batch.shared.items():
            self._note(key, batch, instant, f"{row.value} ({row.batch})")
            if key not in self.rows or self.rows[key].batch < row.batch:
                self.rows[key] = row

    def _note(self, key: str, batch: Batch, instant: str, what: str) -> None:
        self.history[key].append(f"{batch.mark} {batch.operation} {instant}: {what}")


def differences(models: Iterable[Model], found: list[dict[str, Any]]) -> list[str]:
    """How the rows that a reader found differ from the models: keys, and the commits that made them."""
    rows: dict[str, Row] = {}
    history: dict[str, list[str]] = {}
    for model in models:
        rows |= model.rows
        history |= model.history
    by_key: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in found:
        by_key[one["id"]].append(one)
    kinds: dict[str, list[str]] = defaultdict(list)
    for key in sorted(rows.keys() | by_key.keys()):
        wanted, seen = rows.get(key), by_key.get(key, [])
        values = [Row(one["part"], one["value"], one["ts"]) for one in seen]
        if wanted is not None and values == [wanted]:
            continue
        kind = "doubled" if len(seen) > 1 else "lost" if not seen else "back" if wanted is None else "changed"
        places = [f"{v.value} by {one['_hoodie_commit_time']}" for v, one in zip(values, seen, strict=True)]
        files = [one["_hoodie_file_name"] for one in seen if "_hoodie_file_name" in one]
        kinds[kind].append(
            f"{kind} {key}: expected {wanted}, found {places or 'nothing'} in {files}, written by {history.get(key)}"
        )
    counts = [f"{kind}: {len(lines)} rows" for kind, lines in kinds.items()]
    return counts + [line for lines in kinds.values() for line in lines[:_SHOWN]]


def our_rows(path: Path) -> dict[str, list[dict[str, Any]]]:
    """What our own reader finds, with the metadata table and without."""
    from tests.unit.tables import open_local
    from tests.unit.test_merge_histories import merged_rows

    memory = 64 << 20
    table = open_local(path)
    return {
        "ours, metadata on": merged_rows(table, memory, view=table.view),
        "ours, metadata off": merged_rows(table, memory),
    }


class Timeline:
    """The active timeline as files; commits are read once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, dict[str, Any]] = {}

    def files(self) -> list[Path]:
        folder = self._path / ".hoodie/timeline"
        return sorted(f for f in (folder if folder.exists() else folder.parent).iterdir() if f.name[:17].isdigit())

    def commit_of(self, mark: str) -> str | None:
        """The completed instant with this mark in its extra metadata."""
        for file in reversed(self.files()):
            if file.name.endswith(_COMPLETED) and self._extra(file).get(MARK) == mark:
                return file.name
        return None

    def plans(self) -> dict[str, int]:
        """The pending clusterings, with the number of groups in the plan of each."""
        files = self.files()
        done = {f.name[:17] for f in files if f.name.endswith(_COMPLETED)}
        requested = (".replacecommit.requested", ".clustering.requested")
        found = {}
        for file in files:
            if file.name[:17] not in done and file.name.endswith(requested):
                plan = (_content(file) or {}).get("clusteringPlan")
                if plan is not None:
                    found[file.name[:17]] = len(plan.get("inputGroups") or [])
        return found

    def clusterings(self) -> set[str]:
        """The instants of completed clusterings."""
        return {f.name[:17] for f in self.files() if f.name.endswith(_COMPLETED) and self._is_clustering(f)}

    def _is_clustering(self, file: Path) -> bool:
        self._extra(file)
        return self._known.get(file.name, {}).get("operationType") == "CLUSTER"

    def _extra(self, file: Path) -> Mapping[str, str]:
        if file.name not in self._known:
            content = _content(file)
            if content is None:
                return {}
            self._known[file.name] = content
        return self._known[file.name].get("extraMetadata") or {}


def _content(file: Path) -> dict[str, Any] | None:
    """JSON or Avro; None when the file is gone, or is being written."""
    try:
        data = file.read_bytes()
        if data[:1] == b"{":
            return dict(json.loads(data))
        return dict(next(iter(fastavro.reader(io.BytesIO(data)))))
    except (OSError, StopIteration, ValueError, EOFError):
        return None


class Witness:
    """Keeps what the table's folder had, also what was deleted since: links to files of rows, copies of instants."""

    def __init__(self, path: Path, kept: Path) -> None:
        self._path = path
        self._kept = kept
        self._seen: Counter[tuple[str, int, int]] = Counter()
        self._versions: Counter[str] = Counter()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        self._thread.join()
        self._look()

    def _run(self) -> None:
        while not self._end.wait(1.0):
            self._look()

    def _look(self) -> None:
        for folder, _, names in os.walk(self._path):
            for name in names:
                file = Path(folder, name)
                is_rows = name.endswith((".parquet", ".hfile")) or ".log." in name
                is_instant = not is_rows and (name[:17].isdigit() or name == "hoodie.properties")
                if name.endswith(".crc") or ".temp" in folder or not (is_rows or is_instant):
                    continue
                try:
                    status = file.stat()
                    mark = (str(file), status.st_ino, 0 if is_rows else status.st_mtime_ns)
                    if not self._seen[mark]:
                        self._keep(file, is_rows)
                        self._seen[mark] += 1
                except OSError:
                    continue  # it is gone already

    def _keep(self, file: Path, is_rows: bool) -> None:
        name = str(file.relative_to(self._path))
        number = self._versions[name]
        target = self._kept / (f"{name}@{number}" if number else name)
        target.parent.mkdir(parents=True, exist_ok=True)
        if is_rows:
            os.link(file, target)
        else:
            shutil.copy2(file, target)
        self._versions[name] += 1


def records(table: pa.Table) -> list[dict[str, Any]]:
    return [dict(row) for row in table.to_pylist()]
