"""Upserts and deletes beside a model: which row of a key is kept, where it goes, and what readers then see."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_services
from hudi_services.errors import CheckFailed, ConfigError, ConflictError, NothingToDo, UnsupportedTable
from hudi_services.ingest import write_tasks
from hudi_services.jobs import writing
from hudi_services.merging import merged_logs
from hudi_services.options import resolve
from hudi_services.runs.request import WriteOperation, WriteRequest
from hudi_services.storage import Storage
from hudi_services.stores.local import LocalStorage
from hudi_services.table.view import FileSystemView
from hudi_services.versions import VERSIONS
from hudi_services.writing import distinct_rows

from .faulty_storage import FaultyStorage, Killed
from .rides import FILTERS, create
from .shares import places, share
from .tables import both_views, merged_rows, open_local

_GLOBAL = ("GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX")


pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")


def rows(first: int, end: int, text: str = "text", ts: int = 0, days: int = 3, more_days: int = 0) -> pa.Table:
    """Rows by their numbers; `more_days` moves them to other partitions."""
    numbers = np.arange(first, end)
    return pa.table(
        {
            "id": pa.array([f"k{n:05d}" for n in numbers], pa.string()),
            "day": pa.array([f"d{n % days + more_days}" for n in numbers], pa.string()),
            "ts": pa.array([ts] * len(numbers), pa.int64()),
            "text": pa.array([f"{text} {n}" for n in numbers], pa.string()),
        }
    )


Key = tuple[str, str]
Rows = dict[Key, dict[str, Any]]


class Model:
    """What a table has, by partition and key; `of_newest`: the newest row wins, whatever its ordering value."""

    def __init__(self, *, of_newest: bool, moves: bool | None) -> None:
        """`moves`: whether rows move between partitions; None for an index whose keys are unique in partitions."""
        self.rows: Rows = {}
        self._of_newest = of_newest
        self._moves = moves

    def upsert(self, new: list[dict[str, Any]], *, by_ordering: bool) -> None:
        """`by_ordering`: whether the ordering value decides between rows of one key in `new`."""
        one_of_each: Rows = {}
        for row in new:
            key = row["day"] if self._moves is None else "", row["id"]
            old = one_of_each.get(key)
            if old is None or not by_ordering or row["ts"] >= old["ts"]:
                one_of_each[key] = row
        for row in one_of_each.values():
            self._put(row)

    def _put(self, row: dict[str, Any]) -> None:
        place = self._find(row)
        old = self.rows.get(place) if place is not None else None
        if old is not None and not self._of_newest and row["ts"] < old["ts"]:
            return
        if place is not None and self._moves:
            del self.rows[place]
        stays = place is not None and self._moves is False
        self.rows[place if stays and place is not None else (row["day"], row["id"])] = row

    def delete(self, keys: list[dict[str, Any]]) -> None:
        for row in keys:
            place = self._find(row)
            if place is not None:
                self.rows.pop(place, None)

    def _find(self, row: dict[str, Any]) -> Key | None:
        if self._moves is None:
            return (row["day"], row["id"])
        return next((place for place in self.rows if place[1] == row["id"]), None)


def seen(path: Path) -> Rows:
    """The rows that readers see, by partition path and key."""
    if open_local(path).config.is_merge_on_read:
        found = merged_rows(path)
    else:
        found, listed = both_views(path)
        assert found.equals(listed)
    names = ["id", "day", "ts", "text"]
    paths = found.column("_hoodie_partition_path").to_pylist()
    assert found.column("_hoodie_record_key").to_pylist() == found.column("id").to_pylist()
    result = {(p, row["id"]): row for p, row in zip(paths, found.select(names).to_pylist(), strict=True)}
    assert len(result) == found.num_rows, "no key is twice in a partition"
    return result


def batches(seed: int, *, moves: bool, late_rows: bool) -> Iterator[tuple[str, pa.Table]]:
    """Upserts with duplicates, old and new keys and `late_rows`, and deletes."""
    random = np.random.default_rng(seed)
    for number in range(7):
        if number % 3 == 2:
            chosen = random.integers(0, 220, 25)
            yield "delete", pa.concat_tables([rows(n, n + 1) for n in chosen])
            continue
        chosen = random.integers(0, 60 * (number + 1), 60)
        parts = []
        for n in chosen.tolist():
            late, away = int(random.integers(0, 3)) * late_rows, int(random.integers(0, 2)) if moves else 0
            parts.append(rows(n, n + 1, f"batch {number}", ts=number + 1 - late, more_days=away))
        yield "upsert", pa.concat_tables(parts).combine_chunks()


@pytest.mark.thorough
@pytest.mark.spread(21)
@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "BUCKET", *_GLOBAL])
@pytest.mark.parametrize("ordering", ["ts", None])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", VERSIONS)
def test_batches_beside_a_model(
    version: int, kind: str, ordering: str | None, index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On merge-on-read tables without late rows: what these become depends on what is in base files by then."""
    seed = version + len(index)
    moves = None if index not in _GLOBAL else index != "RECORD_INDEX"
    table = create(tmp_path / "rides", table_version=version, ordering=ordering, table_type=kind)
    # By the payloads of version 6 a row of the table never wins: the ordering decides between rows of a batch alone.
    model = Model(of_newest=ordering is None or version == 6, moves=moves)
    if seed % 2:
        # Rows are divided by key among files.
        monkeypatch.setattr(distinct_rows, "_SHARE", 1 << 20)
    options = {**FILTERS, "hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "3"}
    first = rows(0, 60)
    table.insert(first, options=options)
    model.upsert(first.to_pylist(), by_ordering=ordering is not None)
    if index != "BUCKET":
        # Kept beside any index: deleted keys come back, which Hudi's own record index forgets (findings/).
        one = {"hoodie.metadata.global.record.level.index.min.filegroup.count": "2"}
        assert table.build_index(options=one).ok
    for number, (operation, new) in enumerate(
        batches(seed, moves=moves is not None, late_rows=kind == "COPY_ON_WRITE")
    ):
        given = new if operation == "upsert" else new.select(["day", "id"])
        before = seen(tmp_path / "rides")
        result = getattr(table, operation)(given, options=options)
        if operation == "upsert":
            model.upsert(new.to_pylist(), by_ordering=ordering is not None)
        else:
            model.delete(new.to_pylist())
        found = seen(tmp_path / "rides")
        assert found == model.rows, (number, operation)
        written = result.tables["written"].to_pylist()[0]
        # A key that a log file has deleted is updated in its old place.
        counts_all = kind == "COPY_ON_WRITE" and (index, operation) != ("BUCKET", "delete")
        assert not counts_all or written["inserts"] - written["deletes"] == len(found) - len(before)
        assert written["rows"] == new.num_rows
        if number % 4 == 2:
            assert table.validate(strict=True).ok, (number, operation)
    assert (table.compact() if kind == "MERGE_ON_READ" else table.cluster(publish_late=False)).ok
    assert seen(tmp_path / "rides") == model.rows
    assert table.validate(strict=True).ok


def write(path: Path, operation: str, new: pa.Table, storage: Storage | None = None, **more: str) -> None:
    options = resolve([("test", {**FILTERS, **more})])
    wanted = WriteRequest(base_path=str(path), options=options, operation=WriteOperation(operation))
    if wanted.operation.needs_rows:
        assert writing.write(wanted, new.to_reader, storage).error is None
    else:
        assert writing.delete_partitions(wanted, storage).error is None


@pytest.mark.thorough
@pytest.mark.spread(5)
@pytest.mark.parametrize(
    ("kind", "operation"),
    [
        *(("COPY_ON_WRITE", one) for one in ("upsert", "insert_overwrite", "delete_partition")),
        ("MERGE_ON_READ", "upsert"),
    ],
)
@pytest.mark.parametrize("version", VERSIONS)
def test_every_write_may_be_the_last(version: int, kind: str, operation: str, tmp_path: Path) -> None:
    """An upsert that updates, moves, fills and begins files: readers see all of it or nothing; the next repairs it.

    So with writes that replace file groups.
    """
    path, made = tmp_path / "rides", tmp_path / "made"
    table = create(path, table_version=version, table_type=kind)
    table.insert(rows(0, 30))
    one = {"hoodie.metadata.global.record.level.index.min.filegroup.count": "1"}
    assert table.build_index(options=one).ok
    if kind == "MERGE_ON_READ":
        # Log files that are there, and a small file without any.
        table.upsert(rows(1, 3, "text", ts=1))
    begun = len(open_local(path).timeline.completed_writes())
    shutil.copytree(path, made)
    new = pa.concat_tables([rows(20, 36, "new", ts=5), rows(0, 3, "moved", ts=5, more_days=2)]).combine_chunks()
    more = {"hoodie.index.type": "GLOBAL_BLOOM", "hoodie.datasource.write.partitions.to.delete": "d0,d2"}
    first = seen(path)
    log = FaultyStorage(str(path))
    write(path, operation, new, log, **more)
    second = seen(path)
    if operation == "upsert":
        assert len(second) == 36 and second["d4", "k00002"]["text"] == "moved 2" and ("d2", "k00002") not in second
    elif operation == "delete_partition":
        assert {place[0] for place in second} == {"d1"} and len(second) == 10
    else:
        assert sorted(row["text"] for row in second.values()) == sorted(new.column("text").to_pylist())
    for survived in share(places(log.log), 0, 1):
        shutil.rmtree(path)
        shutil.copytree(made, path)
        with pytest.raises(Killed):
            write(path, operation, new, FaultyStorage(str(path), survived), **more)
        where = f"killed after {survived} writes: {log.log[survived - 1 : survived + 1]}"
        done = len(open_local(path).timeline.completed_writes()) > begun
        assert seen(path) == (second if done else first), where
        write(path, "delete", rows(10, 12))
        gone = {("d1", "k00010"), ("d2", "k00011")}
        left = {key: row for key, row in (second if done else first).items() if key not in gone}
        assert seen(path) == left, where
        assert not open_local(path).timeline.pending(), where
        assert hudi_services.open(path, engine="local").validate(strict=True).ok, where
        base = {Path(one).name for one in path.rglob("*.parquet")}
        known = {instant.ts for instant in open_local(path).timeline.completed_writes()}
        assert {name.rpartition("_")[2].removesuffix(".parquet") for name in base} <= known, where


@pytest.mark.thorough
def test_deletes(tmp_path: Path) -> None:
    table = create(tmp_path / "rides")
    assert table.delete(rows(0, 3)).idle
    table.insert(rows(0, 30))
    # Keys that are not there are ignored; the columns of record key and partition path are enough, in any order.
    gone = table.delete(rows(20, 40).select(["day", "id"]))
    assert gone.tables["written"].to_pylist()[0]["deletes"] == 10
    assert len(seen(tmp_path / "rides")) == 20
    # As Hudi does: a commit without files.
    none = table.delete(rows(100, 103))
    assert none.ok and none.instant is not None
    written = none.tables["written"].to_pylist()[0]
    assert (written["deletes"], written["updated_files"], written["max_bytes"]) == (0, 0, 0)
    for lacking in ("id", "day"):
        with pytest.raises(ConfigError, match=f"the rows have no column called {lacking}, of which their keys are"):
            table.delete(rows(0, 3).drop_columns([lacking]))
    # All rows of a file: the file group stays, as in Hudi, with an empty file.
    assert table.delete(rows(0, 30)).ok
    assert seen(tmp_path / "rides") == {}
    assert table.validate(strict=True).ok
    assert table.upsert(rows(0, 3)).ok
    assert len(seen(tmp_path / "rides")) == 3


@pytest.mark.thorough
def test_rows_with_the_mark_of_a_delete(tmp_path: Path) -> None:
    """As Hudi's: `_hoodie_is_deleted` deletes a row that is there, and is not inserted."""

    def marked(first: int, end: int, *, deleted: bool) -> pa.Table:
        return rows(first, end, ts=1).append_column("_hoodie_is_deleted", pa.array([deleted] * (end - first)))

    table = create(tmp_path / "rides")
    table.insert(marked(0, 10, deleted=False))
    result = table.upsert(pa.concat_tables([marked(5, 12, deleted=True), marked(12, 14, deleted=False)]))
    assert sorted(n for _, n in seen(tmp_path / "rides")) == [f"k{n:05d}" for n in (*range(5), 12, 13)]
    written = result.tables["written"].to_pylist()[0]
    assert (written["inserts"], written["updates"], written["deletes"]) == (2, 0, 5)
    # Inserts leave such rows out, a bulk insert writes them.
    table.insert(pa.concat_tables([marked(20, 22, deleted=True), marked(22, 23, deleted=False)]))
    table.insert_overwrite(pa.concat_tables([marked(25, 26, deleted=True), marked(26, 28, deleted=False)]))
    table.bulk_insert(marked(30, 31, deleted=True))
    numbers = {int(key[1:]) for _, key in seen(tmp_path / "rides")}
    assert numbers >= {26, 27, 22, 30} and not numbers & {20, 21, 25}


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_row_and_a_delete_of_one_key(version: int, kind: str, tmp_path: Path) -> None:
    """The greater ordering value decides, whichever was given first; so does 0.15.0, which forgets it in log files."""
    table = create(tmp_path / "rides", table_version=version, table_type=kind)
    table.insert(rows(0, 4, days=1))
    given = [
        (0, 9, True),
        (0, 7, False),
        (1, 7, False),
        (1, 9, True),
        (2, 7, True),
        (2, 9, False),
        (3, 9, False),
        (3, 7, True),
    ]
    both = pa.concat_tables([rows(number, number + 1, "new", ts=ts, days=1) for number, ts, _ in given])
    table.upsert(both.append_column("_hoodie_is_deleted", pa.array([deleted for _, _, deleted in given])))
    assert {key: (row["ts"], row["text"]) for (_, key), row in seen(tmp_path / "rides").items()} == {
        "k00002": (9, "new 2"), "k00003": (9, "new 3")
    }  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
def test_a_delete_with_the_ordering_value_zero(version: int, tmp_path: Path) -> None:
    """1.2.0 takes an int 0 for no ordering value; to the older releases it is one, beside rows of the same write."""

    def given(numbers: list[int], ts: list[int], *, deleted: list[bool]) -> pa.Table:
        made = pa.concat_tables([rows(number, number + 1, days=1) for number in numbers])
        made = made.set_column(made.column_names.index("ts"), "ts", pa.array(ts, pa.int32()))
        return made.append_column("_hoodie_is_deleted", pa.array(deleted))

    table = create(tmp_path / "rides", table_version=version)
    table.insert(given([0, 1], [-9, -9], deleted=[False, False]))
    table.upsert(given([0, 0, 1, 1], [5, 0, 0, -5], deleted=[False, True, True, False]))
    left = {key: row["ts"] for (_, key), row in seen(tmp_path / "rides").items()}
    assert left == ({"k00001": -5} if version == 9 else {"k00000": 5})


def test_a_bloom_filter_spares_reads(tmp_path: Path) -> None:
    """A file whose footer rules all keys out is not read; one key more, and it is."""
    table = create(tmp_path / "rides", partition_by=None, options={**FILTERS, "hoodie.parquet.small.file.limit": "0"})
    options = {**FILTERS, "hoodie.parquet.small.file.limit": "0", "hoodie.index.type": "BLOOM"}
    table.insert(rows(0, 400, days=1), options=options)
    table.insert(rows(400, 800, days=1), options=options)
    (base,) = pq.ParquetFile(tmp_path / "rides" / _first_file(tmp_path / "rides")).metadata.metadata.keys() & {
        b"org.apache.hudi.bloomfilter"
    }
    assert base
    result = table.upsert(rows(10, 12, "new", ts=1, days=1), options=options)
    written = result.tables["written"].to_pylist()[0]
    assert (written["updates"], written["updated_files"], written["new_files"]) == (2, 1, 0)


def _first_file(path: Path) -> str:
    return min(path.glob("*.parquet")).name


def test_a_null_ordering_value(tmp_path: Path) -> None:
    """Where Hudi cannot compare two rows of a key, nothing is written."""
    table = create(tmp_path / "rides")
    table.insert(rows(0, 10))
    nulls = rows(0, 3).set_column(2, "ts", pa.array([None] * 3, pa.int64()))
    before = seen(tmp_path / "rides")
    with pytest.raises(ConfigError, match="rows of one record key have a null and a value in the ordering field ts"):
        table.upsert(pa.concat_tables([nulls, rows(0, 3)]))
    assert seen(tmp_path / "rides") == before
    assert not open_local(tmp_path / "rides").timeline.pending()


def test_an_update_that_was_merged_wrong_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(tmp_path / "rides")
    table.insert(rows(0, 30))
    before = seen(tmp_path / "rides")
    merged = merged_logs.Merger.rows

    def wrong(self: Any, base: pa.Table, at: Any, log: pa.Table, wins: Any) -> pa.Table:
        return merged(self, base, at, log, np.zeros_like(wins))

    monkeypatch.setattr(merged_logs.Merger, "rows", wrong)
    with pytest.raises(CheckFailed, match="does not hold the same rows"):
        table.upsert(rows(0, 3, "new", ts=1))
    monkeypatch.undo()
    assert seen(tmp_path / "rides") == before
    assert not open_local(tmp_path / "rides").timeline.pending()


def test_a_record_index_that_names_a_file_group_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(tmp_path / "rides")
    table.insert(rows(0, 30))
    assert table.build_index(options={"hoodie.metadata.global.record.level.index.min.filegroup.count": "1"}).ok
    monkeypatch.setattr(FileSystemView, "latest_slices_of", lambda view, partitions: [])
    with pytest.raises(CheckFailed, match="the record index has the key 'k00000' in the file group"):
        table.upsert(rows(0, 3, "new", ts=1), options={"hoodie.index.type": "RECORD_INDEX"})


@pytest.mark.thorough
def test_another_writer_changes_a_group_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rides"
    table = create(path)
    table.insert(rows(0, 20))
    other = hudi_services.open(path, engine="local")
    begin = write_tasks.write_updates

    def interrupted(*arguments: Any) -> Any:
        with pytest.raises(ConflictError, match="another writer is in progress"):
            other.upsert(rows(0, 3, "other", ts=9))
        return begin(*arguments)

    monkeypatch.setattr(write_tasks, "write_updates", interrupted)
    table.upsert(rows(0, 20, "new", ts=1))
    assert {row["text"].split()[0] for row in seen(path).values()} == {"new"}


@pytest.mark.thorough
def test_all_rows_of_a_key_are_updated_and_deleted(tmp_path: Path) -> None:
    """Rows of one key that inserts wrote, in one file and in several: as 0.15.0 and 1.0.2 do; 1.2.0 takes the first."""
    table = create(tmp_path / "rides", partition_by=None)
    table.insert(rows(0, 3))
    table.insert(rows(0, 3))
    table.bulk_insert(rows(0, 3))
    result = table.upsert(rows(0, 1, "new", ts=1))
    assert result.tables["written"].to_pylist()[0]["updates"] == 3
    result = table.delete(rows(1, 2))
    assert result.tables["written"].to_pylist()[0]["deletes"] == 3
    found, _ = both_views(tmp_path / "rides")
    assert sorted(found.column("text").to_pylist()) == ["new 0"] * 3 + ["text 2"] * 3


def test_no_table_is_created_for_rows_that_cannot_be_merged(tmp_path: Path) -> None:
    path = tmp_path / "rides"
    made = {
        "hoodie.table.name": "rides",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
    }
    wanted = WriteRequest(
        base_path=str(path),
        options=resolve([("test", made)]),
        operation=WriteOperation.UPSERT,
        input=(str(tmp_path / "new.parquet"),),
        dry_run=True,
    )
    nulls = pa.concat_tables([rows(0, 3).set_column(2, "ts", pa.array([None] * 3, pa.int64())), rows(0, 3)])
    for new, message in (
        (rows(0, 3).drop_columns(["ts"]), "neither the rows nor the table rides have its ordering field ts"),
        (nulls, "rows of one record key have a null and a value in the ordering field ts"),
    ):
        pq.write_table(new, tmp_path / "new.parquet")
        for one in (wanted, replace(wanted, dry_run=False)):
            with pytest.raises(ConfigError, match=message):
                writing.write_files(one)
    assert not path.exists()
    gone = replace(wanted, operation=WriteOperation.DELETE)
    with pytest.raises(NothingToDo, match="there is no table at"):
        writing.write_files(gone)


def test_a_null_that_meets_a_value_of_the_table(tmp_path: Path) -> None:
    table = create(tmp_path / "rides")
    table.insert(rows(0, 10))
    nulls = rows(0, 3).set_column(2, "ts", pa.array([None] * 3, pa.int64()))
    with pytest.raises(UnsupportedTable, match=r"a null in the ordering field ts .* cannot merge these rows") as error:
        table.upsert(nulls)
    assert error.value.hint == "give every row a value; nothing was committed"
    assert not open_local(tmp_path / "rides").timeline.pending()


@pytest.mark.thorough
@pytest.mark.parametrize("index", ["SIMPLE", "BUCKET"])
def test_a_null_that_meets_a_value_in_a_log_file(index: str, tmp_path: Path) -> None:
    """Before it is committed: readers, Hudi's too, could not read the file group."""
    table = create(tmp_path / "rides", partition_by=None, table_type="MERGE_ON_READ")
    options = {**FILTERS, "hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "1"}
    nulls = rows(0, 3).set_column(2, "ts", pa.array([None, 1, 1], pa.int64()))
    table.bulk_insert(nulls, options=options)
    for new in (rows(0, 1, "new", ts=2), rows(1, 2).set_column(2, "ts", pa.array([None], pa.int64()))):
        with pytest.raises(UnsupportedTable, match=r"could not be read: .* a null in the ordering field ts would have"):
            table.upsert(new, options=options)
    assert not open_local(tmp_path / "rides").timeline.pending()
    # Nulls are equal, and the key alone may be deleted.
    assert table.upsert(nulls.slice(0, 1).set_column(3, "text", [["again"]]), options=options).ok
    assert seen(tmp_path / "rides")["", "k00000"]["text"] == "again"
    assert table.delete(nulls.slice(0, 1).select(["id"]), options=options).ok
    with pytest.raises(UnsupportedTable, match=r"a null in the ordering field ts would have"):
        table.upsert(rows(0, 1, "new", ts=2), options=options)
    assert table.compact(options={"hoodie.compact.inline.max.delta.commits": "1"}).instant
    assert table.upsert(rows(0, 1, "new", ts=2), options=options).ok
    assert len(seen(tmp_path / "rides")) == 3 and table.validate(strict=True).ok


@pytest.mark.thorough
def test_deletes_need_no_ordering_field(tmp_path: Path) -> None:
    table = create(tmp_path / "rides")
    table.insert(rows(0, 10).drop_columns(["ts"]))
    with pytest.raises(ConfigError, match="neither the rows nor the table rides have its ordering field ts"):
        table.upsert(rows(0, 10).drop_columns(["ts"]))
    table.delete(rows(0, 4))
    assert table.slices().num_rows == 3
    assert both_views(tmp_path / "rides")[0].num_rows == 6


@pytest.mark.thorough
def test_file_groups_of_pending_plans_are_not_updated(tmp_path: Path) -> None:
    table = create(tmp_path / "rides")
    table.insert(rows(0, 30))
    plan = table.plan_clustering()
    instants = table.timeline().num_rows
    before = seen(tmp_path / "rides")
    for look in (False, True):
        options = {**FILTERS, "hoodie.index.type": "BLOOM" if look else "SIMPLE"}
        with pytest.raises(ConflictError, match=f"has rows to update or delete, and the pending plan {plan.instant}"):
            table.upsert(rows(0, 3), options=options)
    assert seen(tmp_path / "rides") == before
    assert {one["instant"] for one in table.timeline().to_pylist() if one["state"] != "completed"} == {plan.instant}
    assert table.timeline().num_rows >= instants
    # New keys go to new file groups.
    assert table.upsert(rows(30, 33)).tables["written"].to_pylist()[0]["new_files"] == 3


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_statistics_of_a_new_column(version: int, tmp_path: Path) -> None:
    """As Hudi's writers do: the commit that brings a column has its statistics, and the definition names it."""
    path = tmp_path / "rides"
    table = create(path, table_version=version)
    table.insert(rows(0, 9))
    table.upsert(rows(0, 30, ts=1).append_column("more", pa.array(np.arange(30) / 4)))
    defined = path / ".hoodie/.index_defs/index.json"
    if version > 6:
        fields = json.loads(defined.read_text())["indexDefinitions"]["column_stats"]["sourceFields"]
        assert fields[-1] == "more" and len(fields) == len({*fields})
    assert table.validate(strict=True).ok
    # A list of the user's own stays as it is.
    own = create(tmp_path / "own", table_version=version)
    listed = {"hoodie.metadata.index.column.stats.column.list": "ts"}
    own.insert(rows(0, 9), options={**FILTERS, **listed})
    own.upsert(rows(0, 30, ts=1).append_column("more", pa.array(np.arange(30) / 4)))
    if version > 6:
        text = (tmp_path / "own/.hoodie/.index_defs/index.json").read_text()
        assert "more" not in json.loads(text)["indexDefinitions"]["column_stats"]["sourceFields"]
    assert own.validate(strict=True).ok


class _Defining(LocalStorage):
    """Another process defines an index, as Hudi does without a lock, while the first base file is written."""

    def open_output(self, path: str) -> IO[bytes]:
        defined = Path(self.root) / ".hoodie/.index_defs/index.json"
        definitions = json.loads(defined.read_text())
        definitions["indexDefinitions"]["secondary_index_of_others"] = {"sourceFields": ["note"]}
        defined.write_text(json.dumps(definitions))
        return super().open_output(path)


def test_an_index_that_another_process_defines_meanwhile(tmp_path: Path) -> None:
    """It is still defined when the commit has added its column to those with statistics."""
    path = tmp_path / "rides"
    create(path).insert(rows(0, 9))
    request = WriteRequest(
        base_path=str(path), options=resolve([("test", FILTERS)]), operation=WriteOperation.BULK_INSERT
    )
    more = rows(30, 60, ts=1).append_column("more", pa.array(np.arange(30) / 4))
    writing.write(request, more.to_reader, _Defining(str(path)))
    found = json.loads((path / ".hoodie/.index_defs/index.json").read_text())["indexDefinitions"]
    assert found["column_stats"]["sourceFields"][-1] == "more"
    assert "secondary_index_of_others" in found


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_overwrites(version: int, tmp_path: Path) -> None:
    path = tmp_path / "rides"
    table = create(path, table_version=version)
    table.insert(rows(0, 30))
    assert table.build_index(options={"hoodie.metadata.global.record.level.index.min.filegroup.count": "1"}).ok
    # Of the partitions of the rows: small files are not filled, and their rows go.
    replaced = table.insert_overwrite(rows(40, 50, "new", days=2))
    written = replaced.tables["written"].to_pylist()[0]
    assert (written["replaced_files"], written["new_files"], written["filled_files"]) == (2, 2, 0)
    assert (written["inserts"], written["deletes"], written["partitions"]) == (10, 0, 2)
    stay = {("d2", f"k{n:05d}") for n in range(2, 30, 3)}
    assert seen(path).keys() == stay | {(f"d{n % 2}", f"k{n:05d}") for n in range(40, 50)}
    # The record index has the new keys, and no longer those that are gone.
    assert table.look_up(["k00000", "k00002", "k00040"]).column("key").to_pylist() == ["k00002", "k00040"]
    assert table.validate(strict=True).ok
    gone = table.delete_partitions(["d0", "nowhere"])
    assert gone.tables["written"].to_pylist()[0]["replaced_files"] == 1
    assert {place[0] for place in seen(path)} == {"d1", "d2"}
    assert table.delete_partitions(["d0"]).idle
    assert table.validate(strict=True).ok
    whole = table.insert_overwrite_table(rows(100, 103, "whole", more_days=7))
    assert whole.tables["written"].to_pylist()[0]["replaced_files"] == 2
    assert len(seen(path)) == 3
    assert table.look_up(["k00040", "k00100"]).column("key").to_pylist() == ["k00100"]
    # The old rows are there for queries of the past, until a clean.
    assert table.upsert(rows(100, 101, "more", ts=1, more_days=7)).ok
    assert table.clean(options={"hoodie.clean.commits.retained": "1"}).ok
    assert len(seen(path)) == 3
    assert table.validate(strict=True).ok
    assert table.delete_partitions(["d*"]).ok
    assert table.slices().num_rows == 0
    assert table.insert(rows(0, 3)).ok and len(seen(path)) == 3
    for wrong in ("d*", [], [None]):
        with pytest.raises(ConfigError, match=r"delete_partitions\(\) takes a list of partition paths"):
            table.delete_partitions(wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="no partition to delete is named"):
        write(path, "delete_partition", rows(0, 0))
    assert len(seen(path)) == 3


def test_a_pending_plan_is_not_overwritten(tmp_path: Path) -> None:
    """Hudi replaces its file groups, and the plan then brings their rows back."""
    table = create(tmp_path / "rides")
    table.insert(rows(0, 30))
    plan = table.plan_clustering()
    for write_over in (
        lambda: table.insert_overwrite(rows(0, 3)),
        lambda: table.insert_overwrite_table(rows(0, 3)),
        lambda: table.delete_partitions(["d1"]),
    ):
        with pytest.raises(ConflictError, match=f"the pending plan {plan.instant} is to rewrite it"):
            write_over()
    assert len(seen(tmp_path / "rides")) == 30
    # Refused before the write begins.
    assert table.timeline().num_rows == 2


@pytest.mark.thorough
def test_paths_of_partitions_that_are_deleted(tmp_path: Path) -> None:
    table = create(tmp_path / "rides")
    days = pa.array(["x,y", "x", "y", "day*", "days"])
    table.insert(rows(0, 5).set_column(1, "day", days))
    table.delete_partitions(["x,y"])
    assert {place[0] for place in seen(tmp_path / "rides")} == {"x", "y", "day*", "days"}
    table.delete_partitions(["day*", "y"])
    assert {place[0] for place in seen(tmp_path / "rides")} == {"x"}
    plain = create(tmp_path / "plain", partition_by=None)
    plain.insert(rows(0, 5))
    assert plain.delete_partitions([""]).ok
    assert plain.slices().num_rows == 0


@pytest.mark.thorough
def test_inserts_that_look_at_keys(tmp_path: Path) -> None:
    table = create(tmp_path / "rides")
    twice = pa.concat_tables([rows(0, 6, "late"), rows(0, 6, "new", ts=1), rows(3, 6, "old")])
    table.insert(twice, options={**FILTERS, "hoodie.combine.before.insert": "true"})
    assert {row["text"].split()[0] for row in seen(tmp_path / "rides").values()} == {"new"}
    table.bulk_insert(rows(6, 8), options={**FILTERS, "hoodie.combine.before.insert": "true"})
    before = seen(tmp_path / "rides")
    fails = {**FILTERS, "hoodie.datasource.insert.dup.policy": "fail"}
    with pytest.raises(ConfigError, match="has rows whose keys are to be inserted, such as 'k00006'") as error:
        table.insert(rows(5, 12, "again", days=3), options=fails)
    assert "hoodie.datasource.insert.dup.policy=drop" in error.value.hint
    assert seen(tmp_path / "rides") == before and not open_local(tmp_path / "rides").timeline.pending()
    for number, option in enumerate(
        [
            {"hoodie.datasource.insert.dup.policy": "drop"},
            {"hoodie.datasource.write.insert.drop.duplicates": "true", "hoodie.index.type": "GLOBAL_BLOOM"},
        ]
    ):
        new = rows(5, 12 + number, "again", ts=9, more_days=number)
        result = table.insert(new, options={**FILTERS, **option})
        assert result.tables["written"].to_pylist()[0]["inserts"] == (4 if number == 0 else 1)
        assert len(seen(tmp_path / "rides")) == 12 + number
    assert {row["text"].split()[0] for row in seen(tmp_path / "rides").values()} == {"new", "text", "again"}
    assert seen(tmp_path / "rides").items() >= before.items()
