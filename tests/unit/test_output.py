"""What is written to stdout and stderr, and how a run ends that cannot write its report."""

import errno
import io
import json
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hudi_services.cli import command as cli
from hudi_services.cli import terminal
from hudi_services.cli.app import run
from hudi_services.errors import ConflictError, PartlyDone
from hudi_services.runs import config_files
from hudi_services.runs.report import Report, TableFacts
from hudi_services.runs.report_rows import PartitionRow
from hudi_services.runs.request import ClusteringRequest

ROOT = Path(__file__).resolve().parents[2]
TS = "20260101000000000"
HOSTILE = "a\x1b]0;owned\x07\x1b[2J\x9b31m\nerror: b\r\u202egnp\u2066\u2028[bold]c\udcff tä日"
SHOWN = r"a\x1b]0;owned\x07\x1b[2J\x9b31m\x0aerror: b\x0d\u202egnp\u2066\u2028[bold]c\udcff tä日"


class Broken(io.TextIOWrapper):
    """A stream that takes nothing, as a pipe without a reader or a full disk."""

    def __init__(self, error: Exception) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8")
        self.error = error

    def write(self, text: str) -> int:
        if text:
            raise self.error
        return 0


def outcome(monkeypatch: pytest.MonkeyPatch, end: Exception | None = None, **facts: object) -> None:
    """Let a run of clustering end so, with these fields of its report."""

    def job(wanted: ClusteringRequest) -> Report:
        report = Report.start(wanted)
        for name, value in facts.items():
            setattr(report, name, value)
        if end is not None:
            raise end
        return report.requested(TS)

    monkeypatch.setattr(cli, "job_of", lambda wanted: job)
    monkeypatch.setattr(config_files, "default_files", lambda environment: [])


def ascii_stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="ascii")


def written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode("ascii")


@pytest.mark.parametrize("form", ["json", "table"])
@pytest.mark.parametrize(
    "stdout",
    [None, BrokenPipeError(errno.EPIPE, "Broken pipe"), OSError(errno.ENOSPC, "No space left")],
    ids=["closed", "pipe", "full"],
)
@pytest.mark.parametrize(
    ("end", "code"), [(None, 7), (ConflictError("changed"), 4), (PartlyDone("markers are left"), 7)]
)
def test_a_stdout_that_takes_nothing_costs_neither_the_report_nor_the_code(
    form: str,
    stdout: Exception | None,
    end: Exception | None,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    outcome(monkeypatch, end)
    file = tmp_path / "report.json"
    monkeypatch.setattr(sys, "stdout", stdout and Broken(stdout))
    assert run(["schedule", "-sp", "/t", "--format", form, "--report", str(file)]) == code
    err = capsys.readouterr().err
    assert json.loads(file.read_text())["instant"] == (TS if end is None else None)
    if form == "json" or not isinstance(end, ConflictError):
        assert err.count("error: ") == (1 if end is None else 2) and "could not be written to stdout" in err


def test_a_broken_stderr_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    for stderr in (None, Broken(OSError(errno.ENOSPC, "No space left"))):
        for stdout, warnings, code in ((None, [], 7), (ascii_stream(), [], 0), (ascii_stream(), ["mind"], 7)):
            outcome(monkeypatch, warnings=warnings)
            monkeypatch.setattr(sys, "stderr", stderr)
            monkeypatch.setattr(sys, "stdout", stdout)
            assert run(["schedule", "-sp", "/t", "--format", "json", "--report", str(file)]) == code
            assert json.loads(file.read_text())["state"] == "requested"
            file.unlink()
        outcome(monkeypatch, ConflictError("changed"))
        assert run(["schedule", "-sp", "/t"]) == 4


def test_a_report_file_that_is_full_shows_in_what_stdout_gets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome(monkeypatch)
    assert run(["schedule", "-sp", "/t", "--format", "json", "--report", "/dev/full"]) == 7
    out, err = capsys.readouterr()
    assert json.loads(out)["exit_code"] == 7 and "could not be written to /dev/full" in err


@pytest.mark.thorough
def test_names_do_nothing_to_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    row = PartitionRow(HOSTILE, files=1, bytes=1)
    file = tmp_path / "report.json"
    for end in (None, PartlyDone(HOSTILE, hint=HOSTILE), ConflictError(HOSTILE, hint=HOSTILE)):
        facts = TableFacts("/t" + HOSTILE, HOSTILE, "COPY_ON_WRITE", 9)
        outcome(monkeypatch, end, table=facts, warnings=[HOSTILE], left_out={HOSTILE: 1}, lists={PartitionRow: [row]})
        for more in ([], ["--verbose"]):
            run(["schedule", "-sp", "/t" + HOSTILE, "--hoodie-conf", "hoodie.zzz=" + HOSTILE, *more])
            logging.getLogger("hudi_services.x").warning("%s", HOSTILE)
            out, err = capsys.readouterr()
            # No character of the table acts; what is left of rich is bold.
            assert not set(out + err) & set(HOSTILE) - set(SHOWN) - {"\n"}
            assert f"warning: {SHOWN}\n{'error' if end else ''}" in err and err.endswith(SHOWN + "\n")
            if not isinstance(end, ConflictError):
                assert r"a\x1b]0;owned\x07\x1b[2J\x9b31m\x0aerr" in out.replace("\n", "") and "[bold]c" in out
        for stream in ([], ["--report", str(file)]):
            run(["schedule", "-sp", "/t", "--format", "json", *stream])
            text = file.read_text() if stream else capsys.readouterr().out
            assert not set(text) & set(HOSTILE) - set(SHOWN) - {"\n"} and "tä日" in text
            assert json.loads(text)["table"]["name"] == HOSTILE


def test_a_traceback_does_nothing_to_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome(monkeypatch, ValueError(HOSTILE))
    assert run(["schedule", "-sp", "/t", "--verbose"]) == 1
    err = capsys.readouterr().err
    assert "Traceback" in err and "\x1b" not in err and "\u202e" not in err


@pytest.mark.parametrize("form", ["json", "table"])
def test_an_ascii_terminal(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome(monkeypatch, table=TableFacts("/tä", "日😀"), warnings=["ö"])
    monkeypatch.setattr(sys, "stdout", ascii_stream())
    monkeypatch.setattr(sys, "stderr", ascii_stream())
    assert run(["schedule", "-sp", "/t", "--format", form]) == 0
    out, err = written(sys.stdout), written(sys.stderr)  # type: ignore[arg-type]
    assert err == "warning: \\xf6\n"
    assert json.loads(out)["table"]["name"] == "日😀" if form == "json" else r"/t\xe4" in out


def hudi_services(shell: str, table: str) -> subprocess.CompletedProcess[str]:
    """Run in a shell, $RUN being the program and $TABLE its table."""
    names = {"RUN": f"{sys.executable} -m hudi_services", "TABLE": table}
    return subprocess.run(["bash", "-c", shell], cwd=ROOT, env={**os.environ, **names}, capture_output=True, text=True)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("shell", "code", "lines"),
    [
        ("($RUN schedule -sp $TABLE --format json; echo $? >&2) | true", 2, 2),
        ("$RUN schedule -sp $TABLE --format json > /dev/full; echo $? >&2", 2, 4),
        ("$RUN schedule -sp $TABLE <&- >&- 2>&-; echo $? >&2", 2, 0),
        ("($RUN --help; echo $? >&2) | true", 7, 1),
        ("$RUN --version > /dev/full; echo $? >&2", 7, 1),
    ],
    ids=["pipe", "full", "all closed", "help", "version"],
)
def test_a_process_that_cannot_tell_ends_in_order(shell: str, code: int, lines: int, tmp_path: Path) -> None:
    done = hudi_services(shell, str(tmp_path))
    assert done.stderr.splitlines()[-1] == str(code)
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
    assert len(done.stderr.splitlines()) - 1 in ({lines, 4} if lines else {0}), done.stderr


def test_what_libraries_print_does_not_go_into_the_next_file() -> None:
    code = "import os; from hudi_services.cli.terminal import open_closed_streams; open_closed_streams();"
    done = hudi_services(f"{sys.executable} -c '{code} print(os.open(\"/dev/null\", 0))' <&- 2>&-", "")
    assert int(done.stdout) > 2


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_at_any_time_is_one_sentence(number: signal.Signals, code: int, tmp_path: Path) -> None:
    """The program waits in the import of typer, then in a run."""
    (tmp_path / "typer").mkdir()
    waits = "import time; print('now', flush=True); time.sleep(60)"
    (tmp_path / "typer" / "__init__.py").write_text(waits)
    patched = f"import hudi_services.cli.service as s; s._run = lambda *a: exec({waits!r})"
    program = [sys.executable, "-c", f"{patched}; import hudi_services.__main__ as m; m.main()"]
    imports = {**os.environ, "PYTHONPATH": str(tmp_path)}
    runs = [([sys.executable, "-m", "hudi_services"], imports), ([*program, "schedule", "-sp", "/t"], dict(os.environ))]
    if number == signal.SIGTERM:
        del runs[0]  # nobody waits for what has not begun: the signal's own end
    for words, environment in runs:
        with subprocess.Popen(
            words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None and process.stdout.readline() == "now\n"
            time.sleep(0.05)
            process.send_signal(number)
            _, err = process.communicate(timeout=30)
        assert (process.returncode, err.count("\n")) == (code, 2), err
        assert err.startswith("error: interrupted\nhint: ")


def test_json_without_any_character_that_acts() -> None:
    active = [chr(n) for n in range(sys.maxunicode) if terminal._ACTIVE.match(chr(n))]
    assert len(active) > 2000
    for one in active:
        text = terminal.harmless_json({"key": f"tä{one}日"})
        assert one == "\n" or one not in text
        assert json.loads(text) == {"key": f"tä{one}日"}
