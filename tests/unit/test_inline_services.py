"""Table services that follow a write: what runs, when, and what a failure of theirs means."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hudi_services
from hudi_services.commit.lease import Lease
from hudi_services.engine import LocalEngine
from hudi_services.errors import PartlyDone, StorageError
from hudi_services.jobs import clean
from hudi_services.jobs.inline_services import InlineServices
from hudi_services.options import resolve
from hudi_services.runs.report import Report, TableFacts
from hudi_services.runs.request import WriteOperation, WriteRequest
from hudi_services.stores import open_storage

from .rides import FILTERS, create
from .tables import both_views, merged_rows, open_local

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")


@pytest.fixture
def table(tmp_path: Path) -> hudi_services.Table:
    return create(tmp_path / "rides", partition_by=None)


def rows(first: int, end: int, ts: int = 0) -> pa.Table:
    keys = pa.array(np.arange(first, end)).cast(pa.string())
    return pa.table({"id": keys, "ts": pa.array([ts] * (end - first), pa.int64())})


def services(result: hudi_services.Result) -> list[tuple[str, str, str]]:
    found = result.tables["services"].to_pylist() if "services" in result.tables else []
    return [(row["service"], row["action"], row["state"]) for row in found]


@pytest.mark.thorough
def test_a_clean_follows_as_in_hudi(table: hudi_services.Table, tmp_path: Path) -> None:
    """It is on by default, and keeps what Hudi's default keeps; no row in the report when there is nothing to clean."""
    table.insert(rows(0, 10))
    kept = {**FILTERS, "hoodie.clean.commits.retained": "1"}
    found = [services(table.upsert(rows(0, 10, ts), options=kept)) for ts in range(1, 5)]
    assert [("clean", "clean", "completed")] in found
    assert len(list((tmp_path / "rides").glob("*.parquet"))) < 5
    off = {**kept, "hoodie.clean.automatic": "false"}
    assert not services(table.upsert(rows(0, 10, 6), options=off))
    assert not services(table.upsert(rows(0, 10, 7), options={**kept, "hoodie.table.services.enabled": "false"}))
    assert services(table.upsert(rows(0, 10, 8), options=kept)) == [("clean", "clean", "completed")]
    assert not services(table.upsert(rows(0, 10, 9), options=FILTERS))
    assert both_views(tmp_path / "rides")[0].num_rows == 10
    assert table.validate(strict=True).ok


@pytest.mark.thorough
def test_inline_clustering(table: hudi_services.Table, tmp_path: Path) -> None:
    """Every four commits, as in Hudi; pending plans come first."""
    options = {**FILTERS, "hoodie.clustering.inline": "true"}
    found = [services(table.bulk_insert(rows(n * 10, n * 10 + 10), options=options)) for n in range(9)]
    clustered = ("clustering", "scheduleAndExecute", "completed")
    assert [number for number, one in enumerate(found) if clustered in one] == [3, 7]
    table.plan_clustering()
    last = table.bulk_insert(rows(90, 100), options={**options, "hoodie.clustering.inline.max.commits": "1"})
    assert services(last) == [("clustering", "execute", "completed"), clustered]
    assert both_views(tmp_path / "rides")[0].num_rows == 100
    assert table.slices().num_rows == 1
    assert table.validate(strict=True).ok


def test_plans_for_another_process(table: hudi_services.Table) -> None:
    options = {**FILTERS, "hoodie.clustering.async.enabled": "true", "hoodie.clustering.async.max.commits": "2"}
    found = [services(table.bulk_insert(rows(n * 10, n * 10 + 10), options=options)) for n in range(5)]
    planned = ("clustering", "schedule", "requested")
    assert [number for number, one in enumerate(found) if planned in one] == [1]
    assert table.execute_clustering().ok


def test_a_service_that_fails(table: hudi_services.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The write stays, and the operator is told."""

    def broken(*arguments: Any) -> Any:
        raise StorageError("the store is gone", hint="look at the store")

    monkeypatch.setattr(clean, "clean", broken)
    with pytest.raises(
        PartlyDone, match=r"the insert \d+ is complete, but the clean after it failed: the store is gone"
    ):
        table.insert(rows(0, 10))
    told = table.insert(
        rows(10, 20), options={**FILTERS, "hoodie.fail.writes.on.inline.table.service.exception": "false"}
    )
    assert told.ok and "the clean after it failed" in told.warnings[0]
    assert both_views(tmp_path / "rides")[0].num_rows == 20


def test_an_archival_that_another_process_does(table: hudi_services.Table, tmp_path: Path) -> None:
    """Its lock is busy: the write is complete, and a later one archives."""
    few = {**FILTERS, "hoodie.keep.max.commits": "3", "hoodie.keep.min.commits": "2", "hoodie.clean.automatic": "false"}
    few |= {"hoodie.clean.commits.retained": "1", "hoodie.metadata.compact.max.delta.commits": "1"}
    quiet = {**few, "hoodie.archive.automatic": "false"}
    for number in range(4):
        assert not services(table.upsert(rows(0, 10, number), options=quiet))
    path = str(tmp_path / "rides")
    with Lease(open_storage(path), "table", "archive"):
        options = resolve([("test", {**few, "hoodie.write.lock.wait_time_ms": "100"})])
        wanted = WriteRequest(base_path=path, options=options, operation=WriteOperation.UPSERT)
        run = InlineServices(wanted, options, open_local(tmp_path / "rides"), LocalEngine())
        report = run.run(Report("write", "upsert", TableFacts(path)))
    assert report.warnings[0].startswith("no archive followed, a later write does it: ")
    assert "services" not in report.tables and report.exit_code != 7
    assert services(table.upsert(rows(0, 10, 5), options=few)) == [("archive", "archive", "completed")]


@pytest.mark.thorough
def test_inline_compaction(tmp_path: Path) -> None:
    """Of merge-on-read tables, after five delta commits, as in Hudi; pending plans come first."""
    table = create(tmp_path / "rides", partition_by=None, table_type="MERGE_ON_READ")
    inline = {**FILTERS, "hoodie.compact.inline": "true"}
    compacted = ("compaction", "scheduleAndExecute", "completed")
    # The first write, which makes a base file, counts as a delta commit, too.
    found = [services(table.upsert(rows(0, 10, ts), options=inline)) for ts in range(6)]
    assert [number for number, one in enumerate(found) if compacted in one] == [4]
    planned = {**FILTERS, "hoodie.compact.schedule.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    assert services(table.upsert(rows(0, 10, 7), options=planned)) == [("compaction", "schedule", "requested")]
    # Log files are written beside the plan, which stays the only one.
    assert not services(table.upsert(rows(0, 5, 8), options=planned))
    last = services(table.upsert(rows(5, 12, 9), options={**inline, "hoodie.compact.inline.max.delta.commits": "9"}))
    assert last == [("compaction", "execute", "completed")]
    assert merged_rows(tmp_path / "rides").column("ts").to_pylist().count(8) == 5
    assert merged_rows(tmp_path / "rides").num_rows == 12
    assert table.validate(strict=True).ok
