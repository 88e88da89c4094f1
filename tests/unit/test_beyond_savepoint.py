"""hoodie.archive.beyond.savepoint: what readers do not see for now is not lost, whatever runs meanwhile.

Real Hudi of all three releases: tests/interop/test_beyond_savepoint.py.
"""

from pathlib import Path

import pytest

from hudi_services.clustering.eligibility import ClusteringReason
from hudi_services.engine import LocalEngine
from hudi_services.errors import NothingToDo
from hudi_services.file_records.doubts import Doubt
from hudi_services.jobs import clustering
from hudi_services.jobs.orphan_files import manage_orphan_files
from hudi_services.options import resolve
from hudi_services.runs.request import Mode, OrphanFilesMode, OrphanFilesRequest
from hudi_services.timeline.instant import Action

from .metadata_tables import compact
from .repairs import P, both
from .tables import RELEASES, open_local, request, rows, unpack
from .test_orphan_files import write_savepoint
from .test_validate import clean_all, found, run, unsure

_ELSEWHERE = {"hoodie.clustering.plan.strategy.partition.selected": "day=2026-01-02"}


def archive_beyond_savepoint(path: Path) -> frozenset[str]:
    """Leave the first commit on the timeline, with a savepoint, and a clustering of another partition; the names of the
    files that were written in between."""
    ts = clustering.schedule(request(path, Mode.SCHEDULE, _ELSEWHERE)).instant
    clustering.execute(request(path, Mode.EXECUTE), engine=LocalEngine())
    compact(path)
    table = open_local(path)
    first, *between = [one.ts for one in table.timeline.completed_writes() if one.ts != ts]
    names = {partition: table.view.all_slices(partition).values() for partition in table.view.partitions()}
    bases = {
        partition: [one.base_file for slices in groups for one in slices if one.base_file]
        for partition, groups in names.items()
    }
    write_savepoint(table, {p: [file.name for file in files if file.instant == first] for p, files in bases.items()})
    for name in table.timeline.sizes:
        if name.startswith(tuple(between)):
            table.storage.delete(table.timeline.path(name))
    return frozenset(file.name for files in bases.values() for file in files if file.instant in between)


def delete_savepoint(path: Path) -> None:
    """And let its commit be archived, too."""
    timeline = open_local(path).timeline
    (held,) = timeline.completed({Action.SAVEPOINT})
    for name in timeline.sizes:
        if name.startswith(held.ts):
            timeline.storage.delete(timeline.path(name))


@pytest.mark.parametrize("release", RELEASES)
def test_what_a_savepoint_hides_comes_back(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    before = both(path)
    hidden = archive_beyond_savepoint(path)
    seen = both(path)
    assert seen[0].equals(seen[1]) and seen[0].num_rows < before[0].num_rows
    read = {row["_hoodie_commit_time"] for row in seen[0].to_pylist() if row["_hoodie_partition_path"] == P}
    assert read == {open_local(path).timeline.first_ts()}

    report = run(path)
    assert (report.exit_code, found(report)) == (0, set())
    of_p = {file.name for file in (path / P).iterdir()}
    assert {name for partition, name, why in unsure(report) if why == Doubt.HIDDEN.value and partition == P} == (
        hidden & of_p
    )

    planned = clustering.schedule(request(path, Mode.SCHEDULE, dry_run=True))
    assert planned.left_out[ClusteringReason.HALF_HIDDEN.value] == 1
    with pytest.raises(NothingToDo):
        clean_all(path)
    with pytest.raises(NothingToDo):
        options = resolve([("test", {"hoodie.time.generator.max_expected_clock_skew_ms": "0"})])
        wanted = OrphanFilesRequest(
            base_path=str(path), options=options, mode=OrphanFilesMode.QUARANTINE, min_age_minutes=0
        )
        manage_orphan_files(wanted)
    assert all(one.equals(other) for one, other in zip(both(path), seen, strict=True))

    delete_savepoint(path)
    table = open_local(path)
    assert rows(table, table.view).equals(before[0])
