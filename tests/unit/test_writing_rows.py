"""New rows before they are written: the store that keeps them by partition, their schema, partition metafiles."""

import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_services.codecs.properties import parse_properties
from hudi_services.errors import ConfigError
from hudi_services.parquet.node_types import parquet_type
from hudi_services.schema.table_schema import TableSchema
from hudi_services.stores import open_storage
from hudi_services.table.partition_metafile import create_metafiles
from hudi_services.writing.kept_rows import divided
from hudi_services.writing.row_store import Place, RowStore
from hudi_services.writing.writer_schema import ROW_META_COLUMNS, WriterSchema

ROWS = pa.table({"id": ["a", "b"], "ts": pa.array([1, 2], pa.int64()), "x": [1.5, None], "text": ["one", "two"]})


@settings(max_examples=60, deadline=None)
@given(
    parts=st.lists(st.lists(st.sampled_from(["a", "b", "", "ü"]), max_size=20), max_size=8),
    memory=st.sampled_from([1, 200, 1 << 30]),
    cut=st.integers(0, 30),
)
def test_rows_are_kept_in_order(parts: list[list[str]], memory: int, cut: int) -> None:
    wanted: dict[str, list[int]] = {}
    number = 0
    with RowStore(memory) as store:
        for paths in parts:
            table = pa.table({"n": pa.array(range(number, number + len(paths)), pa.int64())})
            for path, part in divided(table, pa.chunked_array([pa.array(paths, pa.string()).dictionary_encode()])):
                store.add(Place(path), part)
            for path in paths:
                wanted.setdefault(path, []).append(number)
                number += 1
        assert bool(store.spilled_bytes) == (memory == 1 and number > 0) or memory == 200
        assert store.sizes.keys() == store.counts.keys()
        assert dict(store.counts) == {Place(path): len(numbers) for path, numbers in wanted.items()}
        for path, numbers in wanted.items():
            start = min(cut, len(numbers))
            for begin, count in ((0, start), (start, len(numbers) - start)):
                found = [n for table in store.read(Place(path), begin, count) for n in table.column("n").to_pylist()]
                assert found == numbers[begin : begin + count]


def deduce(rows: pa.Table, of: WriterSchema | None = None, **more: Any) -> WriterSchema:
    known: dict[str, Any] = {"table_name": "rides", "has_meta": True, "local_timestamps": True}
    return WriterSchema.deduce(rows.schema, None if of is None else of.table, **(known | more))


def test_the_schema_of_a_new_table() -> None:
    found = deduce(ROWS, table_name="the rides-1")
    assert (found.table.avro["name"], found.table.avro["namespace"]) == ("the__rides__1_record", "hoodie.the__rides__1")
    assert found.table.avro["fields"][0] == {"name": "id", "type": ["null", "string"], "default": None}
    assert found.target.columns == (*ROW_META_COLUMNS, *ROWS.column_names)
    assert found.conform(ROWS).equals(ROWS)
    # The Avro schema and the parquet schema say the same.
    stored = {name: parquet_type(column) for name in ROWS.column_names if (column := found.target.column(name))}
    assert stored == found.table.types
    assert deduce(ROWS, has_meta=False).target.columns == tuple(ROWS.column_names)
    # Rows that were read from a table have its meta columns.
    again = ROWS.append_column("_hoodie_commit_time", pa.array(["1", "2"]))
    assert deduce(again).table == deduce(ROWS).table


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("my-table", "my__table"),
        ("2026 rides", "__026__rides"),
        ("lake.rides", "lake__rides"),
        ("-x", "__x"),
        ("größe", "gr____e"),
        ("a_1", "a_1"),
    ],
)
def test_the_record_of_a_table_is_named_as_hudi_names_it(name: str, record: str) -> None:
    """HoodieAvroUtils.sanitizeName of 0.15.0 to 1.2.0; tests/interop/test_writing.py asks a real one."""
    found = deduce(ROWS, table_name=name).table.avro
    assert (found["name"], found["namespace"]) == (f"{record}_record", f"hoodie.{record}")


def test_new_columns_missing_columns_and_promotions() -> None:
    table = deduce(ROWS)
    narrow = ROWS.set_column(1, "ts", pa.array([1, 2], pa.int32())).set_column(
        2, "x", pa.array([1.5, None], pa.float32())
    )
    assert deduce(narrow, table).conform(narrow).equals(ROWS)
    more = ROWS.append_column(pa.field("new", pa.int32(), nullable=False), pa.array([1, 2], pa.int32()))
    # There are rows without it.
    assert deduce(more, table).table.avro["fields"][-1] == {"name": "new", "type": ["null", "int"], "default": None}
    lacking = ROWS.drop_columns(["x"])
    found = deduce(lacking, table, nulls_for_missing=True).conform(lacking)
    assert found.column("x").null_count == 2 and found.schema.equals(ROWS.schema)
    untyped = ROWS.set_column(2, "x", pa.nulls(2))
    assert deduce(untyped, table).conform(untyped).column("x").null_count == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop_columns(["text"]), "the rows lack the column text of the table"),
        (lambda t: t.set_column(3, "text", pa.array([True] * 2)), "text has the type boolean, and string in the table"),
        (lambda t: t.append_column("at", pa.array([1] * 2, pa.time32("s"))), "column at has the type time32"),
        (
            lambda t: t.append_column("at", pa.array([1] * 2, pa.timestamp("us"))),
            "timestamps without a time zone",
        ),
        (lambda t: t.append_column("id", t.column("id")), "several columns called id"),
        (lambda t: t.append_column("a-b", t.column("id")), "'a-b' has a name that Avro does not allow"),
        (lambda t: t.append_column("none", pa.nulls(2)), "column none has the type null"),
        (lambda t: t.append_column("for", pa.array([1] * 2, pa.duration("s"))), "column for has the type duration"),
        (lambda t: t.append_column("m", pa.array([[(1, 2)]] * 2, pa.map_(pa.int32(), pa.int32()))), "strings in Avro"),
        (lambda t: t.append_column("s", pa.array([{}] * 2, pa.struct([]))), "a struct needs a field"),
        (lambda t: t.select([]), "the rows have no columns"),
        (
            lambda t: t.append_column("ID", t.column("id")),
            "column ID differs only in case from the column id of the table",
        ),
        (
            lambda t: t.set_column(0, "ID", t.column("id")),
            "column ID differs only in case from the column id of the table",
        ),
        (
            lambda t: t.append_column("New", t.column("id")).append_column("nEW", t.column("id")),
            "column nEW differs only in case from the column New, and Spark",
        ),
        (
            lambda t: t.append_column("_HOODIE_Commit_Time", t.column("id")),
            "in case from the column _hoodie_commit_time,",
        ),
        (
            lambda t: t.append_column("s", pa.array([[{"a": 1, "A": 2}]] * 2)),
            "column s has the fields a and A, which differ only in case",
        ),
    ],
)
def test_what_cannot_be_written(change: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        deduce(change(ROWS), deduce(ROWS), local_timestamps=False)


def test_columns_of_the_table_may_differ_only_in_case() -> None:
    """Another writer made them."""
    fields = [{"name": name, "type": ["null", "string"], "default": None} for name in ("id", "ID")]
    table = WriterSchema(TableSchema.of({"type": "record", "name": "t", "fields": fields}), True)
    both = pa.table({"ID": ["a"], "id": ["b"]})
    assert deduce(both, table).table == table.table
    with pytest.raises(ConfigError, match="column Id differs only in case"):
        deduce(both.append_column("Id", both.column("id")), table)


def test_values_that_do_not_fit() -> None:
    required = pa.schema([pa.field("id", pa.string(), nullable=False), ("at", pa.timestamp("us", "UTC"))])
    table = deduce(required.empty_table())
    nanos = pa.table({"id": ["a"], "at": pa.array([1], pa.timestamp("ns", "UTC"))})
    with pytest.raises(ConfigError, match="column at cannot be written as timestamp"):
        deduce(nanos, table).conform(nanos)
    without = pa.table({"id": pa.array([None], pa.string()), "at": pa.array([None], pa.timestamp("us", "UTC"))})
    with pytest.raises(ConfigError, match="column id has 1 nulls, and the table allows none in it"):
        deduce(without, table).conform(without)


def test_every_type() -> None:
    """Arrow types that have no twin in Spark become the next larger one."""
    new = pa.table(
        {
            "coded": pa.array(["a", "b"]).dictionary_encode(),
            "tiny": pa.array([1, None], pa.int8()),
            "unsigned": pa.array([2**32 - 1, 0], pa.uint32()),
            "largest": pa.array([2**64 - 1, 0], pa.uint64()),
            "large": pa.array(["x", None], pa.large_string()),
            "nanos": pa.array([1_000, None], pa.timestamp("ns", "Europe/Berlin")),
            "price": [decimal.Decimal("1.50"), None],
            "lists": pa.array([[[1], None], []], pa.large_list(pa.list_(pa.int16()))),
            "nested": [{"a": {"b": decimal.Decimal("1.5")}}, None],
            "half": pa.array([np.float16(0.5), None], pa.float16()),
        }
    )
    found = deduce(new)
    assert found.conform(new).to_pylist() == new.to_pylist()
    fields = {field["name"]: field["type"][1] for field in found.table.avro["fields"]}
    assert (fields["tiny"], fields["unsigned"], fields["half"]) == ("int", "long", "float")
    assert (fields["largest"]["precision"], fields["largest"]["scale"]) == (20, 0)
    assert (fields["nested"]["name"], fields["nested"]["namespace"]) == ("nested", "hoodie.rides.rides_record")
    inner = fields["nested"]["fields"][0]["type"][1]
    assert inner["namespace"] == "hoodie.rides.rides_record.nested"
    assert inner["fields"][0]["type"][1]["namespace"] == "hoodie.rides.rides_record.nested.a.b"


def test_partition_metafiles(tmp_path: Path) -> None:
    storage, wanted = open_storage(str(tmp_path)), {"": "0", "a": "1", "a/b": "2"}
    create_metafiles(storage, wanted, "7", in_base_format=False)
    # They are never written again.
    create_metafiles(storage, wanted, "8", in_base_format=False)
    create_metafiles(storage, wanted, "9", in_base_format=True)
    for partition, depth in wanted.items():
        plain = parse_properties((tmp_path / partition / ".hoodie_partition_metadata").read_bytes(), "metafile")
        assert plain == {"commitTime": "7", "partitionDepth": depth}
        footer = pq.read_metadata(tmp_path / partition / ".hoodie_partition_metadata.parquet").metadata
        assert (footer[b"commitTime"], footer[b"partitionDepth"]) == (b"9", depth.encode())
