"""What earlier clusterings have gained, by a model that counts ranges one by one; and where it cannot be known, why."""

import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_services
from hudi_services.base_files.slices import SliceSource, describe
from hudi_services.clustering import completed_clusterings, value_ranges
from hudi_services.codecs.clustering_plan import encode_clustering_plan
from hudi_services.health import clustering_gains as gains
from hudi_services.health.clustering_gains import FileSizes, Lookup, LookupGain, RangedSample, clustering_gains
from hudi_services.html_report.page import page
from hudi_services.html_report.table_state import table_state
from hudi_services.model import BaseFile, FileSlice
from hudi_services.units import size_text

from ..interop import layout
from .rides import create
from .tables import open_local, unpack
from .test_table_report import EVIL, Made, Parsed, examined, plain_elements, without_index

QUICK = {
    "hoodie.time.generator.max_expected_clock_skew_ms": "0",
    "hoodie.parquet.bloom.filter.enabled": "false",
    "hoodie.clean.automatic": "false",
}
ONE_VERSION = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
TARGET = "hoodie.clustering.plan.strategy.target.file.max.bytes"
Range = tuple[object, object, int]
"""The least and the greatest value of a file, and its bytes."""


def sorted_by(*columns: str, **more: str) -> Mapping[str, str]:
    return {**QUICK, "hoodie.clustering.plan.strategy.sort.columns": ",".join(columns), **more}


def live(path: Path) -> list[Path]:
    return [path / one.base_file.path for one in open_local(path).view.live_slices() if one.base_file is not None]


def ranges(files: Iterable[Path], column: str) -> Mapping[str, list[Range]]:
    """By partition, from the rows themselves."""
    found: dict[str, list[Range]] = defaultdict(list)
    for file in files:
        values = [
            one
            for one in pq.read_table(file, columns=[column], partitioning=None)[column].to_pylist()
            if one is not None
        ]
        found[file.parent.name].append((min(values), max(values), file.stat().st_size))
    return found


def opened(before: Mapping[str, list[Range]], files: Mapping[str, list[Range]]) -> tuple[float, float]:
    """Files and bytes that a lookup opens in one partition, on average of the partitions by their old files."""
    sums, weights = np.zeros(2), 0
    for partition, old in before.items():
        counts = np.zeros(2)
        for value, _, _ in files[partition]:
            for low, high, size in files[partition]:
                if low <= value <= high:  # type: ignore[operator]
                    counts += (1, size)
        sums += len(old) * counts / len(files[partition])
        weights += len(old)
    return tuple(sums / weights)


def expected(before: Mapping[str, list[Range]], after: Mapping[str, list[Range]]) -> list[object]:
    return [pytest.approx(one) for one in (*opened(before, before), *opened(before, after))]


def numbers(lookup: LookupGain | None) -> list[float]:
    assert lookup is not None
    return [lookup.before.files, lookup.before.bytes, lookup.after.files, lookup.after.bytes]


@pytest.fixture(scope="module")
def shuffled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files whose ranges overlap, of two partitions that differ in size and in overlap; with an index of ranges."""
    path = tmp_path_factory.mktemp("shuffled") / "t"
    table = create(path, options=QUICK)
    random = np.random.default_rng(3)
    for number in range(9):
        days = ["b"] * 40 if number % 3 else ["a"] * 40
        low = int(random.integers(0, 60)) * (1_000 if number % 3 else 10)
        table.bulk_insert(
            pa.table({
                "id": [f"{number}-{row}" for row in range(40)],
                "ts": [number] * 40,
                "day": days,
                "n": random.integers(low, low + 60_000, 40),
                "pad": [f"{one:x}" for one in random.integers(0, 1 << 60, 40)],
            }),
            options={**QUICK, "hoodie.parquet.small.file.limit": "0"},
        )  # fmt: skip
    return path


def copy_of(table: Path, folder: Path) -> tuple[Path, hudi_services.Table]:
    path = shutil.copytree(table, folder / "t")
    return path, hudi_services.open(path, engine="local")


@pytest.mark.thorough
def test_a_lookup_before_and_after_by_a_model(shuffled: Path, tmp_path: Path) -> None:
    """Overlapping ranges before, disjoint ones after; from the index, and from footers. Later writes do not matter."""
    path, table = copy_of(shuffled, tmp_path)
    before = live(path)
    small = {TARGET: "2500", "hoodie.parquet.max.file.size": "2500"}
    assert table.cluster(options=sorted_by("n", **small)).ok
    after = live(path)
    old, new = ranges(before, "n"), ranges(after, "n")
    assert len(after) > 3 and opened(old, old)[0] > 2 and opened(old, new)[0] < 1.5
    table.upsert(pa.table({"id": ["0-0"], "ts": [99], "day": ["a"], "n": [10**9], "pad": ["x"]}), options=QUICK)
    done = table.report(str(tmp_path / "page.html"))
    (row,) = done.report["tables"]["earlier_clusterings"]
    for known, partitions in ((path, {"files", "column_stats"}), (without_index(Made(path, ())), set())):
        seen = open_local(known)
        assert partitions <= {*seen.config.metadata_partitions} and bool(seen.metadata) == bool(partitions)
        (gain,) = clustering_gains(seen, {})
        assert numbers(gain.lookup) == expected(old, new)
    assert (row["layout"], row["columns"], row["why"], row["ranges"]) == ("LINEAR", "n", None, len(before) + len(after))
    assert [row["opened_before"], row["opened_after"]] == [round(opened(old, one)[0], 2) for one in (old, new)]
    for side, files in (("old", before), ("new", after)):
        sizes = [file.stat().st_size for file in files]
        assert (row[f"{side}_files"], row[f"{side}_bytes"]) == (len(files), sum(sizes))
        assert row[f"{side}_median_bytes"] == round(float(np.median(sizes)))
    text = Parsed((tmp_path / "page.html").read_text()).text
    assert f"{row['opened_before']:.1f} → {row['opened_after']:.1f} files of a partition" in text
    assert "LINEAR by n" in text and "A sample:" not in text and "What a lookup opens before and after" in text


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("release", "column"), [("0.15.0", "ts"), ("1.0.2", "label"), ("1.2.0", "ts"), ("1.2.0", "at")]
)
def test_tables_that_real_hudi_wrote(release: str, column: str, tmp_path: Path) -> None:
    """Clusterings of files of Hudi: without an index of ranges, and with one; numbers, texts and times."""
    path = unpack(release, tmp_path)
    before = live(path)
    assert hudi_services.open(path, engine="local").cluster(options=sorted_by(column)).ok
    after = [file for file in live(path) if file not in before]
    replaced = [file for file in before if file not in live(path)]
    old, new = ranges(replaced, column), ranges(after, column)
    (gain,) = clustering_gains(open_local(path), {})
    assert gain.old is not None and gain.new is not None and not gain.is_sample
    assert (gain.old.files, gain.new.files) == (len(replaced), len(after)) and len(replaced) > len(after)
    assert numbers(gain.lookup) == expected(old, new)


@pytest.mark.thorough
def test_old_slices_with_log_files_have_no_range(tmp_path: Path) -> None:
    """The averages leave them out, and the page says of how many files it knows the ranges."""
    table = create(tmp_path / "t", table_type="MERGE_ON_READ", options=QUICK)
    for number in range(4):
        values = range(1000 * number, 1000 * number + 1500, 100)
        rows = pa.table({"id": [f"{number}-{one}" for one in values], "ts": values, "day": ["a"] * 15, "n": values})
        table.bulk_insert(rows, options={**QUICK, "hoodie.parquet.small.file.limit": "0"})
    bare = [file for file in live(tmp_path / "t") if pq.read_table(file, partitioning=None)["n"][0].as_py() != 1000]
    table.upsert(pa.table({"id": ["1-1000"], "ts": [9999], "day": ["a"], "n": [0]}), options=QUICK)
    sizes = [one.size for one in open_local(tmp_path / "t").view.live_slices()]
    assert table.cluster(options=sorted_by("n")).ok
    state = table_state(examined(tmp_path / "t"))
    assert state.clusterings is not None
    (gain,) = state.clusterings
    assert numbers(gain.lookup) == expected(ranges(bare, "n"), ranges(live(tmp_path / "t"), "n"))
    assert len(bare) == 3 and gain.old == FileSizes(4, sum(sizes), round(float(np.median(sizes))))
    assert "A sample: the ranges of 4 of 5 files." in Parsed(page(state, "", [])).text


@pytest.mark.thorough
def test_what_is_known_when_the_old_files_are_gone(shuffled: Path, tmp_path: Path) -> None:
    """The sizes of all files: old ones by commits, without them by the plan, in whole MiB."""
    path, table = copy_of(shuffled, tmp_path)
    old = [file.stat().st_size for file in live(path)]
    table.cluster(options=sorted_by("n"))
    new = [file.stat().st_size for file in live(path)]
    assert table.clean(options={**QUICK, **ONE_VERSION}).report["files"]["in"] == len(old)
    seen = examined(path)
    state = table_state(seen)
    assert state.clusterings is not None
    (gain,) = state.clusterings
    assert (gain.lookup, gain.why) == (None, "a clean has deleted old files of it")
    assert gain.old == FileSizes(len(old), sum(old), round(float(np.median(old))))
    assert gain.new == FileSizes(len(new), sum(new), round(float(np.median(new))))
    text = Parsed(page(state, "", [])).text
    assert "Not known: a clean has deleted old files of it." in text and f"{len(old)} → {len(new)}" in text
    assert f"{size_text(sum(old))} → {size_text(sum(new))}" in text

    (unknown,) = clustering_gains(seen.table, {})
    assert unknown.old == FileSizes(len(old), None, None)
    rewrite_plan(path, megabytes=7)
    (planned,) = clustering_gains(open_local(path), {})
    assert planned.old == FileSizes(len(old), 7 << 20, None, is_planned=True)
    told = page(replace(state, clusterings=[planned]), "", [])
    assert "about 7 MiB (by its plan) → " in Parsed(told).text


def rewrite_plan(path: Path, megabytes: int = 0, columns: str = "") -> None:
    """Change what the plan of the newest clustering says."""
    timeline = open_local(path).timeline
    instant = timeline.last_clustering()
    assert instant is not None
    plan = timeline.read_plan(instant)
    first, *others = plan.groups
    if megabytes:
        plan = replace(plan, groups=(replace(first, metrics={"TOTAL_IO_READ_MB": float(megabytes)}), *others))
    if columns:
        plan = replace(plan, strategy_params={"hoodie.clustering.plan.strategy.sort.columns": columns})
    (layout.timeline(path) / timeline.requested_name(instant)).write_bytes(encode_clustering_plan(plan, "1.2.0"))


def test_partitions_that_a_clean_has_left_are_measured(shuffled: Path, tmp_path: Path) -> None:
    path, table = copy_of(shuffled, tmp_path)
    before = live(path)
    table.cluster(options=sorted_by("n"))
    old, new = (ranges([file for file in files if "b" in file.parent.name], "n") for files in (before, live(path)))
    next(file for file in before if file.parent.name.endswith("a")).unlink()
    path = without_index(Made(path, ()))
    state = table_state(examined(path))
    assert state.clusterings is not None
    (gain,) = state.clusterings
    assert numbers(gain.lookup) == expected(old, new) and gain.is_sample
    assert gain.lookup is not None and gain.lookup.partitions == 1
    assert (
        f"A sample: the ranges of {gain.lookup.ranges} of {len(before) + 2} files, in 1 of 2 partitions."
        in Parsed(page(state, "", [])).text
    )


@pytest.mark.thorough
def test_the_newest_five_without_those_that_were_undone(
    shuffled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that sorted nothing, too; and one whose plan is garbage, or lost, costs one line."""
    path, table = copy_of(shuffled, tmp_path)
    made = []
    for number in range(7):
        rows = pa.table({"id": [f"n{number}"], "ts": [number], "day": ["a"], "n": [number], "pad": ["x"]})
        table.bulk_insert(rows, options={**QUICK, "hoodie.parquet.small.file.limit": "0"})
        made.append(table.cluster(options=sorted_by("n") if number % 2 else QUICK).instant)
    five = clustering_gains(open_local(path), {})
    assert [gain.instant.ts for gain in five] == made[:1:-1] and five[0].old is not None
    monkeypatch.setattr(completed_clusterings, "_MOST_SLICES", five[0].old.files + 1)
    assert [gain.instant.ts for gain in clustering_gains(open_local(path), {})] == made[:4:-1]
    monkeypatch.undo()
    assert table.undo(made[-1], options=QUICK).ok
    table.insert_overwrite(rows.set_column(2, "day", pa.array(["b"])), options=QUICK)
    found = clustering_gains(open_local(path), {})
    assert [gain.instant.ts for gain in found] == made[5:0:-1]
    assert [gain.why for gain in found if not gain.columns] == ["it has sorted nothing"] * 2

    timeline = open_local(path).timeline
    by_ts = {one.ts: timeline.requested_name(one) for one in timeline.completed_writes()}
    garbage, lost = (layout.timeline(path) / by_ts[ts] for ts in (made[5], made[4]))
    garbage.write_bytes(b"garbage")
    lost.unlink()
    done = table.report(str(tmp_path / "page.html"))
    rows_of = done.report["tables"]["earlier_clusterings"]
    assert done.report["exit_code"] == 0 and [row["instant"] for row in rows_of] == made[5:0:-1]
    assert garbage.name in rows_of[0]["why"] and "its requested file is lost" in rows_of[1]["why"]
    for row in rows_of[:2]:
        assert row["why"].startswith("its plan cannot be read: ")
        assert row["old_files"] is row["new_bytes"] is row["opened_before"] is None
    assert rows_of[2]["opened_after"] == 1
    text = Parsed((tmp_path / "page.html").read_text()).text
    assert text.count("Not known: its plan cannot be read: ") == 2
    advice = table.advise(["n < 3"], options=QUICK).report["tables"]["earlier_clusterings"]
    assert [bool(row["why"]) for row in advice] == [True, True, False, False, False]


@pytest.mark.thorough
def test_what_is_read_is_bounded(shuffled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of footers, and of ranges in the index. The page says that it shows a sample."""
    path, table = copy_of(shuffled, tmp_path)
    files = len(live(path))
    table.cluster(options=sorted_by("n"))
    files += len(live(path))
    monkeypatch.setattr(gains, "_LEAST_SAMPLE", 3)
    for bound, known in (("_MOST_INDEXED", path), ("_MOST_FOOTERS", without_index(Made(path, ())))):
        described: list[FileSlice] = []
        monkeypatch.setattr(value_ranges, "describe", counting(described))
        monkeypatch.setattr(gains, bound, 5)
        seen = examined(known)
        (gain,) = clustering_gains(seen.table, {})
        assert gain.lookup is not None and gain.lookup.ranges <= 5 < files and gain.is_sample
        assert len(described) == (gain.lookup.ranges if bound == "_MOST_FOOTERS" else 0)
        told = f"A sample: the ranges of {gain.lookup.ranges} of {files} files, in 1 of 2 partitions."
        assert told in Parsed(page(table_state(seen), "", [])).text


def counting(described: list[FileSlice]) -> Callable[..., object]:
    def count(source: SliceSource, slices: Sequence[FileSlice], take: Callable[..., object]) -> object:
        described.extend(slices)
        return describe(source, slices, take)

    return count


def test_samples_tell_of_all_files() -> None:
    """Their mean is what a lookup opens of all."""
    random = np.random.default_rng(1)
    lows = random.integers(0, 200, 60)
    pairs: list[tuple[int, int]] = [(int(low), int(low + random.integers(0, 40))) for low in lows]
    slices = [of_size(100 * number) for number in range(1, 61)]
    whole = RangedSample(60, slices, pairs).lookup()
    assert whole is not None
    found = []
    for _ in range(3000):
        chosen = random.choice(60, 12, replace=False)
        one = RangedSample(60, [slices[at] for at in chosen], [pairs[at] for at in chosen]).lookup()
        assert one is not None
        found.append((one.files, one.bytes))
    means = np.mean(found, axis=0)
    assert means == pytest.approx([whole.files, whole.bytes], rel=0.02) and whole.files > 5
    assert RangedSample(3, slices[:3], [None] * 3).lookup() is None
    assert RangedSample(3, slices[:1], pairs[:1]).lookup() is None


def of_size(size: int) -> FileSlice:
    return FileSlice.of_base(BaseFile("p", f"f-{size}_0-0-0_1.parquet", f"f-{size}", "0-0-0", "1", size))


@pytest.mark.thorough
def test_markup_in_the_name_of_a_column_is_a_text(shuffled: Path, tmp_path: Path) -> None:
    """In the list, in sentences, and in the picture."""
    path, table = copy_of(shuffled, tmp_path)
    table.cluster(options=sorted_by("n"))
    plain = plain_elements(path)
    name = EVIL[1].replace(" ", "/")
    rewrite_plan(path, columns=f"{name},{EVIL[0]}")
    state = table_state(examined(path))
    assert state.clusterings is not None
    (gain,) = state.clusterings
    assert gain.columns[0] == name and gain.why == f"no ranges of the column {name} are known of its files"
    lookup = LookupGain(Lookup(3, 3000), Lookup(1, 1000), 1, 4)
    for clustering in (gain, replace(gain, lookup=lookup, why=""), replace(gain, layout=EVIL[1])):
        html = page(replace(state, clusterings=[clustering]), "", [])
        found = Parsed(html)
        assert "<script" not in html.lower() and "<img" not in html.lower()
        assert {*found.tags} <= {*plain.tags} | {"code", "span"}
        assert {one for one, _ in found.attributes} == {one for one, _ in plain.attributes}
        assert f"by {name}, " in found.text
