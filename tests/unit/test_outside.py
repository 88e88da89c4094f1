"""Whatever a table's files and links name, nothing outside the table is touched, and the table does not stay stuck."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_services.codecs import avro
from hudi_services.codecs.clean_plan import CleanerPlan, encode_cleaner_plan
from hudi_services.codecs.clustering_plan import ClusteringGroup, ClusteringPlan, SliceInfo, encode_clustering_plan
from hudi_services.codecs.rollback_plan import PartitionRollback, RollbackPlan, encode_rollback_plan
from hudi_services.commit.checkpoints import checkpoint_folder
from hudi_services.commit.heartbeat import heartbeat_path
from hudi_services.commit.markers import marker_folder
from hudi_services.engine import LocalEngine
from hudi_services.errors import (
    CheckFailed,
    CorruptFile,
    NeedsRecovery,
    NothingToDo,
    PartlyDone,
    StorageError,
    SymbolicLink,
    UnsupportedTable,
)
from hudi_services.file_names import OWN_FOLDER
from hudi_services.indexing.checkpoints import WORK_FOLDER
from hudi_services.jobs import clean, clustering, orphan_files, recover, rollback, validate
from hudi_services.jobs.index_bootstrap import index_bootstrap
from hudi_services.model import CommitMetadata, FileSlice, WriteStat
from hudi_services.options import resolve
from hudi_services.orphan_files.quarantine import QUARANTINE_FOLDER
from hudi_services.rollback.execution import plan_rollback
from hudi_services.runs.report import Report, RunState
from hudi_services.runs.request import (
    CleanRequest,
    IndexRequest,
    Mode,
    OrphanFilesMode,
    OrphanFilesRequest,
    RecoverRequest,
    ValidateRequest,
)
from hudi_services.timeline.instant import Action
from hudi_services.timeline.instant import State as InstantState

from .repairs import DEAD_AT_ONCE, P, cluster, fail_newest, repair
from .tables import RELEASES, digest, listed_view, open_local, request, rows, unpack

T = "20261121100000000"
LATER = "20261121110000000"
BAD = "20261121120000000"
"""After all that the tables have."""
POLICY = "KEEP_LATEST_COMMITS"
OPTIONS = resolve([("test", {"hoodie.time.generator.max_expected_clock_skew_ms": "0", **DEAD_AT_ONCE})])
STRANGER = f"aaaaaaaa-0000-0000-0000-000000000000-0_0-0-0_{T}.parquet"
OUTSIDE = f"../victim/{STRANGER}"


class Place:
    """A table, and beside it a folder of somebody else that nobody may touch."""

    def __init__(self, folder: Path, release: str) -> None:
        self.release = release
        self.table = unpack(release, folder)
        self.victim = folder / "victim"
        (self.victim / "sub").mkdir(parents=True)
        for name in (STRANGER, f".{STRANGER}.crc", "letter.odt", "sub/deep.txt"):
            (self.victim / name).write_text("precious")
        self._before = digest(self.victim)
        self.rows = self.read()

    def read(self) -> list[object]:
        table = open_local(self.table)
        return [rows(table, table.view), rows(table, listed_view(table))]

    def is_whole(self) -> None:
        assert digest(self.victim) == self._before and (self.victim / "sub").is_dir()
        assert self.read() == self.rows

    def publish(self, ts: str, action: Action, state: InstantState, data: bytes = b"") -> None:
        open_local(self.table).timeline.publish(ts, action, state, data)

    def age(self) -> None:
        """As if all had been written long ago."""
        for folder, _, names in os.walk(self.table):
            for name in names:
                os.utime(f"{folder}/{name}", (1_600_000_000, 1_600_000_000), follow_symlinks=False)

    def live(self) -> str:
        """The path of a base file that readers see."""
        return min(one.base_file.path for one in open_local(self.table).view.latest_slices(P) if one.base_file)

    def begin_write(self) -> None:
        for state in (InstantState.REQUESTED, InstantState.INFLIGHT):
            self.publish(T, Action.COMMIT, state)

    def clean_plan(self, partition: str, *names: str) -> None:
        plan = CleanerPlan(POLICY, "", "", {partition: names})
        self.publish(LATER, Action.CLEAN, InstantState.REQUESTED, encode_cleaner_plan(plan, self.release))

    def rollback_plan(self, *requests: PartitionRollback, ts: str = T, action: str = "commit") -> None:
        self.begin_write()
        plan = encode_rollback_plan(RollbackPlan(ts, action, requests), self.release)
        self.publish(LATER, Action.ROLLBACK, InstantState.REQUESTED, plan)

    def markers(self, *lines: str) -> None:
        self.begin_write()
        folder = self.table / marker_folder(T)
        folder.mkdir(parents=True)
        (folder / "MARKERS.type").write_text("TIMELINE_SERVER_BASED")
        (folder / "MARKERS0").write_text("".join(f"{line}.marker.CREATE\n" for line in lines))


@pytest.fixture(params=["0.15.0", "1.2.0"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(tmp_path, request.param)


def recovered(path: Path, *, apply: bool = True) -> Report:
    return recover.recover(RecoverRequest(base_path=str(path), options=OPTIONS, apply=apply, instant=None))


def cleaned(path: Path) -> Report:
    return clean.clean(CleanRequest(base_path=str(path), options=OPTIONS))


def collected(path: Path, mode: OrphanFilesMode, **more: object) -> Report:
    wanted = {"base_path": str(path), "options": OPTIONS, "mode": mode, "min_age_minutes": 0, **more}
    return orphan_files.manage_orphan_files(OrphanFilesRequest(**wanted))  # type: ignore[arg-type]


# Plans and markers


def v1_clean(place: Place) -> None:
    record = {
        "earliestInstantToRetain": None,
        "lastCompletedCommitTimestamp": "",
        "policy": POLICY,
        "filesToBeDeletedPerPartition": {"../victim": [STRANGER]},
        "version": 1,
        "filePathsToBeDeletedPerPartition": None,
        "partitionsToBeDeleted": [],
        "extraMetadata": {},
    }
    data = avro.write_container(avro.load_schema("HoodieCleanerPlan", place.release), record)
    place.publish(LATER, Action.CLEAN, InstantState.REQUESTED, data)


def clean_of_partition(place: Place) -> None:
    plan = CleanerPlan(POLICY, "", "", {}, ("../victim/sub", "../victim"))
    place.publish(LATER, Action.CLEAN, InstantState.REQUESTED, encode_cleaner_plan(plan, place.release))


def clean_of_pending_write(place: Place) -> None:
    place.begin_write()
    _, _, name = place.live().rpartition("/")
    new = f"{name.split('_')[0]}_9-9-9_{T}.parquet"
    shutil.copy(place.table / place.live(), place.table / P / new)
    place.clean_plan(P, new)


def clustering_elsewhere(place: Place) -> None:
    slices = (SliceInfo("../victim", STRANGER.split("_")[0], f"{place.victim}/{STRANGER}"),)
    data = encode_clustering_plan(ClusteringPlan((ClusteringGroup(slices),), "org.x.Strategy"), place.release)
    layout = open_local(place.table).timeline.layout
    place.publish(LATER, layout.clustering_action, InstantState.REQUESTED, data)


PLANS: dict[str, Callable[[Place], None]] = {
    "clean of version 1": v1_clean,
    "clean of a partition": clean_of_partition,
    "clean": lambda place: place.clean_plan("../victim", f"{place.victim}/{STRANGER}"),
    "clean of a folder": lambda place: place.clean_plan(P, "file:/x/.."),
    "clean of the properties": lambda place: place.clean_plan(".hoodie", "hoodie.properties"),
    "clean below .hoodie": lambda place: place.clean_plan(".hoodie/metadata/files", ".hoodie_partition_metadata"),
    "clean of a partition's metafile": lambda place: place.clean_plan(P, ".hoodie_partition_metadata"),
    "clean of live files": lambda place: place.clean_plan(P, *place.live().split("/")[1:]),
    "clean of a pending write": clean_of_pending_write,
    "rollback": lambda place: place.rollback_plan(PartitionRollback("../victim", (f"{place.victim}/{STRANGER}",))),
    "rollback below .hoodie": lambda place: place.rollback_plan(PartitionRollback(".hoodie", ("hoodie.properties",))),
    "rollback of a live file": lambda place: place.rollback_plan(PartitionRollback(P, (place.live(),))),
    "rollback of log blocks": lambda place: place.rollback_plan(
        PartitionRollback(P, (), "../../victim/x", T, {f".x_{T}.log.1_0-0-0": 1})
    ),
    "rollback of nothing known": lambda place: place.rollback_plan(action="sabotage"),
    "rollback of no instant": lambda place: place.rollback_plan(ts="../../victim"),
    "markers": lambda place: place.markers(OUTSIDE),
    "markers of the properties": lambda place: place.markers(".hoodie/hoodie.properties"),
    "markers of a live file": lambda place: place.markers(place.live()),
    "clustering": clustering_elsewhere,
}


@pytest.mark.thorough
@pytest.mark.spread(3)
@pytest.mark.parametrize("kind", PLANS)
def test_what_nobody_could_have_planned_is_dropped(kind: str, place: Place) -> None:
    PLANS[kind](place)
    place.age()
    for command in (cleaned, scheduled, lambda path: recovered(path, apply=False)):
        try:
            command(place.table)
        except (NothingToDo, CorruptFile, CheckFailed, NeedsRecovery) as told:
            assert str(place.table) in told.message or isinstance(told, NothingToDo)
        place.is_whole()
    report = recovered(place.table)
    assert report.state is RunState.COMPLETED
    if "markers" in kind:
        assert any("its files will be found by listing" in str(row["why"]) for row in report.tables["instants"])
    place.is_whole()
    if kind == "clean of a pending write":
        # With that write its file went, and nothing speaks against the clean any more.
        recovered(place.table)
        place.is_whole()
    with pytest.raises(NothingToDo):
        recovered(place.table)


def scheduled(path: Path) -> Report:
    return clustering.schedule(request(path, Mode.SCHEDULE))


def test_one_bad_marker_does_not_hold_up_the_others(tmp_path: Path) -> None:
    place = Place(tmp_path, "1.2.0")
    ts = fail_newest(place.table)
    kept = place.read()
    place.markers(OUTSIDE)
    place.age()
    found = {str(row["instant"]): row for row in recovered(place.table, apply=False).tables["instants"]}
    assert {row["decision"] for row in found.values()} == {"roll back"} and found.keys() == {ts, T}
    assert found[T]["files"] is None and int(str(found[ts]["files"])) > 0
    assert "victim" in str(found[T]["why"]) and "listing" not in str(found[ts]["why"])
    assert recovered(place.table).state is RunState.COMPLETED
    place.rows = kept
    place.is_whole()


def test_what_was_appended_only_fit_markers_tell(tmp_path: Path) -> None:
    """Blocks in log files of older slices bear another time: without markers nobody would cancel them."""
    place = Place(tmp_path, "0.15.0")
    for state in (InstantState.REQUESTED, InstantState.INFLIGHT):
        place.publish(T, Action.DELTA_COMMIT, state)
    folder = place.table / marker_folder(T)
    folder.mkdir(parents=True)
    (folder / "MARKERS.type").write_text("TIMELINE_SERVER_BASED")
    (folder / "MARKERS0").write_text(f"{OUTSIDE}.marker.APPEND\n")
    place.age()
    (row,) = recovered(place.table, apply=False).tables["instants"]
    assert row["decision"] == "wait" and "only the markers could tell which files it appended to" in str(row["why"])
    with pytest.raises(CorruptFile, match="victim"):
        rollback.rollback(repair(place.table, "rollback", T, DEAD_AT_ONCE))
    place.is_whole()


# Links


def link_in_markers(place: Place) -> Path:
    place.begin_write()
    link = place.table / marker_folder(T) / P
    link.parent.mkdir(parents=True)
    return link


def link_for_markers(place: Place) -> Path:
    place.begin_write()
    return place.table / ".hoodie/.temp" / T


def link_for_notes(place: Place) -> Path:
    scheduled(place.table)
    (plan,) = open_local(place.table).timeline.pending_clusterings()
    place.publish(plan.ts, plan.action, InstantState.INFLIGHT)
    return place.table / checkpoint_folder(plan.ts)


@pytest.mark.thorough
@pytest.mark.parametrize("where", [link_in_markers, link_for_markers, link_for_notes], ids=lambda one: one.__name__)
@pytest.mark.parametrize("command", ["recover", "rollback"])
def test_a_link_goes_and_its_target_stays(
    where: Callable[[Place], Path], command: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = where(place)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(place.victim)
    place.age()
    (pending,) = open_local(place.table).timeline.pending()
    if command == "recover":
        assert recovered(place.table).state is RunState.COMPLETED
    else:
        rollback.rollback(repair(place.table, "rollback", pending.ts, DEAD_AT_ONCE))
    assert not link.is_symlink() and not open_local(place.table).timeline.pending()
    place.is_whole()


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
def test_an_execution_beside_a_link(release: str, tmp_path: Path) -> None:
    """A link in the place of its marker folder is deleted; through a link farther up nothing is written."""
    place = Place(tmp_path, release)
    scheduled(place.table)
    (plan,) = open_local(place.table).timeline.pending_clusterings()
    temp = place.table / ".hoodie/.temp"
    shutil.rmtree(temp, ignore_errors=True)
    temp.symlink_to(place.victim)
    with pytest.raises(SymbolicLink, match=f"{temp} is a symbolic link"):
        clustering.execute(request(place.table, Mode.EXECUTE), engine=LocalEngine())
    place.is_whole()
    temp.unlink()
    temp.mkdir()
    (temp / plan.ts).symlink_to(place.victim)
    clustering.execute(request(place.table, Mode.EXECUTE), engine=LocalEngine())
    assert not os.path.lexists(temp / plan.ts)
    place.is_whole()


def test_a_link_in_the_place_of_the_work_of_an_index(tmp_path: Path) -> None:
    place = Place(tmp_path, "1.2.0")
    wanted = IndexRequest(base_path=str(place.table), options=OPTIONS)
    link = place.table / WORK_FOLDER
    for error in (None, NothingToDo):
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(place.victim)
        if error is None:
            index_bootstrap(wanted, engine=LocalEngine())
        else:
            with pytest.raises(error, match="has a record index already"):
                index_bootstrap(wanted, engine=LocalEngine())
        assert not link.is_symlink()
        place.is_whole()


def link(path: Path) -> None:
    path.symlink_to(path.parents[3] / "victim")


# A folder, a link or a file where there should be none


@pytest.mark.thorough
@pytest.mark.parametrize("make", [link, Path.touch], ids=["link", "file"])
def test_copies_that_cannot_be_kept_hold_no_repair_up(
    make: Callable[[Path], None], place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    place.begin_write()
    place.age()
    (place.table / OWN_FOLDER).mkdir(exist_ok=True)
    make(place.table / OWN_FOLDER / "removed")
    assert recovered(place.table).state is RunState.COMPLETED
    assert not open_local(place.table).timeline.pending()
    assert f"no copy of {T}" in caplog.text
    place.is_whole()


@pytest.mark.thorough
@pytest.mark.parametrize("make", [link, Path.touch], ids=["link", "file"])
def test_what_a_completed_write_did_is_kept_or_it_stays(make: Callable[[Path], None], place: Place) -> None:
    """The indexes learn from the copy what to take back."""
    newest = open_local(place.table).timeline.completed_writes()[-1]
    (place.table / OWN_FOLDER).mkdir(exist_ok=True)
    make(place.table / OWN_FOLDER / "removed")
    with pytest.raises(StorageError, match="removed"):
        rollback.rollback(repair(place.table, "rollback", newest.ts, DEAD_AT_ONCE, completed=True))
    assert open_local(place.table).timeline.completed_writes()[-1] == newest
    place.is_whole()


def test_a_folder_in_the_place_of_a_heartbeat(place: Place) -> None:
    place.begin_write()
    (place.table / heartbeat_path(T) / "deeper").mkdir(parents=True)
    place.age()
    assert recovered(place.table).state is RunState.COMPLETED
    assert not open_local(place.table).timeline.pending()
    place.is_whole()


def test_a_folder_in_the_place_of_the_plan_of_an_index(tmp_path: Path) -> None:
    place = Place(tmp_path, "1.2.0")
    (place.table / WORK_FOLDER / "plan.json/deeper").mkdir(parents=True)
    index_bootstrap(IndexRequest(base_path=str(place.table), options=OPTIONS), engine=LocalEngine())
    assert not (place.table / WORK_FOLDER).exists()
    place.is_whole()


ID = "20200101T000000000"


def test_a_link_in_a_quarantine(tmp_path: Path) -> None:
    """It is not brought back, and what it leads to is not either; it goes with the quarantine."""
    place = Place(tmp_path, "1.2.0")
    folder = place.table / QUARANTINE_FOLDER / ID
    (folder / "files").mkdir(parents=True)
    (folder / "manifest.json").write_text('{"files": []}')
    (folder / "files/x").symlink_to(place.victim)
    report = collected(place.table, OrphanFilesMode.RESTORE, quarantine=ID)
    assert any("files/x is a symbolic link" in text for text in report.warnings)
    assert (folder / "files/x").is_symlink() and not os.path.lexists(place.table / "x")
    collected(place.table, OrphanFilesMode.DELETE, delete_older_than_days=1)
    assert not folder.exists()
    place.is_whole()


def test_a_link_in_the_place_of_a_quarantine(tmp_path: Path) -> None:
    place = Place(tmp_path, "1.2.0")
    link = place.table / QUARANTINE_FOLDER / ID
    link.parent.mkdir(parents=True)
    link.symlink_to(place.victim)
    with pytest.raises(SymbolicLink, match=f"{ID} is a symbolic link"):
        collected(place.table, OrphanFilesMode.RESTORE, quarantine=ID)
    collected(place.table, OrphanFilesMode.DELETE, delete_older_than_days=1)
    assert not link.is_symlink()
    place.is_whole()


def without_leases(path: Path) -> dict[str, str]:
    return {file: sha for file, sha in digest(path).items() if not file.startswith(".hoodie/.locks/")}


def cleaned_to_one(path: Path) -> Report:
    policy = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    return clean.clean(CleanRequest(base_path=str(path), options=resolve([("test", policy)])))


def repaired(path: Path) -> Report:
    return validate.validate(ValidateRequest(base_path=str(path), options=OPTIONS, repair=True))


def quarantined(path: Path) -> Report:
    return collected(path, OrphanFilesMode.QUARANTINE)


@pytest.mark.thorough
@pytest.mark.parametrize("command", [scheduled, cleaned_to_one, repaired, quarantined], ids=lambda one: one.__name__)
def test_a_partition_that_is_a_link_is_refused(command: Callable[[Path], Report], place: Place) -> None:
    """Neither empty, so that its files would be lost, nor followed."""
    if command is cleaned_to_one:
        cluster(place.table)
    elsewhere = place.victim.parent / "disk2"
    shutil.move(place.table / P, elsewhere)
    (place.table / P).symlink_to(elsewhere)
    before, rows_before = without_leases(place.table), digest(elsewhere)
    with pytest.raises(SymbolicLink, match=f"{P} is a symbolic link.*no link is followed") as told:
        command(place.table)
    assert "in its place" in told.value.hint
    assert without_leases(place.table) == before and digest(elsewhere) == rows_before


@pytest.mark.thorough
def test_recover_gets_to_the_others_when_a_partition_is_a_link(place: Place) -> None:
    """What lies behind it stays as it is, with its sentence, until the link is gone."""
    cluster(place.table)
    old = [one.base_file.name for one in replaced_slices(place.table) if one.base_file]
    place.clean_plan(P, *old)
    place.begin_write()
    place.publish(BAD, Action.ROLLBACK, InstantState.REQUESTED, b"Obj")
    place.age()
    elsewhere = place.victim.parent / "disk2"
    shutil.move(place.table / P, elsewhere)
    (place.table / P).symlink_to(elsewhere)
    found = {str(row["instant"]): row for row in recovered(place.table, apply=False).tables["instants"]}
    assert [found[ts]["decision"] for ts in (T, LATER, BAD)] == ["roll back", "wait", "drop the plan"]
    assert "is a symbolic link" in str(found[LATER]["why"])
    before = digest(elsewhere)
    with pytest.raises(PartlyDone, match=f"1 of 3 instants could not be repaired.*{P} is a symbolic link"):
        recovered(place.table)
    assert digest(elsewhere) == before and {i.ts for i in open_local(place.table).timeline.pending()} == {T, LATER}
    (place.table / P).unlink()
    shutil.move(elsewhere, place.table / P)
    assert recovered(place.table).state is RunState.COMPLETED
    assert not any((place.table / P / name).exists() for name in old)
    place.is_whole()


def replaced_slices(path: Path) -> list[FileSlice]:
    view = open_local(path).view
    slices = [one for group in view.all_slices(P).values() for one in group]
    return [one for one in slices if view.replaced_at(P, one.file_id) is not None]


def test_garbage_behind_a_link_is_nobodys(place: Place) -> None:
    (place.table / "day=2026-01-09").symlink_to(place.victim)
    with pytest.raises(SymbolicLink, match="day=2026-01-09"):
        quarantined(place.table)
    (place.table / "day=2026-01-09").unlink()
    place.is_whole()


def test_the_base_path_may_be_a_link(tmp_path: Path) -> None:
    place = Place(tmp_path, "1.2.0")
    (tmp_path / "link").symlink_to(place.table)
    cluster(tmp_path / "link")
    assert open_local(place.table).timeline.completed({Action.REPLACE_COMMIT})
    place.is_whole()


# Properties, manifests and notes

PROPERTIES = [
    ("hoodie.timeline.path", "../../victim"),
    ("hoodie.timeline.history.path", "../../../victim"),
    ("hoodie.table.index.defs.path", "../victim/index.json"),
    ("hoodie.table.metadata.partitions", "files,../../../victim"),
    ("hoodie.archivelog.folder", "/tmp"),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("key", "value"), PROPERTIES)
def test_properties_that_lead_elsewhere(key: str, value: str, place: Place) -> None:
    file = place.table / ".hoodie/hoodie.properties"
    lines = [line for line in file.read_text().splitlines() if not line.startswith(f"{key}=")]
    file.write_text("\n".join([*lines, f"{key}={value}", ""]))
    for run in (scheduled, cleaned, recovered):
        with pytest.raises(CorruptFile, match=rf"hoodie\.properties has {key}=\S+, which leads out of the table"):
            run(place.table)
    file.write_text("\n".join([*lines, ""]))
    place.is_whole()


def test_a_manifest_that_leads_elsewhere(tmp_path: Path) -> None:
    place = Place(tmp_path, "1.2.0")
    history = place.table / ".hoodie/timeline/history"
    history.mkdir(exist_ok=True)
    (history / "_version_").write_text("1")
    (history / "manifest_1").write_text(json.dumps({"files": [{"fileName": "../../../../victim/x", "fileLen": 1}]}))
    timeline = open_local(place.table).timeline
    with pytest.raises(CorruptFile, match="manifest_1 is no timeline manifest: it names files elsewhere"):
        timeline.layout.read_archive(timeline.storage, f"{timeline.folder}/history")


# Odd names


def put(folder: bytes, name: bytes) -> None:
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as file:
        file.write(b"x")


ODD = (b"a\nb.parquet", b"\xff\xfe.parquet", b"a\x01b", b"\x1b[31m", b"\x7f")


@pytest.mark.thorough
@pytest.mark.parametrize("folder", ["", P, "timeline", ".hoodie/.temp"])
def test_odd_names_belong_to_nobody(folder: str, place: Place) -> None:
    timeline = open_local(place.table).timeline.folder
    parent = os.fsencode(place.table / (timeline if folder == "timeline" else folder))
    os.makedirs(parent, exist_ok=True)
    for name in ODD:
        put(parent, name)
        put(os.path.join(parent, b"f" + name), name)
    ts = fail_newest(place.table)
    before = place.read()
    for name in ODD:
        put(os.fsencode(place.table / marker_folder(ts)), name)
    assert recovered(place.table).state is RunState.COMPLETED
    assert not (place.table / marker_folder(ts)).exists()
    scheduled(place.table)
    clustering.execute(request(place.table, Mode.EXECUTE), engine=LocalEngine())
    for run in (cleaned, lambda path: collected(path, OrphanFilesMode.FIND)):
        try:
            run(place.table)
        except NothingToDo:
            continue
    assert validate.validate(ValidateRequest(base_path=str(place.table), options=OPTIONS)).state is RunState.COMPLETED
    assert place.read() == before


@pytest.mark.parametrize("odd", ["a\tb", "a\nb"])
def test_a_partition_with_a_control_character_is_refused(odd: str, place: Place) -> None:
    shutil.copytree(place.table / P, place.table / odd)
    properties = place.table / ".hoodie/hoodie.properties"
    properties.write_text(properties.read_text().replace("hoodie.table.metadata.partitions=", "unused="))
    before = digest(place.table)
    with pytest.raises(UnsupportedTable, match="control characters in paths are not supported") as told:
        scheduled(place.table)
    assert repr(odd) in told.value.message
    assert digest(place.table) == before


def test_a_commit_that_tells_of_files_elsewhere(place: Place) -> None:
    """A rollback by what it tells cannot even be planned."""
    stat = WriteStat("../victim", STRANGER.split("_")[0], f"../victim/{STRANGER}", num_writes=1, num_inserts=1)
    table = open_local(place.table)
    data = table.timeline.layout.encode_commit(CommitMetadata("INSERT", {"../victim": (stat,)}), place.release)
    place.begin_write()
    table.timeline.publish(T, Action.COMMIT, InstantState.COMPLETED, data, LATER)
    table = open_local(place.table)
    target = table.timeline.find(T)
    assert target
    with pytest.raises(CorruptFile, match="victim"):
        plan_rollback(table, target)
