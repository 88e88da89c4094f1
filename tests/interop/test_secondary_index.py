"""A secondary index: true after our commits, on version 8, and used and kept by real Hudi afterwards.

Before 1.1 the writer must keep the nullability of every column, see the recipe.
"""

from pathlib import Path

import pyarrow as pa
import pytest

from . import layout, ours
from .conftest import Tables
from .mdt_check import check_metadata
from .peer import Peer, table_properties
from .pristine import Pristine
from .reading import METADATA_OFF, METADATA_ON, Reading, newer
from .test_rollback import DEAD, fail_a_write

pytestmark = [pytest.mark.deep, pytest.mark.releases("1.0.2")]
_COMPACT = {"hoodie.metadata.compact.max.delta.commits": "1"}
_PRUNED = {**METADATA_ON, "hoodie.enable.data.skipping": "true"}
_ASKED = ("name-16", "renamed", "nobody")


def _named(rows: pa.Table, name: str) -> pa.Table:
    """Later versions of rows, with another secondary key."""
    column = rows.column_names.index("name")
    return newer(rows).set_column(column, rows.schema.field("name"), pa.array([name] * rows.num_rows))


def _is_true(peer: Peer, path: Path) -> None:
    """The index as Hudi looks it up, and what Hudi finds by it: what it finds without."""
    assert "secondary_index_on_name" in table_properties(path)["hoodie.table.metadata.partitions"]
    assert check_metadata(peer, path) == []
    for name in _ASKED:
        found = peer.rows(path, _PRUNED, where=f"name = '{name}'")
        real = peer.rows(path, METADATA_OFF, where=f"name = '{name}'")
        assert sorted(found["id"].to_pylist()) == sorted(real["id"].to_pylist()), name


def test_our_commits_keep_it(peer: Peer, known: Pristine, table: Tables) -> None:
    path, rows = table("keyed"), known.rows("keyed").sort_by("id")
    _is_true(peer, path)
    peer.upsert(path, _named(rows.slice(0, 9), "renamed"))
    peer.upsert(path, _named(newer(rows.slice(60, 4)), "again"))
    _is_true(peer, path)

    before = Reading.of(peer, path)
    ts = ours.cluster(path, sort=("name",))
    assert before.differences(Reading.of(peer, path)) == []
    _is_true(peer, path)
    ours.run("undo", path, "--instant", ts).ok()
    _is_true(peer, path)
    failed = fail_a_write(peer, path, _named(rows.slice(30, 20), "failed"))
    ours.run("rollback", path, "--instant", failed, options=DEAD).ok()
    assert before.differences(Reading.of(peer, path)) == []
    assert peer.secondary_keys(path, "secondary_index_on_name", ["failed"]) == []
    _is_true(peer, path)
    peer.upsert(path, _named(rows.slice(30, 20), "taken back"))
    done = layout.writes(path)[-1].requested
    ours.run("rollback", path, "--instant", done, "--completed").ok()
    assert before.differences(Reading.of(peer, path)) == []
    _is_true(peer, path)

    ours.cluster(path)
    _hudi_writes_on(peer, path)
    ours.cluster(path, sort=("qty",))
    ours.run("clean", path, options={"hoodie.clean.commits.retained": "1"}).ok()
    _is_true(peer, path)
    _hudi_writes_on(peer, path)


def _hudi_writes_on(peer: Peer, path: Path) -> None:
    """Another secondary key, deletes, keys that come back, and the index compacted in between."""
    rows = peer.rows(path).sort_by("id")
    peer.upsert(path, newer(rows.slice(0, 3)))
    peer.upsert(path, _named(rows.slice(100, 5), "renamed"))
    gone = rows.slice(20, 6)
    peer.delete(path, gone)
    _is_true(peer, path)
    peer.upsert(path, _named(gone.slice(0, 3), "again"), **_COMPACT)
    peer.upsert(path, _named(newer(rows.slice(100, 2)), "again"), **_COMPACT)
    assert list((path / ".hoodie/metadata/secondary_index_on_name").glob("*.hfile"))
    assert peer.rows(path).num_rows == rows.num_rows - 3
    _is_true(peer, path)
