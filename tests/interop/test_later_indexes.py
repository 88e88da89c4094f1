"""Instants that are older than an index, or the whole metadata table, are rolled back: Hudi finds every row once."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_services.stores import open_storage
from hudi_services.table_config import TableConfig

from . import layout, ours
from .conftest import Tables
from .mdt_check import check_metadata
from .peer import Peer
from .pristine import Pristine
from .reading import METADATA_ON, newer

INDEXES = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}
SKIPPING = {**METADATA_ON, "hoodie.enable.data.skipping": "true"}


def renamed(rows: pa.Table, prefix: str) -> pa.Table:
    ids = pa.array([f"{prefix}-{i}" for i in range(rows.num_rows)], rows.schema.field("id").type)
    return rows.set_column(rows.column_names.index("id"), rows.schema.field("id"), ids)


def each_row_once(peer: Peer, path: Path, before: pa.Table, options: Mapping[str, str]) -> None:
    """Hudi finds every key by the index, and updates of all rows go where the rows are."""
    count = before.num_rows
    for key in before["id"].to_pylist()[:3]:
        assert peer.rows(path, SKIPPING, where=f"id = '{key}'").num_rows == 1
    assert check_metadata(peer, path) == []
    peer.upsert(path, newer(before), **options)
    rows = peer.rows(path)
    assert (rows.num_rows, len(set(rows["id"].to_pylist()))) == (count, count)
    assert check_metadata(peer, path) == []


@pytest.mark.deep
def test_undo_after_hudi_built_the_metadata_table_anew(peer: Peer, table: Tables) -> None:
    path = table("plain")
    ts = ours.cluster(path, sort=("name",))
    storage = open_storage(str(path))
    TableConfig.load(storage).update(
        storage, {"hoodie.table.metadata.partitions": "", "hoodie.table.metadata.partitions.inflight": ""}
    )
    shutil.rmtree(path / ".hoodie/metadata")
    stats = {} if peer.version == "0.15.0" else {"hoodie.metadata.index.partition.stats.enable": "true"}
    more = {"hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "true", **stats, **INDEXES}
    peer.insert(path, renamed(peer.rows(path).slice(0, 5), "new"), **more)
    before = peer.rows(path)
    ours.run("undo", path, "--instant", ts).ok()
    assert not list(path.glob(f"*/*_{ts}.parquet"))
    assert ours.run("validate", path).code == 0
    each_row_once(peer, path, before, more)


@pytest.mark.deep
def test_rollback_of_an_overwrite_that_is_older_than_the_index(peer: Peer, known: Pristine, table: Tables) -> None:
    path, before = table("plain"), known.rows("plain")
    part = before.slice(0, 20).to_pylist()[0]["part"]
    some = before.filter(pc.equal(before["part"], part)).slice(0, 10)
    peer.insert_overwrite(path, renamed(some, "over"))
    ts = layout.writes(path)[-1].requested
    ours.run("index-bootstrap", path, "--file-group-count", "4").ok()
    ours.run("rollback", path, "--instant", ts, "--completed").ok()
    assert ours.run("validate", path).code == 0
    assert peer.rows(path).num_rows == before.num_rows
    each_row_once(peer, path, before, {})
