"""Plans that could never be executed: `schedule` makes none, and `recover` and `execute` know those that are there."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_services.clustering.eligibility import ClusteringReason
from hudi_services.commit import newest_files
from hudi_services.engine import LocalEngine
from hudi_services.errors import CorruptFile, HudiServicesError, NothingToDo, UnsupportedTable
from hudi_services.jobs import clustering, compaction, recover, rollback
from hudi_services.model import BaseFile
from hudi_services.options import resolve
from hudi_services.recovery import findings
from hudi_services.runs.report import Report
from hudi_services.runs.request import CompactionRequest, Mode, RecoverRequest
from hudi_services.table.support import BUCKETS, FEATURES, Operation

from .repairs import repair
from .rides import FILTERS, create
from .tables import open_local, request

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine", "any_size")

OPTIONS = {**FILTERS, "hoodie.metadata.enable": "false", "hoodie.parquet.small.file.limit": "0"}
OLD = -3_000_000_000_000_000
"""A timestamp before 1900, in microseconds."""


@pytest.fixture
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that a test spoils are not those that their commit knows the sizes of."""
    monkeypatch.setattr(newest_files, "_refuse", lambda table, problem: None)


def rows(number: int) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{number}-{n}" for n in range(4)],
            "day": ["d"] * 4,
            "ts": pa.array([0] * 4, pa.int64()),
            "at": pa.array([OLD] * 4).cast(pa.timestamp("us", "UTC")),
        }
    )


def three_files(path: Path) -> list[BaseFile]:
    """A table of one partition, with three base files, oldest first."""
    made = create(path, options=OPTIONS)
    for number in range(3):
        assert made.insert(rows(number), options=OPTIONS).ok
    found = [one.base_file for one in open_local(path).view.latest_slices("d")]
    files = [one for one in found if one is not None]
    assert len(files) == 3
    return sorted(files, key=lambda one: one.instant)


def damaged(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-9] + b"xxxxxPAR1")


def encrypted(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-4] + b"PARE")


def of_another_type(file: Path) -> None:
    rewritten(file, lambda table: table.set_column(table.column_names.index("ts"), "ts", pa.array([[1]] * 4)))


def of_an_unknown_zone(file: Path) -> None:
    rewritten(file, lambda table: table, {"version": "3.5.1", "legacyDateTime": "", "timeZone": "Nowhere/Else"})


def rewritten(file: Path, change: Callable[[pa.Table], pa.Table], entries: dict[str, str] | None = None) -> None:
    footer = {k: v for k, v in (pq.read_metadata(file).metadata or {}).items() if k != b"ARROW:schema"}
    footer |= {f"org.apache.spark.{name}".encode(): value.encode() for name, value in (entries or {}).items()}
    pq.write_table(change(pq.read_table(file, partitioning=None)).replace_schema_metadata(footer), file)


SPOILT = pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (damaged, "footer"),
        (encrypted, "encrypted footer"),
        (of_another_type, "cannot be read as the second"),
        (of_an_unknown_zone, "time zone 'Nowhere/Else'"),
    ],
    ids=["damaged", "encrypted", "type", "zone"],
)


def schedule(path: Path) -> Report:
    return clustering.schedule(request(path, Mode.SCHEDULE))


def execute(path: Path) -> Report:
    return clustering.execute(request(path, Mode.EXECUTE), engine=LocalEngine())


def looked(path: Path) -> dict[str, str | int | None]:
    wanted = RecoverRequest(base_path=str(path), options=resolve([]))
    (found,) = recover.recover(wanted).tables["instants"]
    return dict(found)


@pytest.mark.thorough
@SPOILT
def test_schedule_leaves_out_what_execute_would_refuse(
    spoil: Callable[[Path], None], says: str, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    files = three_files(path)
    spoil(path / files[1].path)
    report = schedule(path)
    assert report.left_out == {ClusteringReason.UNFIT.value: 1} and report.files.before == 2
    (warning,) = [one for one in report.warnings if "cannot be rewritten" in one]
    assert says in warning and files[1].name in warning
    assert execute(path).exit_code == 0


@pytest.mark.thorough
@SPOILT
def test_a_plan_that_is_there_is_known_not_to_run(spoil: Callable[[Path], None], says: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    files = three_files(path)
    instant = schedule(path).instant
    assert looked(path)["decision"] == "wait" and instant is not None
    spoil(path / files[1].path)
    found = looked(path)
    assert found["decision"] == "drop the plan", str(found)
    assert "can never be executed" in str(found["why"]) and says in str(found["why"])
    way = f"hudi-services rollback --base-path {path} --instant {instant}"
    assert way in str(found["why"])
    with pytest.raises(HudiServicesError) as refused:
        execute(path)
    assert isinstance(refused.value, (CorruptFile, UnsupportedTable))
    assert says in refused.value.message and way in refused.value.hint
    rollback.rollback(repair(path, "rollback", instant))
    with pytest.raises(NothingToDo):
        looked(path)
    assert execute_again(path) == 0


def execute_again(path: Path) -> int:
    schedule(path)
    return execute(path).exit_code


def test_where_nothing_fits_nothing_is_planned(tmp_path: Path) -> None:
    path = tmp_path / "t"
    for file in three_files(path):
        damaged(path / file.path)
    with pytest.raises(NothingToDo, match=f"3 {ClusteringReason.UNFIT.value}"):
        schedule(path)


@SPOILT
def test_a_plan_of_hudi_waits_for_hudi(
    spoil: Callable[[Path], None], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be able to execute it, but for damaged files."""
    path = tmp_path / "t"
    files = three_files(path)
    instant = schedule(path).instant
    spoil(path / files[1].path)
    monkeypatch.setattr(findings, "is_ours", lambda plan: False)
    found = looked(path)
    assert found["decision"] == ("drop the plan" if spoil in (damaged, encrypted) else "wait")
    assert says in str(found["why"]) and f"rollback --base-path {path} --instant {instant}" in str(found["why"])


@pytest.mark.thorough
@SPOILT
@pytest.mark.parametrize(("version", "way"), [(6, "it must stay"), (9, "compaction unschedule --instant")])
def test_compactions(version: int, way: str, spoil: Callable[[Path], None], says: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    made = create(path, options=OPTIONS, table_type="MERGE_ON_READ", table_version=version)
    assert made.insert(rows(0), options=OPTIONS).ok and made.upsert(rows(0), options=OPTIONS).ok
    options = resolve([("test", {"hoodie.compact.inline.max.delta.commits": "1"})])
    wanted = CompactionRequest(base_path=str(path), options=options, mode=Mode.SCHEDULE)
    compaction.schedule(wanted)
    assert looked(path)["why"] == f"execute it: hudi-services compact --base-path {path}"
    (one,) = list(path.glob("d/*.parquet"))
    spoil(one)
    found = looked(path)
    assert found["decision"] == "wait" and "cannot be executed here" in str(found["why"])
    assert says in str(found["why"]) and way in str(found["why"])
    with pytest.raises(HudiServicesError) as refused:
        compaction.execute(replace(wanted, mode=Mode.EXECUTE), engine=LocalEngine())
    assert says in refused.value.message and way in refused.value.hint


@pytest.mark.parametrize("spoil", [damaged, of_another_type, of_an_unknown_zone])
def test_no_compaction_is_planned_that_cannot_run(spoil: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "t"
    made = create(path, options=OPTIONS, table_type="MERGE_ON_READ")
    assert made.insert(rows(0), options=OPTIONS).ok and made.upsert(rows(0), options=OPTIONS).ok
    (one,) = list(path.glob("d/*.parquet"))
    spoil(one)
    options = resolve([("test", {"hoodie.compact.inline.max.delta.commits": "1"})])
    with pytest.raises((CorruptFile, UnsupportedTable)):
        compaction.schedule(CompactionRequest(base_path=str(path), options=options, mode=Mode.SCHEDULE))
    assert not open_local(path).timeline.pending()


def test_what_a_table_has_is_refused_before_it_is_planned() -> None:
    """But for groups of several buckets, which only other programs plan."""
    for feature in FEATURES:
        if Operation.EXECUTE in feature.refused and feature is not BUCKETS:
            assert Operation.SCHEDULE in feature.refused, feature.name
    wanted = CompactionRequest(base_path="t", options=resolve([]), mode=Mode.SCHEDULE)
    assert {*wanted.operations} >= {*replace(wanted, mode=Mode.EXECUTE).operations}
