"""A rewrite without one of the log files would lose updates: the sources must agree on the log files, too."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_services.engine import LocalEngine
from hudi_services.errors import HudiServicesError
from hudi_services.jobs import clustering, compaction
from hudi_services.metadata.records.keys import FILES
from hudi_services.metadata.records.model import FileEntry, FilesRecord, RecordType
from hudi_services.model import FileSlice
from hudi_services.options import resolve
from hudi_services.runs.report import Report
from hudi_services.runs.request import CompactionRequest, Mode

from . import histories
from .corruptions import GONE, write_own
from .tables import RELEASES, digest, request
from .test_merge_on_read import logged


def tell(path: Path, one: FileSlice, entries: dict[str, FileEntry]) -> None:
    """Change what the metadata table says of files in the partition of a slice."""
    write_own(path, {FILES: [FilesRecord(one.partition, RecordType.FILES, entries)]})


def unlisted(path: Path, one: FileSlice) -> None:
    tell(path, one, {one.log_files[0].name: GONE})


def wrong_size(path: Path, one: FileSlice) -> None:
    tell(path, one, {one.log_files[0].name: FileEntry(one.log_files[0].size + 1)})


def lost(path: Path, one: FileSlice) -> None:
    (path / one.log_files[0].path).unlink()


def cut(path: Path, one: FileSlice) -> None:
    """At the end of a block, so that no block is torn; and the metadata table knows no better."""
    file = path / one.log_files[0].path
    file.write_bytes(b"")
    tell(path, one, {file.name: GONE})
    tell(path, one, {file.name: FileEntry(0)})


def made_up(path: Path, one: FileSlice) -> None:
    tell(path, one, {one.log_files[-1].name.replace(".log.", ".log.7"): FileEntry(4711)})


FAULTS: dict[Callable[[Path, FileSlice], None], str] = {
    unlisted: "is not listed, and|readers do not see this file",
    wrong_size: "is listed with",
    lost: "is not there|does not exist",
    cut: "has 0 bytes, and a completed write has written|has no block|holds no block|is empty",
    made_up: "is not there|does not exist",
}


def compact(path: Path, mode: Mode) -> Report:
    options = resolve([("test", {"hoodie.compact.inline.max.delta.commits": "1"})])
    wanted = CompactionRequest(base_path=str(path), mode=mode, options=options)
    return compaction.execute(wanted, engine=LocalEngine()) if mode is Mode.EXECUTE else compaction.schedule(wanted)


def cluster(path: Path, mode: Mode) -> Report:
    wanted = request(path, mode)
    return clustering.execute(wanted, engine=LocalEngine()) if mode is Mode.EXECUTE else clustering.schedule(wanted)


@pytest.mark.spread(3)
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("service", [cluster, compact])
def test_sources_that_differ(
    release: str,
    fault: Callable[[Path, FileSlice], None],
    service: Callable[[Path, Mode], Report],
    tmp_path: Path,
) -> None:
    """Neither a plan is written nor executed, and the table stays as it is."""
    for mode in (Mode.SCHEDULE, Mode.EXECUTE):
        path = histories.MadeHistory(release, "indexed", tmp_path / mode.value).path
        if mode is Mode.EXECUTE:
            service(path, Mode.SCHEDULE)
        fault(path, logged(path))
        before = rows_and_instants(path)
        with pytest.raises(HudiServicesError, match=FAULTS[fault]):
            service(path, mode)
        assert rows_and_instants(path) == before


def rows_and_instants(path: Path) -> dict[str, str]:
    """The digest of all files but leases."""
    return {name: told for name, told in digest(path).items() if not name.startswith(".hoodie/.locks/")}
