"""The names that Hadoop users have for one store: a plan names files by the URL of who made it, and whoever has another
URL of the table carries it out."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from obstore.store import MemoryStore

import hudi_services
from hudi_services.clock import SystemClock
from hudi_services.codecs.rollback_plan import decode_rollback_plan, encode_rollback_plan
from hudi_services.errors import ConfigError
from hudi_services.schemes import SCHEMES, Scheme
from hudi_services.snapshot import Snapshot, open_snapshot
from hudi_services.storage import Storage
from hudi_services.stores import object_store, open_storage
from hudi_services.urls import scheme_of

from .dead_writes import appended
from .dying_storage import Life, dying
from .faulty_storage import Killed
from .repairs import NO_HEARTBEAT
from .request_scenarios import rows
from .rides import create
from .tables import merged_rows_of

ALONE = {"hoodie.table.services.enabled": "false"}
EACH_COMMIT = {"hoodie.compact.inline.max.delta.commits": "1"}
KEEP_ONE = {"hoodie.clean.commits.retained": "1"}
DFS, BLOB = "lake@account.dfs.core.windows.net", "lake@account.blob.core.windows.net"
NAMES = {
    "s3": ("s3://lake/t", "s3a://lake/t", "s3n://lake/t"),
    "gs": ("gs://lake/t", "gs://lake/t/"),
    "azure": (
        f"abfs://{DFS}/t",
        f"abfss://{DFS}/t",
        f"wasb://{BLOB}/t",
        f"wasbs://{BLOB}/t",
        "az://lake/t",
        "azure://lake/t",
    ),
    "hdfs": ("hdfs://namenode:8020/lake/t", "hdfs://service/lake/t", "hdfs:///lake/t", "viewfs://table/mount/t"),
}
"""The URLs of one table in each store."""
PAIRS = [
    pytest.param(first, names[(number + 1) % len(names)], id=f"{first.partition(':')[0]}-{number}")
    for names in NAMES.values()
    for number, first in enumerate(names)
]


@pytest.fixture(autouse=True)
def in_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All URLs lead to one place in memory: that they lead to one in a real store is shown where that is started."""
    place: Any = MemoryStore()
    monkeypatch.setattr(object_store, "client", lambda *_, **__: place)
    for scheme in ("hdfs", "viewfs"):
        known = SCHEMES[scheme]
        monkeypatch.setitem(SCHEMES, scheme, Scheme(SCHEMES["s3"].storage, scheme, known.authority))
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    yield


@dataclass(frozen=True)
class Named:
    """The table by one of its names."""

    url: str

    @property
    def storage(self) -> Storage:
        return open_storage(self.url)

    @property
    def table(self) -> hudi_services.Table:
        return hudi_services.open(self.url, engine="local", options=ALONE | NO_HEARTBEAT)

    @property
    def snapshot(self) -> Snapshot:
        return open_snapshot(self.storage, SystemClock())

    def begin(self, deed: Callable[[hudi_services.Table], object], last: str) -> bytes:
        """Do it, and be killed when the first file with this end of its name is written; its content."""
        table = self.table
        table._storage = dying(table._storage, Life(last=f"{re.escape(last)}$"))
        with pytest.raises(Killed):
            deed(table)
        return self.storage.read(self._newest(last))

    def rename(self, last: str, change: Callable[[str], str]) -> None:
        """Change the names of files in the newest rollback plan."""
        path = self._newest(last)
        plan = decode_rollback_plan(self.storage.read(path), path)
        requests = tuple(replace(one, files=tuple(map(change, one.files))) for one in plan.requests)
        self.storage.put(path, encode_rollback_plan(replace(plan, requests=requests), "1.2.0"))

    def _newest(self, last: str) -> str:
        return max(file.path for file in self.storage.list_dir(".hoodie/timeline")[0] if file.path.endswith(last))


def base_files_of(storage: Storage) -> list[str]:
    files = storage.list_tree("")
    return [file.path for file in files if file.name.endswith(".parquet") and not file.path.startswith(".hoodie")]


@pytest.mark.thorough
@pytest.mark.spread(6)
@pytest.mark.parametrize(("theirs", "ours"), PAIRS)
def test_plans_that_name_the_store_in_another_way(theirs: str, ours: str) -> None:
    create(theirs, table_type="MERGE_ON_READ")
    there, here = Named(theirs), Named(ours)
    name = f"{there.storage.root}/".encode()
    for first in (0, 10):
        there.table.bulk_insert(rows(range(first, first + 10), 1))
    for stamp in (2, 3):
        there.table.upsert(rows(range(0, 20, 5), stamp))
    expected = merged_rows_of(here.snapshot).drop_columns(["_hoodie_commit_time", "_hoodie_commit_seqno"])

    def check() -> None:
        for one in (there, here):
            assert one.table.validate(strict=True).ok
            found = merged_rows_of(one.snapshot).drop_columns(["_hoodie_commit_time", "_hoodie_commit_seqno"])
            assert found.equals(expected)
            assert not one.snapshot.timeline.pending()

    # As Hudi writes them: a compaction has bare names, and a clustering whole URLs.
    planned = there.table.plan_compaction(options=EACH_COMMIT)
    plan = there.storage.read(f".hoodie/timeline/{planned.instant}.compaction.requested")
    assert b"://" not in plan and b".parquet" in plan
    here.table.execute_compaction(planned.instant)
    check()
    planned = there.table.plan_clustering()
    assert name in there.storage.read(f".hoodie/timeline/{planned.instant}.clustering.requested")
    assert here.table.execute_clustering(planned.instant).state is hudi_services.RunState.COMPLETED
    check()

    for stamp in (4, 5):
        here.table.upsert(rows(range(0, 20, 5), 1 + stamp))
        here.table.compact(options=EACH_COMMIT)
    expected = merged_rows_of(here.snapshot).drop_columns(["_hoodie_commit_time", "_hoodie_commit_seqno"])
    stored = len(base_files_of(here.storage))
    assert name in there.begin(lambda table: table.clean(options=KEEP_ONE), ".clean.requested")
    assert here.table.clean(options=KEEP_ONE).ok
    check()
    assert len(base_files_of(here.storage)) < stored
    (cleaned,) = (one for one in here.storage.list_dir(".hoodie/timeline")[0] if one.path.endswith(".clean"))
    # What is done has bare names.
    assert b"://" not in here.storage.read(cleaned.path)

    for change in (lambda path: path, without_scheme):
        ts = str(int(there.snapshot.timeline.latest_time()) + 1)
        appended(there.snapshot, ts, there.snapshot.view.live_slices()[0])
        plan = there.begin(lambda table, ts=ts: table.rollback(ts), ".rollback.requested")
        assert name in plan
        there.rename(".rollback.requested", change)
        assert here.table.recover(apply=True).ok
        check()


def test_all_schemes_are_here() -> None:
    """Local folders have one name; that each of these stores lets one of many create a file is in test_store_races,
    for local folders in test_store_contract."""
    named = {scheme_of(url) for urls in NAMES.values() for url in urls}
    assert named == set(SCHEMES) - {"", "file"}


@pytest.mark.parametrize(
    "scheme", ["http", "https", "ftp", "webhdfs", "swebhdfs", "o3fs", "ofs", "oss", "cosn", "obs", "dbfs", "nfs", "adl"]
)
def test_other_stores_are_refused(scheme: str) -> None:
    for act in (hudi_services.open, hudi_services.create, open_storage):
        with pytest.raises(ConfigError, match="is not supported: a store with atomic create-if-absent is needed"):
            act(f"{scheme}://lake/t")


def without_scheme(url: str) -> str:
    """As Hudi 1.2.0 names files in rollback plans (seen on s3a): //lake/t/file."""
    return url.partition(":")[2]
