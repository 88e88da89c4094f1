"""Tables whose version real Hudi changed while plans and a failed write were pending, and the rows that are right.

`BEGINNINGS` has tables as one release leaves them, `STORIES` what other releases do next. Each row is in a model, too.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from . import layout
from .metadata_changes import COLUMNS, COMPACT_AFTER, FEW_GROUPS, RECORD_INDEX, STATS, Maker
from .peer import EACH_DELTA_COMMIT, Peer, PeerError

_WRITE = "hoodie.datasource.write."
_KEPT = {
    STATS: "true",
    COLUMNS: "id,ts",
    RECORD_INDEX: "true",
    **FEW_GROUPS,
    COMPACT_AFTER: "3",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
}
_SERVED = {
    "hoodie.archive.automatic": "true",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "1",
    "hoodie.cleaner.commits.retained": "1",
    COMPACT_AFTER: "1",
}
_COMPACTED = {"hoodie.compact.inline": "true", **EACH_DELTA_COMMIT}
_REFUSED = {
    "hoodie.precommit.validators": "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator",
    "hoodie.precommit.validators.single.value.sql.queries": "select count(*) from <TABLE_NAME>#-1",
}
Row: TypeAlias = tuple[str, int, str]
"""Partition, ordering value, text."""


@dataclass
class Told:
    """One table of real Hudi, and the rows that it must have, by key."""

    peer: Peer
    path: Path
    kind: str
    model: dict[str, Row] = field(default_factory=dict)
    ts: int = 0

    @property
    def rows(self) -> list[tuple[str, str, int, str]]:
        """Key, partition, ordering value and text of each row that is right, sorted."""
        return sorted((key, *row) for key, row in self.model.items())

    def upsert(self, partitions: Mapping[str, range], options: Mapping[str, str] | None = None) -> None:
        """Write the rows of these numbers, each partition with keys of its own."""
        self.ts += 1
        new = {f"{p}-{n:02d}": (p, self.ts, f"text {self.ts}") for p, numbers in partitions.items() for n in numbers}
        self._write(new, "upsert", options or {})
        self.model |= new

    def delete(self, partition: str, number: int) -> None:
        self.ts += 1
        key = f"{partition}-{number:02d}"
        self._write({key: (partition, self.ts, "gone")}, "delete", {})
        del self.model[key]

    def fail(self, partition: str, number: int) -> None:
        """A write that is refused, by a validator of Hudi, when its files are there, and before its commit is."""
        self.ts += 1
        pending = layout.pending(self.path)
        with suppress(PeerError):
            self._write({f"{partition}-{number:02d}": (partition, self.ts, "lost")}, "upsert", _REFUSED)
        assert len(layout.pending(self.path)) == len(pending) + 1

    def savepoint(self) -> None:
        newest = layout.writes(self.path)[-1].requested
        self._maker().call("create_savepoint", f"commit_time => '{newest}'")

    def plan(self, service: str, options: Mapping[str, str]) -> None:
        """Schedule a clustering or a compaction."""
        given = {k: v for k, v in self._maker().known.items() if not k.startswith(_WRITE)} | dict(options)
        # A comma would end the option.
        text = ",".join(f"{k}={v}" for k, v in given.items() if "," not in v)
        self.peer.sql(f"call run_{service}(path => '{self.path}', op => 'schedule', options => '{text}')")

    def change(self, procedure: str, version: str) -> None:
        maker = self._maker()
        # Small, so that the archive of a few instants is converted in several batches.
        with maker.settings({"hoodie.commits.archival.batch": "3"}):
            maker.call(procedure, f"to_version => '{version}'")

    def _maker(self) -> Maker:
        return Maker(self.peer, self.path, self.kind, dict(_KEPT))

    def _write(self, rows: Mapping[str, Row], operation: str, options: Mapping[str, str]) -> None:
        table = pa.table({
            "id": [*rows], "ts": pa.array([row[1] for row in rows.values()], pa.int64()),
            "text": [row[2] for row in rows.values()], "part": [row[0] for row in rows.values()],
        })  # fmt: skip
        self.peer.write(self.path, table, self._maker().known | {f"{_WRITE}operation": operation} | dict(options))


def _past(table: Told, options: Mapping[str, str]) -> None:
    """An archive, in which a rollback is, too."""
    both = {"a": range(3), "b": range(3)}
    table.upsert(both, options)
    table.fail("a", 0)
    for _ in range(4):
        table.upsert(both, options)


def _merge_on_read(table: Told) -> None:
    """A savepoint; log files below a pending clustering (a), below and above a pending compaction (b), and beside both
    (c); a write that failed."""
    _past(table, _SERVED | _COMPACTED)
    table.upsert({"b": range(2)})
    table.savepoint()
    table.plan("compaction", EACH_DELTA_COMMIT)
    table.upsert({"a": range(1)})
    table.plan("clustering", {"hoodie.clustering.plan.strategy.partition.regex.pattern": "a"})
    table.upsert({"b": range(1, 2), "c": range(4)})
    table.delete("b", 2)
    table.upsert({"c": range(1)})
    table.delete("c", 3)
    table.fail("c", 1)


def _copy_on_write(table: Told) -> None:
    """A savepoint, a pending clustering (a), a write that failed."""
    _past(table, _SERVED)
    table.upsert({"a": range(3, 5), "b": range(2)})
    table.savepoint()
    table.plan("clustering", {"hoodie.clustering.plan.strategy.partition.regex.pattern": "a"})
    table.upsert({"b": range(1), "c": range(4)})
    table.delete("c", 3)
    table.fail("c", 1)


MAKE = {"COPY_ON_WRITE": _copy_on_write, "MERGE_ON_READ": _merge_on_read}


def _by(procedure: str, version: str) -> Callable[[Told], None]:
    return lambda table: table.change(procedure, version)


def _by_write(options: Mapping[str, str] | None = None) -> Callable[[Told], None]:
    """Two writes, the first of which upgrades the table to the version of the release, unless `options` say no."""

    def go_on(table: Told) -> None:
        table.upsert({"c": range(1, 3)}, options)
        table.upsert({"c": range(2, 3), "d": range(2)}, options)

    return go_on


def _down_to_6(table: Told) -> None:
    """A downgrade, and writes at the version that it leaves."""
    table.change("downgrade_table", "SIX")
    _by_write({"hoodie.write.table.version": "6", "hoodie.write.auto.upgrade": "false"})(table)


class Story(NamedTuple):
    """A table as the release `begins` with leaves it, of this kind, and what others do next."""

    begins: str
    kind: str
    stages: tuple[tuple[str, Callable[[Told], None]], ...]
    owner: str
    """The release of the version that the table has at the end."""


_MOR, _COW = "MERGE_ON_READ", "COPY_ON_WRITE"
STORIES: dict[str, Story] = {
    "6_to_8": Story("0.15.0", _MOR, (("1.0.2", _by("upgrade_table", "EIGHT")),), "1.0.2"),
    "6_to_8_to_9": Story("0.15.0", _MOR, (("1.0.2", _by_write()), ("1.2.0", _by_write())), "1.2.0"),
    "6_to_9": Story("0.15.0", _MOR, (("1.2.0", _by("upgrade_table", "NINE")),), "1.2.0"),
    "6_to_8_cow": Story("0.15.0", _COW, (("1.0.2", _by_write()),), "1.0.2"),
    "6_to_9_cow": Story("0.15.0", _COW, (("1.2.0", _by_write()),), "1.2.0"),
    "8_to_6": Story("1.0.2", _MOR, (("1.0.2", _down_to_6),), "0.15.0"),
    "8_to_9": Story("1.0.2", _MOR, (("1.1.1", _by_write()),), "1.1.1"),
    "9_to_8": Story("1.2.0", _MOR, (("1.2.0", _by("downgrade_table", "EIGHT")),), "1.0.2"),
    # No writes of 1.2.0 at version 6: with a plan pending it cannot build column_stats anew, and does not write to the
    # metadata table at all.
    "9_to_6": Story("1.2.0", _MOR, (("1.2.0", _by("downgrade_table", "SIX")),), "0.15.0"),
    "9_to_6_to_9": Story("1.2.0", _MOR, (("1.2.0", _by("downgrade_table", "SIX")), ("1.2.0", _by_write())), "1.2.0"),
    "9_to_6_cow": Story("1.2.0", _COW, (("1.2.0", _by("downgrade_table", "SIX")),), "0.15.0"),
}
