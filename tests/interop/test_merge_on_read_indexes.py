"""The metadata table of merge-on-read tables after our repairs and index builds: real Hudi reads the same rows with it,
with data skipping and without, and writes on."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ..unit.histories import MadeHistory
from ..unit.test_merge_on_read_indexes import logged, wrong_keys, wrong_listing, wrong_statistics
from . import ours
from .peer import Peer
from .reading import METADATA_OFF, METADATA_ON
from .test_merge_on_read import keyed, texts

_SKIPPING = {**METADATA_ON, "hoodie.enable.data.skipping": "true"}
_NOT_SKIPPING = {**METADATA_ON, "hoodie.enable.data.skipping": "false"}
_QUERIES = (None, "ts = 50")


def readings(peer: Peer, path: Path) -> dict[str | None, dict[str, dict[str, Any]]]:
    """The rows of each query, by key, each key once: the same by all three ways."""
    found = {}
    for where in _QUERIES:
        found[where] = keyed(peer.rows(path, METADATA_OFF, where=where))
        for options in (_SKIPPING, _NOT_SKIPPING):
            assert keyed(peer.rows(path, options, where=where)) == found[where], (where, options)
    return found


def is_true(path: Path) -> None:
    run = ours.run("validate", path)
    assert (run.code, run.report["tables"]["unsure"]) == (0, []), run.report["tables"]


def goes_on(peer: Peer, path: Path) -> None:
    """Updates in log files, deletes, keys that come back, new keys; each key once, and every index true."""
    rows = peer.rows(path, METADATA_OFF).sort_by("id")
    ids = rows["id"].to_pylist()
    newer = with_ts(rows.slice(0, 4), 1000)
    peer.upsert(path, pa.concat_tables([newer, with_ids(newer.slice(0, 2), ["new-1", "new-2"])]))
    peer.delete(path, rows.slice(2, 1))
    found = readings(peer, path)
    assert found[None].keys() == ({*ids, "new-1", "new-2"} - {ids[2]})
    assert [row["ts"] for row in found[None].values()].count("1000") == newer.num_rows + 1
    is_true(path)


def with_ts(rows: pa.Table, ts: int) -> pa.Table:
    column = rows.column_names.index("ts")
    return rows.set_column(column, rows.schema.field("ts"), pa.array([ts] * rows.num_rows, pa.int64()))


def with_ids(rows: pa.Table, ids: list[str]) -> pa.Table:
    return rows.set_column(rows.column_names.index("id"), rows.schema.field("id"), pa.array(ids))


@pytest.mark.deep
def test_what_is_repaired_is_right_for_hudi(peer: Peer, tmp_path: Path) -> None:
    made = MadeHistory(peer.version, "indexed", tmp_path)
    path, before = made.path, made.steps[-1].rows
    assert before is not None
    logs = logged(path).log_files
    for wrong in (wrong_statistics, wrong_keys, wrong_listing):
        wrong(path, logs)
    assert ours.run("validate", path).code == 5
    ours.run("validate", path, "--apply").ok()
    is_true(path)
    assert readings(peer, path)[None] == texts(before)
    # Updates alone: without a log file of deletes, keys would be there twice.
    (path / logs[1].path).unlink()
    ours.run("validate", path, "--apply").ok()
    goes_on(peer, path)


@pytest.mark.deep
def test_rows_that_hudi_hides_while_a_compaction_is_pending(peer: Peer, tmp_path: Path) -> None:
    """1.0.2 takes the statistics of the newest log files for those of the partition."""
    path = MadeHistory(peer.version, "listed_pending", tmp_path).path
    counts = {peer.rows(path, one, where="ts = 50").num_rows for one in (METADATA_OFF, METADATA_ON)}
    assert counts == ({0, 2} if peer.version == "1.0.2" else {2})
    run = ours.run("validate", path, "--apply")
    assert run.code == 0
    readings(peer, path)
    is_true(path)


@pytest.mark.deep
def test_hudi_goes_on_with_an_index_that_we_built(peer: Peer, tmp_path: Path) -> None:
    # 1.0.2 cannot read the other table: there an ordering value follows a delete that has none.
    name = "indexed" if peer.version == "1.0.2" else "listed_log_only"
    path = MadeHistory(peer.version, name, tmp_path).path
    without_index(path)
    ours.run("index-bootstrap", path).ok()
    is_true(path)
    files = {row["_hoodie_record_key"]: row["_hoodie_file_name"] for row in peer.rows(path, METADATA_OFF).to_pylist()}
    keys = list(files)
    located = peer.record_locations(path, [*keys, "key-23"])
    assert located.keys() == set(keys) and all(files[key].startswith(one[1]) for key, one in located.items())
    (tmp_path / "keys").write_text("\n".join([*keys, "key-23"]))
    looked = ours.run("index-lookup", path, "--keys-file", str(tmp_path / "keys")).ok().report["tables"]["locations"]
    assert {row["key"]: row["file_id"] for row in looked} == {key: one[1] for key, one in located.items()}
    goes_on(peer, path)


def without_index(path: Path) -> None:
    """Drop the record index, as Hudi does."""
    properties = path / ".hoodie/hoodie.properties"
    properties.write_text(properties.read_text().replace(",record_index", ""))
    shutil.rmtree(path / ".hoodie/metadata/record_index", ignore_errors=True)
