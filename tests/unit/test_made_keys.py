"""Upserts and deletes of tables without meta fields, whose record keys are made of columns, beside a model."""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_services
from hudi_services.commit import newest_files
from hudi_services.errors import ConfigError, CorruptFile, UnsupportedTable
from hudi_services.ingest.write_tasks import WriteTask, Written
from hudi_services.schema.table_schema import META_COLUMNS
from hudi_services.versions import VERSIONS
from hudi_services.writing import distinct_rows
from hudi_services.writing.row_store import RowStore

from .faulty_storage import FaultyStorage, Killed
from .rides import FILTERS, create
from .shares import places, share
from .tables import open_local
from .test_upserts import Model, Rows, batches, rows, write

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")
_NO_META = {**FILTERS, "hoodie.populate.meta.fields": "false"}


def seen(path: Path) -> Rows:
    """The rows that readers see, by partition path and key."""
    table = open_local(path)
    files = [one.base_file for partition in table.view.partitions() for one in table.view.latest_slices(partition)]
    names = ["id", "day", "ts", "text"]
    found = [pq.read_table(path / file.path, partitioning=None).select(names) for file in files if file is not None]
    listed = pa.concat_tables(found).to_pylist()
    result = {(row["day"], row["id"]): row for row in listed}
    assert len(result) == len(listed), "no key is twice in a partition"
    return result


@pytest.mark.thorough
@pytest.mark.spread(11)
@pytest.mark.parametrize("names_key", ["SIMPLE", "COMPLEX"])
@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE"])
@pytest.mark.parametrize("ordering", ["ts", None])
@pytest.mark.parametrize("version", VERSIONS)
def test_batches_beside_a_model(
    version: int, ordering: str | None, index: str, names_key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = version + len(index) + len(names_key)
    path, moves = tmp_path / "rides", index == "GLOBAL_SIMPLE" or None
    fields = ["id"] if names_key == "SIMPLE" else ["id", "again"]
    table = create(path, table_version=version, ordering=ordering, record_key=fields, options=_NO_META)
    model = Model(of_newest=ordering is None or version == 6, moves=moves)
    if seed % 2:
        monkeypatch.setattr(distinct_rows, "_SHARE", 1 << 20)
    options = {**FILTERS, "hoodie.index.type": index}

    def given(new: pa.Table) -> pa.Table:
        # A field of the key that is null in some rows.
        numbers = [int(key[1:]) for key in new.column("id").to_pylist()]
        return new.append_column("again", pa.array([None if n % 3 else n for n in numbers], pa.int64()))

    first = rows(0, 60)
    table.insert(given(first), options=options)
    model.upsert(first.to_pylist(), by_ordering=ordering is not None)
    for number, (operation, new) in enumerate(batches(seed, moves=bool(moves), late_rows=True)):
        before = seen(path)
        result = getattr(table, operation)(given(new), options=options)
        if operation == "upsert":
            model.upsert(new.to_pylist(), by_ordering=ordering is not None)
        else:
            model.delete(new.to_pylist())
        found = seen(path)
        assert found == model.rows, (number, operation)
        written = result.tables["written"].to_pylist()[0]
        assert written["inserts"] - written["deletes"] == len(found) - len(before)
        assert written["rows"] == new.num_rows
    assert table.validate(strict=True).ok
    for file in path.rglob("d*/*.parquet"):
        footer = pq.ParquetFile(file)
        assert not [name for name in footer.schema_arrow.names if name.startswith("_hoodie_")]
        assert not [key for key in footer.metadata.metadata if b"record_key" in key or b"bloom" in key]
    # What is there is left out.
    more = pa.concat_tables([rows(0, 300)]).combine_chunks()
    keys_there = {key if moves is None else ("", key[1]) for key in model.rows}
    left = [row for row in more.to_pylist() if (row["day"] if moves is None else "", row["id"]) not in keys_there]
    table.insert(given(more), options={**options, "hoodie.datasource.insert.dup.policy": "drop"})
    assert len(seen(path)) == len(model.rows) + len(left)
    assert table.cluster(publish_late=False).ok and table.validate(strict=True).ok


@pytest.mark.spread(5)
@pytest.mark.parametrize("ordering", ["ts", None])
@pytest.mark.parametrize("version", VERSIONS)
def test_untouched_row_groups_are_copied(version: int, ordering: str | None, tmp_path: Path) -> None:
    """No stored column may decide which of their rows stay: keys are made of what is stored."""
    table = create(tmp_path / "rides", table_version=version, ordering=ordering, options=_NO_META)
    options = {**FILTERS, "hoodie.parquet.block.size": "50000"}
    old = rows(0, 20_000, days=1)
    table.insert(old, options=options)
    (file,) = (tmp_path / "rides").glob("d0/*.parquet")
    assert pq.read_metadata(file).num_row_groups > 4
    assert table.upsert(rows(3, 4, "new", ts=5, days=1), options=options).ok
    assert table.delete(rows(4, 6, days=1), options=options).ok
    wanted = {(row["day"], row["id"]): row for row in old.to_pylist() if row["id"] not in ("k00004", "k00005")}
    wanted["d0", "k00003"] |= {"ts": 5, "text": "new 3"}
    assert seen(tmp_path / "rides") == wanted
    assert table.validate(strict=True).ok


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_every_write_may_be_the_last(version: int, tmp_path: Path) -> None:
    path, made = tmp_path / "rides", tmp_path / "made"
    create(path, table_version=version, options=_NO_META).insert(rows(0, 30))
    shutil.copytree(path, made)
    new = pa.concat_tables([rows(20, 36, "new", ts=5), rows(0, 3, "moved", ts=5, more_days=2)]).combine_chunks()
    more = {"hoodie.index.type": "GLOBAL_SIMPLE"}
    begun, first = len(open_local(path).timeline.completed_writes()), seen(path)
    log = FaultyStorage(str(path))
    write(path, "upsert", new, log, **more)
    second = seen(path)
    assert len(second) == 36 and second["d4", "k00002"]["text"] == "moved 2" and ("d2", "k00002") not in second
    for survived in share(places(log.log), 0, 1):
        shutil.rmtree(path)
        shutil.copytree(made, path)
        with pytest.raises(Killed):
            write(path, "upsert", new, FaultyStorage(str(path), survived), **more)
        done = len(open_local(path).timeline.completed_writes()) > begun
        assert seen(path) == (second if done else first), survived
        write(path, "delete", rows(10, 12))
        left = {key: row for key, row in (second if done else first).items() if key[1] not in ("k00010", "k00011")}
        assert seen(path) == left, survived
        assert not open_local(path).timeline.pending(), survived
        assert hudi_services.open(path, engine="local").validate(strict=True).ok, survived


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_keys_are_kept_where_they_are_compared(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are inserted as they are take no memory for keys."""
    columns: list[list[str]] = []

    run = WriteTask.run

    def noted(task: WriteTask, store: RowStore) -> Written:
        columns.append(next(store.read(task.portions[0].place)).column_names)
        return run(task, store)

    monkeypatch.setattr(WriteTask, "run", noted)
    table, one_day = create(tmp_path / "rides", table_type=kind, options=_NO_META), rows(0, 3, days=1)
    table.insert(one_day)
    twice = pa.concat_tables([one_day, rows(3, 5, days=1), rows(3, 5, days=1)])
    table.insert(twice, options={"hoodie.combine.before.insert": "true"})
    assert columns == [one_day.column_names, ["_hoodie_record_key", *one_day.column_names]]
    # None is looked up in files.
    files = (tmp_path / "rides").rglob("d0/*.parquet")
    assert sorted(pq.read_metadata(file).num_rows for file in files) == [3, 8]
    if kind == "COPY_ON_WRITE":
        table.insert(rows(0, 6, days=1), options={"hoodie.datasource.insert.dup.policy": "drop"})
        assert columns[-1][0] == "_hoodie_record_key" and len(columns) == 3
    assert table.validate(strict=True).ok


def test_meta_columns_without_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in files of Hudi's bulk inserts: they are never nulls, and the next slices of such files have none of them."""
    # The files are not those that the commit knows the sizes of.
    monkeypatch.setattr(newest_files, "_refuse", lambda table, problem: None)
    path, options = tmp_path / "rides", {**FILTERS, "hoodie.metadata.enable": "false"}
    table = create(path, options=_NO_META)
    table.insert(rows(0, 30), options=options)
    for file in path.rglob("d*/*.parquet"):
        found, empty = pq.read_table(file, partitioning=None), pa.array([""] * 10)
        for name in reversed(META_COLUMNS):
            found = found.add_column(0, pa.field(name, pa.string(), nullable=False), empty)
        pq.write_table(found, file)
    table.insert(rows(30, 33), options=options)
    table.upsert(rows(0, 31, "new", days=2), options=options)
    model = Model(of_newest=False, moves=None)
    for new in (rows(0, 33), rows(0, 31, "new", days=2)):
        model.upsert(new.to_pylist(), by_ordering=True)
    assert seen(path) == model.rows
    newest = [one for day in ("d0", "d1", "d2") for one in open_local(path).view.latest_slices(day)]
    assert len(newest) == 3
    for one in newest:
        assert one.base_file is not None
        assert pq.read_schema(path / one.base_file.path).names == ["id", "day", "ts", "text"]


def test_what_is_refused(tmp_path: Path) -> None:
    """With one sentence, before the instant begins."""
    table = create(tmp_path / "rides", options=_NO_META)
    table.insert(rows(0, 3))
    for index in ("BLOOM", "GLOBAL_BLOOM"):
        with pytest.raises(ConfigError, match=f"hoodie.index.type={index} needs the record keys in its files"):
            table.upsert(rows(0, 3), options={"hoodie.index.type": index})
    with pytest.raises(UnsupportedTable, match="rows are not written to buckets of such tables"):
        table.delete(rows(0, 3), options={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"})
    logs = create(tmp_path / "logs", table_type="MERGE_ON_READ", options=_NO_META)
    logs.insert(rows(0, 3))
    with pytest.raises(UnsupportedTable, match="only inserts are written to such tables of type MERGE_ON_READ yet"):
        logs.upsert(rows(0, 3))
    custom = {**_NO_META, "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator"}
    kinds = create(tmp_path / "kinds", partition_by="day:SIMPLE", options=custom)
    with pytest.raises(UnsupportedTable, match="Apache Hudi writes no such table with the key generator"):
        kinds.upsert(rows(0, 3))
    assert [one.timeline().num_rows for one in (table, logs, kinds)] == [1, 1, 0]


def test_a_row_without_a_key(tmp_path: Path) -> None:
    """A file in which a row has no key is not looked up."""
    path, options = tmp_path / "rides", {**FILTERS, "hoodie.metadata.enable": "false"}
    table = create(path, options=_NO_META)
    table.insert(rows(0, 3), options=options)
    file = next(path.rglob("d0/*.parquet"))
    found = pq.read_table(file, partitioning=None)
    pq.write_table(found.set_column(0, "id", pa.array([None], pa.string())), file)
    with pytest.raises(CorruptFile, match="has rows without a record key"):
        table.upsert(rows(0, 3), options=options)
