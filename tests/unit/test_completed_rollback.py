"""What must not be taken back, although it looks as if it could: rows would be doubled, lost, hidden, or go stale."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_services.codecs.clean_plan import CleanerPlan, encode_cleaner_plan
from hudi_services.codecs.rollback_plan import encode_rollback_plan
from hudi_services.commit.heartbeat import heartbeat_path
from hudi_services.commit.markers import marker_folder
from hudi_services.commit.times import Times
from hudi_services.errors import ConfigError, ConflictError, LockBusy, NeedsRecovery
from hudi_services.file_names import parse_base_file
from hudi_services.jobs.rollback import rollback
from hudi_services.jobs.undo import undo
from hudi_services.metadata_updates.sync import Change, sync_commit
from hudi_services.model import CommitMetadata
from hudi_services.rollback.execution import plan_rollback, resume_rollback, roll_back
from hudi_services.runs.report import Report
from hudi_services.runs.report import RunState as Outcome
from hudi_services.storage import Storage
from hudi_services.stores.local import LocalStorage
from hudi_services.timeline.instant import Action, Instant, State

from .faulty_storage import FaultyStorage, Killed
from .metadata_tables import far_future, open_metadata
from .repairs import (
    DEAD_AT_ONCE,
    LATER,
    LOCK,
    NO_HEARTBEAT,
    P,
    both,
    cluster,
    fail_newest,
    files_of,
    hide_metadata,
    newest,
    repair,
    timeline_files,
    write_beside,
)
from .tables import RELEASES, listed_view, open_local, rows, unpack

NO_LOCK: dict[str, str] = {}

TakeBack = Callable[..., Report]


@pytest.fixture(params=RELEASES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return unpack(request.param, tmp_path)


def undone(path: Path, ts: str, options: dict[str, str], storage: Storage | None = None, **more: bool) -> Report:
    return undo(repair(path, "undo", ts, options, **more), storage)


def rolled_back(path: Path, ts: str, options: dict[str, str], storage: Storage | None = None, **more: bool) -> Report:
    more.setdefault("completed", True)
    return rollback(repair(path, "rollback", ts, options, **more), storage)


def completed(path: Path) -> str:
    return newest(path).ts


COMMANDS = pytest.mark.parametrize(("make", "command"), [(cluster, undone), (completed, rolled_back)])


class DyingStorage(FaultyStorage):
    """Kills whoever deletes one file."""

    def __init__(self, path: Path, name: str) -> None:
        super().__init__(str(path))
        self._name = name

    def delete(self, path: str) -> None:
        if path.endswith(self._name):
            self.left = 0
        super().delete(path)


def kill_early(path: Path, ts: str, command: TakeBack) -> Instant:
    """Kill it before the completed file goes; the rollback that it began."""
    found = open_local(path).timeline.find(ts)
    assert found
    with pytest.raises(Killed):
        command(path, ts, NO_HEARTBEAT, DyingStorage(path, found.file_name))
    timeline = open_local(path).timeline
    assert timeline.find(ts) == found
    (begun,) = timeline.pending({Action.ROLLBACK})
    return begun


def files(path: Path) -> set[str]:
    """All files of a table, but for leases."""
    return {str(file) for file in path.rglob("*") if file.is_file() and ".locks" not in file.parts}


# A rollback that was begun, and whose target is still completed.


def test_begun_and_then_others_built_on_it(path: Path) -> None:
    hide_metadata(path)
    ts = cluster(path)
    begun = kill_early(path, ts, undone)
    source = path / sorted(files_of(path, ts))[0]
    base = parse_base_file(str(source.parent.relative_to(path)), source.name, 1)
    assert base
    write_beside(path, base.partition, source, base.file_id)
    table = open_local(path)
    before = rows(table, listed_view(table))
    details = {name: table.timeline.read_details(name) for name in timeline_files(path, begun.ts)}
    with pytest.raises(ConflictError, match="was superseded by"):
        undone(path, ts, NO_HEARTBEAT, dry_run=True)
    assert timeline_files(path, begun.ts) == set(details)
    with pytest.raises(ConflictError, match="was superseded by"):
        undone(path, ts, NO_HEARTBEAT)
    assert rows(open_local(path), listed_view(open_local(path))).equals(before)
    assert timeline_files(path, begun.ts) == set()
    copies = path / ".hoodie/.hudi_services/removed" / begun.ts
    assert details.items() <= {file.name: file.read_bytes() for file in copies.iterdir()}.items()


@pytest.mark.thorough
@pytest.mark.parametrize("by_own", [False, True])
def test_begun_is_asked_for_again(path: Path, by_own: bool) -> None:
    """By the instant of the target or of the rollback itself: that it is completed must be said again."""
    ts = completed(path)
    begun = kill_early(path, ts, rolled_back)
    before = both(path)
    with pytest.raises(ConfigError, match="is completed, and a rollback would delete its rows"):
        rolled_back(path, begun.ts if by_own else ts, NO_HEARTBEAT, completed=False)
    assert both(path)[0].equals(before[0]) and not open_local(path).timeline.pending()
    begun = kill_early(path, ts, rolled_back)
    report = rolled_back(path, begun.ts if by_own else ts, NO_HEARTBEAT)
    assert (report.state, report.instant) == (Outcome.COMPLETED, ts)
    assert report.warnings == [f"the rollback {begun.ts} of {ts} had not started to delete anything: it was dropped"]
    assert not open_local(path).timeline.pending() and files_of(path, ts) == set()


def test_completed_is_refused_without_a_check(path: Path) -> None:
    ts = completed(path)
    table = open_local(path)
    with pytest.raises(ConflictError, match=f"the commit {ts} is completed"):
        roll_back(table, newest(path), Times(table, 0), keep_plan=False)
    begun = kill_early(path, ts, rolled_back)
    before, table = files(path), open_local(path)
    with pytest.raises(ConflictError, match=f"although {begun.file_name} is to roll it back"):
        resume_rollback(table, begun, Times(table, 0))
    with pytest.raises(ConflictError, match=f"although {begun.file_name} is to roll it back"):
        roll_back(table, newest(path), Times(table, 0), keep_plan=False, checked=lambda _: None)
    assert files(path) == before


def test_a_rollback_that_hudi_carries_out(path: Path) -> None:
    ts = fail_newest(path)
    table = open_local(path)
    target = table.timeline.find(ts)
    assert target
    data = encode_rollback_plan(plan_rollback(table, target), table.config.version.release)
    for state in (State.REQUESTED, State.INFLIGHT):
        table.timeline.publish(LATER, Action.ROLLBACK, state, data if state is State.REQUESTED else b"")
    before = files(path)
    with pytest.raises(LockBusy, match=f"another process is at work on the rollback {LATER}") as raised:
        rolled_back(path, ts, DEAD_AT_ONCE)
    assert raised.value.exit_code == 4 and files(path) == before
    rolled_back(path, ts, NO_HEARTBEAT)
    assert not open_local(path).timeline.pending() and files_of(path, ts) == set()


# Beside other writers.


@pytest.mark.thorough
@pytest.mark.spread(3)
@COMMANDS
@pytest.mark.parametrize("options", [NO_LOCK, LOCK])
@pytest.mark.parametrize("states", [(State.REQUESTED,), (State.REQUESTED, State.INFLIGHT)])
def test_a_write_that_is_under_way(
    path: Path, make: Callable[[Path], str], command: TakeBack, options: dict[str, str], states: tuple[State, ...]
) -> None:
    """Hudi's conflict check would not see that its input is gone; it may have been requested before the target, too."""
    ts = make(path)
    other = str(int(ts) - 3)
    for state in states:
        open_local(path).timeline.publish(other, Action.COMMIT, state)
    beat = path / heartbeat_path(other)
    beat.parent.mkdir(exist_ok=True)
    beat.touch()
    before = files(path)
    for dry_run in (True, False):
        with pytest.raises(ConflictError, match=f"the commit {other} of another writer is in progress"):
            command(path, ts, {**options, **DEAD_AT_ONCE}, dry_run=dry_run)
    assert files(path) == before
    beat.unlink()
    if options:
        # Its writer is dead as far as anybody can tell: then it goes first.
        with pytest.raises(NeedsRecovery, match=f"the commit {other} .* was abandoned"):
            command(path, ts, {**options, **DEAD_AT_ONCE})
        assert files(path) == before - {str(beat)}
        rolled_back(path, other, {**options, **DEAD_AT_ONCE})
        command(path, ts, {**options, **DEAD_AT_ONCE})


# What cannot be forgotten, or what would be seen is not known.


def test_merged_into_the_metadata_table(path: Path) -> None:
    """Its ranges of whole partitions would stay those of the commit; of a clustering they are right all the same."""
    ts = completed(path)
    begin_metadata_compaction(path)
    before = files(path)
    with pytest.raises(ConflictError, match=f"the metadata table may have compacted {ts}"):
        rolled_back(path, ts, NO_LOCK)
    assert files(path) == before


@pytest.mark.thorough
@pytest.mark.parametrize("command", [undone, rolled_back])
def test_a_merged_clustering(path: Path, command: TakeBack) -> None:
    before = both(path)
    ts = cluster(path)
    begin_metadata_compaction(path)
    command(path, ts, NO_LOCK)
    assert all(seen.equals(before[0]) for seen in both(path))


def begin_metadata_compaction(path: Path) -> None:
    for state in (State.REQUESTED, State.INFLIGHT):
        open_metadata(path).timeline.publish(LATER, Action.COMPACTION, state)


@COMMANDS
def test_the_first_of_the_timeline(path: Path, make: Callable[[Path], str], command: TakeBack) -> None:
    older = open_local(path).timeline.completed_writes()
    ts = make(path)
    for instant in older:
        if instant.ts != ts:
            for name in timeline_files(path, instant.ts):
                next(path.glob(f".hoodie/**/{name}")).unlink()
    before = files(path)
    with pytest.raises(ConflictError, match=f"the active timeline begins with {ts}"):
        command(path, ts, NO_LOCK)
    assert files(path) == before


def test_a_commit_whose_file_is_empty(path: Path) -> None:
    ts = completed(path)
    next(path.glob(f".hoodie/**/{newest(path).file_name}")).write_bytes(b"")
    before = files(path)
    with pytest.raises(ConflictError, match="is empty, so that it is not known"):
        rolled_back(path, ts, NO_LOCK)
    assert files(path) == before
    # Whoever rolls it back all the same leaves no file of it.
    plan = plan_rollback(open_local(path), newest(path))
    assert {file.removeprefix(f"{path}/") for one in plan.requests for file in one.files} == files_of(path, ts)


# Replaced files.


def delete_partition(path: Path) -> tuple[str, str]:
    """Delete P as Hudi does; the instant, and the newest of a file that has an older version."""
    table = open_local(path)
    timeline, release = table.timeline, table.config.version.release
    slices = table.view.all_slices(P)
    live = [one.file_id for one in table.view.latest_slices(P)]
    file_id = next(one for one in live if len(slices[one]) > 1)
    base = slices[file_id][-1].base_file
    assert base
    done = CommitMetadata("DELETE_PARTITION", {}, {}, {P: tuple(live)})
    data = timeline.layout.encode_commit(done, release)
    for state in State:
        if state is State.COMPLETED:
            sync_commit(open_metadata(path), Change(LATER, (), {}), far_future())
        end = "20980101000001000"
        timeline.publish(LATER, Action.REPLACE_COMMIT, state, data if state is State.COMPLETED else b"", end)
    return LATER, base.name


def clean_up(path: Path, name: str, *, plan: bool = True) -> str:
    """A clean that took one file and left the older ones, as beside a savepoint."""
    table, ts = open_local(path), "20980101000002000"
    wanted = CleanerPlan("KEEP_LATEST_COMMITS", "", "", {P: (f"file:{path}/{P}/{name}",)})
    data = encode_cleaner_plan(wanted, table.config.version.release) if plan else b"?"
    for state in State:
        content = data if state is not State.COMPLETED else b""
        table.timeline.publish(ts, Action.CLEAN, state, content, "20980101000003000")
    return ts


def test_replaced_files_of_which_older_ones_are_left(path: Path) -> None:
    ts, name = delete_partition(path)
    clean = clean_up(path, name)
    (path / P / name).unlink()
    before = files(path)
    with pytest.raises(ConflictError, match=f"the clean {clean} took {P}/{name}"):
        rolled_back(path, ts, NO_LOCK)
    assert files(path) == before


def test_replaced_files_and_a_clean_that_cannot_be_read(path: Path) -> None:
    ts, name = delete_partition(path)
    clean_up(path, name, plan=False)
    with pytest.raises(ConflictError, match=r"it is not known whether it took files|ends too early"):
        rolled_back(path, ts, NO_LOCK)


def test_replaced_files_that_are_all_there(path: Path) -> None:
    before = both(path)
    ts, name = delete_partition(path)
    older = next(file.name for file in (path / P).glob(f"{name.split('_')[0]}_*.parquet") if file.name < name)
    clean_up(path, older)
    assert both(path)[0].num_rows < before[0].num_rows
    rolled_back(path, ts, NO_LOCK)
    assert all(seen.equals(before[0]) for seen in both(path))


@pytest.mark.thorough
@pytest.mark.parametrize("command", [undone, rolled_back])
def test_inputs_of_a_clustering_of_which_older_ones_are_left(path: Path, command: TakeBack) -> None:
    table = open_local(path)
    slices = table.view.all_slices(P)
    base = next(of_group[-1].base_file for of_group in slices.values() if len(of_group) > 1)
    assert base
    ts = cluster(path)
    (path / base.path).unlink()
    with pytest.raises(ConflictError, match=f"{base.name} .* was cleaned"):
        command(path, ts, NO_LOCK)


# What it costs.


class Counting(LocalStorage):
    """Counts the listings of each folder."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.listed: Counter[str] = Counter()

    def list_dir(self, path: str):  # type: ignore[no-untyped-def]
        self.listed[path] += 1
        return super().list_dir(path)


@pytest.mark.parametrize("number", [5, 40])
def test_listings_do_not_grow_with_the_files(number: int, tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    ts = fail_newest(path)
    for i in range(number):
        name = f"{P}/{i:08d}-1111-1111-1111-111111111111-0_0-0-0_{ts}.parquet"
        (path / name).write_bytes(b"x")
        (path / marker_folder(ts) / f"{name}.marker.CREATE").touch()
    storage = Counting(path)
    rolled_back(path, ts, DEAD_AT_ONCE, storage)
    assert storage.listed[P] == 1


def test_listings_of_an_undo(path: Path) -> None:
    ts = cluster(path)
    storage = Counting(path)
    undone(path, ts, NO_LOCK, storage)
    # What is newest, what is read again, and what goes.
    assert max(count for folder, count in storage.listed.items() if folder.startswith("day=")) <= 3
