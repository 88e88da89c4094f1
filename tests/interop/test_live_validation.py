"""`validate` again and again beside real Hudi that writes, cleans, archives and compacts: no alarm.

scripts/validate_beside_writer.py does the same a thousand times.
"""

import time
from pathlib import Path

import pytest

from .live_writer import LiveWriter, alarm, validate_once
from .peer import Peer

_WRITES = 15


@pytest.mark.deep
def test_no_false_alarm_beside_a_live_writer(peer: Peer, tmp_path: Path) -> None:
    path, alarms, runs = tmp_path / "table", [], 0
    with LiveWriter(peer, path) as writer:
        while writer.writes < _WRITES and writer.error is None:
            alarms += [found for found in [alarm(validate_once(path))] if found is not None]
            runs += 1
            time.sleep(0.2)
    assert runs > _WRITES and alarms == []
    assert alarm(validate_once(path)) is None
