"""What a write says of its keys and partition paths, where the table does not store it."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_services
from hudi_services.errors import ConfigError
from hudi_services.jobs import writing
from hudi_services.options import resolve
from hudi_services.runs.request import WriteOperation, WriteRequest
from hudi_services.stores import open_storage
from hudi_services.table_config import TableConfig
from hudi_services.versions import VERSIONS

from .tables import both_views

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")

FIELD = "hoodie.datasource.write.partitionpath.field"
TIME, OLD = "hoodie.keygen.timebased.", "hoodie.deltastreamer.keygen.timebased."
TIMES = {TIME + "timestamp.type": "EPOCHMILLISECONDS", TIME + "output.dateformat": "yyyyMMdd"}
KINDS = {FIELD: "d:SIMPLE,ts:TIMESTAMP"}
LATE = 1_700_000_000_000
"""2023-11-14 22:13:20 in UTC."""
ROWS = pa.table({"id": ["a", "b"], "d": ["x", "y"], "ts": [LATE] * 2})


def create(path: Path, version: int, **more: Any) -> hudi_services.Table:
    known: dict[str, Any] = {"name": "t", "record_key": "id", "partition_by": "d:SIMPLE,ts:TIMESTAMP", "options": TIMES}
    return hudi_services.create(path, table_version=version, ordering="ts", **{**known, **more})


def change(path: Path, **properties: str | None) -> hudi_services.Table:
    """The table with other properties."""
    storage = open_storage(str(path))
    changes = {key.replace("__", "."): value for key, value in properties.items()}
    TableConfig.load(storage).update(storage, changes)
    return hudi_services.open(path, engine="local")


def paths(path: Path) -> set[str]:
    return {*both_views(path)[0].column("_hoodie_partition_path").to_pylist()}


@pytest.mark.parametrize("version", VERSIONS)
def test_kinds_of_a_custom_key_generator(version: int, tmp_path: Path) -> None:
    create(tmp_path, version)
    table = hudi_services.open(tmp_path, engine="local")
    if version == 6:
        assert table.config["hoodie.table.partition.fields"] == "d,ts"
        for write in (table.upsert, table.insert):
            with pytest.raises(ConfigError, match=rf"neither .* nor {FIELD} of the write says how d makes") as error:
                write(ROWS)
            assert f"give {FIELD} with each write" in error.value.hint and "d:KIND,ts:KIND" in error.value.hint
            with pytest.raises(ConfigError, match=f"{FIELD} of the write says how ts makes"):
                write(ROWS, options={FIELD: "d:SIMPLE,ts"})
    else:
        table.upsert(ROWS)
        for kinds in ("d:TIMESTAMP,ts:SIMPLE", "d:SIMPLE,ts"):
            with pytest.raises(ConfigError, match=f"{FIELD}={kinds} .* does not fit the table, which has d:SIMPLE,ts"):
                table.upsert(ROWS, options={FIELD: kinds})
    for wrong in ("ts:TIMESTAMP,d:SIMPLE", "d:SIMPLE", "d:SIMPLE,ts:TIMESTAMP,id:SIMPLE"):
        with pytest.raises(ConfigError, match=f"{FIELD}={wrong} .* does not fit the table, which has d,ts"):
            table.upsert(ROWS, options={FIELD: wrong})
    table.upsert(ROWS, options={FIELD: "d:simple,ts:timestamp"})
    assert paths(tmp_path) == {"x/20231114", "y/20231114"}
    deleted = table.delete(ROWS.slice(0, 1), options=KINDS).tables["written"].to_pylist()[0]
    assert deleted["deletes"] == 1 and paths(tmp_path) == {"y/20231114"}


def test_other_key_generators_take_names_alone(tmp_path: Path) -> None:
    table = create(tmp_path, 6, partition_by="d", options=None, engine="local")
    with pytest.raises(
        ConfigError, match=r"d:SIMPLE .* does not fit the table, which has d and the key generator SIMP"
    ):
        table.insert(ROWS, options={FIELD: "d:SIMPLE"})
    table.insert(ROWS, options={FIELD: "d"})
    assert paths(tmp_path) == {"x", "y"}


def test_a_table_that_is_created_by_its_first_write(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    made = {
        "hoodie.table.name": "t",
        "hoodie.write.table.version": "6",
        "hoodie.datasource.write.recordkey.field": "id",
        **KINDS,
        **TIMES,
    }
    options = resolve([("test", made)])
    wanted = WriteRequest(
        base_path=str(tmp_path / "t"),
        options=options,
        operation=WriteOperation.UPSERT,
        input=(str(tmp_path / "rows.parquet"),),
    )
    for _ in range(2):
        writing.write_files(wanted)
    assert paths(tmp_path / "t") == {"x/20231114", "y/20231114"}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("prefix", [TIME, OLD])
def test_options_of_times(version: int, prefix: str, tmp_path: Path) -> None:
    """Those that the table lacks are those of the write, in each of their names; those that it has stay."""
    create(
        tmp_path,
        version,
        partition_by="ts",
        options={**TIMES, "hoodie.datasource.write.keygenerator.type": "TIMESTAMP"},
    )
    table = change(tmp_path, hoodie__keygen__timebased__timestamp__type=None)
    with pytest.raises(
        ConfigError, match=r"neither the table nor the write has hoodie.keygen.timebased.timestamp.type"
    ):
        table.insert(ROWS)
    given = {prefix + "timestamp.type": "EPOCHMILLISECONDS", prefix + "timezone": "GMT+8"}
    table.insert(ROWS, options=given)
    assert paths(tmp_path) == {"20231115"}
    # The newer name counts more.
    table.insert_overwrite_table(ROWS, options={**given, TIME + "timezone": "UTC"})
    assert paths(tmp_path) == {"20231114"}
    with pytest.raises(
        ConfigError, match=r"output.dateformat=yyyy \(.*\) does not fit .* hoodie.keygen.timebased.output.d"
    ):
        table.insert(ROWS, options={**given, prefix + "output.dateformat": "yyyy"})
    table.insert(ROWS, options={**given, TIME + "timezone": "UTC", prefix + "output.dateformat": "yyyyMMdd"})
    assert paths(tmp_path) == {"20231114"}


@pytest.mark.parametrize(
    ("stored", "given", "fits"),
    [
        ("timezone", "output.timezone", False),
        ("output.timezone", "timezone", False),
        ("input.timezone", "timezone", False),
        ("input.timezone", "output.timezone", True),
    ],
)
def test_zones_that_stand_for_others(stored: str, given: str, fits: bool, tmp_path: Path) -> None:
    options = {**TIMES, TIME + stored: "UTC", "hoodie.datasource.write.keygenerator.type": "TIMESTAMP"}
    table = create(tmp_path, 9, partition_by="ts", options=options, engine="local")
    if fits:
        table.insert(ROWS, options={TIME + given: "GMT+8"})
        assert paths(tmp_path) == {"20231115"}
        return
    message = rf"{TIME}{given}=GMT\+8 \(.*\) does not fit the table, which has {TIME}{stored}=UTC"
    with pytest.raises(ConfigError, match=message):
        table.insert(ROWS, options={TIME + given: "GMT+8"})
    table.insert(ROWS, options={TIME + given: "UTC"})
    assert paths(tmp_path) == {"20231114"}


def test_a_table_that_names_no_key_generator(tmp_path: Path) -> None:
    create(tmp_path, 6, partition_by="d", options=None)
    table = change(tmp_path, hoodie__table__keygenerator__class=None)
    complex_keys = {"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator"}
    table.insert(ROWS, options={**complex_keys, "hoodie.table.name": "t"})
    table.insert(ROWS.slice(0, 1).set_column(0, "id", [["c"]]))
    assert both_views(tmp_path)[0].column("_hoodie_record_key").to_pylist() == ["a", "b", "c"]
