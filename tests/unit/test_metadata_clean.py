"""Cleans of the metadata table: readers find the same, whenever it is killed, and old slices do not stay for ever."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hudi_services.cleaning.metadata_table import Cleaned, clean_metadata, metadata_retention
from hudi_services.cleaning.retention import Policy, Retention
from hudi_services.codecs.avro import read_container
from hudi_services.codecs.clean_plan import CleanerPlan, encode_cleaner_plan
from hudi_services.commit.times import Times
from hudi_services.errors import CheckFailed, CorruptFile
from hudi_services.metadata.metadata_table import MetadataTable
from hudi_services.metadata.records.keys import FILES, partition_id
from hudi_services.metadata.records.model import FilesRecord, RecordType
from hudi_services.model import FileSlice
from hudi_services.options import resolve
from hudi_services.runs.report import RunState as Outcome
from hudi_services.storage import Storage
from hudi_services.timeline.instant import Action, State

from .faulty_storage import FaultyStorage, Killed
from .metadata_tables import begin_metadata_clean, open_metadata
from .shares import places
from .tables import open_local, unpack
from .test_metadata_compaction import P, cluster, compacted, contents, listing, write

FEW = Retention(commits=4)
RELEASES = ["0.15.0", "1.2.0"]


def cleaned(path: Path, retention: Retention = FEW, storage: Storage | None = None) -> Cleaned | None:
    return clean_metadata(open_metadata(path, storage), retention, Times(open_local(path), 0).next)


def commit(path: Path, number: int) -> None:
    """One delta commit, that changes the listing of one partition."""
    record = FilesRecord(partition_id(P), RecordType.FILES, listing({f"file{number % 5}": number}).entries)
    write(path, {FILES: [record]}, {}, number)


def slices(path: Path) -> Iterator[list[FileSlice]]:
    metadata = open_metadata(path)
    return (group for one in metadata.partitions for group in metadata.all_slices(one).values())


def stored(path: Path) -> set[str]:
    metadata = open_metadata(path)
    return {metadata.path(one, name) for one in metadata.partitions for name in metadata.stored_files(one)}


def grown(release: str, folder: Path, rounds: int = 4) -> Path:
    """A table whose listing has old slices, of which a clean may delete some."""
    path = unpack(release, folder)
    for number in range(rounds * 3):
        commit(path, number)
        assert number % 3 != 2 or number == rounds * 3 - 1 or compacted(path) is not None
    commit(path, rounds * 3)
    return path


@pytest.mark.thorough
@pytest.mark.spread(4)
@pytest.mark.parametrize("policy", Policy)
@pytest.mark.parametrize("release", RELEASES)
def test_any_history(release: str, policy: Policy, tmp_path: Path) -> None:
    path, chance = unpack(release, tmp_path), random.Random(f"{release} {policy}")
    retention = Retention(policy, commits=3, versions=2, hours=1)
    cleans, since = 0, 0
    for number in range(40):
        commit(path, number)
        since += 1
        if chance.random() < 0.3 and compacted(path) is not None:
            since = 0
        before, files = contents(path), stored(path)
        newest = {one.path for group in slices(path) for one in group[-1].files}
        done = cleaned(path, retention)
        assert contents(path) == before
        gone = files - stored(path)
        assert len(gone) == (done.files if done else 0) and not any(name.endswith(tuple(newest)) for name in gone)
        if done is None:
            continue
        assert since >= 3, "a reader may still need the log files"
        cleans += 1
        assert max(map(len, slices(path))) <= (2 if policy is Policy.FILE_VERSIONS else 3)
        metadata = open_metadata(path)
        assert metadata.timeline.read_clean(metadata.timeline.find(done.instant, Action.CLEAN)).policy == policy.value
    # By hours all of them stay: the instants of the test are of one hour.
    assert (cleans > 1) == (policy is not Policy.HOURS)


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
def test_killed_at_every_write(release: str, tmp_path: Path) -> None:
    made = grown(release, tmp_path / "made")
    before, files = contents(made), stored(made)
    whole = Path(shutil.copytree(made, tmp_path / "whole"))
    counted = FaultyStorage(str(whole))
    done = cleaned(whole, storage=counted)
    assert done is not None and done.files > 3
    left = stored(whole)
    for survived in places(counted.log):
        path = Path(shutil.copytree(made, tmp_path / f"killed{survived}"))
        with pytest.raises(Killed):
            cleaned(path, storage=FaultyStorage(str(path), survived))
        assert contents(path) == before and left <= stored(path) <= files
        # What is written meanwhile changes nothing, and no compaction takes place before the clean is completed.
        commit(path, 90)
        assert survived == 0 or compacted(path) is None
        again = cleaned(path)
        assert again is not None and not open_metadata(path).timeline.pending()
        assert left - stored(path) == set() and len(files & stored(path)) == len(left)
        assert compacted(path) is not None


@pytest.mark.parametrize("release", RELEASES)
def test_what_is_written_is_what_hudi_writes(release: str, tmp_path: Path) -> None:
    path = grown(release, tmp_path)
    done = cleaned(path)
    assert done is not None
    timeline = open_metadata(path).timeline
    states = {one.state: timeline.read_details(one.file_name) for one in timeline.files_of(done.instant, Action.CLEAN)}
    assert states[State.REQUESTED] == states[State.INFLIGHT]
    plan, of_clean = (read_container(states[one], "clean") for one in (State.REQUESTED, State.COMPLETED))
    assert plan["policy"] == "KEEP_LATEST_COMMITS" and plan["partitionsToBeDeleted"] == []
    assert plan["earliestInstantToRetain"]["timestamp"] == of_clean["earliestCommitToRetain"]
    assert set(plan["filePathsToBeDeletedPerPartition"]) == set(of_clean["partitionMetadata"])
    for partition, files in plan["filePathsToBeDeletedPerPartition"].items():
        names = of_clean["partitionMetadata"][partition]["successDeleteFiles"]
        metadata = open_metadata(path)
        assert [one["filePath"] for one in files] == [f"{path}/{metadata.path(partition, name)}" for name in names]
    last = timeline.completed({Action.DELTA_COMMIT})[-1].ts
    assert done.instant == f"{last}002" if release == "0.15.0" else done.instant > last


def pending_write(metadata: MetadataTable) -> None:
    metadata.timeline.publish("20200101000000000", Action.DELTA_COMMIT, State.REQUESTED)


def clean_of_hudi(metadata: MetadataTable) -> None:
    plan = encode_cleaner_plan(CleanerPlan("KEEP_LATEST_COMMITS", "", "", {}), metadata.config.version.release)
    metadata.timeline.publish("20980101000000000", Action.CLEAN, State.REQUESTED, plan)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("change", [pending_write, clean_of_hudi])
def test_what_another_process_has_begun_is_left_to_it(release: str, change: object, tmp_path: Path) -> None:
    path = grown(release, tmp_path)
    change(open_metadata(path))
    before = stored(path)
    assert cleaned(path) is None and stored(path) == before


@pytest.mark.parametrize("release", RELEASES)
def test_a_lying_plan_deletes_nothing(release: str, tmp_path: Path) -> None:
    """Of all files of a file group, of a file of another name, of one that a newer base file does not replace."""
    path = grown(release, tmp_path)
    (group,) = open_metadata(path).file_groups(FILES)
    for number, name in enumerate([*(file.name for file in group.files), "something.txt"]):
        copy = Path(shutil.copytree(path, tmp_path / str(number)))
        begin_metadata_clean(copy, name)
        before = stored(copy)
        with pytest.raises((CheckFailed, CorruptFile), match=r"no newer base file takes its place|names"):
            cleaned(copy)
        assert stored(copy) == before


@pytest.mark.parametrize("release", RELEASES)
def test_a_lost_base_file_keeps_the_old_ones(release: str, tmp_path: Path) -> None:
    path = grown(release, tmp_path)
    (group,) = open_metadata(path).file_groups(FILES)
    assert group.base_file is not None
    (path / open_metadata(path).path(FILES, group.base_file.name)).unlink()
    before = stored(path)
    with pytest.raises(CorruptFile):
        cleaned(path)
    assert stored(path) == before


@pytest.mark.parametrize("release", RELEASES)
def test_a_failure_never_fails_the_commit(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    begin_metadata_clean(path, "x.txt")
    report = cluster(path, {})
    assert report.state is Outcome.COMPLETED and "was not cleaned" in report.warnings[-1], report.warnings


def test_a_policy_of_its_own() -> None:
    """hoodie.metadata.derive.from.datatable.clean.policy=false of 1.2.0: two slices stay, whatever the table keeps."""
    given = {"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS", "hoodie.clean.hours.retained": "100"}
    follows = metadata_retention(resolve([("test", given)]))
    own = metadata_retention(
        resolve([("test", {**given, "hoodie.metadata.derive.from.datatable.clean.policy": "false"})])
    )
    assert (follows.policy, follows.hours, own.policy, own.versions) == (Policy.HOURS, 120, Policy.FILE_VERSIONS, 2)
