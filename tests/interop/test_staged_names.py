"""Rows of staged files name the file as it was staged, with the instant at which the attempt began: Hudi's writers find
every row all the same, by SQL and by each index, and go on."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hudi_services.file_names import instant_in

from ..unit.tables import open_local
from .conftest import Tables
from .peer import Peer
from .pristine import Pristine
from .readers import same_rows
from .reading import newer
from .test_publish_late import clustered, go_on, of_one_partition
from .test_salvage import check, updated, values

_KEY, _NAME = "_hoodie_record_key", "_hoodie_file_name"


def _with_other_names(path: Path) -> int:
    """The number of live base files whose rows name another instant; every row has the file id right."""
    found = 0
    for one in open_local(path).view.live_slices():
        assert one.base_file is not None
        names = pq.ParquetFile(path / one.base_file.path).read([_NAME])[_NAME].unique().to_pylist()
        assert [name.rpartition("_")[0] for name in names] == [one.base_file.name.rpartition("_")[0]]
        found += instant_in(names[0]) != one.base_file.instant
    return found


@pytest.mark.deep
def test_every_release_goes_on(peer: Peer, known: Pristine, table: Tables) -> None:
    _goes_on("plain", peer, known, table)


@pytest.mark.deep
@pytest.mark.releases("0.15.0", "1.2.0")
def test_every_release_goes_on_with_indexes(peer: Peer, known: Pristine, table: Tables) -> None:
    """1.0.2 leaves old values in a secondary index after UPDATE and DELETE by SQL, whoever wrote the files."""
    _goes_on("keyed", peer, known, table)


def _goes_on(recipe: str, peer: Peer, known: Pristine, table: Tables) -> None:
    path, before = table(recipe), known.rows(recipe)
    # A write in another partition makes the time at which the attempt began an old one.
    partitions = before["_hoodie_partition_path"].unique().to_pylist()
    theirs = newer(before.filter(pc.equal(before["_hoodie_partition_path"], partitions[-1])).slice(0, 2))
    done = clustered(path, lambda: peer.upsert(path, theirs))
    assert done.exit_code in (0, 7)
    assert _with_other_names(path) > 0
    wanted = updated(before, theirs)
    check(peer, path, wanted)

    # Spark SQL finds the file group of a row by its `_hoodie_file_name`.
    column = "qty"
    keys = [wanted.filter(pc.equal(wanted["_hoodie_partition_path"], one))[_KEY][0].as_py() for one in partitions]
    peer.sql(f"create table staged using hudi location '{path}'")
    try:
        listed = ", ".join(f"'{key}'" for key in keys)
        peer.sql(f"update staged set {column} = -1 where {_KEY} in ({listed})")
        wanted = _set(wanted, keys, column, -1)
        assert same_rows(wanted, values(peer.rows(path))) == []
        first = wanted.filter(pc.equal(wanted["_hoodie_partition_path"], partitions[0]))
        gone, changed = first[_KEY][1].as_py(), first.slice(2, 1).to_pylist()[0]
        peer.sql(f"delete from staged where {_KEY} = '{gone}'")
        wanted = wanted.filter(pc.not_equal(wanted[_KEY], gone))
        assert same_rows(wanted, values(peer.rows(path))) == []
        source = f"select '{changed['id']}' as id, cast({changed['ts']} as bigint) as ts, '{changed['part']}' as part"
        peer.sql(
            f"merge into staged t using ({source}) s on t.id = s.id "
            f"when matched then update set t.{column} = -2, t.ts = s.ts"
        )
        wanted = _set(wanted, [changed[_KEY]], column, -2)
    finally:
        peer.sql("drop table staged")
    check(peer, path, wanted)

    indexes = ["BLOOM", "SIMPLE", "GLOBAL_BLOOM", "GLOBAL_SIMPLE", *(["RECORD_INDEX"] if recipe == "keyed" else [])]
    for index in indexes:
        clustered(path, lambda: peer.upsert(path, of_one_partition(peer.rows(path), 1)))
        rows = peer.rows(path)
        assert _with_other_names(path) > 0, index
        wanted = go_on(peer, path, values(rows), 1, **{"hoodie.index.type": index})
        assert same_rows(wanted, values(peer.rows(path))) == [], index
    check(peer, path, wanted)
    # Hudi's own clustering, and its cleans.
    peer.cluster(path)
    wanted = go_on(peer, path, wanted, 4)
    check(peer, path, wanted)


def _set(rows: pa.Table, keys: list[str], column: str, value: int) -> pa.Table:
    position = rows.column_names.index(column)
    chosen = pc.is_in(rows[_KEY], pa.array(keys))
    changed = pc.if_else(chosen, pa.scalar(value, rows[column].type), rows[column])
    return rows.set_column(position, column, changed)
