"""Another number of file groups for the record index: right, beside writers, killed at any write, and resumed."""

import functools
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hudi_services
from hudi_services.cli.app import run
from hudi_services.engine import LocalEngine
from hudi_services.errors import CheckFailed, ConflictError, NeedsRecovery, NothingToDo, UnsupportedTable
from hudi_services.indexing import entry_split
from hudi_services.indexing import rescale as rescale_module
from hudi_services.indexing.checkpoints import RESCALE_FOLDER
from hudi_services.jobs import validate
from hudi_services.jobs.index_bootstrap import index_bootstrap
from hudi_services.jobs.index_drop import index_drop
from hudi_services.jobs.index_rescale import index_rescale
from hudi_services.metadata.record_index import key_hash
from hudi_services.metadata.record_index.shards import Shards
from hudi_services.metadata.records.keys import RECORD_INDEX
from hudi_services.options import index_keys, resolve
from hudi_services.runs.report import RunState
from hudi_services.runs.request import IndexDropRequest, IndexRequest, RescaleRequest, ValidateRequest
from hudi_services.stores.local import LocalStorage

from .conftest import ByHudi
from .faulty_storage import FaultyStorage, Killed
from .metadata_tables import begin_compaction
from .rides import create
from .shares import places, share
from .tables import both_views, digest, open_local
from .test_index_bootstrap import indexed_locations, is_listed, real_locations
from .test_upserts import rows

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")

_WRITES = {
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.compact.max.delta.commits": "2",
    "hoodie.clean.automatic": "false",
    "hoodie.time.generator.max_expected_clock_skew_ms": "0",
}
_KEYS = 240
Making = Callable[[Path, int], Path]
VERSIONS = [6, 8, 9]


def wanted(path: Path, count: int, partition: str | None = None, **more: bool) -> RescaleRequest:
    options = {one.key: str(count) for one in index_keys.GROUP_COUNTS}
    options["hoodie.time.generator.max_expected_clock_skew_ms"] = "0"
    return RescaleRequest(base_path=str(path), options=resolve([("test", options)]), partition=partition, **more)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Making:
    """Gives copies of a table with an index of three file groups, whose log files add, move and delete keys."""

    @functools.cache
    def original(version: int) -> Path:
        path = tmp_path_factory.mktemp("made") / str(version)
        table = create(path, table_version=version, options={"hoodie.metadata.enable": "true"})
        assert table.insert(rows(0, _KEYS), options=_WRITES).ok
        count = {f"hoodie.metadata.record.index.{b}.filegroup.count": "3" for b in ("min", "max")}
        assert table.build_index(options=count).ok
        assert table.upsert(rows(_KEYS, _KEYS + 20), options=_WRITES).ok
        assert table.delete(rows(5, 17), options=_WRITES).ok
        return path

    return lambda path, version: Path(shutil.copytree(original(version), path))


def group_count(path: Path) -> int:
    metadata = open_local(path).metadata
    assert metadata is not None
    return len(metadata.file_groups(RECORD_INDEX))


def is_right(path: Path, count: int) -> None:
    assert group_count(path) == count
    assert indexed_locations(path) == real_locations(path)
    report = validate.validate(ValidateRequest(base_path=str(path), options=resolve([])))
    assert report.state is RunState.COMPLETED, report.tables
    assert not (path / RESCALE_FOLDER).exists()


@pytest.fixture(params=["split", "in runs"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How entries come to the new files."""
    found: str = request.param
    if found == "in runs":
        monkeypatch.setattr(rescale_module, "_MOST_TARGETS", 0)
    return found


@pytest.mark.thorough
@pytest.mark.spread(3)
@pytest.mark.parametrize("version", VERSIONS)
def test_up_and_down(made: Making, version: int, way: str, tmp_path: Path) -> None:
    path = made(tmp_path / "t", version)
    table = hudi_services.open(path, engine="local")
    for count in (6, 4, 1):
        before = real_locations(path)
        report = index_rescale(wanted(path, count), engine=LocalEngine())
        assert (report.rows.before, report.groups) == (len(before), count)
        is_right(path, count)
        with pytest.raises(NothingToDo, match=f"has {count} file groups already"):
            index_rescale(wanted(path, count), engine=LocalEngine())
        # It is kept in step afterwards.
        assert table.upsert(rows(0, 30, f"text {count}", ts=count, more_days=count), options=_WRITES).ok
        assert table.delete(rows(30 + count, 40 + count), options=_WRITES).ok
        is_right(path, count)


class Beside(LocalEngine):
    """Before its jobs, writers insert, move and delete rows; the metadata table is compacted and cleaned meanwhile."""

    def __init__(self, path: Path, seed: int) -> None:
        super().__init__(1)
        self._table, self._random = hudi_services.open(path, engine="local"), np.random.default_rng(seed)
        self.writes = 0

    def map(self, function: Any, tasks: Any, description: str, progress: Any) -> Any:
        while not self.writes or (self.writes < 7 and self._random.random() < 0.6):
            self.writes += 1
            first, ts = int(self._random.integers(0, _KEYS)), 1000 + self.writes
            some = rows(
                first, first + int(self._random.integers(1, 60)), ts=ts, more_days=int(self._random.integers(3))
            )
            if self._random.random() < 0.4:
                assert self._table.delete(some, options=_WRITES).ok
            else:
                assert self._table.upsert(some, options=_WRITES).ok
        return super().map(function, tasks, description, progress)


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.deep) for seed in (2, 3))])
def test_beside_writers(made: Making, version: int, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path / "t", version)
    random = np.random.default_rng(seed)
    if seed % 2:
        monkeypatch.setattr(rescale_module, "_MOST_TARGETS", 0)
    for number in range(2):
        now = group_count(path)
        count = int(random.choice([one for one in (1, 2, 3, 4, 5, 6, 8, 9) if one != now]))
        engine = Beside(path, 10 * seed + number)
        index_rescale(wanted(path, count), engine=engine)
        assert engine.writes
        is_right(path, count)


@pytest.mark.thorough
@pytest.mark.spread(4)
@pytest.mark.sweep
@pytest.mark.parametrize(("version", "number"), [(6, 0), (8, 1), (9, 2)])
def test_killed_at_any_write_and_resumed(made: Making, version: int, number: int, way: str, tmp_path: Path) -> None:
    source = made(tmp_path / "made", version)
    real = real_locations(source)

    def copied(name: str) -> Path:
        shutil.rmtree(tmp_path / name, ignore_errors=True)
        return Path(shutil.copytree(source, tmp_path / name))

    counted = FaultyStorage(str(copied("whole")))
    index_rescale(wanted(tmp_path / "whole", 6), counted, LocalEngine())
    closed = 0
    for survived in share(places(counted.log), number, 3):
        path = copied("killed")
        with pytest.raises(Killed):
            index_rescale(wanted(path, 6), FaultyStorage(str(path), survived), LocalEngine())
        if is_listed(path):
            assert indexed_locations(path) == real, survived
        elif (path / RESCALE_FOLDER / "closed.json").exists():
            closed += 1
            with pytest.raises(NeedsRecovery, match="a rescale was killed when it had taken out the old file groups"):
                index_rescale(wanted(path, 6), engine=LocalEngine())
        try:
            report = index_rescale(wanted(path, 6, resume=True), engine=LocalEngine())
            assert report.state is RunState.COMPLETED
        except NothingToDo:
            assert group_count(path) == 6
        is_right(path, 6)
    assert closed


class DiesAtPublishing(LocalStorage):
    """The old file groups are taken out, and the new ones are not published."""

    def create(self, path: str, data: bytes) -> None:
        if path.startswith(".hoodie/metadata/.hoodie") and "deltacommit" in path:
            raise Killed("before the delta commit")
        super().create(path, data)


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_writes_after_a_kill_without_an_index(made: Making, version: int, tmp_path: Path) -> None:
    path = made(tmp_path / "t", version)
    with pytest.raises(Killed):
        index_rescale(wanted(path, 6), DiesAtPublishing(str(path)), LocalEngine())
    assert not is_listed(path)
    table = hudi_services.open(path, engine="local")
    # RECORD_INDEX is GLOBAL_SIMPLE meanwhile.
    assert table.upsert(rows(_KEYS + 20, _KEYS + 50), options=_WRITES).ok
    assert table.upsert(rows(20, 60, ts=7, more_days=1), options=_WRITES).ok
    assert table.delete(rows(70, 90), options=_WRITES).ok
    report = index_rescale(wanted(path, 6, resume=True), engine=LocalEngine())
    assert report.state is RunState.COMPLETED and report.warnings == []
    is_right(path, 6)


def test_an_index_that_was_built_after_the_kill(made: Making, tmp_path: Path) -> None:
    path = made(tmp_path / "t", 9)
    with pytest.raises(Killed):
        index_rescale(wanted(path, 6), DiesAtPublishing(str(path)), LocalEngine())
    table = hudi_services.open(path, engine="local")
    count = {f"hoodie.metadata.record.index.{b}.filegroup.count": "4" for b in ("min", "max")}
    assert table.build_index(options=count).ok
    assert indexed_locations(path) == real_locations(path)
    report = index_rescale(wanted(path, 6, resume=True), engine=LocalEngine())
    assert "the rescale starts again from the beginning" in report.warnings[0]
    is_right(path, 6)


def test_a_lost_work_folder_after_the_kill(made: Making, tmp_path: Path) -> None:
    path = made(tmp_path / "t", 9)
    with pytest.raises(Killed):
        index_rescale(wanted(path, 6), DiesAtPublishing(str(path)), LocalEngine())
    for file in (path / ".hoodie/metadata/record_index").glob("*.hfile"):
        file.unlink()
    with pytest.raises(ConflictError, match=r"cannot go on: .* is not there as it was written"):
        index_rescale(wanted(path, 6, resume=True), engine=LocalEngine())
    assert hudi_services.open(path, engine="local").build_index().ok
    assert indexed_locations(path) == real_locations(path)


def test_keys_in_a_wrong_file_group(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t"
    table = create(path)
    assert table.insert(rows(0, 90)).ok
    count = {f"hoodie.metadata.record.index.{b}.filegroup.count": "3" for b in ("min", "max")}
    real = key_hash.file_group_indexes
    with monkeypatch.context() as wrong:
        wrong.setattr(key_hash, "file_group_indexes", lambda keys, groups: (real(keys, groups) + 1) % groups)
        assert table.build_index(options=count).ok
    before = digest(path / ".hoodie/metadata")
    with pytest.raises(CheckFailed, match="which belongs to another one: the index is damaged"):
        index_rescale(wanted(path, 6), engine=LocalEngine())
    assert digest(path / ".hoodie/metadata") == before


def test_a_file_that_does_not_hold_what_was_read(made: Making, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path / "t", 9)
    real = entry_split.HFileStream.add

    def forgets_a_row(self: Any, keys: Any, values: Any) -> None:
        real(self, keys[1:], values[1:])

    monkeypatch.setattr(entry_split.HFileStream, "add", forgets_a_row)
    with pytest.raises(CheckFailed, match="entries, not the"):
        index_rescale(wanted(path, 6), engine=LocalEngine())
    assert is_listed(path) and group_count(path) == 3
    assert indexed_locations(path) == real_locations(path)


@pytest.fixture
def by_partition(by_hudi: ByHudi, tmp_path: Path) -> Path:
    return by_hudi("1.2.0", "by_partition", tmp_path / "table")


def groups_of(path: Path) -> dict[str | None, int]:
    metadata = open_local(path).metadata
    assert metadata is not None
    shards = Shards.of_groups(metadata.file_groups(RECORD_INDEX))
    return {partition: len(some) for partition, some in shards.by_partition.items()}


@pytest.mark.thorough
def test_a_partitioned_index(by_partition: Path) -> None:
    path, before = by_partition, groups_of(by_partition)
    one = next(partition for partition in before if partition is not None)
    index_rescale(wanted(path, 5, one), engine=LocalEngine())
    assert groups_of(path) == {**before, one: 5}
    index_rescale(wanted(path, 3), engine=LocalEngine())
    assert groups_of(path) == dict.fromkeys(before, 3)
    report = validate.validate(ValidateRequest(base_path=str(path), options=resolve([])))
    assert report.state is RunState.COMPLETED
    with pytest.raises(UnsupportedTable, match="no file group for the partition 'nowhere'"):
        index_rescale(wanted(path, 5, "nowhere"), engine=LocalEngine())
    # By the number of keys.
    index_rescale(RescaleRequest(base_path=str(path), options=resolve([])), engine=LocalEngine())
    assert groups_of(path) == dict.fromkeys(before, 1)


def test_dry_run(made: Making, tmp_path: Path) -> None:
    path = made(tmp_path / "t", 9)
    before = digest(path)
    report = index_rescale(wanted(path, 6, dry_run=True), engine=LocalEngine())
    assert (report.groups, report.files.before) == (6, 3)
    assert report.rows.before is not None and report.rows.before >= len(real_locations(path))
    assert digest(path) == before


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--file-group-count", "6", "--partition", "d1"], "this record index is one of the whole table"),
        (["--file-group-count", "0"], "--file-group-count"),
    ],
)
def test_wrong_flags(
    made: Making, flags: list[str], text: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = made(tmp_path / "t", 9)
    assert run(["index-rescale", "--base-path", str(path), "--engine", "local", *flags]) == 2
    assert text in capfd.readouterr().err


def test_a_table_without_an_index(tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    assert table.insert(rows(0, 9)).ok
    with pytest.raises(UnsupportedTable, match="has no record index"):
        index_rescale(wanted(tmp_path / "t", 6), engine=LocalEngine())


def test_by_the_number_of_keys(made: Making, tmp_path: Path) -> None:
    path = made(tmp_path / "t", 9)
    report = hudi_services.open(path, engine="local").rescale_index()
    assert report.ok
    assert group_count(path) == 10, "the least number of Hudi"
    assert hudi_services.open(path, engine="local").rescale_index(2).ok
    is_right(path, 2)


_SIZE = "hoodie.metadata.record.index.max.filegroup.size"


def told(path: Path, **options: str) -> list[str]:
    """The warnings about the index of validate, and of a dry run of schedule."""
    table = hudi_services.open(path, engine="local")
    planned = table.plan_clustering(dry_run=True, options=options)
    checked = table.validate(options=options)
    found = [one for one in checked.warnings if "file groups for about" in one]
    assert [one for one in planned.warnings if "file groups for about" in one] == found
    return found


@pytest.mark.thorough
def test_advice(made: Making, tmp_path: Path) -> None:
    path = made(tmp_path / "t", 9)
    assert told(path) == [], "10 would be right"
    # 48 bytes for a key, and room for twice as many keys.
    (few,) = told(path, **{_SIZE: "1048576", "hoodie.metadata.record.index.growth.factor": "10000"})
    assert re.search(
        r"has 3 file groups for about \d+ keys, where \d+ are right by hoodie.*size: hudi-services index-re", few
    )
    index_rescale(wanted(path, 60), engine=LocalEngine())
    (many,) = told(path)
    assert "has 60 file groups for about" in many and "where 10 are right" in many
    index_rescale(wanted(path, 10), engine=LocalEngine())
    assert told(path) == []


@pytest.mark.thorough
def test_advice_on_partitions(by_partition: Path) -> None:
    index_rescale(wanted(by_partition, 8), engine=LocalEngine())
    (many,) = told(by_partition)
    assert re.search(
        r"the record index of the partition '.*' has 8 file groups .*, where 1 are right .* other partitions", many
    )


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_a_compaction_of_the_metadata_table_that_has_begun(made: Making, version: int, tmp_path: Path) -> None:
    """Its plan names files of the index, and whoever completes it needs them."""
    path = made(tmp_path / "t", version)
    begin_compaction(path)
    for job in (
        lambda: index_rescale(wanted(path, 6), engine=LocalEngine()),
        lambda: index_drop(IndexDropRequest(base_path=str(path), options=resolve([]), index="record")),
    ):
        with pytest.raises(ConflictError, match="of the metadata table is pending, and needs files of record_index"):
            job()
    assert is_listed(path) and indexed_locations(path) == real_locations(path)
    # The next write completes it.
    assert hudi_services.open(path, engine="local").upsert(rows(0, 3, ts=77), options=_WRITES).ok
    index_rescale(wanted(path, 6, resume=True), engine=LocalEngine())
    is_right(path, 6)


class Drops(LocalEngine):
    """Somebody drops the index, and builds it with another number of file groups, or not."""

    def __init__(self, path: Path, *, builds: bool) -> None:
        super().__init__(1)
        self._path, self._builds, self._done = path, builds, False

    def map(self, function: Any, tasks: Any, description: str, progress: Any) -> Any:
        found = super().map(function, tasks, description, progress)
        if not self._done and ("read" in description or "split" in description):
            self._done = True
            table = hudi_services.open(self._path, engine="local")
            assert table.drop_index("record").ok
            count = {one.key: "2" for one in index_keys.GROUP_COUNTS}
            assert not self._builds or table.build_index(options=count).ok
        return found


@pytest.mark.thorough
def test_an_index_that_is_dropped_meanwhile(made: Making, tmp_path: Path) -> None:
    path = made(tmp_path / "gone", 9)
    with pytest.raises(ConflictError, match="the record index was dropped meanwhile"):
        index_rescale(wanted(path, 6), engine=Drops(path, builds=False))
    path = made(tmp_path / "anew", 9)
    report = index_rescale(wanted(path, 6), engine=Drops(path, builds=True))
    assert "the record index has other file groups by now: the rescale starts again" in report.warnings[0]
    is_right(path, 6)


@pytest.mark.thorough
def test_a_key_in_two_partitions_of_which_one_goes(tmp_path: Path) -> None:
    """While the index is out: the row that stays is found by it afterwards, whichever the index had named."""
    simple = {**_WRITES, "hoodie.index.type": "SIMPLE"}
    for days in (0, 10):
        path = tmp_path / str(days)
        table = create(path)
        assert table.insert(rows(0, 60)).ok
        assert table.insert(rows(0, 30, ts=1, more_days=10), options=simple).ok
        count = {one.key: "3" for one in index_keys.GROUP_COUNTS}
        assert table.build_index(options=count).ok
        with pytest.raises(Killed):
            index_rescale(wanted(path, 6), DiesAtPublishing(str(path)), LocalEngine())
        assert table.delete(rows(0, 30, more_days=days), options=simple).ok
        index_rescale(wanted(path, 6, resume=True), engine=LocalEngine())
        is_right(path, 6)


@pytest.mark.thorough
def test_a_killed_rescale_after_the_index_was_built_and_dropped(made: Making, tmp_path: Path) -> None:
    """A build takes the instant that the rescale was to have; a drop is a drop."""
    count = {one.key: "4" for one in index_keys.GROUP_COUNTS}
    for drops in (False, True):
        path = made(tmp_path / str(drops), 9)
        with pytest.raises(Killed):
            index_rescale(wanted(path, 6), DiesAtPublishing(str(path)), LocalEngine())
        left = tmp_path / "left"
        shutil.copytree(path / RESCALE_FOLDER, left)
        table = hudi_services.open(path, engine="local")
        assert table.build_index(options=count).ok
        assert not (path / RESCALE_FOLDER).exists()
        assert table.upsert(rows(0, 30, ts=5), options=_WRITES).ok
        if not drops:
            is_right(path, 4)
        assert table.drop_index("record").ok
        shutil.rmtree(path / RESCALE_FOLDER, ignore_errors=True)
        shutil.copytree(left, path / RESCALE_FOLDER)
        shutil.rmtree(left)
        with pytest.raises(ConflictError, match="cannot go on"):
            index_rescale(wanted(path, 6, resume=True), engine=LocalEngine())
        assert table.validate().ok and table.build_index(options=count).ok
        assert indexed_locations(path) == real_locations(path)


class Asks(LocalEngine):
    """While it works, another process asks for what is there already."""

    def __init__(self, path: Path, what: Any) -> None:
        super().__init__(1)
        self._path, self._what = path, what

    def map(self, function: Any, tasks: Any, description: str, progress: Any) -> Any:
        found = super().map(function, tasks, description, progress)
        with pytest.raises(NothingToDo):
            self._what()
        return found


@pytest.mark.thorough
def test_an_idle_run_beside_one_at_work(made: Making, tmp_path: Path) -> None:
    path = made(tmp_path / "t", 9)
    idle = Asks(path, lambda: index_rescale(wanted(path, 3), engine=LocalEngine()))
    index_rescale(wanted(path, 6), engine=idle)
    is_right(path, 6)
    build = IndexRequest(base_path=str(path), options=resolve([]), index="secondary:text")
    plain = IndexRequest(base_path=str(path), options=resolve([]))
    index_bootstrap(build, engine=Asks(path, lambda: index_bootstrap(plain, engine=LocalEngine())))
    is_right(path, 6)


def test_files_that_are_lost_before_the_index_is_taken_out(made: Making, tmp_path: Path) -> None:
    path = made(tmp_path / "t", 9)

    class Loses(LocalEngine):
        lost = False

        def map(self, function: Any, tasks: Any, description: str, progress: Any) -> Any:
            found = super().map(function, tasks, description, progress)
            if description == "write the record index" and not self.lost:
                self.lost = True
                next((path / RESCALE_FOLDER).glob("*.hfile")).unlink()
            return found

    report = index_rescale(wanted(path, 6), engine=Loses(1))
    assert "is not there as it was written: the rescale starts again" in report.warnings[0]
    is_right(path, 6)


@pytest.mark.thorough
def test_a_partition_that_comes_meanwhile(by_partition: Path) -> None:
    table = hudi_services.open(by_partition, engine="local")
    before = groups_of(by_partition)

    class Comes(LocalEngine):
        came = False

        def map(self, function: Any, tasks: Any, description: str, progress: Any) -> Any:
            if not self.came:
                self.came = True
                new = open_rows(by_partition)
                options = {"hoodie.index.type": "RECORD_LEVEL_INDEX", "hoodie.clean.automatic": "false"}
                assert table.upsert(new, options=options).ok
            return super().map(function, tasks, description, progress)

    index_rescale(wanted(by_partition, 5), engine=Comes(1))
    assert groups_of(by_partition) == {**dict.fromkeys(before, 5), "part=brand-new": 5}
    assert table.validate().ok


def open_rows(path: Path) -> Any:
    """Some rows of the table, in a partition that it does not have."""
    found, _ = both_views(path)
    known = found.select([name for name in found.column_names if not name.startswith("_hoodie")]).slice(0, 5)
    at = known.column_names.index("part")
    return known.set_column(at, known.schema.field("part"), pa.array(["brand-new"] * known.num_rows))


def test_another_number_than_the_one_that_was_begun(made: Making, tmp_path: Path) -> None:
    path = made(tmp_path / "t", 9)

    class Dies(LocalEngine):
        def map(self, function: Any, tasks: Any, description: str, progress: Any) -> Any:
            super().map(function, tasks, description, progress)
            raise Killed("after the first job")

    with pytest.raises(Killed):
        index_rescale(wanted(path, 6), engine=Dies(1))
    report = index_rescale(wanted(path, 9, resume=True), engine=LocalEngine())
    assert "goes on, to 6 file groups; without --resume another one begins" in report.warnings[0]
    is_right(path, 6)
