"""A record index of each partition, as real Hudi made it: writes find keys by it, keep it in step, and make it grow."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hudi_services
from hudi_services.errors import ConfigError, UnsupportedTable
from hudi_services.storage import Storage

from ..interop.pristine import Pristine
from .faulty_storage import FaultyStorage, Killed
from .rides import FILTERS
from .shares import places, share
from .tables import both_views, open_local
from .test_upserts import write

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")
OPTIONS = {
    **FILTERS,
    "hoodie.index.type": "RECORD_LEVEL_INDEX",
    "hoodie.metadata.record.level.index.min.filegroup.count": "2",
    "hoodie.clean.automatic": "false",
}
Rows = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Keys `k-000000` to `k-000059`, some of them in two of six partitions."""
    return Pristine.unpack("1.2.0", tmp_path).table("by_partition")


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
    for number in range(8):
        chosen = old.take(pa.array(random.integers(0, old.num_rows, 25)))
        paths = pa.array(random.choice(parts[: 5 + number], 25).tolist())
        times = pa.array([10_000 * (number + 1) + n for n in range(25)], pa.int64())
        new = chosen.set_column(chosen.column_names.index("part"), chosen.schema.field("part"), paths)
        new = new.set_column(new.column_names.index("ts"), new.schema.field("ts"), times)
        yield ("upsert", "delete", "upsert", "insert_overwrite")[number % 4], new


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
        assert table.validate(strict=True).ok, (number, operation)
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
