"""The simple bucket index: the bucket of a key beside Java's own steps, and what writes do with buckets."""

import shutil
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hudi_services
from hudi_services import file_names
from hudi_services.errors import ConfigError, ConflictError, UnsupportedTable
from hudi_services.ingest import write_tasks
from hudi_services.jobs import writing
from hudi_services.options import resolve
from hudi_services.runs.request import WriteOperation, WriteRequest
from hudi_services.versions import VERSIONS
from hudi_services.writing.buckets import Buckets

from .faulty_storage import FaultyStorage, Killed
from .rides import FILTERS, create
from .shares import places, share
from .tables import both_views, merged_rows, open_local
from .test_upserts import rows, seen, write

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")
BUCKETS = {**FILTERS, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
_TEXTS = st.text("ab:,é😀_", max_size=6) | st.sampled_from(
    ["__null__", "__empty__", "12:30", "x,y:z", ",a:", "polygenelubricants"]
)


def _java_hash(text: str) -> int:
    units = text.encode("utf-16-le")
    result = 0
    for low, high in zip(units[::2], units[1::2], strict=True):
        result = (31 * result + (high << 8 | low)) & 0xFFFFFFFF
    return result


def _bucket(texts: list[str | None], count: int) -> int:
    result = 1
    for text in texts:
        result = (31 * result + (_java_hash(text) if text is not None else 0)) & 0xFFFFFFFF
    return (result & 0x7FFFFFFF) % count


def _value(text: str) -> str | None:
    return {"__null__": None, "__empty__": ""}.get(text, text)


def _texts_of_version_6(key: str, fields: list[str]) -> list[str | None]:
    """As KeyGenUtils.extractRecordKeysByFields of 0.15.0, key by key."""
    if ":" not in key:
        return [key]
    found: list[str | None] = []
    for part in key.rstrip(",").split(","):
        name, colon, value = part.partition(":")
        if not colon:
            found.append(part)
        elif name in fields:
            found.append(_value(value))
    return found


class EndlessLoop(Exception):
    """Hudi goes back to the first colon of the key, for ever."""


def _texts(key: str, fields: list[str]) -> list[str | None]:
    """As KeyGenUtils.extractRecordKeysByFields of 1.0.2 and 1.2.0, key by key."""
    if "," not in key or ":" not in key:
        return [key]
    found: list[str | None] = []
    at = 0
    while at < len(key):
        colon = key.index(":", at)
        name, end = key[at:colon], key.find(":", colon + 1)
        comma = key.rfind(",", 0, end) if end >= 0 else -1
        while end >= 0 and comma < colon:
            end = key.find(":", end + 1)
            if end < 0 and name not in fields:
                raise EndlessLoop
            comma = key.rfind(",", 0, end) if end >= 0 else -1
        stop = comma if end >= 0 else len(key)
        if name in fields:
            found.append(_value(key[colon + 1 : stop]))
        at = stop + 1
    return found or [key]


@given(st.lists(st.tuples(_TEXTS, _TEXTS), max_size=8), st.sampled_from([1, 4, 997]), st.sampled_from(["f", "g", "fg"]))
def test_keys_of_two_fields(values: list[tuple[str, str]], count: int, hashed: str) -> None:
    keys = [f"f:{one or '__empty__'},g:{two or '__empty__'}" for one, two in values]
    _compare(keys, ("f", "g"), list(hashed), count)


@given(st.lists(_TEXTS.filter(bool), max_size=8), st.booleans())
def test_keys_of_one_field(values: list[str], is_named: bool) -> None:
    _compare([f"f:{one}" if is_named else one for one in values], ("f",), ["f"], 997)


def _compare(keys: list[str], fields: tuple[str, ...], hashed: list[str], count: int) -> None:
    """Those that are refused one by one: keys that name a field twice, and keys that Hudi searches without end."""
    for splits, texts in ((True, _texts_of_version_6), (False, _texts)):
        buckets, known = Buckets(count, fields, frozenset(hashed), splits), dict[str, int]()
        for key in keys:
            twice = any(key.count(f",{name}:") != (name != fields[0]) for name in hashed)
            try:
                if twice and not splits and {",", ":"} <= {*key}:
                    raise EndlessLoop
                known[key] = _bucket(texts(key, hashed), count)
            except EndlessLoop:
                with pytest.raises(UnsupportedTable, match="it has no bucket"):
                    buckets.of(pa.array([key]))
        assert buckets.of(pa.array([*known], pa.string())).tolist() == [*known.values()]


def _groups(table: hudi_services.Table) -> set[tuple[str, str]]:
    """The partition and bucket of each file group, of which none is there twice."""
    found = [(one["partition"], one["file_id"][:8]) for one in table.slices().to_pylist()]
    assert len(found) == len({*found})
    return {*found}


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_inserts_and_overwrites(version: int, tmp_path: Path) -> None:
    """Every insert goes to the one file group of its bucket, whatever the sizes; a known key is then there twice."""
    path = tmp_path / "rides"
    table = create(path, table_version=version)
    small = {**BUCKETS, "hoodie.parquet.max.file.size": "2000", "hoodie.parquet.small.file.limit": "0"}
    assert table.insert(rows(0, 300), options=small).tables["written"].to_pylist()[0]["new_files"] == 12
    groups = _groups(table)
    assert table.bulk_insert(rows(300, 330), options=small).tables["written"].to_pylist()[0]["filled_files"] > 0
    assert table.insert(rows(0, 10, "again"), options=small).tables["written"].to_pylist()[0]["new_files"] == 0
    assert _groups(table) == groups and both_views(path)[0].num_rows == 340
    # All rows of a key are updated.
    assert table.upsert(rows(0, 10, "new", ts=1), options=BUCKETS).tables["written"].to_pylist()[0]["updates"] == 20
    assert table.delete(rows(0, 10), options=BUCKETS).tables["written"].to_pylist()[0]["deletes"] == 20
    dropped = {**BUCKETS, "hoodie.datasource.insert.dup.policy": "drop"}
    assert table.insert(rows(320, 340), options=dropped).tables["written"].to_pylist()[0]["inserts"] == 10
    with pytest.raises(ConfigError, match="has rows whose keys are to be inserted"):
        table.insert(rows(339, 350), options={**BUCKETS, "hoodie.datasource.insert.dup.policy": "fail"})
    table.insert_overwrite(rows(0, 40, "over", days=2), options=BUCKETS)
    assert len(seen(path)) == 40 + len([n for n in range(10, 340) if n % 3 == 2])
    look = WriteRequest(
        base_path=str(path), options=resolve([("test", BUCKETS)]), operation=WriteOperation.UPSERT, dry_run=True
    )
    said = writing.write(look, rows(0, 5, ts=2).to_reader).tables["written"][0]
    assert (said["inserts"], said["updates"]) == (None, None)
    assert table.validate(strict=True).ok
    # The whole table may get another number of buckets.
    other = {**BUCKETS, "hoodie.bucket.index.num.buckets": "2"}
    table.insert_overwrite_table(rows(0, 30), options=other)
    assert {bucket for _, bucket in _groups(table)} == {"00000000", "00000001"}
    assert table.upsert(rows(0, 40, "new", ts=3), options=other).ok
    assert len(seen(path)) == 40 and table.validate(strict=True).ok
    assert table.cluster(publish_late=False).ok
    assert table.upsert(rows(0, 40, "last", ts=4), options=other).ok
    assert {row["text"].split()[0] for row in seen(path).values()} == {"last"}


def test_what_is_refused(tmp_path: Path) -> None:
    """Before anything is written."""
    table = create(tmp_path / "rides")
    table.insert(rows(0, 60), options=BUCKETS)
    key = "hoodie.bucket.index.num.buckets"
    for options, error, message in (
        (
            {**BUCKETS, key: "3"},
            UnsupportedTable,
            r"the file group 00000003-\S+ of the partition 'd0' is none of 3 buckets",
        ),
        ({**BUCKETS, key: "8"}, UnsupportedTable, "and not where 8 buckets by id have it"),
        (FILTERS, UnsupportedTable, r"has file groups named after buckets \(00000000…\), and hoodie.index.type is not"),
        (
            {**BUCKETS, "hoodie.bucket.index.hash.field": "day"},
            ConfigError,
            "names day, which is no field of the record",
        ),
        ({**BUCKETS, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}, UnsupportedTable, "type MERGE_ON_READ alone"),
        ({**BUCKETS, "hoodie.bucket.index.partition.expressions": "d.*,2"}, ConfigError, "is not supported"),
    ):
        for more_days in (0, 7):
            with pytest.raises(error, match=message):
                table.insert(rows(0, 60, more_days=more_days), options=options)
    with pytest.raises(UnsupportedTable, match=r"hoodie\.index\.type is not BUCKET"):
        table.delete(rows(0, 3), options=FILTERS)
    plain = create(tmp_path / "plain")
    plain.insert(rows(0, 3))
    with pytest.raises(UnsupportedTable, match="is none of 4 buckets"):
        plain.upsert(rows(0, 3), options=BUCKETS)
    bare = create(tmp_path / "bare", options={"hoodie.populate.meta.fields": "false"})
    with pytest.raises(UnsupportedTable, match="rows are not written to buckets of such tables"):
        bare.insert(rows(0, 3), options=BUCKETS)
    assert table.timeline().num_rows == plain.timeline().num_rows == 1
    assert table.delete_partitions(["d0"]).ok
    plan = table.plan_clustering(options={"hoodie.clustering.plan.strategy.sort.columns": "id"})
    with pytest.raises(
        ConflictError, match=f"has rows to insert, and the pending plan {plan.instant} is to rewrite it"
    ):
        table.insert(rows(0, 60), options=BUCKETS)


@pytest.mark.thorough
def test_two_writers_begin_a_bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one finds the other's file group, and commits nothing: with two of them Hudi's writers would fail."""
    path = tmp_path / "rides"
    table = create(path)
    table.insert(rows(0, 30), options=BUCKETS)
    locked = {
        **BUCKETS,
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.clean.failed.writes.policy": "LAZY",
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    }
    other, begin = hudi_services.open(path, engine="local"), write_tasks.write_inserts
    began = []

    def interrupted(*arguments: Any) -> Any:
        if not began:
            began.append(True)
            assert other.upsert(rows(40, 80, "other", more_days=5), options=locked).ok
        return begin(*arguments)

    monkeypatch.setattr(write_tasks, "write_inserts", interrupted)
    once = {**locked, "hoodie.write.num.retries.on.conflict.failures": "0"}
    with pytest.raises(ConflictError, match="another writer has begun the file group"):
        table.upsert(rows(60, 100, "new", more_days=5), options=once)
    assert {row["text"].split()[0] for row in seen(path).values()} == {"text", "other"}
    assert table.upsert(rows(60, 100, "new", ts=1, more_days=5), options=locked).ok
    _groups(table)
    assert len(seen(path)) == 90


@pytest.mark.spread(4)
@pytest.mark.parametrize("operation", ["upsert", "insert_overwrite"])
@pytest.mark.parametrize("version", VERSIONS)
def test_every_write_may_be_the_last(version: int, operation: str, tmp_path: Path) -> None:
    path, made = tmp_path / "rides", tmp_path / "made"
    more = {**BUCKETS, "hoodie.bucket.index.num.buckets": "2"}
    table = create(path, table_version=version)
    table.insert(rows(0, 20, days=2), options=more)
    one = {"hoodie.metadata.global.record.level.index.min.filegroup.count": "1"}
    assert table.build_index(options=one).ok
    shutil.copytree(path, made)
    new = rows(15, 30, "new", ts=5)
    first, log = seen(path), FaultyStorage(str(path))
    write(path, operation, new, log, **more)
    second = seen(path)
    for survived in share(places(log.log), 0, 1):
        shutil.rmtree(path)
        shutil.copytree(made, path)
        with pytest.raises(Killed):
            write(path, operation, new, FaultyStorage(str(path), survived), **more)
        where = f"killed after {survived} writes: {log.log[survived - 1 : survived + 1]}"
        done = len(open_local(path).timeline.completed_writes()) > 1
        assert seen(path) == (second if done else first), where
        write(path, "upsert", new, **more)
        assert not open_local(path).timeline.pending(), where
        again = hudi_services.open(path, engine="local")
        assert again.validate(strict=True).ok, where
        _groups(again)
        assert {key: row for key, row in seen(path).items() if row["text"].startswith("new")} == {
            (row["day"], row["id"]): row for row in new.to_pylist()
        }


@pytest.mark.thorough
def test_buckets_of_merge_on_read_tables(tmp_path: Path) -> None:
    """All rows of a bucket that is there go to its log files, also inserts; a new bucket begins a base file."""
    path = tmp_path / "rides"
    table = create(path, table_type="MERGE_ON_READ", partition_by=None)
    first = table.insert(rows(0, 3), options=BUCKETS).tables["written"].to_pylist()[0]
    assert table.upsert(rows(0, 40, "new", ts=1), options=BUCKETS).tables["written"].to_pylist()[0]["new_files"] == (
        4 - first["new_files"]
    )
    again = table.insert(rows(40, 60), options=BUCKETS)
    assert again.tables["appended"].column("log_files").to_pylist() == [4]
    assert again.tables["written"].column("inserts").to_pylist() == [20]
    assert table.delete(rows(50, 70), options=BUCKETS).ok
    assert table.bulk_insert(rows(70, 80), options=BUCKETS).ok
    wanted = [f"k{n:05d}" for n in (*range(50), *range(70, 80))]
    assert merged_rows(path).column("id").to_pylist() == wanted
    assert len(open_local(path).view.latest_slices("")) == 4
    assert table.validate(strict=True).ok
    assert table.compact(options={"hoodie.compact.inline.max.delta.commits": "1"}).ok
    assert merged_rows(path).column("id").to_pylist() == wanted


def test_a_random_name_may_look_like_that_of_a_bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One uuid in 43,000 does: only keys that are in no bucket of that number show it."""
    random = uuid.UUID("00012345-4cf5-4bb2-8e27-0242ac120002")
    with monkeypatch.context() as patch:
        patch.setattr(file_names.uuid, "uuid4", lambda: random)
        patch.setattr(file_names, "has_bucket_digits", lambda _: False)
        plain = create(tmp_path / "plain")
        plain.insert(rows(0, 20, days=1))
    assert {(place, bucket) for place, bucket in _groups(plain)} == {("d0", "00012345")}
    assert plain.upsert(rows(10, 30, days=1), options=FILTERS).ok
    assert len(seen(tmp_path / "plain")) == 30
    # Of many buckets, too, a partition may have only one.
    many = {**BUCKETS, "hoodie.bucket.index.num.buckets": "997"}
    new = rows(0, 1000, days=1)
    places = Buckets(997, ("id",), frozenset({"id"}), splits_keys=False).of(new.column("id"))
    twice = next(bucket for bucket, count in zip(*np.unique(places, return_counts=True), strict=True) if count > 1)
    table = create(tmp_path / "rides")
    table.insert(new.filter(pa.array(places == twice)), options=many)
    with pytest.raises(UnsupportedTable, match=rf"named after buckets \({twice:08d}…\)"):
        table.upsert(new, options=FILTERS)


def test_new_names_do_not_look_like_those_of_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [uuid.UUID("00012345-4cf5-4bb2-8e27-0242ac120002"), uuid.UUID("0001234a-4cf5-4bb2-8e27-0242ac120002")]
    monkeypatch.setattr(file_names.uuid, "uuid4", iter(drawn).__next__)
    assert file_names.new_file_id() == f"{drawn[1]}-0"
