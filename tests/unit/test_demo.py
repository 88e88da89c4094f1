"""`make demo`, as it runs without a terminal."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import hudi_services

ROOT = Path(__file__).parents[2]


@pytest.mark.deep
def test_the_demo(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts/demo.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=400, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\x1b" not in done.stdout
    shown = re.findall(r"^  (\d+) files, ([\d,]+) rows, checksum (\w+)$", done.stdout, re.MULTILINE)
    # Small files, by file sizing, after clustering: the same rows.
    assert [int(files) for files, *_ in shown] == [36, 3, 3]
    assert {rows for _, rows, _ in shown} == {"72,000"} and len({checksum for *_, checksum in shown}) == 1
    assert len(re.findall(r"#+ +\d+ KiB$", done.stdout, re.MULTILINE)) == 36 + 3 + 3
    assert "files on disk: 39 before, 3 after" in done.stdout
    assert "he metadata table agrees with the table." in " ".join(done.stdout.split())
    for name in ("scattered", "sized"):
        assert hudi_services.open(tmp_path / name, engine="local").validate().ok
