"""Another process archives, rolls back or cleans between the listing and the reads of a timeline: we list it again."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from hudi_services.engine import LocalEngine
from hudi_services.errors import NotFound, Outdated
from hudi_services.file_cache import shared_cache
from hudi_services.file_names import OWN_FOLDER
from hudi_services.jobs import clean, clustering, orphan_files, recover, rollback, undo, validate
from hudi_services.jobs.index_bootstrap import index_bootstrap
from hudi_services.limits import LARGEST_FILE
from hudi_services.options import resolve
from hudi_services.runs.report import Report
from hudi_services.runs.request import (
    CleanRequest,
    IndexRequest,
    OrphanFilesRequest,
    RecoverRequest,
    Request,
    ValidateRequest,
)
from hudi_services.runs.retries import run_with_retries
from hudi_services.storage import Storage
from hudi_services.stores import open_storage
from hudi_services.stores.local import LocalStorage
from hudi_services.timeline.instant import Action

from .repairs import NO_HEARTBEAT, both, cluster, fail_newest, repair
from .shares import TWO_SHARES, ends, share
from .tables import RELEASES, open_local, published, unpack

Job = Callable[[Path, Storage], Report]
_OPTIONS = resolve([("test", {"hoodie.time.generator.max_expected_clock_skew_ms": "0"})])


def _simple(kind: type[Request], job: Callable[..., Report]) -> Job:
    def run(path: Path, storage: Storage) -> Report:
        asked = kind(base_path=str(path), options=_OPTIONS)
        return run_with_retries(lambda one: job(one, storage), asked, 0, lambda seconds: None)

    return run


def _clustering(path: Path, storage: Storage, way: str = "first") -> Report:
    asked = published(way, path)
    job = clustering.schedule_and_execute
    return run_with_retries(lambda one: job(one, storage, LocalEngine()), asked, 0, lambda seconds: None)


def _index(path: Path, storage: Storage) -> Report:
    asked = IndexRequest(base_path=str(path), options=_OPTIONS)
    return run_with_retries(lambda one: index_bootstrap(one, storage, LocalEngine()), asked, 0, lambda seconds: None)


def _undo(path: Path, storage: Storage) -> Report:
    asked = repair(path, "undo", open_local(path).timeline.completed_writes()[-1].ts)
    return run_with_retries(lambda one: undo.undo(one, storage), asked, 0, lambda seconds: None)


JOBS: dict[str, Job] = {
    "validate": _simple(ValidateRequest, validate.validate),
    "clean": _simple(CleanRequest, clean.clean),
    "orphan-files": _simple(OrphanFilesRequest, orphan_files.manage_orphan_files),
    "recover": _simple(RecoverRequest, recover.recover),
    "cluster": _clustering,
    "cluster, reserved": partial(_clustering, way="reserved"),
    "cluster, staged": partial(_clustering, way="staged"),
    "index-bootstrap": _index,
    "undo": _undo,
}


class Archiving(LocalStorage):
    """Of the reads of instant files and of the metadata table's files, one misses its file: the one number `miss`,
    counted over all reads, or each one of that path with `always`."""

    def __init__(self, url: str, miss: int = -1, *, always: bool = False) -> None:
        super().__init__(url)
        self._miss, self._always = miss, always
        self.reads: list[str] = []
        self._gone: str | None = None

    def read(self, path: str, limit: int = LARGEST_FILE) -> bytes:
        self._pass(path)
        return super().read(path, limit)

    def read_range(self, path: str, start: int, length: int) -> bytes:
        self._pass(path)
        return super().read_range(path, start, length)

    def _pass(self, path: str) -> None:
        name = path.rpartition("/")[2]
        # Nobody archives our own copies.
        is_archived = path.startswith(".hoodie/") and not path.startswith(f"{OWN_FOLDER}/")
        if is_archived and (name[:4].isdecimal() or ".log." in name or name.endswith(".hfile")):
            if len(self.reads) == self._miss:
                self._gone = path
            self.reads.append(path)
            if path == self._gone:
                self._gone = path if self._always else None
                raise NotFound(f"{self.full_path(path)} does not exist")


@pytest.fixture(scope="module")
def clustered(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Path], Path]:
    """Gives a copy of a table of a release with a completed clustering."""
    made: dict[str, Path] = {}

    def copy(release: str, folder: Path) -> Path:
        if release not in made:
            made[release] = unpack(release, tmp_path_factory.mktemp("clustered"))
            cluster(made[release])
        return Path(shutil.copytree(made[release], folder / "table"))

    return copy


@pytest.mark.thorough
@pytest.mark.spread(7)
@pytest.mark.sweep
@pytest.mark.parametrize(("release", "number"), TWO_SHARES)
@pytest.mark.parametrize("job", sorted(JOBS))
def test_every_instant_file_may_be_archived_meanwhile(
    job: str, release: str, number: int, clustered: Callable[[str, Path], Path], tmp_path: Path
) -> None:
    watching = Archiving(str(clustered(release, tmp_path / "whole")))
    assert JOBS[job](tmp_path / "whole/table", watching).exit_code == 0
    # Each file once, the first time and the last time that it is read: most are read again and again.
    assert watching.reads
    for read in share(ends(watching.reads), number, 2):
        path = clustered(release, tmp_path / str(read))
        report = JOBS[job](path, Archiving(str(path), read))
        assert report.exit_code == 0, (watching.reads[read], report.error)
        assert report.error is None
        shutil.rmtree(path)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("job", sorted({*JOBS} - {"undo"}))
def test_the_plan_of_a_rollback_is_archived_already(job: str, release: str, tmp_path: Path) -> None:
    """Archivers delete the files of an instant one after the other, the completed one last."""
    path = unpack(release, tmp_path)
    failed = fail_newest(path)
    asked = repair(path, "rollback", failed, NO_HEARTBEAT)
    assert run_with_retries(rollback.rollback, asked, 0, lambda seconds: None).exit_code == 0
    (done,) = open_local(path).timeline.completed({Action.ROLLBACK})
    for plan in path.glob(f".hoodie/**/{done.ts}.rollback.*"):
        if "metadata" not in plan.parts:
            plan.unlink()
    report = JOBS[job](path, open_storage(str(path)))
    assert report.exit_code == 0, report.error


@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
@pytest.mark.parametrize("job", ["validate", "clean", "cluster"])
def test_an_instant_file_that_cannot_be_read_is_an_error(
    job: str, release: str, clustered: Callable[[str, Path], Path], tmp_path: Path
) -> None:
    path = clustered(release, tmp_path)
    rows = both(path)
    shared_cache().forget()
    storage = Archiving(str(path), 0, always=True)
    report = JOBS[job](path, storage)
    assert report.exit_code == 1 and isinstance(report.error, Outdated)
    assert storage.reads[0].rpartition("/")[2] in str(report.error)
    assert both(path) == rows
