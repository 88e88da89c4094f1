"""`--publish late`: nobody sees the plan while rows are rewritten, and what writers change meanwhile is left out."""

import os
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_services.attempts.late_attempts import take_back_staged
from hudi_services.commit.settings import TransactionSettings
from hudi_services.commit.shown_plans import staged_attempts
from hudi_services.commit.times import Times
from hudi_services.engine import LocalEngine
from hudi_services.errors import ConfigError, ConflictError, LockBusy, NothingToDo, StorageError
from hudi_services.jobs import clustering, recover
from hudi_services.options import resolve
from hudi_services.runs.report import Report, RunState
from hudi_services.runs.request import Mode, RecoverRequest
from hudi_services.snapshot import Snapshot
from hudi_services.storage import Storage
from hudi_services.stores.local import LocalStorage
from hudi_services.timeline.instant import Action
from hudi_services.timeline.instant import State as InstantState

from .faulty_storage import FaultyStorage, Killed, killed_anywhere
from .other_writers import OtherWriters
from .repairs import DEAD_AT_ONCE, LOCK, both, hide_metadata
from .tables import RELEASES, open_local, unpack
from .tables import request as clustering_request
from .test_salvage import Meanwhile, rows

SOON = {"hoodie.write.lock.wait_time_ms": "400", "hoodie.write.lock.wait_time_ms_between_retry": "20"}


@pytest.fixture(params=["STAGED", "RESERVED"])
def way(request: pytest.FixtureRequest) -> str:
    """How the instant is got: see `late_plan`."""
    return str(request.param)


class Table:
    """A table of four groups of two files each; the hand-made writes are not in a metadata table."""

    def __init__(self, release: str, folder: Path, way: str, *, metadata: bool = False) -> None:
        self.path = unpack(release, folder)
        if not metadata:
            hide_metadata(self.path)
        sizes = [one.base_bytes for one in open_local(self.path).view.live_slices()]
        self.options = {"hoodie.clustering.plan.strategy.max.bytes.per.group": str(max(sizes) * 5 // 2), **SOON}
        self.options["hudi.services.publish.late"] = self.way = way
        self.rows = rows(self.path)
        self.slices = list(open_local(self.path).view.live_slices())
        others = OtherWriters(self.path)
        self.waits: list[str] = []
        """What runs said of their waits."""
        self.update, self.begin, self.end, self.made = others.update, others.begin, others.end, others.made

    def cluster(self, engine: LocalEngine | None = None, storage: Storage | None = None, **options: str) -> Report:
        wanted = clustering_request(self.path, Mode.SCHEDULE_AND_EXECUTE, self.options | options, publish_late=True)
        wanted = replace(wanted, on_wait=lambda _, what: self.waits.append(what))
        return clustering.schedule_and_execute(wanted, storage, engine or LocalEngine())

    def is_clean(self) -> bool:
        """Whether nothing of a clustering is left that is not committed, and nothing of one that is."""
        table = open_local(self.path)
        writes = table.timeline.completed_writes()
        known = {one.ts for one in writes}
        files = [file for file in self.path.rglob("*.parquet") if ".hoodie" not in file.parts]
        own = [*self.path.glob(".hoodie/.hudi_services/*-[0-9]*"), *self.path.glob(".hoodie/.temp/*")]
        left = [file for folder in own for file in folder.rglob("*") if file.is_file()]
        return (
            not left
            and not table.timeline.pending_clusterings()
            and {f.stem.rpartition("_")[2] for f in files} <= known
        )


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("lock", [{}, LOCK], ids=["no lock", "lock"])
def test_nobody_sees_the_plan(way: str, release: str, lock: dict[str, str], tmp_path: Path) -> None:
    table = Table(release, tmp_path, way)
    seen: list[int] = []

    def look() -> None:
        timeline = open_local(table.path).timeline
        seen.extend(len(timeline.read_plan(one).groups) for one in timeline.pending_clusterings())

    done = table.cluster(Meanwhile(look), **lock)
    assert (done.state, done.exit_code, seen) == (RunState.COMPLETED, 0, [] if way == "STAGED" else [0])
    (told,) = done.tables["publication"]
    assert told["way"] == way.lower() and float(str(told["pending_seconds"])) > 0
    timeline = open_local(table.path).timeline
    last = timeline.last_clustering()
    assert last is not None and last.is_completed and len(timeline.read_plan(last).groups) == done.groups == 4
    assert table.is_clean() and rows(table.path).equals(table.rows)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(2, 40))])
def test_what_writers_change_is_left_out(way: str, seed: int, tmp_path: Path) -> None:
    """With a lock, also beside writes in progress."""
    chance = random.Random(seed)
    table = Table(RELEASES[seed % len(RELEASES)], tmp_path, way)
    touched = {one.file_id: one for one in table.slices if chance.random() < 0.3}
    begun = {key for key in touched if chance.random() < 0.5}
    lock = LOCK if begun else {}

    def act() -> None:
        for key, one in touched.items():
            (table.begin if key in begun else table.update)(one)

    before = len(table.slices)
    try:
        done = table.cluster(Meanwhile(act), **lock)
    except ConflictError:
        assert len(touched) > 2
        left = before
    else:
        left = len(list(open_local(table.path).view.live_slices()))
        dropped = done.tables.get("dropped_groups", [])
        assert (done.exit_code == 7) == bool(touched) == bool(dropped)
        assert left == before - (done.groups or 0) + len(dropped)
    assert rows(table.path).equals(table.rows)
    for ts in table.made:
        if ts not in {w.ts for w in open_local(table.path).timeline.completed_writes()}:
            table.end(ts)
    assert table.is_clean()


@pytest.mark.thorough
def test_it_waits_for_a_writer(way: str, tmp_path: Path) -> None:
    """Without a lock nothing is published while a write is in progress; when it has ended, its group is left out."""
    table = Table("1.2.0", tmp_path, way)
    one = table.slices[0]
    begun: list[str] = []
    with pytest.raises(ConflictError, match="is in progress"):
        table.cluster(Meanwhile(lambda: begun.append(table.begin(one))))
    what, over = table.waits
    assert f"another writer: {table.path}: the commit {begun[0]} of another writer is in progress" in what
    assert over == ""
    table.end(begun[0])
    assert table.is_clean() and rows(table.path).equals(table.rows)

    class Ends(LocalStorage):
        """The writer ends when we have looked at it for the third time."""

        looks = 0

        def list_dir(self, path: str) -> Any:
            self.looks += bool(begun[1:]) and path.endswith("timeline")
            if self.looks == 3:
                table.end(begun[1])
                table.update(one)
            return super().list_dir(path)

    done = table.cluster(Meanwhile(lambda: begun.append(table.begin(one))), Ends(str(table.path)))
    (dropped,) = done.tables["dropped_groups"]
    assert (done.exit_code == 7 and "was superseded by" in str(dropped["why"])) or "was updated" in str(dropped["why"])
    assert table.is_clean() and rows(table.path).equals(table.rows)


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
def test_an_inflight_file_that_is_empty(way: str, release: str, tmp_path: Path) -> None:
    """With a lock. Its writer may be about to write the content, or it is a bulk insert, which updates nothing."""
    table = Table(release, tmp_path, way)
    ts = table.begin(table.slices[0])
    (inflight,) = table.path.glob(f".hoodie/**/{ts}*inflight")
    inflight.write_bytes(b"")
    with pytest.raises(ConflictError, match="has just begun"):
        table.cluster(**LOCK)
    os.utime(inflight, (inflight.stat().st_mtime - 6,) * 2)
    assert table.cluster(**LOCK).exit_code == 0
    assert rows(table.path).equals(table.rows)


@pytest.mark.thorough
def test_a_writer_begins_just_when_the_plan_is_shown(way: str, tmp_path: Path) -> None:
    """It may have read the timeline before: the plan is taken back, and shown again when the write has ended."""
    table = Table("1.2.0", tmp_path, way)
    one = table.slices[0]
    shown: list[int] = []

    class Begins(LocalStorage):
        ts = ""

        def create(self, path: str, data: bytes) -> None:
            super().create(path, data)
            if way == "STAGED":
                self.look(path)

        def put(self, path: str, data: bytes) -> None:
            super().put(path, data)
            self.look(path)

        def look(self, path: str) -> None:
            if path.endswith("clustering.requested"):
                (pending,) = open_local(table.path).timeline.pending_clusterings()
                shown.append(len(open_local(table.path).timeline.read_plan(pending).groups))
                if len(shown) == 1:
                    self.ts = table.begin(one)
                elif len(shown) == 2:
                    table.end(self.ts)
                    table.update(one)

    done = table.cluster(storage=Begins(str(table.path)))
    # Shown, taken back, shown without the group that the writer has changed.
    assert shown == [4, 0, 3] and done.exit_code == 7
    assert table.is_clean() and rows(table.path).equals(table.rows)


@pytest.mark.thorough
@pytest.mark.spread(4)
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("writer", [True, False], ids=["writer", "alone"])
def test_every_write_may_be_the_last(way: str, release: str, writer: bool, tmp_path: Path) -> None:
    """Readers see the same rows after a kill; the next run, or recover, leaves nothing."""
    table = Table(release, tmp_path / "made", way, metadata=not writer)
    engine = Meanwhile(lambda: table.update(table.slices[3])) if writer else LocalEngine()

    def check(survived: int) -> None:
        for seen in (rows(table.path),) if writer else both(table.path):
            assert seen.equals(table.rows), survived

    for survived in killed_anywhere(table.path, lambda storage: table.cluster(engine, storage), 4, 12):
        check(survived)
        # A run that was killed between the reservation and its lease counts as young for two minutes.
        with suppress(NothingToDo, LockBusy):
            table.cluster()
        check(survived)
        if open_local(table.path).timeline.pending_clusterings():
            assert way == "RESERVED"
            never = {**DEAD_AT_ONCE, "hoodie.client.heartbeat.interval_in_ms": "1"}
            options = resolve([("test", {"hoodie.time.generator.max_expected_clock_skew_ms": "0", **never})])
            with suppress(NothingToDo):
                recover.recover(RecoverRequest(base_path=str(table.path), options=options, apply=True))
        assert table.is_clean(), survived
        check(survived)


@pytest.mark.parametrize("key", ["hoodie.clustering.inline", "hoodie.clustering.async.enabled"])
def test_no_instant_is_reserved_where_writers_cluster(key: str, tmp_path: Path) -> None:
    table = Table("1.2.0", tmp_path, "RESERVED")
    with pytest.raises(ConfigError, match=f"cannot be used with {key}=true"):
        table.cluster(**{key: "true"})
    assert table.is_clean()


def test_two_runs_at_once(way: str, tmp_path: Path) -> None:
    table = Table("1.2.0", tmp_path, way)
    errors: list[Callable[[], object] | Exception] = []

    def another() -> None:
        try:
            table.cluster()
        except LockBusy as error:
            errors.append(error)

    assert table.cluster(Meanwhile(another)).exit_code == 0
    assert len(errors) == 1
    assert table.is_clean() and rows(table.path).equals(table.rows)


@pytest.mark.thorough
def test_another_plan_for_the_same_files(way: str, tmp_path: Path) -> None:
    """Whoever schedules meanwhile does not see ours: what both name is left out, or rows would be there twice."""
    table = Table("1.2.0", tmp_path, way)

    def schedule() -> None:
        clustering.schedule(clustering_request(table.path, Mode.SCHEDULE, table.options))

    with pytest.raises(ConflictError, match="is in the pending plan"):
        table.cluster(Meanwhile(schedule))
    assert rows(table.path).equals(table.rows)
    assert (
        clustering.execute(clustering_request(table.path, Mode.EXECUTE, table.options), engine=LocalEngine()).exit_code
        == 0
    )
    assert table.is_clean() and rows(table.path).equals(table.rows)


@pytest.mark.thorough
@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_taking_back_leaves_the_metadata_of_a_writer_alone(way: str, release: str, tmp_path: Path) -> None:
    """A writer is in the middle of its delta commit of the metadata table, and has no lock."""
    path = unpack(release, tmp_path)
    before = both(path)

    def begin() -> None:
        table = open_local(path)
        assert table.metadata is not None
        ts = Times(table, 0).next()
        for timeline, action in ((table.timeline, Action.COMMIT), (table.metadata.timeline, Action.DELTA_COMMIT)):
            for state in (InstantState.REQUESTED, InstantState.INFLIGHT):
                timeline.publish(ts, action, state)
        begun.append(ts)

    begun: list[str] = []
    wanted = clustering_request(
        path, Mode.SCHEDULE_AND_EXECUTE, {**SOON, "hudi.services.publish.late": way}, publish_late=True
    )
    with pytest.raises(ConflictError, match="is in progress"):
        clustering.schedule_and_execute(wanted, engine=Meanwhile(begin))
    table = open_local(path)
    assert table.metadata is not None and not table.timeline.pending_clusterings()
    assert [one.ts for one in table.metadata.timeline.pending({Action.DELTA_COMMIT})] == begun
    for seen, then in zip(both(path), before, strict=True):
        assert seen.equals(then)


@pytest.mark.thorough
def test_nothing_is_left_when_it_cannot_begin(way: str, tmp_path: Path) -> None:
    table = Table("1.2.0", tmp_path, way)

    class Full(LocalStorage):
        """The disk is full when the inflight file is to be written."""

        def create(self, path: str, data: bytes) -> None:
            if path.endswith("clustering.inflight"):
                raise StorageError("no space left")
            super().create(path, data)

    with pytest.raises(StorageError, match="no space left"):
        table.cluster(storage=Full(str(table.path)))
    assert table.is_clean()
    assert table.cluster().exit_code == 0


def test_a_clean_deletes_an_old_file_while_it_is_read(way: str, tmp_path: Path) -> None:
    table = Table("1.2.0", tmp_path, way)
    one = table.slices[0]

    class Cleaned(LocalEngine):
        is_done = False

        def map(self, function: Any, tasks: Any, what: str, progress: Any) -> Any:
            if "rewrite" in what and not self.is_done:
                self.is_done = True
                table.update(one)
                assert one.base_file is not None
                (table.path / one.base_file.path).unlink()
            return super().map(function, tasks, what, progress)

    done = table.cluster(Cleaned())
    assert done.exit_code == 7 and len(done.tables["dropped_groups"]) == 1
    assert table.is_clean() and rows(table.path).equals(table.rows)


@pytest.mark.thorough
def test_a_writer_that_begins_too_late_to_be_seen_is_told(way: str, tmp_path: Path) -> None:
    """Without a lock nobody can keep it out: the report names it."""
    table = Table("1.2.0", tmp_path, way)
    begun: list[str] = []

    class Begins(LocalStorage):
        """A write begins right before the completed file is created."""

        def create(self, path: str, data: bytes) -> None:
            if path.endswith(".replacecommit"):
                begun.append(table.begin(table.slices[0]))
            super().create(path, data)

    done = table.cluster(storage=Begins(str(table.path)))
    (warning,) = (one for one in done.warnings if "writes began while" in one)
    assert begun[0] in warning
    table.end(begun[0])
    table.update(next(iter(open_local(table.path).view.live_slices())))
    with suppress(NothingToDo):
        assert not any("writes began" in one for one in table.cluster().warnings)


@pytest.mark.thorough
def test_what_a_killed_run_leaves_is_told_and_recovered(way: str, tmp_path: Path) -> None:
    table = Table("1.2.0", tmp_path, way)
    options = resolve([("test", DEAD_AT_ONCE)])
    told: list[str] = []

    def look() -> None:
        told.extend(clustering.schedule(clustering_request(table.path, Mode.SCHEDULE, dry_run=True)).warnings)

    storage = FaultyStorage(str(table.path))

    def die() -> None:
        look()
        storage.left = -1
        raise Killed

    with suppress(Killed):
        table.cluster(Meanwhile(die), storage)
    assert any("another clustering rewrites files of the table" in one for one in told)
    (warning,) = (
        one
        for one in clustering.schedule(clustering_request(table.path, Mode.SCHEDULE, dry_run=True)).warnings
        if "was killed" in one
    )
    assert warning.endswith("run recover")
    found = recover.recover(RecoverRequest(base_path=str(table.path), options=options, apply=False))
    assert found.dry_run and not table.is_clean()
    recover.recover(RecoverRequest(base_path=str(table.path), options=options, apply=True))
    assert table.is_clean() and rows(table.path).equals(table.rows)


class _Shows(FaultyStorage):
    """It dies when it has shown its plan; `known` is the table before that."""

    known: Snapshot | None = None

    def create(self, path: str, data: bytes) -> None:
        if path.endswith(".clustering.requested"):
            self.known = open_local(Path(self.root))
        if path.endswith(".clustering.inflight"):
            self.left = 0
        super().create(path, data)


def test_a_plan_that_was_shown_since_the_table_was_opened(tmp_path: Path) -> None:
    table = Table("1.2.0", tmp_path, "STAGED")
    storage = _Shows(str(table.path))
    with pytest.raises(Killed):
        table.cluster(storage=storage)
    assert storage.known is not None and open_local(table.path).timeline.pending_clusterings()
    (staged,) = staged_attempts(storage.known.storage)
    take_back_staged(storage.known, staged, TransactionSettings())
    assert table.is_clean() and rows(table.path).equals(table.rows)
