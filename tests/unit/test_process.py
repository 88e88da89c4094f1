import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_services import process
from hudi_services.process import (
    give_back_large_blocks,
    keep_freed_blocks,
    machine_bytes,
    peak_bytes,
    reset_peak,
    tree_bytes,
)


def test_the_peak_of_this_process() -> None:
    reset_peak()
    before = peak_bytes()
    block = bytearray(b"x" * (64 << 20))
    grown = peak_bytes()
    # Where a peak cannot be forgotten, it is that of all tests before.
    least = before + (60 << 20) if os.access("/proc/self/clear_refs", os.W_OK) else before
    assert least <= grown <= machine_bytes()
    del block
    assert peak_bytes() == grown


def test_large_blocks_may_be_kept_or_given_back() -> None:
    """Wherever it runs; what it is good for, scripts/bench_memory.py shows."""
    for choose in (keep_freed_blocks, give_back_large_blocks):
        choose()
        assert pa.array(range(100_000)).nbytes == 800_000


HOLDER = """
import os, sys
held = bytearray(os.urandom(1 << 20)) * 100
if os.fork() == 0:
    print("there", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_the_memory_of_all_processes_counts_what_they_share_once() -> None:
    before = tree_bytes()
    assert before is not None
    with subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdin is not None
        holder.stdout.readline()
        now = tree_bytes()
        holder.stdin.close()
    assert now is not None and 95 << 20 < now - before < 150 << 20


@pytest.mark.parametrize(
    ("texts", "cores"),
    [
        ((("150000 100000\n",), ("-1\n", "100000\n")), 2),
        ((("max 100000\n",), ("250000\n", "100000\n")), 3),
        ((("50000 100000\n",),), 1),
        ((("max 100000\n",), ("-1\n", "100000\n")), 64),
        ((), 64),
    ],
)
def test_the_cores_of_a_container(
    texts: tuple[tuple[str, ...], ...], cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of both versions of control groups; a process that may run on 64 cores."""
    quotas = []
    for number, some in enumerate(texts):
        paths = [tmp_path / f"{number}-{at}" for at in range(len(some))]
        for path, text in zip(paths, some, strict=True):
            path.write_text(text)
        quotas.append(tuple(map(str, paths)))
    monkeypatch.setattr(process, "_CGROUP_QUOTAS", (*quotas, (str(tmp_path / "missing"),)))
    monkeypatch.setattr(process, "machine_cores", lambda: 64)
    assert process.usable_cores() == cores
