"""Plans and instants that were forged to have live files deleted: no file is deleted, and `recover` drops them."""

import json
import os
import shutil
import socket
import time
from pathlib import Path

import pytest

from hudi_services.cli.app import run
from hudi_services.codecs import avro
from hudi_services.codecs.clean_plan import CleanerPlan, encode_cleaner_plan
from hudi_services.codecs.rollback_plan import PartitionRollback, RollbackPlan, encode_rollback_plan
from hudi_services.commit.lease import LEASE_FOLDER, Lease
from hudi_services.errors import CheckFailed, StorageError
from hudi_services.snapshot import Snapshot
from hudi_services.stores import open_storage
from hudi_services.table.partitions import StorageLister
from hudi_services.timeline.instant import Action, Instant, State

from .archives import unpack_archived
from .tables import RELEASES, listed_view, open_local, rows, unpack

LATER = "20261122000000001"
SAVEPOINT = {
    "type": "record",
    "name": "S",
    "fields": [
        {
            "name": "partitionMetadata",
            "type": {
                "type": "map",
                "values": {
                    "type": "record",
                    "name": "P",
                    "fields": [{"name": "savepointDataFile", "type": {"type": "array", "items": "string"}}],
                },
            },
        }
    ],
}


def age(path: Path) -> None:
    for file in path.rglob("*"):
        if file.is_file():
            os.utime(file, (time.time() - 86_400 * 3,) * 2)


def newest(path: Path) -> Instant:
    return open_local(path).timeline.completed_writes()[-1]


def files_of(path: Path, ts: str) -> list[Path]:
    found = [file for file in path.rglob(f"*_{ts}.parquet") if ".hoodie" not in file.parts]
    assert found
    return found


def forge_rollback(path: Path, ts: str, action: str) -> None:
    table = open_local(path)
    requests = tuple(PartitionRollback(str(f.parent.relative_to(path)), (str(f),)) for f in files_of(path, ts))
    data = encode_rollback_plan(RollbackPlan(ts, action, requests), table.config.version.release)
    name = table.timeline.layout.file_name(LATER, Action.ROLLBACK, State.REQUESTED)
    (path / table.timeline.path(name)).write_bytes(data)


def both(table: Snapshot) -> list[object]:
    return [rows(table, table.view).to_pydict(), rows(table, listed_view(table)).to_pydict()]


@pytest.mark.parametrize("action", ["commit", "deltacommit", "clean", "rollback", "compaction", "replacecommit"])
@pytest.mark.parametrize("release", RELEASES)
def test_a_rollback_of_a_completed_write_by_any_name(release: str, action: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    before = both(open_local(path))
    forge_rollback(path, newest(path).ts, action)
    age(path)
    assert run(["recover", "--apply", "--base-path", str(path)]) == 0
    assert both(open_local(path)) == before and not open_local(path).timeline.pending()


@pytest.mark.parametrize("release", RELEASES)
def test_a_rollback_of_what_the_timeline_does_not_know(release: str, tmp_path: Path) -> None:
    """As of a commit that is archived."""
    path = unpack(release, tmp_path)
    table = open_local(path)
    ts = table.timeline.completed_writes()[0].ts
    live = files_of(path, ts)
    forge_rollback(path, ts, "commit")
    for file in (path / table.timeline.folder).iterdir():
        if file.name.lstrip(".").startswith(ts):
            file.unlink()
    age(path)
    assert run(["recover", "--apply", "--base-path", str(path)]) == 0
    assert all(file.exists() for file in live) and not open_local(path).timeline.pending()


@pytest.mark.parametrize("release", RELEASES)
def test_stray_instants_beside_a_completed_write(
    release: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = unpack(release, tmp_path)
    before, folder, ts = both(open_local(path)), path / open_local(path).timeline.folder, newest(path).ts
    for state in ("requested", "inflight"):
        (folder / f"{ts}.deltacommit.{state}").touch()
    age(path)
    assert run(["rollback", "--instant", ts, "--base-path", str(path)]) in (2, 4)
    capfd.readouterr()
    assert run(["recover", "--apply", "--base-path", str(path)]) == 0
    assert "drop the plan" in capfd.readouterr().out
    assert both(open_local(path)) == before and not open_local(path).timeline.pending()


def test_a_stray_instant_of_an_archived_write(tmp_path: Path) -> None:
    """Nothing that is pending is as old: archiving stops before it."""
    for release in RELEASES:
        path = tmp_path / release
        shutil.copytree(unpack_archived(tmp_path / "made" / release) / release / "listed", path)
        table = open_local(path)
        lister = StorageLister(table.storage)
        stored = {name for partition in lister.partitions() for name in lister.files(partition)}
        ts = next(ts for ts in sorted(table.timeline.archived.completed) if any(ts in name for name in stored))
        before = both(table)
        for name in (f"{ts}.commit.requested", f"{ts}.inflight"):
            (path / table.timeline.folder / name).touch()
        age(path)
        assert run(["recover", "--apply", "--base-path", str(path)]) in (0, 7)
        assert {name for partition in lister.partitions() for name in os.listdir(path / partition)} >= stored
        assert both(open_local(path)) == before


@pytest.mark.parametrize("release", RELEASES)
def test_a_clean_of_what_a_savepoint_holds(release: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = unpack(release, tmp_path)
    table = open_local(path)
    instants = table.timeline.completed_writes()
    live = {one.base_file.path for p in table.view.partitions() for one in table.view.latest_slices(p) if one.base_file}
    found = [file for one in instants for file in path.rglob(f"*_{one.ts}.parquet") if ".hoodie" not in file.parts]
    old = [file for file in found if str(file.relative_to(path)) not in live]
    assert old
    held = {str(old[0].parent.relative_to(path)): {"savepointDataFile": [old[0].name]}}
    saved = table.timeline.layout.file_name(instants[0].ts, Action.SAVEPOINT, State.COMPLETED, LATER)
    schema = avro.parse_schema(json.dumps(SAVEPOINT), "f")
    (path / table.timeline.path(saved)).write_bytes(avro.write_container(schema, {"partitionMetadata": held}))
    plan = CleanerPlan("KEEP_LATEST_COMMITS", "", "", {str(old[0].parent.relative_to(path)): (str(old[0]),)})
    name = table.timeline.layout.file_name(LATER, Action.CLEAN, State.REQUESTED)
    (path / table.timeline.path(name)).write_bytes(encode_cleaner_plan(plan, table.config.version.release))
    age(path)
    assert run(["clean", "--base-path", str(path)]) == CheckFailed.exit_code
    assert f"the savepoint {instants[0].ts} holds it" in capfd.readouterr().err
    assert run(["recover", "--apply", "--base-path", str(path)]) == 0
    assert old[0].exists() and not open_local(path).timeline.pending({Action.CLEAN})


@pytest.mark.parametrize("kind", ["folder", *(pytest.param(one, marks=pytest.mark.deep) for one in ("pipe", "socket"))])
def test_what_is_no_lease_and_in_the_way_of_one(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / LEASE_FOLDER
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    if kind == "folder":
        os.mkdir("table.1.json")
    elif kind == "pipe":
        os.mkfifo("table.1.json")
    else:
        socket.socket(socket.AF_UNIX).bind("table.1.json")
    with (
        pytest.raises(StorageError, match=r"table\.1\.json is in the way"),
        Lease(open_storage(str(tmp_path)), "table", "schedule"),
    ):
        pass


def test_a_lease_of_a_number_without_end_counts_for_nothing(tmp_path: Path) -> None:
    folder = tmp_path / LEASE_FOLDER
    folder.mkdir(parents=True)
    (folder / f"table.{'9' * 200}.json").touch()
    with Lease(open_storage(str(tmp_path)), "table", "schedule"):
        pass
