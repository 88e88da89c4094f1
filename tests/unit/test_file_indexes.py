"""Building indexes of files, and metadata tables: right, beside writers, killed at any write, and kept in step."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hudi_services
from hudi_services.cli.app import run
from hudi_services.engine import LocalEngine
from hudi_services.errors import ConfigError, ConflictError, NothingToDo, UnsupportedTable
from hudi_services.indexing.of_files import file_build as build_module
from hudi_services.indexing.of_files.file_build import FOLDER
from hudi_services.jobs.index_bootstrap import index_bootstrap
from hudi_services.options import resolve
from hudi_services.runs.report import RunState
from hudi_services.runs.request import IndexRequest

from ..interop.peer import index_definitions
from .conftest import ByHudi
from .expression_samples import EXPRESSIONS_HERE
from .faulty_storage import FaultyStorage, Killed
from .rides import create
from .shares import places
from .tables import digest, listed_view, open_local, unpack
from .test_compaction import rows_of
from .test_expression_index import index_is_true, records
from .test_upserts import rows

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")

_OFF = {"hoodie.metadata.enable": "false", "hoodie.clean.automatic": "false"}
_QUIET = {"hoodie.time.generator.max_expected_clock_skew_ms": "0", "hoodie.metadata.compact.max.delta.commits": "2"}
_KEYS = 120
VERSIONS = [6, 8, 9]
TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]


def made(path: Path, version: int, kind: str = "COPY_ON_WRITE", *, partitioned: bool = True) -> hudi_services.Table:
    """A table without a metadata table, of several commits: base files that were replaced, and log files."""
    day = "day" if partitioned else None
    table = create(path, table_version=version, table_type=kind, partition_by=day, options=_OFF)
    assert table.insert(rows(0, _KEYS), options=_OFF).ok
    assert table.upsert(rows(20, 50, "other", ts=1), options=_OFF).ok
    assert table.delete(rows(5, 17), options=_OFF).ok
    assert "files" not in listed(path)
    return table


def wanted(path: Path, index: str = "files,column_stats", options: dict[str, str] | None = None, **more: Any) -> Any:
    return IndexRequest(
        base_path=str(path), options=resolve([("test", {**_QUIET, **(options or {})})]), index=index, **more
    )


def build(path: Path, index: str = "files,column_stats", engine: LocalEngine | None = None, **more: Any) -> Any:
    return index_bootstrap(wanted(path, index, **more), engine=engine or LocalEngine())


def listed(path: Path) -> set[str]:
    return {*open_local(path).config.metadata_partitions}


def contents(path: Path) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in ("id", "day", "ts", "text")) for row in rows_of(path))


def is_right(path: Path) -> None:
    """No difference at all, not even a harmless one: but Hudi 0.15 builds statistics without log files."""
    report = hudi_services.open(path, engine="local").validate()
    assert report.ok
    found = [one for one in report.tables["differences"].to_pylist() if ".log." not in one["file"]]
    assert not found
    assert report.tables["differences"].num_rows == 0 or open_local(path).config.version.number == 6
    assert report.tables["unsure"].num_rows == 0
    assert not (path / FOLDER).exists()


@pytest.mark.thorough
@pytest.mark.spread(3)
@pytest.mark.parametrize("partitioned", [True, False])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_metadata_table(version: int, kind: str, partitioned: bool, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = made(path, version, kind, partitioned=partitioned)
    before = digest(path)
    seen = build(path, dry_run=True)
    assert seen.dry_run and digest(path) == before
    report = build(path)
    assert report.state is RunState.COMPLETED and report.groups == seen.groups
    ranges = {"partition_stats"} if version > 6 and partitioned else set()
    assert listed(path) == {"files", "column_stats"} | ranges
    is_right(path)
    with pytest.raises(NothingToDo, match="has files and column_stats already"):
        build(path)
    for number in range(4):
        assert table.upsert(rows(10 * number, 40 + 30 * number, ts=5 + number), options=_QUIET).ok
    assert table.delete(rows(0, 9), options=_QUIET).ok
    assert table.validate().ok
    assert (open_local(path).metadata is not None) and table.build_index(options=_QUIET).ok


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_one_index_after_the_other(version: int, tmp_path: Path) -> None:
    """What a table has stays, and the records of each index are those that a writer makes."""
    path = tmp_path / "t"
    table = made(path, version)
    with pytest.raises(ConfigError, match="has no metadata table"):
        build(path, "column_stats")
    with pytest.raises(UnsupportedTable, match="has no metadata table"):
        index_bootstrap(wanted(path, "record"), engine=LocalEngine())
    build(path, "files")
    assert listed(path) == {"files"}
    assert table.upsert(rows(0, 10, ts=3), options=_QUIET).ok
    build(path, "bloom_filters")
    assert table.upsert(rows(0, 10, ts=4), options=_QUIET).ok
    build(path, "column_stats", options={"hoodie.metadata.index.partition.stats.enable": "false"})
    assert listed(path) == {"files", "bloom_filters", "column_stats"}
    if version > 6:
        assert table.upsert(rows(0, 10, ts=5), options=_QUIET).ok
        build(path, "partition_stats")
        assert index_definitions(path)["column_stats"]["sourceFields"][-4:] == ["id", "day", "ts", "text"]
    else:
        with pytest.raises(UnsupportedTable, match="no release that writes it knows partition_stats"):
            build(path, "partition_stats")
    is_right(path)


class Beside(LocalEngine):
    """Before its jobs, writers insert, move, delete and clean; some of their commits are rolled back."""

    def __init__(self, path: Path, seed: int) -> None:
        super().__init__(1)
        self._path = path
        self._table, self._random = hudi_services.open(path, engine="local"), np.random.default_rng(seed)
        self.writes = 0

    def map(self, function: Any, tasks: Any, description: str, progress: Any) -> Any:
        while not self.writes or (self.writes < 8 and self._random.random() < 0.6):
            self.writes += 1
            first, ts = int(self._random.integers(0, _KEYS)), 1000 + self.writes
            more = int(self._random.integers(3))
            some = rows(first, first + int(self._random.integers(1, 60)), ts=ts, more_days=more)
            options = {**_OFF, **_QUIET}
            match int(self._random.integers(7)):
                case 0:
                    assert self._table.delete(some, options=options).ok
                case 1:
                    assert self._table.clean(options={**_QUIET, "hoodie.clean.commits.retained": "1"}).exit_code in (
                        0,
                        3,
                    )
                case 2:
                    written = self._table.upsert(some, options=options)
                    assert written.ok and self._table.rollback(written.instant, completed=True).ok
                case 3:
                    # Older commits go from the timeline, and the newest one goes with the files that were listed.
                    keep = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
                    self._table.clean(options={**_QUIET, "hoodie.clean.commits.retained": "1"})
                    self._table.archive(options={**keep, "hoodie.clean.commits.retained": "1"})
                case 4:
                    newest = open_local(self._path).timeline.completed_writes()[-1]
                    assert self._table.rollback(newest.ts, completed=True).ok
                case _:
                    assert self._table.upsert(some, options=options).ok
        return super().map(function, tasks, description, progress)


@pytest.mark.thorough
@pytest.mark.spread(7)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("seed", [*range(1), *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(1, 3))])
def test_beside_writers(seed: int, version: int, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "_FILES_PER_TASK", 3)
    path = tmp_path / "t"
    table = made(path, version, kind)
    beside = Beside(path, seed)
    index = ("files,column_stats", "files,column_stats,bloom_filters", "files,bloom_filters")[(seed + version) % 3]
    assert build(path, index, beside).state is RunState.COMPLETED
    # Hudi 0.15 builds statistics without log files, which is a harmless difference.
    assert beside.writes > 0 and table.validate(strict=(version, kind) != (6, "MERGE_ON_READ")).ok
    before = contents(path)
    assert table.upsert(rows(200, 230), options=_QUIET).ok
    assert contents(path) == sorted([*before, *contents_of(rows(200, 230))])
    assert table.validate().ok


def contents_of(some: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in some.to_pylist()]


@pytest.mark.thorough
@pytest.mark.spread(4)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("version", VERSIONS)
def test_killed_at_any_write(version: int, kind: str, tmp_path: Path) -> None:
    table = create(tmp_path / "made", table_version=version, table_type=kind, options=_OFF)
    assert table.insert(rows(0, 9, days=1), options=_OFF).ok
    assert table.upsert(rows(4, 12, "other", ts=1, days=1), options=_OFF).ok

    def copied(name: str) -> Path:
        shutil.rmtree(tmp_path / name, ignore_errors=True)
        return Path(shutil.copytree(tmp_path / "made", tmp_path / name))

    index = "files,column_stats"
    counted = FaultyStorage(str(copied("whole")))
    index_bootstrap(wanted(tmp_path / "whole", index), counted, LocalEngine())
    for survived in places(counted.log):
        path = copied("killed")
        with pytest.raises(Killed):
            index_bootstrap(wanted(path, index), FaultyStorage(str(path), survived), LocalEngine())
        table = hudi_services.open(path, engine="local")
        # A writer goes on, with or without the metadata table, and with what is left of it.
        assert table.upsert(rows(6, 8, ts=7), options=_QUIET).ok, survived
        try:
            build(path, index)
        except NothingToDo:
            assert "files" in listed(path)
        is_right(path)


def test_what_is_no_index(tmp_path: Path) -> None:
    path = tmp_path / "t"
    made(path, 9, partitioned=False)
    before = digest(path)
    for index, message in {
        "files,record": "has no metadata table",
        "files,": "has no metadata table",
        "files,column_stats,partition_stats": "has no partitions",
        "expression:x:lower(text)": "has no metadata table, and expression indexes are a part of",
        "expression:lower": "is no index that can be built",
        "expression:../x:lower(text)": "is no index that can be built",
    }.items():
        with pytest.raises((ConfigError, UnsupportedTable), match=message):
            build(path, index)
    assert digest(path) == before
    create(tmp_path / "empty", options=_OFF)
    with pytest.raises(NothingToDo, match="has no commits yet"):
        build(tmp_path / "empty")


def test_damaged_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = made(path, 9)
    assert table.upsert(rows(0, 9, ts=9), options=_OFF).ok
    (victim, *_) = sorted(path.glob("d0/*.parquet"))
    victim.write_bytes(victim.read_bytes()[:-40] + bytes(40))
    with pytest.raises(Exception, match=victim.name):
        build(path)
    assert "files" not in listed(path)
    build(path, "files")
    assert listed(path) == {"files"}


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_commits_that_were_archived_meanwhile(version: int, tmp_path: Path) -> None:
    """Made and archived between two looks: the timeline tells nothing of them."""
    path = tmp_path / "t"
    table = made(path, version)

    class Busy(LocalEngine):
        def map(self, function: Any, tasks: Any, description: str, progress: Any) -> Any:
            if description == "write the indexes" and not (path / "d9").exists():
                for number in range(9):
                    some = rows(300, 310, ts=number, days=1, more_days=9 if number == 0 else 0)
                    assert table.upsert(some, options={**_OFF, **_QUIET}).ok
                assert table.clean(options={**_QUIET, "hoodie.clean.commits.retained": "1"}).ok
                keep = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
                assert table.archive(options={**_QUIET, **keep, "hoodie.clean.commits.retained": "1"}).ok
            return super().map(function, tasks, description, progress)

    build(path, engine=Busy(1))
    metadata = open_local(path).metadata
    assert metadata is not None and "d9" in metadata.listed_partitions()
    is_right(path)


@pytest.mark.parametrize("version", [8, 9])
def test_a_log_file_that_goes_before_it_is_read(version: int, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = create(path, table_version=version, table_type="MERGE_ON_READ", options=_OFF)
    assert table.insert(rows(0, 9, days=1), options=_OFF).ok
    assert table.upsert(rows(0, 5, ts=999, days=1), options=_OFF).ok
    last = table.upsert(rows(0, 3, ts=1000, days=1), options=_OFF)

    class Undone(LocalEngine):
        def map(self, function: Any, tasks: Any, description: str, progress: Any) -> Any:
            if open_local(path).timeline.find(str(last.instant)):
                assert table.rollback(str(last.instant), completed=True).ok
            return super().map(function, tasks, description, progress)

    build(path, engine=Undone(1))
    is_right(path)
    ranges = [one for one in records(path, "partition_stats").values() if getattr(one, "column", "") == "ts"]
    assert [(one.minimum, one.maximum) for one in ranges] == [(0, 999)]  # type: ignore[attr-defined]


@pytest.mark.thorough
def test_columns_that_came_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = made(path, 9)

    class Wider(LocalEngine):
        def map(self, function: Any, tasks: Any, description: str, progress: Any) -> Any:
            if description == "write the indexes":
                some = rows(200, 210)
                more = some.append_column("more", pa.array(range(10), pa.int64()))
                assert table.upsert(more, options=_OFF).ok
            return super().map(function, tasks, description, progress)

    with pytest.raises(ConflictError, match="the columns of the table have changed while"):
        build(path, engine=Wider(1))
    assert "files" not in listed(path)
    build(path)
    is_right(path)
    assert "more" in index_definitions(path)["column_stats"]["sourceFields"]


def test_statistics_by_which_rows_would_be_missed(tmp_path: Path) -> None:
    """Of version 6, whose reader takes a column without statistics for null."""
    path = tmp_path / "t"
    table = create(path, table_version=6, options=_OFF)
    some = rows(0, 9).append_column("price", pa.array([None] * 9, pa.decimal128(38, 10)))
    assert table.insert(some, options=_OFF).ok
    with pytest.raises(UnsupportedTable, match="which has no statistics, and Hudi"):
        build(path)
    build(path, "files")
    is_right(path)


@pytest.mark.thorough
def test_files_that_a_savepoint_hides(by_hudi: ByHudi, tmp_path: Path) -> None:
    """They are listed, and seen when the savepoint goes."""
    path = by_hudi("1.2.0", "beyond", tmp_path / "t")
    opened = open_local(path)
    opened.config.update(opened.storage, {"hoodie.table.metadata.partitions": ""})
    shutil.rmtree(path / ".hoodie/metadata")
    build(path)
    for file in path.glob(".hoodie/timeline/*savepoint*"):
        file.unlink()
    table = open_local(path)
    with_table, by_listing = (
        {file.path for one in view.live_slices() for file in one.files} for view in (table.view, listed_view(table))
    )
    assert with_table == by_listing and with_table


@pytest.mark.thorough
def test_another_process_builds_it_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "t"
    made(path, 8)
    other = Path(shutil.copytree(path, tmp_path / "other"))
    build(other, "files")

    class Other(LocalEngine):
        def map(self, function: Any, tasks: Any, description: str, progress: Any) -> Any:
            if "files" not in listed(path):
                shutil.copytree(other / ".hoodie", path / ".hoodie", dirs_exist_ok=True)
            return super().map(function, tasks, description, progress)

    with pytest.raises(ConflictError, match="another process built the metadata table meanwhile"):
        build(path, engine=Other(1))
    assert listed(path) == {"files"}
    build(path, "column_stats")
    is_right(path)


_UTC = {"spark.sql.session.timeZone": "UTC"}


@pytest.mark.thorough
@pytest.mark.parametrize("release", ["1.0.2", "1.2.0"])
def test_expression_indexes(release: str, tmp_path: Path) -> None:
    """Dropped and built here, they are what real Hudi's CREATE INDEX had made, and are kept in step."""
    path = unpack(release, tmp_path, "expressions")
    table = hudi_services.open(path, engine="local", options=_UTC)
    definitions = index_definitions(path)
    live = {file.name for one in open_local(path).view.live_slices() for file in one.files}
    for index, text in EXPRESSIONS_HERE.items():
        before = {key: one for key, one in records(path, index).items() if getattr(one, "file_name", "") in live}
        assert table.drop_index(index).ok
        assert build(path, text, options=_UTC).groups == 2
        after = records(path, index)
        assert {key: after[key] for key in before} == before
        with pytest.raises(NothingToDo, match=f"has the index {index} already"):
            build(path, text, options=_UTC)
    assert index_definitions(path) == definitions
    assert table.validate().ok
    index_is_true(path)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t"
    made(path, 9)
    command = ["index-bootstrap", "--base-path", str(path), "--index", "files,column_stats", "--engine", "local"]
    assert run([*command, "--dry-run"]) == 0
    assert "a dry run, files, column_stats, partition_stats would be built" in " ".join(capsys.readouterr().out.split())
    assert run([*command, "--resume"]) == 0
    said = capsys.readouterr()
    assert "it begins anew" in said.err and "hoodie.metadata.enable=true in every writer" in said.err
    assert run(command) == 0 and "has files and" in " ".join(capsys.readouterr().out.split())
