"""Rows that we write: real Hudi reads them as a model has them, goes on from our commits, and we from its commits."""

import json
from collections.abc import Mapping
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudi_services

from .peer import Peer
from .readers import hudi_rs_rows, same_values
from .reading import METADATA_OFF, METADATA_ON
from .recipes import SMALL_FILTERS, WRITE_DEFAULTS

_RECORD_NAME = """
try:
    result = jvm.org.apache.hudi.common.schema.HoodieSchemaUtils.getRecordQualifiedName(name)
except TypeError:
    result = jvm.org.apache.hudi.avro.AvroSchemaUtils.getAvroRecordQualifiedName(name)
"""
"""The name of the Avro record of a table's rows; 1.2.0 has it in another class."""
_WRITE = "hoodie.datasource.write."
_KEYGEN = "org.apache.hudi.keygen."
_SIZES = {"hoodie.parquet.small.file.limit": "600000", "hoodie.copyonwrite.record.size.estimate": "1000"}
_META = 5
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("part", pa.string()),
        ("day", pa.date32()),
        ("ts", pa.int64()),
        ("name", pa.string()),
        ("flag", pa.bool_()),
        ("small", pa.int32()),
        ("ratio", pa.float64()),
        ("share", pa.float32()),
        ("price", pa.decimal128(15, 2)),
        ("raw", pa.binary()),
        ("at", pa.timestamp("us", "UTC")),
        ("tags", pa.list_(pa.string())),
        ("counts", pa.map_(pa.string(), pa.int64())),
        ("place", pa.struct([("city", pa.string()), ("zip", pa.int32())])),
        ("rows", pa.list_(pa.list_(pa.int32()))),
        ("stops", pa.list_(pa.struct([("at", pa.date32()), ("fee", pa.decimal128(9, 3))]))),
        ("named", pa.map_(pa.string(), pa.struct([("n", pa.int64()), ("flag", pa.bool_())]))),
    ]
)
"""Every type that all three releases write, without null elements of arrays, on which their merges by Avro fail."""
CASES: Mapping[str, Mapping[str, str]] = {
    "partitioned": {f"{_WRITE}partitionpath.field": "part"},
    "no partitions": {},
    "hive style, encoded": {
        f"{_WRITE}partitionpath.field": "part,day",
        f"{_WRITE}hive_style_partitioning": "true",
        f"{_WRITE}partitionpath.urlencode": "true",
    },
    "complex keys, metafiles as parquet": {
        f"{_WRITE}recordkey.field": "id,name",
        f"{_WRITE}partitionpath.field": "part",
        "hoodie.partition.metafile.use.base.format": "true",
    },
}
_BY_HUDI = """
frame = spark.read.format("hudi").load(path).where(where)
frame = frame.drop(*[name for name in frame.columns if name.startswith("_hoodie_")])
for column, expression in changes.items():
    frame = frame.selectExpr(*[f"{expression} as {c}" if c == column else c for c in frame.columns])
frame = spark.createDataFrame(frame.collect(), frame.schema)
frame.write.format("hudi").options(**options).mode("append").save(path)
"""


def rows(first: int, end: int) -> pa.Table:
    """Rows by their numbers, with nulls and awkward values."""
    found = [
        {
            "id": f"k{n:05d}",
            "part": [f"p{n % 2}", "a b", None][n % 3] if n % 7 == 0 else f"p{n % 2}",
            "day": date(2024, 1, 1 + n % 2),
            "ts": n,
            "name": f"näme {n}",
            "flag": None if n % 5 == 0 else n % 2 == 0,
            "small": -n,
            "ratio": n / 3,
            "share": float(n) / 4,
            "price": None if n % 11 == 0 else Decimal(n) / 100 - 5,
            "raw": bytes([n % 256, 0, 255]),
            "at": datetime(2024, 1, 1, tzinfo=timezone.utc).replace(microsecond=n),
            "tags": None if n % 4 == 0 else [f"t{n}", "x"][: n % 3],
            "counts": None if n % 6 == 0 else [("a", n)],
            "place": None if n % 9 == 0 else {"city": f"c{n}", "zip": None if n % 2 else n},
            "rows": None if n % 8 == 0 else [[n, -n], [], [7]][: n % 4],
            "stops": None
            if n % 10 == 0
            else [{"at": None, "fee": Decimal(n) / 1000}, {"at": date(2024, 1, 1), "fee": None}][: n % 3],
            "named": None if n % 12 == 0 else [("a", {"n": n, "flag": None}), ("b", None)][n % 2 : n % 2 + 1],
        }
        for n in range(first, end)
    ]
    return pa.Table.from_pylist(found, SCHEMA)


class Turns:
    """One table that both write, and the rows that it must have."""

    def __init__(self, peer: Peer, path: Path, more: Mapping[str, str]) -> None:
        self.peer = peer
        self.path = path
        version = peer.table_version
        self.options = {
            f"{_WRITE}recordkey.field": "id",
            f"{_WRITE}precombine.field": "ts",
            **more,
        }
        self.table = hudi_services.create(path, table_version=version.number, options=self.options, engine="local")
        self.options["hoodie.table.name"] = path.name
        self.model: dict[str, dict[str, Any]] = {}

    def ours(self, operation: str, first: int, end: int) -> hudi_services.Result:
        new = rows(first, end)
        # A table of some engines has other types for the same values.
        result = getattr(self.table, operation)(new, options={**SMALL_FILTERS, **_SIZES})
        self.model |= {row["id"]: row for row in new.to_pylist()}
        self.compare(f"our {operation}")
        return result

    def hudis(self, operation: str, where: str, changes: Mapping[str, str]) -> None:
        writing = {**WRITE_DEFAULTS, **SMALL_FILTERS, **self.options, **_SIZES, f"{_WRITE}operation": operation}
        self.peer.eval(_BY_HUDI, path=str(self.path), options=writing, where=where, changes=changes)

    def compare(self, step: str) -> None:
        wanted = pa.Table.from_pylist(list(self.model.values()), SCHEMA)
        for options in (METADATA_ON, METADATA_OFF):
            read = self.peer.rows(self.path, options)
            assert not same_values(wanted, read.select(SCHEMA.names)), step
        assert not same_values(wanted, hudi_rs_rows(self.path).select(SCHEMA.names)), step


_QUICK = "hive style, encoded"
"""The case of the quick run."""


@pytest.mark.parametrize("case", [pytest.param(one, marks=[pytest.mark.deep] * (one != _QUICK)) for one in CASES])
def test_hudi_and_we_write_in_turns(peer: Peer, case: str, tmp_path: Path) -> None:
    turns = Turns(peer, tmp_path / "1-rides.x", CASES[case])
    first = turns.ours("insert", 0, 60)
    assert _record_name(turns.path) == peer.eval(_RECORD_NAME, name=turns.path.name)
    turns.hudis("upsert", "ts between 10 and 19", {"name": "'changed'"})
    for n in range(10, 20):
        if "name" not in turns.options[f"{_WRITE}recordkey.field"]:
            turns.model[f"k{n:05d}"]["name"] = "changed"
        else:
            row = turns.model[f"k{n:05d}"]
            turns.model[f"k{n:05d} too"] = {**row, "name": "changed"}
    turns.compare("their upsert")
    filled = turns.ours("insert", 60, 90)
    assert filled.tables["written"].column("filled_files")[0].as_py() > 0
    turns.hudis("delete", "ts in (3, 70)", {})
    turns.model = {key: row for key, row in turns.model.items() if row["ts"] not in (3, 70)}
    turns.compare("their delete")
    turns.ours("bulk_insert", 90, 100)
    turns.hudis("insert", "ts in (5, 95)", {"id": "concat('new ', id)"})
    for n in (5, 95):
        turns.model[f"new k{n:05d}"] = {**turns.model[f"k{n:05d}"], "id": f"new k{n:05d}"}
    turns.compare("their insert")
    turns.ours("insert", 100, 110)
    validated = turns.table.validate(strict=True)
    assert validated.ok, validated
    # What came after our first commit, and the table as it was then.
    then = turns.peer.as_of(turns.path, str(first.instant)).select(SCHEMA.names)
    assert not same_values(rows(0, 60), then)
    before, newest = turns.ours("insert", 110, 115), turns.ours("insert", 115, 120)
    later = turns.peer.incremental(turns.path, _completion(turns, before))
    times = later.column("_hoodie_commit_time")
    # 1.0.2 also gives the rows of the commit that completed at the beginning.
    assert {*times.to_pylist()} - {before.instant} == {newest.instant}
    assert not same_values(rows(115, 120), later.filter(pc.equal(times, newest.instant)).select(SCHEMA.names))
    assert turns.table.cluster(publish_late=False).ok
    turns.compare("our clustering")


def _record_name(path: Path) -> str:
    """The full name of the Avro record in a base file."""
    metadata = pq.read_schema(next(path.rglob("[!.]*.parquet"))).metadata
    schema = json.loads(metadata[b"parquet.avro.schema"])
    return f"{schema['namespace']}.{schema['name']}"


def _completion(turns: Turns, result: hudi_services.Result) -> str:
    timeline = turns.table.timeline().to_pylist()
    found = next(one for one in timeline if one["instant"] == result.instant)
    return str(found["instant"] if turns.table.version == 6 else found["completion_time"])
