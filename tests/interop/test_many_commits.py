"""The metadata table does not rot: two hundred commits of ours in a row compact it, and Hudi cleans and archives it."""

from pathlib import Path

import pytest

from hudi_services.engine import LocalEngine
from hudi_services.jobs import clean, clustering
from hudi_services.options import resolve
from hudi_services.runs.request import CleanRequest, Mode

from ..unit.tables import request
from . import layout
from .conftest import Tables
from .mdt_check import check_metadata
from .peer import Peer
from .pristine import Pristine
from .reading import Reading, newer

_COMMITS = 200
_QUICK = {"hoodie.time.generator.max_expected_clock_skew_ms": "0"}
# Our own compaction leaves it nothing that is due by the default.
_HUDI = {"hoodie.clean.automatic": "true", "hoodie.metadata.compact.max.delta.commits": "2"}
_ROTATE = {**_QUICK, "hoodie.clustering.plan.strategy.sort.columns": "ts"}


# On 1.2.0 it passes, too, and would make the longer one of the two deep runs longer still.
@pytest.mark.deep
@pytest.mark.releases("0.15.0")
def test_two_hundred_commits(peer: Peer, known: Pristine, table: Tables) -> None:
    path, before = table("many"), known.reading("many")
    cleans = 0
    for number in range(_COMMITS):
        clustering.schedule_and_execute(request(path, Mode.SCHEDULE_AND_EXECUTE, _ROTATE), engine=LocalEngine())
        if number % 4 == 3:
            options = resolve([("test", {**_QUICK, "hoodie.clean.commits.retained": "2"})])
            clean.clean(CleanRequest(base_path=str(path), options=options))
            cleans += 1
    assert len(layout.writes(path)) >= _COMMITS
    deltas = _mdt(path, "*.deltacommit")
    assert len(deltas) >= _COMMITS + cleans
    compactions = _mdt(path, "*.commit")
    assert len(compactions) > _COMMITS // 15
    assert before.differences(Reading.of(peer, path)) == []
    assert check_metadata(peer, path) == []

    for number in range(3):
        peer.upsert(path, newer(before.hudi.slice(number, 4)), **_HUDI)

    assert set(_mdt(path, "*.commit")) - set(compactions), "Hudi did not compact the metadata table"
    assert len(_mdt(path, "*.deltacommit")) < _COMMITS, "Hudi did not archive the metadata table's timeline"
    assert len(layout.writes(path)) < _COMMITS, "Hudi did not archive the table's timeline"
    assert peer.rows(path).num_rows == before.hudi.num_rows
    assert check_metadata(peer, path) == []


def _mdt(path: Path, pattern: str) -> list[Path]:
    return list((path / ".hoodie/metadata/.hoodie").rglob(pattern))
