"""Quarantines: every file that is moved there can be restored, whenever the process dies."""

import json
import os
import shutil
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import pytest

from hudi_services import __version__
from hudi_services.clock import SystemClock
from hudi_services.errors import ConfigError, ConflictError, CorruptFile, NothingToDo
from hudi_services.file_names import base_file_name
from hudi_services.jobs.orphan_files import manage_orphan_files
from hudi_services.limits import LARGEST_FILE
from hudi_services.options import resolve
from hudi_services.orphan_files.quarantine import QUARANTINE_FOLDER, list_quarantines
from hudi_services.runs.report import Report, RunState
from hudi_services.runs.request import OrphanFilesMode, OrphanFilesRequest
from hudi_services.storage import Storage
from hudi_services.stores import open_storage
from hudi_services.stores.local import LocalStorage

from .archives import unpack_archived
from .faulty_storage import FaultyStorage, Killed
from .repairs import hide_metadata
from .tables import RELEASES, open_local, rows, unpack

RELEASE = "1.2.0"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A table with ten files of commits that were rolled back, markers, and an upload that was not finished."""
    table = unpack_archived(tmp_path) / RELEASE / "listed"
    dead = garbage_in(table)[0].rsplit("_", 1)[1].split(".")[0]
    markers = table / ".hoodie/.temp" / dead / "p0"
    markers.mkdir(parents=True)
    (markers / "a.parquet.marker.CREATE").touch()
    (markers / ".a.parquet.marker.CREATE.crc").touch()
    (table / f"{garbage_in(table)[0]}#1").write_bytes(b"half a file")
    return table


def run(path: Path, mode: OrphanFilesMode, storage: Storage | None = None, **fields: object) -> Report:
    wanted = OrphanFilesRequest(
        base_path=str(path),
        options=resolve([("test", {})]),
        mode=mode,
        **{"min_age_minutes": 0, **fields},  # type: ignore[arg-type]
    )
    return manage_orphan_files(wanted, storage)


def garbage_in(path: Path) -> list[str]:
    """Paths of rolled back files: each round of the fixture has one after its good commit."""
    quarantined = list((path / ".hoodie/.hudi_services").rglob("*.parquet"))
    assert not quarantined
    report = run(path, OrphanFilesMode.FIND)
    attempts = {row["attempt"] for row in report.tables["attempts"]}
    return sorted(
        str(file.relative_to(path)) for file in path.glob("p?/*.parquet") if file.stem.split("_")[2] in attempts
    )


def tree(path: Path) -> dict[str, bytes]:
    """All files but our own, and the twins that move with theirs."""
    files = (file for file in path.rglob("*") if file.is_file() and file.suffix != ".crc")
    named = {str(file.relative_to(path)): file.read_bytes() for file in files}
    return {name: data for name, data in named.items() if not name.startswith((".hoodie/.hudi_", ".hoodie/.locks"))}


def only_quarantine(path: Path) -> str:
    (name,) = os.listdir(path / QUARANTINE_FOLDER)
    return name


@pytest.mark.thorough
def test_there_and_back(path: Path) -> None:
    before = tree(path)
    dry = run(path, OrphanFilesMode.FIND)
    assert (dry.state, dry.reason) == (RunState.COMPLETED, "dry run: nothing was moved")
    assert tree(path) == before and not (path / QUARANTINE_FOLDER).exists()
    report = run(path, OrphanFilesMode.QUARANTINE)
    assert (report.state, report.files.before, report.files.after) == (RunState.COMPLETED, 12, 12)
    assert report.bytes.before == report.bytes.after
    name = only_quarantine(path)
    assert report.reason == f"moved to the quarantine {name}"
    moved = before.keys() - tree(path).keys()
    assert len(moved) == 12
    # The folder of an attempt's markers goes with its last marker.
    assert os.listdir(path / ".hoodie/.temp") == []
    with pytest.raises(NothingToDo, match="there are no orphan files"):
        run(path, OrphanFilesMode.FIND)
    restored = run(path, OrphanFilesMode.RESTORE, quarantine=name)
    assert (restored.state, restored.files.before, restored.files.after) == (RunState.COMPLETED, 12, 12)
    assert tree(path) == before
    assert list_quarantines(open_storage(str(path))) == []


def test_the_manifest(path: Path) -> None:
    sizes = {name: os.stat(path / name) for name in tree(path)}
    run(path, OrphanFilesMode.QUARANTINE)
    name = only_quarantine(path)
    manifest = json.loads((path / QUARANTINE_FOLDER / name / "manifest.json").read_bytes())
    assert manifest["version"] == 1
    assert manifest["tool"] == {"name": "hudi-services", "version": __version__}
    assert manifest["table"] == {"base_path": str(path), "name": "listed"}
    created = datetime.fromisoformat(manifest["created"])
    assert created.strftime("%Y%m%dT%H%M%S%f")[:-3] == name and created.tzinfo == timezone.utc
    assert len(manifest["files"]) == 12
    for file in manifest["files"]:
        status = sizes[file["path"]]
        assert (file["size"], file["mtime"]) == (status.st_size, status.st_mtime_ns // 1_000_000)
        assert file["attempt"] in file["path"] and file["reason"]
        stored = path / QUARANTINE_FOLDER / name / "files" / file["path"]
        assert stored.exists() or stored.with_name(f"{stored.name}.staged").exists()


@pytest.mark.thorough
def test_any_write_may_be_the_last(path: Path, tmp_path: Path) -> None:
    """The next run finishes what a killed one began, and two restores bring all of it back."""
    before = tree(path)
    whole = FaultyStorage(str(shutil.copytree(path, tmp_path / "whole")))
    run(path, OrphanFilesMode.QUARANTINE, whole)
    total = len(whole.log)
    assert total > 14
    for survived in range(total):
        copy = shutil.copytree(path, tmp_path / str(survived))
        with pytest.raises(Killed):
            run(copy, OrphanFilesMode.QUARANTINE, FaultyStorage(str(copy), survived))
        assert_nothing_lost(copy, before)
        try:
            assert run(copy, OrphanFilesMode.QUARANTINE).state is RunState.COMPLETED
        except NothingToDo:
            # Only giving the locks back was cut off.
            assert survived >= total - 4
        assert_nothing_lost(copy, before)
        with pytest.raises(NothingToDo):
            run(copy, OrphanFilesMode.FIND)
        names = sorted(os.listdir(copy / QUARANTINE_FOLDER))
        assert 1 <= len(names) <= 2
        for name in names:
            assert run(copy, OrphanFilesMode.RESTORE, quarantine=name).state is RunState.COMPLETED
        assert tree(copy) == before
        shutil.rmtree(copy)


def assert_nothing_lost(path: Path, before: dict[str, bytes]) -> None:
    """Every file is where it was, or in a quarantine whose manifest names it."""
    now, held = tree(path), {}
    for folder in (path / QUARANTINE_FOLDER).glob("*"):
        named = {file["path"] for file in json.loads((folder / "manifest.json").read_bytes())["files"]}
        for file in (folder / "files").rglob("*"):
            original = str(file.relative_to(folder / "files")).removesuffix(".staged")
            if file.is_file():
                assert original in named
                held[original] = file.read_bytes()
    assert {**held, **now} == before


@pytest.mark.thorough
@pytest.mark.parametrize("mode", [OrphanFilesMode.RESTORE, OrphanFilesMode.DELETE])
def test_restoring_and_deleting_may_be_cut_off(path: Path, tmp_path: Path, mode: OrphanFilesMode) -> None:
    before = tree(path)
    run(path, OrphanFilesMode.QUARANTINE)
    name, without = only_quarantine(path), tree(path)
    expected = before if mode is OrphanFilesMode.RESTORE else without
    whole = FaultyStorage(str(shutil.copytree(path, tmp_path / "whole")))
    run(path, mode, whole, quarantine=name)
    assert tree(tmp_path / "whole") == expected
    for survived in range(len(whole.log)):
        copy = shutil.copytree(path, tmp_path / str(survived))
        with pytest.raises(Killed):
            run(copy, mode, FaultyStorage(str(copy), survived), quarantine=name)
        if os.listdir(copy / QUARANTINE_FOLDER):
            assert run(copy, mode, quarantine=name).state is RunState.COMPLETED
        assert tree(copy) == expected
        assert not os.path.exists(copy / QUARANTINE_FOLDER / name)
        shutil.rmtree(copy)


@pytest.mark.thorough
def test_a_file_whose_place_is_taken_stays(path: Path) -> None:
    before = tree(path)
    run(path, OrphanFilesMode.QUARANTINE)
    name, first = only_quarantine(path), sorted(n for n in before if n not in tree(path))[1]
    (path / first).write_bytes(b"another")
    report = run(path, OrphanFilesMode.RESTORE, quarantine=name)
    assert (report.state, report.exit_code, report.files.after) == (RunState.PARTLY_DONE, 7, 11)
    assert report.warnings == [f"{path / first} exists already"]
    assert report.reason is not None and first in report.reason and name in report.hint
    assert tree(path) == {**before, first: b"another"}
    (path / first).unlink()
    assert run(path, OrphanFilesMode.RESTORE, quarantine=name).state is RunState.COMPLETED
    assert tree(path) == before


@pytest.mark.thorough
def test_a_move_that_was_cut_off_left_the_file_in_both_places(path: Path) -> None:
    before = tree(path)
    run(path, OrphanFilesMode.QUARANTINE)
    name, moved = only_quarantine(path), sorted(n for n in before if n not in tree(path))
    for file in moved:
        stored = path / QUARANTINE_FOLDER / name / "files" / file
        (path / file).parent.mkdir(parents=True, exist_ok=True)
        staged = Path(f"{stored}.staged")
        # Linked, as on local storage, or copied, as elsewhere.
        if staged.exists() or file.startswith("p1"):
            os.link(staged if staged.exists() else stored, path / file)
        else:
            shutil.copyfile(stored, path / file)
    assert run(path, OrphanFilesMode.RESTORE, quarantine=name).state is RunState.COMPLETED
    assert tree(path) == before


def test_two_files_are_compared_piece_by_piece(path: Path) -> None:
    """Sizes first: base files can be large, and many are moved at the same time."""
    run(path, OrphanFilesMode.QUARANTINE)
    name = only_quarantine(path)
    first, second = sorted((path / QUARANTINE_FOLDER / name / "files/p0").glob("*.parquet"))[:2]
    large = b"x" * 3_000_000
    for stored, other in ((first, large), (second, large[:-1] + b"y")):
        stored.write_bytes(large)
        (path / "p0" / stored.name).write_bytes(other)
    third = path / QUARANTINE_FOLDER / name / "files/p1"
    shorter = sorted(third.glob("*.parquet"))[0]
    (path / "p1" / shorter.name).write_bytes(b"x")
    lengths: list[int] = []

    class Watched(LocalStorage):
        def read(self, path: str, limit: int = LARGEST_FILE) -> bytes:
            assert not path.endswith(".parquet")
            return super().read(path, limit)

        def read_range(self, path: str, start: int, length: int) -> bytes:
            assert shorter.name not in path
            lengths.append(length)
            return super().read_range(path, start, length)

    report = run(path, OrphanFilesMode.RESTORE, Watched(str(path)), quarantine=name)
    assert report.state is RunState.PARTLY_DONE and len(report.warnings) == 2
    assert max(lengths) < 2_000_000 and (path / "p0" / first.name).read_bytes() == large
    assert not first.exists() and second.exists() and shorter.exists()


def put_dead_file(path: Path) -> str:
    """A file of an attempt that is gone, between the first two commits of a table."""
    table = open_local(path)
    partition = table.view.partitions()[0]
    source = table.view.latest_slices(partition)[0].base_file
    assert source is not None
    dead = str(int(table.timeline.completed_writes()[0].ts) + 1)
    name = f"{partition}/{base_file_name('11111111-1111-1111-1111-111111111111-0', '0-1-1', dead)}"
    shutil.copy(path / source.path, path / name)
    return name


def forget_commits(path: Path, count: int) -> None:
    """What archival does to the timeline; readers do not ask the archive."""
    timeline = open_local(path).timeline
    for write in timeline.completed_writes()[:count]:
        for name in [name for name in timeline.sizes if name.startswith(write.ts)]:
            (path / timeline.path(name)).unlink()


@pytest.mark.parametrize("release", RELEASES)
def test_what_readers_would_now_take_for_committed_is_not_restored(release: str, tmp_path: Path) -> None:
    """Without a metadata table every file that is older than the timeline counts."""
    path = unpack(release, tmp_path)
    hide_metadata(path)
    dead = put_dead_file(path)
    before = rows(open_local(path), open_local(path).view)
    run(path, OrphanFilesMode.QUARANTINE)
    name = only_quarantine(path)
    run(path, OrphanFilesMode.RESTORE, quarantine=name)
    run(path, OrphanFilesMode.QUARANTINE)
    name = only_quarantine(path)
    forget_commits(path, 2)
    stored = {str(file) for file in (path / QUARANTINE_FOLDER).rglob("*")}
    with pytest.raises(ConflictError, match=rf"quarantine {name}, so that readers .*: {dead}$") as caught:
        run(path, OrphanFilesMode.RESTORE, quarantine=name)
    assert caught.value.hint.startswith("nothing was moved")
    assert {str(file) for file in (path / QUARANTINE_FOLDER).rglob("*")} == stored
    assert rows(open_local(path), open_local(path).view).equals(before)


@pytest.mark.parametrize("release", RELEASES)
def test_what_readers_took_for_committed_is_restored(release: str, tmp_path: Path) -> None:
    """So that a table can be as it was, duplicates and all."""
    path = unpack_archived(tmp_path) / release / "plain"
    table = open_local(path)
    archive = table.timeline.layout.read_archive(table.storage, table.config.history_path)
    source = next(path.glob("p0/*.parquet"))
    dead = base_file_name(
        "11111111-1111-1111-1111-111111111111-0", "0-1-1", max(filter(archive.surrounds, archive.rolled_back))
    )
    shutil.copy(source, path / "p0" / dead)
    before = rows(table, table.view)
    run(path, OrphanFilesMode.QUARANTINE)
    name = only_quarantine(path)
    manifest = path / QUARANTINE_FOLDER / name / "manifest.json"
    (file,) = json.loads(manifest.read_bytes())["files"]
    assert file["path"] == f"p0/{dead}" and file["seen"] is True
    whole = manifest.read_bytes()
    manifest.write_bytes(whole[:-9])
    with pytest.raises(CorruptFile, match=r"manifest\.json is not a manifest of a quarantine"):
        run(path, OrphanFilesMode.RESTORE, quarantine=name)
    manifest.write_bytes(whole)
    assert run(path, OrphanFilesMode.RESTORE, quarantine=name).state is RunState.COMPLETED
    assert rows(open_local(path), open_local(path).view).equals(before)


def test_unknown_quarantines(path: Path) -> None:
    run(path, OrphanFilesMode.QUARANTINE)
    name = only_quarantine(path)
    for wrong in ("20200101T000000000", "..", "", "x/../" + name):
        with pytest.raises(ConfigError, match="there is no quarantine") as caught:
            run(path, OrphanFilesMode.RESTORE, quarantine=wrong)
        assert caught.value.hint == f"the quarantines of the table are: {name}"


def test_old_quarantines_are_deleted(path: Path) -> None:
    run(path, OrphanFilesMode.QUARANTINE)
    folder = path / QUARANTINE_FOLDER
    young = only_quarantine(path)
    for other in ("20200101T000000000", "not-ours", "20209999T000000000"):
        shutil.copytree(folder / young, folder / other)
    without = tree(path)
    report = run(path, OrphanFilesMode.DELETE, delete_older_than_days=30)
    assert [row["quarantine"] for row in report.tables["quarantines"]] == ["20200101T000000000"]
    assert (report.state, report.files.before, report.files.after) == (RunState.COMPLETED, 12, 0)
    assert sorted(os.listdir(folder)) == sorted([young, "not-ours", "20209999T000000000"])
    with pytest.raises(NothingToDo, match="no quarantine is 30 days old"):
        run(path, OrphanFilesMode.DELETE, delete_older_than_days=30)
    assert run(path, OrphanFilesMode.DELETE, delete_older_than_days=0).state is RunState.COMPLETED
    assert tree(path) == without


def test_the_listing_of_quarantines(path: Path) -> None:
    run(path, OrphanFilesMode.QUARANTINE)
    with pytest.raises(NothingToDo):
        run(path, OrphanFilesMode.FIND)
    (one,) = list_quarantines(open_storage(str(path)))
    assert one.held.files == 12 and abs((SystemClock().now() - one.created).total_seconds()) < 60


def test_checksum_twins_go_with_their_files(tmp_path: Path) -> None:
    """Hadoop would refuse a file that comes back to the twin of another."""
    for name in (".a.crc", "a", ".b.crc"):
        (tmp_path / name).write_bytes(b"x")
    open_storage(str(tmp_path)).move("a", "b")
    assert os.listdir(tmp_path) == ["b"]


def test_uploads_are_listed(tmp_path: Path) -> None:
    for name in ("p/a.parquet#1", "p/a.parquet#12", "p/a#x", "p/b#2.parquet", "c#3"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"12345")
    found = open_storage(str(tmp_path)).list_staged()
    assert sorted((file.path, file.size) for file in found) == [("c#3", 5), ("p/a.parquet#1", 5), ("p/a.parquet#12", 5)]


def test_a_folder_that_vanishes_while_uploads_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writers delete their markers when they end."""
    for name in ("a/b.parquet#1", "markers/a.marker.CREATE"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(b"12345")
    real = os.scandir

    def scandir(folder: str) -> Iterator[os.DirEntry[str]]:
        if str(folder).endswith("markers"):
            shutil.rmtree(folder)
        return real(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    (found,) = open_storage(str(tmp_path)).list_staged()
    assert found.path == "a/b.parquet#1" and not (tmp_path / "markers").exists()
