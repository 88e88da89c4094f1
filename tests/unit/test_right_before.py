"""What others do between the decision of a service and its first step that cannot be taken back."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from hudi_services.codecs import avro
from hudi_services.codecs.clustering_plan import ClusteringGroup, ClusteringPlan, SliceInfo, encode_clustering_plan
from hudi_services.codecs.rollback_plan import encode_rollback_plan
from hudi_services.engine import LocalEngine
from hudi_services.errors import CheckFailed, ConflictError, HudiServicesError, NeedsRecovery
from hudi_services.jobs import clean as cleaning
from hudi_services.jobs import clustering
from hudi_services.jobs import validate as validating
from hudi_services.jobs.index_bootstrap import index_bootstrap
from hudi_services.metadata.records.keys import COLUMN_STATS
from hudi_services.options import resolve
from hudi_services.rollback.execution import plan_rollback
from hudi_services.runs.report import RunState as Outcome
from hudi_services.runs.request import IndexRequest, ValidateRequest
from hudi_services.stores.local import LocalStorage
from hudi_services.timeline.instant import Action, Instant, State

from .corruptions import do_damage, wrong_column_stats, wrong_listing
from .other_writers import OtherWriters
from .repairs import (
    DEAD_AT_ONCE,
    LATER,
    LOCK,
    NO_HEARTBEAT,
    both,
    cluster,
    fail_newest,
    files_of,
    hide_metadata,
    insert_copy,
    newest,
    timeline_files,
)
from .tables import RELEASES, listed_view, open_local, published, rows, unpack
from .test_clean import VERSIONS_1, data_files
from .test_clean import wanted as clean_of
from .test_completed_rollback import COMMANDS, TakeBack, completed, files, rolled_back, undone
from .test_forged import SAVEPOINT
from .test_index_bootstrap import indexed_locations, is_listed, real_locations
from .test_index_bootstrap import wanted as index_of
from .test_validate import delta_commits

_HASTY = {"hoodie.write.lock.wait_time_ms": "0"}


@pytest.fixture(params=RELEASES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return unpack(request.param, tmp_path)


class Acts(LocalStorage):
    """Others act once, right before or right after we create or move a file whose path has this `text`."""

    def __init__(self, path: Path, text: str, act: Callable[[], object], *, afterwards: bool = True) -> None:
        super().__init__(str(path))
        self._text = text
        self._act = act
        self._afterwards = afterwards
        self.acted = False

    def create(self, path: str, data: bytes) -> None:
        self._around(path, lambda: super(Acts, self).create(path, data))

    def move(self, source: str, target: str) -> None:
        self._around(target, lambda: super(Acts, self).move(source, target))

    def _around(self, path: str, do: Callable[[], None]) -> None:
        is_now = self._text in path and not self.acted
        self.acted |= is_now
        if is_now and not self._afterwards:
            self._act()
        do()
        if is_now and self._afterwards:
            self._act()


def begin_rollback(path: Path, target: Instant) -> str:
    """As a process of Hudi that is about to take a completed commit back, and goes on later; its instant."""
    table = open_local(path)
    data = encode_rollback_plan(plan_rollback(table, target), table.config.version.release)
    table.timeline.publish(LATER, Action.ROLLBACK, State.REQUESTED, data)
    return LATER


def savepoint_of(held: dict[str, list[str]]) -> bytes:
    content = {partition: {"savepointDataFile": names} for partition, names in held.items()}
    return avro.write_container(avro.parse_schema(json.dumps(SAVEPOINT), "test"), {"partitionMetadata": content})


# A clean.


@pytest.mark.thorough
@pytest.mark.parametrize("make", [cluster, completed])
@pytest.mark.parametrize("is_planned", [False, True], ids=["before the plan", "after the plan"])
def test_a_clean_of_files_that_a_rollback_brings(path: Path, make: Callable[[Path], str], is_planned: bool) -> None:
    """The commit that superseded or replaced them is still completed, and somebody is about to roll it back."""
    hide_metadata(path)
    before = rows(open_local(path), listed_view(open_local(path)))
    if make is cluster:
        make(path)
    else:
        OtherWriters(path).update(open_local(path).view.live_slices()[0])
    target = newest(path)
    old = data_files(path)
    storage = None
    if is_planned:
        storage = Acts(path, ".clean.requested", lambda: begin_rollback(path, target))
    else:
        begin_rollback(path, target)
    with pytest.raises(ConflictError, match=f"rolls back {target.ts}, which is still completed"):
        cleaning.clean(clean_of(path, VERSIONS_1), storage)
    assert data_files(path) == old
    assert not open_local(path).timeline.pending({Action.CLEAN})
    with pytest.raises(NeedsRecovery, match="is still completed"):
        cleaning.clean(clean_of(path, VERSIONS_1 | NO_HEARTBEAT))
    # That process goes on: every row is there.
    for name in timeline_files(path, LATER):
        next(path.glob(f".hoodie/**/{name}")).unlink()
    (undone if make is cluster else rolled_back)(path, target.ts, {})
    assert rows(open_local(path), listed_view(open_local(path))).equals(before)


def test_a_savepoint_since_the_clean_was_planned(path: Path) -> None:
    """The clean deletes nothing, and is not left behind: the writers of the table would carry it out."""
    hide_metadata(path)
    first, old = open_local(path).timeline.completed_writes()[0], data_files(path)
    held: dict[str, list[str]] = {}
    for name in sorted(old):
        held.setdefault(str(Path(name).parent), []).append(Path(name).name)

    def save() -> None:
        for state in (State.INFLIGHT, State.COMPLETED):
            content = savepoint_of(held) if state is State.COMPLETED else b""
            open_local(path).timeline.publish(first.ts, Action.SAVEPOINT, state, content, LATER)

    with pytest.raises(HudiServicesError, match="the savepoint"):
        cleaning.clean(clean_of(path, VERSIONS_1), Acts(path, ".clean.requested", save))
    assert data_files(path) == old and not open_local(path).timeline.pending({Action.CLEAN})


# A rollback, and an undo.


@pytest.mark.thorough
@pytest.mark.spread(4)
@COMMANDS
@pytest.mark.parametrize("options", [{}, LOCK], ids=["no lock", "lock"])
@pytest.mark.parametrize("what", ["a write", "a plan", "a whole write"])
def test_what_begins_while_it_decides(
    path: Path, make: Callable[[Path], str], command: TakeBack, options: dict[str, str], what: str
) -> None:
    """A write that begins may read the files that go, a lock or not: Hudi before 1.1 begins writes without the lock."""
    ts = make(path)
    before = files(path)

    def begin() -> None:
        if what == "a whole write":
            insert_copy(path)
            return
        action = Action.COMMIT if what == "a write" else open_local(path).timeline.layout.clustering_action
        open_local(path).timeline.publish(LATER, action, State.REQUESTED, plan if what == "a plan" else b"")

    one = next(one for one in open_local(path).view.live_slices() if one.base_file is not None)
    assert one.base_file is not None
    named = SliceInfo(one.partition, one.file_id, open_local(path).storage.full_path(one.base_file.path))
    wanted = ClusteringPlan((ClusteringGroup((named,)),), "Strategy")
    plan = encode_clustering_plan(wanted, open_local(path).config.version.release)
    with pytest.raises(ConflictError, match=LATER):
        command(path, ts, options, Acts(path, ".rollback.requested", begin))
    assert before <= files(path)
    assert not open_local(path).timeline.pending({Action.ROLLBACK})
    found = open_local(path).timeline.find(ts)
    assert found is not None and found.is_completed


def test_a_write_that_ends_while_its_rollback_begins(path: Path) -> None:
    """Without a lock: its writer was slow, and not dead."""
    end = newest(path)
    content = open_local(path).timeline.read_details(end.file_name)
    ts = fail_newest(path)
    before = files(path)

    def finish() -> None:
        next(path.glob(f".hoodie/**/{ts}.*inflight")).with_name(end.file_name).write_bytes(content)

    with pytest.raises(ConflictError, match=f"the commit {ts} is completed"):
        rolled_back(path, ts, DEAD_AT_ONCE, Acts(path, ".rollback.requested", finish), completed=False)
    assert files_of(path, ts) and before <= files(path)
    assert not open_local(path).timeline.pending()


def test_an_undo_of_files_that_the_metadata_table_has_old(path: Path) -> None:
    """A write that updated a new file is completed, and the metadata table, which readers use, does not list it."""
    ts = cluster(path)
    one = next(one for one in open_local(path).view.live_slices() if one.base_instant == ts)
    OtherWriters(path).update(one)
    before = files(path)
    with pytest.raises(CheckFailed, match=one.file_id):
        undone(path, ts, {})
    assert files(path) == before


# A record index.


def hasty_index(path: Path, **options: str) -> IndexRequest:
    wanted = index_of(path, resume=True)
    return replace(wanted, options=resolve([("test", {**wanted.options.texts(), **_HASTY, **options})]))


def test_an_index_of_rows_that_a_rollback_is_about_to_take_back(path: Path) -> None:
    """A rollback of Hudi does not take keys out of an index that is younger than the commit."""
    ts = completed(path)
    begin_rollback(path, newest(path))
    with pytest.raises(ConflictError, match=f"rolls back {ts}, which is still completed"):
        index_bootstrap(hasty_index(path), engine=LocalEngine())
    with pytest.raises(NeedsRecovery, match=f"rolls back {ts}, which is still completed"):
        index_bootstrap(hasty_index(path, **NO_HEARTBEAT), engine=LocalEngine())
    assert not is_listed(path)
    rolled_back(path, ts, NO_HEARTBEAT)
    # The files of the keys that are to go are gone.
    with pytest.raises(ConflictError, match="while the index was built"):
        index_bootstrap(hasty_index(path), engine=LocalEngine())
    assert index_bootstrap(index_of(path), engine=LocalEngine()).state is Outcome.COMPLETED
    assert indexed_locations(path) == real_locations(path)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("options", "is_whole"), [({}, False), (LOCK, False), ({}, True)], ids=["no lock", "lock", "a whole write"]
)
def test_a_write_while_the_files_of_an_index_are_moved(path: Path, options: dict[str, str], is_whole: bool) -> None:
    """The index is published when it is finished, and has its keys."""

    def write() -> None:
        if is_whole:
            insert_copy(path)
        else:
            for state in (State.REQUESTED, State.INFLIGHT):
                open_local(path).timeline.publish(LATER, Action.COMMIT, state)

    storage = Acts(path, "/record_index/", write)
    if not is_whole:
        with pytest.raises(ConflictError, match=LATER):
            index_bootstrap(hasty_index(path, **options), storage, LocalEngine())
        assert storage.acted and not is_listed(path)
        for name in timeline_files(path, LATER):
            next(path.glob(f".hoodie/**/{name}")).unlink()
    done = index_bootstrap(hasty_index(path, **options), storage, LocalEngine())
    assert storage.acted and (done.state, done.warnings) == (Outcome.COMPLETED, ANY)
    # The keys of the copy are there twice, and the index has one place of each.
    indexed, real = indexed_locations(path), real_locations(path)
    assert indexed.keys() == real.keys()
    assert is_whole == any(LATER[2:14] in file_id for _, file_id in indexed.values())
    assert is_whole or indexed == real


# A repair of the metadata table.


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("options", "is_whole"), [({}, False), (LOCK, False), ({}, True)], ids=["no lock", "lock", "a whole write"]
)
def test_a_write_while_a_repair_compares(
    path: Path, options: dict[str, str], is_whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a lock its records may be newer than those that were computed; with one it commits after the repair."""
    has_ranges = COLUMN_STATS in open_local(path).config.metadata_partitions
    do_damage(path, wrong_column_stats(path) if has_ranges else wrong_listing(path))
    known = delta_commits(path)
    chosen = validating.repaired_keys

    def write(*args: Any) -> Any:
        if is_whole:
            insert_copy(path)
        else:
            open_local(path).timeline.publish(LATER, Action.COMMIT, State.REQUESTED)
        return chosen(*args)

    texts = {"hoodie.time.generator.max_expected_clock_skew_ms": "0", **_HASTY, **options}
    wanted = ValidateRequest(base_path=str(path), options=resolve([("test", texts)]), repair=True)
    with monkeypatch.context() as patched:
        patched.setattr(validating, "repaired_keys", write)
        if options:
            assert validating.validate(wanted).exit_code == 0
            return
        with pytest.raises(ConflictError, match="while it was compared"):
            validating.validate(wanted)
    assert set(delta_commits(path)) - set(known) == ({LATER} if is_whole else set())
    if not is_whole:
        for name in timeline_files(path, LATER):
            next(path.glob(f".hoodie/**/{name}")).unlink()
    assert validating.validate(wanted).exit_code == 0


# Another process begins the instant that we are about to begin.


@pytest.mark.parametrize("way", ["staged", "reserved", "first"])
def test_a_clustering_that_another_process_begins(path: Path, way: str) -> None:
    """Writers of Hudi that cluster do so with every plan that they see, without a lock."""
    before = both(path)[0]
    version = open_local(path).config.version.number
    name = ".replacecommit.inflight" if version == 6 else ".clustering.inflight"
    storage = Acts(path, name, lambda: begin_newest(path, Action.CLUSTERING, Action.REPLACE_COMMIT), afterwards=False)
    with pytest.raises(ConflictError, match="another process has just begun"):
        clustering.schedule_and_execute(published(way, path, LOCK), storage, LocalEngine())
    assert storage.acted and all(seen.equals(before) for seen in both(path))


def test_a_clean_that_another_process_begins(path: Path) -> None:
    cluster(path)
    before, files_before = both(path)[0], data_files(path)
    storage = Acts(path, ".clean.inflight", lambda: begin_newest(path, Action.CLEAN), afterwards=False)
    with pytest.raises(ConflictError, match="another process has just begun"):
        cleaning.clean(clean_of(path, VERSIONS_1), storage)
    assert storage.acted and data_files(path) == files_before
    assert cleaning.clean(clean_of(path, {**VERSIONS_1, **NO_HEARTBEAT})).state is Outcome.COMPLETED
    assert all(seen.equals(before) for seen in both(path)) and data_files(path) < files_before


def begin_newest(path: Path, *actions: Action) -> None:
    """As a process of Hudi that carries out the newest plan."""
    timeline = open_local(path).timeline
    (pending,) = timeline.pending(actions)
    timeline.publish(pending.ts, pending.action, State.INFLIGHT)
