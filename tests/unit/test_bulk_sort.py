"""Bulk inserts that sort: the order of the rows in the files, also of more rows than fit into memory."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_services
from hudi_services.errors import ConfigError
from hudi_services.options import writing_keys
from hudi_services.versions import VERSIONS

from .rides import FILTERS, create
from .tables import both_views

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")

_COLUMNS = writing_keys.BULK_SORT_COLUMNS.key
_CLASS = writing_keys.BULK_PARTITIONER.key
_HUDI_CLASS = "org.apache.hudi.execution.bulkinsert.RowCustomColumnsSortPartitioner"
_FIRST = "aZé€\uffee😀"


def rows(count: int, seed: int = 5) -> pa.Table:
    """Rows in no order: keys of one to four bytes of UTF-8 at their begin, a column with few values and nulls."""
    random = np.random.default_rng(seed)
    numbers = random.permutation(count)
    return pa.table(
        {
            "id": pa.array([f"{_FIRST[n % 6]}{n * 7919 % 10007}-{n}" for n in numbers.tolist()]),
            "day": pa.array([f"d{n % 3}" for n in numbers.tolist()]),
            "ts": numbers,
            "few": pa.array([None if n % 11 == 0 else n % 7 for n in numbers.tolist()], pa.int32()),
            "text": pa.array(random.integers(0, 1 << 62, count)).cast(pa.string()),
        }
    )


def files(table: hudi_services.Table, path: Path) -> list[pa.Table]:
    """The rows of each partition as they are stored: its files by their numbers."""
    slices = table.slices().to_pylist()
    of = {one["partition"]: [s for s in slices if s["partition"] == one["partition"]] for one in slices}
    ordered = [sorted(of[name], key=lambda s: int(s["file_id"].rpartition("-")[2])) for name in sorted(of)]
    return [pa.concat_tables(pq.ParquetFile(path / s["base_file"]).read() for s in group) for group in ordered]


def keys(given: pa.Table) -> list[bytes]:
    return [key.encode() for key in given.column("id").to_pylist()]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "mode",
    ["NONE", "global_sort", "PARTITION_SORT", "PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"],
)
def test_each_sort_mode(mode: str, version: int, tmp_path: Path) -> None:
    table, new = create(tmp_path / "rides", table_version=version), rows(900)
    assert table.bulk_insert(new, options={"hoodie.bulkinsert.sort.mode": mode}).ok
    for number, found in enumerate(files(table, tmp_path / "rides")):
        given = new.filter(pa.compute.equal(new["day"], f"d{number}"))
        wanted = keys(given)
        # By the bytes of UTF-8, in which U+FFEE is before an emoji.
        assert keys(found) == (sorted(wanted) if mode.upper().endswith(("L_SORT", "N_SORT")) else wanted)
        assert found.select(given.column_names).sort_by("id").equals(given.sort_by("id"))
    assert table.validate(strict=True).ok
    # Only a bulk insert sorts, as in Hudi.
    more = rows(90, seed=6).set_column(1, "day", [["d9"] * 90])
    table.insert(more, options={"hoodie.bulkinsert.sort.mode": mode})
    assert keys(files(table, tmp_path / "rides")[-1]) == keys(more)


def test_sort_columns(tmp_path: Path) -> None:
    """They come before the sort mode; nulls come first, as in Spark."""
    options = {_COLUMNS: "few, id", "hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"}
    for name, more in {"alone": {}, "with the class": {_CLASS: _HUDI_CLASS}}.items():
        table = create(tmp_path / name)
        assert table.bulk_insert(rows(600), options=options | more).ok
        for found in files(table, tmp_path / name):
            few = found.column("few").to_pylist()
            pairs = [(-1 if one is None else one, key) for one, key in zip(few, keys(found), strict=True)]
            assert pairs == sorted(pairs) and None in few


def test_the_record_key_behind_the_sort_columns(tmp_path: Path) -> None:
    table = create(tmp_path / "rides")
    assert table.bulk_insert(rows(600), options={_COLUMNS: "few", writing_keys.BULK_SORT_SUFFIX.key: "true"}).ok
    for found in files(table, tmp_path / "rides"):
        few = [-1 if one is None else one for one in found.column("few").to_pylist()]
        pairs = list(zip(few, keys(found), strict=True))
        assert pairs == sorted(pairs) and len(set(few)) < len(few)


@pytest.mark.thorough
def test_more_rows_than_fit_into_memory(tmp_path: Path) -> None:
    new = rows(300_000)
    noise = np.random.default_rng(8).integers(0, 1 << 62, (6, new.num_rows))
    for number, values in enumerate(noise):
        new = new.append_column(f"noise{number}", pa.array(values).cast(pa.string()))
    table = create(tmp_path / "rides")
    options = {
        **FILTERS,
        "hoodie.bulkinsert.sort.mode": "GLOBAL_SORT",
        "hoodie.parquet.max.file.size": 8 << 20,
        "hudi.services.memory.per.task": "64m",
    }
    result = table.bulk_insert(new.to_reader(10_000), options=options)
    # What waits for its file and the runs of the sort: more than once.
    assert result.tables["memory"]["spilled_bytes"].to_pylist()[0] > new.nbytes // 2
    found = files(table, tmp_path / "rides")
    for number, one in enumerate(found):
        assert keys(one) == sorted(keys(new.filter(pa.compute.equal(new["day"], f"d{number}"))))
    # Sorted rows fill several files, whose ranges of keys do not overlap.
    assert table.slices().num_rows > 3
    read, _ = both_views(tmp_path / "rides")
    assert read.select(new.column_names).sort_by("ts").equals(new.sort_by("ts"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hoodie.bulkinsert.sort.mode": "SOME"}, r"is none of NONE, GLOBAL_SORT"),
        ({_COLUMNS: "nothing"}, "the rows have no sort column nothing"),
        ({_COLUMNS: "_hoodie_commit_time"}, "the rows have no sort column _hoodie_commit_time"),
        ({_COLUMNS: "list"}, "the sort column list has no order"),
        ({_COLUMNS: "ts,ts"}, "names a column twice"),
        ({_CLASS: "com.acme.Partitioner", _COLUMNS: "ts"}, r"class=com.acme.Partitioner .* cannot be run here"),
        ({_COLUMNS: "ts,ts", writing_keys.BULK_SORT_SUFFIX.key: "true"}, "names a column twice"),
        ({_CLASS: _HUDI_CLASS}, "sorts by columns, and none is named"),
    ],
)
def test_what_cannot_be_sorted_is_refused(options: dict[str, str], message: str, tmp_path: Path) -> None:
    table = create(tmp_path / "rides")
    new = rows(30).append_column("list", pa.array([[1]] * 30))
    with pytest.raises(ConfigError, match=message):
        table.bulk_insert(new, options=options)
    assert not table.timeline().num_rows


def test_tables_without_meta_fields_are_sorted_by_columns_alone(tmp_path: Path) -> None:
    table = create(tmp_path / "rides", options={**FILTERS, "hoodie.populate.meta.fields": "false"})
    with pytest.raises(ConfigError, match=r"has no meta fields .* cannot be sorted by record key"):
        table.bulk_insert(rows(30), options={"hoodie.bulkinsert.sort.mode": "PARTITION_SORT"})
    table.bulk_insert(rows(300), options={_COLUMNS: "ts"})
    for found in files(table, tmp_path / "rides"):
        times = found.column("ts").to_pylist()
        assert times == sorted(times)
