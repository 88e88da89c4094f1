"""The active timeline on a real store, and the archive."""

import io
import json
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_services.codecs.clustering_plan import ClusteringPlan, encode_clustering_plan
from hudi_services.codecs.rollback_plan import RollbackPlan, encode_rollback_plan
from hudi_services.errors import AlreadyExists, ConflictError, CorruptFile, NotFound
from hudi_services.model import CommitMetadata
from hudi_services.storage import Storage
from hudi_services.stores import open_storage
from hudi_services.table.facts import TimelineFacts
from hudi_services.timeline.active import Timeline, new_instant
from hudi_services.timeline.archived import ArchivedTimes
from hudi_services.timeline.instant import Action, Instant, State
from hudi_services.timeline.layout import layout_for
from hudi_services.versions import VERSIONS

PLAN = ClusteringPlan((), "org.example.Strategy")
FOLDER = ".hoodie/timeline"


class FixedClock:
    """Stands still, and remembers how long it was made to wait."""

    def __init__(self, moment: datetime) -> None:
        self.moment = moment
        self.slept = 0.0

    def now(self) -> datetime:
        return self.moment

    def sleep(self, seconds: float) -> None:
        self.slept += seconds


def load(tmp_path: Path, files: dict[str, bytes], version: int = 9, folder: str = FOLDER) -> Timeline:
    storage = open_storage(str(tmp_path))
    for name, data in files.items():
        storage.put(f"{folder}/{name}", data)
    return Timeline.load(storage, layout_for(VERSIONS[version]), folder, "UTC")


def commit(layout_version: int, metadata: CommitMetadata) -> bytes:
    version = VERSIONS[layout_version]
    return layout_for(version).encode_commit(metadata, version.release)


def clustering_plan(version: int) -> bytes:
    return encode_clustering_plan(PLAN, VERSIONS[version].release)


def test_a_missing_folder_is_an_empty_timeline(tmp_path: Path) -> None:
    timeline = load(tmp_path, {})
    assert timeline.instants == ()
    assert timeline.first_ts() is None
    assert timeline.latest_time() == ""
    assert timeline.last_clustering() is None
    assert not TimelineFacts(timeline).is_committed("1")


def test_the_highest_state_counts(tmp_path: Path) -> None:
    names = ("2.commit.requested", "2.inflight", "2_3.commit", "4.compaction.requested", "4_6.commit", "5.inflight")
    timeline = load(tmp_path, dict.fromkeys(names, b""))
    assert [i.file_name for i in timeline.instants] == ["2_3.commit", "4_6.commit", "5.inflight"]
    assert [i.ts for i in timeline.completed()] == ["2", "4"]
    assert [i.ts for i in timeline.pending()] == ["5"]
    assert set(timeline.sizes) == set(names)
    assert timeline.latest_time() == "6"
    assert timeline.completion_time("4") == "6"
    assert timeline.completion_time("5") is None
    assert timeline.requested_name(timeline.instants[1]) == "4.compaction.requested"


def test_foreign_files_are_passed_over(tmp_path: Path) -> None:
    timeline = load(tmp_path, {"hoodie.properties": b"", "2_3.commit.0f-1": b"", "history": b"", "2_3.clustering": b""})
    assert timeline.instants == ()


def test_of_two_completed_cleans_the_later_completion_counts(tmp_path: Path) -> None:
    timeline = load(tmp_path, {"2_5.clean": b"", "2_4.clean": b"", "2.clean.requested": b""})
    assert [i.file_name for i in timeline.instants] == ["2_5.clean"]


@pytest.mark.parametrize("version", [6, 8, 9])
def test_clusterings_are_told_by_their_plan(tmp_path: Path, version: int) -> None:
    action = layout_for(VERSIONS[version]).clustering_action.value
    done = "3.replacecommit" if version == 6 else "3_4.replacecommit"
    files = {
        f"3.{action}.requested": clustering_plan(version),
        f"3.{action}.inflight": b"",
        done: commit(version, CommitMetadata("CLUSTER", {}, replaced={})),
        "4.replacecommit.requested": b"",
        "5.commit.requested": b"",
    }
    timeline = load(tmp_path, files, version)
    assert timeline.pending_clusterings() == ()
    last = timeline.last_clustering()
    assert last is not None and last.ts == "3" and last.is_completed
    assert timeline.is_clustering(last)
    assert timeline.read_plan(last) == PLAN
    assert timeline.read_commit(last).operation == "CLUSTER"
    timeline = load(tmp_path, {f"6.{action}.requested": clustering_plan(version)}, version)
    assert [i.ts for i in timeline.pending_clusterings()] == ["6"]
    last = timeline.last_clustering()
    assert last is not None and last.ts == "6"


def test_an_upgraded_table_keeps_its_json_commits(tmp_path: Path) -> None:
    old = CommitMetadata("UPSERT", {}, extra={"schema": "{}"})
    timeline = load(tmp_path, {"2.commit": commit(6, old), "3_4.commit": commit(8, old), "5.inflight": commit(6, old)})
    assert [timeline.read_commit(i) for i in timeline.instants] == [old, old, old]
    assert len(timeline.instants[0].completion_time or "") == 17


@pytest.mark.parametrize("data", [b"Obj\x01", b"\x00", clustering_plan(9)[:-1]])
def test_a_broken_plan_is_named(tmp_path: Path, data: bytes) -> None:
    timeline = load(tmp_path, {"6.clustering.requested": data})
    (instant,) = timeline.instants
    for read in (timeline.pending_clusterings, timeline.last_clustering, lambda: timeline.read_plan(instant)):
        with pytest.raises(CorruptFile, match=f"{tmp_path}/.hoodie/timeline/6.clustering.requested"):
            read()


def test_an_empty_plan_is_no_clustering_and_cannot_be_read(tmp_path: Path) -> None:
    timeline = load(tmp_path, {"6.clustering.requested": b""})
    assert timeline.pending_clusterings() == ()
    with pytest.raises(CorruptFile, match=r"6\.clustering\.requested"):
        timeline.read_plan(timeline.instants[0])


@pytest.mark.parametrize(("version", "name"), [(6, "2.commit"), (9, "2_3.commit")])
def test_a_truncated_commit_is_named(tmp_path: Path, version: int, name: str) -> None:
    good = commit(version, CommitMetadata("INSERT", {"p": ()}))
    for length in (1, len(good) // 2, len(good) - 1):
        timeline = load(tmp_path, {name: good[:length]}, version)
        with pytest.raises(CorruptFile, match=f"timeline/{name}"):
            timeline.read_commit(timeline.instants[0])


def test_rollback_plans_are_read_from_the_requested_file(tmp_path: Path) -> None:
    plan = RollbackPlan("2", "commit", ())
    timeline = load(tmp_path, {"5.rollback.requested": encode_rollback_plan(plan, "1.2.0"), "5.rollback.inflight": b""})
    assert timeline.read_rollback_plan(timeline.instants[0]) == plan


def test_start_of_the_timeline(tmp_path: Path) -> None:
    names = ("1_2.clean", "3_4.commit", "3_4.savepoint", "5.inflight", "7_8.replacecommit", "9_9.deltacommit")
    timeline = load(tmp_path, dict.fromkeys(names, b""))
    # Readers know nothing of the hole that its savepoint leaves behind 3 when the archive goes past it.
    assert (timeline.first_ts(), timeline.archived_until()) == ("3", "7")
    facts = TimelineFacts(timeline)
    for ts, committed in (("2", True), ("3", True), ("5", False), ("6", False), ("7", True), ("8", False), ("9", True)):
        assert facts.is_committed(ts) is committed
    assert [ts for ts in "123456789" if facts.is_hidden(ts)] == ["4", "6"]


def test_without_a_savepoint_nothing_is_hidden(tmp_path: Path) -> None:
    facts = TimelineFacts(load(tmp_path, dict.fromkeys(("3_4.commit", "7_8.commit"), b"")))
    assert not facts.hides and not any(facts.is_hidden(ts) for ts in "123456789")


def test_find(tmp_path: Path) -> None:
    timeline = load(tmp_path, dict.fromkeys(("3_4.commit", "3_4.savepoint", "5.clustering.requested"), b""))
    found = timeline.find("3")
    assert found is not None and found.action is Action.COMMIT
    found = timeline.find("3", Action.SAVEPOINT)
    assert found is not None and found.action is Action.SAVEPOINT
    assert timeline.find("5", Action.REPLACE_COMMIT) is timeline.find("5", Action.CLUSTERING)
    assert timeline.find("6") is None


@pytest.mark.parametrize("version", [6, 9])
def test_publishing_a_clustering(tmp_path: Path, version: int) -> None:
    timeline = load(tmp_path, {}, version)
    action = timeline.layout.clustering_action
    timeline.publish("5", action, State.REQUESTED, clustering_plan(version))
    timeline.publish("5", action, State.INFLIGHT)
    data = commit(version, CommitMetadata("CLUSTER", {}, replaced={}))
    done = timeline.publish("5", action, State.COMPLETED, data, completion_time="6")
    assert timeline.instants == ()
    assert [(i.ts, i.file_name) for i in timeline.reload().instants] == [("5", done.file_name)]
    assert done == Instant("5", Action.REPLACE_COMMIT, State.COMPLETED, "6", done.file_name)
    with pytest.raises(AlreadyExists):
        timeline.publish("5", action, State.COMPLETED, data, completion_time="6")
    with pytest.raises(AlreadyExists):
        timeline.publish("5", action, State.REQUESTED, b"other")
    assert timeline.reload().read_plan(done) == PLAN


def test_publishing_needs_the_state_before(tmp_path: Path) -> None:
    timeline = load(tmp_path, {})
    with pytest.raises(ConflictError, match=r"5\.clustering\.requested is gone"):
        timeline.publish("5", Action.CLUSTERING, State.INFLIGHT)
    timeline.publish("5", Action.CLUSTERING, State.REQUESTED)
    with pytest.raises(ConflictError, match=r"5\.clustering\.inflight is gone"):
        timeline.publish("5", Action.CLUSTERING, State.COMPLETED, b"x", completion_time="6")
    timeline.publish("5", Action.SAVEPOINT, State.INFLIGHT)


def test_a_deleted_file_is_not_found(tmp_path: Path) -> None:
    timeline = load(tmp_path, {"2_3.commit": b"x"})
    timeline.storage.delete(timeline.path("2_3.commit"))
    with pytest.raises(NotFound, match=r"2_3\.commit"):
        timeline.read_commit(timeline.instants[0])


def test_new_instants_are_greater_than_all_times(tmp_path: Path) -> None:
    clock = FixedClock(datetime(2026, 11, 21, 6, 0, tzinfo=timezone.utc))
    assert new_instant(load(tmp_path, {}), clock) == "20261121060000000"
    timeline = load(tmp_path, {"20261121055900000_20261121060000500.commit": b""})
    ts = new_instant(timeline, clock, skew_millis=200)
    assert ts == "20261121060000501"
    assert clock.slept == pytest.approx(0.2)
    assert new_instant(timeline, clock, after=ts) == "20261121060000502"
    clock.moment += timedelta(seconds=1)
    assert new_instant(timeline, clock, after=ts) == "20261121060001000"


def _history(tmp_path: Path, files: dict[str, list[tuple[str, str]]], listed: list[str]) -> Storage:
    storage = open_storage(str(tmp_path))
    for name, rows in files.items():
        table = pa.table({"instantTime": [a for a, _ in rows], "completionTime": [b for _, b in rows]})
        out = io.BytesIO()
        pq.write_table(table, out)
        storage.put(f"h/{name}", out.getvalue())
    manifest = {"files": [{"fileName": name, "fileLen": 1} for name in listed]}
    storage.put("h/manifest_2", json.dumps(manifest).encode())
    storage.put("h/manifest_1", b"{}")
    return storage


def test_archived_times(tmp_path: Path) -> None:
    files = {
        "10_19_0.parquet": [("10", "12"), ("19", "21")],
        "20_29_0.parquet": [("20", "22")],
        "10_99_0.parquet": [("15", "1")],
    }
    storage = _history(tmp_path, files, ["10_19_0.parquet", "20_29_0.parquet"])
    for _ in range(2):
        times = ArchivedTimes(storage, "h")
        assert [times.completion_time(ts) for ts in ("10", "19", "20")] == ["12", "21", "22"]
        # Not in the manifest, not archived, and out of every file's range.
        assert [times.completion_time(ts) for ts in ("15", "11", "99")] == [None, None, None]
        storage.put("h/_version_", b"2")


def test_no_archive(tmp_path: Path) -> None:
    assert ArchivedTimes(open_storage(str(tmp_path)), "h").completion_time("1") is None


def test_broken_archives_are_named(tmp_path: Path) -> None:
    storage = _history(tmp_path, {}, ["10_19_0.parquet"])
    storage.put("h/10_19_0.parquet", b"PAR1 PAR1")
    with pytest.raises(CorruptFile, match=r"10_19_0\.parquet"):
        ArchivedTimes(storage, "h").completion_time("15")
    storage.put("h/manifest_2", b'{"files": 3}')
    with pytest.raises(CorruptFile, match="manifest_2"):
        ArchivedTimes(storage, "h").completion_time("15")
    storage.put("h/_version_", b"x")
    with pytest.raises(CorruptFile, match="_version_"):
        ArchivedTimes(storage, "h").completion_time("15")


def test_modification_times_do_not_push_new_instants(tmp_path: Path) -> None:
    """A copied table of version 6, or a file server whose clock is ahead."""
    timeline = load(tmp_path, {"20200101000000000.commit": b""}, version=6)
    assert (timeline.instants[0].completion_time or "") > "2026"
    assert timeline.latest_time() == "20200101000000000"


def test_a_pending_write_before_the_first_completed_one_is_not_committed(tmp_path: Path) -> None:
    names = ("2.commit.requested", "2.inflight", "4_5.commit")
    facts = TimelineFacts(load(tmp_path, dict.fromkeys(names, b"")))
    assert [facts.is_committed(ts) for ts in ("1", "2", "3", "4", "6")] == [True, False, True, True, False]
