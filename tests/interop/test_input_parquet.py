"""Parquet files of other programs: Hudi and we write the same file, each into a new table and into the other's."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_services
from hudi_services.jobs.writing import write_files
from hudi_services.options import resolve
from hudi_services.runs.request import WriteOperation, WriteRequest

from ..unit.tables import open_local
from .peer import META_COLUMNS, Peer
from .recipes import SMALL_FILTERS, WRITE_DEFAULTS

_FIXTURES = Path(__file__).parents[1] / "fixtures" / "parquet" / "input"
_WRITE = "hoodie.datasource.write."
_OPTIONS = {
    **WRITE_DEFAULTS,
    "hoodie.table.name": "rows",
    f"{_WRITE}recordkey.field": "id",
    f"{_WRITE}precombine.field": "id",
    f"{_WRITE}keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
}
_BY_HUDI = """
# With lists of two levels, its default, Hudi fails on null elements.
hadoop, old_lists = spark.sparkContext._jsc.hadoopConfiguration(), "parquet.avro.write-old-list-structure"
hadoop.set(old_lists, "false")
try:
    spark.read.parquet(file).write.format("hudi").options(**options).mode("append").save(path)
finally:
    hadoop.unset(old_lists)
"""
_REBASE = [f"spark.sql.parquet.datetimeRebaseModeIn{way}" for way in ("Read", "Write")]
_WITHOUT_LOCAL_TIMES = ("fastparquet-2026.9.0", "spark-3.5.9-legacy-America", "spark-3.5.9-legacy-micros-UTC")
"""Those that 0.15.0 and 1.0.2 take, too: they write no times without a zone."""
_QUICK = ("spark-3.5.9-legacy-micros-UTC", "parquet-java")
"""The files of the quick run, each on one release."""


@pytest.fixture
def gregorian(peer: Peer) -> Iterator[None]:
    """Without Spark's version in the footers of Hudi's files, Spark must be told how their old dates are counted."""
    change = "for key in keys:\n    spark.conf."
    peer.eval(f"{change}set(key, 'CORRECTED')", keys=_REBASE)
    yield
    peer.eval(f"{change}unset(key)", keys=_REBASE)


@pytest.mark.usefixtures("gregorian")
@pytest.mark.parametrize(
    "recipe",
    [
        one if one in _QUICK else pytest.param(one, marks=pytest.mark.deep)
        for one in (*_WITHOUT_LOCAL_TIMES, "spark-3.5.9", "parquet-java")
    ],
)
@pytest.mark.cases(lambda recipe, release: recipe in _WITHOUT_LOCAL_TIMES or release == "1.2.0")
def test_hudi_and_we_make_the_same_table_of_a_file(peer: Peer, recipe: str, tmp_path: Path) -> None:
    version = peer.table_version
    file, theirs, ours = _FIXTURES / f"{recipe}.parquet", tmp_path / "theirs", tmp_path / "ours"
    options = {**_OPTIONS, f"{_WRITE}operation": "upsert"}
    peer.eval(_BY_HUDI, file=str(file), options=options, path=str(theirs))
    hudi_services.create(ours, table_version=version.number, options=_OPTIONS, engine="local")
    _write(ours, file)
    rows, schema = _rows(peer, theirs), _schema(theirs)
    assert _rows(peer, ours).equals(rows) and _schema(ours) == schema
    assert _stored_types(ours) == _stored_types(theirs)
    # Each goes on from the other.
    _write(theirs, file)
    peer.eval(_BY_HUDI, file=str(file), options=options, path=str(ours))
    for path in (theirs, ours):
        assert _rows(peer, path).equals(rows) and _schema(path) == schema
        assert _stored_types(path) == _stored_types(theirs)


def _write(path: Path, file: Path) -> None:
    options = resolve([("test", {**SMALL_FILTERS, **WRITE_DEFAULTS})])
    wanted = WriteRequest(base_path=str(path), options=options, operation=WriteOperation.UPSERT, input=(str(file),))
    write_files(wanted)


def _rows(peer: Peer, path: Path) -> pa.Table:
    found = peer.rows(path).sort_by("id")
    assert found.num_rows == 2
    return found.drop_columns([name for name in META_COLUMNS if name in found.column_names]).combine_chunks()


def _schema(path: Path) -> Any:
    schema = open_local(path).schema
    assert schema is not None
    return [field for field in schema.avro["fields"] if not field["name"].startswith("_hoodie_")]


def _stored_types(path: Path) -> str:
    """The parquet types of the newest base file; parquet-avro annotates the entries of maps in the old way, too."""
    newest = max(path.glob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)
    return str(pq.ParquetFile(newest).schema).split("\n", 2)[2].replace("key_value (Map)", "key_value")
