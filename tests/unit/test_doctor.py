"""`doctor` finds seeded faults by name, and nothing in healthy tables of real Hudi."""

import json
import os
import re
import shlex
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pytest
from prometheus_client.parser import text_string_to_metric_families

import hudi_services
from hudi_services.cli.app import run
from hudi_services.codecs.commit_metadata import decode_commit_avro, encode_commit_avro
from hudi_services.health.all_checks import CHECKS
from hudi_services.health.model import Level
from hudi_services.jobs.doctor import WARNED

from ..interop import layout
from ..interop.pristine import Pristine
from .tables import digest, open_local

_GONE = "20200101000000000"
_HOURS = 3600.0
_SIZES = {"hoodie.parquet.small.file.limit": "0", "hoodie.index.bloom.num_entries": "100"}
_HEALTHY = {
    "0.15.0": ("mixed", "types_avro", "types_row"),
    "1.0.2": ("expressions",),
    "1.1.1": ("by_no_partition", "by_partition", "expressions", "plain8"),
    "1.2.0": ("by_no_partition", "by_partition", "expressions", "plain8"),
}
"""Recipes of some releases whose tables have nothing to mend. Later releases hide rows of columns with a NaN."""
_ALWAYS_HEALTHY = ("beyond", "bulk", "changes", "evolved", "keyed", "no_mdt", "no_meta", "plain")


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Pristine]:
    """The tables of a release as real Hudi left them."""
    found: dict[str, Pristine] = {}

    def of(release: str) -> Pristine:
        if release not in found:
            found[release] = Pristine.unpack(release, tmp_path_factory.mktemp(f"made-{release}"))
        return found[release]

    return of


@dataclass
class Made:
    """A table to damage: a copy of one of real Hudi, or one that is written here."""

    path: Path
    known: Callable[[str], Pristine]
    options: dict[str, str] = field(default_factory=dict)
    flags: dict[str, int] = field(default_factory=dict)

    def copy(self, recipe: str, release: str = "1.2.0") -> None:
        shutil.copytree(self.known(release).table(recipe), self.path)

    def create(self, table_type: str = "COPY_ON_WRITE", partition_by: str | None = None) -> None:
        hudi_services.create(
            self.path, name="t", record_key="id", ordering="ts", partition_by=partition_by, table_type=table_type,
            engine="local",
        )  # fmt: skip

    def write(self, operation: str = "insert", first: int = 0, end: int = 10, part: str = "p", text: int = 1) -> None:
        numbers = range(first, end)
        rows = pa.table({
            "id": [f"k{(n * 7919) % 100_003:06d}" for n in numbers], "ts": [1] * len(numbers),
            "part": [part] * len(numbers), "text": [f"{n}" * text for n in numbers],
        })  # fmt: skip
        table = hudi_services.open(self.path, engine="local")
        act = {"insert": table.bulk_insert, "upsert": table.upsert}[operation]
        assert act(rows, options=_SIZES).ok

    def instant(self, suffix: str, ts: str | None = None, *, hours_ago: float = 3, content: bytes = b"") -> Path:
        """An instant file that was written some hours ago."""
        found = ts or time.strftime("%Y%m%d%H%M%S000", time.localtime(time.time() - hours_ago * _HOURS))
        return self.file(layout.timeline(self.path).relative_to(self.path) / f"{found}.{suffix}", hours_ago, content)

    def file(self, name: Path | str, hours_ago: float = 3, content: bytes = b"") -> Path:
        made = self.path / name
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_bytes(content)
        at = time.time() - hours_ago * _HOURS
        os.utime(made, (at, at))
        return made

    def properties(self, line: str) -> None:
        """Another property of the table, whose checksum does not matter to readers."""
        file = self.path / ".hoodie/hoodie.properties"
        text = re.sub(rf"(?m)^{re.escape(line.partition('=')[0])}=.*\n", "", file.read_text())
        file.write_text(f"{text}{line}\n")


Seed = Callable[[Made], None]
SEEDS: dict[str, tuple[str, Seed]] = {}


def seeds(check: str) -> Callable[[Seed], Seed]:
    """This function makes a table in which `check` has something to find."""

    def kept(seed: Seed) -> Seed:
        SEEDS[seed.__name__] = (check, seed)
        return seed

    return kept


@seeds("hidden_rows")
def a_nan(it: Made) -> None:
    it.copy("types_row")


@seeds("hidden_rows")
def a_nan_of_1_0(it: Made) -> None:
    it.copy("types_avro", "1.0.2")


@seeds("narrow_partition_ranges")
def bytes_that_hudi_compares_by_their_signs(it: Made) -> None:
    it.copy("types_row", "1.0.2")


@seeds("metadata_behind")
def a_commit_that_the_metadata_table_lost(it: Made) -> None:
    it.copy("plain")
    own = sorted((it.path / ".hoodie/metadata/.hoodie/timeline").glob("2*.deltacommit*"))
    for file in own:
        if file.name.startswith(own[-1].name[:17]):
            file.unlink()


@seeds("drift")
def a_base_file_that_is_gone(it: Made) -> None:
    it.copy("plain")
    table = open_local(it.path)
    live = next(one for one in table.view.live_slices() if one.base_file is not None)
    (it.path / live.base_file.path).unlink()  # type: ignore[union-attr]


@seeds("drift")
def a_base_file_that_was_cut(it: Made) -> None:
    it.copy("plain", "0.15.0")
    table = open_local(it.path)
    live = next(one for one in table.view.live_slices() if one.base_file is not None)
    os.truncate(it.path / live.base_file.path, 100)  # type: ignore[union-attr]


@seeds("eager_rollbacks")
def eager_beside_several_writers(it: Made) -> None:
    it.copy("plain")
    it.options = {
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
        "hoodie.cleaner.policy.failed.writes": "EAGER",
    }


@seeds("writers_without_lock")
def two_writers_at_work(it: Made) -> None:
    it.copy("plain")
    for hours in (0.01, 0.02):
        ts = it.instant("commit.requested", hours_ago=hours).name[:17]
        it.instant("inflight", ts, hours_ago=hours)
        it.file(f".hoodie/.heartbeat/{ts}", hours_ago=0)


@seeds("short_retention")
def a_query_of_two_hours(it: Made) -> None:
    it.copy("plain")
    it.flags = {"longest_query_minutes": 120}


@seeds("checkpoint_about_to_go")
def a_checkpoint_far_back(it: Made) -> None:
    it.create()
    for number in range(6):
        it.write(first=10 * number, end=10 * number + 10)
    _compact_metadata(it)
    _with_checkpoint(min(layout.timeline(it.path).glob("2*_*.commit")))
    it.options = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}


@seeds("checkpoint_gone")
def a_checkpoint_in_the_archive(it: Made) -> None:
    a_checkpoint_far_back(it)
    table = hudi_services.open(it.path, engine="local")
    assert table.archive(options={**it.options, "hudi.services.archive.beyond.checkpoint": "true"}).ok
    assert len([*layout.timeline(it.path).glob("2*_*.commit")]) < 6


@seeds("dead_writers")
def a_writer_that_died(it: Made) -> None:
    it.copy("plain")
    a_writer_that_died_in(it)


def a_writer_that_died_in(it: Made) -> None:
    ts = it.instant("commit.requested").name[:17]
    it.instant("inflight", ts)


@seeds("long_writers")
def a_writer_of_seven_hours(it: Made) -> None:
    it.copy("plain")
    ts = it.instant("commit.requested", hours_ago=7).name[:17]
    it.instant("inflight", ts, hours_ago=7)
    it.file(f".hoodie/.heartbeat/{ts}", hours_ago=0)


@seeds("plans_given_up")
def a_plan_of_long_ago(it: Made) -> None:
    it.create()
    for number in range(3):
        it.write(first=10 * number, end=10 * number + 10)
    assert hudi_services.open(it.path, engine="local").plan_clustering().state == "requested"
    it.options = {"hudi.services.abandoned.after.minutes": "0"}


@seeds("pending_plans")
def a_compaction_that_waits(it: Made) -> None:
    it.create("MERGE_ON_READ")
    it.write()
    it.write("upsert")
    table = hudi_services.open(it.path, engine="local")
    assert table.plan_compaction(options={"hoodie.compact.inline.max.delta.commits": "1"}).state == "requested"
    it.options = {"hudi.services.abandoned.after.minutes": "0"}


@seeds("half_done_services")
def a_clean_that_died(it: Made) -> None:
    it.copy("plain")
    it.instant("clean.requested")


@seeds("lock_left")
def a_lock_file(it: Made) -> None:
    it.copy("plain")
    it.file(".hoodie/lock")


@seeds("signs_left")
def a_heartbeat(it: Made) -> None:
    it.copy("plain")
    it.file(f".hoodie/.heartbeat/{_GONE}")


@seeds("signs_left")
def markers(it: Made) -> None:
    it.copy("plain")
    it.file(f".hoodie/.temp/{_GONE}/a/x.parquet.marker.CREATE")


@seeds("cleaner_lags")
def updates_without_a_clean(it: Made) -> None:
    it.create()
    for _ in range(4):
        it.write("upsert")
    it.options = {"hoodie.clean.commits.retained": "1"}


@seeds("cleaner_held_back")
def a_dead_writer_before_updates(it: Made) -> None:
    it.create()
    it.write("upsert")
    ts = str(int(_last(it)) + 1)
    for _ in range(4):
        it.write("upsert")
    it.instant("commit.requested", ts)
    it.instant("inflight", ts)
    it.options = {"hoodie.clean.commits.retained": "1"}


@seeds("clustering_holds_archive")
def a_clustering_before_writes(it: Made) -> None:
    it.create()
    for number in range(2):
        it.write(first=10 * number, end=10 * number + 10)
    assert hudi_services.open(it.path, engine="local").cluster(options={"hudi.services.publish.late": "staged"}).ok
    for number in range(4):
        it.write(first=100 + number, end=101 + number)
    _compact_metadata(it)
    it.options = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}


@seeds("archive_held_back")
def a_savepoint_before_writes(it: Made) -> None:
    it.copy("past")
    it.options = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}


@seeds("archive_lags")
def many_commits(it: Made) -> None:
    it.create()
    for number in range(7):
        it.write(first=10 * number, end=10 * number + 10)
    _compact_metadata(it)
    it.options = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}


@seeds("compaction_lags")
def log_files_beside_a_plan_that_waits(it: Made) -> None:
    log_files_of_three_commits(it)
    assert hudi_services.open(it.path, engine="local").plan_compaction(options=it.options).state == "requested"
    for _ in range(3):
        it.write("upsert")


@seeds("compaction_lags")
def log_files_of_three_commits(it: Made) -> None:
    it.create("MERGE_ON_READ")
    it.write()
    for _ in range(3):
        it.write("upsert")
    it.options = {"hoodie.compact.inline.max.delta.commits": "1"}


@seeds("many_log_files")
def eleven_log_files(it: Made) -> None:
    it.create("MERGE_ON_READ")
    it.write()
    for _ in range(11):
        it.write("upsert", 0, 2)


@seeds("many_log_files")
def log_files_of_few_commits(it: Made) -> None:
    eleven_log_files(it)
    it.options = {"hoodie.compact.inline.max.delta.commits": "20"}


@seeds("savepoints")
def old_files_of_a_savepoint(it: Made) -> None:
    it.copy("past", "0.15.0")


@seeds("metadata_compaction_lags")
def a_metadata_table_of_many_commits(it: Made) -> None:
    it.copy("plain")
    it.options = {"hoodie.metadata.compact.max.delta.commits": "1"}


@seeds("index_half_built")
def an_index_that_nobody_builds(it: Made) -> None:
    it.copy("plain")
    it.properties("hoodie.table.metadata.partitions.inflight=record_index")


@seeds("record_index_balance")
def a_record_index_of_too_few_groups(it: Made) -> None:
    it.copy("keyed", "1.0.2")
    it.options = {
        "hoodie.metadata.record.index.min.filegroup.count": "100",
        "hoodie.metadata.record.index.max.filegroup.count": "1000",
    }


@seeds("metadata_missing")
def no_metadata_table(it: Made) -> None:
    it.copy("no_mdt")


@seeds("small_files")
def many_small_files(it: Made) -> None:
    it.create()
    for number in range(22):
        it.write(first=10 * number, end=10 * number + 1)


@seeds("small_files")
def more_partitions_than_a_plan_takes(it: Made) -> None:
    it.create(partition_by="part")
    for number in range(22):
        it.write(part="ab"[number % 2], first=10 * number, end=10 * number + 1)
    it.options = {"hoodie.clustering.plan.strategy.max.num.groups": "1"}


@seeds("oversized_files")
def files_above_the_limit(it: Made) -> None:
    it.create()
    it.write(end=20_000, text=20)
    it.options = {"hoodie.parquet.max.file.size": "100000"}


@seeds("oversized_files")
def files_that_no_plan_takes(it: Made) -> None:
    files_above_the_limit(it)
    it.options["hoodie.clustering.plan.strategy.small.file.limit"] = "250000"


@seeds("oversized_files")
def large_buckets(it: Made) -> None:
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    hudi_services.create(it.path, name="t", record_key="id", ordering="ts", engine="local", options=buckets)
    it.write("upsert")
    it.options = {"hoodie.parquet.max.file.size": "1000"}


@seeds("skewed_partitions")
def one_large_partition(it: Made) -> None:
    it.create(partition_by="part")
    for part in ("a", "b", "c"):
        it.write(part=part, end=1)
    it.write(part="d", first=1_000, end=40_000, text=20)
    it.options = {"hoodie.parquet.max.file.size": "1000"}


@seeds("overlap")
def files_of_all_keys(it: Made) -> None:
    it.create()
    for number in range(12):
        it.write(first=100 * number, end=100 * number + 100)
    it.options = {"hoodie.clustering.plan.strategy.sort.columns": "id"}


@seeds("overlap")
def files_written_since_a_clustering(it: Made) -> None:
    it.create()
    it.write(end=200)
    sort = {"hoodie.clustering.plan.strategy.sort.columns": "id desc", "hudi.services.publish.late": "staged"}
    assert hudi_services.open(it.path, engine="local").cluster(options=sort).ok
    for number in range(12):
        it.write(first=1_000 + 100 * number, end=1_100 + 100 * number)
    it.options = {"hoodie.clustering.plan.strategy.small.file.limit": "1000"}


@seeds("orphan_files")
def a_file_of_a_dead_attempt(it: Made) -> None:
    it.copy("plain")
    one = next(file for file in sorted(it.path.rglob("*.parquet")) if ".hoodie" not in file.parts)
    gone = str(int(_last(it)) + 1)
    name = f"00000000-0000-0000-0000-000000000000-0_0-1-1_{gone}.parquet"
    it.file(one.with_name(name).relative_to(it.path), content=one.read_bytes())


@seeds("refused_features")
def no_meta_fields(it: Made) -> None:
    it.copy("no_meta")


@seeds("archive_before_clean")
def an_archive_of_ten_commits(it: Made) -> None:
    it.copy("plain")
    it.options = {
        "hoodie.keep.min.commits": "10",
        "hoodie.keep.max.commits": "12",
        "hoodie.clean.commits.retained": "10",
    }


@seeds("archive_before_clean")
def an_archive_that_keeps_cleans_from_all_files(it: Made) -> None:
    it.create()
    it.options = {
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.clean.commits.retained": "4",
    }
    row = pa.table({"id": ["a"], "ts": [1], "part": ["p"], "text": ["x"]})
    for _ in range(6):
        table = hudi_services.open(it.path, engine="local", options=it.options)
        assert table.upsert(row, options={"hoodie.metadata.compact.max.delta.commits": "1"}).ok
        assert table.clean().state == "idle" and table.archive().ok
    assert len([*it.path.glob("*.parquet")]) == 6


@seeds("index_not_kept")
def a_writer_without_metadata(it: Made) -> None:
    it.copy("plain")
    it.options = {"hoodie.metadata.enable": "false"}


def _last(it: Made) -> str:
    return open_local(it.path).timeline.completed_writes()[-1].ts


def _compact_metadata(it: Made) -> None:
    """With one more commit."""
    hudi_services.open(it.path, engine="local").bulk_insert(
        pa.table({"id": ["last"], "ts": [1], "part": ["p"], "text": ["x"]}),
        options={**_SIZES, "hoodie.metadata.compact.max.delta.commits": "1"},
    )


def _with_checkpoint(commit: Path) -> None:
    """The checkpoint of a streamer, in a commit."""
    found = decode_commit_avro(commit.read_bytes(), str(commit))
    extra = {**found.extra, "deltastreamer.checkpoint.key": "topic,0:5"}
    commit.write_bytes(encode_commit_avro(replace(found, extra=extra), "1.2.0"))


ONLY_SHOWN = {
    "a_base_file_that_is_gone": "validate",
    "a_base_file_that_was_cut": "validate",
    "a_checkpoint_far_back": "archive --dry-run",
    "a_savepoint_before_writes": "archive --dry-run",
    "a_writer_of_seven_hours": "recover",
}
"""Seeds of which a person has to decide: the command changes nothing, and says more."""
LEADS_TO = {"a_clustering_before_writes": {"archive_lags"}, "a_dead_writer_before_updates": {"cleaner_lags"}}
"""What is due only when the command has been run."""


@pytest.mark.thorough
@pytest.mark.parametrize("name", SEEDS)
def test_a_seeded_fault_is_found_and_its_command_mends_it(
    name: str, tmp_path: Path, known: Callable[[str], Pristine]
) -> None:
    """By its name, and nothing is changed. Then what the report says is run as a shell would run it; it has the options
    of this run: the finding is gone at once, or after as many runs as it said, and nothing else is wrong."""
    check, seed = SEEDS[name]
    it = Made(tmp_path / "ta ble's, copy", known)
    seed(it)
    seeded = digest(it.path)
    done = hudi_services.open(it.path).doctor(options=it.options, **it.flags)
    before = done.report["tables"]["findings"]
    found = [row for row in before if row["check"] == check]
    assert found, [(row["check"], row["finding"]) for row in before]
    level = min((Level(row["level"]) for row in before), key=lambda one: one.rank)
    assert done.report["exit_code"] == {Level.CRITICAL: 5, Level.WARNING: WARNED, Level.NOTE: 0}[level]
    assert not [one for one in done.report["checks"] if one["result"] == "skipped"]
    assert digest(it.path) == seeded

    runs, most = 0, max(json.loads(row["numbers"]).get("plans", 2) for row in found)
    while commands := list(dict.fromkeys(row["command"] for row in found if row["command"])):
        assert runs < most, found
        for command in commands:
            _, service, base_path, root, *flags = shlex.split(command)
            on_here = ["--engine", "local"] if service in ("execute", "compact") else []
            code = run([service, base_path, root, *flags, *on_here])
        if name in ONLY_SHOWN:
            options = [
                flag for key, value in sorted(it.options.items()) for flag in ("--hoodie-conf", f"{key}={value}")
            ]
            assert ([service, *flags], digest(it.path)) == ([*ONLY_SHOWN[name].split(), *options], seeded)
            return
        after = hudi_services.open(it.path).doctor(options=it.options, **it.flags).report["tables"]["findings"]
        more = {row["check"] for row in after} - {row["check"] for row in before}
        assert (code, more) == (0, LEADS_TO.get(name, set())), after
        found, runs = [row for row in after if row["check"] == check], runs + 1
    assert name not in ONLY_SHOWN


@pytest.mark.thorough
def test_a_sort_column_without_values_is_no_overlap(tmp_path: Path, known: Callable[[str], Pristine]) -> None:
    it = Made(tmp_path / "table", known)
    it.create()
    table = hudi_services.open(it.path, engine="local")
    for number in range(10):
        table.bulk_insert(pa.table({"id": [f"{number}"], "ts": [1], "note": pa.array([None], pa.string())}))
    found = table.doctor(options={"hoodie.clustering.plan.strategy.sort.columns": "note"})
    assert (found.report["tables"]["findings"], found.report["exit_code"]) == ([], 0)


def test_what_a_clustering_saves_is_plain_english(tmp_path: Path, known: Callable[[str], Pristine]) -> None:
    it = Made(tmp_path / "table", known)
    many_small_files(it)
    (finding,) = hudi_services.open(it.path).doctor().report["tables"]["findings"]
    assert finding["finding"].endswith("in all: a clustering would leave 21 fewer files"), finding["finding"]


def test_the_next_step_is_none_that_is_only_worth_knowing(
    tmp_path: Path, known: Callable[[str], Pristine], capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the worst finding has no command, that of a note does not take its place."""
    it = Made(tmp_path / "table", known)
    it.copy("no_mdt")
    assert run(["doctor", "--base-path", str(it.path), "--longest-query", "525600"]) == 5
    out = capsys.readouterr().out
    assert "index-bootstrap" in out and "\nnext:" not in out


def test_commits_since_a_clean_are_those_that_it_has_not_seen(tmp_path: Path, known: Callable[[str], Pristine]) -> None:
    """As the next clean counts them: also a commit that was at work while the clean was planned."""
    it = Made(tmp_path / "table", known)
    it.create()
    for _ in range(3):
        it.write("upsert")
    assert hudi_services.open(it.path, engine="local").clean(options={"hoodie.clean.commits.retained": "1"}).ok
    it.write("upsert")
    last, (done,) = _last(it), layout.timeline(it.path).glob("*_*.clean")
    for file in layout.timeline(it.path).glob(f"{done.name[:17]}*"):
        file.rename(file.with_name(file.name.replace(done.name[:17], str(int(last) + 1), 1)))
    measures = hudi_services.open(it.path).doctor().report["tables"]["measures"]
    assert {row["measure"]: row["value"] for row in measures}["commits_since_clean"] == 1


def test_the_forms_of_the_report(
    tmp_path: Path, known: Callable[[str], Pristine], capsys: pytest.CaptureFixture[str]
) -> None:
    """Prometheus's own parser reads it; the numbers are those of the JSON report; names from a table are escaped."""
    it = Made(tmp_path / 'a "b"\\c', known)
    it.copy("types_row")
    assert run(["doctor", "--base-path", str(it.path), "--format", "json"]) == 5
    report = json.loads(capsys.readouterr().out)
    measures = {row["measure"]: row["value"] for row in report["tables"]["measures"]}
    assert run(["doctor", "--base-path", str(it.path), "--format", "prometheus"]) == 5
    families = {one.name: one for one in text_string_to_metric_families(capsys.readouterr().out)}
    assert {name: families[f"hudi_table_{name}"].samples[0].value for name in measures} == measures
    found = {
        (one.labels["check"], one.labels["level"]): one.value
        for one in families["hudi_table_findings"].samples
        if one.value
    }
    assert found == {("hidden_rows", "critical"): 2}
    assert {one.labels["base_path"] for family in families.values() for one in family.samples} == {str(it.path)}
    assert len(found) < len(CHECKS) == len(families["hudi_table_findings"].samples) / len(Level)
    for name in families:
        assert not name.endswith(("_minutes", "_hours", "_kib", "_total")), "base units, and no counters"


def test_what_others_are_at_is_told(tmp_path: Path) -> None:
    """A young plan or write is no finding, and keeps others waiting all the same."""
    it = Made(tmp_path / "t", lambda release: pytest.fail("not needed"))
    it.create()
    it.write()
    it.write(first=10, end=20)
    table = hudi_services.open(it.path)
    assert table.doctor().report["reason"] == "the table is all right"
    table.plan_clustering(options={"hoodie.clustering.plan.strategy.small.file.limit": "1000000"})
    it.instant("commit.requested", hours_ago=0)
    it.instant("inflight", hours_ago=0)
    assert table.doctor().report["reason"] == "the table is all right; pending: 1 live write, 1 waiting plan"


def test_the_text_format_of_prometheus_is_for_doctor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["clean", "--base-path", str(tmp_path), "--format", "prometheus"]) == 2
    assert "--format prometheus is for doctor alone" in capsys.readouterr().err


def test_deep_asks_validate(tmp_path: Path, known: Callable[[str], Pristine]) -> None:
    it = Made(tmp_path / "table", known)
    it.copy("types_row")
    found = hudi_services.open(it.path).doctor(deep=True).report
    assert [row["check"] for row in found["tables"]["findings"]][-1] == "validate"
    assert (found["checks"][-1]["name"], found["checks"][-1]["result"]) == ("validate", "failed")


def test_a_check_that_cannot_be_made(tmp_path: Path, known: Callable[[str], Pristine]) -> None:
    """It says why, and the others go on."""
    it = Made(tmp_path / "table", known)
    it.copy("plain")
    a_writer_that_died_in(it)
    clean = it.instant("clean", str(int(_last(it)) + 2), content=b"no clean")
    found = hudi_services.open(it.path).doctor().report
    skipped = {one["name"]: one["detail"] for one in found["checks"] if one["result"] == "skipped"}
    assert "cleaner_held_back" in skipped and all(clean.name[:17] in why for why in skipped.values())
    assert "could not be made" in found["reason"]
    assert "dead_writers" in {row["check"] for row in found["tables"]["findings"]}


def test_every_check_is_seeded() -> None:
    assert {check for check, _ in SEEDS.values()} == {one.name for one in CHECKS}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("release", "recipe"),
    [(release, recipe) for release in _HEALTHY for recipe in (*_ALWAYS_HEALTHY, *_HEALTHY[release])],
)
def test_a_healthy_table_gives_no_alarm(release: str, recipe: str, known: Callable[[str], Pristine]) -> None:
    done = hudi_services.open(known(release).table(recipe)).doctor()
    findings = [row for row in done.report["tables"]["findings"] if row["level"] != Level.NOTE.value]
    assert (findings, done.report["exit_code"]) == ([], 0)
    assert not [one for one in done.report["checks"] if one["result"] == "skipped"]


def test_the_page_lists_every_check() -> None:
    """In their order, with what their functions say that they look for."""
    page = (Path(__file__).parents[2] / "docs/doctor.md").read_text()
    rows = re.findall(r"(?m)^\| `(\w+)` \| [^|]+ \| (.+) \|$", page)
    assert [row for row in rows if "_" in row[0] or row[0] in ("drift", "savepoints", "overlap")] == [
        (one.name, (one.look.__doc__ or "").split("\n")[0]) for one in CHECKS
    ]
