"""Record keys and partition paths that we make are those of real Hudi, in tables of all kinds of key generators.

Hudi writes rows by Avro (upsert) or by Spark's rows (bulk_insert). We make the two columns anew from the data columns
of its files, the table's own hoodie.properties, and the key and path of one row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_services.codecs.properties import parse_properties
from hudi_services.derived_indexes.expression_index.time_functions import Zone
from hudi_services.ingest.key_settings import config_of_keys
from hudi_services.keygen.key_forms import shown_form
from hudi_services.keygen.key_maker import KeyMaker
from hudi_services.options import resolve
from hudi_services.table_config import TableConfig
from hudi_services.versions import table_version

from .peer import META_COLUMNS, Peer
from .recipes import SMALL_FILTERS, VERSIONS, WRITE_DEFAULTS

_WRITE = "hoodie.datasource.write."
_TIME = "hoodie.keygen.timebased."
_HIVE = {f"{_WRITE}hive_style_partitioning": "true"}
_ENCODE = {f"{_WRITE}partitionpath.urlencode": "true"}
_SLASHES = {f"{_WRITE}slash.separated.date.partitioning": "true"}
_COLUMNS = {
    "id": "concat('k:', cast(id as string), ',é🚀')",
    "num": "cast(id * 1000003 - 2000000 as int)",
    "big": "id * 100000000019 - 300000000000",
    "small": "cast(id % 3 as short)",
    "flag": "id % 2 = 0",
    "day": "case when id = 3 then null else date_add(date'1969-12-30', cast(id * 400 as int)) end",
    "price": "cast(id / 100000000 as decimal(20, 8))",
    "cost": "cast(id * 10 as decimal(9, 2))",
    "at": "case when id = 6 then timestamp_micros(-1500001) else timestamp_micros(1700000000000001 + id * 100001) end",
    "text": "case id when 0 then null when 1 then '' when 2 then 'a/b=c d}' when 3 then '[ü%41]^\"' else 'p' end",
    "plain": "case when id = 0 then null when id = 1 then '' when id = 2 then 'a b=c' else 'x/y' end",
    "inner": "case when id = 5 then null else named_struct('name', concat('n', id), 'of', "
    "named_struct('place', case when id = 4 then null else id % 2 end)) end",
    "seconds": "case when id = 4 then null else 1700000000 + id * 40000 end",
    "millis": "case when id = 4 then null else 1700000000123 + id * 40000000 end",
    "micros": "case when id = 4 then null when id = 5 then -1 else 1700000000123456 + id * 40000000000 end",
    "hours": "cast(id * 1000 - 2000 as int)",
    "money": "cast(id * 40000.75 as decimal(12, 2))",
    "clock": "case when id = 4 then null else date_format(timestamp_seconds(1711843200 + id * 1800), "
    "case when id % 2 = 0 then 'yyyy-MM-dd HH:mm' else 'yyyy/MM/dd' end) end",
    "moment": "case when id = 4 then null else date_format(timestamp_seconds(1711843200 + id * 1800), "
    "\"yyyy-MM-dd'T'HH:mm:ss.SSS'+0530'\") end",
    "dated": "case when id = 0 then null else cast(date_add(date'2024-01-30', cast(id as int)) as string) end",
}
_ROWS = """
def clock(zone):
    jvm.java.util.TimeZone.setDefault(jvm.java.util.TimeZone.getTimeZone(zone))
    jvm.org.joda.time.DateTimeZone.setDefault(jvm.org.joda.time.DateTimeZone.forID(zone))

clock(zone)
spark.range(0, 8, 1, 1).selectExpr(*expressions).where(where).coalesce(1).write.format("hudi") \\
    .options(**options).mode("append").save(path)
clock("UTC")
"""


@dataclass(frozen=True)
class Case:
    """A kind of table; `row_path`: Hudi writes it by Spark's rows; in a JVM of `zone`."""

    key: str
    partition: str
    generator: str
    options: Mapping[str, str] = field(default_factory=dict)
    row_path: bool = False
    zone: str = "UTC"
    releases: Sequence[str] = VERSIONS


def _timed(kind: str, output: str, **more: str) -> dict[str, str]:
    found = {"timestamp.type": kind, "output.dateformat": output}
    found |= {name.replace("__", "."): text for name, text in more.items()}
    return {_TIME + name: text for name, text in found.items()}


_CLOCKS = {"input__dateformat": "yyyy-MM-dd HH:mm,yyyy/MM/dd"}
_MOMENTS = {"input__dateformat": "yyyy-MM-dd'T'HH:mm:ss.SSSZ"}
_SINCE_1 = ("1.0.2", "1.2.0")
CASES = {
    "simple": Case("id", "text", "Simple", _ENCODE),
    "simple, hive style": Case("big", "plain", "Simple", _HIVE),
    "nested": Case("inner.name", "inner.of.place", "Simple", _HIVE),
    "times": Case("at", "at", "Simple", _ENCODE),
    "times by rows": Case("at", "at", "Simple", _ENCODE, row_path=True),
    "times by rows in a zone": Case("at", "at", "Simple", _ENCODE, row_path=True, zone="Asia/Tokyo"),
    "slashes": Case("num", "dated", "Simple", _SLASHES, releases=("1.2.0",)),
    "complex": Case("id,day,text", "text,flag,day", "Complex", _ENCODE | _HIVE),
    "complex of types": Case("num,big,small,flag,price,cost,at", "num,cost", "Complex"),
    "complex of one": Case("id", "small,flag", "Complex"),
    "complex by rows": Case("id,at,price", "text,price", "Complex", _ENCODE, row_path=True),
    "no partitions": Case("num", "", "Nonpartitioned"),
    "no partitions, more keys": Case("day,text", "", "Nonpartitioned"),
    "seconds": Case("id", "seconds", "TimestampBased", _timed("UNIX_TIMESTAMP", "yyyy/MM/dd")),
    "seconds in a zone": Case(
        "id", "seconds", "TimestampBased", _timed("UNIX_TIMESTAMP", "yyyyMMddHH"), zone="Asia/Tokyo"
    ),
    "millis": Case("id", "millis", "TimestampBased", _HIVE | _timed("EPOCHMILLISECONDS", "yyyyMMdd-HH")),
    "micros": Case(
        "id",
        "micros",
        "TimestampBased",
        _timed("EPOCHMICROSECONDS", "yyyy-MM-dd HH", timezone="GMT+8:00"),
        releases=_SINCE_1,
    ),
    "micros of times": Case(
        "id",
        "at",
        "TimestampBased",
        _ENCODE | _timed("EPOCHMICROSECONDS", "yyyy-MM-dd HH:mm:ss"),
        releases=_SINCE_1,
    ),
    "hours": Case(
        "id",
        "hours",
        "TimestampBased",
        _timed("SCALAR", "yyyy'T'MM", timestamp__scalar__time__unit="hours", output__timezone="America/New_York"),
    ),
    "money": Case("id", "money", "TimestampBased", _timed("SCALAR", "yyyyMMddHHmmss")),
    "dates": Case("id", "day", "TimestampBased", _timed("SCALAR", "yyyy-MM", timestamp__scalar__time__unit="DAYS")),
    "clock": Case(
        "id",
        "clock",
        "TimestampBased",
        _timed(
            "DATE_STRING",
            "yyyyMMddHH",
            input__dateformat="yyyy-MM-dd HH:mm;yyyy/MM/dd",
            input__dateformat__list__delimiter__regex=";",
            input__timezone="Europe/Berlin",
            output__timezone="Asia/Tokyo",
        ),
    ),
    "clock without zones": Case("id", "clock", "TimestampBased", _timed("DATE_STRING", "yyyyMMddHH", **_CLOCKS)),
    "clock without input zone": Case(
        "id",
        "clock",
        "TimestampBased",
        _timed("DATE_STRING", "yyyyMMddHH", output__timezone="America/New_York", **_CLOCKS),
        zone="Asia/Tokyo",
    ),
    "moment": Case("id", "moment", "TimestampBased", _timed("MIXED", "yyyyMMddHH", **_MOMENTS)),
    "moment shown": Case(
        "id",
        "moment",
        "TimestampBased",
        _timed("MIXED", "yyyyMMddHH", input__timezone="", output__timezone="UTC", **_MOMENTS),
    ),
    "moment read": Case(
        "id", "moment", "TimestampBased", _timed("MIXED", "yyyyMMddHH", input__timezone="Europe/Berlin", **_MOMENTS)
    ),
    # 0.15.0 keeps no kinds of the fields.
    "custom": Case(
        "id",
        "small:simple,millis:TIMESTAMP",
        "Custom",
        _HIVE | _timed("EPOCHMILLISECONDS", "yyyyMM"),
        row_path=True,
    ),
    "custom of more keys": Case("id,num", "text:SIMPLE", "Custom", _ENCODE),
}


@pytest.mark.deep
def test_keys_and_paths_are_those_of_hudi(peer: Peer, tmp_path: Path) -> None:
    wrong = {}
    columns = [f"{sql} as {name}" for name, sql in _COLUMNS.items()]
    for case, one in CASES.items():
        if peer.version not in one.releases:
            continue
        path = tmp_path / case
        options = {
            **WRITE_DEFAULTS,
            **SMALL_FILTERS,
            "hoodie.table.name": "rides",
            "hoodie.metadata.enable": "false",
            # Or Hudi waits for hours after each change of the JVM's zone.
            "hoodie.table.timeline.timezone": "UTC",
            f"{_WRITE}recordkey.field": one.key,
            f"{_WRITE}precombine.field": "big",
            f"{_WRITE}operation": "bulk_insert" if one.row_path else "insert",
            f"{_WRITE}keygenerator.class": f"org.apache.hudi.keygen.{one.generator}KeyGenerator",
            **({f"{_WRITE}partitionpath.field": one.partition} if one.partition else {}),
            **one.options,
        }
        where = _without_empty_keys(one.key)
        peer.eval(_ROWS, path=str(path), options=options, expressions=columns, where=where, zone=one.zone)
        wrong[case] = _differences(path, one)
    assert not {case: found for case, found in wrong.items() if found}


def _without_empty_keys(key: str) -> str:
    """Hudi refuses rows whose key has no value at all."""
    names = key.split(",")
    return " or ".join(f"({name} is not null and cast({name} as string) != '')" for name in names)


def _config(path: Path, case: Case) -> TableConfig:
    """The table's configuration, and what Hudi does not keep of the options of its writer."""
    raw = parse_properties((path / ".hoodie/hoodie.properties").read_bytes(), "hoodie.properties")
    config = TableConfig(raw, table_version(int(raw["hoodie.table.version"]), "hoodie.properties"))
    given = {key: text for key, text in case.options.items() if key.startswith(_TIME)}
    if case.partition:
        given[f"{_WRITE}partitionpath.field"] = case.partition
    return config_of_keys(resolve([("test", given)]), config)


def _differences(path: Path, case: Case) -> list[Any]:
    files = [file for file in path.rglob("*.parquet") if ".hoodie" not in file.relative_to(path).parts]
    rows = pa.concat_tables([pq.ParquetFile(file).read() for file in files])
    assert rows.num_rows >= 5
    true = rows.select(META_COLUMNS[2:4])
    config, zone = _config(path, case), Zone.parse(case.zone)
    schema = rows.drop_columns(list(META_COLUMNS)).schema
    forms = KeyMaker.forms(config, schema, zone)
    form = forms[0] if len(forms) == 1 else shown_form(forms, true[0], rows)
    assert form is not None, "some row decides"
    maker = KeyMaker.of(config, schema, form, sample_path=true[1][0].as_py(), zone=zone)
    keys, paths = maker.record_keys(rows), maker.partition_paths(rows)
    found = zip(true[0].to_pylist(), keys.to_pylist(), true[1].to_pylist(), paths.to_pylist(), strict=True)
    return [one for one in found if one[0] != one[1] or one[2] != one[3]]
