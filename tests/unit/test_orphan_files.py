"""Which files are orphan files, which are not, and which are only reported."""

import itertools
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hudi_services.clock import SystemClock
from hudi_services.codecs import avro
from hudi_services.codecs.clustering_plan import ClusteringGroup, ClusteringPlan, SliceInfo, encode_clustering_plan
from hudi_services.codecs.rollback_plan import PartitionRollback, RollbackPlan, encode_rollback_plan
from hudi_services.commit.times import Times
from hudi_services.engine import LocalEngine
from hudi_services.errors import ConflictError, CorruptFile, NothingToDo
from hudi_services.file_names import base_file_name
from hudi_services.jobs import clustering
from hudi_services.jobs.clean import clean
from hudi_services.jobs.orphan_files import manage_orphan_files
from hudi_services.options import resolve
from hudi_services.orphan_files import find
from hudi_services.orphan_files.find import find_orphan_files
from hudi_services.orphan_files.model import Ages, OrphanFindings, OrphanKind, ReasonToStay
from hudi_services.rollback.execution import roll_back
from hudi_services.runs.request import CleanRequest, Mode, OrphanFilesMode, OrphanFilesRequest
from hudi_services.snapshot import Snapshot, open_snapshot
from hudi_services.storage import FileInfo, Storage
from hudi_services.stores.local import LocalStorage
from hudi_services.timeline.instant import Action
from hudi_services.timeline.instant import State as InstantState

from .archives import unpack_archived
from .faulty_storage import FaultyStorage, Killed
from .tables import RELEASES, listed_view, open_local, request, rows, unpack

TWO = pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
ALL = pytest.mark.parametrize("release", RELEASES)
BEFORE_ALL, NOBODYS = "20200101000000000", "20990101000000000"
DAY = 24 * 3600
ID = "11111111-2222-3333-4444-555555555555-0"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_archived(tmp_path_factory.mktemp("archives"))


@pytest.fixture
def archived(made: Path, tmp_path: Path) -> Callable[[str, str], Path]:
    """A copy of a table whose first instants are archived; `plain` is without, `listed` with a metadata table."""

    def copy(release: str, name: str) -> Path:
        return Path(shutil.copytree(made / release / name, tmp_path / name))

    return copy


def look(path: Path, minimum: int = 0, sign_of_life: int = 0) -> OrphanFindings:
    return find_orphan_files(open_local(path), Ages(minimum, sign_of_life), lambda done, total: None)


def found(path: Path, **ages: int) -> dict[str, OrphanKind]:
    return {item.path: item.reason for item in look(path, **ages).items}


def kept(path: Path, **ages: int) -> dict[ReasonToStay, int]:
    return files_kept(look(path, **ages))


def files_kept(findings: OrphanFindings) -> dict[ReasonToStay, int]:
    return {why: total.files for why, total in findings.kept.items()}


def put_file(path: Path, ts: str, *, folder: str | None = None, token: str = "0-1-1", age: int = DAY) -> str:
    """A base file of a group of its own: a copy of another. Gives its path in the table."""
    source = next(path.rglob("*/*.parquet"))
    name = f"{folder or source.parent.relative_to(path)}/{base_file_name(ID, token, ts)}"
    return put(path, name, source.read_bytes(), age)


def put(path: Path, name: str, data: bytes = b"x", age: int = DAY) -> str:
    file = path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    os.utime(file, (time.time() - age,) * 2)
    return name


def archived_times(path: Path) -> dict[str, str]:
    table = open_local(path)
    return dict(table.timeline.layout.read_archive(table.storage, table.config.history_path).completed)


def drop_archive(path: Path) -> None:
    shutil.rmtree(path / open_local(path).config.history_path)


@ALL
def test_a_healthy_table_has_none(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    assert look(path) == OrphanFindings((), {})
    clustering.schedule(request(path, Mode.SCHEDULE))
    clustering.execute(request(path, Mode.EXECUTE), engine=LocalEngine())
    assert look(path) == OrphanFindings((), {})


@pytest.mark.thorough
@ALL
def test_what_hudi_itself_left(release: str, archived: Callable[[str, str], Path]) -> None:
    """Failed upserts that Hudi rolled back without deleting their files, because their markers were gone."""
    path = archived(release, "listed")
    items = look(path).items
    assert len(items) == 10 and {item.reason for item in items} == {OrphanKind.ROLLED_BACK}
    assert {item.action for item in items} == {"commit"}
    table = open_local(path)
    read = rows(table, table.view)
    wanted = request_for(path, OrphanFilesMode.QUARANTINE)
    assert manage_orphan_files(wanted).files.after == 10
    table = open_local(path)
    assert rows(table, table.view).equals(read)
    # Who lists storage saw the updates that had been rolled back.
    assert rows(table, listed_view(table)).equals(read)


@ALL
def test_the_only_file_that_is_left_of_a_file_group_stays(release: str, archived: Callable[[str, str], Path]) -> None:
    """Without a metadata table a clean of Hudi deletes the committed file under a rolled back one."""
    path = archived(release, "plain")
    table = open_local(path)
    assert table.metadata is None
    assert kept(path) == {ReasonToStay.ONLY_FILE: 4} and found(path) == {}
    # With its committed file beside it, each is garbage, but not when only a savepoint holds that.
    beside = put_committed_beside(path)
    assert found(path) == dict.fromkeys(beside, OrphanKind.ROLLED_BACK)
    write_savepoint(table, by_partition(beside.values()))
    assert kept(path) == {ReasonToStay.ONLY_FILE: 4} and found(path) == {}


def put_committed_beside(path: Path) -> dict[str, str]:
    """The rolled back files that readers see, each with the committed one under it, which a clean had deleted."""
    known, first = archived_times(path), open_local(path).timeline.first_ts() or ""
    beside = {}
    for file in sorted(path.glob("p?/*.parquet")):
        file_id, _, ts = file.stem.split("_")
        if ts not in known and ts < first:
            older = base_file_name(file_id, "0-0-0", max(one for one in known if one < ts))
            beside[f"{file.parent.name}/{file.name}"] = put(path, f"{file.parent.name}/{older}", file.read_bytes())
    return beside


def by_partition(paths: Iterable[str]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for path in paths:
        names.setdefault(path.partition("/")[0], []).append(path.partition("/")[2])
    return names


@ALL
def test_what_a_pending_clean_relies_on_stays(release: str, archived: Callable[[str, str], Path]) -> None:
    """It takes the rolled back files for the newest of their groups, and deletes what lies beside them."""
    path = archived(release, "plain")
    beside = put_committed_beside(path)
    before = rows(open_local(path), open_local(path).view)
    retained = ("hoodie.cleaner.commits.retained", "hoodie.clean.commits.retained")
    full = ("hoodie.cleaner.incremental.mode", "hoodie.clean.incremental.enabled")
    skew = {"hoodie.time.generator.max_expected_clock_skew_ms": "0"}
    options = resolve([("test", {**skew, **dict.fromkeys(retained, "1"), **dict.fromkeys(full, "false")})])
    writes = itertools.count()
    while not (pending := open_local(path).timeline.pending({Action.CLEAN})):
        with pytest.raises(Killed):
            clean(CleanRequest(base_path=str(path), options=options), FaultyStorage(str(path), next(writes)))
    plan = open_local(path).timeline.read_cleaner_plan(pending[0])
    deleted = {os.path.basename(file) for files in plan.files.values() for file in files}
    assert {os.path.basename(file) for file in beside.values()} <= deleted
    assert found(path) == {} and kept(path) == {ReasonToStay.CLEANING: 2, ReasonToStay.IN_PLAN: 2}
    with pytest.raises(NothingToDo):
        manage_orphan_files(request_for(path, OrphanFilesMode.QUARANTINE))
    clean(CleanRequest(base_path=str(path), options=options))
    assert not any((path / name).exists() for name in beside.values())
    assert rows(open_local(path), open_local(path).view).equals(before)


@TWO
def test_a_clean_that_ends_while_we_look(release: str, archived: Callable[[str, str], Path]) -> None:
    """Whether it is on the timeline by then or not."""
    path = archived(release, "plain")
    beside = put_committed_beside(path)
    timeline = open_local(path).timeline
    name = timeline.layout.file_name(NOBODYS, Action.CLEAN, InstantState.COMPLETED, NOBODYS)

    def end() -> None:
        (path / timeline.path(name)).touch()

    findings = find_orphan_files(open_with(ArrivingLate(str(path), end)), Ages(0, 0), lambda done, total: None)
    assert findings.items == () and files_kept(findings) == {ReasonToStay.CLEANING: 4}
    assert set(found(path)) == set(beside)

    def delete() -> None:
        for file in beside.values():
            (path / file).unlink()

    findings = find_orphan_files(open_with(ArrivingLate(str(path), delete)), Ages(0, 0), lambda done, total: None)
    assert findings.items == () and files_kept(findings) == {ReasonToStay.ONLY_FILE: 4}


@TWO
def test_what_nobody_can_judge_is_not_held_in_memory(
    release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be millions of files of a time of which the archive tells nothing."""
    path = unpack(release, tmp_path)
    without_metadata_table(path)
    for number in range(50):
        put_file(path, BEFORE_ALL, token=f"0-0-{number}")
    live = put_file(path, NOBODYS)
    held: list[str] = []
    real = find._Look.at_data_file

    def at_data_file(self: find._Look, candidate: find._Candidate) -> None:
        held.append(candidate.file.path)
        real(self, candidate)

    monkeypatch.setattr(find._Look, "at_data_file", at_data_file)
    assert found(path) == {live: OrphanKind.DEAD_ATTEMPT} and held == [live]
    assert kept(path) == {ReasonToStay.NOT_IN_ARCHIVE: 50}


def write_savepoint(table: Snapshot, files: dict[str, list[str]]) -> None:
    """A completed savepoint on the first commit of the timeline."""
    ts = table.timeline.completed_writes()[0].ts
    files_of = {"name": "savepointDataFile", "type": {"type": "array", "items": "string"}}
    held = {"type": "map", "values": {"type": "record", "name": "P", "fields": [files_of]}}
    schema = json.dumps({"type": "record", "name": "S", "fields": [{"name": "partitionMetadata", "type": held}]})
    record = {"partitionMetadata": {name: {"savepointDataFile": names} for name, names in files.items()}}
    name = table.timeline.layout.file_name(ts, Action.SAVEPOINT, InstantState.COMPLETED, NOBODYS)
    table.storage.create(table.timeline.path(name), avro.write_container(avro.parse_schema(schema, "f"), record))


@ALL
def test_a_new_file_group_of_a_rolled_back_attempt_goes(release: str, archived: Callable[[str, str], Path]) -> None:
    """Readers who list storage see its rows once the archive has passed it."""
    path = archived(release, "plain")
    table = open_local(path)
    archive = table.timeline.layout.read_archive(table.storage, table.config.history_path)
    before = rows(table, table.view).num_rows
    name = put_file(path, max(ts for ts in archive.rolled_back if archive.surrounds(ts)))
    assert rows(table, table.view).num_rows > before
    assert found(path) == {name: OrphanKind.ROLLED_BACK}


@ALL
@pytest.mark.parametrize("name", ["plain", "listed"])
def test_archived_writes_are_live_whatever_their_commit_lists(
    release: str, name: str, archived: Callable[[str, str], Path]
) -> None:
    path = archived(release, name)
    before = found(path)
    for ts in archived_times(path):
        put_file(path, ts, token=f"0-0-{ts[-4:]}")
    assert found(path) == before


@TWO
def test_old_files_that_nobody_knows(release: str, archived: Callable[[str, str], Path]) -> None:
    """Between two archived commits: garbage if there is a metadata table, else in doubt. Before all: in doubt."""
    listed, plain = archived(release, "listed"), archived(release, "plain")
    for path in (listed, plain):
        times = sorted(archived_times(path))
        between = put_file(path, times[2][:-3] + f"{int(times[2][-3:]) + 1:03d}" if times[2][-3:] != "999" else NOBODYS)
        put_file(path, BEFORE_ALL)
        reasons = found(path)
        assert reasons.get(between) is (OrphanKind.NEVER_COMMITTED if path == listed else None)
        assert kept(path)[ReasonToStay.NOT_IN_ARCHIVE] == (1 if path == listed else 2)


@TWO
def test_without_an_archive(release: str, archived: Callable[[str, str], Path]) -> None:
    """What is older than the timeline is in doubt, unless a rollback on the timeline tells."""
    path = archived(release, "listed")
    rolled_back = {i.path for i in look(path).items}
    active = open_local(path).timeline
    told = {active.read_rollback(one).target_ts for one in active.completed({Action.ROLLBACK})}
    drop_archive(path)
    name = put_file(path, BEFORE_ALL)
    again = found(path)
    assert set(again) == {p for p in rolled_back if p.rsplit("_", 1)[1].split(".")[0] in told}
    assert name not in again
    assert kept(path) == {ReasonToStay.NOT_IN_ARCHIVE: len(rolled_back) - len(again) + 1}


def test_an_archive_with_a_gap_tells_of_nothing_that_is_not_in_it(archived: Callable[[str, str], Path]) -> None:
    """The missing file may know the write that began a file group; readers of storage see its rows."""
    path = archived("0.15.0", "plain")
    before = rows(open_local(path), open_local(path).view)
    table = open_local(path)
    assert table.timeline.layout.read_archive(table.storage, table.config.history_path).whole
    (path / ".hoodie/archived/.commits_.archive.1_1-0-1").unlink()
    archive = table.timeline.layout.read_archive(table.storage, table.config.history_path)
    assert archive.completed and not any(map(archive.surrounds, archive.completed))
    with suppress(NothingToDo):
        manage_orphan_files(request_for(path, OrphanFilesMode.QUARANTINE))
    assert rows(open_local(path), open_local(path).view).equals(before)


@TWO
def test_an_archive_that_cannot_be_read(release: str, archived: Callable[[str, str], Path]) -> None:
    path = archived(release, "listed")
    folder = path / open_local(path).config.history_path
    broken = min(file for file in folder.iterdir() if file.name.startswith((".commits", "2")))
    broken.write_bytes(broken.read_bytes()[:-9])
    name = put_file(path, NOBODYS)
    findings = look(path)
    assert findings.items == ()
    assert {why: total.files for why, total in findings.kept.items()} == {ReasonToStay.UNREADABLE_ARCHIVE: 11}
    (warning,) = findings.warnings
    assert broken.name in warning
    assert name.endswith(f"{NOBODYS}.parquet")


@TWO
def test_an_attempt_that_is_gone_from_the_timeline(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    name = put_file(path, NOBODYS)
    unmarked = put_file(path, NOBODYS, folder="day=2026-01-09")
    assert found(path) == {name: OrphanKind.DEAD_ATTEMPT, unmarked: OrphanKind.DEAD_ATTEMPT}
    assert found(path, minimum=(DAY + 60) * 1000) == {}
    assert kept(path, minimum=(DAY + 60) * 1000) == {ReasonToStay.YOUNG: 2}


@TWO
def test_attempts_that_are_pending(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    ts = clustering.schedule(request(path, Mode.SCHEDULE)).instant
    assert ts is not None
    storage = FaultyStorage(str(path), 14)
    with pytest.raises(Killed):
        clustering.execute(request(path, Mode.EXECUTE), storage, LocalEngine())
    files = [file for file in path.glob("day=*/*.parquet") if ts in file.name]
    assert files and found(path) == {}
    assert kept(path)[ReasonToStay.PENDING] == len(files)
    # A pending rollback still needs the markers, although the attempt's own files are gone from the timeline.
    table = open_local(path)
    (target,) = table.timeline.pending_clusterings()
    dying = FaultyStorage(str(path), 2)
    with pytest.raises(Killed):
        faulty = open_with(dying)
        roll_back(faulty, target, Times(faulty, 0), keep_plan=False)
    for file in table.timeline.sizes:
        if file.startswith(ts):
            os.unlink(path / table.timeline.path(file))
    assert found(path) == {} and kept(path)[ReasonToStay.PENDING] == len(files)


def open_with(storage: Storage) -> Snapshot:
    return open_snapshot(storage, SystemClock())


@TWO
def test_strays_of_repeated_tasks(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    table = open_local(path)
    one = table.view.latest_slices(table.view.partitions()[0])[0].base_file
    assert one is not None
    stray = put(path, f"{one.partition}/{base_file_name(one.file_id, '9-9-9', one.instant)}")
    assert found(path) == {stray: OrphanKind.STRAY}
    change_data = put(path, f"{one.partition}/.{one.file_id}_{one.instant}.log.1_0-0-0.cdc")
    assert change_data not in found(path)
    without_metadata_table(path)
    assert found(path) == {} and kept(path) == {ReasonToStay.SUSPICIOUS: 1}


def without_metadata_table(path: Path) -> None:
    properties = path / ".hoodie/hoodie.properties"
    lines = properties.read_text().splitlines(keepends=True)
    properties.write_text("".join(line for line in lines if "metadata.partitions" not in line))


@TWO
def test_commits_that_tell_nothing(release: str, tmp_path: Path) -> None:
    """A commit that is empty, or broken, vouches for its files as long as nobody knows better."""
    path = unpack(release, tmp_path)
    without_metadata_table(path)
    timeline = open_local(path).timeline
    files = {write.ts: path / timeline.path(write.file_name) for write in timeline.completed_writes()}
    for number, file in enumerate(files.values()):
        file.write_bytes(b"" if number % 2 else b"{broken")
    findings = look(path)
    assert findings.items == () and set(findings.kept) == {ReasonToStay.UNREADABLE_COMMIT}
    assert len(findings.warnings) == (len(files) + 1) // 2


@pytest.mark.thorough
@TWO
def test_what_savepoints_and_plans_name_stays(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    name = put_file(path, NOBODYS)
    partition, _, file = name.rpartition("/")
    table = open_local(path)
    write_savepoint(table, {partition: [file]})
    assert found(path) == {} and kept(path) == {ReasonToStay.IN_SAVEPOINT: 1}
    for saved in (path / table.timeline.folder).glob("*.savepoint"):
        saved.unlink()
    for action, content in plans(table, partition, file).items():
        requested = path / table.timeline.path(f"{NOBODYS[:-1]}9.{action}.requested")
        requested.write_bytes(content)
        if action == "rollback":
            # It may take away nothing but what its target wrote: what else is in it nobody can believe.
            with pytest.raises(CorruptFile, match=f"{requested.name} deletes {file}, which does not bear the time"):
                look(path)
        else:
            assert found(path) == {} and kept(path) == {ReasonToStay.IN_PLAN: 1}, action
        requested.write_bytes(b"")
        assert action == "rollback" or found(path) == {name: OrphanKind.DEAD_ATTEMPT}
        requested.write_bytes(b"broken")
        with pytest.raises(CorruptFile, match=requested.name):
            look(path)
        requested.unlink()


def plans(table: Snapshot, partition: str, file: str) -> dict[str, bytes]:
    """Pending plans that name a file: of a clustering, a compaction, a clean, and a rollback of another instant."""
    release = table.config.version.release
    full = f"hdfs://elsewhere/{partition}/{file}"
    group = ClusteringGroup((SliceInfo(partition, ID, full),))
    clean = {
        "policy": "KEEP_LATEST_COMMITS",
        "lastCompletedCommitTimestamp": "",
        "version": 2,
        "filePathsToBeDeletedPerPartition": {partition: [{"filePath": full, "isBootstrapBaseFile": False}]},
    }
    compaction = {
        "operations": [{"partitionPath": partition, "fileId": ID, "baseInstantTime": NOBODYS}],
        "version": 2,
        "preserveHoodieMetadata": False,
    }
    return {
        table.timeline.layout.clustering_action.value: encode_clustering_plan(ClusteringPlan((group,), "S"), release),
        "compaction": avro.write_container(avro.load_schema("HoodieCompactionPlan", release), compaction),
        "clean": avro.write_container(avro.load_schema("HoodieCleanerPlan", release), clean),
        "rollback": encode_rollback_plan(
            RollbackPlan("20980101000000000", "commit", (PartitionRollback(partition, (full,)),)), release
        ),
    }


@TWO
def test_foreign_files_are_none_of_our_business(release: str, tmp_path: Path) -> None:
    """Also tables in a folder of this one, whose timelines we do not know."""
    path = unpack(release, tmp_path)
    for name in ("a_b_1.parquet", "part-0001.parquet", f"{ID}_0-0-0_{NOBODYS}.csv", f"{ID}_x_{NOBODYS}.parquet"):
        put(path, f"day=2026-01-01/{name}")
    put(path, f"day=2026-01-01/{ID}_0-0-0_20991399000000000.parquet")
    put(path, "day=2026-01-01/notes#1")
    nested = put_file(path, NOBODYS, folder="other/table/p")
    put(path, f"{nested}#1")
    assert set(found(path)) == {nested, f"{nested}#1"}
    put(path, "other/table/.hoodie/hoodie.properties")
    assert look(path) == OrphanFindings((), {})


@TWO
def test_leftovers_of_attempts_that_have_ended(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    pending = clustering.schedule(request(path, Mode.SCHEDULE)).instant
    assert pending is not None
    done = open_local(path).timeline.completed_writes()[0].ts
    for ts in (done, NOBODYS, pending):
        put(path, f".hoodie/.temp/{ts}/day=2026-01-01/{ID}_0-0-0_{ts}.parquet.marker.CREATE")
        put(path, f".hoodie/.temp/{ts}/day=2026-01-01/.{ID}_0-0-0_{ts}.parquet.marker.CREATE.crc")
        put(path, f".hoodie/.heartbeat/{ts}")
        put(path, f".hoodie/.locks/hudi_services/clustering-{ts}.1.json")
        put(path, f".hoodie/.hudi_services/clustering-{ts}/group-ab.json")
        put(path, f"day=2026-01-01/{ID}_0-0-0_{ts}.parquet#1")
        put(path, f".hoodie/.temp/{ts}/x.marker.CREATE#1")
    put(path, ".hoodie/.temp/view_cache/a")
    put(path, ".hoodie/.hudi_services/clustering-x/a")
    put(path, f"{open_local(path).timeline.folder}/{NOBODYS}.commit#1")
    put(path, ".hoodie/hoodie.properties#1")
    reasons = found(path)
    assert not any(pending in name for name in reasons)
    for ts in (done, NOBODYS):
        of_attempt = sorted(reason.name for name, reason in reasons.items() if ts in name)
        uploads = 3 if ts == NOBODYS else 2
        assert of_attempt == ["CHECKPOINTS", "HEARTBEAT", "LEASE", "MARKERS"] + ["UPLOAD"] * uploads
    assert len(reasons) == 14 and ".hoodie/hoodie.properties#1" in reasons


def test_signs_of_life_get_their_time(tmp_path: Path) -> None:
    """Whatever the minimum age is: the instant may be about to be written. Of markers, the newest one counts."""
    path = unpack("1.2.0", tmp_path)
    put(path, f".hoodie/.heartbeat/{NOBODYS}", age=100)
    put(path, f".hoodie/.locks/hudi_services/clustering-{NOBODYS}.1.json", age=50)
    put(path, f".hoodie/.temp/{NOBODYS}/a.marker.CREATE", age=DAY)
    put(path, f".hoodie/.temp/{NOBODYS}/b.marker.CREATE", age=100)
    assert len(found(path)) == 3
    assert set(found(path, sign_of_life=120_000).values()) == {OrphanKind.MARKERS}
    assert found(path, minimum=120_000) == {} and kept(path, minimum=120_000) == {ReasonToStay.YOUNG: 4}


@TWO
def test_a_timeline_without_a_completed_write(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    without_metadata_table(path)
    timeline = open_local(path).timeline
    for name in timeline.sizes:
        os.unlink(path / timeline.path(name))
    assert found(path) == {} and set(kept(path)) == {ReasonToStay.NO_TIMELINE}


class ArrivingLate(LocalStorage):
    """Storage in which somebody acts after the data files were listed, and before the timeline is read again."""

    def __init__(self, url: str, then: Callable[[], None]) -> None:
        super().__init__(url)
        self._then: Callable[[], None] | None = then

    def list_staged(self) -> list[FileInfo]:
        if self._then is not None:
            self._then()
            self._then = None
        return super().list_staged()


@TWO
def test_writers_that_come_while_we_look(release: str, tmp_path: Path) -> None:
    """A file that we saw belongs to an instant that we then see, pending or completed."""
    path = unpack(release, tmp_path)
    name = put_file(path, NOBODYS)
    timeline = open_local(path).timeline

    def begin() -> None:
        (path / timeline.path(f"{NOBODYS}.commit.requested")).touch()
        (path / timeline.path(f"{NOBODYS}.inflight")).touch()

    assert found(path) == {name: OrphanKind.DEAD_ATTEMPT}
    findings = find_orphan_files(open_with(ArrivingLate(str(path), begin)), Ages(0, 0), lambda done, total: None)
    assert findings.items == () and set(findings.kept) == {ReasonToStay.PENDING}


@TWO
def test_only_what_two_looks_found_is_moved(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    stays, goes = put_file(path, NOBODYS), put_file(path, NOBODYS, token="0-2-2")
    wanted = request_for(path, OrphanFilesMode.QUARANTINE)

    class Touched(LocalStorage):
        looks = 0

        def list_staged(self) -> list[FileInfo]:
            self.looks += 1
            if self.looks == 1:
                os.utime(path / stays)
            return super().list_staged()

    report = manage_orphan_files(wanted, Touched(str(path)))
    assert (report.files.before, report.files.after) == (1, 1)
    assert report.tables["kept"] == [
        {"reason": ReasonToStay.CHANGED.value, "files": 1, "bytes": (path / stays).stat().st_size}
    ]
    assert (path / stays).exists() and not (path / goes).exists()


def request_for(path: Path, mode: OrphanFilesMode, **fields: Any) -> OrphanFilesRequest:
    options = resolve([("test", {})])
    return OrphanFilesRequest(base_path=str(path), options=options, mode=mode, **{"min_age_minutes": 0, **fields})


@TWO
def test_not_beside_writers(release: str, tmp_path: Path) -> None:
    """Looking disturbs nobody; moving needs the table to itself."""
    path = unpack(release, tmp_path)
    put_file(path, NOBODYS)
    timeline = open_local(path).timeline
    for name in ("20990101000000001.commit.requested", "20990101000000001.inflight"):
        (path / timeline.path(name)).touch()
    assert manage_orphan_files(request_for(path, OrphanFilesMode.FIND)).files.before == 1
    for mode in (OrphanFilesMode.QUARANTINE, OrphanFilesMode.RESTORE):
        with pytest.raises(ConflictError, match="of another writer is in progress"):
            manage_orphan_files(request_for(path, mode, quarantine="20200101T000000000"))
    assert found(path)


@TWO
def test_the_report(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    first, second = put_file(path, NOBODYS), put_file(path, NOBODYS, token="0-2-2", age=2 * DAY)
    young = put_file(path, NOBODYS, token="0-3-3", age=1)
    put(path, f".hoodie/.temp/{NOBODYS}/a.marker.CREATE")
    report = manage_orphan_files(request_for(path, OrphanFilesMode.FIND, min_age_minutes=60))
    size = (path / first).stat().st_size
    assert report.tables["attempts"] == [
        {
            "attempt": NOBODYS,
            "action": None,
            "reason": reason.value,
            "files": count,
            "bytes": total,
            "oldest": stamp(path / oldest),
            "newest": stamp(path / newest),
        }
        for reason, count, total, oldest, newest in (
            (OrphanKind.DEAD_ATTEMPT, 2, 2 * size, second, first),
            (OrphanKind.MARKERS, 1, 1, *[f".hoodie/.temp/{NOBODYS}/a.marker.CREATE"] * 2),
        )
    ]
    assert report.tables["kept"] == [
        {"reason": ReasonToStay.YOUNG.value, "files": 1, "bytes": (path / young).stat().st_size}
    ]
    assert (report.files.before, report.files.after, report.bytes.before) == (3, None, 2 * size + 1)
    assert (report.service, report.action, report.exit_code) == ("orphan-files", "find", 0)
    json.dumps(report.document())


def stamp(path: Path) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(path.stat().st_mtime))


def test_a_clean_table_is_idle(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    for mode in (OrphanFilesMode.FIND, OrphanFilesMode.QUARANTINE):
        with pytest.raises(NothingToDo, match="there are no orphan files"):
            manage_orphan_files(request_for(path, mode))
    assert not (path / ".hoodie/.hudi_services").exists() and not (path / ".hoodie/.locks").exists()
