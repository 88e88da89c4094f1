"""New rows get keys in the form that the rows of the table have, also where a value looks like a key."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_services
from hudi_services.errors import UnsupportedTable
from hudi_services.keygen.key_maker import KeyMaker
from hudi_services.keygen.key_texts import UTC
from hudi_services.snapshot import Snapshot
from hudi_services.versions import VERSIONS
from hudi_services.writing import stored_key_forms as known_keys
from hudi_services.writing.writer_schema import WriterSchema

from . import histories
from .tables import RELEASES, merged_rows, open_local

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")


def create(path: Path, key: str, version: int, kind: str = "COPY_ON_WRITE") -> hudi_services.Table:
    """By two partition fields, so that the key generator is the complex one."""
    return hudi_services.create(
        path,
        name="books",
        record_key=key,
        partition_by="d,e",
        ordering="ts",
        table_version=version,
        table_type=kind,
        engine="local",
    )


def books(*numbers: str, ts: int = 1) -> pa.Table:
    count = len(numbers)
    return pa.table({"urn": numbers, "d": ["d"] * count, "e": ["e"] * count, "ts": [ts] * count})


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", VERSIONS)
def test_values_that_begin_with_the_name_of_their_field(version: int, kind: str, tmp_path: Path) -> None:
    table = create(tmp_path, "urn", version, kind)
    table.upsert(books("urn:isbn:1", "urn:isbn:2"))
    again = table.upsert(books("urn:isbn:1", "urn:isbn:3", ts=2)).tables
    counted = [*again["written"].to_pylist(), *(again["appended"].to_pylist() if "appended" in again else [])]
    assert sum(one["updates"] for one in counted) == 1
    table.delete(books("urn:isbn:2"))
    found = merged_rows(tmp_path)
    prefix = "urn:" if version == 9 else ""
    assert found.column("_hoodie_record_key").to_pylist() == [f"{prefix}urn:isbn:1", f"{prefix}urn:isbn:3"]
    assert found.column("ts").to_pylist() == [2, 2]


def made(table: Snapshot, fields: str, has_meta: bool = True) -> KeyMaker:
    """The keys of a table as if the complex key generator had made them of these fields."""
    raw = {"hoodie.table.keygenerator.type": "COMPLEX", "hoodie.table.recordkey.fields": fields}
    config = replace(table.config, raw={**table.config.raw, **raw})
    schema = table.schema
    assert schema is not None
    return known_keys.key_maker(table, config, WriterSchema(schema.without_meta(), has_meta), UTC)


@pytest.mark.parametrize("release", RELEASES)
def test_a_table_of_log_files_alone(release: str, tmp_path: Path) -> None:
    table = open_local(histories.MadeHistory(release, "listed_log_only", tmp_path).path)
    assert all(one.base_file is None for one in table.view.live_slices())
    assert made(table, "id").form.is_named is False


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("version", "said", "key"),
    [(6, "false", "urn:a"), (8, "false", "urn:a"), (8, "true", "a"), (8, "", "a"), (9, "true", "urn:a")],
)
def test_the_form_that_a_write_names(version: int, said: str, key: str, tmp_path: Path) -> None:
    """hoodie.write.complex.keygen.new.encoding, which Hudi from 1.1 on reads for tables of versions 6 and 8."""
    table = create(tmp_path, "urn", version)
    options = {"hoodie.write.complex.keygen.new.encoding": said} if said else {}
    table.upsert(books("a"), options=options)
    assert merged_rows(tmp_path).column("_hoodie_record_key").to_pylist() == [key]
    # Rows that are there count more: a key would be there twice.
    other = {"hoodie.write.complex.keygen.new.encoding": "true" if key != "a" else "false"}
    table.upsert(books("a", ts=2), options=other)
    assert merged_rows(tmp_path).column("_hoodie_record_key").to_pylist() == [key]


def test_rows_that_do_not_show_the_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create(tmp_path, "urn", 6).upsert(books("a").append_column("other", [["x"]]))
    with pytest.raises(UnsupportedTable, match="the record keys of the table, as 'a', do not show in which form") as e:
        made(open_local(tmp_path), "other")
    assert "Apache Hudi" in e.value.hint and "timeZone" not in e.value.hint
    # Rows of other files decide, as long as so many are looked at.
    day = pa.table({"urn": ["b"], "d": ["later"], "e": ["e"], "ts": [1], "other": ["b"]})
    hudi_services.open(tmp_path, engine="local").upsert(day)
    assert made(open_local(tmp_path), "other").form.is_named is False
    monkeypatch.setattr(known_keys, "_SLICES", 1)
    with pytest.raises(UnsupportedTable, match="do not show"):
        made(open_local(tmp_path), "other")
    # No key is stored without meta fields.
    assert made(open_local(tmp_path), "other", has_meta=False).form.is_named is False


def test_a_table_whose_rows_are_all_deleted(tmp_path: Path) -> None:
    """It has base files without rows: the form is that of the release again."""
    table = create(tmp_path, "urn", 8)
    table.upsert(books("urn:1"))
    table.delete(books("urn:1"))
    assert table.upsert(books("urn:1")).tables["written"].to_pylist()[0]["inserts"] == 1


def test_times_on_another_clock(tmp_path: Path) -> None:
    """Keys with the texts of times: the clock must be that of the other writers, or rows would be there twice."""
    moment = pa.array([1_704_164_645_000_000], pa.timestamp("us", "UTC"))
    rows = pa.table({"at": moment, "d": ["d"], "e": ["e"], "ts": [1], "text": ["2024-01-02 04:04:05.0"]})
    hudi_services.create(
        tmp_path, name="t", record_key="text", partition_by="d", ordering="ts", table_version=6, engine="local"
    ).upsert(rows)
    raw = {"hoodie.table.recordkey.fields": "at"}
    table = open_local(tmp_path)
    schema = table.schema
    assert schema is not None
    writer = WriterSchema(schema.without_meta(), True)
    config = replace(table.config, raw={**table.config.raw, **raw})
    with pytest.raises(UnsupportedTable, match="do not show in which form they have the values of at") as e:
        known_keys.key_maker(table, config, writer, UTC)
    assert "spark.sql.session.timeZone" in e.value.hint
    berlin = known_keys.Zone.parse("Europe/Berlin")
    found = known_keys.key_maker(table, config, writer, berlin)
    assert found.record_keys(rows).to_pylist() == ["2024-01-02 04:04:05.0"]
