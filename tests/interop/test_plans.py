"""Plans cross both ways: real Hudi executes ours, and we execute what real Hudi scheduled."""

from pathlib import Path

import pytest

from . import layout, ours
from .conftest import Tables
from .mdt_check import check_metadata
from .peer import Peer
from .reading import Reading


# Hudi 1.0.2 cannot cluster url-encoded partitions itself: "File .../city= does not exist".
@pytest.mark.cases(lambda recipe, release: (recipe, release) != ("paths", "1.0.2"))
@pytest.mark.parametrize(("recipe", "sort"), [("plain", ("name", "ts")), ("paths", ())])
@pytest.mark.deep("1.0.2")
def test_hudi_executes_our_plan(recipe: str, sort: tuple[str, ...], peer: Peer, table: Tables) -> None:
    path = table(recipe)
    before, partitions = Reading.of(peer, path), len(layout.live_files(peer, path))
    instant = ours.schedule(path, sort=sort)
    (shown,) = peer.sql(f"call show_clustering(path => '{path}')")
    assert shown["timestamp"] == instant
    peer.cluster(path, "execute", instants=[instant])
    _is_clustered(peer, path, before, partitions, sort)


@pytest.mark.parametrize(("recipe", "sort"), [("plain", ("name", "ts")), ("bulk", ())])
@pytest.mark.deep("1.0.2")
def test_we_execute_the_plan_of_hudi(recipe: str, sort: tuple[str, ...], peer: Peer, table: Tables) -> None:
    path = table(recipe)
    before, partitions = Reading.of(peer, path), len(layout.live_files(peer, path))
    peer.cluster(path, "schedule", order=",".join(sort) or None)
    (instant,) = layout.pending(path)
    assert ours.execute(path).report["instant"] == instant
    _is_clustered(peer, path, before, partitions, sort)
    (shown,) = peer.sql(f"call show_clustering(path => '{path}')")
    assert shown["state"] == "COMPLETED"


def _is_clustered(peer: Peer, path: Path, before: Reading, partitions: int, sort: tuple[str, ...]) -> None:
    """The same rows, in one file per partition, and nothing left to do."""
    assert layout.pending(path) == []
    assert before.differences(Reading.of(peer, path)) == []
    files = [f for one in layout.live_files(peer, path).values() for f in one]
    assert len(files) == partitions
    assert not sort or all(layout.is_sorted(f, sort) for f in files)
    assert check_metadata(peer, path) == []
