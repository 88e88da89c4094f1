import os
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from hudi_services.clock import format_instant
from hudi_services.errors import ConfigError
from hudi_services.storage import ObjectStorage
from hudi_services.table.time_zone import check_zone
from hudi_services.timeline.active import Timeline
from hudi_services.timeline.layout_v2 import LayoutV2

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
    return Timeline.load(ObjectStorage(str(folder)), LayoutV2(), "", zone)


@pytest.mark.parametrize(
    ("hours", "word"), [(-5, "5 hours behind"), (9, "9 hours ahead of"), (5.5, "5.5 hours ahead of")]
)
def test_writers_in_another_zone(tmp_path: Path, hours: float, word: str) -> None:
    found = timeline(tmp_path, timedelta(hours=hours), timedelta(minutes=10))
    with pytest.raises(ConfigError, match=word):
        check_zone(found, "/table")


def test_our_own_zone(tmp_path: Path) -> None:
    check_zone(timeline(tmp_path, timedelta(seconds=-2), timedelta(minutes=10)), "/table")


@pytest.mark.parametrize("every", [timedelta(seconds=5), timedelta(minutes=10)])
def test_copied_tables_tell_nothing(tmp_path: Path, every: timedelta) -> None:
    check_zone(timeline(tmp_path, timedelta(), every, copied=True), "/table")


def test_timelines_in_utc_tell_nothing(tmp_path: Path) -> None:
    check_zone(timeline(tmp_path, timedelta(hours=3), timedelta(minutes=10), zone="UTC"), "/table")
