"""Commands on a small table on a server whose requests break, and how they end: as the same command undisturbed."""

import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa

import hudi_services
from hudi_services.clock import SystemClock
from hudi_services.commit import lease
from hudi_services.concurrency import at_once
from hudi_services.file_cache import shared_cache
from hudi_services.snapshot import open_snapshot
from hudi_services.storage import Storage
from hudi_services.stores import open_storage

from ..servers.breaking_proxy import BreakingProxy, Rule, breaking_proxy
from ..servers.bucket import Bucket
from ..servers.started import Servers
from .dead_writes import appended
from .repairs import DEAD_AT_ONCE
from .request_scenarios import rows
from .rides import FILTERS, create
from .tables import merged_rows_of

Files = dict[str, bytes]

ALONE = {"hoodie.table.services.enabled": "false"}
EACH_COMMIT = {"hoodie.compact.inline.max.delta.commits": "1"}
DUE = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hoodie.metadata.compact.max.delta.commits": "2",
}
LOCKED = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider",
}
LEASES = ".hoodie/.locks/hudi_services"
INSTANT = re.compile(r"(\.hoodie/metadata/)?\.hoodie/timeline/(history/)?[0-9_]+\.(.+)")


@dataclass(frozen=True, slots=True)
class Command:
    """A command on a table of seven writes. `prepared` comes before it, and may give it an instant."""

    run: Callable[[hudi_services.Table, str], hudi_services.Result]
    prepared: Callable[[hudi_services.Table, Storage], str] = lambda table, storage: ""


def _fail_a_write(_: hudi_services.Table, storage: Storage) -> str:
    found = open_snapshot(storage, SystemClock())
    ts = str(int(found.timeline.latest_time()) + 1)
    appended(found, ts, found.view.live_slices()[0])
    return ts


def compact_twice(table: hudi_services.Table) -> None:
    for stamp in (20, 21):
        table.upsert(rows(range(1), stamp), options=ALONE)
        table.compact(options=EACH_COMMIT)


def _compact_twice(table: hudi_services.Table, _: Storage) -> str:
    compact_twice(table)
    return ""


def _archive_before(table: hudi_services.Table, _: Storage) -> str:
    table.archive(options=DUE)
    for stamp in (20, 21):
        table.upsert(rows(range(1), stamp), options=ALONE)
    return ""


NEW = rows(range(5, 7), 30)
COMMANDS = {
    "write": Command(lambda table, _: table.upsert(NEW, options=DUE)),
    "locked write": Command(lambda table, _: table.upsert(NEW, options=ALONE | LOCKED)),
    "execute": Command(
        lambda table, ts: table.execute_clustering(ts), lambda table, _: table.plan_clustering().instant or ""
    ),
    "compact": Command(
        lambda table, ts: table.execute_compaction(ts),
        lambda table, _: table.plan_compaction(options=EACH_COMMIT).instant or "",
    ),
    "clean": Command(lambda table, _: table.clean(options=DUE), _compact_twice),
    "archive": Command(lambda table, _: table.archive(options=DUE)),
    "second archive": Command(lambda table, _: table.archive(options=DUE), _archive_before),
    "index-bootstrap": Command(lambda table, _: table.build_index()),
    "rollback": Command(lambda table, ts: table.rollback(ts, options=DEAD_AT_ONCE), _fail_a_write),
}
"""Those that change something under the lock."""
ALL_COMMANDS = COMMANDS | {
    "schedule": Command(lambda table, _: table.plan_clustering()),
    "validate": Command(lambda table, _: table.validate(strict=True)),
}


@dataclass(frozen=True)
class Ended:
    """How a run ended: what it said, and the table after it. `instants`: how many files of each kind the timelines
    have; `leases`: how many files of leases the run made."""

    state: str
    exit_code: int
    rows: pa.Table
    instants: Counter[str]
    leases: int


class Place:
    """A table on a server, and a command on it, behind a proxy, as often as wanted on the same files."""

    def __init__(self, files: Files, bucket: Bucket, proxy: BreakingProxy, command: Command) -> None:
        name = uuid.uuid4().hex
        self.proxy = proxy
        self._command = command
        self._files = files
        self.storage = bucket.open(name)
        self.direct, self._behind = (
            partial(hudi_services.open, self.storage.root, storage_options=bucket.options_at(endpoint), engine="local")
            for endpoint in (bucket.endpoint, proxy.endpoint)
        )
        self.begin_anew()
        self._instant = command.prepared(self.direct(options=FILTERS), self.storage)
        self._files = {file.path: self.storage.read(file.path) for file in self.storage.list_tree("")}

    def run(self, rule: Rule | None = None) -> Ended:
        """Run the command on the table as it was prepared; `rule` breaks requests of it."""
        self.begin_anew()
        self.proxy.reset(rule)
        done = self.carry_out()
        self.proxy.rule = None
        return self._ended(done)

    def carry_out(self, table: hudi_services.Table | None = None) -> hudi_services.Result:
        """The command on the table as it is, by the proxy unless `table` says otherwise."""
        return self._command.run(table or self._behind(options=FILTERS), self._instant)

    def begin_anew(self) -> None:
        """Nothing is known of the table, as in a new process."""
        self.storage.delete_all([file.path for file in self.storage.list_tree("")], lambda _: None)
        at_once(lambda path: self.storage.put(path, self._files[path]), list(self._files))
        shared_cache().forget()
        lease._given_back.clear()

    def _ended(self, done: hudi_services.Result) -> Ended:
        shared_cache().forget()
        assert self.direct().validate(strict=True).ok
        found = rows_in(self.storage)
        instants = Counter(
            "".join(part or "" for part in parts.groups())
            for file in self.storage.list_tree(".hoodie")
            if (parts := INSTANT.fullmatch(file.path))
        )
        leases = len({one.request.path for one in self.proxy.conditional if LEASES in one.request.path})
        return Ended(done.state.value, done.exit_code, found, instants, leases)


Placed = Callable[[str, str], Place]


@contextmanager
def places(files: Files, servers: Servers) -> Iterator[Placed]:
    """A context in which a table is placed on a server, for one of ALL_COMMANDS, behind a proxy of its own."""
    with ExitStack() as stack:

        def at(server: str, command: str) -> Place:
            bucket = servers.bucket(server)
            proxy = stack.enter_context(breaking_proxy(bucket.endpoint))
            return Place(files, bucket, proxy, ALL_COMMANDS[command])

        yield at


def rows_in(storage: Storage) -> pa.Table:
    """What readers see of a table, as a new process does, without the columns that say who wrote it."""
    shared_cache().forget()
    found = merged_rows_of(open_snapshot(storage, SystemClock()))
    return found.drop_columns([name for name in found.column_names if name.startswith("_hoodie_commit")])


def made_table(path: Path, upserts: int) -> hudi_services.Table:
    """A new merge-on-read table of two inserts and so many upserts."""
    table = create(path, table_type="MERGE_ON_READ")
    for number in range(2):
        table.bulk_insert(rows(range(10 * number, 10 * number + 10), 1), options=ALONE)
    for number in range(upserts):
        table.upsert(rows(range(10 * (number % 2), 10 * (number % 2) + 1), 2 + number), options=ALONE)
    return table


def made_files(folder: Path) -> Files:
    """The files of a merge-on-read table of seven writes, which is made in `folder`."""
    made_table(folder / "table", 5)
    storage = open_storage(str(folder / "table"))
    return {file.path: storage.read(file.path) for file in storage.list_tree("")}


def same(expected: Ended, place: Place, rule: Rule) -> None:
    """Run the command under the rule, which breaks something: it ends as expected."""
    found = place.run(rule)
    assert any(one.broken for one in place.proxy.asked)
    assert (found.state, found.exit_code) == (expected.state, expected.exit_code)
    assert found.rows.equals(expected.rows)
    assert (found.instants, found.leases) == (expected.instants, expected.leases)
