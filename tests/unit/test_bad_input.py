"""Bad input ends in one sentence, the documented exit code, and a table on which no byte has changed."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_services.cli.app import run
from hudi_services.commit.lease import Lease
from hudi_services.jobs import clustering
from hudi_services.model import CommitMetadata
from hudi_services.runs.request import Mode
from hudi_services.stores import open_storage
from hudi_services.timeline.instant import Action

from .repairs import complete
from .tables import RELEASES, digest, open_local, request, unpack

pytestmark = pytest.mark.usefixtures("without_spark")

SORT = "hoodie.clustering.plan.strategy.sort.columns"


@pytest.fixture(params=RELEASES)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return unpack(request.param, tmp_path)


@pytest.fixture
def newest(tmp_path: Path) -> Path:
    return unpack("1.2.0", tmp_path)


def refused(
    capfd: pytest.CaptureFixture[str], path: Path, code: int, text: str, *arguments: str, command: str = "schedule"
) -> None:
    """The command fails with `code`, says `text` on one line without a traceback, and leaves the table alone."""
    before = digest(path)
    assert run([command, "--base-path", str(path), *arguments]) == code
    errors = capfd.readouterr().err
    assert re.search(text, errors), errors
    assert "Traceback" not in errors
    assert digest(path) == before


def plan(path: Path, **options: str) -> str:
    ts = clustering.schedule(request(path, Mode.SCHEDULE, options)).instant
    assert ts
    return ts


def properties(path: Path, change: Callable[[str], str]) -> None:
    file = path / ".hoodie" / "hoodie.properties"
    file.write_text(change(file.read_text()))
    (path / ".hoodie" / ".hoodie.properties.crc").unlink(missing_ok=True)


def only(path: Path, pattern: str) -> Path:
    found = sorted(path.glob(pattern))
    assert found, pattern
    return found[-1]


def test_nothing_there(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["schedule", "--base-path", str(tmp_path / "nowhere")]) == 2
    assert "there is nothing at" in capfd.readouterr().err
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("words", "said", "hint"),
    [
        ("schedule", "Missing option '--base-path'", "see hudi-services schedule --help"),
        ("doctor --base-path", "'--base-path' requires an argument", "see hudi-services doctor --help"),
        ("report --html", "'--html' requires an argument", "see hudi-services report --help"),
        ("clean --nope", "No such option: --nope", "see hudi-services clean --help"),
        ("--nope", "No such option: --nope", "see hudi-services --help"),
        (
            "clean --base-path TABLE --metrics x",
            "x (from --metrics) is no place",
            "of a collector; when not set, nowhere",
        ),
        ("shedule", "No such command 'shedule'", "see hudi-services --help"),
        ("write --operation replace", "'--operation': 'replace' is not one of", "see hudi-services write --help"),
        ("write --base-path TABLE", "--input is missing", "name the files with the rows, as --input new.parquet"),
        ("write --base-path TABLE --input NONE", "there are no files at NONE", "check the path: a file, a folder"),
        ("write --base-path NONE --input ROWS", "there is nothing at NONE", "and it is created: --record-key, or"),
        (
            "clean --base-path TABLE/day=2026-01-01",
            "is a partition of a table, and no table",
            "holds the folder .hoodie",
        ),
        (
            "index-lookup --base-path TABLE --keys-file NONE",
            "NONE cannot be read: No such file",
            "one key on each line",
        ),
        ("index-lookup --base-path TABLE --keys-file ROWS", "has no record index", "index-bootstrap --base-path TABLE"),
    ],
)
def test_the_way_out_of_everyday_mistakes(
    words: str, said: str, hint: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    table, rows = unpack("1.2.0", tmp_path), tmp_path / "rows.csv"
    rows.write_text("id,day\na,2026-01-01\n")
    places = {"TABLE": str(table), "NONE": str(tmp_path / "none"), "ROWS": str(rows)}
    assert run([_filled(one, places) for one in words.split()]) in (1, 2)
    error, way_out = capfd.readouterr().err.splitlines()
    assert error.startswith("error: ") and _filled(said, places) in error
    assert way_out.startswith("hint: ") and _filled(hint, places) in way_out


def _filled(text: str, places: dict[str, str]) -> str:
    for name, path in places.items():
        text = text.replace(name, path)
    return text


def test_a_path_that_is_a_file_or_an_empty_folder(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mk.py").write_text("pass\n")
    refused(capfd, tmp_path / "mk.py", 2, f"{tmp_path}/mk.py is a file, and a table is a folder")
    (tmp_path / "new").mkdir()
    refused(capfd, tmp_path / "new", 2, f"there is nothing at {tmp_path}/new: it does not exist, or is an empty folder")


def test_a_path_that_is_no_table(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "data.csv").write_text("1,2\n")
    refused(capfd, tmp_path, 2, "is no Hudi table")


@pytest.mark.parametrize("version", ["5", "7", "10"])
def test_table_versions_that_we_do_not_know(newest: Path, version: str, capfd: pytest.CaptureFixture[str]) -> None:
    properties(newest, lambda text: text.replace("hoodie.table.version=9", f"hoodie.table.version={version}"))
    for command in ("schedule", "execute"):
        refused(capfd, newest, 2, f"hoodie.table.version={version}", command=command)


def test_unknown_table_types(table: Path, capfd: pytest.CaptureFixture[str]) -> None:
    properties(table, lambda text: text.replace("COPY_ON_WRITE", "READ_ON_MERGE"))
    refused(capfd, table, 2, "hoodie.table.type=READ_ON_MERGE", command="orphan-files")


@pytest.mark.thorough
@pytest.mark.parametrize("index", ["expr_index_y", "something_new"])
@pytest.mark.parametrize("key", ["hoodie.table.metadata.partitions", "hoodie.table.metadata.partitions.inflight"])
def test_indexes_that_we_cannot_keep(newest: Path, index: str, key: str, capfd: pytest.CaptureFixture[str]) -> None:
    def listed(text: str) -> str:
        return (
            text.replace("metadata.partitions=", f"metadata.partitions={index},")
            if key.endswith("ions")
            else (f"{text}\n{key}={index}\n")
        )

    ts = plan(newest)
    properties(newest, listed)
    refused(capfd, newest, 2, f"metadata partition {index}")
    refused(capfd, newest, 2, f"metadata partition {index}", "--instant-time", ts, command="execute")


@pytest.mark.parametrize(
    "damage", ["", "hoodie.table.name=x", "\0\0\0", "hoodie.table.version=x\nhoodie.table.name=y\n"]
)
def test_corrupt_properties(table: Path, damage: str, capfd: pytest.CaptureFixture[str]) -> None:
    properties(table, lambda text: damage)
    refused(capfd, table, 1, r"hoodie\.properties")


def test_truncated_properties(newest: Path, capfd: pytest.CaptureFixture[str]) -> None:
    properties(newest, lambda text: text[: len(text) // 2])
    refused(capfd, newest, 1, r"hoodie\.properties")


@pytest.mark.parametrize("keep", [0.5, 0.95])
def test_truncated_instant(table: Path, keep: float, capfd: pytest.CaptureFixture[str]) -> None:
    folder = table / ".hoodie" / "timeline" if (table / ".hoodie" / "timeline").exists() else table / ".hoodie"
    commit = only(folder, "*.commit")
    data = commit.read_bytes()
    commit.write_bytes(data[: int(len(data) * keep)])
    refused(capfd, table, 1, re.escape(commit.name))


def test_corrupt_plan(table: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It may be being written; after a while nobody is."""
    plan(table)
    file = only(table, ".hoodie/**/*.requested")
    requested = next(f for f in table.glob(".hoodie/**/*.requested") if f.stat().st_size and "metadata" not in f.parts)
    for damage in (requested.read_bytes()[:-40], b"Obj\x01garbage", b"garbage"):
        requested.write_bytes(damage)
        refused(capfd, table, 4, re.escape(requested.name), command="execute")
        os.utime(requested, (time.time() - 600,) * 2)
        refused(capfd, table, 6, re.escape(requested.name), command="execute")
    assert file


def test_corrupt_parquet_footer(table: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ts = plan(table)
    victim = (
        Path(open_local(table).storage.root)
        / open_local(table).view.latest_slices(open_local(table).view.partitions()[0])[0].base_file.path
    )  # type: ignore[union-attr]
    data = bytearray(victim.read_bytes())
    data[-200:-100] = b"\xff" * 100
    victim.write_bytes(bytes(data))
    code = run(["execute", "--base-path", str(table), "--instant-time", ts])
    errors = capfd.readouterr().err
    assert code == 1 and victim.name in errors and "Traceback" not in errors
    # The attempt was rolled back: no new file, and the plan is still there to be executed or dropped.
    assert not list(table.rglob(f"*{ts}.parquet"))
    assert [instant.ts for instant in open_local(table).timeline.pending_clusterings()] == [ts]


def test_corrupt_hfile(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = unpack("1.2.0", tmp_path)
    for hfile in path.glob(".hoodie/metadata/files/*.hfile"):
        data = hfile.read_bytes()
        hfile.write_bytes(data[: len(data) // 2])
    refused(capfd, path, 1, r"\.hfile")


def test_unknown_and_unorderable_sort_columns(table: Path, capfd: pytest.CaptureFixture[str]) -> None:
    refused(capfd, table, 2, "sort column nope is not in the table", "--hoodie-conf", f"{SORT}=nope")
    refused(capfd, table, 2, "sort column tags is a array", "--hoodie-conf", f"{SORT}=tags")


@pytest.mark.parametrize("size", ["0", "-1", "big"])
def test_a_target_that_is_no_size(newest: Path, size: str, capfd: pytest.CaptureFixture[str]) -> None:
    key = "hoodie.clustering.plan.strategy.target.file.max.bytes"
    refused(capfd, newest, 2, re.escape(key), "--hoodie-conf", f"{key}={size}")


def test_unknown_key_is_a_warning_with_the_nearest(newest: Path, capfd: pytest.CaptureFixture[str]) -> None:
    wrong = "hoodie.clustering.plan.strategy.small.file.limits=1"
    assert run(["schedule", "--base-path", str(newest), "--hoodie-conf", wrong]) == 0
    assert "hoodie.clustering.plan.strategy.small.file.limit" in capfd.readouterr().err


def test_wrong_table_name(newest: Path, capfd: pytest.CaptureFixture[str]) -> None:
    refused(capfd, newest, 2, "--table-name other is not the name", "--table-name", "other")


def test_two_schedules_at_once(newest: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with Lease(open_storage(str(newest)), "table", "schedule"):
        refused(capfd, newest, 4, "schedule is at work since", "--lock-wait", "0")


@pytest.mark.thorough
def test_many_schedules_at_once_write_one_plan(newest: Path) -> None:
    codes: list[int] = []
    threads = [
        threading.Thread(target=lambda: codes.append(run(["schedule", "--base-path", str(newest)]))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(codes) <= {0, 4}
    groups = [
        (one.partition, one.file_id)
        for instant in open_local(newest).timeline.pending_clusterings()
        for group in open_local(newest).timeline.read_plan(instant).groups
        for one in group.slices
    ]
    assert len(groups) == len(set(groups)) == 8


def test_nothing_pending(newest: Path, capfd: pytest.CaptureFixture[str]) -> None:
    refused(capfd, newest, 0, "", command="execute")
    refused(capfd, newest, 3, "", "--fail-if-idle", command="execute")


def test_an_instant_that_does_not_exist(newest: Path, capfd: pytest.CaptureFixture[str]) -> None:
    refused(capfd, newest, 2, "no pending clustering with the instant 20990101000000000",
            "--instant-time", "20990101000000000", command="execute")  # fmt: skip


def test_an_instant_that_is_no_clustering(newest: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A completed overwrite is no clustering that was done."""
    ts = "20260301000000000"
    complete(newest, ts, CommitMetadata("insert_overwrite", {}, {}, {}), Action.REPLACE_COMMIT)
    refused(capfd, newest, 2, f"no pending clustering with the instant {ts}", "--instant-time", ts, command="execute")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("instant", "text"),
    [
        ("tomorrow", "is no instant"),
        ("2026", "is no instant"),
        ("202601010000000001", "is no instant"),
        ("20261341000000000", "is no instant"),
        ("20990101000000000", "is in the future"),
        ("20200101000000000", "is not later than"),
    ],
)
def test_a_new_instant_that_cannot_be(newest: Path, instant: str, text: str, capfd: pytest.CaptureFixture[str]) -> None:
    code = 4 if "later" in text else 2
    before = {path for path in digest(newest) if "hudi_services" not in path}
    assert run(["schedule", "--base-path", str(newest), "--instant-time", instant]) == code
    assert text in capfd.readouterr().err
    assert {path for path in digest(newest) if "hudi_services" not in path} == before


def test_an_instant_is_not_used_twice(newest: Path, capfd: pytest.CaptureFixture[str]) -> None:
    taken = open_local(newest).timeline.latest_time()
    before = {path for path in digest(newest) if "hudi_services" not in path}
    assert run(["schedule", "--base-path", str(newest), "--instant-time", taken]) == 4
    assert f"is not later than {taken}" in capfd.readouterr().err
    assert {path for path in digest(newest) if "hudi_services" not in path} == before


def test_a_schema_history(table: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Although the newest commit, of a table service, does not speak of it."""
    (table / ".hoodie" / ".schema").mkdir(exist_ok=True)
    (table / ".hoodie" / ".schema" / "20260101000000000.schemacommit").write_bytes(b"{}")
    for command in ("schedule", "execute"):
        refused(capfd, table, 2, "has a schema history", command=command)


@pytest.mark.thorough
def test_another_writer_without_a_lock(table: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = table / ".hoodie" / "timeline" if (table / ".hoodie" / "timeline").exists() else table / ".hoodie"
    ts = plan(table)
    (folder / "20990101000000000.commit.requested").write_bytes(b"")
    (folder / "20990101000000000.inflight").write_bytes(b"")
    for command in ("schedule", "execute"):
        # All groups are planned: the schedule is idle before it could disturb the writer.
        if command == "execute":
            assert run([command, "--base-path", str(table)]) == 4
            assert "another writer is in progress" in capfd.readouterr().err
    assert [instant.ts for instant in open_local(table).timeline.pending_clusterings()] == [ts]


AS_NOBODY = """
import os, sys
from hudi_services.cli.app import run
if os.getuid() == 0:
    # Load all that the command loads while this user may read it.
    run(["execute", *sys.argv[2:]])
    os.setgid(65534)
    os.setuid(65534)
sys.exit(run(sys.argv[1:]))
"""


@pytest.mark.thorough
@pytest.mark.parametrize("unreadable", [True, False])
def test_no_permission(newest: Path, unreadable: bool) -> None:
    """As another user, in a process of its own: root is refused nothing."""
    before = digest(newest)
    for folder in newest.parents:
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    hoodie = newest / ".hoodie"
    hoodie.chmod(0o700 if unreadable and os.getuid() == 0 else 0o000 if unreadable else 0o555)
    command = [sys.executable, "-c", AS_NOBODY, "schedule", "--base-path", str(newest)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    hoodie.chmod(0o755)
    assert done.returncode == 1, done.stderr
    assert "no permission for" in done.stderr and "Traceback" not in done.stderr
    assert digest(newest) == before


def test_sorting_by_a_dropped_partition_column(newest: Path, capfd: pytest.CaptureFixture[str]) -> None:
    properties(newest, lambda text: f"{text}hoodie.datasource.write.drop.partition.columns=true\n".replace(
        "hoodie.datasource.write.drop.partition.columns=false\n", ""))  # fmt: skip
    refused(capfd, newest, 2, "sort column day is not in the base files", "--hoodie-conf", f"{SORT}=day")


@pytest.mark.thorough
def test_a_clustering_of_hudi_that_may_be_alive(table: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Its inflight file is fresh and no lease of ours tells that the attempt was ours."""
    ts = plan(table)
    requested = next(table.glob(f".hoodie/**/{ts}.*.requested"))
    inflight = requested.with_suffix(".inflight")
    inflight.write_bytes(b"")
    for _ in range(2):
        assert run(["execute", "--base-path", str(table)]) == 4
        assert "is being executed by another process" in capfd.readouterr().err
        assert inflight.exists()
    os.utime(inflight, (0, 0))
    assert run(["execute", "--base-path", str(table)]) == 0
    done = open_local(table).timeline.completed({Action.ROLLBACK})
    assert len(done) == 1


@pytest.mark.thorough
def test_a_fresh_clean_of_hudi_without_a_lock(newest: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ts = plan(newest)
    inflight = newest / ".hoodie" / "timeline" / f"{int(ts) + 1}.clean.inflight"
    inflight.write_bytes(b"")
    assert run(["execute", "--base-path", str(newest)]) == 4
    assert "another writer is in progress" in capfd.readouterr().err
    os.utime(inflight, (0, 0))
    assert run(["execute", "--base-path", str(newest)]) == 0


@pytest.mark.thorough
def test_a_write_that_never_began_counts_for_a_while(table: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What a writer of Hudi leaves when a pending plan refuses its updates: the plan must not wait for it for ever."""
    ts = plan(table)
    planned = next(table.glob(f".hoodie/**/{ts}.*.requested"))
    requested = planned.parent / f"{int(ts) + 1}.commit.requested"
    requested.write_bytes(b"")
    # The clock of a file system ticks every few milliseconds.
    later = planned.stat().st_mtime_ns + 10_000_000
    os.utime(requested, ns=(later, later))
    assert run(["execute", "--base-path", str(table)]) == 4
    assert "it counts for 20 minutes" in capfd.readouterr().err
    os.utime(planned, (0, 0))
    os.utime(requested, (1, 1))
    assert run(["execute", "--base-path", str(table)]) == 0
