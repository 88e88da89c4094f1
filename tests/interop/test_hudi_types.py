"""VECTOR and BLOB columns, and paths with colons: real Hudi reads what we write and rewrite, and writes on."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_services

from ..unit.tables import as_written, unpack
from .peer import EACH_DELTA_COMMIT, Peer
from .reading import METADATA_OFF, METADATA_ON
from .recipes import WRITE_DEFAULTS

_SORTED = {"hoodie.clustering.plan.strategy.sort.columns": "id"}
_READ = """
found = spark.read.format("hudi").load(path)
result = {field.name: field.metadata.get("hudi_type") for field in found.schema.fields if "hudi_type" in field.metadata}
"""
_TYPES = {"e": "VECTOR(4)", "f": "VECTOR(4)", "d": "VECTOR(3, DOUBLE)", "i": "VECTOR(5, INT8)", "b": "BLOB"}
_REFERENCE = pa.struct(
    [("external_path", pa.string()), ("offset", pa.int64()), ("length", pa.int64()), ("managed", pa.bool_())]
)
_GIVEN = pa.schema(
    {
        "id": pa.int64(),
        "ts": pa.int64(),
        "e": pa.list_(pa.float32()),
        "f": pa.list_(pa.float32()),
        "d": pa.list_(pa.float64()),
        "i": pa.list_(pa.int8()),
        "b": pa.struct([("type", pa.string()), ("data", pa.binary()), ("reference", _REFERENCE)]),
        "p": pa.string(),
    }
)


def _both(peer: Peer, path: Path, columns: list[str]) -> dict[int, dict[str, Any]]:
    """The rows that Hudi reads, the same with and without the metadata table."""
    found = [peer.rows(path, options).select(["id", *columns]).to_pylist() for options in (METADATA_ON, METADATA_OFF)]
    by_key = [{row["id"]: row for row in rows} for rows in found]
    assert by_key[0] == by_key[1] and all(len(one) == len(rows) for one, rows in zip(by_key, found, strict=True))
    return by_key[0]


@pytest.mark.deep
@pytest.mark.releases("1.2.0")
def test_vectors_and_blobs(peer: Peer, version: str, tmp_path: Path) -> None:
    path = unpack(version, tmp_path, "vectors")
    as_written(path)
    names = ["ts", *_TYPES]
    rows = _both(peer, path, names)
    table = hudi_services.open(path, engine="local")
    outside = {"external_path": "/a", "offset": 1, "length": 2, "managed": False}
    blob = {"type": "OUT_OF_LINE", "data": None, "reference": outside}
    new: dict[int, dict[str, Any]] = {
        number: {"id": number, "ts": 5, "e": [number, 0.5, -1.5, 1.0], "f": None, "d": [0.1, 1e300, -0.0]}
        | {"i": [1, -128, 127, 0, 5], "b": blob if number == 2 else None}
        for number in (2, 40)
    }
    given = pa.Table.from_pylist([{**one, "p": "a"} for one in new.values()], schema=_GIVEN)
    table.upsert(given)
    rows |= new
    assert _both(peer, path, names) == rows
    for step in ("compact", "cluster", "sort"):
        if step == "compact":
            done = table.compact(options=EACH_DELTA_COMMIT)
        else:
            single = {"hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true"}
            done = table.cluster(options=_SORTED if step == "sort" else single)
        assert done.instant
        assert _both(peer, path, names) == rows, step
    assert peer.eval(_READ, path=str(path)) == _TYPES
    # Hudi goes on: its writer takes the table's types from the schema of our commits.
    peer.sql(f"create table vectors_again using hudi location '{path}'")
    peer.sql("update vectors_again set e = array(1f, 2f, 3f, 4f), ts = 9L where id = 40")
    rows[40] |= {"e": [1.0, 2.0, 3.0, 4.0], "ts": 9}
    assert _both(peer, path, names) == rows
    assert table.validate().exit_code == 0


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", pytest.param("MERGE_ON_READ", marks=pytest.mark.deep)])
def test_paths_with_a_colon_after_their_first_part(peer: Peer, kind: str, tmp_path: Path) -> None:
    path, prefix = tmp_path / "rides", "hoodie.datasource.write."
    known: Mapping[str, str] = {
        "hoodie.table.name": "rides",
        f"{prefix}recordkey.field": "id",
        f"{prefix}precombine.field": "ts",
        f"{prefix}partitionpath.field": "r,at",
        f"{prefix}keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
        f"{prefix}table.type": kind,
        f"{prefix}operation": "upsert",
    }

    def rows(ids: list[int], ts: int) -> pa.Table:
        at = [f"2021-01-01 1{one % 2}:00:00" for one in ids]
        return pa.table({"id": ids, "ts": [ts] * len(ids), "r": ["x"] * len(ids), "at": at})

    options = {**WRITE_DEFAULTS, **known, "hoodie.compact.inline": "false"}
    peer.write(path, rows([1, 2, 3, 4], 1), options)
    table = hudi_services.open(path, engine="local")
    table.upsert(rows([2, 5], 2))
    true = {one: 2 if one in (2, 5) else 1 for one in range(1, 6)}
    assert {one: row["ts"] for one, row in _both(peer, path, ["ts"]).items()} == true
    assert table.cluster(options=_SORTED).instant
    assert {one: row["ts"] for one, row in _both(peer, path, ["ts"]).items()} == true
    peer.write(path, rows([1, 6], 3), options)
    table.clean(options={"hoodie.clean.commits.retained": "1"})
    found = _both(peer, path, ["ts", "_hoodie_partition_path"])
    assert {one: row["ts"] for one, row in found.items()} == {**true, 1: 3, 6: 3}
    assert {row["_hoodie_partition_path"] for row in found.values()} == {f"x/2021-01-01 1{n}:00:00" for n in (0, 1)}
    assert table.validate().exit_code == 0


@pytest.mark.thorough
@pytest.mark.parametrize("service", ["cluster", pytest.param("compact", marks=pytest.mark.deep)])
def test_merge_on_read_tables_whose_files_lack_the_partition_columns(peer: Peer, service: str, tmp_path: Path) -> None:
    """Log files of upserts have the columns, base files do not, and Hudi reads them from the path."""
    path, prefix = tmp_path / "rides", "hoodie.datasource.write."
    options = {
        **WRITE_DEFAULTS,
        "hoodie.table.name": "rides",
        f"{prefix}recordkey.field": "id",
        f"{prefix}precombine.field": "ts",
        f"{prefix}partitionpath.field": "p",
        f"{prefix}hive_style_partitioning": "true",
        f"{prefix}drop.partition.columns": "true",
        f"{prefix}table.type": "MERGE_ON_READ",
        "hoodie.compact.inline": "false",
    }
    ids = list(range(8))
    rows = pa.table({"id": ids, "ts": [1] * 8, "p": ["b", "a"] * 4})
    peer.write(path, rows, {**options, f"{prefix}operation": "bulk_insert"})
    peer.write(path, rows.slice(5, 1), {**options, f"{prefix}operation": "delete"})
    table = hudi_services.open(path, engine="local")
    assert table.validate().exit_code == 0
    changed = rows.slice(0, 2).set_column(1, "ts", pa.array([2, 2]))
    peer.write(path, changed, {**options, f"{prefix}operation": "upsert"})
    true = {one: {"id": one, "ts": 2 if one < 2 else 1, "p": "ba"[one % 2]} for one in ids if one != 5}
    assert _both(peer, path, ["ts", "p"]) == true
    done = table.cluster(options=_SORTED) if service == "cluster" else table.compact(options=EACH_DELTA_COMMIT)
    assert done.instant
    assert _both(peer, path, ["ts", "p"]) == true
    assert sorted(peer.rows(path, METADATA_ON, where="p = 'a'")["id"].to_pylist()) == [1, 3, 7]
    assert table.validate().exit_code == 0
