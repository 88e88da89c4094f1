"""Groups that were done when an execution died are not done again, unless they were rolled back since."""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.attempts.attempt import Attempt
from hudi_services.codecs.rollback_plan import RollbackPlan, encode_rollback_plan
from hudi_services.commit.checkpoints import (
    Checkpoint,
    CheckpointFile,
    checkpoint_folder,
    read_checkpoint,
    save_checkpoint,
)
from hudi_services.commit.conflicts import StaleInput
from hudi_services.commit.markers import read_markers
from hudi_services.commit.times import Times
from hudi_services.engine import LocalEngine
from hudi_services.errors import ConflictError, CorruptFile, JobLost, NothingToDo, PartlyDone, StorageError
from hudi_services.jobs import clustering, recover
from hudi_services.jobs.validate import validate
from hudi_services.model import CommitMetadata, LogCounts
from hudi_services.options import resolve
from hudi_services.orphan_files.model import OrphanKind
from hudi_services.rewriting.resume import rewrite_once
from hudi_services.rewriting.rewrite import RewriteResult
from hudi_services.rewriting.task import RewriteTask
from hudi_services.rollback.execution import roll_back
from hudi_services.rows.settings import FileSettings
from hudi_services.rows.sort_order import SortColumn
from hudi_services.runs.report import Report
from hudi_services.runs.report import RunState as Outcome
from hudi_services.runs.request import ClusteringRequest, Mode, RecoverRequest, ValidateRequest
from hudi_services.runs.retries import run_with_retries
from hudi_services.snapshot import Snapshot
from hudi_services.storage import Storage
from hudi_services.stores import open_storage
from hudi_services.stores.local import LocalStorage
from hudi_services.timeline.instant import Action, Instant, State

from .faulty_storage import FaultyStorage, Killed
from .parquet_samples import slices_in
from .repairs import DEAD_AT_ONCE, NO_HEARTBEAT
from .shares import TWO_SHARES, share
from .tables import both_views, open_local, request, unpack
from .test_crash import mend
from .test_orphan_files import found as garbage_found

SORT = "hoodie.clustering.plan.strategy.sort.columns"
TWO = pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
GROUPS = 10
# A filter in every footer would be most of each file; and the compaction behind the commit is another matter.
SMALL = {
    "hoodie.index.bloom.num_entries": "100",
    "hoodie.bloom.index.filter.dynamic.max.entries": "100",
    "hoodie.metadata.compact.max.delta.commits": "1000",
}


class Planned:
    """A table of ten files, with a plan that rewrites each by itself."""

    def __init__(self, path: Path, ts: str) -> None:
        self.path = path
        self.ts = ts
        self.before = both_views(path)[0]

    def execute(
        self,
        storage: Storage | None = None,
        engine: LocalEngine | None = None,
        *,
        all_or_nothing: bool = False,
        **options: str,
    ) -> Report:
        wanted = request(self.path, Mode.EXECUTE, SMALL | options, all_or_nothing=all_or_nothing)
        return clustering.execute(wanted, storage, engine or LocalEngine())

    def kill(self, when: Callable[[str], bool]) -> FaultyStorage:
        """Execute until just after the first write that is the one."""
        storage = _DiesAfter(str(self.path), when)
        with pytest.raises(Killed):
            self.execute(storage)
        return storage

    def kill_after_groups(self, count: int) -> None:
        seen = 0

        def is_last(write: str) -> bool:
            nonlocal seen
            seen += checkpoint_folder(self.ts) in write
            return seen == count

        self.kill(is_last)
        assert len(self.notes()) == count

    def notes(self) -> list[Path]:
        return sorted((self.path / checkpoint_folder(self.ts)).glob("*.json"))

    @property
    def state(self) -> State:
        found = open_local(self.path).timeline.find(self.ts, Action.REPLACE_COMMIT)
        assert found
        return found.state

    def new_files(self) -> dict[str, int]:
        """Path to size."""
        files = open_local(self.path).storage.list_tree("")
        return {file.path: file.size for file in files if file.name.endswith(f"_{self.ts}.parquet")}

    def resume(self) -> tuple[Report, list[str]]:
        """Execute to the end; the report, and the base files that were written."""
        storage = FaultyStorage(str(self.path))
        report = self.execute(storage)
        assert (report.state, report.instant, report.groups) == (Outcome.COMPLETED, self.ts, GROUPS)
        self.is_whole()
        assert not (self.path / checkpoint_folder(self.ts)).exists()
        return report, written(storage)

    def is_whole(self) -> None:
        mend(self.path, self.ts, self.before, 0)
        table = open_local(self.path)
        listed = {s.base_file.path for p in table.view.partitions() for s in table.view.latest_slices(p) if s.base_file}
        assert listed == set(self.new_files()), "strays"
        assert validate(ValidateRequest(base_path=str(self.path), options=resolve([]))).state is Outcome.COMPLETED

    def roll_back(self) -> None:
        table = open_local(self.path)
        found = table.timeline.find(self.ts, Action.REPLACE_COMMIT)
        assert found
        roll_back(table, found, Times(table, 0), keep_plan=True)

    def is_unharmed(self) -> bool:
        return all(seen.equals(self.before) for seen in both_views(self.path))


class _DiesAfter(FaultyStorage):
    def __init__(self, url: str, when: Callable[[str], bool]) -> None:
        super().__init__(url)
        self._when = when

    def _write(self, what: str, path: str) -> None:
        super()._write(what, path)
        if self._when(f"{what} {path}"):
            self.left = 0


def written(storage: FaultyStorage) -> list[str]:
    """Base files that were written through this storage."""
    files = [entry.removeprefix("write ") for entry in storage.log if entry.startswith("write ")]
    return [path for path in files if path.endswith(".parquet") and not path.startswith(".hoodie")]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, str]]:
    tables: dict[str, tuple[Path, str]] = {}

    def make(release: str) -> tuple[Path, str]:
        if release not in tables:
            path = unpack(release, tmp_path_factory.mktemp(release))
            five = {
                "hoodie.clustering.plan.strategy.target.file.max.bytes": "5600",
                SORT: "_hoodie_record_key",
                **SMALL,
            }
            clustering.schedule_and_execute(request(path, Mode.SCHEDULE_AND_EXECUTE, five), engine=LocalEngine())
            single = {"hoodie.clustering.plan.strategy.class": "single_file", SORT: "label,ts desc"}
            report = clustering.schedule(request(path, Mode.SCHEDULE, single))
            assert report.groups == GROUPS and report.instant
            tables[release] = path, report.instant
        return tables[release]

    return make


@pytest.fixture
def planned(made: Callable[[str], tuple[Path, str]], tmp_path: Path) -> Callable[[str], Planned]:
    copies: list[Path] = []

    def copy(release: str) -> Planned:
        path, ts = made(release)
        copies.append(Path(shutil.copytree(path, tmp_path / str(len(copies)))))
        return Planned(copies[-1], ts)

    return copy


@pytest.mark.thorough
@pytest.mark.sweep
@pytest.mark.parametrize(("release", "number"), TWO_SHARES)
def test_killed_after_each_group(release: str, number: int, planned: Callable[[str], Planned]) -> None:
    for done in share(range(1, GROUPS + 1), number, 2):
        table = planned(release)
        sizes = {file.file_id: file.size for file in inputs(table)}
        table.kill_after_groups(done)
        kept = table.new_files()
        assert table.is_unharmed()
        report, files = table.resume()
        assert report.resumed_groups == done
        assert f"{done} of 10 groups were taken over from an earlier attempt" in report.warnings
        assert len(files) == GROUPS - done and kept.items() <= table.new_files().items()
        # The words: at most the unfinished groups plus one.
        largest = sorted(table.new_files().values(), reverse=True)
        assert sum(table.new_files()[path] for path in files) <= sum(largest[: GROUPS - done + 1])
        # The report counts all, whoever did it.
        assert report.files.after == GROUPS and report.rows.before == report.rows.after == table.before.num_rows
        assert report.bytes.after == sum(table.new_files().values())
        assert report.bytes.before == sum(sizes.values()) and report.decoded == {"sorted": GROUPS}
        assert {row["files_after"] for row in report.tables["skipping"]} == {GROUPS}
        assert not rollbacks(table)


def inputs(table: Planned) -> list[Any]:
    opened = open_local(table.path)
    slices = [one for partition in opened.view.partitions() for one in opened.view.latest_slices(partition)]
    return [one.base_file for one in slices]


def rollbacks(table: Planned) -> list[str]:
    return [i.ts for i in open_local(table.path).timeline.instants if i.action is Action.ROLLBACK]


@pytest.mark.thorough
@TWO
def test_killed_before_the_note(release: str, planned: Callable[[str], Planned]) -> None:
    """The file of the fourth group is there, and nobody says that it is proved."""
    table = planned(release)
    table.kill(lambda write: write.startswith("write day=") and len(table.notes()) == 3)
    assert len(table.new_files()) == 4
    report, files = table.resume()
    assert (report.resumed_groups, len(files)) == (3, 7)


@pytest.mark.thorough
@pytest.mark.sweep
@pytest.mark.parametrize(("release", "number"), TWO_SHARES)
def test_a_resumed_execution_is_killed(release: str, number: int, planned: Callable[[str], Planned]) -> None:
    """At every third write of it."""
    half = planned(release)
    half.kill_after_groups(8)
    copy = half.path.parent / "whole"
    whole = Planned(Path(shutil.copytree(half.path, copy)), half.ts)
    storage = FaultyStorage(str(copy))
    whole.execute(storage)
    assert len(storage.log) > 30
    for survived in share(range(0, len(storage.log), 3), number, 4):
        path = Path(shutil.copytree(half.path, half.path.parent / f"killed-{survived}"))
        table = Planned(path, half.ts)
        with pytest.raises(Killed):
            table.execute(FaultyStorage(str(path), survived))
        assert table.is_unharmed(), survived
        mend(path, half.ts, half.before, survived)


@pytest.mark.thorough
@TWO
def test_killed_again_and_again(release: str, planned: Callable[[str], Planned]) -> None:
    """Each run does one group more, and then the commit is killed, too."""
    table = planned(release)
    for done in range(1, GROUPS + 1):
        table.kill(lambda write: checkpoint_folder(table.ts) in write)
        assert len(table.notes()) == done
    table.kill(lambda write: "metadata" in write and write.endswith(".deltacommit"))
    report, files = table.resume()
    assert (report.resumed_groups, files) == (GROUPS, [])


# Rolled back meanwhile


@pytest.mark.thorough
@TWO
def test_rolled_back_by_us(release: str, planned: Callable[[str], Planned]) -> None:
    table = planned(release)
    table.kill_after_groups(6)
    table.roll_back()
    assert (table.notes(), table.new_files(), table.state) == ([], {}, State.REQUESTED)
    report, files = table.resume()
    assert (report.resumed_groups, len(files)) == (0, GROUPS)


@pytest.mark.thorough
@TWO
@pytest.mark.parametrize("began_anew", [False, True])
def test_rolled_back_by_hudi(release: str, began_anew: bool, planned: Callable[[str], Planned]) -> None:
    """Hudi does not know checkpoints. It may have started the plan again and died. Some files came back meanwhile."""
    table = planned(release)
    table.kill_after_groups(6)
    notes = Path(shutil.copytree(table.path / checkpoint_folder(table.ts), table.path.parent / "notes"))
    files = {path: (table.path / path).read_bytes() for path in table.new_files()}
    time.sleep(0.02)
    table.roll_back()
    shutil.copytree(notes, table.path / checkpoint_folder(table.ts))
    for path, content in files.items():
        (table.path / path).write_bytes(content)
    if began_anew:
        timeline = open_local(table.path).timeline
        timeline.publish(table.ts, timeline.layout.clustering_action, State.INFLIGHT)
    report, new = table.resume()
    assert (report.resumed_groups, len(new)) == (0, GROUPS)


@pytest.mark.thorough
@TWO
def test_a_rollback_was_begun(release: str, planned: Callable[[str], Planned]) -> None:
    """By a process that died before it deleted anything: the files in its plan may be deleted at any time."""
    table = planned(release)
    table.kill_after_groups(6)
    opened = open_local(table.path)
    plan = RollbackPlan(table.ts, opened.timeline.layout.clustering_action.value, ())
    data = encode_rollback_plan(plan, opened.config.version.release)
    opened.timeline.publish(Times(opened, 0).next(), Action.ROLLBACK, State.REQUESTED, data)
    report = table.execute(**NO_HEARTBEAT)
    assert report.resumed_groups == 0 and report.warnings
    table.is_whole()


@TWO
def test_recover_takes_the_finished_groups_with_the_plan(release: str, planned: Callable[[str], Planned]) -> None:
    table = planned(release)
    table.kill_after_groups(3)
    found = recovered(table)
    assert found["decision"] == "roll back" and "with 3 finished tasks that execute would keep" in str(found["why"])
    recovered(table, apply=True)
    assert (table.notes(), table.new_files()) == ([], {})
    assert table.is_unharmed() and not open_local(table.path).timeline.pending()


def recovered(table: Planned, apply: bool = False) -> Mapping[str, object]:
    quick = {"hoodie.time.generator.max_expected_clock_skew_ms": "0"}
    wanted = RecoverRequest(base_path=str(table.path), options=resolve([("test", quick)]), apply=apply)
    (found,) = recover.recover(wanted).tables["instants"]
    return found


@pytest.mark.thorough
@TWO
@pytest.mark.parametrize("all_or_nothing", [True, False])
def test_the_plan_is_stale(release: str, all_or_nothing: bool, planned: Callable[[str], Planned]) -> None:
    """A file of it was overwritten since: it can never be executed whole, but without the group of that file."""
    table = planned(release)
    table.kill_after_groups(5)
    opened = open_local(table.path)
    victim = inputs(table)[7]
    timeline, ts = opened.timeline, Times(opened, 0).next()
    for state in (State.REQUESTED, State.INFLIGHT):
        timeline.publish(ts, Action.REPLACE_COMMIT, state)
    overwrite = CommitMetadata("insert_overwrite", {}, {}, {victim.partition: (victim.file_id,)})
    data = timeline.layout.encode_commit(overwrite, opened.config.version.release)
    timeline.publish(ts, Action.REPLACE_COMMIT, State.COMPLETED, data, Times(opened, 0).next())
    if not all_or_nothing:
        done = table.execute()
        ((dropped,),) = (done.tables["dropped_groups"],)
        assert done.exit_code == 7 and "was replaced or removed since the plan was made" in str(dropped["why"])
        # Of the finished groups one may be the one that is left out.
        assert done.groups and done.resumed_groups in (4, 5)
        assert len(table.new_files()) == done.groups - 1
        return
    with pytest.raises(StaleInput, match="was replaced or removed since the plan was made"):
        table.execute(all_or_nothing=True)
    assert (table.notes(), table.new_files()) == ([], {})
    assert open_local(table.path).timeline.find(table.ts) is None


# Lost and interrupted


class Ends(LocalEngine):
    """Raises `error` after so many groups."""

    def __init__(self, after: int, error: BaseException) -> None:
        self._after, self._error = after, error

    def map(self, function: Any, tasks: Sequence[Any], description: str, progress: Any) -> list[Any]:
        super().map(function, tasks[: self._after], description, progress)
        raise self._error


LOST = JobLost("the Spark job 'rewrite' failed: ExecutorLostFailure", hint="see the log")


@pytest.mark.thorough
@TWO
@pytest.mark.parametrize("error", [LOST, KeyboardInterrupt()], ids=["lost", "interrupted"])
def test_finished_groups_survive_a_lost_job(
    release: str, error: BaseException, planned: Callable[[str], Planned]
) -> None:
    table = planned(release)
    with pytest.raises(type(error)) as ended:
        table.execute(engine=Ends(7, error))
    if isinstance(ended.value, JobLost):
        assert ended.value.message.endswith("ExecutorLostFailure; 7 finished tasks are kept")
        assert ended.value.hint == "see the log; the next execute does the rest"
    assert table.state is State.INFLIGHT and len(table.notes()) == 7 and table.is_unharmed()
    assert not (table.path / f".hoodie/.heartbeat/{table.ts}").exists()
    assert recovered(table)["decision"] == "roll back"
    report, files = table.resume()
    assert (report.resumed_groups, len(files)) == (7, 3)


@TWO
def test_a_lost_job_without_a_finished_group_is_rolled_back(release: str, planned: Callable[[str], Planned]) -> None:
    table = planned(release)
    with pytest.raises(JobLost, match=r"ExecutorLostFailure$"):
        table.execute(engine=Ends(0, LOST))
    assert table.state is State.REQUESTED and rollbacks(table)


@pytest.mark.thorough
def test_an_error_of_a_task_rolls_back_what_others_did(planned: Callable[[str], Planned]) -> None:
    table = planned("1.2.0")
    with pytest.raises(StorageError):
        table.execute(engine=Ends(7, StorageError("no")))
    assert (table.state, table.notes(), table.new_files()) == (State.REQUESTED, [], {})
    report, files = table.resume()
    assert (report.resumed_groups, len(files)) == (0, GROUPS)


@pytest.mark.thorough
def test_a_lost_job_is_tried_again(planned: Callable[[str], Planned]) -> None:
    table = planned("1.2.0")
    tries: list[int] = []

    def job(wanted: ClusteringRequest) -> Report:
        tries.append(len(table.notes()))
        return clustering.execute(wanted, None, Ends(4, LOST) if len(tries) == 1 else LocalEngine())

    report = run_with_retries(job, request(table.path, Mode.EXECUTE, SMALL), 1, lambda _: None)
    assert (report.state, report.resumed_groups, tries) == (Outcome.COMPLETED, 4, [0, 4])


class _Taken(LocalEngine):
    """Does `deed` when half of the groups are done, and then the other half."""

    def __init__(self, deed: Callable[[], object]) -> None:
        self._deed = deed

    def map(self, function: Any, tasks: Sequence[Any], description: str, progress: Any) -> list[Any]:
        first = super().map(function, tasks[:5], description, progress)
        self._deed()
        return first + super().map(function, tasks[5:], description, progress)


@pytest.mark.thorough
@TWO
@pytest.mark.parametrize("completes", [True, False])
def test_what_another_process_took_over_is_not_ours_to_delete(
    release: str, completes: bool, planned: Callable[[str], Planned]
) -> None:
    """This one was stopped for so long that another took it for dead: it goes on when that one is done, or half-way."""
    table = planned(release)
    kept: dict[str, int] = {}

    def another() -> None:
        kept.update(table.new_files())
        shutil.rmtree(table.path / ".hoodie/.locks")
        (table.path / f".hoodie/.heartbeat/{table.ts}").unlink()
        if completes:
            assert table.execute(**DEAD_AT_ONCE).resumed_groups == 5
        else:
            with pytest.raises(JobLost):
                table.execute(engine=Ends(8, LOST), **DEAD_AT_ONCE)
        shutil.rmtree(table.path / ".hoodie/.locks", ignore_errors=True)

    with pytest.raises((ConflictError, NothingToDo)):
        table.execute(engine=_Taken(another))
    assert len(kept) == 5 and kept.items() <= table.new_files().items()
    assert table.is_unharmed()
    if completes:
        table.is_whole()
        assert OrphanKind.CHECKPOINTS in garbage_found(table.path).values()
    else:
        report, files = table.resume()
        assert report.resumed_groups is not None and report.resumed_groups >= 8 and len(files) <= 2


@pytest.mark.thorough
@TWO
def test_stopped_under_the_lock_for_longer_than_its_leases(
    release: str, planned: Callable[[str], Planned], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has read of the timeline is old when it goes on: another took its groups over, and committed them."""
    table = planned(release)
    original = Attempt._require_ours
    stops = iter([True])

    def stopped(attempt: Attempt, current: Snapshot) -> Instant:
        if next(stops, False):
            shutil.rmtree(table.path / ".hoodie/.locks")
            (table.path / f".hoodie/.heartbeat/{table.ts}").unlink()
            assert table.execute(**DEAD_AT_ONCE).resumed_groups == 10
            shutil.rmtree(table.path / ".hoodie/.locks", ignore_errors=True)
        return original(attempt, current)

    monkeypatch.setattr(Attempt, "_require_ours", stopped)
    with pytest.raises((ConflictError, NothingToDo, PartlyDone)):
        table.execute()
    assert len(table.new_files()) == 10
    table.is_whole()


@pytest.mark.thorough
def test_notes_that_were_left_are_garbage(planned: Callable[[str], Planned]) -> None:
    table = planned("1.2.0")
    table.kill_after_groups(2)
    assert OrphanKind.CHECKPOINTS not in garbage_found(table.path).values()
    kept = Path(shutil.copytree(table.path / checkpoint_folder(table.ts), table.path.parent / "notes"))
    table.execute()
    shutil.copytree(kept, table.path / checkpoint_folder(table.ts))
    assert list(garbage_found(table.path).values()) == [OrphanKind.CHECKPOINTS] * 2


# What is not as it was written


def spoil_note(table: Planned, note: Path) -> None:
    content = bytearray(note.read_bytes())
    content[len(content) // 2] ^= 1
    note.write_bytes(content)


def empty_note(table: Planned, note: Path) -> None:
    note.write_bytes(b"")


def file_of(table: Planned, note: Path) -> Path:
    group = read_checkpoint(open_storage(str(table.path)), table.ts, note.stem.removeprefix("group-"))
    return table.path / group.files[0].path


def drop_file(table: Planned, note: Path) -> None:
    file_of(table, note).unlink()


def cut_file(table: Planned, note: Path) -> None:
    file = file_of(table, note)
    file.write_bytes(file.read_bytes()[:-40])


def zero_footer(table: Planned, note: Path) -> None:
    file = file_of(table, note)
    file.write_bytes(file.read_bytes()[:-40] + bytes(40))


def rename_note(table: Planned, note: Path) -> None:
    note.rename(note.with_name(f"group-{'0' * 32}.json"))


SPOILED = [spoil_note, empty_note, drop_file, cut_file, zero_footer, rename_note]


@pytest.mark.thorough
@pytest.mark.spread(2)
@pytest.mark.parametrize("spoil", SPOILED, ids=lambda one: one.__name__)
def test_a_group_that_is_not_as_it_was_is_done_again(
    spoil: Callable[[Planned, Path], None], planned: Callable[[str], Planned]
) -> None:
    table = planned("1.2.0")
    table.kill_after_groups(4)
    spoil(table, table.notes()[2])
    report, files = table.resume()
    assert (report.resumed_groups, len(files)) == (3, 7)


@pytest.mark.thorough
def test_other_options_are_another_rewrite(planned: Callable[[str], Planned]) -> None:
    table = planned("0.15.0")
    table.kill_after_groups(4)
    report = table.execute(**{"hoodie.parquet.compression.codec": "snappy"})
    assert report.resumed_groups == 0
    table.is_whole()


NOTE = Checkpoint(
    "ab", (CheckpointFile("a-0", "p=1/a-0_0-0-0_1.parquet", 10, 3, 5),), 3, 9, (3, 7), (3, 7), None, LogCounts(7, 9)
)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Storage:
    return open_storage(str(tmp_path_factory.mktemp("notes")))


def test_a_note_is_what_was_noted(shelf: Storage) -> None:
    save_checkpoint(shelf, "1", NOTE)
    assert repr(read_checkpoint(shelf, "1", "ab")) == repr(NOTE)


@pytest.mark.parametrize("path", ["p=1/a-0_0-0-0_1.parquet", "../p/a-0_0-0-0_4.parquet", ".hoodie/hoodie.properties"])
def test_a_note_names_files_of_its_attempt(path: str, shelf: Storage) -> None:
    """What it names becomes part of the commit."""
    save_checkpoint(shelf, "4", replace(NOTE, files=(replace(NOTE.files[0], path=path),)))
    with pytest.raises(CorruptFile, match="it names files of others"):
        read_checkpoint(shelf, "4", "ab")


@given(st.binary() | st.from_regex(r'\{"sum": ?[0-9"\[{]*\}?', fullmatch=True).map(str.encode))
def test_whatever_stands_in_a_note(shelf: Storage, content: bytes) -> None:
    shelf.put(f"{checkpoint_folder('2')}/group-ab.json", content)
    with pytest.raises(CorruptFile):
        read_checkpoint(shelf, "2", "ab")


@given(st.data())
def test_a_note_with_a_changed_byte(shelf: Storage, data: st.DataObject) -> None:
    save_checkpoint(shelf, "3", NOTE)
    path = f"{checkpoint_folder('3')}/group-ab.json"
    content = bytearray(shelf.read(path))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] = data.draw(st.integers(0, 255))
    shelf.put(path, bytes(content))
    with suppress(CorruptFile):
        assert read_checkpoint(shelf, "3", "ab") == NOTE


# One task


def task_in(folder: Path, sort: tuple[SortColumn, ...] = ()) -> RewriteTask:
    nan = float("nan")
    rows = pa.table(
        {
            "_hoodie_record_key": pa.array(["a", "b", "c", "d"]),
            "whole": pa.array([4, 3, None, 1]),
            "single": pa.array([1.5, nan, -0.0, None], pa.float32()),
            "double": pa.array([nan, 1e300, 2.5, float("-inf")]),
            "nothing": pa.array([nan, nan, None, nan]),
            "text": pa.array(["x", None, "é", ""]),
            "long": pa.array(["é" * 5000, None, "a", None]),
            "nested": pa.array([{"x": nan}, {"x": -0.0}, None, {"x": 2.0}]),
        }
    )
    for name in ("one", "two"):
        pq.write_table(rows, folder / f"{name}.parquet")
    inputs = ("one.parquet", "two.parquet")
    storage = open_storage(str(folder))
    return RewriteTask(
        storage, "20260101000000000", "", *slices_in(storage, *inputs), ("a-0",),
        sort, "LINEAR", None, (), True, FileSettings(), indexed=(*rows.column_names, "nested.x"),
    )  # fmt: skip


def facts(result: RewriteResult) -> str:
    # NaN and -0.0 tell themselves apart by their texts.
    return repr(replace(result, seconds={}, peak=0, taken_over=False))


@pytest.mark.parametrize("sort", [(), (SortColumn("whole"), SortColumn("double"))], ids=["copied", "sorted"])
def test_what_is_taken_over_is_what_was_done(sort: tuple[SortColumn, ...], tmp_path: Path) -> None:
    """With the statistics that the footer does not tell."""
    task = task_in(tmp_path, sort)
    first = rewrite_once(task, "0-0-0")
    assert not first.taken_over
    assert all(one.has_range for one in first.files[0].columns)
    shutil.rmtree(tmp_path / ".hoodie/.temp")
    second = rewrite_once(replace(task, file_ids=("b-0",)), "0-0-1")
    assert second.taken_over and facts(second) == facts(first)
    assert [marker.path for marker in read_markers(task.storage, task.instant)] == [first.files[0].path]
    assert not rewrite_once(replace(task, file_ids=("b-0", "c-0")), "0-0-2").taken_over
    assert not rewrite_once(replace(task, settings=FileSettings(codec="gzip")), "0-0-3").taken_over


def test_a_note_of_files_of_another_attempt(tmp_path: Path) -> None:
    task = task_in(tmp_path)
    first = rewrite_once(task, "0-0-0")
    (note,) = (tmp_path / checkpoint_folder(task.instant)).iterdir()
    group = read_checkpoint(task.storage, task.instant, note.stem.removeprefix("group-"))
    other = first.files[0].path.replace(task.instant, "20260101000000001")
    shutil.copy(tmp_path / first.files[0].path, tmp_path / other)
    save_checkpoint(task.storage, task.instant, replace(group, files=(replace(group.files[0], path=other),)))
    assert not rewrite_once(task, "0-0-1").taken_over
    for changed in (replace(group, after=(8, 1)), replace(group, files=())):
        save_checkpoint(task.storage, task.instant, changed)
        assert not rewrite_once(task, "0-0-2").taken_over


class _Full(LocalStorage):
    def put(self, path: str, data: bytes) -> None:
        raise StorageError(f"{path}: no space left")


def test_a_group_without_its_note_is_done_all_the_same(tmp_path: Path) -> None:
    task = replace(task_in(tmp_path), storage=_Full(str(tmp_path)))
    assert not rewrite_once(task, "0-0-0").taken_over
    assert not rewrite_once(task, "0-0-1").taken_over
    assert not (tmp_path / checkpoint_folder(task.instant)).exists()
