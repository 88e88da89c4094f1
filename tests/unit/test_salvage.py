"""Other writers change some groups of a plan: those are left out, the others are committed, and no row changes."""

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_services.engine import LocalEngine
from hudi_services.errors import ConflictError, NeedsRecovery, NothingToDo
from hudi_services.jobs import clustering
from hudi_services.model import FileSlice
from hudi_services.runs.report import Report, RunState
from hudi_services.runs.request import Mode

from .faulty_storage import FaultyStorage, killed_anywhere
from .other_writers import OtherWriters
from .repairs import LOCK, hide_metadata
from .tables import RELEASES, _rows, base_files, digest, listed_view, open_local, request, unpack

Groups = list[list[FileSlice]]


class Planned:
    """A table with a pending plan of some groups of two files; the hand-made writes are not in a metadata table."""

    def __init__(self, release: str, folder: Path) -> None:
        self.path = unpack(release, folder)
        hide_metadata(self.path)
        sizes = [one.base_bytes for one in open_local(self.path).view.live_slices()]
        options = {**LOCK, "hoodie.clustering.plan.strategy.max.bytes.per.group": str(max(sizes) * 5 // 2)}
        ts = clustering.schedule(request(self.path, Mode.SCHEDULE, options)).instant
        assert ts
        self.ts = ts
        self.rows = rows(self.path)
        self.groups = groups_of(self.path)
        assert len(self.groups) > 3
        others = OtherWriters(self.path)
        self.update, self.announce = others.update, others.begin

    def execute(
        self,
        engine: LocalEngine | None = None,
        storage: FaultyStorage | None = None,
        lock: dict[str, str] = LOCK,
        **more: Any,
    ) -> Report:
        wanted = request(self.path, Mode.EXECUTE, lock, **more)
        return clustering.execute(wanted, storage, engine or LocalEngine())


def groups_of(path: Path) -> Groups:
    """The groups of the pending plan."""
    table = open_local(path)
    (pending,) = table.timeline.pending_clusterings()
    live = {(one.partition, one.file_id): one for one in table.view.live_slices()}
    plan = table.timeline.read_plan(pending)
    return [[live[one.partition, one.file_id] for one in group.slices] for group in plan.groups]


def rows(path: Path) -> pa.Table:
    table = open_local(path)
    return _rows(table, base_files(listed_view(table)))


class Meanwhile(LocalEngine):
    """An engine beside which writers act, after the rows were rewritten."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act

    def map(self, function: Any, tasks: Sequence[Any], what: str, progress: Any) -> Any:
        found = super().map(function, tasks, what, progress)
        if "rewrite" in what:
            self._act()
        return found


class Beside(LocalEngine):
    """Acts once, when some of the rewriting tasks are done: `share` of them, between 0 and 1."""

    def __init__(self, act: Callable[[], object], share: float) -> None:
        self._act = act
        self._share = share
        self._acted = False

    def map(self, function: Any, tasks: Sequence[Any], what: str, progress: Any) -> Any:
        if "rewrite" not in what or self._acted:
            return super().map(function, tasks, what, progress)
        assert len(tasks) > 1
        self._acted = True
        done = round(len(tasks) * self._share)
        first = super().map(function, tasks[:done], what, progress)
        self._act()
        return [*first, *super().map(function, tasks[done:], what, progress)]


def replaced_groups(path: Path, ts: str) -> set[str]:
    """The file groups that the commit of the plan has replaced."""
    table = open_local(path)
    (done,) = (one for one in table.timeline.completed_writes() if one.ts == ts)
    return {file_id for ids in (table.timeline.read_commit(done).replaced or {}).values() for file_id in ids}


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(4, 60))])
def test_groups_that_others_change(seed: int, tmp_path: Path) -> None:
    """Before the execution and during it, by writes that are complete and by writes in progress."""
    chance = random.Random(seed)
    planned = Planned(RELEASES[seed % len(RELEASES)], tmp_path)
    numbers = range(len(planned.groups))
    touched: dict[int, str] = {}

    def touch(how: Callable[[FileSlice], str], number: int) -> None:
        if number not in touched:
            touched[number] = how(chance.choice(planned.groups[number]))

    for number in numbers:
        if chance.random() < 0.2:
            touch(planned.update, number)
    later = [(chance.choice([planned.update, planned.announce]), n) for n in numbers if chance.random() < 0.3]
    engine = Meanwhile(lambda: [touch(how, number) for how, number in later])
    others = set(numbers) - set(touched) - {number for _, number in later}
    if not others:
        before = digest(planned.path)
        with pytest.raises(ConflictError):
            planned.execute(engine)
        after = digest(planned.path)
        assert all(after[name] == content for name, content in before.items() if name.endswith(".parquet"))
    else:
        done = planned.execute(engine)
        assert (done.exit_code, done.state) == ((7, RunState.PARTLY_DONE) if touched else (0, RunState.COMPLETED))
        told = {row["group"]: row["why"] for row in done.tables.get("dropped_groups", ())}
        assert set(told) == set(touched)
        # The sentence names the write, by its instant or by the file that it wrote.
        assert all(touched[number] in why for number, why in told.items())
        kept = {one.file_id for number in others for one in planned.groups[number]}
        assert replaced_groups(planned.path, planned.ts) == kept
    assert not [path for path in planned.path.rglob(f"*_{planned.ts}.parquet") if not is_committed(planned, path)]
    assert rows(planned.path).equals(planned.rows)


def is_committed(planned: Planned, path: Path) -> bool:
    table = open_local(planned.path)
    found = [one for one in table.timeline.completed_writes() if one.ts == planned.ts]
    stats = [table.timeline.read_commit(one).stats for one in found]
    named = {stat.path for of in stats for some in of.values() for stat in some}
    return str(path.relative_to(planned.path)) in named


def test_all_or_nothing(tmp_path: Path) -> None:
    planned = Planned("1.2.0", tmp_path)
    ts = planned.announce(planned.groups[1][0])
    with pytest.raises(ConflictError, match=f"the write {ts} in progress updates"):
        planned.execute(all_or_nothing=True)
    # The plan stays for the next attempt, which may leave the group out.
    assert planned.execute().exit_code == 7
    assert rows(planned.path).equals(planned.rows)


def test_all_or_nothing_drops_a_stale_plan(tmp_path: Path) -> None:
    planned = Planned("1.2.0", tmp_path)
    planned.update(planned.groups[1][0])
    with pytest.raises(ConflictError, match="was dropped"):
        planned.execute(all_or_nothing=True)
    assert open_local(planned.path).timeline.pending_clusterings() == ()


def test_every_group_waits_for_abandoned_writes(tmp_path: Path) -> None:
    planned = Planned("1.2.0", tmp_path)
    options = {**LOCK, "hudi.services.abandoned.after.minutes": "0"}
    for group in planned.groups:
        planned.announce(group[0])
    with pytest.raises(NeedsRecovery, match="which was abandoned, updates"):
        clustering.execute(request(planned.path, Mode.EXECUTE, options), engine=LocalEngine())
    assert [one.ts for one in open_local(planned.path).timeline.pending_clusterings()] == [planned.ts]


@pytest.mark.parametrize("release", RELEASES)
def test_every_write_may_be_the_last(release: str, tmp_path: Path) -> None:
    """Killed anywhere while a group is left out: readers see the same rows, and the next execute does the rest."""
    planned = Planned(release, tmp_path)

    def run(storage: FaultyStorage) -> None:
        # A killed process would leave the lock file.
        planned.execute(Meanwhile(lambda: planned.update(planned.groups[2][1])), storage, {})

    for survived in killed_anywhere(planned.path, run, 4, 12):
        assert rows(planned.path).equals(planned.rows), survived
        with suppress(NothingToDo):
            planned.execute(lock={})
        assert rows(planned.path).equals(planned.rows), survived
        replaced = replaced_groups(planned.path, planned.ts)
        assert {one.file_id for number in (0, 1, 3) for one in planned.groups[number]} <= replaced, survived
