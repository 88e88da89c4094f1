"""Curves over columns of many types, plan strategies and dry runs on tables of real Hudi."""

from pathlib import Path

import pytest

from . import layout, ours
from .conftest import Tables
from .mdt_check import check_metadata
from .peer import Peer
from .pristine import Pristine
from .reading import Reading

_MIXED = ("text", "dec18", "at", "flag", "num")


@pytest.mark.deep("0.15.0", "1.0.2")
@pytest.mark.parametrize("curve", ["HILBERT", pytest.param("ZORDER", marks=pytest.mark.deep)])
def test_a_curve_over_columns_of_many_types(curve: str, peer: Peer, known: Pristine, table: Tables) -> None:
    """Texts, decimals, times, booleans and numbers, all with nulls; the same rows for every reader."""
    path, before = table("types_row"), known.reading("types_row")
    ours.schedule(path, sort=_MIXED, options={"hoodie.layout.optimize.strategy": curve})
    report = ours.execute(path).report
    assert report["rows"] == {"in": before.hudi.num_rows, "out": before.hudi.num_rows}
    assert {row["column"] for row in report["tables"]["skipping"]} <= set(_MIXED)
    assert before.differences(Reading.of(peer, path)) == []
    assert check_metadata(peer, path) == []


@pytest.mark.deep("0.15.0", "1.2.0")
def test_hudi_executes_our_plan_of_a_curve(peer: Peer, known: Pristine, table: Tables) -> None:
    """By its own options: it does not look for the layout in a plan, and is not disturbed by it."""
    path, before = table("plain"), known.reading("plain")
    instant = ours.schedule(path, sort=("name", "ts"), options={"hoodie.layout.optimize.strategy": "HILBERT"})
    peer.cluster(path, "execute", instants=[instant])
    assert layout.pending(path) == []
    assert before.differences(Reading.of(peer, path)) == []


@pytest.mark.deep("0.15.0", "1.0.2")
@pytest.mark.parametrize(
    "strategy", ["overlap", *(pytest.param(name, marks=pytest.mark.deep) for name in ("key_range", "commit_time"))]
)
def test_hudi_executes_the_plans_of_our_strategies(strategy: str, peer: Peer, known: Pristine, table: Tables) -> None:
    path, before = table("plain"), known.reading("plain")
    options = {
        "hoodie.clustering.plan.strategy.class": strategy,
        "hudi.services.clustering.plan.columns": "name",
        "hudi.services.clustering.plan.order": "gain",
    }
    files = _files(path)
    dry = ours.run("schedule", path, "--dry-run", options=options).ok().report
    assert _files(path) == files
    slices = sum(map(len, layout.live_files(peer, path).values()))
    assert dry["files"]["in"] + sum(dry["left_out"].values()) == slices == len(dry["tables"]["file_slices"])
    instant = ours.schedule(path, options=options)
    peer.cluster(path, "execute", instants=[instant])
    assert before.differences(Reading.of(peer, path)) == []
    left = slices - dry["files"]["in"] + dry["files"]["out"]
    assert sum(map(len, layout.live_files(peer, path).values())) == left


def _files(path: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every file."""
    files = (file for file in path.rglob("*") if file.is_file())
    return {str(file): (file.stat().st_size, file.stat().st_mtime_ns) for file in files}
