"""A record index of each partition, as real Hudi made it: writes find keys by it, keep it in step, and make it grow."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hudi_services
from hudi_services.engine import LocalEngine
from hudi_services.errors import ConfigError, NothingToDo, UnsupportedTable
from hudi_services.jobs import validate
from hudi_services.jobs.index_bootstrap import index_bootstrap
from hudi_services.jobs.index_rescale import index_rescale
from hudi_services.metadata.record_index.shards import Shards
from hudi_services.metadata.records.keys import RECORD_INDEX
from hudi_services.options import resolve
from hudi_services.runs.report import RunState
from hudi_services.runs.request import IndexRequest, RescaleRequest, ValidateRequest
from hudi_services.storage import Storage

from ..interop.peer import index_definitions
from .beside_builds import Meanwhile
from .conftest import ByHudi
from .faulty_storage import FaultyStorage, Killed
from .rides import FILTERS, create
from .shares import places, share
from .tables import both_views, open_local
from .test_upserts import rows as day_rows
from .test_upserts import write

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")
OPTIONS = {
    **FILTERS,
    "hoodie.index.type": "RECORD_LEVEL_INDEX",
    "hoodie.metadata.record.level.index.min.filegroup.count": "2",
    "hoodie.clean.automatic": "false",
}
_LEAST = "hoodie.metadata.record.level.index.min.filegroup.count"
Rows = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture
def path(by_hudi: ByHudi, tmp_path: Path) -> Path:
    """Keys `k-000000` to `k-000059`, some of them in two of six partitions."""
    return by_hudi("1.2.0", "by_partition", tmp_path / "table")


def seen(path: Path) -> Rows:
    found, listed = both_views(path)
    assert found.equals(listed)
    names = [name for name in found.column_names if not name.startswith("_hoodie")]
    result = {(row["part"], row["id"]): row for row in found.select(names).to_pylist()}
    assert len(result) == found.num_rows, "no key is twice in a partition"
    return result


def rows(path: Path) -> pa.Table:
    found, _ = both_views(path)
    return found.select([name for name in found.column_names if not name.startswith("_hoodie")]).sort_by("id")


def batches(old: pa.Table, seed: int) -> Iterator[tuple[str, pa.Table]]:
    """Rows of old keys in known partitions and in new ones, whose names the index spells in another way."""
    random = np.random.default_rng(seed)
    parts = [*dict.fromkeys(old.column("part").to_pylist()), "new_1-x", "2027/京 %"]
    for number in range(5):
        chosen = old.take(pa.array(random.integers(0, old.num_rows, 25)))
        paths = pa.array(random.choice(parts[: 5 + number], 25).tolist())
        times = pa.array([10_000 * (number + 1) + n for n in range(25)], pa.int64())
        new = chosen.set_column(chosen.column_names.index("part"), chosen.schema.field("part"), paths)
        new = new.set_column(new.column_names.index("ts"), new.schema.field("ts"), times)
        yield ("upsert", "delete", "upsert", "insert_overwrite")[number % 4], new


@pytest.mark.thorough
@pytest.mark.parametrize("index", ["RECORD_LEVEL_INDEX", pytest.param("SIMPLE", marks=pytest.mark.deep)])
def test_batches_beside_a_model(index: str, path: Path) -> None:
    table, model = hudi_services.open(path, engine="local"), seen(path)
    options = {**OPTIONS, "hoodie.index.type": index}
    for number, (operation, new) in enumerate(batches(rows(path), 7)):
        if operation == "insert_overwrite":
            new = new.take(pa.array(sorted({row["id"]: n for n, row in enumerate(new.to_pylist())}.values())))
            gone = {*new.column("part").to_pylist()}
            model = {key: row for key, row in model.items() if key[0] not in gone}
        assert getattr(table, operation)(new, options=options).ok
        for row in new.to_pylist():
            if operation == "delete":
                model.pop((row["part"], row["id"]), None)
            else:
                model[row["part"], row["id"]] = row
        assert seen(path) == model, (number, operation)
        assert number % 3 != 1 or table.validate(strict=True).ok, (number, operation)
    assert table.delete_partitions(["part=new_1-x"], options=options).ok
    assert table.validate(strict=True).ok
    assert table.cluster(publish_late=False).ok
    assert table.validate(strict=True).ok


def test_what_is_refused(path: Path) -> None:
    table, old = hudi_services.open(path, engine="local"), rows(path)
    with pytest.raises(ConfigError, match="and the table trips has a record index of each partition") as error:
        table.upsert(old, options={**OPTIONS, "hoodie.index.type": "RECORD_INDEX"})
    assert error.value.hint == "set hoodie.index.type=RECORD_LEVEL_INDEX"
    dots = old.set_column(old.column_names.index("part"), old.schema.field("part"), pa.array(["1.5"] * old.num_rows))
    with pytest.raises(UnsupportedTable, match=r"has no file group for the partition 'part=1\.5'"):
        table.insert(dots, options=OPTIONS)
    assert not open_local(path).timeline.pending()


@pytest.mark.thorough
def test_every_write_may_be_the_last(path: Path, tmp_path: Path) -> None:
    """Also where a commit begins file groups of the index: the next write goes on."""
    made = tmp_path / "made"
    shutil.copytree(path, made)
    old = rows(path).slice(0, 12)
    paths = pa.array(["a-b", "new_1-x"] * 6)
    new = old.set_column(old.column_names.index("part"), old.schema.field("part"), paths)

    def upsert(storage: Storage | None = None) -> None:
        write(path, "upsert", new, storage, **OPTIONS)

    first, log = seen(path), FaultyStorage(str(path))
    upsert(log)
    second, commits = seen(path), len(open_local(path).timeline.completed_writes())
    for survived in share(places(log.log), 0, 1):
        shutil.rmtree(path)
        shutil.copytree(made, path)
        with pytest.raises(Killed):
            upsert(FaultyStorage(str(path), survived))
        where = f"killed after {survived} writes: {log.log[survived - 1 : survived + 1]}"
        done = len(open_local(path).timeline.completed_writes()) == commits
        assert seen(path) == (second if done else first), where
        upsert()
        assert seen(path) == second, where
        assert not open_local(path).timeline.pending(), where
        assert hudi_services.open(path, engine="local").validate(strict=True).ok, where


def _groups(path: Path) -> dict[str | None, int]:
    metadata = open_local(path).metadata
    assert metadata is not None
    shards = Shards.of_groups(metadata.file_groups(RECORD_INDEX))
    return {partition: len(some) for partition, some in shards.by_partition.items()}


def _is_valid(path: Path) -> None:
    report = validate.validate(ValidateRequest(base_path=str(path), options=resolve([])))
    assert report.state is RunState.COMPLETED, report.tables


def meanwhile(table: hudi_services.Table) -> Meanwhile:
    """Also in a partition that is new."""
    simple = {"hoodie.index.type": "SIMPLE"}

    def write(number: int) -> None:
        assert table.upsert(day_rows(50, 80 + 20 * number, ts=number, more_days=2 * number), options=simple).ok
        assert table.delete(day_rows(5, 9), options=simple).ok

    return Meanwhile(write)


def _built(path: Path, *, resume: bool = False) -> IndexRequest:
    more = {_LEAST: "2"}
    return IndexRequest(base_path=str(path), options=resolve([("test", more)]), partitioned=True, resume=resume)


@pytest.mark.thorough
def test_built_beside_writers_and_used(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = create(path)
    assert table.insert(day_rows(0, 90)).ok
    engine = meanwhile(table)
    index_bootstrap(_built(path), engine=engine)
    assert engine.writes == 2
    partitions = {one.partition for one in open_local(path).view.live_slices()}
    assert len(partitions) > 3
    assert _groups(path) == {one: 2 if one in ("d0", "d1", "d2") else 1 for one in partitions}
    assert index_definitions(path)["record_index"]["indexOptions"] == {"isPartitioned": "true"}
    _is_valid(path)
    # Kept in step, and used.
    assert table.upsert(day_rows(40, 130, ts=9, more_days=3), options=OPTIONS).ok
    assert table.delete(day_rows(20, 30), options=OPTIONS).ok
    _is_valid(path)


def test_beside_an_index_of_the_whole_table(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = create(path)
    assert table.insert(day_rows(0, 90)).ok and table.build_index().ok
    with pytest.raises(ConfigError, match="has a record index of the whole table already"):
        index_bootstrap(_built(path), engine=LocalEngine())
    assert table.drop_index("record").ok
    index_bootstrap(_built(path), engine=LocalEngine())
    with pytest.raises(NothingToDo, match="has a record index already"):
        index_bootstrap(_built(path), engine=LocalEngine())
    _is_valid(path)


@pytest.mark.sweep
def test_a_build_that_is_killed_and_resumed(tmp_path: Path) -> None:
    source = tmp_path / "made"
    assert create(source).insert(day_rows(0, 60)).ok

    def copied(name: str) -> Path:
        shutil.rmtree(tmp_path / name, ignore_errors=True)
        return Path(shutil.copytree(source, tmp_path / name))

    counted = FaultyStorage(str(copied("whole")))
    index_bootstrap(_built(tmp_path / "whole"), counted, LocalEngine())
    for survived in share(places(counted.log), 0, 3):
        path = copied("killed")
        with pytest.raises(Killed):
            index_bootstrap(_built(path), FaultyStorage(str(path), survived), LocalEngine())
        if RECORD_INDEX not in open_local(path).config.metadata_partitions:
            index_bootstrap(_built(path, resume=True), engine=LocalEngine())
        assert _groups(path) == {"d0": 2, "d1": 2, "d2": 2}
        _is_valid(path)


def test_a_table_version_without_such_an_index(tmp_path: Path) -> None:
    path = tmp_path / "t"
    assert create(path, table_version=8).insert(day_rows(0, 9)).ok
    with pytest.raises(UnsupportedTable, match="has table version 8"):
        index_bootstrap(_built(path), engine=LocalEngine())


def test_a_table_without_partitions(by_hudi: ByHudi, tmp_path: Path) -> None:
    """As in Hudi (the recipe by_no_partition): the file groups of one partition without a name."""
    path = by_hudi("1.2.0", "by_no_partition", tmp_path / "theirs")
    index_rescale(RescaleRequest(base_path=str(path), options=resolve([("test", {_LEAST: "3"})])), engine=LocalEngine())
    assert _groups(path) == {"": 3}
    _is_valid(path)
    own = tmp_path / "t"
    assert create(own, partition_by=()).insert(day_rows(0, 30)).ok
    index_bootstrap(_built(own), engine=LocalEngine())
    assert _groups(own) == {"": 2}
    _is_valid(own)


def test_a_partition_with_a_dot(tmp_path: Path) -> None:
    path = tmp_path / "t"
    rows_of = day_rows(0, 9)
    days = pa.array(["2026.01"] * 9)
    assert create(path).insert(rows_of.set_column(rows_of.column_names.index("day"), "day", days)).ok
    with pytest.raises(UnsupportedTable, match="a partition with a dot in its path"):
        index_bootstrap(_built(path), engine=LocalEngine())
