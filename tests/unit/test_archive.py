"""Archival of tables that we wrote, on every table version: what the archive has, killed at any write, and again."""

import json
import shutil
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_services
from hudi_services.archival import archive as frame
from hudi_services.codecs import avro
from hudi_services.codecs.cursor import Cursor
from hudi_services.codecs.json_text import parse_json
from hudi_services.errors import AlreadyExists, ConfigError, ConflictError, NothingToDo
from hudi_services.jobs import archive as job
from hudi_services.limits import LARGEST_FILE
from hudi_services.log_files.log_blocks import HeaderKey
from hudi_services.log_files.log_reader import read_log_blocks
from hudi_services.options import resolve
from hudi_services.runs.report import RunState
from hudi_services.runs.request import ArchiveRequest
from hudi_services.storage import FileInfo
from hudi_services.stores import open_storage
from hudi_services.stores.local import LocalStorage
from hudi_services.timeline.active import Timeline
from hudi_services.timeline.archived_log import archived_actions
from hudi_services.timeline.instant import Action

from .faulty_storage import FaultyStorage, Killed
from .metadata_tables import open_metadata
from .rides import FILTERS, create
from .shares import places, share
from .tables import both_views, digest, open_local

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")

VERSIONS = (6, 8, 9)
_FEW = {
    "hoodie.keep.max.commits": "5",
    "hoodie.keep.min.commits": "3",
    "hoodie.clean.commits.retained": "1",
    "hoodie.commits.archival.batch": "4",
    "hoodie.timeline.compaction.batch.size": "2",
    "hoodie.time.generator.max_expected_clock_skew_ms": "0",
}
_QUIET = {**FILTERS, **_FEW, "hoodie.archive.automatic": "false", "hoodie.metadata.compact.max.delta.commits": "3"}


def rows(first: int, end: int, ts: int) -> pa.Table:
    keys = pa.array(np.arange(first, end)).cast(pa.string())
    return pa.table({"id": keys, "ts": pa.array([ts] * (end - first), pa.int64())})


def write(table: hudi_services.Table, count: int, options: Mapping[str, str] = _QUIET, first: int = 0) -> None:
    for number in range(first, first + count):
        operation = table.insert_overwrite_table if number == 2 else table.upsert
        operation(rows(0, 6, number), options=options)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Mapping[int, Path]:
    """Tables with a long timeline, of which nothing is archived yet, by version."""
    made = {}
    for version in VERSIONS:
        path = tmp_path_factory.mktemp("written") / str(version)
        write(create(path, partition_by=None, table_version=version), 12)
        made[version] = path
    return made


def wanted(path: Path, options: Mapping[str, str] = _FEW, *, dry_run: bool = False) -> ArchiveRequest:
    return ArchiveRequest(base_path=str(path), options=resolve([("test", options)]), dry_run=dry_run)


def timelines(path: Path) -> dict[str, Timeline]:
    table = open_local(path)
    assert table.metadata is not None
    return {table.config.history_path: table.timeline, table.metadata.config.history_path: table.metadata.timeline}


def entries(path: Path, folder: str) -> list[tuple[str, str, str]]:
    """All entries of an archive, as often as it has them."""
    found = []
    for file in sorted((path / folder).glob(".commits_.archive.*")):
        found += [(one.ts, one.action, one.state) for one in archived_actions(file.read_bytes(), file.name)]
    version = path / folder / "_version_"
    if version.exists():
        manifest = json.loads((path / folder / f"manifest_{version.read_text()}").read_text())
        for entry in manifest["files"]:
            file = path / folder / entry["fileName"]
            assert file.stat().st_size == entry["fileLen"]
            table = pq.read_table(file).select(["instantTime", "action"])
            found += [(*row.values(), "COMPLETED") for row in table.to_pylist()]
    return found


def instants(timeline: Timeline) -> set[tuple[str, str]]:
    return {(one.ts, one.action.value) for one in timeline.completed()}


def archived(path: Path, folder: str) -> set[tuple[str, str]]:
    """The completed instants of an archive, which has no entry twice."""
    found = entries(path, folder)
    assert max(Counter(found).values(), default=1) == 1
    return {(ts, action) for ts, action, state in found if state == "COMPLETED"}


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_what_goes_is_in_the_archive(version: int, written: Mapping[int, Path], tmp_path: Path) -> None:
    """Every completed instant is in one of the two places, and readers see the same."""
    path = Path(shutil.copytree(written[version], tmp_path / "table"))
    before, seen = {folder: instants(one) for folder, one in timelines(path).items()}, both_views(path)
    report = job.archive(wanted(path))
    assert report.state is RunState.COMPLETED
    for (folder, timeline), row in zip(timelines(path).items(), report.tables["timelines"], strict=True):
        gone = before[folder] - instants(timeline)
        assert archived(path, folder) == gone
        # The metadata table keeps what the table had on its timeline until now.
        assert row["archived_instants"] == len(gone) >= (1 if "metadata" in folder else 9)
        of = [one for one in report.tables["archived"] if one["timeline"] == row["timeline"]]
        counts = Counter(action for _, action in gone)
        assert {one["action"]: one["instants"] for one in of} == counts
        times = {action: sorted(ts for ts, other in gone if other == action) for action in counts}
        assert {str(one["action"]): [one["first"], one["last"]] for one in of} == {
            action: [found[0], found[-1]] for action, found in times.items()
        }
        assert timeline.archived.completed.keys() == {ts for ts, action in gone if action.endswith("commit")}
    assert {row["timeline"] for row in report.tables["archive_files"]} == {"table", "metadata table"}
    assert all(one.equals(other) for one, other in zip(both_views(path), seen, strict=True))
    more = job.archive(wanted(path)).tables["timelines"]
    assert more[0]["archived_instants"] == 0 and int(str(more[1]["archived_instants"])) > 0
    with pytest.raises(NothingToDo):
        job.archive(wanted(path))
    table = hudi_services.open(path, engine="local")
    assert table.validate(strict=True).ok
    write(table, 4, first=12)
    assert job.archive(wanted(path)).state is RunState.COMPLETED
    for folder, timeline in timelines(path).items():
        assert not archived(path, folder) & instants(timeline)
        assert before[folder] <= archived(path, folder) | instants(timeline)
    assert table.validate(strict=True).ok and both_views(path)[0].num_rows == 6


@pytest.mark.parametrize("version", VERSIONS)
def test_the_archive_has_the_contents(version: int, written: Mapping[int, Path], tmp_path: Path) -> None:
    """Of every file that went: its bytes, or on version 6 the record in it."""
    path = Path(shutil.copytree(written[version], tmp_path / "table"))
    before = {folder: kept_files(one) for folder, one in timelines(path).items()}
    job.archive(wanted(path, {**_FEW, "hoodie.timeline.compaction.batch.size": "10"}))
    for folder, timeline in timelines(path).items():
        gone = {name: data for name, data in before[folder].items() if name not in timeline.sizes}
        seen = 0
        for file in sorted((path / folder).glob(".commits*")):
            for entry in log_entries(file):
                action = "commit" if entry["actionType"] == "compaction" else entry["actionType"]
                names = [
                    name
                    for name in gone
                    if (found := timeline.layout.parse(name, 0, "UTC"))
                    and (found.ts, found.state.name) == (entry["commitTime"], entry["actionState"])
                    and found.action.completed_as.value == action
                ]
                assert len(names) == 1, names
                check_entry(entry, gone[names[0]], gone)
                seen += 1
        for file in sorted((path / folder).glob("*.parquet")):
            for row in pq.read_table(file).to_pylist():
                done = next(data for name, data in gone.items() if name.startswith(f"{row['instantTime']}_"))
                assert (row["metadata"], row["version"]) == (done, 1)
                plans = [data for name, data in gone.items() if name.startswith(f"{row['instantTime']}.") and data]
                assert row["plan"] in plans if row["action"] in ("clean", "replacecommit") else row["plan"] is None
                seen += 1
        assert seen


def kept_files(timeline: Timeline) -> dict[str, bytes]:
    return {name: timeline.storage.read(timeline.path(name)) for name in timeline.sizes}


def log_entries(file: Path) -> list[dict[str, Any]]:
    found = []
    for block in read_log_blocks(file.read_bytes(), file.name):
        schema = avro.parse_schema(block.header[HeaderKey.SCHEMA], file.name)
        cursor = Cursor(block.content, file.name)
        assert cursor.int32("version") == 3
        count = cursor.int32("count")
        assert count <= 4
        found += [avro.read_datum(schema, cursor.take(cursor.int32("length"), "record"), "f") for _ in range(count)]
    return found


def check_entry(entry: dict[str, Any], data: bytes, files: Mapping[str, bytes]) -> None:
    bodies = {name: value for name, value in entry.items() if name[0] in "hH" and value is not None}
    completed, action = entry["actionState"] == "COMPLETED", entry["actionType"]
    assert len(bodies) == (0 if action == "rollback" and not completed else bool(data) or action != "replacecommit")
    for name, body in bodies.items():
        if name in ("hoodieCommitMetadata", "hoodieReplaceCommitMetadata", "HoodieInflightReplaceMetadata"):
            tree = parse_json(data) if data else {}
            assert body["operationType"] == tree.get("operationType", "UNKNOWN")
            assert body["extraMetadata"] == tree.get("extraMetadata", {}) | {"ROLLING_STAT": ""}
            assert body.get("partitionToReplaceFileIds") == tree.get("partitionToReplaceFileIds")
            for partition, stats in tree.get("partitionToWriteStats", {}).items():
                for stat, kept in zip(stats, body["partitionToWriteStats"][partition], strict=True):
                    assert {key: stat.get(key) for key in kept} == kept
        elif data:
            assert body == avro.read_container(data, "f")
        else:
            assert name == "hoodieCompactionPlan" and body == avro.read_container(
                files[f"{entry['commitTime']}.compaction.requested"], "f"
            )


@pytest.mark.thorough
@pytest.mark.sweep
@pytest.mark.parametrize(("version", "number"), [(6, 0), (8, 1), (9, 2)])
def test_every_write_may_be_the_last(version: int, number: int, written: Mapping[int, Path], tmp_path: Path) -> None:
    """Readers see the same; the next archivals leave nothing in both places, and no entry twice."""
    whole = Path(shutil.copytree(written[version], tmp_path / "whole"))
    seen = both_views(whole)[0]
    before = {folder: instants(one) for folder, one in timelines(whole).items()}
    storage = FaultyStorage(str(whole))
    job.archive(wanted(whole), storage)
    assert len(storage.log) > 50
    for survived in share(places(storage.log), number, 3):
        path = Path(shutil.copytree(written[version], tmp_path / str(survived)))
        with pytest.raises(Killed):
            job.archive(wanted(path), FaultyStorage(str(path), survived))
        what = f"after {survived} writes: {storage.log[survived]}"
        assert all(one.equals(seen) for one in both_views(path)), what
        table = hudi_services.open(path, engine="local")
        assert table.validate(strict=True).ok, what
        write(table, 4, first=12)
        while not table.archive(options=_FEW).idle:
            pass
        assert both_views(path)[0].num_rows == both_views(path)[1].num_rows == 6
        assert table.validate(strict=True).ok, what
        for folder, timeline in timelines(path).items():
            assert not archived(path, folder) & instants(timeline), what
            assert before[folder] <= archived(path, folder) | instants(timeline), what
        shutil.rmtree(path)


@pytest.mark.parametrize("version", [6, 9])
def test_rounds(version: int, written: Mapping[int, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long timeline goes in several rounds, and writers may have the lock between them."""
    at_once = Path(shutil.copytree(written[version], tmp_path / "at once"))
    job.archive(wanted(at_once))
    section, taken = frame.critical_section, []

    def counted(*arguments: Any, **more: Any) -> Any:
        taken.append(arguments)
        return section(*arguments, **more)

    monkeypatch.setattr(frame, "critical_section", counted)
    for limit in (("_ROUND_INSTANTS", 3), ("_ROUND_BYTES", 1)):
        path = Path(shutil.copytree(written[version], tmp_path / limit[0]))
        taken.clear()
        with monkeypatch.context() as patch:
            patch.setattr(frame, *limit)
            job.archive(wanted(path))
        assert len(taken) > 5
        for (folder, timeline), other in zip(timelines(path).items(), timelines(at_once).values(), strict=True):
            assert sorted(timeline.sizes) == sorted(other.sizes)
            assert archived(path, folder) == archived(at_once, folder)


@pytest.mark.thorough
@pytest.mark.parametrize("version", [8, 9])
def test_files_of_a_level_are_merged(version: int, written: Mapping[int, Path], tmp_path: Path) -> None:
    path = Path(shutil.copytree(written[version], tmp_path / "table"))
    table = hudi_services.open(path, engine="local")
    all_of_them = instants(timelines(path)[".hoodie/timeline/history"])
    levels = set()
    for number in range(6):
        assert job.archive(wanted(path)).state is RunState.COMPLETED
        history = path / ".hoodie/timeline/history"
        manifests = sorted(int(file.name[9:]) for file in history.glob("manifest_*"))
        assert len(manifests) <= 3 + 3
        named = {
            one["fileName"] for n in manifests for one in json.loads((history / f"manifest_{n}").read_text())["files"]
        }
        assert {file.name for file in history.glob("*.parquet")} <= named
        levels |= {name[-9] for name in named}
        write(table, 3, first=12 + 3 * number)
        all_of_them |= instants(timelines(path)[".hoodie/timeline/history"])
    assert {"0", "1", "2"} <= levels
    for folder, timeline in timelines(path).items():
        if "metadata" not in folder:
            assert archived(path, folder) | instants(timeline) == all_of_them
    assert table.validate(strict=True).ok


@pytest.mark.deep
def test_how_many_manifests_stay_and_how_large_files_get(written: Mapping[int, Path], tmp_path: Path) -> None:
    """hoodie.timeline.manifest.retained.versions and hoodie.timeline.compaction.target.file.max.bytes of 1.2.0."""
    made: dict[str, int] = {}
    for name, options in (
        ("usual", {}),
        ("few", {"hoodie.timeline.manifest.retained.versions": "1"}),
        ("small", {"hoodie.timeline.compaction.target.file.max.bytes": "1"}),
    ):
        path = Path(shutil.copytree(written[9], tmp_path / name))
        table = hudi_services.open(path, engine="local")
        for number in range(4):
            job.archive(wanted(path, {**_FEW, **options}))
            write(table, 3, first=12 + 3 * number)
        history = path / ".hoodie/timeline/history"
        newest = (history / f"manifest_{(history / '_version_').read_text()}").read_text()
        levels = {one["fileName"][-9] for one in json.loads(newest)["files"]}
        assert levels == {"0"} if name == "small" else levels > {"0"} or levels.isdisjoint({"0"})
        made[name] = len(list(history.glob("manifest_*")))
        assert table.validate(strict=True).ok
    assert made["few"] == made["usual"] - 2


@pytest.mark.parametrize("version", VERSIONS)
def test_a_dry_run_tells_what_a_run_does(version: int, written: Mapping[int, Path], tmp_path: Path) -> None:
    path = Path(shutil.copytree(written[version], tmp_path / "table"))
    before = digest(path)
    looked = job.archive(wanted(path, dry_run=True), FaultyStorage(str(path), 0))
    assert digest(path) == before and looked.reason == "dry run: nothing was archived"
    done = job.archive(wanted(path))
    assert {name: looked.tables[name] for name in ("timelines", "archived")} == {
        name: done.tables[name] for name in ("timelines", "archived")
    }


def test_what_holds_the_timeline(written: Mapping[int, Path], tmp_path: Path) -> None:
    path = Path(shutil.copytree(written[9], tmp_path / "table"))
    timeline = open_local(path).timeline
    first = timeline.completed_writes()[0].ts
    (path / ".hoodie/timeline" / f"{first}_{first}.savepoint").write_bytes(b"x")
    (own, _) = job.archive(wanted(path, dry_run=True)).tables["timelines"]
    assert (own["commits"], own["archived_instants"], own["held_at"]) == (12, 0, first)
    assert str(own["held_by"]).startswith("a savepoint")
    job.archive(wanted(path))
    with pytest.raises(NothingToDo, match=rf"the table: all 12 commits stay on the timeline: a savepoint .*, {first};"):
        job.archive(wanted(path))
    beyond = job.archive(wanted(path, {**_FEW, "hoodie.archive.beyond.savepoint": "true"}, dry_run=True))
    assert beyond.tables["archived"]
    with pytest.raises(
        NothingToDo, match="the table: 12 commits are on the timeline, and commits are archived from 31"
    ):
        job.archive(wanted(path, {}))
    with pytest.raises(ConfigError, match=r"max.commits=3 is not more than hoodie.keep.min.commits=3"):
        job.archive(wanted(path, {**_FEW, "hoodie.keep.max.commits": "3"}))


def test_markers_that_were_left_go_with_their_instant(written: Mapping[int, Path], tmp_path: Path) -> None:
    path = Path(shutil.copytree(written[9], tmp_path / "table"))
    first, *_, last = [one.ts for one in open_local(path).timeline.completed_writes()]
    for ts in (first, last):
        marker = path / f".hoodie/.temp/{ts}/a.marker.CREATE"
        marker.parent.mkdir(parents=True)
        marker.touch()
    job.archive(wanted(path))
    assert [file.name for file in (path / ".hoodie/.temp").iterdir()] == [last]


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_timelines_do_not_grow_without_end(version: int, tmp_path: Path) -> None:
    """By what follows a write, with few commits to keep; also where the clean was told nothing."""
    table = create(tmp_path / "rides", partition_by=None, table_version=version)
    options = {**_QUIET, "hoodie.archive.automatic": "true"}
    found = []
    for number in range(24):
        result = table.upsert(rows(0, 6, number), options=options)
        services = result.tables["services"].to_pylist() if "services" in result.tables else []
        found += [number for row in services if row["service"] == "archive"]
        for timeline in timelines(tmp_path / "rides").values():
            assert len(timeline.completed_writes()) < 40
    assert len(found) > 3
    # Cleans of the metadata table leave the slices of its last 20 commits, which have six compactions, and one more.
    now = open_metadata(tmp_path / "rides")
    assert len(now.timeline.completed({Action.CLEAN})) > 1
    assert max(len(group) for one in now.partitions for group in now.all_slices(one).values()) <= 8
    own, metadata = timelines(tmp_path / "rides").values()
    assert len(own.completed_writes()) <= 8 and len(metadata.completed_writes()) <= 33
    assert table.validate(strict=True).ok and both_views(tmp_path / "rides")[0].num_rows == 6


def test_a_killed_write_of_the_archive_of_version_6(written: Mapping[int, Path], tmp_path: Path) -> None:
    """Hudi writes archive files in place: a torn newest file is no obstacle, and its instants are archived again."""
    path = Path(shutil.copytree(written[6], tmp_path / "table"))
    before = instants(open_local(path).timeline)
    other = Path(shutil.copytree(path, tmp_path / "other"))
    job.archive(wanted(other))
    (made,) = (other / ".hoodie/archived").glob(".commits_*")
    (path / ".hoodie/archived" / made.name).write_bytes(made.read_bytes()[:-100])
    job.archive(wanted(path))
    (new,) = (path / ".hoodie/archived").glob(".commits_.archive.2_1-0-1")
    found = {(one.ts, one.action) for one in archived_actions(new.read_bytes(), "f") if one.state == "COMPLETED"}
    assert found == before - instants(open_local(path).timeline)


def test_an_archive_that_is_no_archive_is_named(written: Mapping[int, Path], tmp_path: Path) -> None:
    path = Path(shutil.copytree(written[9], tmp_path / "table"))
    (path / ".hoodie/timeline/history/_version_").write_text("7")
    before = sorted(open_local(path).timeline.sizes)
    with pytest.raises(hudi_services.StorageError, match="manifest_7"):
        job.archive(wanted(path), open_storage(str(path)))
    assert sorted(open_local(path).timeline.sizes) == before


class Overtaken(LocalStorage):
    """Another process, which had lost its lock, writes the version file right before ours."""

    def replace(self, path: str, data: bytes, seen: FileInfo) -> bool:
        if path.endswith("_version_"):
            super().put(path, b"1")
        return super().replace(path, data, seen)


@pytest.mark.thorough
def test_the_version_file_is_not_overwritten(written: Mapping[int, Path], tmp_path: Path) -> None:
    path = Path(shutil.copytree(written[9], tmp_path / "table"))
    job.archive(wanted(path))
    write(hudi_services.open(path, engine="local"), 4, first=12)
    before = {folder: sorted(one.sizes) for folder, one in timelines(path).items()}
    with pytest.raises(ConflictError, match="_version_ was changed meanwhile: another process archives"):
        job.archive(wanted(path), Overtaken(str(path)))
    assert {folder: sorted(one.sizes) for folder, one in timelines(path).items()} == before
    assert job.archive(wanted(path)).state is RunState.COMPLETED
    for folder, timeline in timelines(path).items():
        assert not archived(path, folder) & instants(timeline)


class _OvertakenEarly(LocalStorage):
    """Another process archives right after the version was read, and before the folder is listed, if both are asked for
    at the same time. `manifest` is what it has written."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self._has_come = threading.Event()
        self._history = path / ".hoodie/timeline/history"
        self.manifest = path

    def read(self, path: str, limit: int = LARGEST_FILE) -> bytes:
        data = super().read(path, limit)
        if path == ".hoodie/timeline/history/_version_" and not self._has_come.is_set():
            self.manifest = self._history / f"manifest_{int(data) + 1}"
            self.manifest.write_text(json.dumps({"files": [], "of": "another process"}))
            LocalStorage(self.root).put(path, str(int(data) + 1).encode())
            self._has_come.set()
        return data

    def list_dir(self, path: str) -> tuple[list[FileInfo], list[str]]:
        if path == ".hoodie/timeline/history":
            self._has_come.wait(0.3)
        return super().list_dir(path)


@pytest.mark.thorough
@pytest.mark.threads
def test_what_another_process_archives_meanwhile_is_not_overwritten(
    written: Mapping[int, Path], tmp_path: Path
) -> None:
    path = Path(shutil.copytree(written[9], tmp_path / "table"))
    job.archive(wanted(path))
    write(hudi_services.open(path, engine="local"), 4, first=12)
    storage = _OvertakenEarly(path)
    with pytest.raises((ConflictError, AlreadyExists)):
        job.archive(wanted(path), storage)
    assert "another process" in storage.manifest.read_text()
