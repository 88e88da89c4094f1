"""A table on HDFS: real Hudi and this package write it in turns."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_services.codecs.clustering_plan import decode_requested_replace
from hudi_services.storage import Storage
from hudi_services.stores import open_storage

from ..servers.hdfs import hdfs_server
from . import ours
from .peer import EACH_DELTA_COMMIT, Peer
from .reading import METADATA_OFF, METADATA_ON
from .recipes import SMALL_FILTERS, WRITE_DEFAULTS

pytestmark = [pytest.mark.deep, pytest.mark.releases("1.2.0")]

_METADATA = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "1",
    "hoodie.clean.automatic": "false",
}
_KNOWN = {
    **WRITE_DEFAULTS,
    **SMALL_FILTERS,
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "day",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    **_METADATA,
}
Rows = dict[str, tuple[str, int, str]]
"""Day, ordering value and text by key."""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with hdfs_server(tmp_path_factory.mktemp("hdfs")) as url:
        yield url


class Table:
    """A table and what it must have."""

    def __init__(self, peer: Peer, url: str, folder: Path) -> None:
        self.peer = peer
        self.url = url
        self.rows: Rows = {}
        self._folder = folder
        self._writes = 0

    def by_hudi(self, first: int, end: int, **options: str) -> None:
        self.peer.write(self.url, self._new(first, end), _KNOWN | options)

    def by_us(self, first: int, end: int, options: Mapping[str, str] | None = None) -> None:
        file = self._folder / "new.parquet"
        pq.write_table(self._new(first, end), file)
        ours.run("write", self.url, "--input", str(file), options=_KNOWN | dict(options or {})).ok()

    def service_by_hudi(self, name: str, op: str) -> None:
        """Hudi's procedure; without the options it drops partitions of the metadata table."""
        options = ",".join(f"{key}={value}" for key, value in (_METADATA | EACH_DELTA_COMMIT).items())
        self.peer.sql(f"call {name}(path => '{self.url}', op => '{op}', options => '{options}')")

    def _new(self, first: int, end: int) -> pa.Table:
        self._writes += 1
        new = {f"k{n}": (f"d {n % 3}é", self._writes, f"{n} of {self._writes}") for n in range(first, end)}
        self.rows |= new
        columns = [[*new], *(list(column) for column in zip(*new.values(), strict=True))]
        return pa.table(dict(zip(("id", "day", "ts", "text"), columns, strict=True)))

    def check(self) -> None:
        """What Hudi reads, with the metadata table and without, and that ours finds nothing wrong."""
        for options in (METADATA_ON, METADATA_OFF):
            read = self.peer.rows(self.url, options).to_pylist()
            assert {row["id"]: (row["day"], row["ts"], row["text"]) for row in read} == self.rows
            assert len(read) == len(self.rows)
        done = ours.run("validate", self.url, "--strict")
        assert done.code == 0, done.report


def planned_files(url: str) -> list[str]:
    """The base files of the pending clustering plan, as the plan names them."""
    table = open_storage(url)
    names = [file.path for file in table.list_dir(".hoodie/timeline")[0] if file.path.endswith(".clustering.requested")]
    plan = decode_requested_replace(table.read(max(names)), max(names)).plan
    assert plan is not None
    return sorted(one.data_file for one in plan.slices)


def _files_of_every_folder(store: Storage) -> list[str]:
    """A file of each folder of the table."""
    return list({file.path.rpartition("/")[0]: file.path for file in store.list_tree("")}.values())


def test_in_turns(peer: Peer, lake: str, tmp_path: Path) -> None:
    url = f"{lake}/lake/rides"
    table = Table(peer, url, tmp_path)
    table.by_hudi(0, 60)
    table.by_hudi(20, 50)
    table.check()
    table.by_us(40, 80)
    table.by_hudi(70, 90)
    table.check()

    # Compactions: one that Hudi has planned, and one of ours.
    table.service_by_hudi("run_compaction", "schedule")
    ours.run("compact", url).ok()
    table.check()
    table.by_hudi(10, 30)
    ours.run("compact", url, "--mode", "scheduleAndExecute", options=EACH_DELTA_COMMIT).ok()
    table.check()

    # Clusterings: ours of Hudi's plan, and Hudi's of ours; both plans name the same files in the same way.
    table.service_by_hudi("run_clustering", "schedule")
    by_hudi = planned_files(url)
    assert by_hudi and all(one.startswith(f"{open_storage(url).root}/") for one in by_hudi)
    ours.run("execute", url).ok()
    table.check()
    table.by_hudi(0, 100)
    table.by_us(0, 100)
    ours.run("schedule", url).ok()
    assert all(one.startswith(f"{open_storage(url).root}/") for one in planned_files(url))
    table.service_by_hudi("run_clustering", "execute")
    table.check()

    ours.run("clean", url, options={"hoodie.clean.commits.retained": "1"}).ok()
    table.check()
    for first in (0, 30, 60):
        table.by_us(first, first + 30)
    ours.run("archive", url, options={"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4"}).ok()
    table.check()
    table.by_hudi(50, 120)
    table.by_us(90, 130)
    ours.run("archive", url, options={"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4"}).ok()
    table.by_hudi(50, 120)
    table.check()

    # What killed processes leave is in nobody's way.
    store = open_storage(url)
    assert store.list_staged() == []
    left = [f"{path}#{number:020}" for number, path in enumerate(_files_of_every_folder(store))]
    left.append(".hoodie/timeline/history/._version_.replaced#00000000000000000001/_version_#00000000000000000002")
    for path in left:
        store.put(path, b"a part")
    assert [file.path for file in store.list_staged()] == sorted(left)
    table.by_hudi(20, 130)
    table.by_us(10, 140)
    ours.run("compact", url, "--mode", "scheduleAndExecute", options=EACH_DELTA_COMMIT).ok()
    table.by_hudi(0, 20)
    table.check()
