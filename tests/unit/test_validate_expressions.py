"""Expression indexes against the table: exactly the wrong records are found, and repaired."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_services.base_files.bloom import BloomSettings
from hudi_services.jobs.validate import validate
from hudi_services.metadata.records.keys import bloom_filter_key, column_stats_key
from hudi_services.metadata.records.model import BloomRecord, Record, RecordType, StatsRecord
from hudi_services.options import resolve
from hudi_services.runs.report import RunState as Outcome
from hudi_services.runs.request import ValidateRequest
from hudi_services.runs.retries import run_with_retries
from hudi_services.validation.model import DifferenceKind

from .corruptions import DEAD, Damage, do_damage
from .metadata_tables import compact, open_metadata
from .tables import unpack
from .test_expression_index import BLOOM, INDEXES, RANGES, cluster, index_is_true, live_files
from .test_validate import found
from .test_validate import run as run_without_zone

ZONE = {"spark.sql.session.timeZone": "UTC", "hoodie.time.generator.max_expected_clock_skew_ms": "0"}


@pytest.fixture(params=["1.0.2", "1.2.0"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return unpack(request.param, tmp_path, "expressions")


def run(path: Path, *, repair: bool = False) -> Any:
    wanted = ValidateRequest(base_path=str(path), options=resolve([("test", ZONE)]), repair=repair)
    return run_with_retries(validate, wanted, 0, lambda seconds: None)


def checked(report: Any) -> dict[str, int | None]:
    return {row["metadata_partition"]: row["records"] for row in report.tables["partitions"]}


def test_a_table_of_hudi_agrees_and_one_that_we_clustered(path: Path) -> None:
    for files in (6, 3):
        report = run(path)
        assert (report.exit_code, found(report)) == (0, set())
        assert {index: checked(report)[index] for index in INDEXES} == {
            **dict.fromkeys(RANGES, files + 3), BLOOM: files,
        }  # fmt: skip
        if files == 6:
            cluster(path)


def test_what_depends_on_a_zone_is_not_checked_without_one(path: Path) -> None:
    report = run_without_zone(path)
    assert report.exit_code == 0
    assert {index for index in INDEXES if checked(report)[index] is not None} == {BLOOM}
    assert "not checked: expr_index_by_date, expr_index_by_day" in (report.reason or "")


def damage(path: Path) -> Damage:
    metadata = open_metadata(path)
    made = Damage()
    index, column = "expr_index_by_day", "ts"
    stored = [one for one in metadata.reader(index).scan() if isinstance(one, StatsRecord)]
    live = {name: partition for partition, names in live_files(path).items() for name in names}
    of_files = sorted((one for one in stored if one.file_name in live), key=lambda one: one.file_name)
    (range_,) = (one for one in stored if one.type is RecordType.PARTITION_STATS and one.file_name == "p1")

    def wrong(record: StatsRecord, kind: DifferenceKind, **changes: object) -> None:
        # So that it stands as it is, above the base file.
        gone = replace(record, minimum=None, maximum=None, deleted=True)
        made.record(index, gone, replace(record, tight=True, **changes))  # type: ignore[arg-type]
        made.expect(index, kind, live[record.file_name], record.file_name, column)

    wrong(of_files[0], DifferenceKind.WRONG_MINIMUM, minimum="2023-01-01")
    wrong(of_files[1], DifferenceKind.WRONG_MAXIMUM, maximum="2024-01-01")
    wrong(of_files[2], DifferenceKind.WRONG_COUNTS, null_count=1)
    made.delete(index, of_files[3].key)
    made.expect(index, DifferenceKind.STATISTICS_MISSING, live[of_files[3].file_name], of_files[3].file_name, column)
    dead = replace(of_files[0], key=column_stats_key(column, "p0", DEAD), file_name=DEAD)
    made.record(index, dead)
    made.expect(index, DifferenceKind.STALE_STATISTICS, None, DEAD, column)
    made.record(index, replace(range_, maximum=range_.minimum, tight=True))
    made.expect(index, DifferenceKind.NARROW_RANGE, "p1", None, column)
    _damage_blooms(made, live)
    return made


def _damage_blooms(made: Damage, live: dict[str, str]) -> None:
    a, b = sorted(live)[:2]
    made.delete(BLOOM, bloom_filter_key(live[a], a))
    made.expect(BLOOM, DifferenceKind.BLOOM_MISSING, live[a], a, "name")
    other = BloomSettings(1000).new_filter(1)
    other.add(pa.array(["nobody"]))
    bits = other.serialize().encode()
    records: list[Record] = [
        BloomRecord(bloom_filter_key(live[b], b), other.type_code, "1", bits),
        BloomRecord(bloom_filter_key("p0", DEAD), other.type_code, "1", bits),
    ]
    made.record(BLOOM, *records)
    made.expect(BLOOM, DifferenceKind.WRONG_BLOOM, live[b], b, "name")
    made.expect(BLOOM, DifferenceKind.STALE_BLOOM, None, None, "name")


@pytest.mark.thorough
@pytest.mark.parametrize("compacted", [False, True])
def test_what_is_wrong_is_found_exactly_and_mended(compacted: bool, path: Path) -> None:
    made = damage(path)
    do_damage(path, made)
    if compacted:
        compact(path)
    assert found(run(path)) == made.found
    report = run(path, repair=True)
    assert (report.state, report.exit_code) == (Outcome.COMPLETED, 0), report.tables["differences"]
    assert {row["metadata_partition"] for row in report.tables["repaired"]} == {"expr_index_by_day", BLOOM}
    assert run(path).exit_code == 0
    index_is_true(path)
