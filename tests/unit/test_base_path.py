"""Where a command line starts: base paths that no table can have, and working directories that are gone."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from hudi_services.errors import ConfigError
from hudi_services.stores import open_storage

from .tables import unpack

ROOT = Path(__file__).resolve().parents[2]
MAIN = str(ROOT / "hudi_services" / "__main__.py")
IN_A_DELETED_FOLDER = (
    "import os, subprocess, sys, tempfile; here = tempfile.mkdtemp(); os.chdir(here); os.rmdir(here); "
    "sys.exit(subprocess.run([sys.executable, *sys.argv[1:]]).returncode)"
)


def run_without_folder(*arguments: str) -> tuple[int, list[str]]:
    """Exit code and the lines on stderr."""
    done = subprocess.run(
        [sys.executable, "-c", IN_A_DELETED_FOLDER, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stderr.splitlines()


@pytest.mark.thorough
@pytest.mark.parametrize("program", [["-m", "hudi_services"], [MAIN]], ids=["module", "file"])
def test_a_working_directory_that_was_deleted(program: list[str], tmp_path: Path) -> None:
    path, report = str(unpack("1.2.0", tmp_path)), str(tmp_path / "r.json")
    look = [*program, "schedule", "--dry-run", "--base-path"]
    assert run_without_folder(*look, path, "--report", report) == (0, [])
    assert Path(report).exists()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "arguments",
    [("rides",), ("/rides", "--report", "r.json"), ("/rides", "--props", "r.props")],
    ids=lambda one: one[-1],
)
def test_what_is_relative_to_a_directory_that_was_deleted(arguments: tuple[str, ...]) -> None:
    code, lines = run_without_folder(MAIN, "schedule", "--base-path", *arguments)
    assert code == 2 and lines[0].startswith("error: ") and arguments[-1] in lines[0]
    assert "does not exist" in lines[0] and len(lines) <= 2


@pytest.mark.parametrize("url", ["/rides/\udcff", "rides\udc80", "file:///rides/%00", "s3://bucket/\udcff"])
def test_a_base_path_that_is_no_text(url: str) -> None:
    with pytest.raises(ConfigError) as told:
        open_storage(url)
    assert repr(url) in told.value.message and told.value.message.isascii()


def test_a_base_path_that_is_no_text_is_told(tmp_path: Path) -> None:
    table = unpack("1.2.0", tmp_path)
    odd = os.fsencode(tmp_path) + b"/\xff"
    os.rename(table, odd)
    before = sorted(os.walk(odd))
    done = subprocess.run(
        [
            os.fsencode(sys.executable),
            b"-m",
            b"hudi_services",
            b"schedule",
            b"--base-path",
            odd,
            b"--report",
            b"r.json",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and done.stderr.startswith("error: the path ") and r"/\udcff" in done.stderr
    assert "Traceback" not in done.stderr and sorted(os.walk(odd)) == before
    os.symlink(odd, tmp_path / "link")
    assert pickle.loads(pickle.dumps(open_storage(str(tmp_path / "link")))).list_dir("")[1]
