"""Cleaning tables that real Hudi wrote: what goes, killed at any write, and nothing to do."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from hudi_services.codecs.clean_plan import CleanerPlan
from hudi_services.engine import LocalEngine
from hudi_services.errors import ConfigError, ConflictError, HudiServicesError, LockBusy, NothingToDo
from hudi_services.jobs import clean as job
from hudi_services.jobs import clustering
from hudi_services.model import CommitMetadata
from hudi_services.options import resolve
from hudi_services.runs.report import Report, RunState
from hudi_services.runs.request import CleanRequest, Mode
from hudi_services.storage import FileInfo
from hudi_services.stores.local import LocalStorage
from hudi_services.timeline.instant import Action
from hudi_services.timeline.instant import State as Progress

from .faulty_storage import FaultyStorage, Killed
from .metadata_tables import files_by_partition
from .repairs import LATER, LOCK, complete, hide_metadata
from .shares import THREE_SHARES, places, share
from .tables import RELEASES, listed_view, open_local, request, rows, unpack

VERSIONS_1 = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
COMMITS_1 = {"hoodie.cleaner.commits.retained": "1"}


def wanted(path: Path, options: Mapping[str, str], *, dry_run: bool = False) -> CleanRequest:
    quick = {"hoodie.time.generator.max_expected_clock_skew_ms": "0"}
    return CleanRequest(base_path=str(path), options=resolve([("test", {**quick, **options})]), dry_run=dry_run)


@pytest.fixture(scope="module")
def clustered(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Path], Path]:
    """Copies of a table whose old files a clean by file versions deletes."""
    made: dict[str, Path] = {}

    def copy(release: str, folder: Path) -> Path:
        if release not in made:
            made[release] = unpack(release, tmp_path_factory.mktemp("clustered"))
            options = {"hoodie.clustering.plan.strategy.sort.columns": "label"}
            for mode, run in ((Mode.SCHEDULE, clustering.schedule), (Mode.EXECUTE, executed)):
                assert run(request(made[release], mode, options)).exit_code == 0
        shutil.copytree(made[release], folder / "table")
        return folder / "table"

    return copy


def executed(wanted: object) -> Report:
    return clustering.execute(wanted, engine=LocalEngine())  # type: ignore[arg-type]


def data_files(path: Path) -> set[str]:
    return {str(f.relative_to(path)) for f in path.rglob("*.parquet") if ".hoodie" not in f.parts}


def reads_the_same(path: Path, before: object) -> None:
    table = open_local(path)
    assert rows(table, table.view).equals(before)
    assert rows(table, listed_view(table)).equals(before)


@pytest.mark.thorough
@pytest.mark.sweep
@pytest.mark.parametrize(("release", "number"), THREE_SHARES)
def test_every_write_may_be_the_last(
    release: str, number: int, clustered: Callable[[str, Path], Path], tmp_path: Path
) -> None:
    whole = clustered(release, tmp_path / "whole")
    before = rows(open_local(whole), open_local(whole).view)
    storage = FaultyStorage(str(whole))
    assert job.clean(wanted(whole, VERSIONS_1), storage).state is RunState.COMPLETED
    left = data_files(whole)
    total = len(storage.log)
    assert total > 15
    for survived in share(places(storage.log), number, 3):
        path = clustered(release, tmp_path / str(survived))
        with pytest.raises(Killed):
            job.clean(wanted(path, VERSIONS_1), FaultyStorage(str(path), survived))
        reads_the_same(path, before)
        if open_local(path).timeline.completed({Action.CLEAN}):
            with pytest.raises(NothingToDo):
                job.clean(wanted(path, VERSIONS_1))
        else:
            assert job.clean(wanted(path, VERSIONS_1)).state is RunState.COMPLETED
        reads_the_same(path, before)
        table = open_local(path)
        assert data_files(path) == left, f"after {survived} writes: {storage.log[survived]}"
        assert not table.timeline.pending()
        assert table.metadata is not None and not table.metadata.timeline.pending()
        listed = {f"{p}/{name}" for p, names in files_by_partition(table.metadata).items() for name in names}
        assert {name for name in listed if name.endswith(".parquet")} == left


@pytest.mark.parametrize("release", RELEASES)
def test_a_dry_run_changes_no_byte(release: str, clustered: Callable[[str, Path], Path], tmp_path: Path) -> None:
    path = clustered(release, tmp_path)
    before = {f: f.read_bytes() for f in path.rglob("*") if f.is_file()}
    report = job.clean(wanted(path, VERSIONS_1, dry_run=True), FaultyStorage(str(path), 0))
    assert {f: f.read_bytes() for f in path.rglob("*") if f.is_file()} == before
    assert report.state is RunState.COMPLETED and report.reason == "dry run: nothing was deleted"
    deleted, kept = report.tables["deleted"], report.tables["kept"]
    assert {row["rule"] for row in deleted} == {"its file group was replaced"}
    assert [row["rule"] for row in kept] == ["one of the retained versions"]
    files = [*(row["files"] for row in deleted), *(row["files"] for row in kept)]
    assert sum(map(int, map(str, files))) == len(data_files(path))
    done = job.clean(wanted(path, VERSIONS_1))
    assert (done.files, done.bytes) == (report.files, report.bytes)


class Counting(LocalStorage):
    """Remembers which folders were listed."""

    listed: list[str]

    def list_dir(self, path: str) -> tuple[list[FileInfo], list[str]]:
        self.listed.append(path)
        return super().list_dir(path)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "5 completed commits, and the last 10 are retained"),
        ({"hoodie.clean.trigger.max.commits": "6"}, "5 commits since the last clean"),
        ({"hoodie.clean.hours.retained": "1"}, "no completed commit began in the last 1 hour,"),
        (COMMITS_1, "nothing can be deleted in the 0 partitions that were planned for"),
    ],
)
def test_nothing_to_do_lists_no_partition(options: dict[str, str], why: str, tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    storage = Counting(str(path))
    storage.listed = []
    with pytest.raises(NothingToDo, match=why):
        job.clean(wanted(path, options), storage)
    assert [folder for folder in storage.listed if not folder.startswith(".hoodie") and folder] == []
    assert not open_local(path).timeline.pending({Action.CLEAN})


def test_a_clean_of_another_process_is_left_alone_while_it_may_live(
    clustered: Callable[[str, Path], Path], tmp_path: Path
) -> None:
    path = clustered("1.2.0", tmp_path)
    storage = FaultyStorage(str(path))
    job.clean(wanted(path, VERSIONS_1), storage)
    (done,) = (path / ".hoodie/timeline").glob("*.clean")
    done.unlink()
    for lease in (path / ".hoodie/.locks").rglob("clean-*"):
        lease.unlink()
    with pytest.raises(LockBusy, match="begun by another process less than 20 minutes ago"):
        job.clean(wanted(path, VERSIONS_1))
    # The refusal does not make it look like one of ours.
    with pytest.raises(LockBusy):
        job.clean(wanted(path, VERSIONS_1))


@pytest.mark.parametrize("release", RELEASES)
def test_empty_files_of_a_clean(release: str, clustered: Callable[[str, Path], Path], tmp_path: Path) -> None:
    """A process that dies over a file leaves it empty on some stores: the plan goes, a completed file is redone."""
    path = clustered(release, tmp_path)
    folder = path / ".hoodie/timeline" if (path / ".hoodie/timeline").exists() else path / ".hoodie"
    job.clean(wanted(path, VERSIONS_1))
    left = data_files(path)
    (done,) = folder.glob("*.clean")
    content = done.read_bytes()
    done.write_bytes(b"")
    report = job.clean(wanted(path, VERSIONS_1))
    assert report.state is RunState.COMPLETED and data_files(path) == left
    (again,) = folder.glob("*.clean")
    assert abs(len(again.read_bytes()) - len(content)) < 5

    for file in folder.glob("*.clean*"):
        file.write_bytes(b"")
    with pytest.raises(NothingToDo, match="empty clean plan, which was dropped"):
        job.clean(wanted(path, VERSIONS_1))
    assert not list(folder.glob("*.clean*"))


def test_a_broken_plan_is_told(clustered: Callable[[str, Path], Path], tmp_path: Path) -> None:
    path = clustered("1.2.0", tmp_path)
    (path / ".hoodie/timeline/20270101000000000.clean.requested").write_bytes(b"nonsense")
    before = data_files(path)
    with pytest.raises(ConflictError, match=r"20270101000000000\.clean\.requested"):
        job.clean(wanted(path, VERSIONS_1))
    assert data_files(path) == before


def test_a_partition_filter_needs_full_cleans(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    with pytest.raises(ConfigError, match=r"partition\.filter\.regex cannot be used"):
        job.clean(wanted(path, {"hoodie.clean.partition.filter.regex": "day=.*"}))


def test_a_partition_filter(clustered: Callable[[str, Path], Path], tmp_path: Path) -> None:
    path = clustered("1.2.0", tmp_path)
    options = {**VERSIONS_1, "hoodie.clean.incremental.enabled": "false"}
    day = {"hoodie.clean.partition.filter.regex": ".*01-02"}
    report = job.clean(wanted(path, {**options, **day}, dry_run=True))
    assert {row["partition"] for row in report.tables["deleted"]} == {"day=2026-01-02"}
    day["hoodie.clean.partition.filter.selected"] = "day=2026-01-01,other"
    report = job.clean(wanted(path, {**options, **day}, dry_run=True))
    assert {row["partition"] for row in report.tables["deleted"]} == {"day=2026-01-01"}


def test_an_empty_clean_moves_the_horizon(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    report = job.clean(wanted(path, {**COMMITS_1, "hoodie.write.empty.clean.interval.hours": "1"}))
    assert report.state is RunState.COMPLETED and report.files.before == 0
    timeline = open_local(path).timeline
    done = timeline.read_clean(timeline.completed({Action.CLEAN})[-1])
    assert done.earliest_to_retain == timeline.completed_writes()[-1].ts and not done.deleted


def test_a_file_that_is_gone_already_is_success(clustered: Callable[[str, Path], Path], tmp_path: Path) -> None:
    path = clustered("0.15.0", tmp_path)
    planned = job.clean(wanted(path, VERSIONS_1, dry_run=True))
    table = open_local(path)
    old = sorted(
        one.base_file.path
        for partition in table.view.partitions()
        for slices in table.view.all_slices(partition).values()
        for one in slices
        if one.base_file and table.view.replaced_at(partition, one.file_id)
    )
    (path / old[0]).unlink()
    done = job.clean(wanted(path, VERSIONS_1))
    assert done.files == planned.files and not data_files(path) & set(old)


def test_a_file_that_cannot_be_deleted_leaves_the_clean_pending(
    clustered: Callable[[str, Path], Path], tmp_path: Path
) -> None:
    path = clustered("1.2.0", tmp_path)
    name = next(f for f in sorted(data_files(path)))

    class Stubborn(LocalStorage):
        def delete_all(self, paths: object, done: object) -> None:
            raise PermissionError(name)

    with pytest.raises((HudiServicesError, PermissionError)):
        job.clean(wanted(path, VERSIONS_1), Stubborn(str(path)))
    (pending,) = open_local(path).timeline.pending({Action.CLEAN})
    assert job.clean(wanted(path, VERSIONS_1)).instant == pending.ts


def test_a_plan_of_version_one_is_carried_out(tmp_path: Path) -> None:
    """Bare names, as very old releases wrote them."""
    from hudi_services.codecs import avro

    path = unpack("0.15.0", tmp_path)
    view = open_local(path).view
    partition = view.partitions()[0]
    old = next(slices[0].base_file for slices in view.all_slices(partition).values() if len(slices) > 1)
    assert old is not None
    victim, name = old.path, old.name
    plan = CleanerPlan("KEEP_LATEST_COMMITS", "", "", {partition: (name,)})
    record = {
        "policy": plan.policy,
        "filesToBeDeletedPerPartition": {partition: [name]},
        "version": 1,
        "partitionsToBeDeleted": None,
    }
    data = avro.write_container(avro.load_schema("HoodieCleanerPlan", "0.15.0"), record)
    (path / ".hoodie/20270101000000000.clean.requested").write_bytes(data)
    job.clean(wanted(path, VERSIONS_1))
    assert victim not in data_files(path)


@pytest.mark.parametrize("is_writing", [False, True])
@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_the_folder_of_a_deleted_partition(release: str, is_writing: bool, tmp_path: Path) -> None:
    """It goes, unless a write is pending: not every store lists a file that its writer has not closed yet."""
    path = unpack(release, tmp_path)
    hide_metadata(path)
    table = open_local(path)
    partition = table.view.partitions()[0]
    ids = tuple(one.file_id for one in table.view.latest_slices(partition))
    deletes = CommitMetadata("delete_partition", {}, {}, {partition: ids})
    complete(path, LATER, deletes, Action.REPLACE_COMMIT)
    if is_writing:
        for state in (Progress.REQUESTED, Progress.INFLIGHT):
            open_local(path).timeline.publish(LATER[:-1] + "2", Action.COMMIT, state)
    done = job.clean(wanted(path, VERSIONS_1 | LOCK))
    assert done.state is RunState.COMPLETED
    assert not [name for name in data_files(path) if name.startswith(f"{partition}/")]
    assert (path / partition).exists() == is_writing
