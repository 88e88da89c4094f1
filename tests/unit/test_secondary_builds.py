"""Building a secondary index: right, beside writers, resumed after a kill, and kept in step afterwards."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import hudi_services
from hudi_services.cli.app import run
from hudi_services.engine import LocalEngine
from hudi_services.errors import ConfigError, ConflictError, NothingToDo, UnsupportedTable
from hudi_services.jobs.index_bootstrap import index_bootstrap
from hudi_services.options import index_keys, resolve
from hudi_services.runs.report import RunState
from hudi_services.runs.request import IndexRequest

from ..interop.peer import index_definitions
from .beside_builds import Meanwhile
from .faulty_storage import FaultyStorage, Killed
from .rides import create
from .shares import places, share
from .tables import open_local
from .test_upserts import rows

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")

_WRITES = {"hoodie.index.type": "RECORD_INDEX", "hoodie.clean.automatic": "false"}
_COUNT = {one.key: "3" for one in index_keys.GROUP_COUNTS}


def made(path: Path, version: int) -> hudi_services.Table:
    table = create(path, table_version=version)
    assert table.insert(rows(0, 90)).ok
    assert table.build_index(options=_COUNT).ok
    assert table.upsert(rows(20, 50, "other", ts=1), options=_WRITES).ok
    return table


def wanted(path: Path, index: str = "secondary:text", **more: bool) -> IndexRequest:
    return IndexRequest(base_path=str(path), options=resolve([("test", _COUNT)]), index=index, **more)


def is_right(path: Path, partition: str = "secondary_index_text") -> None:
    assert partition in open_local(path).config.metadata_partitions
    result = hudi_services.open(path, engine="local").validate()
    assert result.ok
    counts = {row["metadata_partition"]: row for row in result.tables["partitions"].to_pylist()}
    assert counts[partition]["records"] > 0 and not result.tables["unsure"].num_rows


def meanwhile(table: hudi_services.Table) -> Meanwhile:
    def write(number: int) -> None:
        assert table.upsert(rows(40, 120, f"new {number}", ts=9 + number), options=_WRITES).ok
        assert table.delete(rows(5, 9 + number), options=_WRITES).ok

    return Meanwhile(write)


@pytest.mark.thorough
@pytest.mark.spread(3)
@pytest.mark.parametrize("version", [8, 9])
# A name of one word has as many dashes in its file ids as a partitioned record index.
@pytest.mark.parametrize(("index", "name"), [("secondary:text", "text"), ("secondary:by_text:text", "by_text")])
def test_built_beside_writers_and_kept(version: int, index: str, name: str, tmp_path: Path) -> None:
    path, partition = tmp_path / "t", f"secondary_index_{name}"
    engine = meanwhile(made(path, version))
    report = index_bootstrap(wanted(path, index), engine=engine)
    assert report.state is RunState.COMPLETED and engine.writes == 2
    is_right(path, partition)
    described = index_definitions(path)[partition]
    assert (described["indexType"], described["sourceFields"]) == ("secondary_index", ["text"])
    assert described.get("version") == ("V2" if version == 9 else None)
    table = hudi_services.open(path, engine="local")
    assert table.upsert(rows(0, 30, "later", ts=99), options=_WRITES).ok
    assert table.delete(rows(60, 70), options=_WRITES).ok
    is_right(path, partition)
    with pytest.raises(NothingToDo, match=f"has a metadata partition {partition} already"):
        index_bootstrap(wanted(path, index), engine=LocalEngine())


@pytest.mark.thorough
@pytest.mark.sweep
def test_killed_at_any_write_and_resumed(tmp_path: Path) -> None:
    made(tmp_path / "made", 9)

    def copied(name: str) -> Path:
        shutil.rmtree(tmp_path / name, ignore_errors=True)
        return Path(shutil.copytree(tmp_path / "made", tmp_path / name))

    counted = FaultyStorage(str(copied("whole")))
    index_bootstrap(wanted(tmp_path / "whole"), counted, LocalEngine())
    for survived in share(places(counted.log), 1, 3):
        path = copied("killed")
        with pytest.raises(Killed):
            index_bootstrap(wanted(path), FaultyStorage(str(path), survived), LocalEngine())
        if "secondary_index_text" not in open_local(path).config.metadata_partitions:
            # Another index is not what was begun.
            other = index_bootstrap(wanted(path, "secondary:day", dry_run=True, resume=True), engine=LocalEngine())
            assert other.dry_run
            index_bootstrap(wanted(path, resume=True), engine=LocalEngine())
        is_right(path)


def test_another_index_than_the_one_that_was_begun(tmp_path: Path) -> None:
    path = tmp_path / "t"
    made(path, 9)
    with pytest.raises(Killed):
        index_bootstrap(wanted(path), FaultyStorage(str(path), 12), LocalEngine())
    report = index_bootstrap(wanted(path, "secondary:ts", resume=True), engine=LocalEngine())
    assert "the index that was begun is of another kind" in report.warnings[0]
    is_right(path, "secondary_index_ts")


def test_what_cannot_be_indexed(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = create(path)
    assert table.insert(rows(0, 9)).ok
    with pytest.raises(UnsupportedTable, match="has no record index, and Apache Hudi finds the rows"):
        index_bootstrap(wanted(path), engine=LocalEngine())
    with pytest.raises(UnsupportedTable, match="has no column nothing"):
        index_bootstrap(wanted(path, "secondary:nothing"), engine=LocalEngine())
    with pytest.raises(ConfigError, match="is a secondary index"):
        assert table.build_index().ok
        index_bootstrap(wanted(path, partitioned=True), engine=LocalEngine())
    assert create(tmp_path / "six", table_version=6).insert(rows(0, 9)).ok
    with pytest.raises(UnsupportedTable, match="has table version 6, and no release that writes it knows secondary"):
        index_bootstrap(wanted(tmp_path / "six"), engine=LocalEngine())


@pytest.mark.thorough
@pytest.mark.parametrize(
    "index", ["secondary", "secondary:", "secondary:a:b:c", "secondary:../x:text", "bloom", "record:x"]
)
def test_wrong_names(index: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t"
    assert create(path).insert(rows(0, 9)).ok
    assert run(["index-bootstrap", "--base-path", str(path), "--engine", "local", "--index", index]) == 2
    assert f"--index {index} is no index that can be built" in capfd.readouterr().err


def test_a_record_index_that_is_dropped_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = made(path, 9)

    class Drops(LocalEngine):
        def map(self, function: Any, tasks: Any, description: str, progress: Any) -> Any:
            if description == "write the record index":
                assert table.drop_index("record").ok
            return super().map(function, tasks, description, progress)

    with pytest.raises(ConflictError, match="the record index was dropped meanwhile"):
        index_bootstrap(wanted(path), engine=Drops(1))
    assert "secondary_index_text" not in open_local(path).config.metadata_partitions
    assert table.build_index(options=_COUNT).ok
    index_bootstrap(wanted(path), engine=LocalEngine())
    is_right(path)
    with pytest.raises(ConfigError, match="has the index secondary_index_text already, of the column text"):
        index_bootstrap(wanted(path, "secondary:text:day"), engine=LocalEngine())
