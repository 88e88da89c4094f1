"""Random histories of tables with crashes, a thousand of them: only orphan files are moved, and all can be restored.

Each run takes steps of scheduling, executing, being killed at a random write, rolling back (killed, too), repairing,
losing markers and timeline files, repeated tasks, and ageing; then it quarantines the orphan files. Seeded, but for
times.
"""

import contextlib
import copy
import functools
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_services import concurrency, table_config
from hudi_services.clock import SystemClock
from hudi_services.commit.checkpoints import checkpoint_folder
from hudi_services.commit.times import Times
from hudi_services.engine import LocalEngine
from hudi_services.errors import HudiServicesError, NothingToDo
from hudi_services.file_names import base_file_name, parse_base_file
from hudi_services.jobs import clustering
from hudi_services.jobs.orphan_files import manage_orphan_files
from hudi_services.options import resolve
from hudi_services.orphan_files import data_files
from hudi_services.orphan_files.quarantine import QUARANTINE_FOLDER
from hudi_services.rollback.execution import roll_back
from hudi_services.runs.report import Report, RunState
from hudi_services.runs.request import Mode, OrphanFilesMode, OrphanFilesRequest
from hudi_services.snapshot import Snapshot, open_snapshot
from hudi_services.table import partitions
from hudi_services.table.facts import TimelineFacts
from hudi_services.table.partitions import StorageLister
from hudi_services.table.view import slices_of
from hudi_services.table_config import TableConfig
from hudi_services.timeline import archived
from hudi_services.timeline.active import Timeline
from hudi_services.timeline.archive_file import ArchiveFile
from hudi_services.timeline.instant import Instant

from ..tiers import DEEP
from .archives import unpack_archived
from .faulty_storage import Killed
from .metadata_tables import files_by_partition
from .quick_storage import QuickStorage
from .tables import RELEASES, base_files, listed_view, request, rows

LIVES = 48 if DEEP else 2
"""Of each release. A table grows with every run of its life, and they with it in time."""
RUNS = 7
PORTIONS = 4 if DEEP else 1
"""Of the lives of a release; each is a test of its own, so that they spread over the workers of pytest."""
WRITES = 28
"""About what an execution needs."""
ARCHIVES = {"0.15.0": ".hoodie/archived", "1.0.2": ".hoodie/timeline/history", "1.2.0": ".hoodie/timeline/history"}
OPTIONS = {
    "hoodie.time.generator.max_expected_clock_skew_ms": "0",
    "hoodie.clustering.plan.strategy.max.num.groups": "1",
    "hoodie.clustering.plan.strategy.max.bytes.per.group": "4000",
    "hoodie.parquet.block.size": "1024",
}


class Liveness:
    """One table and what happens to it."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        self.random = random.Random(seed)
        self.steps: list[str] = []

    def open(self) -> Snapshot:
        return open_quick(self.path)

    def run(self) -> None:
        """An execution that is killed, what people and programs then do about it, and perhaps a task that ran twice."""
        self.steps = []
        chances = self.random
        if chances.random() < 0.7:
            self.do(self.schedule_killed, self.execute_killed)
        ends = [(), (self.undo,), (self.undo,), (self.lose_markers, self.undo), (self.lose_instant,), (self.mend,)]
        self.do(*chances.choice([*ends, (self.lose_markers, self.undo, self.undo), (self.lose_markers, self.mend)]))
        if chances.random() < 0.2:
            self.do(self.repeat_task)
        self.age()

    def do(self, *steps: Callable[[], None]) -> None:
        for step in steps:
            self.steps.append(step.__name__)
            step()

    def schedule_killed(self) -> None:
        if self.pending() is not None and self.random.random() < 0.6:
            return
        self.killed(lambda storage: clustering.schedule(self.request(Mode.SCHEDULE), storage), 3 * WRITES)

    def execute_killed(self) -> None:
        self.killed(lambda storage: clustering.execute(self.request(Mode.EXECUTE), storage, LocalEngine()), WRITES)

    def killed(self, job: Callable[[QuickStorage], object], writes: int) -> None:
        storage = QuickStorage(str(self.path), self.random.randrange(writes))
        with contextlib.suppress(Killed, NothingToDo):
            job(storage)
        self.steps.append(f"killed after {storage.log[-1:]}")

    def request(self, mode: Mode):  # type: ignore[no-untyped-def]
        return request(self.path, mode, OPTIONS)

    def undo(self) -> None:
        """Roll an attempt back, its plan too or not, and perhaps not to the end."""
        target = self.pending()
        if target is not None:
            keep = self.random.random() < 0.4
            self.killed(lambda storage: self.roll_back(storage, target, keep), self.random.choice([15, 200]))

    def roll_back(self, storage: QuickStorage, target: Instant, keep: bool) -> None:
        table = open_snapshot(storage, SystemClock())
        roll_back(table, target, Times(table, 0), keep_plan=keep)

    def timeline(self) -> Timeline:
        storage = QuickStorage(str(self.path))
        return Timeline.open(storage, TableConfig.load(storage))

    def pending(self) -> Instant | None:
        pending = self.timeline().pending_clusterings()
        return self.random.choice(pending) if pending else None

    def mend(self) -> None:
        if self.pending() is not None:
            clustering.execute(self.request(Mode.EXECUTE), QuickStorage(str(self.path)), LocalEngine())

    def lose_markers(self) -> None:
        """As Hudi's timeline server does when it dies: a rollback then finds no file."""
        target = self.pending()
        if target is not None:
            for file in (self.path / ".hoodie/.temp" / target.ts).rglob("*"):
                if file.is_file():
                    file.unlink()

    def lose_instant(self) -> None:
        """As operators do who delete timeline files by hand."""
        target = self.pending()
        if target is not None:
            timeline = self.timeline()
            for name in timeline.sizes:
                if name.startswith(target.ts):
                    (self.path / timeline.path(name)).unlink()

    def repeat_task(self) -> None:
        """A task that Spark ran twice: another file of the same group and instant, which no commit lists."""
        table = self.open()
        partition = self.random.choice(table.view.partitions())
        live = [one.base_file for one in table.view.latest_slices(partition) if one.base_file]
        recent = [file for file in live if table.timeline.completion_time(file.instant)]
        if recent:
            file = self.random.choice(recent)
            name = base_file_name(file.file_id, f"9-9-{self.random.randrange(10**6)}", file.instant)
            (self.path / partition / name).write_bytes((self.path / file.path).read_bytes())

    def age(self) -> None:
        """Fresh signs of life without an instant could be of an attempt that begins just now."""
        pending = [instant.ts for instant in self.timeline().pending()]
        for folder in (".hoodie/.heartbeat", ".hoodie/.locks/hudi_services"):
            for file in (self.path / folder).glob("*"):
                if not any(ts in file.name for ts in pending):
                    os.utime(file, (1e9, 1e9))


def collect(path: Path, mode: OrphanFilesMode, **fields: object) -> Report:
    options = resolve([("test", {"hoodie.time.generator.max_expected_clock_skew_ms": "0"})])
    wanted = OrphanFilesRequest(base_path=str(path), options=options, mode=mode, min_age_minutes=0, **fields)  # type: ignore[arg-type]
    return manage_orphan_files(wanted, QuickStorage(str(path)))


def open_quick(path: Path) -> Snapshot:
    return open_snapshot(QuickStorage(str(path)), SystemClock())


def needed(table: Snapshot) -> set[str]:
    """Files of every slice that readers and time travel see in the metadata table, of pending plans, their notes."""
    known, rules = TimelineFacts(table.timeline), table.log_naming
    assert table.metadata is not None
    found = set()
    for partition, files in files_by_partition(table.metadata).items():
        groups = slices_of(partition, files, known, rules)
        found |= {one.base_file.path for slices in groups.values() for one in slices if one.base_file}
    for instant in table.timeline.pending_clusterings():
        for group in table.timeline.read_plan(instant).groups:
            found |= {os.path.relpath(one.data_file, table.storage.root) for one in group.slices}
        found |= {file.path for file in table.storage.list_tree(checkpoint_folder(instant.ts))}
    return found


def shown(table: Snapshot) -> list[tuple[str, str, str]]:
    """Slices that readers see who list storage. Which file of a repeated task they take for a slice is chance."""
    view = listed_view(table)
    return [(one.partition, one.file_id, one.base_instant) for p in view.partitions() for one in view.latest_slices(p)]


def dead(table: Snapshot) -> set[str]:
    """What must go: base files of instants that are neither completed nor pending, and those that no commit lists.

    Where timeline files were lost, the metadata table may still have the attempt: such a file stays.
    """
    timeline = table.timeline
    listed = {
        stat.path
        for write in timeline.completed_writes()
        for stats in timeline.read_commit(write).stats.values()
        for stat in stats
    }
    pending = {one.ts for one in timeline.pending()}
    pending |= {timeline.read_rollback_plan(one).ts for one in timeline.pending() if one.action.value == "rollback"}
    completed = {one.ts for one in timeline.completed_writes()}
    lister = StorageLister(table.storage)
    names = ((partition, name) for partition in lister.partitions() for name in lister.files(partition))
    files = [file for partition, name in names if (file := parse_base_file(partition, name, 0))]
    assert table.metadata is not None
    inside = (file for file in files if file.instant not in pending and file.instant >= (timeline.first_ts() or ""))
    gone = [file for file in inside if file.instant not in completed or file.path not in listed]
    known = files_by_partition(table.metadata) if gone else {}
    return {file.path for file in gone if file.name not in known.get(file.partition, {})}


def stored(path: Path) -> dict[str, tuple[int, int, int]]:
    """Every file but the quarantines' own, and the lease that each critical section takes; as it is known to the disk.

    A file that keeps its inode, size and time was moved, not written.
    """
    found = {}
    for folder, _, names in os.walk(path):
        below = os.path.relpath(folder, path)
        for name in names:
            status = os.stat(f"{folder}/{name}")
            found[os.path.normpath(f"{below}/{name}")] = (status.st_ino, status.st_size, status.st_mtime_ns)
    own = (QUARANTINE_FOLDER, ".hoodie/.locks/hudi_services/table.")
    return {name: facts for name, facts in found.items() if not name.startswith(own)}


def check(life: Liveness, number: int) -> int:
    """Move the garbage of a table away, look at what is left, and sometimes bring it back. Gives the files moved."""
    table = life.open()
    safe, must_go = needed(table), dead(table)
    slices = shown(table) if number % 6 == 0 else []
    before = stored(life.path)
    try:
        report = collect(life.path, OrphanFilesMode.QUARANTINE)
    except NothingToDo:
        assert not must_go
        return 0
    after = stored(life.path)
    moved = before.keys() - after.keys()
    assert report.state is RunState.COMPLETED and report.files.before == report.files.after
    assert moved
    assert not moved & safe
    assert must_go <= moved
    assert {name: facts for name, facts in before.items() if name in after} == after
    if number % 6 == 0:
        table = life.open()
        assert needed(table) == safe and shown(table) == slices and dead(table) == set()
        with pytest.raises(NothingToDo, match="there are no orphan files"):
            collect(life.path, OrphanFilesMode.FIND)
    if number % 6 == 1:
        (name,) = os.listdir(life.path / QUARANTINE_FOLDER)
        assert collect(life.path, OrphanFilesMode.RESTORE, quarantine=name).files.after == report.files.after
        assert stored(life.path) == before
        again = collect(life.path, OrphanFilesMode.QUARANTINE)
        assert again.files.after == report.files.after
    shutil.rmtree(life.path / QUARANTINE_FOLDER)
    return len(moved)


def live(release: str, number: int, made: Path, path: Path, *, keep: bool = False) -> int:
    """A whole life; gives the files that were garbage.

    `keep` leaves the table as it was at the end.
    """
    # Nothing here writes into a file that exists.
    shutil.copytree(made, path, copy_function=os.link)
    if number % 2:
        # Short of an archive, what is inside the timeline must still be told.
        shutil.rmtree(path / ARCHIVES[release])
    life = Liveness(path, number)
    moved = 0
    for run in range(RUNS):
        try:
            life.run()
            moved += check(life, run)
        except (AssertionError, HudiServicesError) as error:
            raise AssertionError(f"{release}, life {number}, run {run}: {life.steps}: {error}") from error
    table = life.open()
    # As a rule both see the same files, which are then read once.
    views = {frozenset(base_files(view)): view for view in (table.view, listed_view(table))}
    for view in views.values():
        assert rows(table, view).equals(rows_of(made)), f"{release}, life {number}"
    if not keep:
        shutil.rmtree(path)
    return moved


def begin(release: str, folder: Path) -> Path:
    """The table with which lives begin, without what Hudi left in it, which is the business of other tests."""
    made = unpack_archived(folder) / release / "listed"
    collect(made, OrphanFilesMode.QUARANTINE)
    shutil.rmtree(made / ".hoodie/.hudi_services")
    return made


@functools.lru_cache(maxsize=1)
def rows_of(path: Path) -> pa.Table:
    return rows(open_quick(path), open_quick(path).view)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Gives the table of a release that lives begin with."""
    return functools.cache(lambda release: begin(release, tmp_path_factory.mktemp("begun")))


@pytest.fixture(autouse=True)
def cheap_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bytes are decoded once: the lives have their archives and their properties in common."""
    monkeypatch.setattr(table_config, "parse_properties", remember(table_config.parse_properties))
    monkeypatch.setattr(ArchiveFile, "texts", remember_archives(ArchiveFile.texts))
    monkeypatch.setattr(archived, "_read_actions", remember_archives(archived._read_actions))
    # To start a thread takes longer than to read one of these files.
    for reader in (data_files, partitions):
        monkeypatch.setattr(reader, "_REQUESTS_AT_ONCE", 1)
    monkeypatch.setattr(concurrency, "AT_ONCE", 1)


def remember_archives(decode: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
    """The same function of an archive file."""
    known: dict[tuple[object, ...], list[Any]] = {}

    def call(file: ArchiveFile, *rest: object) -> Iterator[Any]:
        key = (file._data, *rest)
        if key not in known:
            known[key] = list(decode(file, *rest))
        return iter(known[key])

    return call


def remember(decode: Callable[..., Any]) -> Callable[..., Any]:
    """The same function of bytes and the path of their file, which it needs for errors only."""
    known: dict[tuple[object, ...], Any] = {}

    def call(data: bytes, path: str, *rest: object) -> Any:
        key = (data, *rest)
        if key not in known:
            known[key] = decode(data, path, *rest)
        return copy.copy(known[key])

    return call


@pytest.mark.thorough
@pytest.mark.sweep
@pytest.mark.parametrize("portion", range(PORTIONS))
@pytest.mark.parametrize("release", RELEASES)
def test_random_lives(release: str, portion: int, begun: Callable[[str], Path], tmp_path: Path) -> None:
    made = begun(release)
    numbers = range(portion, LIVES, PORTIONS)
    moved = sum(live(release, n, made, tmp_path / str(n)) for n in numbers)
    # Or the lives were too quiet to show anything.
    assert moved > len(numbers) * RUNS * 0.5
