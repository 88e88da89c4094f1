"""Clustering merge-on-read tables: the rows stay, with the metadata table and without, and Hudi's rules decide."""

from pathlib import Path

import pytest

from hudi_services.engine import LocalEngine
from hudi_services.errors import CorruptFile, NothingToDo, UnsupportedTable
from hudi_services.jobs import clustering
from hudi_services.jobs.report import State
from hudi_services.jobs.request import Mode

from . import histories
from .tables import RELEASES, digest, open_local, request
from .test_merge_histories import CUSTOM, comparable, merged_rows

REFUSED = {"torn_tail", "bucket"}
# In some of these a write of Hudi failed, and nobody has rolled it back.
ELSEWHERE = REFUSED | {"null_in_log", "null_in_base", "null_int", "of_date", "uncommitted"}
CASES = [
    (release, name)
    for release in RELEASES
    for name in histories.names(release)
    if name not in ELSEWHERE and not (release == "1.0.2" and name in CUSTOM)
]
MEMORY = 1 << 20
SORT = {"hoodie.clustering.plan.strategy.sort.columns": "val desc"}


@pytest.mark.parametrize("sort", [False, True])
@pytest.mark.parametrize(("release", "name"), CASES)
def test_the_rows_stay(release: str, name: str, sort: bool, tmp_path: Path) -> None:
    path = histories.MadeHistory(release, name, tmp_path).path
    before = comparable(merged_rows(open_local(path), MEMORY))
    dry = clustering.schedule(request(path, Mode.SCHEDULE, SORT if sort else {}, dry_run=True))
    assert dry.rows.before == len(before)
    options = SORT if sort else {}
    planned = clustering.schedule(request(path, Mode.SCHEDULE, options))
    assert planned.state is State.REQUESTED, planned
    done = clustering.execute(request(path, Mode.EXECUTE, options), engine=LocalEngine())
    assert done.state is State.COMPLETED
    table = open_local(path)
    assert comparable(merged_rows(table, MEMORY)) == before
    assert done.rows.after == len(before)
    for one in table.view.live_slices():
        assert one.log_files == () and one.base_file is not None and one.base_instant == done.instant


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", sorted(REFUSED | CUSTOM))
def test_what_is_refused(release: str, name: str, tmp_path: Path) -> None:
    if name not in histories.names(release) or (name in CUSTOM and release != "1.0.2"):
        return
    path = histories.MadeHistory(release, name, tmp_path).path
    before = digest(path)
    with pytest.raises((UnsupportedTable, CorruptFile)):
        clustering.schedule(request(path, Mode.SCHEDULE))
    assert digest(path) == before


@pytest.mark.parametrize("release", ["1.0.2", "1.2.0"])
def test_files_of_a_write_that_is_not_completed(release: str, tmp_path: Path) -> None:
    path = histories.MadeHistory(release, "uncommitted", tmp_path).path
    with pytest.raises(NothingToDo, match="1 has files of a write that is not completed"):
        clustering.schedule(request(path, Mode.SCHEDULE))
