"""`fleet`: the list of tables, what is due on them, the limits of a run, and a run over tables of every kind."""

import gc
import importlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import hudi_services
from hudi_services.cli.app import run
from hudi_services.errors import ConfigError, PermissionDenied
from hudi_services.fleet.budget import Budget
from hudi_services.fleet.discovery import find_tables
from hudi_services.fleet.places import Places
from hudi_services.fleet.results import ResultsFile
from hudi_services.fleet.tables_file import read_tables_file
from hudi_services.fleet.warnings_told import told_once
from hudi_services.jobs import fleet
from hudi_services.jobs.services import job_of
from hudi_services.options import resolve
from hudi_services.request_pace import Pace
from hudi_services.runs import config_files, opening
from hudi_services.runs.report import Report, RunState
from hudi_services.runs.report_rows import FleetServiceRow, FleetTableRow
from hudi_services.runs.request import (
    ArchiveRequest,
    CleanRequest,
    CompactionRequest,
    FleetRequest,
    Mode,
    Request,
)
from hudi_services.runs.retries import run_with_retries
from hudi_services.storage import Storage
from hudi_services.stores.local import LocalStorage

from ..interop.pristine import Pristine
from ..servers.bucket import upload
from ..servers.started import Servers
from . import test_consistent_hashing
from .bootstrapped import Bootstrapped
from .fleets import DUE, KINDS, Seeds, make, rows_of
from .tables import digest, open_local
from .test_true_ranges import made, narrow

pytestmark = pytest.mark.threads
_EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
CRON, DAG = _EXAMPLES / "fleet-nightly.sh", _EXAMPLES / "fleet_dag.py"
_LOCKED = (
    "hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL "
    "hoodie.write.lock.provider=org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider "
    "hoodie.write.lock.filesystem.expire=0 hoodie.write.lock.wait_time_ms=0"
)


_SMALL_GROUPS = {"hoodie.clustering.plan.strategy.max.bytes.per.group": "30000"}


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Seeds:
    folder = tmp_path_factory.mktemp("seeds")
    for kind in KINDS:
        make(folder, kind)
    return Seeds(folder)


@pytest.fixture
def interrupts() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt in this thread, and not in a callback of the garbage collector, as hypothesis has
    one: what is raised there is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()
    yield
    gc.enable()
    signal.signal(signal.SIGINT, before)


def listed(folder: Path, *lines: str) -> str:
    file = folder / "tables.txt"
    file.write_text("\n".join(lines) + "\n")
    return str(file)


def over(tables: str, *, apply: bool = False, options: dict[str, str] | None = None, **more: Any) -> Report:
    of_run = resolve([("test", {**DUE, "hudi.services.engine": "local", **(options or {})})])
    return fleet.fleet(FleetRequest(base_path=tables, options=of_run, apply=apply, **more))


def states(report: Report) -> dict[str, str]:
    return {Path(row.base_path).name: row.state for row in report.shown(FleetTableRow)}


def done_on(path: Path) -> Counter[str]:
    """The completed services on the timeline of a table."""
    return Counter(one.action.value for one in open_local(path).timeline.instants if one.is_completed)


# The list


def test_the_lines_of_a_list(tmp_path: Path) -> None:
    (tmp_path / "more.props").write_text("hoodie.keep.max.commits=9\nhoodie.keep.min.commits=8\n")
    text = listed(
        tmp_path,
        "# tables",
        "",
        "/data/a/   hoodie.clean.commits.retained=3   # by night",
        "'/data/with blanks' 'hoodie.table.name=two words'",
        "/lake/raw#1/**  include=more.props hoodie.keep.max.commits=20",
        "!/lake/raw#1/tmp/*",
    )
    first, blanks, raw, out = read_tables_file(text)
    assert (first.place, first.is_pattern, out.is_excluded) == ("/data/a", False, True)
    assert first.source == f"{text}:3" and blanks.place == "/data/with blanks"
    options = resolve([("--hoodie-conf", {"hoodie.clean.commits.retained": "7"})])
    assert options.below(first.layers).given("hoodie.clean.commits.retained") == (f"{text}:3", "3")
    texts = options.below(raw.layers).texts()
    assert (texts["hoodie.keep.max.commits"], texts["hoodie.keep.min.commits"]) == ("20", "8")
    assert texts["hoodie.clean.commits.retained"] == "7"
    assert raw.names("/lake/raw#1/x/y") and not raw.names("/lake/raw#1") and not out.names("/lake/raw#1/tmp")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/data/a 'b", ":1 cannot be read: no closing quotation"),
        ("/data/a /data/b", ":1 has a word after the place that is not of the form KEY=VALUE"),
        ("!/data/a x=y", ":1 leaves tables out, and gives them options"),
        ("/data/**/a", ":1: ** may only be the last name of a pattern"),
        ("s3://*/a", ":1: a bucket or a host cannot be a pattern"),
        ("s3://key:secret@lake/a", "holds a user name or password"),
        ("/data/a include=none.props", "none.props does not exist"),
        ("/data/a hoodie.clean.commits.retained=many", "hoodie.clean.commits.retained=many (from"),
        ("/data/a hudi.services.fleet.max.bytes=1g", ":1 sets hudi.services.fleet.max.bytes for a table"),
        ("!/data/a", "lists no table"),
        ("/nowhere/*", "there is no table at the places in"),
    ],
)
def test_a_wrong_line_ends_the_run_before_any_table(
    line: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["fleet", listed(tmp_path, line), "--apply", "--engine", "local"]) == 2
    told = capsys.readouterr().err
    assert said in told and "secret" not in told and "Traceback" not in told


def test_patterns_find_the_tables_that_a_walk_finds(tmp_path: Path) -> None:
    """Random trees and patterns; the model walks all folders and matches whole paths."""
    draw = random.Random(47)
    names = ("a", "ab", "b", "b c", "_h", ".s", "%2F", "x+y")
    for number in range(12):
        root = tmp_path / f"tree{number}"
        for _ in range(30):
            folder = root.joinpath(*draw.choices(names, k=draw.randint(1, 4)))
            is_table = draw.random() < 0.5
            (folder / (".hoodie" if is_table else "data")).mkdir(parents=True, exist_ok=True)
            if is_table:
                (folder / ".hoodie" / "hoodie.properties").write_text("hoodie.table.name=t\n")
        tables = {path.parent.parent for path in root.rglob(".hoodie/hoodie.properties")}
        for pattern in ("*", "a*", "*b*", "*/*", "*/a*/*", "a/*", f"*/{draw.choice(names)}", "**", "a/**"):
            lines = read_tables_file(listed(tmp_path, f"'{root}/{pattern}'", f"'!{root}/a/*'"))
            found = [one.url for one in find_tables(lines, resolve([]).below).tables]
            expected = {
                path for path in tables if _fits(path.relative_to(root).parts, pattern.split("/"), root, tables)
            }
            expected = {path for path in expected if path.parent != root / "a"}
            assert len({*found}) == len(found) and {*map(Path, found)} == expected, (number, pattern)


def _fits(names: Sequence[str], parts: Sequence[str], root: Path, tables: set[Path]) -> bool:
    *head, last = parts
    if last == "**":
        above = {root.joinpath(*names[:at]) for at in range(len(head) + 1, len(names))}
        is_below = [*names[: len(head)]] == head and len(names) > len(head)
        return is_below and not above & tables and not any(name[0] in "._" for name in names[len(head) :])
    patterns = [re.escape(one).replace(r"\*", ".*") for one in parts]
    return len(names) == len(parts) and all(map(re.fullmatch, patterns, names))


@pytest.mark.thorough
def test_links_and_places_that_are_written_twice(tmp_path: Path, seeds: Seeds) -> None:
    path = seeds.copy("plain", tmp_path / "lake" / "plain")
    (tmp_path / "lake" / "link").symlink_to(path)
    (tmp_path / "lake" / "up").symlink_to(tmp_path)
    below = find_tables(read_tables_file(listed(tmp_path, f"{tmp_path}/**")), resolve([]).below)
    assert [one.url for one in below.tables] == [str(path)]
    lines = [f"file://{path}  hoodie.clean.commits.retained=5", f"{path}/", f"{tmp_path}/lake/*", "/nowhere/*"]
    found = find_tables(read_tables_file(listed(tmp_path, *lines)), resolve([]).below)
    assert [one.url for one in found.tables] == [f"file://{path}"]
    assert found.tables[0].options.texts() == {"hoodie.clean.commits.retained": "5"}
    assert [one.place for one in found.without_table] == ["/nowhere/*"]


def test_a_list_that_an_editor_of_windows_wrote(tmp_path: Path) -> None:
    file = tmp_path / "tables.txt"
    file.write_bytes(b"\xef\xbb\xbf# tables\r\n/data/a\t# by night\r\n\t#\r\n\r\n/data/b#1\tx=y#z\r\n")
    first, second = read_tables_file(str(file))
    assert (first.place, second.place) == ("/data/a", "/data/b#1") and dict(second.layers[0][1]) == {"x": "y#z"}
    file.write_bytes(b"\xef\xbb\xbf/data/a\r\n")
    assert [one.place for one in read_tables_file(str(file))] == ["/data/a"]


def test_what_is_left_out_may_be_written_in_another_way(tmp_path: Path, seeds: Seeds) -> None:
    for name in ("a", "b", "c", "raw/d"):
        seeds.copy("plain", tmp_path / "lake" / name)
    (tmp_path / "link").symlink_to(tmp_path / "lake")
    lines = [f"{tmp_path}/link/**", f"!file://{tmp_path}/lake/a", f"!{tmp_path}/lake/../lake/b/", "!/lake/c"]
    found = find_tables(read_tables_file(listed(tmp_path, *lines, f"!file://{tmp_path}/lake/r*/*")), resolve([]).below)
    assert [one.url for one in found.tables] == [f"{tmp_path}/link/c"]
    # Who mistypes what is left out is told.
    assert [one.source.rpartition(":")[2] for one in found.without_table] == ["4"]
    lines = ["s3a://lake/a%20b", "s3://lake/a%20b", "s3a://lake/c/d", "!s3://lake/c/*", "s3a://lake/c/d/e"]
    found = find_tables(read_tables_file(listed(tmp_path, *lines)), resolve([]).below)
    assert [one.url for one in found.tables] == ["s3a://lake/a%20b", "s3a://lake/c/d/e"]


def test_a_folder_that_cannot_be_listed_hides_no_other(
    tmp_path: Path, seeds: Seeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "closed/b", "c/d"):
        seeds.copy("plain", tmp_path / "lake" / name)
    list_dir = LocalStorage.list_dir

    def closed(storage: LocalStorage, path: str) -> Any:
        if "/closed" in storage.full_path(path):
            raise PermissionDenied("no")
        return list_dir(storage, path)

    monkeypatch.setattr(LocalStorage, "list_dir", closed)
    for pattern, names in (("**", ["a", "c/d"]), ("*/*", ["c/d"])):
        lines = [f"{tmp_path}/lake/{pattern}"]
        found = find_tables(read_tables_file(listed(tmp_path, *lines)), resolve([]).below)
        assert [one.url for one in found.tables] == [f"{tmp_path}/lake/{name}" for name in names]
        assert [line.place for line, _ in found.failed] == [f"{tmp_path}/lake/closed"]
        lines.append(f"!{tmp_path}/lake/closed")
        found = find_tables(read_tables_file(listed(tmp_path, *lines)), resolve([]).below)
        assert not found.failed and not found.without_table and len(found.tables) == len(names)


def test_options_of_many_lines_are_read_once_and_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "raw.props").write_text("hoodie.cleen.x=1\nhoodie.clean.commits.retained=7\n")
    lines = [f"/none/{number} include=raw.props hoodie.kleen.y=2" for number in range(1000)]
    texts, text_at = list[str](), config_files.text_at
    monkeypatch.setattr(config_files, "text_at", lambda *given: (texts.append(given[0]), text_at(*given))[1])
    read = read_tables_file(listed(tmp_path, *lines))
    assert texts == [str(tmp_path / "raw.props")]
    began = time.monotonic()
    found = find_tables(read, resolve([("--hoodie-conf", {"hoodie.kleen.z": "3"})]).below)
    # Looking for the nearest key again and again took two minutes.
    assert time.monotonic() - began < 20 and len(found.tables) == 1000
    assert len(found.warnings) == 2
    for warning, key in zip(found.warnings, ("hoodie.kleen.y", "hoodie.cleen.x"), strict=True):
        assert warning.startswith(f"{key} (from ") and warning.endswith("; so in 999 other lines")


# The limits


def test_what_is_reserved_never_passes_the_budget() -> None:
    """Threads that reserve, use a part and settle: what they have together is within the budget at every moment."""
    budget, having, most = Budget(10_000, None), [0], [0]
    lock = threading.Lock()

    def work(seed: int) -> None:
        draw = random.Random(seed)
        for _ in range(300):
            reserved = budget.reserve(draw.randint(0, 900))
            if reserved is None:
                continue
            with lock:
                having[0] += reserved
                most[0] = max(most[0], having[0])
            used = draw.choice((0, draw.randint(0, reserved), reserved)) // 20
            with lock:
                having[0] -= reserved - used
            budget.settle(reserved, used)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert budget.used == having[0] <= 10_000 and 2_000 < most[0] <= 10_000
    assert Budget(5, None).reserve(9) == 5 and Budget(None, None).reserve(9) == 9
    # Who comes while another one has all waits for what that one gives back.
    budget = Budget(100, None)
    first = budget.reserve(90)
    assert first == 90
    threading.Timer(0.2, lambda: budget.settle(90, 30)).start()
    assert budget.reserve(50) == 50
    budget.settle(50, 70)
    assert budget.reserve(1) is None and Budget(9, None, patience=0.1).reserve(9) == 9
    # One that never ends keeps nobody for longer than that.
    hung = Budget(9, None, patience=0.1)
    assert (hung.reserve(7), hung.reserve(7), hung.reserve(7)) == (7, 2, None)
    assert budget.why_none == "the budget of 100 bytes is used up"


def test_time_is_over_at_the_limit() -> None:
    now = [100.0]
    budget = Budget(None, 60, clock=lambda: now[0])
    assert (budget.seconds_left, budget.is_late, Budget(None, None).seconds_left) == (60, False, None)
    now[0] += 60
    assert budget.is_late


def test_in_no_second_there_are_more_requests_than_the_pace_and_its_burst() -> None:
    draw = random.Random(3)
    for _ in range(200):
        now, rate, made = [0.0], draw.choice((0.5, 3, 50)), list[tuple[float, int]]()
        pace = Pace(
            rate, clock=lambda now=now: now[0], sleep=lambda seconds, now=now: now.__setitem__(0, now[0] + seconds)
        )
        for _ in range(40):
            now[0] += draw.choice((0, 0, draw.random() * 5))
            requests = draw.randint(1, 3)
            pace.wait(requests)
            made.append((now[0], requests))
        for at, (first, _) in enumerate(made):
            total = 0
            for moment, requests in made[at:]:
                total += requests
                # A second of turns that nobody took, and the request that is made before its last turn is over.
                assert total <= rate * (moment - first) + rate + 3 + 1e-6


@pytest.mark.parametrize("most", [1, 3])
def test_places_never_work_on_more_than_they_may(most: int) -> None:
    """Random turns: each once, at most so many that have their place, and of one key one at a time."""
    draw, lock = random.Random(5), threading.Lock()
    at_work, counts, done = Counter[int](), list[int](), list[int]()

    def work(turn: int) -> None:
        with lock:
            at_work[turn % 7] += 1
            counts.append(at_work.total())
            assert at_work[turn % 7] == 1
        time.sleep(draw.random() / 200)
        with lock:
            at_work[turn % 7] -= 1
            done.append(turn)
        if turn < 5:
            places.again(turn + 100)

    places = Places[int](work, lambda turn: turn % 7, most, limit=60)
    assert places.run(range(40), leaves_slow=False) == []
    assert sorted(done) == [*range(40), *range(100, 105)] and max(counts) == most


def test_a_slow_turn_gives_up_its_place() -> None:
    ends, done = threading.Event(), list[int]()

    def work(turn: int) -> None:
        if turn < 2:
            ends.wait(60)
        done.append(turn)

    left = Places[int](work, lambda turn: turn, 1, limit=0.1).run(range(8), leaves_slow=True)
    assert sorted(left) == [0, 1] and sorted(done) == [*range(2, 8)]
    ends.set()
    # Services are waited for, also slow ones.
    waited = list[int]()

    def last(turn: int) -> None:
        time.sleep(0.3)
        waited.append(turn)

    assert Places[int](last, lambda turn: turn, 1, limit=0.1).run(range(4), leaves_slow=False) == []
    assert sorted(waited) == [*range(4)]


def test_too_many_slow_turns_leave_the_rest() -> None:
    ends, begun = threading.Event(), list[int]()

    def work(turn: int) -> None:
        begun.append(turn)
        ends.wait(60)

    left = Places[int](work, lambda turn: turn, 1, limit=0.05).run(range(30), leaves_slow=True)
    assert sorted(left) == [*range(30)] and 4 <= len(begun) <= 5
    ends.set()


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_ends_all_work() -> None:
    ended = list[str]()

    def work(turn: int) -> None:
        try:
            while True:
                time.sleep(0.01)
        except KeyboardInterrupt:
            ended.append("released")
            raise

    places = Places[int](work, lambda turn: turn, 3, limit=60)
    threading.Timer(0.5, lambda: signal.raise_signal(signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        places.run(range(9), leaves_slow=False)
    assert ended == ["released"] * 3


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_reaches_who_starts_threads() -> None:
    """Until Python 3.12 it would reach the new thread, and who started that one would wait for ever."""
    for _ in range(5):
        ended = list[int]()

        def work(turn: int, ended: list[int] = ended) -> None:
            try:
                while True:
                    threading.Thread(target=str).start()
                    time.sleep(0.001)
            except KeyboardInterrupt:
                ended.append(turn)
                raise

        places = Places[int](work, lambda turn: turn, 4, limit=60)
        threading.Timer(0.2, lambda: signal.raise_signal(signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            places.run(range(4), leaves_slow=False)
        assert sorted(ended) == [*range(4)]


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_waits_for_the_end_of_an_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python ignores exceptions in the callbacks of the locks of modules: the thread would go on."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "imported_slowly.py").write_text("import time\nfor _ in range(100):\n    time.sleep(0.005)\n")
    said = list[str]()

    def work(turn: int) -> None:
        importlib.import_module("imported_slowly")
        said.append("imported")
        try:
            time.sleep(5)
        except KeyboardInterrupt:
            said.append("interrupted")
            raise

    threading.Timer(0.2, lambda: signal.raise_signal(signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        Places[int](work, lambda turn: turn, 1, limit=60).run([1], leaves_slow=False)
    assert said[:1] == ["imported"]
    sys.modules.pop("imported_slowly")


# What is due

_SERVICES: dict[str, Callable[..., Request]] = {
    "clean": CleanRequest,
    "archive": ArchiveRequest,
    "compact": lambda **given: CompactionRequest(mode=Mode.SCHEDULE, **given),
}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "release",
    ["1.2.0", *(pytest.param(one, marks=pytest.mark.deep) for one in ("0.15.0", "1.0.2", "1.1.1"))],
)
def test_what_a_service_would_do_is_due(release: str, tmp_path: Path) -> None:
    """On all tables of a release of real Hudi, each service asked by itself is the judge: none is missed."""
    Pristine.unpack(release, tmp_path)
    places = sorted(path.parent for path in tmp_path.rglob(".hoodie") if path.parent.name == "table")
    assert len(places) > 13
    acts, asked = set[tuple[str, str, str]](), set[tuple[str, str, str]]()
    tables = listed(tmp_path, *map(str, places))
    for policy in ("KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS"):
        options = {
            **DUE,
            "hoodie.clean.commits.retained": "2",
            "hoodie.clean.fileversions.retained": "1",
            "hoodie.clean.policy": policy,
            "hoodie.compact.inline.max.delta.commits": "1",
        }
        report = over(tables, options=options)
        due = {(row.base_path, row.service, policy) for row in report.shown(FleetServiceRow)}
        asked |= {one for one in due if one[1] in _SERVICES}
        of_run = resolve([("test", options)])
        for row in report.shown(FleetTableRow):
            assert row.state != "failed", row.why
            for command, kind in _SERVICES.items():
                request = kind(base_path=row.base_path, options=of_run, dry_run=True)
                found = run_with_retries(job_of(request), request, 0, time.sleep)
                if found.state is RunState.COMPLETED:
                    acts.add((row.base_path, command, policy))
    assert acts <= asked and len(asked - acts) <= len(acts) and len(acts) > 5
    assert "clean" not in {command for _, command, _ in asked - acts}


# Runs


def fleet_of(folder: Path, seeds: Seeds, *kinds: str) -> list[Path]:
    """Copies of seeds, called after their kinds and numbers."""
    return [seeds.copy(kind, folder / "lake" / f"{kind}{number}") for number, kind in enumerate(kinds)]


def check_rows(seeds: Seeds, paths: Sequence[Path]) -> None:
    for path in paths:
        assert rows_of(path).equals(seeds.rows(path.name.rstrip("0123456789"))), path


def lines_of(file: Path) -> dict[str, dict[str, Any]]:
    found = [json.loads(line) for line in file.read_text().splitlines()]
    by_name = {Path(line["base_path"]).name: line for line in found}
    assert len(by_name) == len(found)
    return by_name


class _Slow:
    """A storage that does not answer until it is let go."""

    def __init__(self, storage: Storage, ends: threading.Event) -> None:
        self._storage, self._ends = storage, ends

    def __getattr__(self, name: str) -> Any:
        if name in ("list_dir", "read", "head"):
            self._ends.wait(60)
        return getattr(self._storage, name)


@pytest.mark.thorough
def test_a_table_that_is_broken_locked_or_slow_stops_no_other(
    tmp_path: Path, seeds: Seeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = ("cow", "mor", "plain", "cow", "cow", "cow", "mor")
    paths = fleet_of(tmp_path, seeds, *kinds)
    _, _, wrong, torn, alien, locked, slow = paths
    (torn / ".hoodie" / "hoodie.properties").write_text("hoodie.table.name=torn")
    properties = alien / ".hoodie" / "hoodie.properties"
    properties.write_text(re.sub("hoodie.table.version=.*", "hoodie.table.version=99", properties.read_text()))
    (locked / ".hoodie" / "lock").write_text("")
    ends, opened = threading.Event(), opening.open_storage

    def open_slowly(url: str) -> Any:
        return _Slow(opened(url), ends) if url == str(slow) else opened(url)

    monkeypatch.setattr(opening, "open_storage", open_slowly)
    (tmp_path / "lake" / "not-a-table").mkdir()
    none = tmp_path / "none"
    tables = listed(tmp_path, f"{locked} {_LOCKED}", f"{wrong} hoodie.clean.commits.retained=x", str(none))
    with pytest.raises(ConfigError, match=r"tables.txt:2"):
        over(tables, apply=True)
    before = {path: digest(path) for path in paths}
    tables = listed(tmp_path, f"{locked} {_LOCKED}", str(none), f"{tmp_path}/lake/*")
    results = tmp_path / "results.jsonl"
    of_run = {"hudi.services.fleet.table.time": "2s", "hudi.services.fleet.tables.at.once": "2"}
    report = over(tables, apply=True, options=of_run, results=str(results))
    assert states(report) == {
        **dict.fromkeys(("cow0", "mor1", "plain2"), "done"),
        **dict.fromkeys(("cow3", "cow4", "none"), "failed"),
        "cow5": "busy",
        "mor6": "slow",
    }
    assert (report.state, report.exit_code) == (RunState.PARTLY_DONE, 7)
    assert report.reason == "8 tables: 1 slow, 3 failed, 1 busy, 3 done"
    for row in report.shown(FleetTableRow):
        assert ((row.state != "done") == bool(row.why) and (row.state not in ("failed", "slow"))) or row.next, row
    lines = lines_of(results)
    assert {name: line["state"] for name, line in lines.items()} == states(report)
    assert {name for name, line in lines.items() if line["finished"]} == {"cow0", "mor1", "plain2"}
    assert all(digest(path) == before[path] for path in (torn, alien, slow))
    # The lease of a run that waited for the lock is released, and stays as a file.
    assert all(".locks/" in name for name in digest(locked).keys() ^ before[locked].keys())
    check_rows(seeds, [path for path in paths if path not in (torn, alien)])
    for path, kind in zip(paths, kinds, strict=True):
        if states(report)[path.name] == "done":
            assert sorted(one["command"] for one in lines[path.name]["services"]) == sorted(KINDS[kind])
            assert done_on(path)["clean"] == ("clean" in KINDS[kind])
            assert open_local(path).timeline.last_clustering() is not None

    # Those that were finished are left out by the next run, also where much is due there again.
    ends.set()
    monkeypatch.setattr(opening, "open_storage", opened)
    shutil.copytree(seeds.folder / "cow" / ".hoodie", torn / ".hoodie", dirs_exist_ok=True)
    shutil.copytree(seeds.folder / "cow" / ".hoodie", alien / ".hoodie", dirs_exist_ok=True)
    (locked / ".hoodie" / "lock").unlink()
    none.mkdir()
    seeds.copy("plain", none / "plain")
    finished = {name: line for name, line in lines.items() if line["finished"]}
    before = {path: digest(path) for path in paths if path.name in finished}
    # A place may be written in another way.
    tables = listed(tmp_path, f"{locked} {_LOCKED}", f"{none}/*", f"file://{tmp_path}/lake/*")
    report = over(tables, apply=True, results=str(results), resume=True)
    assert states(report) == dict.fromkeys(("cow3", "cow4", "cow5", "mor6", "plain"), "done")
    assert report.exit_code == 0 and report.reason == "8 tables: 5 done, 3 finished by an earlier run"
    lines = lines_of(results)
    assert all(lines[name] == line for name, line in finished.items())
    assert all(digest(path) == before[path] for path in before)
    check_rows(seeds, paths)
    # A clean may follow a clustering later; nothing is rewritten again.
    assert not any(row.cost_bytes for row in over(tables).shown(FleetServiceRow))


_HANGS = """
import sys, threading
from hudi_services.cli.app import main
from hudi_services.runs import opening

class Hangs:
    asked = 0

    def __init__(self, storage):
        self.storage = storage

    def __getattr__(self, name):
        if name.startswith(("list", "read", "head")):
            Hangs.asked += 1
            if Hangs.asked >= after:
                threading.Event().wait()
        return getattr(self.storage, name)

hanging, after = sys.argv.pop(1), int(sys.argv.pop(1))
opened = opening.open_storage
opening.open_storage = lambda url: Hangs(opened(url)) if url == hanging else opened(url)
main()
"""


@pytest.mark.thorough
@pytest.mark.parametrize("after", [1, 10, 20])
def test_a_storage_that_never_answers_keeps_neither_others_nor_the_process(
    after: int, tmp_path: Path, seeds: Seeds
) -> None:
    """Wherever in a look it stops: no lock is shared with other tables, and no thread is waited for."""
    paths = fleet_of(tmp_path, seeds, "cow", "mor", "plain", "cow")
    results = tmp_path / "results.jsonl"
    flags = [listed(tmp_path, f"{tmp_path}/lake/*"), "--table-time", "3s", "--results", str(results), *_words()]
    command = [sys.executable, "-c", _HANGS, str(paths[0]), str(after), "fleet", *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 7 and "4 tables: 1 slow, 3 due" in done.stderr, done.stderr
    assert {name: line["state"] for name, line in lines_of(results).items()} == {
        "cow0": "slow",
        **dict.fromkeys(("mor1", "plain2", "cow3"), "due"),
    }


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(1, 9))])
def test_services_run_by_their_gain_within_the_budget(seed: int, tmp_path: Path, seeds: Seeds) -> None:
    """Random fleets and budgets: what clusterings and compactions read is within it, and the first ones had it."""
    draw = random.Random(seed)
    paths = fleet_of(tmp_path, seeds, *draw.choices([*KINDS], k=4 if seed == 0 else 7))
    tables = listed(tmp_path, f"{tmp_path}/lake/*")
    before = {path: digest(path) for path in paths}
    look = over(tables)
    assert all(digest(path) == before[path] for path in paths) and look.dry_run
    ranking = [(row.base_path, row.service) for row in look.shown(FleetServiceRow)]
    rewriting = [row for row in look.shown(FleetServiceRow) if row.cost_bytes]
    gains = [row.gain_bytes / row.cost_bytes for row in rewriting]
    assert gains == sorted(gains, reverse=True)
    free = [row.cost_bytes is None for row in look.shown(FleetServiceRow)]
    assert free == sorted(free, reverse=True)
    cost = sum(row.cost_bytes for row in rewriting)
    budget = draw.randint(1, cost)
    of_run = {"hudi.services.fleet.max.bytes": str(budget), "hudi.services.fleet.tables.at.once": str(seed % 4 + 1)}
    report = over(tables, apply=True, options=of_run)
    rows = report.shown(FleetServiceRow)
    assert [(row.base_path, row.service) for row in rows] == ranking
    assert (report.bytes.before or 0) <= budget, "\n".join(str(vars(row)) for row in rows)
    assert sum(row.read_bytes or 0 for row in rows) == (report.bytes.before or 0)
    assert sum(map(_rewritten, paths)) == (report.bytes.before or 0)
    assert all(row.state == "completed" for row in rows if row.cost_bytes is None)
    if seed == 0:
        # One at a time: a service begins only when all before it have begun.
        left = [row.state == "left" for row in rows]
        assert left == sorted(left) or budget < max(row.cost_bytes or 0 for row in rewriting) * 2
    assert report.exit_code == 0
    check_rows(seeds, paths)
    # With what is left of the work, and enough bytes, all is done.
    again = over(tables, apply=True)
    assert not {"left", "failed"} & {*states(again).values()}
    check_rows(seeds, paths)


def _rewritten(path: Path) -> int:
    """The bytes of the files that clusterings and compactions of the active timeline have read, by their plans."""
    table, total = open_local(path), 0
    for instant in table.timeline.completed_writes():
        if table.timeline.is_clustering(instant):
            names = [
                name for group in table.timeline.read_plan(instant).groups for one in group.slices for name in one.names
            ]
        elif instant.action.value == "commit" and table.config.is_merge_on_read:
            plan = table.timeline.read_compaction_plan(instant)
            names = [f"{one.partition}/{name}" for one in plan.operations for name in one.names]
        else:
            continue
        total += sum((path / "a" / Path(name).name).stat().st_size for name in names)
    return total


def test_a_clustering_that_the_budget_cuts_short_is_left(tmp_path: Path, seeds: Seeds) -> None:
    """And the next run does the rest: the line of the table is not finished."""
    (path,) = fleet_of(tmp_path, seeds, "cow")
    tables, results = listed(tmp_path, str(path)), tmp_path / "results.jsonl"
    (look,) = [row for row in over(tables).shown(FleetServiceRow) if row.service == "execute"]
    options = {"hudi.services.fleet.max.bytes": str((look.cost_bytes or 0) // 2), **_SMALL_GROUPS}
    report = over(tables, apply=True, options=options, results=str(results))
    (row,) = [row for row in report.shown(FleetServiceRow) if row.service == "execute"]
    assert row.state == "partly_done" and re.search(
        r"of the budget were left: [0-9]+ file slices did not", row.why or ""
    )
    assert states(report) == {"cow0": "left"} and 0 < (row.read_bytes or 0) <= (look.cost_bytes or 0) // 2
    assert not lines_of(results)["cow0"]["finished"]
    report = over(tables, apply=True, options=_SMALL_GROUPS, results=str(results), resume=True)
    assert report.reason == "1 table: 1 done"
    check_rows(seeds, [path])


def texts_of(path: Path) -> list[str]:
    """The rows as texts, in which not-a-number is what it was, of files whose types may differ."""
    table, found = open_local(path), list[str]()
    for one in table.view.live_slices():
        reader = table.slices.open(one)
        names = [name for name in reader.schema.columns if name != "_hoodie_file_name"]
        found += [repr(row) for _, rows in reader.tables(names) for row in rows.to_pylist()]
    return sorted(found)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "release",
    ["1.2.0", *(pytest.param(one, marks=pytest.mark.deep) for one in ("0.15.0", "1.0.2"))],
)
def test_tables_of_every_kind_keep_their_rows(release: str, tmp_path: Path) -> None:
    """All that a release of real Hudi wrote: log files, plans that wait, bootstrapped tables, consistent hashing."""
    lines, rows = list[str](), dict[Path, Callable[[], Any]]()
    Pristine.unpack(release, tmp_path / "plain")
    for place in sorted(path.parent for path in tmp_path.rglob(".hoodie") if path.parent.name == "table"):
        lines.append(str(place))
        rows[place] = partial(texts_of, place)
    for name in ("b_cow_hive", "b_mor_flat", "b_mor_flat-compaction-scheduled", "d_mixed_mor_up"):
        table = Bootstrapped(release, name, tmp_path / "bootstrapped" / name)
        lines.append(f"{table.path} hudi.services.bootstrap.source={table.source}")
        rows[table.path] = table.seen
    for name in ("split-pending", "merge-pending"):
        place = test_consistent_hashing.made(release, name, tmp_path / "buckets")
        lines.append(str(place))
        rows[place] = partial(test_consistent_hashing.contents, place)
    before = {place: read() for place, read in rows.items()}
    # Plans count as late at once, so that they are executed.
    options = {
        "hudi.services.fleet.services": "recover,validate,orphan-files,clean,archive,compact,execute",
        "hudi.services.abandoned.after.minutes": "1",
        "hoodie.compact.inline.max.delta.commits": "1",
    }
    report = over(listed(tmp_path, *lines), apply=True, options=options)
    states = Counter(row.state for row in report.shown(FleetTableRow))
    assert not {"failed", "busy", "slow"} & states.keys(), [
        (row.base_path, row.why) for row in report.shown(FleetTableRow) if row.why
    ]
    ran = {row.service for row in report.shown(FleetServiceRow)}
    assert {"clean", "archive", "compact"} <= ran and states["done"] > 5, (ran, states)
    for place, read in rows.items():
        assert read() == before[place], place


def test_a_table_that_is_deleted_meanwhile(tmp_path: Path, seeds: Seeds) -> None:
    """Between the look and its services: it is told, nothing appears in its place, and the others go on."""
    gone, stays = fleet_of(tmp_path, seeds, "mor", "cow")

    def delete(phase: str, done: int, total: int) -> None:
        if phase == "look" and done == total:
            shutil.rmtree(gone)

    report = over(listed(tmp_path, str(gone), str(stays)), apply=True, progress=delete)
    assert states(report) == {"mor0": "failed", "cow1": "done"} and report.exit_code == 7
    assert "there is nothing at" in (report.shown(FleetTableRow)[0].why or "")
    assert not gone.exists()
    check_rows(seeds, [stays])


@pytest.mark.thorough
def test_storage_that_answers_slowly_while_services_run(
    tmp_path: Path, seeds: Seeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table gives up its place, the others end before it, and its services are waited for."""
    slow, *others = paths = fleet_of(tmp_path, seeds, "mor", "cow", "plain")
    ends, opened, order = threading.Event(), opening.open_storage, list[str]()
    is_looking = True

    def progress(phase: str, done: int, total: int) -> None:
        nonlocal is_looking
        is_looking = is_looking and not (phase == "look" and done == total)

    def open_slowly(url: str) -> Any:
        return _Slow(opened(url), ends) if url == str(slow) and not is_looking else opened(url)

    def written(results: ResultsFile, line: dict[str, Any]) -> None:
        order.append(Path(line["base_path"]).name)
        if len(order) == len(others):
            ends.set()

    monkeypatch.setattr(opening, "open_storage", open_slowly)
    monkeypatch.setattr(ResultsFile, "add", written)
    options = {"hudi.services.fleet.tables.at.once": "1", "hudi.services.fleet.table.time": "1s"}
    tables = listed(tmp_path, *map(str, paths))
    report = over(tables, apply=True, options=options, progress=progress, results=str(tmp_path / "r.jsonl"))
    assert {*states(report).values()} == {"done"} and order[-1] == "mor0"
    check_rows(seeds, paths)


def test_warnings_that_no_service_ends_come_before_what_is_due(tmp_path: Path, seeds: Seeds) -> None:
    paths = fleet_of(tmp_path, seeds, "cow", "plain")
    (paths[1] / ".hoodie" / "lock").write_text("")
    os.utime(paths[1] / ".hoodie" / "lock", (0, 0))
    report = over(listed(tmp_path, str(paths[0]), f"{paths[1]} {_LOCKED}"))
    first, second = report.shown(FleetTableRow)
    assert (first.base_path, first.why is None, second.why) == (str(paths[1]), False, None), first
    assert report.reason == "dry run: 2 tables: 2 due; 1 table with warnings that no service here ends"


def test_time_that_is_over_leaves_the_rest(tmp_path: Path, seeds: Seeds, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = fleet_of(tmp_path, seeds, "cow", "plain")
    before = {path: digest(path) for path in paths}
    monkeypatch.setattr(Budget, "is_late", property(lambda budget: True))
    report = over(listed(tmp_path, f"{tmp_path}/lake/*"), apply=True, options={"hudi.services.time.limit": "1h"})
    assert {*states(report).values()} == {"left"} and report.exit_code == 0
    assert {row.why for row in report.shown(FleetServiceRow)} == {"the time limit is over"}
    assert all(digest(path) == before[path] for path in paths)


@pytest.mark.thorough
def test_warnings_of_many_tables_are_told_once(tmp_path: Path, seeds: Seeds) -> None:
    fleet_of(tmp_path, seeds, "cow", "plain", "cow", "cow")
    results = tmp_path / "results.jsonl"
    options = {"hoodie.metadata.enable": "false"}
    report = over(listed(tmp_path, f"{tmp_path}/lake/*"), apply=True, options=options, results=str(results))
    (told,) = report.warnings
    said = "hoodie.metadata.enable=false (from test) is ignored: "
    assert told.startswith(f"{tmp_path}/lake/cow0: execute: {said}") and told.endswith("; so in 2 other tables")
    lines = lines_of(results)
    assert all(
        [text.startswith(said) for text in one["warnings"]]
        == [True] * (one["command"] == "execute" and name != "plain1")
        for name, line in lines.items()
        for one in line["services"]
    )


def test_warnings_that_differ_by_numbers_are_alike() -> None:
    told = told_once([(f"/t/{n}", f"/t/{n}: 2026112910150012{n} has {n} files") for n in (1, 2, 2, 3)], "table")
    assert told == ["/t/1: 20261129101500121 has 1 files; so in 2 other tables"]
    assert told_once([("l:1", "l:1: a"), ("l:2", "l:2: b"), ("l:3", "l:3: b")], "line") == [
        "l:1: a",
        "l:2: b; so in 1 other line",
    ]


# As operators start it


def _words(**options: str) -> list[str]:
    return [word for key, value in {**DUE, **options}.items() for word in ("--hoodie-conf", f"{key}={value}")]


def _names(path: Path) -> set[str]:
    """The files of a table while services write to it and delete from it: what goes meanwhile is no error."""
    return {os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names}


@pytest.mark.thorough
def test_what_ends_a_run_from_outside_loses_nothing(tmp_path: Path, seeds: Seeds) -> None:
    """SIGTERM releases what services hold, and SIGKILL does not: the next run with --resume does the rest."""
    paths = fleet_of(tmp_path, seeds, *(kind for kind in KINDS for _ in range(2)))
    results = tmp_path / "results.jsonl"
    tables = listed(tmp_path, f"{tmp_path}/lake/*")
    flags = ["--apply", "--engine", "local", "--results", str(results), "--resume", *_words()]
    command = [sys.executable, "-m", "hudi_services", "fleet", tables, *flags]
    for sent, expected in ((signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        begun = {path: _names(path) for path in paths}
        deadline = time.monotonic() + 60
        while all(_names(path) == begun[path] for path in paths) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(sent)
        told = process.communicate(timeout=60)[1]
        assert process.returncode == expected and "Traceback" not in told, told
        check_rows(seeds, paths)
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = lines_of(results)
    assert {*lines} == {path.name for path in paths} and {line["state"] for line in lines.values()} <= {
        "done",
        "nothing due",
    }
    check_rows(seeds, paths)
    assert all(open_local(path).timeline.last_clustering() is not None for path in paths)
    assert not [one for path in paths for one in open_local(path).timeline.pending()]


@pytest.mark.thorough
def test_a_second_run_does_not_write_the_same_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results.jsonl"
    first = ResultsFile.open(str(results), resume=True, applies=False)
    assert run(["fleet", listed(tmp_path, "/none"), "--results", str(results)]) == 4
    assert "another run writes" in capsys.readouterr().err
    first.close()
    for text in ("/data/rides\n", "[1]\n", '{"base_path": 3}\n', "{}\n"):
        results.write_text(text)
        assert run(["fleet", listed(tmp_path, "/none"), "--results", str(results)]) == 2
        assert results.read_text() == text and "was not written by fleet" in capsys.readouterr().err
    # A line without its end is of a run that was killed as it wrote.
    results.write_text('{"version": 1, "base_pa')
    assert run(["fleet", listed(tmp_path, "/none"), "--results", str(results), "--resume"]) == 7
    assert [json.loads(line)["state"] for line in results.read_text().splitlines()] == ["failed"]
    assert run(["fleet", listed(tmp_path, "/none"), "--resume"]) == 2


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("/dev/full", "is a pipe or a device"),
        ("fifo", "is a pipe or a device"),
        ("binary", "was not written by fleet"),
        ("report", "--report and --results name one file"),
    ],
)
def test_files_that_cannot_have_results(
    name: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "link").symlink_to(tmp_path / "report")
    file = str(tmp_path / name)
    assert run(["fleet", listed(tmp_path, "/none"), "--results", file, "--report", str(tmp_path / "link")]) == 2
    assert said in capsys.readouterr().err
    assert (tmp_path / "binary").read_bytes() == b"\xff\xfe"


@pytest.mark.thorough
def test_a_full_disk_costs_the_results_alone(tmp_path: Path) -> None:
    """The report of a run is told, and its results can be gone on from."""
    results = tmp_path / "results.jsonl"
    tables = listed(tmp_path, *(f"/none/{number}" for number in range(40)))
    command = [sys.executable, "-m", "hudi_services", "fleet", tables, "--results", str(results), "--resume"]
    for blocks in (4, 8):
        limited = ["bash", "-c", f'ulimit -f {blocks}; exec "$@"', "", *command]
        done = subprocess.run(limited, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 7 and "40 tables: 40 failed; " in done.stderr, done.stderr
        assert "results.jsonl could not be written: File too large" in done.stderr
        lines = lines_of(results)
        assert 2 <= len(lines) < 40 and results.stat().st_size <= blocks * 1024


@pytest.mark.thorough
def test_a_look_is_written_when_it_has_ended(tmp_path: Path, seeds: Seeds, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = fleet_of(tmp_path, seeds, "cow", "plain")
    ends, opened, results = threading.Event(), opening.open_storage, tmp_path / "results.jsonl"
    monkeypatch.setattr(
        opening, "open_storage", lambda url: _Slow(opened(url), ends) if url == str(paths[0]) else opened(url)
    )
    tables = listed(tmp_path, *map(str, paths))
    look = threading.Thread(target=over, args=(tables,), kwargs={"results": str(results)})
    look.start()
    deadline = time.monotonic() + 30
    while not (results.exists() and lines_of(results)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert look.is_alive() and {*lines_of(results)} == {"plain1"}
    ends.set()
    look.join(30)
    assert {name: line["state"] for name, line in lines_of(results).items()} == {"cow0": "due", "plain1": "due"}


@pytest.mark.thorough
def test_what_was_mended_is_told_as_mended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, results = tmp_path / "rides", tmp_path / "results.jsonl"
    made(path, 9, "COPY_ON_WRITE")
    narrow(path)
    tables = listed(tmp_path, str(path))
    assert run(["fleet", tables]) == 5 and "with --apply" not in capsys.readouterr().out
    options = {"hudi.services.fleet.services": "validate,clean", "hoodie.clean.commits.retained": "1"}
    report = over(tables, apply=True, options=options, results=str(results))
    assert report.exit_code == 0
    assert [row.service for row in report.shown(FleetServiceRow)] == ["validate"]
    (line,) = lines_of(results).values()
    assert line["findings"]["critical"] == 0 and line["state"] == "done"
    assert [one["command"] for one in line["services"]] == ["validate"]
    assert [one["command"] for one in line["due"]] == ["validate"]


def test_the_next_step_names_its_table(tmp_path: Path) -> None:
    """A hint that deletes something is not for any table; of two tables that need somebody, none is preferred."""
    hudi_services.create(str(tmp_path / "a"), record_key="k")
    (tmp_path / "b").mkdir()
    report = over(listed(tmp_path, str(tmp_path / "a"), str(tmp_path / "b")))
    assert states(report) == {"a": "nothing due", "b": "failed"}
    assert report.hint.startswith(f"{tmp_path / 'b'}: ")
    made(tmp_path / "c", 9, "COPY_ON_WRITE")
    narrow(tmp_path / "c")
    report = over(listed(tmp_path, str(tmp_path / "b"), str(tmp_path / "c")))
    assert report.hint.startswith("do what the list of tables says for each of them")


def test_nothing_due_is_idle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hudi_services.create(str(tmp_path / "new"), record_key="k")
    tables = listed(tmp_path, str(tmp_path / "new"))
    for apply in ((), ("--apply", "--engine", "local")):
        assert run(["fleet", tables, "--fail-if-idle", *apply]) == 3
        assert "with --apply" not in capsys.readouterr().out


@pytest.mark.thorough
def test_the_example_for_cron(tmp_path: Path, seeds: Seeds) -> None:
    paths = fleet_of(tmp_path, seeds, "cow", "plain")
    tables = listed(tmp_path, *map(str, paths))
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "TABLES": tables,
        "LOGS": str(tmp_path),
        "BYTES": "10g",
        "TIME": "20m",
        "FLAGS": f"--engine local {' '.join(_words())}",
    }

    def nightly() -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(CRON)], env=environment, capture_output=True, text=True, timeout=120, check=False)

    first = nightly()
    assert (first.returncode, first.stdout, first.stderr) == (0, "", "")
    (results,) = tmp_path.glob("fleet-*.jsonl")
    assert {line["state"] for line in lines_of(results).values()} == {"done"}
    listed(tmp_path, *map(str, paths), str(tmp_path / "none"))
    second = nightly()
    (log,) = tmp_path.glob("fleet-*.log")
    assert second.returncode == 7
    assert second.stdout == f"some tables need somebody: 1 of them, see {log}\n"
    assert "2 finished by an earlier run" in log.read_text()
    check_rows(seeds, paths)


@dataclass
class _Airflow:
    """What the example takes of Airflow, as far as it takes it."""

    tasks: list[Any] = field(default_factory=list)
    errors: dict[str, type[Exception]] = field(default_factory=dict)

    def modules(self) -> dict[str, ModuleType]:
        names = ("AirflowException", "AirflowFailException", "AirflowSkipException")
        self.errors = {name: type(name, (Exception,), {}) for name in names}
        tasks = self.tasks

        class BaseOperator:
            def __init__(self, *, task_id: str) -> None:
                self.task_id = task_id
                tasks.append(self)

            def __rshift__(self, other: object) -> object:
                return other

        class SubprocessHook:
            def run_command(self, command: list[str]) -> Any:
                done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
                print(done.stdout, done.stderr)
                return SimpleNamespace(exit_code=done.returncode)

        found = {name: ModuleType(name) for name in ("airflow", "airflow.exceptions", "airflow.hooks.subprocess")}
        found |= {name: ModuleType(name) for name in ("airflow.hooks", "airflow.models")}
        vars(found["airflow"])["DAG"] = lambda *given, **more: nullcontext()
        vars(found["airflow.exceptions"]).update(self.errors)
        vars(found["airflow.hooks.subprocess"])["SubprocessHook"] = SubprocessHook
        vars(found["airflow.models"])["BaseOperator"] = BaseOperator
        return found


@pytest.mark.thorough
def test_the_example_for_airflow(tmp_path: Path, seeds: Seeds, monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow's classes are stand-ins here; its own scheduler runs the DAG in tests/unit/test_airflow.py (deep)."""
    paths = fleet_of(tmp_path, seeds, "plain")
    tables = listed(tmp_path, *map(str, paths), str(tmp_path / "none"))
    params = {"tables": tables, "results": str(tmp_path), "bytes": "10g", "engine": "local"}
    airflow = _Airflow()
    for name, module in airflow.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    exec(compile(DAG.read_text(), str(DAG), "exec"), {"__name__": "fleet_dag"})
    for task in airflow.tasks:
        rendered = list(task.command)
        for name, value in {**{f"params.{key}": value for key, value in params.items()}, "ts_nodash": "now"}.items():
            rendered = [word.replace("{{ " + name + " }}", value) for word in rendered]
        task.command = [*rendered, *_words()]
    look, work = airflow.tasks
    before = digest(paths[0])
    look.execute({})
    assert digest(paths[0]) == before
    with pytest.raises(airflow.errors["AirflowException"], match="exit code 7"):
        work.execute({})
    (results,) = tmp_path.glob("fleet-now.jsonl")
    assert {name: line["state"] for name, line in lines_of(results).items()} == {"plain0": "done", "none": "failed"}
    listed(tmp_path, str(paths[0]))
    with pytest.raises(airflow.errors["AirflowSkipException"]):
        work.execute({})
    listed(tmp_path, "/data/**/wrong")
    with pytest.raises(airflow.errors["AirflowFailException"], match="correct the list"):
        work.execute({})


@pytest.mark.thorough
def test_tables_in_an_object_store(
    tmp_path: Path, seeds: Seeds, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names that a URL writes in another way, a bucket that is not there, and a run that stays within its pace."""
    bucket = servers.bucket("moto")
    for name, value in bucket.options_at(bucket.endpoint).items():
        monkeypatch.setenv(f"AWS_{name.upper().removeprefix('AWS_')}", str(value))
    for name in ("raw/a%20b/x", "raw/50%25/deep/y", "raw/_tmp/z"):
        upload(seeds.folder / "plain", f"{bucket.url}/{name}")
    lines = [f"{bucket.url}/raw/**", f"{bucket.url}/raw/*/x", "s3://none-such/*"]
    options = {"hudi.services.fleet.requests.per.second": "400"}
    began = time.monotonic()
    request = FleetRequest(
        base_path=listed(tmp_path, *lines),
        options=resolve([("test", {**DUE, "hudi.services.engine": "local", **options})]),
        apply=True,
    )
    report = run_with_retries(fleet.fleet, request, 0, time.sleep)
    seconds = time.monotonic() - began
    assert {row.base_path: row.state for row in report.shown(FleetTableRow)} == {
        f"{bucket.url}/raw/a b/x": "done",
        f"{bucket.url}/raw/50%25/deep/y": "done",
        "s3://none-such/*": "failed",
    }
    # How long it takes at least: how long at most, a busy machine decides.
    asked = sum(sum(of.values()) for of in report.requests.values())
    assert 200 < asked <= 400 * (seconds + 1)
