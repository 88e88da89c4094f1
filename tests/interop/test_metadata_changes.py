"""Right after Hudi dropped, built or renamed partitions of the metadata table, all commands work, and Hudi goes on."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from . import ours
from .mdt_check import check_metadata
from .metadata_changes import CHANGES, COMPACT_AFTER, FEW_GROUPS, Maker, rows
from .peer import EACH_DELTA_COMMIT, Peer, table_properties
from .readers import same_rows
from .reading import METADATA_OFF, METADATA_ON

# Of these, updates go to log files, and are compacted.
_MERGED = {"9_to_6_and_a_write", "8_to_6"}

# Hudi leaves the files that are there without statistics of the new columns.
_INCOMPLETE = {"columns_change_9"}


@pytest.mark.deep
@pytest.mark.cases(lambda recipe, version: version in CHANGES[recipe].releases)
@pytest.mark.parametrize("recipe", CHANGES)
def test_all_commands_right_after_a_change(peer: Peer, recipe: str, tmp_path: Path) -> None:
    path = tmp_path / "table"
    kind = "MERGE_ON_READ" if recipe in _MERGED else "COPY_ON_WRITE"
    maker = Maker(peer, path, kind, {COMPACT_AFTER: "2", **FEW_GROUPS})
    CHANGES[recipe].make(maker)
    before = seen(peer, path)

    if recipe in _INCOMPLETE:
        assert ours.run("validate", path).code == 5
        assert ours.run("validate", path, "--apply").code == 0
    for command in (("validate",), ("recover",), ("clean", "--dry-run"), ("archive", "--dry-run")):
        done = ours.run(command[0], path, *command[1:])
        assert done.code == 0, (command, done.report, done.stderr)
    ours.schedule(path)
    clustered = ours.execute(path).report["instant"]
    dry = ours.run("rollback", path, "--instant", clustered, "--completed", "--dry-run")
    assert dry.code == 0, dry.stderr
    ours.run("undo", path, "--instant", clustered).ok()
    assert same_rows(before, seen(peer, path)) == []
    agrees(peer, path)

    changed = pa.concat_tables([rows(2, 4, ts=1_000), rows(5_000, 5_002)])
    pq.write_table(changed, tmp_path / "changed.parquet")
    ours.run("write", path, "--operation", "upsert", "--input", str(tmp_path / "changed.parquet")).ok()
    if recipe in _MERGED:
        ours.run("compact", path, "--mode", "scheduleAndExecute", options=EACH_DELTA_COMMIT).ok()
    assert ours.run("clean", path, options={"hoodie.clean.commits.retained": "1"}).code == 0
    assert ours.run("archive", path, options={"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4"}).code == 0
    after = seen(peer, path)
    assert after.num_rows == before.num_rows + 2
    agrees(peer, path)

    maker.update()
    assert seen(peer, path).num_rows == after.num_rows + 1
    agrees(peer, path)


def seen(peer: Peer, path: Path) -> pa.Table:
    """The rows, which Hudi sees alike with its metadata table and without."""
    known, listed = peer.rows(path, METADATA_ON), peer.rows(path, METADATA_OFF)
    assert same_rows(known, listed) == []
    return known


def agrees(peer: Peer, path: Path) -> None:
    """The metadata table has what is in storage, as Hudi reads it, and as `validate` does."""
    validated = ours.run("validate", path)
    assert validated.code == 0, (validated.report, validated.stderr)
    if table_properties(path)["hoodie.table.type"] == "COPY_ON_WRITE":
        assert check_metadata(peer, path) == []
