"""The tables of the fuzz: what real Hudi wrote, brought by our own services into states that have every kind of file.

They come out alike on every machine, so that a case can be run again: identifiers and instants are not left to chance.
"""

import os
import random
import re
import shutil
import time
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from unittest.mock import patch

from hudi_services.clock import SystemClock
from hudi_services.engine import LocalEngine
from hudi_services.jobs import clean, clustering, index_bootstrap, orphan_files, rollback
from hudi_services.options import resolve
from hudi_services.runs.request import (
    CleanRequest,
    IndexRequest,
    Mode,
    OrphanFilesMode,
    OrphanFilesRequest,
)

from ..archives import unpack_archived
from ..faulty_storage import FaultyStorage, Killed
from ..repairs import fail_newest, repair
from ..tables import RELEASES, open_local, request, unpack

AFTER_ALL = datetime(2026, 11, 21, 20, tzinfo=timezone.utc)
"""No instant of the fixtures is later."""
_OPTIONS = {
    "hoodie.time.generator.max_expected_clock_skew_ms": "0",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.metadata.record.index.max.filegroup.count": "2",
    "hoodie.clean.commits.retained": "1",
    "hoodie.clean.trigger.max.commits": "0",
}
_SORTED = {"hoodie.clustering.plan.strategy.sort.columns": "label"}
_ONE_GROUP = {"hoodie.clustering.plan.strategy.max.num.groups": "1"}


class DiesBeforeMetadata(FaultyStorage):
    """A process that is killed when its work is done, and the metadata table does not know it yet."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))

    def _write(self, what: str, path: str) -> None:
        if path.startswith(".hoodie/metadata/"):
            self.left = 0
        super()._write(what, path)


def _fresh(release: str, folder: Path) -> Path:
    """As Hudi left it, right after an update."""
    return unpack(release, folder)


def _grown(release: str, folder: Path) -> Path:
    """Indexed, clustered, with a quarantine."""
    path = unpack(release, folder)
    index_bootstrap.index_bootstrap(_index(path), engine=LocalEngine())
    _plan(path, _ONE_GROUP)
    clustering.execute(request(path, Mode.EXECUTE), engine=LocalEngine())
    _quarantine(path)
    return path


def _planned(release: str, folder: Path) -> Path:
    """With a plan that waits."""
    path = unpack(release, folder)
    _plan(path, _SORTED)
    return path


def _stuck(release: str, folder: Path) -> Path:
    """A clustering, a clean and the rollback of a dead write: killed, each of them."""
    path = unpack(release, folder)
    _plan(path, _ONE_GROUP)
    clustering.execute(request(path, Mode.EXECUTE), engine=LocalEngine())
    _plan(path, _SORTED)
    _killed(lambda storage: clustering.execute(request(path, Mode.EXECUTE), storage, LocalEngine()), path)
    wanted = CleanRequest(base_path=str(path), options=resolve([("test", _OPTIONS)]))
    _killed(lambda storage: clean.clean(wanted, storage), path)
    return path


def _dead(release: str, folder: Path) -> Path:
    """The rollback of a dead write was killed, a second write died, and an index is half built."""
    path = unpack(release, folder)
    _killed(lambda storage: index_bootstrap.index_bootstrap(_index(path), storage, LocalEngine()), path)
    newest = fail_newest(path, "TIMELINE_SERVER_BASED")
    _age(path, AFTER_ALL.timestamp())
    _killed(lambda storage: rollback.rollback(repair(path, "rollback", newest, _OPTIONS), storage), path)
    fail_newest(path, "DIRECT")
    return path


def _plain(release: str, folder: Path) -> Path:
    """Archived, without a metadata table."""
    return Path(shutil.move(unpack_archived(folder / "all") / release / "plain", folder / "table"))


def _listed(release: str, folder: Path) -> Path:
    """Archived, with a metadata table; what it does not know, and storage lists, is quarantined."""
    path = Path(shutil.move(unpack_archived(folder / "all") / release / "listed", folder / "table"))
    _age(path, AFTER_ALL.timestamp())
    _collect(path)
    return path


_STATES: dict[str, Callable[[str, Path], Path]] = {
    "fresh": _fresh,
    "grown": _grown,
    "planned": _planned,
    "stuck": _stuck,
    "dead": _dead,
    "listed": _listed,
    "plain": _plain,
}
NAMES = [f"{release}-{state}" for state in _STATES for release in RELEASES]


def make_table(name: str, folder: Path) -> Path:
    """The table called `name`; nobody has worked on it for two days."""
    release, state = name.rsplit("-", 1)
    chance, moments = random.Random(name), iter(range(10**6))

    def identifier() -> uuid.UUID:
        return uuid.UUID(int=chance.getrandbits(128), version=4)

    def now(clock: SystemClock) -> datetime:
        return AFTER_ALL + timedelta(seconds=next(moments))

    with patch("uuid.uuid4", identifier), patch.object(SystemClock, "now", now):
        path = _STATES[state](release, folder)
    _age(path, time.time())
    return path


def kind_of(path: str) -> str:
    """What a file is, by its path below the table without what tells it from its like."""
    return re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]+|[0-9a-f]{16,}|[0-9]+", "#", path)


def _age(path: Path, now: float) -> None:
    """Nobody has worked on the table for two days at the epoch second `now`."""
    moment = now - 2 * 86400
    for file in path.rglob("*"):
        os.utime(file, (moment, moment))


def _index(path: Path) -> IndexRequest:
    return IndexRequest(base_path=str(path), options=resolve([("test", _OPTIONS)]))


def _plan(path: Path, options: dict[str, str]) -> None:
    assert clustering.schedule(request(path, Mode.SCHEDULE, options)).instant


def _quarantine(path: Path) -> None:
    """A file that no commit knows, quarantined."""
    table = open_local(path)
    old = next(one.base_file for part in table.view.partitions() for one in table.view.latest_slices(part))
    assert old is not None
    stray = Path(path / old.path).with_name("aaaaaaaa-0000-0000-0000-000000000000-0_0-0-0_20261121091350000.parquet")
    shutil.copy(path / old.path, stray)
    os.utime(stray, (0, 0))
    _collect(path)
    assert not stray.exists()


def _collect(path: Path) -> None:
    wanted = OrphanFilesRequest(
        base_path=str(path), options=resolve([("test", _OPTIONS)]), mode=OrphanFilesMode.QUARANTINE, min_age_minutes=0
    )
    orphan_files.manage_orphan_files(wanted)


def _killed(run: Callable[[FaultyStorage], object], path: Path) -> None:
    try:
        run(DiesBeforeMetadata(path))
    except Killed:
        return
    raise AssertionError("it was to be killed")
