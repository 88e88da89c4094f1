"""A table on a store: real Hudi and this package write it in turns, and both read the same each time."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_services.clock import SystemClock
from hudi_services.codecs.clustering_plan import decode_requested_replace
from hudi_services.snapshot import open_snapshot
from hudi_services.stores import open_storage

from . import ours
from .peer import EACH_DELTA_COMMIT, Peer
from .reading import METADATA_OFF, METADATA_ON
from .recipes import SMALL_FILTERS, WRITE_DEFAULTS

_METADATA = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "1",
    "hoodie.clean.automatic": "false",
}
_INDEXED = {"hoodie.metadata.record.index.enable": "true"}
_KNOWN = {
    **WRITE_DEFAULTS,
    **SMALL_FILTERS,
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "day",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    # Only when the test says so.
    "hoodie.compact.inline": "false",
}
_FEW_INSTANTS = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4"}
Rows = dict[str, tuple[str, int, str]]
"""Day, ordering value and text by key."""


class Table:
    """A table of Hudi at `url`, and what it must have; `our_urls`: the names by which we know it, in turn.

    It has a record index from the beginning, or from `index_by_us` on.
    """

    def __init__(self, peer: Peer, url: str, folder: Path, our_urls: Sequence[str] = (), *, indexed: bool) -> None:
        self.peer = peer
        self.url = url
        self.rows: Rows = {}
        self._our_urls = itertools.cycle(our_urls or [url])
        self._folder = folder
        self._writes = 0
        self._metadata = _METADATA | (_INDEXED if indexed else {})

    def by_hudi(self, first: int, end: int) -> None:
        self.peer.write(self.url, self._new(first, end), _KNOWN | self._metadata)

    def by_us(self, first: int, end: int) -> None:
        file = self._folder / "new.parquet"
        pq.write_table(self._new(first, end), file)
        self.ours("write", "--input", str(file), options=_KNOWN | self._metadata)

    def ours(self, command: str, *flags: str, options: Mapping[str, str] | None = None) -> None:
        """A command of ours, which does something."""
        ours.run(command, next(self._our_urls), *flags, options=options).ok()

    def index_by_us(self) -> None:
        self.ours("index-bootstrap")
        # From now on Hudi finds its keys by it.
        self._metadata |= _INDEXED | {"hoodie.index.type": "RECORD_INDEX"}

    def service_by_hudi(self, name: str, op: str) -> None:
        """Hudi's procedure; without the options it drops partitions of the metadata table."""
        options = ",".join(f"{key}={value}" for key, value in (self._metadata | EACH_DELTA_COMMIT).items())
        self.peer.sql(f"call {name}(path => '{self.url}', op => '{op}', options => '{options}')")

    def clean_by_hudi(self) -> None:
        options = ",".join(f"{key}={value}" for key, value in self._metadata.items())
        policy = "clean_policy => 'KEEP_LATEST_COMMITS', retain_commits => 1"
        self.procedure("run_clean", f"{policy}, options => '{options}'")

    def procedure(self, name: str, arguments: str) -> None:
        """One of Hudi's procedures that know a table by its name."""
        self.peer.sql(f"create table rides using hudi location '{self.url}'")
        try:
            self.peer.sql(f"call {name}(table => 'rides', {arguments})")
        finally:
            self.peer.sql("drop table rides")

    def _new(self, first: int, end: int) -> pa.Table:
        self._writes += 1
        new = {f"k{n}": (f"d {n % 3}é", self._writes, f"{n} of {self._writes}") for n in range(first, end)}
        self.rows |= new
        columns = [[*new], *(list(column) for column in zip(*new.values(), strict=True))]
        return pa.table(dict(zip(("id", "day", "ts", "text"), columns, strict=True)))

    def check(self) -> None:
        """What Hudi reads, with the metadata table and without, and that ours finds nothing wrong."""
        for options in (METADATA_ON, METADATA_OFF):
            self.check_rows(self.peer.rows(self.url, options))
        done = ours.run("validate", next(self._our_urls), "--strict")
        assert done.code == 0, done.report

    def check_rows(self, read: pa.Table) -> None:
        """That a reader has read what the table must have."""
        rows = read.to_pylist()
        assert {row["id"]: (row["day"], row["ts"], row["text"]) for row in rows} == self.rows
        assert len(rows) == len(self.rows)


def planned_files(url: str) -> list[str]:
    """The files of the pending clustering plan, as the plan names them."""
    table = open_storage(url)
    names = [file.path for file in table.list_dir(".hoodie/timeline")[0] if file.path.endswith(".clustering.requested")]
    plan = decode_requested_replace(table.read(max(names)), max(names)).plan
    assert plan is not None
    return sorted(path for one in plan.slices for path in (one.data_file, *one.log_files))


def in_turns(table: Table, check: Callable[[], None]) -> None:
    """Hudi's upserts and services, and ours, each after the other; `check` comes after each of them."""
    table.by_hudi(0, 60)
    table.by_hudi(20, 50)
    check()
    table.by_us(40, 80)
    table.by_hudi(70, 90)
    check()

    # Compactions: one that Hudi has planned, and one of ours.
    table.service_by_hudi("run_compaction", "schedule")
    table.ours("compact")
    check()
    table.by_hudi(10, 30)
    table.ours("compact", "--mode", "scheduleAndExecute", options=EACH_DELTA_COMMIT)
    check()

    # Clusterings: ours of Hudi's plan, and Hudi's of ours; both plans name the same files in the same way.
    table.service_by_hudi("run_clustering", "schedule")
    assert_named_as(table.url)
    table.ours("execute")
    check()
    table.by_hudi(0, 100)
    table.by_us(0, 100)
    # A plan of ours for Hudi names the table as Hudi does.
    ours.run("schedule", table.url).ok()
    assert_named_as(table.url)
    table.service_by_hudi("run_clustering", "execute")
    check()

    table.ours("clean", options={"hoodie.clean.commits.retained": "1"})
    check()
    for first in (0, 30, 60):
        table.by_us(first, first + 30)
    table.ours("archive", options=_FEW_INSTANTS)
    check()
    table.by_hudi(50, 120)
    table.by_us(90, 130)
    table.ours("archive", options=_FEW_INSTANTS)
    table.by_hudi(50, 120)
    check()

    # Plans of cleans and rollbacks name files by their URLs.
    table.clean_by_hudi()
    check()
    before = dict(table.rows)
    table.by_hudi(100, 130)
    table.ours("rollback", "--completed", "--instant", newest_write(table.url))
    table.rows = dict(before)
    check()
    table.by_us(100, 130)
    table.procedure("rollback_to_instant", f"instant_time => '{newest_write(table.url)}'")
    table.rows = before
    check()
    table.by_hudi(110, 140)
    check()


def newest_write(url: str) -> str:
    """The requested time of the newest completed write."""
    return max(one.ts for one in open_snapshot(open_storage(url), SystemClock()).timeline.completed_writes())


def assert_named_as(url: str) -> None:
    """The pending clustering plan names its files by this URL of the table."""
    planned = planned_files(url)
    assert planned and all(one.startswith(f"{open_storage(url).root}/") for one in planned)
