"""The rules of cleaning, on slices and timelines that are made up: what Hudi's CleanPlanner says, said again simply."""

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.cleaning.choice import Gone, ReasonToKeep, Rules, choose
from hudi_services.cleaning.retention import Policy, Retention, horizon
from hudi_services.clock import format_instant
from hudi_services.model import BaseFile, FileSlice, LogFile
from hudi_services.stores import open_storage
from hudi_services.timeline.active import Timeline
from hudi_services.timeline.layout_v2 import LayoutV2

from .test_time_zone import clock_of

TIMES = [f"2026010100{minute:02d}00000" for minute in range(12)]


def a_slice(group: str, ts: str, logs: int = 0) -> FileSlice:
    base = BaseFile("p", f"{group}_1-0-1_{ts}.parquet", group, "1-0-1", ts, 10)
    files = tuple(
        LogFile("p", f".{group}_{ts}.log.{n}_1-0-1", group, ts, n, "1-0-1", "", 1) for n in range(1, logs + 1)
    )
    return FileSlice("p", group, ts, base, files)


@st.composite
def groups(draw: st.DrawFn) -> dict[str, list[FileSlice]]:
    found = {}
    for number in range(draw(st.integers(0, 4))):
        times = sorted(draw(st.sets(st.sampled_from(TIMES), min_size=1, max_size=6)))
        found[f"g{number}"] = [a_slice(f"g{number}", ts, draw(st.integers(0, 2))) for ts in times]
    return found


def names(slices: Sequence[FileSlice]) -> set[str]:
    return {file.name for one in slices for file in (one.base_file, *one.log_files) if file}


@given(
    groups(),
    st.sampled_from(TIMES),
    st.sets(st.sampled_from(TIMES)),
    st.dictionaries(st.sampled_from(["g0", "g1"]), st.sampled_from(TIMES)),
)
def test_the_commits_policy(
    slices: dict[str, list[FileSlice]], earliest: str, held: set[str], replaced: dict[str, str]
) -> None:
    replaced = {group: at for group, at in replaced.items() if group in slices}
    savepointed = {
        name for of_group in slices.values() for one in of_group if one.base_instant in held for name in names([one])
    }
    choice = choose("p", slices, replaced, Rules(Policy.COMMITS, earliest, 3, savepointed))
    expected: set[str] = set()
    for group, of_group in slices.items():
        before = [one for one in of_group if one.base_instant < earliest]
        if group in replaced:
            going = of_group if replaced[group] < earliest else []
        else:
            # The newest slice and the newest before the horizon stay.
            going = [one for one in before if one is not of_group[-1] and one is not before[-1]]
        expected |= names([one for one in going if one.base_instant not in held])
    assert set(choice.names) == expected
    every = names([one for of_group in slices.values() for one in of_group])
    tallies = [*choice.gone.values(), *choice.kept.values()]
    assert sum(tally.files for tally in tallies) == len(every)
    assert sum(tally.files for tally in choice.gone.values()) == len(choice.names)


@given(groups(), st.integers(1, 4), st.sets(st.sampled_from(TIMES)))
def test_the_versions_policy(slices: dict[str, list[FileSlice]], versions: int, held: set[str]) -> None:
    savepointed = {
        name for of_group in slices.values() for one in of_group if one.base_instant in held for name in names([one])
    }
    choice = choose(
        "p", slices, {"g0": TIMES[3]} if "g0" in slices else {}, Rules(Policy.FILE_VERSIONS, "", versions, savepointed)
    )
    expected: set[str] = set()
    for group, of_group in slices.items():
        going = of_group if group == "g0" else of_group[:-versions]
        expected |= names([one for one in going if one.base_instant not in held])
    assert set(choice.names) == expected


def test_what_a_pending_compaction_merges_stays() -> None:
    slices = {"g0": [a_slice("g0", ts) for ts in TIMES[:5]]}
    rules = Rules(Policy.COMMITS, TIMES[10], 1, compacting={("p", "g0"): TIMES[2]})
    assert names(slices["g0"][:2]) == set(choose("p", slices, {}, rules).names)
    versions = Rules(Policy.FILE_VERSIONS, "", 1, compacting={("p", "g0"): TIMES[2]})
    choice = choose("p", slices, {}, versions)
    assert names(slices["g0"][:2]) == set(choice.names)
    assert choice.kept[ReasonToKeep.COMPACTION].files == 3
    assert list(choice.gone) == [Gone.SURPLUS]


def timeline(folder: Path, files: Sequence[str]) -> Timeline:
    folder.mkdir(parents=True, exist_ok=True)
    for name in files:
        (folder / name).touch()
    return Timeline.load(open_storage(str(folder)), LayoutV2(), "", "UTC")


def test_the_earliest_commit_to_retain(tmp_path: Path) -> None:
    done = [f"{ts}_{ts[:-1]}1.commit" for ts in TIMES[:6]]
    now = datetime(2026, 1, 1, 1, tzinfo=timezone.utc)

    def found(files: Sequence[str], retention: Retention, previous: str = "") -> tuple[str | None, str | None]:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        result = horizon(timeline(folder, files), retention, now, previous)
        held = result.held_back_by
        return result.earliest.ts if result.earliest else None, held.ts if held else None

    assert found(done, Retention(commits=6)) == (None, None)
    assert found(done, Retention(commits=5)) == (TIMES[1], None)
    assert found(done, Retention(commits=1)) == (TIMES[5], None)
    # A pending action keeps what came before it, and the last commit before it.
    for pending in ("clustering.requested", "commit.requested", "inflight", "compaction.inflight"):
        waiting = [*done[:3], f"{TIMES[3]}.{pending}", *done[4:]]
        assert found(waiting, Retention(commits=1)) == (TIMES[2], TIMES[3])
        assert found(waiting, Retention(commits=4)) == (TIMES[1], None)
    assert found([f"{TIMES[0]}.inflight", *done[1:]], Retention(commits=1)) == (None, TIMES[0])
    # Cleans, rollbacks and savepoints are no commits.
    others = [f"{TIMES[8]}.clean.requested", f"{TIMES[9]}_{TIMES[9]}.rollback", f"{TIMES[2]}_{TIMES[9]}.savepoint"]
    assert found([*done, *others], Retention(commits=2)) == (TIMES[4], None)
    # At most so many commits further than the last time.
    assert found(done, Retention(commits=1, most_commits=2), TIMES[1]) == (TIMES[3], None)
    assert found(done, Retention(commits=1, most_commits=9), TIMES[1]) == (TIMES[5], None)
    assert found(done, Retention(commits=1, most_commits=2)) == (TIMES[5], None)
    # By hours: the first commit that is not older, whatever is pending.
    hours = Retention(Policy.HOURS, hours=1)
    assert found(done, hours) == (TIMES[0], None)
    now += timedelta(minutes=3)
    assert found(done, hours) == (TIMES[3], None)
    now += timedelta(minutes=30)
    assert found(done, hours) == (None, None)
    assert found(done, Retention(Policy.FILE_VERSIONS)) == (None, None)


@pytest.mark.parametrize("zone", ["LOCAL", "UTC"])
def test_hours_are_a_time_back_from_now_on_the_clock_of_the_instants(zone: str, tmp_path: Path) -> None:
    now = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
    with clock_of("Asia/Tokyo"):
        begun = [format_instant(now - timedelta(minutes=minutes), zone) for minutes in (150, 110, 50)]
        for ts in begun:
            (tmp_path / f"{ts}_{ts}.commit").touch()
        found = Timeline.load(open_storage(str(tmp_path)), LayoutV2(), "", zone)
        until = horizon(found, Retention(Policy.HOURS, hours=2), now, "")
    assert until.earliest is not None and until.earliest.ts == begun[1]
