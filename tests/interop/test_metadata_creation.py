"""Metadata tables that we create: they are those of real Hudi, which then writes into them, reads and compacts them."""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

import hudi_services
from hudi_services.codecs.properties import parse_properties
from hudi_services.commit.times import Times
from hudi_services.metadata.records.keys import FILES
from hudi_services.metadata_updates.creation import create_metadata_table
from hudi_services.metadata_updates.metadata_form import NewStatistics
from hudi_services.schema.table_schema import TableSchema
from hudi_services.storage import Storage
from hudi_services.stores import open_storage

from ..unit.faulty_storage import FaultyStorage, Killed
from ..unit.metadata_tables import open_metadata
from ..unit.tables import open_local
from . import ours
from .mdt_check import check_metadata
from .peer import Peer, index_definitions
from .pristine import ALL
from .reading import METADATA_OFF, METADATA_ON
from .recipes import NESTED, SCALARS, SMALL_FILTERS, TRIP, WRITE_DEFAULTS, Columns

_WRITE = "hoodie.datasource.write."
_STATS = "hoodie.metadata.index.column.stats."
_BASE = {
    "hoodie.table.name": "trips",
    f"{_WRITE}recordkey.field": "id",
    f"{_WRITE}partitionpath.field": "part",
    f"{_WRITE}precombine.field": "ts",
}
_SHAPES: Mapping[str, Mapping[str, str | None]] = {
    "partitions": {},
    "no partitions": {f"{_WRITE}partitionpath.field": None},
    "merge on read": {f"{_WRITE}table.type": "MERGE_ON_READ"},
}
_SKIPPING = {**METADATA_ON, "hoodie.enable.data.skipping": "true"}
_COMPACT = {"hoodie.metadata.compact.max.delta.commits": "2"}
_KINDS = {
    "id": "string",
    "ts": "long",
    "name": "string",
    "amount": "double",
    "qty": "int",
    "at": {"type": "long", "logicalType": "timestamp-micros"},
    "part": "string",
}
_TRIP_SCHEMA = TableSchema.of(
    {
        "type": "record",
        "name": "trips_record",
        "fields": [{"name": name, "type": ["null", kind], "default": None} for name, kind in _KINDS.items()],
    }
)
_FRAME = """
frame = spark.range(first, end, 1, 1).selectExpr(*columns)
frame.write.format("hudi").options(**options).mode("append").save(path)
"""


def _options(more: Mapping[str, str | None]) -> dict[str, str]:
    return {key: text for key, text in {**_BASE, **more}.items() if text is not None}


def _write(
    peer: Peer,
    path: Path,
    options: Mapping[str, str],
    operation: str,
    rows: tuple[int, int] = (0, 3),
    columns: Columns = TRIP,
) -> None:
    known = {f"{_WRITE}operation": operation, **WRITE_DEFAULTS, **SMALL_FILTERS, **options}
    first, end = rows
    texts = [f"{sql} as {name}" for name, sql in columns.items()]
    peer.eval(_FRAME, path=str(path), options=known, columns=texts, first=first, end=end)


def _create(
    peer: Peer, path: Path, options: Mapping[str, str], schema: TableSchema, statistics: NewStatistics | None = None
) -> None:
    version = peer.table_version
    hudi_services.create(path, table_version=version.number, options=options, engine="local")
    _create_metadata(open_storage(str(path)), path, schema, statistics)


def _create_metadata(
    storage: Storage, path: Path, schema: TableSchema, statistics: NewStatistics | None = None
) -> None:
    times = Times(open_local(path), 0).next
    create_metadata_table(storage, schema, times, statistics=statistics or NewStatistics())


def _schema(path: Path) -> TableSchema:
    schema = open_local(path).schema
    assert schema is not None
    return schema


def _properties(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Those of the table and of its metadata table."""
    folders = (path / ".hoodie", path / ".hoodie/metadata/.hoodie")
    table, own = (parse_properties((one / "hoodie.properties").read_bytes(), str(one)) for one in folders)
    return table, own


def _listed(path: Path) -> set[str]:
    """What is in the metadata table, without the write tokens of base files and the times of completion."""
    files = (path / ".hoodie/metadata").rglob("*_0*.log.1_0-0-0"), (path / ".hoodie/metadata").rglob("0*.deltacommit*")
    named = {file.relative_to(path) for some in files for file in some}
    return {f"{file.parent}/{_undated(file.name)}" for file in named}


def _undated(name: str) -> str:
    instant, _, end = name.partition(".")
    return f"{instant.split('_')[0]}.{end}" if "deltacommit" in name else name


_CASES: Mapping[str, Mapping[str, str | None]] = {
    **_SHAPES,
    "database, UTC": {"hoodie.database.name": "lake", "hoodie.table.timeline.timezone": "UTC"},
    "all types": {},
    "few columns": {f"{_STATS}max.columns.to.index": "3"},
    "listed columns": {f"{_STATS}column.list": "name,qty,part"},
    "more file groups": {f"{_STATS}file.group.count": "3"},
    "no statistics": {f"{_STATS}enable": "false"},
    "statistics": {f"{_STATS}enable": "true"},
}
_STATISTICS = {
    "few columns": NewStatistics(most_columns=3),
    "listed columns": NewStatistics(columns=("name", "qty", "part")),
    "more file groups": NewStatistics(file_groups=3),
    "no statistics": NewStatistics(enable=False),
    "statistics": NewStatistics(enable=True),
}


@pytest.mark.deep
def test_it_is_what_hudi_makes(peer: Peer, tmp_path: Path) -> None:
    for case, more in _CASES.items():
        options = _options(more)
        theirs, ours = tmp_path / case / "theirs", tmp_path / case / "ours"
        columns = {**SCALARS, **NESTED, "part": "'p'"} if case == "all types" else TRIP
        _write(peer, theirs, options, "insert", columns=columns)
        made = {key: text for key, text in options.items() if not key.startswith(_STATS)}
        _create(peer, ours, made, _schema(theirs), _STATISTICS.get(case))
        assert _properties(ours) == _properties(theirs), case
        assert index_definitions(ours) == index_definitions(theirs), case
        assert _listed(ours) == _listed(theirs), case
        bases = [[file.name.split("_")[0] for file in (one / ".hoodie").rglob("*.hfile")] for one in (ours, theirs)]
        assert bases == [["files-0000-0"]] * 2, case


@pytest.mark.deep
@pytest.mark.parametrize("shape", _SHAPES)
def test_hudi_goes_on(peer: Peer, tmp_path: Path, shape: str) -> None:
    """It inserts and updates, reads with and without our metadata table, and compacts it."""
    options, path = _options(_SHAPES[shape]), tmp_path / "table"
    _create(peer, path, options, _TRIP_SCHEMA)
    made, definitions = _properties(path), index_definitions(path)
    _write(peer, path, options, "insert", (0, 60))
    # Hudi names no other partitions, and describes the same columns.
    assert (_properties(path), index_definitions(path)) == (made, definitions)
    _is_true(peer, path, 60)
    _write(peer, path, options, "upsert", (50, 90), {**TRIP, "ts": "id * 10 + 5", "qty": "1000 + id"})
    _is_true(peer, path, 90)
    assert not [*(path / ".hoodie/metadata/.hoodie").rglob("*.commit")]
    _write(peer, path, {**options, **_COMPACT}, "upsert", (85, 95), {**TRIP, "ts": "id * 10 + 6", "qty": "2000 + id"})
    assert len([*(path / ".hoodie/metadata/.hoodie").rglob("*.commit")]) == 1
    _is_true(peer, path, 95)
    assert (_properties(path), index_definitions(path)) == (made, definitions)


@pytest.mark.deep
@pytest.mark.releases(*ALL)
@pytest.mark.parametrize("shape", _SHAPES)
def test_a_table_with_history_gets_one(peer: Peer, tmp_path: Path, shape: str) -> None:
    """Built from files and log files of commits without it, it is what Hudi's next writer makes, and Hudi goes on."""
    options, path, theirs = _options(_SHAPES[shape]), tmp_path / "ours", tmp_path / "theirs"
    newer = {**TRIP, "ts": "id * 10 + 5", "qty": "1000 + id"}
    for operation, rows, columns in (("insert", (0, 60), TRIP), ("upsert", (40, 70), newer)):
        _write(peer, path, {**options, **METADATA_OFF}, operation, rows, columns)
    assert FILES not in open_local(path).config.metadata_partitions
    shutil.copytree(path, theirs)
    index = "files" if peer.version == "0.15.0" else "files,column_stats"
    ours.run("index-bootstrap", path, "--index", index).ok()
    _is_true(peer, path, 70)
    assert not [*(path / ".hoodie/metadata/.hoodie").rglob("*.commit")]
    latest = {**TRIP, "ts": "id * 10 + 6", "qty": "2000 + id"}
    for table in (path, theirs):
        _write(peer, table, options, "upsert", (65, 90), latest)
    assert _without_names(_properties(path)) == _without_names(_properties(theirs))
    assert index_definitions(path) == index_definitions(theirs)
    _is_true(peer, path, 90)
    _write(peer, path, {**options, **_COMPACT}, "upsert", (85, 95), {**latest, "ts": "id * 10 + 7"})
    assert len([*(path / ".hoodie/metadata/.hoodie").rglob("*.commit")]) == 1
    _is_true(peer, path, 95)
    # As the report says.
    _write(peer, path, {**options, **METADATA_OFF}, "upsert", (94, 96), latest)
    assert not (path / ".hoodie/metadata").exists()
    assert FILES not in open_local(path).config.metadata_partitions


def _without_names(properties: tuple[dict[str, str], ...]) -> list[dict[str, str]]:
    """Without what differs between any two tables."""
    return [{key: text for key, text in one.items() if not key.endswith("checksum")} for one in properties]


def _is_true(peer: Peer, path: Path, rows: int) -> None:
    """Hudi reads all rows in every way, and neither Hudi nor we find anything wrong with the metadata table."""
    found = [peer.rows(path, options).sort_by("id") for options in (METADATA_ON, METADATA_OFF, _SKIPPING)]
    assert found[0].num_rows == rows
    assert found[0] == found[1] == found[2]
    greatest = max(found[0]["qty"].to_pylist())
    for where in (f"qty = {greatest}", "id = 'k-000059'", "part = 'p1' and qty > 400", "ts < 100"):
        read = [peer.rows(path, options, where=where).sort_by("id") for options in (_SKIPPING, METADATA_OFF)]
        assert read[0].num_rows > 0
        assert read[0] == read[1], where
    if all(".hoodie" in file.parts for file in path.rglob(".*.log.*")):
        assert check_metadata(peer, path) == []
    assert hudi_services.open(path, engine="local").validate(strict=True).exit_code == 0


@pytest.mark.thorough
def test_hudi_writes_after_a_killed_creation(peer: Peer, tmp_path: Path) -> None:
    """It makes the metadata table itself."""
    path, options = tmp_path / "table", _options({})
    version = peer.table_version
    hudi_services.create(path, table_version=version.number, options=options, engine="local")
    storage = _KilledAtTheSwitch(str(path))
    with suppress(Killed):
        _create_metadata(storage, path, _TRIP_SCHEMA)
    assert storage.left == -1
    assert FILES not in open_local(path).config.metadata_partitions
    _write(peer, path, options, "insert", (0, 60))
    _is_true(peer, path, 60)
    assert FILES in open_metadata(path).partitions


class _KilledAtTheSwitch(FaultyStorage):
    """Dies when the properties of the table begin to change."""

    def _write(self, what: str, path: str) -> None:
        if path == ".hoodie/hoodie.properties.backup":
            self.left = 0
        super()._write(what, path)
