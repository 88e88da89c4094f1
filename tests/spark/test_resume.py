"""Spark, or a process, fails `execute` after some groups; the next attempt does the rest."""

from pathlib import Path

import pytest

from hudi_services.jobs import clustering
from hudi_services.runs.request import Mode
from tests.unit.tables import listed_view, open_local, request, rows, unpack

from .killed_execution import Executions

pytestmark = pytest.mark.spark


@pytest.mark.thorough
@pytest.mark.parametrize("engine", [pytest.param("spark", marks=pytest.mark.deep), "local"])
def test_what_is_done_survives_a_lost_job(engine: str, tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    before = rows(open_local(path), listed_view(open_local(path)))
    single = {"hoodie.clustering.plan.strategy.class": "single_file"}
    single["hoodie.clustering.plan.strategy.sort.columns"] = "_hoodie_record_key"
    report = clustering.schedule(request(path, Mode.SCHEDULE, single))
    assert report.instant and report.groups == 8
    executions = Executions(path, report.instant, tmp_path, engine=engine)
    errors = executions.failed_after(3)
    kept = len(executions.notes())
    assert f"{kept} finished tasks are kept" in errors and "the next execute does the rest" in errors
    if engine == "spark":
        done, errors = executions.without_java_after(3)
        assert "its Java process is gone" in errors
    else:
        done, errors = executions.tried_again_after(3)
        assert "a process was ended by SIGKILL" in errors
    assert f"{kept + 3} finished tasks are kept; trying again (1 of 1)" in errors
    assert (done["state"], done["groups"], done["resumed_groups"], done["rows"]["out"]) == (
        "completed",
        8,
        kept + 3,
        400,
    )
    assert len(executions.seen()) == 3 + 1 + 8 - (kept + 3)
    assert rows(open_local(path), listed_view(open_local(path))).equals(before)
    assert executions.notes() == []
