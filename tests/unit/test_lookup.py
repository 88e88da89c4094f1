"""Looking keys up in a record index that was built, moved by a clustering, and had keys deleted."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_services.cli.app import run
from hudi_services.engine import LocalEngine
from hudi_services.jobs import clustering
from hudi_services.jobs.index_bootstrap import index_bootstrap
from hudi_services.metadata.metadata_table import MetadataTable
from hudi_services.metadata.record_index.locations import Location
from hudi_services.metadata.record_index.lookup import Access, AccessRule, Locations, look_up
from hudi_services.metadata.records.keys import RECORD_INDEX
from hudi_services.metadata.records.model import LocationRecord
from hudi_services.metadata_updates.delta_commit import write_delta_commit
from hudi_services.runs.request import Mode

from .metadata_tables import far_future
from .tables import RELEASES, open_local, request, unpack
from .test_index_bootstrap import real_locations, slices, wanted


def found(metadata: MetadataTable, keys: list[str], access: Access) -> dict[str, tuple[str, str]]:
    got: Locations = look_up(metadata, pa.array(keys, pa.string()), AccessRule(access))
    assert (got.scans == 0) if access is Access.SEEK else True
    assert (got.seeks == 0) if access is Access.SCAN else True
    places = [got.locations[position] if position >= 0 else None for position in got.positions.tolist()]
    return {key: (at.partition, at.file_id) for key, at in zip(keys, places, strict=True) if at is not None}


def metadata_of(path: Path) -> MetadataTable:
    metadata = open_local(path).metadata
    assert metadata is not None
    return metadata


@pytest.mark.parametrize("access", Access)
@pytest.mark.parametrize("release", RELEASES)
def test_what_is_there_is_found(release: str, access: Access, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    index_bootstrap(wanted(path), engine=LocalEngine())
    clustering.schedule_and_execute(request(path, Mode.SCHEDULE_AND_EXECUTE), engine=LocalEngine())
    real = real_locations(path)
    metadata = metadata_of(path)
    keys = [*real, "", "nobody", "zzzz", next(iter(real)), "ü"]
    assert found(metadata, keys, access) == real
    some = sorted(real)[::7]
    assert found(metadata, some, access) == {key: real[key] for key in some}
    assert found(metadata, [], access) == {}


def test_a_deleted_key_is_not_found(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    index_bootstrap(wanted(path), engine=LocalEngine())
    real = real_locations(path)
    gone, *rest = sorted(real)
    metadata = metadata_of(path)
    times = far_future()
    # As a writer's delta commit would: an instant that the table itself does not know.
    write_delta_commit(metadata, times(), {}, times, deletes={RECORD_INDEX: [gone]})
    assert found(metadata_of(path), [gone, *rest], Access.AUTO) == {key: real[key] for key in rest}


def test_the_share_of_keys_decides() -> None:
    class Reader:
        entry_count = 100

    rule = AccessRule()
    assert rule.seeks(Reader(), 0) and not rule.seeks(Reader(), 1)  # type: ignore[arg-type]
    rule = AccessRule(scan_share=0.3)
    assert rule.seeks(Reader(), 29) and not rule.seeks(Reader(), 30)  # type: ignore[arg-type]
    assert AccessRule(Access.SEEK).seeks(Reader(), 100)  # type: ignore[arg-type]
    assert not AccessRule(Access.SCAN).seeks(Reader(), 1)  # type: ignore[arg-type]


def test_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = unpack("1.2.0", tmp_path)
    keys = tmp_path / "keys"
    keys.write_text("nobody\n" + "".join(f"{key}\n" for key in real_locations(path)) + "\n")
    flags = ["index-lookup", "--base-path", str(path), "--keys-file", str(keys), "--format", "json"]
    assert run(flags) == 2
    assert "has no record index" in capfd.readouterr().err
    index_bootstrap(wanted(path), engine=LocalEngine())
    assert run(flags) == 0
    report = json.loads(capfd.readouterr().out)
    real = real_locations(path)
    assert report["rows"] == {"in": len(real) + 1, "out": len(real)}
    assert {row["key"]: (row["partition"], row["file_id"]) for row in report["tables"]["locations"]} == real
    instants = {slice_.base_file.instant for slice_ in slices(path)}
    assert {row["instant"] for row in report["tables"]["locations"]} == instants
    assert run([*flags[:4], str(tmp_path / "missing")]) == 2
    assert "--keys-file" in capfd.readouterr().err


def test_an_instant_that_is_no_time(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = unpack("1.2.0", tmp_path)
    index_bootstrap(wanted(path), engine=LocalEngine())
    key, (partition, file_id) = sorted(real_locations(path).items())[0]
    times, keys = far_future(), tmp_path / "keys"
    record = LocationRecord(key, Location(partition, file_id, -(2**63)))
    write_delta_commit(metadata_of(path), times(), {RECORD_INDEX: [record]}, times)
    keys.write_text(key)
    assert run(["index-lookup", "--base-path", str(path), "--keys-file", str(keys)]) == 1
    assert "holds an instant that is not a time" in capfd.readouterr().err
