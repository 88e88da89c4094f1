"""scripts/soak.py for three minutes: two real Hudi writers beside our services, all of them killed now and then."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

_SCRIPT = Path(__file__).parents[2] / "scripts/soak.py"


@pytest.mark.deep
@pytest.mark.releases("1.0.2", "1.2.0")
@pytest.mark.parametrize("mode", [[], ["--late-only"]], ids=["plans", "late"])
def test_rows_stay_beside_two_writers(mode: list[str], version: str, tmp_path: Path) -> None:
    """Any row that differs, any run of ours that fails, and late any writer that fails because of us ends it with 1."""
    command = [sys.executable, str(_SCRIPT), "--release", version, "--folder", str(tmp_path), "--minutes", "3"]
    flags = ["--phase", "occ", "--seed", str(len(mode) + 7), "--checkpoint-seconds", "80", "--format", "json"]
    done = subprocess.run([*command, *flags, *mode], capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    report = json.loads((tmp_path / "report.json").read_text())[0]
    assert report["problems"] == [] and report["checkpoints"] >= 2
    assert report["figures"]["writes: acknowledged, committed"] > 3


@pytest.mark.deep
@pytest.mark.releases("1.0.2", "1.1.1", "1.2.0")
def test_rows_stay_beside_writers_that_do_not_block(version: str, tmp_path: Path) -> None:
    """Two writers append to the same buckets under non-blocking concurrency control, while we compact and cluster."""
    command = [sys.executable, str(_SCRIPT), "--release", version, "--folder", str(tmp_path), "--minutes", "3"]
    flags = ["--phase", "nbcc", "--seed", "11", "--checkpoint-seconds", "80", "--format", "json"]
    done = subprocess.run([*command, *flags], capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    report = json.loads((tmp_path / "report.json").read_text())[0]
    assert report["problems"] == [] and report["checkpoints"] >= 2
    assert report["figures"]["writes: acknowledged, committed"] > 3
