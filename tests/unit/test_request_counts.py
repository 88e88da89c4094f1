"""What commands ask the storage for is what docs/requests.md says: a rise is a failed test, a fall is a new table."""

from collections import Counter
from pathlib import Path

import pytest

from hudi_services.request_counts import Asked
from scripts.count_requests import BEGIN, END, PAGE, counts

from .counting_storage import Request
from .quiet import Quiet
from .request_scenarios import SCENARIOS, count

pytestmark = pytest.mark.threads


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("requests")


def told() -> dict[str, tuple[int, ...]]:
    """Of each run of the page: requests, rounds, and both under the lock."""
    made = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    rows = [line.strip("| ").split(" | ") for line in made.splitlines() if line.startswith("|")]
    return {name: tuple(map(int, numbers[:4])) for name, *numbers in rows[2:]}


def test_the_page_has_every_run() -> None:
    assert list(told()) == [*SCENARIOS]


@pytest.mark.thorough
@pytest.mark.parametrize("name", SCENARIOS)
def test_no_run_asks_for_more(name: str, folder: Path) -> None:
    # On a busy machine a run may take longer than a second for a few requests, and look at the lease once more.
    for _ in range(3):
        with Quiet().watching() as quiet:
            found = counts(count(SCENARIOS[name], folder, quiet))
        if found == told()[name]:
            return
    pytest.fail(f"{found} and not {told()[name]}: if it is meant, `scripts/count_requests.py --write`")


TOLD_AS = {
    "read": [Asked.GET],
    "read_range": [Asked.GET],
    "head": [Asked.HEAD],
    "list": [Asked.LIST],
    "create": [Asked.CONDITIONAL_PUT],
    # On local disk it is a look and a write.
    "replace": [Asked.HEAD, Asked.PUT],
    "put": [Asked.PUT],
    "write": [Asked.PUT],
    "delete": [Asked.DELETE],
    "move": [Asked.RENAME],
}


def files_of(request: Request) -> int:
    """How many files one request is for: local disk deletes one after the other."""
    return request.what[0] if request.method == "delete" and request.what else 1


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_report_tells_what_was_asked_for(name: str, folder: Path) -> None:
    found = count(SCENARIOS[name], folder, 0)
    asked: Counter[str] = Counter()
    for one in found.requests:
        asked.update({kind.value: files_of(one) for kind in TOLD_AS[one.method]})
    assert found.told == dict(asked)
