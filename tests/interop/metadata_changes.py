"""Every way in which Hudi drops, builds or renames a partition of the metadata table, as scripts for real Hudi.

`CHANGES` has a function for each, which makes a table in an empty folder with the calls of `Maker`.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from .peer import Peer
from .recipes import SMALL_FILTERS, WRITE_DEFAULTS

_METADATA = "hoodie.metadata."
_WRITE = "hoodie.datasource.write."
STATS, RECORD_INDEX = f"{_METADATA}index.column.stats.enable", f"{_METADATA}record.index.enable"
BLOOMS, COMPACT_AFTER = f"{_METADATA}index.bloom.filter.enable", f"{_METADATA}compact.max.delta.commits"
COLUMNS = f"{_METADATA}index.column.stats.column.list"
FEW_GROUPS = {f"{RECORD_INDEX.removesuffix('.enable')}.min.filegroup.count": "2"}
ALL = {STATS: "true", RECORD_INDEX: "true", BLOOMS: "true"}
LOCK = "hoodie.write.lock.provider"
IN_PROCESS = "org.apache.hudi.client.transaction.lock.InProcessLockProvider"


def rows(first: int, end: int, ts: int = 1) -> pa.Table:
    numbers = range(first, end)
    return pa.table(
        {
            "id": [f"k-{n:04d}" for n in numbers],
            "ts": pa.array([ts] * len(numbers), pa.int64()),
            "num": pa.array(numbers, pa.int64()),
            "val": [f"v-{n % 5}" for n in numbers],
            "part": [f"p{n % 2}" for n in numbers],
        }
    )


@dataclass
class Maker:
    """Writes one table with real Hudi."""

    peer: Peer
    path: Path
    table_type: str = "COPY_ON_WRITE"
    options: dict[str, str] = field(default_factory=dict)
    """Of each write from now on."""
    written: int = 0

    def set(self, options: Mapping[str, str]) -> None:
        self.options |= options

    @property
    def known(self) -> dict[str, str]:
        """The options of a write."""
        return {
            **WRITE_DEFAULTS,
            **SMALL_FILTERS,
            "hoodie.table.name": "trips",
            f"{_WRITE}recordkey.field": "id",
            f"{_WRITE}precombine.field": "ts",
            f"{_WRITE}partitionpath.field": "part",
            f"{_WRITE}table.type": self.table_type,
            "hoodie.compact.inline.max.delta.commits": "1000",
            **self.options,
        }

    def insert(self) -> None:
        """Ten new rows."""
        self.peer.write(self.path, rows(self.written, self.written + 10), self.known | {f"{_WRITE}operation": "insert"})
        self.written += 10

    def update(self) -> None:
        """Later values of the first five rows, and one new row."""
        changed = pa.concat_tables([rows(0, 5, ts=self.written + 2), rows(self.written, self.written + 1)])
        self.peer.write(self.path, changed, self.known | {f"{_WRITE}operation": "upsert"})
        self.written += 1

    def at_version(self, version: int) -> None:
        """Write a table of this version from now on."""
        self.set({"hoodie.write.table.version": str(version), "hoodie.write.auto.upgrade": "false"})

    def at_own_version(self) -> None:
        """Write what the release writes by its defaults, from now on."""
        for key in ("hoodie.write.table.version", "hoodie.write.auto.upgrade"):
            self.options.pop(key, None)

    def sql(self, *statements: str) -> None:
        """Run statements on the table `changed`, under the lock that builds of indexes ask for."""
        with self.settings({LOCK: IN_PROCESS}):
            self.peer.sql(f"create table changed using hudi location '{self.path}'")
            try:
                for statement in statements:
                    self.peer.sql(statement)
            finally:
                self.peer.sql("drop table if exists changed")

    def call(self, procedure: str, arguments: str = "") -> None:
        self.sql(f"call {procedure}(table => 'changed'{arguments and ', ' + arguments})")

    @contextmanager
    def settings(self, settings: Mapping[str, str]) -> Iterator[None]:
        for key, value in settings.items():
            self.peer.sql(f"set {key}={value}")
        try:
            yield
        finally:
            for key in settings:
                self.peer.sql(f"reset {key}")


Make = Callable[[Maker], None]


class Change(NamedTuple):
    """A script, and the releases of Hudi that can do this."""

    releases: tuple[str, ...]
    make: Make


CHANGES: dict[str, Change] = {}


def change(*releases: str) -> Callable[[Make], Make]:
    def add(make: Make) -> Make:
        CHANGES[make.__name__.strip("_")] = Change(releases, make)
        return make

    return add


def _make(maker: Maker, version: int, options: Mapping[str, str] = ALL) -> None:
    maker.at_version(version)
    maker.set(options)
    for _ in range(3):
        maker.insert()
    maker.update()


# ---- table versions


@change("1.2.0")
def _6_to_9(maker: Maker) -> None:
    _make(maker, 6)
    maker.call("upgrade_table", "to_version => 'NINE'")
    maker.at_own_version()


@change("1.2.0")
def _8_to_9_by_a_write(maker: Maker) -> None:
    _make(maker, 8)
    maker.at_own_version()
    maker.update()


@change("1.2.0")
def _9_to_8(maker: Maker) -> None:
    _make(maker, 9)
    maker.call("downgrade_table", "to_version => 'EIGHT'")
    maker.at_version(8)


@change("1.2.0")
def _9_to_6(maker: Maker) -> None:
    _make(maker, 9)
    maker.call("downgrade_table", "to_version => 'SIX'")
    maker.at_version(6)


@change("1.2.0")
def _9_to_6_and_a_write(maker: Maker) -> None:
    _9_to_6(maker)
    maker.update()


@change("1.0.2", "1.2.0")
def _8_to_6(maker: Maker) -> None:
    _make(maker, 8)
    maker.call("downgrade_table", "to_version => 'SIX'")
    maker.at_version(6)


def _9_to_6_to_9(maker: Maker) -> None:
    _9_to_6(maker)
    maker.call("upgrade_table", "to_version => 'NINE'")
    maker.at_own_version()


@change("1.2.0")
def _9_to_6_to_9_to_6(maker: Maker) -> None:
    _9_to_6_to_9(maker)
    maker.update()
    maker.call("downgrade_table", "to_version => 'SIX'")
    maker.at_version(6)


# ---- indexes that SQL drops and creates


def _record_index_dropped(maker: Maker) -> None:
    _make(maker, 8)
    maker.sql("drop index record_index on changed")
    maker.set({RECORD_INDEX: "false"})


@change("1.2.0")
def _record_index_dropped_and_built(maker: Maker) -> None:
    _record_index_dropped(maker)
    maker.sql("create index record_index on changed (id)")
    maker.set({RECORD_INDEX: "true"})


@change("1.2.0")
def _secondary_of_another_column(maker: Maker) -> None:
    _make(maker, 9)
    maker.sql("create index by_val on changed (val)")
    maker.update()
    maker.sql("drop index by_val on changed", "create index by_val on changed (num)")


@change("1.2.0")
def _expression_becomes_secondary(maker: Maker) -> None:
    _make(maker, 9)
    maker.sql("create index by_low on changed using bloom_filters(val) options(expr='lower')")
    maker.update()
    maker.sql("drop index by_low on changed", "create index by_low on changed (val)")


# ---- writers with other options


def _toggled(maker: Maker, version: int, option: str) -> None:
    _make(maker, version)
    maker.set({option: "false"})
    maker.update()
    maker.set({option: "true"})
    maker.update()


@change("1.2.0")
def _stats_off_and_on_9(maker: Maker) -> None:
    _toggled(maker, 9, STATS)


@change("0.15.0")
def _record_index_off_and_on_6(maker: Maker) -> None:
    _toggled(maker, 6, RECORD_INDEX)


@change("1.2.0")
def _blooms_off_and_on_9(maker: Maker) -> None:
    _toggled(maker, 9, BLOOMS)


@change("1.2.0")
def _columns_change_9(maker: Maker) -> None:
    _make(maker, 9, {**ALL, COLUMNS: "id,ts"})
    maker.set({COLUMNS: "id,ts,num,val"})
    maker.update()
    maker.set({COLUMNS: "num"})
    maker.update()


# ---- procedures


@change("1.2.0")
def _deleted_and_created_8(maker: Maker) -> None:
    _make(maker, 8)
    maker.call("delete_metadata_table")
    maker.call("create_metadata_table")
