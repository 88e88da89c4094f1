"""Log files that writes append to merge-on-read tables: their content, and what happens beside compactions."""

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_services
from hudi_services.errors import CheckFailed, ConflictError, UnsupportedTable
from hudi_services.ingest import write_tasks
from hudi_services.log_files.delete_records import DeleteRecord, delete_records
from hudi_services.log_files.log_blocks import BlockType, LogBlock
from hudi_services.log_files.log_reader import read_log_blocks
from hudi_services.versions import VERSIONS
from hudi_services.writing import appended_logs

from .rides import FILTERS, create
from .tables import merged_rows, open_local

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")

LOGS = {"table_type": "MERGE_ON_READ", "partition_by": None}


def rows(first: int, end: int, ts: int = 0, text: str = "text") -> pa.Table:
    numbers = range(first, end)
    return pa.table(
        {
            "id": [f"k{n:03d}" for n in numbers],
            "ts": pa.array([ts] * len(numbers), pa.int64()),
            "text": [f"{text} {n}" for n in numbers],
        }
    )


def blocks(path: Path) -> list[LogBlock]:
    """The blocks of all log files, in the order of the files."""
    logs = sorted(path.glob(".*.log.*"))
    return [block for log in logs for block in read_log_blocks(log.read_bytes(), log.name)]


def deleted(path: Path) -> list[DeleteRecord]:
    return [one for block in blocks(path) if block.type is BlockType.DELETE for one in delete_records(block)]


def texts(path: Path) -> dict[str, str]:
    found = merged_rows(path)
    keys, values = (found.column(name).to_pylist() for name in ("id", "text"))
    return dict(zip(keys, values, strict=True))


ORDERING = {
    "int": (pa.array([7], pa.int32()), ("IntWrapper", 7)),
    "long": (pa.array([-(2**40)]), ("LongWrapper", -(2**40))),
    "float": (pa.array([1.5], pa.float32()), ("FloatWrapper", 1.5)),
    "double": (pa.array([2.5]), ("DoubleWrapper", 2.5)),
    "boolean": (pa.array([True]), ("BooleanWrapper", True)),
    "string": (pa.array(["é"]), ("StringWrapper", "é")),
    "timestamp": (pa.array([11], pa.timestamp("us", "UTC")), ("LongWrapper", 11)),
    "decimal": (pa.array([Decimal("-3.25")], pa.decimal128(10, 2)), ("DecimalWrapper", Decimal("-3.25"))),
    "date": (pa.array([datetime.date(1970, 1, 6)]), ("DateWrapper", 5)),
    "null": (pa.array([None], pa.int64()), None),
}


@pytest.mark.thorough
@pytest.mark.spread(4)
@pytest.mark.parametrize("kind", ORDERING)
@pytest.mark.parametrize("version", [6, 9])
def test_deletes_have_the_ordering_values_of_their_rows(version: int, kind: str, tmp_path: Path) -> None:
    """Those of rows that are marked as deleted; a delete by key alone has Hudi's default. As Hudi stores them."""
    value, wanted = ORDERING[kind]
    path = tmp_path / "rides"
    table = create(path, table_version=version, **LOGS)
    mark = "_hoodie_is_deleted"
    new = pa.table({"id": ["a"], "ts": value, mark: [False]})
    table.insert(new)
    gone = new.set_column(2, mark, [[True]])
    if kind == "date" and version == 9:
        with pytest.raises(UnsupportedTable, match="the ordering field ts, and the Hudi release of this table version"):
            table.upsert(gone)
        assert not open_local(path).timeline.pending() and not list(path.glob(".*.log.*"))
        return
    table.upsert(gone)
    (record,) = deleted(path)
    found = record.ordering[0] if record.ordering else None
    if kind == "decimal" and found is not None:
        found = found[0], Decimal(int.from_bytes(found[1], "big", signed=True)).scaleb(-15)
    assert (record.key, found) == ("a", wanted)
    table.delete(new.select(["id"]))
    assert deleted(path)[-1] == DeleteRecord("a", (("IntWrapper", 0),))
    assert table.validate(strict=True).ok


@pytest.mark.parametrize("version", VERSIONS)
def test_a_column_of_nan(version: int, tmp_path: Path) -> None:
    table = create(tmp_path / "rides", table_version=version, **LOGS)
    for text, fare in (("text", 1.0), ("new", math.nan)):
        given = rows(0, 3, ts=1, text=text)
        assert table.upsert(given.append_column("fare", pa.array([fare] * 3))).ok
    found = merged_rows(tmp_path / "rides")
    assert pc.all(pc.is_nan(found.column("fare"))).as_py() and found.num_rows == 3
    assert table.validate(strict=True).ok


def test_several_ordering_fields(tmp_path: Path) -> None:
    path = tmp_path / "rides"
    table = create(path, **{**LOGS, "ordering": ["ts", "text"]})
    mark = "_hoodie_is_deleted"
    table.insert(rows(0, 1).append_column(mark, [[False]]))
    table.upsert(rows(0, 1, ts=4).append_column(mark, [[True]]))
    assert deleted(path) == [DeleteRecord("k000", (("LongWrapper", 4), ("StringWrapper", "text 0")))]
    assert merged_rows(path).num_rows == 0


@pytest.mark.parametrize("kind", ["AVRO", "PARQUET"])
def test_blocks_are_closed_by_size(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data blocks first, each with the writer's schema, and then the deletes."""
    path = tmp_path / "rides"
    table = create(path, **LOGS)
    table.insert(rows(0, 60))
    monkeypatch.setattr("hudi_services.writing.meta_columns._STEP_ROWS", 10)
    monkeypatch.setattr(write_tasks, "_BLOCK_SHARE", 1 << 60)
    new = rows(0, 40, ts=1).append_column("_hoodie_is_deleted", pa.array([n % 4 == 3 for n in range(40)]))
    result = table.upsert(new, options={**FILTERS, "hoodie.logfile.data.block.format": kind.lower()})
    found = [block.type for block in blocks(path)]
    assert found == [BlockType[f"{kind}_DATA"]] * 3 + [BlockType.DELETE]
    row = {"log_files": 1, "updates": 30, "deletes": 10, "bytes": next(path.glob(".*.log.*")).stat().st_size}
    assert result.tables["appended"].to_pylist() == [row]
    assert len(texts(path)) == 50
    assert table.validate(strict=True).ok


@pytest.mark.parametrize("fault", ["a record", "a delete", "a block"])
def test_a_log_file_that_is_not_what_was_meant_is_found(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rides"
    table = create(path, **LOGS)
    table.insert(rows(0, 20))
    before = merged_rows(path)
    kind = "AVRO_DATA" if fault == "a record" else "DELETE"
    encode = appended_logs.encode_block

    def wrong(block: LogBlock) -> bytes:
        data = encode(block)
        if block.type is not BlockType[kind]:
            return data
        return b"" if fault == "a block" else data.replace(b"k00", b"j00", 1)

    monkeypatch.setattr(appended_logs, "encode_block", wrong)
    new = rows(0, 10, ts=1).append_column("_hoodie_is_deleted", pa.array([n > 5 for n in range(10)]))
    with pytest.raises(CheckFailed, match="does not hold the records that were to be written"):
        table.upsert(new)
    assert merged_rows(path).equals(before)
    assert not open_local(path).timeline.pending()


@pytest.mark.parametrize("version", VERSIONS)
def test_beside_a_pending_compaction(version: int, tmp_path: Path) -> None:
    """Log files are written to the slice that the compaction has begun, and no small file is filled."""
    path = tmp_path / "rides"
    table = create(path, table_version=version, **LOGS)
    table.insert(rows(0, 20))
    table.upsert(rows(0, 5, ts=1, text="one"))
    planned = table.plan_compaction(options={"hoodie.compact.inline.max.delta.commits": "1"})
    table.upsert(rows(3, 22, ts=2, text="two"))
    table.delete(rows(7, 9))
    wanted = {f"k{n:03d}": f"{'one' if n < 3 else 'two'} {n}" for n in range(22) if n not in (7, 8)}
    assert texts(path) == wanted
    new = [log for log in path.glob(".*.log.*") if (planned.instant or "") in log.name]
    assert len(new) == (2 if version == 6 else 0)
    assert table.validate(strict=True).ok
    assert table.compact().ok
    assert texts(path) == wanted
    table.upsert(rows(0, 1, ts=3, text="three"))
    assert texts(path) == wanted | {"k000": "three 0"}
    assert table.validate(strict=True).ok


OPTIONS = {
    **FILTERS,
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.write.num.retries.on.conflict.failures": "0",
}


@pytest.mark.thorough
@pytest.mark.parametrize("meanwhile", ["compaction", "plan", "upsert", "clustering plan", "overwrite"])
@pytest.mark.parametrize("version", VERSIONS)
def test_another_process_changes_the_group_meanwhile(
    version: int, meanwhile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compactions do not matter; anything else is a conflict."""
    path = tmp_path / "rides"
    table = create(path, table_version=version, **LOGS)
    table.insert(rows(0, 20))
    table.upsert(rows(0, 5, ts=1, text="one"))
    if meanwhile == "compaction":
        assert table.plan_compaction(options=OPTIONS).instant
    others: dict[str, Callable[[hudi_services.Table], Any]] = {
        "compaction": lambda other: other.execute_compaction(options=OPTIONS),
        "plan": lambda other: other.plan_compaction(options=OPTIONS),
        "upsert": lambda other: other.upsert(rows(3, 4, ts=2, text="other"), options=OPTIONS),
        "clustering plan": lambda other: other.plan_clustering(options=OPTIONS),
        "overwrite": lambda other: other.insert_overwrite(rows(30, 31), options=OPTIONS),
    }
    append, idle = write_tasks.append_rows, False

    def interrupted(*arguments: Any) -> Any:
        nonlocal idle
        monkeypatch.setattr(write_tasks, "append_rows", append)
        result = others[meanwhile](hudi_services.open(path, engine="local"))
        assert result.ok
        idle = result.idle
        return append(*arguments)

    monkeypatch.setattr(write_tasks, "append_rows", interrupted)
    before = texts(path)
    new, updated = rows(4, 8, ts=5, text="new"), {f"k{n:03d}": f"new {n}" for n in range(4, 8)}
    # Plans leave out the file groups that a pending write has.
    harmless = meanwhile in ("compaction", "plan", "clustering plan")
    try:
        table.upsert(new, options=OPTIONS)
    except ConflictError:
        assert not harmless
        assert "new 4" not in texts(path).values()
        # What the other one has committed stays: no two writes name a log file in the same way.
        assert meanwhile != "upsert" or texts(path) == before | {"k003": "other 3"}
    else:
        assert harmless
        assert texts(path) == before | updated
    assert idle == (meanwhile == "clustering plan" or (meanwhile, version) == ("plan", 6))
    assert table.validate(strict=True).ok


@pytest.mark.thorough
def test_only_the_smallest_files_are_filled(tmp_path: Path) -> None:
    path = tmp_path / "rides"
    table = create(path, **LOGS)
    apart = {**FILTERS, "hoodie.parquet.small.file.limit": "0"}
    table.insert(rows(0, 30), options=apart)
    table.insert(rows(100, 102), options=apart)
    table.insert(rows(200, 220), options=apart)
    result = table.insert(rows(300, 310))
    assert result.tables["written"].column("filled_files").to_pylist() == [1]
    assert sorted(_rows_by_file(path)) == [12, 20, 30]
    # A file with log files is not small.
    table.upsert(pa.concat_tables([rows(n, n + 1, ts=1) for n in (0, 100, 200)]), options=apart)
    assert table.insert(rows(500, 510)).tables["written"].column("new_files").to_pylist() == [1]
    assert merged_rows(path).num_rows == 72


def _rows_by_file(path: Path) -> list[int]:
    """The rows of the newest base file of each file group."""
    table = open_local(path)
    return [table.slices.open(one).num_rows for one in table.view.latest_slices("")]


@pytest.mark.thorough
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
@pytest.mark.parametrize("version", [6, 9])
def test_rows_that_have_left_their_base_file(version: int, index: str, tmp_path: Path) -> None:
    """By a global index the row of a base file that a log file has deleted is none: its key is elsewhere, or new."""
    path = tmp_path / "rides"
    table = create(path, table_version=version, table_type="MERGE_ON_READ", partition_by="text")
    options = {**FILTERS, "hoodie.index.type": index}

    def one(ts: int, text: str) -> pa.Table:
        return pa.table({"id": ["a"], "ts": [ts], "text": [text]})

    table.insert(one(5, "x"))
    table.upsert(one(6, "y"), options=options)
    key = f"hoodie.{index.removeprefix('GLOBAL_').lower()}.index.update.partition.path"
    table.upsert(one(7, "z"), options={**options, key: "false"})
    found = merged_rows(path)
    assert (found.column("ts").to_pylist(), found.column("_hoodie_partition_path").to_pylist()) == ([7], ["y"])
    table.upsert(one(3, "x"), options=options)
    assert merged_rows(path).column("ts").to_pylist() == ([3] if version == 6 else [7])
    table.delete(one(0, "x"), options=options)
    table.upsert(one(1, "x"), options=options)
    assert merged_rows(path).column("ts").to_pylist() == [1]
    assert table.validate(strict=True).ok


@pytest.mark.thorough
def test_a_deleted_key_that_was_inserted_again(tmp_path: Path) -> None:
    """An insert does not look; later writes take the row that is there, and not the one that a log file deletes."""
    path = tmp_path / "rides"
    table = create(path, **LOGS)
    apart = {**FILTERS, "hoodie.parquet.small.file.limit": "0"}
    table.insert(rows(0, 3), options=apart)
    table.delete(rows(0, 2), options=apart)
    dropped = table.insert(rows(0, 4, ts=1), options={**apart, "hoodie.datasource.insert.dup.policy": "drop"})
    assert dropped.tables["written"].column("inserts").to_pylist() == [3]
    table.upsert(rows(0, 3, ts=2, text="new"), options=apart)
    assert merged_rows(path).column("text").to_pylist() == ["new 0", "new 1", "new 2", "text 3"]
    table.delete(rows(0, 1), options=apart)
    table.upsert(rows(0, 1, ts=3, text="back"), options=apart)
    assert merged_rows(path).column("text").to_pylist() == ["back 0", "new 1", "new 2", "text 3"]
    assert table.validate(strict=True).ok


def test_an_ordering_value_that_no_delete_can_have(tmp_path: Path) -> None:
    table = create(tmp_path / "rides", **LOGS)
    fine = pa.array([Decimal("0.000000000000000001")], pa.decimal128(20, 18))
    row = pa.table({"id": ["a"], "ts": fine, "_hoodie_is_deleted": [False]})
    table.insert(row)
    with pytest.raises(UnsupportedTable, match=r"cannot store such a value of the type decimal\(20,18\)"):
        table.upsert(row.set_column(2, "_hoodie_is_deleted", [[True]]))
