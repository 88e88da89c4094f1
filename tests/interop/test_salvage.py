"""Real Hudi updates a group of a plan while we execute it: the group is left out, and Hudi goes on with the table."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_services.jobs import clustering
from hudi_services.runs.request import Mode

from ..unit.tables import request
from ..unit.test_salvage import Meanwhile
from . import layout, ours
from .conftest import Tables
from .mdt_check import check_metadata
from .peer import Peer
from .pristine import Pristine
from .readers import same_rows
from .reading import Reading, newer
from .test_conflicts import _ALLOW_UPDATES

_PARTITION, _KEY = "_hoodie_partition_path", "_hoodie_record_key"
_GOES_ON = {"hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "5", "hoodie.clean.automatic": "true",
            "hoodie.cleaner.commits.retained": "1", "hoodie.clean.commits.retained": "1"}  # fmt: skip


def updated(rows: pa.Table, some: pa.Table) -> pa.Table:
    """The values of `rows` after an upsert of `some`, by key; without Hudi's own columns."""
    others = rows.filter(pc.invert(pc.is_in(rows[_KEY], some[_KEY])))
    return values(pa.concat_tables([others, some.select(rows.column_names)]))


def values(rows: pa.Table) -> pa.Table:
    kept = [name for name in rows.column_names if not name.startswith("_hoodie") or name in (_KEY, _PARTITION)]
    # Hudi's upsert of a frame makes columns nullable.
    nullable = pa.table({name: rows[name] for name in kept})
    return nullable.combine_chunks().sort_by([(_PARTITION, "ascending"), (_KEY, "ascending")])


@pytest.mark.deep
@pytest.mark.parametrize("recipe", ["plain", "keyed"])
def test_a_group_that_hudi_updates_meanwhile(recipe: str, peer: Peer, known: Pristine, table: Tables) -> None:
    path, before = table(recipe), known.rows(recipe)
    ours.schedule(path)
    partition = before[_PARTITION][0].as_py()
    theirs = newer(before.filter(pc.equal(before[_PARTITION], partition)).slice(0, 3))
    wanted = updated(before, theirs)
    writer = Meanwhile(lambda: peer.upsert(path, theirs, **_ALLOW_UPDATES))
    done = clustering.execute(request(path, Mode.EXECUTE), engine=writer)
    (dropped,) = done.tables["dropped_groups"]
    assert (done.exit_code, dropped["partition"]) == (7, partition)
    assert done.groups is not None and done.groups > 1
    check(peer, path, wanted)
    # Hudi writes into a group that was left out, and into one that was clustered; cleans and archives follow.
    rows = peer.rows(path)
    for _ in range(6):
        some = newer(pa.concat_tables([rows.slice(0, 2), rows.slice(rows.num_rows - 2, 2)]))
        peer.upsert(path, some, **_GOES_ON)
        rows = peer.rows(path)
        wanted = updated(rows, some)
    check(peer, path, wanted)
    # What was left out is planned again.
    ours.cluster(path)
    check(peer, path, wanted)


def check(peer: Peer, path: Path, wanted: pa.Table) -> None:
    for reader, rows in Reading.of(peer, path).rows.items():
        assert same_rows(wanted, values(rows)) == [], reader
    # A clean of 0.15.0 leaves the statistics of what it deletes.
    left = "column stats of " if peer.version == "0.15.0" else "-"
    assert [text for text in check_metadata(peer, path) if not text.startswith(left)] == []
    assert ours.run("validate", path).ok().code == 0
    assert layout.pending(path) == []
