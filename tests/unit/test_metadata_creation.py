"""Creating the metadata table of an empty table: with the partitions of its release, at once or not at all."""

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_services
from hudi_services.errors import ConflictError, CorruptFile, UnsupportedTable
from hudi_services.metadata.records.keys import ALL_PARTITIONS_KEY, FILES
from hudi_services.metadata.records.model import FileEntry, FilesRecord, RecordType
from hudi_services.metadata.statistics.indexed_columns import described_columns, index_columns
from hudi_services.metadata_updates.creation import create_metadata_table
from hudi_services.metadata_updates.delta_commit import write_delta_commit
from hudi_services.metadata_updates.metadata_form import NewStatistics
from hudi_services.schema.table_schema import TableSchema
from hudi_services.storage import Storage
from hudi_services.stores import open_storage
from hudi_services.table_config import TableConfig
from hudi_services.timeline.active import Timeline
from hudi_services.timeline.instant import Action, State
from hudi_services.versions import VERSIONS

from .faulty_storage import FaultyStorage, Killed
from .metadata_tables import far_future, files_by_partition, open_metadata

_META = ["_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key"]
_FIELDS = {
    "id": "string",
    "at": {"type": "long", "logicalType": "timestamp-micros"},
    "tags": {"type": "array", "items": "string"},
    "price": {"type": "fixed", "name": "price", "size": 11, "logicalType": "decimal", "precision": 25, "scale": 4},
    "place": {"type": "record", "name": "place", "fields": [{"name": "city", "type": ["null", "string"]}]},
    "day": "string",
}
_SCHEMA = TableSchema.of(
    {
        "type": "record",
        "name": "rides_record",
        "fields": [{"name": name, "type": ["null", kind]} for name, kind in _FIELDS.items()],
    }
)
_T = "20260101000000000"


def table(path: Path, version: int, **arguments: Any) -> Storage:
    known = {"name": "rides", "record_key": "id", "partition_by": "day", "ordering": "at", "engine": "local"}
    hudi_services.create(path, table_version=version, **{**known, **arguments})
    return open_storage(str(path))


def made(storage: Storage, statistics: NewStatistics | None = None, writer: str = "") -> TableConfig:
    chosen = {} if statistics is None else {"statistics": statistics}
    return create_metadata_table(storage, _SCHEMA, far_future(), writer=writer, **chosen)


def begin(storage: Storage, ts: str) -> None:
    Timeline.open(storage, TableConfig.load(storage)).publish(ts, Action.COMMIT, State.REQUESTED)


def complete(storage: Storage, ts: str) -> None:
    timeline = Timeline.open(storage, TableConfig.load(storage))
    for state in (State.INFLIGHT, State.COMPLETED):
        timeline.publish(ts, Action.COMMIT, state, completion_time=f"{int(ts) + 1}")


@pytest.mark.parametrize("partition_by", ["day", None])
@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_empty(version: int, partition_by: str | None, tmp_path: Path) -> None:
    storage = table(tmp_path, version, partition_by=partition_by)
    config = made(storage)
    wanted = {FILES} if version == 6 else {FILES, "column_stats"} | ({"partition_stats"} if partition_by else set())
    assert {*config.metadata_partitions} == wanted
    assert config.raw == TableConfig.load(storage).raw
    assert config.metadata_partitions_inflight == ()
    metadata = open_metadata(tmp_path)
    assert files_by_partition(metadata) == {}
    assert [record.key for record in metadata.reader(FILES).scan()] == [ALL_PARTITIONS_KEY]
    counts = {partition: len(metadata.file_groups(partition)) for partition in metadata.partitions}
    assert counts == {name: 2 if name == "column_stats" else 1 for name in wanted}
    first = "00000000000000010" if version == 6 else "00000000000000000"
    assert [one.ts for one in metadata.timeline.completed()] == [f"{int(first) + n:017d}" for n in range(len(wanted))]
    found = hudi_services.open(tmp_path, engine="local")
    assert (found.validate().exit_code, found.files().num_rows) == (0, 0)
    assert made(storage).raw == config.raw


@pytest.mark.parametrize("version", [8, 9])
def test_without_partition_statistics(version: int, tmp_path: Path) -> None:
    """hoodie.metadata.index.partition.stats.enable=false, as 1.0.2 takes it; `write` passes it on."""
    rows = pa.table({"id": ["a"], "day": ["d"], "at": [1]})
    off = {"hoodie.metadata.index.partition.stats.enable": "false"}
    known = {"name": "rides", "record_key": "id", "partition_by": "day", "engine": "local"}
    found = hudi_services.create(tmp_path, table_version=version, options=off, **known)
    assert found.insert(rows).ok
    assert {*TableConfig.load(open_storage(str(tmp_path))).metadata_partitions} == {FILES, "column_stats"}
    assert found.validate(strict=True).ok


@pytest.mark.parametrize("version", VERSIONS)
def test_a_commit_on_top(version: int, tmp_path: Path) -> None:
    storage = table(tmp_path, version)
    begin(storage, _T)
    made(storage, writer=_T)
    listed = FilesRecord(ALL_PARTITIONS_KEY, RecordType.ALL_PARTITIONS, {"d0": FileEntry(0)})
    files = FilesRecord("d0", RecordType.FILES, {"f_0_1.parquet": FileEntry(7)})
    write_delta_commit(open_metadata(tmp_path), _T, {FILES: [listed, files]}, far_future(50))
    assert files_by_partition(open_metadata(tmp_path)) == {}
    complete(storage, _T)
    assert files_by_partition(open_metadata(tmp_path)) == {"d0": {"f_0_1.parquet": 7}}


def indexed(path: Path) -> list[str]:
    definition = json.loads((path / ".hoodie/.index_defs/index.json").read_text())["indexDefinitions"]["column_stats"]
    found: list[str] = definition["sourceFields"]
    metadata = open_metadata(path)
    assert described_columns(metadata) == index_columns(metadata, []).columns == {*found}
    assert index_columns(metadata, []).typed == (definition.get("version") == "V2")
    return found


def test_the_columns_that_have_statistics(tmp_path: Path) -> None:
    """By default those whose type has statistics: of version 9, also wide decimals."""
    for version, own in {8: ["id", "at", "day"], 9: ["id", "at", "price", "day"]}.items():
        made(table(tmp_path / str(version), version))
        assert indexed(tmp_path / str(version)) == [*_META, *own]
    made(table(tmp_path / "plain", 9, options={"hoodie.populate.meta.fields": "false"}))
    assert indexed(tmp_path / "plain") == ["id", "at", "price", "day"]


@pytest.mark.parametrize(
    ("statistics", "columns"),
    [
        (NewStatistics(most_columns=2), ["id", "at"]),
        (NewStatistics(columns=("place.city", "tags", "day", "_hoodie_record_key", "none")), ["place.city", "day"]),
    ],
)
def test_chosen_columns(statistics: NewStatistics, columns: list[str], tmp_path: Path) -> None:
    made(table(tmp_path, 9), statistics)
    assert indexed(tmp_path) == [*_META, *columns]


def test_chosen_partitions(tmp_path: Path) -> None:
    none = made(table(tmp_path / "none", 9), NewStatistics(enable=False))
    assert none.metadata_partitions == (FILES,)
    assert not (tmp_path / "none" / none.index_defs_path).exists()
    made(table(tmp_path / "many", 9), NewStatistics(file_groups=3, range_file_groups=2))
    metadata = open_metadata(tmp_path / "many")
    assert [len(metadata.file_groups(name)) for name in ("column_stats", "partition_stats")] == [3, 2]
    old = made(table(tmp_path / "old", 6), NewStatistics(enable=True))
    assert old.metadata_partitions == ("column_stats", FILES)
    assert "hoodie.table.index.defs.path" not in old.raw


def test_other_writers(tmp_path: Path) -> None:
    storage = table(tmp_path, 9)
    begin(storage, _T)
    with pytest.raises(ConflictError, match=f"{_T}.commit.requested is pending"):
        made(storage)
    assert FILES in made(storage, writer=_T).metadata_partitions
    # A table that has a metadata table stays as it is, whoever writes.
    assert FILES in made(storage).metadata_partitions


def test_a_table_with_commits(tmp_path: Path) -> None:
    storage = table(tmp_path, 9)
    begin(storage, _T)
    complete(storage, _T)
    with pytest.raises(UnsupportedTable, match="has commits without a metadata table"):
        made(storage)
    assert not (tmp_path / ".hoodie/metadata").exists()


def test_an_invalid_schema(tmp_path: Path) -> None:
    with pytest.raises(CorruptFile, match="the schema for rides: the table schema is no JSON"):
        create_metadata_table(table(tmp_path, 9), TableSchema("{", "the schema for rides"), far_future())
    assert not (tmp_path / ".hoodie/metadata").exists()


def test_after_a_write_that_was_rolled_back(tmp_path: Path) -> None:
    """On version 6 the build is named after it."""
    storage = table(tmp_path, 6)
    timeline = Timeline.open(storage, TableConfig.load(storage))
    for state in State:
        timeline.publish(_T, Action.ROLLBACK, state)
    made(storage)
    assert [one.ts for one in open_metadata(tmp_path).timeline.completed()] == [f"{_T}010"]
    assert files_by_partition(open_metadata(tmp_path)) == {}


@pytest.mark.parametrize("version", VERSIONS)
def test_killed_anywhere(version: int, tmp_path: Path) -> None:
    """The table then has no metadata table, and the next creation makes the same one."""
    table(tmp_path / "whole", version)
    whole = FaultyStorage(str(tmp_path / "whole"))
    made(whole)
    wanted = contents(tmp_path / "whole")
    seen = set()
    for survived in range(len(whole.log)):
        path = tmp_path / "killed"
        shutil.rmtree(path, ignore_errors=True)
        table(path, version)
        with suppress(Killed):
            made(FaultyStorage(str(path), survived))
            raise AssertionError("not killed")
        storage = open_storage(str(path))
        has_one = FILES in TableConfig.load(storage).metadata_partitions
        seen.add(has_one)
        assert has_one == bool(TableConfig.load(storage).raw.get("hoodie.table.metadata.partitions"))
        assert hudi_services.open(path, engine="local").validate().exit_code == 0
        # The second one begins later, dies as well, and leaves files behind that the third must delete.
        with suppress(Killed):
            create_metadata_table(FaultyStorage(str(path), survived // 2), _SCHEMA, far_future(500))
        made(storage)
        assert contents(path).keys() == wanted.keys() or has_one
        assert files_by_partition(open_metadata(path)) == {}
        assert hudi_services.open(path, engine="local").validate().exit_code == 0
    assert seen == {False, True}


def contents(path: Path) -> dict[str, bytes]:
    files = (file for file in path.rglob("*") if file.is_file() and not file.name.endswith(".backup"))
    return {str(file.relative_to(path)): file.read_bytes() for file in files}
