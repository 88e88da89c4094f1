"""Runs that die on a real store, whose next run repairs what they have left, and locks that two want there."""

import multiprocessing
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_services
from hudi_services.clock import SystemClock
from hudi_services.commit import lease
from hudi_services.concurrency import at_once
from hudi_services.errors import NothingToDo
from hudi_services.file_cache import shared_cache
from hudi_services.jobs.orphan_files import manage_orphan_files
from hudi_services.options import resolve
from hudi_services.runs.request import OrphanFilesRequest
from hudi_services.snapshot import Snapshot, open_snapshot
from hudi_services.storage import Storage
from hudi_services.stores import open_storage
from hudi_services.stores.options import StorageOptions, Value

from ..servers.hdfs import hdfs_server
from ..servers.started import ATOMIC, ON_ATOMIC, Servers, deep_on
from . import broken_runs
from .broken_runs import ALONE, EACH_COMMIT, Files, compact_twice, made_table, rows_in
from .dying_storage import dying
from .faulty_storage import Killed, Life
from .repairs import NO_HEARTBEAT
from .request_scenarios import rows
from .rides import FILTERS
from .test_time_limit import SECONDS, Clock, clock

__all__ = ["clock"]

pytestmark = pytest.mark.threads

KEEP_ONE = {"hoodie.clean.commits.retained": "1"}
SINGLE = {
    "hoodie.clustering.plan.strategy.class": "single_file",
    "hoodie.clustering.plan.strategy.sort.columns": "id",
}
LOCKED = broken_runs.LOCKED | {
    "hoodie.write.lock.storage.validity.timeout.secs": "10",
    "hoodie.write.lock.storage.renew.interval.secs": "1",
    "hoodie.write.num.retries.on.conflict.failures": "50",
}
STORES = (*ATOMIC, "hdfs")
EACH = {"versitygw": 3, "azurite": 5, "gcs": 5, "hdfs": 24}
"""A run is killed at each of so many writes: at few where writes take long, and on each store at others."""


@dataclass(frozen=True)
class Place:
    """The URL of a table on a server, and what reaches it."""

    url: str
    options: dict[str, Value]

    @property
    def storage(self) -> Storage:
        return open_storage(self.url, StorageOptions(self.options) if self.options else None)

    @property
    def snapshot(self) -> Snapshot:
        return open_snapshot(self.storage, SystemClock())

    def table(self, life: Life | None = None, options: Mapping[str, str] = NO_HEARTBEAT) -> hudi_services.Table:
        """The table, as a new process knows it; whoever uses it has this life. All who are pending count as dead."""
        shared_cache().forget()
        lease._given_back.clear()
        found = hudi_services.open(
            self.url, storage_options=self.options or None, engine="local", options={**FILTERS, **options}
        )
        if life is not None:
            found._storage = dying(found._storage, life)
        return found

    def rows(self) -> pa.Table:
        """What readers see, without the columns that say who wrote it."""
        return rows_in(self.storage)


@dataclass(frozen=True, slots=True)
class Deed:
    """What is done on a table after it was `prepared`, and the columns that the rows keep."""

    run: Callable[[hudi_services.Table], Any]
    prepared: Callable[[hudi_services.Table], Any] = lambda table: None


DEEDS = {
    "write": Deed(lambda table: table.upsert(rows(range(5, 7), 30), options=ALONE)),
    "execute": Deed(lambda table: table.execute_clustering(), lambda table: table.plan_clustering(options=SINGLE)),
    "compact": Deed(lambda table: table.execute_compaction(), lambda table: table.plan_compaction(options=EACH_COMMIT)),
    "clean": Deed(lambda table: table.clean(options=KEEP_ONE), compact_twice),
}


@dataclass(frozen=True)
class Made:
    """The files of a table that is prepared for a deed, its rows before and after the deed, and how many files this
    writes, all of a local folder."""

    files: Files
    before: pa.Table
    after: pa.Table
    writes: int

    @classmethod
    def of(cls, deed: Deed, folder: Path) -> "Made":
        deed.prepared(made_table(folder, 4))
        place, life = Place(str(folder), {}), Life()
        storage, before = place.storage, place.rows()
        files = {file.path: storage.read(file.path) for file in storage.list_tree("")}
        deed.run(place.table(life))
        return cls(files, before, place.rows(), len(life.log))


Maker = Callable[[str], Made]
Placer = Callable[[Made], Place]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Maker:
    """A merge-on-read table for each deed."""
    return cache(lambda name: Made.of(DEEDS[name], tmp_path_factory.mktemp("made") / "table"))


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with hdfs_server(tmp_path_factory.mktemp("hdfs")) as url:
        yield url


@pytest.fixture(params=[*ON_ATOMIC, pytest.param("hdfs", marks=deep_on("hdfs"))])
def server(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def placed(server: str, request: pytest.FixtureRequest) -> Placer:
    """Puts a table on the server, each time into a new folder."""
    if server == "hdfs":
        root, options = f"{request.getfixturevalue('hdfs')}/lake", dict[str, Value]()
    else:
        servers: Servers = request.getfixturevalue("servers")
        bucket = servers.bucket(server)
        root, options = bucket.url, bucket.options_at(bucket.endpoint)

    def at(table: Made) -> Place:
        place = Place(f"{root}/{uuid.uuid4().hex}", options)
        storage = place.storage
        at_once(lambda path: storage.put(path, table.files[path]), list(table.files))
        return place

    return at


def mended(place: Place, deed: Deed, expected: pa.Table) -> None:
    """Do it again: it ends, nothing is left of the first run, and readers see what they must."""
    deed.run(place.table())
    place.table().recover(apply=True)
    found = place.snapshot
    assert not found.timeline.pending()
    assert place.table().validate(strict=True).ok
    assert place.rows().equals(expected)
    # A run that is killed when it is done leaves its notes.
    assert {f"{one} of an attempt that has ended" for one in ("markers", "checkpoints")} >= _orphans(place)


def _orphans(place: Place) -> set[str]:
    """Why files of the table count as orphans."""
    wanted = OrphanFilesRequest(base_path=place.url, options=resolve([]), min_age_minutes=0)
    try:
        return {row["reason"] for row in manage_orphan_files(wanted, place.storage).document()["tables"]["attempts"]}
    except NothingToDo:
        return set()


@pytest.mark.parametrize("name", DEEDS)
def test_a_run_is_killed(name: str, server: str, made: Maker, placed: Placer) -> None:
    deed, table = DEEDS[name], made(name)
    assert table.writes > 10 and (name == "write") != table.after.equals(table.before)
    each = EACH[server]
    for survived in range(STORES.index(server) * each // len(STORES), table.writes, each):
        place, life = placed(table), Life(survived)
        with suppress(Killed):
            deed.run(place.table(life))
        # Stores differ by a few writes.
        assert life.is_over or survived > table.writes - 5
        seen = place.rows()
        assert seen.equals(table.before) or seen.equals(table.after), f"after {life.log[-1:]}"
        mended(place, deed, table.after)


def test_finished_groups_are_taken_over(made: Maker, placed: Placer) -> None:
    """Of a clustering that is killed when one group is finished."""
    table = made("execute")
    place = placed(table)
    with pytest.raises(Killed):
        DEEDS["execute"].run(place.table(Life(last=r"/group-[0-9a-f]+\.json$")))
    assert DEEDS["execute"].run(place.table()).report["resumed_groups"] == 1
    assert place.rows().equals(table.after) and place.table().validate(strict=True).ok


def test_the_time_is_over(made: Maker, placed: Placer, clock: Clock) -> None:
    """What is finished is committed; or, all or nothing, kept for the next run."""
    table, limit = made("execute"), f"{SECONDS + 5}s"
    first, second = placed(table), placed(table)
    with pytest.raises(hudi_services.PartlyDone):
        first.table().execute_clustering(time_limit=limit)
    assert clock.groups == 1 and not first.snapshot.timeline.pending()
    clock.now -= SECONDS
    with pytest.raises(hudi_services.PartlyDone):
        second.table().execute_clustering(time_limit=limit, all_or_nothing=True)
    assert clock.groups == 2 and second.snapshot.timeline.pending()
    assert second.table().execute_clustering(all_or_nothing=True).report["resumed_groups"] == 1
    for place in (first, second):
        assert place.rows().equals(table.before) and place.table().validate(strict=True).ok


def _upserts(place: Place, first: int) -> None:
    for number in range(3):
        place.table(options=LOCKED).upsert(rows(range(first + number, first + number + 1), 40), options=ALONE)


def test_two_processes_want_the_lock(made: Maker, placed: Placer) -> None:
    """Both write to the same file groups, under a lock of the store."""
    place = placed(made("write"))
    commits = len(place.snapshot.timeline.completed_writes())
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(partial(_upserts, place), (0, 5)))
    table = place.table()
    stamps = dict(zip(*(place.rows()[name].to_pylist() for name in ("id", "ts")), strict=True))
    written = [*range(3), *range(5, 8)]
    assert all(stamps[f"k{key:06}"] == 40 for key in written)
    assert len(place.snapshot.timeline.completed_writes()) == commits + len(written)
    assert table.validate(strict=True).ok and not place.snapshot.timeline.pending()


def test_who_holds_the_lock_dies(made: Maker, placed: Placer) -> None:
    """The next one waits until the lock is no longer valid."""
    place = placed(made("write"))
    with pytest.raises(Killed):
        place.table(Life(last="/table_lock.json$"), LOCKED).upsert(rows(range(1), 40), options=ALONE)
    done = place.table(options=LOCKED).upsert(rows(range(1), 41), options=ALONE)
    assert done.ok
    with suppress(NothingToDo):
        place.table(options=LOCKED | NO_HEARTBEAT).recover(apply=True)
    assert place.table().validate(strict=True).ok and not place.snapshot.timeline.pending()
