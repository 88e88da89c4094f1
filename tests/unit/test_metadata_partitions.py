"""Partitions of the metadata table that Hudi dropped and built anew: what is gone on purpose is not missed, a file that
is lost is. The tables are those of scripts/make_fixture_metadata_partitions.py."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hudi_services.codecs.compaction_plan import CompactionOperation, CompactionPlan, encode_compaction_plan
from hudi_services.commit.times import Times
from hudi_services.engine import LocalEngine
from hudi_services.errors import CorruptFile, NeedsRecovery
from hudi_services.file_names import PARTITION_METAFILE
from hudi_services.jobs import clustering, undo, validate
from hudi_services.metadata.metadata_table import MetadataTable
from hudi_services.model import FileSlice
from hudi_services.options import resolve
from hudi_services.runs.report import RunState
from hudi_services.runs.request import Mode, UndoRequest, ValidateRequest
from hudi_services.table.partition_metafile import metafile
from hudi_services.timeline.instant import Action
from hudi_services.timeline.instant import State as Instants

from .metadata_tables import TABLES_OF_PARTITIONS, compact, open_metadata, unpack_partitions
from .tables import both_views, open_local, request

QUICK = {"hoodie.time.generator.max_expected_clock_skew_ms": "0"}


def as_written(path: Path) -> None:
    """The files keep the times that Hudi wrote them at."""


def in_order_of_names(path: Path) -> None:
    """As `cp -r` leaves them, which lists a folder in an order of its own."""
    _touched(path, reverse=False)


def in_reverse_order(path: Path) -> None:
    _touched(path, reverse=True)


def _touched(path: Path, *, reverse: bool) -> None:
    files = sorted((file for file in path.rglob("*") if file.is_file()), reverse=reverse)
    for number, file in enumerate(files):
        os.utime(file, (1_800_000_000 + number, 1_800_000_000 + number))


def at_one_time(path: Path) -> None:
    for file in path.rglob("*"):
        os.utime(file, (1_800_000_000, 1_800_000_000))


COPIES: dict[str, Callable[[Path], None]] = {
    one.__name__: one for one in (as_written, in_order_of_names, in_reverse_order, at_one_time)
}


@pytest.mark.thorough
@pytest.mark.spread(4)
@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("kind", TABLES_OF_PARTITIONS)
def test_a_table_with_partitions_built_anew_is_whole(kind: str, copy: str, tmp_path: Path) -> None:
    path = unpack_partitions(kind, tmp_path)
    COPIES[copy](path)
    assert validated(path) is RunState.COMPLETED
    before, listed = both_views(path)
    assert before.equals(listed)
    clustering.schedule(request(path, Mode.SCHEDULE))
    done = clustering.execute(request(path, Mode.EXECUTE), engine=LocalEngine())
    assert done.state is RunState.COMPLETED and done.instant is not None
    assert validated(path) is RunState.COMPLETED
    undo.undo(UndoRequest(base_path=str(path), options=resolve([("test", QUICK)]), instant=done.instant))
    assert validated(path) is RunState.COMPLETED
    after, listed = both_views(path)
    assert after.equals(before) and listed.equals(before)


def validated(path: Path) -> RunState:
    return validate.validate(ValidateRequest(base_path=str(path), options=resolve([("test", QUICK)]))).state


def nothing(path: Path) -> None:
    """Nothing has happened since."""


def clean_all(path: Path) -> None:
    """A clean has deleted all but the newest slices."""
    metadata = open_metadata(path)
    for partition in metadata.partitions:
        kept = {name for group in metadata.file_groups(partition) for name in names_of(group)}
        for name in metadata.stored_files(partition):
            if not name.startswith(".hoodie") and name not in kept:
                (path / metadata.path(partition, name)).unlink()


def compact_all(path: Path) -> None:
    """Clusterings, a compaction of the metadata table, one more, and a clean."""
    cluster(path)
    compact(path)
    cluster(path)
    clean_all(path)


def cluster(path: Path) -> None:
    options = {"hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true"}
    clustering.schedule_and_execute(request(path, Mode.SCHEDULE_AND_EXECUTE, options), engine=LocalEngine())


def plan_compaction(path: Path) -> None:
    """A compaction of the metadata table is planned, and pending; a clustering follows, and a clean."""
    metadata = open_metadata(path)
    groups = [group for partition in metadata.partitions for group in metadata.file_groups(partition)]
    plan = CompactionPlan(tuple(CompactionOperation.of(group) for group in groups if group.log_files))
    newest = metadata.timeline.completed({Action.DELTA_COMMIT})[-1].ts
    ts = metadata.log_naming.derived(newest, "001", Times(open_local(path), 0).next)
    data = encode_compaction_plan(plan, metadata.config.version.release)
    metadata.timeline.publish(ts, Action.COMPACTION, Instants.REQUESTED, data)
    cluster(path)
    clean_all(path)


def metafiles_anew(path: Path) -> None:
    """The partition metafiles were lost, and a write of today has made them again."""
    metadata = open_metadata(path)
    newest = metadata.timeline.completed({Action.DELTA_COMMIT})[-1].ts
    for partition in metadata.partitions:
        (path / metadata.path(partition, PARTITION_METAFILE)).write_bytes(metafile(newest, depth=1))


SINCE: dict[str, Callable[[Path], None]] = {
    one.__name__: one for one in (nothing, clean_all, compact_all, plan_compaction, metafiles_anew)
}


def losses(metadata: MetadataTable) -> Iterator[tuple[str, set[str]]]:
    """Files that may be lost together, by partition: one that readers need, those of a write, those of a group."""
    for partition in metadata.partitions:
        groups = metadata.file_groups(partition)
        needed = {name for group in groups for name in names_of(group)}
        written: dict[str, set[str]] = {}
        for write in metadata.timeline.completed({Action.COMMIT, Action.DELTA_COMMIT}):
            if write.action is Action.DELTA_COMMIT and not metadata.blocks.counts(write.ts):
                # The empty one of a downgrade: readers of version 6 skip it.
                continue
            stats = metadata.timeline.read_commit(write).stats.get(partition, ())
            written[write.ts] = {stat.path.rpartition("/")[2] for stat in stats} & {*metadata.stored_files(partition)}
        known = {name for names in written.values() for name in names} & needed
        yield from ((partition, {name}) for name in known)
        yield from ((partition, names) for names in written.values() if names & needed)
        yield from ((partition, names_of(group)) for group in groups if names_of(group) & known)


def names_of(group: FileSlice) -> set[str]:
    return {*filter(None, (group.base_name, *(log.name for log in group.log_files)))}


@contextmanager
def lost(path: Path, metadata: MetadataTable, partition: str, names: set[str]) -> Iterator[None]:
    files = {path / metadata.path(partition, name) for name in names}
    kept = {file: file.read_bytes() for file in files}
    for file in files:
        file.unlink()
    yield
    for file, data in kept.items():
        file.write_bytes(data)


@pytest.mark.spread(10)
@pytest.mark.parametrize("copy", ["as_written", "at_one_time"])
@pytest.mark.parametrize("since", SINCE)
@pytest.mark.parametrize("kind", TABLES_OF_PARTITIONS)
def test_a_file_that_is_lost_is_missed(kind: str, since: str, copy: str, tmp_path: Path) -> None:
    path = unpack_partitions(kind, tmp_path)
    SINCE[since](path)
    COPIES[copy](path)
    metadata = open_metadata(path)
    cases = list(losses(metadata))
    assert {partition for partition, _ in cases} == {*metadata.partitions}
    silent = []
    for partition, names in cases:
        with lost(path, metadata, partition, names):
            try:
                open_metadata(path).file_groups(partition)
            except (CorruptFile, NeedsRecovery):
                continue
            silent.append((partition, names))
    assert silent == []
