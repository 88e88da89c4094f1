"""This process and the machine it runs on: memory (from /proc and the control group on Linux), cores, environment."""

import ctypes
import os
import re
import resource
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

ENVIRONMENT = {
    # Arrow's own allocator asks for more memory than it uses, and gives it back too eagerly. So in workers of Spark.
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    # Threads that begin with an import, and that tasks have no use for.
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "OPENBLAS_NUM_THREADS": "1",
}
"""Variables that the libraries read when they are imported."""
LOCAL_MASTER = re.compile(r"local(?:\[\s*(\*|[0-9]{1,9})\s*(?:,\s*[0-9]+\s*)?\])?")
"""Spark's masters of one process; the group is the number of its cores."""
_RESET_PEAK = "5"
"""The text for /proc/self/clear_refs that resets the peak (proc(5), from Linux 4.0 on)."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGE_BLOCK, _LARGEST_KEPT = 1 << 20, 32 << 20
_CGROUP_QUOTAS = (
    ("/sys/fs/cgroup/cpu.max",),
    ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"),
)
_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def reset_peak() -> None:
    """Reset `peak_bytes`, where the system allows it: a worker runs one task after the other."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text(_RESET_PEAK)


def peak_bytes() -> int:
    """The peak of this process's resident memory in bytes, since `reset_peak` or else since the process began."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def tree_bytes() -> int | None:
    """The bytes of memory that this process and all that it has started have now, those that several share counted
    once (PSS, proc(5)); None where the system does not tell."""
    waiting, found = [os.getpid()], 0
    while waiting:
        pid = waiting.pop()
        # One that has ended meanwhile has none.
        with suppress(OSError, ValueError, IndexError):
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                waiting += map(int, children.read_text().split())
            told = Path(f"/proc/{pid}/smaps_rollup").read_text()
            found += int(told.partition("\nPss:")[2].split(maxsplit=1)[0]) * 1024
    return found or None


def give_back_large_blocks() -> None:
    """Return large blocks of memory to the system when they are freed (mallopt(3); without it, do nothing).

    The C library otherwise learns to keep them for later, up to 32 MiB each: a worker that sorts had half as much again
    as it used (measured).
    """
    _set_thresholds(_LARGE_BLOCK)


def keep_freed_blocks() -> None:
    """Keep freed blocks of up to 32 MiB for later allocations: a task takes an eighth less time (measured)."""
    _set_thresholds(_LARGEST_KEPT)


def _set_thresholds(block: int) -> None:
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, block)
        # The end of the heap, too, is given back in pieces of this size.
        library.mallopt(_M_TRIM_THRESHOLD, 2 * block)


def machine_bytes() -> int:
    """The bytes that all processes here may use together: the machine's memory, or a lower limit of the container."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in _CGROUP_LIMITS:
        with suppress(OSError, ValueError):
            found = min(found, int(Path(path).read_text()))
    return found


def machine_cores() -> int:
    """The cores that this process may run on, without the quota of a container."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def usable_cores() -> int:
    """The cores that this process may keep busy: those it may run on, or the quota of its container, rounded up."""
    found = machine_cores()
    for paths in _CGROUP_QUOTAS:
        with suppress(OSError, ValueError):
            # Both files have one number; the newer file has two, or "max" for no quota.
            quota, period = map(int, " ".join(Path(path).read_text() for path in paths).split())
            found = min(found, -(-quota // period)) if quota > 0 else found
    return found


def has_threads() -> bool:
    """Whether this process has other threads than this one, or may have them; such a process does not fork."""
    try:
        return len(os.listdir("/proc/self/task")) > 1
    except OSError:
        return True


def wait_aside(ended: Callable[[], object]) -> None:
    """Let a thread wait for the end of a process by `ended`, so that it leaves no zombie, and go on."""
    threading.Thread(target=ended, daemon=True).start()


def uses_spark_connect() -> bool:
    """Whether a session of Spark in this process is one of Spark Connect: as was begun, or as the environment says."""
    return bool(
        os.environ.get("SPARK_CONNECT_MODE_ENABLED")
        or os.environ.get("SPARK_REMOTE")
        or os.environ.get("SPARK_API_MODE", "").lower() == "connect"
    )


def is_this_machine(master: str | None) -> bool:
    """Whether the workers of a session of our own with this master of Spark are processes of this machine."""
    return master is None or LOCAL_MASTER.fullmatch(master) is not None


def under_spark_submit() -> bool:
    """Whether spark-submit has started this process, and with it the Java process that its session uses."""
    return "PYSPARK_GATEWAY_PORT" in os.environ
