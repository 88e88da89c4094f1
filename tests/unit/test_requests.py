"""The storage requests of one execute: it reads no immutable file twice, and sends requests under the lock together."""

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hudi_services.engine import LocalEngine
from hudi_services.file_cache import shared_cache
from hudi_services.jobs import clustering
from hudi_services.jobs.validate import validate
from hudi_services.metadata.file_groups.reader import FileGroupReader, PartitionReader
from hudi_services.options import resolve
from hudi_services.runs.report import RunState as Outcome
from hudi_services.runs.request import Mode, ValidateRequest

from .counting_storage import CountingStorage, Request, kind_of, reads_by_kind, repeated, rounds
from .quiet import Quiet
from .tables import request, unpack

pytestmark = pytest.mark.threads
_COMPACTED_AFTER = 10
"""Delta commits; so many clusterings bring the metadata table to where it was."""


def cluster(path: Path, times: int = 1) -> None:
    for _ in range(times):
        done = clustering.schedule_and_execute(request(path, Mode.SCHEDULE_AND_EXECUTE), engine=LocalEngine())
        assert done.state is Outcome.COMPLETED


NO_COMPACTION = {"hoodie.metadata.compact.max.delta.commits": "100"}
"""Its tasks read the files that they merge for themselves, as they are other processes."""


def executed(path: Path, delay: float | Quiet = 0.0) -> list[Request]:
    """The requests of an execute, as a new process makes it."""
    ts = clustering.schedule(request(path, Mode.SCHEDULE)).instant
    storage = CountingStorage(str(path), delay)
    shared_cache().forget()
    done = clustering.execute(request(path, Mode.EXECUTE, NO_COMPACTION, instant=ts), storage, LocalEngine())
    assert done.state is Outcome.COMPLETED
    return storage.requests


def reads(requests: list[Request]) -> int:
    return sum(one.is_read for one in requests)


@pytest.mark.parametrize("release", ["0.15.0", "1.0.2", "1.2.0"])
def test_no_immutable_object_is_read_twice(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    cluster(path)
    assert not repeated(executed(path))


def test_no_immutable_object_is_read_twice_when_plan_and_execution_are_one_run(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    cluster(path)
    storage = CountingStorage(str(path))
    shared_cache().forget()
    clustering.schedule_and_execute(request(path, Mode.SCHEDULE_AND_EXECUTE, NO_COMPACTION), storage, LocalEngine())
    # The plan needs the footers, and so do the tasks, which are other processes.
    assert {kind_of(one) for one in repeated(storage.requests)} <= {"base file"}


@pytest.mark.thorough
def test_reads_grow_by_one_for_each_earlier_clustering(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    cluster(path, _COMPACTED_AFTER)
    before = executed(path)
    cluster(path, _COMPACTED_AFTER - 1)
    after = executed(path)
    growth = reads_by_kind(after)
    growth.subtract(reads_by_kind(before))
    # Each replacecommit tells which file groups are hidden, and each compaction of the metadata table which base files
    # it must have; the clean that is due then reads its plan, and the delta commit before it.
    assert +growth == Counter({"instant": _COMPACTED_AFTER, "metadata table: instant": 3})


@pytest.mark.thorough
def test_under_the_lock_is_asked_at_once(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    cluster(path)
    with Quiet().watching() as quiet:
        requests = executed(path, quiet)
    locked = [one for one in requests if one.locked]
    # The lock is taken twice. What is left follows one another: each look at the table (four rounds), the states of
    # the delta commit and of the commit, and a look at the leases before each step that cannot be taken back.
    assert rounds(locked) <= 50
    assert len(locked) <= 120
    # All log files of a partition of the metadata table come in one round, and before the lock is taken.
    logs = [one for one in requests if one.kind == "metadata table: log file" and one.is_read]
    assert len(logs) > 5
    assert rounds(logs) <= 3
    assert not any(one.locked for one in logs)
    written = [one for one in locked if one.method == "create" and kind_of(one.path) == "metadata table: log file"]
    assert len(written) >= 4
    assert rounds(written) == 1


@pytest.mark.thorough
def test_many_new_files_take_no_more_rounds_than_few(tmp_path: Path) -> None:
    """The listings of their partitions are one round, and tell of all of them."""
    path = unpack("1.2.0", tmp_path)
    cluster(path)
    with Quiet().watching() as quiet:
        requests = executed(path, quiet)
    assert not [one for one in requests if one.locked and one.method == "head" and one.kind == "base file"]
    partitions = [one for one in requests if one.locked and one.method == "list" and one.path.startswith("day=")]
    assert len({one.path for one in partitions}) >= 2
    assert rounds(partitions) == len(partitions) / len({one.path for one in partitions})


FRESH: dict[str, Callable[[Request], bool]] = {
    "the table's properties": lambda one: one.method == "list" and one.path == ".hoodie",
    "the timeline": lambda one: one.method == "list" and one.path == ".hoodie/timeline",
    "the metadata table's timeline": lambda one: (
        (one.method, one.path) == ("list", ".hoodie/metadata/.hoodie/timeline")
    ),
    "the partitions": lambda one: one.method == "list" and one.path.startswith("day="),
    "the leases": lambda one: one.method == "list" and one.path == ".hoodie/.locks/hudi_services",
}


@pytest.mark.thorough
@pytest.mark.parametrize("what", FRESH)
def test_what_may_change_is_asked_anew_each_time_that_the_lock_is_taken(what: str, tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    locked = [one for one in executed(path) if one.locked]
    taken = [i for i, one in enumerate(locked) if one.method == "create" and "/table." in one.path]
    assert len(taken) == 2
    for section in (locked[taken[0] : taken[1]], locked[taken[1] :]):
        assert any(map(FRESH[what], section)), what


def test_new_files_are_looked_for_and_states_before_are_looked_at(tmp_path: Path) -> None:
    """Right before the step that cannot be taken back."""
    path = unpack("1.2.0", tmp_path)
    requests = executed(path)
    last = max(i for i, one in enumerate(requests) if one.method == "create" and one.path.endswith(".replacecommit"))
    looks = {(one.method, one.path.rpartition("/")[2].rpartition(".")[2]) for one in requests[last - 3 : last]}
    assert looks == {("head", "inflight"), ("list", "hudi_services"), ("list", "metadata")}
    new = {one.path for one in requests if one.method == "write"}
    taken = max(i for i, one in enumerate(requests[:last]) if one.method == "create" and "/table." in one.path)
    listed = {one.path for one in requests[taken:last] if one.locked and one.method == "list"}
    assert new and {path_of_new.rpartition("/")[0] for path_of_new in new} <= listed
    # The check reads storage, whatever is kept.
    for path_of_new in new:
        assert any(one.is_read and one.path == path_of_new for one in requests)


def test_readers_do_not_wait_for_each_other() -> None:
    """A reader opens its groups in other threads, which may need another reader."""
    other = PartitionReader(list)

    def open_groups() -> Sequence[FileGroupReader]:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(lambda: other.groups).result(10)

    assert PartitionReader(open_groups).groups == []


def test_a_validation_reads_nothing_twice(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    cluster(path)
    shared_cache().forget()
    storage = CountingStorage(str(path))
    report = validate(ValidateRequest(base_path=str(path), options=resolve([])), storage)
    assert report.exit_code == 0
    assert not repeated(storage.requests)
