"""The file cache never gives the bytes of another file, and never grows beyond its limit."""

import os
import pickle
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hudi_services.engine import LocalEngine
from hudi_services.errors import CorruptFile, NotFound, StorageError
from hudi_services.file_cache import FileCache, shared_cache
from hudi_services.jobs import clustering
from hudi_services.jobs.undo import undo
from hudi_services.limits import LARGEST_FILE
from hudi_services.runs.request import Mode
from hudi_services.snapshot import is_unchanged
from hudi_services.storage import FileInfo, Storage
from hudi_services.stores import open_storage
from hudi_services.stores.local import LocalStorage
from hudi_services.stores.options import StorageOptions
from hudi_services.timeline.instant import Action

from .counting_storage import CountingStorage
from .quick_storage import QuickStorage
from .repairs import NO_HEARTBEAT, both, repair
from .tables import open_local, request, rows, unpack

NAME = "some/file"


def listed(storage: Storage, path: str = NAME) -> FileInfo:
    found = storage.list_dir(path.rpartition("/")[0])[0]
    return next(file for file in found if file.path == path)


@pytest.fixture
def storage(tmp_path: Path) -> CountingStorage:
    (tmp_path / "some").mkdir()
    (tmp_path / NAME).write_bytes(b"first")
    return CountingStorage(str(tmp_path))


def reads(storage: CountingStorage) -> int:
    return sum(one.is_read for one in storage.requests)


def test_a_file_is_read_once(storage: CountingStorage) -> None:
    cache = FileCache()
    assert [cache.read(storage, listed(storage)) for _ in range(3)] == [b"first"] * 3
    assert [cache.read_range(storage, listed(storage), 1, 2) for _ in range(3)] == [b"ir"] * 3
    assert reads(storage) == 2
    cache.forget()
    assert (cache.read(storage, listed(storage)), cache.kept_bytes) == (b"first", 5)


def other_size(file: Path) -> None:
    file.write_bytes(b"second")


def same_size_in_its_place(file: Path) -> None:
    file.write_bytes(b"other")


def same_size_by_another_file(file: Path) -> None:
    file.with_name("new").write_bytes(b"other")
    file.with_name("new").replace(file)


def deleted_and_written_again(file: Path) -> None:
    file.unlink()
    file.write_bytes(b"other")


def same_size_and_time(file: Path) -> None:
    """As a restored backup, or a copy that keeps times."""
    before = file.stat()
    file.write_bytes(b"other")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def another_copy_with_its_time(file: Path) -> None:
    before = file.stat()
    file.with_name("new").write_bytes(b"other")
    os.utime(file.with_name("new"), ns=(before.st_atime_ns, before.st_mtime_ns))
    file.with_name("new").replace(file)


WAYS = [
    other_size,
    same_size_in_its_place,
    same_size_by_another_file,
    deleted_and_written_again,
    same_size_and_time,
    another_copy_with_its_time,
]


@pytest.mark.parametrize("change", WAYS)
def test_another_file_of_the_name_is_another_file(
    change: Callable[[Path], None], storage: CountingStorage, tmp_path: Path
) -> None:
    cache = FileCache()
    cache.read(storage, listed(storage))
    change(tmp_path / NAME)
    expected = (tmp_path / NAME).read_bytes()
    assert expected != b"first"
    assert cache.read(storage, listed(storage)) == expected
    assert cache.read_range(storage, listed(storage), 0, 3) == expected[:3]


def test_a_file_that_is_gone_is_no_file(storage: CountingStorage, tmp_path: Path) -> None:
    cache, seen = FileCache(), listed(storage)
    (tmp_path / NAME).unlink()
    with pytest.raises(NotFound):
        cache.read(storage, seen)
    (tmp_path / NAME).write_bytes(b"again")
    assert cache.read(storage, listed(storage)) == b"again"


def test_what_is_not_as_listed_is_not_kept(storage: CountingStorage, tmp_path: Path) -> None:
    """A writer that writes in place has listed less than there is by now; a reader was given less than is there."""
    cache, seen = FileCache(), listed(storage)
    (tmp_path / NAME).write_bytes(b"first and more")
    assert cache.read(storage, seen) == b"first and more"
    assert cache.kept_bytes == 0
    assert cache.read(storage, listed(storage)) == b"first and more"

    class CutOff(LocalStorage):
        def read(self, path: str, limit: int = LARGEST_FILE) -> bytes:
            return super().read(path, limit)[:-1]

    cache.forget()
    assert cache.read(CutOff(str(tmp_path)), listed(storage)) == b"first and mor"
    assert cache.read(storage, listed(storage)) == b"first and more"


def test_without_tags_nothing_is_kept(storage: CountingStorage, tmp_path: Path) -> None:
    """Modification times alone may have whole seconds."""
    cache, untagged = FileCache(), QuickStorage(str(tmp_path))
    for content in (b"first", b"other"):
        (tmp_path / NAME).write_bytes(content)
        os.utime(tmp_path / NAME, ns=(0, 0))
        assert cache.read(untagged, listed(untagged)) == content
    assert cache.kept_bytes == 0


def test_two_tables_do_not_share_files(tmp_path: Path) -> None:
    cache = FileCache()
    for name in "ab":
        (tmp_path / name).mkdir()
    storages = [open_storage(str(tmp_path / name)) for name in "ab"]
    for storage in storages:
        storage.create(NAME, storage.root[-1].encode())
    # Whatever the store says of them.
    seen = FileInfo(NAME, 1, 0, "the same tag")
    assert [cache.read(storage, seen) for storage in storages * 2] == [b"a", b"b"] * 2


def test_two_stores_do_not_share_files() -> None:
    """A bucket has another content at another endpoint."""
    url, local = "s3://bucket/table", {"aws_endpoint": "http://localhost:9000", "aws_region": "r"}
    there = [open_storage(url, StorageOptions(local)) for _ in range(2)]
    other = open_storage(url, StorageOptions(local | {"aws_endpoint": "http://localhost:9001"}))
    assert there[0].identity == there[1].identity
    assert len({one.identity for one in (*there, other, open_storage(url), open_storage(f"{url}2"))}) == 4


def test_it_is_bounded(tmp_path: Path) -> None:
    storage = CountingStorage(str(tmp_path))
    cache = FileCache(limit=100)
    for number in range(20):
        storage.create(f"some/{number}", bytes(10))
    storage.create("some/large", bytes(60))
    for number in [*range(20), *range(19)]:
        cache.read(storage, listed(storage, f"some/{number}"))
        # The first one is used again and again.
        cache.read(storage, listed(storage, "some/0"))
        assert cache.kept_bytes <= 100
    storage.forget()
    cache.read(storage, listed(storage, "some/0"))
    cache.read(storage, listed(storage, "some/18"))
    assert reads(storage) == 0
    cache.read(storage, listed(storage, "some/19"))
    assert reads(storage) == 1
    before = cache.kept_bytes
    cache.read(storage, listed(storage, "some/large"))
    assert cache.kept_bytes == before


def test_a_file_beyond_its_limit_is_refused(storage: CountingStorage) -> None:
    with pytest.raises(CorruptFile, match="a valid file of its kind never"):
        FileCache().read(storage, listed(storage), limit=4)
    assert reads(storage) == 0


def test_threads_may_use_it_together(tmp_path: Path) -> None:
    storage, cache = CountingStorage(str(tmp_path)), FileCache(limit=100)
    for number in range(20):
        storage.create(f"some/{number}", bytes([number] * 10))
    files = {int(file.name): file for file in storage.list_dir("some")[0]}
    asked = [number * 7 % 20 for number in range(2000)]
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(lambda number: cache.read(storage, files[number])[0], asked)) == asked
    assert cache.kept_bytes <= 100
    for number in range(20):
        cache.read(storage, files[number])
    assert cache.kept_bytes == 100


def test_a_thread_does_not_wait_for_the_read_of_another_one(storage: CountingStorage) -> None:
    """The other thread may read the same file while the first read of it is not finished."""
    cache, seen, original = FileCache(), listed(storage), storage.read

    def reading_it_meanwhile(path: str, limit: int = LARGEST_FILE) -> bytes:
        storage.read = original  # type: ignore[method-assign]
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(cache.read, storage, seen).result(10) == b"first"
        return original(path, limit)

    storage.read = reading_it_meanwhile  # type: ignore[method-assign]
    assert cache.read(storage, seen) == b"first"
    assert cache.kept_bytes == len(b"first")


def test_a_read_that_failed_is_tried_again(storage: CountingStorage) -> None:
    cache, seen, original = FileCache(), listed(storage), storage.read

    def failing(path: str, limit: int = LARGEST_FILE) -> bytes:
        storage.read = original  # type: ignore[method-assign]
        raise StorageError("not now")

    storage.read = failing  # type: ignore[method-assign]
    with pytest.raises(StorageError, match="not now"):
        cache.read(storage, seen)
    assert cache.read(storage, seen) == b"first"


def test_another_process_has_its_own() -> None:
    assert pickle.loads(pickle.dumps(shared_cache())) is shared_cache()


# ---- in the service of tables


def test_a_damaged_instant_is_refused_each_time_and_read_when_it_is_mended(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    instant = open_local(path).timeline.completed_writes()[-1]
    file = path / ".hoodie/timeline" / instant.file_name
    whole = file.read_bytes()
    for broken in (whole[: len(whole) // 2], bytes(len(whole)), b"Obj\x01" + b"\xff" * (len(whole) - 4)):
        file.write_bytes(broken)
        for _ in range(2):
            with pytest.raises(CorruptFile, match=instant.file_name):
                open_local(path).timeline.read_commit(instant)
        file.write_bytes(whole)
        assert open_local(path).timeline.read_commit(instant).stats


@pytest.mark.thorough
@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_an_instant_that_was_undone_and_executed_again_is_read_anew(release: str, tmp_path: Path) -> None:
    """On version 6 its completed file has the same name both times."""
    path = unpack(release, tmp_path)
    before = both(path)
    ts = clustering.schedule(request(path, Mode.SCHEDULE)).instant
    seen = []
    for _ in range(2):
        clustering.execute(request(path, Mode.EXECUTE, instant=ts), engine=LocalEngine())
        table = open_local(path)
        done = table.timeline.find(ts or "", Action.REPLACE_COMMIT)
        assert done is not None and done.is_completed
        seen.append({stat.path for stats in table.timeline.read_commit(done).stats.values() for stat in stats})
        assert rows(table, table.view).equals(before[0])
        plan = table.timeline.read_details(table.timeline.requested_name(done))
        assert undo(repair(path, "undo", ts or "", NO_HEARTBEAT)).exit_code == 0
        assert both(path) == before
        if open_local(path).timeline.find(ts or "") is None:
            # The rollback took the plan away, too: the same one is put in its place.
            clustered = table.timeline.layout.clustering_action
            table.timeline.publish(ts or "", clustered, type(done.state).REQUESTED, plan)
    assert seen[0].isdisjoint(seen[1])


def test_an_instant_of_the_same_size_is_another_look(tmp_path: Path) -> None:
    """A plan that was made before counts under the lock only when nothing happened in between."""
    path = unpack("1.2.0", tmp_path)
    table = open_local(path)
    assert is_unchanged(open_local(path), table)
    instant = table.timeline.completed_writes()[-1]
    file = path / ".hoodie/timeline" / instant.file_name
    content, times = file.read_bytes(), file.stat()
    file.unlink()
    file.write_bytes(content)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert not is_unchanged(open_local(path), table)


def test_a_table_in_the_place_of_another_one(tmp_path: Path) -> None:
    """A process may live longer than a table: names, sizes and times are those of a copy, rows are others."""
    path = unpack("1.2.0", tmp_path)
    first = both(path)
    shutil.copytree(path, tmp_path / "copy")
    clustering.schedule_and_execute(request(path, Mode.SCHEDULE_AND_EXECUTE), engine=LocalEngine())
    assert both(path) == first
    shutil.rmtree(path)
    shutil.move(tmp_path / "copy", path)
    assert both(path) == first
    assert open_local(path).timeline.last_clustering() is None or rows(open_local(path), open_local(path).view)


def test_a_grown_log_file_of_the_metadata_table_is_read_anew(tmp_path: Path) -> None:
    """Version 6 may append to a log file."""
    storage = CountingStorage(str(tmp_path))
    storage.create(".hoodie/metadata/files/.log", b"block")
    cache = FileCache()
    path = ".hoodie/metadata/files/.log"
    assert cache.read(storage, listed(storage, path)) == b"block"
    with (tmp_path / path).open("ab") as file:
        file.write(b"block")
    assert cache.read(storage, listed(storage, path)) == b"blockblock"
