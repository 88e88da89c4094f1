"""Random histories of merge-on-read tables: after each step, the rows that we merge are those that Hudi reads."""

from pathlib import Path

import pytest

from ..tiers import DEEP
from ..unit.tables import open_local
from ..unit.test_merge_histories import comparable, merged_rows
from . import ours
from .history_maker import HistoryMaker
from .peer import Peer
from .random_histories import KINDS, random_history
from .reading import METADATA_OFF

SEEDS = range(5) if DEEP else range(1)
KEYS = 60
MEMORY = 1 << 20


class Follower(HistoryMaker):
    """Compares after each step."""

    name = ""
    compared = 0

    def _rows(self) -> list[dict[str, object]]:
        found = super()._rows()
        for memory in (1 << 30, 1):
            assert comparable(merged_rows(open_local(self._path), memory)) == comparable(found), self.name
        self.compared += 1
        return found


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
def test_a_random_history(kind: str, peer: Peer, tmp_path: Path) -> None:
    """In the end we cluster the table, and Hudi reads the same rows."""
    if peer.version not in KINDS[kind].releases:
        return
    for seed in SEEDS:
        name = f"kind {kind!r}, seed {seed}"
        print(name)
        history = random_history(kind, seed, KEYS, peer.version)
        maker = Follower(peer, tmp_path / str(seed), history)
        maker.name = name
        maker.make()
        path = tmp_path / str(seed) / "table"
        before = maker._rows()
        assert maker.compared > len(history.steps) // 2, name
        done = ours.run("execute", path, "--mode", "scheduleAndExecute")
        assert done.code in (0, 3), f"{name}: {done}"
        after = sorted(peer.rows(path, METADATA_OFF).to_pylist(), key=lambda row: str(row["id"]))
        assert comparable(after) == comparable(before), name
