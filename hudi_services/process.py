"""The memory of this process and of the machine it runs on; from /proc and the control group on Linux."""

import os
import resource
import sys
from contextlib import suppress
from pathlib import Path

_RESET_PEAK = "5"
"""What /proc/self/clear_refs takes for that (proc(5), from Linux 4.0 on)."""
_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def reset_peak() -> None:
    """Let `peak_bytes` begin anew, where the system allows it: a worker does one task after the other."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text(_RESET_PEAK)


def peak_bytes() -> int:
    """The most memory that this process had (resident), since `reset_peak` or else since it began."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def machine_bytes() -> int:
    """The memory that all processes here may have together: that of the machine, or the limit of the container."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in _CGROUP_LIMITS:
        with suppress(OSError, ValueError):
            found = min(found, int(Path(path).read_text()))
    return found
