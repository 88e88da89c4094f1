"""Expression indexes that Hudi built are right after each of our commits, or the commit is refused before it starts."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudi_services
from hudi_services.base_files.base_file_slices import BaseFileSlices
from hudi_services.base_files.bloom import SIMPLE, BloomSettings, parse
from hudi_services.base_files.new_file import NewFile
from hudi_services.derived_indexes.expression_index.definitions import ExpressionIndex, expression_indexes
from hudi_services.derived_indexes.expression_index.file_records import ExpressionTask, expression_records
from hudi_services.derived_indexes.expression_index.index import Computation
from hudi_services.derived_indexes.expression_index.time_functions import Zone
from hudi_services.engine import LocalEngine
from hudi_services.errors import CheckFailed, ConfigError, UnsupportedTable
from hudi_services.jobs import clean, clustering, validate
from hudi_services.jobs.rollback import rollback
from hudi_services.jobs.undo import undo
from hudi_services.metadata.records.keys import BLOOM_FILTERS, COLUMN_STATS
from hudi_services.metadata.records.model import BloomRecord, Record, StatsRecord
from hudi_services.metadata_updates.sync import Change, sync_commit
from hudi_services.model import BaseFile
from hudi_services.options import resolve
from hudi_services.runs.report import Report
from hudi_services.runs.report import RunState as Outcome
from hudi_services.runs.request import CleanRequest, Mode, ValidateRequest
from hudi_services.schema.column_type import ColumnType, Kind
from hudi_services.stores import open_storage
from hudi_services.timeline.instant import Action

from .faulty_storage import FaultyStorage
from .metadata_tables import compact, far_future, open_metadata
from .repairs import NO_HEARTBEAT, both, fail_newest, files_of, newest, repair
from .tables import merged_rows, open_local, request, unpack

RANGES = {"expr_index_by_day": "ts", "expr_index_by_date": "at"}
BLOOM = "expr_index_lowered"
INDEXES = (*sorted(RANGES), BLOOM)
EPOCH = date(1970, 1, 1)
ENDLESS = "x" * 3_000_000
UTC = {"spark.sql.session.timeZone": "UTC"}
AUCKLAND = {"spark.sql.session.timeZone": "Pacific/Auckland"}


@pytest.fixture(params=["1.0.2", "1.2.0"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return unpack(request.param, tmp_path, "expressions")


@pytest.fixture
def newest_table(tmp_path: Path) -> Path:
    return unpack("1.2.0", tmp_path, "expressions")


def cluster(path: Path, **options: str) -> str:
    ts = clustering.schedule(request(path, Mode.SCHEDULE, options)).instant
    assert ts
    options = {"spark.sql.session.timeZone": "UTC"} | options
    clustering.execute(request(path, Mode.EXECUTE, options), engine=LocalEngine())
    return ts


def clean_all(path: Path) -> Report:
    options = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    return clean.clean(CleanRequest(base_path=str(path), options=resolve([("test", options)])))


def records(path: Path, index: str) -> dict[str, Record]:
    return {one.key: one for one in open_metadata(path).reader(index).scan()}


def live_files(path: Path) -> dict[str, list[str]]:
    view = open_local(path).view
    return {p: [s.base_file.name for s in view.latest_slices(p) if s.base_file] for p in view.partitions()}


def truth(file: Path) -> dict[str, list[Any]]:
    """What the three indexes hold of a file."""
    rows = pq.read_table(file, columns=["ts", "at", "name"], partitioning=None).to_pydict()
    days = [datetime.fromtimestamp(one, timezone.utc).strftime("%Y-%m-%d") for one in rows["ts"]]
    dates = [(one.date() - EPOCH).days for one in rows["at"]]
    return {"expr_index_by_day": days, "expr_index_by_date": dates, BLOOM: [one.lower() for one in rows["name"]]}


def index_is_true(path: Path) -> None:
    """All live files are in every index as they are, and the ranges of partitions hold them; nobody else is there."""
    there = {file.name for file in path.glob("*/*.parquet")}
    for index, column in RANGES.items():
        found = [one for one in records(path, index).values() if isinstance(one, StatsRecord)]
        of_files = {one.file_name: one for one in found if one.file_name.endswith(".parquet")}
        assert there >= of_files.keys()
        of_partitions = {one.file_name: one for one in found if one.file_name not in of_files}
        for partition, names in live_files(path).items():
            low, high = of_partitions[partition].minimum, of_partitions[partition].maximum
            for name in names:
                file, one = path / partition / name, of_files[name]
                values, size = truth(file)[index], file.stat().st_size
                assert (one.column, one.minimum, one.maximum) == (column, min(values), max(values))
                assert (one.value_count, one.null_count) == (len(values), 0)
                assert (one.total_size, one.total_uncompressed_size) == (size, 2 * size)
                assert low <= one.minimum and one.maximum <= high
    blooms = [one for one in records(path, BLOOM).values() if isinstance(one, BloomRecord)]
    assert len(there) >= len(blooms)
    for partition, names in live_files(path).items():
        for name in names:
            texts = truth(path / partition / name)[BLOOM]
            fit = [one for one in blooms if all(parse(one.bits.decode(), "").might_contain(text) for text in texts)]
            assert fit


@pytest.mark.thorough
def test_what_a_clustering_writes_is_true(path: Path) -> None:
    before = both(path)
    index_is_true(path)
    ts = cluster(path)
    assert both(path) == before
    index_is_true(path)
    new = files_of(path, ts)
    for index in RANGES:
        assert {one.file_name for one in records(path, index).values() if isinstance(one, StatsRecord)} >= {
            name.rpartition("/")[2] for name in new
        }
        narrow = [one for one in records(path, index).values() if isinstance(one, StatsRecord) and one.tight]
        assert {one.file_name for one in narrow} == set(live_files(path))
    ours = [one for one in records(path, BLOOM).values() if isinstance(one, BloomRecord) and one.instant == ts]
    hudis = [one for one in records(path, BLOOM).values() if isinstance(one, BloomRecord) and one.instant != ts]
    assert len(ours) == len(new)
    # As the index's own option sizes them.
    assert {(one.type_code, len(one.bits)) for one in ours} == {(one.type_code, len(one.bits)) for one in hudis}


@pytest.mark.thorough
def test_undo_and_rollback_take_the_records_back(path: Path) -> None:
    before = {index: records(path, index) for index in INDEXES}
    for roll_back_instant in (False, True):
        ts = cluster(path)
        if roll_back_instant:
            compact(path)
            undo(repair(path, "undo", ts, NO_HEARTBEAT))
        else:
            fail_newest(path)
            rollback(repair(path, "rollback", ts, NO_HEARTBEAT))
        index_is_true(path)
        for index in INDEXES:
            after = records(path, index)
            assert after.keys() == before[index].keys()


def test_a_clean_forgets_the_files(path: Path) -> None:
    cluster(path)
    old = {index: set(records(path, index)) for index in INDEXES}
    assert clean_all(path).state is Outcome.COMPLETED
    index_is_true(path)
    files = len(list(path.glob("*/*.parquet")))
    for index in INDEXES:
        left = set(records(path, index))
        assert left < old[index]
        assert len(left) == files + (len(live_files(path)) if index in RANGES else 0)


def test_another_zone_than_the_writers_is_seen_before_the_commit(path: Path) -> None:
    before = {index: records(path, index) for index in INDEXES}
    rows, commit = both(path), newest(path)
    with pytest.raises(CheckFailed, match=r"expr_index_by_(day|date) says") as refusal:
        cluster(path, **AUCKLAND)
    assert "spark.sql.session.timeZone" in refusal.value.hint
    assert (both(path), newest(path)) == (rows, commit)
    assert {index: records(path, index) for index in INDEXES} == before
    with pytest.raises(ConfigError, match="is no time zone"):
        cluster(path, **{"spark.sql.session.timeZone": "nowhere"})


def redefine(path: Path, index: str, change: Callable[[dict[str, Any]], object] | None) -> None:
    file = path / ".hoodie/.index_defs/index.json"
    tree = json.loads(file.read_text())
    if change is None:
        del tree["indexDefinitions"][index]
    else:
        change(tree["indexDefinitions"][index])
    file.write_text(json.dumps(tree))


REDEFINED: dict[str, tuple[Callable[[dict[str, Any]], object] | None, str]] = {
    "definition": (None, "it has no definition"),
    "function": (lambda one: one.update(indexFunction="soundex"), r"soundex\(ts\): the function soundex is not among"),
    "option": (lambda one: one["indexOptions"].update(zone="UTC"), "has no option zone here"),
    "format": (lambda one: one["indexOptions"].update(format="E"), "format 'E'"),
    "kind": (lambda one: one.update(indexType="vector"), "of the type vector"),
    "long format": (
        lambda one: one["indexOptions"].update(format=f"yyyy'{ENDLESS}'"),
        "its format has 3000006 characters, more than 200: yyyy'x{75}…",
    ),
    "long option": (lambda one: one["indexOptions"].update({ENDLESS: "1"}), "its option has 3000000 char.*: x{80}…"),
    "long function": (lambda one: one.update(indexFunction=ENDLESS), "its function has 3000000 char.*: x{80}…"),
    "long kind": (lambda one: one.update(indexType=ENDLESS), "of the type x{80}"),
    "long column": (lambda one: one.update(sourceFields=[ENDLESS]), "the column x{80} is no column"),
    "long value": (lambda one: one["indexOptions"].update(format=[ENDLESS]), r"its format has .*: \['x{78}…"),
    "columns": (lambda one: one.update(sourceFields=["ts", "at"]), "not of one column"),
    "column": (lambda one: one.update(sourceFields=["inner.ts"]), "inner.ts is no column of the table"),
    "type": (lambda one: one.update(sourceFields=["name"]), "from_unixtime of a column of type string"),
    "bloom": (lambda one: one["indexOptions"].update(fpp="0.1"), "has no option fpp here"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("case", REDEFINED)
def test_what_cannot_be_computed_is_refused_before_anything_is_written(case: str, newest_table: Path) -> None:
    change, text = REDEFINED[case]
    clustering.schedule(request(newest_table, Mode.SCHEDULE))
    redefine(newest_table, "expr_index_by_day", change)
    for mode, service in ((Mode.SCHEDULE, clustering.schedule), (Mode.EXECUTE, clustering.execute)):
        storage = FaultyStorage(str(newest_table))
        with pytest.raises(UnsupportedTable, match=f"expr_index_by_day cannot be kept in step: .*{text}") as refusal:
            service(request(newest_table, mode), storage)
        assert "drop the index" in refusal.value.hint and len(refusal.value.message) < 400
        assert storage.log == []


def test_whoever_only_deletes_needs_no_function(newest_table: Path) -> None:
    cluster(newest_table)
    redefine(newest_table, "expr_index_by_day", lambda one: one.update(indexFunction="soundex"))
    assert clean_all(newest_table).state is Outcome.COMPLETED
    index_is_true(newest_table)
    redefine(newest_table, "expr_index_by_day", None)
    with pytest.raises(UnsupportedTable, match="no definition"):
        clean_all(newest_table)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"numentries": "many"}, "cannot be made"),
        ({"filtertype": "ROUND"}, "ROUND"),
        ({"fpp": "2"}, "rate 2.0"),
        ({"fpp": "nan"}, "rate nan"),
        ({"fpp": "1e-300"}, "fpp=1e-300 is less than 1e-12"),
        ({"fpp": "x"}, "fpp=x is not a number"),
        ({"numentries": "0"}, "numentries=0 is less than 1"),
        ({"numentries": "49000000"}, "numentries=49000000 is more than 10000000"),
        ({"numentries": "1" + "0" * 150}, "numentries=1" + "0" * 79 + " is not a whole number"),
        ({"numentries": "1" + "0" * 400}, "its numentries has 401 characters, more than 200: 1" + "0" * 79 + "…"),
        ({"maxentries": "1" + "0" * 18}, "is more than 10000000"),
        ({"maxentries": "1" + "0" * 400}, "its maxentries has 401 characters"),
        ({"numentries": "9"}, "9 values in each of its rows and 100000 in all are more than 10000 rows"),
    ],
    ids=lambda one: str(one)[:40],
)
def test_bloom_filters_that_cannot_be_made(options: Mapping[str, str], text: str, newest_table: Path) -> None:
    """By the table: whoever schedules writes nothing, whoever looks says that the index cannot be looked at."""
    redefine(newest_table, BLOOM, lambda one: one["indexOptions"].update(options))
    storage = FaultyStorage(str(newest_table))
    with pytest.raises(UnsupportedTable, match=text) as refusal:
        clustering.schedule(request(newest_table, Mode.SCHEDULE), storage)
    assert storage.log == [] and len(refusal.value.message) < 400
    # As of every index that we cannot compute, nothing is said about its records.
    assert (
        validate.validate(ValidateRequest(base_path=str(newest_table), options=resolve([("test", UTC)]))).exit_code == 0
    )


@pytest.mark.parametrize(
    "options", [{"numentries": "10"}, {"numentries": "1", "maxentries": "10000"}, {"fpp": "1e-12"}]
)
def test_small_bloom_filters_are_honest(options: Mapping[str, str], newest_table: Path) -> None:
    redefine(newest_table, BLOOM, lambda one: one["indexOptions"].update(options))
    assert clustering.schedule(request(newest_table, Mode.SCHEDULE, UTC)).state is Outcome.REQUESTED


def test_an_index_that_the_commit_does_not_know(newest_table: Path) -> None:
    """Built, or built otherwise, since the clustering began."""
    ts = cluster(newest_table)
    metadata = open_metadata(newest_table)
    assert metadata.timeline.find(ts, Action.DELTA_COMMIT)
    name = live_files(newest_table)["p0"][0]
    change = Change("20980101000000000", (NewFile.of(f"p0/{name}", 1),), {})
    with pytest.raises(CheckFailed, match="has expr_index_by_date now"):
        sync_commit(metadata, change, far_future())
    assert metadata.timeline.find(change.instant) is None


@pytest.mark.thorough
def test_log_files_of_writes(path: Path) -> None:
    """Each has the range of its records, which widens that of its partition; one with deletes alone has no record."""
    properties = path / ".hoodie" / "hoodie.properties"
    text = properties.read_text().replace("hoodie.table.type=COPY_ON_WRITE", "hoodie.table.type=MERGE_ON_READ")
    properties.write_text(text)
    rows = merged_rows(path)
    rows = rows.select([name for name in rows.column_names if not name.startswith("_hoodie")])
    options = {**UTC, "hoodie.index.type": "SIMPLE", "hoodie.parquet.small.file.limit": "0"}
    table = hudi_services.open(path, engine="local")
    with pytest.raises(UnsupportedTable, match=f"has the index {BLOOM} of bloom filters, and no release"):
        table.upsert(rows, options=options)
    properties.write_text(text.replace(f",{BLOOM}", ""))
    new = rows.take(pa.array(range(0, rows.num_rows, 2)))
    for column, more in (("ts", pa.scalar(90_000_000)), ("at", pa.scalar(timedelta(days=4000), pa.duration("us")))):
        number = new.column_names.index(column)
        new = new.set_column(number, new.schema.field(number), pc.add(new.column(column), more))
    deleted = table.delete(rows.take(pa.array([1, 3, 5])), options=options).instant
    each_commit = {"hoodie.compact.inline.max.delta.commits": "1"}
    known = {one.file_name for one in records(path, "expr_index_by_day").values() if isinstance(one, StatsRecord)}
    assert deleted and not any(deleted in name for name in known)
    assert table.compact(options={**each_commit, **UTC}).ok
    written = table.upsert(new, options=options).instant
    assert written

    ranges = {index: {one.file_name: one for one in records(path, index).values()} for index in RANGES}
    view, slices, seen = open_local(path).view, open_local(path).slices, 0
    for one in (one for partition in view.partitions() for one in view.latest_slices(partition)):
        names = ["_hoodie_commit_time", "ts", "at"]
        found = pa.concat_tables([some for _, some in slices.open(one).tables(names)])
        # No row of a log file is deleted.
        found = found.filter(pc.equal(found.column(0).cast(pa.string()), written))
        values = {
            "expr_index_by_day": [
                f"{datetime.fromtimestamp(ts, timezone.utc):%Y-%m-%d}" for ts in found.column(1).to_pylist()
            ],
            "expr_index_by_date": pc.divide(found.column(2).cast(pa.int64()), 86_400_000_000).to_pylist(),
        }
        for index, column in RANGES.items():
            for log in one.log_files:
                record, whole, seen = ranges[index][log.name], ranges[index][one.partition], seen + 1
                assert (record.column, record.null_count) == (column, 0)
                assert (record.minimum, record.maximum) == (min(values[index]), max(values[index]))
                assert whole.minimum <= record.minimum and record.maximum <= whole.maximum
    assert seen >= 2 * len(RANGES)
    assert table.validate(strict=True).ok

    with pytest.raises(CheckFailed, match="the index expr_index_by_da"):
        table.compact(options={**each_commit, **AUCKLAND})
    assert table.compact(options={**each_commit, **UTC}).ok
    assert table.validate(strict=True).ok


def task(folder: Path, rows: pa.Table, index: ExpressionIndex, column: ColumnType, **more: Any) -> ExpressionTask:
    pq.write_table(rows, folder / "f.parquet", **more)
    computation = Computation(index, column, Zone.parse("UTC"), BloomSettings(100, 0.01, 200))
    file = BaseFile("", "f.parquet", "f", "0-0-0", "7", (folder / "f.parquet").stat().st_size)
    storage = open_storage(str(folder))
    return ExpressionTask(storage, BaseFileSlices(storage), "7", file, (computation,))


IDENTITY = ExpressionIndex("expr_index_x", COLUMN_STATS, "x", "identity", (), (), typed=True)
LONG = ColumnType(Kind.LONG, nullable=True)


def one_record(task: ExpressionTask) -> Any:
    (found,) = expression_records(task, "").values()
    return found


def test_a_file_of_several_row_groups(tmp_path: Path) -> None:
    rows = pa.table({"x": pa.array([5, None, 7, None, None, 3, 9], pa.int64())})
    found = one_record(task(tmp_path, rows, IDENTITY, LONG, row_group_size=2))
    assert (found.minimum, found.maximum, found.value_count, found.null_count) == (3, 9, 4, 3)
    bloom = one_record(task(tmp_path, rows, replace(IDENTITY, kind=BLOOM_FILTERS), LONG, row_group_size=2))
    assert bloom.instant == "7"
    assert all(parse(bloom.bits.decode(), "").might_contain(text) for text in "5739")
    assert not parse(bloom.bits.decode(), "").might_contain("None")


def test_a_file_without_the_column_has_nulls_of_it(tmp_path: Path) -> None:
    found = one_record(task(tmp_path, pa.table({"y": [1, 2]}), IDENTITY, LONG))
    assert (found.minimum, found.maximum, found.value_count, found.null_count) == (None, None, 0, 2)
    assert found.bound.kind is Kind.LONG


def test_a_file_without_rows_has_no_record(tmp_path: Path) -> None:
    assert expression_records(task(tmp_path, pa.table({"x": pa.array([], pa.int64())}), IDENTITY, LONG), "") == {}


def test_an_older_type_of_the_column(tmp_path: Path) -> None:
    rows = pa.table({"x": pa.array([1, 2], pa.int32())})
    assert one_record(task(tmp_path, rows, IDENTITY, LONG)).bound.kind is Kind.LONG
    with pytest.raises(UnsupportedTable, match="x is of type int"):
        expression_records(task(tmp_path, rows, IDENTITY, ColumnType(Kind.STRING)), "")


def test_values_that_are_not_computed_name_index_and_file(tmp_path: Path) -> None:
    rows = pa.table({"x": [1.0, float("nan")]})
    with pytest.raises(UnsupportedTable, match=r"expr_index_x .*identity\(x\) in .*f.parquet: .*NaN"):
        expression_records(task(tmp_path, rows, IDENTITY, ColumnType(Kind.DOUBLE)), "")


def test_timestamps_have_no_statistics_without_a_type(tmp_path: Path) -> None:
    at = ColumnType(Kind.TIMESTAMP, unit="micros", utc=True)
    rows = pa.table({"x": pa.array([7], pa.timestamp("us", "UTC"))})
    assert one_record(task(tmp_path, rows, IDENTITY, at)).minimum == 7
    with pytest.raises(UnsupportedTable, match="version V1"):
        expression_records(task(tmp_path, rows, replace(IDENTITY, typed=False), at), "")


def test_definitions_are_read(path: Path) -> None:
    found = {one.partition: one for one in expression_indexes(open_metadata(path))}
    assert set(found) == set(INDEXES)
    assert found["expr_index_by_day"].options == (("format", "yyyy-MM-dd"),)
    assert found[BLOOM].bloom_options == (("numentries", "1000"),)
    assert {one.typed for one in found.values()} == {open_metadata(path).config.version.typed_column_stats}
    assert SIMPLE not in {one.function for one in found.values()}
