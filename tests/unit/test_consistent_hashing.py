"""Consistent hashing: the ring of real Hudi, writes to its buckets, and plans that split and merge them."""

import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hudi_services
from hudi_services.bucket_index.hashing_metadata import load_ring
from hudi_services.bucket_index.ring import FIRST_INSTANT, Ring
from hudi_services.bucket_index.ring_hashes import KeyHashes
from hudi_services.codecs.xx_hash_32 import xx_hash_32
from hudi_services.engine import LocalEngine
from hudi_services.errors import CheckFailed, ConfigError, CorruptFile, UnsupportedTable
from hudi_services.ingest import write_execution
from hudi_services.jobs import clustering
from hudi_services.options import resolve
from hudi_services.runs.request import ClusteringRequest, Mode

from .faulty_storage import FaultyStorage, Killed
from .rides import create
from .shares import places, share
from .tables import RELEASES, digest, open_local
from .test_compaction import rows_of
from .test_upserts import Model, rows, seen
from .test_write_retries import LOCKED

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")

_FIXTURES = Path(__file__).parents[1] / "fixtures/consistent"
_INDEX = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.clean.automatic": "false",
}
_BOUNDS = {"hoodie.bucket.index.max.num.buckets": "8", "hoodie.bucket.index.min.num.buckets": "1"}
_SPLIT = {**_BOUNDS, "hoodie.parquet.max.file.size": "100", "hoodie.bucket.index.split.threshold": "1"}
_MERGE = {**_BOUNDS, "hoodie.parquet.max.file.size": "10000000", "hoodie.bucket.index.merge.threshold": "1"}
VERSIONS = [6, 8, 9]
PENDING = ["split-pending", "merge-pending"]


def made(release: str, name: str, folder: Path) -> Path:
    """A table of real Hudi, in its pending state."""
    with tarfile.open(_FIXTURES / f"{release}.tar.xz") as archive:
        members = [one for one in archive.getmembers() if one.name.startswith(f"{name}/")]
        archive.extractall(folder, members, filter="data")
    return folder / name / "table"


def expected(folder: Path, name: str) -> list[list[Any]]:
    found: list[list[Any]] = json.loads((folder / name / "rows.json").read_text())["rows"]
    return sorted(found)


def contents(path: Path) -> list[list[Any]]:
    return sorted([row["id"], row["part"], row["ts"], row["text"]] for row in rows_of(path))


def buckets_are_right(path: Path) -> None:
    """Every key is in the file group that its ring names."""
    table = open_local(path)
    fields = tuple(table.config.record_key_fields)
    hashes = KeyHashes(fields, frozenset(fields), table.config.version.bucket_hash_splits_keys)
    for partition in table.view.partitions():
        ring = load_ring(table, partition)
        assert ring is not None
        for one in table.view.latest_slices(partition):
            for keys in table.slices.open(one).record_keys():
                homes = {ring.nodes[at].file_id for at in ring.positions(hashes.of(keys)).tolist()}
                assert homes <= {one.file_id}


def request(path: Path, mode: Mode, options: dict[str, str] | None = None) -> ClusteringRequest:
    return ClusteringRequest(base_path=str(path), options=resolve([("test", options or {})]), mode=mode)


def test_the_hash_is_that_of_hudi() -> None:
    found = json.loads((_FIXTURES / "hash_vectors.json").read_text())["vectors"]
    ring = Ring.first("p0", 64)
    compared = 0
    for one in found:
        key, hashed = one["key"], one["hash_fields"].split(",")
        fields = ("id", "day") if "," in key and ":" in key else ("id",)
        assert int(xx_hash_32(pa.array([key]))[0]) & 0x7FFFFFFF == one["xxh32_of_whole_key_masked"]
        if not {*hashed} <= {*fields}:
            continue
        for release, splits in (("0.15.0", True), ("1.2.0", False)):
            (at,) = ring.positions(KeyHashes(fields, frozenset(hashed), splits).of(pa.array([key])))
            assert ring.nodes[at].value == one[f"node_{release}"], (key, release)
            compared += 1
    assert compared > 20


def test_hashes_of_texts_of_any_length() -> None:
    """Many at once are what they are one by one; the first few are from the specification."""
    known = {"": 0x02CC5D05, "a": 0x550D7456, "abc": 0x32D153FF, "Nobody inspects the spammish repetition": 0xE2293B2F}
    assert [int(one) for one in xx_hash_32(pa.array([*known]))] == [*known.values()]
    random = np.random.default_rng(1)
    texts = ["".join(map(chr, random.integers(32, 0x24F, random.integers(0, 90)))) for _ in range(500)]
    assert xx_hash_32(pa.array(texts)).tolist() == [int(xx_hash_32(pa.array([one]))[0]) for one in texts]


@pytest.mark.parametrize("release", RELEASES)
def test_rings_are_read_and_written_as_hudi_does(release: str, tmp_path: Path) -> None:
    path = made(release, "merge-pending", tmp_path)
    found = sorted((path / ".hoodie/.bucket_index").rglob("*.hashing_meta"))
    assert len(found) > 2
    for file in found:
        ring = Ring.decode(file.read_bytes(), str(file), file.parent.name)
        assert ring.encoded() == file.read_bytes()
        if ring.instant == FIRST_INSTANT:
            assert Ring.first(ring.partition, ring.buckets) == ring
    for damaged in (b"", b"{}", found[0].read_bytes().replace(b"fileIdPrefix", b"x"), b'{"nodes": 1}'):
        with pytest.raises(CorruptFile):
            Ring.decode(damaged, "a file", "p0")


@pytest.mark.thorough
@pytest.mark.spread(3)
@pytest.mark.parametrize("name", PENDING)
@pytest.mark.parametrize("release", RELEASES)
def test_plans_of_hudi(release: str, name: str, tmp_path: Path) -> None:
    """Executed here, then written to, split and merged by plans of ours."""
    path = made(release, name, tmp_path)
    before = contents(path)
    assert before == expected(tmp_path, name)
    table = hudi_services.open(path, engine="local")
    assert table.execute_clustering().ok
    assert contents(path) == before
    buckets_are_right(path)
    new = pa.table({
        "id": [f"k{n:03d}" for n in range(20, 60)], "part": [f"p{n % 2}" for n in range(20, 60)],
        "ts": pa.array([50] * 40, pa.int32()), "text": ["new"] * 40,
    })  # fmt: skip
    assert table.upsert(new, options=_INDEX).ok
    for options in (_SPLIT, _MERGE):
        before = contents(path)
        assert table.plan_clustering(options=options).ok and table.execute_clustering().ok
        assert contents(path) == before
        buckets_are_right(path)
    assert table.delete(new.slice(0, 7), options=_INDEX).ok
    assert len(contents(path)) == len(before) - 7
    assert table.validate().ok


@pytest.mark.parametrize("release", RELEASES)
def test_rows_that_writers_wrote_twice(release: str, tmp_path: Path) -> None:
    path = made(release, "split-pending-dual", tmp_path)
    before, table = files_of(path), hudi_services.open(path, engine="local")
    plan = open_local(path).timeline.pending_clusterings()[0].ts
    for act in (table.execute_clustering, lambda: table.rollback(plan)):
        with pytest.raises(UnsupportedTable, match=f"writers have written to the buckets of the pending plan {plan}"):
            act()
    found = table.recover(apply=True)
    assert [row["decision"] for row in found.tables["instants"].to_pylist()] == ["wait"]
    assert files_of(path) == before


def files_of(path: Path) -> dict[str, str]:
    """All files but those of leases."""
    return {name: content for name, content in digest(path).items() if "/.locks/" not in name}


def written(path: Path, version: int, days: int = 3) -> hudi_services.Table:
    table = create(path, table_version=version, table_type="MERGE_ON_READ")
    assert table.upsert(rows(0, 40, days=days), options=_INDEX).ok
    return table


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.deep) for seed in (1, 2))])
def test_histories_beside_a_model(seed: int, version: int, tmp_path: Path) -> None:
    path, random = tmp_path / "t", np.random.default_rng(seed)
    table = create(path, table_version=version, table_type="MERGE_ON_READ")
    # On version 6 the ordering value decides; here it always rises.
    model = Model(of_newest=False, moves=None)
    clustered = 0
    for step in range(16):
        first = int(random.integers(0, 60))
        some = rows(first, first + int(random.integers(1, 40)), f"step {step}", ts=step)
        match int(random.integers(7)) if step else 0:
            case 0 | 1:
                write = table.upsert if random.random() < 0.7 else table.insert
                assert write(some, options=_INDEX).ok
                model.upsert(some.to_pylist(), by_ordering=True)
            case 2:
                assert table.delete(some, options=_INDEX).ok
                model.delete(some.to_pylist())
            case 3 | 4:
                options = _SPLIT if random.random() < 0.6 else _MERGE
                options = {**options, "hoodie.clustering.plan.strategy.sort.columns": "text"} if step % 2 else options
                clustered += table.cluster(publish_late=False, options=options).state is not None
            case 5:
                table.compact(options={"hoodie.compact.inline.max.delta.commits": "1"})
            case 6:
                table.clean(options={"hoodie.clean.commits.retained": "1"})
        assert seen(path) == model.rows, step
        buckets_are_right(path)
    assert clustered and table.validate().ok


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_killed_at_any_write(version: int, tmp_path: Path) -> None:
    table = written(tmp_path / "made", version, days=1)
    assert table.plan_clustering(options=_SPLIT).ok
    before = seen(tmp_path / "made")

    def copied(name: str) -> Path:
        shutil.rmtree(tmp_path / name, ignore_errors=True)
        return Path(shutil.copytree(tmp_path / "made", tmp_path / name))

    counted = FaultyStorage(str(copied("whole")))
    clustering.execute(request(tmp_path / "whole", Mode.EXECUTE), counted, LocalEngine())
    for survived in share(places(counted.log), 0, 1):
        path = copied("killed")
        with pytest.raises(Killed):
            clustering.execute(request(path, Mode.EXECUTE), FaultyStorage(str(path), survived), LocalEngine())
        assert seen(path) == before
        again = hudi_services.open(path, engine="local")
        pending = open_local(path).timeline.pending_clusterings()
        if pending and survived % 2:
            # The plan is given up, and its ring with it: writers of Hudi might count it.
            assert again.rollback(pending[0].ts).ok
            assert not [*path.rglob(f"{pending[0].ts}.hashing_meta")]
        elif pending:
            assert again.execute_clustering().ok
        assert again.upsert(rows(0, 60, "after", ts=9, days=1), options=_INDEX).ok
        buckets_are_right(path)
        assert len(seen(path)) == 60 and again.validate().ok, survived


@pytest.mark.thorough
def test_a_ring_counts_without_its_instant(tmp_path: Path) -> None:
    """The clustering is archived, and its marker gone: the file groups of the ring tell that it counts."""
    path = tmp_path / "t"
    table = written(path, 9)
    assert table.cluster(publish_late=False, options=_SPLIT).ok
    ring = load_ring(open_local(path), "d0")
    assert ring is not None and len(ring.nodes) == 4
    for marker in (path / ".hoodie/.bucket_index").rglob("*.commit"):
        marker.unlink()
    assert table.upsert(rows(0, 50, ts=3), options=_INDEX).ok
    for file in (path / ".hoodie/timeline").glob("2*"):
        if file.name[:17] <= ring.instant:
            file.unlink()
    found = load_ring(open_local(path), "d0")
    assert found == ring


def test_a_ring_of_another_number_of_buckets(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = written(path, 9)
    # Only new partitions begin with the number of the options.
    more = {**_INDEX, "hoodie.bucket.index.num.buckets": "5"}
    assert table.upsert(rows(0, 60, ts=3, days=4), options=more).ok
    rings = {one: load_ring(open_local(path), one) for one in ("d0", "d3")}
    assert [len(ring.nodes) for ring in rings.values() if ring] == [2, 5]
    buckets_are_right(path)


def test_refusals(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = written(path, 9)
    before = digest(path)
    with pytest.raises(UnsupportedTable, match="and the write is by another index"):
        table.upsert(rows(0, 5))
    for act in (table.bulk_insert, table.insert_overwrite, table.insert_overwrite_table):
        with pytest.raises(UnsupportedTable, match="is not done on a table with consistent hashing"):
            act(rows(0, 5), options=_INDEX)
    with pytest.raises(UnsupportedTable, match="is not done on a table with consistent hashing"):
        table.delete_partitions(["d0"], options=_INDEX)
    with pytest.raises(ConfigError, match="whose writers must know of a plan"):
        table.cluster(options=_SPLIT)
    assert digest(path) == before
    assert table.plan_clustering(options=_SPLIT).ok
    with pytest.raises(CheckFailed, match="is not in its bucket by consistent hashing"):
        two = hudi_services.open(path, engine="local")
        ring = next((path / ".hoodie/.bucket_index").rglob("d0/*.hashing_meta"))
        ring.write_text(ring.read_text().replace('"value" : 1073741824', '"value" : 1000'))
        two.execute_clustering()
    plain = create(tmp_path / "plain", table_type="MERGE_ON_READ")
    assert plain.upsert(rows(0, 9)).ok
    with pytest.raises(UnsupportedTable, match="has rows in file groups that are no buckets of consistent hashing"):
        plain.upsert(rows(0, 9, more_days=5), options=_INDEX)
    with pytest.raises(ConfigError, match="by consistent hashing an insert is an upsert"):
        table.insert(rows(0, 9), options={**_INDEX, "hoodie.datasource.insert.dup.policy": "drop"})
    create(tmp_path / "cow")
    with pytest.raises(UnsupportedTable, match="is for tables of type MERGE_ON_READ alone"):
        hudi_services.open(tmp_path / "cow", engine="local").upsert(rows(0, 5), options=_INDEX)


def test_plans_that_are_rolled_back_twice(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = written(path, 9, days=1)
    for _ in range(2):
        assert table.plan_clustering(options=_SPLIT).ok
        (plan,) = open_local(path).timeline.pending_clusterings()
        begun = FaultyStorage(str(path), 12)
        with pytest.raises(Killed):
            clustering.execute(request(path, Mode.EXECUTE), begun, LocalEngine())
        assert table.rollback(plan.ts).ok
    assert table.upsert(rows(0, 60, ts=4, days=1), options=_INDEX).ok
    buckets_are_right(path)
    assert len(seen(path)) == 60


@pytest.mark.thorough
@pytest.mark.spread(3)
@pytest.mark.parametrize("layout", ["linear", "z-order", "hilbert"])
def test_sorted_splits(layout: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = written(path, 9)
    before = seen(path)
    sort = {
        "hoodie.clustering.plan.strategy.sort.columns": "text,id",
        "hoodie.layout.optimize.strategy": layout,
    }
    assert table.cluster(publish_late=False, options={**_SPLIT, **sort}).ok
    assert seen(path) == before
    buckets_are_right(path)


@pytest.mark.thorough
def test_one_bucket_does_not_tell_its_hash_fields(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = create(path, record_key=["id", "ts"], table_type="MERGE_ON_READ")
    one = {**_INDEX, "hoodie.bucket.index.num.buckets": "1", "hoodie.bucket.index.hash.field": "id"}
    assert table.upsert(rows(0, 40), options=one).ok
    assert table.plan_clustering(options=_SPLIT).ok
    with pytest.raises(ConfigError, match="has one bucket, which does not tell which fields"):
        table.execute_clustering()
    assert table.execute_clustering(options={"hoodie.bucket.index.hash.field": "id"}).ok
    assert table.upsert(rows(0, 40, "again"), options=one).ok
    assert len(rows_of(path)) == 40


@pytest.mark.thorough
def test_a_clustering_ends_while_rows_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are assigned again, by the new ring."""
    path = tmp_path / "t"
    table = written(path, 9, days=1)
    assert table.plan_clustering(options=_SPLIT).ok
    plain, done = write_execution.workload, list[bool]()

    def meanwhile(*arguments: Any) -> bytes:
        if not done:
            done.append(True)
            assert hudi_services.open(path, engine="local").execute_clustering(options=LOCKED).ok
        return plain(*arguments)

    monkeypatch.setattr(write_execution, "refuse_planned", lambda *arguments, **more: None)
    monkeypatch.setattr(write_execution, "workload", meanwhile)
    result = table.upsert(rows(20, 70, "new", ts=5, days=1), options={**_INDEX, **LOCKED})
    assert result.ok and done
    buckets_are_right(path)
    assert len(seen(path)) == 70


@pytest.mark.thorough
def test_it_is_not_undone(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = written(path, 9)
    done = table.cluster(publish_late=False, options=_SPLIT)
    assert done.ok and done.instant
    for act in (table.undo, lambda ts: table.rollback(ts, completed=True)):
        with pytest.raises((UnsupportedTable, ConfigError)):
            act(done.instant)
    buckets_are_right(path)
