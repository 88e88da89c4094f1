"""Parquet files of other programs as the input of a write: the types that the table gets, and the values."""

import datetime
import itertools
import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_services.base_files.file_reader import open_base_file
from hudi_services.errors import ConfigError
from hudi_services.inputs.input_files import InputFiles, find_files
from hudi_services.inputs.input_types import InputTypes
from hudi_services.parquet.node_types import parquet_type
from hudi_services.schema.column_type import ColumnType
from hudi_services.stores import open_storage
from hudi_services.writing.writer_schema import WriterSchema

from .tables import both_views, open_local
from .test_input_files import write

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")
FIXTURES = Path(__file__).parents[1] / "fixtures" / "parquet" / "input"
READ_BY_SPARK: Mapping[str, Mapping[str, tuple[str, list[str | None]]]] = json.loads(
    (FIXTURES / "spark.json").read_text()
)
UTC = datetime.timezone.utc
UNPARTITIONED = {
    "table__name": "rows",
    "datasource__write__recordkey__field": "id",
    "datasource__write__keygenerator__class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
}


def table_columns(path: Path) -> dict[str, ColumnType]:
    """The columns of the table's Avro schema, which are those of its files."""
    storage = open_storage(str(path))
    schema = open_local(path).schema
    assert schema is not None
    of_avro = {name: kind for name, kind in schema.types.items() if not name.startswith("_hoodie_")}
    for file in path.glob("*.parquet"):
        schema = open_base_file(storage, file.name).schema
        found = {name: parquet_type(node) for name in of_avro if (node := schema.column(name)) is not None}
        assert found == of_avro
    return of_avro


def is_nullable(one: ColumnType) -> bool:
    """Whether there may be nulls on all levels, but in the keys of maps."""
    parts = [part for part in one.parts if part is not one.key]
    return one.nullable and all(map(is_nullable, parts))


# --------------------------------------------------------------------------------- files of Spark, Hive and fastparquet


def of_spark(kind: str) -> str:
    """A type of Spark as that of Hudi's tables."""
    words = {"tinyint": "int", "smallint": "int", "bigint": "long", "binary": "bytes"}
    words |= {"timestamp": "timestamp-micros", "timestamp_ntz": "local-timestamp-micros"}
    if kind.startswith("array<"):
        return f"array<{of_spark(kind[6:-1])}>"
    if kind.startswith("map<string,"):
        return f"map<{of_spark(kind[11:-1])}>"
    if kind.startswith("struct<"):
        parts, depth = [""], 0
        for character in kind[7:-1]:
            depth += (character == "<") - (character == ">")
            parts = [*parts, ""] if character == "," and not depth else [*parts[:-1], parts[-1] + character]
        return f"record<{', '.join(f'{n}: {of_spark(t)}' for n, _, t in (part.partition(':') for part in parts))}>"
    return words.get(kind, kind)


def text_of(values: pa.Array) -> list[str | None]:
    """Values as Spark casts them to strings."""
    kind = values.type
    if pa.types.is_struct(kind):
        parts = [text_of(values.field(number)) for number in range(kind.num_fields)]
        found = [f"{{{', '.join(map(str, row))}}}" for row in zip(*parts, strict=True)]
    elif pa.types.is_map(kind):
        pairs = [f"{key} -> {value}" for key, value in zip(text_of(values.keys), text_of(values.items), strict=True)]
        found = [f"{{{', '.join(pairs[start:end])}}}" for start, end in ends(values)]
    elif pa.types.is_list(kind):
        items = text_of(values.values)
        found = [f"[{', '.join(map(str, items[start:end]))}]" for start, end in ends(values)]
    elif pa.types.is_binary(kind):
        found = [None if one is None else one.hex().upper() for one in values.to_pylist()]
    elif pa.types.is_timestamp(kind):
        texts = values.cast(pa.timestamp("us")).cast(pa.string()).to_pylist()
        found = [one and one.rstrip("0").rstrip(".") if one and "." in one else one for one in texts]
    else:
        found = values.cast(pa.string()).to_pylist()
    return [text if valid else None for text, valid in zip(found, values.is_valid().to_pylist(), strict=True)]


def ends(values: pa.Array) -> list[tuple[int, int]]:
    offsets = values.offsets.to_pylist()
    return list(itertools.pairwise(offsets))


@pytest.mark.thorough
@pytest.mark.parametrize("name", READ_BY_SPARK)
def test_a_table_gets_the_types_and_values_that_spark_reads(name: str, tmp_path: Path) -> None:
    """Also when the same file is then upserted into that table."""
    wanted = READ_BY_SPARK[name]
    for operation in ("bulk_insert", "upsert"):
        write(tmp_path / "rows", FIXTURES / f"{name}.parquet", operation=operation, **UNPARTITIONED)
        columns = table_columns(tmp_path / "rows")
        assert {key: str(kind) for key, kind in columns.items()} == {
            "id": "string",
            **{key: of_spark(kind) for key, (kind, _) in wanted.items()},
        }
        assert all(map(is_nullable, columns.values()))
        rows, listed = both_views(tmp_path / "rows")
        assert rows.equals(listed)
        rows = rows.sort_by("id").combine_chunks()
        for key, (_, values) in wanted.items():
            found = text_of(rows.column(key).chunk(0))
            assert [one and one.replace("None", "null") for one in found] == values, (operation, key)


REFUSED = {
    "parquet-java-refused": {
        "uuid": "column uuid has the type uuid",
        "interval": "column interval has the type interval",
        "millis": "column millis has the type time32[ms]",
        "micros": "column micros has the type time64[us]",
        "keys": "column keys has the type map without values",
        "within": "column within.id has the type uuid",
    },
    "spark-3.5.9-refused": {
        "years": "column years has the type interval year",
        "days": "column days has the type interval day",
        "within": "column within has the type interval day",
    },
    "spark-4.3.0-refused-variant": {"v": "column v has the type variant"},
}
REFUSED["spark-4.3.0-refused"] = REFUSED["spark-3.5.9-refused"]


@pytest.mark.parametrize(("name", "column"), [(name, column) for name in REFUSED for column in REFUSED[name]])
def test_types_that_spark_does_not_have(name: str, column: str) -> None:
    """They are refused by name, and do not matter where the column is not used."""
    file = str(FIXTURES / f"{name}.parquet")
    with pytest.raises(ConfigError) as error:
        deduced(InputFiles.of(find_files([file]), InputTypes(only=frozenset(("id", column)))))
    assert REFUSED[name][column] in error.value.message and "Spark has no such type" in error.value.message
    assert error.value.hint.startswith("c")
    used = InputFiles.of(find_files([file]), InputTypes(only=frozenset({"id"})))
    assert used.rows().read_all().to_pydict() == {"id": ["1", "2"]}


def deduced(files: InputFiles) -> WriterSchema:
    return WriterSchema.deduce(files.schema, None, table_name="rows", has_meta=True, local_timestamps=True)


# ------------------------------------------------------------------------------------- files that are made here

DAY, CLOCK = datetime.date(2024, 1, 2), datetime.time(1, 2, 3)
MOMENT = datetime.datetime(2024, 1, 1, 1, 2, 3, 456789)
INSTANT = MOMENT.replace(tzinfo=UTC)
EARLY = datetime.datetime(1500, 1, 1)
STRUCT = pa.struct([("t", pa.timestamp("us")), ("l", pa.list_(pa.timestamp("us"))), ("u", pa.list_(pa.uint64()))])
MAP = pa.map_(pa.string(), pa.timestamp("us"))
BY_ARROW: dict[str, tuple[pa.DataType, list[Any], str, Any]] = {
    "int8": (pa.int8(), [-128], "int", None),
    "int16": (pa.int16(), [-(2**15)], "int", None),
    "int32": (pa.int32(), [-(2**31)], "int", None),
    "int64": (pa.int64(), [-(2**63)], "long", None),
    "uint8": (pa.uint8(), [2**8 - 1], "int", None),
    "uint16": (pa.uint16(), [2**16 - 1], "int", None),
    "uint32": (pa.uint32(), [2**32 - 1], "long", None),
    "uint64": (pa.uint64(), [2**64 - 1], "decimal(20,0)", [Decimal(2**64 - 1)]),
    "float16": (pa.float16(), [0.5], "float", None),
    "string": (pa.string(), ["ü"], "string", None),
    "large_string": (pa.large_string(), ["ü"], "string", None),
    "string_view": (pa.string_view(), ["ü"], "string", None),
    "binary": (pa.binary(), [b"\xff"], "bytes", None),
    "large_binary": (pa.large_binary(), [b"\xff"], "bytes", None),
    "fixed": (pa.binary(3), [b"abc"], "bytes", None),
    "category": (pa.dictionary(pa.int8(), pa.string()), ["a"], "string", None),
    "number_category": (pa.dictionary(pa.int8(), pa.uint64()), [7], "decimal(20,0)", [Decimal(7)]),
    "date32": (pa.date32(), [DAY], "date", None),
    "date64": (pa.date64(), [DAY], "date", None),
    "seconds": (pa.timestamp("s"), [MOMENT.replace(microsecond=0)], "local-timestamp-micros", None),
    "micros": (pa.timestamp("us"), [MOMENT], "local-timestamp-micros", None),
    "nanos": (pa.timestamp("ns"), [MOMENT], "local-timestamp-micros", None),
    "instant_millis": (pa.timestamp("ms", "UTC"), [INSTANT.replace(microsecond=1000)], "timestamp-micros", None),
    "instant": (pa.timestamp("us", "Europe/Berlin"), [INSTANT], "timestamp-micros", None),
    "instant_nanos": (pa.timestamp("ns", "Europe/Berlin"), [INSTANT], "timestamp-micros", None),
    "duration": (pa.duration("us"), [datetime.timedelta(microseconds=7)], "long", [7]),
    "decimal32": (pa.decimal32(5, 2), [Decimal("-1.25")], "decimal(5,2)", None),
    "decimal64": (pa.decimal64(15, 2), [Decimal("-1.25")], "decimal(15,2)", None),
    "decimal128": (pa.decimal128(38, 10), [Decimal("-1.25")], "decimal(38,10)", None),
    "decimal256": (pa.decimal256(30, 2), [Decimal("-1.25")], "decimal(30,2)", None),
    "list": (pa.list_(pa.int8()), [[1, None]], "array<int>", None),
    "large_list": (pa.large_list(pa.int64()), [[1]], "array<long>", None),
    "array": (pa.list_(pa.float32(), 2), [[1.0, 2.0]], "array<float>", None),
    "map": (pa.map_(pa.string(), pa.uint16()), [[("a", 1), ("b", None)]], "map<int>", None),
    "json": (pa.json_(), ['{"a": 1}'], "string", None),
}
AS_INT96: dict[str, tuple[pa.DataType, list[Any], str, Any]] = {
    "plain": (pa.timestamp("us"), [MOMENT], "timestamp-micros", [INSTANT]),
    "zoned": (pa.timestamp("us", "Europe/Berlin"), [INSTANT], "timestamp-micros", [INSTANT]),
    "early": (pa.timestamp("us"), [EARLY], "timestamp-micros", [EARLY.replace(tzinfo=UTC)]),
    "list": (pa.list_(pa.timestamp("us")), [[MOMENT, None]], "array<timestamp-micros>", [[INSTANT, None]]),
    "map": (MAP, [[("a", MOMENT)]], "map<timestamp-micros>", [[("a", INSTANT)]]),
    "struct": (
        STRUCT,
        [{"t": MOMENT, "l": [MOMENT, None], "u": [2**64 - 1]}],
        "record<t: timestamp-micros, l: array<timestamp-micros>, u: array<decimal(20,0)>>",
        [{"t": INSTANT, "l": [INSTANT, None], "u": [Decimal(2**64 - 1)]}],
    ),
}
OPTIONS_OF_ARROW: dict[str, dict[str, Any]] = {
    "default": {},
    "old": {"version": "1.0", "use_compliant_nested_type": False, "data_page_version": "2.0"},
    "integers": {"store_decimal_as_integer": True, "store_schema": False},
    "int96": {"use_deprecated_int96_timestamps": True},
    "spark": {"flavor": "spark"},
}


@pytest.mark.thorough
@pytest.mark.parametrize("options", OPTIONS_OF_ARROW)
def test_files_of_pyarrow(options: str, tmp_path: Path) -> None:
    cases = AS_INT96 if options in ("int96", "spark") else BY_ARROW
    schema = pa.schema([("id", pa.string()), *((name, kind) for name, (kind, *_) in cases.items())])
    columns = [["1", "2"], *([*values, None] for _, values, *_ in cases.values())]
    file = _stored(schema, columns, tmp_path, **OPTIONS_OF_ARROW[options])
    wanted = {name: (words, values if given is None else given) for name, (_, values, words, given) in cases.items()}
    check_written(file, wanted, tmp_path)


def _stored(schema: pa.Schema, columns: list[list[Any]], path: Path, **options: Any) -> Path:
    arrays = [
        pa.array(values, field.type)
        if not isinstance(field.type, pa.BaseExtensionType)
        else pa.ExtensionArray.from_storage(field.type, pa.array(values, field.type.storage_type))
        for values, field in zip(columns, schema, strict=True)
    ]
    pq.write_table(pa.table(arrays, schema=schema), path / "new.parquet", **options)
    return path / "new.parquet"


def check_written(file: Path, wanted: Mapping[str, tuple[str, list[Any]]], path: Path) -> None:
    """A new table of the rows, into which they are then upserted, has these types and values."""
    for operation in ("bulk_insert", "upsert"):
        write(path / "rows", file, operation=operation, **UNPARTITIONED)
        columns = table_columns(path / "rows")
        assert {key: str(kind) for key, kind in columns.items() if key != "id"} == {
            name: words for name, (words, _) in wanted.items()
        }
        assert all(map(is_nullable, columns.values()))
        rows, _ = both_views(path / "rows")
        rows = rows.sort_by("id")
        for name, (_, values) in wanted.items():
            assert rows.column(name).to_pylist() == [*values, *[None] * (2 - len(values))], (operation, name)


def test_files_of_polars(tmp_path: Path) -> None:
    whole = {"Int8": "int", "Int16": "int", "Int32": "int", "Int64": "long"}
    whole |= {"UInt8": "int", "UInt16": "int", "UInt32": "long", "UInt64": "decimal(20,0)"}
    rows = pl.DataFrame(
        {
            "id": ["1", "2"],
            **{name: pl.Series([7, None], dtype=getattr(pl, name)) for name in whole},
            "category": pl.Series(["a", None], dtype=pl.Categorical),
            "enum": pl.Series(["a", None], dtype=pl.Enum(["a", "b"])),
            "local": pl.Series([MOMENT, None], dtype=pl.Datetime("us")),
            "nanos": pl.Series([MOMENT, None], dtype=pl.Datetime("ns")),
            "instant": pl.Series([INSTANT, None], dtype=pl.Datetime("us", "UTC")),
            "duration": pl.Series([datetime.timedelta(microseconds=7), None], dtype=pl.Duration("us")),
            "decimal": pl.Series([Decimal("1.25"), None], dtype=pl.Decimal(10, 2)),
            "array": pl.Series([[1.0, 2.0], None], dtype=pl.Array(pl.Float32, 2)),
            "struct": pl.Series([{"a": [1, None]}, None], dtype=pl.Struct({"a": pl.List(pl.Int8)})),
        }
    )
    rows.write_parquet(tmp_path / "new.parquet")
    wanted: dict[str, tuple[str, list[Any]]] = {name: (words, [7]) for name, words in whole.items()}
    wanted |= {name: ("string", ["a"]) for name in ("category", "enum")}
    wanted |= {name: ("local-timestamp-micros", [MOMENT]) for name in ("local", "nanos")}
    wanted |= {"instant": ("timestamp-micros", [INSTANT]), "duration": ("long", [7])}
    wanted |= {"decimal": ("decimal(10,2)", [Decimal("1.25")]), "array": ("array<float>", [[1.0, 2.0]])}
    check_written(
        tmp_path / "new.parquet", wanted | {"struct": ("record<a: array<int>>", [{"a": [1, None]}])}, tmp_path
    )


def test_files_of_duckdb(tmp_path: Path) -> None:
    cases: dict[str, tuple[str, str, Any]] = {
        "TINYINT": ("1", "int", 1),
        "UTINYINT": ("1", "int", 1),
        "USMALLINT": ("1", "int", 1),
        "UINTEGER": ("1", "long", 1),
        "UBIGINT": ("1", "decimal(20,0)", Decimal(1)),
        "HUGEINT": ("1", "double", 1.0),
        "DECIMAL(5,2)": ("1.25", "decimal(5,2)", Decimal("1.25")),
        "DECIMAL(38,2)": ("1.25", "decimal(38,2)", Decimal("1.25")),
        "JSON": ("'{}'", "string", "{}"),
        "BIT": ("'101'", "string", "101"),
        "BLOB": ("'a'", "bytes", b"a"),
        "DATE": ("'2024-01-02'", "date", DAY),
        "TIMESTAMP": ("'2024-01-01 01:02:03.456789'", "local-timestamp-micros", MOMENT),
        "TIMESTAMP_NS": ("'2024-01-01 01:02:03.456789'", "local-timestamp-micros", MOMENT),
        "TIMESTAMPTZ": ("'2024-01-01 01:02:03.456789+00'", "timestamp-micros", INSTANT),
        "INTEGER[]": ("[1, NULL]", "array<int>", [1, None]),
        "MAP(VARCHAR, INTEGER)": ("MAP{'a': 1}", "map<int>", [("a", 1)]),
        "STRUCT(a UBIGINT)": ("{'a': 1}", "record<a: decimal(20,0)>", {"a": Decimal(1)}),
    }
    values = ", ".join(f"CAST({value} AS {kind}) AS c{n}" for n, (kind, (value, *_)) in enumerate(cases.items()))
    nulls = ", ".join(["NULL"] * len(cases))
    rows = f"SELECT '1' AS id, {values} UNION ALL SELECT '2', {nulls}"
    duckdb.connect().execute(f"COPY ({rows}) TO '{tmp_path / 'new.parquet'}' (FORMAT parquet)")
    wanted = {f"c{number}": (words, [value]) for number, (_, words, value) in enumerate(cases.values())}
    check_written(tmp_path / "new.parquet", wanted, tmp_path)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"fields": [1]}', '{"fields": 1}', "[" * 10_000, '{"fields": ' * 5_000]
)
def test_a_damaged_schema_of_spark(text: str, tmp_path: Path) -> None:
    """It adds to that of the file, which is read all the same."""
    rows = pa.table({"id": ["1"], "n": [1]})
    told = {"org.apache.spark.sql.parquet.row.metadata": text}
    pq.write_table(rows.replace_schema_metadata(told), tmp_path / "new.parquet")
    assert InputFiles.of(find_files([str(tmp_path)]), InputTypes()).rows().read_all().to_pydict() == rows.to_pydict()


def test_columns_of_no_type(tmp_path: Path) -> None:
    """Those without any value, which Spark takes for integers, by chance."""
    file = _stored(pa.schema([("id", pa.string()), ("a", pa.null())]), [["1"], [None]], tmp_path)
    with pytest.raises(ConfigError, match="column a has the type null"):
        deduced(InputFiles.of(find_files([str(file)]), InputTypes()))


def test_required_values_may_be_null_in_other_files(tmp_path: Path) -> None:
    """As for Spark, which reads all columns of all files as nullable ones."""
    inner = pa.struct([pa.field("x", pa.int64(), nullable=False)])
    first = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("s", inner, nullable=False)])
    pq.write_table(pa.table([["1"], [{"x": 1}]], schema=first), tmp_path / "a.parquet")
    second = pa.schema([("id", pa.string()), ("s", pa.struct([("x", pa.int64())]))])
    pq.write_table(pa.table([["2", "3"], [None, {"x": None}]], schema=second), tmp_path / "b.parquet")
    files = InputFiles.of(find_files([str(tmp_path)]), InputTypes())
    assert files.rows().read_all().to_pylist() == [
        {"id": "1", "s": {"x": 1}},
        {"id": "2", "s": None},
        {"id": "3", "s": {"x": None}},
    ]
    assert all(kind.nullable for kind in deduced(files).table.types.values())


# ------------------------------------------------------------------------------------------------- the hybrid calendar


def _of_spark_2(path: Path, value: datetime.datetime, zone: str) -> Path:
    """A file as Spark 2.4.8 writes it, by its footer: it does not tell its time zone when it is not asked to."""
    rows = pa.table({"id": ["1"], "at": pa.array([value], pa.timestamp("us", "UTC"))})
    told = {"org.apache.spark.version": "2.4.8"} | ({"org.apache.spark.timeZone": zone} if zone else {})
    pq.write_table(rows.replace_schema_metadata(told), path / "new.parquet")
    return path / "new.parquet"


def test_times_of_a_zone_that_is_not_told(tmp_path: Path) -> None:
    """What they mean is not known: they are refused before anything is written, where the column is used."""
    file = str(_of_spark_2(tmp_path, EARLY, ""))
    with pytest.raises(
        ConfigError, match=r"new\.parquet counts timestamps before 1900 in the hybrid calendar"
    ) as error:
        InputFiles.of(find_files([file]), InputTypes())
    assert "time zone" in error.value.hint
    used = InputFiles.of(find_files([file]), InputTypes(only=frozenset({"id"})))
    assert used.rows().read_all().to_pydict() == {"id": ["1"]}


@pytest.mark.parametrize(
    ("value", "zone", "found"),
    [
        (MOMENT, "", INSTANT),
        (EARLY, "UTC", datetime.datetime(1499, 12, 23, tzinfo=UTC)),
        (EARLY, "+02:00", datetime.datetime(1499, 12, 23, tzinfo=UTC)),
    ],
)
def test_times_of_spark_2(value: datetime.datetime, zone: str, found: datetime.datetime, tmp_path: Path) -> None:
    file = _of_spark_2(tmp_path, value, zone)
    rows = InputFiles.of(find_files([str(file)]), InputTypes()).rows().read_all()
    assert rows.column("at").to_pylist() == [found]
