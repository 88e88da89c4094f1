"""Real Hudi writes beside `--publish late`: no write is refused, none is lost, and none fails."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hudi_services.attempts.attempt import Attempt
from hudi_services.attempts.staged_attempt import StagedAttempt
from hudi_services.commit.liveness import is_reserved
from hudi_services.commit.transaction import Transaction
from hudi_services.jobs import clustering
from hudi_services.runs.report import Report
from hudi_services.runs.request import Mode

from ..unit.repairs import DEAD_AT_ONCE
from ..unit.tables import open_local, request
from ..unit.test_salvage import Meanwhile
from .conftest import Tables
from .peer import META_COLUMNS, Peer, write_options
from .pristine import Pristine
from .readers import same_rows
from .reading import Reading, newer
from .test_conflicts import _LOCK, _SLOW_UPSERT, Beside
from .test_salvage import _GOES_ON, _PARTITION, check, updated, values

_PATIENT = {"hoodie.write.lock.wait_time_ms": "300000", "hoodie.write.lock.wait_time_ms_between_retry": "100"}


def clustered(path: Path, act: Callable[[], object] = lambda: None, **options: str) -> Report:
    """Files are staged, because local storage renames, unless `options` say otherwise."""
    wanted = request(path, Mode.SCHEDULE_AND_EXECUTE, {**_PATIENT, **options}, publish_late=True)
    return clustering.schedule_and_execute(wanted, engine=Meanwhile(act))


def of_one_partition(rows: pa.Table, count: int = 3) -> pa.Table:
    return newer(rows.filter(pc.equal(rows[_PARTITION], rows[_PARTITION][0])).slice(0, count))


def go_on(peer: Peer, path: Path, wanted: pa.Table, times: int, **options: str) -> pa.Table:
    """Upserts into groups that were clustered and groups that were not; the rows then."""
    for _ in range(times):
        rows = peer.rows(path)
        some = newer(pa.concat_tables([rows.slice(0, 2), rows.slice(rows.num_rows - 2, 2)]))
        peer.upsert(path, some, **{**_GOES_ON, **options})
        wanted = updated(rows, some)
    return wanted


_RESERVED = {"hudi.services.publish.late": "reserved"}
_ONE_WAY = pytest.mark.parametrize(
    "way", [{}, pytest.param(_RESERVED, marks=pytest.mark.deep)], ids=["staged", "reserved"]
)


@pytest.mark.deep
@_ONE_WAY
@pytest.mark.parametrize("recipe", ["plain", pytest.param("keyed", marks=pytest.mark.deep)])
def test_a_write_that_comes_and_goes(
    way: dict[str, str], recipe: str, peer: Peer, known: Pristine, table: Tables
) -> None:
    """It updates a group that is being rewritten: with its default strategy, which refuses groups of pending plans."""
    path, before = table(recipe), known.rows(recipe)
    theirs = of_one_partition(before)
    done = clustered(path, lambda: peer.upsert(path, theirs), **way)
    assert done.exit_code == 7 and len(done.tables["dropped_groups"]) == 1
    wanted = updated(before, theirs)
    check(peer, path, wanted)
    wanted = go_on(peer, path, wanted, 6)
    check(peer, path, wanted)
    # Nobody writes: everything that is left is clustered.
    assert clustered(path, **way).exit_code == 0
    check(peer, path, wanted)


@pytest.mark.thorough
@pytest.mark.releases("0.15.0", "1.2.0")
@pytest.mark.parametrize("way", [{}, pytest.param(_RESERVED, marks=pytest.mark.deep)], ids=["staged", "reserved"])
@pytest.mark.parametrize("lock", [{}, pytest.param(_LOCK, marks=pytest.mark.deep)], ids=["no lock", "lock"])
def test_a_write_that_ends_later(
    way: dict[str, str], lock: dict[str, str], peer: Peer, known: Pristine, table: Tables, tmp_path: Path
) -> None:
    """It begins before the clustering is published. We wait for it; its group is left out, and it does not fail."""
    path, before = table("plain"), known.rows("plain")
    theirs, go, source = of_one_partition(before), tmp_path / "go", tmp_path / "rows.parquet"
    pq.write_table(theirs.drop_columns([name for name in META_COLUMNS if name in theirs.column_names]), source)
    options = write_options(path) | {"hoodie.datasource.write.operation": "upsert"} | lock
    writers: list[Beside] = []

    def begin() -> None:
        arguments = {"go": str(go), "rows": str(source), "options": options, "path": str(path)}
        writers.append(Beside(path, lambda: peer.eval(_SLOW_UPSERT, **arguments)))
        writers[0].wait(lambda: any("commit.requested" in name for name in writers[0].new()))
        threading.Timer(2, go.touch).start()

    start = time.monotonic()
    done = clustered(path, begin, **{**lock, **_PATIENT, **way})
    writers[0].end()
    assert time.monotonic() - start > 2
    assert done.exit_code == 7 and len(done.tables["dropped_groups"]) == 1
    wanted = updated(before, theirs)
    check(peer, path, wanted)
    wanted = go_on(peer, path, wanted, 2, **lock)
    check(peer, path, wanted)


class Killed(BaseException):
    """As SIGKILL: nothing is cleaned up after it."""


@pytest.mark.deep
@_ONE_WAY
def test_killed_before_the_plan_is_shown(
    way: dict[str, str], peer: Peer, known: Pristine, table: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hudi reads, writes and cleans beside what is left; the next run takes it back and clusters."""
    path, before = table("plain"), known.rows("plain")

    def kill() -> None:
        raise Killed

    with monkeypatch.context() as patched:
        for kind in (Attempt, StagedAttempt, Transaction):
            patched.setattr(kind, "__exit__", lambda *_: None)
        with pytest.raises(Killed):
            clustered(path, kill, **way)
    pending = open_local(path).timeline.pending_clusterings()
    assert [is_reserved(open_local(path), one) for one in pending] == ([True] if way else [])
    (lease,) = (path / ".hoodie/.locks/hudi_services").glob("clustering-*.1.json")
    wanted = go_on(peer, path, before, 4)
    for rows in Reading.of(peer, path).rows.values():
        assert same_rows(wanted, values(rows)) == []
    # Its process seems to live for as long as its lease.
    lease.write_text(lease.read_text().replace('"validUntil": ', '"validUntil": -'))
    done = clustered(path, **DEAD_AT_ONCE, **{"hoodie.client.heartbeat.tolerable.misses": "0"}, **way)
    assert not list(path.glob(".hoodie/.hudi_services/staged-*"))
    assert done.exit_code == 0 and any("was taken back" in text for text in done.warnings)
    check(peer, path, wanted)
