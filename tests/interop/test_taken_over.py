"""A writer of Hudi with inline clustering executes every pending plan, also ours, while our attempt is at work."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_services.errors import ConflictError, JobLost, NothingToDo
from hudi_services.jobs import clustering
from hudi_services.runs.request import Mode

from ..unit.tables import open_local, request
from ..unit.test_salvage import Beside
from . import layout, ours
from .conftest import Tables
from .peer import Peer, PeerError
from .pristine import Pristine
from .reading import newer
from .test_publish_late import clustered, go_on
from .test_salvage import _PARTITION, check, values

# It executes what is pending, and plans nothing itself.
_INLINE = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1000"}


def strangers(rows: pa.Table) -> pa.Table:
    """Rows with new keys for one partition, which need no file group of a plan."""
    few = newer(rows.slice(0, 3))
    column, keys = few.column_names.index("id"), few["_hoodie_record_key"].to_pylist()
    ids = pa.array([f"new-{key}" for key in keys], few.schema.field("id").type)
    key = few.column_names.index("_hoodie_record_key")
    few = few.set_column(column, few.schema.field("id"), ids)
    return few.set_column(key, few.schema.field("_hoodie_record_key"), ids)


def data_files(path: Path, ts: str) -> set[str]:
    found = {str(file.relative_to(path)) for file in path.rglob(f"*_{ts}.parquet")}
    return {name for name in found if not name.startswith(".hoodie")}


def committed_files(path: Path, ts: str) -> set[str]:
    timeline = open_local(path).timeline
    (done,) = (one for one in timeline.completed_writes() if one.ts == ts)
    return {stat.path for stats in timeline.read_commit(done).stats.values() for stat in stats}


@pytest.mark.deep
@pytest.mark.releases("0.15.0", "1.2.0")
@pytest.mark.parametrize(
    "share",
    [pytest.param(0.0, marks=pytest.mark.deep), 0.5, pytest.param(1.0, marks=pytest.mark.deep)],
    ids=["before the tasks", "between", "after"],
)
def test_a_plan_that_hudi_executes_meanwhile(share: float, peer: Peer, known: Pristine, table: Tables) -> None:
    """Our tasks that write after Hudi has completed the plan leave no file: readers would take it for committed."""
    path, before = table("plain"), known.rows("plain")
    ts = ours.schedule(path)
    theirs = strangers(before)

    def take_over() -> None:
        peer.insert(path, theirs, **_INLINE)
        assert ts in {one.requested for one in layout.writes(path)}, "Hudi has not executed the plan"

    with pytest.raises((ConflictError, NothingToDo)):
        clustering.execute(request(path, Mode.EXECUTE), engine=Beside(take_over, share))
    assert data_files(path, ts) == committed_files(path, ts)
    wanted = values(pa.concat_tables([before, theirs.select(before.column_names)]))
    check(peer, path, wanted)
    wanted = go_on(peer, path, wanted, 3)
    check(peer, path, wanted)


@pytest.mark.thorough
@pytest.mark.releases("0.15.0", "1.2.0")
@pytest.mark.parametrize("share", [0.5, pytest.param(1.0, marks=pytest.mark.deep)], ids=["between", "after"])
def test_a_reserved_instant_that_hudi_tries_to_execute(
    share: float, peer: Peer, known: Pristine, table: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its job fails after its commit, as documented. Our run ends with a conflict, and leaves nothing behind."""
    path, before = table("plain"), known.rows("plain")
    theirs, failed = strangers(before), list[str]()
    monkeypatch.setattr("tests.interop.test_publish_late.Meanwhile", lambda act: Beside(act, share))

    def meet() -> None:
        try:
            peer.insert(path, theirs, **_INLINE)
        except PeerError as error:
            failed.append(str(error))

    with pytest.raises(ConflictError):
        clustered(path, meet, **{"hudi.services.publish.late": "reserved"})
    assert len(failed) == 1, "known: Hudi cannot execute a plan without groups"
    known_writes = {one.requested for one in layout.writes(path)}
    files = {file for file in path.rglob("*.parquet") if ".hoodie" not in file.relative_to(path).parts}
    assert {file.stem.rpartition("_")[2] for file in files} <= known_writes
    wanted = values(pa.concat_tables([before, theirs.select(before.column_names)]))
    check(peer, path, wanted)
    # The next batch of the same writer succeeds, and so does our next run.
    some = strangers(newer(before.slice(10, 3)))
    peer.insert(path, some, **_INLINE)
    wanted = values(pa.concat_tables([wanted, values(some)]))
    check(peer, path, wanted)
    assert clustered(path).exit_code == 0
    check(peer, path, wanted)
    assert _PARTITION in wanted.column_names


@pytest.mark.thorough
@pytest.mark.releases("0.15.0", "1.2.0")
def test_staged_files_are_nothing_to_hudi(peer: Peer, known: Pristine, table: Tables) -> None:
    """A writer of Hudi that clusters sees no plan: neither of the two fails."""
    path, before = table("plain"), known.rows("plain")
    theirs = strangers(before)
    done = clustered(path, lambda: peer.insert(path, theirs, **_INLINE))
    assert done.tables["publication"][0]["way"] == "staged" and done.exit_code in (0, 7)
    wanted = values(pa.concat_tables([before, theirs.select(before.column_names)]))
    check(peer, path, wanted)
    some = strangers(newer(before.slice(10, 3)))
    peer.insert(path, some, **_INLINE)
    check(peer, path, values(pa.concat_tables([wanted, values(some)])))


@pytest.mark.thorough
@pytest.mark.releases("0.15.0", "1.2.0")
@pytest.mark.parametrize("share", [pytest.param(0.0, marks=pytest.mark.deep), 0.5], ids=["before the tasks", "between"])
def test_our_attempt_fails_after_hudi_has_executed_the_plan(
    share: float, peer: Peer, known: Pristine, table: Tables
) -> None:
    """Its driver does not know the files of its tasks yet: they go all the same."""
    path, before = table("plain"), known.rows("plain")
    ts = ours.schedule(path)
    theirs = strangers(before)

    class Fails(Beside):
        def map(self, function: Any, tasks: Sequence[Any], what: str, progress: Any) -> Any:
            found = super().map(function, tasks, what, progress)
            if "rewrite" in what:
                raise JobLost("Spark is lost")
            return found

    with pytest.raises(JobLost):
        wanted = request(path, Mode.EXECUTE)
        clustering.execute(wanted, engine=Fails(lambda: peer.insert(path, theirs, **_INLINE), share))
    assert data_files(path, ts) == committed_files(path, ts)
    check(peer, path, values(pa.concat_tables([before, theirs.select(before.column_names)])))
