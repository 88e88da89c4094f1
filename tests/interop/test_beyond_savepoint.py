"""hoodie.archive.beyond.savepoint: some rows are hidden from Hudi and from us; their files are not touched."""

from pathlib import Path

import pytest

from ..unit.tables import listed_view, open_local, rows
from . import layout, ours
from .conftest import Tables
from .peer import Peer
from .pristine import Pristine
from .reading import METADATA_OFF, METADATA_ON


def _seen(peer: Peer, path: Path) -> set[int]:
    """How many rows Hudi and we see, with the metadata table and without."""
    hudi = [peer.rows(path, options) for options in (METADATA_ON, METADATA_OFF)]
    return {one.num_rows for one in hudi} | _seen_by_us(path)


def _seen_by_us(path: Path) -> set[int]:
    table = open_local(path)
    return {rows(table, view).num_rows for view in (table.view, listed_view(table))}


@pytest.mark.deep
def test_we_see_what_hudi_sees(peer: Peer, known: Pristine, table: Tables) -> None:
    path, found = table("beyond"), known.rows("beyond")
    seen = found.num_rows
    assert _seen_by_us(path) == {seen}
    # Each commit wrote ten rows, of which the last are seen.
    hidden = max(map(int, found["id"].to_pylist())) // 10 + 1 - seen // 10
    (held,) = [i.requested for i in layout.completed(path) if i.action == "savepoint"]
    assert hidden > 0 and open_local(path).timeline.first_ts() == held

    files = {file.name for file in path.glob("p/*.parquet")}
    run = ours.run("validate", path).ok()
    assert run.report["tables"]["differences"] == []
    assert sum(row["metadata_partition"] == "files" for row in run.report["tables"]["unsure"]) == hidden
    for command, *flags in (("clean",), ("orphan-files", "--apply", "--min-age", "0")):
        assert ours.run(command, path, *flags, options={"hoodie.clean.commits.retained": "1"}).code == 0
    ours.cluster(path)
    assert files <= {file.name for file in path.glob("p/*.parquet")}
    assert _seen(peer, path) == {seen}
