"""Ranges of partitions that another writer left too narrow: a commit of ours leaves true ones where it changes files.

Hudi 1.0.2 takes the newest log files for the whole partition while a compaction is pending. What it writes then stands
above what the compaction writes, whose instant is older.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hudi_services
from hudi_services.metadata.records.keys import EXPRESSION_INDEX, PARTITION_STATS
from hudi_services.metadata.records.model import RecordType
from hudi_services.timeline.instant import Action, State
from hudi_services.validation.model import DifferenceKind

from . import histories
from .corruptions import Finding, metadata_of, write_own
from .metadata_tables import stats_of
from .rides import create
from .tables import open_local, unpack
from .test_expression_index import RANGES
from .test_upserts import rows, seen
from .test_validate import found
from .test_validate_expressions import ZONE, run

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")

QUIET = {"hoodie.clean.automatic": "false", "hoodie.compact.inline.max.delta.commits": "1"}
ONE_VERSION = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")
EACH_KIND = pytest.mark.parametrize("kind", KINDS)
EACH_VERSION = pytest.mark.parametrize("version", [8, 9])


def narrow(path: Path) -> None:
    """Leave the greatest values alone in all ranges of partitions, as of now, and forget the nulls."""
    metadata = metadata_of(open_local(path))
    for index in metadata.partitions:
        if index == PARTITION_STATS or index.startswith(EXPRESSION_INDEX):
            ranges = [one for one in stats_of(metadata, index) if one.type is RecordType.PARTITION_STATS]
            write_own(path, {index: [replace(one, minimum=one.maximum, null_count=0, tight=True) for one in ranges]})


def differences(path: Path) -> set[Finding]:
    return found(run(path))


def are_narrow(path: Path) -> bool:
    return {one[1] for one in differences(path)} == {DifferenceKind.NARROW_RANGE.value}


def made(path: Path, version: int, kind: str) -> hudi_services.Table:
    """Each partition has a file group with two slices, or with a log file."""
    table = create(path, table_version=version, table_type=kind)
    table.insert(rows(0, 30, ts=5), options=QUIET)
    table.upsert(rows(0, 12, "new", ts=9), options=QUIET)
    assert differences(path) == set()
    return table


def newest(table: hudi_services.Table) -> str:
    ts = table.timeline()["instant"].to_pylist()[-1]
    assert isinstance(ts, str)
    return ts


WAYS: dict[str, Callable[[hudi_services.Table], Any]] = {
    "upsert": lambda t: t.upsert(rows(12, 18, "more", ts=7), options=QUIET),
    "insert": lambda t: t.insert(rows(30, 36, ts=6), options=QUIET),
    "bulk_insert": lambda t: t.bulk_insert(rows(30, 36, ts=6), options=QUIET),
    "delete": lambda t: t.delete(rows(12, 18), options=QUIET),
    "delete all": lambda t: t.delete(rows(0, 30), options=QUIET),
    "insert_overwrite": lambda t: t.insert_overwrite(rows(30, 36, ts=6), options=QUIET),
    "insert_overwrite_table": lambda t: t.insert_overwrite_table(rows(30, 36, ts=6), options=QUIET),
    "delete_partition": lambda t: t.delete_partitions(["d0", "d1", "d2"], options=QUIET),
    "cluster": lambda t: t.cluster(options=QUIET),
    "cluster late": lambda t: t.cluster(options=QUIET, publish_late=True),
    "compact": lambda t: t.compact(options=QUIET),
    "clean": lambda t: t.clean(options=ONE_VERSION),
    "rollback": lambda t: t.rollback(newest(t), completed=True),
}


@pytest.mark.thorough
@pytest.mark.spread(6)
@EACH_VERSION
@pytest.mark.parametrize(
    ("way", "kind"), [(way, kind) for kind in KINDS for way in WAYS if (way, kind) != ("compact", "COPY_ON_WRITE")]
)
def test_each_commit_mends_what_it_finds(way: str, version: int, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "rides"
    table = made(path, version, kind)
    if (way, kind) == ("clean", "MERGE_ON_READ"):
        assert table.compact(options=QUIET).ok
    narrow(path)
    assert are_narrow(path)
    assert WAYS[way](table).ok
    assert differences(path) == set()


@pytest.mark.thorough
@EACH_VERSION
@pytest.mark.parametrize("service", ["compaction", "clustering"])
def test_a_range_that_is_younger_than_the_plan(service: str, version: int, tmp_path: Path) -> None:
    """Its records stand above those of the service."""
    path = tmp_path / "rides"
    table = made(path, version, "MERGE_ON_READ")
    plan, execute = getattr(table, f"plan_{service}"), getattr(table, f"execute_{service}")
    assert plan(options=QUIET).ok
    narrow(path)
    before = seen(path)
    assert execute(options=QUIET).ok
    assert seen(path) == before and differences(path) == set()


@EACH_VERSION
def test_a_true_range_needs_no_repair(version: int, tmp_path: Path) -> None:
    """The compaction of a plan that is older than other writes writes one delta commit, as ever."""
    path = tmp_path / "rides"
    table = made(path, version, "MERGE_ON_READ")
    assert table.plan_compaction(options=QUIET).ok
    table.upsert(rows(0, 12, "newer", ts=10), options=QUIET)
    before = len(metadata_of(open_local(path)).timeline.instants)
    assert table.execute_compaction(options=QUIET).ok
    assert len(metadata_of(open_local(path)).timeline.instants) == before + 1
    assert differences(path) == set()


@pytest.mark.thorough
def test_what_hudi_left_beside_a_pending_compaction(tmp_path: Path) -> None:
    path = histories.MadeHistory("1.0.2", "listed_pending", tmp_path).path
    assert are_narrow(path)
    table = hudi_services.open(path, engine="local")
    assert table.execute_compaction().ok
    assert differences(path) == set()


@pytest.mark.thorough
@EACH_KIND
@EACH_VERSION
def test_a_rollback_brings_no_narrow_range_back(version: int, kind: str, tmp_path: Path) -> None:
    """The commit had mended what it found; without it, what it had found is there again."""
    path = tmp_path / "rides"
    table = made(path, version, kind)
    narrow(path)
    changes: list[tuple[Callable[[], Any], Callable[[], Any]]] = [
        (lambda: table.upsert(rows(0, 18, "more", ts=10), options=QUIET), lambda: WAYS["rollback"](table)),
        (lambda: table.cluster(options=QUIET), lambda: table.undo(newest(table))),
        (lambda: table.delete_partitions(["d0"], options=QUIET), lambda: WAYS["rollback"](table)),
    ]
    for change, back in changes:
        before = seen(path)
        assert change().ok and back().ok
        assert seen(path) == before and differences(path) == set()


@EACH_VERSION
def test_beside_a_write_in_progress(version: int, tmp_path: Path) -> None:
    """Its instant is the older one: what widens the range must not hide what it adds."""
    path = tmp_path / "rides"
    table = made(path, version, "COPY_ON_WRITE")
    timeline = open_local(path).timeline
    earlier = str(int(newest(table)) + 1)
    for state in (State.REQUESTED, State.INFLIGHT):
        timeline.publish(earlier, Action.COMMIT, state)
    narrow(path)
    locked = {**QUIET, "hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
    locked["hoodie.write.lock.provider"] = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
    locked["hoodie.clean.failed.writes.policy"] = "LAZY"
    assert table.insert(rows(30, 33, ts=1), options=locked).ok
    assert differences(path) == set()
    ranges = [one for one in stats_of(metadata_of(open_local(path)), PARTITION_STATS) if one.column == "ts"]
    assert len(ranges) == 3 and not any(one.tight for one in ranges)


@pytest.mark.thorough
@pytest.mark.parametrize("release", ["1.0.2", "1.2.0"])
def test_ranges_of_expressions(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path, "expressions")
    table = hudi_services.open(path, engine="local", options=ZONE)
    narrow(path)
    assert {one[0] for one in differences(path)} == {PARTITION_STATS, *RANGES}
    assert table.cluster(options=QUIET).ok
    assert differences(path) == set()
    narrow(path)
    assert table.undo(newest(table)).ok
    assert differences(path) == set()
