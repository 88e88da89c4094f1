"""The memory that the processes of a command take, from /proc (Linux)."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_PAUSE_SECONDS = 0.1


@dataclass
class PeakMemory:
    """The peak memory of a process and its descendants while they are watched, in MiB of resident memory.

    `largest` is the peak of each kind of process (`java`, `python`), as the kernel keeps it; `together` is the
    greatest sum that was seen, in which shared pages count once for each process.
    """

    largest: dict[str, int] = field(default_factory=dict)
    together: int = 0

    @contextmanager
    def watching(self, pid: int) -> Iterator[None]:
        """Watch the process `pid` as long as the context lasts."""
        over = threading.Event()
        thread = threading.Thread(target=self._watch, args=(pid, over))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _watch(self, root: int, over: threading.Event) -> None:
        while not over.wait(_PAUSE_SECONDS):
            found = [_status(pid) for pid in _tree(root)]
            self.together = max(self.together, sum(one.get("VmRSS", 0) for one in found))
            for one in found:
                if "VmHWM" in one:
                    name = str(one["Name"])
                    self.largest[name] = max(self.largest.get(name, 0), one["VmHWM"])


def _tree(root: int) -> list[int]:
    """The ids of a process and its descendants."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
        parents.setdefault(parent, []).append(int(folder.name))
    found, left = [], [root]
    while left:
        found.append(left.pop())
        left += parents.get(found[-1], [])
    return found


def _status(pid: int) -> dict:
    """VmRSS and VmHWM in MiB, and Name, without the digits of its version."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return {}
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    found: dict = {"Name": fields.get("Name", "").strip().rstrip("0123456789.")}
    for name in ("VmRSS", "VmHWM"):
        if name in fields:
            found[name] = int(fields[name].split()[0]) // 1024
    return found
