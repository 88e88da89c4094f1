"""When Java starts before the job is loaded: where a plan is pending, or will probably be made."""

from pathlib import Path

import pytest

from hudi_services.engine import LocalEngine
from hudi_services.jobs import clustering, compaction
from hudi_services.options import resolve
from hudi_services.runs import ahead
from hudi_services.runs.request import CompactionRequest, Mode

from . import histories
from .tables import request, unpack

EAGER = resolve([("test", {"hoodie.compact.inline.max.delta.commits": "1"})])


def test_a_clustering(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = unpack("1.2.0", tmp_path)
    execute, both = request(path, Mode.EXECUTE), request(path, Mode.SCHEDULE_AND_EXECUTE)
    # Nothing is pending, and the table was written.
    assert [ahead._is_expected(one) for one in (execute, both)] == [False, True]
    clustering.schedule(request(path, Mode.SCHEDULE))
    assert [ahead._is_expected(one) for one in (execute, both)] == [True, True]
    others = (
        request(path, Mode.SCHEDULE),
        request(path, Mode.EXECUTE, dry_run=True),
        request(path, Mode.EXECUTE, spark_master="yarn"),
        request(path, Mode.EXECUTE, {"hudi.services.engine": "local"}),
        request("s3://bucket/table", Mode.EXECUTE),
        request(tmp_path / "none", Mode.EXECUTE),
    )
    assert [ahead._is_expected(one) for one in others] == [False] * len(others)
    clustering.execute(execute, engine=LocalEngine())
    assert [ahead._is_expected(one) for one in (execute, both)] == [False, False]
    monkeypatch.setenv("SPARK_REMOTE", "sc://somewhere")
    clustering.schedule(request(path, Mode.SCHEDULE))
    assert not ahead._is_expected(execute)


def test_a_compaction(tmp_path: Path) -> None:
    path = histories.MadeHistory("1.2.0", "bucket", tmp_path).path
    schedule, execute, both = (
        CompactionRequest(base_path=str(path), mode=mode, options=EAGER)
        for mode in (Mode.SCHEDULE, Mode.EXECUTE, Mode.SCHEDULE_AND_EXECUTE)
    )
    assert [ahead._is_expected(one) for one in (execute, both)] == [False, True]
    compaction.schedule(schedule)
    assert [ahead._is_expected(one) for one in (execute, both)] == [True, True]
    compaction.execute(execute, engine=LocalEngine())
    assert [ahead._is_expected(one) for one in (execute, both)] == [False, False]
