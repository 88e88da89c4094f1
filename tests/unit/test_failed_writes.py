"""The rollback of failed writes at a clean, beside writers of Hudi that roll them back, too."""

import os
import time
from pathlib import Path

import pytest

from hudi_services.commit.heartbeat import heartbeat_path
from hudi_services.errors import NothingToDo
from hudi_services.jobs import clean

from .other_writers import OtherWriters
from .repairs import LOCK, hide_metadata
from .tables import RELEASES, open_local, unpack
from .test_clean import wanted
from .test_salvage import rows

_MINUTE = 60
_LAZY = {**LOCK, "hoodie.clean.failed.writes.policy": "LAZY", "hoodie.clean.commits.retained": "1"}


@pytest.mark.parametrize("release", RELEASES)
def test_a_heartbeat_that_has_just_expired(release: str, tmp_path: Path) -> None:
    """A heartbeat expires after two minutes; the write is rolled back after four, and is no reason to call for help."""
    path = unpack(release, tmp_path)
    hide_metadata(path)
    before = rows(path)
    others = OtherWriters(path)
    ts = others.begin(next(iter(open_local(path).view.live_slices())))
    heartbeat = path / heartbeat_path(ts)
    heartbeat.parent.mkdir(exist_ok=True)
    heartbeat.touch()

    def cleaned(minutes: int) -> str:
        for file in (heartbeat, *path.glob(f".hoodie/**/{ts}.*")):
            os.utime(file, (time.time() - minutes * _MINUTE,) * 2)
        try:
            return " ".join(clean.clean(wanted(path, _LAZY)).warnings)
        except NothingToDo:
            return ""

    assert "rolled back" not in cleaned(1) + cleaned(3)
    assert [one.ts for one in open_local(path).timeline.pending()] == [ts]
    assert f"failed writes were rolled back: {ts}" in cleaned(5)
    assert not open_local(path).timeline.pending() and rows(path).equals(before)
