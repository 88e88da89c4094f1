"""Data frames of Spark as the rows of writes: without pandas, and a bulk insert by Spark's own tasks."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import hudi_services
from hudi_services.errors import CheckFailed, ConfigError
from hudi_services.ingest.frame_rows import FrameRows
from hudi_services.spark import frames
from tests.unit import test_made_keys as made_keys
from tests.unit import test_upserts as upserts
from tests.unit.page_examples import ROOT, examples, run_examples
from tests.unit.rides import FILTERS, create
from tests.unit.tables import both_views, merged_rows, open_local
from tests.unit.test_consistent_hashing import buckets_are_right
from tests.unit.test_write_retries import LOCKED

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    found = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    found.sparkContext.setLogLevel("ERROR")
    yield found
    found.stop()


def rows(session: SparkSession, first: int, end: int, text: str = "text", partitions: int = 3) -> DataFrame:
    return session.range(first, end, 1, partitions).selectExpr(
        "concat('k', lpad(id, 6, '0')) AS id",
        "concat('d', id % 3) AS day",
        "cast(id % 7 AS int) AS ts",
        f"concat('{text} ', id) AS text",
        "array(id, id + 1) AS numbers",
        "map('x', id) AS words",
        "named_struct('q', id) AS place",
        "cast(id AS decimal(20,2)) AS price",
        "timestamp_seconds(id) AS at",
        "date_from_unix_date(cast(id AS int)) AS date",
        "if(id % 5 = 0, null, id / 4) AS share",
    )


def as_rows(found: list[Any]) -> list[Any]:
    return sorted((row.asDict(recursive=True) for row in found), key=lambda row: row["id"])


def seen(session: SparkSession, path: Path) -> list[Any]:
    """The rows of the base files, as Spark reads them."""
    table = open_local(path)
    files = [
        str(path / one.base_file.path)
        for of in table.view.partitions()
        for one in table.view.latest_slices(of)
        if one.base_file
    ]
    return as_rows(session.read.parquet(*files).select(rows(session, 0, 1).columns).collect())


def test_writes_of_data_frames(session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "rides"
    table = hudi_services.create(
        path, name="rides", record_key="id", partition_by="day", ordering="ts", options=FILTERS, engine="local"
    )
    first = rows(session, 0, 3_000)
    result = table.bulk_insert(first)
    written = result.tables["written"].to_pylist()[0]
    assert (written["rows"], written["inserts"], written["new_files"], written["partitions"]) == (3_000, 3_000, 9, 3)
    assert seen(session, path) == as_rows(first.collect())
    both = both_views(path)
    assert both[0].equals(both[1])
    assert table.validate(strict=True).ok

    changed_rows = rows(session, 100, 200, "new")
    assert table.upsert(changed_rows).tables["written"].column("updates").to_pylist() == [100]
    assert table.insert(rows(session, 30_000, 30_010)).report["rows"]["in"] == 10
    assert table.delete(rows(session, 0, 50).select("id", "day")).tables["written"].column("deletes").to_pylist() == [
        50
    ]
    wanted = first.filter("id >= 'k000050' AND (id < 'k000100' OR id >= 'k000200')")
    wanted = wanted.union(changed_rows).union(rows(session, 30_000, 30_010))
    assert seen(session, path) == as_rows(wanted.collect())
    assert table.validate(strict=True).ok


def test_the_example_of_the_page(session: SparkSession, tmp_path: Path) -> None:
    page = ROOT / "docs/write.md"
    changes = {"/data/trips": str(tmp_path / "trips")}
    first, *_ = examples(page=page)
    made = hudi_services.create(
        tmp_path / "trips", name="trips", record_key="id", partition_by="day", ordering="ts", engine="local"
    )
    assert 'partition_by="day", ordering="ts"' in first
    assert run_examples(examples("spark", page), changes, {"trips": made, "spark": session}) == 2


CASES = [
    ("COPY_ON_WRITE", "RECORD_INDEX"),
    *(
        pytest.param(kind, index, marks=pytest.mark.deep)
        for kind, index in (
            ("MERGE_ON_READ", "BLOOM"),
            ("COPY_ON_WRITE", "SIMPLE"),
            ("COPY_ON_WRITE", "GLOBAL_BLOOM"),
            ("MERGE_ON_READ", "GLOBAL_SIMPLE"),
        )
    ),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "index"), CASES)
def test_batches_beside_a_model(session: SparkSession, kind: str, index: str, tmp_path: Path) -> None:
    """The same upserts and deletes as those of tables in this process, each row in any partition of the frame."""
    path = tmp_path / "rides"
    moves = None if index in ("SIMPLE", "BLOOM") else index != "RECORD_INDEX"
    table = create(path, table_type=kind)
    model = upserts.Model(of_newest=False, moves=moves)
    first = upserts.rows(0, 60)

    def frame(new: pa.Table) -> DataFrame:
        pq.write_table(new, tmp_path / "new.parquet")
        return session.read.parquet(str(tmp_path / "new.parquet")).repartition(3)

    assert table.insert(frame(first)).ok
    model.upsert(first.to_pylist(), by_ordering=True)
    if index == "RECORD_INDEX":
        one = {"hoodie.metadata.global.record.level.index.min.filegroup.count": "2"}
        assert table.build_index(options=one).ok
    options = {**FILTERS, "hoodie.index.type": index}
    late = kind == "COPY_ON_WRITE"
    for number, (operation, new) in zip(range(4), upserts.batches(3, moves=False, late_rows=late), strict=False):
        before = upserts.seen(path)
        given = new if operation == "upsert" else new.select(["day", "id"])
        result = getattr(table, operation)(frame(given), options=options)
        if operation == "upsert":
            model.upsert(new.to_pylist(), by_ordering=True)
        else:
            model.delete(new.to_pylist())
        found = upserts.seen(path)
        assert found == model.rows, (number, operation)
        written = result.tables["written"].to_pylist()[0]
        assert written["rows"] == new.num_rows
        assert kind == "MERGE_ON_READ" or written["inserts"] - written["deletes"] == len(found) - len(before)
    if moves:
        away = upserts.rows(0, 9, "away", ts=50, more_days=2)
        table.upsert(frame(away), options=options)
        model.upsert(away.to_pylist(), by_ordering=True)
        assert upserts.seen(path) == model.rows
    assert table.validate(strict=True).ok


@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_texts_with_offsets_of_64_bits(session: SparkSession, operation: str, tmp_path: Path) -> None:
    """From Spark 4 on, batches have them where the session says so, and do not tell."""
    key = "spark.sql.execution.arrow.useLargeVarTypes"
    session.conf.set(key, "true")
    try:
        # One row: offsets of 64 bits, read as such of 32, give an empty text, which looks right.
        one = session.range(7, 8).selectExpr(
            "id", "'some text' AS text", "array('in a list') AS texts", "cast('bytes' AS binary) AS bytes"
        )
        getattr(create(tmp_path / "rides", partition_by=None, ordering=None), operation)(one)
    finally:
        session.conf.unset(key)
    found, _ = both_views(tmp_path / "rides")
    assert found.select(["id", "text", "texts", "bytes"]).to_pylist() == [
        {"id": 7, "text": "some text", "texts": ["in a list"], "bytes": b"bytes"}
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("operation", ["upsert", pytest.param("delete", marks=pytest.mark.deep), "insert"])
def test_another_writer_commits_before_us(
    session: SparkSession, operation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows that the engine keeps are looked up again; inserts choose small files again."""
    path = tmp_path / "rides"
    create(path).insert(upserts.rows(0, 30))
    options, act = {**LOCKED, "hoodie.index.type": "BLOOM"}, [upserts.rows(5, 12, "other", ts=1)]
    write, table = FrameRows.write, hudi_services.open(path)

    def interrupted(*arguments: Any) -> Any:
        written = write(*arguments)
        while act:
            hudi_services.open(path, engine="local").upsert(act.pop(), options=options)
        return written

    monkeypatch.setattr(FrameRows, "write", interrupted)
    new = upserts.rows(30, 40, "new", ts=5) if operation == "insert" else upserts.rows(0, 10, "new", ts=5)
    pq.write_table(new, tmp_path / "new.parquet")
    result = getattr(table, operation)(
        session.read.parquet(str(tmp_path / "new.parquet")).repartition(3), options=options
    )
    assert result.tables["written"].to_pylist()[0]["retries"] == 1 and not act
    assert result.tables["written"].to_pylist()[0]["rows"] == 10
    texts = {key[1]: row["text"] for key, row in upserts.seen(path).items()}
    wanted = {f"k{n:05d}": f"{'other' if 5 <= n < 12 else 'text'} {n}" for n in range(30)}
    for n, text in zip(new.column("id").to_pylist(), new.column("text").to_pylist(), strict=True):
        wanted[n] = text
        if operation == "delete":
            del wanted[n]
    assert texts == wanted
    assert table.validate(strict=True).ok


@pytest.mark.thorough
@pytest.mark.parametrize("index", [pytest.param("SIMPLE", marks=pytest.mark.deep), "GLOBAL_SIMPLE"])
def test_tables_without_meta_fields(session: SparkSession, index: str, tmp_path: Path) -> None:
    """The same batches, in a table whose record keys are made of two columns."""
    path, moves = tmp_path / "rides", index == "GLOBAL_SIMPLE" or None
    table = create(path, record_key=["id", "again"], options={**FILTERS, "hoodie.populate.meta.fields": "false"})
    model, options = upserts.Model(of_newest=False, moves=moves), {**FILTERS, "hoodie.index.type": index}

    def frame(new: pa.Table) -> DataFrame:
        nulls = pa.array([key if key[-1] < "5" else None for key in new.column("id").to_pylist()], pa.string())
        pq.write_table(new.append_column("again", nulls), tmp_path / "new.parquet")
        return session.read.parquet(str(tmp_path / "new.parquet")).repartition(3)

    first = upserts.rows(0, 60)
    assert table.insert(frame(first), options=options).ok
    model.upsert(first.to_pylist(), by_ordering=True)
    changes = list(upserts.batches(3, moves=False, late_rows=True))[:4]
    # Some move, and some of these are late.
    changes += [
        ("upsert", upserts.rows(0, 9, "away", ts=50, more_days=2)),
        ("upsert", upserts.rows(5, 12, "late", ts=4)),
    ]
    for number, (operation, new) in enumerate(changes):
        assert getattr(table, operation)(frame(new), options=options).ok
        if operation == "upsert":
            model.upsert(new.to_pylist(), by_ordering=True)
        else:
            model.delete(new.to_pylist())
        assert made_keys.seen(path) == model.rows, (number, operation)
    more = upserts.rows(0, 300)
    assert table.insert(frame(more), options={**options, "hoodie.datasource.insert.dup.policy": "drop"}).ok
    there = {key if moves is None else key[1] for key in model.rows}
    new_keys = {((row["day"], row["id"]) if moves is None else row["id"]) for row in more.to_pylist()} - there
    assert len(made_keys.seen(path)) == len(model.rows) + len(new_keys)
    assert table.validate(strict=True).ok


@pytest.mark.thorough
def test_files_are_sized_by_the_counts_of_the_frame(session: SparkSession, tmp_path: Path) -> None:
    """Buckets get their rows from several partitions of the frame, and small files are filled."""
    path = tmp_path / "rides"
    table = create(path, partition_by=None)
    split = {**FILTERS, "hoodie.copyonwrite.insert.auto.split": "false", "hoodie.copyonwrite.insert.split.size": "1500"}
    table.insert(rows(session, 0, 4000, partitions=4), options=split)
    counts = [open_local(path).slices.open(one).num_rows for one in open_local(path).view.latest_slices("")]
    assert sorted(counts) == [1000, 1500, 1500]
    written = table.insert(rows(session, 5000, 5600, partitions=2), options=split).tables["written"].to_pylist()[0]
    assert (written["filled_files"], written["new_files"]) == (1, 0)
    keys = both_views(path)[0].column("id").to_pylist()
    assert sorted(keys) == [f"k{n:06d}" for n in (*range(4000), *range(5000, 5600))]


def test_a_frame_that_changes_is_found(session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rides"
    table = create(path, partition_by=None)
    table.insert(session.range(0, 10).selectExpr("concat('k', id) AS id", "0 AS ts"))
    # As after the loss of an executor, which makes Spark compute rows again.
    monkeypatch.setattr(frames.SparkPieces, "keep", lambda pieces: pieces)
    seed = session.range(0, 2000, 1, 2).filter("substr(reflect('java.util.UUID', 'randomUUID'), 1, 1) < '8'")
    changing = seed.selectExpr("concat('n', id) AS id", "0 AS ts")
    with pytest.raises(CheckFailed, match="gave other rows when it was read again"):
        table.insert(changing)
    assert both_views(path)[0].num_rows == 10
    assert not open_local(path).timeline.pending()


@pytest.mark.thorough
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", pytest.param("SIMPLE", marks=pytest.mark.deep)])
def test_parts_without_rows(index: str, session: SparkSession, tmp_path: Path) -> None:
    """A frame has more parts than keys, and files have keys that no row has."""
    table = create(tmp_path / "rides")
    options = {**FILTERS, "hoodie.index.type": index}
    table.insert(rows(session, 0, 30), options=options)
    written = (
        table.upsert(rows(session, 29, 31, "new").repartition(5), options=options).tables["written"].to_pylist()[0]
    )
    assert (written["inserts"], written["updates"]) == (1, 1)
    assert len(seen(session, tmp_path / "rides")) == 31


@pytest.mark.thorough
def test_rows_that_are_computed_again(session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after the loss of executors: nothing is kept, and the parts come in another order each time."""
    monkeypatch.setattr(frames.SparkPieces, "keep", lambda pieces: pieces)
    path = tmp_path / "rides"
    table = create(path, partition_by=None, table_type="MERGE_ON_READ")
    split = {**FILTERS, "hoodie.copyonwrite.insert.auto.split": "false", "hoodie.copyonwrite.insert.split.size": "700"}
    for text, first, end in (("old", 0, 2000), ("new", 1000, 4000)):
        given = rows(session, first, end, text, partitions=5)
        assert table.upsert(given.repartition(4), options=split).ok
    merged = merged_rows(path).select(["id", "text"]).to_pylist()
    found = {row["id"]: row["text"].split()[0] for row in merged}
    assert len(merged) == len(found)
    assert found == {f"k{n:06d}": "new" if n >= 1000 else "old" for n in range(4000)}


def test_a_bulk_insert_is_one_job(session: SparkSession, tmp_path: Path) -> None:
    table = create(tmp_path / "rides")
    scheduler = session.sparkContext._jsc.sc().dagScheduler()
    frame = rows(session, 0, 1000, partitions=4)
    before = scheduler.numTotalJobs()
    assert table.bulk_insert(frame).ok
    assert scheduler.numTotalJobs() == before + 1


def test_frames_that_are_not_written(session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "rides"
    table = hudi_services.create(path, name="rides", record_key="id", partition_by="day", engine="local")
    assert table.bulk_insert(rows(session, 0, 0)).idle
    assert not open_local(path).timeline.instants
    nulls = rows(session, 0, 100).selectExpr("if(id = 'k000077', null, id) AS id", "day", "ts")
    with pytest.raises(ConfigError, match="null or empty in 1 of"):
        table.bulk_insert(nulls)
    # The write had begun: it is rolled back, with its files.
    assert not open_local(path).timeline.pending() and not list(path.glob("d*/*.parquet"))
    doubled = table.bulk_insert(
        rows(session, 0, 10).union(rows(session, 0, 10)), options={"hoodie.combine.before.insert": "true"}
    )
    assert doubled.tables["written"].column("inserts").to_pylist() == [10]

    class Connected:
        """As a data frame of Spark Connect."""

    Connected.__module__ = "pyspark.sql.connect.dataframe"
    with pytest.raises(ConfigError, match="a data frame of Spark Connect"):
        table.upsert(Connected())


@pytest.mark.parametrize("mode", ["PARTITION_SORT", pytest.param("GLOBAL_SORT", marks=pytest.mark.deep)])
def test_sorted_bulk_inserts(mode: str, session: SparkSession, tmp_path: Path) -> None:
    """By tasks of Spark as far as each sorts its own rows; otherwise each partition path is sorted as a whole."""
    options = {**FILTERS, "hoodie.bulkinsert.sort.mode": mode}
    arguments = {"name": "rides", "record_key": "id", "partition_by": "day", "ordering": "ts", "engine": "local"}
    table = hudi_services.create(tmp_path / "rides", options=options, **arguments)
    frame = rows(session, 0, 300).orderBy("text", ascending=False).repartition(2)
    assert table.bulk_insert(frame).ok
    files = table.slices()["base_file"].to_pylist()
    assert len(files) == (6 if mode == "PARTITION_SORT" else 3)
    for file in files:
        keys = pq.ParquetFile(tmp_path / "rides" / file).read(["id"])["id"].to_pylist()
        assert keys == sorted(keys) and len(keys) > 20
    assert seen(session, tmp_path / "rides") == as_rows(frame.collect())


def test_buckets(session: SparkSession, tmp_path: Path) -> None:
    """The rows of a bucket come together from all partitions of the frame, also those of a bulk insert."""
    path = tmp_path / "rides"
    table = create(path, partition_by=None)
    four = {**FILTERS, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
    assert table.bulk_insert(rows(session, 0, 400), options=four).tables["written"].column("new_files").to_pylist() == [
        4
    ]
    written = table.upsert(rows(session, 390, 410, "new"), options=four).tables["written"].to_pylist()[0]
    assert (written["inserts"], written["updates"], written["new_files"]) == (10, 10, 0)
    assert len(seen(session, path)) == 410


@pytest.mark.thorough
def test_consistent_hashing(session: SparkSession, tmp_path: Path) -> None:
    """Rows of buckets that have no file yet begin their file groups; later ones join them."""
    path = tmp_path / "rides"
    table = create(path, table_type="MERGE_ON_READ")
    options = {
        "hoodie.index.type": "BUCKET",
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
        "hoodie.bucket.index.num.buckets": "3",
    }
    for first, end in ((0, 300), (250, 400), (0, 500)):
        assert table.upsert(rows(session, first, end, f"from {first}"), options=options).ok
        assert merged_rows(path).num_rows == end
        buckets_are_right(path)
    assert table.validate().ok
