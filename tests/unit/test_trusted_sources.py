"""With a metadata table that is incomplete or wrong, nothing is planned, rewritten or deleted."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_services.codecs.clean_plan import CleanerPlan, encode_cleaner_plan
from hudi_services.codecs.clustering_plan import ClusteringPlan
from hudi_services.engine import LocalEngine
from hudi_services.errors import CheckFailed, CorruptFile, HudiServicesError
from hudi_services.jobs import clean, clustering, recover, validate
from hudi_services.metadata.records.keys import FILES, RECORD_INDEX
from hudi_services.metadata.records.model import FileEntry, FilesRecord, RecordType
from hudi_services.options import resolve
from hudi_services.runs.report import Report, RunState
from hudi_services.runs.request import CleanRequest, Mode, RecoverRequest, ValidateRequest
from hudi_services.table_config import METADATA_TABLE_FOLDER
from hudi_services.timeline.instant import Action

from .corruptions import GONE, write_own
from .metadata_tables import compact, open_metadata
from .repairs import P, both
from .tables import RELEASES, digest, listed_view, open_local, request, rows, unpack
from .test_index_bootstrap import wanted as index_wanted

QUICK = {"hoodie.time.generator.max_expected_clock_skew_ms": "0"}
KEEP_ONE = {**QUICK, "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
Harm = Callable[[bytes], bytes | None]
"""What becomes of the bytes of a file; None when it is gone."""

HARMS: dict[str, Harm] = {
    "a bit of the block size": lambda data: _flipped(data, 13, 0),
    "a bit of the block type": lambda data: _flipped(data, 21, 2),
    "a bit of the instant": lambda data: _flipped(data, data.index(b"2026") + 3, 1),
    "cut in half": lambda data: data[: len(data) // 2],
    "cut by a byte": lambda data: data[:-1],
    "emptied": lambda data: b"",
    "deleted": lambda data: None,
}


def _flipped(data: bytes, at: int, bit: int) -> bytes:
    changed = bytearray(data)
    changed[at] ^= 1 << bit
    return bytes(changed)


def do_harm(file: Path, harm: Harm) -> None:
    data = harm(file.read_bytes())
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    file.unlink()
    if data is not None:
        file.write_bytes(data)


def last_log(path: Path, index: str = FILES) -> Path:
    """The log file of the metadata table that the last commit of the table wrote."""
    metadata = open_metadata(path)
    write = open_local(path).timeline.completed_writes()[-1]
    commit = metadata.timeline.find(write.ts, Action.DELTA_COMMIT)
    assert commit is not None
    return path / METADATA_TABLE_FOLDER / metadata.timeline.read_commit(commit).stats[index][0].path


def schedule(path: Path) -> Report:
    return clustering.schedule(request(path, Mode.SCHEDULE))


def execute(path: Path) -> Report:
    return clustering.execute(request(path, Mode.EXECUTE), engine=LocalEngine())


def cleaned(path: Path) -> Report:
    return clean.clean(CleanRequest(base_path=str(path), options=resolve([("test", KEEP_ONE)])))


def validated(path: Path, *, repair: bool = False) -> Report:
    return validate.validate(ValidateRequest(base_path=str(path), options=resolve([("test", QUICK)]), repair=repair))


def recovered(path: Path) -> Report:
    options = resolve([("test", {**QUICK, "hudi.services.abandoned.after.minutes": "0"})])
    return recover.recover(RecoverRequest(base_path=str(path), options=options, apply=True))


def plan_of(path: Path) -> ClusteringPlan:
    timeline = open_local(path).timeline
    (pending,) = timeline.pending_clusterings()
    return timeline.read_plan(pending)


def refuses(path: Path, run: Callable[[Path], Report], error: type[HudiServicesError], name: str) -> None:
    """`run` ends with an error that names the file and the way out, and writes nothing to the table."""
    before = digest(path)
    with pytest.raises(error) as told:
        run(path)
    assert name in told.value.message and "hudi-services validate --base-path" in told.value.hint
    after = digest(path)
    # Leases are given back, not taken away.
    assert {k: v for k, v in after.items() if ".locks" not in k} == {
        k: v for k, v in before.items() if ".locks" not in k
    }


@pytest.mark.thorough
@pytest.mark.spread(3)
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("harm", HARMS)
def test_a_log_file_that_lost_a_commit_stops_every_command_and_is_repaired(
    release: str, harm: str, tmp_path: Path
) -> None:
    path = unpack(release, tmp_path)
    before = rows(open_local(path), listed_view(open_local(path)))
    schedule(path)
    planned = plan_of(path)
    log = last_log(path)
    do_harm(log, HARMS[harm])
    for run in (schedule, execute, cleaned):
        refuses(path, run, CorruptFile, log.name)

    with pytest.raises(CheckFailed):
        validated(path)
    report = validated(path, repair=True)
    assert report.state is RunState.COMPLETED
    assert plan_of(path) == planned
    execute(path)
    for seen in both(path):
        assert seen.equals(before)
    if not open_metadata(path).timeline.completed({Action.COMMIT}):
        # Of the others the execution has compacted it.
        compact(path)
    for seen in both(path):
        assert seen.equals(before)


@pytest.mark.thorough
@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_any_flipped_bit_is_found_or_does_no_harm(release: str, tmp_path: Path) -> None:
    """Of all files of the listing, on a copy each: the plan is the same, or there is none."""
    whole = unpack(release, tmp_path / "whole")
    files = sorted((whole / METADATA_TABLE_FOLDER / FILES).glob("*files-0000*"))
    files = [file for file in files if not file.name.endswith(".crc")]
    seed = random.Random(14)
    view = open_local(whole).view
    slices = {partition: view.latest_slices(partition) for partition in view.partitions()}
    path, noticed, flips = tmp_path / "table", 0, 60
    shutil.copytree(whole, path)
    for _ in range(flips):
        source = seed.choice(files)
        file = path / source.relative_to(whole)
        data = source.read_bytes()
        # Half of them where a block begins: most other bytes are the text of a schema.
        at, bit = seed.randrange(seed.choice([64, len(data)])), seed.randrange(8)
        file.write_bytes(_flipped(data, at, bit))
        try:
            table = open_local(path)
            clustering.schedule(request(path, Mode.SCHEDULE, dry_run=True))
        except HudiServicesError:
            noticed += 1
        else:
            assert {p: table.view.latest_slices(p) for p in table.view.partitions()} == slices, (file, at, bit)
        file.write_bytes(data)
    assert noticed > flips / 3


@pytest.mark.parametrize("release", RELEASES)
def test_a_damaged_record_index_stops_whoever_reads_it(release: str, tmp_path: Path) -> None:
    from hudi_services.jobs.index_bootstrap import index_bootstrap

    path = unpack(release, tmp_path)
    index_bootstrap(index_wanted(path), engine=LocalEngine())
    base = next((path / METADATA_TABLE_FOLDER / RECORD_INDEX).glob("record-index-*.hfile"))
    kept = base.read_bytes()
    base.unlink()
    with pytest.raises(CorruptFile, match=rf"{base.name} is missing, although"):
        validated(path)
    base.write_bytes(kept)
    # A whole file group: the keys of the others would be looked for in the wrong ones.
    for file in (path / METADATA_TABLE_FOLDER / RECORD_INDEX).glob(f"*{base.name.partition('_')[0]}*"):
        file.unlink()
    with pytest.raises(CorruptFile, match="is missing, with its whole file group"):
        validated(path)


def hide_newest(path: Path) -> str:
    """The listing forgets the newest file of an updated file group; the file's name."""
    table = open_local(path)
    slices = [group for group in table.view.all_slices(P).values() if len(group) > 1]
    newest = slices[0][-1].base_file
    assert newest is not None
    write_own(path, {FILES: [FilesRecord(P, RecordType.FILES, {newest.name: GONE}) for _ in range(2)]})
    return newest.name


def invent_newest(path: Path) -> str:
    """The listing knows a newer file of an updated file group, which is not there; the file's name."""
    table = open_local(path)
    slices = [group for group in table.view.all_slices(P).values() if len(group) > 1]
    newest = slices[0][-1].base_file
    assert newest is not None
    # Of a commit that is completed, and wrote to other file groups.
    last = table.timeline.completed_writes()[-1].ts
    name = newest.name.replace(newest.instant, last) if newest.instant != last else newest.name.replace("_0-", "_9-")
    write_own(path, {FILES: [FilesRecord(P, RecordType.FILES, {name: FileEntry(4711)})]})
    return name


LIES: dict[str, Callable[[Path], str]] = {"hidden": hide_newest, "invented": invent_newest}


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("lie", LIES)
def test_no_source_is_trusted_alone(release: str, lie: str, tmp_path: Path) -> None:
    """The metadata table is whole, and wrong: storage and the commits say otherwise."""
    path = unpack(release, tmp_path / "planned before")
    schedule(path)
    name = LIES[lie](path)
    refuses(path, execute, CheckFailed, name)
    path = unpack(release, tmp_path / "wrong before")
    name = LIES[lie](path)
    refuses(path, schedule, CheckFailed, name)
    if lie == "invented":
        refuses(path, cleaned, CheckFailed, name)
    assert validated(path, repair=True).state is RunState.COMPLETED
    before = rows(open_local(path), listed_view(open_local(path)))
    schedule(path)
    execute(path)
    cleaned(path)
    for seen in both(path):
        assert seen.equals(before)


@pytest.mark.parametrize("release", RELEASES)
def test_a_file_that_storage_lost_is_noticed_without_a_metadata_table(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    shutil.rmtree(path / METADATA_TABLE_FOLDER)
    properties = path / ".hoodie/hoodie.properties"
    lines = [one for one in properties.read_text().splitlines() if "metadata.partitions" not in one]
    properties.write_text("\n".join(lines) + "\n")
    table = open_local(path)
    newest = next(group[-1].base_file for group in table.view.all_slices(P).values() if len(group) > 1)
    assert table.metadata is None and newest is not None
    (path / newest.path).unlink()
    with pytest.raises(CheckFailed, match=rf"and {newest.instant} wrote {newest.name}"):
        schedule(path)


@pytest.mark.parametrize("release", RELEASES)
def test_a_clean_plan_that_names_what_readers_need_is_dropped(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    table = open_local(path)
    before = rows(table, table.view)
    victim = table.view.latest_slices(P)[0].base_file
    assert victim is not None
    plan = CleanerPlan("KEEP_LATEST_COMMITS", "", "", {P: (str(path / victim.path),)})
    data = encode_cleaner_plan(plan, table.config.version.release)
    name = "20260101000000000.clean.requested"
    (path / table.timeline.path(name)).write_bytes(data)
    refuses(path, cleaned, CheckFailed, victim.name)
    report = recovered(path)
    assert [row["decision"] for row in report.tables["instants"]] == ["drop the plan"]
    assert not open_local(path).timeline.pending()
    assert rows(open_local(path), open_local(path).view).equals(before)
