"""Recovering a table on which very many writers have died: what each costs does not grow with their number."""

from collections import Counter
from pathlib import Path

import pytest

from hudi_services.jobs import recover
from hudi_services.options import resolve
from hudi_services.recovery import repairs
from hudi_services.runs.report import RunState
from hudi_services.runs.request import RecoverRequest

from .counting_storage import CountingStorage
from .dead_writes import DeadWrite, appended, begun, kill_writes, requested, told, written
from .repairs import NO_HEARTBEAT
from .rides import create
from .tables import listed_view, open_local
from .tables import rows as rows_of
from .test_recover import QUICK
from .test_upserts import rows

_FEW, _MANY = 12, 36


def recovered(path: Path, count: int, kinds: list[DeadWrite]) -> int:
    """How many requests it takes to recover the table from so many dead writes."""
    before = rows_of(open_local(path), listed_view(open_local(path)))
    times = kill_writes(path, count, kinds)
    storage = CountingStorage(str(path))
    options = resolve([("test", {**QUICK, **NO_HEARTBEAT})])
    done = recover.recover(RecoverRequest(base_path=str(path), options=options, apply=True), storage)
    assert done.state is RunState.COMPLETED
    after = open_local(path)
    assert not after.timeline.pending() and not any(after.timeline.at(ts) for ts in times)
    assert rows_of(after, listed_view(after)).equals(before)
    assert not [file for ts in times for file in path.rglob(f"*_{ts}.parquet")]
    logs = Counter(one.path for one in storage.requests if one.method.startswith("read") and ".log." in one.path)
    assert max(logs.values(), default=0) <= 2, logs
    return len(storage.requests)


@pytest.mark.spread(3)
@pytest.mark.parametrize("under_a_lock", ["all", "one"])
@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_each_costs_the_same(
    version: int, table_type: str, under_a_lock: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if under_a_lock == "one":
        monkeypatch.setattr(repairs, "_SECTION_SECONDS", 0.0)
        monkeypatch.setattr(repairs, "_PAUSE_SECONDS", 0.0)
    kinds = [requested, begun, written, told, *([appended] if table_type == "MERGE_ON_READ" else [])]
    found = []
    for count in (_FEW, _MANY):
        table = create(tmp_path / str(count), table_type=table_type, table_version=version)
        table.bulk_insert(rows(0, 40))
        found.append(recovered(tmp_path / str(count), count, kinds))
    few, many = found
    each = (many - few) / (_MANY - _FEW)
    # What is asked once does not grow with them, and a table with three times as many costs no more for each.
    assert each <= 1.1 * few / _FEW, (few, many)
