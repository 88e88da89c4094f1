import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_services import __version__
from hudi_services.cli import command as cli
from hudi_services.cli.app import run
from hudi_services.errors import ConflictError, HudiServicesError, LockBusy
from hudi_services.options import clustering_keys as keys
from hudi_services.options import file_keys, lock_keys
from hudi_services.runs.report import InOut, Report, TableFacts
from hudi_services.runs.request import ClusteringRequest, Mode

ROOT = Path(__file__).resolve().parents[2]
TS = "20260101000000000"
TARGET = keys.TARGET_FILE_BYTES
LONG_AND_SHORT = {
    "--base-path": "-sp",
    "--table-name": "-tn",
    "--instant-time": "-it",
    "--parallelism": "-pl",
    "--spark-master": "-ms",
    "--spark-memory": "-sm",
    "--retry": "-rt",
    "--mode": "-m",
    "--schedule": "-sc",
    "--retry-last-failed-clustering-job": "-rc",
    "--job-max-processing-time-ms": "-jt",
}


class Jobs:
    """Stands in for the jobs: keeps the requests and does as told."""

    def __init__(self) -> None:
        self.requests: list[ClusteringRequest] = []
        self.outcome: Callable[[Report], Report] = lambda report: report.completed(TS)

    def __call__(self, found: ClusteringRequest) -> Callable[[ClusteringRequest], Report]:
        def job(wanted: ClusteringRequest) -> Report:
            assert wanted.mode is found.mode
            self.requests.append(wanted)
            return self.outcome(Report.start(wanted))

        return job

    def fail(self, error: BaseException) -> None:
        def raise_it(report: Report) -> Report:
            raise error

        self.outcome = raise_it


pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Jobs:
    fake = Jobs()
    monkeypatch.setattr(cli, "job_of", fake)
    return fake


@pytest.mark.parametrize("long", [True, False])
def test_every_flag_of_hoodie_clustering_job(jobs: Jobs, long: bool) -> None:
    def name(flag: str) -> str:
        return flag if long else LONG_AND_SHORT[flag]

    values = {
        "--base-path": "/t",
        "--table-name": "rides",
        "--instant-time": TS,
        "--parallelism": "3",
        "--spark-master": "local[2]",
        "--spark-memory": "4g",
        "--retry": "0",
        "--mode": "EXECUTE",
        "--job-max-processing-time-ms": "60000",
    }
    words = [word for flag, value in values.items() for word in (name(flag), value)]
    assert run(["execute", *words, name("--schedule"), name("--retry-last-failed-clustering-job")]) == 0
    (wanted,) = jobs.requests
    assert (wanted.base_path, wanted.table_name, wanted.instant, wanted.mode) == ("/t", "rides", TS, Mode.EXECUTE)
    assert (wanted.spark_master, wanted.spark_memory) == ("local[2]", "4g")
    assert (wanted.retry_last_failed, wanted.max_processing_millis) == (True, 60000)
    assert wanted.options[file_keys.MAX_PARALLELISM] == 3
    assert wanted.options.source(file_keys.MAX_PARALLELISM) == "--parallelism"


@pytest.mark.parametrize(
    ("arguments", "mode"),
    [
        (["schedule"], Mode.SCHEDULE),
        (["execute"], Mode.EXECUTE),
        (["execute", "-sc"], Mode.SCHEDULE),
        (["execute", "-m", "schedule"], Mode.SCHEDULE),
        (["schedule", "-m", "scheduleandexecute"], Mode.SCHEDULE_AND_EXECUTE),
        (["schedule", "-sc", "-m", "execute"], Mode.EXECUTE),
    ],
)
def test_mode(jobs: Jobs, arguments: list[str], mode: Mode) -> None:
    assert run([*arguments, "-sp", "/t"]) == 0
    assert jobs.requests[0].mode is mode


def test_scheduling_and_executing_makes_its_own_instant(jobs: Jobs) -> None:
    run(["execute", "-sp", "/t", "-m", "scheduleAndExecute", "-it", TS])
    assert jobs.requests[0].instant is None


def test_precedence(jobs: Jobs, tmp_path: Path) -> None:
    (tmp_path / "conf").write_text(f"{TARGET.key} 1\n{keys.MAX_NUM_GROUPS.key} 1\n{keys.SORT_COLUMNS.key}   a,  b\n")
    (tmp_path / "props").write_text(f"# not this\n{TARGET.key}=2\n{keys.MAX_NUM_GROUPS.key} = 2\n")
    flags = ["--conf-file", str(tmp_path / "conf"), "--props", str(tmp_path / "props")]
    assert run(["schedule", "-sp", "/t", *flags, "--hoodie-conf", f"{TARGET.key}=3"]) == 0
    options = jobs.requests[0].options
    assert (options[TARGET], options.source(TARGET)) == (3, "--hoodie-conf")
    assert (options[keys.MAX_NUM_GROUPS], options.source(keys.MAX_NUM_GROUPS)) == (2, f"--props {tmp_path}/props")
    assert (options[keys.SORT_COLUMNS], options.source(keys.SORT_COLUMNS)) == ("a, b", f"conf file {tmp_path}/conf")


def test_lock_wait(jobs: Jobs) -> None:
    """It comes before all other sources, and has no limit that a table has."""
    wait = lock_keys.LOCK_WAIT_MILLIS
    for seconds in ("0", "3600"):
        assert run(["schedule", "-sp", "/t", "--hoodie-conf", f"{wait.key}=5", "--lock-wait", seconds]) == 0
        options = jobs.requests[-1].options.over_table({wait.key: "20"})
        assert (options[wait], options.source(wait)) == (int(seconds) * 1000, "--lock-wait")


def test_hoodie_conf_may_be_repeated_and_the_last_one_stands(jobs: Jobs) -> None:
    conf = [f"{TARGET.key}=1", f"{keys.PARTITION_REGEX.key}=a=.*", f"{TARGET.key}=2"]
    run(["schedule", "-sp", "/t", *(word for text in conf for word in ("--hoodie-conf", text))])
    options = jobs.requests[0].options
    assert (options[TARGET], options[keys.PARTITION_REGEX]) == (2, "a=.*")


def test_json_is_all_that_stdout_gets(jobs: Jobs, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    arguments = ["--format", "json", "--report", str(file), "--hoodie-conf", "hoodie.claen.automatic=true"]
    assert run(["execute", "-sp", "/t", *arguments]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert (document["state"], document["instant"], document["exit_code"]) == ("completed", TS, 0)
    assert "total" in document["seconds"]
    assert json.loads(file.read_text()) == document
    assert err.startswith("warning: hoodie.claen.automatic") and "hoodie.clean.automatic" in document["warnings"][0]


def test_the_table_form(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    def outcome(report: Report) -> Report:
        report.table = TableFacts("/t", "rides[red]", "COPY_ON_WRITE", 9)
        report.files, report.bytes = InOut(100, 4), InOut(500_000_000, None)
        report.left_out = {"has log files": 2}
        return report.requested(TS)

    jobs.outcome = outcome
    assert run(["schedule", "-sp", "/t", "--hoodie-conf", f"{TARGET.key}=1073741824"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    for part in ("rides[red]", "100 files (477 MiB) are to become 4", TS, "has log files", "--hoodie-conf"):
        assert part in out
    assert keys.MAX_NUM_GROUPS.key not in out


@pytest.mark.parametrize(("flags", "code"), [([], 0), (["--fail-if-idle"], 3)])
def test_nothing_to_do(jobs: Jobs, capsys: pytest.CaptureFixture[str], flags: list[str], code: int) -> None:
    jobs.outcome = lambda report: report.idle("there is no pending clustering")
    assert run(["execute", "-sp", "/t", "--format", "json", *flags]) == code
    document = json.loads(capsys.readouterr().out)
    assert (document["state"], document["exit_code"]) == ("idle", code)
    assert document["reason"] == "there is no pending clustering"


def test_an_error_is_a_sentence_a_hint_and_its_exit_code(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.fail(ConflictError("files changed", hint="schedule again"))
    assert run(["execute", "-sp", "/t"]) == 4
    assert capsys.readouterr() == ("", "error: files changed\nhint: schedule again\n")
    assert run(["execute", "-sp", "/t", "--format", "json"]) == 4
    document = json.loads(capsys.readouterr().out)
    assert document["error"] == {"type": "ConflictError", "message": "files changed", "hint": "schedule again"}


def test_tracebacks_only_with_verbose(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.fail(ValueError("what?"))
    assert run(["execute", "-sp", "/t"]) == 1
    assert capsys.readouterr().err.startswith("error: ValueError: what?\nhint: run it again with --verbose")
    assert run(["execute", "-sp", "/t", "--verbose"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_interrupted(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.fail(KeyboardInterrupt())
    assert run(["execute", "-sp", "/t"]) == 130
    err = capsys.readouterr().err
    assert err.startswith("error: interrupted\n") and err.endswith("rolled back by the next run\n")


def test_interrupted_in_the_middle_of_an_import(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    error = RuntimeError("Error calling __set_name__ on 'Field' instance")  # as Python 3.11 tells it
    error.__cause__ = KeyboardInterrupt()
    jobs.fail(error)
    assert run(["execute", "-sp", "/t"]) == 130
    assert capsys.readouterr().err.startswith("error: interrupted\n")


def test_retry(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    jobs.fail(LockBusy("busy"))
    assert run(["execute", "-sp", "/t", "--retry", "2"]) == 4
    assert len(jobs.requests) == 3


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([], "Missing command"),
        (["cluster"], "cluster"),
        (["schedule"], "--base-path"),
        (["schedule", "-sp"], "-sp"),
        (["schedule", "-sp", " "], "--base-path is empty"),
        (["schedule", "-sp", "/t", "--nope"], "--nope"),
        (["schedule", "-sp", "/t", "extra"], "extra"),
        (["schedule", "-sp", "/t", "-m", "never"], "--mode never"),
        (["schedule", "-sp", "/t", "-rt", "-1"], "--retry"),
        (["schedule", "-sp", "/t", "-pl", "many"], "--parallelism"),
        (["schedule", "-sp", "/t", "--lock-wait", "604801"], "--lock-wait"),
        (["schedule", "-sp", "/t", "--format", "xml"], "--format"),
        (["schedule", "-sp", "/t", "--hoodie-conf", "no equals"], "KEY=VALUE"),
        (["schedule", "-sp", "/t", "--hoodie-conf", f"{TARGET.key}=0"], TARGET.key),
        (["schedule", "-sp", "/t", "--props", "/not/there"], "/not/there does not exist"),
        (["schedule", "-sp", "/t", "--conf-file", "/not/there"], "/not/there does not exist"),
        (["schedule", "-sp", "/t", "--report", "/not/there/report.json"], "--report"),
    ],
)
def test_usage(jobs: Jobs, capsys: pytest.CaptureFixture[str], arguments: list[str], part: str) -> None:
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and jobs.requests == []
    sentence, *hint = err.splitlines()
    assert sentence.startswith("error: ") and part in sentence and len(hint) <= 1


def test_help_tells_every_flag_of_hoodie_clustering_job(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["execute", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for long, short in LONG_AND_SHORT.items():
        assert re.search(rf"(^| ){short}, {long}(,| |$)", text), long
    for flag in (
        "--retry-last-failed-job",
        "--props",
        "--hoodie-conf",
        "--conf-file",
        "--format",
        "--report",
        "--fail-if-idle",
        "--verbose",
    ):
        assert flag in text


def test_a_report_that_cannot_be_written_after_all(
    jobs: Jobs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()

    def outcome(report: Report) -> Report:
        folder.rmdir()
        return report.completed(TS)

    jobs.outcome = outcome
    assert run(["execute", "-sp", "/t", "--report", str(folder / "r.json")]) == 7
    assert "could not be written" in capsys.readouterr().err


@pytest.mark.parametrize(
    "program", [["-m", "hudi_services"], [str(ROOT / "hudi_services" / "__main__.py")]], ids=["module", "file"]
)
def test_one_program_by_every_name(program: list[str], tmp_path: Path) -> None:
    folder = ROOT if program[0] == "-m" else tmp_path
    done = subprocess.run([sys.executable, *program, "--version"], cwd=folder, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == (f"hudi-services {__version__}\n", 0)


def test_a_wrong_flag_is_told_before_arrow_or_spark_is_loaded() -> None:
    code = (
        "import sys; from hudi_services.cli.app import run; run(['schedule', '-sp', '/t', '-m', 'x']);"
        "print([m for m in ('pyarrow', 'pyspark', 'rich', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_errors_of_the_family_are_pickled_whole() -> None:
    import pickle

    again = pickle.loads(pickle.dumps(ConflictError("a", hint="b")))
    assert isinstance(again, HudiServicesError) and (again.message, again.hint) == ("a", "b")
