"""hoodie.archive.beyond.savepoint: Hudi loses sight of rows, and so do we; but what may come back is not touched."""

from pathlib import Path

import pytest

from ..unit.tables import listed_view, open_local, rows
from . import ours
from .peer import WRITE_DEFAULTS, Peer
from .reading import METADATA_OFF, METADATA_ON

_OPTIONS = {
    **WRITE_DEFAULTS,
    "hoodie.table.name": "beyond",
    "hoodie.datasource.write.operation": "insert",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.archive.beyond.savepoint": "true",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.metadata.compact.max.delta.commits": "1",
}
_INSERT = """
frame = spark.range(first, first + 10, 1, 1).selectExpr("cast(id as string) id", "id ts", "'p' part")
frame.write.format("hudi").options(**options).mode("append").save(path)
"""


def _seen(peer: Peer, path: Path) -> set[int]:
    """How many rows Hudi and we see, with the metadata table and without."""
    table = open_local(path)
    hudi = [peer.rows(path, options) for options in (METADATA_ON, METADATA_OFF)]
    return {one.num_rows for one in (*hudi, rows(table, table.view), rows(table, listed_view(table)))}


@pytest.mark.deep("0.15.0", "1.0.2")
def test_we_see_what_hudi_sees(peer: Peer, tmp_path: Path) -> None:
    path, commits = tmp_path / "table", 0

    def insert() -> None:
        nonlocal commits
        peer.eval(_INSERT, first=10 * commits, options=_OPTIONS, path=str(path))
        commits += 1

    insert()
    held = open_local(path).timeline.completed_writes()[0].ts
    peer.procedure(path, "create_savepoint", f"commit_time => '{held}'")
    while len(open_local(path).timeline.completed_writes()) == commits:
        insert()
        assert commits < 12, "nothing is archived"
    (seen,) = _seen(peer, path)
    hidden = commits - seen // 10
    assert hidden > 0 and open_local(path).timeline.first_ts() == held

    files = {file.name for file in path.glob("p/*.parquet")}
    run = ours.run("validate", path).ok()
    assert run.report["tables"]["differences"] == []
    assert sum(row["metadata_partition"] == "files" for row in run.report["tables"]["unsure"]) == hidden
    for flags in ((), ("--garbage", "--apply", "--min-age", "0")):
        assert ours.run("clean", path, *flags, options={"hoodie.clean.commits.retained": "1"}).code == 0
    ours.schedule(path)
    ours.execute(path)
    assert files <= {file.name for file in path.glob("p/*.parquet")}
    assert _seen(peer, path) == {seen}
