import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hudi_services.clock import SLOWEST, format_instant, next_instant, parse_instant
from hudi_services.engine import LocalEngine
from hudi_services.errors import ConfigError
from hudi_services.jobs import clustering
from hudi_services.runs.request import Mode
from hudi_services.stores import open_storage
from hudi_services.table.time_zone import _AHEAD, check_zone, drawing_zone
from hudi_services.timeline.active import Timeline
from hudi_services.timeline.instant import Action, Instant, State
from hudi_services.timeline.layout_v2 import LayoutV2

from .tables import as_written, open_local, request, unpack

NOW = datetime(2026, 7, 1, 12, 0, tzinfo=timezone.utc)


def timeline(folder: Path, ahead: timedelta, every: timedelta, zone: str = "LOCAL", copied: bool = False) -> Timeline:
    """Five commits of a writer whose wall clock is `ahead` of ours."""
    folder.mkdir(exist_ok=True)
    for i in range(5):
        moment = NOW + i * every
        file = folder / f"{format_instant(moment + ahead, zone)}.commit.requested"
        file.write_bytes(b"")
        written = NOW + timedelta(hours=7) if copied else moment
        os.utime(file, (written.timestamp(), written.timestamp()))
    return Timeline.load(open_storage(str(folder)), LayoutV2(), "", zone)


@pytest.mark.parametrize(
    ("hours", "word"), [(-5, "5 hours behind"), (9, "9 hours ahead of"), (5.5, "5.5 hours ahead of")]
)
def test_writers_in_another_zone(tmp_path: Path, hours: float, word: str) -> None:
    found = timeline(tmp_path, timedelta(hours=hours), timedelta(minutes=10))
    with pytest.raises(ConfigError, match=word):
        check_zone(found, "/table")


@pytest.mark.thorough
@pytest.mark.parametrize("ours", ["UTC", "Asia/Tokyo", "America/New_York", "Asia/Kathmandu"])
@pytest.mark.parametrize("theirs", ["UTC", "America/New_York", "America/St_Johns", "Asia/Kolkata", "Pacific/Apia"])
@pytest.mark.parametrize("at", [NOW, NOW - timedelta(days=180)])
def test_the_hint_names_a_zone_of_their_clock(ours: str, theirs: str, at: datetime) -> None:
    if ours == theirs:
        return
    their_clock = at.astimezone(ZoneInfo(theirs))
    with clock_of(ours), pytest.raises(ConfigError) as caught:
        check_zone(written([(format_instant(their_clock.replace(tzinfo=timezone.utc), "UTC"), at)]), "/table")
    named = re.fullmatch(
        r"their clock shows UTC(.{6}): run with the time zone of the writers, here and on the executors, for example "
        r"TZ=(\S+)",
        caught.value.hint,
    )
    assert named, caught.value.hint
    assert at.astimezone(ZoneInfo(named[2])).utcoffset() == their_clock.utcoffset()
    assert their_clock.isoformat().endswith(named[1])


def test_one_hour_is_no_hours(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=re.escape("a clock 1 hour ahead of the one")):
        check_zone(timeline(tmp_path, timedelta(hours=1), timedelta(minutes=10)), "/table")


def test_our_own_zone(tmp_path: Path) -> None:
    check_zone(timeline(tmp_path, timedelta(seconds=-2), timedelta(minutes=10)), "/table")


@pytest.mark.parametrize("every", [timedelta(seconds=5), timedelta(minutes=10)])
def test_copied_tables_tell_nothing(tmp_path: Path, every: timedelta) -> None:
    check_zone(timeline(tmp_path, timedelta(), every, copied=True), "/table")


def test_tables_that_were_copied_at_once(tmp_path: Path) -> None:
    """No zone is half an hour behind UTC, nor a quarter of an hour: their files were copied, and tell nothing."""
    for minutes in (15, 30, 45, 75):
        check_zone(timeline(tmp_path / str(minutes), timedelta(minutes=-minutes), timedelta(seconds=1)), "/table")


def test_the_zones_are_those_of_people() -> None:
    moments = [datetime(year, month, 2, tzinfo=timezone.utc) for year in range(2015, 2027) for month in range(1, 13)]
    zones = [ZoneInfo(name) for name in available_timezones() if "/" in name and not name.startswith("Etc/")]
    assert {moment.astimezone(zone).utcoffset() for zone in zones for moment in moments} == _AHEAD


def test_timelines_in_utc_tell_nothing(tmp_path: Path) -> None:
    check_zone(timeline(tmp_path, timedelta(hours=3), timedelta(minutes=10), zone="UTC"), "/table")


@contextmanager
def clock_of(zone: str) -> Iterator[None]:
    """This process's clock, in another zone."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = zone
    time.tzset()
    try:
        yield
    finally:
        os.environ.pop("TZ")
        if before is not None:
            os.environ["TZ"] = before
        time.tzset()


def written(events: Iterable[tuple[str, datetime]]) -> Timeline:
    """A timeline of instants and the times of their files."""
    begun = {ts: round(moment.timestamp() * 1000) for ts, moment in events}
    instants = tuple(
        Instant(ts, Action.COMMIT, State.REQUESTED, None, f"{ts}.commit.requested") for ts in sorted(begun)
    )
    return Timeline(open_storage("/nowhere"), LayoutV2(), "", "LOCAL", instants, {}, begun)


def reading(moment: datetime, quarters: int) -> str:
    """What a clock so many quarters of an hour ahead of UTC shows."""
    return format_instant(moment + timedelta(minutes=15 * quarters), "UTC")


SPANS = st.timedeltas(timedelta(0), timedelta(minutes=3)) | st.timedeltas(timedelta(0), timedelta(days=3))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "ours",
    [
        "America/New_York",
        *(
            pytest.param(zone, marks=pytest.mark.deep)
            for zone in ("UTC", "Asia/Tokyo", "Asia/Kolkata", "Pacific/Kiritimati")
        ),
    ],
)
@given(
    st.integers(-48, 56),
    st.lists(st.tuples(SPANS, st.timedeltas(timedelta(0), timedelta(seconds=20))), max_size=25),
    SPANS,
    st.none() | st.timedeltas(timedelta(0), timedelta(days=2)),
)
def test_no_instant_is_ahead_of_the_writers(
    ours: str,
    theirs: int,
    commits: list[tuple[timedelta, timedelta]],
    since: timedelta,
    copied: timedelta | None,
) -> None:
    """Whatever their zone is, however many commits there are, whether their files are as they were or were copied."""
    now, events = NOW, []
    for gap, delay in commits:
        now += gap + timedelta(milliseconds=1)
        events.append((reading(now, theirs), now + delay))
    if copied is not None:
        events = [(ts, now + copied) for ts, _ in events]
    now += since + (copied or timedelta())
    with clock_of(ours):
        found = written(events)
        moments = [parse_instant(ts, "LOCAL") for ts in found.begun]
        # The time of the copy may be the one that a clock of ours would have shown: nothing can tell that.
        near = [
            abs(file - moment) < timedelta(minutes=2)
            for moment, (_, file) in zip(moments, events, strict=False)
            if moment
        ]
        assume(copied is None or not any(near))
        try:
            check_zone(found, "/table")
        except ConfigError:
            return
        drawn = next_instant(now, drawing_zone(found), found.latest_time())
    after_latest = next_instant(NOW - timedelta(days=9), "UTC", found.latest_time()) if events else ""
    assert drawn <= max(reading(now, theirs), after_latest)


@pytest.mark.parametrize("hours", [-11, -2.5, 9, 5.75])
@pytest.mark.parametrize("commits", [1, 2])
def test_one_instant_is_enough(hours: float, commits: int) -> None:
    moments = [NOW + timedelta(seconds=i) for i in range(commits)]
    with clock_of("UTC"), pytest.raises(ConfigError, match="writers use a clock"):
        check_zone(written((format_instant(one + timedelta(hours=hours), "UTC"), one) for one in moments), "/table")


def test_a_table_that_nobody_wrote_to_for_days_is_healthy() -> None:
    with clock_of("Asia/Tokyo"):
        found = written([(format_instant(NOW - timedelta(days=30), "LOCAL"), NOW - timedelta(days=30))])
        check_zone(found, "/table")
        assert drawing_zone(found) == "LOCAL"


@pytest.mark.parametrize("minutes", [0, 30, 59, 60, 61, 90, 119, 180])
def test_the_end_of_summer_time(minutes: int) -> None:
    """Clocks show the hour from one to two twice, on 1 November 2026 from 5:00 UTC on."""
    moment = datetime(2026, 11, 1, 5, tzinfo=timezone.utc) + timedelta(minutes=minutes)
    with clock_of("America/New_York"):
        found = written([(format_instant(moment, "LOCAL"), moment)])
        check_zone(found, "/table")
        assert drawing_zone(found) == "LOCAL"


def test_copies_tell_nothing_until_somebody_writes() -> None:
    copied = [(format_instant(NOW - timedelta(days=i, minutes=7 * i), "UTC"), NOW) for i in range(1, 5)]
    later = NOW + timedelta(hours=3)
    with clock_of("UTC"):
        assert drawing_zone(written(copied)) == SLOWEST
        assert drawing_zone(written([])) == SLOWEST
        assert drawing_zone(written([*copied, (format_instant(later, "UTC"), later)])) == "LOCAL"
        elsewhere = format_instant(later - timedelta(hours=5), "UTC")
        check_zone(written([*copied, (elsewhere, later)]), "/table")
        assert drawing_zone(written([*copied, (elsewhere, later)])) == SLOWEST
        # What we drew ourselves tells nothing either.
        ours = format_instant(later, SLOWEST)
        check_zone(written([(ours, later)]), "/table")
        assert drawing_zone(written([(ours, later)])) == SLOWEST


def test_an_instant_right_after_another_tells_nothing(tmp_path: Path) -> None:
    """Reserved instants show no clock. Where ours follows the completion time of one, its file's time is of chance."""
    began, finished = NOW - timedelta(hours=9), format_instant(NOW - timedelta(hours=9), "UTC")
    names = ["00000000000001.commit.requested", f"00000000000001_{finished}.commit"]
    ours = next_instant(NOW, SLOWEST, finished)
    next_one = next_instant(NOW, SLOWEST, ours)
    assert finished < ours < next_one
    names += [f"{ours}.clustering.requested", f"{ours}_{next_one}.replacecommit"]
    for name in names:
        (tmp_path / name).touch()
        moment = (began if name.startswith("0") else NOW).timestamp()
        os.utime(tmp_path / name, (moment, moment))
    with clock_of("UTC"):
        found = Timeline.load(open_storage(str(tmp_path)), LayoutV2(), "", "LOCAL")
        check_zone(found, "/table")
        assert drawing_zone(found) == SLOWEST


# ------------------------------------------------------------------------------------------------------ the commands


def hours_from_now(hours: float) -> str:
    return format_instant(datetime.now(timezone.utc) + timedelta(hours=hours), "UTC")


def ahead(path: Path, hours: float) -> str:
    """A commit that is so many hours ahead."""
    folder, ts = path / ".hoodie" / "timeline", hours_from_now(hours)
    (commit,) = sorted(folder.glob("*_*.commit"))[:1]
    (folder / f"{ts}_{ts}.commit").write_bytes(commit.read_bytes())
    return ts


def test_another_zone_is_refused_and_an_unknown_one_is_not_guessed(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    with clock_of("Asia/Tokyo"):
        planned = clustering.schedule(request(path, Mode.SCHEDULE))
        instant = planned.instant
        assert instant is not None and instant <= hours_from_now(-11.9)
        (warning,) = (one for one in planned.warnings if "time zone" in one)
        assert "Nothing is to be done" in warning and "docs/" not in warning
        assert clustering.execute(request(path, Mode.EXECUTE), engine=LocalEngine()).instant == instant
        times = [i.completion_time for i in open_local(path).timeline.instants if i.ts == instant]
        assert times[0] is not None and times[0] <= hours_from_now(-11.9)
    known = unpack("1.2.0", tmp_path / "known")
    as_written(known, "UTC")
    with clock_of("Asia/Tokyo"), pytest.raises(ConfigError, match="9 hours behind"):
        clustering.schedule(request(known, Mode.SCHEDULE))
    with clock_of("UTC"):
        instant = clustering.schedule(request(known, Mode.SCHEDULE)).instant
        assert instant is not None and hours_from_now(-0.1) < instant <= hours_from_now(0)


@pytest.mark.parametrize(
    ("seconds", "skew", "fine"), [(72_000, 200, False), (20, 200, False), (20, 60_000, True), (-1, 0, True)]
)
@pytest.mark.parametrize("digits", [14, 17])
def test_an_instant_ahead_of_the_clock(seconds: int, skew: int, fine: bool, digits: int, tmp_path: Path) -> None:
    path, ts = unpack("1.2.0", tmp_path), hours_from_now(seconds / 3600)[:digits]
    wanted = request(path, Mode.SCHEDULE, {"hoodie.time.generator.max_expected_clock_skew_ms": str(skew)}, instant=ts)
    with clock_of("UTC"):
        if fine:
            assert clustering.schedule(wanted).instant == ts
            return
        with pytest.raises(ConfigError, match="is in the future"):
            clustering.schedule(wanted)
    assert not open_local(path).timeline.pending_clusterings()


@pytest.mark.parametrize(
    ("hours", "known", "fine"), [(0.01, True, True), (2, True, False), (2, False, True), (15, False, False)]
)
def test_a_timeline_ahead_of_the_clock(hours: float, known: bool, fine: bool, tmp_path: Path) -> None:
    """A copied timeline may be of writers whose clocks are ahead of ours, by up to fourteen hours from UTC."""
    path = unpack("1.2.0", tmp_path)
    if known:
        as_written(path, "UTC")
    latest = ahead(path, hours)
    with clock_of("UTC"):
        if fine:
            instant = clustering.schedule(request(path, Mode.SCHEDULE)).instant
            assert instant is not None and instant > latest
            return
        with pytest.raises(ConfigError, match=f"{latest}, is [0-9]+ (minutes|hours) ahead of the clock"):
            clustering.schedule(request(path, Mode.SCHEDULE))
    assert not open_local(path).timeline.pending_clusterings()


def test_a_plan_ahead_of_the_clock(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    as_written(path, "UTC")
    with clock_of("UTC"):
        ts = clustering.schedule(request(path, Mode.SCHEDULE)).instant
        folder, later = path / ".hoodie" / "timeline", hours_from_now(20)
        (folder / f"{ts}.clustering.requested").rename(folder / f"{later}.clustering.requested")
        with pytest.raises(ConfigError, match=f"the pending clustering {later} is [0-9]+ hours ahead"):
            clustering.execute(request(path, Mode.EXECUTE), engine=LocalEngine())
