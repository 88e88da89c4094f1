"""Where Spark is one of Spark Connect, what needs its tasks is refused, and nothing is written."""

from pathlib import Path

import pytest

import hudi_services
from hudi_services.cli.app import run

from .tables import digest, unpack

SESSIONS = {
    "SPARK_REMOTE": "sc://127.0.0.1:15002",
    "SPARK_CONNECT_MODE_ENABLED": "1",
    "SPARK_API_MODE": "connect",
}


@pytest.mark.parametrize("variable", SESSIONS)
def test_commands_are_refused(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = unpack("1.2.0", tmp_path)
    before = digest(path)
    monkeypatch.setenv(variable, SESSIONS[variable])
    both = ["--mode", "scheduleAndExecute"]
    for command, *flags in (["execute", *both], ["compact", *both], ["index-bootstrap"]):
        assert run([command, "--base-path", str(path), *flags]) == 2
        assert "a session of Spark Connect does not run" in capsys.readouterr().err
    written = ["write", "--base-path", str(path), "--input", str(path), "--spark-master", "local[1]"]
    assert run(written) == 2
    assert "a session of Spark Connect does not run" in capsys.readouterr().err
    with pytest.raises(hudi_services.ConfigError, match="Spark Connect"):
        hudi_services.open(path).cluster()
    assert digest(path) == before


def test_this_process_works_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", SESSIONS["SPARK_REMOTE"])
    assert hudi_services.open(unpack("1.2.0", tmp_path), engine="local").cluster().state == "completed"
