"""Tables whose files do not have the partition columns, beside a model; the columns are in the paths alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_services
from hudi_services.errors import ConfigError, UnsupportedTable
from hudi_services.log_files.log_blocks import HeaderKey
from hudi_services.log_files.log_reader import read_log_blocks
from hudi_services.versions import VERSIONS

from .rides import FILTERS, create
from .tables import merged_rows, open_local

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")

DROPPED = "hoodie.datasource.write.drop.partition.columns"


def without_columns(path: Path, **arguments: Any) -> hudi_services.Table:
    more = {"partition_by": ["day", "hour"], "options": {**FILTERS, DROPPED: "true", **arguments.pop("options", {})}}
    return create(path, **{**more, **arguments})


def rows(numbers: Any, text: str, ts: int) -> pa.Table:
    """The partition columns are in the middle."""
    return pa.table(
        {
            "id": pa.array([f"k{n:03d}" for n in numbers], pa.string()),
            "day": pa.array([f"d{n % 2}" for n in numbers], pa.string()),
            "ts": pa.array([ts] * len(numbers), pa.int64()),
            "hour": pa.array([n % 3 for n in numbers], pa.int32()),
            "text": pa.array([f"{text} {n}" for n in numbers], pa.string()),
        }
    )


def seen(path: Path) -> dict[str, tuple[str, int, str]]:
    """Path, ordering value and text of each key; base files and commit have no other columns, and records of log files
    the texts of the path."""
    now = open_local(path)
    assert now.schema is not None and now.schema.names == ("id", "ts", "text")
    if not now.view.live_slices():
        return {}
    found = merged_rows(path)
    names = {name for name in found.column_names if not name.startswith("_hoodie")}
    has_logs = any(one.log_files for one in now.view.live_slices())
    assert names.difference({"day", "hour"} if has_logs else ()) == {"id", "ts", "text"}
    rows = found.to_pylist()
    for row in rows:
        assert row.get("day") is None or f"{row['day']}/{row['hour']}" == row["_hoodie_partition_path"]
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: (row["_hoodie_partition_path"], row["ts"], row["text"]) for row in rows}


@pytest.mark.thorough
@pytest.mark.spread(3)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", VERSIONS)
def test_histories(version: int, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = without_columns(path, table_version=version, table_type=kind)
    assert table.config[DROPPED] == "true"
    random, model = np.random.default_rng(version), dict[str, tuple[str, int, str]]()

    def put(new: pa.Table) -> None:
        for row in new.to_pylist():
            model[row["id"]] = (f"{row['day']}/{row['hour']}", row["ts"], row["text"])

    table.insert(rows(range(20), "first", 1))
    put(rows(range(20), "first", 1))
    for number in range(2, 9):
        known = [int(key[1:]) for key in model]
        old = random.choice(known, 6, replace=False)
        fresh = np.arange(20 * number, 20 * number + 4)
        kind_of_write = ("upsert", "delete", "insert", "upsert", "bulk_insert")[number % 5]
        if kind_of_write == "upsert":
            new = rows([*old, *fresh], f"t{number}", number)
            table.upsert(new)
            put(new)
        elif kind_of_write == "delete":
            # Columns of the key and the path are enough.
            table.delete(rows([*old, 999], "", 0).select(["hour", "id", "day"]))
            for n in old:
                model.pop(f"k{n:03d}")
        else:
            getattr(table, kind_of_write)(rows(fresh, f"t{number}", number))
            put(rows(fresh, f"t{number}", number))
        assert seen(path) == model, number
        if kind == "MERGE_ON_READ" and number % 3 == 0:
            assert table.compact(options={"hoodie.compact.inline.max.delta.commits": "1"}).ok
            assert seen(path) == model, number
    assert table.cluster(options={"hoodie.clustering.plan.strategy.small.file.limit": "100000000"}).ok
    assert seen(path) == model
    new = rows([int(key[1:]) for key in list(model)[:5]], "last", 20)
    table.upsert(new)
    put(new)
    over = rows([6, 12, 18], "over", 21)
    table.insert_overwrite(over)
    model = {key: row for key, row in model.items() if row[0] != "d0/0"}
    put(over)
    table.delete_partitions(["d1/1"])
    model = {key: row for key, row in model.items() if row[0] != "d1/1"}
    assert seen(path) == model
    assert table.validate(strict=True).ok
    for file in path.rglob("d*/*/*.parquet"):
        assert not {"day", "hour"}.intersection(pq.read_schema(file).names)


def test_files_that_have_the_columns_all_the_same(tmp_path: Path) -> None:
    """As clusterings and upserts of Hudi write them: the next write of their file groups leaves them out."""
    path = tmp_path / "t"
    table = create(path, partition_by=["day", "hour"])
    table.insert(rows(range(12), "first", 1))
    file = path / ".hoodie/hoodie.properties"
    file.write_text(file.read_text().replace(f"{DROPPED}=false", f"{DROPPED}=true"))
    table = hudi_services.open(path, engine="local")
    table.upsert(rows(range(0, 12, 2), "new", 2))
    now = open_local(path)
    assert now.schema is not None and now.schema.names == ("id", "ts", "text")
    found = {row["id"]: row["text"] for row in merged_rows(path).to_pylist()}
    assert found == {f"k{n:03d}": f"{'first' if n % 2 else 'new'} {n}" for n in range(12)}
    assert table.cluster(options={"hoodie.clustering.plan.strategy.small.file.limit": "100000000"}).ok
    assert {row["id"]: row["text"] for row in merged_rows(path).to_pylist()} == found
    assert table.validate(strict=True).ok


def test_change_data_has_the_columns_of_files(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = without_columns(path, options={"hoodie.table.cdc.enabled": "true"})
    table.insert(rows(range(4), "first", 1))
    table.upsert(rows([1, 2], "new", 2))
    (block,) = (
        block for file in [next(path.rglob(".*.cdc"))] for block in read_log_blocks(file.read_bytes(), str(file))
    )
    assert '"text"' in block.header[HeaderKey.SCHEMA] and '"day"' not in block.header[HeaderKey.SCHEMA]
    assert table.validate(strict=True).ok


def test_what_is_refused(tmp_path: Path) -> None:
    table = without_columns(tmp_path / "t")
    with pytest.raises(ConfigError, match="day"):
        table.insert(rows(range(2), "x", 1).drop_columns(["day"]))
    with pytest.raises(ConfigError, match=f"{DROPPED}=false .* does not fit the table, which has true"):
        table.insert(rows(range(2), "x", 1), options={DROPPED: "false"})
    bare = without_columns(tmp_path / "bare", options={"hoodie.populate.meta.fields": "false"})
    with pytest.raises(UnsupportedTable, match=f"{DROPPED}=true and no meta fields"):
        bare.insert(rows(range(2), "x", 1))
    with pytest.raises(ConfigError, match="the ordering field hour is a partition column, which files would not have"):
        without_columns(tmp_path / "by_hour", ordering=["hour"])


@pytest.mark.thorough
@pytest.mark.parametrize("blocks", ["avro", "parquet"])
@pytest.mark.parametrize("style", [True, False])
def test_records_have_the_texts_of_the_path(blocks: str, style: bool, tmp_path: Path) -> None:
    path = tmp_path / "t"
    names = {f"hoodie.datasource.write.{name}": str(style).lower() for name in _STYLES}
    table = without_columns(path, table_type="MERGE_ON_READ", options=names)
    new = rows(range(2), "x", 1).set_column(1, "day", pa.array(["a b", None], pa.string()))
    table.insert(new)
    table.upsert(new, options={"hoodie.logfile.data.block.format": blocks})
    found = {(row["day"], row["hour"]) for row in merged_rows(path).to_pylist()}
    assert found == {("a b", "0"), (None, "1")}
    assert table.validate(strict=True).ok


_STYLES = ("hive_style_partitioning", "partitionpath.urlencode")


def test_a_path_that_does_not_tell_the_columns(tmp_path: Path) -> None:
    table = without_columns(tmp_path / "t", table_type="MERGE_ON_READ")
    new = rows(range(2), "x", 1).set_column(1, "day", pa.array(["a/b", "c"], pa.string()))
    table.insert(new)
    with pytest.raises(UnsupportedTable, match=r"'a/b/0' of the table .* does not tell a value for each of day, hour"):
        table.upsert(new)
