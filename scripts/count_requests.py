"""`make count-requests`: what commands ask the storage for, as docs/requests.md has it.

Each run of `tests/unit/request_scenarios.py` has a table of its own, and everything happens in this process, without
Spark, as in a new process. `--write` puts the counts into docs/requests.md, `--log PART` prints each request of the
runs whose name has PART.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.unit.counting_storage import Request, rounds
from tests.unit.quiet import Quiet
from tests.unit.request_scenarios import SCENARIOS, Counted, Scenario, count

PAGE = Path(__file__).resolve().parent.parent / "docs" / "requests.md"
BEGIN, END = "<!-- made by scripts/count_requests.py -->", "<!-- end -->"
DELAY = 0.03


def counts(counted: Counted) -> tuple[int, int, int, int]:
    """Requests and rounds of a run, and those under the lock."""
    asked, locked = counted.requests, counted.under_lock
    return len(asked), rounds(asked), len(locked), rounds(locked)


def table(results: Iterable[tuple[str, Counted]]) -> str:
    """The counts in Markdown: a row for each run."""
    lines = [
        "| run | requests | rounds | requests under the lock | rounds under the lock | seconds |",
        "|---|---|---|---|---|---|",
    ]
    for name, counted in results:
        lines.append(f"| {name} | {' | '.join(map(str, counts(counted)))} | {counted.seconds:.1f} |")
    return "\n".join(lines) + "\n"


def page(text: str, made: str) -> str:
    """`text` with the table `made` between its marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{made}\n{END}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description="What commands ask the storage for.")
    parser.add_argument("--delay", type=float, default=DELAY, help="seconds that a request takes")
    parser.add_argument("--write", action="store_true", help="put the counts into docs/requests.md")
    parser.add_argument("--log", metavar="PART", help="print each request of the runs whose name has PART")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="requests-") as folder:
        chosen = {name: one for name, one in SCENARIOS.items() if (arguments.log or "") in name}
        results = {name: measured(one, Path(folder), arguments.delay) for name, one in chosen.items()}
    made = table(results.items())
    print(made)
    if arguments.write and not arguments.log:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), made), encoding="utf-8")
    for counted in results.values() if arguments.log else ():
        show(counted.requests)


def measured(scenario: Scenario, folder: Path, delay: float) -> Counted:
    """The requests of a run, whose rounds do not depend on how busy the machine is, and the seconds of another one."""
    with Quiet().watching() as quiet:
        counted = count(scenario, folder, quiet)
    return replace(counted, seconds=count(scenario, folder, delay).seconds)


def show(requests: Iterable[Request]) -> None:
    ordered = sorted(requests, key=lambda one: one.started)
    for one in ordered:
        sign = "L" if one.locked else " "
        print(f"{one.started - ordered[0].started:7.3f} {sign} {one.method:10} {one.path} {one.what or ''}")


if __name__ == "__main__":
    main()
