"""A store that the package does not know is a class and a row: every service works on it, or is refused at first."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_services
from hudi_services.cli.app import run
from hudi_services.engine import LocalEngine
from hudi_services.errors import ConfigError
from hudi_services.jobs import clustering
from hudi_services.jobs.orphan_files import manage_orphan_files
from hudi_services.options import resolve
from hudi_services.runs.report import RunState
from hudi_services.runs.request import Mode, OrphanFilesMode, OrphanFilesRequest
from hudi_services.stores import open_storage
from hudi_services.stores.options import StorageOptions

from ..servers.bucket import upload
from .dict_storage import Files, registered
from .rides import FILTERS
from .tables import request, rows_at, unpack

URL, NEW = "dict://lake/rides", "dict://lake/new"
DEFINITION = {"name": "rides", "record_key": "id", "partition_by": "day", "ordering": "ts", "engine": "local"}
OPTIONS = {
    **FILTERS,
    "hoodie.keep.max.commits": "5",
    "hoodie.keep.min.commits": "4",
    "hoodie.clean.commits.retained": "1",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hudi.services.abandoned.after.minutes": "0",
}


@dataclass(frozen=True)
class Made:
    """The files of a table, and instants of it."""

    files: Files
    newest: str
    clustering: str


def rows(*keys: str, ts: int = 9) -> pa.Table:
    days = pa.array([f"d{len(key)}" for key in keys])
    return pa.table({"id": pa.array(keys), "ts": pa.array([ts] * len(keys), pa.int64()), "day": days})


def opened() -> hudi_services.Table:
    return hudi_services.open(URL, engine="local", options=OPTIONS)


TABLES = ((9, "COPY_ON_WRITE"), (9, "MERGE_ON_READ"), (6, "COPY_ON_WRITE"))


@functools.cache
def made_once(version: int, kind: str) -> Made:
    with registered() as files:
        table = hudi_services.create(URL, table_version=version, table_type=kind, options=OPTIONS, **DEFINITION)
        for number in range(6):
            table.upsert(rows("a", "bb", f"c{number}" * 3, ts=number))
        clustering = table.cluster().instant
        table.upsert(rows("a"))
        newest = table.upsert(rows("a")).instant
        assert newest is not None and clustering is not None
        return Made(dict(files), newest, clustering)


def orphan_file(made: Made) -> None:
    """A file that no instant knows."""
    storage = open_storage(URL)
    stored = next(file.path for file in storage.list_tree("d1") if file.name.endswith(".parquet"))
    dead = int(made.newest) - 1
    storage.create(f"d1/11111111-1111-1111-1111-111111111111-0_0-1-1_{dead}.parquet", storage.read(stored))


def dead_write(made: Made) -> None:
    """The newest commit is one whose writer was killed just before it completed it."""
    storage = open_storage(URL)
    (done,) = (
        file.path
        for file in storage.list_tree(".hoodie")
        if file.name.startswith(made.newest) and file.name.endswith("commit") and "metadata" not in file.path
    )
    storage.delete(done)


def lost_file(made: Made) -> None:
    """A file that the clustering has replaced is gone, and the metadata table has it."""
    storage = open_storage(URL)
    files = [file for file in storage.list_tree("d1") if file.name.endswith(".parquet")]
    storage.delete(next(file.path for file in files if made.clustering not in file.name))


def last(action: str) -> str:
    timeline = opened().timeline()
    return str(max(one["instant"] for one in timeline.to_pylist() if one["action"] == action))


def quarantine(made: Made) -> object:
    wanted = OrphanFilesRequest(
        base_path=URL, options=resolve([("test", OPTIONS)]), mode=OrphanFilesMode.QUARANTINE, min_age_minutes=0
    )
    return manage_orphan_files(wanted)


Deed = Callable[[Made], object]
CHANGES: dict[str, Deed] = {
    "plan_clustering": lambda made: opened().plan_clustering(),
    "execute_clustering": lambda made: opened().execute_clustering(),
    "cluster": lambda made: opened().cluster(),
    "publish late": lambda made: opened().cluster(publish_late=True),
    "compact": lambda made: opened().compact(),
    "clean": lambda made: opened().clean(),
    "archive": lambda made: opened().archive(),
    "rollback": lambda made: opened().rollback(made.newest),
    "undo": lambda made: opened().undo(last("replacecommit")),
    "recover": lambda made: opened().recover(apply=True),
    "repair": lambda made: opened().validate(repair=True),
    "build_index": lambda made: opened().build_index(),
    "insert": lambda made: opened().insert(rows("new")),
    "upsert": lambda made: opened().upsert(rows("a", "new")),
    "delete": lambda made: opened().delete(rows("a")),
    "insert_overwrite": lambda made: opened().insert_overwrite(rows("a")),
    "insert_overwrite_table": lambda made: opened().insert_overwrite_table(rows("a")),
    "delete_partitions": lambda made: opened().delete_partitions(["d1"]),
    "bulk_insert": lambda made: opened().bulk_insert(rows("new")),
    "quarantine": quarantine,
    "create": lambda made: hudi_services.create(NEW, options=OPTIONS, **DEFINITION),
}
PREPARATIONS: dict[str, Deed] = {
    "execute_clustering": lambda made: opened().plan_clustering(),
    "quarantine": orphan_file,
    "rollback": dead_write,
    "undo": lambda made: opened().cluster(),
    "recover": dead_write,
    "repair": lost_file,
}


def on_tables(*changes: str) -> pytest.MarkDecorator:
    """A test of changes on every table that can have them; in the quick run on one each, in turns."""
    cases = []
    for number, change in enumerate(changes):
        tables = [table for table in TABLES if change != "compact" or table[1] == "MERGE_ON_READ"]
        for table in tables:
            marks = [pytest.mark.deep] * (table != tables[number % len(tables)])
            cases.append(pytest.param(table, change, id=f"{table[0]}-{table[1]}-{change}", marks=marks))
    return pytest.mark.parametrize(("table", "change"), cases)


@pytest.fixture
def made(table: tuple[int, str]) -> Made:
    return made_once(*table)


@pytest.fixture
def files(made: Made, change: str) -> Iterator[Files]:
    """The files of the store, with something to do for the change."""
    with registered() as found:
        found.update(made.files)
        PREPARATIONS.get(change, lambda _: None)(made)
        yield found


@pytest.mark.thorough
@on_tables(*CHANGES)
def test_every_change(change: str, made: Made, files: Files) -> None:
    before = dict(files)
    CHANGES[change](made)
    assert files != before
    checked = hudi_services.open(NEW if change == "create" else URL, engine="local").validate(strict=True)
    assert checked.ok


@on_tables(*CHANGES)
def test_every_change_is_refused_where_no_file_is_created_atomically(change: str, made: Made, files: Files) -> None:
    before = dict(files)
    with (
        registered("WithoutAtomicCreate"),
        pytest.raises(ConfigError, match=r"needs a store that creates a file only where there is none, .*dict://lake"),
    ):
        CHANGES[change](made)
    assert files == before


@on_tables("read")
def test_what_only_reads_works_everywhere(change: str, made: Made, files: Files) -> None:
    before = dict(files)
    with registered("WithoutAtomicCreate"):
        table = opened()
        assert table.validate(strict=True).ok
        assert table.slices().num_rows > 0 and table.files().num_rows > 0 and table.timeline().num_rows > 0
        for look in (table.plan_clustering, table.clean, table.archive):
            assert look(dry_run=True).ok
        assert run(["validate", "--base-path", URL]) == 0
    assert files == before


@on_tables("archive")
def test_an_archive_that_must_replace_a_file(change: str, made: Made, files: Files) -> None:
    """Layout 1 of the timeline only appends."""
    before = dict(files)
    with registered("WithoutConditionalReplace"):
        if opened().version < 8:
            assert opened().archive().ok
            return
        with pytest.raises(ConfigError, match="the archive of a timeline needs a store that replaces a file only if"):
            opened().archive()
    assert files == before


def test_a_table_that_hudi_wrote(tmp_path: Path) -> None:
    upload_to = "dict://lake/hudi"
    with registered():
        upload(unpack("1.2.0", tmp_path), upload_to)
        before = rows_at(upload_to)
        ts = clustering.schedule(request(upload_to, Mode.SCHEDULE)).instant
        report = clustering.execute(request(upload_to, Mode.EXECUTE), engine=LocalEngine())
        assert (report.state, report.instant) == (RunState.COMPLETED, ts)
        assert rows_at(upload_to).equals(before)
        assert hudi_services.open(upload_to, engine="local").validate(strict=True).ok


def test_schemes_that_nobody_has_a_row_for() -> None:
    for scheme in ("dict", "ofs"):
        with pytest.raises(ConfigError, match=f"the scheme of {scheme}://lake/rides is not supported") as told:
            open_storage(f"{scheme}://lake/rides")
        assert "s3:" in told.value.hint and "dict:" not in told.value.hint
    with registered(), pytest.raises(ConfigError, match="that of dict://lake/rides takes none"):
        open_storage(URL, StorageOptions({"region": "r"}))
