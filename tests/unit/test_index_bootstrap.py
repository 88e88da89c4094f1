"""Building the record index: right, in one step, resumed after a kill, and followed while the table is written to."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hudi_services.cli.app import run
from hudi_services.commit.times import Times
from hudi_services.engine import LocalEngine
from hudi_services.errors import ConflictError, CorruptFile, NeedsRecovery, NothingToDo, UnsupportedTable
from hudi_services.indexing.checkpoints import WORK_FOLDER, Checkpoints
from hudi_services.jobs import clustering
from hudi_services.jobs.index_bootstrap import index_bootstrap
from hudi_services.metadata.records.keys import BLOOM_FILTERS, FILES, RECORD_INDEX
from hudi_services.metadata.records.model import BloomRecord, LocationRecord
from hudi_services.metadata_updates.sync import Change, sync_commit
from hudi_services.model import CommitMetadata
from hudi_services.options import resolve
from hudi_services.runs.report import RunState
from hudi_services.runs.request import IndexRequest, Mode
from hudi_services.stores import open_storage
from hudi_services.stores.local import LocalStorage
from hudi_services.table_config import TableConfig
from hudi_services.timeline.instant import Action
from hudi_services.timeline.instant import State as TimelineState

from .corruptions import add_index, write_own
from .faulty_storage import FaultyStorage, Killed
from .metadata_tables import compact, open_metadata
from .repairs import LOCK, P, insert_copy
from .shares import THREE_SHARES, places, share
from .tables import RELEASES, open_local, request, unpack

_QUICK = {
    "hoodie.time.generator.max_expected_clock_skew_ms": "0",
    "hoodie.metadata.record.index.min.filegroup.count": "3",
    "hoodie.metadata.record.index.max.filegroup.count": "3",
}


def wanted(path: Path, **more: bool) -> IndexRequest:
    return IndexRequest(base_path=str(path), options=resolve([("test", _QUICK)]), **more)


def real_locations(path: Path) -> dict[str, tuple[str, str]]:
    """Partition and file id of every key, from the files themselves."""
    table = open_local(path)
    found = {}
    for partition in table.view.partitions():
        for one in table.view.latest_slices(partition):
            assert one.base_file is not None
            rows = pq.read_table(path / one.base_file.path, columns=["_hoodie_record_key"], partitioning=None)
            found |= dict.fromkeys(rows["_hoodie_record_key"].to_pylist(), (partition, one.file_id))
    return found


def indexed_locations(path: Path) -> dict[str, tuple[str, str]]:
    metadata = open_local(path).metadata
    assert metadata is not None
    records = [record for record in metadata.reader(RECORD_INDEX).scan() if isinstance(record, LocationRecord)]
    return {record.key: (record.location.partition, record.location.file_id) for record in records}


def is_listed(path: Path) -> bool:
    return RECORD_INDEX in TableConfig.load(open_storage(str(path))).metadata_partitions


@pytest.mark.parametrize("release", RELEASES)
def test_every_key_is_found_where_it_is(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    report = index_bootstrap(wanted(path), engine=LocalEngine())
    assert report.state is RunState.COMPLETED
    assert is_listed(path)
    real = real_locations(path)
    assert indexed_locations(path) == real
    assert (report.rows.after, report.groups) == (len(real), 3)
    assert not (path / WORK_FOLDER).exists()
    with pytest.raises(NothingToDo, match="has a record index already"):
        index_bootstrap(wanted(path), engine=LocalEngine())


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
def test_a_clustering_moves_the_keys(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    index_bootstrap(wanted(path), engine=LocalEngine())
    before = real_locations(path)
    clustering.schedule_and_execute(request(path, Mode.SCHEDULE_AND_EXECUTE), engine=LocalEngine())
    after = real_locations(path)
    assert after.keys() == before.keys() and after != before
    assert indexed_locations(path) == after
    assert not list((path / ".hoodie/.temp").rglob("*.arrow"))


@pytest.mark.thorough
@pytest.mark.sweep
@pytest.mark.parametrize(("release", "number"), THREE_SHARES)
def test_killed_at_any_write_and_resumed(release: str, number: int, tmp_path: Path) -> None:
    made = unpack(release, tmp_path / "made")
    real = real_locations(made)
    whole = tmp_path / "whole"
    shutil.copytree(made, whole)
    counted = FaultyStorage(str(whole))
    index_bootstrap(wanted(whole), counted, LocalEngine())
    for survived in share(places(counted.log), number, 3):
        path = tmp_path / "killed"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(made, path)
        with pytest.raises(Killed):
            index_bootstrap(wanted(path), FaultyStorage(str(path), survived), LocalEngine())
        if is_listed(path):
            assert indexed_locations(path) == real, survived
            continue
        report = index_bootstrap(wanted(path, resume=True), engine=LocalEngine())
        assert report.state is RunState.COMPLETED
        assert indexed_locations(path) == real, survived


def test_finished_shards_are_not_done_again(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)

    class Dies(LocalEngine):
        def map(self, function, tasks, description, progress):  # type: ignore[no-untyped-def]
            if description == "write the record index":
                super().map(function, tasks[:2], description, progress)
                raise Killed("after two shards")
            return super().map(function, tasks, description, progress)

    with pytest.raises(Killed):
        index_bootstrap(wanted(path), engine=Dies())
    done = {file.name: file.stat().st_mtime_ns for file in (path / WORK_FOLDER).glob("*.hfile")}
    assert len(done) == 2

    ran_tasks: list[str] = []

    class Counts(LocalEngine):
        def map(self, function, tasks, description, progress):  # type: ignore[no-untyped-def]
            ran_tasks.extend([description] * len(tasks))
            return super().map(function, tasks, description, progress)

    index_bootstrap(wanted(path, resume=True), engine=Counts())
    assert ran_tasks == ["write the record index"]
    index = (path / ".hoodie/metadata/record_index").glob("*.hfile")
    assert {file.stat().st_mtime_ns for file in index} > set(done.values())
    assert indexed_locations(path) == real_locations(path)


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
def test_what_is_written_meanwhile_is_followed(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)

    class Meanwhile(LocalEngine):
        """A clustering completes between the reading of the keys and the publishing."""

        def map(self, function, tasks, description, progress):  # type: ignore[no-untyped-def]
            if description == "write the record index":
                clustering.schedule_and_execute(request(path, Mode.SCHEDULE_AND_EXECUTE), engine=LocalEngine())
            return super().map(function, tasks, description, progress)

    before = real_locations(path)
    index_bootstrap(wanted(path), engine=Meanwhile())
    after = real_locations(path)
    assert after != before
    assert indexed_locations(path) == after


def test_files_that_were_cleaned_meanwhile(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)

    class Cleaned(LocalEngine):
        def map(self, function, tasks, description, progress):  # type: ignore[no-untyped-def]
            if description == "write the record index":
                old = {slice_.base_file.path for slice_ in slices(path)}
                clustering.schedule_and_execute(request(path, Mode.SCHEDULE_AND_EXECUTE), engine=LocalEngine())
                for gone in old - {slice_.base_file.path for slice_ in slices(path)}:
                    (path / gone).unlink()
            return super().map(function, tasks, description, progress)

    with pytest.raises(ConflictError, match="replaced and cleaned while the index was built"):
        index_bootstrap(wanted(path), engine=Cleaned())
    assert not is_listed(path)


def slices(path: Path):  # type: ignore[no-untyped-def]
    view = open_local(path).view
    return [one for partition in view.partitions() for one in view.latest_slices(partition)]


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--index-types", "bloom_filters"], "--index-types bloom_filters cannot be built by this tool"),
        (["--min", "9", "--max", "3"], "min.filegroup.count=9 is more than"),
        (["--hoodie-conf", "hoodie.metadata.record.index.growth.factor=0.5"], "is no number from 1 to a million"),
    ],
)
def test_wrong_flags(flags: list[str], text: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = unpack("1.2.0", tmp_path)
    assert run(["index-bootstrap", "--base-path", str(path), *flags]) == 2
    assert text in capfd.readouterr().err
    assert not (path / WORK_FOLDER).exists()


def test_a_table_without_a_metadata_table(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    storage = open_storage(str(path))
    TableConfig.load(storage).update(storage, {"hoodie.table.metadata.partitions": ""})
    with pytest.raises(UnsupportedTable, match="has no metadata table"):
        index_bootstrap(wanted(path), engine=LocalEngine())


@pytest.mark.thorough
def test_a_clustering_that_has_begun_blocks_the_publishing(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    clustering.schedule(request(path, Mode.SCHEDULE))
    whole = tmp_path / "whole"
    shutil.copytree(path, whole)
    counted = FaultyStorage(str(whole))
    clustering.execute(request(whole, Mode.EXECUTE), counted, LocalEngine())
    with pytest.raises(Killed):
        clustering.execute(request(path, Mode.EXECUTE), FaultyStorage(str(path), len(counted.log) // 2), LocalEngine())
    quick = {**_QUICK, "hoodie.write.lock.wait_time_ms": "0"}
    hasty = IndexRequest(base_path=str(path), options=resolve([("test", quick)]))
    with pytest.raises(NeedsRecovery, match=r"the clustering \d+ is not finished .* was abandoned"):
        index_bootstrap(hasty, engine=LocalEngine())
    assert not is_listed(path)


def test_a_write_that_is_not_finished_blocks_the_publishing(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)

    class Begins(LocalEngine):
        def map(self, function, tasks, description, progress):  # type: ignore[no-untyped-def]
            timeline = open_local(path).timeline
            (path / timeline.folder / "20991121000000000.commit.requested").touch()
            (path / timeline.folder / "20991121000000000.inflight").touch()
            return super().map(function, tasks, description, progress)

    with pytest.raises(ConflictError, match="20991121000000000"):
        index_bootstrap(wanted(path), engine=Begins())
    # With a lock, writers do not exclude the command, and it waits for them.
    told: list[str] = []
    options = resolve([("test", {**_QUICK, **LOCK, "hoodie.write.lock.wait_time_ms": "1000"})])
    patient = replace(wanted(path, resume=True), options=options, on_wait=lambda _, what: told.append(what))
    with pytest.raises(ConflictError, match="is not finished"):
        index_bootstrap(patient, engine=LocalEngine())
    assert told == ["the commit 20991121000000000 to end (20991121000000000.inflight)", ""]
    assert not is_listed(path)
    for file in (path / ".hoodie/timeline").glob("20991121*"):
        file.unlink()
    report = index_bootstrap(wanted(path, resume=True), engine=LocalEngine())
    assert report.state is RunState.COMPLETED and report.warnings == []
    assert indexed_locations(path) == real_locations(path)


class DiesAtPublishing(LocalStorage):
    """Everything lies in the metadata table, and nothing is published."""

    def create(self, path: str, data: bytes) -> None:
        if path.startswith(".hoodie/metadata/.hoodie") and "deltacommit" in path:
            raise Killed("before the delta commit")
        super().create(path, data)


def moved_and_killed(path: Path) -> list[Path]:
    """The base files in the metadata table."""
    with pytest.raises(Killed):
        index_bootstrap(wanted(path), DiesAtPublishing(str(path)), LocalEngine())
    return sorted((path / ".hoodie/metadata/record_index").glob("*.hfile"))


def remove_folder(path: Path, files: list[Path]) -> None:
    shutil.rmtree(path / ".hoodie/metadata/record_index")


def remove_one(path: Path, files: list[Path]) -> None:
    files[0].unlink()


def cut_one_off(path: Path, files: list[Path]) -> None:
    files[0].write_bytes(files[0].read_bytes()[:-1])


def date_anew(path: Path, files: list[Path]) -> None:
    """As of a metadata table that Hudi made in the place of the other one."""
    properties = path / ".hoodie/metadata/.hoodie/hoodie.properties"
    properties.write_text(re.sub(r"saved on \S+", "saved on 2031-01-01T00:00:00.000000001Z", properties.read_text()))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("happen", "why"),
    [
        (remove_folder, "is not there as it was written"),
        (remove_one, "is not there as it was written"),
        (cut_one_off, "is not there as it was written"),
        (date_anew, "the metadata table was built anew since it began"),
    ],
)
@pytest.mark.parametrize("release", RELEASES)
def test_work_that_is_lost_is_done_anew(
    release: str, happen: Callable[[Path, list[Path]], None], why: str, tmp_path: Path
) -> None:
    path = unpack(release, tmp_path)
    files = moved_and_killed(path)
    assert files
    happen(path, files)
    report = index_bootstrap(wanted(path, resume=True), engine=LocalEngine())
    assert report.state is RunState.COMPLETED
    (warning,) = report.warnings
    assert why in warning and warning.endswith(": the build starts again from the beginning")
    assert indexed_locations(path) == real_locations(path)


@pytest.mark.parametrize("release", RELEASES)
def test_work_that_is_lost_while_the_index_is_built(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    lost: list[str] = []

    class Loses(LocalStorage):
        def move(self, source: str, target: str) -> None:
            super().move(source, target)
            if not lost:
                lost.append(target)
                self.delete(target)

    report = index_bootstrap(wanted(path), Loses(str(path)), LocalEngine())
    assert lost and lost[0] in report.warnings[0]
    assert indexed_locations(path) == real_locations(path)


_NOTES: list[tuple[str, Callable[[Any], Any]]] = [
    ("shard-0.json", lambda note: {"shards": 1}),
    ("shard-0.json", lambda note: {**note, "more": 1}),
    ("shard-0.json", lambda note: {**note, "size": -1}),
    ("shard-0.json", lambda note: {**note, "shard": 1}),
    ("shard-0.json", lambda note: None),
    ("keys-0.json", lambda note: {}),
    ("keys-0.json", lambda note: {**note, "runs": [{"rows": {"0": 1}}]}),
    ("keys-0.json", lambda note: {**note, "runs": [{**note["runs"][0], "path": "../outside"}]}),
    ("keys-0.json", lambda note: {**note, "runs": [{**note["runs"][0], "rows": {"0": None}}]}),
    ("keys-0.json", lambda note: {**note, "seen": [None, ""]}),
    ("plan.json", lambda note: []),
    ("plan.json", lambda note: {**note, "file_ids": note["file_ids"] * 10**5}),
    ("plan.json", lambda note: {**note, "file_ids": ["../../../outside"]}),
    ("plan.json", lambda note: {**note, "instant": "../../../outside"}),
    ("plan.json", lambda note: {**note, "tasks": [[None]]}),
]


def test_notes_that_somebody_changed(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    live = next(iter(path.glob("day=*/*.parquet")))
    live_path = {"path": str(live.relative_to(path)), "size": live.stat().st_size}
    moved_and_killed(path)
    folder = path / WORK_FOLDER
    cases = [*_NOTES, ("shard-0.json", lambda note: {**note, **live_path})]
    for name, change in cases:
        whole = (folder / name).read_text()
        (folder / name).write_text(json.dumps(change(json.loads(whole))))
        with pytest.raises(CorruptFile, match=f"{name}.*is (cut off, or was changed|no plan of a build)"):
            index_bootstrap(wanted(path, resume=True), engine=LocalEngine())
        (folder / name).write_text(whole)
    assert live.exists() and not is_listed(path)
    index_bootstrap(wanted(path, resume=True), engine=LocalEngine())
    assert indexed_locations(path) == real_locations(path)


@pytest.mark.parametrize("release", ["1.0.2", "1.2.0"])
def test_the_timeline_of_the_metadata_table_does_not_begin_earlier_than_before(release: str, tmp_path: Path) -> None:
    """Where its first instants are archived, an index at 000... would hide the base files of archived compactions."""
    path = unpack(release, tmp_path)
    add_index(path, BLOOM_FILTERS, "bloom-filters")
    write_own(path, {BLOOM_FILTERS: [BloomRecord("key", "SIMPLE", "0", b"bits")]})
    compact(path)
    archive_before(path, newest_compaction(path))
    write_own(path, {FILES: []})
    archive_before(path, open_metadata(path).timeline.completed()[-1].ts)
    assert list(open_metadata(path).reader(BLOOM_FILTERS).scan())
    report = index_bootstrap(wanted(path), engine=LocalEngine())
    assert report.state is RunState.COMPLETED and not (report.instant or "0").startswith("00000")
    assert indexed_locations(path) == real_locations(path)
    assert list(open_metadata(path).reader(BLOOM_FILTERS).scan())


def newest_compaction(path: Path) -> str:
    return open_metadata(path).timeline.completed({Action.COMMIT})[-1].ts


def archive_before(path: Path, ts: str) -> None:
    """Take the older instants off the metadata table's timeline."""
    timeline = open_metadata(path).timeline
    for name in timeline.sizes:
        if name.split(".")[0].split("_")[0] < ts:
            (path / timeline.path(name)).unlink()


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
def test_a_key_that_another_file_has_stays_when_its_file_goes_meanwhile(release: str, tmp_path: Path) -> None:
    """Twice in a row: the key lies in three files, and two of them go while the index is built."""
    path = unpack(release, tmp_path)
    before = real_locations(path)
    for number in range(2):
        insert_copy(path, f"2098010100000{number}000")
    copies = {name for p in open_local(path).view.partitions() for name in copies_in(path, p)}
    assert len(copies) == 2

    class Goes(LocalEngine):
        def map(self, function, tasks, description, progress):  # type: ignore[no-untyped-def]
            if description in ("write the record index", "follow the table") and copies:
                replace_group(path, copies.pop())
            return super().map(function, tasks, description, progress)

    index_bootstrap(wanted(path), engine=Goes())
    assert not copies
    assert indexed_locations(path) == before == real_locations(path)


def copies_in(path: Path, partition: str) -> list[str]:
    return [one.file_id for one in open_local(path).view.latest_slices(partition) if one.file_id.startswith("1111")]


def replace_group(path: Path, file_id: str) -> None:
    """A commit that replaces one file group by nothing, as a deletion of a partition does."""
    table = open_local(path)
    times = Times(table, 0)
    ts, done = times.next(), CommitMetadata("DELETE_PARTITION", {}, {}, {P: (file_id,)})
    data = table.timeline.layout.encode_commit(done, table.config.version.release)
    for state in TimelineState:
        if state is TimelineState.COMPLETED:
            sync_commit(open_metadata(path), Change(ts, (), {}), times.next)
        completed = state is TimelineState.COMPLETED
        table.timeline.publish(ts, Action.REPLACE_COMMIT, state, data if completed else b"", times.next())


NOTED = {"shard": 0, "path": f"{WORK_FOLDER}/shard-0.hfile", "size": 9, "entries": 1, "repeated": 0}


@pytest.mark.parametrize("wrong", [{"path": ".hoodie/hoodie.properties"}, {"shard": 1}, {"other": 1}])
def test_a_note_of_a_shard_names_its_own_file(wrong: dict[str, object], tmp_path: Path) -> None:
    """What it names is moved into the metadata table."""
    storage = open_storage(str(tmp_path))
    note = f"{WORK_FOLDER}/shard-0.json"
    storage.put(note, json.dumps(NOTED).encode())
    kept = Checkpoints(storage, WORK_FOLDER)
    assert kept.load_shards()[0].path == kept.shard_path(0) == NOTED["path"]
    storage.put(note, json.dumps({**NOTED, **wrong}).encode())
    with pytest.raises(CorruptFile, match="cut off, or was changed"):
        kept.load_shards()
