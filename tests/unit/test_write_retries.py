"""Writes whose file groups another writer changes meanwhile: no row is lost or doubled when rows are assigned again."""

import random
import shutil
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pytest

import hudi_services
from hudi_services.attempts import write_attempt
from hudi_services.commit.lease import Lease
from hudi_services.commit.liveness import lease_name
from hudi_services.errors import ConflictError, StorageError
from hudi_services.jobs import writing
from hudi_services.options import resolve
from hudi_services.runs.report import Report
from hudi_services.runs.request import WriteOperation, WriteRequest
from hudi_services.snapshot import Snapshot
from hudi_services.storage import Storage
from hudi_services.stores.local import LocalStorage
from hudi_services.timeline.instant import Action, Instant, State
from hudi_services.versions import VERSIONS

from ..tiers import DEEP
from .faulty_storage import FaultyStorage, Killed
from .rides import FILTERS, create
from .shares import places, share
from .tables import open_local
from .test_upserts import Rows, rows, seen
from .test_upserts import write as write_alone

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")

RETRIES = "hoodie.write.num.retries.on.conflict.failures"
LOCKED = {
    **FILTERS,
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.lock.wait_time_ms": "5000",
    "hoodie.table.services.enabled": "false",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.clean.fileversions.retained": "1",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.metadata.global.record.level.index.min.filegroup.count": "2",
}
LEASE = ".hoodie/.locks/hudi_services/table."
"""Created, the lease of the table is taken, before the lock; written again, it is given back."""
KEYS = 40
"""Of the table at the beginning, from 0 on; its days are d0, d1 and d2."""

Change = Callable[[Rows], None]
Other = tuple[Callable[[hudi_services.Table], Any], Change]
"""What another writer does, and what becomes of the rows."""


class Interrupted(FaultyStorage):
    """Local storage with which `act` happens once, right before change number `at` (from 0 on) of those in `log`, or
    before the next one that is not under the lock.

    `held` are the numbers of the changes under the lock. It may also die, as `FaultyStorage` does.
    """

    def __init__(self, path: Path, at: int = -1, act: Callable[[], object] = lambda: None, writes: int | None = None):
        super().__init__(str(path), writes)
        self.held: list[int] = []
        self._at = at
        self._act = act
        self._is_held = False

    def _write(self, what: str, path: str) -> None:
        if 0 <= self._at <= len(self.log) and not self._is_held:
            self._at = -1
            self._act()
        if self._is_held:
            self.held.append(len(self.log))
        super()._write(what, path)
        if path.startswith(LEASE) and what in ("create", "put"):
            self._is_held = what == "create"


def request(path: Path, operation: str, **more: str) -> WriteRequest:
    partitions = ("d0", "d[1]*") if operation == "delete_partition" else ()
    options = resolve([("test", {**LOCKED, **more})])
    return WriteRequest(
        base_path=str(path), options=options, operation=WriteOperation(operation), partitions=partitions
    )


def write(path: Path, operation: str, new: pa.Table, storage: Storage | None = None, **more: str) -> Report:
    wanted = request(path, operation, **more)
    if not wanted.operation.needs_rows:
        return writing.delete_partitions(wanted, storage)
    return writing.write(wanted, new.to_reader, storage)


def put(new: pa.Table) -> Change:
    return lambda known: known.update({(row["day"], row["id"]): row for row in new.to_pylist()})


def put_missing(new: pa.Table) -> Change:
    return lambda known: known.update(
        {key: row for row in new.to_pylist() if (key := (row["day"], row["id"])) not in known}
    )


def take(keys: pa.Table) -> Change:
    def change(known: Rows) -> None:
        for row in keys.to_pylist():
            known.pop((row["day"], row["id"]), None)

    return change


def take_days(days: set[str], new: pa.Table | None = None) -> Change:
    def change(known: Rows) -> None:
        for key in [key for key in known if key[0] in days]:
            del known[key]
        if new is not None:
            put(new)(known)

    return change


def nothing(known: Rows) -> None:
    """A table service."""


def others(chance: random.Random, index: str, *, merges: bool) -> dict[str, Other]:
    """Other writers by what they do: new keys are none of ours. `merges`: the table is merge-on-read."""
    first = chance.randrange(KEYS - 8)
    old, fresh = rows(first, first + 8, "other", ts=2), rows(1000, 1000 + chance.randrange(1, 9), "other", ts=2)
    both = pa.concat_tables([old, fresh]).combine_chunks()
    options = {**LOCKED, "hoodie.index.type": index}

    def cleaned(table: hudi_services.Table) -> None:
        table.upsert(both, options=options)
        with suppress(ConflictError):
            table.clean(options=options)

    def clustered(table: hudi_services.Table) -> None:
        table.cluster(publish_late=False, options=options)

    def compacted(table: hudi_services.Table) -> None:
        table.upsert(old, options=options)
        with suppress(ConflictError):
            if merges:
                table.compact(options=options)

    return {
        "upsert": (lambda table: table.upsert(both, options=options), put(both)),
        "insert": (lambda table: table.insert(fresh, options=options), put(fresh)),
        "delete": (lambda table: table.delete(old, options=options), take(old)),
        "overwrite": (lambda table: table.insert_overwrite(rows(0, 1, "over"), options=options), over()),
        "upsert and clean": (cleaned, put(both)),
        "clustering": (clustered, nothing),
        "plan of a clustering": (lambda table: table.plan_clustering(options=options), nothing),
        "compaction": (compacted, put(old)),
    }


def over() -> Change:
    return take_days({"d0"}, rows(0, 1, "over"))


def ours(chance: random.Random) -> dict[str, tuple[pa.Table, Change, dict[str, str]]]:
    """Our writes by operation: the rows, what becomes of those of the table, and options."""
    first = chance.randrange(KEYS)
    new = rows(first, first + 20, "new", ts=5)
    fresh = rows(2000, 2000 + chance.randrange(1, 20), "new", ts=5)
    return {
        "upsert": (new, put(new), {}),
        "delete": (new, take(new), {}),
        "insert": (fresh, put(fresh), {}),
        "insert that leaves out": (new, put_missing(new), {"hoodie.datasource.insert.dup.policy": "DROP"}),
        "insert_overwrite": (rows(0, 1, "new"), take_days({"d0"}, rows(0, 1, "new")), {}),
        "delete_partition": (new, take_days({"d0"}), {}),
    }


def made(path: Path, version: int, kind: str, index: str) -> Rows:
    """A table with file groups of several writes, and on merge-on-read tables with log files."""
    table = create(path, table_version=version, table_type=kind)
    options = {**LOCKED, "hoodie.index.type": index}
    table.insert(rows(0, KEYS // 2), options=options)
    apart = {} if index == "BUCKET" else {"hoodie.parquet.small.file.limit": "0"}
    table.insert(rows(KEYS // 2, KEYS), options={**options, **apart})
    table.upsert(rows(0, 3, ts=1), options=options)
    if index == "RECORD_INDEX":
        assert table.build_index(options=LOCKED).ok
    return seen(path)


class Case:
    """One write of ours and one of another writer, at a moment that `seed` chooses, on a table of a kind."""

    def __init__(self, seed: int, path: Path, version: int, kind: str) -> None:
        self.chance = random.Random(seed * 100 + version)
        self.path, self._made = path, path.with_name("made")
        self.index = self.chance.choice(["SIMPLE", "BLOOM", "BUCKET", "RECORD_INDEX"])
        for one in (path, self._made):
            shutil.rmtree(one, ignore_errors=True)
        self.before = made(path, version, kind, self.index)
        shutil.copytree(path, self._made)
        merges = kind == "MERGE_ON_READ"
        self.other = self.chance.choice([*others(self.chance, self.index, merges=merges)])
        self.act, self.theirs = others(self.chance, self.index, merges=merges)[self.other]
        self.operation = self.chance.choice([*ours(self.chance)])
        self.rows, self.change, options = ours(self.chance)[self.operation]
        self.options = {**options, "hoodie.index.type": self.index}
        self.where = f"{seed}: {self.operation} beside {self.other}, {self.index}"

    def write(self, storage: Storage | None = None, **more: str) -> Report:
        operation = self.operation.removesuffix(" that leaves out")
        return write(self.path, operation, self.rows, storage, **{**self.options, **more})

    def anew(self) -> None:
        shutil.rmtree(self.path)
        shutil.copytree(self._made, self.path)

    def moment(self) -> int:
        """A change of ours, by number, that is between our instant and our commit, and not under the lock."""
        log = Interrupted(self.path)
        assert not self.write(log).exit_code
        self.anew()
        names = [line.rpartition(".")[2] for line in log.log]
        begun = names.index("requested")
        committed = max(n for n, line in enumerate(log.log) if line.startswith(f"create {LEASE}"))
        return self.chance.choice([n for n in range(begun + 1, committed + 1) if n not in log.held])

    def interrupt(self) -> None:
        """What the other writer does; it may find that ours is in its way."""
        try:
            self.act(hudi_services.open(self.path, engine="local"))
        except ConflictError:
            assert self.theirs is nothing
            self.where += ", which waits"

    def expected(self, *changes: Change) -> Rows:
        known = dict(self.before)
        for change in changes:
            change(known)
        return known


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", VERSIONS)
def test_another_writer_at_any_moment(version: int, kind: str, tmp_path: Path) -> None:
    """The rows are those of its commit and then ours, or ours is refused, and nothing of it is left."""
    retried = 0
    for seed in range(60):
        if retried and not DEEP and seed >= 3:
            break
        case = Case(seed, tmp_path / "rides", version, kind)
        storage = Interrupted(case.path, case.moment(), case.interrupt)
        table = hudi_services.open(case.path, engine="local")
        try:
            report = case.write(storage)
        except ConflictError as refused:
            # A plan that is to be executed first.
            assert "plan" in refused.message and "clustering" in case.other, (case.where, refused)
            assert seen(case.path) == case.before, case.where
            assert table.execute_clustering(options=LOCKED).ok
            report = case.write()
        assert report.exit_code == 0, case.where
        retries = report.document()["tables"]["written"][0]["retries"]
        rolled_back = [one for one in report.warnings if "its rows were assigned again" in one]
        assert len(rolled_back) == retries, case.where
        retried += int(retries)
        wanted = [case.expected(case.theirs, case.change)]
        if not retries:
            wanted.append(case.expected(case.change, case.theirs))
        assert seen(case.path) in wanted, case.where
        assert table.validate(strict=True).ok, case.where
        planned = open_local(case.path).timeline.pending_clusterings()
        if planned:
            # The other one has planned, and found then that ours was in its way.
            assert case.theirs is nothing and table.execute_clustering(options=LOCKED).ok, case.where
            assert seen(case.path) in wanted, case.where
        assert not open_local(case.path).timeline.pending(), case.where
    assert retried


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_a_compaction_is_planned_at_any_moment(version: int, tmp_path: Path) -> None:
    """It loses no row of ours when it is carried out later, wherever our log files and new base files are."""
    waited = 0
    for seed in range(16):
        if waited and not DEEP and seed >= 3:
            break
        case = Case(seed, tmp_path / "rides", version, "MERGE_ON_READ")
        table = hudi_services.open(case.path, engine="local")

        def act(path: Path = case.path) -> None:
            # Where our new files may be in its way, it waits.
            with suppress(ConflictError):
                hudi_services.open(path, engine="local").plan_compaction(options=LOCKED)

        try:
            report = case.write(Interrupted(case.path, case.moment(), act))
        except ConflictError as refused:
            assert "the pending plan" in refused.message, (case.where, refused)
            wanted = case.before
        else:
            assert report.exit_code == 0, case.where
            wanted = case.expected(case.change)
        assert seen(case.path) == wanted, case.where
        if open_local(case.path).timeline.pending():
            waited += 1
            assert table.execute_compaction(options=LOCKED).ok, case.where
        assert seen(case.path) == wanted, case.where
        assert not open_local(case.path).timeline.pending(), case.where
        assert table.validate(strict=True).ok, case.where
    assert waited


class Twice(Interrupted):
    """The other writer acts before each commit of ours, so many times in all."""

    def __init__(self, path: Path, act: Callable[[], object], times: int) -> None:
        super().__init__(path)
        self._each, self._times = act, times

    def open_output(self, path: str) -> IO[bytes]:
        if self._times and not path.startswith(".hoodie"):
            self._times -= 1
            self._each()
        return super().open_output(path)


@pytest.mark.thorough
@pytest.mark.parametrize("most", [0, 1, 3])
def test_as_often_as_the_option_says(most: int, tmp_path: Path) -> None:
    path = tmp_path / "rides"
    table = create(path, partition_by=None)
    table.insert(rows(0, 10), options=LOCKED)
    others = iter(range(1, 10))

    def act() -> None:
        table.upsert(rows(0, 1, f"other {next(others)}", ts=1), options=LOCKED)

    more = {RETRIES: str(most)}
    report = write(path, "upsert", rows(0, 3, "new", ts=2), Twice(path, act, most), **more)
    assert report.document()["tables"]["written"][0]["retries"] == most
    instants = {one["instant"] for one in table.timeline().to_pylist() if one["action"] == "rollback"}
    assert len(instants) == most == len(report.warnings)
    assert all(any(one in warning for one in instants) for warning in report.warnings)
    with pytest.raises(ConflictError, match=r"was updated by \d+ since it was read") as refused:
        write(path, "upsert", rows(0, 5, "late", ts=3), Twice(path, act, most + 1), **more)
    assert refused.value.hint.endswith(f"{RETRIES}={most}")
    texts = {key[1]: row["text"].split()[0] for key, row in seen(path).items()}
    assert texts == {f"k{n:05d}": "new" if n < 3 else "text" for n in range(10)}
    assert table.validate(strict=True).ok


def test_another_schema_ends_the_write(tmp_path: Path) -> None:
    path = tmp_path / "rides"
    table = create(path, partition_by=None)
    table.insert(rows(0, 10), options=LOCKED)
    wider = rows(0, 1, "other", ts=1).append_column("more", pa.array([1]))
    storage = Twice(path, lambda: table.upsert(wider, options=LOCKED), 1)
    with pytest.raises(ConflictError, match="another writer has changed the schema"):
        write(path, "upsert", rows(0, 3, "new", ts=2), storage)
    assert {row["text"].split()[0] for row in seen(path).values()} == {"other", "text"}


class Mute(LocalStorage):
    """No heartbeat gets through, neither the first one nor a later one."""

    def put(self, path: str, data: bytes) -> None:
        if path.startswith(".hoodie/.heartbeat/"):
            raise StorageError(f"{self.full_path(path)}: not now")
        super().put(path, data)


@pytest.mark.threads
def test_nothing_begins_without_a_heartbeat(tmp_path: Path) -> None:
    """It is written while the lock is taken. Writers of Hudi would take a requested write without one for dead."""
    path = tmp_path / "rides"
    create(path).insert(rows(0, KEYS, "first"))
    before = {file for file in path.rglob("*") if file.is_file()}
    with pytest.raises(StorageError, match="heartbeat"):
        write(path, "upsert", rows(0, 1, "again", ts=2), Mute(str(path)))
    assert {file for file in path.rglob("*") if file.is_file() and ".locks" not in file.parts} <= before
    assert write(path, "upsert", rows(0, 1, "again", ts=2)).exit_code == 0


def test_a_file_that_is_gone_for_no_reason(tmp_path: Path) -> None:
    """Only what another writer did is worth another look."""
    path = tmp_path / "rides"
    table = create(path, partition_by=None)
    table.insert(rows(0, 10), options=LOCKED)
    before = table.timeline().num_rows
    next(path.glob("*.parquet")).unlink()
    with pytest.raises(hudi_services.HudiServicesError):
        write(path, "upsert", rows(0, 3, "new", ts=2))
    assert table.timeline().num_rows <= before + 1


@pytest.mark.thorough
@pytest.mark.spread(4)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", VERSIONS)
def test_every_write_of_a_retry_may_be_the_last(version: int, kind: str, tmp_path: Path) -> None:
    """Readers see the rows of the other writer, or ours, too; the next write repairs the table."""
    path, begun = tmp_path / "rides", tmp_path / "made"
    before = made(path, version, kind, "BLOOM")
    shutil.copytree(path, begun)
    other, new = rows(10, 22, "other", ts=2), rows(15, 50, "new", ts=5)

    def act() -> None:
        hudi_services.open(path, engine="local").upsert(other, options=LOCKED)

    def run(at: int, writes: int | None) -> Interrupted:
        shutil.rmtree(path)
        shutil.copytree(begun, path)
        storage = Interrupted(path, at, act, writes)
        if writes is None:
            assert not write(path, "upsert", new, storage).exit_code
        else:
            with pytest.raises(Killed):
                write(path, "upsert", new, storage)
        return storage

    log = run(-1, None).log
    at = max(n for n, line in enumerate(log) if line.startswith(f"create {LEASE}"))
    retried = run(at, None)
    theirs = {**before}
    put(other)(theirs)
    both = {**theirs}
    put(new)(both)
    assert seen(path) == both
    assert any(".rollback" in line for line in retried.log)
    committed = len(open_local(path).timeline.completed_writes())
    for survived in share([n for n in places(retried.log) if n > at], version, 3):
        run(at, survived)
        where = f"killed after {survived} writes: {retried.log[survived - 1 : survived + 1]}"
        done = len(open_local(path).timeline.completed_writes()) == committed
        assert seen(path) == (both if done else theirs), where
        # With a lock provider it would wait until Hudi's writers have had the time to do it.
        write_alone(path, "delete", rows(0, 1))
        assert seen(path) == {key: row for key, row in (both if done else theirs).items() if key[1] != "k00000"}, where
        assert not open_local(path).timeline.pending(), where
        assert hudi_services.open(path, engine="local").validate(strict=True).ok, where
        bases = {one.name.rpartition("_")[2].removesuffix(".parquet") for one in path.rglob("*.parquet")}
        assert bases <= {instant.ts for instant in open_local(path).timeline.completed_writes()}, where


def test_the_next_instant_is_claimed_by_a_run_that_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write finds under the lock that others were first, and another one, which waits for the lock, has claimed the
    instant that comes next."""
    table = create(tmp_path / "t", options=FILTERS)
    table.upsert(rows(2, 3))
    claim_next, refuse = write_attempt.WriteAttempt._claim_next, write_attempt.refuse_ahead
    claimed: list[str] = []

    def others_first(attempt: write_attempt.WriteAttempt) -> str:
        due = claim_next(attempt)
        monkeypatch.setattr(write_attempt.WriteAttempt, "_claim_next", claim_next)
        table.upsert(rows(0, 1))
        return due

    def claims(found: Snapshot, ts: str) -> None:
        refuse(found, ts)
        if len(claimed) < 2 and len(found.timeline.completed_writes()) == 2:
            claimed.append(ts)
            instant = Instant(ts, Action.COMMIT, State.REQUESTED, None, "")
            stack.enter_context(Lease(found.storage, lease_name(instant), f"write {ts}", is_new=True))

    monkeypatch.setattr(write_attempt.WriteAttempt, "_claim_next", others_first)
    monkeypatch.setattr(write_attempt, "refuse_ahead", claims)
    with ExitStack() as stack:
        done = table.upsert(rows(1, 2))
    assert done.ok and done.instant is not None and done.instant > max(claimed)
    assert len(open_local(tmp_path / "t").timeline.completed_writes()) == 3
