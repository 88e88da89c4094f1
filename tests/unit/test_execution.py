"""Execution strategies of an operator's own: they decide where rows go, and cannot lose one unseen."""

import itertools
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_services.codecs.clustering_plan import encode_clustering_plan
from hudi_services.engine import LocalEngine
from hudi_services.errors import CheckFailed, ConfigError
from hudi_services.jobs import clustering
from hudi_services.jobs.validate import validate
from hudi_services.options import clustering_keys as keys
from hudi_services.options import resolve
from hudi_services.rewriting.group_writer import GroupWriter
from hudi_services.rewriting.resume import rewrite_once
from hudi_services.rewriting.rewrite import RewriteResult, estimate_group, rewrite_group
from hudi_services.rewriting.task import RewriteTask
from hudi_services.rows.memory import TaskMemory
from hudi_services.rows.settings import FileSettings
from hudi_services.runs.report import Report, RunState
from hudi_services.runs.request import Mode, ValidateRequest
from hudi_services.stores import open_storage
from hudi_services.timeline.instant import Action

from ..tiers import DEEP
from .parquet_samples import slices_in
from .tables import RELEASES, listed_view, open_local, request, rows, unpack
from .test_copy_plan import write
from .test_merged_copy import by_key, cut_base_files, tasks_of
from .test_row_conservation import FAULTS, Fault, refused

EXECUTION = keys.EXECUTION_STRATEGY_CLASS.key
FAULT: Fault = FAULTS[0]
"""What the faulty strategy of a test does to the rows."""


class Own(GroupWriter):
    """Writes all rows into one file; subclasses spoil that."""

    def write(self) -> None:
        self.put(self.tables())

    def put(self, tables: Iterable[pa.Table]) -> None:
        with self.new_file(self.rows) as file:
            for table in tables:
                file.write(table)


class Faulty(Own):
    def write(self) -> None:
        whole = pa.concat_tables(self.tables())
        self.put([FAULT(whole)])


class Forgetful(Own):
    """Of two files it writes one."""

    def write(self) -> None:
        whole = pa.concat_tables(self.tables())
        self.put([whole.slice(whole.num_rows // 2)])


class Silent(Own):
    def write(self) -> None:
        return None


class Early(Own):
    """Stops in the middle of the rows."""

    def write(self) -> None:
        self.put([next(iter(self.tables()))])


class Twice(Own):
    """Writes the rows of one file as often as there are files, so that their number is right."""

    def write(self) -> None:
        first = next(iter(self.tables()))
        self.put([first] * (self.rows // first.num_rows) + [first.slice(0, self.rows % first.num_rows)])


class Both(Own):
    """Writes all rows in two files."""

    def write(self) -> None:
        self.put(self.tables())
        self.put(self.tables())


class Copies(GroupWriter):
    """Copies the first row group twice, and the second one never."""

    def write(self) -> None:
        group = self.group
        first = group.segments[0]
        with group.copied_file(self.rows, "parquet-cpp-arrow version 20.0.0") as file:
            group.copy(first, file)
            group.copy(first, file)


class CopiesAndWrites(GroupWriter):
    """Copies a row group, and writes its rows, too."""

    def write(self) -> None:
        group = self.group
        with group.copied_file(self.rows, "parquet-cpp-arrow version 20.0.0") as file:
            for one in group.segments:
                group.copy(one, file)
            for table in group.tables():
                file.write(table)


class Misleading(Own):
    """Hands in a table that has other values in a column of no interest, and all the right keys."""

    def write(self) -> None:
        for table in self.tables():
            self.put([table.set_column(0, table.schema.field(0), table.column(0).take(pa.array([0] * table.num_rows)))])


FAULTY = [Forgetful, Silent, Early, Twice, Both]


def own(kind: type[GroupWriter], **options: str) -> dict[str, str]:
    return {EXECUTION: f"{__name__}:{kind.__name__}", **options}


@pytest.mark.thorough
@pytest.mark.spread(2)
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("fault", FAULTS)
def test_what_happens_to_rows_is_found(
    release: str, fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "FAULT", fault)
    refused(unpack(release, tmp_path), own(Faulty))


@pytest.mark.thorough
@pytest.mark.spread(2)
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("kind", FAULTY)
def test_what_is_not_written_is_found(release: str, kind: type[GroupWriter], tmp_path: Path) -> None:
    refused(unpack(release, tmp_path), own(kind))


def task_of(folder: Path, kind: type[GroupWriter], files: int = 1, **more: Any) -> RewriteTask:
    """A group of two files of three row groups each."""
    if not (folder / "a").exists():
        write(folder, "a", 30, row_group_size=10)
        write(folder, "b", 30, row_group_size=10)
    storage, ids = open_storage(str(folder)), tuple(f"f{i}-0" for i in range(files))
    task = RewriteTask(
        storage, "20260101000000000", "", *slices_in(storage, "a", "b"), ids, (), "LINEAR", None, (), True,
        FileSettings(row_group_bytes=4096),
    )  # fmt: skip
    return replace(task, execution=f"{__name__}:{kind.__name__}", **more)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Copies, "was to be rewritten twice"),
        (CopiesAndWrites, "does not hold the same rows"),
        (Misleading, "does not hold the same rows"),
        *((kind, "does not hold the same rows") for kind in FAULTY),
    ],
)
def test_faults_in_one_group(kind: type[GroupWriter], said: str, tmp_path: Path) -> None:
    with pytest.raises(CheckFailed, match=said):
        rewrite_group(task_of(tmp_path, kind), "0-0-0")


def keys_of(folder: Path, result: RewriteResult) -> list[list[str]]:
    return [pq.read_table(folder / new.path)["_hoodie_record_key"].to_pylist() for new in result.files]


class Reversed(Own):
    """Reads all rows twice, leaves the first reading in the middle, and writes as many files as asked."""

    def write(self) -> None:
        looked = self.tables()
        next(looked)
        numbers = pa.concat_tables(self.tables())["n"]
        assert len(numbers) == self.rows
        whole = pa.concat_tables(self.tables())
        whole = whole.take(pc.array_sort_indices(whole["n"].combine_chunks(), order="descending"))
        start = 0
        for count in self.cuts():
            with self.new_file(count) as file:
                file.write(whole.slice(start, count))
            start += count


def test_rows_may_be_read_again_and_come_in_any_order(tmp_path: Path) -> None:
    result = rewrite_group(task_of(tmp_path, Reversed, files=2), "0-0-0")
    found = keys_of(tmp_path, result)
    assert [len(one) for one in found] == [30, 30]
    assert sorted(key for one in found for key in one) == sorted(KEYS)
    assert found[0][0].endswith("29") and found[1][-1].endswith("00")
    assert (result.before, result.before.rows, result.decoded) == (result.after, 60, "execution strategy")
    assert [new.file_id for new in result.files] == ["f0-0", "f1-0"]


class Drawn(Own):
    """Writes the rows with the numbers that a test has drawn."""

    def write(self) -> None:
        whole = pa.concat_tables(self.tables())
        for numbers in DRAWN:
            self.put([whole.take(pa.array(numbers, pa.int64()))])


DRAWN: list[list[int]] = []


@pytest.mark.thorough
@pytest.mark.sweep
@settings(max_examples=100 if DEEP else 25)
@given(st.data())
def test_whatever_becomes_of_rows(group_folder: Path, data: st.DataObject) -> None:
    """They may go anywhere; each must be there once."""
    order = data.draw(st.permutations(range(60)))
    lost = data.draw(st.sets(st.sampled_from(order), max_size=2))
    doubled = data.draw(st.lists(st.sampled_from(order), max_size=2))
    numbers = [number for number in order if number not in lost] + doubled
    ends = sorted(data.draw(st.lists(st.integers(0, len(numbers)), max_size=3)))
    DRAWN[:] = [numbers[low:high] for low, high in itertools.pairwise([0, *ends, len(numbers)])]
    task, token = task_of(group_folder, Drawn, files=2), f"0-0-{next(_TOKENS)}"
    if sorted(numbers) == list(range(60)):
        result = rewrite_group(task, token)
        assert [new.rows for new in result.files] == [len(some) for some in DRAWN]
        assert sorted(itertools.chain(*keys_of(group_folder, result))) == sorted(KEYS)
    else:
        with pytest.raises(CheckFailed, match="does not hold the same rows"):
            rewrite_group(task, token)


_TOKENS = itertools.count()
KEYS = [f"{name}-{i:06d}" for name in "ab" for i in range(30)]


@pytest.fixture(scope="module")
def group_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("group")


class Dealt(Own):
    """Deals the rows out to two files that are open at once."""

    def write(self) -> None:
        with self.new_file(self.rows // 2) as even, self.new_file(self.rows // 2) as odd:
            for table in self.tables():
                is_even = pc.equal(pc.bit_wise_and(table["n"], 1), 0)
                even.write(table.filter(is_even))
                odd.write(table.filter(pc.invert(is_even)))


def test_several_files_may_be_open(tmp_path: Path) -> None:
    result = rewrite_group(task_of(tmp_path, Dealt, files=2), "0-0-0")
    even, odd = sorted(keys_of(tmp_path, result))
    assert sorted(even + odd) == sorted(KEYS) and not any(int(key[-1]) % 2 for key in even)
    assert {new.file_id for new in result.files} == {"f0-0", "f1-0"}


class Pieces(Own):
    """A file for each table, in more files than were asked for."""

    def write(self) -> None:
        for table in self.tables():
            self.put([table])


def test_a_bucket_stays_one_file(tmp_path: Path) -> None:
    assert len(rewrite_group(task_of(tmp_path, Pieces), "0-0-0").files) == 6
    with pytest.raises(CheckFailed, match="was to become more than one base file"):
        rewrite_group(task_of(tmp_path, Pieces, keeps_group=True), "0-0-1")


@pytest.mark.parametrize("release", RELEASES)
def test_a_clustering(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    before = rows(open_local(path), open_local(path).view)
    done = executed(path, own(Own))
    assert done.state is RunState.COMPLETED and done.decoded == {"execution strategy": done.groups}
    assert done.files.after == done.groups
    for view in (open_local(path).view, listed_view(open_local(path))):
        assert rows(open_local(path), view).equals(before)
    assert validate(ValidateRequest(base_path=str(path), options=resolve([]))).state is RunState.COMPLETED


def executed(path: Path, options: dict[str, str]) -> Report:
    clustering.schedule(request(path, Mode.SCHEDULE, options))
    return clustering.execute(request(path, Mode.EXECUTE, options), engine=LocalEngine())


@pytest.mark.thorough
@pytest.mark.parametrize("memory", [TaskMemory(), TaskMemory(limit=4096 * 5)], ids=["in memory", "on disk"])
def test_slices_with_log_files(memory: TaskMemory, tmp_path: Path) -> None:
    """Merged rows are counted by other code than that which merges them, also for a strategy of one's own."""
    from . import histories

    path = histories.MadeHistory("1.2.0", "default_order", tmp_path).path
    cut_base_files(path, 2)
    for task in tasks_of(path, 1, memory):
        wanted = rewrite_group(task, "0-0-0")
        for number, kind in enumerate((Own, Reread)):
            named = replace(task, execution=f"{__name__}:{kind.__name__}", file_ids=(f"own{number}-0",))
            found = rewrite_group(named, "0-0-0")
            assert (found.before.rows, found.after) == (wanted.before.rows, found.before)
            assert by_key(rows_of(path, found)) == by_key(rows_of(path, wanted))
        for kind in (Faulty, Silent, Early, Both):
            with pytest.raises(CheckFailed):
                rewrite_group(replace(task, execution=f"{__name__}:{kind.__name__}", file_ids=("bad-0",)), "0-0-0")


class Reread(Own):
    def write(self) -> None:
        assert sum(table.num_rows for table in self.tables()) == self.rows
        self.put(self.tables())


def rows_of(path: Path, result: RewriteResult) -> list[dict[str, Any]]:
    found = [row for new in result.files for row in pq.ParquetFile(path / new.path).read().to_pylist()]
    return [{name: value for name, value in row.items() if name != "_hoodie_file_name"} for row in found]


class Broken(Own):
    def write(self) -> None:
        self.put(self.tables())
        raise KeyError("what I looked for")


class NoWriter:
    pass


class Narrow(Own):
    """Hands in tables without a column."""

    def write(self) -> None:
        self.put(table.drop_columns(["_hoodie_commit_seqno"]) for table in self.tables())


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "said"), [(Broken, r"Broken failed: KeyError: 'what I looked for'"), (Narrow, "Narrow failed: KeyError")]
)
def test_a_strategy_that_fails(kind: type[GroupWriter], said: str, tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    before = rows(open_local(path), open_local(path).view)
    with pytest.raises(ConfigError, match=said):
        executed(path, own(kind))
    table = open_local(path)
    assert len(table.timeline.completed({Action.ROLLBACK})) == 1
    assert rows(table, table.view).equals(before)
    # The plan can be executed without the strategy that it was made for, when the operator says so.
    (instant,) = table.timeline.pending_clusterings()
    with pytest.raises(ConfigError, match=f"the plan of {instant.ts} names the execution strategy .*:{kind.__name__}"):
        clustering.execute(request(path, Mode.EXECUTE), engine=LocalEngine())
    done = clustering.execute(
        request(path, Mode.EXECUTE, {EXECUTION: keys.SORT_AND_SIZE_EXECUTION}), engine=LocalEngine()
    )
    assert done.state is RunState.COMPLETED


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (f"{__name__}:NoWriter", "is no subclass of hudi_services.rewriting.group_writer.GroupWriter"),
        (f"{__name__}:Nobody", "cannot be loaded"),
        ("nowhere_at_all:Own", "cannot be loaded"),
        ("org.apache.hudi.Other", "nor of the form package.module:Class"),
    ],
)
def test_what_is_no_strategy(name: str, said: str, tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    with pytest.raises(ConfigError, match=said):
        clustering.schedule(request(path, Mode.SCHEDULE, {EXECUTION: name}))
    clustering.schedule(request(path, Mode.SCHEDULE))
    with pytest.raises(ConfigError, match=said):
        clustering.execute(request(path, Mode.EXECUTE, {EXECUTION: name}), engine=LocalEngine())
    assert len(open_local(path).timeline.pending_clusterings()) == 1


@pytest.mark.parametrize("release", RELEASES)
def test_a_plan_for_hudi(release: str, tmp_path: Path) -> None:
    """It names a class that every release has; and one of Hudi's plans is executed by a class of one's own."""
    path = unpack(release, tmp_path)
    clustering.schedule(request(path, Mode.SCHEDULE, own(Own)))
    table = open_local(path)
    (instant,) = table.timeline.pending_clusterings()
    plan = table.timeline.read_plan(instant)
    assert plan.strategy_class == keys.SORT_AND_SIZE_EXECUTION
    file = path / table.timeline.path(table.timeline.requested_name(instant))
    theirs = replace(plan, strategy_class="org.example.Strategy", extra={})
    file.write_bytes(encode_clustering_plan(theirs, table.config.version.release))
    done = clustering.execute(request(path, Mode.EXECUTE, own(Own)), engine=LocalEngine())
    assert done.decoded == {"execution strategy": done.groups}


class Told(Own):
    prefix = "my.files."

    def write(self) -> None:
        TOLD.append(self.parameters)
        self.put(self.tables())


TOLD: list[dict[str, str]] = []


def test_parameters_of_ones_own(tmp_path: Path) -> None:
    """Those that the operator gives, and none of the table's."""
    path = unpack("1.2.0", tmp_path)
    with (path / ".hoodie/hoodie.properties").open("a") as file:
        file.write("my.files.evil=1\n")
    TOLD.clear()
    given = {"my.files.column": "city", "my.files.most": "3", "my.other": "x"}
    done = executed(path, own(Told, **given))
    assert [{"my.files.column": "city", "my.files.most": "3"}] * (done.groups or 0) == TOLD


def test_a_group_is_taken_over_only_from_the_same_strategy(tmp_path: Path) -> None:
    """With the same parameters."""
    task = task_of(tmp_path, Told, parameters=(("my.files.most", "3"),))
    assert not rewrite_once(task, "0-0-0").taken_over
    assert rewrite_once(task, "0-0-1").taken_over
    assert not rewrite_once(replace(task, parameters=(("my.files.most", "4"),)), "0-0-2").taken_over
    assert not rewrite_once(task_of(tmp_path, Own, parameters=task.parameters), "0-0-3").taken_over


def test_a_dry_run_gives_no_estimate(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    report = clustering.schedule(request(path, Mode.SCHEDULE, own(Own), dry_run=True))
    assert report.warnings == [f"no estimate: the execution strategy {__name__}:Own gives none"]
    assert estimate_group(task_of(tmp_path, Own)) is None


def test_the_example_in_the_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).resolve().parents[2] / "docs/clustering.md").read_text()
    code = text.partition("# my_company/writers.py\n")[2].partition("```")[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 20
    (tmp_path / "writers_of_my_company.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    path = unpack("1.2.0", tmp_path / "t")
    before = rows(open_local(path), open_local(path).view)
    name = "writers_of_my_company:FileForEachValue"
    done = executed(path, {EXECUTION: name, "my.files.column": "label"})
    table = open_local(path)
    assert rows(table, table.view).equals(before)
    found = [
        {*pq.read_table(path / one.base_file.path, partitioning=None)["label"].to_pylist()}
        for partition in table.view.partitions()
        for one in table.view.latest_slices(partition)
        if one.base_file is not None and one.base_instant == done.instant
    ]
    assert found and all(len(one) == 1 for one in found)
