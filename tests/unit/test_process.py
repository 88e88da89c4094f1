import os

import pyarrow as pa

from hudi_services.process import give_back_large_blocks, keep_freed_blocks, machine_bytes, peak_bytes, reset_peak


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
