"""Can this check fail? A wrong record of every type in every partition of statistics is found, and repaired."""

import datetime as dt
import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_services.metadata.records.keys import COLUMN_STATS, EXPRESSION_INDEX, PARTITION_STATS
from hudi_services.metadata.records.model import RecordType, StatsRecord
from hudi_services.validation.model import DifferenceKind

from .corruptions import Damage, do_damage, metadata_of
from .tables import open_local, unpack
from .test_validate import found, run
from .test_validate_expressions import run as run_with_zone

NAN = math.nan
UTC = "UTC"
DAY = dt.date(2020, 1, 1)

COLUMNS: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "boolean": (pa.bool_(), lambda i: i % 2 == 0),
    "int": (pa.int32(), lambda i: i),
    "long": (pa.int64(), lambda i: -(i << 40)),
    "float": (pa.float32(), lambda i: i / 2),
    "double": (pa.float64(), lambda i: -i / 3),
    "with_nan": (pa.float64(), lambda i: NAN if i % 5 == 1 else i / 3),
    "string": (pa.string(), lambda i: f"é{i:05}"),
    "long_string": (pa.string(), lambda i: f"{i % 7}" + "ü" * (5000 if i % 7 == 6 else 3)),
    "bytes": (pa.binary(), lambda i: bytes([i * 37 % 256, i % 256])),
    "long_bytes": (pa.binary(), lambda i: bytes([i * 37 % 256]) * (5000 if i % 3 else 1)),
    "small_decimal": (pa.decimal128(8, 2), lambda i: Decimal(i) / 4),
    "decimal": (pa.decimal128(25, 10), lambda i: Decimal(i) - 7),
    "date": (pa.date32(), lambda i: DAY + dt.timedelta(i)),
    "time_millis": (pa.time32("ms"), lambda i: i),
    "time_micros": (pa.time64("us"), lambda i: i),
    "millis": (pa.timestamp("ms", UTC), lambda i: 1_700_000_000_000 + i),
    "micros": (pa.timestamp("us", UTC), lambda i: -1_700_000_000_000_000 + i),
    "local_millis": (pa.timestamp("ms"), lambda i: -i),
    "local_micros": (pa.timestamp("us"), lambda i: i),
}
ONLY_TYPED: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "fixed": (pa.binary(2), lambda i: bytes([i * 37 % 256, i % 256])),
    "wide_decimal": (pa.decimal128(38, 18), lambda i: Decimal(i) / 8),
    "nanos": (pa.timestamp("ns", UTC), lambda i: i),
    "local_nanos": (pa.timestamp("ns"), lambda i: -i),
}


@pytest.fixture(scope="module", params=["1.0.2", "1.2.0"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of Hudi with columns of all types put into its files, and into its statistics by a repair."""
    path = unpack(request.param, tmp_path_factory.mktemp(f"types-{request.param}"))
    columns = COLUMNS | (ONLY_TYPED if request.param == "1.2.0" else {})
    for file in sorted(path.glob("day=*/*.parquet")):
        _put_in(file, columns)
    definitions = path / ".hoodie/.index_defs/index.json"
    content = json.loads(definitions.read_text())
    for index in {COLUMN_STATS, PARTITION_STATS} & content["indexDefinitions"].keys():
        content["indexDefinitions"][index]["sourceFields"] += columns
    definitions.write_text(json.dumps(content))
    assert run(path, repair=True).exit_code == 0
    assert run(path).exit_code == 0
    return path


def _put_in(file: Path, columns: dict[str, tuple[pa.DataType, Callable[[int], Any]]]) -> None:
    old = pq.ParquetFile(file).read()
    for name, (kind, value) in columns.items():
        values = [None if i % 11 == 3 else value(i) for i in range(old.num_rows)]
        old = old.append_column(name, pa.array(values, kind))
    pq.write_table(old, file, version="2.6")
    if "with_nan" in columns:
        _drop_range(file, "with_nan")


def _drop_range(file: Path, column: str) -> None:
    """As parquet-mr writes a column with NaN."""
    from hudi_services.parquet.footer import parse_footer

    data = file.read_bytes()
    footer = parse_footer(data, file.name)
    length = int.from_bytes(data[-8:-4], "little")
    index = next(i for i, chunk in enumerate(footer.row_groups[0].columns) if chunk.path == (column,))
    chunk = footer.row_groups[0].columns[index]
    footer.set_leaf(index, chunk.path, chunk.physical, keep_statistics=False)
    file.write_bytes(data[: len(data) - 8 - length] + footer.as_file()[4:])


FAULTS: dict[str, tuple[DifferenceKind, DifferenceKind, Callable[[StatsRecord], dict[str, Any]]]] = {
    "minimum": (DifferenceKind.WRONG_MINIMUM, DifferenceKind.NARROW_RANGE, lambda one: {"minimum": one.maximum}),
    "maximum": (DifferenceKind.WRONG_MAXIMUM, DifferenceKind.NARROW_RANGE, lambda one: {"maximum": one.minimum}),
    "nulls": (DifferenceKind.WRONG_COUNTS, DifferenceKind.WRONG_COUNTS, lambda one: {"null_count": 0}),
}
"""What a look finds in the statistics of files, and in those of partitions."""


@pytest.mark.thorough
@pytest.mark.spread(6)
@pytest.mark.parametrize("fault", [*FAULTS, "missing"])
@pytest.mark.parametrize("index", [COLUMN_STATS, PARTITION_STATS])
def test_a_wrong_record_of_any_type_is_found_and_mended(index: str, fault: str, made: Path, tmp_path: Path) -> None:
    path = tmp_path / "table"
    shutil.copytree(made, path)
    table = open_local(path)
    partition = table.view.partitions()[0]
    file = next(one.base_file.name for one in table.view.latest_slices(partition) if one.base_file)
    place = (partition, file if index == COLUMN_STATS else None)
    damage = Damage()
    for record in metadata_of(table).reader(index).scan():
        if not isinstance(record, StatsRecord) or record.column not in COLUMNS | ONLY_TYPED:
            continue
        if record.file_name != (file if index == COLUMN_STATS else partition):
            continue
        if fault == "missing":
            damage.delete(index, record.key)
            damage.expect(index, DifferenceKind.STATISTICS_MISSING, *place, record.column)
            continue
        of_file, of_partition, changes = FAULTS[fault]
        gone = replace(record, minimum=None, maximum=None, deleted=True)
        damage.record(index, gone, replace(record, tight=True, **changes(record)))
        damage.expect(index, of_file if index == COLUMN_STATS else of_partition, *place, record.column)
    assert {one[4] for one in damage.found} >= COLUMNS.keys()
    do_damage(path, damage)
    report = run(path)
    assert found(report) == damage.found
    assert run(path, repair=True).exit_code == 0
    assert found(run(path)) == set()


@pytest.mark.parametrize("fault", ["minimum", "maximum", "missing"])
@pytest.mark.parametrize("release", ["1.0.2", "1.2.0"])
def test_a_wrong_range_of_an_expression_is_found_and_mended(release: str, fault: str, tmp_path: Path) -> None:
    """Of texts and of dates; those of files are in `test_validate_expressions`."""
    path = unpack(release, tmp_path, "expressions")
    metadata = metadata_of(open_local(path))
    damage = Damage()
    for index in (name for name in metadata.partitions if name.startswith(EXPRESSION_INDEX)):
        for record in metadata.reader(index).scan():
            if not isinstance(record, StatsRecord) or record.type is not RecordType.PARTITION_STATS:
                continue
            kind = DifferenceKind.NARROW_RANGE
            if fault == "missing":
                damage.delete(index, record.key)
                kind = DifferenceKind.STATISTICS_MISSING
            else:
                gone = replace(record, minimum=None, maximum=None, deleted=True)
                damage.record(index, gone, replace(record, tight=True, **FAULTS[fault][2](record)))
            damage.expect(index, kind, record.file_name, None, record.column)
    assert damage.found
    do_damage(path, damage)
    assert found(run_with_zone(path)) == damage.found
    assert run_with_zone(path, repair=True).exit_code == 0
    assert found(run_with_zone(path)) == set()
