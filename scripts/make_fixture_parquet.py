"""Make tests/fixtures/parquet/input: parquet files as other programs write them, and what Spark reads in them.

    python scripts/make_fixture_parquet.py write    with pyspark 3.5, with pyspark 4, with fastparquet: its files
    python scripts/make_fixture_parquet.py read     with pyspark 3.5, at last: spark.json

Needs Java 17 for pyspark. `write` of pyspark 3.5 also makes the files of parquet-java. spark.json has, for each
file but those of types that Spark or Hudi refuses, each column's type and its values as Spark's texts (bytes in hex).
"""

import glob
import importlib.util
import json
import shutil
import struct
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

TARGET = Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "parquet" / "input"

# Of each column the value of the first row; those of the second one are null.
COLUMNS = {
    "boolean": "true",
    "tinyint": "-1Y",
    "smallint": "-2S",
    "int": "-3",
    "bigint": "-4L",
    "float": "1.5f",
    "double": "-2.5d",
    "decimal_5": "cast(-1.25 as decimal(5,2))",
    "decimal_15": "cast(-1.25 as decimal(15,2))",
    "decimal_38": "cast(-1.25 as decimal(38,2))",
    "string": "'ü'",
    "binary": "X'00ff'",
    "date": "date'0001-01-02'",
    "first": "timestamp'0001-01-02 03:04:05.678901'",
    "timestamp": "timestamp'2024-01-02 03:04:05.678901'",
    "last": "timestamp'9999-12-31 23:59:59.999999'",
    "local": "timestamp_ntz'2024-01-02 03:04:05.678901'",
    "array": "array(timestamp'0100-01-02 03:04:05', null)",
    "map": "map('a', timestamp'2024-01-02 03:04:05', 'b', null)",
    "struct": "named_struct('a', 1, 't', timestamp'2024-01-02 03:04:05', 'l', array(named_struct('x', 2S)))",
}
REFUSED = {"years": "interval '1' year", "days": "interval '1' day", "within": "array(interval '1' day)"}
OLD = {
    "date": "date'1500-02-28'",
    "int96": "timestamp'1500-02-28 03:04:05.678901'",
    "late": "timestamp'1899-12-31 12:00:00'",
    "array": "array(timestamp'0001-01-02 03:04:05', null)",
}
GREGORIAN = {f"spark.sql.parquet.{one}RebaseModeInWrite": "CORRECTED" for one in ("datetime", "int96")}
LEGACY = dict.fromkeys(GREGORIAN, "LEGACY")


def session() -> Any:
    from pyspark.sql import SparkSession

    settings = {"ui.enabled": "false", "driver.memory": "1g", "driver.host": "127.0.0.1", "sql.session.timeZone": "UTC"}
    builder = SparkSession.builder.master("local[1]")
    for key, value in settings.items():
        builder = builder.config(f"spark.{key}", value)
    return builder.config("spark.driver.extraJavaOptions", "-Duser.timezone=UTC").getOrCreate()


def write_rows(spark: Any, name: str, columns: Mapping[str, str], settings: Mapping[str, str]) -> None:
    for key, value in settings.items():
        spark.conf.set(key, value)
    values = ", ".join(f"{value} {column}" for column, value in columns.items())
    rows = spark.sql(f"select '1' id, {values} union all select '2', {', '.join(['null'] * len(columns))}")
    with tempfile.TemporaryDirectory() as folder:
        rows.coalesce(1).write.mode("overwrite").parquet(folder)
        shutil.copy(glob.glob(f"{folder}/*.parquet")[0], TARGET / f"{name}.parquet")
    for key in settings:
        spark.conf.unset(key)
    spark.conf.set("spark.sql.session.timeZone", "UTC")


def write_by_spark() -> None:
    spark = session()
    name = f"spark-{spark.version}"
    write_rows(spark, name, COLUMNS, GREGORIAN)
    write_rows(spark, f"{name}-hive", COLUMNS, {**GREGORIAN, "spark.sql.parquet.writeLegacyFormat": "true"})
    write_rows(spark, f"{name}-refused", REFUSED, {})
    if spark.version.startswith("3"):
        for zone in ("UTC", "America/Los_Angeles"):
            known = {**LEGACY, "spark.sql.session.timeZone": zone}
            write_rows(spark, f"{name}-legacy-{zone.partition('/')[0]}", OLD, known)
            micros = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
            write_rows(spark, f"{name}-legacy-micros-{zone.partition('/')[0]}", OLD, known | micros)
        write_by_java(spark._jvm)
    else:
        write_rows(spark, f"{name}-refused-variant", {"v": "parse_json('{\"a\": 1}')"}, {})


def write_by_java(jvm: Any) -> None:
    """As Hive, Impala, Trino and older writers of Avro and Thrift: a group of one field stands for a column."""
    parquet = jvm.org.apache.parquet

    def binary(data: bytes) -> Any:
        return parquet.io.api.Binary.fromConstantByteArray(bytearray(data))

    int96 = binary(struct.pack("<qi", 3600 * 10**9 + 1999, 2460000))
    columns: dict[str, tuple[str, Callable[[Any], Any]]] = {
        "int96": ("optional int96 int96;", lambda row: row.add("int96", int96)),
        "int96_bag": (
            "optional group int96_bag (LIST) { repeated group bag { optional int96 array_element; } }",
            lambda row: row.addGroup("int96_bag").addGroup("bag").add("array_element", int96),
        ),
        "int96_two_levels": (
            "optional group int96_two_levels (LIST) { repeated int96 array; }",
            lambda row: row.addGroup("int96_two_levels").add("array", int96),
        ),
        "int96_map": (
            "optional group int96_map (MAP) { repeated group map (MAP_KEY_VALUE) "
            "{ required binary key (UTF8); optional int96 value; } }",
            lambda row: _in(row.addGroup("int96_map").addGroup("map"), ("key", "a"), ("value", int96)),
        ),
        "two_levels": (
            "optional group two_levels (LIST) { repeated int32 array; }",
            lambda row: _in(row.addGroup("two_levels"), ("array", 7), ("array", 8)),
        ),
        "tuples": (
            "optional group tuples (LIST) { repeated group tuples_tuple { required int32 a; } }",
            lambda row: row.addGroup("tuples").addGroup("tuples_tuple").add("a", 7),
        ),
        "pairs": (
            "optional group pairs (LIST) { repeated group element { required int32 a; required int32 b; } }",
            lambda row: _in(row.addGroup("pairs").addGroup("element"), ("a", 7), ("b", 8)),
        ),
        "bare": ("repeated int32 bare;", lambda row: _in(row, ("bare", 7), ("bare", 8))),
        "old_map": (
            "optional group old_map (MAP_KEY_VALUE) { repeated group map "
            "{ required binary key (ENUM); required int32 value; } }",
            lambda row: _in(row.addGroup("old_map").addGroup("map"), ("key", "a"), ("value", 7)),
        ),
        "struct": (
            "optional group struct { required int32 a; optional int96 t; }",
            lambda row: _in(row.addGroup("struct"), ("a", 7), ("t", int96)),
        ),
        "plain": ("optional binary plain;", lambda row: row.add("plain", "abc")),
        "fixed": ("optional fixed_len_byte_array(4) fixed;", lambda row: row.add("fixed", binary(b"abcd"))),
    }
    for kind in ("ENUM", "JSON", "BSON", "UTF8"):
        columns |= {kind.lower(): (f"optional binary {kind.lower()} ({kind});", _puts(kind.lower(), "{}"))}
    for kind in ("INT_8", "INT_16", "INT_32", "UINT_8", "UINT_16", "UINT_32", "DATE"):
        columns |= {kind.lower(): (f"optional int32 {kind.lower()} ({kind});", _puts(kind.lower(), 7))}
    large = 7_000_000_000
    for kind in ("INT_64", "UINT_64", "TIMESTAMP_MILLIS", "TIMESTAMP_MICROS"):
        columns |= {kind.lower(): (f"optional int64 {kind.lower()} ({kind});", _puts(kind.lower(), large))}
    for unit in ("MILLIS", "MICROS"):
        name = f"local_{unit.lower()}"
        columns |= {name: (f"optional int64 {name} (TIMESTAMP({unit},false));", _puts(name, large))}
    columns |= {
        "decimal_int": ("optional int32 decimal_int (DECIMAL(5,2));", _puts("decimal_int", 125)),
        "decimal_long": ("optional int64 decimal_long (DECIMAL(15,2));", _puts("decimal_long", large)),
        "decimal_wide": (
            "optional fixed_len_byte_array(16) decimal_wide (DECIMAL(9,2));",
            _puts("decimal_wide", binary(b"\0" * 15 + b"\x7d")),
        ),
        "decimal_bytes": (
            "optional binary decimal_bytes (DECIMAL(38,2));",
            _puts("decimal_bytes", binary(b"\xff\x7d")),
        ),
    }
    _write_groups(jvm, "parquet-java", columns)
    refused: dict[str, tuple[str, Callable[[Any], Any]]] = {
        "uuid": ("optional fixed_len_byte_array(16) uuid (UUID);", _puts("uuid", binary(b"abcd" * 4))),
        "interval": ("optional fixed_len_byte_array(12) interval (INTERVAL);", _puts("interval", binary(b"abcd" * 3))),
        "millis": ("optional int32 millis (TIME_MILLIS);", _puts("millis", 7)),
        "micros": ("optional int64 micros (TIME_MICROS);", _puts("micros", large)),
        "keys": (
            "optional group keys (MAP) { repeated group key_value { required binary key (UTF8); } }",
            lambda row: row.addGroup("keys").addGroup("key_value").add("key", "a"),
        ),
        "within": (
            "optional group within { optional fixed_len_byte_array(16) id (UUID); }",
            lambda row: row.addGroup("within").add("id", binary(b"abcd" * 4)),
        ),
    }
    _write_groups(jvm, "parquet-java-refused", refused)


def _in(group: Any, *values: tuple[str, Any]) -> None:
    for name, value in values:
        group.add(name, value)


def _puts(name: str, value: Any) -> Callable[[Any], Any]:
    return lambda row: row.add(name, value)


def _write_groups(jvm: Any, name: str, columns: Mapping[str, tuple[str, Callable[[Any], Any]]]) -> None:
    parquet, target = jvm.org.apache.parquet, TARGET / f"{name}.parquet"
    fields = " ".join(kind for kind, _ in columns.values())
    schema = parquet.schema.MessageTypeParser.parseMessageType(
        f"message rows {{ optional binary id (UTF8); {fields} }}"
    )
    target.unlink(missing_ok=True)
    builder = parquet.hadoop.example.ExampleParquetWriter.builder(jvm.org.apache.hadoop.fs.Path(f"file:{target}"))
    writer = builder.withType(schema).build()
    factory = parquet.example.data.simple.SimpleGroupFactory(schema)
    for number in ("1", "2"):
        row = factory.newGroup()
        row.add("id", number)
        for _, put in columns.values() if number == "1" else ():
            put(row)
        writer.write(row)
    writer.close()
    target.with_name(f".{target.name}.crc").unlink(missing_ok=True)


def write_by_fastparquet() -> None:
    import fastparquet
    import pandas as pd

    times = pd.Series([pd.Timestamp("2024-01-02 03:04:05.678901"), None]).astype("datetime64[ns]")
    rows = pd.DataFrame(
        {
            "id": ["1", "2"],
            "text": pd.Series(["a", None], dtype=object),
            "kind": pd.Series(["a", None], dtype="category"),
            "whole": pd.Series([1, None], dtype="Int64"),
            "object": pd.Series([{"a": 1}, None], dtype=object),
            "time": times,
        }
    )
    fastparquet.write(str(TARGET / f"fastparquet-{fastparquet.__version__}.parquet"), rows, times="int96")


def read_by_spark() -> None:
    spark = session()
    found: dict[str, dict[str, list[Any]]] = {}
    for file in sorted(TARGET.glob("*.parquet")):
        if "refused" in file.name:
            continue
        rows, found[file.stem] = spark.read.parquet(str(file)).orderBy("id"), {}
        for name, kind in rows.dtypes[1:]:
            text = f"hex({name})" if kind == "binary" else f"cast({name} as string)"
            found[file.stem][name] = [kind, [row[0] for row in rows.selectExpr(text).collect()]]
    text = json.dumps(found, indent=0, ensure_ascii=False)
    (TARGET / "spark.json").write_text(text + "\n")


if __name__ == "__main__":
    TARGET.mkdir(parents=True, exist_ok=True)
    if sys.argv[1:] == ["read"]:
        read_by_spark()
    elif importlib.util.find_spec("fastparquet"):
        write_by_fastparquet()
    else:
        write_by_spark()
