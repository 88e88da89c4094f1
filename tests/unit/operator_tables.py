"""Tables in the states that operators meet, one recipe for each, and running a command line on them in this process."""

import io
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_services.cli.app import run
from hudi_services.codecs.clean_plan import CleanerPlan, encode_cleaner_plan
from hudi_services.engine import LocalEngine
from hudi_services.jobs import clean, clustering, compaction, index_bootstrap
from hudi_services.options import resolve
from hudi_services.runs import config_files, next_command
from hudi_services.runs.report import Report
from hudi_services.runs.request import CleanRequest, CompactionRequest, IndexRequest, Mode

from . import histories
from .archives import unpack_archived
from .corruptions import do_damage, wrong_listing
from .faulty_storage import FaultyStorage
from .metadata_tables import compact
from .page_examples import demo_table
from .repairs import P, cluster, fail_newest, newest
from .tables import as_written, open_local, request, unpack

_QUIET = {"hoodie.time.generator.max_expected_clock_skew_ms": "0", "hoodie.write.lock.wait_time_ms": "300"}
_DEAD = {"hudi.services.abandoned.after.minutes": "0", "hoodie.client.heartbeat.tolerable.misses": "0"}
_HUDI = "org.apache.hudi.client"
_LOCKED = {"hoodie.write.lock.provider": f"{_HUDI}.transaction.lock.FileSystemBasedLockProvider"}
_EACH_DELTA_COMMIT = {**_QUIET, "hoodie.compact.inline.max.delta.commits": "1"}
_KEEP_ONE = {"hoodie.clean.fileversions.retained": "1"}
_WRITES_UNTIL_DELETION = 9
_PENDING = "20261121120000000"


@dataclass(frozen=True)
class OperatorTable:
    path: Path
    instant: str = ""
    """That the operator would name."""
    conf: dict[str, str] = field(default_factory=dict)
    """What the conf file of the machine sets."""
    zone: str = ""

    @property
    def quarantine(self) -> str:
        folder = self.path / ".hoodie/.hudi_services/quarantine"
        return max((one.name for one in folder.iterdir()), default="") if folder.exists() else ""

    @property
    def keys_file(self) -> Path:
        return self.path.parent / "keys.txt"

    @property
    def rows_file(self) -> Path:
        return self.path.parent / "new.parquet"


@dataclass(frozen=True)
class Printed:
    code: int
    out: str
    err: str


@contextmanager
def machine(table: OperatorTable) -> Iterator[Callable[[Sequence[str]], Printed]]:
    """Gives what runs a command line, without the program's name: with the table's conf file, and no Spark."""
    conf = table.path.parent / "conf.properties"
    conf.write_text("".join(f"{key}={value}\n" for key, value in {**_QUIET, **table.conf}.items()))

    def with_engine(job: Callable[..., Report]) -> Callable[..., Report]:
        return lambda wanted, storage=None, engine=None: job(wanted, storage, engine or LocalEngine())

    def command(words: Sequence[str]) -> Printed:
        out, err = io.StringIO(), io.StringIO()
        # A machine of another table may have been entered meanwhile.
        with redirect_stdout(out), redirect_stderr(err), pytest.MonkeyPatch.context() as patch:
            for module in (config_files, next_command):
                patch.setattr(module, "default_files", lambda environment: [str(conf)])
            code = run(list(words))
        return Printed(code, out.getvalue(), err.getvalue())

    with pytest.MonkeyPatch.context() as patch:
        for service in (clustering, compaction):
            for name in ("execute", "schedule_and_execute"):
                patch.setattr(service, name, with_engine(getattr(service, name)))
        patch.setattr(index_bootstrap, "index_bootstrap", with_engine(index_bootstrap.index_bootstrap))
        patch.setenv("COLUMNS", "500")
        yield command


def placed(command: str, table: OperatorTable) -> list[str]:
    """How the command is told where the table is: by its path, or by a list that has it."""
    if command.split()[0] != "fleet":
        return ["--base-path", str(table.path)]
    tables = table.path.parent / "tables.txt"
    tables.write_text(f"{table.path}\n")
    return [str(tables)]


def small_files(folder: Path) -> OperatorTable:
    return OperatorTable(unpack("1.2.0", folder))


def sixty_files(folder: Path) -> OperatorTable:
    """The table of the page about Python."""
    return OperatorTable(demo_table(folder))


def planned(folder: Path) -> OperatorTable:
    path = unpack("1.2.0", folder)
    return OperatorTable(path, clustering.schedule(request(path, Mode.SCHEDULE)).instant or "")


def log_files(folder: Path) -> OperatorTable:
    """A merge-on-read table whose compaction is due after each delta commit."""
    made = histories.MadeHistory("1.2.0", "default_order", folder / "made").path
    return OperatorTable(Path(shutil.copytree(made, folder / "table")), conf=_EACH_DELTA_COMMIT)


def planned_compaction(folder: Path) -> OperatorTable:
    table = log_files(folder)
    wanted = CompactionRequest(base_path=str(table.path), mode=Mode.SCHEDULE, options=resolve([("test", table.conf)]))
    compaction.schedule(wanted)
    return table


def left_plan(folder: Path) -> OperatorTable:
    table = planned(folder)
    return OperatorTable(table.path, table.instant, _DEAD)


def late_attempt(folder: Path) -> OperatorTable:
    """The staged files of a run that was killed."""
    path = unpack("1.2.0", folder)
    staged = path / ".hoodie/.hudi_services/staged-20261121162946379/files/staging"
    staged.parent.mkdir(parents=True)
    staged.touch()
    return OperatorTable(path, None, _DEAD)


def clustered(folder: Path) -> OperatorTable:
    path = unpack("1.2.0", folder)
    return OperatorTable(path, cluster(path), _KEEP_ONE)


def long_timeline(folder: Path) -> OperatorTable:
    path = unpack("1.2.0", folder)
    compact(path)
    keep = {"hoodie.keep.max.commits": "2", "hoodie.keep.min.commits": "1"}
    return OperatorTable(path, conf={**_KEEP_ONE, **keep})


def completed_commit(folder: Path) -> OperatorTable:
    path = unpack("1.2.0", folder)
    return OperatorTable(path, newest(path).ts)


def abandoned_write(folder: Path) -> OperatorTable:
    path = unpack("1.2.0", folder)
    return OperatorTable(path, fail_newest(path), _DEAD)


def live_write(folder: Path) -> OperatorTable:
    path = unpack("1.2.0", folder)
    return OperatorTable(path, fail_newest(path))


def old_write(folder: Path) -> OperatorTable:
    """An abandoned commit that is older than all others, on a table with something to clean."""
    path = unpack("1.2.0", folder)
    cluster(path)
    for state in ("commit.requested", "inflight"):
        (path / f".hoodie/timeline/20260101000000000.{state}").touch()
    return OperatorTable(path, "20260101000000000", {**_DEAD, "hoodie.clean.commits.retained": "1"})


def orphans(folder: Path) -> OperatorTable:
    """A file of a repeated task, and one of an instant that is not on the timeline; both two hours old."""
    path = unpack("1.2.0", folder)
    file = min(path.glob("day=*/*.parquet"))
    file_id, _, instant = file.name.split("_")
    for name in (f"{file_id}_9-9-9_{instant}", f"{file_id}_9-9-9_20261121091400000.parquet"):
        stray = shutil.copy(file, file.with_name(name))
        os.utime(stray, (time.time() - 7200,) * 2)
    return OperatorTable(path)


def archived_orphans(folder: Path) -> OperatorTable:
    return OperatorTable(unpack_archived(folder) / "1.2.0" / "listed")


def killed_clean(folder: Path) -> OperatorTable:
    path = unpack("1.2.0", folder)
    cluster(path)
    options = resolve([("test", {**_QUIET, **_KEEP_ONE})])
    with pytest.raises(BaseException):  # noqa: B017 - whatever the storage ends it with
        clean.clean(
            CleanRequest(base_path=str(path), options=options), FaultyStorage(str(path), _WRITES_UNTIL_DELETION)
        )
    (pending,) = open_local(path).timeline.pending()
    return OperatorTable(path, pending.ts, {**_DEAD, **_KEEP_ONE})


def indexed(folder: Path) -> OperatorTable:
    path = unpack("1.2.0", folder)
    options = resolve([("test", {**_QUIET, "hoodie.metadata.global.record.level.index.min.filegroup.count": "1"})])
    index_bootstrap.index_bootstrap(IndexRequest(base_path=str(path), options=options), engine=LocalEngine())
    table = OperatorTable(path)
    file = min(path.glob("day=*/*.parquet"))
    first = pq.read_table(file, partitioning=None)["_hoodie_record_key"][0].as_py()
    table.keys_file.write_text(f"{first}\nnobody\n")
    return table


def new_rows(folder: Path) -> OperatorTable:
    """A table, and a file of rows for it."""
    table = OperatorTable(unpack("1.2.0", folder))
    pq.write_table(rows_of(table.path), table.rows_file)
    return table


def rows_of(path: Path) -> pa.Table:
    """The rows of one base file of a table, as a writer would give them."""
    found = pq.read_table(min(path.glob("day=*/*.parquet")), partitioning=None)
    return found.select([name for name in found.column_names if not name.startswith("_hoodie_")])


def no_table(folder: Path) -> OperatorTable:
    """A file of rows, and no table yet."""
    folder.mkdir(parents=True, exist_ok=True)
    table = OperatorTable(folder / "table")
    numbers = range(3000)
    trips = {
        "id": [f"trip-{n:06d}" for n in numbers],
        "day": [f"2026-01-0{1 + n % 3}" for n in numbers],
        "ts": [1767225600 + n for n in numbers],
        "fare": [n % 97 / 4 for n in numbers],
    }
    pq.write_table(pa.table(trips), table.rows_file)
    return table


def wrong_metadata(folder: Path) -> OperatorTable:
    path = unpack("1.2.0", folder)
    do_damage(path, wrong_listing(path))
    return OperatorTable(path)


def no_metadata_files(folder: Path) -> OperatorTable:
    path = unpack("1.2.0", folder)
    shutil.rmtree(path / ".hoodie/metadata")
    return OperatorTable(path)


def index_build(folder: Path) -> OperatorTable:
    table = _with_pending(folder, "indexing.requested", "indexing.inflight")
    return OperatorTable(table.path, table.instant)


def restore(folder: Path) -> OperatorTable:
    return _with_pending(folder, "restore.requested", "restore.inflight")


def cut_clean_plan(folder: Path) -> OperatorTable:
    table = _with_pending(folder, "clean.requested")
    plan = encode_cleaner_plan(CleanerPlan("KEEP_LATEST_COMMITS", "", "", {}), "1.2.0")
    (table.path / f".hoodie/timeline/{_PENDING}.clean.requested").write_bytes(plan[:10])
    return table


def other_zone(folder: Path) -> OperatorTable:
    path = unpack("1.2.0", folder)
    as_written(path, "UTC")
    return OperatorTable(path, zone="Asia/Tokyo")


def linked_folder(folder: Path) -> OperatorTable:
    path = unpack("1.2.0", folder)
    (folder / "elsewhere").mkdir()
    (path / "day=2026-01-09").symlink_to(folder / "elsewhere")
    return OperatorTable(path)


def lock_file(folder: Path) -> OperatorTable:
    path = unpack("1.2.0", folder)
    (path / ".hoodie/lock").touch()
    return OperatorTable(path, conf={**_LOCKED, "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"})


def flipped_bit(folder: Path) -> OperatorTable:
    table = planned(folder)
    (base, *_) = [one.base_file for one in open_local(table.path).view.latest_slices(P) if one.base_file]
    file = table.path / base.path
    data = bytearray(file.read_bytes())
    chunk = pq.ParquetFile(file).metadata.row_group(0).column(5)
    data[chunk.data_page_offset + chunk.total_compressed_size - 3] ^= 1
    file.write_bytes(data)
    return table


def _with_pending(folder: Path, *states: str) -> OperatorTable:
    path = unpack("1.2.0", folder)
    for state in states:
        (path / f".hoodie/timeline/{_PENDING}.{state}").touch()
    return OperatorTable(path, _PENDING, _DEAD)


RECIPES: dict[str, Callable[[Path], OperatorTable]] = {
    recipe.__name__.replace("_", "-"): recipe
    for recipe in (
        small_files,
        sixty_files,
        planned,
        log_files,
        planned_compaction,
        left_plan,
        late_attempt,
        clustered,
        long_timeline,
        completed_commit,
        abandoned_write,
        live_write,
        old_write,
        orphans,
        archived_orphans,
        killed_clean,
        indexed,
        new_rows,
        no_table,
        wrong_metadata,
        no_metadata_files,
        index_build,
        restore,
        cut_clean_plan,
        other_zone,
        linked_folder,
        lock_file,
        flipped_bit,
    )
}
