"""Which key/value metadata a new base file has: kept, made anew, or dropped on purpose."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_services.base_files.footer_entries import footer_entries
from hudi_services.parquet.file_schema import REQUIRED, FileSchema, node
from hudi_services.parquet.node_types import build_nodes
from hudi_services.rewriting.rewrite import rewrite_group
from hudi_services.rewriting.task import RewriteTask
from hudi_services.rows.settings import FileSettings
from hudi_services.rows.sort_order import SortColumn
from hudi_services.schema.hudi_types import VECTOR_COLUMNS
from hudi_services.schema.table_schema import TableSchema
from hudi_services.stores import open_storage

from .parquet_samples import slices_in

CLUSTERING = Path(__file__).resolve().parents[2] / "docs" / "clustering.md"
SOMETHING = "hoodie.something"


def vector(name: str, dimension: int, element: str, width: int) -> dict[str, Any]:
    properties = {"dimension": dimension, "elementType": element, "storageBacking": "FIXED_BYTES"}
    return {"type": "fixed", "name": name, "namespace": "", "size": width, "logicalType": "vector", **properties}


def record(**types: Any) -> dict[str, Any]:
    fields = [{"name": name, "type": ["null", kind], "default": None} for name, kind in types.items()]
    return {"type": "record", "name": "r", "namespace": "hoodie.t", "fields": fields}


def schema_of(avro: dict[str, Any]) -> FileSchema:
    return FileSchema(node("r", REQUIRED, children=build_nodes(TableSchema.of(avro).columns)))


AVRO = record(
    id="long",
    e=vector("vector_float_4", 4, "FLOAT", 16),
    f="vector_float_4",
    d=vector("vector_double_3", 3, "DOUBLE", 24),
    i=vector("vector_int8_5", 5, "INT8", 5),
    plain={"type": "fixed", "name": "other", "size": 16},
)
LISTED = "e:VECTOR(4),f:VECTOR(4),d:VECTOR(3, DOUBLE),i:VECTOR(5, INT8)"


DROPPED = {
    "ARROW:schema": "x",
    "pandas": "{}",
    "com.uber.hoodie.bloomfilter": "x",
    "org.apache.hudi.bloomfilter": "x",
    "hoodie_min_record_key": "a",
    "hoodie_max_record_key": "b",
    "hoodie_bloom_filter_type_code": "SIMPLE",
    "org.apache.spark.sql.parquet.row.metadata": "{}",
    "org.apache.spark.version": "3.5.1",
    "parquet.avro.schema": "{}",
    "writer.model.name": "avro",
}
"""Made anew from the rows or the table, kept by `calendar` alone, or of another writer."""


def test_entries_that_are_not_known_are_kept_where_all_files_agree() -> None:
    target = schema_of(record(id="long"))
    same = {SOMETHING: "1", "other": "x"}
    assert footer_entries([same, same], target, None) == {SOMETHING: "1"}
    assert footer_entries([same, {SOMETHING: "2"}], target, None) == {}
    assert footer_entries([{}, same], target, None) == footer_entries([same, {}], target, None) == {}
    assert footer_entries([], target, None) == {}


def test_entries_of_other_writers_and_of_the_old_file_alone_are_dropped() -> None:
    assert footer_entries([DROPPED], schema_of(record(id="long")), None) == {}


def test_vectors_are_those_of_the_table() -> None:
    target = schema_of(AVRO)
    made = footer_entries([{VECTOR_COLUMNS: "gone:VECTOR(2)"}, {}], target, TableSchema.of(AVRO))
    assert made[VECTOR_COLUMNS] == LISTED
    assert json.loads(made["parquet.avro.schema"]) == AVRO and made["writer.model.name"] == "avro"
    without = record(id="long")
    assert VECTOR_COLUMNS not in footer_entries([{VECTOR_COLUMNS: LISTED}], schema_of(without), TableSchema.of(without))
    # No schema of the table: the entry is one that is not known.
    assert footer_entries([{VECTOR_COLUMNS: LISTED}], target, None) == {VECTOR_COLUMNS: LISTED}


@pytest.mark.parametrize(
    "changed",
    [
        {"logicalType": "decimal", "precision": 4},
        {"dimension": 5},
        {"dimension": 0, "size": 0},
        {"dimension": "x"},
        {"elementType": "HALF"},
        {"storageBacking": "PARQUET_LIST"},
    ],
)
def test_a_fixed_that_is_no_vector_of_hudi_is_none(changed: dict[str, Any]) -> None:
    assert TableSchema.of(record(e={**vector("v", 4, "FLOAT", 16), **changed})).vectors == {}
    assert str(TableSchema.of(record(e={**vector("v", 4, "FLOAT", 16), "dimension": "4"})).vectors["e"]) == "VECTOR(4)"


@pytest.mark.parametrize("sort", [(), (SortColumn("id"),)], ids=["copied", "decoded"])
def test_a_rewrite_writes_them(sort: tuple[SortColumn, ...], tmp_path: Path) -> None:
    avro = record(id="long", e=vector("v", 2, "INT8", 2))
    for number in (1, 2):
        rows = pa.table({"id": pa.array([number]), "e": pa.array([b"ab"], pa.binary(2))})
        pq.write_table(
            rows.replace_schema_metadata({SOMETHING: "1", "mine": str(number)}), tmp_path / f"{number}.parquet"
        )
    storage = open_storage(str(tmp_path))
    inputs = slices_in(storage, "1.parquet", "2.parquet")
    table = TableSchema.of(avro)
    task = RewriteTask(
        storage, "20260101000000000", "", *inputs, ("a-0",), sort, "LINEAR", table, (), False, FileSettings()
    )
    (new,) = rewrite_group(task, "0-0-0").files
    found = pq.read_metadata(tmp_path / new.path).metadata
    assert found[b"hoodie.vector.columns"] == b"e:VECTOR(2, INT8)"
    assert found[SOMETHING.encode()] == b"1" and b"mine" not in found


def test_the_page_names_each_entry() -> None:
    page = CLUSTERING.read_text()
    missing = [key for key in (*DROPPED, VECTOR_COLUMNS) if f"`{key}`" not in page]
    assert not missing
