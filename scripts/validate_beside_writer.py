"""Run `validate` in a loop in this process, while real Hudi writes to the table: validate_beside_writer.py VERSION ...

The writer cleans, archives and compacts its metadata table all the time (tests/interop/live_writer.py). Every run that
does not end with exit code 0, and every harmful difference, is an alarm: each is printed, and their number, at most 99,
is the exit code; 100 says that the writer failed.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.interop.live_writer import LiveWriter, alarm, validate_once  # noqa: E402
from tests.interop.peer import Peer  # noqa: E402
from tests.interop.recipes import VERSIONS  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description="validate in a loop beside a live writer of real Hudi")
    parser.add_argument("version", choices=VERSIONS)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--folder", type=Path, default=None, help="for the table; kept (default: a temporary one)")
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="live-"))
    path, alarms, seen = folder / f"table_{arguments.version}", 0, Counter[str]()
    peer = Peer(arguments.version, folder / f"peer_{arguments.version}.log", "--memory", "1200m")
    try:
        with LiveWriter(peer, path, seed=arguments.seed) as writer:
            start = time.perf_counter()
            for number in range(1, arguments.runs + 1):
                report = validate_once(path)
                found = alarm(report)
                seen["exit 0" if found is None else f"exit {report.exit_code}"] += 1
                seen["with harmless differences"] += any(row["harmless"] for row in report.tables.get("partitions", []))
                seen["with unsure files"] += bool(report.tables.get("unsure"))
                if found is not None:
                    alarms += 1
                    print(f"{time.strftime('%H:%M:%S')} run {number}, write {writer.writes}: {found}", flush=True)
                if writer.error is not None:
                    print(f"the writer failed: {str(writer.error)[:500]}", flush=True)
                    return 100
                if number % 50 == 0:
                    seconds = time.perf_counter() - start
                    print(f"{number} runs, {writer.writes} writes, {seconds:.0f} s: {dict(seen)}", flush=True)
    finally:
        peer.close()
    print(f"{arguments.version}: {arguments.runs} runs beside {writer.writes} writes, {alarms} alarms", flush=True)
    return min(alarms, 99)


if __name__ == "__main__":
    sys.exit(main())
