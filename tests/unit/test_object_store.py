"""The same commands on an object store: S3 as moto serves it, with conditional puts and listings."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_services
from hudi_services.clock import SystemClock
from hudi_services.codecs.clustering_plan import encode_clustering_plan
from hudi_services.engine import LocalEngine
from hudi_services.errors import AlreadyExists, ConfigError, TableNotFound
from hudi_services.jobs import clustering
from hudi_services.jobs.clustering_late import hudi_has_clustered
from hudi_services.jobs.orphan_files import manage_orphan_files
from hudi_services.options import resolve
from hudi_services.orphan_files.quarantine import QUARANTINE_FOLDER, list_quarantines
from hudi_services.runs.report import RunState
from hudi_services.runs.request import Mode, OrphanFilesMode, OrphanFilesRequest
from hudi_services.snapshot import open_snapshot
from hudi_services.stores import open_storage
from hudi_services.timeline.instant import Action

from ..servers.bucket import upload
from ..servers.moto import moto
from .archives import unpack_archived
from .page_examples import demo_table, examples, run_examples
from .rides import FILTERS
from .tables import RELEASES, open_local, request, rows_at, unpack

pytestmark = pytest.mark.threads


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with moto(tmp_path_factory.mktemp("moto")) as bucket:
        yield bucket.endpoint


@pytest.fixture(autouse=True)
def credentials(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "AWS_ENDPOINT": s3,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(os.environ, "NO_PROXY", "127.0.0.1")


@pytest.mark.parametrize("release", RELEASES)
def test_cluster_a_table_on_s3(release: str, tmp_path: Path) -> None:
    url = f"s3a://lake/{release}/table"
    upload(unpack(release, tmp_path), url)
    ts = clustering.schedule(request(url, Mode.SCHEDULE)).instant
    report = clustering.execute(request(url, Mode.EXECUTE), engine=LocalEngine())
    assert (report.state, report.instant) == (RunState.COMPLETED, ts)
    table = open_snapshot(open_storage(url), SystemClock())
    assert ts is not None
    done = table.timeline.find(ts, Action.REPLACE_COMMIT)
    assert done is not None and done.is_completed
    plan = table.timeline.read_plan(done)
    assert plan.groups[0].slices[0].data_file.startswith(url)
    files = [one.base_file for p in table.view.partitions() for one in table.view.latest_slices(p)]
    assert {file.instant for file in files if file} == {ts}
    leftovers = [file.path for file in table.storage.list_tree(".hoodie") if "/.temp/" in file.path]
    assert leftovers == []


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("way", "options"),
    [
        # A table that only we have clustered, or nobody.
        ("reserved", {}),
        # A writer of Hudi that clusters would fail on a reserved instant: the new files are staged, and copied.
        ("staged", {"hoodie.clustering.inline": "true"}),
        ("staged", {"hudi.services.publish.late": "staged"}),
    ],
)
def test_publish_late_on_s3(way: str, options: dict[str, str], tmp_path: Path) -> None:
    url = f"s3a://lake/late-{way}-{len(''.join(options))}/table"
    upload(unpack("1.2.0", tmp_path), url)
    before = rows_at(url)
    wanted = request(url, Mode.SCHEDULE_AND_EXECUTE, options, publish_late=True)
    done = clustering.schedule_and_execute(wanted, engine=LocalEngine())
    assert (done.state, done.tables["publication"][0]["way"]) == (RunState.COMPLETED, way)
    assert rows_at(url).equals(before)
    storage = open_storage(url)
    left = [*storage.list_tree(".hoodie/.hudi_services"), *storage.list_tree(".hoodie/.temp")]
    assert left == [] and not open_snapshot(storage, SystemClock()).timeline.pending()


def test_create_a_table_on_s3() -> None:
    """A store has no folders, and Hudi lists those of the timeline: an empty file stands for each."""
    url = "s3a://lake/new/table"
    table = hudi_services.create(url, name="rides", record_key="id", engine="local")
    assert (table.name, table.timeline().num_rows, table.clean().exit_code) == ("rides", 0, 0)
    names = {file.path for file in open_storage(url).list_tree("")}
    folders = {f".hoodie/timeline/{folder}.folder" for folder in ("", "history/")}
    assert names == {".hoodie/hoodie.properties", *folders}
    with pytest.raises(AlreadyExists):
        hudi_services.create(url, name="rides", record_key="id")


def test_staged_where_hudi_has_clustered(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    clustering.schedule(request(path, Mode.SCHEDULE))
    clustering.execute(request(path, Mode.EXECUTE), engine=LocalEngine())
    assert not hudi_has_clustered(open_local(path))
    timeline = open_local(path).timeline
    last = timeline.last_clustering()
    assert last is not None
    plan = replace(timeline.read_plan(last), extra={})
    (path / timeline.path(timeline.requested_name(last))).write_bytes(encode_clustering_plan(plan, "1.2.0"))
    assert hudi_has_clustered(open_local(path))


@pytest.mark.thorough
def test_the_example_of_the_page_needs_nothing_of_the_environment(
    s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(demo_table(tmp_path), "s3://lake/rides")
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    names = {"hudi_services": hudi_services}
    assert run_examples(examples("s3"), {"http://minio:9000": s3}, names) == 1


def test_garbage_goes_and_comes_back_on_s3(tmp_path: Path) -> None:
    url = "s3://lake/garbage"
    upload(unpack_archived(tmp_path) / "1.2.0" / "listed", url)
    storage = open_storage(url)
    before = {file.path: file.size for file in storage.list_tree("")}
    options = resolve([("test", {})])
    found = OrphanFilesRequest(base_path=url, options=options, mode=OrphanFilesMode.QUARANTINE, min_age_minutes=0)
    assert manage_orphan_files(found).files.after == 10
    (one,) = list_quarantines(storage)
    # A copy that was cut off before the original was deleted.
    stored = next(file.path for file in storage.list_tree(f"{QUARANTINE_FOLDER}/{one.id}/files"))
    storage.create(stored.partition("/files/")[2], storage.read(stored))
    back = OrphanFilesRequest(base_path=url, options=options, mode=OrphanFilesMode.RESTORE, quarantine=one.id)
    assert manage_orphan_files(back).state is RunState.COMPLETED
    leases = ".hoodie/.locks/"
    assert {f.path: f.size for f in storage.list_tree("") if not f.path.startswith(leases)} == before
    assert list_quarantines(storage) == []


@pytest.mark.thorough
@pytest.mark.parametrize("version", [6, 9])
def test_timelines_are_archived_on_s3(version: int) -> None:
    """After writes that begin with no table."""
    url = f"s3://lake/archived{version}"
    few = {"hoodie.keep.max.commits": "4", "hoodie.keep.min.commits": "3", "hoodie.clean.commits.retained": "1"}
    options = {**FILTERS, **few, "hoodie.metadata.compact.max.delta.commits": "2"}
    options["hoodie.timeline.compaction.batch.size"] = "2"
    definition = {"name": "rides", "record_key": "id", "ordering": "ts", "engine": "local", "options": options}
    table = hudi_services.create(url, table_version=version, **definition)
    for number in range(7):
        table.upsert(pa.table({"id": ["a", "b"], "ts": pa.array([number] * 2, pa.int64())}))
    now = open_snapshot(open_storage(url), SystemClock())
    assert now.metadata is not None
    writes = {one.ts for one in now.timeline.completed_writes()}
    assert len(writes) <= 5 and len(writes | now.timeline.archived.completed.keys()) == 7
    assert not writes & now.timeline.archived.completed.keys()
    assert len(now.metadata.timeline.archived.completed) > 0
    assert table.validate(strict=True).ok


@pytest.mark.thorough
def test_where_conditional_puts_are_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By an option or by the environment: a table can be read, and a change is refused before anything is written."""
    url, off = "s3://lake/unconditional/table", {"aws_conditional_put": "disabled", "allow_http": True}
    upload(unpack("1.2.0", tmp_path), url)
    before = open_storage(url).list_tree("")
    by_option = hudi_services.open(url, storage_options=off, engine="local")
    monkeypatch.setenv("AWS_CONDITIONAL_PUT", "disabled")
    for table in (by_option, hudi_services.open(url, engine="local")):
        assert table.validate().ok
        for change in (table.cluster, table.plan_clustering, table.build_index):
            with pytest.raises(ConfigError, match=f"that of {url} does not") as told:
                change()
            assert "AWS_CONDITIONAL_PUT" in told.value.hint
    with pytest.raises(ConfigError, match="a new table needs a store that creates a file only where there is none"):
        hudi_services.create("s3://lake/unconditional/new", name="rides", record_key="id", engine="local")
    assert open_storage("gs://lake/table").capabilities.atomic_create
    assert open_storage(url).list_tree("") == before


@pytest.mark.thorough
def test_nothing_there() -> None:
    with pytest.raises(TableNotFound, match="there is nothing at s3://lake/none: it does not exist"):
        open_snapshot(open_storage("s3://lake/none"), SystemClock())
    open_storage("s3://lake").put("rows.csv", b"1")
    with pytest.raises(TableNotFound, match=r"s3://lake/rows\.csv is a file, and a table is a folder"):
        open_snapshot(open_storage("s3://lake/rows.csv"), SystemClock())
