"""Plans cross both ways: real Hudi executes ours, and we execute what real Hudi scheduled."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hudi_services.options import clustering_keys as keys
from hudi_services.options import file_keys

from . import layout, ours
from .conftest import Tables
from .mdt_check import check_metadata
from .peer import Peer
from .pristine import ALL, Pristine
from .reading import Reading


# Hudi 1.0.2 cannot cluster url-encoded partitions itself: "File .../city= does not exist".
@pytest.mark.cases(lambda recipe, release: (recipe, release) != ("paths", "1.0.2"))
@pytest.mark.parametrize(
    ("recipe", "sort"), [("plain", ("name", "ts")), pytest.param("paths", (), marks=pytest.mark.deep)]
)
def test_hudi_executes_our_plan(recipe: str, sort: tuple[str, ...], peer: Peer, known: Pristine, table: Tables) -> None:
    path, before = table(recipe), known.reading(recipe)
    partitions = len(known.live_files(recipe, path))
    instant = ours.schedule(path, sort=sort)
    (shown,) = peer.sql(f"call show_clustering(path => '{path}')")
    assert shown["timestamp"] == instant
    peer.cluster(path, "execute", instants=[instant])
    _is_clustered(peer, path, before, partitions, sort)


@pytest.mark.releases(*ALL)
@pytest.mark.deep("0.15.0-bulk", "1.0.2-bulk", "1.0.2-plain", "1.2.0-bulk")
@pytest.mark.parametrize(("recipe", "sort"), [("plain", ("name", "ts")), ("bulk", ())])
def test_we_execute_the_plan_of_hudi(
    recipe: str, sort: tuple[str, ...], peer: Peer, known: Pristine, table: Tables
) -> None:
    """With Spark and with processes, as an operator runs it: sorted, and copied."""
    path, before = table(recipe), known.reading(recipe)
    partitions = len(known.live_files(recipe, path))
    peer.cluster(path, "schedule", order=",".join(sort) or None)
    (instant,) = layout.pending(path)
    execute = ours.run_process if peer.version == "0.15.0" else ours.run_local
    assert execute("execute", path).ok().report["instant"] == instant
    _is_clustered(peer, path, before, partitions, sort)
    (shown,) = peer.sql(f"call show_clustering(path => '{path}')")
    assert shown["state"] == "COMPLETED"


@pytest.mark.releases("1.2.0")
@pytest.mark.deep
@pytest.mark.parametrize("sort", [(), ("name", "ts")])
def test_plans_for_copying_cross_both_ways(sort: tuple[str, ...], peer: Peer, known: Pristine, tmp_path: Path) -> None:
    """Hudi's class copies what is not sorted, and sorts where there are sort columns; so do we, by a plan of either."""
    # Row groups of these small tables are copied when they are about as large as the wanted ones.
    copying = {keys.EXECUTION_STRATEGY_CLASS.key: keys.COPY_EXECUTIONS[0], file_keys.PARQUET_BLOCK_BYTES.key: "8192"}
    theirs, mine = (shutil.copytree(known.table("plain"), tmp_path / name) for name in ("theirs", "mine"))
    before, partitions = known.reading("plain"), len(known.live_files("plain", theirs))

    peer.cluster(theirs, "schedule", order=",".join(sort) or None, options=copying)
    done = ours.execute(theirs, options=copying).report
    assert done["decoded"] == ({"sorted": done["groups"]} if sort else {})
    assert any("copies files only without sort columns" in warning for warning in done["warnings"]) == bool(sort)
    _is_clustered(peer, theirs, before, partitions, sort)

    peer.cluster(mine, "execute", instants=[ours.schedule(mine, sort=sort, options=copying)], options=copying)
    files = [file for some in layout.live_files(peer, mine).values() for file in some]
    assert {b"original.created.by" in pq.read_metadata(file).metadata for file in files} == {not sort}
    _is_clustered(peer, mine, before, partitions, sort)


def _is_clustered(peer: Peer, path: Path, before: Reading, partitions: int, sort: tuple[str, ...]) -> None:
    """The same rows, in one file per partition, and nothing left to do."""
    assert layout.pending(path) == []
    assert before.differences(Reading.of(peer, path)) == []
    files = [f for one in layout.live_files(peer, path).values() for f in one]
    assert len(files) == partitions
    assert not sort or all(layout.is_sorted(f, sort) for f in files)
    assert check_metadata(peer, path) == []
