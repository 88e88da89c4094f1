"""Every way in which a write of Hudi's and a clustering of ours meet: the write begins while a plan is pending, or it
began before the plan and ends after it.

With a clustering of Hudi's, most of these lose rows or bring old ones back. With ours none does, whether the plan is
made first, as Hudi makes it, or published late. Beside a plan that is made first, writes fail where Hudi's own rules
refuse them; beside one that is published late, none fails.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from hudi_services.errors import HudiServicesError
from hudi_services.jobs import clustering
from hudi_services.runs.report import Report
from hudi_services.runs.request import Mode

from ..unit.tables import request
from ..unit.test_salvage import Meanwhile
from . import layout, ours
from .meetings import (
    ALLOW,
    BUCKET_INDEX,
    BUCKETS,
    COW,
    LOCK,
    MOR,
    OLD,
    PAD,
    PREFER_WRITER,
    ROLL_BACK,
    SIMPLE,
    SPLIT,
    Held,
    Model,
    Templates,
    Write,
    attempt,
    check,
)
from .peer import Peer

pytestmark = pytest.mark.releases("0.15.0", "1.2.0")

UPSERT, DELETE = Write("upsert", ("a0",)), Write("delete", ("a0",))
INSERT, BULK_INSERT = Write("insert", ("a9",), options=PAD), Write("bulk_insert", ("a8",))
UNTOUCHED = Write("upsert", ("c0",))
OVERWRITE, OVERWRITE_TABLE = Write("insert_overwrite", ("a9",)), Write("insert_overwrite_table", ("a9",))
DROP = Write("delete_partition", ("a0",), options={"hoodie.datasource.write.partitions.to.delete": "a"})
_REJECTS = "HoodieClusteringUpdateException"
_CONFLICT = "HoodieWriteConflictException"
_IS_PLANNED = "Please ensure that there are no pending table service actions"


@dataclass(frozen=True)
class Row:
    """A write that begins after the clustering.

    Beside a pending plan it `fails` with this exception, if at all, and the execution of the plan then ends with the
    exit code `first`; `on_0_15` is both for that release where it differs. `late` is the exit code of a clustering that
    is published late, and has the write in its midst.
    """

    name: str
    write: Write
    fails: str = ""
    first: int = 0
    on_0_15: tuple[str, int] | None = None
    late: int = 7
    kind: str = COW
    options: Mapping[str, str] = field(default_factory=dict)
    deep: bool = False


ROWS = (
    Row("upsert", UPSERT, fails=_REJECTS, first=4),
    Row("delete", DELETE, fails=_REJECTS, first=4, deep=True),
    # It goes into new files beside a plan, and into small files that are there otherwise.
    Row("insert", INSERT, deep=True),
    Row("bulk insert", BULK_INSERT, late=0, deep=True),
    Row("overwrite", OVERWRITE, first=7, deep=True),
    Row("overwrite table", OVERWRITE_TABLE, first=4, late=4, deep=True),
    Row("delete partition", DROP, fails=_IS_PLANNED, first=4, deep=True),
    Row("upsert, allow", UPSERT, first=7, options=ALLOW, deep=True),
    Row("upsert, allow, MOR", UPSERT, first=7, kind=MOR, options=ALLOW, deep=True),
    Row("upsert, allow and roll back", UPSERT, options={**ALLOW, **ROLL_BACK}),
    Row("upsert, reject and roll back", UPSERT, fails=_REJECTS, first=4, options=ROLL_BACK, deep=True),
    Row("upsert, simple, allow", UPSERT, fails=_CONFLICT, first=7, on_0_15=("", 7),
        options={**SIMPLE, **ALLOW}, deep=True),
    Row("upsert, prefer writer, allow", UPSERT, first=7, options={**PREFER_WRITER, **ALLOW}, deep=True),
    Row("upsert, prefer writer", UPSERT, first=7, on_0_15=(_REJECTS, 0), options=PREFER_WRITER, deep=True),
    # Plans that split buckets are not published late.
    Row("upsert, buckets", UPSERT, fails=_REJECTS, first=4, late=2, kind=BUCKETS, options=BUCKET_INDEX, deep=True),
)  # fmt: skip


@dataclass
class Meeting:
    """A table of one test, and what is done with it; `options` are those of Hudi's writer."""

    peer: Peer
    path: Path
    kind: str
    options: Mapping[str, str]

    def attempt(self, write: Write, ts: int = 20) -> str:
        """Why Hudi's write failed, "" when it is complete."""
        return attempt(self.peer, self.path, self.of(write), ts)

    def of(self, write: Write) -> Write:
        """The write with the options of the test."""
        return replace(write, options={**self.options, **write.options})

    def check(self, wanted: Model) -> None:
        # hudi-rs does not see file groups that have log files alone.
        check(self.peer, self.path, wanted, hudi_rs=self.kind != BUCKETS)

    def ours(self, command: str, *flags: str) -> ours.Run:
        return ours.run(command, self.path, *flags, options=self._ours)

    def late(self, act: Callable[[], object] = lambda: None, wait_millis: int = 60_000) -> Report | HudiServicesError:
        """Cluster and publish late, with `act` in the midst."""
        wait = {
            "hoodie.write.lock.wait_time_ms": str(wait_millis),
            "hoodie.write.lock.wait_time_ms_between_retry": "50",
        }
        wanted = request(self.path, Mode.SCHEDULE_AND_EXECUTE, {**self._ours, **wait}, publish_late=True)
        try:
            return clustering.schedule_and_execute(wanted, engine=Meanwhile(act))
        except HudiServicesError as error:
            return error

    @property
    def _ours(self) -> Mapping[str, str]:
        """The options of our commands: the lock of the writer, and the rule by which every bucket is to be split."""
        lock = LOCK if LOCK.items() <= self.options.items() else {}
        return {**lock, **(SPLIT if self.kind == BUCKETS else {})}

    def go_on(self, rows: Model) -> None:
        """Hudi updates groups that were clustered and groups that were not, and inserts."""
        kept = tuple(key for key in rows if key[1] in "0389")
        some = Write("upsert", (*kept, "a7", "b7"), "later")
        assert self.attempt(some, 30) == ""
        self.check(some.of(rows))


class Meet(Protocol):
    def __call__(self, kind: str, options: Mapping[str, str]) -> Meeting: ...


@pytest.fixture(scope="module")
def templates(peer: Peer, tmp_path_factory: pytest.TempPathFactory) -> Templates:
    return Templates(peer, tmp_path_factory.mktemp(f"meetings-{peer.version}"))


@pytest.fixture
def meet(peer: Peer, templates: Templates, tmp_path: Path) -> Meet:
    """Makes the table of a test."""

    def made(kind: str, options: Mapping[str, str]) -> Meeting:
        return Meeting(peer, templates.copy(kind, tmp_path / "table"), kind, options)

    return made


def each(rows: Sequence["Row | Early"]) -> pytest.MarkDecorator:
    params = [pytest.param(row, id=row.name, marks=[pytest.mark.deep] if row.deep else []) for row in rows]
    return pytest.mark.parametrize("row", params)


def dropped(report: Mapping[str, Any]) -> list[str]:
    """The partitions of the groups that were left out."""
    return [group["partition"] for group in report["tables"].get("dropped_groups", ())]


@each(ROWS)
def test_a_write_beside_a_pending_plan(row: Row, version: str, meet: Meet) -> None:
    """It may fail, where Hudi says so; the plan is executed without the groups that it has changed."""
    it = meet(row.kind, row.options)
    assert it.ours("schedule").code == 0
    fails, first = row.on_0_15 if row.on_0_15 and version == "0.15.0" else (row.fails, row.first)
    failed = it.attempt(row.write)
    assert fails in failed and bool(fails) == bool(failed), failed
    rows = OLD if failed else row.write.of(OLD)
    run = it.ours("execute")
    assert run.code == first, run.stderr
    assert run.code != 7 or dropped(run.report) == ["a"]
    it.check(rows)
    if failed and run.code == 4:
        # It may still be at work, as far as we know. The next write of Hudi rolls back what it left.
        assert "is in progress" in run.stderr
        # A bulk insert would go into a bucket that the plan makes, and the plan be refused.
        next_write = UNTOUCHED if row.kind == BUCKETS else BULK_INSERT
        assert it.attempt(next_write) == ""
        rows = next_write.of(rows)
        assert it.ours("execute").code == 0
    assert not [ts for ts in layout.pending(it.path) if ts == run.report["instant"]]
    it.go_on(rows)


@pytest.mark.thorough
@each(ROWS)
def test_a_write_beside_a_late_plan(row: Row, meet: Meet) -> None:
    """It begins and ends while the rows are rewritten, and never fails."""
    it = meet(row.kind, row.options)
    failed: list[str] = []
    done = it.late(lambda: failed.append(it.attempt(row.write)))
    assert done.exit_code == row.late, done
    assert failed == ([] if row.kind == BUCKETS else [""])
    rows = OLD if row.kind == BUCKETS else row.write.of(OLD)
    it.check(rows)
    it.go_on(rows)


@dataclass(frozen=True)
class Early:
    """A write that began before the clustering, and ends when the clustering has ended.

    With a lock, the plan and its execution end with the exit codes `planned`, and the write `fails` with this
    exception, if at all; a clustering that is published late ends with `late` when it hardly waits. `then` is the exit
    code of one that has waited for the end of the write.
    """

    name: str
    write: Write
    planned: tuple[int, int] = (0, 7)
    fails: str = ""
    late: int = 7
    then: int = 7
    kind: str = COW
    looks_up: bool = False
    deep: bool = False


EARLY = (
    Early("upsert", UPSERT),
    Early("insert", INSERT, deep=True),
    Early("delete", DELETE, deep=True),
    Early("overwrite", OVERWRITE, planned=(4, 0), late=4, deep=True),
    # A plan leaves file groups to which log files are being written for the next one.
    Early("upsert, MOR", UPSERT, planned=(0, 0), late=0, then=0, kind=MOR, deep=True),
    Early("upsert, looks up", UPSERT, planned=(0, 0), fails=_CONFLICT, late=4, looks_up=True, deep=True),
)
COLUMNS: Mapping[str, Mapping[str, str]] = {"no lock": {}, "simple": SIMPLE, "prefer writer": PREFER_WRITER}
EACH_COLUMN = pytest.mark.parametrize(
    "column", [pytest.param(name, marks=[pytest.mark.deep] if name == "prefer writer" else []) for name in COLUMNS]
)


@EACH_COLUMN
@each(EARLY)
def test_a_write_that_began_before_the_plan(row: Early, column: str, meet: Meet, tmp_path: Path) -> None:
    """Plan and execution are tried while it writes: without a lock, and beside an overwrite, there is no plan."""
    it, is_locked = meet(row.kind, COLUMNS[column]), column != "no lock"
    with Held(it.peer, it.path, it.of(row.write), tmp_path / "held", looks_up=row.looks_up) as held:
        scheduled, executed = (it.ours(command) for command in ("schedule", "execute"))
        assert held.is_held
    assert (scheduled.code, executed.code) == (row.planned if is_locked else (4, 0)), executed.stderr
    assert executed.code != 7 or dropped(executed.report) == ["a"]
    failed = held.end()
    assert (row.fails in failed) if row.fails and is_locked else not failed, failed
    rows = OLD if failed else row.write.of(OLD)
    it.check(rows)
    again = it.ours("execute", "--mode", "scheduleAndExecute")
    assert again.code == 0, again.stderr
    it.check(rows)
    it.go_on(rows)


@pytest.mark.thorough
@EACH_COLUMN
def test_a_plan_that_is_executed_after_a_write_that_began_before(column: str, meet: Meet, tmp_path: Path) -> None:
    """Hudi's simple strategy counts a pending plan as a conflict; without a lock there is no such plan."""
    it = meet(COW, COLUMNS[column])
    with Held(it.peer, it.path, it.of(UPSERT), tmp_path / "held") as held:
        scheduled = it.ours("schedule")
        assert held.is_held
    failed = held.end()
    assert (_CONFLICT in failed) if column == "simple" else not failed, failed
    rows = OLD if failed else UPSERT.of(OLD)
    executed = it.ours("execute")
    assert (scheduled.code, executed.code) == ((4, 0) if column == "no lock" else (0, 7)), executed.stderr
    it.check(rows)
    it.go_on(rows)


@EACH_COLUMN
@each(EARLY)
def test_a_write_that_began_before_a_late_plan(row: Early, column: str, meet: Meet, tmp_path: Path) -> None:
    """We leave its groups out, or wait for it, and give up when we have waited for long enough. It never fails."""
    it, is_locked = meet(row.kind, COLUMNS[column]), column != "no lock"
    with Held(it.peer, it.path, it.of(row.write), tmp_path / "held", looks_up=row.looks_up) as held:
        done = it.late(wait_millis=100)
        assert done.exit_code == (row.late if is_locked else 4), done
        assert held.is_held
        if done.exit_code == 4:
            done = it.late(threading.Timer(0.3, held.go).start)
            assert done.exit_code == row.then, done
    assert not isinstance(done, Report) or done.exit_code != 7 or dropped({"tables": done.tables}) == ["a"]
    assert held.end() == ""
    rows = row.write.of(OLD)
    it.check(rows)
    it.go_on(rows)
