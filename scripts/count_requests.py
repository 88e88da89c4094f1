"""`make count-requests`: what one `execute` of a clustering asks the storage for, after N earlier clusterings.

The table is one of the unit tests', of version 9 unless `--release` says otherwise. Everything runs in this process,
without Spark. Printed are the reads by kind of file, how many read the same bytes of an unchanging file again, how the
reads grow with each earlier clustering, the requests under the lock and how many rounds they take one after the other,
and the seconds of an execute when each request takes 30 ms.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hudi_services.engine import LocalEngine
from hudi_services.file_cache import shared_cache
from hudi_services.jobs import clustering
from hudi_services.jobs.request import Mode
from tests.unit.counting_storage import CountingStorage, Request, is_immutable, reads_by_kind, repeated, rounds
from tests.unit.tables import request, unpack


def main() -> None:
    parser = argparse.ArgumentParser(description="What one execute asks the storage for.")
    parser.add_argument("--release", default="1.2.0")
    parser.add_argument("--earlier", type=int, default=8, help="clusterings before the second measurement")
    parser.add_argument("--delay", type=float, default=0.03, help="seconds that a request takes")
    parser.add_argument("--log", action="store_true", help="print every request of the last execute")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="requests-") as folder:
        path = unpack(arguments.release, Path(folder))
        few, _ = measured(path, 0.0)
        cluster(path, arguments.earlier - 1)
        many, seconds = measured(path, arguments.delay)
    if arguments.log:
        for one in many:
            print(
                f"{one.started - many[0].started:7.3f} {'L' if one.locked else ' '} {one.method:10} {one.path} "
                f"{one.what or ''}"
            )
    growth = (reads(many) - reads(few)) / arguments.earlier
    locked = [one for one in many if one.locked]
    print(f"fixture of Hudi {arguments.release}, one execute")
    print(f"  reads on a table that was never clustered      {reads(few)}")
    print(
        f"  reads after {arguments.earlier} earlier clusterings              {reads(many)}, {growth:.2f} more for each"
    )
    print(
        f"  of files that never change                     {sum(one.is_read and is_immutable(one.path) for one in many)}"
    )
    print(f"  that repeat a read of such a file              {sum(repeated(many).values())}")
    print(f"  requests                                       {len(many)}, {rounds(many)} one after the other")
    print(f"  requests under the lock                        {len(locked)}, {rounds(locked)} one after the other")
    print(f"  under the lock, by method                      {dict(Counter(one.method for one in locked))}")
    print(f"  seconds with {arguments.delay * 1000:.0f} ms a request                  {seconds:.2f}")
    print(f"  seconds of that under the lock                 {held(locked):.2f}")
    again = Counter(kind for one in repeated(many).elements() if (kind := by_kind(one)))
    for kind, count in sorted(reads_by_kind(many).items()):
        print(f"    {kind:30} {count:4} reads, {again[kind]:4} repeated")


def by_kind(path: str) -> str:
    from tests.unit.counting_storage import kind_of

    return kind_of(path)


def reads(requests: list[Request]) -> int:
    return sum(one.is_read for one in requests)


def held(locked: list[Request]) -> float:
    """From the first request under the lock to the last, for each time that it was taken."""
    total, start = 0.0, None
    for before, one in zip([None, *locked], [*locked, None], strict=True):
        if before is not None and (
            one is None or (one.path.endswith(".json") and one.method == "create" and "/table." in one.path)
        ):
            assert start is not None
            total, start = total + before.ended - start, None
        if start is None and one is not None:
            start = one.started
    return total


def cluster(path: Path, times: int) -> None:
    """Rewrite the table so many times, each time with a plan of its own."""
    for _ in range(times):
        clustering.schedule_and_execute(wanted(path, Mode.SCHEDULE_AND_EXECUTE), engine=LocalEngine())


def measured(path: Path, delay: float) -> tuple[list[Request], float]:
    """The requests of one execute, and its seconds."""
    scheduled = clustering.schedule(wanted(path, Mode.SCHEDULE))
    storage = CountingStorage(str(path), delay)
    shared_cache().forget()
    start = time.monotonic()
    clustering.execute(wanted(path, Mode.EXECUTE, scheduled.instant), storage, LocalEngine())
    return storage.requests, time.monotonic() - start


def wanted(path: Path, mode: Mode, instant: str | None = None):  # type: ignore[no-untyped-def]
    options = {"hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true"}
    return request(path, mode, options, instant=instant)


if __name__ == "__main__":
    main()
