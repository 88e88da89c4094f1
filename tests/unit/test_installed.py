"""The wheel, installed where there is no repository and no pyspark."""

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from .repairs import DEAD_AT_ONCE, fail_newest
from .tables import digest, unpack

ROOT = Path(__file__).resolve().parents[2]
ABSENT = ("pyspark", "py4j", "hudi_services", "__editable__")


class Installed:
    """A virtual environment with the wheel, and with all that is installed here but for what is `ABSENT`."""

    def __init__(self, folder: Path) -> None:
        quick = ["--no-build-isolation"] if importlib.util.find_spec("hatchling") else []
        self._pip("wheel", "--no-deps", *quick, "--wheel-dir", str(folder), str(ROOT))
        self.folder = folder / "venv"
        venv.create(self.folder, symlinks=True)
        (wheel,) = folder.glob("*.whl")
        self._pip("--python", str(self.python), "install", "--no-deps", "--no-index", str(wheel))
        self._libraries = folder / "libraries"
        self._libraries.mkdir()
        for entry in Path(sysconfig.get_path("purelib")).iterdir():
            if not entry.name.startswith(ABSENT) and entry.suffix != ".pth":
                (self._libraries / entry.name).symlink_to(entry)

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def run(
        self, folder: Path, program: str, *arguments: str, **environment: str
    ) -> "subprocess.CompletedProcess[str]":
        known = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK", "SPARK"))
        }
        known |= {"PYTHONPATH": str(self._libraries), **environment}
        line = [str(self.folder / "bin" / program), *arguments]
        return subprocess.run(line, cwd=folder, env=known, capture_output=True, text=True)

    def report(self, program: str, command: str, table: Path, *flags: str) -> dict[str, object]:
        done = self.run(table.parent, program, command, "--base-path", str(table), "--format", "json", *flags)
        document: dict[str, object] = json.loads(done.stdout)
        assert done.returncode == document["exit_code"]
        return document

    def _pip(self, *words: str) -> None:
        line = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *words]
        subprocess.run(line, check=True, cwd="/")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("installed"))


@pytest.mark.thorough
def test_the_launcher_finds_the_package(installed: Installed, tmp_path: Path) -> None:
    """And not one in the folder where it is started."""
    submit = tmp_path / "spark" / "bin" / "spark-submit"
    submit.parent.mkdir(parents=True)
    submit.write_text('#!/bin/sh\necho "$1" >"$SEEN"\nexec "$PYSPARK_PYTHON" "$@"\n')
    submit.chmod(0o755)
    there = {"SPARK_HOME": str(tmp_path / "spark"), "SEEN": str(tmp_path / "seen")}
    false_package = tmp_path / "hudi_services"
    false_package.mkdir()
    (false_package / "__init__.py").write_text("raise SystemExit('the wrong one')")
    helped = installed.run(tmp_path, "hudi-services-submit", "--help", **there)
    assert helped.returncode == 0 and "index-bootstrap" in helped.stdout, helped.stderr
    main = Path((tmp_path / "seen").read_text().strip())
    assert main.name == "__main__.py" and installed.folder in main.parents
    table = unpack("1.2.0", tmp_path)
    planned = installed.run(
        tmp_path, "hudi-services-submit", "schedule", "-sp", str(table), "--format", "json", **there
    )
    assert json.loads(planned.stdout)["state"] == "requested"


@pytest.mark.thorough
def test_commands_without_spark(installed: Installed, tmp_path: Path) -> None:
    table = unpack("1.2.0", tmp_path)
    program = "hudi-services"
    assert installed.report(program, "schedule", table, "--dry-run")["state"] == "completed"
    assert installed.report(program, "validate", table)["state"] == "completed"
    assert installed.report(program, "clean", table)["state"] == "idle"
    assert installed.report(program, "orphan-files", table)["state"] == "idle"
    assert installed.report(program, "index-lookup", table, "--keys-file", os.devnull)["exit_code"] == 2
    failed = fail_newest(table)
    dead = [word for key, value in DEAD_AT_ONCE.items() for word in ("--hoodie-conf", f"{key}={value}")]
    assert installed.report(program, "recover", table, *dead)["state"] == "completed"
    assert installed.report(program, "rollback", table, "--instant", failed, *dead)["state"] == "completed"
    planned = installed.report(program, "schedule", table)
    assert planned["state"] == "requested"
    assert installed.report(program, "undo", table, "--instant", str(planned["instant"]))["exit_code"] == 2


@pytest.mark.thorough
@pytest.mark.parametrize("command", [("execute",), ("execute", "-m", "scheduleAndExecute"), ("index-bootstrap",)])
def test_what_needs_spark_says_so(installed: Installed, command: tuple[str, ...], tmp_path: Path) -> None:
    table = unpack("1.2.0", tmp_path)
    before = digest(table)
    report = installed.report("hudi-services", command[0], table, *command[1:])
    error = report["error"]
    assert isinstance(error, dict)
    assert (error["type"], report["exit_code"]) == ("ConfigError", 2)
    assert error["message"] == "this work on Spark needs the Python module pyspark, which is missing"
    assert "pip install 'hudi-services[spark]'" in error["hint"]
    assert digest(table) == before


def test_the_local_engine_needs_no_spark(installed: Installed, tmp_path: Path) -> None:
    table = unpack("1.2.0", tmp_path)
    code = (
        "import sys, hudi_services;"
        f"table = hudi_services.open({str(table)!r}, engine='local');"
        "print(table.cluster().state.value, table.build_index().state.value, 'pyspark' in sys.modules)"
    )
    done = installed.run(tmp_path, "python", "-P" if sys.version_info >= (3, 11) else "-B", "-c", code)
    assert (done.stdout, done.stderr) == ("completed completed False\n", "")
