"""Bootstrapped tables of real Hudi: base files without columns become ordinary ones; their sources are only read."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_services
from hudi_services.engine import LocalEngine
from hudi_services.errors import CheckFailed, CorruptFile, HudiServicesError, NothingToDo, UnsupportedTable
from hudi_services.jobs import clustering
from hudi_services.model import BOOTSTRAP_INSTANT
from hudi_services.options import resolve
from hudi_services.runs.request import ClusteringRequest, Mode

from .bootstrapped import Bootstrapped
from .faulty_storage import FaultyStorage, Killed
from .shares import places, share
from .tables import RELEASES, digest, open_local

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")

_SERVICES = {
    "hoodie.clustering.plan.strategy.small.file.limit": "1000000000",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.time.generator.max_expected_clock_skew_ms": "0",
}
NAMES = ["a_cow_hive", "b_cow_hive", "b_mor_flat", "d_mixed_mor_up", "c_full_cow", "k_archive_cow"]
NAMES += ["n_conflict_M_flat", "f_escaped"]


@pytest.mark.thorough
@pytest.mark.spread(8)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("release", RELEASES)
def test_services(release: str, name: str, tmp_path: Path) -> None:
    made = Bootstrapped(release, name, tmp_path)
    sources, has_bare = digest(made.source), bool(made.bare())
    assert made.seen() == made.rows and has_bare == (name != "c_full_cow")
    table = hudi_services.open(made.path, engine="local")
    assert table.validate().ok
    options = {**_SERVICES, **made.allowed}
    if table.config["hoodie.table.type"] == "MERGE_ON_READ":
        with suppress(NothingToDo):
            assert table.compact(options=options).ok
        assert made.seen() == made.rows
    assert table.cluster(options=options).ok
    assert made.seen() == made.rows and not made.bare()
    assert table.validate().ok
    assert table.clean(options={"hoodie.clean.commits.retained": "1"}).ok
    assert made.seen() == made.rows and digest(made.source) == sources
    # Without them the table is an ordinary one.
    shutil.rmtree(made.source)
    assert made.seen() == made.rows


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["b_cow_hive", "b_mor_flat"])
@pytest.mark.parametrize("release", RELEASES)
def test_writes(release: str, name: str, tmp_path: Path) -> None:
    made = Bootstrapped(release, name, tmp_path)
    table = hudi_services.open(made.path, engine="local", options=made.allowed)
    old, bare = made.rows[0], made.bare()
    folder = f"region={old['region']}" if name == "b_cow_hive" else old["region"]
    new = pa.table(
        {
            "id": pa.array([old["id"], 900], pa.int32()),
            "name": ["changed", "new"],
            "ts": pa.array([99, 99], pa.int64()),
            "region": [old["region"], old["region"]],
        }
    )
    nulls = {**_SERVICES, "hoodie.write.set.null.for.missing.columns": "true", "hoodie.index.type": "SIMPLE"}
    assert table.upsert(new, options=nulls).ok
    rows = {row["id"]: row for row in made.seen()}
    assert (rows[old["id"]]["name"], rows[900]["name"], rows[900]["region"]) == ("changed", "new", old["region"])
    assert {one: row for one, row in rows.items() if one not in (old["id"], 900)} == {
        row["id"]: row for row in made.rows if row["id"] != old["id"]
    }
    assert any((made.path / folder).glob(f"*_{BOOTSTRAP_INSTANT}.parquet")) and len(made.bare()) <= len(bare)
    assert table.delete(new, options=nulls).ok
    assert made.seen() == [row for row in made.rows if row["id"] != old["id"]]


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("service", ["clustering", "compaction"])
def test_plans_of_hudi(release: str, service: str, tmp_path: Path) -> None:
    name = {"clustering": "b_cow_hive-clustering-scheduled", "compaction": "b_mor_flat-compaction-scheduled"}[service]
    made = Bootstrapped(release, name, tmp_path)
    table, before = hudi_services.open(made.path, engine="local"), len(made.bare())

    def execute(**options: str) -> bool:
        given = {**_SERVICES, **options}
        run = table.execute_clustering if service == "clustering" else table.execute_compaction
        return run(options=given).ok

    files = digest(made.path)
    with pytest.raises(UnsupportedTable, match="outside of the table") as refused:
        execute()
    assert "--bootstrap-source" in refused.value.hint
    assert {one for one in digest(made.path) if "hudi_services" not in one} == {*files}
    # Nobody gives the plan up because the folder was not named.
    # The plan is as old as the fixture, so it counts as one of the last ten years.
    table.recover(apply=True, options={"hudi.services.abandoned.after.minutes": str(10 * 365 * 24 * 60)})
    assert open_local(made.path).timeline.pending()
    assert execute(**made.allowed)
    assert made.seen() == made.rows and len(made.bare()) < before
    assert table.validate().exit_code == 0


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
def test_killed_at_any_write(release: str, tmp_path: Path) -> None:
    made = Bootstrapped(release, "b_cow_hive", tmp_path / "made")

    def run(path: Path, storage: FaultyStorage | None) -> None:
        options = resolve([("test", {**_SERVICES, **made.allowed})])
        pending = bool(open_local(path).timeline.pending_clusterings())
        request = ClusteringRequest(
            base_path=str(path), options=options, mode=Mode.SCHEDULE_AND_EXECUTE, publish_late=False
        )
        carry_out = clustering.execute if pending else clustering.schedule_and_execute
        carry_out(request, storage, LocalEngine())

    original = made.path
    made.path = Path(shutil.copytree(original, tmp_path / "counted"))
    counted = FaultyStorage(str(made.path))
    run(made.path, counted)
    for survived in share(places(counted.log), 0, 1):
        made.path = tmp_path / "killed"
        shutil.rmtree(made.path, ignore_errors=True)
        shutil.copytree(original, made.path)
        with pytest.raises(Killed):
            run(made.path, FaultyStorage(str(made.path), survived))
        assert made.seen() == made.rows
        assert hudi_services.open(made.path, engine="local").recover(apply=True).ok
        with suppress(NothingToDo):
            run(made.path, None)
        assert made.seen() == made.rows and not made.bare(), survived


# ------------------------------------------------------------------------------------------------------------ refused


def _without_flag(made: Bootstrapped) -> None:
    made.allowed = {}


def _each(change: Callable[[Path], None]) -> Callable[[Bootstrapped], None]:
    def apply(made: Bootstrapped) -> None:
        for file in made.source.rglob("*.parquet"):
            change(file)

    return apply


def _longer(file: Path) -> None:
    rows = pq.read_table(file, partitioning=None)
    pq.write_table(pa.concat_tables([rows, rows]), file)


def _replaced(file: Path) -> None:
    pq.write_table(pq.read_table(file, partitioning=None), file, compression="gzip")


def _no_index(made: Bootstrapped) -> None:
    shutil.rmtree(made.path / ".hoodie/.aux/.bootstrap")


def _damaged_index(made: Bootstrapped) -> None:
    (file,) = (made.path / ".hoodie/.aux/.bootstrap/.partitions").glob("*.hfile")
    file.write_bytes(file.read_bytes()[:-100])


def _switched_off(made: Bootstrapped) -> None:
    file = made.path / ".hoodie/hoodie.properties"
    lines = [line for line in file.read_text().splitlines() if "checksum" not in line]
    file.write_text("\n".join([*lines, "hoodie.bootstrap.index.enable=false", ""]))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_without_flag, "has the meta columns alone: the other ones are in file:"),
        (_each(_longer), "was changed since the table was bootstrapped"),
        (_each(_replaced), "was changed since the table was bootstrapped"),
        (_each(Path.unlink), "does not exist"),
        (_no_index, "the bootstrap index of the table names no file"),
        (_damaged_index, "corrupt"),
        (_switched_off, "a bootstrap index that is switched off"),
    ],
)
def test_refused(change: Callable[[Bootstrapped], None], told: str, tmp_path: Path) -> None:
    """Readers of Hudi 1.x take nulls, or fewer rows, in most of these cases."""
    made = Bootstrapped("1.2.0", "b_cow_hive-clustering-scheduled", tmp_path)
    change(made)
    table, files = hudi_services.open(made.path, engine="local"), digest(made.path)
    if change in (_without_flag, _switched_off):
        with pytest.raises(HudiServicesError, match=told) as refused:
            table.execute_clustering(options={**_SERVICES, **made.allowed})
        assert refused.value.exit_code == 2
        assert {one for one in digest(made.path) if "hudi_services" not in one} == {*files}
        return
    with pytest.raises(HudiServicesError, match=told):
        made.seen()


@pytest.mark.thorough
def test_no_index_is_built(tmp_path: Path) -> None:
    made = Bootstrapped("1.2.0", "a_cow_hive", tmp_path)
    table, files = hudi_services.open(made.path, engine="local"), digest(made.path)
    for index in ("record", "column_stats", "bloom_filters"):
        with pytest.raises(UnsupportedTable, match="whose columns no index of Apache Hudi has"):
            table.build_index(index)
    assert digest(made.path) == files
    assert table.cluster(options={**_SERVICES, **made.allowed}).ok
    for index in ("record", "column_stats,bloom_filters"):
        assert table.build_index(index).ok
    assert table.validate().ok and made.seen() == made.rows


@pytest.mark.parametrize("release", RELEASES[1:])
def test_ranges_of_partitions(release: str, tmp_path: Path) -> None:
    """A later write with statistics has stored ranges without the files that have none: filters of Hudi miss rows."""
    made = Bootstrapped(release, "i_stats_cow", tmp_path)
    table = hudi_services.open(made.path, engine="local")
    with pytest.raises(CheckFailed):
        table.validate()
    assert table.validate(repair=True).ok
    assert table.cluster(options={**_SERVICES, **made.allowed}).ok and table.validate().ok


def test_errors_name_the_source_file(tmp_path: Path) -> None:
    made = Bootstrapped("1.2.0", "a_cow_hive", tmp_path)
    file = sorted(made.source.rglob("*.parquet"))[0]
    content = bytearray(file.read_bytes())
    content[40:60] = bytes(20)
    file.write_bytes(content)
    with pytest.raises(CorruptFile, match=file.name):
        made.seen()


def test_a_plan_leaves_them_out(tmp_path: Path) -> None:
    """Without the folder, and where a source file is gone."""
    made = Bootstrapped("1.2.0", "a_cow_hive", tmp_path)
    table, bare = hudi_services.open(made.path, engine="local"), made.bare()
    done = table.cluster(options=_SERVICES)
    assert "--bootstrap-source FOLDER" in done.report["warnings"][0] and done.report["left_out"]
    assert made.bare() == bare and made.seen() == made.rows
