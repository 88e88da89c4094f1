"""`make count-requests`: the storage requests of one `execute` of a clustering, and those of its `schedule`.

The table is one of the unit tests', of version 9 unless `--release` says otherwise, and everything runs in this
process, without Spark. An execute is measured on the table as Hudi left it, after N clusterings and after 2 N, each
time as a new process would do it. The script prints the reads by kind of file, how many of them read the same bytes of
an immutable file again, how many more there are for each earlier clustering, the requests under the lock and how many
rounds they take, one after the other, and the seconds of an execute when each request takes 30 ms. N should be 10, or a
multiple of it: the metadata table is compacted after ten commits, and before that each commit adds files to be read.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hudi_services.engine import LocalEngine
from hudi_services.file_cache import shared_cache
from hudi_services.jobs import clustering
from hudi_services.runs.request import Mode
from tests.unit.counting_storage import (
    CountingStorage,
    Request,
    is_immutable,
    kind_of,
    locked_seconds,
    reads_by_kind,
    repeated,
    rounds,
)
from tests.unit.tables import request, unpack


@dataclass(frozen=True, slots=True)
class Measured:
    """The requests of one execute, and its seconds."""

    requests: list[Request]
    seconds: float

    @property
    def reads(self) -> int:
        return sum(one.is_read for one in self.requests)


def main() -> None:
    parser = argparse.ArgumentParser(description="What one execute asks the storage for.")
    parser.add_argument("--release", default="1.2.0", help="the fixture of this release of Hudi")
    parser.add_argument("--earlier", type=int, default=10, help="clusterings between two measurements")
    parser.add_argument("--delay", type=float, default=0.03, help="seconds that a request takes")
    parser.add_argument("--log", action="store_true", help="print every request of the last execute, too")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="requests-") as folder:
        path = unpack(arguments.release, Path(folder))
        fresh = execute(path, arguments.delay)
        cluster(path, arguments.earlier - 1)
        once = execute(path, arguments.delay)
        cluster(path, arguments.earlier - 1)
        twice = execute(path, arguments.delay)
    if arguments.log:
        for one in twice.requests:
            sign = "L" if one.locked else " "
            start = one.started - twice.requests[0].started
            print(f"{start:7.3f} {sign} {one.method:10} {one.path} {one.what or ''}")
    with tempfile.TemporaryDirectory(prefix="requests-") as folder:
        path = unpack(arguments.release, Path(folder))
        storage = CountingStorage(str(path))
        shared_cache().forget()
        planned = clustering.schedule(request(path, Mode.SCHEDULE), storage)
        footers = sum(one.is_read for one in storage.requests if kind_of(one.path) == "base file")
        count = f"{len(storage.requests)} requests in {rounds(storage.requests)} rounds"
        print(f"one schedule: {count}, {footers} of them for the footers of {planned.files.before} files")
    print(f"one execute on the fixture of Hudi {arguments.release}, {arguments.delay * 1000:.0f} ms a request")
    show("as Hudi left it", fresh)
    show(f"after {arguments.earlier} clusterings", once)
    show(f"after {2 * arguments.earlier} clusterings", twice)
    print(f"reads for each earlier clustering: {(twice.reads - once.reads) / arguments.earlier:.2f}")


def show(name: str, one: Measured) -> None:
    locked = [request for request in one.requests if request.locked]
    immutable = sum(request.is_read and is_immutable(request.path) for request in one.requests)
    again = repeated(one.requests)
    print(f"{name}: {one.seconds:.2f} s, {locked_seconds(one.requests):.2f} s of them under the lock")
    print(f"    reads                    {one.reads}, of immutable files {immutable}, repeated {again.total()}")
    print(f"    requests                 {len(one.requests)}, in {rounds(one.requests)} rounds")
    print(f"    requests under the lock  {len(locked)}, in {rounds(locked)} rounds")
    kinds = Counter(kind_of(path) for path in again.elements())
    for kind, count in sorted(reads_by_kind(one.requests).items()):
        print(f"        {kind:28} {count:4} reads, {kinds[kind]:4} repeated")


def cluster(path: Path, times: int) -> None:
    """Rewrite the table `times` times, each time with a plan of its own."""
    for _ in range(times):
        clustering.schedule_and_execute(request(path, Mode.SCHEDULE_AND_EXECUTE), engine=LocalEngine())


def execute(path: Path, delay: float) -> Measured:
    """Plan, and execute as a new process would."""
    scheduled = clustering.schedule(request(path, Mode.SCHEDULE))
    storage = CountingStorage(str(path), delay)
    shared_cache().forget()
    start = time.monotonic()
    clustering.execute(request(path, Mode.EXECUTE, instant=scheduled.instant), storage, LocalEngine())
    return Measured(storage.requests, time.monotonic() - start)


if __name__ == "__main__":
    main()
