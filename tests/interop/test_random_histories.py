"""Random histories of merge-on-read tables: after each step, the rows that we merge are those that Hudi reads."""

import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_services.timeline.instant import Action

from ..tiers import DEEP
from ..unit.tables import open_local
from ..unit.test_merge_histories import comparable, merged_rows
from . import layout, ours
from .histories import Step
from .history_maker import HistoryMaker, by_key
from .peer import EACH_DELTA_COMMIT, Peer, PeerError
from .random_histories import RandomHistory, random_history
from .reading import METADATA_OFF, METADATA_ON, READ_OPTIMISED

OF_EACH_RELEASE = 200
KEYS = 60
_COMPACTION = {**EACH_DELTA_COMMIT, "hoodie.compact.inline": "false"}
# Tables that their release itself may become unable to read: 0.15.0 when AWSDmsAvroPayload deletes a key that no base
# row has, 1.0.2 and 1.2.0 when they compare ordering values of an int column and of the bigint that it became.
_UNREADABLE = {("0.15.0", "dms"), ("1.0.2", "int order"), ("1.2.0", "int order")}
_DAYS_AGO = time.time() - 3 * 24 * 3600
_CLEAN = {"hoodie.clean.commits.retained": "1", "hoodie.cleaner.commits.retained": "1"}


class Follower(HistoryMaker):
    """Takes our steps, too, and compares after each step."""

    def __init__(self, peer: Peer, folder: Path, one: RandomHistory) -> None:
        super().__init__(peer, folder, one.history)
        self.name = f"kind {one.kind!r}, seed {one.seed}"
        self.compared = 0
        self.may_be_unreadable = (peer.version, one.kind) in _UNREADABLE
        self.ordering = one.history.ordering_of(peer.version)
        self.has_metadata = one.history.options.get("hoodie.metadata.enable") == "true"
        self.has_twins = False
        """Whether Hudi has written a key twice. When a clustering puts both rows into one file, 1.2.0 updates the row
        at the position that its index had found; here it is the first one."""

    def _take(self, step: Step) -> None:
        if self.has_twins and "cluster" in step.operation + step.statement:
            return
        if not step.operation.startswith("ours "):
            try:
                super()._take(step)
            except PeerError as e:
                # 1.0.2 has begun the rollback then, and cannot end it.
                if "is earlier than the latest compaction" in str(e):
                    self._finish_rollback()
                raise
            return
        what = step.operation.removeprefix("ours ")
        if what == "compact":
            pending = layout.pending(self.path)
            mode = "execute" if pending else "scheduleAndExecute"
            done = ours.run("compact", self.path, "--mode", mode, options=_COMPACTION)
        elif what == "plan":
            done = ours.run("schedule", self.path, "--service", "compaction", options=_COMPACTION)
        elif what == "cluster":
            done = ours.run("execute", self.path, "--mode", "scheduleAndExecute")
        else:
            done = ours.run("clean", self.path, options=_CLEAN)
        # 3: there is nothing to do.
        assert done.code in (0, 3), f"{self.name}, {step.operation}: {done}"

    def _rows(self) -> list[dict[str, object]]:
        found = super()._rows()
        for memory in (1 << 30, 1):
            assert comparable(merged_rows(open_local(self.path), memory)) == comparable(found), self.name
        self.compared += 1
        self.has_twins = len({row["id"] for row in found}) < len(found)
        return found

    def _finish_rollback(self) -> None:
        """Recover the table from a rollback whose process gave no sign of life for days."""
        self.let_days_pass()
        found = ours.run("recover", self.path, "--apply")
        assert found.code == 0, f"{self.name}: {found}"

    def let_days_pass(self) -> None:
        """Make every process that has left something pending look dead."""
        for file in (self.path / ".hoodie").rglob("*"):
            os.utime(file, (_DAYS_AGO, _DAYS_AGO))

    def is_unreadable(self) -> bool:
        """Whether Hudi itself cannot read the table, and is known for that."""
        return self.may_be_unreadable and _answer(lambda: self._peer.rows(self.path, METADATA_OFF)) is None

    def some_commits(self) -> list[layout.Instant]:
        """An early and a later one."""
        return layout.writes(self.path)[1::3][:2]

    def as_of(self, commits: Sequence[layout.Instant]) -> list[Any]:
        """The rows at each of these commits, without the file names; None where the query fails."""
        return [_answer(lambda at=one.requested: self._peer.as_of(self.path, at)) for one in commits]

    def since(self, commits: Sequence[layout.Instant]) -> list[Any]:
        """The rows since each of these commits, without the file names; None where the query fails."""
        return [_answer(lambda at=one.completed: self._peer.incremental(self.path, at)) for one in commits]


def _answer(query: Callable[[], pa.Table]) -> list[dict[str, Any]] | None:
    try:
        return in_order(query())
    except PeerError:
        return None


def in_order(rows: pa.Table) -> list[dict[str, Any]]:
    return comparable(sorted(rows.to_pylist(), key=by_key))


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(OF_EACH_RELEASE) if DEEP else (0, 10))
def test_random_histories(seed: int, peer: Peer, tmp_path: Path) -> None:
    """In the end we plan and execute a clustering or compaction; queries stay what they were. CI takes two.

    The name of a test that fails has its seed, which makes the same history again.
    """
    one = random_history(seed, KEYS, peer.version)
    maker = Follower(peer, tmp_path / str(seed), one)
    print(maker.name)
    maker.make()
    if maker.is_unreadable():
        return
    assert maker.compared > len(one.history.steps) // 2, maker.name
    _execute_pending(peer, maker)
    if maker.is_unreadable():
        return
    before = comparable(maker._rows())
    was_merged = _last_service(maker, "compact" if seed % 3 == 0 or maker.has_twins else "execute")
    after = {"off": METADATA_OFF, **({"read-optimised": READ_OPTIMISED} if was_merged else {})}
    if maker.has_metadata:
        after["on"] = METADATA_ON
    for reader, options in after.items():
        assert in_order(peer.rows(maker.path, options)) == before, f"{maker.name}, {reader}"
    if maker.has_metadata:
        found = ours.run("validate", maker.path)
        assert found.code == 0, f"{maker.name}: {found}"
    # A test that fails keeps its table.
    shutil.rmtree(maker.path)


def _execute_pending(peer: Peer, maker: Follower) -> None:
    """Execute a pending compaction; the rows are those that Hudi's execution of it leaves.

    Where values are filled, they are not those from before: the log records up to the plan are merged by themselves.
    """
    pending = [one.ts for one in open_local(maker.path).timeline.pending({Action.COMPACTION})]
    if not pending:
        return
    theirs = maker.path.with_name("theirs")
    ordering = maker.ordering
    # 1.0.2 forgets the ordering field of the table when its procedure is not told.
    told = {"hoodie.datasource.write.precombine.field": ordering} if ordering and "," not in ordering else {}
    # An execution of Hudi may have failed, and left it inflight.
    maker.let_days_pass()
    shutil.copytree(maker.path, theirs)
    for _ in pending:
        ours.run("compact", maker.path).ok()
    try:
        for instant in pending:
            peer.compact(theirs, "execute", instant=instant, options=told)
    except PeerError:
        # It cannot compact a delete without an ordering value that data follows.
        assert peer.version == "1.0.2" or maker.may_be_unreadable, maker.name
        return
    wanted, found = (_answer(lambda path=path: peer.rows(path, METADATA_OFF)) for path in (theirs, maker.path))
    assert found == wanted, f"{maker.name}: pending compaction"
    shutil.rmtree(theirs)


def _last_service(maker: Follower, command: str) -> bool:
    """Plan and execute; before, between and afterwards queries of the past give the same rows.

    False when nothing is due.
    """
    commits = maker.some_commits()
    before, since = maker.as_of(commits), maker.since(commits)
    service = ("--service", "compaction") if command == "compact" else ()
    planned = ours.run("schedule", maker.path, *service, options=_COMPACTION)
    assert planned.code in (0, 3), f"{maker.name}: {planned}"
    if planned.report["state"] != "requested":
        print(planned.report["reason"])
        return False
    assert (maker.as_of(commits), maker.since(commits)) == (before, since), f"{maker.name}: pending"
    ours.run(command, maker.path).ok()
    # Afterwards incremental queries give what they give after Hudi's own service: see test_compaction.py.
    assert maker.as_of(commits) == before, f"{maker.name}: time travel"
    return True
