"""The tables of the matrix of readers: what each of them is after every service, ours or Hudi's.

Each state is a folder of its own, so that readers of other releases and engines can come later. Rows are functions of
their number, and the same in every table.
"""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from . import layout, ours
from .peer import EACH_DELTA_COMMIT, TABLE_VERSIONS, Peer
from .recipes import SMALL_FILTERS, WRITE_DEFAULTS

FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"
COPY_ON_WRITE, MERGE_ON_READ = "COPY_ON_WRITE", "MERGE_ON_READ"
_WRITE = "hoodie.datasource.write."
_DEFINITION = {
    "hoodie.table.name": "trips",
    f"{_WRITE}recordkey.field": "id",
    f"{_WRITE}precombine.field": "ts",
    f"{_WRITE}partitionpath.field": "part",
}
# Otherwise a write executes the pending plans itself.
_NOT_INLINE = {"hoodie.compact.inline": "false", "hoodie.clustering.inline": "false"}


@dataclass(frozen=True)
class Kind:
    """What a table is: its type, who made it, and whether it has a metadata table."""

    type: str
    maker: str
    metadata: bool

    @property
    def name(self) -> str:
        kind = "cow" if self.type == COPY_ON_WRITE else "mor"
        return f"{kind}-{self.maker}{'' if self.metadata else '-no-metadata'}"


KINDS = tuple(
    Kind(kind, maker, metadata)
    for kind in (COPY_ON_WRITE, MERGE_ON_READ)
    for maker, metadata in (("hudi", True), ("hudi", False), ("ours", True))
)


@dataclass(frozen=True)
class State:
    """A table as a reader finds it at `path`. `rows_of` names the state that has the same rows, if there is one."""

    kind: Kind
    name: str
    path: Path
    rows_of: str | None = None


def states(peer: Peer, kind: Kind, folder: Path) -> Iterator[State]:
    """Make the table of `kind` with the release of `peer` (or with `write`), and all its states, below `folder`."""
    return _Maker(peer, kind, folder).states()


class _Maker:
    def __init__(self, peer: Peer, kind: Kind, folder: Path) -> None:
        self._peer = peer
        self._kind = kind
        self._folder = folder

    def states(self) -> Iterator[State]:
        self._create(self._path("fresh"))
        yield self._state("fresh")
        path = self._copy("fresh", "updated")
        self._peer.upsert(path, newer(rows(20, 35)), **_NOT_INLINE)
        self._peer.delete(path, rows(50, 57), **_NOT_INLINE)
        yield self._state("updated")
        yield from self._clusterings()
        yield from self._overwritten()
        yield from self._killed()
        if self._kind.type == MERGE_ON_READ:
            yield from self._compactions()

    def _clusterings(self) -> Iterator[State]:
        path = self._copy("updated", "clustered by us")
        ours.cluster(path, sort=("name",))
        yield self._same("clustered by us")
        yield self._same(self._cleaned_by_us("clustered by us"))
        yield self._written_again("clustered by us, cleaned")
        path = self._copy("updated", "clustered by Hudi")
        self._peer.cluster(path, order="name")
        yield self._same("clustered by Hudi")
        yield self._same(self._cleaned_by_hudi("clustered by Hudi"))
        yield self._written_again("clustered by Hudi, cleaned")
        path = self._copy("updated", "a clustering is pending")
        if self._kind.maker == "ours":
            ours.schedule(path, sort=("name",))
        else:
            self._peer.cluster(path, "schedule", order="name")
        yield self._same("a clustering is pending")

    def _overwritten(self) -> Iterator[State]:
        path = self._copy("updated", "a partition overwritten by Hudi")
        self._peer.insert_overwrite(path, of_part(rows(200, 260), "p1"), **_NOT_INLINE)
        yield self._state("a partition overwritten by Hudi")

    def _killed(self) -> Iterator[State]:
        """Right before the completed file, with all data files and the metadata table written."""
        path = self._copy("updated", "a write of Hudi was killed")
        self._peer.upsert(path, pa.concat_tables([newer(rows(60, 90), by=7), rows(300, 320)]), **_NOT_INLINE)
        _lose_newest(path)
        yield self._same("a write of Hudi was killed")
        path = self._copy("updated", "a clustering of ours was killed")
        ours.schedule(path, sort=("name",))
        ours.execute(path)
        _lose_newest(path)
        yield self._same("a clustering of ours was killed")

    def _compactions(self) -> Iterator[State]:
        path = self._copy("updated", "compacted by us")
        ours.run("compact", path, "--mode", "scheduleAndExecute", options=EACH_DELTA_COMMIT).ok()
        yield self._same("compacted by us")
        path = self._copy("updated", "compacted by Hudi")
        self._peer.compact(path)
        yield self._same("compacted by Hudi")
        path = self._copy("updated", "a compaction is pending")
        if self._kind.maker == "ours":
            ours.run("schedule", path, "--service", "compaction", options=EACH_DELTA_COMMIT).ok()
        else:
            self._peer.compact(path, "schedule")
        yield self._same("a compaction is pending")
        path = self._copy("a compaction is pending", "written after a pending compaction plan")
        # Of file slices that the plan has, and of others.
        self._peer.upsert(path, newer(rows(25, 45), by=7), **_NOT_INLINE)
        yield self._state("written after a pending compaction plan")

    def _create(self, path: Path) -> None:
        definition = {**_DEFINITION, f"{_WRITE}table.type": self._kind.type}
        for first in range(0, 180, 60):
            if self._kind.maker == "ours":
                self._insert(path, rows(first, first + 60), definition)
            else:
                metadata = {"hoodie.metadata.enable": str(self._kind.metadata).lower()}
                options = {**WRITE_DEFAULTS, **SMALL_FILTERS, **definition, **metadata, f"{_WRITE}operation": "insert"}
                self._peer.write(path, rows(first, first + 60), options)

    def _insert(self, path: Path, given: pa.Table, definition: Mapping[str, str]) -> None:
        source = path.with_name(f"{path.name}.parquet")
        source.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(given, source)
        flags = ["--input", str(source), "--operation", "insert"]
        if not path.exists():
            flags += ["--table-version", str(TABLE_VERSIONS[self._peer.version])]
        ours.run("write", path, *flags, options={**definition, "hoodie.parquet.small.file.limit": "0"}).ok()
        source.unlink()

    def _written_again(self, state: str) -> State:
        path = self._copy(state, f"{state}, updated")
        self._peer.upsert(path, newer(rows(60, 90), by=7), **_NOT_INLINE)
        return self._state(f"{state}, updated")

    def _cleaned_by_us(self, state: str) -> str:
        path = self._copy(state, f"{state}, cleaned")
        keep = {"hoodie.cleaner.policy": FILE_VERSIONS, "hoodie.cleaner.fileversions.retained": "1"}
        ours.run("clean", path, options=keep).ok()
        return f"{state}, cleaned"

    def _cleaned_by_hudi(self, state: str) -> str:
        path = self._copy(state, f"{state}, cleaned")
        self._peer.clean(path, policy=FILE_VERSIONS)
        return f"{state}, cleaned"

    def _copy(self, state: str, name: str) -> Path:
        path = self._path(name)
        shutil.copytree(self._path(state), path)
        return path

    def _path(self, state: str) -> Path:
        # Hudi's SQL finds no table below a folder with a blank in its name.
        return self._folder / state.replace(",", "").replace(" ", "-")

    def _same(self, name: str) -> State:
        return self._state(name, rows_of="updated")

    def _state(self, name: str, rows_of: str | None = None) -> State:
        return State(self._kind, name, self._path(name), rows_of)


def _lose_newest(path: Path) -> None:
    newest = layout.completed(path)[-1]
    for file in layout.timeline(path).glob(f"*{newest.requested}*.{newest.action}*"):
        if not file.name.endswith((".requested", ".inflight", ".requested.crc", ".inflight.crc")):
            file.unlink()


def rows(first: int, end: int) -> pa.Table:
    """The rows `first` up to `end`, in three partitions."""
    numbers = range(first, end)
    return pa.table(
        {
            "id": [f"k-{n:06}" for n in numbers],
            "ts": pa.array([n * 10 for n in numbers], pa.int64()),
            "name": [f"name-{n % 17}" for n in numbers],
            "amount": pa.array([None if n % 3 == 0 else n / 8 for n in numbers], pa.float64()),
            "qty": pa.array([n * 7 % 500 for n in numbers], pa.int32()),
            "at": pa.array([1_700_000_000_123_456 + n * 1001 for n in numbers], pa.timestamp("us", "UTC")),
            "part": [f"p{n // 10 % 3}" for n in numbers],
        }
    )


def newer(given: pa.Table, *, by: int = 5) -> pa.Table:
    """The same keys with a later ordering value and another name."""
    later = given.set_column(1, "ts", pc.add(given["ts"], by))
    return later.set_column(2, "name", pa.array([f"new-{by}"] * len(given)))


def of_part(given: pa.Table, part: str) -> pa.Table:
    """The rows, all in one partition."""
    return given.set_column(given.column_names.index("part"), "part", pa.array([part] * len(given)))
