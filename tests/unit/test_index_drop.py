"""Dropping an index: gone in one step, finished after a kill, refused where others need it."""

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import hudi_services
from hudi_services.errors import ConfigError, ConflictError, NothingToDo, UnsupportedTable
from hudi_services.jobs.index_drop import index_drop
from hudi_services.options import resolve
from hudi_services.runs.report import RunState
from hudi_services.runs.request import IndexDropRequest

from ..interop.peer import index_definitions
from .faulty_storage import FaultyStorage, Killed
from .repairs import LOCK, fail_newest
from .tables import digest, open_local, unpack
from .test_secondary_builds import made, rows

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")


def wanted(path: Path, index: str, **more: Any) -> IndexDropRequest:
    return IndexDropRequest(**{"base_path": str(path), "options": resolve([]), "index": index, **more})


def listed(path: Path) -> set[str]:
    return {*open_local(path).config.metadata_partitions}


@pytest.mark.thorough
@pytest.mark.parametrize("version", [8, 9])
def test_an_index_and_what_needs_it(version: int, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = made(path, version)
    assert table.build_index("secondary:text").ok
    with pytest.raises(ConfigError, match="record_index cannot go before secondary_index_text, which needs it"):
        index_drop(wanted(path, "record"))
    for index, partition in (("secondary:text", "secondary_index_text"), ("record", "record_index")):
        before = digest(path)
        seen = index_drop(wanted(path, index, dry_run=True))
        assert seen.dry_run and digest(path) == before
        report = index_drop(wanted(path, index))
        assert report.state is RunState.COMPLETED
        assert seen.files.before == report.files.before and (report.files.before or 0) > 2
        assert partition not in listed(path) and partition not in index_definitions(path)
        assert not (path / ".hoodie/metadata" / partition).exists()
        with pytest.raises(NothingToDo, match=f"has no index {partition}; it has: column_stats"):
            index_drop(wanted(path, index))
    # Writes go on, and the index can be built again.
    assert table.upsert(rows(0, 120, ts=5)).ok
    assert table.build_index().ok and table.build_index("secondary:text").ok
    assert table.validate().ok


def test_statistics(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = made(path, 9)
    with pytest.raises(ConfigError, match="column_stats cannot go before partition_stats"):
        index_drop(wanted(path, "column_stats"))
    for one in ("partition_stats", "column_stats"):
        assert table.drop_index(one).ok
    assert listed(path) == {"files", "record_index"}
    assert table.insert(rows(200, 220)).ok and table.validate().ok
    with pytest.raises(ConfigError, match="files is the list of the table's files"):
        index_drop(wanted(path, "files"))


@pytest.mark.thorough
@pytest.mark.parametrize("index", ["", "..", "../timeline", "a/b", ".hoodie", "secondary:../../x"])
def test_names_that_are_no_index(index: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    made(path, 9)
    before = digest(path)
    with pytest.raises(ConfigError, match="is no name of an index"):
        index_drop(wanted(path, index))
    assert digest(path) == before


@pytest.mark.thorough
def test_killed_at_any_write(tmp_path: Path) -> None:
    made(tmp_path / "made", 9)

    def copied(name: str) -> Path:
        shutil.rmtree(tmp_path / name, ignore_errors=True)
        return Path(shutil.copytree(tmp_path / "made", tmp_path / name))

    counted = FaultyStorage(str(copied("whole")))
    index_drop(wanted(tmp_path / "whole", "record"), counted)
    for survived in range(len(counted.log)):
        path = copied("killed")
        with pytest.raises(Killed):
            index_drop(wanted(path, "record"), FaultyStorage(str(path), survived))
        assert hudi_services.open(path, engine="local").validate().ok, survived
        with suppress(NothingToDo):
            index_drop(wanted(path, "record"))
        assert "record_index" not in listed(path)
        assert not (path / ".hoodie/metadata/record_index").exists(), survived


@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_beside_a_pending_write(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    index = "record" if release == "0.15.0" else "partition_stats"
    if release == "0.15.0":  # Its table has no index yet.
        assert hudi_services.open(path, engine="local").build_index().ok
    fail_newest(path)
    before = digest(path / ".hoodie/metadata")
    with pytest.raises(ConflictError, match="is in progress"):
        index_drop(wanted(path, index))
    locked = wanted(path, index, options=resolve([("test", LOCK)]))
    with pytest.raises(ConflictError, match=r"is not finished .* and may write to the index"):
        index_drop(locked)
    assert digest(path / ".hoodie/metadata") == before


def test_an_index_that_nothing_else_here_knows(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = made(path, 9)
    opened = open_local(path)
    names = {*opened.config.metadata_partitions, "expr_index_gone", "of_tomorrow"}
    opened.config.update(opened.storage, {"hoodie.table.metadata.partitions": ",".join(sorted(names))})
    with pytest.raises(UnsupportedTable, match="has the metadata partition of_tomorrow"):
        hudi_services.open(path, engine="local").validate()
    for one in ("of_tomorrow", "expression:gone"):
        index_drop(wanted(path, one))
    assert table.validate().ok
