import json

import pytest

from hudi_services.errors import (
    CheckFailed,
    ConfigError,
    ConflictError,
    CorruptFile,
    HudiServicesError,
    LockBusy,
    NeedsRecovery,
    NotFound,
    NothingToDo,
    PartlyDone,
    PermissionDenied,
    StorageError,
)
from hudi_services.options import clustering_keys, file_keys, resolve
from hudi_services.runs.report import CheckResult, InOut, NamedCheck, Report, RunState, TableFacts
from hudi_services.runs.request import ClusteringRequest, Mode
from hudi_services.runs.retries import run_with_retries


def request(mode: Mode = Mode.EXECUTE) -> ClusteringRequest:
    return ClusteringRequest(
        base_path="/t", mode=mode, options=resolve([("--hoodie-conf", {file_keys.PARQUET_CODEC.key: "gzip"})])
    )


def test_the_document() -> None:
    report = Report.start(request())
    report.table = TableFacts("/t", "rides", "COPY_ON_WRITE", 9)
    report.groups, report.files, report.bytes, report.rows = 1, InOut(25, 1), InOut(100, 90), InOut(7, 7)
    report.left_out = {"has log files": 2}
    report.checks.append(NamedCheck("row conservation", CheckResult.PASSED, "7 rows"))
    report.warnings.append("mind the gap")
    with report.phase("rewrite"):
        pass
    document = json.loads(json.dumps(report.completed("20260101000000000").document()))
    assert document["version"] == 1
    assert document["table"] == {"base_path": "/t", "name": "rides", "type": "COPY_ON_WRITE", "table_version": 9}
    assert (document["action"], document["state"], document["instant"]) == ("execute", "completed", "20260101000000000")
    assert (document["files"], document["rows"]) == ({"in": 25, "out": 1}, {"in": 7, "out": 7})
    assert document["checks"] == [{"name": "row conservation", "result": "passed", "detail": "7 rows"}]
    assert document["options"] == sorted(document["options"], key=lambda setting: setting["key"])
    codec = {"key": file_keys.PARQUET_CODEC.key, "value": "gzip", "source": "--hoodie-conf"}
    assert codec in document["options"]
    assert clustering_keys.TARGET_FILE_BYTES.key not in {setting["key"] for setting in document["options"]}
    assert document["warnings"] == ["mind the gap"] and document["error"] is None
    assert list(document["seconds"]) == ["rewrite"]


@pytest.mark.parametrize(
    ("error", "state", "code"),
    [
        (HudiServicesError("x"), RunState.FAILED, 1),
        (CorruptFile("x"), RunState.FAILED, 1),
        (ConfigError("x"), RunState.FAILED, 2),
        (NothingToDo("x"), RunState.IDLE, 0),
        (ConflictError("x"), RunState.FAILED, 4),
        (LockBusy("x"), RunState.FAILED, 4),
        (CheckFailed("x"), RunState.FAILED, 5),
        (NeedsRecovery("x"), RunState.FAILED, 6),
        (PartlyDone("x"), RunState.PARTLY_DONE, 7),
        (ValueError("x"), RunState.FAILED, 1),
    ],
)
def test_every_error_ends_a_report(error: Exception, state: RunState, code: int) -> None:
    report = Report.start(request()).failed(error)
    assert (report.state, report.exit_code) == (state, code)


def test_an_error_is_told_in_one_line_with_its_hint() -> None:
    document = Report.start(request()).failed(ConfigError("so\n  it is", hint="do that")).document()
    assert document["error"] == {"type": "ConfigError", "message": "so it is", "hint": "do that"}
    document = Report.start(request()).failed(ValueError("first\nsecond")).document()
    assert document["error"]["message"] == "ValueError: first"


def test_what_the_job_found_out_survives_its_error() -> None:
    def job(wanted: ClusteringRequest) -> Report:
        report = Report.start(wanted)
        report.groups = 3
        raise CheckFailed("rows differ")

    report = run_with_retries(job, request(), 0, lambda seconds: None)
    assert (report.groups, report.exit_code) == (3, 5)


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (StorageError("x"), 3),
        (LockBusy("x"), 3),
        (RuntimeError("Spark died"), 3),
        (ConflictError("x"), 1),
        (ConfigError("x"), 1),
        (CheckFailed("x"), 1),
        (CorruptFile("x"), 1),
        (PermissionDenied("x"), 1),
        (NotFound("x"), 1),
        (NothingToDo("x"), 1),
        (PartlyDone("x"), 1),
    ],
)
def test_only_what_time_may_mend_is_tried_again(error: Exception, tries: int) -> None:
    seen: list[ClusteringRequest] = []

    def job(wanted: ClusteringRequest) -> Report:
        seen.append(wanted)
        raise error

    report = run_with_retries(job, request(Mode.SCHEDULE_AND_EXECUTE), 2, lambda seconds: None)
    assert len(seen) == tries
    assert [wanted.retry_last_failed for wanted in seen] == [False, True, True][:tries]
    assert report.exit_code == getattr(error, "exit_code", 1)


def test_a_later_try_may_succeed() -> None:
    pauses: list[float] = []

    def job(wanted: ClusteringRequest) -> Report:
        if not pauses:
            raise StorageError("a hiccup")
        return Report.start(wanted).completed("20260101000000000")

    report = run_with_retries(job, request(), 5, pauses.append)
    assert (report.state, report.exit_code, report.error, len(pauses)) == (RunState.COMPLETED, 0, None, 1)
