"""`--publish late`, staged: a process that was stopped goes on, and others have worked at its plan meanwhile."""

import json
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_services.commit.liveness import liveness
from hudi_services.commit.settings import TransactionSettings
from hudi_services.engine import LocalEngine
from hudi_services.errors import ConflictError, PartlyDone, StorageError
from hudi_services.jobs import clustering, rollback
from hudi_services.runs.report import Report
from hudi_services.runs.request import Mode
from hudi_services.stores.local import LocalStorage

from .faulty_storage import FaultyStorage, Killed
from .repairs import NO_HEARTBEAT, both, repair
from .tables import RELEASES, open_local
from .tables import request as clustering_request
from .test_publish_late import Table
from .test_salvage import Meanwhile, rows


class Stopped(LocalStorage):
    """Storage of a process that is stopped before it moves the file number `at`, and loses its leases."""

    def __init__(self, table: Table, at: int, meanwhile: Callable[[], object]) -> None:
        super().__init__(str(table.path))
        self._leases = table.path / ".hoodie" / ".locks" / "hudi_services"
        self._at = at
        self._meanwhile = meanwhile

    def move(self, source: str, target: str) -> None:
        self._at -= 1
        if self._at == -1:
            for file in self._leases.iterdir():
                file.write_text(json.dumps(json.loads(file.read_text()) | {"validUntil": 0}))
            self._meanwhile()
        super().move(source, target)


def executed(table: Table, engine: LocalEngine | None = None) -> Report:
    wanted = clustering_request(table.path, Mode.EXECUTE, table.options | NO_HEARTBEAT)
    return clustering.execute(wanted, engine=engine or LocalEngine())


def rolled_back(table: Table) -> Report:
    (pending,) = open_local(table.path).timeline.pending_clusterings()
    return rollback.rollback(repair(table.path, "rollback", pending.ts, NO_HEARTBEAT))


def check(table: Table, *, metadata: bool = False) -> None:
    for seen in both(table.path) if metadata else (rows(table.path),):
        assert seen.equals(table.rows)
    writes = {one.ts for one in open_local(table.path).timeline.completed_writes()}
    files = [file for file in table.path.rglob("*.parquet") if ".hoodie" not in file.parts]
    assert {file.stem.rpartition("_")[2] for file in files} <= writes


@pytest.mark.thorough
@pytest.mark.spread(3)
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("act", [executed, rolled_back])
@pytest.mark.parametrize("at", [0, 1])
def test_no_file_is_left_where_another_process_was(
    release: str, act: Callable[[Table], Report], at: int, tmp_path: Path
) -> None:
    """Readers that list would see every row twice, at once or when the timeline begins after the time of the files."""
    for place, is_newest in enumerate((True, False)):
        table = Table(release, tmp_path / str(place), "STAGED", metadata=is_newest)
        meanwhile = LocalEngine() if is_newest else Meanwhile(lambda table=table: table.update(table.slices[0]))  # type: ignore[misc]
        with pytest.raises(ConflictError, match="another process"):
            table.cluster(meanwhile, Stopped(table, at, lambda table=table: act(table)))  # type: ignore[misc]
        check(table, metadata=is_newest)


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("is_newest", [True, False], ids=["its own time", "a later time"])
def test_the_attempt_of_another_process_goes_on(release: str, is_newest: bool, tmp_path: Path) -> None:
    """It is in the middle of its tasks when the stopped process goes on."""
    table = Table(release, tmp_path, "STAGED", metadata=is_newest)
    begun, may_end, done = threading.Event(), threading.Event(), list[Report]()

    class Other(LocalEngine):
        def map(self, function: Any, tasks: Any, what: str, progress: Any) -> Any:
            if "rewrite" in what:
                begun.set()
                may_end.wait(60)
            return super().map(function, tasks, what, progress)

    other = threading.Thread(target=lambda: done.append(executed(table, Other())))

    def meanwhile() -> None:
        other.start()
        begun.wait(60)

    engine = LocalEngine() if is_newest else Meanwhile(lambda: table.update(table.slices[0]))
    with pytest.raises(ConflictError, match="another process"):
        table.cluster(engine, Stopped(table, 1, meanwhile))
    may_end.set()
    other.join()
    assert done and done[0].exit_code == 0
    check(table, metadata=is_newest)


def test_a_table_that_is_upgraded_meanwhile(tmp_path: Path) -> None:
    """On table version 8 a pending clustering has another name, and the timeline another folder."""
    table = Table("0.15.0", tmp_path, "STAGED")
    folder = table.path / ".hoodie"

    def upgrade() -> None:
        properties = folder / "hoodie.properties"
        text = re.sub(r"hoodie.table.checksum=.*", "", properties.read_text())
        text = text.replace("hoodie.table.version=6", "hoodie.table.version=8")
        properties.write_text(text.replace("layout.version=1", "layout.version=2"))
        (folder / "timeline").mkdir()
        for file in folder.glob("2*.*commit*"):
            ts = file.name.partition(".")[0]
            name = f"{ts}_{file.name}" if file.suffix == ".commit" else file.name
            file.rename(folder / "timeline" / name)

    with pytest.raises(ConflictError, match="from table version 6 to 8"):
        table.cluster(Meanwhile(upgrade))
    assert not open_local(table.path).timeline.pending_clusterings()
    check(table)


class Dies(FaultyStorage):
    """Storage of a process that is killed before it moves the first file."""

    def move(self, source: str, target: str) -> None:
        self.left = -1
        raise Killed


@pytest.mark.parametrize("release", RELEASES)
def test_the_plan_of_a_killed_run_is_executed_at_once(release: str, tmp_path: Path) -> None:
    """The lease that shows the death bears the time at which the run began, not the instant of the plan."""
    table = Table(release, tmp_path, "STAGED")
    with suppress(Killed):
        table.cluster(Meanwhile(lambda: table.update(table.slices[0])), Dies(str(table.path)))
    (pending,) = open_local(table.path).timeline.pending_clusterings()
    wanted = clustering_request(table.path, Mode.SCHEDULE_AND_EXECUTE, table.options, publish_late=True)
    done = clustering.schedule_and_execute(replace(wanted, retry_last_failed=True), engine=LocalEngine())
    assert (done.exit_code, done.instant) == (0, pending.ts)
    check(table)
    table.cluster()
    assert table.is_clean()


@pytest.mark.parametrize("release", RELEASES)
def test_the_plan_of_a_run_that_is_alive_is_left_alone(release: str, tmp_path: Path) -> None:
    """At any age: it may wait for the store for long, in the middle of its moves."""
    table, found = Table(release, tmp_path, "STAGED"), list[bool]()
    settings = TransactionSettings(abandoned_millis=0)

    class Looks(LocalStorage):
        def move(self, source: str, target: str) -> None:
            now = open_local(table.path)
            found.extend(liveness(now, one, settings).alive for one in now.timeline.pending_clusterings())
            super().move(source, target)

    engine = Meanwhile(lambda: table.update(table.slices[0]))
    assert table.cluster(engine, Looks(str(table.path))).exit_code == 7
    assert found and all(found)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["clustering.inflight", ".replacecommit", ".deltacommit", ".parquet"])
def test_the_store_reports_an_error_although_it_has_stored_the_file(name: str, tmp_path: Path) -> None:
    """The run says what is true, and leaves nothing: no later run tells of a clustering that was killed."""
    table = Table("1.2.0", tmp_path, "STAGED", metadata=True)

    class Stutters(LocalStorage):
        def create(self, path: str, data: bytes) -> None:
            super().create(path, data)
            self._stutter(path)

        def move(self, source: str, target: str) -> None:
            super().move(source, target)
            self._stutter(target)

        def _stutter(self, path: str) -> None:
            if path.endswith(name):
                raise StorageError("timeout")

    is_done = name == ".replacecommit"
    with pytest.raises(PartlyDone if is_done else StorageError, match="is complete" if is_done else "timeout"):
        table.cluster(storage=Stutters(str(table.path)))
    last = open_local(table.path).timeline.last_clustering()
    assert is_done == (last is not None and last.is_completed)
    assert table.is_clean()
    check(table, metadata=True)
