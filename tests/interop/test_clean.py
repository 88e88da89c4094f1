"""`clean` on tables of real Hudi: what goes is what Hudi's own clean deletes, and Hudi lives on with it."""

import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import fastavro
import pytest

from ..tiers import DEEP
from . import layout, ours
from .conftest import Tables
from .mdt_check import check_metadata
from .peer import Peer
from .pristine import Pristine
from .reading import Reading, newer

COMMITS, VERSIONS = "KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS"
_OLD_NAMES = {COMMITS: "hoodie.cleaner.commits.retained", VERSIONS: "hoodie.cleaner.fileversions.retained"}


def _files(path: Path) -> set[str]:
    """Data files and the folders of partitions, by path."""
    found = (f.relative_to(path) for f in path.rglob("*") if not f.name.endswith(".crc"))
    return {str(f) for f in found if ".hoodie" not in f.parts and f.name != ".hoodie_partition_metadata"}


def _copy(path: Path, name: str) -> Path:
    copy = path.parent / name
    shutil.copytree(path, copy)
    return copy


def _clean(path: Path, retain: int, policy: str) -> ours.Run:
    return ours.run("clean", path, options={"hoodie.cleaner.policy": policy, _OLD_NAMES[policy]: str(retain)})


def _same_as_hudi(peer: Peer, path: Path, retain: int, policy: str, label: str, before: Reading | None = None) -> Path:
    """Clean one copy with Hudi and one with ours; gives ours. `before` is what the readers see, when that is known."""
    theirs, mine = _copy(path, f"theirs-{label}"), _copy(path, f"ours-{label}")
    before = before or Reading.of(peer, mine)
    planned = ours.run("clean", mine, "--dry-run", options={"hoodie.clean.policy": policy, _NEW[policy]: str(retain)})
    assert _files(mine) == _files(path)
    peer.clean(theirs, retain=retain, policy=policy)
    run = _clean(mine, retain, policy).ok()
    # When a dropped partition has no live file, Hudi deletes its folder, and with it what a savepoint holds there.
    taken = {name for name in _only_files(path) - _only_files(theirs) if Path(name).name in _held(path)}
    assert _only_files(mine) == _only_files(theirs) | taken, label
    deleted = len(_only_files(path)) - len(_only_files(mine))
    assert run.report["files"]["in"] == deleted == planned.report["files"]["in"]
    assert run.report["bytes"] == planned.report["bytes"]
    assert before.differences(Reading.of(peer, mine)) == [], label
    assert check_metadata(peer, mine) == [], label
    if not taken:
        assert _files(mine) == _files(theirs), label
        assert _cleans(mine) == _cleans(theirs), label
    return mine


_NEW = {COMMITS: "hoodie.clean.commits.retained", VERSIONS: "hoodie.clean.fileversions.retained"}


def _only_files(path: Path) -> set[str]:
    return {name for name in _files(path) if (path / name).is_file()}


def _names(path: Path) -> set[str]:
    return {Path(name).name for name in _only_files(path)}


def _cleans(path: Path) -> list[dict[str, Any]]:
    """Plans and results, without times, full paths and durations."""
    return [_comparable(_record(file)) for kind in (".clean.requested", ".clean") for file in _instants(path, kind)]


def _held(path: Path) -> set[str]:
    """The names of the files that savepoints hold."""
    held = (_record(file)["partitionMetadata"].values() for file in _instants(path, ".savepoint"))
    return {name for partitions in held for one in partitions for name in one["savepointDataFile"]}


def _instants(path: Path, kind: str) -> list[Path]:
    return sorted(layout.timeline(path).glob(f"*{kind}"))


def _record(file: Path) -> dict[str, Any]:
    with file.open("rb") as content:
        record = next(iter(fastavro.reader(content)))
    assert isinstance(record, dict)
    return record


def _comparable(tree: Mapping[str, Any]) -> dict[str, Any]:
    plain = {k: v for k, v in tree.items() if k not in ("startCleanTime", "timeTakenInMillis")}
    files = plain.get("filePathsToBeDeletedPerPartition")
    if files is not None:
        plain["filePathsToBeDeletedPerPartition"] = {
            partition: sorted(one["filePath"].rpartition("/")[2] for one in infos) for partition, infos in files.items()
        }
    for done in (plain.get("partitionMetadata") or {}).values():
        done["deletePathPatterns"] = sorted(done["deletePathPatterns"])
        done["successDeleteFiles"] = sorted(done["successDeleteFiles"])
    return plain


@pytest.mark.deep("0.15.0", "1.2.0")
def test_the_same_files_go(peer: Peer, known: Pristine, table: Tables) -> None:
    path, before = table("past"), known.reading("past")
    peer.cluster(path, "schedule")
    _same_as_hudi(peer, path, 3, COMMITS, "pending-clustering", before)
    for versions in (1, 2) if DEEP else (1,):
        _same_as_hudi(peer, path, versions, VERSIONS, f"versions-{versions}", before)


@pytest.mark.deep
def test_one_clean_after_the_other(peer: Peer, known: Pristine, table: Tables) -> None:
    """Incremental: only partitions that changed; the removal of a savepoint frees what it held."""
    path = _same_as_hudi(peer, table("past"), 3, COMMITS, "first", known.reading("past"))
    rows = known.rows("past").sort_by("id")
    peer.cluster(path)
    for _ in range(3):
        peer.upsert(path, newer(rows.slice(0, 4)))
    path = _same_as_hudi(peer, path, 2, COMMITS, "second")
    held = next(i.requested for i in layout.completed(path) if i.action == "savepoint")
    peer.procedure(path, "delete_savepoint", f"instant_time => '{held}'")
    peer.upsert(path, newer(rows.slice(0, 4)))
    path = _same_as_hudi(peer, path, 1, COMMITS, "third")
    idle = ours.run("clean", path)
    assert (idle.code, idle.report["state"]) == (0, "idle")
    peer.upsert(path, newer(rows.slice(5, 4)))
    peer.cluster(path)
    peer.clean(path)
    assert check_metadata(peer, path) == []


def test_change_data_goes_with_its_slice(peer: Peer, known: Pristine, table: Tables) -> None:
    _same_as_hudi(peer, table("changes"), 2, COMMITS, "changes", known.reading("changes"))


@pytest.mark.deep
def test_without_a_metadata_table(peer: Peer, known: Pristine, table: Tables) -> None:
    path, rows = table("no_mdt"), known.rows("no_mdt").sort_by("id")
    for _ in range(3):
        peer.upsert(path, newer(rows.slice(0, 40)))
    _same_as_hudi(peer, path, 1, COMMITS, "no-mdt")


@pytest.mark.deep
def test_each_finishes_what_the_other_began(peer: Peer, known: Pristine, table: Tables) -> None:
    """Killed between the plan and the end."""
    path, before = table("past"), known.reading("past")
    _same_as_hudi(peer, path, 2, COMMITS, "1", before)
    held = _held(path)
    for begun, finish in (("theirs", "ours"), ("ours", "theirs")):
        for state in ("requested", "inflight"):
            whole = path.parent / f"{begun}-1"
            copy = _copy(path, f"{state[0]}{finish}-1"[: len(whole.name)].ljust(len(whole.name), "_"))
            _leave_half(whole, copy, state)
            if finish == "ours":
                assert before.differences(Reading.of(peer, copy)) == [], state
                _clean(copy, 2, COMMITS).ok()
            else:
                peer.clean(copy, retain=2)
            assert _names(copy) - held == _names(whole) - held, (finish, state)
            assert finish == "theirs" or held <= _names(copy)
            assert before.differences(Reading.of(peer, copy)) == [], (finish, state)
            assert check_metadata(peer, copy) == [], (finish, state)
            assert layout.pending(copy) == []


def _leave_half(whole: Path, copy: Path, state: str) -> None:
    """Give `copy` the clean of `whole` up to this state: the plan, and with inflight half of the files gone."""
    requested = max(_instants(whole, ".clean.requested"))
    begun = copy / requested.relative_to(whole)
    # Full paths of another table: of the same length, so that the bytes stay Avro.
    assert len(str(whole)) == len(str(copy))
    begun.write_bytes(requested.read_bytes().replace(str(whole).encode(), str(copy).encode()))
    if state == "inflight":
        inflight = begun.with_name(begun.name.replace("requested", "inflight"))
        inflight.write_bytes(begun.read_bytes())
        # Without a sign of life for longer than the twenty minutes for which a clean counts as alive.
        os.utime(inflight, (time.time() - 1300,) * 2)
        gone = sorted(name for name in _only_files(copy) - _only_files(whole) if Path(name).name not in _held(copy))
        for name in gone[::2]:
            (copy / name).unlink()


@pytest.mark.releases("1.2.0")
def test_retention_by_hours(peer: Peer, known: Pristine) -> None:
    """The earliest commit to retain, as Hudi's own function gives it at any time."""
    path = known.table("past")
    source = """
manager = jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder()
conf = jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(spark.sparkContext._jsc.hadoopConfiguration())
client = manager.setConf(conf).setBasePath(path).build()
timeline = client.getActiveTimeline().getCommitsAndCompactionTimeline()
policy = jvm.org.apache.hudi.common.model.HoodieCleaningPolicy.KEEP_LATEST_BY_HOURS
zone = client.getTableConfig().getTimelineTimezone()
empty = jvm.org.apache.hudi.common.util.Option.empty()
result = []
for moment in moments:
    at = jvm.java.time.Instant.ofEpochMilli(moment)
    found = jvm.org.apache.hudi.common.util.CleanerUtils.getEarliestCommitToRetain(
        timeline, policy, 1, at, hours, zone, empty, 1 << 62
    )
    result.append(found.get().requestedTime() if found.isPresent() else None)
"""
    from datetime import datetime, timezone

    from hudi_services.cleaning.retention import Policy, Retention, horizon

    from ..unit.tables import open_local

    timeline = open_local(path).timeline
    hour = 3_600_000
    starts = sorted(timeline.begun.values())
    moments = [start + 5 * hour + delta for start in starts[::3] for delta in (-5000, 0, 5000)]
    expected = peer.eval(source, path=str(path), moments=moments, hours=5)
    for moment, ts in zip(moments, expected, strict=True):
        now = datetime.fromtimestamp(moment / 1000, timezone.utc)
        found = horizon(timeline, Retention(Policy.HOURS, hours=5), now, "").earliest
        assert (found.ts if found else None) == ts
    assert len(set(expected)) > 3
