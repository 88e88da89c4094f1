"""What sorting takes: one group of 2.3 GB of Arrow data, with a limit for each task, without one, and by Hudi.

Part of `make bench`. Hudi 1.2.0 sorts the same table in a JVM whose heap is as large as the limit; the result is
printed, also when Hudi fails. Memory is the peak of a process, in MiB.
"""

import argparse
import os
import sys
import time
from pathlib import Path

from bench import ROOT, SORT, VERSION, Bench, conf, job_seconds, run
from process_memory import PeakMemory

sys.path.insert(0, str(ROOT))

from tests.interop.peer import Peer, PeerError

ROWS, FILES = 10_000_000, 40
TARGET = {"hoodie.clustering.plan.strategy.target.file.max.bytes": str(1 << 30)}


def main() -> None:
    parser = argparse.ArgumentParser(description="The memory that sorting takes, with and without a limit.")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    parser.add_argument("--sort", default="driver,pickup_at")
    parser.add_argument("--limit", default="512m", help="--memory-per-task, and the heap of Hudi")
    parser.add_argument("--without-hudi", action="store_true")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(arguments.folder.resolve(), "8g")
    table = bench.table(ROWS, 1, FILES)
    lines = [ours(bench, table, arguments.sort, flags) for flags in (["--memory-per-task", arguments.limit], [])]
    if not arguments.without_hudi:
        lines.append(hudi(bench, table, arguments.sort, arguments.limit))
    print(f"\n{ROWS:,} rows in one group of {FILES} files, sorted by {arguments.sort}; seconds, MiB\n")
    print("| execute | process | job | worker | JVM | spilled |")
    print("|---|---|---|---|---|---|")
    print("\n".join(lines))


def ours(bench: Bench, table: Path, sort: str, flags: list[str]) -> str:
    with bench.copy(table) as path:
        run("schedule", path, *conf({SORT: sort, **TARGET}))
        memory = PeakMemory()
        seconds, report = run("execute", path, *flags, *conf(TARGET), memory=memory)
    spilled = report["tables"]["memory"][0]["spilled_bytes"] >> 20
    cells = [f"{seconds:.1f}", f"{job_seconds(report['seconds']):.1f}"]
    cells += [str(memory.largest.get(name, 0)) for name in ("python", "java")]
    print(f"ours {' '.join(flags)}: {cells} {report['tables']['memory']} {report['seconds']}", file=sys.stderr)
    return f"| ours, {' '.join(flags) or 'no limit'} | {' | '.join(cells)} | {spilled} |"


def hudi(bench: Bench, table: Path, sort: str, heap: str) -> str:
    memory = PeakMemory()
    start = time.perf_counter()
    with bench.copy(table) as path, memory.watching(os.getpid()):
        peer = Peer(VERSION, path.parent / "hudi.log", "--memory", heap, "--java-options", "")
        try:
            peer.cluster(path, "schedule", order=sort, options=TARGET)
            start = time.perf_counter()
            peer.cluster(path, "execute", order=sort, options=TARGET)
            told = f"{time.perf_counter() - start:.1f}"
        except PeerError as error:
            told = f"failed after {time.perf_counter() - start:.0f} s: {str(error).splitlines()[0][:80]}"
        finally:
            peer.close()
    return f"| Hudi {VERSION}, heap of {heap} | {told} | | | {memory.largest.get('java', 0)} | |"


if __name__ == "__main__":
    main()
