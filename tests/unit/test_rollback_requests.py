"""Which files a rollback deletes, by each kind of marker, by commit metadata and by listing."""

import shutil
import uuid
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_services.codecs.rollback_plan import PartitionRollback
from hudi_services.commit.markers import marker_folder
from hudi_services.errors import CorruptFile
from hudi_services.model import CommitMetadata, WriteStat
from hudi_services.rollback.requests import rollback_requests
from hudi_services.timeline.instant import Action, State

from .repairs import P
from .tables import open_local, unpack

T = "20990101000000000"
OLD = "20260101000000000"
F, G = (f"{digit * 8}-1111-1111-1111-111111111111-0" for digit in "12")


def begin(path: Path, action: Action = Action.COMMIT, commit: CommitMetadata | None = None) -> None:
    """An inflight instant, or with `commit` a completed one."""
    timeline = open_local(path).timeline
    data = timeline.layout.encode_commit(commit, open_local(path).config.version.release) if commit else b""
    for state in State if commit else (State.REQUESTED, State.INFLIGHT):
        timeline.publish(T, action, state, data if state is State.COMPLETED else b"", "20990201000000000")


def mark(path: Path, name: str, kind: str) -> None:
    marker = path / marker_folder(T) / P / f"{name}.marker.{kind}"
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.touch()


def requests(path: Path, *, using_markers: bool = True) -> list[PartitionRollback]:
    table = open_local(path)
    target = table.timeline.find(T)
    assert target
    return sorted(rollback_requests(table, target, using_markers=using_markers), key=str)


def test_log_files_have_create_markers_in_later_versions(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    begin(path)
    names = [f"{F}_1-0-1_{T}.parquet", f".{F}_{T}.log.1_1-0-1", f".{F}_{T}.log.2_1-0-1.cdc"]
    for name in names:
        mark(path, name, "CREATE")
    expected = [PartitionRollback(P, (f"{path}/{P}/{name}",), F, T) for name in names]
    assert requests(path) == sorted(expected, key=str)
    mark(path, f".{F}_{T}.log.3_1-0-1", "APPEND")
    with pytest.raises(CorruptFile, match="APPEND"):
        requests(path)


def test_appends_of_version_6(tmp_path: Path) -> None:
    path = unpack("0.15.0", tmp_path)
    begin(path, Action.DELTA_COMMIT)
    mark(path, f".{F}_{T}.log.1_1-0-1", "APPEND")
    for version in (1, 2):
        mark(path, f".{G}_{OLD}.log.{version}_1-0-1", "APPEND")
        (path / P / f".{G}_{OLD}.log.{version}_1-0-1").write_bytes(b"x" * version)
    found = requests(path)
    both = {f".{G}_{OLD}.log.{version}_1-0-1": version for version in (1, 2)}
    assert found == [
        PartitionRollback(P, (f"{path}/{P}/.{F}_{T}.log.1_1-0-1",)),
        PartitionRollback(P, (), G, OLD, both),
    ]
    (path / P / f".{G}_{OLD}.log.1_1-0-1").unlink()
    (path / P / f".{G}_{OLD}.log.2_1-0-1").unlink()
    assert all(not request.log_blocks for request in requests(path))
    mark(path, f".{F}_{T}.log.2_1-0-1", "CREATE")
    with pytest.raises(CorruptFile, match="CREATE"):
        requests(path)


def test_an_inflight_delta_commit_of_version_6_without_markers(tmp_path: Path) -> None:
    """Its forecast names the file groups that it was about to append to; inserts have none."""
    path = unpack("0.15.0", tmp_path)
    table = open_local(path)
    known = table.view.latest_slices(P)[0]
    stats = (
        WriteStat(P, known.file_id, "", prev_commit=known.base_instant),
        WriteStat(P, F, "", prev_commit="null"),
        WriteStat(P, "", ""),
    )
    forecast = table.timeline.layout.encode_commit(CommitMetadata("UPSERT", {P: stats}), "0.15.0")
    table.timeline.publish(T, Action.DELTA_COMMIT, State.REQUESTED)
    table.timeline.publish(T, Action.DELTA_COMMIT, State.INFLIGHT, forecast)
    full_path = f"{path}/{P}/{known.file_id}"
    assert requests(path) == [PartitionRollback(P, (), known.file_id, known.base_instant, {full_path: 1})]


def test_a_compaction_leaves_the_log_files_of_its_slices(tmp_path: Path) -> None:
    path = unpack("0.15.0", tmp_path)
    begin(path, Action.COMPACTION)
    for name in (f"{F}_1-0-1_{T}.parquet", f".{F}_{T}.log.1_1-0-1"):
        (path / P / name).touch()
    assert requests(path) == [PartitionRollback(P, (f"{path}/{P}/{F}_1-0-1_{T}.parquet",))]


@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_a_completed_commit_names_its_files(release: str, tmp_path: Path) -> None:
    """Markers do not count any more; neither do log files of older instants that stand beside its own."""
    path = unpack(release, tmp_path)
    name = f"{F}_1-0-1_{T}.parquet"
    stat = WriteStat(P, F, f"{P}/{name}", log_version=1, log_files=(f".{F}_{T}.log.1_1-0-1", f".{F}_{OLD}.log.1_1-0-1"))
    begin(path, commit=CommitMetadata("INSERT", {P: (stat,)}))
    mark(path, f"{G}_1-0-1_{T}.parquet", "CREATE")
    names = [f"{path}/{P}/{one}" for one in (f".{F}_{T}.log.1_1-0-1", name)]
    assert requests(path) == [PartitionRollback(P, (one,)) for one in names]


def test_change_data_files_go_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hudi_services.timeline.active import Timeline

    path = unpack("1.2.0", tmp_path)
    stat = WriteStat(P, F, f"{P}/{F}_1-0-1_{T}.parquet", cdc_files=((f"{P}/.{F}_{T}.log.1_1-0-1.cdc", 1),))
    commit = CommitMetadata("UPSERT", {P: (stat,)})
    begin(path, commit=commit)
    monkeypatch.setattr(Timeline, "read_commit", lambda self, instant: commit)
    assert {request.files[0].rpartition("/")[2] for request in requests(path)} == {
        f"{F}_1-0-1_{T}.parquet",
        f".{F}_{T}.log.1_1-0-1.cdc",
    }


def test_only_requested(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    open_local(path).timeline.publish(T, Action.COMMIT, State.REQUESTED)
    mark(path, f"{F}_1-0-1_{T}.parquet", "CREATE")
    assert requests(path) == []


IDS = st.uuids().map(lambda one: f"{one}-0")
INSTANTS = st.sampled_from([T, OLD, "20990101000000001"])
NAMES = st.one_of(
    st.builds("{}_1-0-1_{}.parquet".format, IDS, INSTANTS),
    st.builds(".{}_{}.log.1_1-0-1".format, IDS, INSTANTS),
    st.builds(".{}_{}.log.1_1-0-1.cdc".format, IDS, INSTANTS),
    st.builds("stray_{}.txt".format, INSTANTS),
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = unpack("1.2.0", tmp_path_factory.mktemp("listing"))
    begin(path)
    return path


@settings(max_examples=30)
@given(st.dictionaries(st.sampled_from(["", "a", "a/b"]), st.sets(NAMES, max_size=6)))
def test_a_listing_finds_exactly_the_files_of_the_instant(shared: Path, stored: dict[str, set[str]]) -> None:
    root = shared / f"part={uuid.uuid4()}"
    for folder, names in stored.items():
        partition = root / folder
        partition.mkdir(parents=True, exist_ok=True)
        (partition / ".hoodie_partition_metadata").touch()
        for name in names:
            (partition / name).touch()
    found = {file for request in requests(shared, using_markers=False) for file in request.files}
    expected = {str(root / folder / name) for folder, names in stored.items() for name in names if f"_{T}." in name} - {
        str(root / folder / f"stray_{T}.txt") for folder in stored
    }
    shutil.rmtree(root, ignore_errors=True)
    assert found == expected
