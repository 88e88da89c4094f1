"""Bootstrapped tables in turns with Hudi: it reads the same rows while some base files have their columns elsewhere."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_services
from hudi_services.model import FileSlice

from ..unit.bootstrapped import Bootstrapped, Row, ordered, plain
from ..unit.tables import open_local
from .peer import Peer
from .pristine import ALL, MAKES_AS
from .reading import METADATA_OFF, METADATA_ON

_ONE_LOG = {"hoodie.compact.inline.max.delta.commits": "1"}
_CLUSTER = {"hoodie.clustering.plan.strategy.small.file.limit": "1000000000"}
_SELECTED = "hoodie.clustering.plan.strategy.partition.selected"


@pytest.fixture(params=["b_cow_hive", "b_mor_flat"])
def made(version: str, request: pytest.FixtureRequest) -> Iterator[Bootstrapped]:
    """The table where it was made: Hudi finds the sources by the URLs in its index alone."""
    release = MAKES_AS.get(version, version)
    folder = Path("/tmp/hudi_bootstrap") / f"{release}-{request.param}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    yield Bootstrapped(release, request.param, folder)
    shutil.rmtree(folder)


def rows_of(peer: Peer, path: Path) -> list[Row]:
    """The rows that Hudi reads, with the metadata table and without."""
    found = []
    for options in (METADATA_ON, METADATA_OFF):
        read = peer.rows(path, options)
        names = [name for name in read.column_names if not name.startswith("_hoodie_")]
        rows = read.select(names).to_pylist()
        found.append(ordered([{name: plain(value) for name, value in row.items()} for row in rows]))
    assert found[0] == found[1]
    return found[0]


@pytest.mark.deep
@pytest.mark.releases(*ALL)
def test_in_turns(peer: Peer, made: Bootstrapped) -> None:
    path, rows = made.path, {row["id"]: row for row in made.rows}
    table = hudi_services.open(path, engine="local", options=made.allowed)
    is_logs = table.config["hoodie.table.type"] == "MERGE_ON_READ"

    def check(where: str) -> None:
        wanted = ordered(list(rows.values()))
        assert made.seen() == wanted, where
        assert rows_of(peer, path) == wanted, where

    def new(ids: list[int], text: str, ts: int) -> pa.Table:
        found = [{**rows[one], "name": f"{text} {one}", "ts": ts} for one in ids]
        rows.update({row["id"]: row for row in found})
        read = peer.rows(path, METADATA_OFF)
        kinds = {field.name: field.type for field in read.schema if not field.name.startswith("_hoodie_")}
        old = read.filter(pc.is_in(read.column("id"), pa.array(ids, kinds["id"])))
        columns = {name: old.column(name) for name in kinds}
        columns["name"] = pa.array([f"{text} {one}" for one in old.column("id").to_pylist()])
        columns["ts"] = pa.array([ts] * old.num_rows, kinds["ts"])
        return pa.table(columns)

    check("made")
    if is_logs:
        assert table.compact(options=_ONE_LOG).ok
        check("our compaction")
    partition = sorted({one.partition for one in _slices(made)})[0]
    assert table.cluster(options={**_CLUSTER, _SELECTED: partition}).ok
    check("our clustering of one partition")
    bare = {one.partition for one in _slices(made) if one.base_instant == "00000000000001"}
    assert bare and partition not in bare
    elsewhere = [row["id"] for row in made.rows if row["region"] in {one.removeprefix("region=") for one in bare}]
    peer.upsert(path, new(elsewhere[:2], "theirs", 50))
    check("their upsert")
    assert table.upsert(new(elsewhere[1:4], "ours", 51), options={"hoodie.index.type": "SIMPLE"}).ok
    check("our upsert")
    # Hudi executes our plan, which names the source files.
    plan = table.plan_clustering(options=_CLUSTER)
    assert plan.ok and plan.report["instant"] is not None
    peer.cluster(path, "execute", instants=[plan.report["instant"]])
    check("their execution of our plan")
    assert table.validate().ok


def _slices(made: Bootstrapped) -> list[FileSlice]:
    return open_local(made.path).view.live_slices()
