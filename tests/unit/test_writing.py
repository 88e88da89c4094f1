"""Writes of rows: their schema, their sizes, what is refused before anything is written, kills at every write."""

import decimal
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudi_services
from hudi_services.commit.markers import create_marker
from hudi_services.engine import LocalEngine
from hudi_services.errors import CheckFailed, ConfigError, ConflictError, Outdated
from hudi_services.ingest import write_execution
from hudi_services.ingest.write_tasks import WriteTask
from hudi_services.jobs import writing
from hudi_services.options import resolve
from hudi_services.rewriting.outputs import CopyFile, RowFile
from hudi_services.runs.request import WriteOperation, WriteRequest
from hudi_services.storage import Storage
from hudi_services.stores import open_storage
from hudi_services.stores.local import LocalStorage
from hudi_services.versions import VERSIONS

from .faulty_storage import FaultyStorage, Killed
from .rides import FILTERS, create
from .shares import places, share
from .tables import both_views, open_local

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")


def rows(first: int, end: int, days: int = 3) -> pa.Table:
    numbers = np.arange(first, end)
    return pa.table(
        {
            "id": pa.array(numbers).cast(pa.string()),
            "day": pa.array([f"d{n % days}" for n in numbers], pa.string()),
            "ts": numbers,
            "text": pa.array([f"text {n}" for n in numbers], pa.string()),
        }
    )


def read(path: Path) -> pa.Table:
    """The rows that readers see, by key, without Hudi's columns."""
    found, listed = both_views(path)
    assert found.equals(listed)
    return found.select(["id", "day", "ts", "text"]).sort_by("ts")


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_inserts_fill_small_files(version: int, tmp_path: Path) -> None:
    table = create(tmp_path / "rides", table_version=version)
    first = table.insert(rows(0, 300))
    # No phase lies in another one; each is rounded to milliseconds.
    phases = {name: seconds for name, seconds in first.report["seconds"].items() if not name.startswith("tasks: ")}
    assert {"keep rows", "begin", "assign rows", "write", "commit"} <= phases.keys()
    assert sum(seconds for name, seconds in phases.items() if name != "total") <= phases["total"] + 0.01
    assert first.tables["written"].to_pylist()[0]["new_files"] == 3
    second = table.insert(rows(300, 400))
    written = second.tables["written"].to_pylist()[0]
    assert (written["filled_files"], written["new_files"], written["rows"]) == (3, 0, 100)
    assert second.report["files"] == {"in": 3, "out": 3}
    assert second.report["rows"] == {"in": 100, "out": 400}
    third = table.bulk_insert(rows(400, 450, days=4))
    assert third.tables["written"].to_pylist()[0]["new_files"] == 4
    assert read(tmp_path / "rides").equals(pa.concat_tables([rows(0, 400), rows(400, 450, days=4)]).combine_chunks())
    assert table.validate(strict=True).ok
    assert table.slices().num_rows == 7
    found, _ = both_views(tmp_path / "rides")
    # Rows that were there keep the time of their commit.
    times = {row["id"]: row["_hoodie_commit_time"] for row in found.select(["id", "_hoodie_commit_time"]).to_pylist()}
    assert (times["0"], times["300"], times["400"]) == (first.instant, second.instant, third.instant)
    numbers = found.column("_hoodie_commit_seqno").to_pylist()
    assert len({*numbers}) == len(numbers)
    # What is written after us: nothing is pending, no marker, heartbeat or lease is left.
    left = [one for one in (tmp_path / "rides/.hoodie").rglob("*") if ".temp" in str(one) or ".heartbeat" in str(one)]
    assert not [one for one in left if one.is_file()]


class _Stream:
    """As tables of pandas, polars and DuckDB are: all that is known of it is its Arrow stream."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def test_rows_of_any_arrow_source(tmp_path: Path) -> None:
    table = create(tmp_path / "rides", partition_by=None)
    new = rows(0, 30)
    for number, source in enumerate(
        [
            new.slice(0, 10),
            new.slice(10, 5).to_batches()[0],
            new.slice(15, 5).to_reader(max_chunksize=2),
            _Stream(new.slice(20)),
        ]
    ):
        assert table.insert(source).ok, number
    assert read(tmp_path / "rides").equals(new)
    with pytest.raises(ConfigError, match="of the type list, which does not give Arrow data"):
        table.insert([1, 2])
    assert table.insert(new.slice(0, 0)).idle


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["noise", "alike"])
def test_files_close_at_their_size(kind: str, tmp_path: Path) -> None:
    """By bytes as stored, whatever the rows compress to: each file but the last is within 15 % of the size."""
    limit, count = 1 << 20, 600_000 if kind == "alike" else 100_000
    noise = np.random.default_rng(7).integers(0, 1 << 62, (3, count))
    texts = [pa.array(one).cast(pa.string()) for one in noise]
    text = pa.array(["x" * 60] * count) if kind == "alike" else pc.binary_join_element_wise(*texts, " ")
    new = pa.table({"id": pa.array(range(count)).cast(pa.string()), "ts": np.arange(count), "text": text})
    table = create(tmp_path / "rides", partition_by=None)
    result = table.bulk_insert(new, options={**FILTERS, "hoodie.parquet.max.file.size": limit})
    slices = table.slices().sort_by("file_id")
    # One task writes them: the file groups have one uuid, and are numbered.
    ids = [one.rpartition("-") for one in slices.column("file_id").to_pylist()]
    assert len({uuid for uuid, _, _ in ids}) == 1
    by_number = dict(zip((int(number) for *_, number in ids), slices.column("size").to_pylist(), strict=True))
    assert sorted(by_number) == list(range(len(ids))) and len(ids) > 3
    sizes = [by_number[number] for number in range(len(ids) - 1)]
    assert all(0.85 * limit <= size <= 1.06 * limit for size in sizes), sizes
    assert result.tables["written"].to_pylist()[0]["new_files"] == len(ids)


@pytest.mark.thorough
def test_the_last_rows_of_a_task_make_no_tiny_file(tmp_path: Path) -> None:
    """A file may be a little larger, where this takes all that is left."""
    limit = 1 << 20
    text = np.random.default_rng(3).bytes(16 * 60_000).hex()
    count = 60_000
    new = pa.table(
        {
            "id": pa.array([f"k{n:06d}" for n in range(count)]),
            "ts": np.arange(count),
            "text": pa.array([text[32 * n : 32 * n + 32] for n in range(count)]),
        }
    )
    alone = create(tmp_path / "alone", partition_by=None)
    alone.bulk_insert(new, options=FILTERS)
    size = alone.slices()["size"].to_pylist()[0]
    for part, files in ((0.9, 1), (1.0, 1), (1.25, 2)):
        rows_of = new.slice(0, int(count * part * limit / size))
        assert rows_of.num_rows < count
        table = create(tmp_path / str(part), partition_by=None)
        table.bulk_insert(rows_of, options={**FILTERS, "hoodie.parquet.max.file.size": limit})
        found = table.slices()["size"].to_pylist()
        assert len(found) == files and max(found) <= 1.15 * limit, (part, found)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("file", "options", "said"),
    [
        (RowFile, {"hoodie.parquet.small.file.limit": 0}, "does not hold the rows that were to be written"),
        (RowFile, {}, "does not hold the same rows"),
        (CopyFile, {"hoodie.parquet.block.size": 4096}, "does not hold the same rows"),
    ],
    ids=["new groups", "decoded", "copied"],
)
def test_a_row_that_was_written_wrong_is_found(
    file: type[RowFile], options: dict[str, int], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write whose file does not hold the rows commits nothing, and leaves nothing."""
    table = create(tmp_path / "rides")
    table.insert(rows(0, 30))
    before = read(tmp_path / "rides")
    write = file.write
    monkeypatch.setattr(file, "write", lambda self, some, *more: write(self, some.slice(1), *more))
    with pytest.raises(CheckFailed, match=said):
        table.insert(rows(30, 60), options=options)
    assert read(tmp_path / "rides").equals(before)
    assert not open_local(tmp_path / "rides").timeline.pending()
    assert len(list((tmp_path / "rides").rglob("*.parquet"))) == 3


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop_columns(["id"]), "id"),
        (lambda t: t.set_column(0, "id", pa.array([None, *["a"] * 9], pa.string())), "id"),
        (lambda t: t.set_column(0, "id", pa.array(["", *["a"] * 9])), "id"),
        (lambda t: t.drop_columns(["text"]), "the rows lack the column text of the table"),
        (lambda t: t.set_column(3, "text", pa.array([True] * 10)), "column text has the type boolean, and string in"),
        (lambda t: t.append_column("at", pa.array([1] * 10, pa.time32("s"))), "column at has the type time32"),
        (lambda t: t.append_column("id", t.column("id")), "several columns called id"),
        (lambda t: t.append_column("a-b", t.column("id")), "'a-b' has a name that Avro does not allow"),
        (lambda t: t.append_column("none", pa.nulls(10)), "column none has the type null"),
        (lambda t: t.append_column("for", pa.array([1] * 10, pa.duration("s"))), "column for has the type duration"),
        (lambda t: t.append_column("m", pa.array([[(1, 2)]] * 10, pa.map_(pa.int32(), pa.int32()))), "strings in Avro"),
    ],
)
def test_what_cannot_be_written(change: Any, message: str, tmp_path: Path) -> None:
    """One sentence that names the column, and nothing is written."""
    table = create(tmp_path / "rides")
    table.insert(rows(0, 10))
    before = sorted(str(one) for one in tmp_path.rglob("*"))
    with pytest.raises(ConfigError, match=message):
        table.insert(change(rows(10, 20)))
    with suppress(ConfigError):
        create(tmp_path / "fresh").insert(change(rows(10, 20)))
    assert sorted(str(one) for one in tmp_path.rglob("*") if "fresh" not in str(one)) == before


def test_new_columns_and_promoted_values(tmp_path: Path) -> None:
    table = create(tmp_path / "rides", partition_by=None)
    table.insert(pa.table({"id": ["a"], "ts": pa.array([1], pa.int64()), "x": [1.5]}))
    table.insert(
        pa.table({"id": ["b"], "ts": pa.array([2], pa.int32()), "x": pa.array([2.5], pa.float32()), "y": ["n"]})
    )
    missing = {"hoodie.write.set.null.for.missing.columns": "true"}
    table.insert(pa.table({"id": ["c"], "ts": [3]}), options=missing)
    found, _ = both_views(tmp_path / "rides")
    assert found.select(["id", "ts", "x", "y"]).sort_by("id").to_pylist() == [
        {"id": "a", "ts": 1, "x": 1.5, "y": None},
        {"id": "b", "ts": 2, "x": 2.5, "y": "n"},
        {"id": "c", "ts": 3, "x": None, "y": None},
    ]
    schema = table.schema()
    assert schema is not None
    assert (schema["name"], schema["namespace"]) == ("rides_record", "hoodie.rides")
    assert [field["name"] for field in schema["fields"]] == ["id", "ts", "x", "y"]


def test_nested_floats_become_the_doubles_of_their_texts(tmp_path: Path) -> None:
    """As those that are not nested, and those of files; so does Hudi, which rewrites rows at any depth."""
    numbers = [0.1, None, -0.0, float("inf"), 3.4028235e38, 1e-45, 16777216.0]

    def nested(kind: pa.DataType) -> dict[str, pa.Array]:
        flat = pa.array(numbers, kind)
        offsets = pa.array(range(len(numbers) + 1), pa.int32())
        struct = pa.StructArray.from_arrays([flat, flat.slice(0)], ["x", "y"])
        keys = pa.array(["key"] * len(numbers))
        lists = pa.ListArray.from_arrays(offsets, struct)
        return {"flat": flat, "lists": lists, "maps": pa.MapArray.from_arrays(offsets, keys, flat)}

    table = create(tmp_path / "rides", partition_by=None, ordering=None)
    table.insert(pa.table({"id": ["first"] * len(numbers), **nested(pa.float64())}))
    table.insert(pa.table({"id": ["then"] * len(numbers), **nested(pa.float32())}))
    found, _ = both_views(tmp_path / "rides")
    first, then = (found.filter(pc.equal(found["id"], one)).to_pylist() for one in ("first", "then"))
    assert len(first) == len(numbers)
    for old, new in zip(first, then, strict=True):
        assert [repr(old[name]) for name in ("flat", "lists", "maps")] == [
            repr(new[name]) for name in ("flat", "lists", "maps")
        ]


def test_timestamps_without_a_zone_need_a_release_that_reads_them(tmp_path: Path) -> None:
    new = pa.table({"id": ["a"], "at": pa.array([1], pa.timestamp("us"))})
    for version in VERSIONS:
        table = create(tmp_path / str(version), table_version=version, partition_by=None, ordering=None)
        if version == max(VERSIONS):
            assert table.insert(new).ok
        else:
            with pytest.raises(ConfigError, match="column at has timestamps without a time zone"):
                table.insert(new)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.merge.allow.duplicate.on.inserts", "false"),
        ("hoodie.combine.before.upsert", "false"),
        ("hoodie.combine.before.delete", "false"),
    ],
)
def test_options_that_would_be_ignored_are_refused(key: str, value: str, tmp_path: Path) -> None:
    table = create(tmp_path / "rides")
    with pytest.raises(ConfigError, match=rf"{key}={value} \(.*\) is not supported; only"):
        table.insert(rows(0, 1), options={key: value})


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop_columns(["id"]), "id"),
        (lambda t: t.set_column(0, "id", pa.array([*["a"] * 9, None], pa.string())), "null or empty in 1 of"),
    ],
)
def test_no_table_is_created_for_rows_that_it_cannot_take(change: Any, message: str, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    files = tmp_path / "new/a.parquet"
    pq.write_table(change(rows(0, 10)), files)
    made = {
        "hoodie.table.name": "rides",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "day",
    }
    (tmp_path / "rides/.hoodie").mkdir(parents=True)
    wanted = WriteRequest(
        base_path=str(tmp_path / "rides"),
        options=resolve([("test", made)]),
        operation=WriteOperation.INSERT,
        input=(str(files),),
    )
    with pytest.raises(ConfigError, match=message):
        writing.write_files(wanted)
    assert not [one for one in (tmp_path / "rides").rglob("*") if one.is_file()]
    # What a killed creation leaves is no table.
    (tmp_path / "rides/.hoodie/.folder").write_bytes(b"")
    pq.write_table(rows(0, 10), files)
    right = {key: text for key, text in made.items() if key != "hoodie.table.type"}
    wanted = replace(wanted, options=resolve([("test", right)]))
    report = writing.write_files(replace(wanted, input=(str(tmp_path / "new"),)))
    assert report.rows.after == 10
    # The next run of the same command writes into the table, and a file with other columns is refused.
    assert writing.write_files(wanted).rows.after == 20
    pq.write_table(rows(10, 20).append_column("more", pa.array(range(10))), tmp_path / "new/b.parquet")
    with pytest.raises(
        ConfigError, match=r"b\.parquet does not have the columns of the first file: more is in only one"
    ):
        writing.write_files(replace(wanted, input=(str(tmp_path / "new"),)))
    assert read(tmp_path / "rides").num_rows == 20


def test_a_reader_gives_its_rows_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process archives or cleans meanwhile, and the job looks again: rows must not be lost in silence."""
    table = create(tmp_path / "rides")
    begun: list[bool] = []
    commit = write_execution.WriteRun.commit

    def outdated(self: Any) -> Any:
        if not begun:
            begun.append(True)
            raise Outdated("a file was archived")
        return commit(self)

    monkeypatch.setattr(write_execution.WriteRun, "commit", outdated)
    with pytest.raises(ConflictError, match="the reader has given its rows"):
        table.insert(rows(0, 10).to_reader())
    begun.clear()
    assert table.insert(rows(0, 10)).report["rows"]["out"] == 10


def insert(path: Path, new: pa.Table, storage: Storage | None = None) -> None:
    wanted = WriteRequest(base_path=str(path), options=resolve([("test", FILTERS)]), operation=WriteOperation.INSERT)
    report = writing.write(wanted, new.to_reader, storage)
    assert report.error is None


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_every_write_may_be_the_last(version: int, tmp_path: Path) -> None:
    """The first insert, and one that fills files: readers see all of it or nothing, and the next write mends it."""
    path, made = tmp_path / "rides", tmp_path / "made"
    create(path, table_version=version)
    for begin, end in ((0, 20), (20, 40)):
        shutil.copytree(path, made)
        log = FaultyStorage(str(path))
        insert(path, rows(begin, end), log)
        whole = Path(shutil.copytree(path, tmp_path / "whole"))
        assert len(log.log) > 15
        for survived in share(places(log.log), 0, 1):
            shutil.rmtree(path)
            shutil.copytree(made, path)
            with pytest.raises(Killed):
                insert(path, rows(begin, end), FaultyStorage(str(path), survived))
            where = f"killed after {survived} writes: {log.log[survived - 1 : survived + 1]}"
            table = open_local(path)
            done = bool(table.timeline.completed_writes()) and len(table.timeline.completed_writes()) > begin // 20
            seen = read(path) if table.timeline.first_write else rows(0, 0)
            assert seen.num_rows == (end if done else begin), where
            insert(path, rows(100, 120))
            wanted = pa.concat_tables([rows(0, end if done else begin), rows(100, 120)]).combine_chunks()
            assert read(path).equals(wanted), where
            assert not open_local(path).timeline.pending(), where
            assert hudi_services.open(path, engine="local").validate(strict=True).ok, where
            base = {Path(one).name for one in path.rglob("*.parquet")}
            known = {instant.ts for instant in open_local(path).timeline.completed_writes()}
            assert {name.rpartition("_")[2].removesuffix(".parquet") for name in base} <= known, where
        shutil.rmtree(path)
        shutil.rmtree(made)
        whole.rename(path)


def test_two_writers_at_once(tmp_path: Path) -> None:
    """Without a lock the second one is refused; what the first has written stays."""
    path = tmp_path / "rides"
    table = create(path)
    table.insert(rows(0, 20))

    other = hudi_services.open(path, engine="local")
    begin, began = WriteTask.run, []

    def interrupted(*arguments: Any) -> Any:
        with pytest.raises(ConflictError, match="another writer is in progress"):
            other.insert(rows(40, 60))
        began.append(True)
        return begin(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WriteTask, "run", interrupted)
        table.insert(rows(20, 40))
    assert began
    assert read(path).equals(rows(0, 40))


def test_every_type(tmp_path: Path) -> None:
    """Arrow types that have no twin in Spark become the next larger one."""
    new = pa.table(
        {
            "id": pa.array(["a", "b"]).dictionary_encode(),
            "tiny": pa.array([1, None], pa.int8()),
            "unsigned": pa.array([2**32 - 1, 0], pa.uint32()),
            "large": pa.array(["x", None], pa.large_string()),
            "nanos": pa.array([1_000, None], pa.timestamp("ns", "Europe/Berlin")),
            "price": [decimal.Decimal("1.50"), None],
            "lists": pa.array([[[1], None], []], pa.large_list(pa.list_(pa.int16()))),
            "nested": [{"a": {"b": decimal.Decimal("1.5")}}, None],
            "half": pa.array([np.float16(0.5), None], pa.float16()),
        }
    )
    table = create(tmp_path / "rides", partition_by=None, ordering=None)
    assert table.insert(new).ok
    found = pq.read_table(next((tmp_path / "rides").glob("*.parquet"))).sort_by("id")
    assert found.select(new.column_names).to_pylist() == new.to_pylist()
    schema = table.schema()
    assert schema is not None
    nested = next(field for field in schema["fields"] if field["name"] == "nested")["type"][1]
    assert (nested["name"], nested["namespace"]) == ("nested", "hoodie.rides.rides_record")
    inner = nested["fields"][0]["type"][1]
    assert inner["namespace"] == "hoodie.rides.rides_record.nested"
    assert inner["fields"][0]["type"][1]["namespace"] == "hoodie.rides.rides_record.nested.a.b"


class RolledBack(LocalStorage):
    """A writer of Hudi, which cleans failed writes eagerly, takes ours for one as soon as it has a file."""

    def open_output(self, path: str) -> IO[bytes]:
        for file in self.list_tree(".hoodie"):
            if file.name.endswith((".inflight", ".commit.requested")):
                self.delete(file.path)
        return super().open_output(path)


@pytest.mark.parametrize("version", VERSIONS)
def test_another_writer_rolls_it_back(version: int, tmp_path: Path) -> None:
    path = tmp_path / "rides"
    create(path, table_version=version).insert(rows(0, 10))
    before = open_local(path).timeline.completed()
    with pytest.raises(ConflictError, match=r"the insert \d+ was rolled back by another writer") as raised:
        insert(path, rows(10, 20), RolledBack(str(path)))
    assert raised.value.exit_code == 4 and "LAZY" in raised.value.hint
    assert open_local(path).timeline.completed() == before
    assert both_views(path)[0].num_rows == both_views(path)[1].num_rows == 10
    insert(path, rows(10, 20), open_storage(str(path)))
    assert both_views(path)[0].num_rows == both_views(path)[1].num_rows == 20


class _SlowTask(LocalStorage):
    """A task that the engine has given up writes its file when the writer waits for the lock."""

    slow = ""

    def create(self, path: str, data: bytes) -> None:
        super().create(path, data)
        written = [*Path(self.root).glob("d0/*.parquet")]
        if "/.locks/hudi_services/table." in path and written and not self.slow:
            file_id, token, instant = written[0].name.split("_")
            self.slow = f"d0/{file_id[:-1]}7_9{token}_{instant}"
            create_marker(self, instant.removesuffix(".parquet"), self.slow)
            shutil.copy(written[0], f"{self.root}/{self.slow}")


def test_a_repeated_task_that_is_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file is looked for under the lock: readers that list would see its rows twice."""
    monkeypatch.setattr(LocalEngine, "repeats_tasks", True)
    create(tmp_path / "rides")
    storage = _SlowTask(str(tmp_path / "rides"))
    request = WriteRequest(
        base_path=storage.root, options=resolve([("test", FILTERS)]), operation=WriteOperation.BULK_INSERT
    )
    assert writing.write(request, rows(0, 9).to_reader, storage).exit_code == 0
    assert storage.slow and not (tmp_path / "rides" / storage.slow).exists()
    assert read(tmp_path / "rides").equals(rows(0, 9))


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", VERSIONS)
def test_statistics_of_columns_that_a_write_brings(version: int, kind: str, tmp_path: Path) -> None:
    """Footers have no range of numbers of which some are NaN: the first write of a column tells it, too."""
    options = {**FILTERS, "hoodie.metadata.index.column.stats.enable": "true"}
    table = create(tmp_path / "rides", table_version=version, table_type=kind, options=options)
    numbers = pa.array([1.0, float("nan")])
    first = rows(0, 2, days=1).append_column("speed", numbers)
    inside = pa.StructArray.from_arrays([numbers, numbers], ["x", "y"])
    assert table.insert(first.append_column("place", inside), options=options).ok
    more = rows(0, 2, days=1).append_column("speed", numbers).append_column("place", inside).append_column("to", inside)
    assert table.upsert(more, options=options).ok
    assert table.validate(strict=True).ok
