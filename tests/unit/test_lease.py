import json
import os
import time
from pathlib import Path

import pytest

from hudi_services.commit import lease
from hudi_services.commit.lease import LEASE_FOLDER, Lease, LeaseState, read_lease, stored_leases
from hudi_services.commit.markers import Marker, create_marker, delete_markers, read_markers
from hudi_services.errors import ConflictError, CorruptFile, LockBusy
from hudi_services.locking.file_system import FileSystemLock, FileSystemProvider
from hudi_services.locking.protocol import LockWait, NoLock, NoLockProvider
from hudi_services.storage import Storage
from hudi_services.stores import open_storage

FOLDER = ".hoodie/.locks/hudi_services"


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(str(tmp_path))


def test_one_at_a_time(storage: Storage) -> None:
    with Lease(storage, "table", "schedule"):
        with pytest.raises(LockBusy, match="schedule is at work since"), Lease(storage, "table", "schedule", 0.1):
            pass
        with pytest.raises(LockBusy), Lease(storage, "table", "commit", 0.3):
            pass
        with Lease(storage, "other", "schedule"):
            pass
    with Lease(storage, "table", "schedule") as again:
        assert again.previous is not None and not again.previous.held
    assert [file.name for file in storage.list_dir(FOLDER)[0] if file.name.startswith("table")] == ["table.2.json"]


def test_a_dead_process_does_not_hold(storage: Storage) -> None:
    with Lease(storage, "table", "schedule"):
        held = json.loads(storage.read(f"{FOLDER}/table.1.json"))
    for change, free in [
        ({"pid": 2**22 + 1}, True),
        ({"validUntil": 1}, True),
        ({"host": "elsewhere", "pid": 2**22 + 1}, False),
        ({"pid": os.getppid()}, False),
        ({"owner": "a lease that died in this process"}, True),
    ]:
        storage.put(f"{FOLDER}/table.9.json", json.dumps({**held, "validUntil": 1 << 60, **change}).encode())
        if free:
            with Lease(storage, "table", "schedule"):
                pass
            storage.delete(f"{FOLDER}/table.10.json")
        else:
            with pytest.raises(LockBusy), Lease(storage, "table", "schedule"):
                pass


STRANGE = [
    "null",
    "[]",
    "7",
    "",
    "\xff",
    "[" * 100_000,
    '{"validUntil": "x"}',
    '{"validUntil": null}',
    '{"validUntil": 1e999}',
    '{"validUntil": 99999999999999999}',
    '{"validUntil": %d, "pid": null, "host": 5}',
    '{"validUntil": %d, "pid": 1e30, "host": "here"}',
    '{"validUntil": %d, "pid": 100000000000000000000000000000, "host": "here"}',
    '{"validUntil": %d, "pid": -1, "host": "here"}',
    '{"validUntil": %d, "pid": "1", "host": "here", "action": {"a": []}}',
]


@pytest.mark.parametrize("content", STRANGE, ids=range(len(STRANGE)))
def test_a_strange_lease_holds_for_a_minute_at_most(content: str, storage: Storage, tmp_path: Path) -> None:
    """Whoever wrote it: it is no error, and what it says of the future counts no longer than any other."""
    content = content.replace('"here"', json.dumps(lease._machine()))
    path = tmp_path / f"{LEASE_FOLDER}/table.1.json"
    path.parent.mkdir(parents=True)
    soon = int(time.time() * 1000) + 30_000
    path.write_bytes((content % soon if "%d" in content else content).encode("latin-1"))
    os.utime(path, (time.time() - 120, time.time() - 120))
    held = "%d" in content and "10000000" not in content
    assert (read_lease(storage, "table") or LeaseState("", 0)).held is held
    if held:
        with pytest.raises(LockBusy), Lease(storage, "table", "schedule"):
            pass
        path.write_text(content % (int(time.time() * 1000) - 1))
    with Lease(storage, "table", "schedule"):
        pass


def test_a_lease_that_is_valid_for_years_holds_while_it_is_renewed(storage: Storage, tmp_path: Path) -> None:
    path = tmp_path / f"{LEASE_FOLDER}/table.1.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"validUntil": 99999999999999999, "host": "another", "pid": 1}')
    for age, held in ((0, True), (30, True), (90, False), (-3600, False)):
        os.utime(path, (time.time() - age, time.time() - age))
        assert (read_lease(storage, "table") or LeaseState("", 0)).held is held, age


def test_a_lost_lease_is_noticed(storage: Storage) -> None:
    with Lease(storage, "table", "commit") as lease:
        lease.check()
        storage.put(f"{FOLDER}/table.2.json", b"{}")
        with pytest.raises(ConflictError, match="took over"):
            lease.check()


def test_a_number_of_the_past_does_not_count(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped between its look and its file, while others came and went: their last number is the higher one."""
    with Lease(storage, "table", "schedule"):
        held = json.loads(storage.read(f"{FOLDER}/table.1.json"))
    storage.delete(f"{FOLDER}/table.1.json")
    create = storage.create

    def late(path: str, data: bytes) -> None:
        if path.endswith("table.1.json"):
            storage.put(f"{FOLDER}/table.3.json", json.dumps({**held, "pid": os.getppid()}).encode())
        create(path, data)

    monkeypatch.setattr(storage, "create", late)
    with pytest.raises(LockBusy), Lease(storage, "table", "schedule"):
        pass
    assert [file.name for file in storage.list_dir(FOLDER)[0]] == ["table.3.json"]


def test_numbers_that_began_again_do_not_count(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped between its look at a dead lease and its file, while one took it and forgot it, and another began."""
    with Lease(storage, "table", "schedule"):
        pass
    create, others = storage.create, []

    def late(path: str, data: bytes) -> None:
        if path.endswith("table.2.json") and not others:
            others.append(Lease(storage, "table", "execute"))
            with Lease(storage, "table", "clean") as forgotten:
                forgotten.forget()
            others[0].__enter__()
        create(path, data)

    monkeypatch.setattr(storage, "create", late)
    with pytest.raises(LockBusy, match="execute is at work"), Lease(storage, "table", "schedule"):
        pass
    others[0].check()
    others[0].__exit__(None, None, None)
    assert [file.name for file in storage.list_dir(FOLDER)[0]] == ["table.1.json"]


def test_whoever_forgets_leaves_the_lease_of_its_successor(storage: Storage) -> None:
    """It was stopped for so long that another took the lease over."""
    with Lease(storage, "table", "clean") as slow:
        slow.forget()
        held = json.loads(storage.read(f"{FOLDER}/table.1.json"))
        storage.put(f"{FOLDER}/table.1.json", json.dumps({**held, "validUntil": 1}).encode())
        successor = Lease(storage, "table", "execute")
        successor.__enter__()
    successor.check()
    with pytest.raises(LockBusy), Lease(storage, "table", "schedule"):
        pass
    successor.__exit__(None, None, None)


def test_forgotten_guards_leave_nothing(storage: Storage) -> None:
    with Lease(storage, "clustering-1", "execute") as lease:
        assert lease.previous is None
        lease.forget()
    assert storage.list_dir(FOLDER)[0] == []


def test_lock_file_of_hudi(storage: Storage) -> None:
    wait = LockWait(200, 20)
    with FileSystemProvider().lock(storage, wait):
        held = storage.head(".hoodie/lock")
        assert held is not None and b"hudi_services, process" in storage.read(".hoodie/lock")
        with (
            pytest.raises(LockBusy, match=r"lock is held by another writer \(hudi_services"),
            FileSystemProvider().lock(storage, wait),
        ):
            pass
    assert storage.head(".hoodie/lock") is None


def test_expired_lock_file_is_taken_over(storage: Storage, tmp_path: Path) -> None:
    storage.create(".hoodie/lock", b"")
    os.utime(tmp_path / ".hoodie" / "lock", (0, 0))
    with pytest.raises(LockBusy), FileSystemLock(storage, ".hoodie/lock", 0, LockWait(50, 10)):
        pass
    with FileSystemLock(storage, ".hoodie/lock", 5, LockWait(50, 10)):
        pass


def test_single_writer_mode_takes_no_lock(storage: Storage) -> None:
    with NoLockProvider().lock(storage, LockWait()) as lock:
        assert isinstance(lock, NoLock)
    assert storage.list_tree("") == []


def test_direct_markers(storage: Storage) -> None:
    create_marker(storage, "7", "day=1/a b/é_0-0-0_7.parquet")
    create_marker(storage, "7", "x_0-0-0_7.parquet")
    create_marker(storage, "7", "x_0-0-0_7.parquet")
    assert read_markers(storage, "7") == [
        Marker("day=1/a b/é_0-0-0_7.parquet", "CREATE"),
        Marker("x_0-0-0_7.parquet", "CREATE"),
    ]
    delete_markers(storage, "7")
    assert read_markers(storage, "7") == []


def test_markers_of_the_timeline_server(storage: Storage) -> None:
    storage.create(".hoodie/.temp/7/MARKERS.type", b"TIMELINE_SERVER_BASED")
    storage.create(".hoodie/.temp/7/MARKERS0", b"p/a_0-0-0_7.parquet.marker.CREATE\n")
    storage.create(".hoodie/.temp/7/MARKERS3", b"p/b_0-0-0_7.parquet.marker.MERGE\nq/c_0-0-0_7.parquet.marker.CREATE\n")
    assert [(m.partition, m.file_name, m.kind) for m in read_markers(storage, "7")] == [
        ("p", "a_0-0-0_7.parquet", "CREATE"),
        ("p", "b_0-0-0_7.parquet", "MERGE"),
        ("q", "c_0-0-0_7.parquet", "CREATE"),
    ]


def test_checksum_twins_of_hadoop_are_no_markers(storage: Storage) -> None:
    storage.create(".hoodie/.temp/7/p/a_0-0-0_7.parquet.marker.CREATE", b"")
    storage.create(".hoodie/.temp/7/p/.a_0-0-0_7.parquet.marker.CREATE.crc", b"crc")
    assert read_markers(storage, "7") == [Marker("p/a_0-0-0_7.parquet", "CREATE")]


def test_markers_that_are_no_text(storage: Storage) -> None:
    storage.create(".hoodie/.temp/7/MARKERS.type", b"TIMELINE_SERVER_BASED")
    storage.create(".hoodie/.temp/7/MARKERS0", b"\xff\xfe")
    with pytest.raises(CorruptFile, match="MARKERS0 holds no markers"):
        read_markers(storage, "7")


def test_a_lease_that_is_confirmed_too_late_is_lost(storage: Storage) -> None:
    """Of a listing from before: one took the lease and forgot it, so that numbers began again, and another has it."""
    with Lease(storage, "clustering-1", "execute"):
        pass
    ahead = stored_leases(storage)
    with Lease(storage, "clustering-1", "take back") as forgotten:
        forgotten.forget()
    with Lease(storage, "clustering-1", "another") as other:
        lease._foreseen[storage.identity] = ahead
        with Lease(storage, "clustering-1", "execute", confirmed=False) as late:
            with pytest.raises(ConflictError, match="took over"):
                late.check_beside(stored_leases(storage))
            other.check()
            storage.put(f"{FOLDER}/clustering-1.2.json", b"of one who came later")
            with pytest.raises(ConflictError, match="took over"):
                late.check()
    assert storage.read(f"{FOLDER}/clustering-1.2.json") == b"of one who came later"
